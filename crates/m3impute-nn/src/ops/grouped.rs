//! A linear map for each group of rows, for instance one for each column of a table.
//!
//! Rows are taken group by group, a block of one group at a time, so that each block is a matrix product.
//! Rows that are sorted by group are used in place; others are gathered into scratch memory.

use std::ops::Range;
use std::sync::Arc;

use crate::blocks;
use crate::gemm::{self, Write};
use crate::index::{Index, Inverse};
use crate::matrix::Matrix;
use crate::ops::activation::{Epilogue, Slope};
use crate::ops::{Op, affine, segment};
use crate::pool::Pool;
use crate::tape::{Backward, Tape, Var};

#[derive(Debug)]
pub(crate) struct Grouped {
    x: Var,
    w: Var,
    b: Option<Var>,
    groups: Arc<Index>,
    slope: Slope,
}

/// Rows of one group: `order[rows]`.
struct Piece {
    group: usize,
    rows: Range<usize>,
}

/// All rows in pieces of at most `most`, group by group.
fn pieces(inverse: &Inverse, most: usize) -> Vec<Piece> {
    let of_group = |group| {
        let range = inverse.range(group);
        range.clone().step_by(most).map(move |from| Piece { group, rows: from..range.end.min(from + most) })
    };
    (0..inverse.target_rows()).flat_map(of_group).collect()
}

/// Cuts `data` into consecutive parts as long as the pieces, `cols` values a row; empty parts if it is empty.
fn parts<'a>(mut data: &'a mut [f32], pieces: &[Piece], cols: usize) -> Vec<&'a mut [f32]> {
    let cut = |piece: &Piece| {
        let len = if data.is_empty() { 0 } else { piece.rows.len() * cols };
        let (part, rest) = std::mem::take(&mut data).split_at_mut(len);
        data = rest;
        part
    };
    pieces.iter().map(cut).collect()
}

/// The rows of a piece: in place if they are neighbours, else copied to `scratch`.
fn rows_of<'a>(inverse: &Inverse, rows: Range<usize>, x: &'a [f32], cols: usize, scratch: &'a mut [f32]) -> &'a [f32] {
    if inverse.sorted {
        &x[rows.start * cols..rows.end * cols]
    } else {
        let scratch = &mut scratch[..rows.len() * cols];
        affine::add_gathered(Write::Set, x, cols, &inverse.order[rows], scratch);
        scratch
    }
}

