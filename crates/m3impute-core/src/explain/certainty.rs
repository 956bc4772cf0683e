//! The cells of a table of which a method is least certain.

use crate::distributions::{ColumnDistributions, Distributions, PredictiveDistributions};
use crate::table::Table;

/// The level of the intervals that are compared.
const LEVEL: f64 = super::INTERVAL_LEVEL;

/// The missing cells that are least certain, at most so many, the least certain first: those whose 90 % interval is wide
/// beside the values of the column, and those whose most probable level is not probable.
///
/// ```
/// use m3impute_core::distributions::{ColumnDistributions, Distributions, QUANTILE_LEVELS};
/// use m3impute_core::explain::least_certain;
/// use m3impute_core::{Column, ColumnSpec, Kind, PredictiveDistributions, Schema, Table};
/// let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous)])?;
/// let table = Table::new(schema, vec![Column::numbers([Some(0.0), Some(10.0), None, None])])?;
/// let around = |width: f64| QUANTILE_LEVELS.map(|level| 5.0 + width * (level - 0.5));
/// let x = ColumnDistributions {
///     column: 0,
///     levels: Vec::new(),
///     unordered: false,
///     step: 0.0,
///     rows: vec![2, 3],
///     of: Distributions::Quantiles(vec![around(1.0), around(8.0)]),
/// };
/// let distributions = PredictiveDistributions { columns: vec![x] };
/// assert_eq!(least_certain(&table, &distributions, 1), [(3, 0)]);
/// # Ok::<(), m3impute_core::Error>(())
/// ```
pub fn least_certain(table: &Table, distributions: &PredictiveDistributions, most: usize) -> Vec<(usize, usize)> {
    let mut cells: Vec<(f64, usize, usize)> = Vec::new();
    for column in &distributions.columns {
        let usual = usual_width(table, column.column);
        for (i, &row) in column.rows.iter().enumerate() {
            cells.push((uncertainty(column, i, usual), row, column.column));
        }
    }
    cells.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    cells.into_iter().take(most).map(|(_, row, column)| (row, column)).collect()
}

/// 0 is certain; 1 is a level without any probability, or an interval as wide as the column.
fn uncertainty(column: &ColumnDistributions, i: usize, usual: f64) -> f64 {
    match &column.of {
        Distributions::Shares { values, shares } if column.unordered => {
            let own = shares.get(i * values.len()..(i + 1) * values.len()).unwrap_or_default();
            1.0 - own.iter().copied().fold(0.0_f32, f32::max).min(1.0) as f64
        }
        _ => {
            let [low, high] = column.interval(i, LEVEL);
            if usual > 0.0 { ((high - low) / usual).max(0.0) } else { 0.0 }
        }
    }
}

/// The range in which the central values of a column lie; all of them, where those are one value.
fn usual_width(table: &Table, column: usize) -> f64 {
    let mut values: Vec<f64> = (0..table.rows()).map(|i| table.number(i, column)).filter(|v| !v.is_nan()).collect();
    values.sort_unstable_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return 0.0 };
    let at = |share: f64| values[(last as f64 * share).round() as usize];
    let tail = (1.0 - LEVEL) / 2.0;
    let central = at(1.0 - tail) - at(tail);
    if central > 0.0 { central } else { at(1.0) - at(0.0) }
}
