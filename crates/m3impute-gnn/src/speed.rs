//! Measures how fast the published M3-Impute trains and fills on this machine, relative to its matrix products.
//!
//! Tables are random, with 30 % of their cells missing: the time does not depend on the values. Machine and training
//! take turns, so that both see the same neighbours on a shared machine; the best time of each counts.

use crate::graph::Cells;
use crate::model::Model;
use crate::published::{PublishedParams, architecture, training};
use crate::train::Trainer;
use m3impute_core::{Result, Run};
use rand_chacha::rand_core::Rng;
use serde::Serialize;
use std::time::{Duration, Instant};

/// The share of cells that are missing.
const MISSING: f64 = 0.3;
/// How often machine and training take turns at least.
const ROUNDS: u32 = 3;
/// For how long the machine's speed, and at least for how long steps are measured in a turn.
const TURN: Duration = Duration::from_millis(50);

/// The machine that runs the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// The processor's own name (Linux), or its architecture.
    pub processor: String,
    /// How many cores the program may use.
    pub cores: usize,
}

impl Machine {
    /// This one.
    pub fn this() -> Machine {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let processor = name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned());
        Machine { processor, cores: std::thread::available_parallelism().map_or(1, usize::from) }
    }
}

/// The speed of training and filling a table of some size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Speed {
    /// Rows of the table.
    pub rows: usize,
    /// Columns of the table.
    pub columns: usize,
    /// Cells that are missing.
    pub holes: usize,
    /// Arithmetic of a training step after the exact rewrites, in 10^9 operations.
    pub gflop: f64,
    /// In wall time.
    pub wall: Clock,
    /// In processor time, which other programs on the machine do not lengthen.
    pub processor: Clock,
}

/// Figures in wall time or in processor time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Clock {
    /// Speed of matrix products over all threads, in 10^9 operations a second.
    pub gemm_gflops: f64,
    /// Seconds of a training step: every observed cell is predicted once.
    pub step_seconds: f64,
    /// Speed of the step as a share of the speed of matrix products.
    pub share: f64,
    /// Seconds to fill all missing cells.
    pub fill_seconds: f64,
}

/// Measures for about `seconds`, longer where steps take long.
///
/// ```
/// let mut run = m3impute_core::Run::new(0, 1)?;
/// let speed = m3impute_gnn::speed::measure(20, 3, 0.0, &mut run)?;
/// assert!(speed.gflop > 0.0 && speed.wall.share > 0.0);
/// # Ok::<(), m3impute_core::Error>(())
/// ```
///
/// # Errors
/// When the run is cancelled.
pub fn measure(rows: usize, columns: usize, seconds: f64, run: &mut Run) -> Result<Speed> {
    let params = PublishedParams::default();
    let mut rng = run.rng("table", 0);
    let mut draw = || f64::from(rng.next_u32()) / f64::from(u32::MAX);
    let x: Vec<f64> = (0..rows * columns).map(|_| draw()).collect();
    let observed: Vec<bool> = (0..rows * columns).map(|_| draw() > MISSING).collect();
    let model = Model::new(architecture(&params, vec![0; columns]), &mut run.rng("weights", 0));
    let mut trainer = Trainer::new(model, training(&params, rows), Cells::observed(columns, &x, &observed), run);
    let gflop = trainer.step_flops(run) / 1e9;

    let threads = run.threads() as f64;
    let (mut gemm, mut step, mut fill) = ([0.0f64; 2], [f64::INFINITY; 2], [f64::INFINITY; 2]);
    trainer.step("m3", run)?; // the first one fetches memory
    let started = Instant::now();
    let mut round = 0;
    while round < ROUNDS || started.elapsed().as_secs_f64() < seconds {
        let mut speed = 0.0;
        let (wall, busy) = timed(|| speed = run.install(|| m3impute_nn::machine_gflops(TURN)));
        gemm = [gemm[0].max(speed), gemm[1].max(speed * wall * threads / busy)];
        let turn = Instant::now();
        while turn.elapsed() < TURN {
            let mut loss = Ok(0.0);
            let (wall, busy) = timed(|| loss = trainer.step("m3", run));
            loss?;
            step = [step[0].min(wall), step[1].min(busy / threads)];
        }
        round += 1;
        let (done, total) = (started.elapsed().as_secs_f64().min(seconds), seconds);
        run.report("measuring", (1e3 * done) as u64, (1e3 * total) as u64, format!("{rows} x {columns}"));
    }
    let holes = Cells::missing(columns, &x, &observed);
    for _ in 0..ROUNDS {
        let mut values = Ok(Vec::new());
        let (wall, busy) = timed(|| values = trainer.predict(&holes, run));
        values?;
        fill = [fill[0].min(wall), fill[1].min(busy / threads)];
    }
    let clock = |i: usize| Clock {
        gemm_gflops: gemm[i],
        step_seconds: step[i],
        share: gflop / step[i] / gemm[i],
        fill_seconds: fill[i],
    };
    Ok(Speed { rows, columns, holes: holes.len(), gflop, wall: clock(0), processor: clock(1) })
}

/// Seconds by the clock, and of all threads on their processors (Linux; elsewhere by the clock).
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
    // A clock that did not move is no clock.
    let moved = busy().zip(before).map(|(after, before)| after - before).filter(|&busy| busy > 0.0);
    (wall, moved.unwrap_or(wall))
}
