//! The downstream task: how well a linear regression predicts the labels from a filled table.

use m3impute::{Run, Table};
use rand::Rng;

/// The share of rows that the regression is fitted to.
const LEARNT: f64 = 0.7;

/// The mean absolute error of labels on held-out rows: ordinary least squares on the filled columns, fitted to seven rows
/// in ten. Which ones depends on the number of rows only.
pub fn label_error(filled: &Table, truth: &Table) -> Option<f64> {
    let (n, m) = (filled.rows(), truth.cols().checked_sub(1)?);
    let mut rng = Run::new(0, 1).ok()?.rng("labels", 0);
    let learnt: Vec<bool> = (0..n).map(|_| f64::from(rng.next_u32()) < LEARNT * f64::from(u32::MAX)).collect();
    let scale: Vec<(f64, f64)> = (0..m).map(|j| centre_and_spread(filled, j)).collect();
    let row = |i: usize| -> Vec<f64> {
        let cells = (0..m).map(|j| (filled.number(i, j) - scale[j].0) / scale[j].1);
        cells.chain([1.0]).collect()
    };
    let p = m + 1;
    let (mut products, mut with_label) = (vec![0.0; p * p], vec![0.0; p]);
    for i in (0..n).filter(|&i| learnt[i]) {
        let (x, y) = (row(i), truth.number(i, m));
        for a in 0..p {
            with_label[a] += x[a] * y;
            for b in 0..p {
                products[a * p + b] += x[a] * x[b];
            }
        }
    }
    let weights = solved(products, with_label, p)?;
    let mut errors = Vec::new();
    for i in (0..n).filter(|&i| !learnt[i]) {
        let predicted: f64 = row(i).iter().zip(&weights).map(|(x, w)| x * w).sum();
        errors.push((predicted - truth.number(i, m)).abs());
    }
    (!errors.is_empty()).then(|| errors.iter().sum::<f64>() / errors.len() as f64)
}

fn centre_and_spread(table: &Table, j: usize) -> (f64, f64) {
    let n = table.rows() as f64;
    let mean = (0..table.rows()).map(|i| table.number(i, j)).sum::<f64>() / n;
    let variance = (0..table.rows()).map(|i| (table.number(i, j) - mean).powi(2)).sum::<f64>() / n;
    (mean, if variance > 0.0 { variance.sqrt() } else { 1.0 })
}

/// Solves `A w = b` for a positive semi-definite matrix by Cholesky decomposition. A tiny ridge penalty, which does not
/// change predictions, makes collinear columns solvable.
fn solved(mut a: Vec<f64>, mut b: Vec<f64>, p: usize) -> Option<Vec<f64>> {
    let largest = (0..p).map(|k| a[k * p + k]).fold(0.0, f64::max);
    for k in 0..p {
        a[k * p + k] += 1e-9 * largest;
    }
    for k in 0..p {
        let pivot = a[k * p + k] - (0..k).map(|l| a[k * p + l].powi(2)).sum::<f64>();
        if pivot <= 0.0 || !pivot.is_finite() {
            return None;
        }
        a[k * p + k] = pivot.sqrt();
        for i in k + 1..p {
            let below = a[i * p + k] - (0..k).map(|l| a[i * p + l] * a[k * p + l]).sum::<f64>();
            a[i * p + k] = below / a[k * p + k];
        }
    }
    for k in 0..p {
        b[k] = (b[k] - (0..k).map(|l| a[k * p + l] * b[l]).sum::<f64>()) / a[k * p + k];
    }
    for k in (0..p).rev() {
        b[k] = (b[k] - (k + 1..p).map(|l| a[l * p + k] * b[l]).sum::<f64>()) / a[k * p + k];
    }
    Some(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute::{Column, ColumnSpec, Kind, Schema};

    /// Two columns, a third that repeats the first, and a label.
    fn table(label: impl Fn(f64, f64) -> f64) -> Table {
        let pairs: Vec<(f64, f64)> = (0..60).map(|i| (f64::from(i % 10), f64::from(i * 7 % 13))).collect();
        let column = |of: &dyn Fn(&(f64, f64)) -> f64| Column::from_numbers(pairs.iter().map(of).collect());
        let specs = ["a", "b", "c", "label"].map(|name| ColumnSpec::new(name, Kind::Continuous));
        let columns = vec![column(&|p| p.0), column(&|p| p.1), column(&|p| p.0), column(&|p| label(p.0, p.1))];
        Table::new(Schema::new(specs.into()).unwrap(), columns).unwrap()
    }

    #[test]
    fn a_linear_label_is_predicted_exactly_though_a_column_repeats_another() {
        let table = table(|a, b| 3.0 * a - b + 5.0);
        assert!(label_error(&table, &table).unwrap() < 1e-5);
    }

    #[test]
    fn a_label_that_bends_is_not() {
        let table = table(|a, _| (a - 4.5).abs());
        assert!(label_error(&table, &table).unwrap() > 0.5);
    }
}
