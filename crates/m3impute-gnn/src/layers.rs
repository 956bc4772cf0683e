//! The layers of message passing. One file a layer: formula, shapes, code.
//!
//! Notation: `n` samples, `m` features, `e` edges, `d` the width. A layer maps the states of all nodes to new ones,
//! towards the features and towards the samples with the same weights. E-GraphSAGE also has a state for each edge and
//! each way; the others do not see the values of the cells.

mod egsage;
mod gat;
mod gcn;
mod sage;

pub use egsage::EgSage;
pub use gat::Gat;
pub use gcn::Gcn;
pub use sage::Sage;

use crate::graph::Shown;
use crate::pass::Pass;
use m3impute_nn::{Index, Params, Var};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Which layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gnn {
    /// GraphSAGE with edge states.
    EgSage,
    /// GraphSAGE.
    Sage,
    /// Graph convolution.
    Gcn,
    /// Graph attention.
    Gat,
}

/// A layer.
#[derive(Clone, Debug)]
pub enum Layer {
    /// See [`EgSage`].
    EgSage(EgSage),
    /// See [`Sage`].
    Sage(Sage),
    /// See [`Gcn`].
    Gcn(Gcn),
    /// See [`Gat`].
    Gat(Gat),
}

/// The position and the widths of a layer.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Which layer it is, from 0.
    pub layer: usize,
    /// Whether no layer follows: then no new edge states are needed.
    pub last: bool,
    /// The width of the nodes it sees.
    pub nodes: usize,
    /// The width of the edges it sees.
    pub edges: usize,
    /// The width of its output.
    pub out: usize,
}

/// One direction along the edges.
#[derive(Clone, Debug)]
pub struct Way {
    /// The node that each edge leaves.
    pub source: Arc<Index>,
    /// The node that each edge reaches.
    pub target: Arc<Index>,
    /// How many edges each source has.
    pub source_degrees: Arc<[u32]>,
    /// How many edges each target has.
    pub target_degrees: Arc<[u32]>,
}

/// The states between two layers.
#[derive(Clone, Copy, Debug)]
pub struct States {
    /// Of the samples, `[n, d]`.
    pub samples: Var,
    /// Of the features, `[m, d]`.
    pub features: Var,
    /// Of the edges, from sample to feature, `[e, d]`.
    pub up: Option<Var>,
    /// Of the edges, from feature to sample, `[e, d]`.
    pub down: Option<Var>,
}

impl Layer {
    /// A fresh layer.
    pub fn new(gnn: Gnn, params: &mut Params, place: Place, rng: &mut ChaCha8Rng) -> Layer {
        match gnn {
            Gnn::EgSage => Layer::EgSage(EgSage::new(params, place, rng)),
            Gnn::Sage => Layer::Sage(Sage::new(params, place, rng)),
            Gnn::Gcn => Layer::Gcn(Gcn::new(params, place, rng)),
            Gnn::Gat => Layer::Gat(Gat::new(params, place, rng)),
        }
    }

    /// The states after this layer.
    pub fn forward(&self, pass: &mut Pass<'_>, shown: &Shown, before: States) -> States {
        let (up, down) = (shown.up(), shown.down());
        let samples = self.nodes(pass, before.samples, before.features, before.down, &down); // [n, d]
        let features = self.nodes(pass, before.features, before.samples, before.up, &up); // [m, d]
        States {
            samples,
            features,
            up: self.edges(pass, samples, features, before.up, &up),
            down: self.edges(pass, features, samples, before.down, &down),
        }
    }

    /// The states of samples given those of the features before and after this layer: each sample independently.
    pub fn samples_given(&self, pass: &mut Pass<'_>, shown: &Shown, before: States, features_after: Var) -> States {
        let down = shown.down();
        let samples = self.nodes(pass, before.samples, before.features, before.down, &down); // [n, d]
        let down = self.edges(pass, features_after, samples, before.down, &down);
        States { samples, features: features_after, up: None, down }
    }

    /// The new states of a part of the samples, and the sums of its messages to each feature, from which
    /// [`Layer::features_of_sums`] computes the new states of the features. Nothing where a layer has no such sum.
    pub(crate) fn part(&self, pass: &mut Pass<'_>, shown: &Shown, before: States) -> Option<(Var, Var)> {
        let Layer::EgSage(layer) = self else { return None };
        let samples = layer.nodes(pass, before.samples, before.features, before.down, &shown.down());
        let messages = layer.messages(pass, before.samples, before.up, &shown.up());
        Some((samples, pass.tape.segment_sum(messages, &shown.to_feature)))
    }

    /// See [`Layer::part`]; `means` are the sums by the number of edges, `[m, d]`.
    pub(crate) fn features_of_sums(&self, pass: &mut Pass<'_>, features: Var, means: Var) -> Option<Var> {
        let Layer::EgSage(layer) = self else { return None };
        Some(layer.update(pass, features, means))
    }

    /// The edge states after this layer, given the nodes after it.
    pub(crate) fn edges_between(
        &self,
        pass: &mut Pass<'_>,
        shown: &Shown,
        before: States,
        samples: Var,
        features: Var,
    ) -> States {
        let up = self.edges(pass, samples, features, before.up, &shown.up());
        let down = self.edges(pass, features, samples, before.down, &shown.down());
        States { samples, features, up, down }
    }

