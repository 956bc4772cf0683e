//! A bag of networks: one is trained on each fold, in parallel; their predictions are averaged.

use super::batch::{Batch, Grid};
use super::forward::{GraphNetwork, Output, Shape};
use super::inputs::ColumnInput;
use super::pairwise::Pairwise;
use super::train::{Task, Trainer, Training};
use crate::fitted::matrix;
use crate::pass::Pass;
use m3impute_core::{Error, ModelFile, Result, Run, Tensor};
use m3impute_learners::Response;
use m3impute_nn::{Matrix, Params, Tape, alone};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Cells, observed or not, of the rows that are predicted at a time.
const CELLS: usize = 4096;
/// Cells, observed or not, of the rows whose held-out cells decide about early stopping.
const VALIDATION_CELLS: usize = 64 * 1024;
/// Steps of training between two looks at the clock.
const CHUNK: usize = 5;
/// What predicting a row costs, in units of learning from it.
const PREDICTING_COST: f64 = 0.4;
/// The share of a limited time that pairwise predictors may take.
const PAIRWISE_SHARE: f64 = 0.2;
/// The weight of the log loss of a level beside the absolute error of a number.
const LEVEL_ERROR: f64 = 0.1;

/// A trained network.
#[derive(Clone, Debug)]
pub struct TrainedNetwork {
    /// Its layers.
    pub network: GraphNetwork,
    /// Its weights.
    pub params: Params,
    /// Its pairwise linear predictors.
    pub pairwise: Pairwise,
}

impl TrainedNetwork {
    /// Writes it into tensors whose names start with `prefix`.
    pub fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) {
        for id in self.params.ids() {
            let x = self.params.value(id);
            let tensor = Tensor::F32(vec![x.rows(), x.cols()], x.as_slice().to_vec());
            tensors.insert(format!("{prefix}{}", self.params.name(id)), tensor);
        }
        let partners = self.pairwise.partners.clone();
        tensors.insert(format!("{prefix}partners"), Tensor::U32(vec![partners.len()], partners));
    }

    /// Restores it.
    ///
    /// # Errors
    /// When something is not there or does not fit.
    pub fn restore(file: &ModelFile, prefix: &str, shape: Shape, columns: &[ColumnInput]) -> Result<TrainedNetwork> {
        let m = columns.len();
        if !shape.is_sound() || !columns.iter().all(ColumnInput::is_sound) {
            return Err(Error::damaged(format!("the shape of network `{prefix}`")));
        }
        // The file must hold the larger matrices before any of that size is made.
        let classes = columns.iter().map(ColumnInput::classes).max().unwrap_or(1);
        matrix(file, &format!("{prefix}classes.weight"), (m * classes, shape.width))?;
        let (size, who) = file.u32s(&format!("{prefix}partners"))?;
        let k = (m - 1).min(Pairwise::MOST);
        if size != [m * k] || who.iter().any(|&j| j as usize >= m) {
            return Err(Error::damaged(format!("`{prefix}partners`")));
        }
        let zeros = Matrix::zeros(m, k);
        let pairwise = Pairwise { partners: who.to_vec(), k, slope: zeros.clone(), shift: zeros.clone(), logit: zeros };
        let mut params = Params::new();
        let network = GraphNetwork::blank(&mut params, shape, columns, &pairwise);
        for id in params.ids().collect::<Vec<_>>() {
            let shape = params.value(id).shape();
            *params.value_mut(id) = matrix(file, &format!("{prefix}{}", params.name(id)), shape)?;
        }
        Ok(TrainedNetwork { network, params, pairwise })
    }
}

/// Two predictions of the cells of one column: from the probabilities of its classes, and from its point. Only a
/// [`Response::Number`] has the second.
pub type Predicted = [Vec<f32>; 2];

/// A network in training, with the best state so far.
struct TrainingRun<'a> {
    trainer: Trainer<'a>,
    /// The held-out cells that take part in deciding about early stopping, `[n, m]`.
    validation: Vec<bool>,
    /// The last evaluation.
    latest: Option<Evaluation>,
    /// The smallest validation error of the other folds, and the weights then.
    best: (f64, Params),
    /// The step of the best state.
    at: usize,
}

/// A state of a network in training.
struct Evaluation {
    /// Its error on the held-out cells of its fold; none where there are none.
    error: Option<f64>,
    params: Params,
}

