//! Softmax over the values of a row.

use crate::blocks;
use crate::lanes;
use crate::math;
use crate::matrix::Matrix;
use crate::ops::Op;
use crate::simd::{fma, kernel};
use crate::tape::{Backward, Tape, Var};

impl Tape {
    /// Softmax of each row.
    pub fn softmax(&mut self, x: Var) -> Var {
        self.softmax_of(x, None)
    }

    /// Softmax of each row over the values where `allowed`, of the same shape, is not zero; the others get zero. A
    /// row with nothing allowed is all zeros. No gradient goes to `allowed`.
    ///
    /// ```
    /// use m3impute_nn::{Matrix, Tape};
    ///
    /// let mut tape = Tape::new();
    /// let x = tape.constant(Matrix::from_rows(&[[1.0, 1.0, 9.0]]));
    /// let allowed = tape.constant(Matrix::from_rows(&[[1.0, 1.0, 0.0]]));
    /// let y = tape.softmax_where(x, allowed);
    /// assert_eq!(tape.value(y).row(0), [0.5, 0.5, 0.0]);
    /// ```
    pub fn softmax_where(&mut self, x: Var, allowed: Var) -> Var {
        self.softmax_of(x, Some(allowed))
    }

    fn softmax_of(&mut self, x: Var, allowed: Option<Var>) -> Var {
        let (rows, cols) = self.shape(x);
        let mut out = self.buffer(rows * cols);
        if let Some(allowed) = allowed {
            self.expect(allowed, (rows, cols), "where a softmax is allowed");
        }
        let input = self.value(x).as_slice();
        let allowed = allowed.map(|a| self.value(a).as_slice());
        let block = blocks::rows(cols);
        blocks::each(&mut out, block * cols, |i, out| {
            let range = i * block * cols..i * block * cols + out.len();
            out.copy_from_slice(&input[range.clone()]);
            if let Some(allowed) = allowed {
                out.iter_mut()
                    .zip(&allowed[range])
                    .for_each(|(o, a)| *o = if *a == 0.0 { f32::NEG_INFINITY } else { *o });
            }
            softmax(cols, out);
        });
        self.push(Matrix::from_parts(rows, cols, out), self.needs_grad(x), Op::Softmax(x))
    }
}

/// `dx = y * (dy - y . dy)`.
pub(crate) fn softmax_backward(back: &mut Backward<'_>, output: &Matrix, x: Var, mut dy: Vec<f32>) {
    let (cols, y) = (output.cols(), output.as_slice());
    let block = blocks::rows(cols);
    blocks::each(&mut dy, block * cols, |i, dy| slope(&y[i * block * cols..], cols, dy));
    back.give(x, dy);
}

kernel! {
    fn softmax<const FMA: bool>(cols: usize, values: &mut [f32]) {
        for row in values.chunks_exact_mut(cols) {
            let largest = lanes::max(row);
            // With nothing allowed every value is minus infinity, and so is the largest.
            let largest = if largest == f32::NEG_INFINITY { 0.0 } else { largest };
            row.iter_mut().for_each(|v| *v -= largest);
        }
        // Apart from the rows, so that short rows vectorise too.
        values.iter_mut().for_each(|v| *v = math::exp::<FMA>(*v));
        for row in values.chunks_exact_mut(cols) {
            let sum = lanes::sum(row);
            let scale = if sum == 0.0 { 0.0 } else { 1.0 / sum };
            row.iter_mut().for_each(|v| *v *= scale);
        }
    }
}

kernel! {
    fn slope<const FMA: bool>(y: &[f32], cols: usize, grad: &mut [f32]) {
        for (grad, y) in grad.chunks_exact_mut(cols).zip(y.chunks_exact(cols)) {
            let along = lanes::dot::<FMA>(grad, y);
            for (g, y) in grad.iter_mut().zip(y) {
                *g = y * fma::<FMA>(-1.0, along, *g);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck::{assert_gradients, random};

    #[test]
    fn gradient_of_softmax_matches_central_differences() {
        for cols in [3, 40] {
            assert_gradients(&[random(4, cols, 1)], |tape, v| tape.softmax(v[0]));
        }
    }

    #[test]
    fn gradient_of_softmax_where_matches_central_differences() {
        let allowed = Matrix::from_fn(4, 5, |i, j| f32::from(i != 2 && (i + j) % 3 != 0));
        assert_gradients(&[random(4, 5, 1)], |tape, v| {
            let allowed = tape.constant(allowed.clone());
            tape.softmax_where(v[0], allowed)
        });
    }

    #[test]
    fn large_values_do_not_overflow_and_empty_rows_are_zero() {
        let mut tape = Tape::new();
        let x = tape.constant(Matrix::from_rows(&[[1000.0, 1000.0], [5.0, 6.0]]));
        let allowed = tape.constant(Matrix::from_rows(&[[1.0, 1.0], [0.0, 0.0]]));
        let y = tape.softmax_where(x, allowed);
        assert_eq!(*tape.value(y), Matrix::from_rows(&[[0.5, 0.5], [0.0, 0.0]]));
    }
}
