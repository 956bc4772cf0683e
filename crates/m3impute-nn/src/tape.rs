//! The tape: values in the order they were computed, and how to go back.

use std::sync::Arc;

use crate::blocks;
use crate::gemm::Write;
use crate::matrix::Matrix;
use crate::ops::Op;
use crate::params::{ParamId, Params};
use crate::pool::Pool;
use crate::simd::kernel;

/// A matrix on a [`Tape`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Var {
    index: u32,
    step: u32,
}

/// Records operations on matrices and computes their gradients in reverse.
///
/// The operations are methods: each computes its value at once and notes what its gradient needs. One tape
/// serves a whole training: [`Tape::reset`] forgets the step and keeps the buffers for the next.
///
/// ```
/// use m3impute_nn::{Activation, Matrix, Params, Tape};
///
/// let mut params = Params::new();
/// let weight = params.add("weight", Matrix::from_rows(&[[0.5, -1.0]])); // [1, 2]
/// let mut tape = Tape::new();
/// let x = tape.constant(Matrix::from_rows(&[[1.0, 2.0], [3.0, 4.0]])); // [2, 2]
/// let target = tape.constant(Matrix::zeros(2, 1)); // [2, 1]
/// let w = tape.param(&params, weight);
/// let y = tape.linear(x, w, None, Activation::None); // [2, 1]
/// let loss = tape.mse(y, target);
/// tape.backward(loss, &mut params);
/// assert_eq!(tape.scalar(loss), 4.25);
/// assert_eq!(params.grad(weight).row(0), [-9.0, -13.0]);
/// tape.reset();
/// ```
#[derive(Debug)]
pub struct Tape {
    nodes: Vec<Node>,
    grads: Vec<Option<Matrix>>,
    pool: Pool,
    step: u32,
    recording: bool,
}

#[derive(Debug)]
pub(crate) struct Node {
    value: Value,
    op: Op,
    needs_grad: bool,
}

#[derive(Debug)]
enum Value {
    /// From the pool of the tape, to which it returns.
    Pooled(Matrix),
    /// Handed over by the caller. Dropped at reset: kept, the pool would grow by one buffer a step.
    Given(Matrix),
    Shared(Arc<Matrix>),
}

impl Node {
    fn value(&self) -> &Matrix {
        match &self.value {
            Value::Pooled(matrix) | Value::Given(matrix) => matrix,
            Value::Shared(matrix) => matrix,
        }
    }
}

impl Default for Tape {
    fn default() -> Self {
        Self::new()
    }
}

impl Tape {
    /// A tape that records.
    pub fn new() -> Self {
        Self { nodes: Vec::new(), grads: Vec::new(), pool: Pool::default(), step: 0, recording: true }
    }

    /// A tape that only computes values: nothing is kept for gradients, and dropout passes its input on.
    pub fn inference() -> Self {
        Self { recording: false, ..Self::new() }
    }

    /// Whether gradients can be asked for.
    pub fn is_recording(&self) -> bool {
        self.recording
    }

    /// Forgets all values and keeps their buffers. Every [`Var`] of this tape becomes invalid.
    pub fn reset(&mut self) {
        for node in self.nodes.drain(..) {
            if let Value::Pooled(matrix) = node.value {
                self.pool.give(matrix.into_vec());
            }
            node.op.recycle(&mut self.pool);
        }
        for grad in self.grads.drain(..).flatten() {
            self.pool.give(grad.into_vec());
        }
        self.step = self.step.wrapping_add(1);
    }

    /// Enters a matrix without gradient.
    pub fn constant(&mut self, value: Matrix) -> Var {
        self.push_node(Node { value: Value::Given(value), op: Op::Leaf, needs_grad: false })
    }

    /// Enters a matrix without gradient that the caller keeps, without a copy.
    pub fn constant_shared(&mut self, value: &Arc<Matrix>) -> Var {
        self.push_node(Node { value: Value::Shared(Arc::clone(value)), op: Op::Leaf, needs_grad: false })
    }

    /// Enters a matrix without gradient that `fill` writes into a buffer of the tape. The buffer holds leftovers:
    /// `fill` must write every value.
    pub fn constant_with(&mut self, rows: usize, cols: usize, fill: impl FnOnce(&mut [f32])) -> Var {
        let mut data = self.pool.take(rows * cols);
        fill(&mut data);
        self.push(Matrix::from_parts(rows, cols, data), false, Op::Leaf)
    }

    /// Enters a matrix whose gradient can be read with [`Tape::grad`].
    pub fn input(&mut self, value: Matrix) -> Var {
        self.push_node(Node { value: Value::Given(value), op: Op::Leaf, needs_grad: self.recording })
    }

    /// Enters a parameter. Enter it once a step and share the [`Var`]; entered twice, its gradients still add up.
    pub fn param(&mut self, params: &Params, id: ParamId) -> Var {
        let value = self.copy_of(params.value(id));
        self.push(value, true, Op::Param(id))
    }

    /// Enters the value of a parameter without gradient.
    pub fn frozen(&mut self, params: &Params, id: ParamId) -> Var {
        let value = self.copy_of(params.value(id));
        self.push(value, false, Op::Leaf)
    }

