//! The floating-point operations of a training step, after the exact rewrites.
//!
//! Counted are the multiplications and additions of matrix products, forward and back; what is done to single values
//! is not. A product that only the weights learn from counts twice (forward, gradient of the weight), others three times.

use crate::graph::Shown;
use crate::head::{TargetIndices, Targets, Variant};
use crate::layers::Gnn;
use crate::model::{Architecture, Model, Start};
use crate::units::{Contexts, Peers};

/// The floating-point operations of one training step on the shown cells, with these targets.
pub fn step_flops(model: &Model, shown: &Shown, targets: &Targets) -> f64 {
    let Architecture { start, gnn, layers, width: d, variant, peers: k, .. } = *model.architecture();
    let (n, m, e, t) = (shown.samples(), shown.features(), shown.edges(), targets.len());
    let nodes = n + m;
    let mut count = Count(0.0);
    let mut width = d;
    match start {
        Start::Values => {
            count.forward(n, m, d);
            count.of_constants(n, d, d);
            count.of_constants(m, d, d);
        }
        Start::Ones => width = m,
    }
    for layer in 0..layers {
        let last = layer + 1 == layers;
        let product = |count: &mut Count, rows| match (start, layer) {
            (Start::Ones, 0) => count.of_constants(rows, width, d),
            _ => count.full(rows, width, d),
        };
        match gnn {
            Gnn::EgSage => {
                product(&mut count, nodes); // source of messages
                count.full(nodes, d, d); // mean
                product(&mut count, nodes); // own
                if layer == 0 {
                    count.of_constants(2 * e, 1, d);
                } else {
                    count.full(2 * e, d, d);
                }
                if !last {
                    count.full(2 * nodes, d, d);
                    if layer == 0 {
                        count.of_constants(2 * e, 1, d);
                    } else {
                        count.full(2 * e, d, d);
                    }
                }
            }
            Gnn::Sage | Gnn::Gcn => (0..2).for_each(|_| product(&mut count, nodes)),
            Gnn::Gat => {
                (0..2).for_each(|_| product(&mut count, nodes));
                count.full(3 * nodes, d, 1);
            }
        }
        width = d;
    }
    count.full(2 * nodes, d, d);
    if variant == Variant::Init {
        count.full(nodes, d, d);
        count.full(t, d, 1);
        return count.0;
    }
    let peers = model.peers(&shown.patterns, targets);
    let indices = TargetIndices::new(&shown.patterns, targets, peers.as_ref(), 0..t, false);
    count.full(m, d, m);
    if matches!(variant, Variant::Full | Variant::InitFcu) {
        count.relevance(indices.contexts(), m, d);
        count.full(t, d, d);
    }
    if let Some(Peers { contexts, to_context, .. }) = &peers {
        count.full(m, d, m);
        count.relevance(indices.contexts(), m, d);
        count.relevance(contexts, m, d);
        count.of_constants(contexts.shown.rows() + m, m, d);
        count.full(contexts.len(), d, d);
        count.full(2 * to_context.len(), d, d);
        count.full(2 * t * k, d, d);
        count.full(t, d, d);
    }
    if variant == Variant::Full {
        count.full(t, k, d);
        count.full(t, d, 1);
    }
    count.full(t, d, d);
    count.full(t, d, 1);
    count.0
}

struct Count(f64);

impl Count {
    fn forward(&mut self, rows: usize, inputs: usize, out: usize) {
        self.0 += 2.0 * rows as f64 * inputs as f64 * out as f64;
    }

    fn of_constants(&mut self, rows: usize, inputs: usize, out: usize) {
        (0..2).for_each(|_| self.forward(rows, inputs, out));
    }

    fn full(&mut self, rows: usize, inputs: usize, out: usize) {
        (0..3).for_each(|_| self.forward(rows, inputs, out));
    }

    fn relevance(&mut self, contexts: &Contexts, m: usize, d: usize) {
        self.of_constants(contexts.base.rows() + contexts.taken.rows(), m, d);
        self.full(contexts.len(), d, m);
        self.full(contexts.len(), m, d);
    }
}
