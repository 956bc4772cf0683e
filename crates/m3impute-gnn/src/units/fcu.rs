//! The feature correlation unit.
//!
//! Notation: `m` features, `d` the width, `u` contexts (pattern of shown features, target feature `f`), `t` cells.
//!
//! ```text
//! soft mask  s = gelu(B gelu(A w + a) + b)      [u, m]   w the softmax of the pattern without f
//! relevance  r = gelu(C ((H_F h_f) * s) + c)    [u, d]   H_F h_f the dot products of h_f with all features
//! context    gelu(D (h_s * r) + d), dropout     [t, d]
//! ```
//!
//! `A, B` are the paper's sigma 1, `C` sigma 2 and `D` sigma 3. The paper's text lacks the softmax, the removal of the
//! target feature and the dropout, which the published code has.

use super::Contexts;
use crate::pass::{Linear, Pass};
use m3impute_nn::{Activation, Factor, Index, Params, Term, Var};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// The feature correlation unit.
#[derive(Clone, Debug)]
pub struct Fcu {
    mask: [Linear; 2],
    relevance: Linear,
    context: Linear,
}

impl Fcu {
    /// A fresh unit.
    pub fn new(params: &mut Params, name: &str, m: usize, d: usize, rng: &mut ChaCha8Rng) -> Fcu {
        Fcu {
            mask: [
                Linear::new(params, &format!("{name}.phi_rm.0"), &[m], d, rng),
                Linear::new(params, &format!("{name}.phi_rm.2"), &[d], m, rng),
            ],
            relevance: Linear::new(params, &format!("{name}.phi_rr.0"), &[m], d, rng),
            context: Linear::new(params, &format!("{name}.phi_rc.0"), &[d], d, rng),
        }
    }

    /// How much each entry of an embedding matters in each context; `dots` are those of all features, `[u, d]`.
    pub fn relevance(&self, pass: &mut Pass<'_>, dots: Var, contexts: &Contexts) -> Var {
        let base = pass.tape.constant_shared(&contexts.base);
        let taken = pass.tape.constant_shared(&contexts.taken);
        let base = self.mask[0].part(pass, 0, base);
        let taken = self.mask[0].part(pass, 0, taken);
        let terms = [
            Term::Gathered(base, &contexts.to_base),
            Term::Gathered(taken, &contexts.to_taken),
            self.mask[0].bias(pass),
        ];
        let hidden = pass.tape.affine(&terms, Activation::Gelu); // [u, d]
        let soft = self.mask[1].apply(pass, hidden, Activation::Gelu); // [u, m]
        let masked = [Factor::Gathered(dots, &contexts.feature), Factor::Rows(soft)]; // [u, m]
        self.relevance.apply_product(pass, masked, Activation::Gelu)
    }

    /// The context vectors of cells: the embedding of each cell's sample in each cell's context, `[t, d]`.
    pub fn context(
        &self,
        pass: &mut Pass<'_>,
        (samples, to_sample): (Var, &Arc<Index>),
        (relevance, to_relevance): (Var, &Arc<Index>),
    ) -> Var {
        let masked = [Factor::Gathered(samples, to_sample), Factor::Gathered(relevance, to_relevance)];
        let epilogue = pass.gelu_dropped();
        self.context.apply_product(pass, masked, epilogue)
    }
}
