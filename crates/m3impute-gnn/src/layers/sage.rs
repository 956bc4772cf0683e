//! GraphSAGE: `x_i' = A mean_j x_j + X x_i + b`. The mean runs over the neighbours; without any it is zero.

use super::{Place, Way};
use crate::pass::{Linear, Pass};
use m3impute_nn::{Activation, Matrix, Params, Term, Var};
use rand_chacha::ChaCha8Rng;

/// GraphSAGE.
#[derive(Clone, Debug)]
pub struct Sage {
    mean: Linear,
    own: Linear,
}

impl Sage {
    pub(super) fn new(params: &mut Params, place: Place, rng: &mut ChaCha8Rng) -> Sage {
        let name = format!("gnn.convs.{}", place.layer);
        let mean = Linear::new(params, &format!("{name}.lin_l"), &[place.nodes], place.out, rng);
        let (own, _) = Matrix::linear_init(place.out, place.nodes, rng);
        Sage { mean, own: Linear::without_bias(params, &format!("{name}.lin_r"), own) }
    }

    pub(super) fn nodes(&self, pass: &mut Pass<'_>, targets: Var, sources: Var, way: &Way) -> Var {
        let neighbours = pass.tape.gather(sources, &way.source); // [e, nodes]
        let mean = pass.tape.segment_mean(neighbours, &way.target);
        let terms = [
            Term::Linear(mean, self.mean.weight(pass, 0)),
            Term::Linear(targets, self.own.weight(pass, 0)),
            self.mean.bias(pass),
        ];
        pass.tape.affine(&terms, Activation::None)
    }
}
