//! The logarithm of a sum of exponentials.

use crate::blocks;
use crate::lanes;
use crate::math;
use crate::matrix::Matrix;
use crate::ops::Op;
use crate::pool::Pool;
use crate::simd::kernel;
use crate::tape::{Backward, Tape, Var};

#[derive(Debug)]
pub(crate) struct LogSumExp {
    x: Var,
    /// Softmax of each row, which is the gradient. `[n, d]`
    shares: Vec<f32>,
}

impl Tape {
    /// `ln(sum(exp(x)))` of each row: `[n, d]` to `[n, 1]`.
    ///
    /// ```
    /// use m3impute_nn::{Matrix, Tape};
    ///
    /// let mut tape = Tape::new();
    /// let x = tape.constant(Matrix::from_rows(&[[1000.0, 1000.0]]));
    /// let y = tape.log_sum_exp(x);
    /// assert!((tape.value(y).get(0, 0) - 1000.0 - 2f32.ln()).abs() < 1e-4);
    /// ```
    pub fn log_sum_exp(&mut self, x: Var) -> Var {
        let (rows, cols) = self.shape(x);
        let (mut out, mut shares) = (self.buffer(rows), self.buffer(rows * cols));
        let input = self.value(x).as_slice();
        let block = blocks::rows(cols);
        blocks::each_pair(rows * cols, (&mut out, block), (&mut shares, block * cols), |i, out, shares| {
            shares.copy_from_slice(&input[i * block * cols..][..shares.len()]);
            log_sum_exp(cols, out, shares);
        });
        let op = Op::LogSumExp(LogSumExp { x, shares });
        self.push(Matrix::from_parts(rows, 1, out), self.needs_grad(x), op)
    }
}

impl LogSumExp {
    pub(crate) fn backward(&self, back: &mut Backward<'_>, dy: Vec<f32>) {
        let cols = back.value(self.x).cols();
        let mut grad = back.pool.take(self.shares.len());
        let block = blocks::rows(cols);
        blocks::each(&mut grad, block * cols, |i, grad| {
            let shares = &self.shares[i * block * cols..];
            for ((grad, shares), d) in grad.chunks_exact_mut(cols).zip(shares.chunks_exact(cols)).zip(&dy[i * block..])
            {
                grad.iter_mut().zip(shares).for_each(|(g, s)| *g = d * s);
            }
        });
        back.give(self.x, grad);
        back.pool.give(dy);
    }

    pub(crate) fn recycle(self, pool: &mut Pool) {
        pool.give(self.shares);
    }
}

kernel! {
    fn log_sum_exp<const FMA: bool>(cols: usize, out: &mut [f32], shares: &mut [f32]) {
        for (row, out) in shares.chunks_exact_mut(cols).zip(out.iter_mut()) {
            let largest = lanes::max(row);
            *out = largest;
            row.iter_mut().for_each(|v| *v -= largest);
        }
        // Apart from the rows, so that short rows vectorise too.
        shares.iter_mut().for_each(|v| *v = math::exp::<FMA>(*v));
        for (row, out) in shares.chunks_exact_mut(cols).zip(out.iter_mut()) {
            let sum = lanes::sum(row);
            row.iter_mut().for_each(|v| *v /= sum);
            *out += math::ln::<FMA>(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck::{assert_gradients, random};

    #[test]
    fn gradient_of_log_sum_exp_matches_central_differences() {
        for cols in [1, 3, 40] {
            assert_gradients(&[random(4, cols, 1)], |tape, v| tape.log_sum_exp(v[0]));
        }
    }

    #[test]
    fn a_value_that_is_no_number_comes_out() {
        let mut tape = Tape::new();
        let x = tape.constant(Matrix::from_rows(&[[f32::NAN, 1.0], [0.0, 0.0]]));
        let y = tape.log_sum_exp(x);
        assert!(tape.value(y).get(0, 0).is_nan());
        assert!((tape.value(y).get(1, 0) - 2f32.ln()).abs() < 1e-6);
    }
}
