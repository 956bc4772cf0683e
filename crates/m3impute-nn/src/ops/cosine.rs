//! Cosine similarity of pairs of rows.

use crate::blocks;
use crate::gemm::Write;
use crate::lanes;
use crate::matrix::Matrix;
use crate::ops::Op;
use crate::pool::Pool;
use crate::simd::{fma, kernel};
use crate::tape::{Backward, Tape, Var};

/// Least norm that is divided by, as in PyTorch.
const NORM_FLOOR: f32 = 1e-8;

#[derive(Debug)]
pub(crate) struct Cosine {
    a: Var,
    b: Var,
    /// Norms of both rows, at least the floor, `[n, 2]`.
    norms: Vec<f32>,
}

impl Tape {
    /// `a . b / (max(|a|, 1e-8) max(|b|, 1e-8))` of row `i` of `a` and of `b`: `[n, d]` to `[n, 1]`.
    ///
    /// ```
    /// use m3impute_nn::{Matrix, Tape};
    ///
    /// let mut tape = Tape::new();
    /// let a = tape.constant(Matrix::from_rows(&[[2.0, 0.0], [0.0, 0.0]]));
    /// let b = tape.constant(Matrix::from_rows(&[[3.0, 4.0], [1.0, 1.0]]));
    /// let y = tape.cosine_similarity(a, b);
    /// assert_eq!(tape.value(y).as_slice(), [0.6, 0.0]);
    /// ```
    pub fn cosine_similarity(&mut self, a: Var, b: Var) -> Var {
        let (rows, cols) = self.shape(a);
        self.expect(b, (rows, cols), "right side of a cosine similarity");
        let mut out = self.buffer(rows); // [n, 1]
        let mut norms = self.buffer(rows * 2); // [n, 2]
        let (x, y) = (self.value(a).as_slice(), self.value(b).as_slice());
        let block = blocks::rows(cols);
        blocks::each_pair(rows * cols, (&mut out, block), (&mut norms, block * 2), |i, out, norms| {
            cosine(&x[i * block * cols..], &y[i * block * cols..], cols, out, norms);
        });
        let needs_grad = self.needs_grad(a) || self.needs_grad(b);
        let op = Op::Cosine(Cosine { a, b, norms });
        self.push(Matrix::from_parts(rows, 1, out), needs_grad, op)
    }
}

impl Cosine {
    pub(crate) fn recycle(self, pool: &mut Pool) {
        pool.give(self.norms);
    }

    /// `da = dy * (b / (|a| |b|) - y * a / |a|^2)`, and the same for `b`.
    pub(crate) fn backward(&self, back: &mut Backward<'_>, output: &Matrix, dy: Vec<f32>) {
        let (wants_a, wants_b) = (back.needs_grad(self.a), back.needs_grad(self.b));
        if self.a == self.b {
            // One gradient cannot be taken out twice.
            self.pass(back, output, &dy, (wants_a, false));
            self.pass(back, output, &dy, (false, wants_b));
        } else {
            self.pass(back, output, &dy, (wants_a, wants_b));
        }
        back.pool.give(dy);
    }

    fn pass(&self, back: &mut Backward<'_>, output: &Matrix, dy: &[f32], (wants_a, wants_b): (bool, bool)) {
        let (x, z, y) = (back.value(self.a), back.value(self.b).as_slice(), output.as_slice());
        let (x, cols) = (x.as_slice(), x.cols());
        let block = blocks::rows(cols);
        let (mut da, write_a) = if wants_a { back.take(self.a) } else { (Vec::new(), Write::Set) };
        let (mut db, write_b) = if wants_b { back.take(self.b) } else { (Vec::new(), Write::Set) };
        let grads = |i: usize, da: &mut [f32], db: &mut [f32]| {
            let (row, from) = (i * block, i * block * cols);
            let (norms, y, dy) = (&self.norms[row * 2..], &y[row..], &dy[row..]);
            let rows = Rows { x: &x[from..], z: &z[from..], norms, y, dy };
            cosine_backward(cols, rows, (write_a, da), (write_b, db));
        };
        if da.is_empty() {
            blocks::each(&mut db, block * cols, |i, db| grads(i, &mut [], db));
        } else {
            blocks::each_pair(x.len(), (&mut da, block * cols), (&mut db, block * cols), grads);
        }
        if wants_a {
            back.put(self.a, da);
        }
        if wants_b {
            back.put(self.b, db);
        }
    }
}

