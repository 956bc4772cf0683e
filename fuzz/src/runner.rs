//! Runs a target on mutated seeds, in batches. A batch is a process of its own with a memory limit, so that an abort,
//! or a run without end, is counted and its input found: the same batch is run again, and writes down each input first.

use crate::mutate::{Rng, mutate};
use crate::{POOL, Target, seeds};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::error::Error;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A run of this length is a defect.
const SLOW: Duration = Duration::from_secs(1);
/// A batch that takes longer than this hangs.
const HANGS: Duration = Duration::from_secs(900);

/// What a run is asked for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The target.
    pub target: Target,
    /// Only seeds whose names begin like this.
    pub prefix: String,
    /// How many executions.
    pub executions: u64,
    /// No batch begins later than this.
    pub seconds: u64,
    /// How many executions a process makes.
    pub batch: u64,
    /// The address space of that process, in megabytes.
    pub memory: u64,
    /// The number of the first batch: other numbers, other inputs.
    pub first: u64,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Inputs that were run.
    pub executions: u64,
    /// Inputs that were read to their end: the others were refused.
    pub accepted: u64,
    /// Inputs over which the target panicked.
    pub panics: u64,
    /// Inputs over which the process ended: an abort, memory beyond the limit, or no end.
    pub aborts: u64,
    /// Runs of more than a second.
    pub slow: u64,
    /// The longest run, in microseconds.
    pub slowest: u64,
}

impl Counts {
    fn add(&mut self, more: &Counts) {
        self.executions += more.executions;
        self.accepted += more.accepted;
        self.panics += more.panics;
        self.aborts += more.aborts;
        self.slow += more.slow;
        self.slowest = self.slowest.max(more.slowest);
    }

    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.panics + self.aborts + self.slow == 0
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} executions, {} accepted, {} panics, {} aborts, {} over a second, slowest {:.3} ms",
            self.executions,
            self.accepted,
            self.panics,
            self.aborts,
            self.slow,
            self.slowest as f64 / 1000.0
        )
    }
}

/// Where inputs that show a defect are put.
pub fn found() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("found")
}

/// Runs batches until the executions or the time are used up; `tell` hears of each.
///
/// # Errors
/// When a batch cannot be started.
pub fn run(plan: &Plan, mut tell: impl FnMut(&Counts)) -> Result<Counts, Box<dyn Error>> {
    let (mut all, started) = (Counts::default(), Instant::now());
    let mut number = plan.first;
    while all.executions < plan.executions && started.elapsed().as_secs() < plan.seconds {
        let count = plan.batch.min(plan.executions - all.executions);
        match batch_process(plan, number, count, None)? {
            Some(counts) => all.add(&counts),
            None => {
                let trace = found().join(format!("{}-batch-{number}", plan.target.0));
                fs::create_dir_all(found())?;
                let again = batch_process(plan, number, count, Some(&trace))?;
                if again.is_some() {
                    fs::remove_file(&trace)?;
                }
                all.add(&Counts { executions: count, aborts: 1, ..again.unwrap_or_default() });
            }
        }
        number += 1;
        tell(&all);
    }
    Ok(all)
}

/// Runs a batch as a process; nothing where it did not live to its end.
fn batch_process(plan: &Plan, number: u64, count: u64, trace: Option<&Path>) -> Result<Option<Counts>, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["batch", plan.target.0, &plan.prefix]);
    command.args([number, count, plan.memory].map(|n| n.to_string()));
    command.args(trace);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let started = Instant::now();
    while child.try_wait()?.is_none() {
        if started.elapsed() > HANGS {
            child.kill()?;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    Ok(match numbers[..] {
        [executions, accepted, panics, slow, slowest] if output.status.success() => {
            Some(Counts { executions, accepted, panics, aborts: 0, slow, slowest })
        }
        _ => None,
    })
}

/// Runs one batch in this process.
///
/// # Errors
/// When there are no seeds, or the limit cannot be set.
pub fn batch(plan: &Plan, trace: Option<&Path>) -> Result<Counts, Box<dyn Error>> {
    let bytes = Some(plan.memory << 20);
    setrlimit(Resource::As, Rlimit { current: bytes, maximum: bytes })?;
    let seeds = seeds::of(plan.target.0, &plan.prefix)?;
    static PANIC: Mutex<String> = Mutex::new(String::new());
    std::panic::set_hook(Box::new(|info| {
        if let Ok(mut last) = PANIC.lock() {
            *last = info.to_string().replace('\n', " ");
        }
    }));
    let mut rng = Rng(0x6d33 ^ plan.first.wrapping_mul(0xa076_1d64_78bd_642f));
    let counts = POOL.install(|| -> std::io::Result<Counts> {
        let (mut counts, mut input) = (Counts::default(), Vec::new());
        for _ in 0..plan.executions {
            mutate(&mut rng, &seeds, &mut input);
            if let Some(trace) = trace {
                fs::write(trace, &input)?;
            }
            let started = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| plan.target.1(&input)));
            let panicked = outcome.is_err();
            let mut took = started.elapsed();
            if took > SLOW {
                // Other processes may have been in the way: only what is slow twice is slow.
                let again = Instant::now();
                let _ = catch_unwind(AssertUnwindSafe(|| plan.target.1(&input)));
                took = took.min(again.elapsed());
            }
            counts.executions += 1;
            counts.accepted += u64::from(outcome.unwrap_or(false));
            counts.panics += u64::from(panicked);
            counts.slow += u64::from(took > SLOW);
            counts.slowest = counts.slowest.max(took.as_micros() as u64);
            if panicked || took > SLOW {
                let message =
                    if panicked { PANIC.lock().map(|m| m.clone()).unwrap_or_default() } else { "slow".to_owned() };
                keep(plan.target.0, &input, &message)?;
            }
        }
        Ok(counts)
    })?;
    Ok(counts)
}

/// Keeps an input that shows a defect, one for each message.
fn keep(target: &str, input: &[u8], message: &str) -> std::io::Result<()> {
    let place: String = message
        .split(": ")
        .next()
        .unwrap_or_default()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let place = &place[..place.len().min(150)];
    fs::create_dir_all(found())?;
    fs::write(found().join(format!("{target}-{place}.txt")), message)?;
    fs::write(found().join(format!("{target}-{place}")), input)
}
