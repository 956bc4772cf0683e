//! Sums, means and softmax over the rows that share a target.
//!
//! Sums run over the rows of a target in increasing order, in parallel over targets; a target with many rows is
//! cut into fixed pieces whose sums are then added in order.

use std::sync::Arc;

use crate::blocks;
use crate::gemm::Write;
use crate::index::{Index, Inverse};
use crate::lanes;
use crate::math;
use crate::matrix::Matrix;
use crate::ops::Op;
use crate::ops::factor::{Factor, Side};
use crate::pool::Pool;
use crate::simd::{fma, kernel};
use crate::tape::{Backward, Tape, Var};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduce {
    Sum,
    Mean,
}

#[derive(Debug)]
pub(crate) struct Segment {
    x: Var,
    index: Arc<Index>,
    reduce: Reduce,
}

#[derive(Debug)]
pub(crate) struct SegmentSoftmax {
    x: Var,
    index: Arc<Index>,
}

#[derive(Debug)]
pub(crate) struct WeightedSum {
    x: Var,
    weights: Var,
    source: Arc<Index>,
    segments: Arc<Index>,
}

impl Tape {
    /// The sum of the rows of each target: `[rows, d]` to `[targets, d]`. A target without rows gets zeros.
    ///
    /// ```
    /// use m3impute_nn::{Index, Matrix, Tape};
    ///
    /// let mut tape = Tape::new();
    /// let x = tape.constant(Matrix::from_rows(&[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]));
    /// let y = tape.segment_sum(x, &Index::new(vec![1, 0, 1], 2));
    /// assert_eq!(*tape.value(y), Matrix::from_rows(&[[3.0, 4.0], [6.0, 8.0]]));
    /// ```
    pub fn segment_sum(&mut self, x: Var, index: &Arc<Index>) -> Var {
        self.segment(x, index, Reduce::Sum)
    }

    /// The mean of the rows of each target. A target without rows gets zeros.
    pub fn segment_mean(&mut self, x: Var, index: &Arc<Index>) -> Var {
        self.segment(x, index, Reduce::Mean)
    }

    fn segment(&mut self, x: Var, index: &Arc<Index>, reduce: Reduce) -> Var {
        let cols = self.shape(x).1;
        self.expect(x, (index.len(), cols), "rows of segments");
        let mut out = self.buffer(index.target_rows() * cols);
        let mut pool = self.lend_pool();
        sum_into(&mut pool, Write::Set, index.inverse(), self.value(x).as_slice(), cols, &mut out);
        self.return_pool(pool);
        if reduce == Reduce::Mean {
            let inverse = index.inverse();
            let rows = blocks::rows(cols);
            blocks::each(&mut out, rows * cols, |i, out| divide_by_count(&inverse.offsets[i * rows..], cols, out));
        }
        let op = Op::Segment(Segment { x, index: Arc::clone(index), reduce });
        self.push(Matrix::from_parts(index.target_rows(), cols, out), self.needs_grad(x), op)
    }

