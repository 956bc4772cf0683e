//! The chance of each level, given numbers: softmax regression with an L2 penalty.
//!
//! Newton's steps with the curvature replaced by a bound that does not change (Böhning): one factorisation serves all
//! steps, each of which costs two products, and momentum makes up for the bound.
//!
//! Notation: `n` rows, `p` predictors, `c` levels.

use crate::linalg::{GoOn, cholesky, cross, gram, product, solve_cholesky};

/// Softmax regression: the weights of each predictor for each level.
#[derive(Clone, Debug, PartialEq)]
pub struct Softmax {
    /// The weights, `[p, c]`.
    pub weights: Vec<f64>,
    /// How many levels.
    pub levels: usize,
}

impl Softmax {
    /// Every level equally likely.
    pub fn flat(predictors: usize, levels: usize) -> Softmax {
        Softmax { weights: vec![0.0; predictors * levels], levels }
    }

    /// Moves the weights towards those most likely for these rows: `x` is `[n, p]` and has a column of ones where an
    /// intercept is wanted; `level` says what each row is. At most `steps` steps, fewer once the likelihood settles. None
    /// where it was told to stop before.
    ///
    /// ```
    /// use m3impute_learners::{linalg::ALWAYS, softmax::Softmax};
    /// let mut model = Softmax::flat(2, 2);
    /// model.improve(&[-1.0, 1.0, 1.0, 1.0], &[0, 1], 0.1, 50, ALWAYS);
    /// let chances = model.chances(&[3.0, 1.0]);
    /// assert!(chances[1] > 0.9);
    /// ```
    pub fn improve(&mut self, x: &[f64], level: &[u32], penalty: f64, steps: usize, go_on: GoOn<'_>) -> Option<()> {
        let c = self.levels;
        let p = self.weights.len() / c.max(1);
        if level.is_empty() || c < 2 || p == 0 {
            return Some(());
        }
        let mut curvature = gram(x, p, go_on)?; // [p, p]
        curvature.iter_mut().for_each(|v| *v *= 0.5);
        for f in 0..p {
            // A predictor that is always 0 has no curvature of its own.
            curvature[f * p + f] += penalty.max(1e-9);
        }
        if !cholesky(&mut curvature, p, go_on) {
            return go_on().then_some(());
        }
        let mut previous = self.weights.clone();
        let mut momentum = 1.0_f64;
        let mut loss = f64::INFINITY;
        for _ in 0..steps {
            let next = (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt()) / 2.0;
            let push = (momentum - 1.0) / next;
            let ahead: Vec<f64> = self.weights.iter().zip(&previous).map(|(w, v)| w + push * (w - v)).collect();
            let (new_loss, slope) = slope(x, level, &ahead, c, penalty, go_on)?;
            if new_loss > loss {
                momentum = 1.0; // the momentum led uphill
                previous.clone_from(&self.weights);
                loss = f64::INFINITY;
                continue;
            }
            previous = std::mem::replace(&mut self.weights, ahead);
            momentum = next;
            for l in 0..c {
                let mut step: Vec<f64> = (0..p).map(|f| slope[f * c + l]).collect();
                solve_cholesky(&curvature, &mut step);
                (0..p).for_each(|f| self.weights[f * c + l] -= step[f]);
            }
            let settled = loss - new_loss < 1e-6 * level.len() as f64;
            loss = new_loss;
            if settled {
                break;
            }
        }
        Some(())
    }

    /// The chance of each level for one row.
    pub fn chances(&self, x: &[f64]) -> Vec<f64> {
        let mut scores = vec![0.0; self.levels];
        for (v, weights) in x.iter().zip(self.weights.chunks_exact(self.levels.max(1))) {
            scores.iter_mut().zip(weights).for_each(|(s, w)| *s += v * w);
        }
        softmax(&mut scores);
        scores
    }
}

/// Scores become chances; also the logarithm of what they were divided by.
pub fn softmax(scores: &mut [f64]) -> f64 {
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    scores.iter_mut().for_each(|s| *s = (*s - highest).exp());
    let sum: f64 = scores.iter().sum();
    scores.iter_mut().for_each(|s| *s /= sum);
    highest + sum.ln()
}

/// The penalised negative log-likelihood, and its slope, `[p, c]`.
fn slope(
    x: &[f64],
    level: &[u32],
    weights: &[f64],
    c: usize,
    penalty: f64,
    go_on: GoOn<'_>,
) -> Option<(f64, Vec<f64>)> {
    let p = weights.len() / c;
    let mut rest = product(x, weights, p, c, go_on)?; // [n, c]: scores, then chances less what is
    let mut loss = 0.5 * penalty * weights.iter().map(|w| w * w).sum::<f64>();
    for (scores, &l) in rest.chunks_exact_mut(c).zip(level) {
        let own = scores[l as usize];
        loss += softmax(scores) - own;
        scores[l as usize] -= 1.0;
    }
    let mut slope = cross(x, p, &rest, c, go_on)?; // [p, c]
    slope.iter_mut().zip(weights).for_each(|(s, w)| *s += penalty * w);
    Some((loss, slope))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::ALWAYS;

    #[test]
    fn an_intercept_alone_learns_the_shares() {
        let mut model = Softmax::flat(1, 2);
        model.improve(&[1.0; 4], &[0, 1, 1, 1], 1e-9, 500, ALWAYS);
        assert!((model.chances(&[1.0])[1] - 0.75).abs() < 1e-2, "{:?}", model.chances(&[1.0]));
    }

    #[test]
    fn three_levels_on_a_line_are_told_apart() {
        let values = [-2.0, -1.9, 0.0, 0.1, 2.0, 2.1];
        let x: Vec<f64> = values.iter().flat_map(|&v| [v, v * v, 1.0]).collect();
        let level = [0, 0, 1, 1, 2, 2];
        let mut model = Softmax::flat(3, 3);
        model.improve(&x, &level, 0.01, 200, ALWAYS);
        for (row, &l) in x.chunks_exact(3).zip(&level) {
            let chances = model.chances(row);
            assert!(chances[l as usize] > 0.6, "{chances:?}");
        }
    }

    #[test]
    fn rows_that_say_nothing_change_nothing() {
        let mut model = Softmax::flat(2, 3);
        model.improve(&[], &[], 1.0, 10, ALWAYS);
        assert_eq!(model, Softmax::flat(2, 3));
    }
}