/// Trains a network on each fold, a table and which of its cells are held out, until the error on those no longer
/// falls, or no more is left of the time limit than `reserve` and what predicting the table will take. There are no
/// networks where the time is too short for that.
///
/// When a network stops is decided by the held-out cells of the other folds: its own ones are to tell how good it is,
/// and the errors of several folds together vary less than those of one.
///
/// # Errors
/// When the run is cancelled, or a loss is not finite.
pub fn train(
    folds: &[(&Grid, &[bool])],
    columns: &[ColumnInput],
    training: Training,
    reserve: Option<Duration>,
    run: &Run,
) -> Result<(Vec<TrainedNetwork>, Vec<String>)> {
    let kept = run.time_left().map(|left| left.mul_f64(1.0 - PAIRWISE_SHARE));
    let go_on = || !run.cancel().is_cancelled() && !run.is_down_to(kept);
    let pairwise: Vec<Pairwise> =
        run.install(|| folds.iter().map(|(grid, _)| Pairwise::of(grid, columns, &go_on)).collect());
    run.check()?;
    let mut runs: Vec<TrainingRun<'_>> = Vec::new();
    for (k, &(grid, held)) in folds.iter().enumerate() {
        run.check()?;
        let m = grid.m;
        let shows = |i: usize| grid.observed[i * m..(i + 1) * m].iter().filter(|o| **o).count();
        let rows = (0..grid.n).filter(|&i| shows(i) > 1).map(|i| i as u32).collect();
        let task = Task { grid, columns, pairwise: &pairwise[k], rows };
        let trainer = Trainer::new(task, training, &mut run.rng("weights", k as u64));
        let best = (f64::INFINITY, trainer.smoothed());
        // Some rows of a large table are enough for early stopping.
        let stride = (grid.observed.len() / VALIDATION_CELLS).max(1);
        let validation = held.iter().enumerate().map(|(at, h)| *h && (at / m) % stride == 0).collect();
        runs.push(TrainingRun { trainer, validation, latest: None, best, at: 0 });
    }
    let mut notes = Vec::new();
    let every = (training.steps / 24).max(10);
    let mut step = 0;
    let mut pace = Pace::new(folds, training.rows, reserve);
    let patience = (training.steps / 3).max(100);
    while step < training.steps && runs.iter().any(|one| step - one.at <= patience) {
        run.check()?;
        if run.is_down_to(pace.kept()) {
            notes.push(format!("time limit reached at step {step} of {}", training.steps));
            break;
        }
        // The first steps tell how long the others will take.
        let chunk = if step == 0 && reserve.is_some() { 1 } else { CHUNK };
        let to = (step + chunk).min(training.steps);
        let evaluate = to / every > step / every || to == training.steps;
        let shared: &Run = run;
        let advanced: Result<Vec<()>> = shared.install(|| {
            runs.par_iter_mut()
                .enumerate()
                .map(|(k, one)| alone(|| one.advance(k, step..to, evaluate.then_some(columns), pace.kept(), shared)))
                .collect()
        });
        advanced?;
        pace.took((to - step) * runs.len());
        step = to;
        if evaluate {
            keep_best(&mut runs, step);
            let error = runs.iter().map(|one| one.best.0).sum::<f64>() / runs.len() as f64;
            run.report("training", step as u64, training.steps as u64, format!("held-out error {error:.4}"));
        }
    }
    if pace.is_hopeless(run) {
        return Ok((Vec::new(), vec!["the time limit did not allow for networks".to_owned()]));
    }
    let nets = runs
        .into_iter()
        .zip(&pairwise)
        .map(|(one, pairwise)| {
            let params = if one.best.0.is_finite() { one.best.1 } else { one.trainer.smoothed() };
            TrainedNetwork { network: one.trainer.into_network(), params, pairwise: pairwise.clone() }
        })
        .collect();
    Ok((nets, notes))
}

