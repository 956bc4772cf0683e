//! The same bytes on any number of threads.

use std::sync::Arc;

use m3impute_nn::gradcheck::random;
use m3impute_nn::{Activation, Adam, AdamParams, Classes, Dropout, Factor, Index, Params, Tape, Term};

/// Three steps of a small model that uses the operations with sums across blocks, on sizes of several blocks.
fn train(threads: usize) -> Vec<u8> {
    let (nodes, edges, d, groups) = (900, 7001, 48, 5);
    let mut params = Params::new();
    let edge_weight = params.add("edge", random(d, d, 1));
    let node_weight = params.add("node", random(d, d, 2));
    let bias = params.add_shaped("bias", &[d], random(1, d, 3));
    let own = params.add_shaped("own", &[groups, d, d], random(groups * d, d, 4));
    let own_bias = params.add("own_bias", random(groups, d, 5));
    let norm = params.add("norm", random(1, d, 6));
    let classes = params.add("classes", random(3, d, 7));
    let state = params.add("state", random(nodes, d, 8));
    let shift = params.add("shift", random(1, d, 9));
    let mut adam = Adam::new(&params, AdamParams::default());

    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let values = Arc::new(random(edges, d, 10));
        let source = Index::new((0..edges).map(|i| (i * 7919 % nodes) as u32).collect(), nodes);
        let group = Index::new((0..edges).map(|i| (i * 31 % groups) as u32).collect(), groups);
        let targets: Vec<u32> = (0..edges).map(|i| (i % 3) as u32).collect();
        let mut tape = Tape::new();
        for step in 0..3 {
            let p = |tape: &mut Tape, id| tape.param(&params, id);
            let x = tape.constant_shared(&values);
            let (we, wn, b) = (p(&mut tape, edge_weight), p(&mut tape, node_weight), p(&mut tape, bias));
            let nodes_in = p(&mut tape, state);
            let term = tape.linear(nodes_in, wn, None, Activation::None);
            let terms = [Term::Linear(x, we), Term::Gathered(term, &source), Term::Row(b)];
            let e = tape.affine(&terms, Activation::Gelu.dropout(0.2, step));
            let (w, gb) = (p(&mut tape, own), p(&mut tape, own_bias));
            let g = tape.grouped_linear(e, w, Some(gb), &group, Activation::Sigmoid);
            let (n, s) = (p(&mut tape, norm), p(&mut tape, shift));
            let g = tape.layer_norm(g, n, s);
            let mean = tape.segment_mean(g, &group);
            let back = tape.gather(mean, &group);
            let g = tape.mul(g, back);
            let per_node = tape.segment_sum(g, &source);
            let per_node = tape.l2_normalise(per_node);
            let back = tape.gather(per_node, &source);
            let g = tape.add(g, back);
            let factors = (Factor::Gathered(nodes_in, &source), Factor::Gathered(mean, &group));
            let e = tape.affine(&[Term::LinearMul(factors.0, factors.1, we), Term::Rows(e)], Activation::Tanh);
            let score = tape.cosine_similarity(g, e);
            let score = tape.segment_softmax(score, &source);
            let sum = tape.weighted_sum(per_node, &source, score, &group);
            let back = tape.gather(sum, &group);
            let g = tape.scale_rows(g, score);
            let g = tape.sub(g, back);
            let share = tape.softmax(g);
            let g = tape.mul(g, share);
            let s = p(&mut tape, shift);
            let spread = tape.broadcast_row(s, edges);
            let g = tape.add(g, spread);
            let g = tape.dropout(g, Dropout::new(0.1, 100 + step));
            let wc = p(&mut tape, classes);
            let logits = tape.linear(g, wc, None, Activation::None);
            let loss = tape.cross_entropy(logits, Classes { targets: &targets, counts: None, weights: None });
            let size = tape.square(g);
            let size = tape.mean(size);
            let loss = tape.add(loss, size);
            params.zero_grads();
            tape.backward(loss, &mut params);
            params.clip_grad_norm(1.0);
            adam.step(&mut params, 1e-2);
            tape.reset();
        }
    });
    let mut bytes = Vec::new();
    params.save(&mut bytes, None).unwrap();
    bytes
}

#[test]
fn same_bytes_on_one_and_more_threads() {
    let one = train(1);
    assert!(one == train(2), "two threads differ from one");
    assert!(one == train(5), "five threads differ from one");
    assert!(one == train(1), "a second run differs from the first");
}

#[test]
fn a_trained_store_differs_from_where_it_started() {
    // Guards the test above against a training that moves nothing.
    let mut fresh = Params::new();
    let edge = fresh.add("edge", random(48, 48, 1));
    fresh.load_prefixed(&train(2), "").unwrap();
    assert_ne!(*fresh.value(edge), random(48, 48, 1));
    assert!(fresh.value(edge).as_slice().iter().all(|w| w.is_finite()));
}
