//! Training: in each step some observed cells of a batch of rows are dropped, and the network learns to predict them.

use super::batch::{Batch, Grid};
use super::forward::{GraphNetwork, Output, Shape};
use super::inputs::ColumnInput;
use super::pairwise::Pairwise;
use crate::pass::Pass;
use crate::peers::unit;
use m3impute_core::{Error, Result, shuffle_front};
use m3impute_nn::{Adam, AdamParams, Classes, Decay, Ema, Matrix, Params, Tape, Var};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// How a network is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// The shape of the network.
    pub shape: Shape,
    /// How many steps at most.
    pub steps: usize,
    /// How many rows a step uses.
    pub rows: usize,
    /// The learning rate of AdamW.
    pub learning_rate: f32,
    /// Its weight decay.
    pub decay: f32,
    /// The rate of dropout.
    pub dropout: f32,
    /// The share of its observed cells that a row shows lies between these.
    pub keep: (f32, f32),
    /// The weight of the cross-entropy of numbers in the loss.
    pub entropy: f32,
    /// The decay of the exponential moving average of the weights.
    pub ema: f32,
}

impl Default for Training {
    fn default() -> Training {
        Training {
            shape: Shape { width: 64, layers: 3, pairwise: true },
            steps: 1000,
            rows: 512,
            learning_rate: 2e-3,
            decay: 1e-2,
            dropout: 0.1,
            keep: (0.3, 0.9),
            entropy: 0.1,
            ema: 0.995,
        }
    }
}

/// The data of a network: in training, every `observed` cell of the grid is either shown or dropped.
#[derive(Debug)]
pub struct Task<'a> {
    /// The table.
    pub grid: &'a Grid,
    /// How its columns are encoded.
    pub columns: &'a [ColumnInput],
    /// Pairwise linear predictors.
    pub pairwise: &'a Pairwise,
    /// The rows with at least two observed cells: one to show, one to predict.
    pub rows: Vec<u32>,
}

/// A network in training.
#[derive(Debug)]
pub struct Trainer<'a> {
    task: Task<'a>,
    training: Training,
    network: GraphNetwork,
    params: Params,
    adam: Adam,
    ema: Ema,
    tape: Tape,
    step: usize,
}