    /// The value of a variable.
    pub fn value(&self, var: Var) -> &Matrix {
        self.node(var).value()
    }

    /// `(rows, columns)` of a variable.
    pub fn shape(&self, var: Var) -> (usize, usize) {
        self.value(var).shape()
    }

    /// The value of a variable of shape `[1, 1]`.
    pub fn scalar(&self, var: Var) -> f32 {
        assert_eq!(self.shape(var), (1, 1), "a scalar is of shape [1, 1]");
        self.value(var).as_slice()[0]
    }

    /// The gradient of an input or parameter after a backward pass; `None` if nothing depended on it.
    pub fn grad(&self, var: Var) -> Option<&Matrix> {
        self.check(var);
        self.grads.get(var.index as usize)?.as_ref()
    }

    /// Computes the gradient of `loss`, of shape `[1, 1]`, and adds it to the gradients of `params`.
    ///
    /// Parameters of other stores on this tape are left alone; [`Tape::add_gradients_to`] takes them up.
    pub fn backward(&mut self, loss: Var, params: &mut Params) {
        assert_eq!(self.shape(loss), (1, 1), "the loss is of shape [1, 1]");
        self.backward_from(loss, &Matrix::full(1, 1, 1.0));
        self.add_gradients_to(params);
    }

    /// Computes the gradient of the sum of `seed * output`. Gradients of an earlier pass are forgotten.
    pub fn backward_from(&mut self, output: Var, seed: &Matrix) {
        self.check(output);
        assert!(self.recording, "a tape for inference has no gradients");
        assert_eq!(self.shape(output), seed.shape(), "the seed has the shape of the output");
        for grad in self.grads.drain(..).flatten() {
            self.pool.give(grad.into_vec());
        }
        self.grads.resize_with(self.nodes.len(), || None);
        let last = output.index as usize;
        if self.nodes[last].needs_grad {
            self.grads[last] = Some(self.copy_of(seed));
        }
        for i in (0..=last).rev() {
            let node = &self.nodes[i];
            if matches!(node.op, Op::Leaf | Op::Param(_)) {
                continue;
            }
            let Some(grad) = self.grads[i].take() else { continue };
            let mut back = Backward { nodes: &self.nodes, grads: &mut self.grads, pool: &mut self.pool };
            node.op.backward(&mut back, node.value(), grad.into_vec());
        }
    }

    /// Adds the gradients of the last backward pass to those of `params`.
    pub fn add_gradients_to(&self, params: &mut Params) {
        for (node, grad) in self.nodes.iter().zip(&self.grads) {
            if let (Op::Param(id), Some(grad)) = (&node.op, grad)
                && params.owns(*id)
            {
                add_assign(params.grad_mut(*id).as_mut_slice(), grad.as_slice());
            }
        }
    }

    /// Number of values on the tape.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing is on the tape.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn check(&self, var: Var) {
        assert_eq!(var.step, self.step, "a variable is valid until its tape is reset");
    }

    fn node(&self, var: Var) -> &Node {
        self.check(var);
        &self.nodes[var.index as usize]
    }

    pub(crate) fn needs_grad(&self, var: Var) -> bool {
        self.node(var).needs_grad
    }

    /// A buffer with leftovers in it.
    pub(crate) fn buffer(&mut self, len: usize) -> Vec<f32> {
        self.pool.take(len)
    }

    /// Takes out the pool while values are borrowed.
    pub(crate) fn lend_pool(&mut self) -> Pool {
        std::mem::take(&mut self.pool)
    }

    pub(crate) fn return_pool(&mut self, pool: Pool) {
        self.pool = pool;
    }

    pub(crate) fn recycle(&mut self, buffer: Vec<f32>) {
        self.pool.give(buffer);
    }

    fn copy_of(&mut self, matrix: &Matrix) -> Matrix {
        let mut data = self.pool.take(matrix.as_slice().len());
        data.copy_from_slice(matrix.as_slice());
        Matrix::from_parts(matrix.rows(), matrix.cols(), data)
    }

    /// Puts a value from the pool on the tape. What its operation saved is let go if no gradient is needed.
    pub(crate) fn push(&mut self, value: Matrix, needs_grad: bool, op: Op) -> Var {
        let needs_grad = needs_grad && self.recording;
        let op = if needs_grad {
            op
        } else {
            op.recycle(&mut self.pool);
            Op::Leaf
        };
        self.push_node(Node { value: Value::Pooled(value), op, needs_grad })
    }

    fn push_node(&mut self, node: Node) -> Var {
        let index = u32::try_from(self.nodes.len()).expect("a tape holds fewer than `u32::MAX` values");
        self.nodes.push(node);
        Var { index, step: self.step }
    }

    #[cfg(test)]
    pub(crate) fn free_values(&self) -> usize {
        self.pool.free_values()
    }
}

/// What the backward pass of an operation sees: all values, and the gradients under construction.
pub(crate) struct Backward<'a> {
    nodes: &'a [Node],
    grads: &'a mut [Option<Matrix>],
    pub(crate) pool: &'a mut Pool,
}

