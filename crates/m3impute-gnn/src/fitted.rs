//! Fitted graph models, and how they fill new rows.
//!
//! The features keep the states of training in every layer, so that new rows are independent of each other. Peers come
//! from a bank of training rows, drawn with a seed made of the row's own values. So a row is filled with the same bytes
//! in any batch, in any order, on any number of threads.

use crate::encoder::FeatureStates;
use crate::graph::{Cells, Patterns, Shown};
use crate::head::{Targets, value_of_level};
use crate::model::{Architecture, Model, Start};
use crate::pass::Pass;
use crate::peers::{PeerSource, Sampling, directions};
use crate::train::{Trainer, Training};
use m3impute_core::distributions::Distributions;
use m3impute_core::encode::Meaning;
use m3impute_core::explain::KeptNumbers;
use m3impute_core::{Encoded, Error, Learnt, MatrixModel, ModelFile, Result, Run, Tensor, Want, row_hash};
use m3impute_nn::{Matrix, Tape};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rows that the bank holds at most.
const BANK_ROWS: usize = 2000;
/// The rows that are filled at a time.
const BATCH_ROWS: usize = 1024;

/// A trained graph model.
#[derive(Debug)]
pub struct FittedGnn {
    model: Model,
    training: Kept,
    features: FeatureStates,
    bank: Option<Bank>,
}

/// The settings of training that new rows need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    epsilon: f32,
    sampling: Sampling,
    seed: u64,
}

/// Training rows that serve as peers.
#[derive(Debug)]
struct Bank {
    /// `[b, m]`.
    values: Matrix,
    /// `[b, m]`.
    observed: Vec<bool>,
    /// `[b, d]`.
    embeddings: Arc<Matrix>,
    patterns: Patterns,
    source: PeerSource,
}

#[derive(Serialize, Deserialize)]
struct State {
    architecture: Architecture,
    training: Kept,
}

/// Trains a model of this shape, fills the missing cells of `data` from the whole graph, and keeps what new rows need.
///
/// # Errors
/// When the run is cancelled, or the loss is not finite.
pub fn learn(
    method: &'static str,
    architecture: Architecture,
    training: Training,
    data: &mut Encoded,
    run: &mut Run,
) -> Result<Learnt<FittedGnn>> {
    let m = data.width();
    let x = scaled(data, &architecture.levels);
    let cells = Cells::observed(m, &x, &data.observed);
    let holes = Cells::missing(m, &x, &data.observed);
    let model = Model::new(architecture, &mut run.rng("weights", 0));
    let mut trainer = Trainer::new(model, training, cells, run);
    let notes = trainer.train(method, run)?.into_iter().collect();
    // A model that had no time for an epoch predicts nothing.
    if trainer.epoch() > 0 || training.epochs == 0 {
        let values = trainer.predict(&holes, run)?;
        write_predictions(data, &trainer.model().architecture().levels, &holes, &values);
    }
    let kept = Kept { epsilon: training.epsilon, sampling: training.sampling, seed: run.seed() };
    Ok(Learnt { model: FittedGnn::new(trainer, kept, run)?, notes })
}

/// The numbers that the model sees: levels, where it has them, as numbers from 0 to 1.
fn scaled(data: &Encoded, levels: &[u32]) -> Vec<f64> {
    let scale = |(i, &x): (usize, &f64)| match levels[i % levels.len()] {
        0 => x,
        count => x * f64::from(value_of_level(1, count)),
    };
    data.x.iter().enumerate().map(scale).collect()
}

/// Writes predictions into missing cells; levels are rounded to codes.
fn write_predictions(data: &mut Encoded, levels: &[u32], holes: &Cells, values: &[f32]) {
    let m = data.width();
    for ((&row, &column), &value) in holes.rows.iter().zip(&holes.columns).zip(values) {
        let count = levels[column as usize];
        data.x[row as usize * m + column as usize] = match count {
            0 => f64::from(value),
            _ => (f64::from(value) / f64::from(value_of_level(1, count))).round(),
        };
    }
}

/// The number of levels of each feature that holds codes; 0 for the others.
pub(crate) fn levels_of(data: &Encoded) -> Vec<u32> {
    let count = |meaning| if let Meaning::Category(count) = meaning { count } else { 0 };
    data.features.iter().map(|f| count(f.meaning)).collect()
}

impl FittedGnn {
    fn new(trainer: Trainer, training: Kept, run: &Run) -> Result<FittedGnn> {
        let (model, cells, whole) = trainer.finish();
        let (all, features) = model.encoder.infer(&mut Tape::inference(), &model.params, &whole, run)?; // [n, d]
        let mut rng = run.rng("bank", 0);
        let bank = model.architecture().variant.has_peers().then(|| {
            let rows = m3impute_core::sample_rows(whole.samples(), BANK_ROWS, &mut rng);
            let mut place = vec![None; whole.samples()];
            rows.iter().enumerate().for_each(|(i, &row)| place[row as usize] = Some(i));
            let m = whole.features();
            let mut observed = vec![false; rows.len() * m];
            for (&row, &column) in cells.rows.iter().zip(&cells.columns) {
                if let Some(i) = place[row as usize] {
                    observed[i * m + column as usize] = true;
                }
            }
            let table = Matrix::from_fn(rows.len(), m, |i, j| whole.table.get(rows[i] as usize, j));
            let embeddings = Matrix::from_fn(rows.len(), all.cols(), |i, j| all.get(rows[i] as usize, j));
            Bank::new(&model, &training, table, observed, Arc::new(embeddings))
        });
        Ok(FittedGnn { model, training, features, bank })
    }

