//! The least certain rows.

use super::{LEVEL_NAME, NAME, interval_percent};
use crate::facts::{ImputeFacts, UncertainRow};
use crate::html::{Html, html, prose};
use crate::page::{not_available, scroll};
use crate::words::{count, short, thousands};

pub(super) fn section(of: &ImputeFacts) -> Html {
    let Some(rows) = &of.uncertain else {
        return not_available(
            "This method gives point estimates without their uncertainty. Fill with `--method m3` to see the least \
             certain rows, and with `--interval 0.9` to have intervals in the table too.",
        );
    };
    if rows.is_empty() {
        return not_available("No filled cell has a distribution.");
    }
    let body: Html = rows.iter().map(uncertain_row).collect();
    let table = html!(
        "<table class=\"sortable\"><caption>Row 1 is the first below the names of the columns. A cell counts as fully \
         unknown where its {} % interval is as wide as that of its whole column, or its levels are as open.</caption>\
         <thead><tr><th scope=\"col\" class=\"n\">Row</th>\
         <th scope=\"col\" class=\"n\">As good as unknown</th><th scope=\"col\" data-fixed>Least certain cells</th></tr>\
         </thead>\n<tbody>\n{}</tbody></table>",
        interval_percent(),
        body
    );
    html!(
        "<p>Rows in which the most is still open after filling. They are worth checking, or a second source.</p>\n{}{}",
        scroll("Least certain rows", table),
        explanations(&of.explanations)
    )
}

/// Why some of the least certain cells have their values.
fn explanations(of: &[Vec<String>]) -> Option<Html> {
    let explained: Html = of.iter().filter_map(|lines| explanation(lines)).collect();
    let about = "Some of the least certain cells, two of a column at most: what each member of the ensemble predicts, and \
                 what the fill would be if one observed cell of the row were hidden. `m3impute explain` explains any other.";
    (!of.is_empty()).then(|| html!("<h3>Why these values?</h3>\n<p>{}</p>\n{}", prose(about), explained))
}

/// The first line is the summary; lines that are indented are a list below the one before.
fn explanation(lines: &[String]) -> Option<Html> {
    let (first, rest) = lines.split_first()?;
    let is_item = |line: &&String| line.starts_with(' ');
    let lists = rest.chunk_by(|_, next| next.starts_with(' ')).map(|part| {
        let items: Html = part.iter().filter(is_item).map(|line| html!("<li>{}</li>", prose(line.trim()))).collect();
        let heads: Html =
            part.iter().filter(|line| !is_item(line)).map(|line| html!("<p>{}</p>", prose(line))).collect();
        if part.iter().any(|line| is_item(&line)) { html!("{}<ul>{}</ul>\n", heads, items) } else { heads }
    });
    Some(html!("<details><summary>{}</summary>\n{}</details>\n", prose(first), lists.collect::<Html>()))
}

fn uncertain_row(row: &UncertainRow) -> Html {
    let cells: Html = row
        .cells
        .iter()
        .map(|c| {
            let certainty = (!c.certainty.is_empty()).then(|| html!(" <span class=\"soft\">({})</span>", c.certainty));
            html!(
                "<span class=\"chip\"><span class=\"soft\">{}</span> {}{}</span>",
                short(&c.column, NAME),
                short(&c.value, LEVEL_NAME),
                certainty
            )
        })
        .collect();
    let more = row.filled - row.cells.len();
    let more = (more > 0).then(|| html!("and {} more", thousands(more)));
    html!(
        "<tr><td class=\"n\">{}</td><td class=\"n\">{} of {}</td><td class=\"chips\">{}{}</td></tr>\n",
        thousands(row.row),
        format!("{:.1}", row.uncertainty),
        count(row.filled, "cell"),
        cells,
        more
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_is_a_summary_with_lists() {
        let lines = ["row 4: `age` is filled with 31", "what decides:", "  without `job` (<none>) it would be 40"];
        let html = explanation(&lines.map(str::to_owned)).unwrap().into_string();
        assert!(html.starts_with("<details><summary>row 4: <code>age</code> is filled with 31</summary>"), "{html}");
        let list = "<p>what decides:</p><ul><li>without <code>job</code> (&lt;none&gt;) it would be 40</li></ul>";
        assert!(html.contains(list), "{html}");
        assert!(explanation(&[]).is_none() && explanations(&[]).is_none());
    }
}
