//! How long a method takes to fit a table of some size, and to fill new rows.

use m3impute_core::missing::{Mechanism, hide, without_hidden};
use m3impute_core::{Column, ColumnSpec, Error, Kind, MethodSpec, Result, Run, Schema, Settings, Table};
use rand_chacha::rand_core::Rng;
use serde::Serialize;
use std::time::Instant;

/// The share of cells that are missing.
const RATE: f64 = 0.3;

/// The time of one fit, and of filling new rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// Rows of the table.
    pub rows: usize,
    /// Its columns.
    pub columns: usize,
    /// Seconds of learning and filling the table.
    pub fit_seconds: f64,
    /// New rows that were filled.
    pub new_rows: usize,
    /// Seconds of filling them.
    pub new_seconds: f64,
}

/// Fits a method to a synthetic table of that size with 30 % of its cells missing, and fills `new_rows` new rows.
///
/// # Errors
/// When the method cannot be fitted once and used later, or the run is cancelled.
pub fn time_fit(
    spec: &'static MethodSpec,
    settings: &Settings,
    (rows, columns): (usize, usize),
    new_rows: usize,
    run: &mut Run,
) -> Result<Timing> {
    let method = (spec.build)(settings)?;
    let inductive = method.as_inductive().ok_or(Error::NotInductive { method: spec.name })?;
    let table = synthetic(rows, columns, "table", run)?;
    let started = Instant::now();
    let model = inductive.fit(&table, run)?;
    let fit_seconds = started.elapsed().as_secs_f64();
    let mut new_seconds = 0.0;
    if new_rows > 0 {
        let new = synthetic(new_rows, columns, "new rows", run)?;
        let started = Instant::now();
        model.transform(&new, run)?;
        new_seconds = started.elapsed().as_secs_f64();
    }
    Ok(Timing { rows, columns, fit_seconds, new_rows, new_seconds })
}

/// A table of numbers that depend on two latent variables and noise, with missing cells.
fn synthetic(rows: usize, columns: usize, purpose: &str, run: &Run) -> Result<Table> {
    let mut rng = run.rng(purpose, 0);
    let mut unit = || f64::from(rng.next_u32()) / f64::from(u32::MAX) - 0.5;
    let latent: Vec<[f64; 2]> = (0..rows).map(|_| [unit(), unit()]).collect();
    let columns: Vec<Column> = (0..columns)
        .map(|j| {
            let (a, b) = ((j % 3) as f64 - 1.0, (j % 5) as f64 - 2.0);
            Column::from_numbers(latent.iter().map(|c| a * c[0] + b * c[1] * c[1] + 0.1 * unit()).collect())
        })
        .collect();
    let specs = (0..columns.len()).map(|j| ColumnSpec::new(format!("c{j}"), Kind::Continuous)).collect();
    let table = Table::new(Schema::new(specs)?, columns)?;
    Ok(without_hidden(&table, &hide(&table, Mechanism::Mcar, RATE, run)?.shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_and_new_rows_are_timed() {
        let mut run = Run::new(0, 1).unwrap();
        let spec = m3impute::method("mean").unwrap();
        let timing = time_fit(spec, &Settings::default(), (50, 3), 20, &mut run).unwrap();
        assert_eq!((timing.rows, timing.columns, timing.new_rows), (50, 3, 20));
        assert!(timing.fit_seconds > 0.0 && timing.new_seconds > 0.0);
    }
}