    /// The graph of some rows, with the degrees of the features as they were in training.
    fn shown(&self, cells: &Cells) -> Shown {
        let mut shown = Shown::new(cells, self.training.epsilon);
        shown.feature_degrees = self.features.degrees.clone();
        shown
    }

    /// The peers of missing cells, as indices that start after those of the rows themselves.
    fn peers(&self, bank: &Bank, shown: &Shown, seeds: &[u64], holes: &Cells) -> Vec<u32> {
        let k = self.model.architecture().peers;
        let vectors = self.model.encoder.sample_vectors(shown);
        let vectors = directions(vectors.expect("a model with peers starts from values")); // [rows, d]
        let mut peers = Vec::with_capacity(holes.len() * k);
        let mut rng = None;
        for (i, &row) in holes.rows.iter().enumerate() {
            let fresh = i == 0 || holes.rows[i - 1] != row;
            let rng = if fresh {
                rng.insert(ChaCha8Rng::seed_from_u64(seeds[row as usize]))
            } else {
                rng.as_mut().expect("drawn from before")
            };
            bank.source.draw_for(vectors.row(row as usize), None, k, rng, &mut peers);
        }
        peers.iter_mut().for_each(|p| *p += shown.samples() as u32);
        peers
    }

    fn fill_batch(
        &self,
        tape: &mut Tape,
        m: usize,
        x: &[f64],
        observed: &[bool],
        run: &Run,
    ) -> Result<(Cells, Vec<f32>)> {
        let holes = Cells::missing(m, x, observed);
        let (embeddings, patterns, peers) = run.install(|| {
            let shown = self.shown(&Cells::observed(m, x, observed));
            tape.reset();
            let mut pass = Pass::new(tape, &self.model.params);
            let mut samples = self.model.encoder.samples_given(&mut pass, &shown, &self.features); // [rows, d]
            let Some(bank) = &self.bank else {
                return (Arc::new(tape.value(samples).clone()), (*shown.patterns).clone(), Vec::new());
            };
            let of_bank = pass.tape.constant_shared(&bank.embeddings);
            samples = pass.tape.concat_rows(&[samples, of_bank]); // [rows + b, d]
            let seeds: Vec<u64> = x
                .chunks_exact(m)
                .zip(observed.chunks_exact(m))
                .map(|(x, o)| {
                    let cells = x.iter().map(|value| value.to_bits()).enumerate();
                    row_hash(self.training.seed, cells.filter(|(j, _)| o[*j]))
                })
                .collect();
            let peers = self.peers(bank, &shown, &seeds, &holes);
            (Arc::new(tape.value(samples).clone()), shown.patterns.followed_by(&bank.patterns), peers)
        });
        let k = self.model.architecture().peers;
        let targets = Targets { rows: holes.rows.clone(), columns: holes.columns.clone(), peers, k };
        let tables = [embeddings, self.features.embeddings.clone()];
        let values = self.model.predict_from(tape, &patterns, &tables, &targets, run)?;
        Ok((holes, values))
    }
}

impl Bank {
    fn new(model: &Model, training: &Kept, values: Matrix, observed: Vec<bool>, embeddings: Arc<Matrix>) -> Bank {
        let m = values.cols();
        let x: Vec<f64> = values.as_slice().iter().map(|&v| f64::from(v)).collect();
        let shown = Shown::new(&Cells::observed(m, &x, &observed), training.epsilon);
        let vectors = model.encoder.sample_vectors(&shown).expect("a model with peers starts from values");
        let mut rng = ChaCha8Rng::seed_from_u64(training.seed);
        let source = PeerSource::new(training.sampling, vectors, model.architecture().peers, &mut rng);
        Bank { patterns: (*shown.patterns).clone(), values, observed, embeddings, source }
    }
}

impl MatrixModel for FittedGnn {
    fn predict(&self, rows: &mut Encoded, _: Want, run: &Run) -> Result<Option<Vec<Distributions>>> {
        let m = rows.width();
        let levels = &self.model.architecture().levels;
        let x = scaled(rows, levels);
        let mut tape = Tape::inference();
        for from in (0..rows.rows).step_by(BATCH_ROWS) {
            run.check()?;
            let cells = from * m..((from + BATCH_ROWS) * m).min(x.len());
            let (mut holes, values) = self.fill_batch(&mut tape, m, &x[cells.clone()], &rows.observed[cells], run)?;
            holes.rows.iter_mut().for_each(|row| *row += from as u32);
            write_predictions(rows, levels, &holes, &values);
        }
        Ok(None)
    }

