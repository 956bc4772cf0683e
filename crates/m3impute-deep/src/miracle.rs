//! MIRACLE: every column by a network of the others, refined again and again, with the graph of who needs whom kept free
//! of cycles.
//!
//! `n` rows, `b` of them in a batch, `w` inputs, `q` of them with holes, `h` hidden units. There is a network for every
//! input and one for every input with holes, which says whether it is observed: `d = w + q`. The first layer and the last
//! are their own, the one between is shared.

mod network;

use crate::chance::Deck;
use crate::files::{matrix, store};
use crate::held::Held;
use crate::inputs::{Inputs, Rows, encoding, select};
use crate::pace::Pace;
use m3impute_core::beliefs::Distributions;
use m3impute_core::encode::Scale;
use m3impute_core::{
    Completed, Encoded, Encoding, Error, Expect, Finish, Learnt, MatrixImputer, MatrixMethod, MatrixModel, MethodSpec,
    ModelFile, ParamSpec, Result, Run, Tensor, Want, load_matrix_model,
};
use m3impute_nn::{Adam, AdamParams, Matrix, Params, Tape, Var, alone};
use network::{Batch, Network, Penalties};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};

/// Epochs without a better one after which training ends.
const PATIENCE: u64 = 100;
/// New rows that are refined at a time.
const FILL_ROWS: usize = 8192;
/// Parts of a batch, each learnt from by one thread, and how many rows they have at least and at most.
const PARTS: usize = 4;
const PART_ROWS: (usize, usize) = (16, 256);

/// How an epoch cuts the table into batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Batches {
    /// All rows, each with its own observed cells.
    Whole,
    /// As it was run: without the first batch, and row by row with the observed cells of another row.
    Shifted,
}

/// The parameters of `miracle`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MiracleParams {
    /// How often the table is refined.
    pub epochs: u64,
    /// How many steps at most, where the epochs of a long table would be more.
    pub steps: u64,
    /// How many rows a step looks at, at most.
    pub batch: usize,
    /// How an epoch cuts the table into batches.
    pub batches: Batches,
    /// The width of hidden layers.
    pub width: usize,
    /// How many predictions, of the last epochs, are averaged.
    pub window: usize,
    /// The step of Adam.
    pub learning_rate: f64,
    /// The weight of the sum of squared errors.
    pub lambda: f64,
    /// The weight of the norms of the first layers.
    pub beta: f64,
    /// The weight of the difference between predicted and observed means.
    pub moments: f64,
    /// Whether numbers have mean 0 and deviation 1, or lie between 0 and 1.
    pub standardise: bool,
    /// The share of observed cells that are held out, to tell which epoch was best; the last where it is zero.
    pub held: f64,
}

impl MiracleParams {
    /// The parameters of a preset.
    pub fn of_preset(name: &str) -> MiracleParams {
        match name {
            "paper" => MiracleParams {
                epochs: 1999,
                steps: 10_000_000,
                batch: 1024,
                batches: Batches::Shifted,
                width: 8,
                standardise: false,
                held: 0.0,
                ..MiracleParams::default()
            },
            _ => MiracleParams::default(),
        }
    }
}

impl Default for MiracleParams {
    /// As its authors meant it.
    fn default() -> MiracleParams {
        MiracleParams {
            epochs: 400,
            steps: 10_000,
            batch: 64,
            batches: Batches::Whole,
            width: 32,
            window: 10,
            learning_rate: 1e-3,
            lambda: 1.0,
            beta: 1.0,
            moments: 1.0,
            standardise: true,
            held: 0.1,
        }
    }
}

/// MIRACLE.
#[derive(Clone, Debug, Default)]
pub struct Miracle {
    /// The parameters.
    pub params: MiracleParams,
}