    fn nodes(&self, pass: &mut Pass<'_>, targets: Var, sources: Var, edges: Option<Var>, way: &Way) -> Var {
        match self {
            Layer::EgSage(layer) => layer.nodes(pass, targets, sources, edges, way),
            Layer::Sage(layer) => layer.nodes(pass, targets, sources, way),
            Layer::Gcn(layer) => layer.nodes(pass, targets, sources, way),
            Layer::Gat(layer) => layer.nodes(pass, targets, sources, way),
        }
    }

    fn edges(&self, pass: &mut Pass<'_>, sources: Var, targets: Var, edges: Option<Var>, way: &Way) -> Option<Var> {
        match self {
            Layer::EgSage(layer) => layer.edges(pass, sources, targets, edges, way),
            Layer::Sage(_) | Layer::Gcn(_) | Layer::Gat(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Cells;
    use m3impute_nn::{Matrix, Tape};
    use rand_chacha::rand_core::SeedableRng;

    const ALL: [Gnn; 4] = [Gnn::EgSage, Gnn::Sage, Gnn::Gcn, Gnn::Gat];
    const PLACE: Place = Place { layer: 0, last: false, nodes: 4, edges: 1, out: 6 };

    fn rng() -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(5)
    }

    /// Five samples, of which the last shows nothing, and three features.
    fn table(order: [usize; 5]) -> (Cells, Matrix, Matrix) {
        let values = Matrix::uniform(5, 3, 0.0, 1.0, &mut rng());
        let samples = Matrix::uniform(5, 4, -1.0, 1.0, &mut rng());
        let features = Matrix::uniform(3, 4, -1.0, 1.0, &mut rng());
        let observed = |i: usize, j: usize| i != 4 && (i + j) % 4 != 2;
        let at = |i: usize| (order[i / 3], i % 3);
        let x: Vec<f64> = (0..15).map(|i| f64::from(values.get(at(i).0, at(i).1))).collect();
        let seen: Vec<bool> = (0..15).map(|i| observed(at(i).0, at(i).1)).collect();
        (Cells::observed(3, &x, &seen), Matrix::from_fn(5, 4, |i, j| samples.get(order[i], j)), features)
    }

    /// New states of samples and features.
    fn run(gnn: Gnn, order: [usize; 5]) -> (Matrix, Matrix) {
        let mut params = Params::new();
        let layer = Layer::new(gnn, &mut params, PLACE, &mut rng());
        let (cells, samples, features) = table(order);
        let shown = Shown::new(&cells, 0.0);
        let mut tape = Tape::inference();
        let mut pass = Pass::new(&mut tape, &params);
        let values = pass.tape.constant_shared(&shown.values);
        let (samples, features) = (pass.tape.constant(samples), pass.tape.constant(features));
        let after =
            layer.forward(&mut pass, &shown, States { samples, features, up: Some(values), down: Some(values) });
        if let Some(edges) = after.up {
            assert_eq!(tape.shape(edges), (cells.len(), 6));
        }
        (tape.value(after.samples).clone(), tape.value(after.features).clone())
    }

    #[test]
    fn every_layer_gives_states_of_its_width() {
        for gnn in ALL {
            let (samples, features) = run(gnn, [0, 1, 2, 3, 4]);
            assert_eq!((samples.shape(), features.shape()), ((5, 6), (3, 6)), "{gnn:?}");
        }
    }

    #[test]
    fn the_order_of_samples_does_not_matter() {
        let order = [3, 0, 4, 2, 1];
        for gnn in ALL {
            let (samples, features) = run(gnn, [0, 1, 2, 3, 4]);
            let (moved, same) = run(gnn, order);
            for (i, &from) in order.iter().enumerate() {
                assert_eq!(moved.row(i), samples.row(from), "{gnn:?}");
            }
            for (a, b) in same.as_slice().iter().zip(features.as_slice()) {
                assert!((a - b).abs() < 1e-6, "{gnn:?}");
            }
        }
    }

    #[test]
    fn a_sample_without_edges_has_finite_states() {
        for gnn in ALL {
            let (samples, _) = run(gnn, [0, 1, 2, 3, 4]);
            assert!(samples.row(4).iter().all(|v| v.is_finite()), "{gnn:?}");
        }
    }

    #[test]
    fn samples_are_independent_given_their_features() {
        for gnn in ALL {
            let mut params = Params::new();
            let layer = Layer::new(gnn, &mut params, PLACE, &mut rng());
            let (cells, samples, features) = table([0, 1, 2, 3, 4]);
            let whole = Shown::new(&cells, 0.0);
            let after = Matrix::uniform(3, 6, -1.0, 1.0, &mut rng());
            let run = |shown: &Shown, samples: Matrix| {
                let mut tape = Tape::inference();
                let mut pass = Pass::new(&mut tape, &params);
                let values = pass.tape.constant_shared(&shown.values);
                let (samples, features) = (pass.tape.constant(samples), pass.tape.constant(features.clone()));
                let after = pass.tape.constant(after.clone());
                let before = States { samples, features, up: None, down: Some(values) };
                let states = layer.samples_given(&mut pass, shown, before, after);
                tape.value(states.samples).clone()
            };
            let all = run(&whole, samples.clone());
            // The second sample alone, with the features as they were.
            let mut alone = Shown::new(&cells.subset(|i| cells.rows[i] == 1), 0.0);
            alone.feature_degrees = whole.feature_degrees.clone();
            assert_eq!(run(&alone, samples.clone()).row(1), all.row(1), "{gnn:?}");
        }
    }
}
