//! Graph convolution: `x_i' = sum_j W x_j / sqrt(d_i d_j) + b`, over the neighbours and the node itself; `d` counts both.

use super::{Place, Way};
use crate::pass::{Linear, Pass};
use m3impute_nn::{Matrix, ParamId, Params, Var};
use rand_chacha::ChaCha8Rng;

/// Graph convolution.
#[derive(Clone, Debug)]
pub struct Gcn {
    linear: Linear,
    bias: ParamId,
}

impl Gcn {
    pub(super) fn new(params: &mut Params, place: Place, rng: &mut ChaCha8Rng) -> Gcn {
        let name = format!("gnn.convs.{}", place.layer);
        Gcn {
            linear: Linear::without_bias(params, &format!("{name}.lin"), glorot(place.out, place.nodes, rng)),
            bias: params.add_shaped(&format!("{name}.bias"), &[place.out], Matrix::zeros(1, place.out)),
        }
    }

    pub(super) fn nodes(&self, pass: &mut Pass<'_>, targets: Var, sources: Var, way: &Way) -> Var {
        let share = |degrees: &[u32]| Matrix::column(degrees.iter().map(|&k| 1.0 / (k as f32 + 1.0).sqrt()).collect());
        let of_source = pass.tape.constant(share(&way.source_degrees)); // [sources, 1]
        let of_target = pass.tape.constant(share(&way.target_degrees)); // [targets, 1]
        let from = self.linear.part(pass, 0, sources);
        let from = pass.tape.scale_rows(from, of_source);
        let own = self.linear.part(pass, 0, targets);
        let own = pass.tape.scale_rows(own, of_target);
        let neighbours = pass.tape.gather(from, &way.source); // [e, d]
        let sum = pass.tape.segment_sum(neighbours, &way.target);
        let sum = pass.tape.add(sum, own);
        let states = pass.tape.scale_rows(sum, of_target);
        let bias = pass.param(self.bias);
        pass.tape.add_row(states, bias)
    }
}

/// Uniform within `sqrt(6 / (in + out))` of zero, as PyTorch Geometric starts these layers.
pub(super) fn glorot(out: usize, inputs: usize, rng: &mut ChaCha8Rng) -> Matrix {
    let bound = (6.0 / (inputs + out) as f32).sqrt();
    Matrix::uniform(out, inputs, -bound, bound, rng)
}
