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
    let shown = Shown::of(true, of.known.iter().map(|(score, _)| score));
    let rows: Html = of.known.iter().map(|(score, cells)| row(score, *cells, shown)).collect();
    let hidden = of.known_columns - of.known.len();
    let cut =
        (hidden > 0).then(|| html!(" Shown are the {} worst; {} more have errors.", of.known.len(), thousands(hidden)));
    let caption = html!(
        "Filled columns: validation errors on held-out cells, in the units of each column or, for levels, as log loss; \
         worst column first. Of levels, “right” is the share of held-out \
         cells whose most probable level is the true one, beside that of the most frequent level. The line in the bars is the baseline (median, or the frequencies of the levels).{}",
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
    Some(html!("{}{}", scroll("Validation errors of filled columns", table(caption, shown, rows)), poor))
}

/// Columns whose errors matter for new rows alone.
fn unfilled(of: &Accuracy) -> Option<Html> {
    if of.unfilled.is_empty() {
        return None;
    }
    let shown = Shown::of(false, of.unfilled.iter());
    let rows: Html = of.unfilled.iter().map(|score| row(score, 0, shown)).collect();
    let hidden = of.unfilled_columns - of.unfilled.len();
    let cut = (hidden > 0)
        .then(|| html!(" Shown are the {} worst of {}.", of.unfilled.len(), thousands(of.unfilled_columns)));
    let caption =
        html!("Cells held out at random, since none is missing. No figure above counts these columns.{}", cut);
    Some(html!(
        "<details><summary>Columns without missing cells; for new rows ({})</summary>\n{}</details>\n",
        thousands(of.unfilled_columns),
        scroll("Validation errors of columns without missing cells", table(caption, shown, rows))
    ))
}

/// What the columns of a table of errors have: only these are shown.
#[derive(Clone, Copy)]
struct Shown {
    filled: bool,
    accuracy: bool,
    coverage: bool,
}

impl Shown {
    fn of<'a>(filled: bool, scores: impl Iterator<Item = &'a ColumnScore>) -> Shown {
        let mut shown = Shown { filled, accuracy: false, coverage: false };
        for ColumnScore { validation, .. } in scores {
            shown.accuracy |= validation.accuracy.is_some();
            shown.coverage |= validation.coverage.is_some();
        }
        shown
    }
}

fn table(caption: Html, shown: Shown, rows: Html) -> Html {
    let head = |text: &str| html!("<th scope=\"col\" class=\"n\">{}</th>", text);
    let filled = shown.filled.then(|| head("Filled"));
    html!(
        "<table class=\"sortable\"><caption>{}</caption><thead><tr><th scope=\"col\" data-text>Column</th>{}\
         <th scope=\"col\" class=\"n\">Held out</th><th scope=\"col\" class=\"n\">Error</th>\
         <th scope=\"col\" class=\"n\">Baseline</th><th scope=\"col\" class=\"n\">Share of it</th><td></td>{}{}\
         <th scope=\"col\" class=\"n\">Best single model</th><th scope=\"col\" data-text>Ensemble</th></tr></thead>\n\
         <tbody>\n{}</tbody></table>",
        caption,
        filled,
        shown.accuracy.then(|| html!("{}{}", head("Right"), head("Baseline right"))),
        shown.coverage.then(|| head("In 90 % interval")),
        rows
    )
}

/// A share as a cell of a table.
fn share(share: Option<f64>) -> Html {
    let by = share.map_or_else(String::new, |share| share.to_string());
    let text = share.map_or_else(String::new, |share| format!("{:.1} %", 100.0 * share));
    html!("<td class=\"n\" data-by=\"{}\">{}</td>", by, text)
}

fn row(score: &ColumnScore, filled: usize, shown: Shown) -> Html {
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
         <td class=\"n\" data-by=\"{}\">{}</td><td class=\"n{}\">{}</td><td>{}</td>{}{}\
         <td class=\"n\" data-by=\"{}\">{}</td><td class=\"mixed\">{}</td></tr>\n",
        short(&score.column, NAME),
        unit,
        shown.filled.then(|| html!("<td class=\"n\">{}</td>", thousands(filled))),
        thousands(held.cells),
        by(held.error),
        text(held.error),
        by(held.baseline),
        text(held.baseline),
        if score.is_no_better_than_baseline() { " poor-text" } else { "" },
        ratio.map_or_else(String::new, |r| format!("{:.0} %", 100.0 * r)),
        ratio.map(charts::ratio),
        shown.accuracy.then(|| html!("{}{}", share(held.accuracy), share(held.baseline_accuracy))),
        shown.coverage.then(|| share(held.coverage)),
        by(best.map(|b| b.error)),
        best.map_or_else(String::new, |b| format!("{} ({})", figure(b.error), b.name)),
        short(&held.ensemble, 120).replace(" %", "\u{a0}%")
    )
}