impl<'a> Trainer<'a> {
    /// A network with random weights.
    pub fn new(task: Task<'a>, training: Training, rng: &mut ChaCha8Rng) -> Trainer<'a> {
        let grid = task.grid;
        let medians: Vec<f32> = (0..grid.m)
            .map(|f| {
                let mut values = grid.values(f);
                values.sort_by(f32::total_cmp);
                values.get(values.len() / 2).copied().unwrap_or(0.0)
            })
            .collect();
        let mut params = Params::new();
        let network =
            GraphNetwork::new(&mut params, training.shape, task.columns, task.pairwise, (&medians, grid), rng);
        let decay = Decay::Decoupled(training.decay);
        let adam = Adam::new(&params, AdamParams { beta1: 0.9, beta2: 0.99, decay, ..AdamParams::default() });
        let ema = Ema::new(&params, training.ema, true);
        Trainer { task, training, network, params, adam, ema, tape: Tape::new(), step: 0 }
    }

    /// One step; returns the loss.
    ///
    /// # Errors
    /// When the loss is not finite.
    pub fn step(&mut self, mut rng: ChaCha8Rng) -> Result<f32> {
        let Task { grid, columns, pairwise, rows } = &self.task;
        let (m, all) = (grid.m, rows.len());
        let take = self.training.rows.min(all);
        let mut rows = rows.clone();
        shuffle_front(&mut rows, take, || rng.next_u32());
        rows.truncate(take);
        let mut shown = vec![false; take * m];
        let mut dropped = vec![false; take * m];
        let (low, high) = self.training.keep;
        for (i, &row) in rows.iter().enumerate() {
            let keep = low + (high - low) * unit(&mut rng);
            for f in 0..m {
                if grid.observed[row as usize * m + f] {
                    let kept = unit(&mut rng) < keep;
                    shown[i * m + f] = kept;
                    dropped[i * m + f] = !kept;
                }
            }
        }
        let batch = Batch::new(grid, &rows, columns, pairwise, &shown, |at| dropped[at]);
        if batch.targets() == 0 {
            self.step += 1;
            return Ok(0.0);
        }
        let truth: Vec<f32> = (batch.target_row.targets().iter().zip(batch.target_column.targets()))
            .map(|(&i, &f)| grid.x[rows[i as usize] as usize * m + f as usize])
            .collect();
        self.tape.reset();
        let mut pass = Pass::new(&mut self.tape, &self.params).with_dropout(self.training.dropout, rng.next_u64());
        let output = self.network.forward(&mut pass, &batch);
        let loss = loss(&mut pass, columns, &batch, output, &truth, self.training.entropy);
        let value = self.tape.scalar(loss);
        self.params.zero_grads();
        self.tape.backward(loss, &mut self.params);
        self.params.clip_grad_norm(1.0);
        self.adam.step(&mut self.params, self.training.learning_rate);
        self.ema.update(&self.params);
        self.step += 1;
        if value.is_finite() {
            Ok(value)
        } else {
            let place = format!("the loss of step {} (a smaller `learning_rate` may help)", self.step);
            Err(Error::NotFinite { method: "m3", place })
        }
    }

    /// The exponential moving average of the weights, which predicts better than the last weights.
    pub fn smoothed(&self) -> Params {
        let mut params = self.params.clone();
        self.ema.copy_to(&mut params);
        params
    }

    /// The network, its pairwise predictors, and the table it is trained on.
    pub fn parts(&self) -> (&GraphNetwork, &Pairwise, &Grid) {
        (&self.network, self.task.pairwise, self.task.grid)
    }

    /// The network alone.
    pub fn into_network(self) -> GraphNetwork {
        self.network
    }
}

/// The absolute error of numbers, and the cross-entropy of all classes.
fn loss(
    pass: &mut Pass<'_>,
    columns: &[ColumnInput],
    batch: &Batch,
    output: Output,
    truth: &[f32],
    entropy: f32,
) -> Var {
    let column_of = |t: usize| &columns[batch.target_column.targets()[t] as usize];
    let numbers: Vec<f32> = (0..truth.len()).map(|t| f32::from(u8::from(column_of(t).response.is_number()))).collect();
    let all = truth.len() as f32;
    let share = numbers.iter().sum::<f32>() / all;
    let mut classes = Vec::with_capacity(truth.len());
    let mut counts = Vec::with_capacity(truth.len());
    let mut weights = Vec::with_capacity(truth.len());
    for (t, &value) in truth.iter().enumerate() {
        let column = column_of(t);
        let class = column.class_of(value);
        classes.push(class.unwrap_or(0) as u32);
        counts.push(column.classes() as u32);
        let weight = if column.response.is_number() { entropy } else { 0.5 };
        weights.push(if class.is_some() { weight } else { 0.0 });
    }
    let total: f32 = weights.iter().sum();
    let mut parts = Vec::new();
    if total > 0.0 {
        let classes = Classes { targets: &classes, counts: Some(&counts), weights: Some(&weights) };
        let loss = pass.tape.cross_entropy(output.logits, classes);
        parts.push(pass.tape.scale(loss, total / all));
    }
    if share > 0.0 {
        let target = pass.tape.constant(Matrix::column(truth.to_vec()));
        let weights = pass.tape.constant(Matrix::column(numbers));
        let loss = pass.tape.l1_weighted(output.point, target, weights);
        parts.push(pass.tape.scale(loss, share));
    }
    parts.into_iter().reduce(|a, b| pass.tape.add(a, b)).expect("there is a target")
}
