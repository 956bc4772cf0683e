//! Linear regression that finds its own regularisation: Bayesian ridge regression, from sums of products alone.

use super::lad::Linear;
use crate::linalg::{Eigen, cholesky, cross, dot, eigen, gram, solve_cholesky};

/// Both prior gamma distributions have this shape and rate.
const PRIOR: f64 = 1e-6;
const MOST_UPDATES: usize = 300;
/// The summed change of the weights at which the updates stop.
const TOLERANCE: f64 = 1e-3;

/// The predictors of a regression, centred: the eigenvectors of their sums of products serve every target.
#[derive(Clone, Debug)]
pub struct Predictors {
    eigen: Eigen,
    rows: f64,
}

impl Predictors {
    /// From the sums of products `[p, p]` of `p` centred predictors over so many rows.
    pub fn new(products: &[f64], p: usize, rows: usize) -> Predictors {
        let mut eigen = eigen(products, p);
        eigen.values.iter_mut().for_each(|v| *v = v.max(0.0));
        Predictors { eigen, rows: rows as f64 }
    }

    /// The weights for a centred target: `xy` are its sums of products with the predictors, `yy` the one with itself.
    ///
    /// The precisions of noise and weights start at the inverse variance of the target and at 1, and are updated in
    /// turn with the weights until those settle.
    ///
    /// ```
    /// use m3impute_learners::ridge::Predictors;
    /// // The target is twice the only predictor, which is -1, 0 and 1.
    /// let weights = Predictors::new(&[2.0], 1, 3).weights(&[4.0], 8.0);
    /// assert!((weights[0] - 2.0).abs() < 1e-4);
    /// ```
    pub fn weights(&self, xy: &[f64], yy: f64) -> Vec<f64> {
        let p = xy.len();
        let Eigen { values, vectors } = &self.eigen;
        let turned: Vec<f64> = vectors.chunks_exact(p.max(1)).map(|v| dot(v, xy)).collect(); // [p]
        let solve = |noise: f64, size: f64| -> Vec<f64> {
            values.iter().zip(&turned).map(|(e, b)| b / (e + size / noise)).collect()
        };
        let turn_back = |inner: &[f64]| -> Vec<f64> {
            let mut weights = vec![0.0; p];
            for (vector, a) in vectors.chunks_exact(p.max(1)).zip(inner) {
                weights.iter_mut().zip(vector).for_each(|(w, v)| *w += a * v);
            }
            weights
        };
        let mut noise = 1.0 / (yy / self.rows + f64::EPSILON); // precision of the noise
        let mut size = 1.0; // precision of the weights
        let mut before: Option<Vec<f64>> = None;
        for _ in 0..MOST_UPDATES {
            let inner = solve(noise, size);
            let fitted = |(a, (b, e)): (&f64, (&f64, &f64))| a * (2.0 * b - e * a);
            let rest = (yy - inner.iter().zip(turned.iter().zip(values)).map(fitted).sum::<f64>()).max(0.0);
            let free: f64 = values.iter().map(|e| noise * e / (size + noise * e)).sum();
            size = (free + 2.0 * PRIOR) / (dot(&inner, &inner) + 2.0 * PRIOR);
            noise = (self.rows - free + 2.0 * PRIOR) / (rest + 2.0 * PRIOR);
            let weights = turn_back(&inner);
            let settled = before
                .as_ref()
                .is_some_and(|b| b.iter().zip(&weights).map(|(a, b)| (a - b).abs()).sum::<f64>() < TOLERANCE);
            before = Some(weights);
            if settled {
                break;
            }
        }
        turn_back(&solve(noise, size))
    }
}

/// Ridge regression with a penalty that is given: the line through rows `x`, `[n, p]`, and their targets `y`. What is added
/// is not penalised.
///
/// ```
/// use m3impute_learners::ridge::penalised;
/// // Sums of squares 2 and penalty 2: half of the slope stays.
/// let line = penalised(&[-1.0, 0.0, 1.0], &[1.0, 5.0, 9.0], 2.0);
/// assert!((line.weights[0] - 2.0).abs() < 1e-9 && (line.intercept - 5.0).abs() < 1e-9);
/// ```
pub fn penalised(x: &[f64], y: &[f64], penalty: f64) -> Linear {
    let n = y.len().max(1) as f64;
    let p = x.len() / y.len().max(1);
    let centres: Vec<f64> = (0..p).map(|j| x.iter().skip(j).step_by(p).sum::<f64>() / n).collect();
    let centre = y.iter().sum::<f64>() / n;
    let z: Vec<f64> = x.iter().enumerate().map(|(at, v)| v - centres[at % p]).collect(); // [n, p]
    let t: Vec<f64> = y.iter().map(|y| y - centre).collect();
    let mut weights = if p == 0 { Vec::new() } else { cross(&z, p, &t, 1) };
    let mut products = if p == 0 { Vec::new() } else { gram(&z, p) };
    (0..p).for_each(|j| products[j * p + j] += penalty);
    if cholesky(&mut products, p) {
        solve_cholesky(&products, &mut weights);
    } else {
        weights.fill(0.0);
    }
    let shift = centre - dot(&weights, &centres);
    let rest = |(row, y): (&[f64], &f64)| (y - shift - dot(&weights, row)).abs();
    let error = if p == 0 { 0.0 } else { x.chunks_exact(p).zip(y).map(rest).sum::<f64>() / n };
    Linear { weights, intercept: shift, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_without_relation_gets_no_weight() {
        let weights = Predictors::new(&[2.0, 0.0, 0.0, 2.0], 2, 4).weights(&[0.0, 0.0], 4.0);
        assert_eq!(weights, [0.0, 0.0]);
    }

    #[test]
    fn equal_predictors_share_the_weight() {
        let weights = Predictors::new(&[2.0, 2.0, 2.0, 2.0], 2, 3).weights(&[4.0, 4.0], 8.0);
        assert!((weights[0] - 1.0).abs() < 1e-3 && (weights[1] - 1.0).abs() < 1e-3, "{weights:?}");
    }

    #[test]
    fn a_constant_target_gets_no_weight() {
        assert_eq!(Predictors::new(&[2.0], 1, 3).weights(&[0.0], 0.0), [0.0]);
    }
}
