//! Row by row: dot products, sums, scaling, the same row everywhere.

use crate::blocks;
use crate::gemm::Write;
use crate::lanes;
use crate::matrix::Matrix;
use crate::ops::{Op, affine};
use crate::simd::{fma, kernel};
use crate::tape::{Backward, Tape, Var};

impl Tape {
    /// The dot product of row `i` of `a` with row `i` of `b`: `[n, d]` to `[n, 1]`.
    ///
    /// ```
    /// use m3impute_nn::{Matrix, Tape};
    ///
    /// let mut tape = Tape::new();
    /// let a = tape.constant(Matrix::from_rows(&[[1.0, 2.0], [0.0, 1.0]]));
    /// let b = tape.constant(Matrix::from_rows(&[[3.0, 4.0], [5.0, 6.0]]));
    /// let y = tape.row_dot(a, b);
    /// assert_eq!(tape.value(y).as_slice(), [11.0, 6.0]);
    /// ```
    pub fn row_dot(&mut self, a: Var, b: Var) -> Var {
        let (rows, cols) = self.shape(a);
        self.expect(b, (rows, cols), "right side of a row-wise dot product");
        let mut out = self.buffer(rows);
        let (x, y) = (self.value(a).as_slice(), self.value(b).as_slice());
        let block = blocks::rows(cols);
        blocks::each_of(rows * cols, &mut out, block, |i, out| {
            dots(Write::Set, &x[i * block * cols..], &y[i * block * cols..], cols, out)
        });
        let needs_grad = self.needs_grad(a) || self.needs_grad(b);
        self.push(Matrix::from_parts(rows, 1, out), needs_grad, Op::RowDot(a, b))
    }

    /// The sum of each row: `[n, d]` to `[n, 1]`.
    pub fn row_sum(&mut self, x: Var) -> Var {
        let (rows, cols) = self.shape(x);
        let mut out = self.buffer(rows);
        let input = self.value(x).as_slice();
        let block = blocks::rows(cols);
        blocks::each_of(rows * cols, &mut out, block, |i, out| sums(&input[i * block * cols..], cols, out));
        self.push(Matrix::from_parts(rows, 1, out), self.needs_grad(x), Op::RowSum(x))
    }

    /// Row `i` of `x` times `factors[i]`, of `x` `[n, d]` and `factors` `[n, 1]`.
    pub fn scale_rows(&mut self, x: Var, factors: Var) -> Var {
        let (rows, cols) = self.shape(x);
        self.expect(factors, (rows, 1), "factors of rows");
        let mut out = self.buffer(rows * cols);
        let (input, by) = (self.value(x).as_slice(), self.value(factors).as_slice());
        let block = blocks::rows(cols);
        blocks::each(&mut out, block * cols, |i, out| {
            scale(Write::Set, &input[i * block * cols..], &by[i * block..], cols, out);
        });
        let needs_grad = self.needs_grad(x) || self.needs_grad(factors);
        self.push(Matrix::from_parts(rows, cols, out), needs_grad, Op::ScaleRows(x, factors))
    }

    /// The row vector `x` `[1, d]` as each of `rows` rows.
    pub fn broadcast_row(&mut self, x: Var, rows: usize) -> Var {
        let cols = self.shape(x).1;
        self.expect(x, (1, cols), "row to repeat");
        let mut out = self.buffer(rows * cols);
        let row = self.value(x).as_slice();
        let block = blocks::rows(cols);
        blocks::each(&mut out, block * cols, |_, out| out.chunks_exact_mut(cols).for_each(|o| o.copy_from_slice(row)));
        self.push(Matrix::from_parts(rows, cols, out), self.needs_grad(x), Op::BroadcastRow(x))
    }
}

pub(crate) fn row_dot_backward(back: &mut Backward<'_>, a: Var, b: Var, dy: Vec<f32>) {
    for (to, other) in [(a, b), (b, a)] {
        if back.needs_grad(to) {
            let (other, (mut grad, write)) = (back.value(other), back.take(to));
            let (cols, block) = (other.cols(), blocks::rows(other.cols()));
            blocks::each(&mut grad, block * cols, |i, grad| {
                scale(write, &other.as_slice()[i * block * cols..], &dy[i * block..], cols, grad);
            });
            back.put(to, grad);
        }
    }
    back.pool.give(dy);
}

pub(crate) fn row_sum_backward(back: &mut Backward<'_>, x: Var, dy: Vec<f32>) {
    let (mut dx, write) = back.take(x);
    let cols = back.value(x).cols();
    let block = blocks::rows(cols);
    blocks::each(&mut dx, block * cols, |i, dx| spread(write, &dy[i * block..], cols, dx));
    back.put(x, dx);
    back.pool.give(dy);
}

