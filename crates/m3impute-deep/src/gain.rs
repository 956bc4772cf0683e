//! GAIN: a generator imputes missing cells, a discriminator guesses which cells were imputed.
//!
//! `b` rows of a batch, `w` inputs. The generator sees values, a little noise in the missing cells, and which cells are
//! observed; the discriminator sees the completed row and a hint: which of most observed cells are observed.

use crate::chance::{RowSampler, of_row};
use crate::files::store;
use crate::held::{Held, split};
use crate::inputs::{Inputs, Rows, Samples, encoding, incomplete_rows};
use crate::mlp::{Mlp, Start, Weights};
use crate::pace::{Best, Pace, TRAINING_SHARE, within_time};
use crate::registry;
use m3impute_core::distributions::Distributions;
use m3impute_core::unit;
use m3impute_core::{
    Encoded, Encoding, Error, Expect, Finish, Learnt, MatrixImputer, MatrixMethod, MatrixModel, MethodSpec, ModelFile,
    ParamSpec, Result, Run, Tensor, Want, load_matrix_model,
};
use m3impute_nn::{Activation, Adam, AdamParams, Matrix, Params, Tape};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;

/// The noise in missing cells is uniform below this.
const NOISE: f32 = 0.01;
/// Samples of the generator that make a predictive distribution: fewer where a row has many inputs, because each costs a
/// pass through all of them.
fn samples(width: usize) -> usize {
    (50_000 / width.max(1)).clamp(25, 100)
}
/// Steps from one evaluation on held-out cells to the next.
const EVALUATE_EVERY: u64 = 50;
/// Evaluations without an improvement after which training stops.
const PATIENCE: u64 = 60;
/// Rows that are filled at a time.
const ROWS: usize = 1024;

/// Which rows the two networks see in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Batches {
    /// The same.
    Same,
    /// The generator gets fresh ones.
    Fresh,
}

/// The parameters of `gain`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GainParams {
    /// Training steps, each of both networks.
    pub steps: u64,
    /// Batch size: rows in a step, at most.
    pub batch: usize,
    /// Width of the hidden layers; that of the inputs by default.
    pub width: Option<usize>,
    /// Hint rate: the share of observed cells revealed to the discriminator.
    pub hint: f64,
    /// Weight of the reconstruction error beside the adversarial loss.
    pub alpha: f64,
    /// Learning rate of Adam.
    pub learning_rate: f64,
    /// Which rows the two networks see in a step.
    pub batches: Batches,
    /// Initialisation of the weights.
    pub start: Start,
    /// Share of observed cells hidden from the generator in a step, which has to reconstruct them.
    pub hide: f64,
    /// Share of observed cells held out for early stopping; the last step is kept where it is zero.
    pub held: f64,
}

impl GainParams {
    /// The parameters of a preset.
    pub fn of_preset(name: &str) -> GainParams {
        match name {
            "paper" => GainParams {
                steps: 1000,
                batch: 256,
                alpha: 10.0,
                batches: Batches::Fresh,
                start: Start::Uniform,
                hide: 0.0,
                held: 0.0,
                ..GainParams::default()
            },
            _ => GainParams::default(),
        }
    }
}

impl Default for GainParams {
    /// The published settings, except for `hide` and `held`.
    fn default() -> GainParams {
        GainParams {
            steps: 10_000,
            batch: 128,
            width: None,
            hint: 0.9,
            alpha: 100.0,
            learning_rate: 1e-3,
            batches: Batches::Same,
            start: Start::Xavier,
            hide: 0.5,
            held: 0.1,
        }
    }
}

/// GAIN.
#[derive(Clone, Debug, Default)]
pub struct Gain {
    /// The parameters.
    pub params: GainParams,
}

