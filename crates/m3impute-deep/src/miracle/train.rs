//! Training: a table that is refined epoch by epoch.

use super::network::{Batch, Network, Penalties};
use super::{Batches, MiracleParams, filled};
use crate::chance::RowSampler;
use crate::inputs::{Inputs, Rows, select};
use m3impute_core::{Result, Run};
use m3impute_nn::{Adam, AdamParams, Matrix, Params, Tape, Var, alone};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::collections::VecDeque;

/// Parts of a batch, each learnt from by one thread, and how many rows they have at least and at most.
const PARTS: usize = 4;
const PART_ROWS: (usize, usize) = (16, 256);

/// A table that is refined.
#[derive(Debug)]
pub(super) struct Training<'a> {
    settings: &'a MiracleParams,
    pub(super) network: Network,
    pub(super) params: Params,
    adam: Adam,
    rows: Rows,
    /// The means of observed numbers. // [1, w]
    pub(super) means: Matrix,
    /// The completed table. // [n, w]
    completed: Matrix,
    /// The predictions of the last epochs. // [n, w] each
    last: VecDeque<Matrix>,
    sampler: RowSampler,
    /// Of the loss.
    tape: Tape,
    /// Of the networks, for each part of a batch.
    parts: Vec<Tape>,
}

impl<'a> Training<'a> {
    pub(super) fn new(settings: &'a MiracleParams, inputs: &Inputs, rows: Rows, run: &Run) -> Training<'a> {
        let (n, w) = rows.x.shape();
        let mean = |j: usize| {
            let seen: f64 = (0..n).map(|i| f64::from(rows.observed.get(i, j))).sum();
            let sum: f64 = (0..n).map(|i| f64::from(rows.x.get(i, j))).sum();
            (sum / seen.max(1.0)) as f32
        };
        let means = Matrix::row_vector((0..w).map(mean).collect()); // [1, w]
        let holed: Vec<usize> = (0..w).filter(|&j| (0..n).any(|i| rows.observed.get(i, j) == 0.0)).collect();
        let mut params = Params::new();
        let network = Network::new(&mut params, inputs, holed, settings.width, &mut run.rng("weights", 0));
        let adam = Adam::new(&params, AdamParams::default());
        let completed = filled(&rows, |_, j| means.get(0, j));
        let (last, sampler, tape, parts) = (VecDeque::new(), RowSampler::new(n), Tape::new(), Vec::new());
        Training { settings, network, params, adam, rows, means, completed, last, sampler, tape, parts }
    }

    /// The least and the largest observed numbers. // [2, w]
    pub(super) fn range(&self) -> Matrix {
        let mut range = Matrix::from_fn(2, self.means.cols(), |_, j| self.means.get(0, j));
        for i in 0..self.rows.len() {
            for j in (0..range.cols()).filter(|&j| self.rows.observed.get(i, j) == 1.0) {
                let x = self.rows.x.get(i, j);
                range.row_mut(0)[j] = range.get(0, j).min(x);
                range.row_mut(1)[j] = range.get(1, j).max(x);
            }
        }
        range
    }

    /// The rows of each batch, by their places in the order that an epoch draws.
    pub(super) fn batches(&self) -> Vec<std::ops::Range<usize>> {
        let (n, size) = (self.rows.len(), self.settings.batch);
        let cut = |from: usize| from..n.min(from + size);
        match self.settings.batches {
            Batches::Whole => (0..n).step_by(size).map(cut).collect(),
            // The first batch is left out, and with it every table that has no second.
            Batches::Shifted => (1..=n / size).map(|k| cut(k * size)).filter(|rows| !rows.is_empty()).collect(),
        }
    }

    /// Epoch number `epoch`, from one; returns the loss of its last step, zero without any.
    pub(super) fn epoch(&mut self, epoch: u64, rng: &mut ChaCha8Rng, check: impl Fn() -> Result<()>) -> Result<f32> {
        if epoch > self.settings.window as u64 {
            let prediction = self.prediction();
            self.completed = filled(&self.rows, |i, j| prediction.get(i, j));
        }
        let order = self.sampler.shuffle(rng).to_vec();
        let mut loss = 0.0;
        for batch in self.batches() {
            check()?;
            let rows = &order[batch.clone()];
            let x = select(&self.completed, rows);
            let observed = match self.settings.batches {
                Batches::Whole => select(&self.rows.observed, rows),
                Batches::Shifted => select(&self.rows.observed, &batch.collect::<Vec<_>>()),
            };
            // Whether cells are observed is what the other networks learn, and that goes with the rows.
            let present = select(&self.rows.observed, rows);
            loss = self.step(Batch { x, observed, present });
        }
        let prediction = self.network.predict(&self.params, &self.completed);
        if self.last.len() >= self.settings.window {
            self.last.pop_front();
        }
        self.last.push_back(prediction);
        Ok(loss)
    }

    fn step(&mut self, batch: Batch) -> f32 {
        let p = self.settings;
        let penalties = Penalties {
            lambda: p.lambda as f32,
            beta: p.beta as f32,
            moments: p.moments as f32,
            all_rows: p.batches == Batches::Shifted,
        };
        // The networks go through the rows in parts, a thread each; the loss needs all their outputs at once.
        let Training { network, params, tape, parts, .. } = self;
        let (b, w) = batch.x.shape();
        let d = w + network.holed.len();
        let part = b.div_ceil(PARTS).clamp(PART_ROWS.0, PART_ROWS.1);
        let count = b.div_ceil(part);
        parts.resize_with(parts.len().max(count), Tape::new);
        let outputs: Vec<Var> = parts[..count]
            .par_iter_mut()
            .zip(batch.x.as_slice().par_chunks(part * w))
            .map(|(tape, x)| {
                tape.reset();
                let x = Matrix::from_vec(x.len() / w, w, x.to_vec()).expect("whole rows");
                alone(|| network.outputs(tape, params, x))
            })
            .collect();
        let output = parts.iter().zip(&outputs).flat_map(|(tape, &out)| tape.value(out).as_slice()).copied().collect();
        tape.reset();
        let output = tape.input(Matrix::from_vec(b, d, output).expect("whole rows"));
        let loss = network.loss(tape, params, output, batch, penalties);
        params.zero_grads();
        tape.backward(loss, params);
        let grad = tape.grad(output).expect("the loss depends on the outputs");
        parts.par_iter_mut().zip(&outputs).zip(grad.as_slice().par_chunks(part * d)).for_each(
            |((tape, &out), grad)| {
                let grad = Matrix::from_vec(grad.len() / d, d, grad.to_vec()).expect("whole rows");
                alone(|| tape.backward_from(out, &grad));
            },
        );
        parts[..count].iter().for_each(|tape| tape.add_gradients_to(params));
        self.adam.step(&mut self.params, p.learning_rate as f32);
        self.tape.scalar(loss)
    }

    /// The mean of the last predictions. // [n, w]
    pub(super) fn prediction(&mut self) -> Matrix {
        if self.last.is_empty() {
            let prediction = self.network.predict(&self.params, &self.completed);
            self.last.push_back(prediction);
        }
        let mut sum = self.last[0].clone();
        for other in self.last.iter().skip(1) {
            sum.as_mut_slice().iter_mut().zip(other.as_slice()).for_each(|(s, o)| *s += o);
        }
        let count = self.last.len() as f32;
        sum.as_mut_slice().iter_mut().for_each(|s| *s /= count);
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two columns, the second the same as the first, with missing cells.
    fn rows(n: usize) -> Rows {
        let observed = Matrix::from_fn(n, 2, |i, j| f32::from(u8::from((i + 3 * j) % 5 != 0)));
        let x = Matrix::from_fn(n, 2, |i, j| observed.get(i, j) * ((i * 7 % 11) as f32 / 3.0 - 1.5));
        Rows { x, observed }
    }

    #[test]
    fn a_column_is_learnt_from_the_one_it_repeats() {
        let run = Run::new(1, 1).unwrap();
        let settings = MiracleParams { width: 8, learning_rate: 1e-2, ..MiracleParams::default() };
        let mut training = Training::new(&settings, &Inputs::of_numbers(2), rows(110), &run);
        for epoch in 1..=150 {
            training.epoch(epoch, &mut run.rng("epoch", epoch), || Ok(())).unwrap();
        }
        let prediction = training.prediction();
        let missing = (0..110).filter(|i| i % 5 == 0);
        let far = missing.map(|i| (prediction.get(i, 0) - ((i * 7 % 11) as f32 / 3.0 - 1.5)).abs()).fold(0.0, f32::max);
        assert!(far < 0.5, "{far}");
    }

    #[test]
    fn as_it_was_run_nothing_is_learnt_below_a_batch() {
        let run = Run::new(1, 1).unwrap();
        let settings = MiracleParams { batch: 100, ..MiracleParams::of_preset("paper") };
        let batches = |n| Training::new(&settings, &Inputs::of_numbers(2), rows(n), &run).batches();
        assert!(batches(99).is_empty() && batches(100).is_empty());
        assert!(batches(106).iter().eq([&(100..106)]));
        assert_eq!(batches(250), [100..200, 200..250]);
    }
}
