//! Columns put together and cut; the same values in another shape.

use crate::blocks;
use crate::gemm::Write;
use crate::matrix::Matrix;
use crate::ops::Op;
use crate::tape::{self, Backward, Tape, Var};

#[derive(Debug)]
pub(crate) struct Concat {
    parts: Vec<Var>,
}

#[derive(Debug)]
pub(crate) struct SliceCols {
    x: Var,
    from: usize,
}

impl Tape {
    /// The matrices side by side: `[n, a]` and `[n, b]` to `[n, a + b]`.
    ///
    /// Where the next step is a linear map, [`Tape::affine`] with a term for each part saves the copy.
    ///
    /// # Panics
    /// If there are none, or they differ in height.
    pub fn concat(&mut self, parts: &[Var]) -> Var {
        let rows = parts.first().map(|x| self.shape(*x).0).expect("there is something to put together");
        let cols: usize = parts.iter().map(|x| self.shape(*x).1).sum();
        let mut out = self.buffer(rows * cols);
        let mut offset = 0;
        for &x in parts {
            let width = self.shape(x).1;
            self.expect(x, (rows, width), "columns to put together");
            paste(self.value(x).as_slice(), width, offset, cols, &mut out);
            offset += width;
        }
        let needs_grad = parts.iter().any(|x| self.needs_grad(*x));
        let op = Op::Concat(Concat { parts: parts.to_vec() });
        self.push(Matrix::from_parts(rows, cols, out), needs_grad, op)
    }

    /// Columns `from..to`.
    pub fn slice_cols(&mut self, x: Var, from: usize, to: usize) -> Var {
        let (rows, cols) = self.shape(x);
        assert!(from <= to && to <= cols, "columns: expected within `0..{cols}`, got `{from}..{to}`");
        let mut out = self.buffer(rows * (to - from));
        cut(Write::Set, self.value(x).as_slice(), cols, from, to - from, &mut out);
        let op = Op::SliceCols(SliceCols { x, from });
        self.push(Matrix::from_parts(rows, to - from, out), self.needs_grad(x), op)
    }

    /// The same values, row after row, in another shape.
    pub fn reshape(&mut self, x: Var, rows: usize, cols: usize) -> Var {
        let got = self.shape(x);
        assert_eq!(
            got.0 * got.1,
            rows * cols,
            "reshape: expected the size of [{}, {}], got [{rows}, {cols}]",
            got.0,
            got.1
        );
        let mut out = self.buffer(rows * cols);
        tape::copy(&mut out, self.value(x).as_slice());
        self.push(Matrix::from_parts(rows, cols, out), self.needs_grad(x), Op::Reshape(x))
    }

    /// Rows as columns.
    pub fn transpose(&mut self, x: Var) -> Var {
        let (rows, cols) = self.shape(x);
        let mut out = self.buffer(rows * cols);
        transpose_into(self.value(x).as_slice(), rows, cols, &mut out);
        self.push(Matrix::from_parts(cols, rows, out), self.needs_grad(x), Op::Transpose(x))
    }
}

impl Concat {
    pub(crate) fn backward(&self, back: &mut Backward<'_>, output: &Matrix, dy: Vec<f32>) {
        let mut offset = 0;
        for &x in &self.parts {
            let width = back.value(x).cols();
            if back.needs_grad(x) {
                let (mut dx, write) = back.take(x);
                cut(write, &dy, output.cols(), offset, width, &mut dx);
                back.put(x, dx);
            }
            offset += width;
        }
        back.pool.give(dy);
    }
}

impl SliceCols {
    pub(crate) fn backward(&self, back: &mut Backward<'_>, output: &Matrix, dy: Vec<f32>) {
        let (mut dx, write) = back.take(self.x);
        if write == Write::Set {
            dx.fill(0.0);
        }
        let (cols, width) = (back.value(self.x).cols(), output.cols());
        let rows = blocks::rows(cols);
        blocks::each(&mut dx, rows * cols, |i, dx| {
            for (r, row) in dx.chunks_exact_mut(cols).enumerate() {
                let grad = &dy[(i * rows + r) * width..][..width];
                row[self.from..self.from + width].iter_mut().zip(grad).for_each(|(a, b)| *a += b);
            }
        });
        back.put(self.x, dx);
        back.pool.give(dy);
    }
}

pub(crate) fn transpose_backward(back: &mut Backward<'_>, output: &Matrix, x: Var, dy: Vec<f32>) {
    let mut dx = back.pool.take(dy.len());
    transpose_into(&dy, output.rows(), output.cols(), &mut dx);
    back.pool.give(dy);
    back.give(x, dx);
}

fn transpose_into(x: &[f32], rows: usize, cols: usize, out: &mut [f32]) {
    let block = blocks::rows(rows);
    blocks::each(out, block * rows, |i, out| {
        for (c, row) in out.chunks_exact_mut(rows).enumerate() {
            for (r, v) in row.iter_mut().enumerate() {
                *v = x[r * cols + i * block + c];
            }
        }
    });
}

/// Writes `x` of width `width` into the columns of `out` from `offset`.
fn paste(x: &[f32], width: usize, offset: usize, cols: usize, out: &mut [f32]) {
    let rows = blocks::rows(cols);
    blocks::each(out, rows * cols, |i, out| {
        for (r, row) in out.chunks_exact_mut(cols).enumerate() {
            row[offset..offset + width].copy_from_slice(&x[(i * rows + r) * width..][..width]);
        }
    });
}

/// `out (+)=` the columns of `x` from `offset`.
fn cut(write: Write, x: &[f32], cols: usize, offset: usize, width: usize, out: &mut [f32]) {
    let rows = blocks::rows(width);
    blocks::each(out, rows * width, |i, out| {
        for (r, row) in out.chunks_exact_mut(width).enumerate() {
            let from = &x[(i * rows + r) * cols + offset..][..width];
            match write {
                Write::Set => row.copy_from_slice(from),
                Write::Add => row.iter_mut().zip(from).for_each(|(a, b)| *a += b),
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck::{assert_gradients, random};

    #[test]
    fn gradients_of_columns_put_together_and_cut_match_central_differences() {
        assert_gradients(&[random(4, 2, 1), random(4, 3, 2)], |tape, v| tape.concat(&[v[0], v[1], v[0]]));
        assert_gradients(&[random(4, 5, 1)], |tape, v| {
            let (left, right) = (tape.slice_cols(v[0], 0, 3), tape.slice_cols(v[0], 2, 5));
            tape.mul(left, right)
        });
    }

    #[test]
    fn gradients_of_reshape_and_transpose_match_central_differences() {
        assert_gradients(&[random(4, 6, 1)], |tape, v| tape.reshape(v[0], 8, 3));
        assert_gradients(&[random(4, 6, 1)], |tape, v| tape.transpose(v[0]));
    }

    #[test]
    fn a_cut_undoes_putting_together() {
        let mut tape = Tape::new();
        let (a, b) = (random(3, 2, 1), random(3, 4, 2));
        let (va, vb) = (tape.constant(a.clone()), tape.constant(b.clone()));
        let both = tape.concat(&[va, vb]);
        let (x, y) = (tape.slice_cols(both, 0, 2), tape.slice_cols(both, 2, 6));
        assert_eq!((tape.value(x), tape.value(y)), (&a, &b));
    }
}
