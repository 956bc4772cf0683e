//! How far a matrix of weights is from one without cycles.

use crate::gemm::{self, Write};
use crate::ops::Op;
use crate::pool::Pool;
use crate::tape::{Backward, Tape, Var};

/// Terms of the series: beyond them `1 / k!` is below what an `f32` keeps.
const TERMS: usize = 24;

#[derive(Debug)]
pub(crate) struct TraceExp {
    x: Var,
    /// The gradient of the value. `[d, d]`
    slope: Vec<f32>,
}

impl Tape {
    /// The trace of `x + x^2 / 2! + x^3 / 3! + ...`, 24 terms, of a square matrix `x` `[d, d]`.
    ///
    /// Of weights that are not negative it is zero if and only if the graph of the weights above zero has no cycle.
    ///
    /// ```
    /// use m3impute_nn::{Matrix, Tape};
    ///
    /// let mut tape = Tape::new();
    /// let chain = tape.constant(Matrix::from_rows(&[[0.0, 2.0], [0.0, 0.0]]));
    /// let circle = tape.constant(Matrix::from_rows(&[[0.0, 1.0], [1.0, 0.0]]));
    /// let (chain, circle) = (tape.trace_exp(chain), tape.trace_exp(circle));
    /// assert_eq!(tape.scalar(chain), 0.0);
    /// assert!((tape.scalar(circle) - 2.0 * (1f32.cosh() - 1.0)).abs() < 1e-6);
    /// ```
    pub fn trace_exp(&mut self, x: Var) -> Var {
        let d = self.shape(x).0;
        self.expect(x, (d, d), "matrix whose trace is taken");
        let (mut slope, mut power, mut next) = (self.buffer(d * d), self.buffer(d * d), self.buffer(d * d));
        let input = self.value(x).as_slice();
        // The power of zero: its trace is left out, but it begins the gradient, in which the power goes down by one.
        power.fill(0.0);
        power.iter_mut().step_by(d + 1).for_each(|v| *v = 1.0);
        slope.fill(0.0);
        let (mut total, mut inverse) = (0.0, 1.0);
        for k in 1..=TERMS {
            for i in 0..d {
                for j in 0..d {
                    slope[j * d + i] += inverse * power[i * d + j];
                }
            }
            inverse /= k as f32;
            gemm::nn(Write::Set, (d, d, d), &power, input, &mut next);
            std::mem::swap(&mut power, &mut next);
            total += f64::from(inverse) * power.iter().step_by(d + 1).map(|v| f64::from(*v)).sum::<f64>();
        }
        self.recycle(power);
        self.recycle(next);
        self.push_scalar(total, self.needs_grad(x), Op::TraceExp(TraceExp { x, slope }))
    }
}

impl TraceExp {
    pub(crate) fn backward(&self, back: &mut Backward<'_>, dy: Vec<f32>) {
        let mut grad = back.pool.take(self.slope.len());
        grad.iter_mut().zip(&self.slope).for_each(|(g, s)| *g = dy[0] * s);
        back.give(self.x, grad);
        back.pool.give(dy);
    }

    pub(crate) fn recycle(self, pool: &mut Pool) {
        pool.give(self.slope);
    }
}

#[cfg(test)]
mod tests {
    use crate::Matrix;
    use crate::gradcheck::{assert_gradients, random};

    #[test]
    fn gradient_of_trace_exp_matches_central_differences() {
        for d in [1, 2, 5] {
            let x = random(d, d, 3);
            let x = Matrix::from_fn(d, d, |i, j| 0.4 * x.get(i, j));
            assert_gradients(&[x], |tape, v| tape.trace_exp(v[0]));
        }
    }
}
