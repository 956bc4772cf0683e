//! Observed cells that are held out, to tell when to stop and whom to believe.

use super::grid::Grid;
use crate::peers::unit;
use rand_chacha::ChaCha8Rng;

/// `folds` sets of held-out cells, none in two of them: about `share` of the observed cells each, more of the columns
/// that have more holes, because those are to be filled. // [folds][n, m]
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