    /// The weighted sum of gathered rows for each segment: `out[t]` is the sum of `weights[i] * x[source[i]]` over the
    /// entries `i` with `segments[i] = t`, of `x` `[sources, d]` and `weights` `[entries, 1]`.
    ///
    /// It is [`Tape::gather`], [`Tape::scale_rows`] and [`Tape::segment_sum`] without the matrix `[entries, d]`.
    ///
    /// ```
    /// use m3impute_nn::{Index, Matrix, Tape};
    ///
    /// let mut tape = Tape::new();
    /// let x = tape.constant(Matrix::from_rows(&[[1.0, 2.0], [10.0, 20.0]]));
    /// let weights = tape.constant(Matrix::column(vec![1.0, 0.5, 3.0]));
    /// let (source, segments) = (Index::new(vec![0, 1, 1], 2), Index::new(vec![0, 0, 1], 2));
    /// let y = tape.weighted_sum(x, &source, weights, &segments);
    /// assert_eq!(*tape.value(y), Matrix::from_rows(&[[6.0, 12.0], [30.0, 60.0]]));
    /// ```
    pub fn weighted_sum(&mut self, x: Var, source: &Arc<Index>, weights: Var, segments: &Arc<Index>) -> Var {
        let cols = self.shape(x).1;
        let factor = Factor::Gathered(x, source);
        factor.check(self, segments.len(), cols);
        self.expect(weights, (segments.len(), 1), "weights of a sum");
        let factor = factor.save();
        let mut out = self.buffer(segments.target_rows() * cols);
        let mut pool = self.lend_pool();
        let side = factor.side(self.value(x).as_slice());
        let rows = Contribution::Weighted { side, weights: self.value(weights).as_slice() };
        sum_rows_into(&mut pool, Write::Set, segments.inverse(), rows, cols, &mut out);
        self.return_pool(pool);
        let needs_grad = self.needs_grad(x) || self.needs_grad(weights);
        let (source, segments) = (Arc::clone(source), Arc::clone(segments));
        let matrix = Matrix::from_parts(segments.target_rows(), cols, out);
        self.push(matrix, needs_grad, Op::WeightedSum(WeightedSum { x, weights, source, segments }))
    }

    /// Softmax over the rows of each target, in each column by itself: `[rows, heads]` to `[rows, heads]`.
    pub fn segment_softmax(&mut self, x: Var, index: &Arc<Index>) -> Var {
        let cols = self.shape(x).1;
        self.expect(x, (index.len(), cols), "rows of a segment softmax");
        let mut out = self.buffer(index.len() * cols);
        let mut of_target = self.buffer(index.target_rows() * cols);
        let mut pool = self.lend_pool();
        let (input, inverse) = (self.value(x).as_slice(), index.inverse());
        let (rows, targets) = (blocks::rows(cols), index.targets());
        blocks::each_of(index.len() * cols, &mut of_target, rows * cols, |i, largest| {
            maxima(input, cols, inverse, i * rows, largest)
        });
        blocks::each(&mut out, rows * cols, |i, out| {
            out.copy_from_slice(&input[i * rows * cols..][..out.len()]);
            exp_minus(&of_target, cols, &targets[i * rows..], out);
        });
        sum_into(&mut pool, Write::Set, inverse, &out, cols, &mut of_target);
        blocks::each(&mut out, rows * cols, |i, out| divide_by(&of_target, cols, &targets[i * rows..], out));
        self.return_pool(pool);
        self.recycle(of_target);
        let op = Op::SegmentSoftmax(SegmentSoftmax { x, index: Arc::clone(index) });
        self.push(Matrix::from_parts(index.len(), cols, out), self.needs_grad(x), op)
    }
}

impl Segment {
    pub(crate) fn backward(&self, back: &mut Backward<'_>, output: &Matrix, mut dy: Vec<f32>) {
        let cols = output.cols();
        let rows = blocks::rows(cols);
        if self.reduce == Reduce::Mean {
            let offsets = &self.index.inverse().offsets;
            blocks::each(&mut dy, rows * cols, |i, dy| divide_by_count(&offsets[i * rows..], cols, dy));
        }
        let (mut dx, write) = back.take(self.x);
        gather_into(write, &dy, cols, self.index.targets(), &mut dx);
        back.put(self.x, dx);
        back.pool.give(dy);
    }
}

