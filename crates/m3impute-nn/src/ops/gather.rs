//! Rows picked by an index, and rows put together.

use std::sync::Arc;

use crate::gemm::Write;
use crate::index::Index;
use crate::matrix::Matrix;
use crate::ops::{Op, segment};
use crate::tape::{self, Backward, Tape, Var};

#[derive(Debug)]
pub(crate) struct Gather {
    x: Var,
    index: Arc<Index>,
}

#[derive(Debug)]
pub(crate) struct ConcatRows {
    parts: Vec<Var>,
}

#[derive(Debug)]
pub(crate) struct SliceRows {
    x: Var,
    from: usize,
}

impl Tape {
    /// `out[i] = x[index[i]]`: `[targets, d]` to `[rows, d]`.
    ///
    /// ```
    /// use m3impute_nn::{Index, Matrix, Tape};
    ///
    /// let mut tape = Tape::new();
    /// let x = tape.input(Matrix::from_rows(&[[1.0], [2.0]]));
    /// let y = tape.gather(x, &Index::new(vec![1, 1, 0], 2));
    /// tape.backward_from(y, &Matrix::full(3, 1, 1.0));
    /// assert_eq!(tape.value(y).as_slice(), [2.0, 2.0, 1.0]);
    /// assert_eq!(tape.grad(x).unwrap().as_slice(), [1.0, 2.0]);
    /// ```
    pub fn gather(&mut self, x: Var, index: &Arc<Index>) -> Var {
        let cols = self.shape(x).1;
        self.expect(x, (index.target_rows(), cols), "matrix to gather from");
        let mut out = self.buffer(index.len() * cols);
        segment::gather_into(Write::Set, self.value(x).as_slice(), cols, index.targets(), &mut out);
        let op = Op::Gather(Gather { x, index: Arc::clone(index) });
        self.push(Matrix::from_parts(index.len(), cols, out), self.needs_grad(x), op)
    }

    /// The matrices one below the other.
    ///
    /// # Panics
    /// If there are none, or they differ in width.
    pub fn concat_rows(&mut self, parts: &[Var]) -> Var {
        let cols = parts.first().map(|x| self.shape(*x).1).expect("there is something to put together");
        let rows = parts.iter().map(|x| self.shape(*x).0).sum();
        let mut out = self.buffer(rows * cols);
        let mut from = 0;
        for &x in parts {
            self.expect(x, (self.shape(x).0, cols), "rows to put together");
            let part = self.value(x).as_slice();
            tape::copy(&mut out[from..from + part.len()], part);
            from += part.len();
        }
        let needs_grad = parts.iter().any(|x| self.needs_grad(*x));
        let op = Op::ConcatRows(ConcatRows { parts: parts.to_vec() });
        self.push(Matrix::from_parts(rows, cols, out), needs_grad, op)
    }

    /// Rows `from..to`.
    pub fn slice_rows(&mut self, x: Var, from: usize, to: usize) -> Var {
        let (rows, cols) = self.shape(x);
        assert!(from <= to && to <= rows, "rows: expected within `0..{rows}`, got `{from}..{to}`");
        let mut out = self.buffer((to - from) * cols);
        tape::copy(&mut out, &self.value(x).as_slice()[from * cols..to * cols]);
        let op = Op::SliceRows(SliceRows { x, from });
        self.push(Matrix::from_parts(to - from, cols, out), self.needs_grad(x), op)
    }
}

impl Gather {
    pub(crate) fn backward(&self, back: &mut Backward<'_>, output: &Matrix, dy: Vec<f32>) {
        let (mut dx, write) = back.take(self.x);
        segment::sum_into(back.pool, write, self.index.inverse(), &dy, output.cols(), &mut dx);
        back.put(self.x, dx);
        back.pool.give(dy);
    }
}

impl ConcatRows {
    pub(crate) fn backward(&self, back: &mut Backward<'_>, dy: Vec<f32>) {
        let mut from = 0;
        for &x in &self.parts {
            let len = back.value(x).as_slice().len();
            back.add(x, &dy[from..from + len]);
            from += len;
        }
        back.pool.give(dy);
    }
}

impl SliceRows {
    pub(crate) fn backward(&self, back: &mut Backward<'_>, output: &Matrix, dy: Vec<f32>) {
        let (mut dx, write) = back.take(self.x);
        if write == Write::Set {
            dx.fill(0.0);
        }
        tape::add_assign(&mut dx[self.from * output.cols()..][..dy.len()], &dy);
        back.put(self.x, dx);
        back.pool.give(dy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck::{assert_gradients, random};

    #[test]
    fn gradient_of_gather_matches_central_differences() {
        let index = Index::new(vec![3, 0, 3, 1, 3, 0], 5);
        assert_gradients(&[random(5, 3, 1)], |tape, v| tape.gather(v[0], &index));
    }

    #[test]
    fn gradients_of_rows_put_together_and_cut_match_central_differences() {
        assert_gradients(&[random(2, 3, 1), random(4, 3, 2)], |tape, v| tape.concat_rows(&[v[0], v[1], v[0]]));
        assert_gradients(&[random(5, 3, 1)], |tape, v| {
            let (head, tail) = (tape.slice_rows(v[0], 0, 3), tape.slice_rows(v[0], 2, 5));
            tape.mul(head, tail)
        });
    }
}