impl<'a> Backward<'a> {
    pub(crate) fn value(&self, var: Var) -> &'a Matrix {
        self.nodes[var.index as usize].value()
    }

    pub(crate) fn needs_grad(&self, var: Var) -> bool {
        self.nodes[var.index as usize].needs_grad
    }

    /// Takes out the gradient of `var` to write into, and says whether to add or, into leftovers, to set.
    /// [`Backward::put`] brings it back.
    pub(crate) fn take(&mut self, var: Var) -> (Vec<f32>, Write) {
        match self.grads[var.index as usize].take() {
            Some(grad) => (grad.into_vec(), Write::Add),
            None => (self.pool.take(self.value(var).as_slice().len()), Write::Set),
        }
    }

    pub(crate) fn put(&mut self, var: Var, grad: Vec<f32>) {
        let (rows, cols) = self.value(var).shape();
        self.grads[var.index as usize] = Some(Matrix::from_parts(rows, cols, grad));
    }

    /// Adds `grad` to the gradient of `var`.
    pub(crate) fn add(&mut self, var: Var, grad: &[f32]) {
        if self.needs_grad(var) {
            let (mut sum, write) = self.take(var);
            match write {
                Write::Set => copy(&mut sum, grad),
                Write::Add => add_assign(&mut sum, grad),
            }
            self.put(var, sum);
        }
    }

    /// Makes `grad` the gradient of `var`, or adds it to what is there.
    pub(crate) fn give(&mut self, var: Var, grad: Vec<f32>) {
        if !self.needs_grad(var) {
            self.pool.give(grad);
        } else if let Some(sum) = &mut self.grads[var.index as usize] {
            add_assign(sum.as_mut_slice(), &grad);
            self.pool.give(grad);
        } else {
            self.put(var, grad);
        }
    }
}

/// `y = x`, in parallel.
pub(crate) fn copy(y: &mut [f32], x: &[f32]) {
    blocks::each(y, blocks::ELEMENTS, |i, y| y.copy_from_slice(&x[i * blocks::ELEMENTS..][..y.len()]));
}

/// `y += x`, in parallel.
pub(crate) fn add_assign(y: &mut [f32], x: &[f32]) {
    kernel! {
        fn add<const FMA: bool>(y: &mut [f32], x: &[f32]) {
            for (y, x) in y.iter_mut().zip(x) {
                *y += x;
            }
        }
    }
    blocks::each(y, blocks::ELEMENTS, |i, y| add(y, &x[i * blocks::ELEMENTS..][..y.len()]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Activation;

    #[test]
    fn buffers_are_reused_from_step_to_step() {
        let mut tape = Tape::new();
        let x = Arc::new(Matrix::full(300, 40, 0.5)); // [300, 40]
        let mut free = Vec::new();
        for _ in 0..4 {
            let x = tape.constant_shared(&x);
            let w = tape.input(Matrix::full(20, 40, 0.1)); // [20, 40]
            let y = tape.linear(x, w, None, Activation::Gelu);
            tape.backward_from(y, &Matrix::full(300, 20, 1.0));
            tape.reset();
            free.push(tape.free_values());
        }
        assert!(free[0] > 0);
        assert!(free.iter().all(|n| *n == free[0]), "{free:?}");
    }

    #[test]
    fn a_variable_used_twice_gets_both_gradients() {
        let mut tape = Tape::new();
        let x = tape.input(Matrix::from_rows(&[[3.0]]));
        let y = tape.mul(x, x);
        tape.backward_from(y, &Matrix::full(1, 1, 1.0));
        assert_eq!(tape.grad(x).unwrap().as_slice(), [6.0]);
    }

    #[test]
    fn gradients_reach_the_store_they_belong_to_and_no_other() {
        let mut ours = Params::new();
        let mut theirs = Params::new();
        let a = ours.add("a", Matrix::full(1, 1, 2.0));
        let b = theirs.add("b", Matrix::full(1, 1, 5.0));
        let mut tape = Tape::new();
        let (va, vb) = (tape.param(&ours, a), tape.param(&theirs, b));
        let y = tape.mul(va, vb);
        tape.backward(y, &mut ours);
        assert_eq!(ours.grad(a).as_slice(), [5.0]);
        assert_eq!(theirs.grad(b).as_slice(), [0.0]);
        tape.add_gradients_to(&mut theirs);
        assert_eq!(theirs.grad(b).as_slice(), [2.0]);
    }

    #[test]
    fn a_tape_for_inference_keeps_nothing_for_gradients() {
        let mut tape = Tape::inference();
        let x = tape.input(Matrix::full(4, 4, 1.0));
        let y = tape.gelu(x);
        assert!(!tape.needs_grad(y));
        assert_eq!(tape.shape(y), (4, 4));
    }

    #[test]
    #[should_panic(expected = "valid until its tape is reset")]
    fn a_variable_of_an_earlier_step_is_refused() {
        let mut tape = Tape::new();
        let x = tape.constant(Matrix::zeros(1, 1));
        tape.reset();
        tape.constant(Matrix::zeros(1, 1));
        tape.value(x);
    }
}
