//! Which candidates' spreads tell how far the ensemble's points are off. A member that learns from completed rows takes
//! filled values for true ones, and its spread does not grow where a row shows little; that of a network does. So spreads
//! have weights of their own: they are chosen on the same held-out cells, by the likelihood of the residuals.

use crate::predictions::OutOfFold;
use crate::select::MIN_CELLS;

/// How often a candidate is added; weights are multiples of one over it.
const ROUNDS: usize = 8;
/// So many cells are worth as much as the belief that spreads have the weights of points.
const SHRINKAGE_CELLS: f32 = 30.0;
/// The least spread, in shares of a column's range.
const LEAST: f32 = 1e-6;

/// The weights of spreads of a number: greedy selection with replacement, among the candidates that have weight in the
/// ensemble, of the geometric mean under which the residuals of `predicted` are most likely (Laplace).
pub fn spread_weights(cells: &OutOfFold, weights: &[f32], predicted: &[f32]) -> Vec<f32> {
    let n = cells.truth.len();
    let is_able = |c: &usize| weights[*c] > 0.0 && cells.predictions[*c].len() == 2 * n;
    let able: Vec<usize> = (0..weights.len()).filter(is_able).collect();
    if n < MIN_CELLS || able.len() < 2 {
        return weights.to_vec();
    }
    let sizes: Vec<f64> =
        predicted.chunks_exact(2).zip(&cells.truth).map(|(p, t)| f64::from((t - p[0]).abs())).collect();
    let logs =
        |c: usize| -> Vec<f64> { cells.predictions[c].chunks_exact(2).map(|p| log_spread(p[1]).into()).collect() };
    let logs: Vec<Vec<f64>> = able.iter().map(|&c| logs(c)).collect();
    let mut sum = vec![0.0; n];
    let mut counts = vec![0_usize; able.len()];
    let mut best = (f64::INFINITY, counts.clone());
    for round in 0..ROUNDS {
        let share = 1.0 / (round + 1) as f64;
        let loss = |which: usize| {
            let (mut level, mut size) = (0.0, 0.0);
            for ((sum, log), r) in sum.iter().zip(&logs[which]).zip(&sizes) {
                let log = (sum + log) * share;
                level += log;
                size += r * (-log).exp();
            }
            // The negative log-likelihood with the best common factor of all spreads.
            level / n as f64 + (size / n as f64).max(f64::MIN_POSITIVE).ln()
        };
        let losses: Vec<f64> = (0..able.len()).map(loss).collect();
        let Some(which) = (0..able.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])) else { break };
        counts[which] += 1;
        sum.iter_mut().zip(&logs[which]).for_each(|(sum, log)| *sum += log);
        if losses[which] < best.0 {
            best = (losses[which], counts.clone());
        }
    }
    let total: usize = best.1.iter().sum();
    let shrinkage = SHRINKAGE_CELLS / (SHRINKAGE_CELLS + n as f32);
    let mut all: Vec<f32> = weights.iter().map(|w| shrinkage * w).collect();
    for (c, count) in able.into_iter().zip(best.1) {
        all[c] += (1.0 - shrinkage) * count as f32 / total.max(1) as f32;
    }
    all
}

/// The logarithm of a spread, which is never nothing.
pub fn log_spread(spread: f32) -> f32 {
    spread.max(LEAST).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_that_knows_where_errors_are_large_gets_the_weight() {
        // Errors are 0.3 in half of the cells and 0.05 in the others; the first candidate's spread knows.
        let n = 100;
        let size = |i: usize| if i < n / 2 { 0.3_f32 } else { 0.05 };
        let truth: Vec<f32> = (0..n).map(|i| if i % 3 == 0 { size(i) } else { -size(i) }).collect();
        let knowing: Vec<f32> = (0..n).flat_map(|i| [0.0, size(i)]).collect();
        let constant = [0.0, 0.1].repeat(n);
        let cells = OutOfFold::in_separate_rows(truth, vec![knowing, constant.clone()]);
        let weights = spread_weights(&cells, &[0.2, 0.8], &constant);
        assert!(weights[0] > 0.75 && (weights.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{weights:?}");
        // One without weight is not asked.
        assert_eq!(spread_weights(&cells, &[0.0, 1.0], &constant), [0.0, 1.0]);
    }
}