/// The row of the registry.
pub static SPEC: MethodSpec = MethodSpec {
    name: "gain",
    summary: "GAIN: adversarial training: a generator imputes cells that a discriminator cannot tell from observed ones",
    avoid: "intervals and multiple imputation: its draws hardly differ; tables for which `missforest` has time",
    inductive: true,
    distributions: true,
    randomised: true,
    slow: true,
    presets: &[
        (
            "default",
            "as published by its authors, but trained to reconstruct hidden cells, with early stopping on held-out cells",
        ),
        ("paper", "as run for the tables of the M3-Impute paper: 1,000 steps"),
    ],
    params: &[
        ParamSpec {
            name: "steps",
            doc: "training steps, each of both networks",
            expects: Expect::Whole(1, 10_000_000),
        },
        registry::BATCH,
        ParamSpec {
            name: "width",
            doc: "width of the hidden layers (auto: that of the inputs)",
            expects: Expect::Auto(&Expect::Whole(1, 2048)),
        },
        ParamSpec {
            name: "hint",
            doc: "hint rate: share of observed cells revealed to the discriminator",
            expects: Expect::Number(0.0, 1.0),
        },
        ParamSpec {
            name: "alpha",
            doc: "weight of the reconstruction error beside the adversarial loss",
            expects: Expect::Number(0.0, 1e6),
        },
        registry::LEARNING_RATE,
        ParamSpec {
            name: "batches",
            doc: "whether both networks see the same batch in a step, or the generator a fresh one",
            expects: Expect::Choice(&["same", "fresh"]),
        },
        ParamSpec {
            name: "start",
            doc: "initialisation of the weights",
            expects: Expect::Choice(&["uniform", "xavier", "orthogonal"]),
        },
        ParamSpec {
            name: "hide",
            doc: "share of observed cells hidden from the generator in a step, which has to reconstruct them",
            expects: Expect::Number(0.0, 0.9),
        },
        ParamSpec {
            name: "held",
            doc: "share of observed cells held out for early stopping (0: keep the last step)",
            expects: Expect::Number(0.0, 0.5),
        },
    ],
    preset_values: |name| {
        SPEC.presets.iter().any(|p| p.0 == name).then(|| serde_json::json!(GainParams::of_preset(name)))
    },
    build: |settings| {
        let params = SPEC.params(settings, GainParams::of_preset)?;
        Ok(Box::new(MatrixImputer::new(&SPEC, Gain { params }, settings.finish.over(Finish::default()))))
    },
    load: |file| load_matrix_model::<Gain>(&SPEC, file),
};

impl MatrixMethod for Gain {
    type Model = FittedGain;
    type Params = GainParams;

    fn params(&self) -> &GainParams {
        &self.params
    }

    fn encoding(&self) -> Encoding {
        encoding(false)
    }

    fn fit(&self, data: &Encoded, run: &mut Run) -> Result<Learnt<FittedGain>> {
        let run = &mut run.part(TRAINING_SHARE);
        let (inputs, rows, held) = split(data, self.params.held, run);
        let mut best = Best::new(PATIENCE);
        let mut pace = Pace::new(SPEC.name, "steps", self.params.steps);
        let mut training = Training::new(&self.params, &inputs, rows, run);
        while let Some(steps) = pace.next(EVALUATE_EVERY, run)? {
            let done = run.install(|| -> Result<_> {
                let mut loss = 0.0;
                for step in steps.clone() {
                    within_time(run)?;
                    loss = training.step(&mut run.rng("batches", step));
                }
                Ok((loss, held.as_ref().map(|held| training.error(held, &mut run.rng("noise", 0)))))
            });
            let Some((loss, error)) = pace.outcome(done, run)? else { break };
            pace.took(steps, loss, run)?;
            if error.is_some_and(|error| !best.offer(error, || training.generator.params.clone())) {
                break;
            }
        }
        let Network { mut params, net } = training.generator;
        if let Some(best) = best.state() {
            params.copy_values_from(&best);
        }
        let width = self.params.width.unwrap_or(inputs.width());
        let model = FittedGain { inputs, width, params, generator: net, seed: run.seed() };
        Ok(Learnt { model, notes: pace.notes() })
    }
}

