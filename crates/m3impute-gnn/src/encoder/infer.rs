//! The embeddings of a whole table without a way back, a part of the samples at a time.
//!
//! With edge states the samples are gone through in parts, layer by layer, and the edges of earlier layers are computed
//! again from the nodes: with three layers that takes not one product more, because the first edge states follow from
//! numbers, and no edge of the whole table is ever kept.

use super::{Encoder, FeatureStates};
use crate::graph::Shown;
use crate::layers::{Layer, States};
use crate::pass::Pass;
use m3impute_core::{Result, Run};
use m3impute_nn::{Matrix, Params, Tape, Var, alone};
use rayon::prelude::*;
use std::sync::Arc;

/// The samples that inference goes through at a time: few enough that the edges of a part stay in cache.
pub(super) const PART_ROWS: usize = 128;

/// The states of the nodes at the start and after each layer that is done.
struct NodeStates {
    /// By layer, the samples of each part.
    samples: Vec<Vec<Arc<Matrix>>>,
    /// By layer, the features, `[m, d]`.
    features: Vec<Arc<Matrix>>,
}

impl Encoder {
    /// The embeddings of all samples, `[n, d]`, and the states of the features, without a way back.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn infer(
        &self,
        tape: &mut Tape,
        params: &Params,
        shown: &Shown,
        run: &Run,
    ) -> Result<(Arc<Matrix>, FeatureStates)> {
        let in_parts = matches!(self.layers[0], Layer::EgSage(_)) && shown.edges() > 0;
        let parts = if in_parts { shown.parts(PART_ROWS) } else { vec![shown.clone()] };
        let mut states = run.install(|| self.first_states(tape, params, &parts));
        for l in 0..self.layers.len() {
            let (samples, features) = if in_parts {
                // A thread a part: what a part needs stays in the cache of its processor.
                let layer = |tape: &mut Tape, (p, part)| {
                    run.check().map(|()| alone(|| self.layer_of_part(tape, params, &states, l, (p, part))))
                };
                let of_parts: Result<Vec<_>> =
                    run.install(|| parts.par_iter().enumerate().map_init(Tape::inference, layer).collect());
                let (samples, sums): (Vec<_>, Vec<_>) = of_parts?.into_iter().unzip();
                let means = means_of(&sums, &shown.feature_degrees);
                (samples, run.install(|| self.features_of_means(tape, params, &states.features[l], l, means)))
            } else {
                run.check()?;
                let (samples, features) = run.install(|| self.layer_of_part(tape, params, &states, l, (0, &parts[0])));
                (vec![samples], features)
            };
            states.samples.push(samples);
            states.features.push(features);
        }
        Ok(run.install(|| self.embeddings_of(tape, params, shown, states)))
    }

    /// The states at the start.
    fn first_states(&self, tape: &mut Tape, params: &Params, parts: &[Shown]) -> NodeStates {
        tape.reset();
        let mut pass = Pass::new(tape, params);
        let features = self.first_features(&mut pass);
        let features = vec![copy(&pass, features)];
        let samples = parts.iter().map(|part| {
            let samples = self.first_samples(&mut pass, part);
            copy(&pass, samples)
        });
        NodeStates { samples: vec![samples.collect()], features }
    }

    /// Layer `l` on one part: its samples, and the features, or what this part adds to their sums where there are parts.
    fn layer_of_part(
        &self,
        tape: &mut Tape,
        params: &Params,
        before: &NodeStates,
        l: usize,
        (p, part): (usize, &Shown),
    ) -> (Arc<Matrix>, Arc<Matrix>) {
        tape.reset();
        let mut pass = Pass::new(tape, params);
        let enter = |pass: &mut Pass<'_>, l: usize| {
            (pass.tape.constant_shared(&before.samples[l][p]), pass.tape.constant_shared(&before.features[l]))
        };
        let values = pass.tape.constant_shared(&part.values);
        let (samples, features) = enter(&mut pass, 0);
        let mut states = States { samples, features, up: Some(values), down: Some(values) };
        for (q, earlier) in self.layers[..l].iter().enumerate() {
            let (samples, features) = enter(&mut pass, q + 1);
            states = earlier.edges_between(&mut pass, part, states, samples, features);
        }
        let (samples, features) = self.layers[l].part(&mut pass, part, states).unwrap_or_else(|| {
            let states = self.layers[l].forward(&mut pass, part, states);
            (states.samples, states.features)
        });
        (copy(&pass, samples), copy(&pass, features))
    }

    /// The features after layer `l`, from the means of what the edges of all parts send them, `[m, d]`.
    fn features_of_means(
        &self,
        tape: &mut Tape,
        params: &Params,
        before: &Arc<Matrix>,
        l: usize,
        means: Matrix,
    ) -> Arc<Matrix> {
        tape.reset();
        let mut pass = Pass::new(tape, params);
        let (before, means) = (pass.tape.constant_shared(before), pass.tape.constant(means));
        let after = self.layers[l].features_of_sums(&mut pass, before, means).expect("a layer with sums");
        copy(&pass, after)
    }

    /// The last map, on all nodes.
    fn embeddings_of(
        &self,
        tape: &mut Tape,
        params: &Params,
        shown: &Shown,
        states: NodeStates,
    ) -> (Arc<Matrix>, FeatureStates) {
        let NodeStates { samples, features } = states;
        tape.reset();
        let mut pass = Pass::new(tape, params);
        let last = pass.tape.constant_shared(&features[features.len() - 1]);
        let embeddings = self.embed(&mut pass, last);
        let embeddings = copy(&pass, embeddings);
        let mut all = Vec::with_capacity(shown.samples() * self.width);
        for part in &samples[samples.len() - 1] {
            let last = pass.tape.constant_shared(part);
            let part = self.embed(&mut pass, last);
            all.extend_from_slice(pass.tape.value(part).as_slice());
        }
        let all = Matrix::from_vec(shown.samples(), self.width, all).expect("a row a sample");
        let degrees = shown.feature_degrees.clone();
        (Arc::new(all), FeatureStates { layers: features, embeddings, degrees })
    }
}

fn copy(pass: &Pass<'_>, var: Var) -> Arc<Matrix> {
    Arc::new(pass.tape.value(var).clone())
}

/// The sums of the parts, in their order, divided by how many edges each feature has, `[m, d]`.
fn means_of(sums: &[Arc<Matrix>], degrees: &[u32]) -> Matrix {
    let mut means = (*sums[0]).clone();
    for part in &sums[1..] {
        means.as_mut_slice().iter_mut().zip(part.as_slice()).for_each(|(sum, x)| *sum += x);
    }
    let width = means.cols();
    for (row, &degree) in means.as_mut_slice().chunks_exact_mut(width).zip(degrees) {
        row.iter_mut().for_each(|v| *v /= degree.max(1) as f32);
    }
    means
}
