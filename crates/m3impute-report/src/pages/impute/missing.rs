//! What was missing.

use super::{NAME, missingness};
use crate::charts;
use crate::facts::{Missing, MissingTogether, Suspect};
use crate::html::{Html, html};
use crate::page::{not_available, scroll};
use crate::words::{breakable, count, percent, short, thousands};

/// Columns with suspicious values that are listed.
const SUSPECTS: usize = 12;

pub(super) fn section(of: &Missing, together: &MissingTogether, suspects: &[Suspect]) -> Html {
    let suspects = suspected(suspects);
    if of.cells == 0 {
        return html!("{}{}", not_available("Nothing was missing."), suspects);
    }
    let picture = html!(
        "<figure><figcaption>{}{}</figcaption>{}</figure>\n",
        charts::matrix_note(&of.matrix, of.rows, of.columns),
        charts::matrix_key(&of.matrix),
        scroll("Picture of missing cells", charts::matrix(&of.matrix, of.rows, of.columns))
    );
    let rows: Html = of
        .by_column
        .iter()
        .map(|c| {
            let left = c.missing - c.filled;
            html!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"n\">{}</td><td class=\"n\" data-by=\"{}\">{}</td>\
                 <td>{}</td><td class=\"n{}\">{}</td></tr>\n",
                breakable(&short(&c.name, NAME)),
                c.kind.name(),
                thousands(c.missing),
                c.missing,
                percent(c.missing, of.rows),
                charts::bar(c.missing as f64 / of.rows.max(1) as f64, "filled"),
                if left > 0 { " poor-text" } else { "" },
                thousands(left)
            )
        })
        .collect();
    let hidden = of.incomplete_columns - of.by_column.len();
    let complete = of.columns - of.incomplete_columns;
    let cut = if hidden > 0 {
        format!("The {} columns with the most; {} more are incomplete, ", of.by_column.len(), thousands(hidden))
    } else {
        format!("{}, ", count(of.incomplete_columns, "incomplete column"))
    };
    let table = html!(
        "<table class=\"sortable\"><caption>{}{} complete.</caption><thead><tr><th scope=\"col\" data-text>Column</th>\
         <th scope=\"col\" data-text>Kind</th><th scope=\"col\" class=\"n\">Missing</th>\
         <th scope=\"col\" class=\"n\">Share</th><td></td><th scope=\"col\" class=\"n\">Left missing</th></tr></thead>\n\
         <tbody>\n{}</tbody></table>",
        cut,
        thousands(complete),
        rows
    );
    html!(
        "{}{}<h3>By column</h3>\n{}<h3>Missing together</h3>\n{}<h3>Correlation of missing cells</h3>\n{}",
        suspects,
        picture,
        scroll("Missing cells by column", table),
        patterns(of),
        missingness::together(together)
    )
}

/// Values that may stand for missing; nothing where there are none.
fn suspected(of: &[Suspect]) -> Option<Html> {
    let value = |(value, times, why): &(String, usize, String)| {
        let times = if *times == 1 { "once".to_owned() } else { format!("{} times", thousands(*times)) };
        html!("<code>{}</code> occurs {}: {}. ", short(value, 40), times, short(why, 120))
    };
    let line = |of: &Suspect| {
        let values: Html = of.values.iter().map(value).collect();
        html!(
            "<li><b>{}</b> {}<code>{}</code></li>\n",
            breakable(&short(&of.column, NAME)),
            values,
            short(&of.setting, 200)
        )
    };
    let lines: Html = of.iter().take(SUSPECTS).map(line).collect();
    let more = of.len().saturating_sub(SUSPECTS);
    let more = (more > 0)
        .then(|| html!("<p>{} more are not shown here; the program named all of them.</p>\n", count(more, "column")));
    (!of.is_empty()).then(|| {
        html!(
            "<div class=\"advice\" role=\"note\" aria-label=\"Values that may mean missing\"><p>Values that may mean \
             missing</p>\n<p>They count as observed here. If they stand for missing, run again with the setting.</p>\n\
             <ul class=\"events\">\n{}</ul>\n{}</div>\n",
            lines,
            more
        )
    })
}

fn patterns(of: &Missing) -> Html {
    let most = of.patterns.first().map_or(0, |p| p.rows);
    if most == 0 {
        return html!("<p>Columns are complete or have no value at all.</p>\n");
    }
    if most == 1 && of.all_patterns > 1 {
        return html!("<p>No two rows miss the same columns.</p>\n");
    }
    let empty = match of.empty_columns {
        0 => String::new(),
        1 => " The one column without a single value is left out.".to_owned(),
        n => format!(" The {} columns without a single value are left out.", thousands(n)),
    };
    let rows: Html = of
        .patterns
        .iter()
        .map(|p| {
            let chips: Html =
                p.names.iter().map(|n| html!("<span class=\"chip\">{}</span>", breakable(&short(n, NAME)))).collect();
            let more = p.columns - p.names.len();
            let more = (more > 0).then(|| html!("and {} more", thousands(more)));
            html!(
                "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td><td class=\"chips\">{}{}</td></tr>\n",
                thousands(p.rows),
                percent(p.rows, of.rows),
                charts::bar(p.rows as f64 / most as f64, "filled"),
                chips,
                more
            )
        })
        .collect();
    let more = of.all_patterns - of.patterns.len();
    let cut = if more > 0 {
        format!(
            "The {} most frequent of {} sets of columns that are missing in the same rows.",
            of.patterns.len(),
            thousands(of.all_patterns)
        )
    } else {
        "Sets of columns that are missing in the same rows.".to_owned()
    };
    let table = html!(
        "<table><caption>{}{}</caption><thead><tr><th scope=\"col\" class=\"n\">Rows</th>\
         <th scope=\"col\" class=\"n\">Share</th><td></td><th scope=\"col\">Missing columns</th></tr></thead>\n<tbody>\n{}</tbody></table>",
        cut,
        empty,
        rows
    );
    scroll("Columns that are missing together", table)
}
