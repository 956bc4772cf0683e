//! The sample correlation unit.
//!
//! Notation: `d` the width, `t` cells, `k` peers of each, `q` distinct pairs of a peer and a target feature, `u` contexts.
//!
//! ```text
//! similarity  cosine(FCU_own(h_s, pattern of p), FCU_peer(h_p, pattern of s))     [t, k]
//! mask        r = gelu(B gelu(A [pattern of p; one-hot f] + a) + b)               [u, d]
//! masked peer gelu(D gelu(C (h_p * r) + c) + d)                                   [q, d]
//! context     gelu(E sum_p similarity * masked peer + e), dropout                 [t, d]
//! ```
//!
//! `A, B` are the paper's sigma 4, `C, D` sigma 5, `E` sigma 6. The two FCUs of the similarity have weights of their own,
//! and their products are cosines, as in the published code; the paper has dot products and one FCU. The pattern of the
//! mask keeps the target feature. Only the two contexts of the similarity need a product of `d^2` for each cell and peer:
//! the relevances depend on contexts alone, a masked peer on (peer, feature) alone.

use super::{Contexts, Fcu};
use crate::encoder::identity;
use crate::graph::{Distinct, Patterns};
use crate::pass::{Linear, Pass};
use m3impute_nn::{Activation, Factor, Index, Params, Term, Var};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// The sample correlation unit.
#[derive(Clone, Debug)]
pub struct Scu {
    own: Fcu,
    peer: Fcu,
    mask: [Linear; 2],
    masked: [Linear; 2],
    context: Linear,
}

/// The pairs of a peer and a target feature that occur among some cells.
#[derive(Debug)]
pub struct Peers {
    /// The patterns of the peers with the target features.
    pub contexts: Contexts,
    /// The context of each pair.
    pub to_context: Arc<Index>,
    /// The sample of each pair.
    pub to_sample: Arc<Index>,
    /// The pair of each cell and peer, `[t k]`.
    pub pairs: Vec<u32>,
}

/// The states of peers that do not depend on a target row.
#[derive(Clone, Copy, Debug)]
pub struct PeerTables {
    /// The relevance of each context to the first side of the similarity, `[u, d]`.
    pub relevance: Var,
    /// The masked peers, `[q, d]`.
    pub masked: Var,
}

/// Target cells and their peers as indices into the tables; each cell has `k` entries.
#[derive(Debug)]
pub struct Pairings {
    /// The cell's sample, `[t k]`.
    pub to_sample: Arc<Index>,
    /// The cell's own context, `[t k]`.
    pub to_own_context: Arc<Index>,
    /// The peer, `[t k]`.
    pub to_peer: Arc<Index>,
    /// The peer's context, `[t k]`.
    pub to_peer_context: Arc<Index>,
    /// The masked peer, `[t k]`.
    pub to_masked: Arc<Index>,
    /// The cell, `[t k]`.
    pub to_cell: Arc<Index>,
}

impl Peers {
    /// Of cells with these target features and `k` peers each.
    pub fn of(patterns: &Patterns, columns: &[u32], peers: &[u32], k: usize) -> Peers {
        let (n, m) = (patterns.of_sample.len(), patterns.shown.cols());
        let all = peers.iter().enumerate().map(|(i, &p)| (p, columns[i / k]));
        let Distinct { pairs, which } = Distinct::of(all, n, m);
        let (contexts, of_pair) = Contexts::of(patterns, pairs.iter().copied());
        Peers {
            to_context: Index::new(of_pair, contexts.len()),
            to_sample: Index::new(pairs.iter().map(|p| p.0).collect(), n),
            contexts,
            pairs: which,
        }
    }
}

impl Scu {
    /// A fresh unit.
    pub fn new(params: &mut Params, name: &str, m: usize, d: usize, rng: &mut ChaCha8Rng) -> Scu {
        let own = Fcu::new(params, &format!("{name}.sim_attr_I"), m, d, rng);
        let peer = Fcu::new(params, &format!("{name}.sim_attr_PEER"), m, d, rng);
        let mut linear = |part: &str, inputs: &[usize]| Linear::new(params, &format!("{name}.{part}"), inputs, d, rng);
        Scu {
            own,
            peer,
            mask: [linear("phi_sr.0", &[m, m]), linear("phi_sr.2", &[d])],
            masked: [linear("phi_sm.0", &[d]), linear("phi_sm.2", &[d])],
            context: linear("phi_sc.0", &[d]),
        }
    }

    /// The states that depend on the peers and target features alone.
    pub fn tables(&self, pass: &mut Pass<'_>, samples: Var, dots: Var, peers: &Peers) -> PeerTables {
        let contexts = &peers.contexts;
        let relevance = self.own.relevance(pass, dots, contexts);
        let shown = pass.tape.constant_shared(&contexts.shown);
        let one_hot = pass.tape.constant(identity(contexts.feature.target_rows()));
        let pattern = self.mask[0].part(pass, 0, shown); // [patterns, d]
        let target = self.mask[0].part(pass, 1, one_hot); // [m, d]
        let terms = [
            Term::Gathered(pattern, &contexts.pattern),
            Term::Gathered(target, &contexts.feature),
            self.mask[0].bias(pass),
        ];
        let hidden = pass.tape.affine(&terms, Activation::Gelu);
        let mask = self.mask[1].apply(pass, hidden, Activation::Gelu); // [u, d]
        let masked = [Factor::Gathered(samples, &peers.to_sample), Factor::Gathered(mask, &peers.to_context)];
        let hidden = self.masked[0].apply_product(pass, masked, Activation::Gelu); // [q, d]
        PeerTables { relevance, masked: self.masked[1].apply(pass, hidden, Activation::Gelu) }
    }

    /// The relevance of the cells' own contexts to the second side of the similarity, `[u, d]`.
    pub fn own_relevance(&self, pass: &mut Pass<'_>, dots: Var, contexts: &Contexts) -> Var {
        self.peer.relevance(pass, dots, contexts)
    }

    /// The similarity of each cell's sample to each of its peers, `[t k, 1]`, and the context vectors, `[t, d]`.
    pub fn context(
        &self,
        pass: &mut Pass<'_>,
        samples: Var,
        own_relevance: Var,
        tables: PeerTables,
        to: &Pairings,
    ) -> (Var, Var) {
        let own = self.own.context(pass, (samples, &to.to_sample), (tables.relevance, &to.to_peer_context));
        let peer = self.peer.context(pass, (samples, &to.to_peer), (own_relevance, &to.to_own_context));
        let similarity = pass.tape.cosine_similarity(own, peer); // [t k, 1]
        let sum = pass.tape.weighted_sum(tables.masked, &to.to_masked, similarity, &to.to_cell); // [t, d]
        let epilogue = pass.gelu_dropped();
        (similarity, self.context.apply(pass, sum, epilogue))
    }
}