#[derive(Debug)]
struct Network {
    params: Params,
    net: Mlp,
}

/// Both networks in training.
#[derive(Debug)]
struct Training<'a> {
    settings: &'a GainParams,
    rows: Rows,
    /// The inputs of each feature.
    cells: Vec<Range<usize>>,
    sampler: RowSampler,
    generator: Network,
    discriminator: Network,
    adams: [Adam; 2],
    tape: Tape,
}

/// Some rows, with noise in what is not shown of them.
struct Batch {
    /// Values and noise. // [b, w]
    x: Matrix,
    /// What the generator is shown. // [b, w]
    shown: Matrix,
    /// Which of most shown cells are shown. // [b, w]
    hint: Matrix,
    /// The values, where they are observed. // [b, w]
    truth: Matrix,
    /// Where they are. // [b, w]
    observed: Matrix,
}

impl<'a> Training<'a> {
    fn new(settings: &'a GainParams, inputs: &Inputs, rows: Rows, run: &Run) -> Training<'a> {
        let w = rows.x.cols();
        let network = |name: &str, stream| {
            let mut params = Params::new();
            let sizes = sizes(w, settings.width.unwrap_or(w));
            let net = Mlp::new(&mut params, name, &sizes, settings.start, &mut run.rng("weights", stream));
            Network { params, net }
        };
        let (generator, discriminator) = (network(GENERATOR, 0), network("discriminator", 1));
        let adams = [&generator, &discriminator].map(|n| Adam::new(&n.params, AdamParams::default()));
        let sampler = RowSampler::new(rows.len());
        Training {
            settings,
            rows,
            cells: inputs.cells().collect(),
            sampler,
            generator,
            discriminator,
            adams,
            tape: Tape::new(),
        }
    }

    fn batch(&mut self, rng: &mut ChaCha8Rng) -> Batch {
        let count = self.settings.batch.min(self.rows.len());
        let Rows { x: truth, observed } = self.rows.select(self.sampler.draw(count, rng));
        let mut shown = observed.clone();
        for i in 0..count {
            for cell in self.cells.iter().filter(|_| unit(rng) < self.settings.hide as f32) {
                shown.row_mut(i)[cell.clone()].fill(0.0);
            }
        }
        let mut x = truth.clone();
        noise(x.as_mut_slice(), shown.as_slice(), rng);
        let told = self.settings.hint as f32;
        let mut hint = shown.clone();
        hint.as_mut_slice().iter_mut().for_each(|h| *h *= f32::from(u8::from(unit(rng) < told)));
        Batch { x, shown, hint, truth, observed }
    }

    /// One step of each network; returns the loss of the generator.
    fn step(&mut self, rng: &mut ChaCha8Rng) -> f32 {
        let mut batch = self.batch(rng);
        self.discriminate(&batch);
        if self.settings.batches == Batches::Fresh {
            batch = self.batch(rng);
        }
        self.generate(&batch)
    }

    fn discriminate(&mut self, batch: &Batch) {
        let (tape, Network { params, net }) = (&mut self.tape, &self.generator);
        tape.reset();
        let seen = tape.constant(beside(&batch.x, &batch.shown)); // [b, 2 w]
        let filled = net.apply(tape, params, Weights::Frozen, seen, Activation::Sigmoid); // [b, w]
        let mut completed = batch.x.clone();
        let cells = completed.as_mut_slice().iter_mut().zip(batch.shown.as_slice());
        cells.zip(tape.value(filled).as_slice()).for_each(|((x, o), g)| *x = if *o == 1.0 { *x } else { *g });
        let Network { params, net } = &mut self.discriminator;
        let completed = tape.constant(beside(&completed, &batch.hint)); // [b, 2 w]
        let logits = net.apply(tape, params, Weights::Trained, completed, Activation::None); // [b, w]
        let truth = tape.constant(batch.shown.clone());
        // The cross-entropy of logits.
        let (surprise, agreed) = (tape.softplus(logits), tape.mul(logits, truth));
        let surprise = tape.sub(surprise, agreed);
        let loss = tape.mean(surprise);
        params.zero_grads();
        tape.backward(loss, params);
        self.adams[1].step(params, self.settings.learning_rate as f32);
    }

    /// The error of the generator on held-out cells.
    fn error(&mut self, held: &Held, rng: &mut ChaCha8Rng) -> f32 {
        let (tape, Network { params, net }) = (&mut self.tape, &self.generator);
        let Rows { mut x, observed } = held.rows.clone();
        noise(x.as_mut_slice(), observed.as_slice(), rng);
        tape.reset();
        let seen = tape.constant(beside(&x, &observed)); // [n, 2 w]
        let filled = net.apply(tape, params, Weights::Frozen, seen, Activation::Sigmoid); // [n, w]
        held.error(tape.value(filled))
    }

    fn generate(&mut self, batch: &Batch) -> f32 {
        let (tape, Network { params, net }) = (&mut self.tape, &mut self.generator);
        tape.reset();
        let seen = tape.constant(beside(&batch.x, &batch.shown)); // [b, 2 w]
        let filled = net.apply(tape, params, Weights::Trained, seen, Activation::Sigmoid); // [b, w]
        let (x, shown) = (tape.constant(batch.x.clone()), tape.constant(batch.shown.clone()));
        let missing = tape.scale(shown, -1.0);
        let missing = tape.add_scalar(missing, 1.0);
        let (kept, put) = (tape.mul(x, shown), tape.mul(filled, missing));
        let completed = tape.add(kept, put);
        let hint = tape.constant(batch.hint.clone());
        let completed = tape.concat(&[completed, hint]); // [b, 2 w]
        let Network { params: judge, net: discriminator } = &self.discriminator;
        let logits = discriminator.apply(tape, judge, Weights::Frozen, completed, Activation::None); // [b, w]
        // Minus the log of the probability that imputed cells are taken for observed ones.
        let doubt = tape.scale(logits, -1.0);
        let doubt = tape.softplus(doubt);
        let doubt = tape.mul(doubt, missing);
        let doubt = tape.mean(doubt);
        let (truth, observed) = (tape.constant(batch.truth.clone()), tape.constant(batch.observed.clone()));
        let repeated = tape.mul(filled, observed);
        let error = tape.mse(repeated, truth);
        let share = batch.observed.as_slice().iter().sum::<f32>() / batch.observed.as_slice().len() as f32;
        let error = tape.scale(error, self.settings.alpha as f32 / share.max(1e-6));
        let loss = tape.add(doubt, error);
        params.zero_grads();
        tape.backward(loss, params);
        self.adams[0].step(params, self.settings.learning_rate as f32);
        tape.scalar(loss)
    }
}

/// The sizes of the layers of either network.
fn sizes(inputs: usize, width: usize) -> [usize; 4] {
    [2 * inputs, width, width, inputs]
}

/// Puts noise where nothing is observed.
fn noise(x: &mut [f32], observed: &[f32], rng: &mut ChaCha8Rng) {
    x.iter_mut().zip(observed).filter(|(_, o)| **o == 0.0).for_each(|(x, _)| *x = NOISE * unit(rng));
}

/// Two matrices side by side.
fn beside(a: &Matrix, b: &Matrix) -> Matrix {
    let w = a.cols();
    let mut out = Matrix::zeros(a.rows(), 2 * w);
    for i in 0..a.rows() {
        let (left, right) = out.row_mut(i).split_at_mut(w);
        left.copy_from_slice(a.row(i));
        right.copy_from_slice(b.row(i));
    }
    out
}

const GENERATOR: &str = "generator";

/// A trained generator.
#[derive(Debug)]
pub struct FittedGain {
    inputs: Inputs,
    width: usize,
    params: Params,
    generator: Mlp,
    seed: u64,
}

#[derive(Serialize, Deserialize)]
struct State {
    inputs: Inputs,
    width: usize,
    seed: u64,
}

impl FittedGain {
    /// Samples of the generator for each incomplete row; `each` gets its number and the samples. // [samples, w]
    fn sample(
        &self,
        data: &mut Encoded,
        samples: usize,
        run: &Run,
        mut each: impl FnMut(&mut Encoded, usize, &[f32]),
    ) -> Result<()> {
        let (w, batch) = (self.inputs.width(), (64 * ROWS / samples).clamp(1, ROWS));
        let incomplete = incomplete_rows(data);
        let mut tape = Tape::inference();
        for part in incomplete.chunks(batch) {
            run.check()?;
            let mut seen = Matrix::zeros(part.len() * samples, 2 * w); // [rows, 2 w]
            for (at, &i) in part.iter().enumerate() {
                let row = self.inputs.read(data, i..i + 1);
                let mut rng = of_row(self.seed, &row, 0);
                for sample in 0..samples {
                    let (values, observed) = seen.row_mut(at * samples + sample).split_at_mut(w);
                    values.copy_from_slice(row.x.row(0));
                    observed.copy_from_slice(row.observed.row(0));
                    noise(values, observed, &mut rng);
                }
            }
            tape.reset();
            let seen = tape.constant(seen);
            let filled = run
                .install(|| self.generator.apply(&mut tape, &self.params, Weights::Frozen, seen, Activation::Sigmoid));
            for (&i, samples) in part.iter().zip(tape.value(filled).as_slice().chunks_exact(samples * w)) {
                each(data, i, samples);
            }
        }
        Ok(())
    }
}

impl MatrixModel for FittedGain {
    const DISTRIBUTIONS: bool = true;

