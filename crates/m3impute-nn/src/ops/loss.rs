//! Losses and the sums behind them. Each gives one number, `[1, 1]`.
//!
//! Sums over all values are carried in `f64`, block after block. A weighted loss is the weighted mean: the sum
//! of `weight * loss` divided by the sum of the weights, or zero if that is zero.

use crate::blocks;
use crate::gemm::Write;
use crate::lanes;
use crate::math;
use crate::matrix::Matrix;
use crate::ops::Op;
use crate::simd::kernel;
use crate::tape::{Backward, Tape, Var};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Squared,
    Absolute,
    /// Binary cross-entropy of a logit.
    Logistic,
}

#[derive(Debug)]
pub(crate) struct Loss {
    kind: Kind,
    prediction: Var,
    target: Var,
    weights: Option<Var>,
    /// One over the number of values, or over their total weight.
    share: f32,
}

#[derive(Debug)]
pub(crate) struct Sum {
    x: Var,
    factor: f32,
}

impl Tape {
    /// The sum of all values.
    pub fn sum(&mut self, x: Var) -> Var {
        self.total(x, 1.0)
    }

    /// The mean of all values; zero if there are none.
    pub fn mean(&mut self, x: Var) -> Var {
        let (rows, cols) = self.shape(x);
        self.total(x, 1.0 / (rows * cols).max(1) as f32)
    }

    fn total(&mut self, x: Var, factor: f32) -> Var {
        let values = self.value(x).as_slice();
        let sums = blocks::map(values.len(), values.len(), blocks::ELEMENTS, |from, to| sum(&values[from..to]));
        let total = sums.iter().sum::<f64>() * f64::from(factor);
        self.push_scalar(total, self.needs_grad(x), Op::Sum(Sum { x, factor }))
    }

    /// The mean of `(prediction - target)^2`.
    pub fn mse(&mut self, prediction: Var, target: Var) -> Var {
        self.loss(Kind::Squared, prediction, target, None)
    }

    /// [`Tape::mse`] with a weight for each row, `[n, 1]`.
    pub fn mse_weighted(&mut self, prediction: Var, target: Var, weights: Var) -> Var {
        self.loss(Kind::Squared, prediction, target, Some(weights))
    }

    /// The mean of `|prediction - target|`.
    ///
    /// ```
    /// use m3impute_nn::{Matrix, Tape};
    ///
    /// let mut tape = Tape::new();
    /// let prediction = tape.input(Matrix::column(vec![1.0, 5.0]));
    /// let target = tape.constant(Matrix::column(vec![2.0, 2.0]));
    /// let loss = tape.l1(prediction, target);
    /// tape.backward_from(loss, &Matrix::full(1, 1, 1.0));
    /// assert_eq!(tape.scalar(loss), 2.0);
    /// assert_eq!(tape.grad(prediction).unwrap().as_slice(), [-0.5, 0.5]);
    /// ```
    pub fn l1(&mut self, prediction: Var, target: Var) -> Var {
        self.loss(Kind::Absolute, prediction, target, None)
    }

    /// [`Tape::l1`] with a weight for each row, `[n, 1]`.
    pub fn l1_weighted(&mut self, prediction: Var, target: Var, weights: Var) -> Var {
        self.loss(Kind::Absolute, prediction, target, Some(weights))
    }

    /// The mean of the binary cross-entropy of logits with targets in `[0, 1]`.
    pub fn bce_with_logits(&mut self, logits: Var, target: Var) -> Var {
        self.loss(Kind::Logistic, logits, target, None)
    }

    /// [`Tape::bce_with_logits`] with a weight for each row, `[n, 1]`.
    pub fn bce_with_logits_weighted(&mut self, logits: Var, target: Var, weights: Var) -> Var {
        self.loss(Kind::Logistic, logits, target, Some(weights))
    }

    fn loss(&mut self, kind: Kind, prediction: Var, target: Var, weights: Option<Var>) -> Var {
        let (rows, cols) = self.shape(prediction);
        self.expect(target, (rows, cols), "target of a loss");
        if let Some(weights) = weights {
            self.expect(weights, (rows, 1), "weights of a loss");
        }
        let (x, y) = (self.value(prediction).as_slice(), self.value(target).as_slice());
        let by = weights.map_or(&[][..], |w| self.value(w).as_slice());
        let block = blocks::rows(cols);
        let sums = blocks::map(rows * cols, rows, block, |from, to| {
            let part = |values| blocks::part(values, from, to, cols);
            loss_sum(kind, part(x), part(y), cols, blocks::part(by, from, to, 1))
        });
        let weight = if weights.is_some() { by.iter().map(|w| f64::from(*w)).sum() } else { rows as f64 };
        let share = if weight * cols as f64 == 0.0 { 0.0 } else { 1.0 / (weight * cols as f64) };
        let total = sums.iter().sum::<f64>() * share;
        let needs_grad = self.needs_grad(prediction) || self.needs_grad(target);
        let op = Op::Loss(Loss { kind, prediction, target, weights, share: share as f32 });
        self.push_scalar(total, needs_grad, op)
    }