/// What the gradients of some rows are computed from.
#[derive(Clone, Copy)]
struct Rows<'a> {
    x: &'a [f32],
    z: &'a [f32],
    norms: &'a [f32],
    y: &'a [f32],
    dy: &'a [f32],
}

kernel! {
    fn cosine<const FMA: bool>(x: &[f32], y: &[f32], cols: usize, out: &mut [f32], norms: &mut [f32]) {
        for (i, (out, norms)) in out.iter_mut().zip(norms.as_chunks_mut::<2>().0).enumerate() {
            let (x, y) = (&x[i * cols..][..cols], &y[i * cols..][..cols]);
            let a = lanes::dot::<FMA>(x, x).sqrt().max(NORM_FLOOR);
            let b = lanes::dot::<FMA>(y, y).sqrt().max(NORM_FLOOR);
            *out = lanes::dot::<FMA>(x, y) / (a * b);
            *norms = [a, b];
        }
    }
}

kernel! {
    /// An empty gradient is not wanted.
    fn cosine_backward<const FMA: bool>(
        cols: usize,
        rows: Rows<'_>,
        a: (Write, &mut [f32]),
        b: (Write, &mut [f32]),
    ) {
        let ((write_a, da), (write_b, db)) = (a, b);
        for i in 0..da.len().max(db.len()) / cols {
            let range = i * cols..(i + 1) * cols;
            let (x, z) = (&rows.x[range.clone()], &rows.z[range.clone()]);
            let [a, b] = [rows.norms[2 * i], rows.norms[2 * i + 1]];
            let across = rows.dy[i] / (a * b);
            // At the floor a norm is a constant.
            let along = |norm: f32| if norm > NORM_FLOOR { rows.dy[i] * rows.y[i] / (norm * norm) } else { 0.0 };
            let set = |write: Write, along: f32, own: &[f32], other: &[f32], grad: &mut [f32]| {
                let triples = grad.iter_mut().zip(own).zip(other);
                match write {
                    Write::Set => triples.for_each(|((g, x), z)| *g = fma::<FMA>(across, *z, -along * x)),
                    Write::Add => triples.for_each(|((g, x), z)| *g += fma::<FMA>(across, *z, -along * x)),
                }
            };
            if !da.is_empty() {
                set(write_a, along(a), x, z, &mut da[range.clone()]);
            }
            if !db.is_empty() {
                set(write_b, along(b), z, x, &mut db[range]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::gradcheck::{assert_gradients, random};

    #[test]
    fn gradient_of_cosine_similarity_matches_central_differences() {
        for cols in [3, 40] {
            let inputs = [random(4, cols, 1), random(4, cols, 2)];
            assert_gradients(&inputs, |tape, v| tape.cosine_similarity(v[0], v[1]));
        }
        assert_gradients(&[random(4, 5, 1)], |tape, v| tape.cosine_similarity(v[0], v[0]));
        assert_gradients(&[random(4, 5, 1)], |tape, v| {
            let other = tape.constant(random(4, 5, 3));
            let (left, right) = (tape.cosine_similarity(v[0], other), tape.cosine_similarity(other, v[0]));
            tape.add(left, right)
        });
        assert_gradients(&[random(4, 5, 1)], |tape, v| {
            let doubled = tape.square(v[0]);
            tape.cosine_similarity(v[0], doubled)
        });
    }
}