/// Keeps the latest state of each network whose other folds have their smallest error so far.
fn keep_best(runs: &mut [TrainingRun<'_>], step: usize) {
    // Where the time limit stopped one of the evaluations, errors could not be compared.
    let latest: Option<Vec<Evaluation>> = runs.iter_mut().map(|one| one.latest.take()).collect();
    let Some(latest) = latest else { return };
    let errors: Vec<Option<f64>> = latest.iter().map(|of| of.error).collect();
    for (k, (one, Evaluation { params, .. })) in runs.iter_mut().zip(latest).enumerate() {
        let error = error_of_others(&errors, k);
        // Without held-out cells, the latest state is the best.
        if error.is_none_or(|error| error < one.best.0) {
            one.best = (error.unwrap_or(0.0), params);
            one.at = step;
        }
    }
}

/// The mean error of the other folds; that of fold `k` where it is the only one with an error.
fn error_of_others(errors: &[Option<f64>], k: usize) -> Option<f64> {
    let others: Vec<f64> =
        errors.iter().enumerate().filter(|(other, _)| *other != k).filter_map(|(_, error)| *error).collect();
    if others.is_empty() { errors[k] } else { Some(others.iter().sum::<f64>() / others.len() as f64) }
}

/// How fast training goes, and so how much of a limited time predicting will take.
struct Pace {
    started: Instant,
    /// Rows that a step looks at.
    rows: usize,
    /// Steps of all networks so far.
    steps: usize,
    /// Rows that all networks together will have to predict.
    predicted: usize,
    reserve: Option<Duration>,
}

impl Pace {
    fn new(folds: &[(&Grid, &[bool])], rows: usize, reserve: Option<Duration>) -> Pace {
        // Held-out cells are predicted by one network, missing ones by all.
        let predicted = folds.iter().map(|(grid, _)| 2 * grid.n).sum();
        Pace { started: Instant::now(), rows, steps: 0, predicted, reserve }
    }

    fn took(&mut self, steps: usize) {
        self.steps += steps;
    }

    /// The time that predicting will take, about.
    fn predicting(&self) -> Duration {
        let row = self.started.elapsed().div_f64((self.steps * self.rows).max(1) as f64);
        row.mul_f64(PREDICTING_COST * self.predicted as f64)
    }

    /// What has to be left of a limited time when training stops.
    fn kept(&self) -> Option<Duration> {
        self.reserve.map(|reserve| if self.steps == 0 { reserve } else { reserve.max(self.predicting()) })
    }

    /// Whether the time left is far too short for predicting.
    fn is_hopeless(&self, run: &Run) -> bool {
        self.steps == 0 && self.reserve.is_some() || run.is_down_to(self.reserve.map(|_| self.predicting() / 2))
    }
}

impl TrainingRun<'_> {
    fn advance(
        &mut self,
        k: usize,
        steps: std::ops::Range<usize>,
        evaluate: Option<&[ColumnInput]>,
        kept: Option<Duration>,
        run: &Run,
    ) -> Result<()> {
        for (done, step) in steps.enumerate() {
            run.check()?;
            // The first step is taken: it is measured.
            if done > 0 && run.is_down_to(kept) {
                return Ok(());
            }
            let stream = ((k as u64) << 40) | step as u64;
            self.trainer.step(run.rng("training", stream))?;
        }
        let Some(columns) = evaluate else { return Ok(()) };
        let params = self.trainer.smoothed();
        let (network, pairwise, grid) = self.trainer.parts();
        let mut error = 0.0;
        let mut count = 0;
        let rows = rows_at_a_time(grid);
        let mut tape = Tape::inference();
        for from in (0..grid.n).step_by(rows) {
            run.check()?;
            if run.is_down_to(kept) {
                return Ok(());
            }
            let part = from..(from + rows).min(grid.n);
            let predicted =
                predict_rows(&mut tape, &[(network, &params, pairwise)], columns, grid, part.clone(), &self.validation);
            for (f, [from_classes, point]) in predicted.iter().enumerate() {
                let column = &columns[f];
                let cells = part.clone().map(|i| i * grid.m + f).filter(|&at| self.validation[at]);
                let scale = if column.response.is_number() { 1.0 } else { LEVEL_ERROR };
                for (c, at) in cells.enumerate() {
                    let cell = c * column.response.width()..(c + 1) * column.response.width();
                    let of = |prediction: &[f32]| scale * column.response.error(&prediction[cell.clone()], grid.x[at]);
                    error += of(from_classes) + of(if point.is_empty() { from_classes } else { point });
                    count += 2;
                }
            }
        }
        let error = (count > 0).then(|| error / f64::from(count));
        self.latest = Some(Evaluation { error, params });
        Ok(())
    }
}

