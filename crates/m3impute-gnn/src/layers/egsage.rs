//! E-GraphSAGE: messages see the state of their edge, and edges have states of their own.
//!
//! ```text
//! message  q_ij = relu(U x_j + V e_ji + b)            [e, d]
//! node     x_i' = normalise(relu(A mean_j q_ij + X x_i + c))   [n, d], of length one
//! edge     e_ji' = relu(P x_j' + Q x_i' + R e_ji + g)  [e, d]
//! ```
//!
//! `j` is the source and `i` the target of an edge; a node without edges has a mean of zeros. As published, `U, V` are
//! one weight on `[x_j; e_ji]`, `A, X` one on `[mean; x_i]`, and `P, Q, R` one on `[x_j'; x_i'; e_ji]`. The edges of the
//! first layer are numbers, so `V e` costs `d` an edge there.

use super::{Place, Way};
use crate::pass::{Linear, Pass};
use m3impute_nn::{Activation, Params, Term, Var};
use rand_chacha::ChaCha8Rng;

/// GraphSAGE with edge states.
#[derive(Clone, Debug)]
pub struct EgSage {
    message: Linear,
    node: Linear,
    /// None in the last layer, whose edges are not used.
    edge: Option<Linear>,
}

impl EgSage {
    pub(super) fn new(params: &mut Params, place: Place, rng: &mut ChaCha8Rng) -> EgSage {
        let Place { layer, last, nodes, edges, out } = place;
        let name = format!("gnn.convs.{layer}");
        EgSage {
            message: Linear::new(params, &format!("{name}.message_lin"), &[nodes, edges], out, rng),
            node: Linear::new(params, &format!("{name}.agg_lin"), &[out, nodes], out, rng),
            edge: (!last)
                .then(|| Linear::new(params, &format!("gnn.edge_update_mlps.{layer}.0"), &[out, out, edges], out, rng)),
        }
    }

    pub(super) fn nodes(&self, pass: &mut Pass<'_>, targets: Var, sources: Var, edges: Option<Var>, way: &Way) -> Var {
        let messages = self.messages(pass, sources, edges, way);
        let mean = pass.tape.segment_mean(messages, &way.target);
        self.update(pass, targets, mean)
    }

    /// The messages along the edges, `[e, d]`.
    pub(super) fn messages(&self, pass: &mut Pass<'_>, sources: Var, edges: Option<Var>, way: &Way) -> Var {
        let edges = edges.expect("an edge has a state in every layer");
        let from = self.message.part(pass, 0, sources);
        let terms = [
            Term::Linear(edges, self.message.weight(pass, 1)),
            Term::Gathered(from, &way.source),
            self.message.bias(pass),
        ];
        pass.tape.affine(&terms, Activation::Relu)
    }

    /// The states of nodes with these means of their messages.
    pub(super) fn update(&self, pass: &mut Pass<'_>, targets: Var, mean: Var) -> Var {
        let terms = [
            Term::Linear(mean, self.node.weight(pass, 0)),
            Term::Linear(targets, self.node.weight(pass, 1)),
            self.node.bias(pass),
        ];
        let states = pass.tape.affine(&terms, Activation::Relu);
        pass.tape.l2_normalise(states)
    }

    pub(super) fn edges(
        &self,
        pass: &mut Pass<'_>,
        sources: Var,
        targets: Var,
        edges: Option<Var>,
        way: &Way,
    ) -> Option<Var> {
        let (edge, edges) = (self.edge.as_ref()?, edges?);
        let from = edge.part(pass, 0, sources);
        let to = edge.part(pass, 1, targets);
        let terms = [
            Term::Linear(edges, edge.weight(pass, 2)),
            Term::Gathered(from, &way.source),
            Term::Gathered(to, &way.target),
            edge.bias(pass),
        ];
        Some(pass.tape.affine(&terms, Activation::Relu)) // [e, d]
    }
}
