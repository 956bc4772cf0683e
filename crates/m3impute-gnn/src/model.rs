//! Encoder and head with their weights: a pass forward, and one forward and back.
//!
//! Large tables are predicted in chunks of cells, so that memory holds the states of the edges and one chunk. The tables
//! of embeddings and peers then enter the tape of a chunk as inputs; their gradients are summed over the chunks, in
//! order, and carried back through the encoder at the end. The numbers are those of one piece, up to rounding.

use crate::encoder::{Embeddings, Encoder};
use crate::graph::Shown;
use crate::head::{Head, Tables, TargetIndices, Targets, Variant};
use crate::layers::Gnn;
use crate::pass::Pass;
use crate::peers::unit;
use crate::units::{PeerTables, Peers};
use m3impute_core::{Result, Run};
use m3impute_nn::{Matrix, Params, Tape, Var, alone};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Rows of 128 numbers that the cells of a step may have on the tape, counted once for each cell and each peer.
const MOST_ROWS: usize = 64 * 1024;
/// Where there are more, the cells are split into chunks with so many.
const CHUNK_ROWS: usize = 12 * 1024;
/// Rows of 128 numbers of the cells that a thread fills at a time.
const FILL_ROWS: usize = 2 * 1024;

/// Rows of a table that a thread copies or adds to at a time.
const TABLE_BLOCK: usize = 512;

/// How the nodes start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// From the values and the pattern of missing cells, as in M3-Impute.
    Values,
    /// From ones and one-hot vectors, as in GRAPE.
    Ones,
}

/// The shape of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Architecture {
    /// How the nodes start.
    pub start: Start,
    /// The layers of message passing.
    pub gnn: Gnn,
    /// How many of them.
    pub layers: usize,
    /// The width of states.
    pub width: usize,
    /// The units on top of the encoder.
    pub variant: Variant,
    /// How many peers a cell has.
    pub peers: usize,
    /// The number of levels of each feature that is predicted by softmax, 0 for the others: one entry a feature.
    pub levels: Vec<u32>,
}

/// A model and its weights.
#[derive(Clone, Debug)]
pub struct Model {
    architecture: Architecture,
    /// The weights.
    pub params: Params,
    /// The encoder.
    pub encoder: Encoder,
    /// The head.
    pub head: Head,
    /// See [`MOST_ROWS`] and [`CHUNK_ROWS`].
    chunk_rows: [usize; 3],
}

/// The gradients of the tables, summed over chunks.
struct Seeds {
    samples: Matrix,
    features: Matrix,
    peers: Option<[Matrix; 2]>,
}

impl Model {
    /// A model with fresh weights, as PyTorch starts them.
    pub fn new(architecture: Architecture, rng: &mut ChaCha8Rng) -> Model {
        let nodes = Matrix::from_fn(architecture.levels.len(), architecture.width, |_, _| unit(rng));
        Model::with_feature_nodes(architecture, Arc::new(nodes), rng)
    }

    /// A model with fresh weights and these fixed vectors of the features, `[m, d]`.
    pub fn with_feature_nodes(architecture: Architecture, nodes: Arc<Matrix>, rng: &mut ChaCha8Rng) -> Model {
        let Architecture { start, gnn, layers, width, variant, peers, ref levels } = architecture;
        let mut params = Params::new();
        let encoder = match start {
            Start::Values => Encoder::from_values(&mut params, gnn, layers, nodes, rng),
            Start::Ones => Encoder::from_ones(&mut params, gnn, layers, levels.len(), width, rng),
        };
        let levels: Arc<[u32]> = levels.as_slice().into();
        let head = Head::new(&mut params, variant, (levels.len(), width, peers), &levels, rng);
        Model { architecture, params, encoder, head, chunk_rows: [MOST_ROWS, CHUNK_ROWS, FILL_ROWS] }
    }

    /// Its shape.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// The pairs of peers and target features of these cells.
    pub fn peers(&self, shown: &crate::graph::Patterns, targets: &Targets) -> Option<Peers> {
        let has = self.architecture.variant.has_peers();
        has.then(|| Peers::of(shown, &targets.columns, &targets.peers, targets.k))
    }

