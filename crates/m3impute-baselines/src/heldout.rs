//! Observed cells that are held out, so that a method can choose its own settings. The holes are made like the table's
//! own: a row gets some of the holes of another row, but only a few, or it would be emptier than the rows to be filled.

use m3impute_core::encode::Feature;
use m3impute_core::{Encoded, Run};
use rand::RngExt;
use rand::seq::SliceRandom;
use std::ops::Range;

/// Cells that were observed and are taken away.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldOut {
    /// Where each stands in the matrix, ascending.
    pub cells: Vec<usize>,
    /// What was there.
    pub truth: Vec<f64>,
}

/// The part of a row's observed columns that is taken away, and at least one.
const PART_OF_ROW: f64 = 0.15;

/// Takes observed cells away: at most `share` of each feature's observed cells, and about `limit` in all.
///
/// The last observed cell of a row is never taken. A table without holes gets holes at random.
pub(crate) fn hold_out(data: &mut Encoded, share: f64, limit: usize, purpose: &str, run: &Run) -> HeldOut {
    let (n, w) = (data.rows, data.width());
    let mut rng = run.rng(purpose, 0);
    let patterns: Vec<usize> = (0..n).filter(|&i| data.observed_row(i).contains(&false)).collect();
    let mut left: Vec<usize> = (0..w).map(|f| ((n - data.missing_in(f)) as f64 * share) as usize).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut rng);
    let mut cells = Vec::new();
    let columns: Vec<Range<usize>> = columns(&data.features);
    for i in order {
        if cells.len() >= limit {
            break;
        }
        let seen = data.observed_row(i);
        let mut candidates: Vec<&Range<usize>> = columns.iter().filter(|c| seen[c.start]).collect();
        let most = candidates.len().saturating_sub(1).min((candidates.len() as f64 * PART_OF_ROW).ceil() as usize);
        if !patterns.is_empty() {
            let other = data.observed_row(patterns[rng.random_range(0..patterns.len())]);
            candidates.retain(|c| !other[c.start]);
        }
        candidates.retain(|c| left[c.start] > 0);
        candidates.shuffle(&mut rng);
        for column in candidates.into_iter().take(most) {
            left[column.start] -= 1;
            cells.extend(column.clone().map(|f| i * w + f));
        }
    }
    cells.sort_unstable();
    let truth = cells.iter().map(|&c| data.x[c]).collect();
    for &c in &cells {
        data.observed[c] = false;
        data.x[c] = f64::NAN;
    }
    HeldOut { cells, truth }
}

/// The features of each column.
pub(crate) fn columns(features: &[Feature]) -> Vec<Range<usize>> {
    let mut first = 0;
    let groups = features.chunk_by(|a, b| a.column == b.column);
    groups
        .map(|group| {
            first += group.len();
            first - group.len()..first
        })
        .collect()
}

impl HeldOut {
    /// The mean squared difference between a filled matrix and what was held out.
    pub(crate) fn squared_error(&self, filled: &[f64]) -> f64 {
        let sum: f64 = self.cells.iter().zip(&self.truth).map(|(&c, t)| (filled[c] - t).powi(2)).sum();
        sum / self.cells.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::encode::Meaning;

    fn matrix(n: usize, x: Vec<f64>) -> Encoded {
        let w = x.len() / n;
        let features: Vec<Feature> =
            (0..w).map(|column| Feature { column, meaning: Meaning::Number, centre: 0.0, scale: 1.0 }).collect();
        let observed = x.iter().map(|v| !v.is_nan()).collect();
        Encoded { rows: n, features: features.into(), x, observed }
    }

    #[test]
    fn only_features_with_holes_are_held_out_and_the_truth_is_kept() {
        // The second of two features is missing in every fourth row.
        let x: Vec<f64> = (0..200).map(|c| if c % 8 == 1 { f64::NAN } else { c as f64 }).collect();
        let mut data = matrix(100, x);
        let held = hold_out(&mut data, 0.2, 1000, "test", &Run::new(1, 1).unwrap());
        assert_eq!(held.cells.len(), 15); // a fifth of 75
        assert!(held.cells.iter().zip(&held.truth).all(|(&c, &t)| c % 2 == 1 && t == c as f64 && data.x[c].is_nan()));
    }

    #[test]
    fn a_complete_table_gets_holes_too_and_no_row_is_emptied() {
        let mut data = matrix(50, (0..150).map(f64::from).collect());
        let held = hold_out(&mut data, 0.3, 1000, "test", &Run::new(1, 1).unwrap());
        assert!(!held.cells.is_empty());
        assert!((0..50).all(|i| data.observed_row(i).contains(&true)));
    }
}
