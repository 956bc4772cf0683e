//! MIWAE: an autoencoder of incomplete rows, trained on a lower bound of the likelihood of the observed cells.
//!
//! `b` rows of a batch, `w` inputs, `z` latent numbers, `k` samples a row. The encoder sees a row with zeros in its
//! missing cells and gives the normal distribution `q` of its latent numbers; the decoder gives the distributions of
//! the row's cells. Samples from `q` weighted by `p(x | z) p(z) / q(z)` are samples of what is missing.

mod train;

use crate::chance::of_row;
use crate::files::store;
use crate::held::split;
use crate::inputs::{Inputs, Rows, Samples, encoding, incomplete_rows};
use crate::mlp::{Mlp, Start, Weights};
use crate::pace::{Best, Pace, TRAINING_SHARE, within_time};
use crate::registry;
use m3impute_core::distributions::Distributions;
use m3impute_core::{
    Encoded, Encoding, Error, Expect, Learnt, MatrixImputer, MatrixMethod, MatrixModel, MethodSpec, ModelFile,
    ParamSpec, Result, Run, Tensor, Want, load_matrix_model,
};
use m3impute_nn::{Activation, Index, Matrix, Params, Tape, Var, alone};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StudentT};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use train::Training;

/// Numbers of the decoder that a thread makes at a time when rows are filled.
const NUMBERS: usize = 1 << 18;
/// Numbers that are sampled of a row when it is filled, about.
const SAMPLED: usize = 200_000;
/// Chunks of so many numbers that are made before rows are filled.
const CHUNKS: usize = 32;
/// Evaluations on held-out cells, from the first epoch to the last.
const EVALUATIONS: u64 = 40;
/// Steps from one check of the clock to the next, about.
const STEPS: u64 = 100;
/// Evaluations without an improvement after which training stops.
const PATIENCE: u64 = 12;

/// What fills a missing cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fill {
    /// The weighted mean of the samples' means.
    Mean,
    /// The weighted mean of one draw a sample.
    Draw,
}

/// The parameters of `miwae`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MiwaeParams {
    /// How many epochs.
    pub epochs: u64,
    /// Maximum number of steps; limits the epochs on a long table.
    pub steps: u64,
    /// Batch size: rows in a step, at most.
    pub batch: usize,
    /// The width of hidden layers.
    pub width: usize,
    /// Dimension of the latent space; half the number of inputs by default.
    pub latent: Option<usize>,
    /// Importance samples of a row in training.
    pub particles: usize,
    /// Importance samples of a row when it is imputed; 1,000 by default, fewer on tables of more than 200 inputs.
    pub samples: Option<usize>,
    /// What fills a missing cell.
    pub fill: Fill,
    /// Learning rate of Adam.
    pub learning_rate: f64,
    /// Whether numbers are standardised to mean 0 and standard deviation 1, or scaled to 0..1.
    pub standardise: bool,
    /// Share of observed cells held out for early stopping; the last epoch is kept where it is zero.
    pub held: f64,
}

impl MiwaeParams {
    /// The parameters of a preset.
    pub fn of_preset(name: &str) -> MiwaeParams {
        match name {
            "paper" => MiwaeParams {
                epochs: 2999,
                steps: 10_000_000,
                batch: 256,
                width: 1,
                latent: Some(1),
                particles: 10,
                samples: Some(10),
                fill: Fill::Draw,
                standardise: false,
                held: 0.0,
                ..MiwaeParams::default()
            },
            _ => MiwaeParams::default(),
        }
    }
}

impl Default for MiwaeParams {
    /// The settings that its authors published.
    fn default() -> MiwaeParams {
        MiwaeParams {
            epochs: 600,
            steps: 6000,
            batch: 64,
            width: 128,
            latent: None,
            particles: 20,
            samples: None,
            fill: Fill::Mean,
            learning_rate: 1e-3,
            standardise: true,
            held: 0.1,
        }
    }
}

/// MIWAE.
#[derive(Clone, Debug, Default)]
pub struct Miwae {
    /// The parameters.
    pub params: MiwaeParams,
}

