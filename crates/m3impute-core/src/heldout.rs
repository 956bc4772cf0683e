//! Observed cells that are held out, so that what was not seen can tell how good a prediction is.

use crate::encode::Encoded;
use crate::run::Run;
use crate::sampler::{below, shuffle_front, unit};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use std::ops::Range;

/// Cells that were observed and are taken away.
#[derive(Clone, Debug, Default)]
pub struct HeldOut {
    /// Where each stands in the matrix, ascending.
    pub cells: Vec<usize>,
    /// What was there.
    pub truth: Vec<f64>,
}

/// The part of a row's observed columns that is taken away, and at least one.
const PART_OF_ROW: f64 = 0.15;

/// Takes observed cells away in the table's own patterns: a row loses some of the cells that another row lacks, but only a
/// few, or it would be emptier than the rows to be filled. At most `share` of each feature's observed cells are taken,
/// and about `limit` in all.
///
/// The last observed cell of a row is never taken. A table without missing cells loses cells at random.
pub fn hold_out(data: &mut Encoded, share: f64, limit: usize, purpose: &str, run: &Run) -> HeldOut {
    let (n, w) = (data.rows, data.width());
    let mut rng = run.rng(purpose, 0);
    let patterns: Vec<usize> = (0..n).filter(|&i| data.observed_row(i).contains(&false)).collect();
    let mut left: Vec<usize> = (0..w).map(|f| ((n - data.missing_in(f)) as f64 * share) as usize).collect();
    let mut order: Vec<usize> = (0..n).collect();
    shuffle_front(&mut order, n, || rng.next_u32());
    let mut cells = Vec::new();
    let columns = data.columns();
    for i in order {
        if cells.len() >= limit {
            break;
        }
        let seen = data.observed_row(i);
        let mut candidates: Vec<&Range<usize>> = columns.iter().filter(|c| seen[c.start]).collect();
        let most = candidates.len().saturating_sub(1).min((candidates.len() as f64 * PART_OF_ROW).ceil() as usize);
        if !patterns.is_empty() {
            let other = data.observed_row(patterns[below(rng.next_u32(), patterns.len())]);
            candidates.retain(|c| !other[c.start]);
        }
        candidates.retain(|c| left[c.start] > 0);
        shuffle_front(&mut candidates, most, || rng.next_u32());
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

impl HeldOut {
    /// The mean squared difference between a filled matrix and what was held out.
    pub fn squared_error(&self, filled: &[f64]) -> f64 {
        let sum: f64 = self.cells.iter().zip(&self.truth).map(|(&c, t)| (filled[c] - t).powi(2)).sum();
        sum / self.cells.len().max(1) as f64
    }
}

/// `folds` sets of held-out cells of a matrix `[n, m]`, none in two of them: about `share` of the observed cells each,
/// one by one at random, more of the columns that lack more, because those are to be filled. `[folds][n, m]`
///
/// ```
/// use m3impute_core::{Run, heldout};
/// let observed = vec![true; 300];
/// let folds = heldout::folds(&observed, 3, 2, 0.1, &mut Run::new(0, 1)?.rng("held out", 0));
/// assert!((0..300).all(|at| !(folds[0][at] && folds[1][at])));
/// # Ok::<(), m3impute_core::Error>(())
/// ```
pub fn folds(observed: &[bool], m: usize, folds: usize, share: f64, rng: &mut ChaCha8Rng) -> Vec<Vec<bool>> {
    let n = observed.len() / m;
    let mut of_column = vec![0_usize; m];
    let mut of_row = vec![0_usize; n];
    for (at, _) in observed.iter().enumerate().filter(|(_, o)| **o) {
        of_column[at % m] += 1;
        of_row[at / m] += 1;
    }
    let missing: Vec<f64> = of_column.iter().map(|&o| 1.0 - o as f64 / n as f64).collect();
    let mean = (missing.iter().sum::<f64>() / m as f64).max(1e-9);
    let most = 0.8 / folds as f64;
    let shares: Vec<f64> = missing.iter().map(|h| (share * (h / mean).clamp(0.3, 2.0)).min(most)).collect();
    let mut held = vec![vec![false; observed.len()]; folds];
    for at in 0..observed.len() {
        let drawn = f64::from(unit(rng)) / shares[at % m];
        // A row that shows one cell alone, or a column with a few, has none to give.
        if observed[at] && of_row[at / m] > 1 && of_column[at % m] >= 8 && drawn < folds as f64 {
            held[drawn as usize][at] = true;
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Feature, Meaning};
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn held_out_cells_are_observed_fall_into_one_fold_and_follow_what_is_missing() {
        let (n, m) = (2000, 3);
        // The second column is complete, the third lacks four times as many cells as the first.
        let observed: Vec<bool> = (0..n * m)
            .map(|at| match at % m {
                0 => (at / m) % 10 != 0,
                1 => true,
                _ => (at / m) % 5 > 1,
            })
            .collect();
        let held = folds(&observed, m, 4, 0.1, &mut ChaCha8Rng::seed_from_u64(3));
        let count = |f: usize| (0..n).filter(|i| held.iter().any(|fold| fold[i * m + f])).count() as f64;
        assert!((0..n * m).all(|at| held.iter().filter(|fold| fold[at]).count() <= usize::from(observed[at])));
        let share = |f: usize| count(f) / (0..n).filter(|i| observed[i * m + f]).count() as f64;
        assert!(share(2) > 1.5 * share(0) && share(0) > 1.5 * share(1), "{} {} {}", share(0), share(1), share(2));
        assert!(share(1) > 0.05);
    }

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
