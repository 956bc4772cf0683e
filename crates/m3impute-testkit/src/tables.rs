//! Small tables of mixed kinds, made by a seed.

use m3impute_core::{Column, ColumnSpec, Kind, Run, Schema, Table, Values};
use rand::RngExt;

/// The rows of the usual table.
pub const ROWS: usize = 60;
/// The seconds of a day, the step of the usual table's timestamps.
pub const DAY: f64 = 86_400.0;

/// The names of the columns of [`complete`], in order.
pub const NAMES: [&str; 7] = ["x", "y", "count", "colour", "yes", "size", "when"];

/// A complete table of every kind that a method reads, whose columns depend on each other.
pub fn complete(rows: usize, seed: u64) -> Table {
    let run = Run::new(seed, 1).expect("one thread starts");
    let mut rng = run.rng("testkit", 0);
    let base: Vec<f64> = (0..rows).map(|_| rng.random::<f64>()).collect();
    let mut noisy = |weight: f64| -> Vec<f64> {
        base.iter().map(|b| (1.0 - weight) * b + weight * rng.random::<f64>()).collect() // in [0, 1)
    };
    let codes =
        |values: Vec<f64>, levels: f64| Column::from_codes(values.iter().map(|v| (v * levels) as u32).collect());
    let (x, y) = (noisy(0.1), noisy(0.4));
    let columns = vec![
        Column::from_numbers(x.iter().map(|v| 3.0 * v - 1.0).collect()),
        Column::from_numbers(y.iter().map(|v| 1000.0 * v * v + 0.25).collect()),
        Column::from_numbers(noisy(0.3).iter().map(|v| (v * 40.0).floor() + 18.0).collect()),
        codes(noisy(0.3), 3.0),
        codes(noisy(0.3), 2.0),
        codes(noisy(0.3), 4.0),
        Column::from_numbers(noisy(0.2).iter().map(|v| ((v * 1000.0).floor() + 18_000.0) * DAY).collect()),
    ];
    let mut when = ColumnSpec::new("when", Kind::Datetime);
    when.step = DAY;
    let specs = vec![
        ColumnSpec::new("x", Kind::Continuous),
        ColumnSpec::new("y", Kind::Continuous),
        ColumnSpec::new("count", Kind::Integer),
        ColumnSpec::with_levels("colour", Kind::Categorical, ["red", "green", "blue"]),
        ColumnSpec::with_levels("yes", Kind::Boolean, ["no", "yes"]),
        ColumnSpec::with_levels("size", Kind::Ordered, ["small", "medium", "large", "huge"]),
        when,
    ];
    Table::new(Schema::new(specs).expect("names differ"), columns).expect("columns fit")
}

/// The usual table: [`complete`] with a fifth of its cells missing at random. Every row and column keeps some.
pub fn mixed(rows: usize, seed: u64) -> Table {
    with_missing(complete(rows, seed), 0.2, seed)
}

/// A table without about that share of its cells; every row keeps its last observed cell, every column its first.
pub fn with_missing(mut table: Table, share: f64, seed: u64) -> Table {
    let run = Run::new(seed, 1).expect("one thread starts");
    for i in 0..table.rows() {
        let mut rng = run.rng("testkit holes", i as u64);
        for j in 0..table.cols() {
            let is_last = (0..table.cols()).filter(|&k| table.observed().get(i, k)).count() < 2;
            if rng.random::<f64>() < share && !is_last && i != j {
                table.hide(i, j);
            }
        }
    }
    table
}

/// The usual table beside an identifier with missing cells, which no method reads.
pub fn with_identifier(rows: usize, seed: u64) -> Table {
    let table = mixed(rows, seed);
    let mut specs = Vec::from(table.schema().clone());
    specs.insert(0, ColumnSpec::new("id", Kind::Identifier));
    let mut columns = columns_of(&table);
    columns.insert(0, Column::opaque((0..rows).map(|i| i % 5 != 0).collect()));
    Table::new(Schema::new(specs).expect("names differ"), columns).expect("columns fit")
}

/// Some columns of a table, in this order.
pub fn select_columns(table: &Table, which: &[usize]) -> Table {
    let all = columns_of(table);
    let specs = which.iter().map(|&j| table.schema().columns()[j].clone()).collect();
    let columns = which.iter().map(|&j| all[j].clone()).collect();
    Table::new(Schema::new(specs).expect("names differ"), columns).expect("columns fit")
}

/// The columns of a table.
pub fn columns_of(table: &Table) -> Vec<Column> {
    (0..table.cols())
        .map(|j| match table.values(j) {
            Values::Opaque => Column::opaque(table.observed().column(j).to_vec()),
            values => Column { values: values.clone(), observed: table.observed().column(j).to_vec() },
        })
        .collect()
}