/// The row of the registry.
pub static SPEC: MethodSpec = MethodSpec {
    name: "miwae",
    summary: "MIWAE: a variational autoencoder of incomplete rows; missing cells are imputed by importance sampling",
    avoid: "a few hundred rows, where `missforest` is more accurate in less time; values missing not at random (MNAR)",
    inductive: true,
    distributions: true,
    randomised: true,
    slow: true,
    presets: &[
        ("default", "as published by its authors, with early stopping on held-out cells"),
        ("paper", "as run for the tables of the M3-Impute paper: one hidden unit, one latent dimension"),
    ],
    params: &[
        ParamSpec { name: "epochs", doc: "number of epochs", expects: Expect::Whole(1, 10_000_000) },
        registry::EPOCH_STEPS,
        registry::BATCH,
        ParamSpec { name: "width", doc: "width of the hidden layers", expects: Expect::Whole(1, 2048) },
        ParamSpec {
            name: "latent",
            doc: "dimension of the latent space (auto: half the number of inputs)",
            expects: Expect::Auto(&Expect::Whole(1, 1024)),
        },
        ParamSpec {
            name: "particles",
            doc: "importance samples of a row in training",
            expects: Expect::Whole(1, 1000),
        },
        ParamSpec {
            name: "samples",
            doc: "importance samples of a row when it is imputed (auto: 1000, fewer on tables of more than 200 inputs)",
            expects: Expect::Auto(&Expect::Whole(1, 100_000)),
        },
        ParamSpec {
            name: "fill",
            doc: "what fills a missing cell: the weighted mean of the samples' means, or of one draw from each sample",
            expects: Expect::Choice(&["mean", "draw"]),
        },
        registry::LEARNING_RATE,
        registry::STANDARDISE,
        registry::HELD_FOR_EPOCHS,
    ],
    preset_values: |name| {
        SPEC.presets.iter().any(|p| p.0 == name).then(|| serde_json::json!(MiwaeParams::of_preset(name)))
    },
    build: |settings| {
        let params = SPEC.params(settings, MiwaeParams::of_preset)?;
        Ok(Box::new(MatrixImputer::new(&SPEC, Miwae { params }, registry::finish(&SPEC, settings)?)))
    },
    load: |file| load_matrix_model::<Miwae>(&SPEC, file),
};

impl MatrixMethod for Miwae {
    type Model = FittedMiwae;
    type Params = MiwaeParams;

    fn params(&self) -> &MiwaeParams {
        &self.params
    }

    fn encoding(&self) -> Encoding {
        encoding(self.params.standardise)
    }

    fn fit(&self, data: &Encoded, run: &mut Run) -> Result<Learnt<FittedMiwae>> {
        let run = &mut run.part(TRAINING_SHARE);
        let p = &self.params;
        let (inputs, rows, held) = split(data, p.held, run);
        let latent = p.latent.unwrap_or(inputs.width() / 2).max(1);
        // A row of many inputs has as many numbers to sample as one of few: what filling costs stays in proportion.
        let samples = p.samples.unwrap_or_else(|| (SAMPLED / inputs.width().max(1)).clamp(100, 1000));
        let shape = Shape { width: p.width, latent, samples, fill: p.fill };
        let model = FittedMiwae::new(inputs, shape, run);
        let mut training = Training::new(p, rows, model);
        let batches = training.batches() as u64;
        let mut pace = Pace::of_epochs(SPEC.name, p.epochs, p.steps, batches);
        // Without evaluations, epochs are bundled only to keep the pool busy.
        let bundle = if held.is_some() { p.epochs.min(p.steps / batches) / EVALUATIONS } else { STEPS / batches };
        let (bundle, mut best) = (bundle.clamp(1, 25), Best::new(PATIENCE));
        while let Some(epochs) = pace.next(bundle, run)? {
            let done = run.install(|| -> Result<_> {
                let mut loss = 0.0;
                for epoch in epochs.clone() {
                    loss = training.epoch(&mut run.rng("epoch", epoch), || within_time(run))?;
                }
                Ok((loss, held.as_ref().map(|held| training.error(held, run))))
            });
            let Some((loss, error)) = pace.outcome(done, run)? else { break };
            pace.took(epochs, loss, run)?;
            if error.is_some_and(|error| !best.offer(error, || training.model.params.clone())) {
                break;
            }
        }
        let mut model = training.model;
        if let Some(best) = best.state() {
            model.params.copy_values_from(&best);
        }
        Ok(Learnt { model, notes: pace.notes() })
    }
}

