//! From tables to facts: counts, shares and samples.

mod accuracy;
mod axis;
mod certainty;
mod distributions;
mod draws;
mod evaluation;
mod missing;
mod missingness;

pub(crate) use certainty::LISTED_OF_COLUMN;
pub use evaluation::Evaluated;

use crate::facts::{Event, ImputeFacts, Work};
use crate::words::{Numerals, count, short, thousands};
use m3impute_core::distributions::Interval;
use m3impute_core::{Explanation, Fallback, Imputation, PredictiveDistributions, Table};

/// The level of the intervals of a report.
pub(crate) const LEVEL: f64 = 0.9;

/// Cells that are explained, with so many lines of so many characters.
const EXPLAINED: usize = 6;
const EXPLANATION_LINES: usize = 20;
const EXPLANATION_LINE: usize = 100;
/// Columns of levels or numbers whose distributions are drawn.
const DRAWN: usize = 40;

/// An imputed table and how it was imputed.
#[derive(Debug)]
pub struct Imputed<'a> {
    /// The table before.
    pub table: &'a Table,
    /// The table after, and the notes of the method.
    pub imputation: &'a Imputation,
    /// The predictive distributions of the missing cells; none where the method has none.
    pub distributions: Option<&'a PredictiveDistributions>,
    /// Explanations of the least certain cells.
    pub explanations: &'a [Explanation],
    /// The run; notes and fallbacks of the method are added to its events.
    pub work: Work,
}

impl ImputeFacts {
    /// Counts and samples what a report shows.
    pub fn gather(imputed: Imputed<'_>) -> ImputeFacts {
        let Imputed { table, imputation, distributions, explanations, mut work } = imputed;
        let filled = &imputation.table;
        let intervals: Vec<Interval> = distributions
            .map_or_else(Vec::new, |b| b.intervals(LEVEL))
            .into_iter()
            .map(|interval| interval.around(filled))
            .collect();
        let missing = missing::gather(table, filled);
        let filled_cells: Vec<Vec<usize>> = (0..table.cols()).map(|j| filled_rows(table, filled, j)).collect();
        let mut drawn: Vec<usize> = (0..table.cols()).filter(|&j| !filled_cells[j].is_empty()).collect();
        let filled_columns = drawn.len();
        drawn.sort_by_key(|&j| std::cmp::Reverse(filled_cells[j].len()));
        drawn.truncate(DRAWN);
        drawn.sort_unstable();
        let columns = drawn
            .into_iter()
            .map(|j| distributions::gather(table, filled, j, &filled_cells[j], distributions, &intervals))
            .collect();
        work.events
            .extend(imputation.notes.iter().map(|note| Event { place: "method".to_owned(), what: note.clone() }));
        work.events.extend(imputation.fallbacks.iter().map(event_of));
        let (uncertain, cells) = match distributions {
            Some(b) => {
                let (rows, cells) = certainty::gather(table, filled, b, &intervals);
                (Some(rows), cells)
            }
            None => (None, certainty::first_cells(table, filled, &filled_cells)),
        };
        ImputeFacts {
            work,
            not_at_random: missingness::not_at_random(table),
            together: missingness::together(table),
            missing,
            filled: filled_cells.iter().map(Vec::len).sum(),
            columns,
            filled_columns,
            accuracy: accuracy::gather(table, &imputation.scores, &filled_cells),
            draws: distributions.map_or_else(Default::default, |b| draws::gather(table, b)),
            uncertain,
            explanations: explanations.iter().take(EXPLAINED).map(|e| explained(table, e)).collect(),
            cells,
        }
    }
}

/// The lines of an explanation, as many and as long as are shown.
fn explained(table: &Table, explanation: &Explanation) -> Vec<String> {
    let row = format!("row {}", thousands(explanation.row + 1));
    let lines = explanation.lines(&row, 1, |column, number| Numerals::of(table, column).value(number));
    lines.into_iter().take(EXPLANATION_LINES).map(|line| short(&line, EXPLANATION_LINE)).collect()
}

fn event_of(fallback: &Fallback) -> Event {
    let done = if fallback.is_left() { "left missing".to_owned() } else { format!("filled with {}", fallback.done) };
    Event {
        place: format!("column “{}”", fallback.column),
        what: format!("{} {done}, because {}", count(fallback.cells, "cell"), fallback.reason),
    }
}

/// The rows in which a missing cell of a column was filled.
fn filled_rows(table: &Table, filled: &Table, col: usize) -> Vec<usize> {
    let (before, after) = (table.observed().column(col), filled.observed().column(col));
    (0..table.rows()).filter(|&i| !before[i] && after[i]).collect()
}

/// At most `most` of the numbers below `all`, evenly over them.
fn evenly(all: usize, most: usize) -> impl Iterator<Item = usize> {
    let taken = all.min(most);
    (0..taken).map(move |at| at * all / taken)
}

/// The value below which this share of sorted values lies.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        n => {
            let at = share * (n - 1) as f64;
            let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
            below + (above - below) * at.fract()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_spread_evenly() {
        assert_eq!(evenly(3, 5).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(evenly(10, 5).collect::<Vec<_>>(), [0, 2, 4, 6, 8]);
        assert_eq!(evenly(0, 5).count(), 0);
    }

    #[test]
    fn quantiles_lie_between_values() {
        assert_eq!((quantile(&[1.0, 3.0], 0.5), quantile(&[1.0, 2.0, 9.0], 1.0)), (2.0, 9.0));
        assert!(quantile(&[], 0.5).is_nan());
    }
}
