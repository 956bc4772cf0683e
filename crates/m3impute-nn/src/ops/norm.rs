//! Rows brought to a common scale: LayerNorm and the L2 norm.

use crate::blocks;
use crate::gemm::Write;
use crate::lanes;
use crate::matrix::Matrix;
use crate::ops::{Op, affine};
use crate::pool::Pool;
use crate::simd::{fma, kernel};
use crate::tape::{Backward, Tape, Var};

/// Added to the variance, as in PyTorch.
const VARIANCE_FLOOR: f32 = 1e-5;
/// Least norm that is divided by, as in PyTorch.
const NORM_FLOOR: f32 = 1e-12;

#[derive(Debug)]
pub(crate) struct LayerNorm {
    x: Var,
    weight: Var,
    bias: Var,
    /// Mean and inverse deviation of each row, `[n, 2]`.
    stats: Vec<f32>,
}

#[derive(Debug)]
pub(crate) struct L2Normalise {
    x: Var,
    /// Norm of each row, at least the floor.
    norms: Vec<f32>,
}

impl Tape {
    /// `weight * (x - mean) / sqrt(variance + 1e-5) + bias`, mean and variance of each row, of `x` `[n, d]` and
    /// `weight`, `bias` `[1, d]`.
    pub fn layer_norm(&mut self, x: Var, weight: Var, bias: Var) -> Var {
        let (rows, cols) = self.shape(x);
        self.expect(weight, (1, cols), "weight of a layer norm");
        self.expect(bias, (1, cols), "bias of a layer norm");
        let mut out = self.buffer(rows * cols);
        let mut stats = self.buffer(rows * 2); // [n, 2]
        let (input, w, b) = (self.value(x).as_slice(), self.value(weight).as_slice(), self.value(bias).as_slice());
        let block = blocks::rows(cols);
        blocks::each_pair(rows * cols, (&mut out, block * cols), (&mut stats, block * 2), |i, out, stats| {
            layer_norm(&input[i * block * cols..], w, b, out, stats);
        });
        let needs_grad = [x, weight, bias].iter().any(|v| self.needs_grad(*v));
        let op = Op::LayerNorm(LayerNorm { x, weight, bias, stats });
        self.push(Matrix::from_parts(rows, cols, out), needs_grad, op)
    }

    /// Each row divided by its L2 norm, or by 1e-12 if that is more.
    ///
    /// ```
    /// use m3impute_nn::{Matrix, Tape};
    ///
    /// let mut tape = Tape::new();
    /// let x = tape.constant(Matrix::from_rows(&[[3.0, 4.0], [0.0, 0.0]]));
    /// let y = tape.l2_normalise(x);
    /// assert_eq!(*tape.value(y), Matrix::from_rows(&[[0.6, 0.8], [0.0, 0.0]]));
    /// ```
    pub fn l2_normalise(&mut self, x: Var) -> Var {
        let (rows, cols) = self.shape(x);
        let mut out = self.buffer(rows * cols);
        let mut norms = self.buffer(rows); // [n]
        let input = self.value(x).as_slice();
        let block = blocks::rows(cols);
        blocks::each_pair(rows * cols, (&mut out, block * cols), (&mut norms, block), |i, out, norms| {
            l2_normalise(&input[i * block * cols..], cols, out, norms);
        });
        let op = Op::L2Normalise(L2Normalise { x, norms });
        self.push(Matrix::from_parts(rows, cols, out), self.needs_grad(x), op)
    }
}

impl LayerNorm {
    pub(crate) fn recycle(self, pool: &mut Pool) {
        pool.give(self.stats);
    }

    /// With `u` the normalised row and `g = dy * weight`: `dx = (g - mean(g) - u * mean(g * u)) / deviation`,
    /// `dweight` the sum of `dy * u`, `dbias` the sum of `dy`.
    pub(crate) fn backward(&self, back: &mut Backward<'_>, output: &Matrix, mut dy: Vec<f32>) {
        let (rows, cols) = output.shape();
        let (x, w) = (back.value(self.x).as_slice(), back.value(self.weight).as_slice());
        let chunk = blocks::chunk_rows(rows, blocks::rows(cols));
        let chunks = rows.div_ceil(chunk);
        let mut sums = back.pool.take_zeros(chunks * 2 * cols); // [chunks, 2 d]: dweight, then dbias
        blocks::each_pair(rows * cols, (&mut dy, chunk * cols), (&mut sums, 2 * cols), |i, dy, sums| {
            layer_norm_backward(&x[i * chunk * cols..], w, &self.stats[i * chunk * 2..], dy, sums);
        });
        let mut sum = back.pool.take(2 * cols);
        affine::sum_chunks(Write::Set, &sums, &mut sum);
        back.add(self.weight, &sum[..cols]);
        back.add(self.bias, &sum[cols..]);
        back.pool.give(sum);
        back.pool.give(sums);
        back.give(self.x, dy);
    }
}

