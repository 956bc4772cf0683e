//! How much of the machine's GEMM speed is left in a training step.
//!
//! `cargo run --release --example gemm_bench -- [threads] [rows] [width]`
//!
//! A chain of six linear maps with GELU is run forward and backward; its useful arithmetic is that of the matrix
//! products alone: one product forward, two backward, for each layer.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use m3impute_nn::gradcheck::random;
use m3impute_nn::{Activation, Factor, Index, Matrix, Tape, Term, machine_gflops};

const LAYERS: usize = 6;

/// Seconds of the best run.
fn best(mut run: impl FnMut()) -> f64 {
    run();
    let start = Instant::now();
    let mut best = f64::INFINITY;
    while start.elapsed() < Duration::from_secs(2) {
        let once = Instant::now();
        run();
        best = best.min(once.elapsed().as_secs_f64());
    }
    best
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|a| a.parse::<usize>().expect("a number"));
    let threads = numbers.next().unwrap_or(2);
    let rows = numbers.next().unwrap_or(30_000);
    let d = numbers.next().unwrap_or(128);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
    pool.install(|| bench(rows, d));
    println!("{threads} threads, [{rows}, {d}]");
}

fn bench(rows: usize, d: usize) {
    let machine = Cell::new(0.0);
    let product = 2.0 * (rows * d * d) as f64;
    let report = |what: &str, flops: f64, seconds: f64| {
        let gflops = flops / seconds / 1e9;
        // Again each time, so that a neighbour on the machine does not spoil the yardstick.
        machine.set(machine_gflops(Duration::from_millis(200)).max(machine.get()));
        let share = 100.0 * gflops / machine.get();
        println!("{what:44} {gflops:8.1} GFLOPS {share:5.1} % {:8.2} ms", seconds * 1e3);
    };

    let x = Arc::new(random(rows, d, 1)); // [n, d]
    let weights: Vec<_> = (0..LAYERS)
        .map(|i| {
            let bound = 1.0 / (d as f32).sqrt();
            let w = random(d, d, i as u64 + 2);
            Arc::new(Matrix::from_fn(d, d, |i, j| bound * w.get(i, j)))
        })
        .collect();
    let seed = Matrix::full(rows, d, 1e-3);
    let mut tape = Tape::inference();
    for (what, activation) in [("a linear map", Activation::None), ("a linear map with GELU", Activation::Gelu)] {
        let seconds = best(|| {
            tape.reset();
            let (x, w) = (tape.constant_shared(&x), tape.constant_shared(&weights[0]));
            tape.linear(x, w, None, activation);
        });
        report(&format!("{what}, forward, no gradient"), product, seconds);
    }

    let mut tape = Tape::new();
    for activation in [Activation::None, Activation::Relu, Activation::Gelu] {
        let mut chain = |back: bool| {
            tape.reset();
            let mut y = tape.input(Matrix::zeros(0, 0));
            let mut at = tape.constant_shared(&x);
            for w in &weights {
                let w = tape.input(Matrix::clone(w));
                let b = tape.input(Matrix::zeros(1, d));
                y = tape.linear(at, w, Some(b), activation);
                at = y;
            }
            if back {
                tape.backward_from(y, &seed);
            }
        };
        let forward = best(|| chain(false));
        let both = best(|| chain(true));
        let layers = LAYERS as f64;
        report(&format!("{LAYERS} layers, {activation:?}, forward"), layers * product, forward);
        // The first layer needs no gradient of its input.
        report(&format!("{LAYERS} layers, {activation:?}, forward and backward"), (3.0 * layers - 1.0) * product, both);
    }

    pairs(rows, d, &report);
    println!("{:44} {:8.1} GFLOPS", "products in cache", machine.get());
}

/// Five pairs for each of `rows / 5` cells: a linear map of the product of two gathered rows on either side, the
/// cosine of both, and the sum of gathered rows that it weighs.
fn pairs(rows: usize, d: usize, report: &dyn Fn(&str, f64, f64)) {
    let (nodes, cells) = ((rows / 30).max(1), rows.div_ceil(5));
    let index =
        |step: usize, rows_of: usize| Index::new((0..rows).map(|i| (i * step % rows_of) as u32).collect(), rows_of);
    let (left, right, other, peer) =
        (index(7919, nodes), index(104_729, nodes), index(15_485_863, nodes), index(31, nodes));
    let cell = Index::new((0..rows).map(|i| (i / 5) as u32).collect(), cells);
    let states = Arc::new(random(nodes, d, 9)); // [nodes, d]
    let seed = Matrix::full(cells, d, 1e-3);
    let mut tape = Tape::new();
    let seconds = best(|| {
        tape.reset();
        let states = tape.input(Matrix::clone(&states));
        let mut side = |seed: u64, a, b| {
            let w = random(d, d, seed);
            let w = tape.input(Matrix::from_fn(d, d, |i, j| w.get(i, j) / (d as f32).sqrt()));
            let term = Term::LinearMul(Factor::Gathered(states, a), Factor::Gathered(states, b), w);
            tape.affine(&[term], Activation::Gelu.dropout(0.1, seed))
        };
        let (a, b) = (side(1, &left, &right), side(2, &other, &peer));
        let similarity = tape.cosine_similarity(a, b); // [n, 1]
        let sum = tape.weighted_sum(states, &peer, similarity, &cell); // [cells, d]
        tape.backward_from(sum, &seed);
    });
    report("similarity of pairs, forward and backward", 6.0 * 2.0 * (rows * d * d) as f64, seconds);
}
