//! The validation errors of each column on held-out cells, as a table for people.

use crate::grid::{Cell, Grid, Look};
use crate::terminal::{Verbosity, count, percent, thousands};
use m3impute::{ColumnScore, FilledScores};
use m3impute_report::words;

/// Columns that are shown after a fit; `info` shows all.
const SHOWN: usize = 10;
/// Columns that are named in one line.
const NAMED: usize = 20;

/// Prints how well a method did: first the filled columns of which that is not known, then the worst of the others.
/// `cells` is the word for what each column counts by: its `filled` or its `missing` cells.
pub fn say(of: &FilledScores<'_>, cells: &str, verbosity: &Verbosity) {
    let (shown, hidden) = of.known.split_at(of.known.len().min(SHOWN));
    unknown(of, cells).iter().for_each(|note| verbosity.note(note));
    if let Some(headline) = headline(of, cells) {
        let which = match hidden.len() {
            0 => String::new(),
            _ => format!("; the worst {SHOWN} of {} columns", thousands(of.known.len())),
        };
        verbosity.say(format!("{headline}{which}:"));
        let rows = shown.iter().map(|(score, cells)| (*score, *cells));
        table(rows, cells, &verbosity.aside()).lines().for_each(|line| verbosity.say_coloured(line));
    }
    no_better(of.known.iter().map(|(score, _)| *score)).iter().for_each(|note| verbosity.note(note));
    match of.unfilled.len() {
        0 => {}
        n if of.known.is_empty() && of.unknown.is_empty() => {
            let which = if n > SHOWN { format!(", the worst {SHOWN} of {n} columns") } else { String::new() };
            verbosity.say(format!("{}{which}:", of_unfilled()));
            let rows = of.unfilled.iter().take(SHOWN).map(|score| (*score, 0));
            table(rows, cells, &verbosity.aside()).lines().for_each(|line| verbosity.say_coloured(line));
        }
        n => verbosity.say(format!(
            "{} without missing cells {} validated too, for new rows: `m3impute info` of a fitted model lists them",
            count(n, "column"),
            if n == 1 { "was" } else { "were" }
        )),
    }
}

/// The errors of filled columns in one line, without its end; none where none is known.
pub fn headline(of: &FilledScores<'_>, cells: &str) -> Option<String> {
    let what = "validation error on held-out cells, and that of the median/mode baseline";
    (!of.known.is_empty()).then(|| match of.ratio().map(|ratio| 100.0 * (1.0 - ratio)) {
        Some(less) if less >= 1.0 => {
            format!("{what}, {less:.0} % smaller than it on average (columns weighted by {cells} cells)")
        }
        Some(_) => format!("{what}, no smaller than it on average (columns weighted by {cells} cells)"),
        None => what.to_owned(),
    })
}

/// What stands above the errors of columns without missing cells.
pub fn of_unfilled() -> &'static str {
    "for new rows: validation error on held-out cells of columns without missing cells, and that of the baseline"
}

/// The filled columns whose error is not known, and what share of the filled cells is theirs.
pub fn unknown(of: &FilledScores<'_>, cells: &str) -> Option<String> {
    let (own, all) = (of.unknown_cells(), of.unknown_cells() + of.known_cells());
    let columns = named(of.unknown.iter().map(|(name, _)| *name));
    (own > 0).then(|| {
        format!(
            "{columns}: too few observed values to estimate the error of {} of {} {cells} cells ({})",
            thousands(own),
            thousands(all),
            percent(own, all)
        )
    })
}

/// The columns in which no model beats the baseline.
pub fn no_better<'a>(scores: impl Iterator<Item = &'a ColumnScore>) -> Option<String> {
    let poor: Vec<&str> = scores.filter(|s| s.is_no_better_than_baseline()).map(|s| s.column.as_str()).collect();
    let columns = named(poor.iter().copied());
    (!poor.is_empty()).then(|| format!("{columns}: no model beats the baseline on held-out cells"))
}

/// `column `a``, `columns `a`, `b` and 3 more`.
fn named<'a>(columns: impl ExactSizeIterator<Item = &'a str>) -> String {
    let plural = if columns.len() == 1 { "" } else { "s" };
    let more = columns.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {} more", thousands(more)) } else { String::new() };
    let listed: Vec<String> = columns.take(NAMED).map(|name| format!("`{name}`")).collect();
    format!("column{plural} {}{more}", listed.join(", "))
}