impl WeightedSum {
    /// `dx[s]` is the sum of `weights[i] * dy[segments[i]]` over the entries of source `s`; `dweights[i]` the dot
    /// product of `dy[segments[i]]` and `x[source[i]]`.
    pub(crate) fn backward(&self, back: &mut Backward<'_>, output: &Matrix, dy: Vec<f32>) {
        let cols = output.cols();
        let (x, weights) = (back.value(self.x).as_slice(), back.value(self.weights).as_slice());
        let of_segment = Side::new(&dy, Some(self.segments.targets()));
        if back.needs_grad(self.x) {
            let (mut dx, write) = back.take(self.x);
            let rows = Contribution::Weighted { side: of_segment, weights };
            sum_rows_into(back.pool, write, self.source.inverse(), rows, cols, &mut dx);
            back.put(self.x, dx);
        }
        if back.needs_grad(self.weights) {
            let (mut dw, write) = back.take(self.weights);
            let block = blocks::rows(cols);
            let of_source = Side::new(x, Some(self.source.targets()));
            blocks::each_of(weights.len() * cols, &mut dw, block, |i, dw| {
                row_dots(write, i * block, cols, of_segment, of_source, dw);
            });
            back.put(self.weights, dw);
        }
        back.pool.give(dy);
    }
}

impl SegmentSoftmax {
    /// `dx = y * (dy - sum over the target of y * dy)`.
    pub(crate) fn backward(&self, back: &mut Backward<'_>, output: &Matrix, mut dy: Vec<f32>) {
        let (cols, y) = (output.cols(), output.as_slice());
        let (rows, targets) = (blocks::rows(cols), self.index.targets());
        blocks::each(&mut dy, rows * cols, |i, dy| multiply(&y[i * rows * cols..][..dy.len()], dy));
        let mut sums = back.pool.take(self.index.target_rows() * cols);
        sum_into(back.pool, Write::Set, self.index.inverse(), &dy, cols, &mut sums);
        blocks::each(&mut dy, rows * cols, |i, dy| {
            subtract_share(&y[i * rows * cols..][..dy.len()], &sums, cols, &targets[i * rows..], dy);
        });
        back.pool.give(sums);
        back.give(self.x, dy);
    }
}

/// What a row adds to the sum of its target.
#[derive(Clone, Copy)]
pub(crate) enum Contribution<'a> {
    /// Row `i` of `x`.
    Plain { x: &'a [f32] },
    /// Row `i` of `x` times row `i` of the other side.
    Product { x: &'a [f32], other: Side<'a> },
    /// Row `i` of the side, times `weights[i]`.
    Weighted { side: Side<'a>, weights: &'a [f32] },
}

/// `out[t] (+)=` the sum of the rows of target `t`.
pub(crate) fn sum_into(pool: &mut Pool, write: Write, inverse: &Inverse, x: &[f32], cols: usize, out: &mut [f32]) {
    sum_rows_into(pool, write, inverse, Contribution::Plain { x }, cols, out);
}

/// [`sum_into`] of any kind of row.
pub(crate) fn sum_rows_into(
    pool: &mut Pool,
    write: Write,
    inverse: &Inverse,
    rows: Contribution<'_>,
    cols: usize,
    out: &mut [f32],
) {
    if cols == 0 {
        return;
    }
    let (targets, work) = (inverse.target_rows(), inverse.order.len() * cols);
    if inverse.pieces.is_empty() {
        let block = blocks::rows(cols * (inverse.order.len() / targets.max(1) + 1));
        blocks::each_of(work, out, block * cols, |i, out| {
            sum_rows(write, rows, cols, &inverse.offsets[i * block..], &inverse.order, out);
        });
    } else {
        let count = inverse.pieces.len();
        let mut sums = pool.take(count * cols); // [pieces, cols]
        blocks::each_of(work, &mut sums, cols, |i, sum| {
            let piece = inverse.pieces[i];
            sum_rows(Write::Set, rows, cols, &[piece.from, piece.to], &inverse.order, sum);
        });
        // The pieces of a target are neighbours: each is its own row here.
        let block = blocks::rows(cols * (count / targets.max(1) + 1));
        let order: Vec<u32> = (0..count as u32).collect();
        blocks::each_of(count * cols, out, block * cols, |i, out| {
            let pieces = Contribution::Plain { x: &sums };
            sum_rows(write, pieces, cols, &inverse.piece_offsets[i * block..], &order, out);
        });
        pool.give(sums);
    }
}

