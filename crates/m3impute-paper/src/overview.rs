//! Sizes and correlations of the complete tables.

use crate::data::complete;
use crate::error::Result;
use m3impute::{Kind, Table};
use std::path::Path;

/// The size of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// The table.
    pub table: String,
    /// Its rows.
    pub rows: usize,
    /// Columns that are filled: all but the label.
    pub columns: usize,
    /// Those of them that hold whole numbers only.
    pub whole: usize,
}

/// How the columns of a table are correlated.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlations {
    /// The table.
    pub table: String,
    /// Its columns but the label.
    pub columns: Vec<String>,
    /// Pearson's coefficients, row by row; 0 where a column is constant.
    pub coefficients: Vec<f64>,
}

/// The size of a table.
///
/// # Errors
/// When it cannot be read.
pub fn overview(data: &Path, table: &str) -> Result<Overview> {
    let read = complete(data, table)?;
    let columns = &read.schema().columns()[..read.cols() - 1];
    Ok(Overview {
        table: table.to_owned(),
        rows: read.rows(),
        columns: columns.len(),
        whole: columns.iter().filter(|c| c.kind == Kind::Integer).count(),
    })
}

/// Pearson's correlation coefficients of all pairs of columns but the label.
///
/// # Errors
/// When the table cannot be read.
pub fn correlations(data: &Path, table: &str) -> Result<Correlations> {
    Ok(correlations_of(table, &complete(data, table)?))
}

fn correlations_of(name: &str, table: &Table) -> Correlations {
    let m = table.cols() - 1;
    let centred: Vec<Vec<f64>> = (0..m)
        .map(|j| {
            let column: Vec<f64> = (0..table.rows()).map(|i| table.number(i, j)).collect();
            let mean = column.iter().sum::<f64>() / column.len() as f64;
            column.iter().map(|v| v - mean).collect()
        })
        .collect();
    let product = |a: usize, b: usize| -> f64 { centred[a].iter().zip(&centred[b]).map(|(x, y)| x * y).sum() };
    let own: Vec<f64> = (0..m).map(|j| product(j, j)).collect();
    let mut coefficients = vec![0.0; m * m];
    for a in 0..m {
        for b in 0..=a {
            let spread = (own[a] * own[b]).sqrt();
            let r = if spread > 0.0 { product(a, b) / spread } else { 0.0 };
            (coefficients[a * m + b], coefficients[b * m + a]) = (r, r);
        }
    }
    let columns = table.schema().columns()[..m].iter().map(|c| c.name.clone()).collect();
    Correlations { table: name.to_owned(), columns, coefficients }
}

impl Correlations {
    /// The absolute coefficients of different columns, largest first.
    pub fn strengths(&self) -> Vec<f64> {
        let m = self.columns.len();
        let mut all: Vec<f64> =
            (0..m).flat_map(|a| (0..a).map(move |b| (a, b))).map(|(a, b)| self.coefficients[a * m + b].abs()).collect();
        all.sort_by(|a, b| b.total_cmp(a));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute::{Column, ColumnSpec, Schema};

    #[test]
    fn a_column_and_its_negative_are_perfectly_correlated_and_a_constant_is_with_nothing() {
        let columns: Vec<Column> = [[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [5.0, 5.0, 5.0], [0.0, 0.0, 0.0]]
            .map(|v| Column::from_numbers(v.into()))
            .into();
        let specs = ["a", "b", "c", "label"].map(|name| ColumnSpec::new(name, Kind::Continuous));
        let table = Table::new(Schema::new(specs.into()).unwrap(), columns).unwrap();
        let found = correlations_of("toy", &table);
        assert_eq!(found.columns, ["a", "b", "c"]);
        let rounded: Vec<f64> = found.coefficients.iter().map(|r| (r * 1e6).round() / 1e6).collect();
        assert_eq!(rounded, [1.0, -1.0, 0.0, -1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(found.strengths().len(), 3);
    }
}