/// One line a column, with the number of cells that it counts by; 0 where it counts by none.
pub fn table<'a>(scores: impl Iterator<Item = (&'a ColumnScore, usize)>, cells: &str, verbosity: &Verbosity) -> String {
    let scores: Vec<_> = scores.collect();
    // Columns without missing cells have none to count.
    let counted = scores.iter().any(|(_, cells)| *cells > 0);
    let head =
        ["column", cells, "held out", "error", "baseline", "", "accuracy (baseline)", "best single model", "ensemble"];
    let has_levels = scores.iter().any(|(score, _)| score.validation.accuracy.is_some());
    let kept = |place: usize| (counted || place != 1) && (has_levels || place != 6);
    let mut grid = Grid::new(head.into_iter().enumerate().filter(|(at, _)| kept(*at)).map(|(_, text)| text));
    grid = grid.right(1..=4 + usize::from(counted) + usize::from(has_levels));
    for (score, cells) in scores {
        let held = &score.validation;
        let error = |e: Option<f64>| e.map_or_else(|| "?".to_owned(), |e| words::error(score, e));
        let look = match score.ratio() {
            Some(ratio) if ratio >= 1.0 => Look::Warn,
            Some(ratio) if ratio <= 0.5 => Look::Good,
            _ => Look::Plain,
        };
        let accuracy = held.accuracy.map_or_else(String::new, |own| {
            let baseline = held.baseline_accuracy.map_or_else(String::new, |b| format!(" ({:.1} %)", 100.0 * b));
            format!("{:.1} %{baseline}", 100.0 * own)
        });
        let row: [Cell; 9] = [
            score.column.clone().into(),
            thousands(cells).into(),
            thousands(held.cells).into(),
            error(held.error).into(),
            error(held.baseline).into(),
            Cell::new(score.ratio().map_or_else(String::new, |r| format!("{:.0} %", 100.0 * r)), look),
            accuracy.into(),
            held.best.as_ref().map_or_else(String::new, |b| format!("{} ({})", error(Some(b.error)), b.name)).into(),
            Cell::new(held.ensemble.clone(), Look::Dim),
        ];
        let row: Vec<Cell> = row.into_iter().enumerate().filter(|(at, _)| kept(*at)).map(|(_, cell)| cell).collect();
        grid.row(row);
    }
    grid.text(verbosity)
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

    fn score(column: &str, error: Option<f64>, baseline: f64) -> ColumnScore {
        let validation = ValidationScore { cells: 20, error, baseline: Some(baseline), ..ValidationScore::default() };
        ColumnScore { column: column.to_owned(), kind: Kind::Continuous, measure: Measure::AbsoluteError, validation }
    }

    #[test]
    fn what_is_said_is_about_filled_cells_and_what_is_not_known_is_named() {
        let scores = [score("good", Some(0.1), 1.0), score("few", None, 1.0), score("bad", Some(0.7), 0.7)];
        let whole = [&scores[..], &[score("whole", Some(0.0), 1.0)]].concat();
        let of = FilledScores::of(&whole, [("good", 10), ("few", 970), ("bad", 20)]);
        assert_eq!(
            unknown(&of, "filled").unwrap(),
            "column `few`: too few observed values to estimate the error of 970 of 1,000 filled cells (97.0 %)"
        );
        // (10 * 0.1 + 20 * 1) / 30 = 0.7; the complete column, which is perfect, does not count.
        let headline = headline(&of, "filled").unwrap();
        assert!(headline.ends_with("30 % smaller than it on average (columns weighted by filled cells)"), "{headline}");
        let poor = no_better(of.known.iter().map(|(score, _)| *score)).unwrap();
        assert!(poor.starts_with("column `bad`: no model beats"), "{poor}");
        let rows = of.known.iter().map(|(score, cells)| (*score, *cells));
        let table = table(rows, "filled", &Verbosity::quiet());
        let order: Vec<&str> = table.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
        assert_eq!(order, ["column", "bad", "good"], "the worst comes first");
    }

    #[test]
    fn nothing_good_is_said_where_no_error_of_a_filled_column_is_known() {
        let scores = [score("few", None, 1.0), score("whole", Some(0.0), 1.0)];
        let of = FilledScores::of(&scores, [("few", 3)]);
        assert_eq!(headline(&of, "filled"), None);
        assert!(unknown(&of, "filled").unwrap().ends_with("3 of 3 filled cells (100.0 %)"));
    }
}