/// `out[i] (+)= x[targets[i]]`.
pub(crate) fn gather_into(write: Write, x: &[f32], cols: usize, targets: &[u32], out: &mut [f32]) {
    let rows = blocks::rows(cols);
    blocks::each(out, rows * cols, |i, out| {
        super::affine::add_gathered(write, x, cols, &targets[i * rows..], out);
    });
}

kernel! {
    /// Row `t` of `out` takes the sum of the rows `order[offsets[t]..offsets[t + 1]]`.
    fn sum_rows<const FMA: bool>(
        write: Write,
        rows: Contribution<'_>,
        cols: usize,
        offsets: &[u32],
        order: &[u32],
        out: &mut [f32],
    ) {
        for (out, bounds) in out.chunks_exact_mut(cols).zip(offsets.windows(2)) {
            if write == Write::Set {
                out.fill(0.0);
            }
            // Four rows at a time, so that the sum is read and written a quarter as often.
            let (fours, rest) = order[bounds[0] as usize..bounds[1] as usize].as_chunks::<4>();
            match rows {
                Contribution::Plain { x } => {
                    let row = |i: u32| &x[i as usize * cols..][..cols];
                    for four in fours {
                        let [a, b, c, d] = four.map(row);
                        for (j, y) in out[..cols].iter_mut().enumerate() {
                            *y += (a[j] + b[j]) + (c[j] + d[j]);
                        }
                    }
                    for &i in rest {
                        out.iter_mut().zip(row(i)).for_each(|(y, a)| *y += a);
                    }
                }
                Contribution::Product { x, other } => {
                    let row = |i: u32| (&x[i as usize * cols..][..cols], other.row(i as usize, cols));
                    for four in fours {
                        let [(a, p), (b, q), (c, r), (d, s)] = four.map(row);
                        for (j, y) in out[..cols].iter_mut().enumerate() {
                            *y += fma::<FMA>(a[j], p[j], b[j] * q[j]) + fma::<FMA>(c[j], r[j], d[j] * s[j]);
                        }
                    }
                    for &i in rest {
                        let (a, p) = row(i);
                        out.iter_mut().zip(a.iter().zip(p)).for_each(|(y, (a, p))| *y = fma::<FMA>(*a, *p, *y));
                    }
                }
                Contribution::Weighted { side, weights } => {
                    let row = |i: u32| (side.row(i as usize, cols), weights[i as usize]);
                    for four in fours {
                        let [(a, p), (b, q), (c, r), (d, s)] = four.map(row);
                        for (j, y) in out[..cols].iter_mut().enumerate() {
                            *y += fma::<FMA>(a[j], p, b[j] * q) + fma::<FMA>(c[j], r, d[j] * s);
                        }
                    }
                    for &i in rest {
                        let (a, p) = row(i);
                        lanes::axpy::<FMA>(p, a, out);
                    }
                }
            }
        }
    }
}

kernel! {
    fn row_dots<const FMA: bool>(write: Write, from: usize, cols: usize, a: Side<'_>, b: Side<'_>, out: &mut [f32]) {
        for (r, out) in out.iter_mut().enumerate() {
            let dot = lanes::dot::<FMA>(a.row(from + r, cols), b.row(from + r, cols));
            *out = if write == Write::Add { *out + dot } else { dot };
        }
    }
}

kernel! {
    fn divide_by_count<const FMA: bool>(offsets: &[u32], cols: usize, values: &mut [f32]) {
        for (row, bounds) in values.chunks_exact_mut(cols).zip(offsets.windows(2)) {
            let count = (bounds[1] - bounds[0]).max(1) as f32;
            row.iter_mut().for_each(|v| *v /= count);
        }
    }
}

kernel! {
    fn maxima<const FMA: bool>(x: &[f32], cols: usize, inverse: &Inverse, first: usize, out: &mut [f32]) {
        for (t, out) in out.chunks_exact_mut(cols).enumerate() {
            out.fill(f32::NEG_INFINITY);
            for &i in inverse.rows_of(first + t) {
                for (m, v) in out.iter_mut().zip(&x[i as usize * cols..][..cols]) {
                    *m = if *v > *m { *v } else { *m };
                }
            }
        }
    }
}