    /// Computes the loss of cells with these values and adds its gradient to that of the weights.
    ///
    /// # Errors
    /// When `check` fails between two chunks; the gradient is then incomplete.
    pub fn learn(
        &mut self,
        tapes: &mut [Tape; 2],
        (shown, targets, values): (&Shown, &Targets, &[f32]),
        (dropout, key): (f32, u64),
        check: &(dyn Fn() -> Result<()> + Sync),
    ) -> Result<f32> {
        let [tape, chunk_tape] = tapes;
        tape.reset();
        let (count, chunk) = (targets.len(), self.chunk(targets.len()));
        let indices_from = |peers: Option<&Peers>, from: usize| {
            TargetIndices::new(&shown.patterns, targets, peers, from..(from + chunk).min(count), count > chunk)
        };
        let mut pass = Pass::new(tape, &self.params).with_dropout(dropout, key);
        // The indices are prepared in parallel with the encoder, so that no thread waits.
        let prepare = || {
            let peers = self.peers(&shown.patterns, targets);
            let indices = indices_from(peers.as_ref(), 0);
            (peers, indices)
        };
        let (embeddings, (peers, mut indices)) = rayon::join(|| self.encoder.forward(&mut pass, shown), prepare);
        let Embeddings { samples, features, .. } = embeddings;
        let peer_tables = peers.as_ref().and_then(|p| self.head.peer_tables(&mut pass, samples, features, p));
        let tables = Tables { samples, features, peers: peer_tables };
        if count <= chunk {
            let output = self.head.predict(&mut pass, tables, &indices);
            let loss = self.head.loss(&mut pass, output, &indices, values);
            let value = tape.scalar(loss);
            tape.backward(loss, &mut self.params);
            return Ok(value);
        }
        drop(pass);

        let zeros = |var: Var| Matrix::zeros(tape.shape(var).0, tape.shape(var).1);
        let mut seeds = Seeds {
            samples: zeros(samples),
            features: zeros(features),
            peers: peer_tables.map(|p| [zeros(p.relevance), zeros(p.masked)]),
        };
        let mut total = 0.0;
        for from in (0..count).step_by(chunk) {
            check()?;
            let cells = from..(from + chunk).min(count);
            let learn = || {
                let share = cells.len() as f32 / count as f32;
                chunk_tape.reset();
                let inputs = enter(tape, chunk_tape, tables, &indices);
                // Dropout of a chunk has keys of its own, far from those of the encoder and of other chunks.
                let mut pass =
                    Pass::new(chunk_tape, &self.params).with_dropout(dropout, key.wrapping_add((from as u64) << 20));
                let output = self.head.predict(&mut pass, inputs, &indices);
                let loss = self.head.loss(&mut pass, output, &indices, &values[cells.clone()]);
                let loss = pass.tape.scale(loss, share);
                total += f64::from(chunk_tape.scalar(loss));
                chunk_tape.backward(loss, &mut self.params);
                seeds.add(chunk_tape, inputs, &indices);
            };
            let ((), next) =
                rayon::join(learn, || (cells.end < count).then(|| indices_from(peers.as_ref(), cells.end)));
            match next {
                Some(next) => indices = next,
                None => break,
            }
        }
        check()?;
        let mut parts = vec![(samples, seeds.samples), (features, seeds.features)];
        if let (Some(peers), Some([relevance, masked])) = (peer_tables, seeds.peers) {
            parts.extend([(peers.relevance, relevance), (peers.masked, masked)]);
        }
        // The gradient of the sum of `table * seed` with respect to the table is the seed.
        let sums = parts.into_iter().map(|(table, seed)| {
            let seed = tape.constant(seed);
            let product = tape.mul(table, seed);
            tape.sum(product)
        });
        let sums: Vec<Var> = sums.collect();
        let all = sums.into_iter().reduce(|a, b| tape.add(a, b)).expect("there are tables");
        tape.backward(all, &mut self.params);
        Ok(total as f32)
    }

