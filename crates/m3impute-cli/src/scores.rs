//! The validation errors of each column on held-out cells, as a table for people.

use crate::grid::{Cell, Grid, Look};
use crate::terminal::{Verbosity, count};
use m3impute::ColumnScore;
use m3impute_report::words;

/// Columns that are shown after a fit; `info` shows all.
const SHOWN: usize = 10;
/// Columns that are named in one line.
const NAMED: usize = 20;

/// Prints how well a method did: the worst columns, and where it does no better than the baseline.
pub fn say(scores: &[ColumnScore], verbosity: &Verbosity) {
    if scores.is_empty() {
        return;
    }
    let more = scores.len().saturating_sub(SHOWN);
    let which = if more > 0 { format!(", the worst {SHOWN} of {} columns", scores.len()) } else { String::new() };
    verbosity.say(format!("validation error on held-out cells, and that of the median/mode baseline{which}:"));
    table(&worst_first(scores)[..scores.len().min(SHOWN)], &verbosity.aside())
        .lines()
        .for_each(|line| verbosity.say_coloured(line));
    for remark in remarks(scores) {
        verbosity.note(remark);
    }
}

/// The columns in the order in which one would worry about them: a share of the baseline's error is a common measure.
pub fn worst_first(scores: &[ColumnScore]) -> Vec<&ColumnScore> {
    let mut order: Vec<&ColumnScore> = scores.iter().collect();
    // Those whose error is not known come last: they are listed by themselves.
    order.sort_by(|a, b| b.ratio().unwrap_or(-1.0).total_cmp(&a.ratio().unwrap_or(-1.0)));
    order
}

/// One line a column.
pub fn table(scores: &[&ColumnScore], verbosity: &Verbosity) -> String {
    let mut grid =
        Grid::new(["column", "cells", "error", "baseline", "", "best single model", "ensemble"]).right(1..=4);
    for score in scores {
        let held = &score.validation;
        let error = |e: Option<f64>| e.map_or_else(|| "?".to_owned(), |e| words::error(score, e));
        let look = match score.ratio() {
            Some(ratio) if ratio >= 1.0 => Look::Warn,
            Some(ratio) if ratio <= 0.5 => Look::Good,
            _ => Look::Plain,
        };
        grid.row([
            score.column.clone().into(),
            held.cells.to_string().into(),
            error(held.error).into(),
            error(held.baseline).into(),
            Cell::new(score.ratio().map_or_else(String::new, |r| format!("{:.0} %", 100.0 * r)), look),
            held.best.as_ref().map_or_else(String::new, |b| format!("{} ({})", error(Some(b.error)), b.name)).into(),
            Cell::new(held.ensemble.clone(), Look::Dim),
        ]);
    }
    grid.text(verbosity)
}

/// What must not be overlooked: columns where no model beats the baseline, and columns whose error is not known.
pub fn remarks(scores: &[ColumnScore]) -> Vec<String> {
    let of = |wanted: fn(&ColumnScore) -> bool, what: &str| {
        let columns: Vec<String> = scores.iter().filter(|s| wanted(s)).map(|s| format!("`{}`", s.column)).collect();
        let more = columns.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named = columns.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let plural = if columns.len() == 1 { "" } else { "s" };
        (!columns.is_empty()).then(|| format!("column{plural} {named}{more}: {what}"))
    };
    let baseline = of(ColumnScore::is_no_better_than_baseline, "no model beats the baseline on held-out cells");
    let unknown = of(|s| s.validation.error.is_none(), "too few observed values to estimate the error");
    baseline.into_iter().chain(unknown).collect()
}

/// `3 columns, 120 held-out cells`.
pub fn summary(scores: &[ColumnScore]) -> String {
    let cells = scores.iter().map(|s| s.validation.cells).sum();
    format!("{}, {}", count(scores.len(), "column"), count(cells, "held-out cell"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute::{Kind, Measure, ValidationScore};

    fn score(column: &str, kind: Kind, measure: Measure, error: Option<f64>, baseline: f64) -> ColumnScore {
        let validation = ValidationScore { cells: 20, error, baseline: Some(baseline), ..ValidationScore::default() };
        ColumnScore { column: column.to_owned(), kind, measure, validation }
    }

    #[test]
    fn the_worst_column_comes_first_and_nothing_is_passed_over() {
        let scores = [
            score("good", Kind::Continuous, Measure::AbsoluteError, Some(0.1), 1.0),
            score("few", Kind::Continuous, Measure::AbsoluteError, None, 1.0),
            score("bad", Kind::Categorical, Measure::LogLoss, Some(0.7), 0.7),
        ];
        let order: Vec<&str> = worst_first(&scores).iter().map(|s| s.column.as_str()).collect();
        assert_eq!(order, ["bad", "good", "few"]);
        let remarks = remarks(&scores);
        assert!(remarks[0].starts_with("column `bad`: no model beats"), "{remarks:?}");
        assert!(remarks[1].starts_with("column `few`: too few"), "{remarks:?}");
    }
}
