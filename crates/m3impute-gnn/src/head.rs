//! The head: from embeddings to predictions of cells.
//!
//! Notation: `t` cells, `k` peers, `d` the width.
//!
//! ```text
//! both units  alpha = gamma(G gelu(F |similarities| + f) + g)    [t, 1]   gamma(z) = 1 - 1 / (exp|z| + 1e-4)
//!             x = (1 - alpha) FCU + alpha SCU                    [t, d]
//! one unit    x = FCU, or x = SCU                                [t, d]
//!             prediction sigmoid(P gelu(O x + o) + p)            [t, 1]
//! no unit     prediction P relu(O [h_s; h_f] + o) + p            [t, 1]   as in GRAPE
//! ```
//!
//! The paper has ReLU (softmax for discrete columns) where the published code has the sigmoid for everything, and no
//! absolute value of the similarities. Softmax and cross-entropy for columns with levels are an option here: `P` is then
//! a map of its own for each such column.

use crate::graph::Patterns;
use crate::pass::{Linear, Pass};
use crate::units::{Contexts, Fcu, Pairings, PeerTables, Peers, Scu};
use m3impute_nn::{Activation, Classes, Index, Matrix, ParamId, Params, Term, Var};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// The units on top of the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Both units and the gate between them.
    Full,
    /// No unit: a prediction from the two embeddings, as in GRAPE.
    Init,
    /// The feature correlation unit.
    InitFcu,
    /// The sample correlation unit.
    InitScu,
}

impl Variant {
    /// Whether it uses peers.
    pub fn has_peers(self) -> bool {
        matches!(self, Variant::Full | Variant::InitScu)
    }
}

/// Predicts cells.
#[derive(Clone, Debug)]
pub struct Head {
    fcu: Option<Fcu>,
    scu: Option<Scu>,
    gate: Option<[Linear; 2]>,
    /// The two linear maps `O` and `P`.
    out: [Linear; 2],
    levels: Option<Levels>,
}

/// The softmax over the levels of columns that have levels.
#[derive(Clone, Debug)]
struct Levels {
    /// The number of levels of each feature; 0 for a number, `[m]`.
    counts: Arc<[u32]>,
    /// The index of each feature among the features with levels, `[m]`.
    groups: Vec<u32>,
    /// `[groups * most levels, d]`.
    weight: ParamId,
    /// `[groups, most levels]`.
    bias: ParamId,
}

/// The embeddings that the cells of a pass refer to.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// The embeddings of samples, `[n, d]`.
    pub samples: Var,
    /// The embeddings of features, `[m, d]`.
    pub features: Var,
    /// The states of peers, where there are any.
    pub peers: Option<PeerTables>,
}

/// Cells to predict, with `k` peers each.
#[derive(Clone, Debug)]
pub struct Targets {
    /// The sample of each cell, `[t]`.
    pub rows: Vec<u32>,
    /// The feature of each cell, `[t]`.
    pub columns: Vec<u32>,
    /// The peers of each cell, empty where the head uses none, `[t k]`.
    pub peers: Vec<u32>,
    /// How many peers a cell has.
    pub k: usize,
}

/// Target cells as indices into the [`Tables`].
#[derive(Debug)]
pub struct TargetIndices {
    columns: Vec<u32>,
    to_sample: Arc<Index>,
    to_feature: Arc<Index>,
    contexts: Contexts,
    to_context: Arc<Index>,
    pairings: Option<Pairings>,
    k: usize,
    /// The rows that the cells refer to, where the tables are to hold only those.
    pub rows: Option<UsedRows>,
}

/// The rows of whole tables that some cells refer to, in increasing order.
#[derive(Debug)]
pub struct UsedRows {
    /// Of the embeddings of samples.
    pub samples: Vec<u32>,
    /// Of the relevance of peers' contexts.
    pub relevance: Vec<u32>,
    /// Of the masked peers.
    pub masked: Vec<u32>,
}

/// The predictions of the target cells, with the intermediate results.
#[derive(Clone, Copy, Debug)]
pub struct HeadOutput {
    /// The prediction, `[t, 1]`.
    pub value: Var,
    /// The last hidden layer, `[t, d]`.
    hidden: Var,
    /// The context vectors of the feature correlation unit, `[t, d]`.
    pub fcu: Option<Var>,
    /// Those of the sample correlation unit, `[t, d]`.
    pub scu: Option<Var>,
    /// The similarities to the peers, `[t k, 1]`.
    pub similarity: Option<Var>,
    /// The share of the sample correlation unit, `[t, 1]`.
    pub alpha: Option<Var>,
}