/// What a model is like.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Shape {
    width: usize,
    latent: usize,
    samples: usize,
    fill: Fill,
}

/// A trained autoencoder.
#[derive(Debug)]
pub struct FittedMiwae {
    inputs: Inputs,
    shape: Shape,
    params: Params,
    encoder: Mlp,
    decoder: Mlp,
    seed: u64,
}

#[derive(Serialize, Deserialize)]
struct State {
    inputs: Inputs,
    shape: Shape,
    seed: u64,
}

/// Rows on a tape.
#[derive(Clone, Copy)]
struct Seen {
    x: Var,
    observed: Var,
}

impl Seen {
    fn new(tape: &mut Tape, rows: Rows) -> Seen {
        Seen { x: tape.constant(rows.x), observed: tape.constant(rows.observed) }
    }
}

const ENCODER: &str = "encoder";
const DECODER: &str = "decoder";

impl FittedMiwae {
    fn new(inputs: Inputs, shape: Shape, run: &Run) -> FittedMiwae {
        let mut params = Params::new();
        let [of_encoder, of_decoder] = sizes(&inputs, &shape);
        let start = Start::Orthogonal;
        let encoder = Mlp::new(&mut params, ENCODER, &of_encoder, start, &mut run.rng("weights", 0));
        let decoder = Mlp::new(&mut params, DECODER, &of_decoder, start, &mut run.rng("weights", 1));
        FittedMiwae { inputs, shape, params, encoder, decoder, seed: run.seed() }
    }

    /// The log weights of `k` samples a row, `[b, k]`, and what the decoder makes of each, `[b k, parameters]`. The
    /// samples of a row follow each other.
    fn weights(&self, tape: &mut Tape, train: Weights, rows: Seen, k: usize, noise: Matrix) -> (Var, Var) {
        let (b, z) = (tape.shape(rows.x).0, self.shape.latent);
        let of_q = self.encoder.apply(tape, &self.params, train, rows.x, Activation::None); // [b, 2 z]
        let (mean, spread) = (tape.slice_cols(of_q, 0, z), tape.slice_cols(of_q, z, 2 * z));
        let spread = tape.softplus(spread);
        let spread = tape.add_scalar(spread, 1e-6);
        let of_row = Index::new((0..b * k).map(|s| (s / k) as u32).collect(), b);
        let (mean, spread) = (tape.gather(mean, &of_row), tape.gather(spread, &of_row)); // [b k, z]
        // `ln p(z) - ln q(z)`: the noise is `(z - mean) / spread`, and the constants of both cancel.
        let squares = Matrix::from_fn(b * k, z, |i, j| 0.5 * noise.get(i, j) * noise.get(i, j));
        let (noise, squares) = (tape.constant(noise), tape.constant(squares));
        let drawn = tape.mul(spread, noise);
        let drawn = tape.add(mean, drawn); // [b k, z]
        let far = tape.square(drawn);
        let far = tape.scale(far, -0.5);
        let wide = tape.log(spread, 0.0);
        let ratio = tape.add(far, wide);
        let ratio = tape.add(ratio, squares);
        let ratio = tape.row_sum(ratio); // [b k, 1]
        let raw = self.decoder.apply(tape, &self.params, train, drawn, Activation::None); // [b k, parameters]
        let likely = tape.log_likelihood(raw, rows.x, rows.observed, self.inputs.numbers()); // [b k, 1]
        let weights = tape.add(likely, ratio);
        (tape.reshape(weights, b, k), raw)
    }

