//! The operations: one file each, with value, gradient and gradient check side by side.
//!
//! An operation is a method of [`Tape`](crate::Tape) that computes its value and pushes it with an [`Op`]: the
//! inputs, and what the gradient needs besides them. To add one: a new file with the method, the backward
//! function and a test that calls `assert_gradients`; a variant here; its arm in `backward`, and in `recycle` if
//! it keeps a buffer.

pub(crate) mod activation;
pub(crate) mod affine;
mod columns;
mod cosine;
pub(crate) mod cross_entropy;
pub(crate) mod dropout;
mod elementwise;
pub(crate) mod factor;
mod gather;
mod grouped;
mod likelihood;
mod log_sum_exp;
mod loss;
mod norm;
mod rows;
mod segment;
mod softmax;
mod trace_exp;

use crate::matrix::Matrix;
use crate::params::ParamId;
use crate::pool::Pool;
use crate::tape::{Backward, Var};

/// How a value came to be.
#[derive(Debug)]
pub(crate) enum Op {
    Leaf,
    Param(ParamId),
    Activate(activation::Activate),
    Affine(affine::Affine),
    Binary(elementwise::Binary, Var, Var),
    BroadcastRow(Var),
    Concat(columns::Concat),
    ConcatRows(gather::ConcatRows),
    Cosine(cosine::Cosine),
    CrossEntropy(cross_entropy::CrossEntropy),
    Gather(gather::Gather),
    Grouped(grouped::Grouped),
    L2Normalise(norm::L2Normalise),
    LayerNorm(norm::LayerNorm),
    Likelihood(likelihood::Likelihood),
    LogSumExp(log_sum_exp::LogSumExp),
    Loss(loss::Loss),
    Reshape(Var),
    RowDot(Var, Var),
    RowSum(Var),
    ScaleRows(Var, Var),
    Segment(segment::Segment),
    SegmentSoftmax(segment::SegmentSoftmax),
    SliceCols(columns::SliceCols),
    SliceRows(gather::SliceRows),
    Softmax(Var),
    Sum(loss::Sum),
    TraceExp(trace_exp::TraceExp),
    Transpose(Var),
    Unary(elementwise::Unary, Var),
    WeightedSum(segment::WeightedSum),
}

impl Op {
    /// Passes the gradient `dy` of the value `output` on to the inputs.
    pub(crate) fn backward(&self, back: &mut Backward<'_>, output: &Matrix, dy: Vec<f32>) {
        match self {
            Op::Leaf | Op::Param(_) => back.pool.give(dy),
            Op::Activate(op) => op.backward(back, output, dy),
            Op::Affine(op) => op.backward(back, output, dy),
            Op::Binary(op, a, b) => op.backward(back, output, *a, *b, dy),
            Op::BroadcastRow(x) => rows::broadcast_row_backward(back, output, *x, dy),
            Op::Concat(op) => op.backward(back, output, dy),
            Op::ConcatRows(op) => op.backward(back, dy),
            Op::Cosine(op) => op.backward(back, output, dy),
            Op::CrossEntropy(op) => op.backward(back, dy),
            Op::Gather(op) => op.backward(back, output, dy),
            Op::Grouped(op) => op.backward(back, output, dy),
            Op::L2Normalise(op) => op.backward(back, output, dy),
            Op::LayerNorm(op) => op.backward(back, output, dy),
            Op::Likelihood(op) => op.backward(back, dy),
            Op::LogSumExp(op) => op.backward(back, dy),
            Op::Loss(op) => op.backward(back, dy),
            Op::Reshape(x) => back.give(*x, dy),
            Op::RowDot(a, b) => rows::row_dot_backward(back, *a, *b, dy),
            Op::RowSum(x) => rows::row_sum_backward(back, *x, dy),
            Op::ScaleRows(x, factors) => rows::scale_rows_backward(back, *x, *factors, dy),
            Op::Segment(op) => op.backward(back, output, dy),
            Op::SegmentSoftmax(op) => op.backward(back, output, dy),
            Op::SliceCols(op) => op.backward(back, output, dy),
            Op::SliceRows(op) => op.backward(back, output, dy),
            Op::Softmax(x) => softmax::softmax_backward(back, output, *x, dy),
            Op::Sum(op) => op.backward(back, dy),
            Op::TraceExp(op) => op.backward(back, dy),
            Op::Transpose(x) => columns::transpose_backward(back, output, *x, dy),
            Op::Unary(op, x) => op.backward(back, output, *x, dy),
            Op::WeightedSum(op) => op.backward(back, output, dy),
        }
    }

    /// Returns the buffers it kept.
    pub(crate) fn recycle(self, pool: &mut Pool) {
        match self {
            Op::Activate(op) => op.slope.recycle(pool),
            Op::Affine(op) => op.recycle(pool),
            Op::Cosine(op) => op.recycle(pool),
            Op::CrossEntropy(op) => op.recycle(pool),
            Op::Grouped(op) => op.recycle(pool),
            Op::L2Normalise(op) => op.recycle(pool),
            Op::LayerNorm(op) => op.recycle(pool),
            Op::Likelihood(op) => op.recycle(pool),
            Op::LogSumExp(op) => op.recycle(pool),
            Op::TraceExp(op) => op.recycle(pool),
            _ => {}
        }
    }
}
