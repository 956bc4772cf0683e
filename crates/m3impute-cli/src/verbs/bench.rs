//! `bench`: how fast this machine runs the program.

use crate::args::{BenchEngineArgs, BenchM3Args};
use crate::failure::{Failure, Outcome};
use crate::grid::Grid;
use crate::memory::{MemoryProbe, peak_resident_bytes};
use crate::table_io::say_fewer_threads;
use crate::terminal::{Bar, Verbosity, bytes, print, thousands};
use m3impute::{Cancel, Run, Settings};
use m3impute_eval::{Probe, Timing, time_fit};
use m3impute_gnn::speed::{Machine, Speed, measure};
use serde_json::json;
use std::fmt::Write;

/// Epochs of the published training.
const EPOCHS: u64 = 40_000;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");
pub const COMMIT: Option<&str> = option_env!("M3IMPUTE_COMMIT");

/// A run of these threads, shown by a bar and stopped by Ctrl-C.
fn watched(threads: usize, bar: &Bar, cancel: &Cancel, verbosity: &Verbosity) -> Result<Run, Failure> {
    say_fewer_threads(threads, verbosity);
    let bar = bar.clone();
    let show = move |progress: &m3impute::Progress| bar.show(progress);
    Ok(Run::new(0, threads)?.cancelled_by(cancel.clone()).observed_by(show))
}

/// What was measured, and where.
fn heading(machine: &Machine, run: &Run) -> String {
    let commit = COMMIT.unwrap_or("unknown");
    let Machine { processor, cores, .. } = machine;
    format!("m3impute {VERSION}, commit {commit}\n{processor}, {cores} cores, {} threads\n", run.threads())
}

pub fn engine(args: &BenchEngineArgs, verbosity: &Verbosity, cancel: &Cancel) -> Outcome {
    let machine = Machine::this();
    let bar = verbosity.bar();
    let mut run = watched(args.measure.threads, &bar, cancel, verbosity)?;
    let mut measured: Vec<(&str, Speed, u64)> = Vec::new();
    for size in &args.sizes {
        MemoryProbe.start();
        let speed = measure(size.rows, size.columns, args.seconds.as_secs_f64(), &mut run)?;
        measured.push((&size.name, speed, MemoryProbe.peak_bytes().unwrap_or_default()));
    }
    bar.clear();
    if args.measure.json {
        let sizes: Vec<_> = measured
            .iter()
            .map(|(name, speed, peak)| json!({"name": name, "speed": speed, "peak_bytes": peak}))
            .collect();
        let all = json!({
            "version": VERSION, "commit": COMMIT, "machine": machine, "threads": run.threads(), "sizes": sizes,
            "peak_resident_bytes": peak_resident_bytes(),
        });
        return print(format!("{all:#}\n"));
    }
    let mut out = heading(&machine, &run);
    let best = measured.iter().map(|(_, speed, _)| speed.wall.gemm_gflops).fold(0.0, f64::max);
    let _ = writeln!(out, "matrix products (crate matrixmultiply): {best:.0} GFLOPS\n");
    out.push_str(&table(&measured, verbosity));
    out.push_str(
        "\nOf GEMM: speed of the step as a share of that of matrix products measured in turns with it, by the\n",
    );
    out.push_str("clock, and by processor time, which is the fairer one while others use the machine.\n");
    if let Some(peak) = peak_resident_bytes() {
        let _ = writeln!(out, "Memory of the whole process at its peak: {}.", bytes(peak));
    }
    print(out)
}

pub fn m3(args: &BenchM3Args, verbosity: &Verbosity, cancel: &Cancel) -> Outcome {
    let machine = Machine::this();
    let spec = m3impute::method("m3")?;
    let bar = verbosity.bar();
    let mut run = watched(args.measure.threads, &bar, cancel, verbosity)?;
    let mut measured: Vec<(&str, Timing, u64)> = Vec::new();
    for size in &args.sizes {
        for preset in &args.presets {
            let settings = Settings { preset: Some(preset.clone()), ..Settings::default() };
            MemoryProbe.start();
            let timing = time_fit(spec, &settings, (size.rows, size.columns), args.new_rows, &mut run)?;
            measured.push((preset, timing, MemoryProbe.peak_bytes().unwrap_or_default()));
        }
    }
    bar.clear();
    if args.measure.json {
        let fits: Vec<_> = measured
            .iter()
            .map(|(preset, timing, peak)| json!({"preset": preset, "timing": timing, "peak_bytes": peak}))
            .collect();
        let all = json!({
            "version": VERSION, "commit": COMMIT, "machine": machine, "threads": run.threads(), "fits": fits,
        });
        return print(format!("{all:#}\n"));
    }
    let mut out = heading(&machine, &run) + "\n";
    let mut rows = Grid::new(["size", "preset", "fit and fill", "new rows", "memory"]);
    for (preset, timing, peak) in &measured {
        rows.row([
            format!("{} x {}", thousands(timing.rows), timing.columns).into(),
            (*preset).into(),
            format!("{:.3} s", timing.fit_seconds).into(),
            format!("{} in {:.2} s", thousands(timing.new_rows), timing.new_seconds).into(),
            bytes(*peak).into(),
        ]);
    }
    out.push_str(&rows.text(verbosity));
    print(out)
}

fn table(measured: &[(&str, Speed, u64)], verbosity: &Verbosity) -> String {
    let epochs = format!("{} steps", thousands(EPOCHS as usize));
    let heading = ["table", "size", "GFLOP", "step", "of GEMM", "processor", &epochs, "fill all missing", "memory"];
    let mut rows = Grid::new(heading);
    for (name, speed, peak) in measured {
        rows.row([
            (*name).into(),
            format!("{} x {}", thousands(speed.rows), speed.columns).into(),
            format!("{:.2}", speed.gflop).into(),
            format!("{:.4} s", speed.wall.step_seconds).into(),
            format!("{:.0} %", 100.0 * speed.wall.share).into(),
            format!("{:.0} %", 100.0 * speed.processor.share).into(),
            hours(EPOCHS as f64 * speed.wall.step_seconds).into(),
            format!("{} in {:.3} s", thousands(speed.holes), speed.wall.fill_seconds).into(),
            bytes(*peak).into(),
        ]);
    }
    rows.text(verbosity)
}

/// `12 min`, `3.4 h`.
fn hours(seconds: f64) -> String {
    if seconds < 5400.0 { format!("{:.0} min", (seconds / 60.0).ceil()) } else { format!("{:.1} h", seconds / 3600.0) }
}

#[cfg(test)]
mod tests {
    use super::hours;

    #[test]
    fn long_times_read_well() {
        assert_eq!([hours(30.0), hours(600.0), hours(9000.0)], ["1 min", "10 min", "2.5 h"]);
    }
}
