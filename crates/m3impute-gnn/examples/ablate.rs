//! One run of the refined `m3` with a departure from its defaults: what it costs to leave something out.
//!
//! ```text
//! ablate --table yacht.csv --mask yacht.mcar30.txt [--preset balanced] [--seed 0] [--threads 0] [--further 1] [KEY=VALUE ...]
//! ```
//!
//! Keys: `nets`, `stages`, `turns`, `layers`, `width`, `steps`, `lines` (0: no lines in the networks), `entropy` (weight of
//! the cross-entropy), `low` and `high` (share of cells that a row shows), `ema` (0: the last weights), `knots` (2: nearly
//! the bare value), `dropout`, `decay`, `learning_rate`, `trees`, `rows` and `trials` (of the learners on top),
//! `kinds` (0: none of rows), `design` (0: rows are not compared), `held`. Prints one CSV row: table, mask, settings, seed, MAE x10 on hidden cells (with `--further`, on some of the observed ones, which
//! are then hidden too: what a setting is to be chosen by), MAE x10 on held-out cells of the mixture and of the networks
//! alone, seconds.
//!
//! Columns are scaled by the complete column, as in the paper; the last column of the table is left out. Training never
//! sees the hidden cells: they are read here and compared here.

use m3impute_core::Run;
use m3impute_core::encode::Meaning;
use m3impute_gnn::M3Params;
use m3impute_gnn::refined::columns::Column;
use m3impute_gnn::refined::grid::Grid;
use m3impute_gnn::refined::learn::learn;
use m3impute_gnn::refined::model::{ANSWERS, Model, POINT};
use rand_chacha::rand_core::Rng;
use std::error::Error;
use std::time::Instant;

