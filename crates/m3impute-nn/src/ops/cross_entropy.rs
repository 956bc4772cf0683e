//! Cross-entropy of logits with classes.

use crate::blocks;
use crate::lanes;
use crate::math;
use crate::ops::Op;
use crate::pool::Pool;
use crate::simd::kernel;
use crate::tape::{Backward, Tape, Var};

/// The classes of a cross-entropy.
///
/// ```
/// use m3impute_nn::Classes;
///
/// // Rows 0 and 1 have three classes, row 2 has two; row 1 counts double.
/// let classes = Classes { targets: &[2, 0, 1], counts: Some(&[3, 3, 2]), weights: Some(&[1.0, 2.0, 1.0]) };
/// # let _ = classes;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Classes<'a> {
    /// The class of each row.
    pub targets: &'a [u32],
    /// How many of the columns are classes of each row, so that rows with fewer classes share a padded matrix.
    /// All of them if not given.
    pub counts: Option<&'a [u32]>,
    /// The weight of each row; the loss is the weighted mean. One if not given.
    pub weights: Option<&'a [f32]>,
}

impl<'a> From<&'a [u32]> for Classes<'a> {
    fn from(targets: &'a [u32]) -> Self {
        Self { targets, counts: None, weights: None }
    }
}

#[derive(Debug)]
pub(crate) struct CrossEntropy {
    logits: Var,
    /// The gradient of the loss, `[n, classes]`.
    slope: Vec<f32>,
}

impl Tape {
    /// The mean over rows of minus the log of the probability that softmax of the logits `[n, classes]` gives to the
    /// row's class.
    ///
    /// ```
    /// use m3impute_nn::{Matrix, Tape};
    ///
    /// let mut tape = Tape::new();
    /// let logits = tape.constant(Matrix::zeros(2, 4));
    /// let loss = tape.cross_entropy(logits, &[3u32, 0][..]);
    /// assert!((tape.scalar(loss) - 4f32.ln()).abs() < 1e-6);
    /// ```
    ///
    /// # Panics
    /// If a slice does not have an entry for each row, or a class is out of range.
    pub fn cross_entropy<'a>(&mut self, logits: Var, classes: impl Into<Classes<'a>>) -> Var {
        let (rows, cols) = self.shape(logits);
        let Classes { targets, counts, weights } = classes.into();
        assert_eq!(targets.len(), rows, "classes: expected `{rows}`, got `{}`", targets.len());
        let count = |row: usize| counts.map_or(cols, |c| c[row] as usize);
        if let Some(counts) = counts {
            assert_eq!(counts.len(), rows, "numbers of classes: expected `{rows}`, got `{}`", counts.len());
        }
        if let Some(weights) = weights {
            assert_eq!(weights.len(), rows, "weights of classes: expected `{rows}`, got `{}`", weights.len());
        }
        for (row, &target) in targets.iter().enumerate() {
            let most = count(row).min(cols);
            assert!((target as usize) < most, "class of row `{row}`: expected less than `{most}`, got `{target}`");
        }
        let total = weights.map_or(rows as f64, |w| w.iter().map(|w| f64::from(*w)).sum());
        let share = if total == 0.0 { 0.0 } else { 1.0 / total };

        // Room for the gradient, which shares its exponentials with the value.
        let mut slope = self.buffer(rows * cols); // [n, classes]
        let mut losses = self.buffer(rows); // [n]
        let input = self.value(logits).as_slice();
        let block = blocks::rows(cols);
        blocks::each_pair(rows * cols, (&mut slope, block * cols), (&mut losses, block), |i, slope, losses| {
            let rows = slope.chunks_exact_mut(cols).zip(losses).zip(input[i * block * cols..].chunks_exact(cols));
            for (r, ((slope, loss), logits)) in rows.enumerate() {
                let row = i * block + r;
                let weight = weights.map_or(1.0, |w| w[row]) * share as f32;
                let (inside, padding) = slope.split_at_mut(count(row).min(cols));
                padding.fill(0.0);
                *loss = row_loss(&logits[..inside.len()], targets[row] as usize, weight, inside);
            }
        });
        let value = losses
            .iter()
            .zip(0..)
            .map(|(l, i): (&f32, usize)| f64::from(*l) * weights.map_or(1.0, |w| f64::from(w[i])));
        let value = value.sum::<f64>() * share;
        self.recycle(losses);
        self.push_scalar(value, self.needs_grad(logits), Op::CrossEntropy(CrossEntropy { logits, slope }))
    }
}

impl CrossEntropy {
    pub(crate) fn recycle(self, pool: &mut Pool) {
        pool.give(self.slope);
    }

    pub(crate) fn backward(&self, back: &mut Backward<'_>, dy: Vec<f32>) {
        let mut grad = back.pool.take(self.slope.len());
        let len = blocks::ELEMENTS;
        blocks::each(&mut grad, len, |i, grad| {
            grad.iter_mut().zip(&self.slope[i * len..]).for_each(|(g, s)| *g = dy[0] * s);
        });
        back.pool.give(dy);
        back.give(self.logits, grad);
    }
}

kernel! {
    /// Minus the log probability of `target`; `slope` takes `weight * (probability - [is target])`.
    fn row_loss<const FMA: bool>(logits: &[f32], target: usize, weight: f32, slope: &mut [f32]) -> f32 {
        let largest = lanes::max(logits);
        for (s, x) in slope.iter_mut().zip(logits) {
            *s = math::exp::<FMA>(x - largest);
        }
        let sum = lanes::sum(slope);
        for s in slope.iter_mut() {
            *s *= weight / sum;
        }
        slope[target] -= weight;
        math::ln::<FMA>(sum) - (logits[target] - largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;
    use crate::gradcheck::{assert_gradients, random};

    #[test]
    fn gradient_of_cross_entropy_matches_central_differences() {
        assert_gradients(&[random(4, 5, 1)], |tape, v| tape.cross_entropy(v[0], &[3u32, 0, 4, 4][..]));
        let classes =
            Classes { targets: &[3, 0, 1, 4], counts: Some(&[5, 3, 2, 5]), weights: Some(&[1.0, 2.0, 0.5, 0.0]) };
        assert_gradients(&[random(4, 5, 1)], |tape, v| tape.cross_entropy(v[0], classes));
    }

    #[test]
    fn padding_does_not_count() {
        let mut tape = Tape::new();
        let logits = tape.input(Matrix::from_rows(&[[0.0, 0.0, 50.0]]));
        let loss = tape.cross_entropy(logits, Classes { targets: &[1], counts: Some(&[2]), weights: None });
        tape.backward_from(loss, &Matrix::full(1, 1, 1.0));
        assert!((tape.scalar(loss) - 2f32.ln()).abs() < 1e-6);
        assert_eq!(tape.grad(logits).unwrap().row(0), [0.5, -0.5, 0.0]);
    }

    #[test]
    #[should_panic(expected = "class of row `1`: expected less than `2`, got `2`")]
    fn a_class_out_of_range_is_refused() {
        let mut tape = Tape::new();
        let logits = tape.constant(Matrix::zeros(2, 3));
        tape.cross_entropy(logits, Classes { targets: &[2, 2], counts: Some(&[3, 2]), weights: None });
    }
}
