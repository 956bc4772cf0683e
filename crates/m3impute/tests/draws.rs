//! Draws keep the correlations and the spread of columns that are missing together.

use m3impute::{Column, ColumnSpec, Kind, RowSeeds, Run, Schema, Settings, Table};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const ROWS: usize = 1000;

/// A standard normal number.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let unit = |bits: u32| (f64::from(bits) + 0.5) / (f64::from(u32::MAX) + 1.0);
    let (u, v) = (unit(rng.next_u32()), unit(rng.next_u32()));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Two columns that are nearly the same and missing together in three rows of ten, and one that is weakly related.
fn table() -> (Table, Vec<usize>) {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let (mut columns, mut missing) = ([const { Vec::new() }; 3], Vec::new());
    for i in 0..ROWS {
        let z = normal(&mut rng);
        let of = [z + 0.3 * normal(&mut rng), z + 0.3 * normal(&mut rng), 0.3 * z + normal(&mut rng)];
        let is_missing = rng.next_u32() % 10 < 3;
        if is_missing {
            missing.push(i);
        }
        for (j, (column, x)) in columns.iter_mut().zip(of).enumerate() {
            column.push((j == 2 || !is_missing).then_some(x));
        }
    }
    let schema = Schema::new(["a", "b", "c"].map(|name| ColumnSpec::new(name, Kind::Continuous)).to_vec()).unwrap();
    (Table::new(schema, columns.map(Column::numbers).to_vec()).unwrap(), missing)
}

/// The standard deviations of two columns in some rows, and their correlation.
fn moments(table: &Table, rows: &[usize]) -> (f64, f64, f64) {
    let n = rows.len() as f64;
    let of = |j: usize| rows.iter().map(move |&i| table.number(i, j));
    let mean = |j: usize| of(j).sum::<f64>() / n;
    let (a, b) = (mean(0), mean(1));
    let deviation = |j: usize, mean: f64| (of(j).map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    let (sa, sb) = (deviation(0, a), deviation(1, b));
    let covariance = of(0).zip(of(1)).map(|(x, y)| (x - a) * (y - b)).sum::<f64>() / n;
    (sa, sb, covariance / (sa * sb))
}

/// The correlation and the standard deviation of drawn cells, means over five draws. The truth is 0.92 and 1.04.
fn drawn(name: &str) -> (f64, f64) {
    let (table, missing) = table();
    let (spec, preset) = m3impute::method_and_preset(name, None).unwrap();
    let method = (spec.build)(&Settings { preset, ..Settings::default() }).unwrap();
    let mut run = Run::new(0, 2).unwrap();
    let fitted = method.fit_distributions(&table, &mut run).unwrap().unwrap();
    let seeds = RowSeeds::default().of(&table);
    let of = |number| moments(&fitted.draw(&table, &seeds, number, &run).unwrap().unwrap().table, &missing);
    let draws: Vec<(f64, f64, f64)> = (1..=5).map(of).collect();
    assert!(draws[0] != draws[1]);
    let mean = |of: fn(&(f64, f64, f64)) -> f64| draws.iter().map(of).sum::<f64>() / draws.len() as f64;
    (mean(|d| d.2), mean(|d| (d.0 + d.1) / 2.0))
}

const CORRELATION: f64 = 1.0 / 1.09;

fn deviation() -> f64 {
    1.09_f64.sqrt()
}

#[test]
fn columns_that_are_missing_together_keep_their_correlation_and_spread() {
    let (correlation, spread) = drawn("m3:fast");
    assert!((correlation - CORRELATION).abs() < 0.05, "{correlation}");
    assert!((spread / deviation() - 1.0).abs() < 0.05, "{spread}");
}

#[test]
fn draws_of_miwae_keep_both_too() {
    let (correlation, spread) = drawn("miwae");
    assert!((correlation - CORRELATION).abs() < 0.1, "{correlation}");
    assert!((spread / deviation() - 1.0).abs() < 0.15, "{spread}");
}

/// Its page says so: joint draws are no better than the distributions that they are drawn from. Their correlation is any,
/// by the seed.
#[test]
fn draws_of_gain_are_not_as_spread_as_the_truth() {
    let (_, spread) = drawn("gain");
    assert!(spread < 0.8 * deviation(), "{spread}");
}