    pub(crate) fn push_scalar(&mut self, value: f64, needs_grad: bool, op: Op) -> Var {
        let mut out = self.buffer(1);
        out[0] = value as f32;
        self.push(Matrix::from_parts(1, 1, out), needs_grad, op)
    }
}

impl Sum {
    pub(crate) fn backward(&self, back: &mut Backward<'_>, dy: Vec<f32>) {
        let value = dy[0] * self.factor;
        let (mut dx, write) = back.take(self.x);
        blocks::each(&mut dx, blocks::ELEMENTS, |_, dx| match write {
            Write::Set => dx.fill(value),
            Write::Add => dx.iter_mut().for_each(|d| *d += value),
        });
        back.put(self.x, dx);
        back.pool.give(dy);
    }
}

impl Loss {
    pub(crate) fn backward(&self, back: &mut Backward<'_>, dy: Vec<f32>) {
        let (x, y) = (back.value(self.prediction), back.value(self.target).as_slice());
        let (x, cols) = (x.as_slice(), x.cols());
        let by = self.weights.map_or(&[][..], |w| back.value(w).as_slice());
        let scale = dy[0] * self.share;
        for (to, of_target) in [(self.prediction, false), (self.target, true)] {
            if back.needs_grad(to) {
                let block = blocks::rows(cols);
                let (mut grad, write) = back.take(to);
                blocks::each(&mut grad, block * cols, |i, grad| {
                    let from = i * block;
                    let weights = if by.is_empty() { by } else { &by[from..] };
                    loss_slope(
                        self.kind,
                        of_target,
                        write,
                        scale,
                        &x[from * cols..],
                        &y[from * cols..],
                        cols,
                        weights,
                        grad,
                    );
                });
                back.put(to, grad);
            }
        }
        back.pool.give(dy);
    }
}

impl Kind {
    #[inline(always)]
    fn value<const FMA: bool>(self, x: f32, y: f32) -> f32 {
        match self {
            Kind::Squared => (x - y) * (x - y),
            Kind::Absolute => (x - y).abs(),
            Kind::Logistic => {
                let above = if x > 0.0 { x } else { 0.0 };
                above - x * y + math::ln_1p::<FMA>(math::exp::<FMA>(-x.abs()))
            }
        }
    }

    #[inline(always)]
    fn slope<const FMA: bool>(self, of_target: bool, x: f32, y: f32) -> f32 {
        let slope = match self {
            Kind::Squared => 2.0 * (x - y),
            Kind::Absolute => {
                if x > y {
                    1.0
                } else if x < y {
                    -1.0
                } else {
                    // Zero where they are equal, NaN where they cannot be compared.
                    x - y
                }
            }
            Kind::Logistic if of_target => x,
            Kind::Logistic => math::sigmoid::<FMA>(x) - y,
        };
        if of_target { -slope } else { slope }
    }
}

kernel! {
    fn sum<const FMA: bool>(x: &[f32]) -> f64 {
        // Short runs in `f32`, their sum in `f64`.
        x.chunks(1024).map(|run| f64::from(lanes::sum(run))).sum()
    }
}

kernel! {
    fn loss_sum<const FMA: bool>(kind: Kind, x: &[f32], y: &[f32], cols: usize, weights: &[f32]) -> f64 {
        // Without weights rows do not matter, and a narrow matrix is summed in longer runs.
        let run = if weights.is_empty() { 1024 } else { cols.max(1) };
        let mut total = 0.0;
        for (i, (x, y)) in x.chunks(run).zip(y.chunks(run)).enumerate() {
            let sum = match kind {
                Kind::Squared => lanes::sum_by(x, y, |x, y| Kind::Squared.value::<FMA>(x, y)),
                Kind::Absolute => lanes::sum_by(x, y, |x, y| Kind::Absolute.value::<FMA>(x, y)),
                Kind::Logistic => lanes::sum_by(x, y, |x, y| Kind::Logistic.value::<FMA>(x, y)),
            };
            total += f64::from(sum) * weights.get(i).map_or(1.0, |w| f64::from(*w));
        }
        total
    }
}