impl Targets {
    /// How many cells there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl TargetIndices {
    /// The indices of some of the cells. `compact` leaves out the rows of tables that they do not refer to.
    pub fn new(
        patterns: &Patterns,
        targets: &Targets,
        peers: Option<&Peers>,
        cells: Range<usize>,
        compact: bool,
    ) -> TargetIndices {
        let (rows, columns) = (&targets.rows[cells.clone()], &targets.columns[cells.clone()]);
        let t = rows.len();
        let k = if peers.is_some() { targets.k } else { 0 };
        let peer_rows = &targets.peers[cells.start * k..cells.end * k];
        let pairs = peers.map_or(&[][..], |p| &p.pairs[cells.start * k..cells.end * k]);
        let of_pair = |i: u32| peers.map_or(0, |p| p.to_context.targets()[i as usize]);

        let samples = Rows::new(rows.iter().chain(peer_rows).copied(), patterns.of_sample.len(), compact);
        let relevance = Rows::new(pairs.iter().map(|&i| of_pair(i)), peers.map_or(0, |p| p.contexts.len()), compact);
        let masked = Rows::new(pairs.iter().copied(), peers.map_or(0, |p| p.to_context.len()), compact);
        let (contexts, which) = Contexts::of(patterns, rows.iter().copied().zip(columns.iter().copied()));
        let repeated = |x: &[u32]| x.iter().flat_map(|&v| std::iter::repeat_n(v, k)).collect::<Vec<u32>>();
        let own = &samples.numbers[..t];
        let pairings = (k > 0).then(|| Pairings {
            to_sample: Index::new(repeated(own), samples.count),
            to_own_context: Index::new(repeated(&which), contexts.len()),
            to_peer: Index::new(samples.numbers[t..].to_vec(), samples.count),
            to_peer_context: Index::new(relevance.numbers, relevance.count),
            to_masked: Index::new(masked.numbers, masked.count),
            to_cell: Index::new(repeated(&(0..t as u32).collect::<Vec<_>>()), t),
        });
        TargetIndices {
            columns: columns.to_vec(),
            to_sample: Index::new(own.to_vec(), samples.count),
            to_feature: Index::new(columns.to_vec(), patterns.shown.cols()),
            to_context: Index::new(which, contexts.len()),
            contexts,
            pairings,
            k,
            rows: compact.then_some(UsedRows { samples: samples.used, relevance: relevance.used, masked: masked.used }),
        }
    }

    /// The distinct pairs of the cells' patterns and features.
    pub fn contexts(&self) -> &Contexts {
        &self.contexts
    }
}

/// Indices of table rows, in the whole table or among the rows that are used.
struct Rows {
    numbers: Vec<u32>,
    used: Vec<u32>,
    count: usize,
}

impl Rows {
    fn new(numbers: impl Iterator<Item = u32>, count: usize, compact: bool) -> Rows {
        let mut numbers: Vec<u32> = numbers.collect();
        if !compact {
            return Rows { numbers, used: Vec::new(), count };
        }
        let mut place = vec![u32::MAX; count];
        numbers.iter().for_each(|&i| place[i as usize] = 0);
        let used: Vec<u32> = (0..count as u32).filter(|&i| place[i as usize] == 0).collect();
        used.iter().enumerate().for_each(|(number, &i)| place[i as usize] = number as u32);
        numbers.iter_mut().for_each(|i| *i = place[*i as usize]);
        Rows { numbers, count: used.len(), used }
    }
}