pub(crate) fn scale_rows_backward(back: &mut Backward<'_>, x: Var, factors: Var, mut dy: Vec<f32>) {
    let (input, by) = (back.value(x), back.value(factors).as_slice());
    let (cols, block) = (input.cols(), blocks::rows(input.cols()));
    if back.needs_grad(factors) {
        let (mut grad, write) = back.take(factors);
        blocks::each_of(dy.len(), &mut grad, block, |i, grad| {
            dots(write, &dy[i * block * cols..], &input.as_slice()[i * block * cols..], cols, grad);
        });
        back.put(factors, grad);
    }
    if back.needs_grad(x) {
        blocks::each(&mut dy, block * cols, |i, dy| scale_in_place(&by[i * block..], cols, dy));
    }
    back.give(x, dy);
}

pub(crate) fn broadcast_row_backward(back: &mut Backward<'_>, output: &Matrix, x: Var, dy: Vec<f32>) {
    let (rows, cols) = output.shape();
    let chunk = blocks::chunk_rows(rows, blocks::rows(cols));
    let mut sums = back.pool.take_zeros(rows.div_ceil(chunk) * cols); // [chunks, cols]
    blocks::each_of(dy.len(), &mut sums, cols, |i, sum| {
        affine::column_sums(&dy[i * chunk * cols..((i + 1) * chunk * cols).min(dy.len())], sum);
    });
    let (mut dx, write) = back.take(x);
    affine::sum_chunks(write, &sums, &mut dx);
    back.put(x, dx);
    back.pool.give(sums);
    back.pool.give(dy);
}

// The slices that are read start at the block and may run past it: the one written to says how far.

kernel! {
    fn dots<const FMA: bool>(write: Write, x: &[f32], y: &[f32], cols: usize, out: &mut [f32]) {
        for (i, out) in out.iter_mut().enumerate() {
            let dot = lanes::dot::<FMA>(&x[i * cols..][..cols], &y[i * cols..][..cols]);
            *out = if write == Write::Add { *out + dot } else { dot };
        }
    }
}

kernel! {
    fn sums<const FMA: bool>(x: &[f32], cols: usize, out: &mut [f32]) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = lanes::sum(&x[i * cols..][..cols]);
        }
    }
}

kernel! {
    fn scale<const FMA: bool>(write: Write, x: &[f32], factors: &[f32], cols: usize, out: &mut [f32]) {
        for ((out, x), &factor) in out.chunks_exact_mut(cols).zip(x.chunks_exact(cols)).zip(factors) {
            match write {
                Write::Set => out.iter_mut().zip(x).for_each(|(o, x)| *o = factor * x),
                Write::Add => out.iter_mut().zip(x).for_each(|(o, x)| *o = fma::<FMA>(factor, *x, *o)),
            }
        }
    }
}

kernel! {
    fn scale_in_place<const FMA: bool>(factors: &[f32], cols: usize, out: &mut [f32]) {
        for (out, &factor) in out.chunks_exact_mut(cols).zip(factors) {
            out.iter_mut().for_each(|o| *o *= factor);
        }
    }
}

kernel! {
    fn spread<const FMA: bool>(write: Write, values: &[f32], cols: usize, out: &mut [f32]) {
        for (out, &value) in out.chunks_exact_mut(cols).zip(values) {
            match write {
                Write::Set => out.fill(value),
                Write::Add => out.iter_mut().for_each(|o| *o += value),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::gradcheck::{assert_gradients, random};

    #[test]
    fn gradients_of_row_dot_and_row_sum_match_central_differences() {
        assert_gradients(&[random(4, 5, 1), random(4, 5, 2)], |tape, v| tape.row_dot(v[0], v[1]));
        assert_gradients(&[random(4, 5, 1)], |tape, v| tape.row_dot(v[0], v[0]));
        assert_gradients(&[random(4, 5, 1)], |tape, v| tape.row_sum(v[0]));
    }

    #[test]
    fn gradients_of_scale_rows_and_broadcast_row_match_central_differences() {
        assert_gradients(&[random(4, 5, 1), random(4, 1, 2)], |tape, v| tape.scale_rows(v[0], v[1]));
        assert_gradients(&[random(1, 5, 1), random(4, 5, 2)], |tape, v| {
            let rows = tape.broadcast_row(v[0], 4);
            tape.mul(rows, v[1])
        });
    }
}
