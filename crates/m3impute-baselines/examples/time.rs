//! How long a method takes on correlated random numbers with 30 % holes, or on a CSV of numbers with a mask.
//!
//! ```text
//! cargo run --release -p m3impute-baselines --example time -- METHOD PRESET ROWS COLUMNS [KEY=VALUE ...]
//! cargo run --release -p m3impute-baselines --example time -- METHOD PRESET TABLE.csv MASK.txt [KEY=VALUE ...]
//! ```
//! The last column of a CSV is dropped; a mask has a line a row and a character a cell, `0` where it is hidden.

use m3impute_core::{Column, ColumnSpec, Kind, Run, Schema, Settings, Table};
use rand::RngExt;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [method, preset, first, second, params @ ..] = &arguments[..] else {
        return Err("expected METHOD PRESET ROWS COLUMNS or METHOD PRESET TABLE.csv MASK.txt".into());
    };
    let (m, x) = match (first.parse(), second.parse()) {
        (Ok(rows), Ok(columns)) => (columns, random(rows, columns)?),
        _ => read(first, second)?,
    };
    let specs = (0..m).map(|j| ColumnSpec::new(format!("c{j}"), Kind::Continuous)).collect();
    let columns = (0..m).map(|j| Column::from_numbers(x.iter().skip(j).step_by(m).copied().collect())).collect();
    let table = Table::new(Schema::new(specs)?, columns)?;
    let params = params.iter().filter_map(|p| p.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    let settings = Settings { preset: Some(preset.clone()), params, ..Settings::default() };
    let spec = m3impute_baselines::METHODS.iter().find(|s| s.name == method).ok_or("no such method")?;
    let imputer = (spec.build)(&settings)?;
    let mut run = Run::new(0, 0)?;
    let started = std::time::Instant::now();
    let out = imputer.impute(&table, &mut run)?;
    println!(
        "{method} {preset} on {} x {m}, {} threads: {:.3} s",
        table.rows(),
        run.threads(),
        started.elapsed().as_secs_f64()
    );
    out.notes.iter().for_each(|note| println!("  {note}"));
    Ok(())
}

/// Numbers of five hidden causes and some noise, three in ten of them missing. // [n, m]
fn random(n: usize, m: usize) -> Result<Vec<f64>, m3impute_core::Error> {
    let mut rng = Run::new(0, 1)?.rng("time", 0);
    let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    let loadings: Vec<f64> = (0..5 * m).map(|_| normal()).collect(); // [5, m]
    let mut x = Vec::with_capacity(n * m);
    for _ in 0..n {
        let causes: Vec<f64> = (0..5).map(|_| normal()).collect();
        for j in 0..m {
            let value = (0..5).map(|c| causes[c] * loadings[c * m + j]).sum::<f64>() + normal();
            x.push(if normal() < -0.5244 { f64::NAN } else { value });
        }
    }
    Ok(x)
}

fn read(table: &str, mask: &str) -> Result<(usize, Vec<f64>), Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(table)?;
    let m = text.lines().next().ok_or("an empty table")?.split(',').count() - 1;
    let mask = std::fs::read_to_string(mask)?;
    let shown = mask.lines().flat_map(str::chars).map(|c| c == '1');
    let cells = text.lines().skip(1).flat_map(|l| l.split(',').take(m));
    let x = cells.zip(shown).map(|(v, shown)| if shown { v.trim().parse() } else { Ok(f64::NAN) });
    Ok((m, x.collect::<Result<_, _>>()?))
}