impl Tape {
    /// `act(x_i w[g]^T + b[g])` for row `i` in group `g`, of `x` `[n, in]`, `w` `[groups * out, in]` (the weights
    /// of the groups one below the other) and `b` `[groups, out]`.
    ///
    /// Rows sorted by group save a copy.
    ///
    /// ```
    /// use m3impute_nn::{Activation, Index, Matrix, Tape};
    ///
    /// let mut tape = Tape::new();
    /// let x = tape.constant(Matrix::from_rows(&[[1.0, 2.0], [1.0, 2.0]]));
    /// let w = tape.constant(Matrix::from_rows(&[[1.0, 1.0], [10.0, 10.0]])); // two groups, one output
    /// let y = tape.grouped_linear(x, w, None, &Index::new(vec![1, 0], 2), Activation::None);
    /// assert_eq!(tape.value(y).as_slice(), [30.0, 3.0]);
    /// ```
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn grouped_linear(
        &mut self,
        x: Var,
        w: Var,
        b: Option<Var>,
        groups: &Arc<Index>,
        epilogue: impl Into<Epilogue>,
    ) -> Var {
        let epilogue = epilogue.into().for_tape(self);
        let (rows, k) = self.shape(x);
        let out = self.shape(w).0 / groups.target_rows().max(1);
        assert_eq!(groups.len(), rows, "groups of rows: expected `{rows}`, got `{}`", groups.len());
        self.expect(w, (groups.target_rows() * out, k), "weights of a grouped linear map");
        if let Some(b) = b {
            self.expect(b, (groups.target_rows(), out), "biases of a grouped linear map");
        }
        let needs_grad = [Some(x), Some(w), b].into_iter().flatten().any(|v| self.needs_grad(v));
        let mut result = self.buffer(rows * out);
        let mut slope = epilogue.slope_buffer(self, rows * out, needs_grad);
        let inverse = groups.inverse();
        let mut by_group = if inverse.sorted { Vec::new() } else { self.buffer(rows * out) }; // [n, out]
        let (input, weight) = (self.value(x).as_slice(), self.value(w).as_slice());
        let bias = b.map(|b| self.value(b).as_slice());

        let pieces = pieces(inverse, blocks::product_rows(rows, k.max(out)));
        let products = if inverse.sorted { &mut result } else { &mut by_group };
        let tasks: Vec<_> = pieces.iter().zip(parts(products, &pieces, out)).collect();
        blocks::run(rows * k.max(out), tasks, |(piece, result)| {
            let scratch = if inverse.sorted { 0 } else { piece.rows.len() * k };
            gemm::with_scratch(scratch, |scratch| {
                let x = rows_of(inverse, piece.rows.clone(), input, k, scratch);
                let w = &weight[piece.group * out * k..][..out * k];
                gemm::nt(Write::Set, (piece.rows.len(), k, out), x, w, result);
            });
        });
        let block = blocks::rows(out);
        blocks::each_pair(rows * out, (&mut result, block * out), (&mut slope, block * out), |i, result, slope| {
            let range = i * block..i * block + result.len() / out;
            if !inverse.sorted {
                affine::add_gathered(Write::Set, &by_group, out, &inverse.rank[range.clone()], result);
            }
            if let Some(bias) = bias {
                affine::add_gathered(Write::Add, bias, out, &groups.targets()[range], result);
            }
            epilogue.finish(i, result, slope);
        });
        self.recycle(by_group);
        let op = Op::Grouped(Grouped { x, w, b, groups: Arc::clone(groups), slope: epilogue.slope(slope) });
        self.push(Matrix::from_parts(rows, out, result), needs_grad, op)
    }
}

impl Grouped {
    pub(crate) fn recycle(self, pool: &mut Pool) {
        self.slope.recycle(pool);
    }

