//! The error on hidden cells and the time, epoch by epoch, for the published settings of a method.
//!
//! ```text
//! learning_curve --table yacht.csv --mask yacht.mcar30.txt --epochs 40000 --every 250 --out curve.csv
//! ```
//!
//! Columns are scaled by the complete column, as in the paper; the last column of the table is left out. Training never
//! sees the hidden cells: they are read here and compared here.

use m3impute_core::Run;
use m3impute_gnn::graph::Cells;
use m3impute_gnn::head::Variant;
use m3impute_gnn::layers::Gnn;
use m3impute_gnn::model::{Architecture, Model, Start};
use m3impute_gnn::peers::Sampling;
use m3impute_gnn::train::{Trainer, Training};
use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let find = |name: &str| args.iter().position(|a| a == name).and_then(|i| args.get(i + 1)).cloned();
    let text = |name: &str| find(name).ok_or_else(|| format!("{name} is needed"));
    let number = |name: &str, default: u64| find(name).map_or(Ok(default), |v| v.parse());
    let method = find("--method").unwrap_or_else(|| "m3".to_owned());
    let (is_m3, default_epochs) = match method.as_str() {
        "m3" => (true, 40_000),
        "grape" => (false, 20_000),
        other => return Err(format!("unknown method `{other}`").into()),
    };
    let epochs = number("--epochs", default_epochs)?;
    let every = number("--every", 250)?.max(1);
    let run = Run::new(number("--seed", 0)?, number("--threads", 0)? as usize)?;

    let (x, observed, m) = read(&text("--table")?, &text("--mask")?)?;
    let rows = x.len() / m;
    let seen: Vec<f64> = x.iter().zip(&observed).map(|(&v, &o)| if o { v } else { f64::NAN }).collect();
    let cells = Cells::observed(m, &seen, &observed);
    let holes = Cells::missing(m, &seen, &observed);
    let truth: Vec<f64> = x.iter().zip(&observed).filter(|(_, o)| !**o).map(|(v, _)| *v).collect();

    let architecture = Architecture {
        start: if is_m3 { Start::Values } else { Start::Ones },
        gnn: Gnn::EgSage,
        layers: 3,
        width: number("--width", if is_m3 { 128 } else { 64 })? as usize,
        variant: if is_m3 { Variant::Full } else { Variant::Init },
        peers: number("--peers", 5)? as usize,
        levels: vec![0; m],
    };
    let training = Training {
        epochs,
        learning_rate: 1e-3,
        keep: if is_m3 { 0.5 } else { 0.7 },
        dropout: if is_m3 { 0.1 } else { 0.0 },
        epsilon: 1e-4,
        sampling: if rows > 5000 { Sampling::Shared } else { Sampling::Cosine },
    };
    let name = if is_m3 { "m3" } else { "grape" };
    let mut trainer = Trainer::new(Model::new(architecture, &mut run.rng("weights", 0)), training, cells, &run);
    let mut out: Box<dyn Write> = match find("--out") {
        Some(path) => Box::new(std::fs::File::create(path)?),
        None => Box::new(std::io::stdout()),
    };
    writeln!(out, "epoch,seconds,loss,mae10")?;
    let (mut seconds, mut losses, mut count) = (Duration::ZERO, 0.0, 0);
    while trainer.epoch() < epochs {
        let start = Instant::now();
        losses += f64::from(trainer.step(name, &run)?);
        seconds += start.elapsed();
        count += 1;
        if trainer.epoch().is_multiple_of(every) || trainer.epoch() == epochs {
            let filled = trainer.predict(&holes, &run)?;
            let error: f64 = filled.iter().zip(&truth).map(|(&a, b)| (f64::from(a) - b).abs()).sum();
            let mae10 = 10.0 * error / truth.len() as f64;
            let loss = losses / f64::from(count);
            writeln!(out, "{},{:.2},{loss:.6},{mae10:.4}", trainer.epoch(), seconds.as_secs_f64())?;
            out.flush()?;
            (losses, count) = (0.0, 0);
        }
    }
    Ok(())
}

/// The scaled values of a table, which of them are observed, and how many columns there are.
type Table = (Vec<f64>, Vec<bool>, usize);

fn read(table: &str, mask: &str) -> Result<Table, Box<dyn Error>> {
    let text = std::fs::read_to_string(table)?;
    let mut x = Vec::new();
    let mut m = 0;
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        m = fields.len() - 1;
        for field in &fields[..m] {
            x.push(field.trim().parse::<f64>().map_err(|e| format!("{table}: `{field}`: {e}"))?);
        }
    }
    for j in 0..m {
        let column = || x.iter().skip(j).step_by(m).copied();
        let low = column().fold(f64::INFINITY, f64::min);
        let range = column().fold(f64::NEG_INFINITY, f64::max) - low;
        x.iter_mut().skip(j).step_by(m).for_each(|v| *v = if range > 0.0 { (*v - low) / range } else { 0.0 });
    }
    let observed: Vec<bool> =
        std::fs::read_to_string(mask)?.lines().flat_map(|l| l.trim().chars().map(|c| c == '1')).collect();
    if observed.len() != x.len() {
        return Err(format!("{mask}: expected {} cells, got {}", x.len(), observed.len()).into());
    }
    Ok((x, observed, m))
}
