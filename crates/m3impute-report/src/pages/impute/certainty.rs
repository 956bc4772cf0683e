//! The least certain rows.

use super::{LEVEL_NAME, NAME, interval_percent};
use crate::facts::{ImputeFacts, UncertainRow};
use crate::html::{Html, html};
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
        "<p>Rows in which the most is still open after filling. They are worth checking, or a second source.</p>\n{}",
        scroll("Least certain rows", table)
    )
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
