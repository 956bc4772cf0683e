//! The error on hidden cells and the time, epoch by epoch, for the published settings of a method.
//!
//! ```text
//! learning_curve --table yacht.csv --mask yacht.mcar30.txt --epochs 40000 --every 250 --out curve.csv
//! ```
//!
//! A stopped training continues with the same command and `--resume`: at multiples of 500 epochs that have a row, its
//! state is saved beside the curve, in `curve.csv.state`. Rows after that are dropped and computed again, and all numbers
//! but the seconds are those of an uninterrupted training.
//!
//! The file starts with `#` lines: method, table, seed, machine, commit and command; `--commit` gives the commit that the
//! program was built from where that is not the one checked out. `benches/curves.py` draws such files.
//!
//! Columns are scaled by the complete column, as in the paper; the last column of the table is left out. Training never
//! sees the hidden cells: they are read here and compared here.

use m3impute_core::Run;
use m3impute_gnn::graph::Cells;
use m3impute_gnn::model::Model;
use m3impute_gnn::speed::Machine;
use m3impute_gnn::train::{Trainer, Training};
use m3impute_gnn::{grape, published};
use serde_json::{Value, json};
use std::error::Error;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::time::Instant;

/// The state is saved at multiples of this number of epochs.
const KEEP: u64 = 500;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let find = |name: &str| args.iter().position(|a| a == name).and_then(|i| args.get(i + 1)).cloned();
    let text = |name: &str| find(name).ok_or_else(|| format!("{name} is needed"));
    let number = |name: &str, default: u64| find(name).map_or(Ok(default), |v| v.parse());
    let method = find("--method").unwrap_or_else(|| "m3".to_owned());
    let is_m3 = match method.as_str() {
        "m3" => true,
        "grape" => false,
        other => return Err(format!("unknown method `{other}`").into()),
    };
    let default =
        if is_m3 { published::PublishedParams::default().epochs } else { grape::GrapeParams::default().epochs };
    let epochs = number("--epochs", default)?;
    let every = number("--every", 250)?.max(1);
    let run = Run::new(number("--seed", 0)?, number("--threads", 0)? as usize)?;

    let (x, observed, m) = read(&text("--table")?, &text("--mask")?)?;
    let rows = x.len() / m;
    let seen: Vec<f64> = x.iter().zip(&observed).map(|(&v, &o)| if o { v } else { f64::NAN }).collect();
    let cells = Cells::observed(m, &seen, &observed);
    let holes = Cells::missing(m, &seen, &observed);
    let truth: Vec<f64> = x.iter().zip(&observed).filter(|(_, o)| !**o).map(|(v, _)| *v).collect();

    let (name, architecture, training) = if is_m3 {
        let p = published::PublishedParams { epochs, ..published::PublishedParams::default() };
        let p = published::PublishedParams { width: number("--width", p.width as u64)? as usize, ..p };
        let p = published::PublishedParams { peers: number("--peers", p.peers as u64)? as usize, ..p };
        ("m3", published::architecture(&p, vec![0; m]), published::training(&p, rows))
    } else {
        let p = grape::GrapeParams { epochs, ..grape::GrapeParams::default() };
        let p = grape::GrapeParams { width: number("--width", p.width as u64)? as usize, ..p };
        ("grape", grape::architecture(&p, vec![0; m]), grape::training(&p))
    };
    let base = |path: String| path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    let (table, mask) = (base(text("--table")?), base(text("--mask")?));
    // How long it trains is left out: a curve may be made longer.
    let what = Training { epochs: 0, ..training };
    let settings = format!("{table} {mask} seed {} every {every} {architecture:?} {what:?}", run.seed());
    let commit = find("--commit").or_else(commit).unwrap_or_else(|| "unknown".to_owned());
    let mut trainer = Trainer::new(Model::new(architecture, &mut run.rng("weights", 0)), training, cells, &run);
    let path = find("--out");
    let resume = args.iter().any(|a| a == "--resume");
    let mut seconds = 0.0;
    let mut out: Box<dyn Write> = match &path {
        Some(path) if resume => {
            seconds = restore(&state_of(path), &mut trainer, &settings, &run)?;
            Box::new(reopen(path, trainer.epoch(), &commit)?)
        }
        Some(path) => {
            let file = File::create(path)?;
            // The state of a curve that is no more.
            std::fs::remove_file(state_of(path)).or_else(absent)?;
            Box::new(file)
        }
        None if resume => return Err("--resume needs --out".into()),
        None => Box::new(std::io::stdout()),
    };
    if !resume {
        let arguments: Vec<String> = args.iter().map(|a| base(a.clone())).collect();
        let machine = Machine::this();
        writeln!(out, "# method: {name}")?;
        writeln!(out, "# table: {table}")?;
        writeln!(out, "# mask: {mask}")?;
        writeln!(out, "# seed: {}", run.seed())?;
        writeln!(out, "# machine: {}, {} cores, {} threads", machine.processor, machine.cores, run.threads())?;
        writeln!(out, "# commit: {commit}")?;
        writeln!(out, "# command: learning_curve {}", arguments.join(" "))?;
        writeln!(out, "epoch,seconds,loss,mae10")?;
    }
    let (mut losses, mut count) = (0.0, 0);
    while trainer.epoch() < epochs {
        let start = Instant::now();
        losses += f64::from(trainer.step(name, &run)?);
        seconds += start.elapsed().as_secs_f64();
        count += 1;
        if trainer.epoch().is_multiple_of(every) || trainer.epoch() == epochs {
            let filled = trainer.predict(&holes, &run)?;
            let error: f64 = filled.iter().zip(&truth).map(|(&a, b)| (f64::from(a) - b).abs()).sum();
            let mae10 = 10.0 * error / truth.len() as f64;
            let loss = losses / f64::from(count);
            writeln!(out, "{},{seconds:.2},{loss:.6},{mae10:.4}", trainer.epoch())?;
            out.flush()?;
            (losses, count) = (0.0, 0);
            // The row of the last epoch may be one that a longer training would not have.
            if let Some(path) = &path
                && trainer.epoch().is_multiple_of(every)
                && trainer.epoch().is_multiple_of(KEEP)
            {
                keep(path, &trainer, json!({ "seconds": seconds, "settings": settings }))?;
            }
        }
    }
    Ok(())
}