    /// The weights of `k` samples of a row, which add up to one, and the samples: the means of numbers and the
    /// probabilities of flags, `[rows k, w]`. `each` is shown, for every sample, its number and the scales and degrees
    /// of freedom of its numbers.
    fn samples(
        &self,
        tape: &mut Tape,
        rows: Rows,
        k: usize,
        noise: Matrix,
        mut each: impl FnMut(usize, [&[f32]; 2]),
    ) -> (Vec<f32>, Vec<f32>) {
        let (q, w) = (self.inputs.numbers(), self.inputs.width());
        let samples = rows.len() * k;
        tape.reset();
        let seen = Seen::new(tape, rows);
        let (weights, raw) = self.weights(tape, Weights::Frozen, seen, k, noise);
        let weights = tape.softmax(weights);
        let (spread, flags) = (tape.slice_cols(raw, q, 3 * q), tape.slice_cols(raw, 3 * q, 3 * q + w - q));
        let (spread, flags) = (tape.softplus(spread), tape.sigmoid(flags)); // [rows k, 2 q], [rows k, w - q]
        let mut values = Vec::with_capacity(samples * w);
        for s in 0..samples {
            values.extend_from_slice(&tape.value(raw).row(s)[..q]);
            values.extend_from_slice(tape.value(flags).row(s));
            let (scales, freedoms) = tape.value(spread).row(s).split_at(q);
            each(s, [scales, freedoms]);
        }
        (tape.value(weights).as_slice().to_vec(), values)
    }

    fn rows_at_a_time(&self, samples: usize) -> usize {
        let [_, of_decoder] = sizes(&self.inputs, &self.shape);
        (NUMBERS / (samples * of_decoder.iter().max().copied().unwrap_or(1))).max(1)
    }