impl Head {
    /// A fresh head of `m` features. `levels` is the number of levels of each feature that has any, else 0.
    pub fn new(
        params: &mut Params,
        variant: Variant,
        (m, d, k): (usize, usize, usize),
        levels: &Arc<[u32]>,
        rng: &mut ChaCha8Rng,
    ) -> Head {
        let fcu = matches!(variant, Variant::Full | Variant::InitFcu).then(|| Fcu::new(params, "head.FCU", m, d, rng));
        let scu = variant.has_peers().then(|| Scu::new(params, "head.SRU", m, d, rng));
        let gate = (variant == Variant::Full).then(|| {
            [
                Linear::new(params, "head.sim_conf_net.0", &[k], d, rng),
                Linear::new(params, "head.sim_conf_net.2", &[d], 1, rng),
            ]
        });
        let out = if variant == Variant::Init {
            [
                Linear::new(params, "head.layers.0.0", &[d, d], d, rng),
                Linear::new(params, "head.layers.1.0", &[d], 1, rng),
            ]
        } else {
            [
                Linear::new(params, "head.post_neural_net.0", &[d], d, rng),
                Linear::new(params, "head.post_neural_net.2", &[d], 1, rng),
            ]
        };
        let most = levels.iter().copied().max().unwrap_or(0) as usize;
        let levels = (most > 0).then(|| {
            let mut count = 0;
            let groups = levels.iter().map(|&l| if l > 0 { (count += 1, count - 1).1 } else { 0 }).collect();
            let (weight, bias) = Matrix::linear_init(count as usize * most, d, rng);
            let bias = Matrix::from_vec(count as usize, most, bias.into_vec()).expect("a bias an output");
            Levels {
                counts: levels.clone(),
                groups,
                weight: params.add("head.levels.weight", weight),
                bias: params.add("head.levels.bias", bias),
            }
        });
        Head { fcu, scu, gate, out, levels }
    }

    /// The states of peers that do not depend on a target row.
    pub fn peer_tables(&self, pass: &mut Pass<'_>, samples: Var, features: Var, peers: &Peers) -> Option<PeerTables> {
        let scu = self.scu.as_ref()?;
        let dots = pass.tape.linear(features, features, None, Activation::None); // [m, m]
        Some(scu.tables(pass, samples, dots, peers))
    }

    /// Predicts the target cells.
    pub fn predict(&self, pass: &mut Pass<'_>, tables: Tables, indices: &TargetIndices) -> HeadOutput {
        let Tables { samples, features, .. } = tables;
        if self.fcu.is_none() && self.scu.is_none() {
            let of_sample = self.out[0].part(pass, 0, samples); // [n, d]
            let of_feature = self.out[0].part(pass, 1, features); // [m, d]
            let terms = [
                Term::Gathered(of_sample, &indices.to_sample),
                Term::Gathered(of_feature, &indices.to_feature),
                self.out[0].bias(pass),
            ];
            let hidden = pass.tape.affine(&terms, Activation::Relu); // [t, d]
            let value = self.out[1].apply(pass, hidden, Activation::None);
            return HeadOutput { value, hidden, fcu: None, scu: None, similarity: None, alpha: None };
        }
        let dots = pass.tape.linear(features, features, None, Activation::None); // [m, m]
        let fcu = self.fcu.as_ref().map(|fcu| {
            let relevance = fcu.relevance(pass, dots, &indices.contexts);
            fcu.context(pass, (samples, &indices.to_sample), (relevance, &indices.to_context)) // [t, d]
        });
        let peers = self.scu.as_ref().map(|scu| {
            let own = scu.own_relevance(pass, dots, &indices.contexts);
            let pairings = indices.pairings.as_ref().expect("the cells have peers");
            scu.context(pass, samples, own, tables.peers.expect("there are tables of peers"), pairings)
        });
        let (similarity, scu) = peers.unzip();
        let alpha = self.gate.as_ref().zip(similarity).map(|(gate, s)| self.alpha(pass, gate, s, indices));
        let x = match (fcu, scu, alpha) {
            (Some(fcu), Some(scu), Some(alpha)) => {
                let apart = pass.tape.sub(scu, fcu);
                let moved = pass.tape.scale_rows(apart, alpha);
                pass.tape.add(fcu, moved)
            }
            (fcu, scu, _) => fcu.or(scu).expect("there is a unit"),
        };
        let hidden = self.out[0].apply(pass, x, Activation::Gelu);
        let value = self.out[1].apply(pass, hidden, Activation::Sigmoid);
        HeadOutput { value, hidden, fcu, scu, similarity, alpha }
    }

