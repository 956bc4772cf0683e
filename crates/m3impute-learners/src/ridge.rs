//! Linear regression that finds its own regularisation: Bayesian ridge regression, from sums of products alone.

use super::lad::Linear;
use crate::linalg::{Eigen, GoOn, cholesky, cross, dot, eigen, gram, singular, solve_cholesky};

/// Both prior gamma distributions have this shape and rate.
const PRIOR: f64 = 1e-6;
const MOST_UPDATES: usize = 300;
/// The summed change of the weights at which the updates stop.
const TOLERANCE: f64 = 1e-3;

/// The predictors of a regression, centred: the eigenvectors of their sums of products serve every target.
#[derive(Clone, Debug)]
pub struct Predictors {
    /// Of the directions in which the predictors vary by more than rounding.
    eigen: Eigen,
    rows: f64,
    /// What is less than this share of a sum is rounding.
    rounding: f64,
}

impl Predictors {
    /// From the sums of products `[p, p]` of `p` centred predictors over so many rows. None where they are not finite, or
    /// it was told to stop.
    ///
    /// Where predictors depend on each other exactly (the flags of all levels of a column do), some directions vary by
    /// rounding only. Such a direction has no weight: divided by an eigenvalue that is rounding, it could have any.
    pub fn new(products: &[f64], p: usize, rows: usize, go_on: GoOn<'_>) -> Option<Predictors> {
        if !products.iter().all(|v| v.is_finite()) {
            return None;
        }
        Some(Predictors::along(eigen(products, p, go_on)?, p, rows))
    }

    /// From the rows `[n, p]` of centred predictors, which is faster where there are fewer rows than predictors. None as
    /// before.
    pub fn of_rows(x: &[f64], p: usize, go_on: GoOn<'_>) -> Option<Predictors> {
        if !x.iter().all(|v| v.is_finite()) {
            return None;
        }
        let (values, vectors) = singular(x, p, go_on)?;
        let values = values.into_iter().map(|v| v * v).collect();
        Some(Predictors::along(Eigen { values, vectors }, p, x.len() / p.max(1)))
    }

    /// Along the directions that are more than rounding.
    fn along(Eigen { mut values, mut vectors }: Eigen, p: usize, rows: usize) -> Predictors {
        let rounding = rows.max(p) as f64 * f64::EPSILON;
        let least = rounding * values.first().map_or(0.0, |v| v.max(0.0));
        values.truncate(values.iter().take_while(|v| **v > least).count());
        vectors.truncate(values.len() * p);
        Predictors { eigen: Eigen { values, vectors }, rows: rows as f64, rounding }
    }

