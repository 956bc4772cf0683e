//! MIRACLE: every column by a network of the others, refined iteratively, while the causal graph between the columns is
//! kept acyclic.
//!
//! `n` rows, `b` of them in a batch, `w` inputs, `q` of them with missing values, `h` hidden units. There is a network
//! for every input and one for every input with missing values, which predicts whether it is observed: `d = w + q`. The
//! first layer and the last are their own, the one between is shared.

mod network;
mod train;

use crate::files::{matrix, store};
use crate::held::{Held, split};
use crate::inputs::{Inputs, Rows, encoding, incomplete_rows};
use crate::pace::{Best, Pace, within_time};
use crate::registry;
use m3impute_core::distributions::Distributions;
use m3impute_core::{
    Encoded, Encoding, Error, Expect, Learnt, MatrixImputer, MatrixModel, MethodSpec, ModelFile, ParamSpec, Result,
    Run, Tensor, Transductive, TransductiveMethod, Want, load_matrix_model,
};
use m3impute_nn::{Matrix, Params};
use network::Network;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use train::Training;

/// Epochs without an improvement after which training stops.
const PATIENCE: u64 = 100;
/// Weights of all networks together, at most: with what training keeps beside them, some gigabytes.
const MOST_WEIGHTS: usize = 60_000_000;
/// New rows that are refined at a time.
const FILL_ROWS: usize = 8192;

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
    /// Number of epochs; each refines the table.
    pub epochs: u64,
    /// Maximum number of steps; limits the epochs on a long table.
    pub steps: u64,
    /// Batch size: rows in a step, at most.
    pub batch: usize,
    /// How an epoch cuts the table into batches.
    pub batches: Batches,
    /// The width of hidden layers.
    pub width: usize,
    /// Number of last epochs whose predictions are averaged.
    pub window: usize,
    /// Learning rate of Adam.
    pub learning_rate: f64,
    /// The weight of the sum of squared errors.
    pub lambda: f64,
    /// The weight of the norms of the first layers.
    pub beta: f64,
    /// The weight of the difference between predicted and observed means.
    pub moments: f64,
    /// Whether numbers are standardised to mean 0 and standard deviation 1, or scaled to 0..1.
    pub standardise: bool,
    /// Share of observed cells held out for early stopping; the last epoch is kept where it is zero.
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
    /// The settings that its authors recommend.
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
    summary: "MIRACLE: each column by a network of the others, refined iteratively while the causal graph is kept acyclic",
    avoid: "many columns: it has two networks for each; columns that depend on each other in cycles",
    inductive: true,
    distributions: false,
    randomised: true,
    slow: true,
    presets: &[
        (
            "default",
            "with the settings its authors recommend: small batches of all rows, early stopping on held-out cells",
        ),
        ("paper", "as run for the tables of the M3-Impute paper: untrained below 1,024 rows"),
    ],
    params: &[
        ParamSpec {
            name: "epochs",
            doc: "number of epochs; each refines the table",
            expects: Expect::Whole(1, 10_000_000),
        },
        registry::EPOCH_STEPS,
        registry::BATCH,
        ParamSpec {
            name: "batches",
            doc: "all rows, or as it was run: without the first batch, with the observed cells of other rows",
            expects: Expect::Choice(&["whole", "shifted"]),
        },
        ParamSpec { name: "width", doc: "width of the hidden layers", expects: Expect::Whole(1, 1024) },
        ParamSpec {
            name: "window",
            doc: "number of last epochs whose predictions are averaged",
            expects: Expect::Whole(1, 1000),
        },
        registry::LEARNING_RATE,
        ParamSpec { name: "lambda", doc: "weight of the sum of squared errors", expects: Expect::Number(0.0, 1e6) },
        ParamSpec {
            name: "beta",
            doc: "weight of the norms of the first layers (sparsity)",
            expects: Expect::Number(0.0, 1e6),
        },
        ParamSpec {
            name: "moments",
            doc: "weight of the difference between predicted and observed means (moment matching)",
            expects: Expect::Number(0.0, 1e6),
        },
        registry::STANDARDISE,
        registry::HELD_FOR_EPOCHS,
    ],
    preset_values: |name| {
        SPEC.presets.iter().any(|p| p.0 == name).then(|| serde_json::json!(MiracleParams::of_preset(name)))
    },
    build: |settings| {
        let params = SPEC.params(settings, MiracleParams::of_preset)?;
        Ok(Box::new(MatrixImputer::new(&SPEC, Transductive(Miracle { params }), registry::finish(&SPEC, settings)?)))
    },
    load: |file| load_matrix_model::<Transductive<Miracle>>(&SPEC, file),
};

impl TransductiveMethod for Miracle {
    type Model = FittedMiracle;
    type Params = MiracleParams;

    fn params(&self) -> &MiracleParams {
        &self.params
    }

    fn encoding(&self) -> Encoding {
        encoding(self.params.standardise)
    }