kernel! {
    fn loss_slope<const FMA: bool>(
        kind: Kind,
        of_target: bool,
        write: Write,
        scale: f32,
        x: &[f32],
        y: &[f32],
        cols: usize,
        weights: &[f32],
        grad: &mut [f32],
    ) {
        let run = if weights.is_empty() { 1024 } else { cols.max(1) };
        for (i, ((grad, x), y)) in grad.chunks_mut(run).zip(x.chunks(run)).zip(y.chunks(run)).enumerate() {
            let scale = scale * weights.get(i).copied().unwrap_or(1.0);
            for ((g, x), y) in grad.iter_mut().zip(x).zip(y) {
                let slope = scale * kind.slope::<FMA>(of_target, *x, *y);
                *g = if write == Write::Add { *g + slope } else { slope };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck::{assert_gradients, random};

    fn far_apart() -> [Matrix; 2] {
        // Away from the corner of the absolute value.
        let x = random(6, 3, 1);
        let y = Matrix::from_fn(6, 3, |i, j| x.get(i, j) + if (i + j) % 2 == 0 { 0.7 } else { -0.4 });
        [x, y]
    }

    #[test]
    fn gradients_of_losses_match_central_differences() {
        let weights = Matrix::column(vec![1.0, 0.0, 2.0, 0.5, 1.0, 3.0]);
        let [x, y] = far_apart();
        let inputs = [x, y];
        assert_gradients(&inputs, |tape, v| tape.mse(v[0], v[1]));
        assert_gradients(&inputs, |tape, v| tape.l1(v[0], v[1]));
        assert_gradients(&inputs, |tape, v| tape.bce_with_logits(v[0], v[1]));
        assert_gradients(&inputs, |tape, v| {
            let w = tape.constant(weights.clone());
            tape.mse_weighted(v[0], v[1], w)
        });
        assert_gradients(&inputs, |tape, v| {
            let w = tape.constant(weights.clone());
            tape.l1_weighted(v[0], v[1], w)
        });
        assert_gradients(&inputs, |tape, v| {
            let w = tape.constant(weights.clone());
            tape.bce_with_logits_weighted(v[0], v[1], w)
        });
    }

    #[test]
    fn gradients_of_sum_and_mean_match_central_differences() {
        assert_gradients(&[random(3, 4, 1)], |tape, v| tape.sum(v[0]));
        assert_gradients(&[random(3, 4, 1)], |tape, v| tape.mean(v[0]));
    }

    #[test]
    fn values_are_those_of_the_definitions() {
        let mut tape = Tape::new();
        let x = tape.constant(Matrix::from_rows(&[[0.0, 2.0], [1.0, -3.0]]));
        let y = tape.constant(Matrix::from_rows(&[[1.0, 0.0], [1.0, 1.0]]));
        let w = tape.constant(Matrix::column(vec![3.0, 1.0]));
        let close = |got: f32, want: f64| assert!((f64::from(got) - want).abs() < 1e-6, "{got} {want}");
        let loss = tape.mse(x, y);
        close(tape.scalar(loss), (1.0 + 4.0 + 0.0 + 16.0) / 4.0);
        let loss = tape.mse_weighted(x, y, w);
        close(tape.scalar(loss), (3.0 * 5.0 + 16.0) / 8.0);
        let loss = tape.l1(x, y);
        close(tape.scalar(loss), (1.0 + 2.0 + 0.0 + 4.0) / 4.0);
        let loss = tape.l1_weighted(x, y, w);
        close(tape.scalar(loss), (3.0 * 3.0 + 4.0) / 8.0);
        let loss = tape.bce_with_logits(x, y);
        let expected =
            (2f64.ln() + (1.0 + 2f64.exp()).ln() + (1.0 + (-1f64).exp()).ln() + (1.0 + 3f64.exp()).ln()) / 4.0;
        close(tape.scalar(loss), expected);
    }

    #[test]
    fn no_weight_at_all_is_a_loss_of_zero() {
        let mut tape = Tape::new();
        let x = tape.input(Matrix::column(vec![1.0, 2.0]));
        let y = tape.constant(Matrix::zeros(2, 1));
        let w = tape.constant(Matrix::zeros(2, 1));
        let loss = tape.mse_weighted(x, y, w);
        tape.backward_from(loss, &Matrix::full(1, 1, 1.0));
        assert_eq!(tape.scalar(loss), 0.0);
        assert_eq!(tape.grad(x).unwrap().as_slice(), [0.0, 0.0]);
    }
}
