//! Observed cells that are held out, to tell when to stop and whom to believe.

use super::grid::Grid;
use crate::peers::unit;
use rand_chacha::ChaCha8Rng;

/// `folds` sets of held-out cells, none in two of them: about `share` of the observed cells each, more of the columns
/// that have more holes, because those are to be filled, `[folds][n, m]`.
pub fn held_out(grid: &Grid, folds: usize, share: f64, rng: &mut ChaCha8Rng) -> Vec<Vec<bool>> {
    let m = grid.m;
    let mut observed = vec![0_usize; m];
    let mut of_row = vec![0_usize; grid.n];
    for (at, _) in grid.observed.iter().enumerate().filter(|(_, o)| **o) {
        observed[at % m] += 1;
        of_row[at / m] += 1;
    }
    let holes: Vec<f64> = observed.iter().map(|&o| 1.0 - o as f64 / grid.n as f64).collect();
    let mean = (holes.iter().sum::<f64>() / m as f64).max(1e-9);
    let most = 0.8 / folds as f64;
    let shares: Vec<f64> = holes.iter().map(|h| (share * (h / mean).clamp(0.3, 2.0)).min(most)).collect();
    let mut held = vec![vec![false; grid.observed.len()]; folds];
    for at in 0..grid.observed.len() {
        let drawn = f64::from(unit(rng)) / shares[at % m];
        // A row that shows one cell alone, or a column with a few, has none to give.
        if grid.observed[at] && of_row[at / m] > 1 && observed[at % m] >= 8 && drawn < folds as f64 {
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
    fn held_out_cells_are_observed_fall_into_one_fold_and_follow_the_holes() {
        let (n, m) = (2000, 3);
        // The second column has no hole, the third four times as many as the first.
        let observed: Vec<bool> = (0..n * m)
            .map(|at| match at % m {
                0 => (at / m) % 10 != 0,
                1 => true,
                _ => (at / m) % 5 > 1,
            })
            .collect();
        let grid = Grid { n, m, x: vec![0.0; n * m], observed };
        let folds = held_out(&grid, 4, 0.1, &mut ChaCha8Rng::seed_from_u64(3));
        let count = |f: usize| (0..n).filter(|i| folds.iter().any(|fold| fold[i * m + f])).count() as f64;
        assert!((0..n * m).all(|at| folds.iter().filter(|fold| fold[at]).count() <= usize::from(grid.observed[at])));
        let share = |f: usize| count(f) / (0..n).filter(|i| grid.observed[i * m + f]).count() as f64;
        assert!(share(2) > 1.5 * share(0) && share(0) > 1.5 * share(1), "{} {} {}", share(0), share(1), share(2));
        assert!(share(1) > 0.05);
    }
}