/// The share of observed cells that are hidden further.
const FURTHER: f64 = 0.15;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let find = |name: &str| args.iter().position(|a| a == name).and_then(|i| args.get(i + 1)).cloned();
    let text = |name: &str| find(name).ok_or_else(|| format!("{name} is needed"));
    let set = |name: &str| -> Result<Option<f64>, std::num::ParseFloatError> {
        args.iter().find_map(|a| a.strip_prefix(&format!("{name}="))).map(str::parse).transpose()
    };
    let (table, mask) = (text("--table")?, text("--mask")?);
    let truth = complete(&table)?;
    let mut observed: Vec<bool> =
        std::fs::read_to_string(&mask)?.lines().flat_map(|l| l.trim().chars().map(|c| c == '1')).collect();
    let (n, m) = (truth.n, truth.m);
    if observed.len() != n * m {
        return Err(format!("{mask}: expected {} cells, got {}", n * m, observed.len()).into());
    }
    // What is scored: the hidden cells, or some of those that are observed, hidden too, to choose a setting by.
    let mut asked: Vec<bool> = observed.iter().map(|o| !o).collect();
    if let Some(split) = find("--further") {
        let mut rng = Run::new(split.parse()?, 1)?.rng("further cells", 0);
        for (asked, observed) in asked.iter_mut().zip(&mut observed) {
            *asked = *observed && f64::from(rng.next_u32()) < FURTHER * f64::from(u32::MAX);
            *observed &= !*asked;
        }
    }
    let cells = observed.iter().filter(|o| **o).count();
    let seed = find("--seed").unwrap_or_else(|| "0".to_owned());
    let mut run = Run::new(seed.parse()?, find("--threads").unwrap_or_else(|| "0".to_owned()).parse()?)?;

    let mut params = M3Params::of_preset(&find("--preset").unwrap_or_else(|| "balanced".to_owned()));
    params.width = set("width")?.map_or(params.width, |v| v as usize);
    params.layers = set("layers")?.map_or(params.layers, |v| v as usize);
    params.steps = set("steps")?.map_or(params.steps, |v| v as usize);
    params.nets = set("nets")?.map_or(params.nets, |v| v as usize);
    params.stages = set("stages")?.map_or(params.stages, |v| v as usize);
    params.trees = set("trees")?.map_or(params.trees, |v| v as usize);
    params.turns = set("turns")?.map_or(params.turns, |v| v as usize);
    params.dropout = set("dropout")?.unwrap_or(params.dropout);
    params.decay = set("decay")?.unwrap_or(params.decay);
    params.learning_rate = set("learning_rate")?.unwrap_or(params.learning_rate);
    let mut effort = params.effort(m, cells);
    effort.rows = set("rows")?.map_or(effort.rows, |v| v as usize);
    effort.trials = set("trials")?.map_or(effort.trials, |v| v as usize);
    effort.held = set("held")?.unwrap_or(effort.held);
    effort.kinds = set("kinds")?.is_none_or(|v| v > 0.0);
    effort.design = set("design")?.is_none_or(|v| v > 0.0);
    let training = &mut effort.training;
    training.shape.lines = set("lines")?.is_none_or(|v| v > 0.0);
    training.entropy = set("entropy")?.map_or(training.entropy, |v| v as f32);
    training.keep.0 = set("low")?.map_or(training.keep.0, |v| v as f32);
    training.keep.1 = set("high")?.map_or(training.keep.1, |v| v as f32);
    training.ema = set("ema")?.map_or(training.ema, |v| v as f32);

    let seen = truth.x.iter().zip(&observed).map(|(v, o)| if *o { *v } else { 0.0 }).collect();
    let grid = Grid { n, m, x: seen, observed };
    let knots = set("knots")?;
    let columns = (0..m)
        .map(|f| {
            let values: Vec<f32> =
                (0..n).map(|i| i * m + f).filter(|&at| grid.observed[at]).map(|at| grid.x[at]).collect();
            let usual = Column::fineness(values.len());
            Column::of(&values, Meaning::Number, (knots.map_or(usual.0, |v| v as usize), usual.1))
        })
        .collect();
    let started = Instant::now();
    let (model, _) = learn(&grid, columns, effort, &mut run)?;
    let hidden = score(&model, (&grid, &asked), &truth, &run)?;
    let held = |error: &dyn Fn(usize) -> f64| {
        let total: usize = model.opinions.iter().map(|o| o.cells).sum();
        10.0 * (0..m).map(|f| error(f) * model.opinions[f].cells as f64).sum::<f64>() / total.max(1) as f64
    };
    let alone = |f: usize, c: usize| model.opinions[f].alone[c].unwrap_or(f64::INFINITY);
    let settings: Vec<&str> = args.iter().filter(|a| a.contains('=')).map(String::as_str).collect();
    println!(
        "{},{},{seed},{hidden:.4},{:.4},{:.4},{:.1}",
        std::path::Path::new(&mask).file_stem().map_or(mask.clone(), |s| s.to_string_lossy().replace('.', ",")),
        if settings.is_empty() { "as it is".to_owned() } else { settings.join(" ") },
        held(&|f| model.opinions[f].mixed),
        held(&|f| alone(f, ANSWERS).min(alone(f, POINT))),
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

/// The mean absolute error on the cells that are asked for, times ten.
fn score(model: &Model, (grid, asked): (&Grid, &[bool]), truth: &Grid, run: &Run) -> Result<f64, Box<dyn Error>> {
    let (mut error, mut count) = (0.0, 0);
    for (f, said) in model.say(grid, run)?.iter().enumerate() {
        let column = &model.columns[f];
        let cells = (0..grid.n).map(|i| i * grid.m + f).filter(|&at| !grid.observed[at]);
        for (at, opinion) in cells.zip(said.chunks_exact(column.opinion_width())).filter(|(at, _)| asked[*at]) {
            error += f64::from((column.point(opinion) - truth.x[at]).abs());
            count += 1;
        }
    }
    Ok(10.0 * error / f64::from(count))
}

/// A complete table, scaled by its columns.
fn complete(table: &str) -> Result<Grid, Box<dyn Error>> {
    let text = std::fs::read_to_string(table)?;
    let mut x: Vec<f64> = Vec::new();
    let mut m = 0;
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        m = fields.len() - 1;
        for field in &fields[..m] {
            x.push(field.trim().parse().map_err(|e| format!("{table}: `{field}`: {e}"))?);
        }
    }
    for j in 0..m {
        let column = || x.iter().skip(j).step_by(m).copied();
        let low = column().fold(f64::INFINITY, f64::min);
        let range = column().fold(f64::NEG_INFINITY, f64::max) - low;
        x.iter_mut().skip(j).step_by(m).for_each(|v| *v = if range > 0.0 { (*v - low) / range } else { 0.0 });
    }
    let x: Vec<f32> = x.into_iter().map(|v| v as f32).collect();
    Ok(Grid { n: x.len() / m, m, observed: vec![true; x.len()], x })
}
