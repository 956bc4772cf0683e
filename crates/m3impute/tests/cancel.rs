//! A run that is asked to stop does so soon, whatever it is at.

use m3impute::{Cancel, Column, ColumnSpec, Error, Kind, Run, Schema, Settings, Table};
use std::time::{Duration, Instant};

/// A table of related numbers and a category, with holes.
fn table(rows: usize) -> Table {
    let kinds = (0..9).map(|j| ColumnSpec::new(format!("x{j}"), Kind::Continuous));
    let levels = ["a", "b", "c", "d", "e"];
    let schema =
        Schema::new(kinds.chain([ColumnSpec::with_levels("level", Kind::Categorical, levels)]).collect()).unwrap();
    let noise = |i: usize, j: usize| ((i * 7919 + j * 104_729) % 10_007) as f64 / 10_007.0;
    let is_hole = |i: usize, j: usize| (i * 31 + j * 17).is_multiple_of(5);
    let number = |j: usize| move |i: usize| (!is_hole(i, j)).then(|| noise(i, 0) * j as f64 + noise(i, j + 1));
    let code = |i: usize| (!is_hole(i, 9)).then(|| (noise(i, 0) * 4.99) as u32);
    let mut columns: Vec<Column> = (0..9).map(|j| Column::numbers((0..rows).map(number(j)))).collect();
    columns.push(Column::codes((0..rows).map(code)));
    Table::new(schema, columns).unwrap()
}

/// Cancels a method at these moments, and tells how long it went on.
fn delays(method: &str, table: &Table, moments: &[f64]) -> Vec<(f64, Duration)> {
    let mut delays = Vec::new();
    for &moment in moments {
        let cancel = Cancel::default();
        let mut run = Run::new(0, 0).unwrap().cancelled_by(cancel.clone());
        let method = (m3impute::method(method).unwrap().build)(&Settings::default()).unwrap();
        let asked = std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                std::thread::sleep(Duration::from_secs_f64(moment));
                cancel.cancel();
                Instant::now()
            });
            let outcome = method.impute(table, &mut run);
            let ended = Instant::now();
            let asked = asked.join().unwrap();
            outcome.is_err_and(|e| matches!(e, Error::Cancelled)).then(|| ended.saturating_duration_since(asked))
        });
        delays.extend(asked.map(|delay| (moment, delay)));
    }
    delays
}

#[test]
#[ignore = "measures time on a large table: run it by itself, on demand"]
fn every_method_stops_within_a_second_on_a_large_table() {
    let table = table(1_000_000);
    let moments = [0.2, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0];
    let methods = std::env::var("METHODS").unwrap_or_else(|_| "m3,mice,missforest,knn,svd,softimpute".to_owned());
    let mut late = Vec::new();
    for method in methods.split(',') {
        for (moment, delay) in delays(method, &table, &moments) {
            eprintln!("{method}: cancelled at {moment} s, went on for {:.2} s", delay.as_secs_f64());
            if delay > Duration::from_secs(1) {
                late.push((method, moment, delay));
            }
        }
    }
    assert!(late.is_empty(), "{late:?}");
}
