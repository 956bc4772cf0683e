//! A smooth function with the least absolute error: kernel regression of the median.
//!
//! A row is described by how near it is to some of the rows that were learnt from, its landmarks; the prediction is linear in
//! that, and as smooth as the wide Gaussian that says what is near. The directions in which landmarks differ are scaled so
//! that the regularisation that [`Linear`](super::lad::Linear) finds is that of the smooth functions (Nyström's method).
//!
//! Notation: `n` rows, `p` predictors, `l` landmarks.

mod learner;

pub use learner::{KernelLearner, KernelModel};

use super::lad::{Standardised, fitted};
use crate::linalg::{ALWAYS, Eigen, GoOn, dot, eigen, product};
use m3impute_core::{Error, ModelFile, Result, Tensor};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// How fast nearness falls off with the mean squared distance over the predictors, in standard deviations.
const FALL: f64 = 0.1;
/// Directions with a smaller share of the largest one's variance are left out.
const LEAST: f64 = 1e-6;
/// How often rows are reweighted at most: a curve is near its end soon.
const ROUNDS: usize = 5;
/// Rows that are predicted at a time.
const ROWS: usize = 512;

/// A smooth function of predictors.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelRegression {
    /// The mean of each predictor, `[p]`.
    pub centres: Vec<f64>,
    /// What each is multiplied by, `[p]`.
    pub scales: Vec<f64>,
    /// The landmarks, scaled, `[l, p]`.
    pub landmarks: Vec<f64>,
    /// The weight of nearness to each, `[l]`.
    pub weights: Vec<f64>,
    /// What is added.
    pub intercept: f64,
    /// The mean absolute error on the rows it was learnt from.
    pub error: f64,
}

impl KernelRegression {
    /// Learns from rows `x`, `[n, p]`, and their targets `y`; the landmarks are some of the rows. None where it
    /// was told to stop.
    ///
    /// ```
    /// use m3impute_learners::{kernel::KernelRegression, linalg::ALWAYS};
    /// let x: Vec<f64> = (0..100).map(|i| f64::from(i) / 50.0 - 1.0).collect();
    /// let y: Vec<f64> = x.iter().map(|x| x * x).collect();
    /// let landmarks: Vec<u32> = (0..100).step_by(5).collect();
    /// let curve = KernelRegression::fit(&x, &y, &landmarks, ALWAYS).expect("time");
    /// assert!((curve.predict(&[0.5, -0.5])[1] - 0.25).abs() < 0.02);
    /// ```
    pub fn fit(x: &[f64], y: &[f64], landmarks: &[u32], go_on: GoOn<'_>) -> Option<KernelRegression> {
        let n = y.len();
        let p = x.len() / n.max(1);
        let Standardised { centres, scales, z } = Standardised::of(x, p);
        let fall = (FALL / p.max(1) as f64).sqrt();
        let z: Vec<f64> = z.iter().map(|v| v * fall).collect();
        let scales = scales.iter().map(|s| fall / s).collect();
        let landmarks: Vec<f64> =
            landmarks.iter().flat_map(|&i| &z[i as usize * p..(i as usize + 1) * p]).copied().collect(); // [l, p]
        let l = landmarks.len() / p.max(1);
        let Eigen { values, vectors } = eigen(&nearness(&landmarks, &landmarks, p, go_on)?, l, go_on)?;
        let kept = values.iter().filter(|v| **v > LEAST * values[0]).count();
        let mut turn = vec![0.0; l * kept]; // [l, kept]
        for (k, (value, vector)) in values.iter().zip(vectors.chunks_exact(l.max(1))).enumerate().take(kept) {
            vector.iter().enumerate().for_each(|(i, v)| turn[i * kept + k] = v / value.sqrt());
        }
        let mut features = product(&nearness(&z, &landmarks, p, go_on)?, &turn, l, kept, go_on)?; // [n, kept]
        let mut means = vec![0.0; kept];
        for row in features.chunks_exact(kept.max(1)) {
            means.iter_mut().zip(row).for_each(|(m, v)| *m += v / n as f64);
        }
        for row in features.chunks_exact_mut(kept.max(1)) {
            row.iter_mut().zip(&means).for_each(|(v, m)| *v -= m);
        }
        let (inner, shift, error) = fitted(&features, kept, y, ROUNDS, go_on)?;
        let weights = turn.chunks_exact(kept.max(1)).map(|row| dot(row, &inner)).collect();
        let intercept = shift - dot(&inner, &means);
        Some(KernelRegression { centres, scales, landmarks, weights, intercept, error })
    }

