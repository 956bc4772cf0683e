//! The errors of filled cells.

use crate::table::{Observed, Table};
use serde::Serialize;

/// Errors over the hidden cells, of one column or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// The hidden cells of numbers.
    pub numbers: usize,
    /// The mean absolute error of numbers, each column scaled by the range of its complete values.
    pub mae: Option<f64>,
    /// The root of the mean squared error of numbers, scaled alike.
    pub rmse: Option<f64>,
    /// The hidden cells of levels.
    pub levels: usize,
    /// The share of levels that are right.
    pub accuracy: Option<f64>,
}

/// Scores a filled table against the truth on hidden cells: those observed in `truth` but not `shown`. Returns the score
/// of all columns together, and one score per column.
///
/// A column of numbers with one value only counts with error 0, as in the published protocol.
///
/// ```
/// use m3impute_core::{Column, ColumnSpec, Kind, Observed, Schema, Table, score};
/// let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous)])?;
/// let truth = Table::new(schema.clone(), vec![Column::from_numbers(vec![0.0, 4.0, 10.0])])?;
/// let filled = Table::new(schema, vec![Column::from_numbers(vec![0.0, 5.0, 10.0])])?;
/// let mut shown = Observed::all(3, 1);
/// shown.set(1, 0, false);
/// assert_eq!(score(&truth, &filled, &shown).0.mae, Some(0.1));
/// # Ok::<(), m3impute_core::Error>(())
/// ```
pub fn score(truth: &Table, filled: &Table, shown: &Observed) -> (Score, Vec<Score>) {
    let columns: Vec<Sums> = (0..truth.cols()).map(|j| Sums::of_column(truth, filled, shown, j)).collect();
    let mut all = Sums::default();
    for c in &columns {
        all.numbers += c.numbers;
        all.absolute += c.absolute;
        all.squared += c.squared;
        all.levels += c.levels;
        all.right += c.right;
    }
    (all.score(), columns.iter().map(Sums::score).collect())
}

#[derive(Clone, Copy, Default)]
struct Sums {
    numbers: usize,
    absolute: f64,
    squared: f64,
    levels: usize,
    right: usize,
}

impl Sums {
    fn of_column(truth: &Table, filled: &Table, shown: &Observed, j: usize) -> Sums {
        let kind = truth.schema().columns()[j].kind;
        let values: Vec<f64> = (0..truth.rows()).map(|i| truth.number(i, j)).filter(|v| !v.is_nan()).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sums = Sums::default();
        for i in (0..truth.rows()).filter(|&i| !shown.get(i, j) && truth.observed().get(i, j)) {
            let (want, got) = (truth.number(i, j), filled.number(i, j));
            if kind.has_levels() {
                sums.levels += 1;
                let same = match (want.is_nan(), got.is_nan()) {
                    (false, false) => {
                        truth.schema().columns()[j].levels.get(want as usize)
                            == filled.schema().columns()[j].levels.get(got as usize)
                    }
                    _ => false,
                };
                sums.right += usize::from(same);
            } else if kind.is_number() {
                let error = if high > low { (want - got).abs() / (high - low) } else { 0.0 };
                sums.numbers += 1;
                sums.absolute += error;
                sums.squared += error * error;
            }
        }
        sums
    }

    fn score(&self) -> Score {
        let per = |sum: f64, count: usize| (count > 0).then(|| sum / count as f64);
        Score {
            numbers: self.numbers,
            mae: per(self.absolute, self.numbers),
            rmse: per(self.squared, self.numbers).map(f64::sqrt),
            levels: self.levels,
            accuracy: per(self.right as f64, self.levels),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{ColumnSpec, Kind, Schema};
    use crate::table::Column;

    #[test]
    fn numbers_and_levels_are_scored_apart() {
        let schema = Schema::new(vec![
            ColumnSpec::new("x", Kind::Integer),
            ColumnSpec::with_levels("c", Kind::Categorical, ["u", "v"]),
        ])
        .unwrap();
        let table = |x: [f64; 3], c: [u32; 3]| {
            Table::new(schema.clone(), vec![Column::from_numbers(x.to_vec()), Column::from_codes(c.to_vec())]).unwrap()
        };
        let (truth, filled) = (table([0.0, 10.0, 5.0], [0, 1, 1]), table([2.0, 10.0, 1.0], [1, 1, 1]));
        let mut shown = Observed::all(3, 2);
        for (i, j) in [(0, 0), (2, 0), (0, 1), (1, 1)] {
            shown.set(i, j, false);
        }
        let (all, columns) = score(&truth, &filled, &shown);
        assert!((all.mae.unwrap() - 0.3).abs() < 1e-12 && (all.rmse.unwrap() - 0.1_f64.sqrt()).abs() < 1e-12);
        assert_eq!((all.accuracy, all.levels, columns[0].accuracy), (Some(0.5), 2, None));
    }
}
