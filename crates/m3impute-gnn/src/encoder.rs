//! The encoder: first states of the nodes, layers of message passing, and a last map.
//!
//! Notation: `n` samples, `m` features, `d` the width.
//!
//! ```text
//! M3-Impute   samples  sigmoid(W A H + b)      [n, d]   A the table with epsilon in its holes, H random and fixed [m, d]
//!             features V H + c                 [m, d]
//! GRAPE       samples  ones                    [n, m]
//!             features one-hot                 [m, m]
//! ```
//!
//! then the layers, then `Linear, ReLU, Linear` on every node.

mod infer;

use crate::graph::Shown;
use crate::layers::{Gnn, Layer, Place, States};
use crate::pass::{Linear, Pass};
use m3impute_nn::{Activation, Matrix, Params, Tape, Var};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// How the nodes start.
#[derive(Clone, Debug)]
enum Start {
    /// From the values and what is missing.
    Values { nodes: Arc<Matrix>, sample: Linear, feature: Linear },
    /// Ones and one-hot vectors.
    Ones { features: usize },
}

/// Learns a state for each node of the graph.
#[derive(Clone, Debug)]
pub struct Encoder {
    width: usize,
    start: Start,
    layers: Vec<Layer>,
    post: [Linear; 2],
}

/// What the encoder made of a graph.
#[derive(Debug)]
pub struct Embeddings {
    /// The states at the start and after each layer.
    pub states: Vec<States>,
    /// The embeddings of the samples, `[n, d]`.
    pub samples: Var,
    /// The embeddings of the features, `[m, d]`.
    pub features: Var,
}

/// The features as they were in training: given them, samples do not depend on each other.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureStates {
    /// At the start and after each layer, `[m, d]` each.
    pub layers: Vec<Arc<Matrix>>,
    /// The embeddings, `[m, d]`.
    pub embeddings: Arc<Matrix>,
    /// How many edges each feature had, `[m]`.
    pub degrees: Arc<[u32]>,
}

impl Encoder {
    /// The encoder of M3-Impute, with these fixed vectors of the features, `[m, d]`.
    pub fn from_values(
        params: &mut Params,
        gnn: Gnn,
        layers: usize,
        nodes: Arc<Matrix>,
        rng: &mut ChaCha8Rng,
    ) -> Encoder {
        let d = nodes.cols();
        let start = Start::Values {
            nodes,
            sample: Linear::new(params, "gnn.init_obs_mlp", &[d], d, rng),
            feature: Linear::new(params, "gnn.init_feature_mlp", &[d], d, rng),
        };
        Encoder::new(params, gnn, layers, (start, d), d, rng)
    }

    /// The encoder of GRAPE.
    pub fn from_ones(
        params: &mut Params,
        gnn: Gnn,
        layers: usize,
        features: usize,
        d: usize,
        rng: &mut ChaCha8Rng,
    ) -> Encoder {
        Encoder::new(params, gnn, layers, (Start::Ones { features }, features), d, rng)
    }

    fn new(
        params: &mut Params,
        gnn: Gnn,
        count: usize,
        start: (Start, usize),
        d: usize,
        rng: &mut ChaCha8Rng,
    ) -> Encoder {
        let (start, width) = start;
        let mut layer = |layer: usize| {
            let (nodes, edges) = if layer == 0 { (width, 1) } else { (d, d) };
            Layer::new(gnn, params, Place { layer, last: layer + 1 == count, nodes, edges, out: d }, rng)
        };
        let layers = (0..count).map(&mut layer).collect();
        let post = ["gnn.node_post_mlp.0.0", "gnn.node_post_mlp.1"].map(|name| Linear::new(params, name, &[d], d, rng));
        Encoder { width: d, start, layers, post }
    }

    /// The embeddings of all nodes.
    pub fn forward(&self, pass: &mut Pass<'_>, shown: &Shown) -> Embeddings {
        let samples = self.first_samples(pass, shown);
        let features = self.first_features(pass);
        let values = pass.tape.constant_shared(&shown.values); // [e, 1]
        let mut states = vec![States { samples, features, up: Some(values), down: Some(values) }];
        for layer in &self.layers {
            let before = states[states.len() - 1];
            states.push(layer.forward(pass, shown, before));
        }
        let last = states[states.len() - 1];
        let samples = self.embed(pass, last.samples);
        let features = self.embed(pass, last.features);
        Embeddings { states, samples, features }
    }

