//! Validation errors: of filled columns first, and apart from them those of columns without filled cells.

use super::{NAME, NAMED};
use crate::charts;
use crate::facts::{Accuracy, DrawSpread, ImputeFacts, Scatter};
use crate::html::{Html, html};
use crate::page::{not_available, scroll};
use crate::words::{self, breakable, count, difference, error, named, percent, short, thousands};
use m3impute_core::{ColumnScore, Kind, Measure, ValidationScore};

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
         that are not missing at random may be harder than these.</p>\n{}{}{}{}{}",
        unknown(of),
        filled(of),
        unfilled(of),
        scatters(of),
        draws(facts)
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

/// Predicted against true values.
fn scatters(of: &Accuracy) -> Option<Html> {
    let hidden = of.all_scatters - of.scatters.len();
    let cut = (hidden > 0).then(|| {
        html!(
            " Shown are the {} columns with the most filled cells; {} more have such cells.",
            of.scatters.len(),
            thousands(hidden)
        )
    });
    let cards: Html = of.scatters.iter().map(scatter).collect();
    (!of.scatters.is_empty()).then(|| {
        html!(
            "<h3>Predicted against true values</h3>\n<p>Each mark is an observed cell that was held out: on the line it \
             was predicted exactly.{}</p>\n<div class=\"cards\">\n{}</div>\n",
            cut,
            cards
        )
    })
}

fn scatter(of: &Scatter) -> Html {
    let drawn = match of.points.len() < of.cells {
        true => format!("{} of {} held-out cells.", thousands(of.points.len()), thousands(of.cells)),
        false => format!("{}.", count(of.cells, "held-out cell")),
    };
    let coverage = of.coverage.map_or_else(
        || " Too few of them to know how many the 90 % interval covers.".to_owned(),
        |coverage| format!(" The 90 % interval covers {:.1} % of them.", 100.0 * coverage),
    );
    let log = if of.axis.log { " Both axes are logarithmic." } else { "" };
    let outside = match of.outside {
        0 => String::new(),
        n => format!(" {} drawn at the ends of the axes.", count(n, "mark")),
    };
    let words = format!("{drawn}{coverage}{log}{outside}").replace(" %", "\u{a0}%");
    let name = short(&of.name, NAME);
    let label = format!("Predicted against true values of {name}. {words}");
    html!(
        "<article class=\"card\"><h4>{}</h4>{}<p>{}</p></article>\n",
        breakable(&name),
        charts::scatter(of, &label),
        words
    )
}

/// How far draws lie apart.
fn draws(facts: &ImputeFacts) -> Option<Html> {
    let (draws, all) = (&facts.draws.0, facts.draws.1);
    let row = |of: &DrawSpread| {
        let cell = if of.kind.has_levels() && of.kind != Kind::Ordered {
            format!("{:.0} % of pairs differ", 100.0 * of.cell)
        } else {
            difference(of.kind, of.cell)
        };
        html!(
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\" data-by=\"{}\">{}</td>\
             <td class=\"n\">{}</td><td>{}</td>{}</tr>\n",
            breakable(&short(&of.name, NAME)),
            thousands(of.filled),
            format!("{:e}", of.cell),
            cell,
            words::share(of.share),
            charts::bar(of.share, "filled"),
            share(of.of_mean)
        )
    };
    let rows: Html = draws.iter().map(row).collect();
    let hidden = if all > facts.draws.0.len() { " Columns with the most filled cells." } else { "" };
    let table = html!(
        "<table class=\"sortable\"><caption>How far several draws of the same filled cell lie apart (multiple imputation): \
         the mean standard deviation over draws or, of levels, how often two draws differ; and that as a share of what \
         it would be if cells were drawn from the observed values of their column. Small is certain. The last figure is \
         the share of the variance of the column’s mean that lies between draws (Rubin’s lambda, for many draws): what \
         an analysis of one filled table would overlook. Read from the predictive distributions; draws share one fitted \
         model, whose own uncertainty is not in them.{}</caption><thead><tr><th scope=\"col\" data-text>Column</th>\
         <th scope=\"col\" class=\"n\">Filled</th><th scope=\"col\" class=\"n\">Spread of a cell</th>\
         <th scope=\"col\" class=\"n\">Of the column’s</th><td></td><th scope=\"col\" class=\"n\">Of the mean’s \
         variance</th></tr></thead>\n<tbody>\n{}</tbody></table>",
        hidden,
        rows
    );
    (!draws.is_empty()).then(|| html!("<h3>Spread between draws</h3>\n{}", scroll("Spread between draws", table)))
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
         <th scope=\"col\" class=\"n\">Baseline</th><th scope=\"col\" class=\"n\">Share of it</th>{}{}\
         <th scope=\"col\" class=\"n\">Best single model</th><th scope=\"col\" data-text>Ensemble</th></tr></thead>\n\
         <tbody>\n{}</tbody></table>",
        caption,
        filled,
        shown.accuracy.then(|| head("Right (baseline)")),
        shown.coverage.then(|| head("In 90 % interval")),
        rows
    )
}

/// The share of levels that are right, beside that of the baseline, as a cell of a table.
fn right(held: &ValidationScore) -> Html {
    let Some(own) = held.accuracy else { return html!("<td class=\"n\"></td>") };
    let text = |share: f64| format!("{:.1} %", 100.0 * share);
    let baseline = held.baseline_accuracy.map(|share| html!(" <span class=\"soft\">({})</span>", text(share)));
    html!("<td class=\"n\" data-by=\"{}\">{}{}</td>", own.to_string(), text(own), baseline)
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
         <td class=\"n\" data-by=\"{}\">{}</td><td class=\"n{}\" data-by=\"{}\">{}<br>{}</td>{}{}\
         <td class=\"n\" data-by=\"{}\">{}</td><td class=\"mixed\">{}</td></tr>\n",
        breakable(&short(&score.column, NAME)),
        unit,
        shown.filled.then(|| html!("<td class=\"n\">{}</td>", thousands(filled))),
        thousands(held.cells),
        by(held.error),
        text(held.error),
        by(held.baseline),
        text(held.baseline),
        if score.is_no_better_than_baseline() { " poor-text" } else { "" },
        by(ratio),
        ratio.map_or_else(String::new, |r| format!("{:.0} %", 100.0 * r)),
        ratio.map(charts::ratio),
        shown.accuracy.then(|| right(held)),
        shown.coverage.then(|| share(held.coverage)),
        by(best.map(|b| b.error)),
        best.map_or_else(String::new, |b| format!("{} ({})", figure(b.error), b.name)),
        short(&held.ensemble, 100).replace(" %", "\u{a0}%")
    )
}