    /// Predicts cells of the table that is shown.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn predict(&self, tape: &mut Tape, shown: &Shown, targets: &Targets, run: &Run) -> Result<Vec<f32>> {
        let (samples, features) = self.encoder.infer(tape, &self.params, shown, run)?;
        self.predict_from(tape, &shown.patterns, &[samples, features.embeddings], targets, run)
    }

    /// Predicts cells from the embeddings of samples and features.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn predict_from(
        &self,
        tape: &mut Tape,
        patterns: &crate::graph::Patterns,
        embeddings: &[Arc<Matrix>; 2],
        targets: &Targets,
        run: &Run,
    ) -> Result<Vec<f32>> {
        run.check()?;
        let peers = self.peers(patterns, targets);
        let peer_tables = run.install(|| {
            tape.reset();
            let mut pass = Pass::new(tape, &self.params);
            let [samples, features] = embeddings.each_ref().map(|x| pass.tape.constant_shared(x));
            let tables = peers.as_ref().and_then(|p| self.head.peer_tables(&mut pass, samples, features, p));
            tables.map(|p| [p.relevance, p.masked].map(|var| Arc::new(tape.value(var).clone())))
        });
        let chunk = self.cells_of(self.chunk_rows[2]);
        let starts: Vec<usize> = (0..targets.len()).step_by(chunk).collect();
        let one = |tape: &mut Tape, from: usize| {
            tape.reset();
            let cells = from..(from + chunk).min(targets.len());
            let indices = TargetIndices::new(patterns, targets, peers.as_ref(), cells, false);
            let mut pass = Pass::new(tape, &self.params);
            let [samples, features] = embeddings.each_ref().map(|x| pass.tape.constant_shared(x));
            let peers = peer_tables.as_ref().map(|tables| {
                let [relevance, masked] = tables.each_ref().map(|x| pass.tape.constant_shared(x));
                PeerTables { relevance, masked }
            });
            let output = self.head.predict(&mut pass, Tables { samples, features, peers }, &indices);
            self.head.values(&mut pass, output, &indices)
        };
        // One thread per chunk: the data of a chunk stays in the cache of its processor.
        let parts: Vec<Result<Vec<f32>>> = run.install(|| {
            let checked = |tape: &mut Tape, &from: &usize| run.check().map(|()| alone(|| one(tape, from)));
            starts.par_iter().map_init(Tape::inference, checked).collect()
        });
        let mut values = Vec::with_capacity(targets.len());
        for part in parts {
            values.extend(part?);
        }
        Ok(values)
    }

    /// How many of these cells a step predicts at a time.
    fn chunk(&self, cells: usize) -> usize {
        let [most, part] = [self.chunk_rows[0], self.chunk_rows[1]].map(|rows| self.cells_of(rows));
        if cells <= most { most } else { part }
    }

    /// How many cells take this number of rows of 128 numbers.
    fn cells_of(&self, rows: usize) -> usize {
        let peers = if self.architecture.variant.has_peers() { self.architecture.peers } else { 0 };
        (rows * 128 / self.architecture.width / (1 + peers)).max(8)
    }
}

/// Enters the rows of the tables that a chunk's indices refer to as inputs of its tape.
fn enter(from: &Tape, to: &mut Tape, tables: Tables, indices: &TargetIndices) -> Tables {
    let used = indices.rows.as_ref().expect("the indices of a chunk are compact");
    let mut input = |var: Var, rows: &[u32]| {
        let all = from.value(var);
        let d = all.cols();
        let mut some = vec![0.0; rows.len() * d];
        some.par_chunks_mut(TABLE_BLOCK * d).zip(rows.par_chunks(TABLE_BLOCK)).for_each(|(some, rows)| {
            some.chunks_exact_mut(d).zip(rows).for_each(|(row, &i)| row.copy_from_slice(all.row(i as usize)));
        });
        to.input(Matrix::from_vec(rows.len(), d, some).expect("whole rows"))
    };
    let samples = input(tables.samples, &used.samples);
    let peers = tables
        .peers
        .map(|p| PeerTables { relevance: input(p.relevance, &used.relevance), masked: input(p.masked, &used.masked) });
    Tables { samples, features: to.input(from.value(tables.features).clone()), peers }
}