/// The file of the saved state, beside the curve.
fn state_of(curve: &str) -> String {
    format!("{curve}.state")
}

fn absent(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Saves the state. Whenever it is interrupted, there is a complete state, and a curve that reaches it.
fn keep(curve: &str, trainer: &Trainer, note: Value) -> Result<(), Box<dyn Error>> {
    File::options().append(true).open(curve)?.sync_all()?;
    let (state, part) = (state_of(curve), format!("{curve}.state.part"));
    let mut file = File::create(&part)?;
    trainer.save(&mut file, note)?;
    file.sync_all()?;
    Ok(std::fs::rename(part, state)?)
}

/// Puts the trainer where the kept state is; returns the seconds until then.
fn restore(state: &str, trainer: &mut Trainer, settings: &str, run: &Run) -> Result<f64, Box<dyn Error>> {
    let file = std::fs::read(state).map_err(|e| format!("{state}: {e} (without --resume it starts anew)"))?;
    let note = trainer.restore(&file, run).map_err(|e| format!("{state}: {e}"))?;
    if note["settings"] != settings {
        let got = note["settings"].as_str().unwrap_or_default();
        return Err(format!("{state}: expected the settings `{settings}`, got `{got}`").into());
    }
    note["seconds"].as_f64().ok_or_else(|| format!("{state}: it has no seconds").into())
}

/// Opens a curve to continue after the row of this epoch; later rows are dropped.
fn reopen(curve: &str, epoch: u64, commit: &str) -> Result<File, Box<dyn Error>> {
    let text = std::fs::read_to_string(curve).map_err(|e| format!("{curve}: {e}"))?;
    let row = format!("\n{epoch},");
    let end = text.find(&row).and_then(|at| Some(at + 1 + text[at + 1..].find('\n')? + 1));
    let end = end.ok_or_else(|| format!("{curve}: expected a row of epoch {epoch}, where the kept state is"))?;
    let mut file = File::options().write(true).open(curve)?;
    file.set_len(end as u64)?;
    file.seek(SeekFrom::End(0))?;
    if !text.lines().any(|line| line == format!("# commit: {commit}")) {
        writeln!(file, "# resumed: after epoch {epoch}, commit {commit}")?;
    }
    Ok(file)
}

/// The commit that is checked out, where the example is run in a clone.
fn commit() -> Option<String> {
    let output = std::process::Command::new("git").args(["describe", "--always", "--dirty"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|commit| output.status.success() && !commit.is_empty())
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