    fn kept_rows(&self) -> Vec<KeptNumbers> {
        let kept =
            |bank: &Bank| KeptNumbers { what: "the peers of new rows", rows: bank.values.rows(), features: None };
        self.bank.iter().map(kept).collect()
    }

    fn store(&self, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        let of = |x: &Matrix| Tensor::F32(vec![x.rows(), x.cols()], x.as_slice().to_vec());
        for id in self.model.params.ids() {
            tensors.insert(format!("weight.{}", self.model.params.name(id)), of(self.model.params.value(id)));
        }
        if let Some(nodes) = self.model.encoder.feature_nodes() {
            tensors.insert("feature_nodes".to_owned(), of(nodes));
        }
        for (l, states) in self.features.layers.iter().enumerate() {
            tensors.insert(format!("features.{l}"), of(states));
        }
        tensors.insert("features.embeddings".to_owned(), of(&self.features.embeddings));
        let degrees = self.features.degrees.to_vec();
        tensors.insert("features.degrees".to_owned(), Tensor::U32(vec![degrees.len()], degrees));
        if let Some(bank) = &self.bank {
            tensors.insert("bank.values".to_owned(), of(&bank.values));
            tensors.insert("bank.embeddings".to_owned(), of(&bank.embeddings));
            let shape = vec![bank.values.rows(), bank.values.cols()];
            tensors.insert(
                "bank.observed".to_owned(),
                Tensor::U8(shape, bank.observed.iter().map(|&o| u8::from(o)).collect()),
            );
        }
        let state = State { architecture: self.model.architecture().clone(), training: self.training.clone() };
        serde_json::to_value(state).unwrap_or(Value::Null)
    }

    fn restore(file: &ModelFile, width: usize) -> Result<FittedGnn> {
        let State { architecture, training } = file.state()?;
        let Architecture { start, layers, width: d, variant, peers, ref levels, .. } = architecture;
        let m = width;
        // Checked before a matrix of that size is allocated.
        matrix(file, "weight.gnn.node_post_mlp.1.weight", (d, d))?;
        let states: Vec<Arc<Matrix>> = (0..=layers.min(file.tensors.len()))
            .map(|l| {
                matrix(file, &format!("features.{l}"), (m, if l == 0 && start == Start::Ones { m } else { d }))
                    .map(Arc::new)
            })
            .collect::<Result<_>>()?;
        let groups = levels.iter().filter(|&&l| l > 0).count();
        let most = levels.iter().copied().max().unwrap_or(0) as usize;
        if groups > 0 {
            matrix(file, "weight.head.levels.bias", (groups, most))?;
        }
        let fits =
            levels.len() == m && layers >= 1 && d >= 1 && (1..=1000).contains(&peers) && training.epsilon.is_finite();
        if !fits || (variant.has_peers() && start == Start::Ones) {
            return Err(Error::damaged("the shape of the model"));
        }
        let nodes = match start {
            Start::Values => matrix(file, "feature_nodes", (m, d))?,
            Start::Ones => Matrix::default(),
        };
        let has_peers = variant.has_peers();
        let mut model = Model::with_feature_nodes(architecture, Arc::new(nodes), &mut ChaCha8Rng::seed_from_u64(0));
        for id in model.params.ids().collect::<Vec<_>>() {
            let shape = model.params.value(id).shape();
            *model.params.value_mut(id) = matrix(file, &format!("weight.{}", model.params.name(id)), shape)?;
        }
        let (shape, degrees) = file.u32s("features.degrees")?;
        if shape != [m] {
            return Err(Error::damaged("`features.degrees`"));
        }
        let features = FeatureStates {
            layers: states,
            embeddings: Arc::new(matrix(file, "features.embeddings", (m, d))?),
            degrees: degrees.into(),
        };
        let bank = if has_peers { Some(restore_bank(file, &model, &training, m)?) } else { None };
        Ok(FittedGnn { model, training, features, bank })
    }
}

fn restore_bank(file: &ModelFile, model: &Model, training: &Kept, m: usize) -> Result<Bank> {
    let (shape, observed) = file.u8s("bank.observed")?;
    let &[rows, _] = shape else { return Err(Error::damaged("`bank.observed`")) };
    if shape != [rows, m] || rows == 0 {
        return Err(Error::damaged("`bank.observed`"));
    }
    let observed = observed.iter().map(|&o| o == 1).collect();
    let values = matrix(file, "bank.values", (rows, m))?;
    let embeddings = matrix(file, "bank.embeddings", (rows, model.architecture().width))?;
    Ok(Bank::new(model, training, values, observed, Arc::new(embeddings)))
}

/// A matrix of finite numbers and this shape.
pub(crate) fn matrix(file: &ModelFile, name: &str, shape: (usize, usize)) -> Result<Matrix> {
    let numbers = file.matrix(name, shape)?.to_vec();
    Matrix::from_vec(shape.0, shape.1, numbers).map_err(|e| Error::damaged(e.to_string()))
}
