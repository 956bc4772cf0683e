//! Observed cells that are held out, so that what was not seen can tell how good a prediction is.

use crate::sampler::unit;
use rand_chacha::ChaCha8Rng;

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
}