/// The row of the registry.
pub static SPEC: MethodSpec = MethodSpec {
    name: "miracle",
    summary: "MIRACLE: each column by a network of the others, refined while the graph between them is kept acyclic",
    avoid: "many columns: it has two networks for each; columns that explain each other in a circle",
    inductive: true,
    distributions: false,
    randomised: true,
    slow: true,
    presets: &[
        ("default", "as its authors meant it: small batches of all rows, stopped by held-out cells"),
        ("paper", "as run for the tables of the M3-Impute paper: untrained below 1,024 rows"),
    ],
    params: &[
        ParamSpec { name: "epochs", doc: "how often the table is refined", expects: Expect::Whole(1, 10_000_000) },
        ParamSpec {
            name: "steps",
            doc: "how many steps at most, where the epochs of a long table would be more",
            expects: Expect::Whole(1, 10_000_000),
        },
        ParamSpec { name: "batch", doc: "how many rows a step looks at, at most", expects: Expect::Whole(1, 65_536) },
        ParamSpec {
            name: "batches",
            doc: "all rows, or as it was run: without the first batch, with the observed cells of other rows",
            expects: Expect::Choice(&["whole", "shifted"]),
        },
        ParamSpec { name: "width", doc: "the width of hidden layers", expects: Expect::Whole(1, 1024) },
        ParamSpec {
            name: "window",
            doc: "how many predictions, of the last epochs, are averaged",
            expects: Expect::Whole(1, 1000),
        },
        ParamSpec { name: "learning_rate", doc: "the step of Adam", expects: Expect::Number(1e-8, 1.0) },
        ParamSpec { name: "lambda", doc: "the weight of the sum of squared errors", expects: Expect::Number(0.0, 1e6) },
        ParamSpec {
            name: "beta",
            doc: "the weight of the norms of the first layers",
            expects: Expect::Number(0.0, 1e6),
        },
        ParamSpec {
            name: "moments",
            doc: "the weight of the difference between predicted and observed means",
            expects: Expect::Number(0.0, 1e6),
        },
        ParamSpec {
            name: "standardise",
            doc: "whether numbers have mean 0 and deviation 1, or lie between 0 and 1",
            expects: Expect::Flag,
        },
        ParamSpec {
            name: "held",
            doc: "the share of observed cells that are held out to tell which epoch was best (0: take the last)",
            expects: Expect::Number(0.0, 0.5),
        },
    ],
    preset_values: |name| {
        SPEC.presets.iter().any(|p| p.0 == name).then(|| serde_json::json!(MiracleParams::of_preset(name)))
    },
    build: |settings| {
        let params = SPEC.params(settings, MiracleParams::of_preset)?;
        let clip = SPEC.preset(settings)? != "paper";
        let finish = settings.finish.over(Finish { clip, ..Finish::default() });
        Ok(Box::new(MatrixImputer::new(&SPEC, Miracle { params }, finish)))
    },
    load: |file| load_matrix_model::<Miracle>(&SPEC, file),
};

impl MatrixMethod for Miracle {
    type Model = FittedMiracle;
    type Params = MiracleParams;

    fn params(&self) -> &MiracleParams {
        &self.params
    }

    fn encoding(&self) -> Encoding {
        encoding(if self.params.standardise { Scale::Standard } else { Scale::MinMax })
    }

    fn fit(&self, data: &Encoded, run: &mut Run) -> Result<Learnt<FittedMiracle>> {
        self.learn(&mut data.clone(), run)
    }

    fn complete(&self, data: &mut Encoded, run: &mut Run) -> Result<Option<Completed>> {
        Ok(Some(Completed::with_notes(self.learn(data, run)?.notes)))
    }
}

impl Miracle {
    /// Learns, and completes the table that it learns from.
    fn learn(&self, data: &mut Encoded, run: &mut Run) -> Result<Learnt<FittedMiracle>> {
        let p = &self.params;
        let inputs = Inputs::of(data);
        let mut rows = inputs.read(data, 0..data.rows);
        let held = Held::out_of(&mut rows, &inputs, p.held as f32, &mut run.rng("held out", 0));
        let mut training = Training::new(p, &inputs, rows, run);
        let batches = training.batches().len().max(1) as u64;
        let mut pace = Pace::new(SPEC.name, "epochs", p.epochs.min((p.steps / batches).max(1)));
        let mut best: Option<(f32, Params, Matrix)> = None;
        let mut since = 0;
        while let Some(epochs) = pace.next(1, run)? {
            let (mut rng, cancel) = (run.rng("epoch", epochs.start), run.cancel());
            let loss = run.install(|| training.epoch(epochs.start + 1, &mut rng, || cancel.check()))?;
            pace.took(epochs, loss, run)?;
            let Some(held) = &held else { continue };
            let answer = training.answer();
            let error = held.error_in(&answer);
            since += 1;
            if best.as_ref().is_none_or(|(least, ..)| error < *least) {
                (best, since) = (Some((error, training.params.clone(), answer)), 0);
            }
            if since > PATIENCE {
                break;
            }
        }
        let answer = match best {
            Some((_, params, answer)) => {
                training.params.copy_values_from(&params);
                answer
            }
            None => run.install(|| training.answer()),
        };
        (0..data.rows).for_each(|i| inputs.put(data, i, answer.row(i)));
        let range = training.range();
        let Training { network, params, means, .. } = training;
        let mut model = FittedMiracle { inputs, network, params, means, range, rounds: p.window };
        if let Some(held) = &held {
            model.rounds = run.install(|| model.best_rounds(held, p.window));
        }
        Ok(Learnt { model, notes: pace.notes() })
    }
}

