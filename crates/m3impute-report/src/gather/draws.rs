//! How far draws of the filled cells lie apart.

use super::evenly;
use crate::facts::DrawSpread;
use m3impute_core::distributions::ColumnDistributions;
use m3impute_core::{PredictiveDistributions, Table};

/// Columns that are listed, those with the most missing cells; cells of each that are looked at.
const COLUMNS: usize = 40;
const CELLS: usize = 4000;

/// The spread of draws in each column, most filled cells first, and how many columns there are.
pub(super) fn gather(table: &Table, distributions: &PredictiveDistributions) -> (Vec<DrawSpread>, usize) {
    let mut columns: Vec<&ColumnDistributions> = distributions.columns.iter().filter(|c| !c.rows.is_empty()).collect();
    columns.sort_by_key(|c| std::cmp::Reverse(c.rows.len()));
    let all = columns.len();
    (columns.into_iter().take(COLUMNS).filter_map(|c| spread(table, c)).collect(), all)
}

/// None of a column without a value, or with one value.
fn spread(table: &Table, of: &ColumnDistributions) -> Option<DrawSpread> {
    let spec = &table.schema().columns()[of.column];
    let observed: Vec<f64> =
        (0..table.rows()).map(|i| table.number(i, of.column)).filter(|value| !value.is_nan()).collect();
    let (n, filled) = (observed.len() as f64, of.rows.len() as f64);
    let cells: Vec<usize> = evenly(of.of.len(), CELLS).collect();
    let count = cells.len() as f64;
    let fact = |cell: f64, column: f64, of_mean| DrawSpread {
        name: spec.name.clone(),
        kind: spec.kind,
        filled: of.rows.len(),
        cell,
        share: cell / column,
        of_mean,
    };
    if of.unordered {
        let mut counts = vec![0.0_f64; spec.levels.len()];
        observed.iter().for_each(|code| counts[*code as usize] += 1.0);
        let column = 1.0 - counts.iter().map(|count| (count / n).powi(2)).sum::<f64>();
        let cell = cells.iter().map(|&i| of.of.disagreement(i)).sum::<f64>() / count;
        return (column > 0.0).then(|| fact(cell, column, None));
    }
    let (mean, variance) = mean_and_variance(observed.iter().copied());
    if observed.is_empty() || variance <= 0.0 {
        return None;
    }
    let of_cells: Vec<(f64, f64)> = cells.iter().map(|&i| of.of.mean_and_variance(i)).collect();
    let deviation = of_cells.iter().map(|(_, variance)| variance.sqrt()).sum::<f64>() / count;
    let between = of_cells.iter().map(|(_, variance)| variance).sum::<f64>() / count;
    // The variance of a completed column: that of its cells' means, and that of draws around them.
    let (middle, apart) = mean_and_variance(of_cells.iter().map(|(mean, _)| *mean));
    let all = n + filled;
    let centre = (n * mean + filled * middle) / all;
    let completed =
        (n * (variance + (mean - centre).powi(2)) + filled * (apart + (middle - centre).powi(2) + between)) / all;
    // Of the mean of the column: draws of different rows are independent.
    let (within, between) = (completed / all, filled * between / (all * all));
    Some(fact(deviation, variance.sqrt(), Some(between / (within + between))))
}

fn mean_and_variance(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / n;
    (mean, values.map(|v| (v - mean).powi(2)).sum::<f64>() / n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::distributions::Distributions;
    use m3impute_core::{Column, ColumnSpec, Kind, Schema};

    #[test]
    fn the_spread_of_draws_is_a_share_of_that_of_the_column() {
        let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Integer)]).unwrap();
        let table = Table::new(schema, vec![Column::numbers([Some(0.0), Some(8.0), None, None])]).unwrap();
        let shares = Distributions::Shares { values: vec![2.0, 6.0], shares: vec![0.5; 4] };
        let column = ColumnDistributions {
            column: 0,
            levels: Vec::new(),
            unordered: false,
            step: 1.0,
            rows: vec![2, 3],
            of: shares,
        };
        let (of, all) = gather(&table, &PredictiveDistributions { columns: vec![column] });
        // Draws deviate by 2 and the column by 4. Completed it has a variance of (2 * 16 + 2 * 4) / 4 = 10, so its mean
        // one of 2.5; between draws it is 2 * 4 / 16 = 0.5.
        assert_eq!((all, of[0].cell, of[0].share), (1, 2.0, 0.5));
        assert!((of[0].of_mean.unwrap() - 0.5 / 3.0).abs() < 1e-12, "{of:?}");
    }

    #[test]
    fn draws_of_levels_differ_or_do_not() {
        let schema = Schema::new(vec![ColumnSpec::with_levels("c", Kind::Categorical, ["u", "v"])]).unwrap();
        let table = Table::new(schema, vec![Column::codes([Some(0), Some(1), None])]).unwrap();
        let of = Distributions::Shares { values: vec![0.0, 1.0], shares: vec![0.9, 0.1] };
        let levels = vec!["u".to_owned(), "v".to_owned()];
        let column = ColumnDistributions { column: 0, levels, unordered: true, step: 0.0, rows: vec![2], of };
        let (of, _) = gather(&table, &PredictiveDistributions { columns: vec![column] });
        // 1 - 0.81 - 0.01 beside 1 - 0.25 - 0.25.
        assert!((of[0].cell - 0.18).abs() < 1e-6 && (of[0].share - 0.36).abs() < 1e-6 && of[0].of_mean.is_none());
    }
}