kernel! {
    fn exp_minus<const FMA: bool>(largest: &[f32], cols: usize, targets: &[u32], values: &mut [f32]) {
        for (row, &t) in values.chunks_exact_mut(cols).zip(targets) {
            for (v, m) in row.iter_mut().zip(&largest[t as usize * cols..][..cols]) {
                *v -= m;
            }
        }
        // Apart from the gather above, so that a single column vectorises too.
        values.iter_mut().for_each(|v| *v = math::exp::<FMA>(*v));
    }
}

kernel! {
    fn divide_by<const FMA: bool>(sums: &[f32], cols: usize, targets: &[u32], values: &mut [f32]) {
        for (row, &t) in values.chunks_exact_mut(cols).zip(targets) {
            for (v, s) in row.iter_mut().zip(&sums[t as usize * cols..][..cols]) {
                *v /= s;
            }
        }
    }
}

kernel! {
    fn multiply<const FMA: bool>(x: &[f32], y: &mut [f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y *= x;
        }
    }
}

kernel! {
    /// `values -= y * sums[target]`.
    fn subtract_share<const FMA: bool>(y: &[f32], sums: &[f32], cols: usize, targets: &[u32], values: &mut [f32]) {
        for ((row, y), &t) in values.chunks_exact_mut(cols).zip(y.chunks_exact(cols)).zip(targets) {
            for ((v, y), s) in row.iter_mut().zip(y).zip(&sums[t as usize * cols..][..cols]) {
                *v -= y * s;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck::{assert_gradients, random};

    fn index() -> Arc<Index> {
        Index::new(vec![2, 0, 2, 4, 2, 0, 2, 2, 2, 4], 5)
    }

    #[test]
    fn gradients_of_segment_sum_and_mean_match_central_differences() {
        assert_gradients(&[random(10, 3, 1)], |tape, v| tape.segment_sum(v[0], &index()));
        assert_gradients(&[random(10, 3, 1)], |tape, v| tape.segment_mean(v[0], &index()));
    }

    #[test]
    fn gradient_of_segment_softmax_matches_central_differences() {
        for heads in [1, 3] {
            assert_gradients(&[random(10, heads, 1)], |tape, v| tape.segment_softmax(v[0], &index()));
        }
    }

    #[test]
    fn gradient_of_weighted_sum_matches_central_differences() {
        let source = Index::new(vec![0, 1, 2, 2, 1, 2, 2, 2, 2, 3], 4);
        assert_gradients(&[random(4, 3, 1), random(10, 1, 2)], |tape, v| {
            tape.weighted_sum(v[0], &source, v[1], &index())
        });
    }

    #[test]
    fn a_segment_softmax_sums_to_one_over_each_target() {
        let mut tape = Tape::new();
        let x = tape.constant(random(10, 2, 4));
        let y = tape.segment_softmax(x, &index());
        let sums = tape.segment_sum(y, &index());
        for t in [0, 2, 4] {
            assert!(tape.value(sums).row(t).iter().all(|s| (s - 1.0).abs() < 1e-6));
        }
        assert_eq!(tape.value(sums).row(1), [0.0, 0.0]);
    }

    #[test]
    fn a_target_with_many_rows_has_the_sum_of_all_of_them() {
        let n = 1500;
        let index = Index::new((0..n).map(|i| u32::from(i % 10 == 0)).collect(), 3);
        let mut tape = Tape::new();
        let x = tape.constant(Matrix::from_fn(n, 2, |i, j| if j == 0 { i as f32 } else { 1.0 }));
        let y = tape.segment_sum(x, &index);
        let tens: usize = (0..n).step_by(10).sum();
        let all: usize = (0..n).sum();
        let expected = Matrix::from_rows(&[[(all - tens) as f32, 1350.0], [tens as f32, 150.0], [0.0, 0.0]]);
        assert_eq!(*tape.value(y), expected);
    }
}
