//! Experiments.
use m3impute_core::Run;
use m3impute_core::encode::{Feature, Meaning};
use m3impute_gnn::refined::columns::columns_of;
use m3impute_gnn::refined::grid::Grid;
use m3impute_gnn::refined::learn::{Effort, learn};
use m3impute_gnn::refined::train::Training;
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (table, mask) = (&args[0], &args[1]);
    let get = |name: &str, default: f64| -> f64 {
        args.iter().find_map(|a| a.strip_prefix(&format!("{name}="))).map_or(default, |v| v.parse().unwrap())
    };
    let shared = "/work/shared";
    let (x, observed, m) =
        read(&format!("{shared}/datasets/{table}.csv"), &format!("{shared}/masks/{table}.{mask}.txt"))?;
    let n = x.len() / m;
    let mut t = Training::default();
    t.shape.width = get("d", 64.0) as usize;
    t.shape.layers = get("layers", 3.0) as usize;
    t.shape.lines = get("lines", 1.0) > 0.0;
    t.steps = get("steps", 600.0) as usize;
    t.rows = get("rows", 512.0) as usize;
    t.learning_rate = get("lr", 4e-3) as f32;
    t.decay = get("decay", 1e-2) as f32;
    t.dropout = get("dropout", 0.1) as f32;
    t.keep = (get("low", 0.3) as f32, get("high", 0.9) as f32);
    t.entropy = get("entropy", 0.3) as f32;
    t.ema = get("ema", 0.995) as f32;
    let effort = Effort {
        nets: get("nets", 4.0) as usize,
        held: get("held", 0.1),
        training: t,
        stages: get("stages", 2.0) as usize,
        trials: get("trials", 4.0) as usize,
        trees: get("trees", 60.0) as usize,
        rows: get("srows", 4000.0) as usize,
    };
    let start = Instant::now();
    let mut last = "";
    let verbose = get("verbose", 0.0) > 0.0;
    let mut run = Run::new(get("seed", 0.0) as u64, get("threads", 2.0) as usize)?.observed_by(
        move |p: &m3impute_core::Progress| {
            if verbose && p.stage != last {
                eprintln!("{:.1}s {}", start.elapsed().as_secs_f64(), p.stage);
                last = p.stage;
            }
            if verbose && p.stage == "training" && p.done % 100 < 30 {
                eprintln!("  {} {}", p.done, p.note);
            }
        },
    );
    let features: Vec<Feature> =
        (0..m).map(|column| Feature { column, meaning: Meaning::Number, centre: 0.0, scale: 1.0 }).collect();
    let seen: Vec<f32> = x.iter().zip(&observed).map(|(v, o)| if *o { *v } else { 0.0 }).collect();
    let grid = Grid { n, m, x: seen, observed: observed.clone() };
    let columns =
        columns_of(&features, |f| (0..n).map(|i| i * m + f).filter(|&a| grid.observed[a]).map(|a| grid.x[a]).collect());
    let start = Instant::now();
    let (model, _) = learn(&grid, columns, effort, &mut run)?;
    let learnt = start.elapsed().as_secs_f64();
    let said = model.say(&grid, &run)?;
    let (mut error, mut count) = (0.0, 0.0);
    let mut per = vec![(0.0, 0.0); m];
    for f in 0..m {
        let c = &model.columns[f];
        let cells = (0..n).map(|i| i * m + f).filter(|&at| !observed[at]);
        for (at, o) in cells.zip(said[f].chunks_exact(c.opinion_width())) {
            let e = f64::from((c.point(o) - x[at]).abs());
            error += e;
            count += 1.0;
            per[f].0 += e;
            per[f].1 += 1.0;
        }
    }
    let total: usize = model.opinions.iter().map(|e| e.cells).sum();
    let opinions = model.opinions[0].alone.len();
    let held = |c: Option<usize>| {
        10.0 * model.opinions.iter().map(|e| match c { None => e.mixed, Some(c) => e.alone[c].unwrap_or(e.alone[1].unwrap_or(0.0)) } * e.cells as f64).sum::<f64>() / total as f64
    };
    print!("{table} {mask} HIDDEN {:.3} held {:.3} [", 10.0 * error / count, held(None));
    for c in 0..opinions {
        print!("{:.3} ", held(Some(c)));
    }
    println!("] learn {learnt:.1}s say {:.1}s", start.elapsed().as_secs_f64() - learnt);
    if get("cols", 0.0) > 0.0 {
        for f in 0..m {
            println!(
                "  col {f} few {} hidden {:.3} held {:.3} {:?} w {:?} {:?}",
                model.columns[f].has_shares(),
                10.0 * per[f].0 / per[f].1,
                10.0 * model.opinions[f].mixed,
                model.opinions[f].alone.iter().map(|e| e.map(|e| (e * 10000.0).round() / 1000.0)).collect::<Vec<_>>(),
                model.weights[f],
                model.stages.iter().map(|s| s.sources[f]).collect::<Vec<_>>()
            );
        }
    }
    Ok(())
}

fn read(table: &str, mask: &str) -> Result<(Vec<f32>, Vec<bool>, usize), Box<dyn Error>> {
    let text = std::fs::read_to_string(table)?;
    let mut x = Vec::new();
    let mut m = 0;
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        m = fields.len() - 1;
        for field in &fields[..m] {
            x.push(field.trim().parse::<f64>()?);
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
    Ok((x.into_iter().map(|v| v as f32).collect(), observed, m))
}