    fn predict(&self, rows: &mut Encoded, want: Want, run: &Run) -> Result<Option<Vec<Distributions>>> {
        if want == Want::Point {
            self.sample(rows, 1, run, |rows, i, sample| self.inputs.put(rows, i, sample))?;
            return Ok(None);
        }
        let mut of = self.inputs.no_distributions();
        let (width, samples) = (self.inputs.width(), samples(self.inputs.width()));
        let weights = vec![1.0 / samples as f32; samples];
        self.sample(rows, samples, run, |rows, i, values| {
            self.inputs.predict_distributions(rows, i, &Samples { values, width, weights: &weights }, &mut of);
            self.inputs.put(rows, i, &values[..width]);
        })?;
        Ok(Some(of))
    }

    fn store(&self, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        store(&self.params, tensors);
        serde_json::json!(State { inputs: self.inputs.clone(), width: self.width, seed: self.seed })
    }

    fn restore(file: &ModelFile, _: usize) -> Result<FittedGain> {
        let State { inputs, width, seed } = file.state()?;
        let inputs = inputs.checked(file)?;
        if width == 0 {
            return Err(Error::damaged("the width of the network"));
        }
        let mut params = Params::new();
        let generator = Mlp::restore(file, &mut params, GENERATOR, &sizes(inputs.width(), width))?;
        Ok(FittedGain { inputs, width, params, generator, seed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_learns_a_column_that_repeats_another() {
        let run = Run::new(1, 1).unwrap();
        let x = Matrix::from_fn(200, 2, |i, _| (i * 7 % 11) as f32 / 10.0);
        let observed = Matrix::from_fn(200, 2, |i, j| f32::from(u8::from((i + 3 * j) % 5 != 0)));
        let settings = GainParams { width: Some(16), hide: 0.0, ..GainParams::default() };
        let mut training = Training::new(&settings, &Inputs::of_numbers(2), Rows { x, observed }, &run);
        let losses: Vec<f32> = (0..400).map(|s| training.step(&mut run.rng("batches", s))).collect();
        let mean = |l: &[f32]| l.iter().sum::<f32>() / l.len() as f32;
        assert!(mean(&losses[380..]) < 0.5 * mean(&losses[..20]), "{:?}", &losses[380..]);
    }
}