impl Seeds {
    fn add(&mut self, tape: &Tape, inputs: Tables, indices: &TargetIndices) {
        let used = indices.rows.as_ref().expect("the indices of a chunk are compact");
        let add = |to: &mut Matrix, var: Var, rows: &[u32]| {
            let Some(grad) = tape.grad(var) else { return };
            let d = grad.cols();
            to.as_mut_slice().par_chunks_mut(TABLE_BLOCK * d).enumerate().for_each(|(block, to)| {
                let first = block * TABLE_BLOCK;
                let [from, until] =
                    [first, first + to.len() / d].map(|end| rows.partition_point(|&r| (r as usize) < end));
                for i in from..until {
                    let to = &mut to[(rows[i] as usize - first) * d..][..d];
                    to.iter_mut().zip(grad.row(i)).for_each(|(a, b)| *a += b);
                }
            });
        };
        let features: Vec<u32> = (0..self.features.rows() as u32).collect();
        add(&mut self.samples, inputs.samples, &used.samples);
        add(&mut self.features, inputs.features, &features);
        if let (Some([relevance, masked]), Some(peers)) = (&mut self.peers, inputs.peers) {
            add(relevance, peers.relevance, &used.relevance);
            add(masked, peers.masked, &used.masked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Cells;
    use m3impute_core::Cancel;
    use m3impute_core::Run;
    use rand_chacha::rand_core::SeedableRng;

    fn architecture(variant: Variant, levels: Vec<u32>) -> Architecture {
        Architecture { start: Start::Values, gnn: Gnn::EgSage, layers: 2, width: 16, variant, peers: 2, levels }
    }

    fn cells() -> Cells {
        let x: Vec<f64> = (0..60).map(|i| f64::from(i * 7 % 5) / 4.0).collect();
        let observed: Vec<bool> = (0..60).map(|i| i % 7 != 3).collect();
        Cells::observed(3, &x, &observed)
    }

    fn targets(cells: &Cells) -> Targets {
        let peers = cells.rows.iter().flat_map(|&r| [(r + 3) % 20, (r * 3 + 1) % 20]).collect();
        Targets { rows: cells.rows.clone(), columns: cells.columns.clone(), peers, k: 2 }
    }

    #[test]
    fn chunks_of_cells_learn_and_predict_what_all_at_once_do() {
        let cells = cells();
        let (shown, targets) = (Shown::new(&cells.subset(|i| i % 3 != 0), 1e-4), targets(&cells));
        for variant in [Variant::Full, Variant::Init, Variant::InitFcu, Variant::InitScu] {
            let run = |chunk_rows| {
                let mut model = Model::new(architecture(variant, vec![0, 3, 0]), &mut ChaCha8Rng::seed_from_u64(4));
                model.chunk_rows = chunk_rows;
                let batch = (&shown, &targets, &cells.values[..]);
                let loss = model.learn(&mut Default::default(), batch, (0.0, 0), &|| Ok(())).unwrap();
                let run = Run::new(0, 1).unwrap();
                let values = model.predict(&mut Tape::inference(), &shown, &targets, &run).unwrap();
                let grads: Vec<f32> =
                    model.params.ids().flat_map(|id| model.params.grad(id).as_slice().to_vec()).collect();
                (loss, values, grads)
            };
            let (whole, chunked) = (run([MOST_ROWS, CHUNK_ROWS, FILL_ROWS]), run([1, 1, 1]));
            assert!((whole.0 - chunked.0).abs() < 1e-6, "{variant:?}");
            assert_eq!(whole.1, chunked.1, "{variant:?}");
            let largest = whole.2.iter().fold(0.0f32, |m, g| m.max(g.abs()));
            assert!(largest > 0.0);
            for (a, b) in whole.2.iter().zip(&chunked.2) {
                assert!((a - b).abs() < 1e-5 * largest, "{variant:?}: {a} {b}");
            }
        }
    }

    #[test]
    fn a_step_stops_between_chunks() {
        let cells = cells();
        let (shown, targets) = (Shown::new(&cells, 1e-4), targets(&cells));
        let mut model = Model::new(architecture(Variant::Full, vec![0; 3]), &mut ChaCha8Rng::seed_from_u64(4));
        model.chunk_rows = [1, 1, 1];
        let cancel = Cancel::default();
        cancel.cancel();
        let batch = (&shown, &targets, &cells.values[..]);
        let outcome = model.learn(&mut Default::default(), batch, (0.0, 0), &|| cancel.check());
        assert!(matches!(outcome, Err(m3impute_core::Error::Cancelled)));
    }

    #[test]
    fn a_column_with_levels_is_predicted_as_one_of_them() {
        let cells = cells();
        let (shown, targets) = (Shown::new(&cells, 1e-4), targets(&cells));
        let model = Model::new(architecture(Variant::Full, vec![0, 5, 0]), &mut ChaCha8Rng::seed_from_u64(4));
        let run = Run::new(0, 1).unwrap();
        let values = model.predict(&mut Tape::inference(), &shown, &targets, &run).unwrap();
        for (value, _) in values.iter().zip(&targets.columns).filter(|(_, column)| **column == 1) {
            assert!([0.0, 0.25, 0.5, 0.75, 1.0].contains(value), "{value}");
        }
    }
}