impl L2Normalise {
    pub(crate) fn recycle(self, pool: &mut Pool) {
        pool.give(self.norms);
    }

    /// `dx = (dy - y * (y . dy)) / norm`.
    pub(crate) fn backward(&self, back: &mut Backward<'_>, output: &Matrix, mut dy: Vec<f32>) {
        let (cols, y) = (output.cols(), output.as_slice());
        let block = blocks::rows(cols);
        blocks::each(&mut dy, block * cols, |i, dy| {
            l2_normalise_backward(&y[i * block * cols..], &self.norms[i * block..], cols, dy);
        });
        back.give(self.x, dy);
    }
}

// The slices that are read start at the block and may run past it: the one written to says how far.

kernel! {
    fn layer_norm<const FMA: bool>(x: &[f32], w: &[f32], b: &[f32], out: &mut [f32], stats: &mut [f32]) {
        let cols = w.len();
        for ((out, x), stats) in out.chunks_exact_mut(cols).zip(x.chunks_exact(cols)).zip(stats.as_chunks_mut::<2>().0) {
            let mean = lanes::sum(x) / cols as f32;
            let inverse = 1.0 / (lanes::squares::<FMA>(x, mean) / cols as f32 + VARIANCE_FLOOR).sqrt();
            for (((o, x), w), b) in out.iter_mut().zip(x).zip(w).zip(b) {
                *o = fma::<FMA>((x - mean) * inverse, *w, *b);
            }
            *stats = [mean, inverse];
        }
    }
}

kernel! {
    fn layer_norm_backward<const FMA: bool>(x: &[f32], w: &[f32], stats: &[f32], dy: &mut [f32], sums: &mut [f32]) {
        let cols = w.len();
        let (dw, db) = sums.split_at_mut(cols);
        let rows = dy.chunks_exact_mut(cols).zip(x.chunks_exact(cols)).zip(stats.as_chunks::<2>().0);
        for ((dy, x), &[mean, inverse]) in rows {
            let g = lanes::dot::<FMA>(dy, w) / cols as f32;
            let gu = lanes::dot_centred::<FMA>(dy, w, x, mean) * inverse / cols as f32;
            for ((((dy, x), w), dw), db) in dy.iter_mut().zip(x).zip(w).zip(dw.iter_mut()).zip(db.iter_mut()) {
                let u = (x - mean) * inverse;
                *dw = fma::<FMA>(*dy, u, *dw);
                *db += *dy;
                *dy = fma::<FMA>(*dy, *w, -fma::<FMA>(u, gu, g)) * inverse;
            }
        }
    }
}

kernel! {
    fn l2_normalise<const FMA: bool>(x: &[f32], cols: usize, out: &mut [f32], norms: &mut [f32]) {
        for ((out, x), norm) in out.chunks_exact_mut(cols).zip(x.chunks_exact(cols)).zip(norms) {
            *norm = lanes::dot::<FMA>(x, x).sqrt().max(NORM_FLOOR);
            for (o, x) in out.iter_mut().zip(x) {
                *o = x / *norm;
            }
        }
    }
}

kernel! {
    fn l2_normalise_backward<const FMA: bool>(y: &[f32], norms: &[f32], cols: usize, dy: &mut [f32]) {
        for ((dy, y), &norm) in dy.chunks_exact_mut(cols).zip(y.chunks_exact(cols)).zip(norms) {
            // At the floor the norm is a constant.
            let along = if norm > NORM_FLOOR { lanes::dot::<FMA>(dy, y) } else { 0.0 };
            for (dy, y) in dy.iter_mut().zip(y) {
                *dy = fma::<FMA>(-along, *y, *dy) / norm;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck::{assert_gradients, random};

    #[test]
    fn gradient_of_layer_norm_matches_central_differences() {
        for cols in [3, 40] {
            let inputs = [random(4, cols, 1), random(1, cols, 2), random(1, cols, 3)];
            assert_gradients(&inputs, |tape, v| tape.layer_norm(v[0], v[1], v[2]));
        }
    }

    #[test]
    fn gradient_of_l2_normalise_matches_central_differences() {
        for cols in [3, 40] {
            assert_gradients(&[random(4, cols, 1)], |tape, v| tape.l2_normalise(v[0]));
        }
    }

    #[test]
    fn a_normalised_row_has_mean_zero_and_variance_one() {
        let mut tape = Tape::new();
        let x = tape.constant(Matrix::from_rows(&[[1.0, 2.0, 3.0, 6.0]]));
        let (w, b) = (tape.constant(Matrix::full(1, 4, 1.0)), tape.constant(Matrix::zeros(1, 4)));
        let y = tape.layer_norm(x, w, b);
        let deviation = (3.5f32 + 1e-5).sqrt();
        for (got, want) in tape.value(y).as_slice().iter().zip([-2.0, -1.0, 0.0, 3.0]) {
            assert!((got - want / deviation).abs() < 1e-6);
        }
    }
}
