//! Validation errors: of filled columns first, and apart from them those of columns without filled cells.

use super::{NAME, NAMED};
use crate::charts;
use crate::facts::{Accuracy, ImputeFacts};
use crate::html::{Html, html};
use crate::page::{not_available, scroll};
use crate::words::{count, error, named, percent, short, thousands};
use m3impute_core::{ColumnScore, Measure};

pub(super) fn section(facts: &ImputeFacts) -> Html {
    let of = &facts.accuracy;
    if of.columns == 0 {
        return not_available(
            "This method holds out no cells, so its error is not known. Run `m3impute evaluate` on the same file to \
             compare it with others, or fill with `--method m3`, which validates itself.",
        );
    }
    html!(
        "<p>While fitting, the method held out some observed cells and predicted them; below are its errors. Cells \
         that are not missing at random may be harder than these.</p>\n{}{}{}",
        unknown(of),
        filled(of),
        unfilled(of)
    )
}

/// Filled columns without a validation error.
fn unknown(of: &Accuracy) -> Option<Html> {
    let all = of.unknown_cells + of.known_cells;
    (of.unknown_cells > 0).then(|| {
        html!(
            "<p class=\"poor-text\">{}: too few observed values to estimate the error of {} ({} of all filled cells).</p>\n",
            named(of.unknown.iter().map(|(name, _)| name.as_str()), of.unknown_columns, NAMED),
            count(of.unknown_cells, "filled cell"),
            percent(of.unknown_cells, all)
        )
    })
}

/// Filled columns with their errors.
fn filled(of: &Accuracy) -> Option<Html> {
    if of.known.is_empty() {
        return None;
    }
    let rows: Html = of.known.iter().map(|(score, cells)| row(score, Some(*cells))).collect();
    let hidden = of.known_columns - of.known.len();
    let cut =
        (hidden > 0).then(|| html!(" Shown are the {} worst; {} more have errors.", of.known.len(), thousands(hidden)));
    let caption = html!(
        "Filled columns: validation errors on held-out cells, in the units of each column or, for levels, as log loss; \
         worst column first. The line in the bars is the baseline (median, or the frequencies of the levels).{}",
        cut
    );
    let poor: Vec<&str> =
        of.known.iter().filter(|(s, _)| s.is_no_better_than_baseline()).map(|(s, _)| s.column.as_str()).collect();
    let poor = (of.poor_columns > 0).then(|| {
        html!(
            "<p>In {} no model beats the baseline: {} got little more than the median or mode.</p>\n",
            named(poor.iter().copied(), of.poor_columns, NAMED),
            count(of.poor_cells, "cell")
        )
    });
    Some(html!("{}{}", scroll("Validation errors of filled columns", table(caption, true, rows)), poor))
}

/// Columns whose errors matter for new rows alone.
fn unfilled(of: &Accuracy) -> Option<Html> {
    if of.unfilled.is_empty() {
        return None;
    }
    let rows: Html = of.unfilled.iter().map(|score| row(score, None)).collect();
    let hidden = of.unfilled_columns - of.unfilled.len();
    let cut = (hidden > 0)
        .then(|| html!(" Shown are the {} worst of {}.", of.unfilled.len(), thousands(of.unfilled_columns)));
    let caption =
        html!("Cells held out at random, since none is missing. No figure above counts these columns.{}", cut);
    Some(html!(
        "<details><summary>Columns without missing cells; for new rows ({})</summary>\n{}</details>\n",
        thousands(of.unfilled_columns),
        scroll("Validation errors of columns without missing cells", table(caption, false, rows))
    ))
}

fn table(caption: Html, counted: bool, rows: Html) -> Html {
    let filled = counted.then(|| html!("<th scope=\"col\" class=\"n\">Filled</th>"));
    html!(
        "<table class=\"sortable\"><caption>{}</caption><thead><tr><th scope=\"col\" data-text>Column</th>{}\
         <th scope=\"col\" class=\"n\">Held out</th><th scope=\"col\" class=\"n\">Error</th>\
         <th scope=\"col\" class=\"n\">Baseline</th><th scope=\"col\" class=\"n\">Share of it</th><td></td>\
         <th scope=\"col\" class=\"n\">Best single model</th><th scope=\"col\" data-text>Ensemble</th></tr></thead>\n\
         <tbody>\n{}</tbody></table>",
        caption,
        filled,
        rows
    )
}

fn row(score: &ColumnScore, filled: Option<usize>) -> Html {
    let held = &score.validation;
    let is_loss = score.measure == Measure::LogLoss;
    let figure = |e: f64| if is_loss { format!("{e:.3}") } else { error(score, e) };
    let text = |e: Option<f64>| e.map_or_else(|| "not known".to_owned(), figure);
    let unit = is_loss.then(|| html!(" <span class=\"soft\">log loss</span>"));
    let by = |e: Option<f64>| e.map_or_else(String::new, |e| format!("{e:e}"));
    let ratio = score.ratio();
    let best = held.best.as_ref();
    html!(
        "<tr><th scope=\"row\">{}{}</th>{}<td class=\"n\">{}</td><td class=\"n\" data-by=\"{}\">{}</td>\
         <td class=\"n\" data-by=\"{}\">{}</td><td class=\"n{}\">{}</td><td>{}</td><td class=\"n\" data-by=\"{}\">{}</td>\
         <td class=\"mixed\">{}</td></tr>\n",
        short(&score.column, NAME),
        unit,
        filled.map(|cells| html!("<td class=\"n\">{}</td>", thousands(cells))),
        thousands(held.cells),
        by(held.error),
        text(held.error),
        by(held.baseline),
        text(held.baseline),
        if score.is_no_better_than_baseline() { " poor-text" } else { "" },
        ratio.map_or_else(String::new, |r| format!("{:.0} %", 100.0 * r)),
        ratio.map(charts::ratio),
        by(best.map(|b| b.error)),
        best.map_or_else(String::new, |b| format!("{} ({})", figure(b.error), b.name)),
        short(&held.ensemble, 120).replace(" %", "\u{a0}%")
    )
}