    fn alpha(&self, pass: &mut Pass<'_>, gate: &[Linear; 2], similarity: Var, indices: &TargetIndices) -> Var {
        let similarity = pass.tape.reshape(similarity, indices.columns.len(), indices.k); // [t, k]
        let size = pass.tape.abs(similarity);
        let hidden = gate[0].apply(pass, size, Activation::Gelu);
        let z = gate[1].apply(pass, hidden, Activation::None);
        let z = pass.tape.abs(z);
        let exp = pass.tape.exp(z);
        let denominator = pass.tape.add_scalar(exp, 1e-4);
        let one_over = pass.tape.recip(denominator);
        let minus = pass.tape.scale(one_over, -1.0);
        pass.tape.add_scalar(minus, 1.0)
    }

    /// The loss of the target cells with these values: the mean squared error of numbers and, where the head has them,
    /// the cross-entropy of levels, each cell counting alike.
    pub fn loss(&self, pass: &mut Pass<'_>, output: HeadOutput, indices: &TargetIndices, values: &[f32]) -> Var {
        let target = |cells: &[u32]| Matrix::column(cells.iter().map(|&i| values[i as usize]).collect());
        let t = indices.columns.len() as u32;
        let Some(levels) = &self.levels else {
            let target = pass.tape.constant(Matrix::column(values.to_vec()));
            return pass.tape.mse(output.value, target);
        };
        let (numbers, coded): (Vec<u32>, Vec<u32>) =
            (0..t).partition(|&i| levels.counts[indices.columns[i as usize] as usize] == 0);
        let mut parts = Vec::new();
        if !coded.is_empty() {
            let logits = levels.logits(pass, output.hidden, indices, &coded);
            let counts: Vec<u32> = coded.iter().map(|&i| levels.counts[indices.columns[i as usize] as usize]).collect();
            let classes: Vec<u32> = coded.iter().zip(&counts).map(|(&i, &c)| level_of(values[i as usize], c)).collect();
            let loss =
                pass.tape.cross_entropy(logits, Classes { targets: &classes, counts: Some(&counts), weights: None });
            parts.push(pass.tape.scale(loss, coded.len() as f32 / t as f32));
        }
        if !numbers.is_empty() {
            let target = pass.tape.constant(target(&numbers));
            let share = numbers.len() as f32 / t as f32;
            let value = pass.tape.gather(output.value, &Index::new(numbers, t as usize));
            let loss = pass.tape.mse(value, target);
            parts.push(pass.tape.scale(loss, share));
        }
        parts.into_iter().reduce(|a, b| pass.tape.add(a, b)).expect("there is a cell")
    }

    /// The predictions as values of cells: the most probable level where the head has levels.
    pub fn values(&self, pass: &mut Pass<'_>, output: HeadOutput, indices: &TargetIndices) -> Vec<f32> {
        let mut values = pass.tape.value(output.value).as_slice().to_vec();
        let Some(levels) = &self.levels else { return values };
        let count = |i: u32| levels.counts[indices.columns[i as usize] as usize];
        let coded: Vec<u32> = (0..values.len() as u32).filter(|&i| count(i) > 0).collect();
        if !coded.is_empty() {
            let logits = levels.logits(pass, output.hidden, indices, &coded);
            let logits = pass.tape.value(logits);
            for (row, &i) in coded.iter().enumerate() {
                let row = &logits.row(row)[..count(i) as usize];
                let best = (0..row.len()).reduce(|a, b| if row[b] > row[a] { b } else { a }).unwrap_or(0);
                values[i as usize] = value_of_level(best as u32, count(i));
            }
        }
        values
    }
}

impl Levels {
    /// `[coded, most levels]`.
    fn logits(&self, pass: &mut Pass<'_>, hidden: Var, indices: &TargetIndices, coded: &[u32]) -> Var {
        let cells = pass.tape.shape(hidden).0;
        let groups = coded.iter().map(|&i| self.groups[indices.columns[i as usize] as usize]).collect();
        let hidden = pass.tape.gather(hidden, &Index::new(coded.to_vec(), cells));
        let (weight, bias) = (pass.param(self.weight), pass.param(self.bias));
        let groups = Index::new(groups, pass.tape.shape(bias).0);
        pass.tape.grouped_linear(hidden, weight, Some(bias), &groups, Activation::None)
    }
}

/// A level as a number from 0 to 1.
pub(crate) fn value_of_level(level: u32, count: u32) -> f32 {
    level as f32 / (count.max(2) - 1) as f32
}

fn level_of(value: f32, count: u32) -> u32 {
    ((value * (count.max(2) - 1) as f32).round() as u32).min(count.max(1) - 1)
}