/// The mean predictions of the networks for the requested cells, given all observed cells: for each column those of
/// its cells, row by row.
///
/// # Errors
/// When the run is cancelled.
pub fn predict(
    nets: &[&TrainedNetwork],
    columns: &[ColumnInput],
    grid: &Grid,
    requested: &[bool],
    run: &Run,
) -> Result<Vec<Predicted>> {
    let nets: Vec<_> = nets.iter().map(|net| (&net.network, &net.params, &net.pairwise)).collect();
    let rows = rows_at_a_time(grid);
    let starts: Vec<usize> = (0..grid.n).step_by(rows).collect();
    let parts: Vec<Result<Vec<Predicted>>> = run.install(|| {
        starts
            .par_iter()
            // A tape keeps its memory for the next rows.
            .map_init(Tape::inference, |tape, &from| {
                run.check()?;
                Ok(alone(|| predict_rows(tape, &nets, columns, grid, from..(from + rows).min(grid.n), requested)))
            })
            .collect()
    });
    let mut all: Vec<Predicted> = vec![Predicted::default(); grid.m];
    for part in parts {
        for (all, part) in all.iter_mut().zip(part?) {
            all.iter_mut().zip(part).for_each(|(all, part)| all.extend(part));
        }
    }
    Ok(all)
}

/// How many rows are predicted at a time.
fn rows_at_a_time(grid: &Grid) -> usize {
    (CELLS / grid.m).clamp(8, 512)
}

fn predict_rows(
    tape: &mut Tape,
    nets: &[(&GraphNetwork, &Params, &Pairwise)],
    columns: &[ColumnInput],
    grid: &Grid,
    rows: std::ops::Range<usize>,
    requested: &[bool],
) -> Vec<Predicted> {
    let m = grid.m;
    let rows: Vec<u32> = rows.filter(|i| requested[i * m..(i + 1) * m].iter().any(|r| *r)).map(|i| i as u32).collect();
    let mut predicted = vec![Predicted::default(); m];
    if rows.is_empty() {
        return predicted;
    }
    let of = |what: &[bool]| -> Vec<bool> {
        rows.iter().flat_map(|&i| what[i as usize * m..(i as usize + 1) * m].iter().copied()).collect()
    };
    let (shown, is_target) = (of(&grid.observed), of(requested));
    let mut points: Vec<f32> = Vec::new();
    let mut shares: Vec<f32> = Vec::new(); // [t, most classes]
    let mut targets = Vec::new();
    let most = columns.iter().map(ColumnInput::classes).max().unwrap_or(1);
    let part = 1.0 / nets.len() as f32;
    for &(network, params, pairwise) in nets {
        let batch = Batch::new(grid, &rows, columns, pairwise, &shown, |at| is_target[at]);
        tape.reset();
        let mut pass = Pass::new(tape, params);
        let Output { point, logits } = network.forward(&mut pass, &batch);
        let (point, logits) = (pass.tape.value(point).as_slice(), pass.tape.value(logits));
        if targets.is_empty() {
            targets = batch.target_column.targets().to_vec();
            points = vec![0.0; targets.len()];
            shares = vec![0.0; targets.len() * most];
        }
        let mut raised = vec![0.0; most];
        for (t, (shares, &f)) in shares.chunks_exact_mut(most).zip(&targets).enumerate() {
            points[t] += part * point[t];
            let classes = columns[f as usize].classes();
            add_softmax(&logits.row(t)[..classes], part, &mut raised, shares);
        }
    }
    for ((&f, point), shares) in targets.iter().zip(points).zip(shares.chunks_exact(most)) {
        let predicted = &mut predicted[f as usize];
        let column = &columns[f as usize];
        let shares = &shares[..column.classes()];
        match column.response {
            Response::Number => {
                let [low, median, high] = [0.16, 0.5, 0.84].map(|q| column.bins.quantile(shares, q));
                let spread = (high - low) / 2.0;
                predicted[0].extend([median, spread]);
                predicted[1].extend([point, spread]);
            }
            _ => predicted[0].extend(shares),
        }
    }
    predicted
}

/// Adds `part` times the softmax of these logits to `sum`; `raised` is scratch space.
fn add_softmax(logits: &[f32], part: f32, raised: &mut [f32], sum: &mut [f32]) {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let raised = &mut raised[..logits.len()];
    raised.iter_mut().zip(logits).for_each(|(raised, l)| *raised = (l - most).exp());
    let total: f32 = raised.iter().sum();
    for (sum, raised) in sum.iter_mut().zip(raised) {
        *sum += part * *raised / total;
    }
}