    /// The predictions for rows of predictors, `[n, p]`.
    pub fn predict(&self, x: &[f64]) -> Vec<f64> {
        let p = self.centres.len().max(1);
        let parts: Vec<Vec<f64>> = x
            .par_chunks(ROWS * p)
            .map(|x| {
                let z: Vec<f64> =
                    x.iter().enumerate().map(|(at, v)| (v - self.centres[at % p]) * self.scales[at % p]).collect();
                let near = nearness(&z, &self.landmarks, p, ALWAYS).unwrap_or_default();
                near.chunks_exact(self.weights.len()).map(|row| self.intercept + dot(row, &self.weights)).collect()
            })
            .collect();
        parts.concat()
    }

    /// Writes the curve into tensors whose names start with `prefix`.
    pub fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) {
        let mut put = |name: &str, values: &[f64]| {
            tensors.insert(format!("{prefix}{name}"), Tensor::F64(vec![values.len()], values.to_vec()));
        };
        put("centres", &self.centres);
        put("scales", &self.scales);
        put("landmarks", &self.landmarks);
        put("weights", &self.weights);
        put("rest", &[self.intercept, self.error]);
    }

    /// The curve of `p` predictors back.
    ///
    /// # Errors
    /// When something is not there, has another size, or is not finite.
    pub fn restore(file: &ModelFile, prefix: &str, p: usize) -> Result<KernelRegression> {
        let damaged = |name: &str| Error::damaged(format!("`{prefix}{name}`"));
        let get = |name: &str| -> Result<Vec<f64>> {
            let (_, values) = file.f64s(&format!("{prefix}{name}"))?;
            if values.iter().all(|v| v.is_finite()) { Ok(values.to_vec()) } else { Err(damaged(name)) }
        };
        let (centres, scales, weights) = (get("centres")?, get("scales")?, get("weights")?);
        let (landmarks, rest) = (get("landmarks")?, get("rest")?);
        let &[intercept, error] = rest.as_slice() else { return Err(damaged("rest")) };
        if centres.len() != p || scales.len() != p || weights.is_empty() || landmarks.len() != weights.len() * p {
            return Err(damaged("landmarks"));
        }
        Ok(KernelRegression { centres, scales, landmarks, weights, intercept, error })
    }
}

/// `exp(-|a - b|^2)` for all rows of `a`, `[n, p]`, and `b`, `[l, p]`.
fn nearness(a: &[f64], b: &[f64], p: usize, go_on: GoOn<'_>) -> Option<Vec<f64>> {
    let l = b.len() / p.max(1);
    let squares = |x: &[f64]| -> Vec<f64> { x.chunks_exact(p.max(1)).map(|row| dot(row, row)).collect() };
    let (of_a, of_b) = (squares(a), squares(b));
    let mut turned = vec![0.0; b.len()]; // [p, l]
    for (i, row) in b.chunks_exact(p.max(1)).enumerate() {
        row.iter().enumerate().for_each(|(j, v)| turned[j * l + i] = *v);
    }
    let mut near = product(a, &turned, p, l, go_on)?; // [n, l]
    for (row, a) in near.chunks_exact_mut(l.max(1)).zip(of_a) {
        row.iter_mut().zip(&of_b).for_each(|(v, b)| *v = (2.0 * *v - a - b).min(0.0).exp());
    }
    Some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two predictors on a grid, and one that does not vary.
    fn rows() -> Vec<f64> {
        (0..400).flat_map(|i| [f64::from(i % 20) / 10.0 - 1.0, f64::from(i / 20) / 10.0 - 1.0, 3.0]).collect()
    }

    #[test]
    fn a_product_that_no_line_knows_is_learnt_in_spite_of_rows_far_off() {
        let x = rows();
        let truth: Vec<f64> = x.chunks_exact(3).map(|row| row[0] * row[1]).collect();
        let mut y = truth.clone();
        y.iter_mut().step_by(25).for_each(|y| *y += 3.0);
        let landmarks: Vec<u32> = (0..400).step_by(7).collect();
        let curve = KernelRegression::fit(&x, &y, &landmarks, ALWAYS).unwrap();
        let off = |said: &[f64]| said.iter().zip(&truth).map(|(a, b)| (a - b).abs()).sum::<f64>() / 400.0;
        assert!(off(&curve.predict(&x)) < 0.02, "{}", off(&curve.predict(&x)));
    }

    #[test]
    fn far_from_all_rows_and_without_any_relation_the_answers_are_finite() {
        let x = rows();
        let y = vec![2.0; 400];
        let curve = KernelRegression::fit(&x, &y, &[0, 0, 5], ALWAYS).unwrap();
        for said in curve.predict(&[1e6, -1e6, 3.0, 0.0, 0.0, 3.0]) {
            assert!((said - 2.0).abs() < 1e-6, "{said}");
        }
    }
}