/// A table that is refined.
#[derive(Debug)]
struct Training<'a> {
    settings: &'a MiracleParams,
    network: Network,
    params: Params,
    adam: Adam,
    rows: Rows,
    /// The means of observed numbers. // [1, w]
    means: Matrix,
    /// The completed table. // [n, w]
    completed: Matrix,
    /// The predictions of the last epochs. // [n, w] each
    last: VecDeque<Matrix>,
    deck: Deck,
    /// Of the loss.
    tape: Tape,
    /// Of the networks, for each part of a batch.
    parts: Vec<Tape>,
}

impl<'a> Training<'a> {
    fn new(settings: &'a MiracleParams, inputs: &Inputs, rows: Rows, run: &Run) -> Training<'a> {
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
        let (last, deck, tape, parts) = (VecDeque::new(), Deck::new(n), Tape::new(), Vec::new());
        Training { settings, network, params, adam, rows, means, completed, last, deck, tape, parts }
    }

    /// The least and the largest observed numbers. // [2, w]
    fn range(&self) -> Matrix {
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
    fn batches(&self) -> Vec<std::ops::Range<usize>> {
        let (n, size) = (self.rows.len(), self.settings.batch);
        let cut = |from: usize| from..n.min(from + size);
        match self.settings.batches {
            Batches::Whole => (0..n).step_by(size).map(cut).collect(),
            // The first batch is left out, and with it every table that has no second.
            Batches::Shifted => (1..=n / size).map(|k| cut(k * size)).filter(|rows| !rows.is_empty()).collect(),
        }
    }

    /// Epoch number `epoch`, from one; returns the loss of its last step, zero without any.
    fn epoch(&mut self, epoch: u64, rng: &mut ChaCha8Rng, check: impl Fn() -> Result<()>) -> Result<f32> {
        if epoch > self.settings.window as u64 {
            let answer = self.answer();
            self.completed = filled(&self.rows, |i, j| answer.get(i, j));
        }
        let order = self.deck.shuffle(rng).to_vec();
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
        // The networks go through the rows in parts, a thread each; the loss needs all that they say at once.
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
                alone(|| network.say(tape, params, x))
            })
            .collect();
        let said = parts.iter().zip(&outputs).flat_map(|(tape, &out)| tape.value(out).as_slice()).copied().collect();
        tape.reset();
        let said = tape.input(Matrix::from_vec(b, d, said).expect("whole rows"));
        let loss = network.loss(tape, params, said, batch, penalties);
        params.zero_grads();
        tape.backward(loss, params);
        let grad = tape.grad(said).expect("the loss depends on what is said");
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
    fn answer(&mut self) -> Matrix {
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

/// The rows with something in their holes.
fn filled(rows: &Rows, hole: impl Fn(usize, usize) -> f32) -> Matrix {
    let mut x = rows.x.clone(); // [n, w]
    for i in 0..x.rows() {
        let cells = x.row_mut(i).iter_mut().zip(rows.observed.row(i)).enumerate();
        cells.filter(|(_, (_, seen))| **seen == 0.0).for_each(|(j, (x, _))| *x = hole(i, j));
    }
    x
}

/// Trained networks, a column each.
#[derive(Debug)]
pub struct FittedMiracle {
    inputs: Inputs,
    network: Network,
    params: Params,
    /// What holes are filled with first. // [1, w]
    means: Matrix,
    /// The least and the largest observed numbers. // [2, w]
    range: Matrix,
    /// How often the networks are applied to a new row.
    rounds: usize,
}

#[derive(Serialize, Deserialize)]
struct State {
    inputs: Inputs,
    holed: Vec<usize>,
    width: usize,
    rounds: usize,
}

impl FittedMiracle {
    /// What is said of rows by themselves: the networks are applied to rows completed with means, and again to what they
    /// say. `after` sees each round, and says whether there is another.
    ///
    /// The networks have learnt on a table whose completion moved slowly. So what they say is taken by half, and within
    /// the range of what is observed.
    fn refine(&self, rows: &Rows, mut after: impl FnMut(&Matrix) -> Result<bool>) -> Result<()> {
        let mut x = filled(rows, |_, j| self.means.get(0, j)); // [rows, w]
        loop {
            let said = self.network.predict(&self.params, &x); // [rows, w]
            if !after(&said)? {
                return Ok(());
            }
            x = filled(rows, |i, j| {
                (0.5 * (x.get(i, j) + said.get(i, j))).clamp(self.range.get(0, j), self.range.get(1, j))
            });
        }
    }

    /// How many rounds held-out cells ask for.
    fn best_rounds(&self, held: &Held, most: usize) -> usize {
        let mut errors = Vec::with_capacity(most);
        let outcome = self.refine(&held.rows, |said| {
            errors.push(held.error(said));
            Ok(errors.len() < most)
        });
        debug_assert!(outcome.is_ok(), "nothing can fail in it");
        let best = (0..errors.len()).reduce(|a, b| if errors[b] < errors[a] { b } else { a });
        best.map_or(1, |best| best + 1)
    }
}

impl MatrixModel for FittedMiracle {
    fn predict(&self, data: &mut Encoded, _: Want, run: &Run) -> Result<Option<Vec<Distributions>>> {
        let holes: Vec<usize> = (0..data.rows).filter(|&i| data.observed_row(i).contains(&false)).collect();
        for part in holes.chunks(FILL_ROWS) {
            let all: Vec<Rows> = part.iter().map(|&i| self.inputs.read(data, i..i + 1)).collect();
            let x = Matrix::from_fn(part.len(), self.inputs.width(), |i, j| all[i].x.get(0, j));
            let observed = Matrix::from_fn(part.len(), self.inputs.width(), |i, j| all[i].observed.get(0, j));
            let rows = Rows { x, observed };
            let (mut said, mut rounds, cancel) = (Matrix::default(), 0, run.cancel());
            run.install(|| {
                self.refine(&rows, |now| {
                    rounds += 1;
                    said = now.clone();
                    cancel.check()?;
                    Ok(rounds < self.rounds)
                })
            })?;
            part.iter().enumerate().for_each(|(at, &i)| self.inputs.put(data, i, said.row(at)));
        }
        Ok(None)
    }

    fn store(&self, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        store(&self.params, tensors);
        for (name, of) in [("means", &self.means), ("range", &self.range)] {
            tensors.insert(name.to_owned(), Tensor::F32(vec![of.rows(), of.cols()], of.as_slice().to_vec()));
        }
        let (holed, width) = (self.network.holed.clone(), self.network.width);
        serde_json::json!(State { inputs: self.inputs.clone(), holed, width, rounds: self.rounds })
    }

    fn restore(file: &ModelFile, _: usize) -> Result<FittedMiracle> {
        let State { inputs, holed, width, rounds } = file.state()?;
        let inputs = inputs.checked(file)?;
        let rising = holed.windows(2).all(|pair| pair[0] < pair[1]);
        let fits = rising && holed.last().is_none_or(|&last| last < inputs.width());
        if !fits || !(1..=1024).contains(&width) || !(1..=1000).contains(&rounds) {
            return Err(Error::damaged("the shape of the networks"));
        }
        let means = matrix(file, "means", (1, inputs.width()))?;
        let range = matrix(file, "range", (2, inputs.width()))?;
        if range.row(0).iter().zip(range.row(1)).any(|(low, high)| low > high) {
            return Err(Error::damaged("the range of the inputs"));
        }
        let mut params = Params::new();
        let network = Network::restore(file, &mut params, &inputs, holed, width)?;
        Ok(FittedMiracle { inputs, network, params, means, range, rounds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two columns, the second the same as the first, with holes.
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
        let answer = training.answer();
        let holes = (0..110).filter(|i| i % 5 == 0);
        let far = holes.map(|i| (answer.get(i, 0) - ((i * 7 % 11) as f32 / 3.0 - 1.5)).abs()).fold(0.0, f32::max);
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