    /// The embeddings of samples, each by itself, where the features are known, `[n, d]`.
    ///
    /// `shown` must have the degrees of these features.
    pub fn samples_given(&self, pass: &mut Pass<'_>, shown: &Shown, features: &FeatureStates) -> Var {
        let samples = self.first_samples(pass, shown);
        let values = pass.tape.constant_shared(&shown.values);
        let first = pass.tape.constant_shared(&features.layers[0]);
        let mut states = States { samples, features: first, up: None, down: Some(values) };
        for (layer, after) in self.layers.iter().zip(&features.layers[1..]) {
            let after = pass.tape.constant_shared(after);
            states = layer.samples_given(pass, shown, states, after);
        }
        self.embed(pass, states.samples)
    }

    /// The vectors whose cosine says how similar two samples are: the shown values times the vectors of the features.
    /// Nothing where the features have none, `[n, d]`.
    pub fn sample_vectors(&self, shown: &Shown) -> Option<Matrix> {
        let Start::Values { nodes, .. } = &self.start else { return None };
        let mut tape = Tape::inference();
        let table = tape.constant_shared(&shown.table);
        let nodes = tape.constant_shared(nodes);
        let vectors = tape.matmul(table, nodes);
        Some(tape.value(vectors).clone())
    }

    /// The fixed vectors of the features, where there are any.
    pub fn feature_nodes(&self) -> Option<&Arc<Matrix>> {
        match &self.start {
            Start::Values { nodes, .. } => Some(nodes),
            Start::Ones { .. } => None,
        }
    }

    fn first_samples(&self, pass: &mut Pass<'_>, shown: &Shown) -> Var {
        match &self.start {
            Start::Values { nodes, sample, .. } => {
                let table = pass.tape.constant_shared(&shown.table); // [n, m]
                let nodes = pass.tape.constant_shared(nodes);
                let sums = pass.tape.matmul(table, nodes);
                sample.apply(pass, sums, Activation::Sigmoid)
            }
            Start::Ones { features } => pass.tape.constant_with(shown.samples(), *features, |x| x.fill(1.0)),
        }
    }

    fn first_features(&self, pass: &mut Pass<'_>) -> Var {
        match &self.start {
            Start::Values { nodes, feature, .. } => {
                let nodes = pass.tape.constant_shared(nodes);
                feature.apply(pass, nodes, Activation::None)
            }
            Start::Ones { features } => pass.tape.constant(identity(*features)),
        }
    }

    fn embed(&self, pass: &mut Pass<'_>, x: Var) -> Var {
        let x = self.post[0].apply(pass, x, Activation::Relu);
        self.post[1].apply(pass, x, Activation::None)
    }
}

/// The identity matrix.
pub(crate) fn identity(n: usize) -> Matrix {
    Matrix::from_fn(n, n, |i, j| f32::from(u8::from(i == j)))
}

#[cfg(test)]
mod tests {
    use super::infer::PART_ROWS;
    use super::*;
    use crate::graph::Cells;
    use m3impute_core::Run;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn inference_in_parts_gives_the_states_of_training() {
        let rows = 2 * PART_ROWS + 7;
        let x: Vec<f64> = (0..3 * rows).map(|i| (i * 7 % 13) as f64 / 12.0).collect();
        let observed: Vec<bool> = (0..3 * rows).map(|i| i % 4 != 1).collect();
        let shown = Shown::new(&Cells::observed(3, &x, &observed), 1e-4);
        let run = Run::new(0, 1).unwrap();
        for gnn in [Gnn::EgSage, Gnn::Sage, Gnn::Gcn, Gnn::Gat] {
            let mut rng = ChaCha8Rng::seed_from_u64(3);
            let mut params = Params::new();
            let nodes = Arc::new(Matrix::uniform(3, 8, 0.0, 1.0, &mut rng));
            let encoder = Encoder::from_values(&mut params, gnn, 4, nodes, &mut rng);
            let mut tape = Tape::new();
            let mut pass = Pass::new(&mut tape, &params);
            let all = encoder.forward(&mut pass, &shown);
            let (samples, features) = encoder.infer(&mut Tape::inference(), &params, &shown, &run).unwrap();
            let near = |got: &Matrix, want: Var| {
                for (a, b) in got.as_slice().iter().zip(tape.value(want).as_slice()) {
                    assert!((a - b).abs() < 1e-5, "{gnn:?}: {a} {b}");
                }
            };
            near(&samples, all.samples);
            near(&features.embeddings, all.features);
            for (got, want) in features.layers.iter().zip(&all.states) {
                near(got, want.features);
            }
            // Given the features, each sample by itself comes out the same.
            let mut tape = Tape::inference();
            let mut pass = Pass::new(&mut tape, &params);
            let given = encoder.samples_given(&mut pass, &shown, &features);
            for (a, b) in tape.value(given).as_slice().iter().zip(samples.as_slice()) {
                assert!((a - b).abs() < 1e-5, "{gnn:?}: {a} {b}");
            }
        }
    }
}