    pub(crate) fn backward(&self, back: &mut Backward<'_>, output: &Matrix, mut dz: Vec<f32>) {
        let (rows, out) = output.shape();
        let inverse = self.groups.inverse();
        if !matches!(self.slope, Slope::One) {
            let len = blocks::ELEMENTS;
            blocks::each(&mut dz, len, |i, dz| self.slope.apply(i * len, output.as_slice(), dz));
        }
        if let Some(b) = self.b.filter(|b| back.needs_grad(*b)) {
            let (mut db, write) = back.take(b);
            segment::sum_into(back.pool, write, inverse, &dz, out, &mut db);
            back.put(b, db);
        }
        let (x, w) = (back.value(self.x), back.value(self.w).as_slice());
        let (x, k) = (x.as_slice(), x.cols());
        let block = blocks::product_rows(rows, k.max(out));
        let pieces = pieces(inverse, blocks::chunk_rows(rows, block));
        let size = out * k;
        let (wants_x, wants_w) = (back.needs_grad(self.x), back.needs_grad(self.w));
        let mut dws = back.pool.take(if wants_w { pieces.len() * size } else { 0 }); // [pieces, out * in]
        let (mut dx, write) = if wants_x { back.take(self.x) } else { (Vec::new(), Write::Set) };
        let in_place = inverse.sorted;
        let mut by_group = back.pool.take(if wants_x && !in_place { rows * k } else { 0 }); // [n, in]
        let (dx_target, dx_write) = if in_place { (&mut dx, write) } else { (&mut by_group, Write::Set) };

        let mut dw_parts = dws.chunks_mut(size.max(1));
        let tasks: Vec<_> = pieces
            .iter()
            .zip(parts(dx_target, &pieces, k))
            .map(|(piece, dx)| (piece, dx, dw_parts.next().unwrap_or_default()))
            .collect();
        blocks::run(rows * k.max(out), tasks, |(piece, dx, dw)| {
            gemm::with_scratch(if in_place { 0 } else { block * (out + k) }, |scratch| {
                let (dz_scratch, x_scratch) = scratch.split_at_mut(if in_place { 0 } else { block * out });
                for (i, from) in piece.rows.clone().step_by(block).enumerate() {
                    let range = from..piece.rows.end.min(from + block);
                    let count = range.len();
                    let dz = rows_of(inverse, range.clone(), &dz, out, dz_scratch);
                    if !dx.is_empty() {
                        let dx = &mut dx[i * block * k..][..count * k];
                        gemm::nn(dx_write, (count, out, k), dz, &w[piece.group * size..][..size], dx);
                    }
                    if !dw.is_empty() {
                        let write = if i == 0 { Write::Set } else { Write::Add };
                        gemm::tn(write, (out, count, k), dz, rows_of(inverse, range, x, k, x_scratch), dw);
                    }
                }
            });
        });

        if wants_x {
            if !in_place {
                segment::gather_into(write, &by_group, k, &inverse.rank, &mut dx);
            }
            back.put(self.x, dx);
        }
        if wants_w {
            let (mut dw, write) = back.take(self.w);
            let first_of = |group| pieces.partition_point(|p| p.group < group);
            blocks::each_of(dws.len(), &mut dw, size, |group, dw| {
                affine::sum_chunks(write, &dws[first_of(group) * size..first_of(group + 1) * size], dw);
            });
            back.put(self.w, dw);
        }
        back.pool.give(by_group);
        back.pool.give(dws);
        back.pool.give(dz);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Activation;
    use crate::gradcheck::{assert_gradients, random};

    #[test]
    fn gradient_of_grouped_linear_matches_central_differences() {
        let mixed = Index::new(vec![2, 0, 2, 3, 0, 2, 3], 4);
        let sorted = Index::new(vec![0, 0, 2, 2, 2, 3, 3], 4);
        for groups in [mixed, sorted] {
            for out in [1, 3] {
                let inputs = [random(7, 5, 1), random(4 * out, 5, 2), random(4, out, 3)];
                assert_gradients(&inputs, |tape, v| {
                    tape.grouped_linear(v[0], v[1], Some(v[2]), &groups, Activation::Gelu)
                });
                assert_gradients(&inputs[..2], |tape, v| {
                    tape.grouped_linear(v[0], v[1], None, &groups, Activation::None)
                });
            }
        }
    }

    #[test]
    fn each_group_has_a_linear_map_of_its_own() {
        // Enough rows that a group spans several pieces.
        let n = 3000;
        let (x, w, b) = (random(n, 4, 1), random(2 * 3, 4, 2), random(2, 3, 3));
        let groups = Index::new((0..n).map(|i| u32::from(i % 5 == 0)).collect(), 2);
        let mut tape = Tape::new();
        let (vx, vw, vb) = (tape.input(x.clone()), tape.input(w), tape.input(b));
        let y = tape.grouped_linear(vx, vw, Some(vb), &groups, Activation::Gelu);
        tape.backward_from(y, &Matrix::full(n, 3, 1.0));
        for group in 0..2 {
            let rows = groups.rows_of(group);
            let mut plain = Tape::new();
            let px = plain.input(Matrix::from_fn(rows.len(), 4, |i, j| x.get(rows[i] as usize, j)));
            let own = |m: &Matrix| Matrix::from_fn(3, 4, |i, j| m.get(group * 3 + i, j));
            let pw = plain.input(own(tape.value(vw)));
            let pb = plain.input(Matrix::row_vector(tape.value(vb).row(group).to_vec()));
            let py = plain.linear(px, pw, Some(pb), Activation::Gelu);
            plain.backward_from(py, &Matrix::full(rows.len(), 3, 1.0));
            let close = |a: &[f32], b: &[f32], by: f32| {
                a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() <= by, "{a} {b}"))
            };
            for (i, &row) in rows.iter().enumerate() {
                close(plain.value(py).row(i), tape.value(y).row(row as usize), 1e-6);
                close(plain.grad(px).unwrap().row(i), tape.grad(vx).unwrap().row(row as usize), 1e-6);
            }
            close(plain.grad(pw).unwrap().as_slice(), own(tape.grad(vw).unwrap()).as_slice(), 1e-2);
            close(plain.grad(pb).unwrap().row(0), tape.grad(vb).unwrap().row(group), 1e-2);
        }
    }
}
