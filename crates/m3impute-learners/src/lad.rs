//! Least-absolute-deviation regression: linear regression of the median.
//!
//! It starts from ridge regression, which finds its own regularisation, and reweights rows by the inverse of what is left
//! of them until the sum of absolute rests settles. The weights keep the size that ridge regression found for them.
//!
//! Notation: `n` rows, `p` predictors.

use super::ridge::Predictors;
use crate::linalg::{GoOn, cholesky, cross, dot, gram, solve_cholesky};
use serde::{Deserialize, Serialize};

/// How often rows are reweighted at most.
const ROUNDS: usize = 12;

/// A linear regression of a number on predictors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Linear {
    /// The weight of each predictor, `[p]`.
    pub weights: Vec<f64>,
    /// The intercept.
    pub intercept: f64,
    /// The mean absolute error on the rows it was learnt from.
    pub error: f64,
}

impl Linear {
    /// Learns from rows `x`, `[n, p]`, and their targets `y`. With `median` the absolute error is made small, else the
    /// squared one. None where it was told to stop.
    ///
    /// ```
    /// use m3impute_learners::{lad::Linear, linalg::ALWAYS};
    /// // Points on a line, and one far off.
    /// let x: Vec<f64> = (0..20).map(f64::from).collect();
    /// let mut y: Vec<f64> = x.iter().map(|x| 2.0 * x + 1.0).collect();
    /// y[19] = 1000.0;
    /// let line = Linear::fit(&x, &y, true, ALWAYS).expect("time");
    /// assert!((line.predict(&[10.0]) - 21.0).abs() < 0.5);
    /// ```
    pub fn fit(x: &[f64], y: &[f64], median: bool, go_on: GoOn<'_>) -> Option<Linear> {
        let n = y.len();
        let p = x.len() / n.max(1);
        let Standardised { centres, scales, z } = Standardised::of(x, p);
        let (weights, shift, error) = fitted(&z, p, y, if median { ROUNDS } else { 0 }, go_on)?;
        let weights: Vec<f64> = weights.iter().zip(&scales).map(|(w, s)| w / s).collect();
        let shift = shift - dot(&weights, &centres);
        Some(Linear { weights, intercept: shift, error })
    }

    /// The prediction for one row of predictors.
    pub fn predict(&self, row: &[f64]) -> f64 {
        self.intercept + dot(&self.weights, row)
    }
}

/// Predictors with mean 0 and variance 1; those that do not vary are 0.
pub(super) struct Standardised {
    /// The means, `[p]`.
    pub centres: Vec<f64>,
    /// The standard deviations, `[p]`; infinite where nothing varies.
    pub scales: Vec<f64>,
    /// The predictors, `[n, p]`.
    pub z: Vec<f64>,
}

impl Standardised {
    pub fn of(x: &[f64], p: usize) -> Standardised {
        let n = x.len() / p.max(1);
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / n as f64;
        let centres: Vec<f64> = (0..p).map(|j| mean(&mut x.iter().skip(j).step_by(p).copied())).collect();
        let scales: Vec<f64> = (0..p)
            .map(|j| mean(&mut x.iter().skip(j).step_by(p).map(|v| (v - centres[j]).powi(2))).sqrt())
            .map(|s| if s > 1e-9 { s } else { f64::INFINITY })
            .collect();
        let z = x.chunks_exact(p.max(1)).flat_map(|row| (0..p).map(|j| (row[j] - centres[j]) / scales[j])).collect();
        Standardised { centres, scales, z }
    }
}

