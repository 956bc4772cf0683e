//! The time of a training step of the published M3-Impute and of filling all holes, beside the machine's own speed.
//!
//! ```text
//! step_speed ROWS COLUMNS [THREADS] [SECONDS]
//! ```
//!
//! The table is random, with 30 % of its cells missing: the time does not depend on the values.

use m3impute_core::Run;
use m3impute_gnn::graph::Cells;
use m3impute_gnn::head::Variant;
use m3impute_gnn::layers::Gnn;
use m3impute_gnn::model::{Architecture, Model, Start};
use m3impute_gnn::peers::Sampling;
use m3impute_gnn::train::{Trainer, Training};
use rand_chacha::rand_core::Rng;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<f64> = std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let (n, m) = (args[0] as usize, args[1] as usize);
    let run = Run::new(0, args.get(2).map_or(2, |&t| t as usize))?;
    let seconds = args.get(3).copied().unwrap_or(8.0);
    let mut rng = run.rng("table", 0);
    let mut draw = || f64::from(rng.next_u32()) / f64::from(u32::MAX);
    let x: Vec<f64> = (0..n * m).map(|_| draw()).collect();
    let observed: Vec<bool> = (0..n * m).map(|_| draw() > 0.3).collect();
    let architecture = Architecture {
        start: Start::Values,
        gnn: Gnn::EgSage,
        layers: 3,
        width: 128,
        variant: Variant::Full,
        peers: 5,
        levels: vec![0; m],
    };
    let training = Training {
        epochs: u64::MAX,
        learning_rate: 1e-3,
        keep: 0.5,
        dropout: 0.1,
        epsilon: 1e-4,
        sampling: if n > 5000 { Sampling::Shared } else { Sampling::Cosine },
    };
    let model = Model::new(architecture, &mut run.rng("weights", 0));
    let mut trainer = Trainer::new(model, training, Cells::observed(m, &x, &observed), &run);
    let flops = trainer.step_flops(&run);
    // Machine and step in turn, so that both see the same neighbours; the best of each.
    let (mut gflops, mut step) = ([0.0f64; 2], [f64::INFINITY; 2]);
    let started = Instant::now();
    trainer.step("m3", &run)?;
    while started.elapsed().as_secs_f64() < seconds {
        let mut speed = 0.0;
        let (wall, busy) = timed(|| speed = run.install(|| m3impute_nn::machine_gflops(Duration::from_millis(50))));
        gflops = [gflops[0].max(speed), gflops[1].max(speed * wall * run.threads() as f64 / busy)];
        for _ in 0..3 {
            let mut result = Ok(0.0);
            let (wall, busy) = timed(|| result = trainer.step("m3", &run));
            result?;
            step = [step[0].min(wall), step[1].min(busy / run.threads() as f64)];
        }
    }
    let holes = Cells::missing(m, &x, &observed);
    let (mut fill, mut fill_busy) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..3 {
        let mut result = Ok(Vec::new());
        let (wall, busy) = timed(|| result = trainer.predict(&holes, &run));
        result?;
        (fill, fill_busy) = (fill.min(wall), fill_busy.min(busy));
    }
    println!("arithmetic {:.2} GFLOP a step", flops / 1e9);
    for (kind, gflops, step) in [("wall time", gflops[0], step[0]), ("processor time", gflops[1], step[1])] {
        let speed = flops / step / 1e9;
        let share = 100.0 * speed / gflops;
        println!(
            "{kind}: machine {gflops:.0} GFLOPS, step {step:.4} s, {speed:.0} GFLOPS, {share:.0} % of the machine"
        );
    }
    println!("filling {} holes {fill:.3} s, {fill_busy:.3} s of processors", holes.len());
    Ok(())
}

/// Seconds by the clock, and of all threads on their processors (Linux; elsewhere by the clock).
///
/// On a machine that is shared with others, processor time says what the work takes.
fn timed(work: impl FnOnce()) -> (f64, f64) {
    let busy = || {
        let tasks = std::fs::read_dir("/proc/self/task").ok()?;
        let of = |task: std::fs::DirEntry| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        };
        Some(tasks.flatten().filter_map(of).sum::<u64>() as f64 / 1e9)
    };
    let (start, before) = (Instant::now(), busy());
    work();
    let wall = start.elapsed().as_secs_f64();
    (wall, busy().zip(before).map_or(wall, |(after, before)| after - before))
}