    /// The weights for a centred target: `xy` are its sums of products with the predictors, `yy` the one with itself.
    ///
    /// The precisions of noise and weights start at the inverse variance of the target and at 1, and are updated in
    /// turn with the weights until those settle.
    ///
    /// ```
    /// use m3impute_learners::{linalg::ALWAYS, ridge::Predictors};
    /// // The target is twice the only predictor, which is -1, 0 and 1.
    /// let predictors = Predictors::new(&[2.0], 1, 3, ALWAYS).expect("finite sums");
    /// assert!((predictors.weights(&[4.0], 8.0)[0] - 2.0).abs() < 1e-4);
    /// ```
    pub fn weights(&self, xy: &[f64], yy: f64) -> Vec<f64> {
        let p = xy.len();
        let Eigen { values, vectors } = &self.eigen;
        let turned: Vec<f64> = vectors.chunks_exact(p.max(1)).map(|v| dot(v, xy)).collect(); // [directions]
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
            let rest = yy - inner.iter().zip(turned.iter().zip(values)).map(fitted).sum::<f64>();
            // An exact relation leaves rounding, of either sign.
            let rest = rest.max(self.rounding * yy);
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
/// is not penalised. None where it was told to stop.
///
/// ```
/// use m3impute_learners::{linalg::ALWAYS, ridge::penalised};
/// // Sums of squares 2 and penalty 2: half of the slope stays.
/// let line = penalised(&[-1.0, 0.0, 1.0], &[1.0, 5.0, 9.0], 2.0, ALWAYS).expect("time");
/// assert!((line.weights[0] - 2.0).abs() < 1e-9 && (line.intercept - 5.0).abs() < 1e-9);
/// ```
pub fn penalised(x: &[f64], y: &[f64], penalty: f64, go_on: GoOn<'_>) -> Option<Linear> {
    let n = y.len().max(1) as f64;
    let p = x.len() / y.len().max(1);
    let centres: Vec<f64> = (0..p).map(|j| x.iter().skip(j).step_by(p).sum::<f64>() / n).collect();
    let centre = y.iter().sum::<f64>() / n;
    let z: Vec<f64> = x.iter().enumerate().map(|(at, v)| v - centres[at % p]).collect(); // [n, p]
    let t: Vec<f64> = y.iter().map(|y| y - centre).collect();
    let mut weights = if p == 0 { Vec::new() } else { cross(&z, p, &t, 1, go_on)? };
    let mut products = if p == 0 { Vec::new() } else { gram(&z, p, go_on)? };
    (0..p).for_each(|j| products[j * p + j] += penalty);
    if cholesky(&mut products, p, go_on) {
        solve_cholesky(&products, &mut weights);
    } else {
        weights.fill(0.0);
    }
    if !go_on() {
        return None;
    }
    let shift = centre - dot(&weights, &centres);
    let rest = |(row, y): (&[f64], &f64)| (y - shift - dot(&weights, row)).abs();
    let error = if p == 0 { 0.0 } else { x.chunks_exact(p).zip(y).map(rest).sum::<f64>() / n };
    Some(Linear { weights, intercept: shift, error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::ALWAYS;

    #[test]
    fn a_target_without_relation_gets_no_weight() {
        let predictors = Predictors::new(&[2.0, 0.0, 0.0, 2.0], 2, 4, ALWAYS).unwrap();
        assert_eq!(predictors.weights(&[0.0, 0.0], 4.0), [0.0, 0.0]);
    }

    #[test]
    fn equal_predictors_share_the_weight() {
        let weights = Predictors::new(&[2.0, 2.0, 2.0, 2.0], 2, 3, ALWAYS).unwrap().weights(&[4.0, 4.0], 8.0);
        assert!((weights[0] - 1.0).abs() < 1e-3 && (weights[1] - 1.0).abs() < 1e-3, "{weights:?}");
    }

    #[test]
    fn a_constant_target_gets_no_weight() {
        assert_eq!(Predictors::new(&[2.0], 1, 3, ALWAYS).unwrap().weights(&[0.0], 0.0), [0.0]);
    }

    #[test]
    fn a_direction_that_is_rounding_gets_no_weight_whatever_the_target_has_of_it() {
        // The first two predictors are the same; the target has 1e-9 of their difference, by rounding.
        let n = 30_000.0;
        let products = [n, n, 0.0, n, n, 0.0, 0.0, 0.0, n];
        let predictors = Predictors::new(&products, 3, 30_000, ALWAYS).unwrap();
        let weights = predictors.weights(&[n + 1e-9, n - 1e-9, n], 2.0 * n);
        assert!((weights[0] - 0.5).abs() < 1e-3 && (weights[2] - 1.0).abs() < 1e-3, "{weights:?}");
        assert!((weights[0] - weights[1]).abs() < 1e-6, "{weights:?}");
    }

    #[test]
    fn fewer_rows_than_predictors_and_their_sums_have_the_same_weights() {
        let x = [1.0, 2.0, -1.0, 0.5, -1.0, -2.0, 1.0, -0.5, 0.0, 1.0, 1.0, 0.0]; // [3, 4]
        let (xy, yy) = ([3.0, 1.0, -2.0, 0.5], 9.0);
        let of_sums = Predictors::new(&gram(&x, 4, ALWAYS).unwrap(), 4, 3, ALWAYS).unwrap().weights(&xy, yy);
        let of_rows = Predictors::of_rows(&x, 4, ALWAYS).unwrap().weights(&xy, yy);
        assert!(of_sums.iter().zip(&of_rows).all(|(a, b)| (a - b).abs() < 1e-9), "{of_sums:?} {of_rows:?}");
    }

    #[test]
    fn sums_that_are_not_finite_have_no_answer() {
        assert!(Predictors::new(&[f64::INFINITY], 1, 3, ALWAYS).is_none());
    }
}