/// Weights, shift and mean absolute error of the line through centred predictors `z`, `[n, p]`, and targets `y`. Without
/// rounds of reweighting it is the one of the least squared error. None where it was told to stop.
pub(super) fn fitted(z: &[f64], p: usize, y: &[f64], rounds: usize, go_on: GoOn<'_>) -> Option<(Vec<f64>, f64, f64)> {
    let n = y.len();
    let centre = y.iter().sum::<f64>() / n as f64;
    let t: Vec<f64> = y.iter().map(|y| y - centre).collect();
    let mut weights = vec![0.0; p];
    // The smaller of the two matrices of products is decomposed.
    let predictors = match p {
        0 => None,
        _ if n < p => Predictors::of_rows(z, p, go_on),
        _ => Predictors::new(&gram(z, p, go_on)?, p, n, go_on),
    };
    if let Some(predictors) = predictors {
        weights = predictors.weights(&cross(z, p, &t, 1, go_on)?, dot(&t, &t));
    }
    let mut shift = 0.0;
    let rests = |weights: &[f64], shift: f64| -> Vec<f64> {
        (0..n).map(|i| t[i] - shift - dot(weights, &z[i * p..(i + 1) * p])).collect()
    };
    if n > p + 2 {
        (weights, shift) = reweighted(z, &t, weights, &rests, rounds, go_on)?;
    }
    let error = rests(&weights, shift).iter().map(|r| r.abs()).sum::<f64>() / n as f64;
    go_on().then_some((weights, centre + shift, error))
}

/// Weights and shift of the least absolute error, from those of the least squared one.
fn reweighted(
    z: &[f64],
    t: &[f64],
    start: Vec<f64>,
    rests: &dyn Fn(&[f64], f64) -> Vec<f64>,
    rounds: usize,
    go_on: GoOn<'_>,
) -> Option<(Vec<f64>, f64)> {
    let (n, p) = (t.len(), start.len());
    let size = start.iter().map(|w| w * w).sum::<f64>() / p.max(1) as f64;
    let total = |r: &[f64]| r.iter().map(|r| r.abs()).sum::<f64>();
    let mut rest = rests(&start, 0.0);
    let mut best = (total(&rest), start, 0.0);
    let w = p + 1;
    for _ in 0..rounds {
        let spread = total(&rest) / n as f64;
        if spread < 1e-12 {
            break;
        }
        let mut rows = Vec::with_capacity(n * w);
        let mut targets = Vec::with_capacity(n);
        for i in 0..n {
            let root = (1.0 / (spread * rest[i].abs().max(1e-2 * spread))).sqrt();
            rows.extend(z[i * p..(i + 1) * p].iter().map(|v| v * root));
            rows.push(root);
            targets.push(t[i] * root);
        }
        let mut curvature = gram(&rows, w, go_on)?;
        for j in 0..p {
            curvature[j * w + j] += 1.0 / (size + 1e-12);
        }
        curvature[w * w - 1] += 1e-9;
        let mut solution = cross(&rows, w, &targets, 1, go_on)?;
        if !cholesky(&mut curvature, w, go_on) {
            break;
        }
        solve_cholesky(&curvature, &mut solution);
        let shift = solution.pop().unwrap_or(0.0);
        rest = rests(&solution, shift);
        let error = total(&rest);
        let settled = error > best.0 * (1.0 - 1e-4);
        if error < best.0 {
            best = (error, solution, shift);
        }
        if settled {
            break;
        }
    }
    Some((best.1, best.2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::ALWAYS;

    #[test]
    fn an_outlier_does_not_move_the_line_of_medians() {
        let x: Vec<f64> = (0..20).map(f64::from).collect();
        let mut y: Vec<f64> = x.iter().map(|v| 2.0 * v + 1.0).collect();
        y[19] = 1000.0;
        let line = Linear::fit(&x, &y, true, ALWAYS).unwrap();
        assert!((line.weights[0] - 2.0).abs() < 0.05 && (line.predict(&[5.0]) - 11.0).abs() < 0.2, "{line:?}");
        let squares = Linear::fit(&x, &y, false, ALWAYS).unwrap();
        assert!((squares.weights[0] - 2.0).abs() > 1.0);
    }

    #[test]
    fn constant_predictors_and_none_at_all_give_the_typical_value() {
        let constant = Linear::fit(&[1.0, 1.0, 1.0, 1.0], &[2.0, 4.0, 2.0, 4.0], false, ALWAYS).unwrap();
        assert!((constant.predict(&[1.0]) - 3.0).abs() < 1e-9);
        assert_eq!(Linear::fit(&[], &[5.0, 7.0], true, ALWAYS).unwrap().predict(&[]), 6.0);
    }

    #[test]
    fn a_regression_that_is_told_to_stop_has_no_answer() {
        assert!(Linear::fit(&[1.0, 2.0, 3.0, 4.0], &[2.0, 4.0, 2.0, 4.0], true, &|| false).is_none());
    }
}