    fn learn(&self, data: &mut Encoded, run: &mut Run) -> Result<Learnt<FittedMiracle>> {
        let p = &self.params;
        let (inputs, rows, held) = split(data, p.held, run);
        let weights = 2 * inputs.width().pow(2) * p.width;
        if weights > MOST_WEIGHTS {
            return Err(Error::Request {
                what: format!("`miracle`, which has two networks for each of {} features", inputs.width()),
                expected: format!("at most {MOST_WEIGHTS} weights"),
                got: weights.to_string(),
            });
        }
        let mut training = Training::new(p, &inputs, rows, run);
        let batches = training.batches().len().max(1) as u64;
        let mut pace = Pace::of_epochs(SPEC.name, p.epochs, p.steps, batches);
        let mut best = Best::new(PATIENCE);
        while let Some(epochs) = pace.next(1, run)? {
            let mut rng = run.rng("epoch", epochs.start);
            let done = run.install(|| training.epoch(epochs.start + 1, &mut rng, || within_time(run)));
            let Some(loss) = pace.outcome(done, run)? else { break };
            pace.took(epochs, loss, run)?;
            let Some(held) = &held else { continue };
            let prediction = training.prediction();
            let error = held.error_in(&prediction);
            if !best.offer(error, || (training.params.clone(), prediction)) {
                break;
            }
        }
        let prediction = match best.state() {
            Some((params, prediction)) => {
                training.params.copy_values_from(&params);
                prediction
            }
            None => run.install(|| training.prediction()),
        };
        (0..data.rows).for_each(|i| inputs.put(data, i, prediction.row(i)));
        let range = training.range();
        let Training { network, params, means, .. } = training;
        let mut model = FittedMiracle { inputs, network, params, means, range, rounds: p.window };
        if let Some(held) = held.as_ref().filter(|_| run.goes_on()) {
            model.rounds = run.install(|| model.best_rounds(held, p.window));
        }
        Ok(Learnt { model, notes: pace.notes() })
    }
}

/// The rows with their missing cells filled.
fn filled(rows: &Rows, value: impl Fn(usize, usize) -> f32) -> Matrix {
    let mut x = rows.x.clone(); // [n, w]
    for i in 0..x.rows() {
        let cells = x.row_mut(i).iter_mut().zip(rows.observed.row(i)).enumerate();
        cells.filter(|(_, (_, seen))| **seen == 0.0).for_each(|(j, (x, _))| *x = value(i, j));
    }
    x
}

/// Trained networks, a column each.
#[derive(Debug)]
pub struct FittedMiracle {
    inputs: Inputs,
    network: Network,
    params: Params,
    /// The initial imputation: the means of the inputs. // [1, w]
    means: Matrix,
    /// The least and the largest observed numbers. // [2, w]
    range: Matrix,
    /// Iterations in which a new row is refined.
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
    /// Predicts rows by themselves: the networks are applied to rows completed with means, and again to their own
    /// predictions. `after` sees the predictions of each iteration, and returns whether there is another.
    ///
    /// The networks have learnt on a table whose completion moved slowly. So predictions are damped by half, and
    /// clipped to the observed range.
    fn refine(&self, rows: &Rows, mut after: impl FnMut(&Matrix) -> Result<bool>) -> Result<()> {
        let mut x = filled(rows, |_, j| self.means.get(0, j)); // [rows, w]
        loop {
            let predicted = self.network.predict(&self.params, &x); // [rows, w]
            if !after(&predicted)? {
                return Ok(());
            }
            x = filled(rows, |i, j| {
                (0.5 * (x.get(i, j) + predicted.get(i, j))).clamp(self.range.get(0, j), self.range.get(1, j))
            });
        }
    }

    /// The number of iterations with the least error on held-out cells.
    fn best_rounds(&self, held: &Held, most: usize) -> usize {
        let mut errors = Vec::with_capacity(most);
        let outcome = self.refine(&held.rows, |predicted| {
            errors.push(held.error(predicted));
            Ok(errors.len() < most)
        });
        debug_assert!(outcome.is_ok(), "nothing can fail in it");
        let best = (0..errors.len()).reduce(|a, b| if errors[b] < errors[a] { b } else { a });
        best.map_or(1, |best| best + 1)
    }
}

impl MatrixModel for FittedMiracle {
    fn predict(&self, data: &mut Encoded, _: Want, run: &Run) -> Result<Option<Vec<Distributions>>> {
        for part in incomplete_rows(data).chunks(FILL_ROWS) {
            let rows = self.inputs.read(data, part.iter().copied());
            let (mut predicted, mut rounds, cancel) = (Matrix::default(), 0, run.cancel());
            run.install(|| {
                self.refine(&rows, |now| {
                    rounds += 1;
                    predicted = now.clone();
                    cancel.check()?;
                    Ok(rounds < self.rounds)
                })
            })?;
            part.iter().enumerate().for_each(|(at, &i)| self.inputs.put(data, i, predicted.row(at)));
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
    use m3impute_core::{Column, ColumnSpec, Kind, Schema, Settings, Table};

    #[test]
    fn a_table_too_wide_for_a_network_a_column_is_refused() {
        let specs = (0..1200).map(|j| ColumnSpec::new(format!("x{j}"), Kind::Continuous)).collect();
        let column = |j: usize| Column::numbers([Some(j as f64), Some(1.0 + 2.0 * j as f64), None]);
        let table = Table::new(Schema::new(specs).unwrap(), (0..1200).map(column).collect()).unwrap();
        let outcome = (SPEC.build)(&Settings::default()).unwrap().impute(&table, &mut Run::new(0, 1).unwrap());
        assert!(matches!(outcome, Err(Error::Request { .. })), "{outcome:?}");
    }
}
