//! Filled cells, one by one.

use super::{LEVEL_NAME, NAME, interval_percent};
use crate::facts::{FilledCell, ImputeFacts};
use crate::gather::LISTED_OF_COLUMN;
use crate::html::{Html, html};
use crate::page::{not_available, scroll};
use crate::words::{breakable, count, share, short, thousands};

pub(super) fn section(of: &ImputeFacts) -> Html {
    if of.cells.is_empty() {
        return not_available("No cell was filled.");
    }
    let certain = of.uncertain.is_some();
    let (shown, all) = (of.cells.len(), of.filled);
    let which = match (shown < all, certain) {
        (false, true) => "All filled cells, the least certain first.".to_owned(),
        (false, false) => "All filled cells, row by row.".to_owned(),
        (true, true) => {
            format!(
                "The {} least certain of {}, at most {LISTED_OF_COLUMN} of one column.",
                thousands(shown),
                count(all, "filled cell")
            )
        }
        (true, false) => format!(
            "The first {} of {}, row by row: this method does not say how certain they are.",
            thousands(shown),
            count(all, "filled cell")
        ),
    };
    let rows: Html = of.cells.iter().map(|cell| row(cell, certain)).collect();
    let about = certain.then(|| {
        html!(
            " “Unknown” is the width of the {} % interval as a share of that of the whole column, or how open the levels \
             are as a share of the column’s.",
            interval_percent()
        )
    });
    let heads = certain.then(|| {
        html!(
            "<th scope=\"col\" data-text>{} % interval, or probability</th><th scope=\"col\" class=\"n\">Unknown</th>",
            interval_percent()
        )
    });
    let table = html!(
        "<table class=\"sortable\"><caption>{}{} Press a head to sort.</caption><thead><tr>\
         <th scope=\"col\" class=\"n\">Row</th><th scope=\"col\" data-text>Column</th>\
         <th scope=\"col\" data-mixed>Value</th>{}</tr></thead>\n<tbody>\n{}</tbody></table>",
        which,
        about,
        heads,
        rows
    );
    html!("<div class=\"long\">{}</div>", scroll("Filled cells", table))
}

fn row(of: &FilledCell, certain: bool) -> Html {
    let unknown = of.uncertainty.unwrap_or(0.0);
    let certainty = certain.then(|| {
        html!(
            "<td class=\"word\">{}</td><td class=\"n\" data-by=\"{}\">{}</td>",
            of.cell.certainty.replace(" %", "\u{a0}%"),
            format!("{unknown:.4}"),
            share(unknown)
        )
    });
    html!(
        "<tr><td class=\"n\">{}</td><th scope=\"row\">{}</th><td class=\"word\">{}</td>{}</tr>\n",
        thousands(of.row),
        breakable(&short(&of.cell.column, NAME)),
        short(&of.cell.value, LEVEL_NAME),
        certainty
    )
}
