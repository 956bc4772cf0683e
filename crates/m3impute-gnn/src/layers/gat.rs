//! Graph attention, one head: `x_i' = sum_j a_ij W x_j + b` over the neighbours and the node itself, where `a_ij` is the
//! softmax over `j` of `leaky(s . W x_j + t . W x_i)`.

use super::gcn::glorot;
use super::{Place, Way};
use crate::pass::{Linear, Pass};
use m3impute_nn::{Activation, Index, Matrix, ParamId, Params, Term, Var};
use rand_chacha::ChaCha8Rng;

/// Graph attention.
#[derive(Clone, Debug)]
pub struct Gat {
    linear: Linear,
    of_source: ParamId,
    of_target: ParamId,
    bias: ParamId,
}

impl Gat {
    pub(super) fn new(params: &mut Params, place: Place, rng: &mut ChaCha8Rng) -> Gat {
        let (name, d) = (format!("gnn.convs.{}", place.layer), place.out);
        Gat {
            linear: Linear::without_bias(params, &format!("{name}.lin"), glorot(d, place.nodes, rng)),
            of_source: params.add_shaped(&format!("{name}.att_src"), &[1, 1, d], glorot(1, d, rng)),
            of_target: params.add_shaped(&format!("{name}.att_dst"), &[1, 1, d], glorot(1, d, rng)),
            bias: params.add_shaped(&format!("{name}.bias"), &[d], Matrix::zeros(1, d)),
        }
    }

    pub(super) fn nodes(&self, pass: &mut Pass<'_>, targets: Var, sources: Var, way: &Way) -> Var {
        let (source_rows, target_rows) = (pass.tape.shape(sources).0, pass.tape.shape(targets).0);
        let from = self.linear.part(pass, 0, sources); // [sources, d]
        let own = self.linear.part(pass, 0, targets); // [targets, d]
        // A node is its own neighbour: below the sources stand the targets, each with an edge to itself.
        let all = pass.tape.concat_rows(&[from, own]);
        let selves = 0..target_rows as u32;
        let source = way.source.targets().iter().copied().chain(selves.clone().map(|i| i + source_rows as u32));
        let source = Index::new(source.collect(), source_rows + target_rows);
        let target = Index::new(way.target.targets().iter().copied().chain(selves).collect(), target_rows);

        let (of_source, of_target) = (pass.param(self.of_source), pass.param(self.of_target));
        let of_source = pass.tape.linear(all, of_source, None, Activation::None); // [sources + targets, 1]
        let of_target = pass.tape.linear(own, of_target, None, Activation::None); // [targets, 1]
        let terms = [Term::Gathered(of_source, &source), Term::Gathered(of_target, &target)];
        let scores = pass.tape.affine(&terms, Activation::LeakyRelu(0.2)); // [e + targets, 1]
        let attention = pass.tape.segment_softmax(scores, &target);
        let neighbours = pass.tape.gather(all, &source); // [e + targets, d]
        let weighted = pass.tape.scale_rows(neighbours, attention);
        let states = pass.tape.segment_sum(weighted, &target);
        let bias = pass.param(self.bias);
        pass.tape.add_row(states, bias)
    }
}