    /// Weighted samples of each incomplete row; `each` gets its number, the means of the samples, and a draw from each;
    /// the means again where draws are not wanted.
    fn sample(
        &self,
        data: &mut Encoded,
        run: &Run,
        wanted: Fill,
        mut each: impl FnMut(&mut Encoded, usize, [&Samples<'_>; 2]),
    ) -> Result<()> {
        let (q, w, k) = (self.inputs.numbers(), self.inputs.width(), self.shape.samples);
        let incomplete = incomplete_rows(data);
        let draw = |tape: &mut Tape, rows: &[Rows]| {
            let mut streams: Vec<ChaCha8Rng> = rows.iter().map(|row| of_row(self.seed, row, 0)).collect();
            let mut noise = Vec::with_capacity(rows.len() * k * self.shape.latent);
            streams.iter_mut().for_each(|rng| noise.extend(Matrix::normal(k, self.shape.latent, 1.0, rng).into_vec()));
            let noise = matrix_of(rows.len() * k, noise);
            let mut off = Vec::new(); // [rows k, q]
            let joined = Rows { x: stacked(rows, |r| &r.x), observed: stacked(rows, |r| &r.observed) };
            let (weights, means) = self.samples(tape, joined, k, noise, |s, [scales, freedoms]| {
                if wanted == Fill::Mean {
                    return;
                }
                let (rng, seen) = (&mut streams[s / k], rows[s / k].observed.row(0));
                // The least scale and freedom are those of the likelihood. Observed cells need no draw.
                let draw = |((&freedom, &scale), &seen): ((&f32, &f32), &f32)| match StudentT::new(freedom + 3.0) {
                    Ok(t) if seen == 0.0 => (scale + 0.001) * t.sample(rng),
                    _ => 0.0,
                };
                off.extend(freedoms.iter().zip(scales).zip(seen).map(draw));
            });
            let drawn = (wanted == Fill::Draw).then(|| {
                let mut drawn = means.clone(); // [rows k, w]
                for (row, off) in drawn.chunks_exact_mut(w).zip(off.chunks(q.max(1))) {
                    row.iter_mut().zip(off).for_each(|(x, off)| *x += off);
                }
                drawn
            });
            (weights, means, drawn)
        };
        let chunk = self.rows_at_a_time(k);
        for parts in incomplete.chunks(chunk * CHUNKS) {
            run.check()?;
            let rows: Vec<Rows> = parts.iter().map(|&i| self.inputs.read(data, i..i + 1)).collect();
            // A thread a chunk: what a chunk needs stays in the cache of its processor.
            let drawn: Vec<_> = run.install(|| {
                let chunks = rows.par_chunks(chunk);
                chunks.map_init(Tape::inference, |tape, rows| alone(|| draw(tape, rows))).collect()
            });
            for (part, (weights, means, drawn)) in parts.chunks(chunk).zip(&drawn) {
                for (at, &i) in part.iter().enumerate() {
                    let (of, weights) = (at * k * w..(at + 1) * k * w, &weights[at * k..(at + 1) * k]);
                    let [mean, drawn] = [means, drawn.as_ref().unwrap_or(means)].map(|values| Samples {
                        values: &values[of.clone()],
                        width: w,
                        weights,
                    });
                    each(data, i, [&mean, &drawn]);
                }
            }
        }
        Ok(())
    }

    /// What fills the missing cells of a row.
    fn point(&self, [mean, drawn]: [&Samples<'_>; 2]) -> Vec<f32> {
        let of = if self.shape.fill == Fill::Mean { mean } else { drawn };
        (0..self.inputs.width()).map(|j| of.mean(j)).collect()
    }
}

/// The sizes of the layers of encoder and decoder.
fn sizes(inputs: &Inputs, shape: &Shape) -> [[usize; 4]; 2] {
    let (w, h) = (inputs.width(), shape.width);
    [[w, h, h, 2 * shape.latent], [shape.latent, h, h, w + 2 * inputs.numbers()]]
}

fn matrix_of(rows: usize, values: Vec<f32>) -> Matrix {
    let cols = values.len() / rows.max(1);
    Matrix::from_vec(rows, cols, values).expect("rows of equal length")
}

/// Rows one below the other.
fn stacked(rows: &[Rows], of: impl Fn(&Rows) -> &Matrix) -> Matrix {
    matrix_of(rows.len(), rows.iter().flat_map(|r| of(r).as_slice()).copied().collect())
}

impl MatrixModel for FittedMiwae {
    const DISTRIBUTIONS: bool = true;

    fn predict(&self, rows: &mut Encoded, want: Want, run: &Run) -> Result<Option<Vec<Distributions>>> {
        if want == Want::Point {
            self.sample(rows, run, self.shape.fill, |rows, i, samples| self.inputs.put(rows, i, &self.point(samples)))?;
            return Ok(None);
        }
        let mut of = self.inputs.no_distributions();
        self.sample(rows, run, Fill::Draw, |rows, i, samples| {
            self.inputs.predict_distributions(rows, i, samples[1], &mut of);
            self.inputs.put(rows, i, &self.point(samples));
        })?;
        Ok(Some(of))
    }

    fn store(&self, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        store(&self.params, tensors);
        serde_json::json!(State { inputs: self.inputs.clone(), shape: self.shape.clone(), seed: self.seed })
    }

    fn restore(file: &ModelFile, _: usize) -> Result<FittedMiwae> {
        let State { inputs, shape, seed } = file.state()?;
        let inputs = inputs.checked(file)?;
        let within = |value: usize, most: usize| (1..=most).contains(&value);
        if !within(shape.width, 2048) || !within(shape.latent, 1024) || !within(shape.samples, 100_000) {
            return Err(Error::damaged("the shape of the model"));
        }
        let mut params = Params::new();
        let [of_encoder, of_decoder] = sizes(&inputs, &shape);
        let encoder = Mlp::restore(file, &mut params, ENCODER, &of_encoder)?;
        let decoder = Mlp::restore(file, &mut params, DECODER, &of_decoder)?;
        Ok(FittedMiwae { inputs, shape, params, encoder, decoder, seed })
    }
}
