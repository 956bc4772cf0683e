//! The least certain rows.

use super::quantile;
use crate::facts::{FilledCell, UncertainCell, UncertainRow};
use crate::words::{Numerals, short};
use m3impute_core::distributions::{ColumnDistributions, Distributions, Interval};
use m3impute_core::{PredictiveDistributions, Table};

/// Rows that are listed, and cells that are shown of each.
const ROWS: usize = 15;
const CELLS: usize = 4;
/// Cells that are listed by themselves, and how many of one column.
const LISTED: usize = 150;
pub(crate) const LISTED_OF_COLUMN: usize = 40;

/// How uncertain the missing cells of a column are: 0 is certain, 1 is no better than the distribution of the column.
struct Uncertainty<'a> {
    of: &'a ColumnDistributions,
    interval: Option<&'a Interval>,
    numerals: Numerals,
    of_cells: Vec<f32>,
}

pub(super) fn gather(
    table: &Table,
    filled: &Table,
    distributions: &PredictiveDistributions,
    intervals: &[Interval],
) -> (Vec<UncertainRow>, Vec<FilledCell>) {
    let columns: Vec<Uncertainty<'_>> = distributions
        .columns
        .iter()
        .filter(|c| !c.rows.is_empty())
        .map(|of| {
            let interval = intervals.iter().find(|i| i.column == of.column);
            let of_cells = match interval {
                Some(interval) if of.levels.is_empty() => by_width(table, interval),
                _ => by_entropy(table, of),
            };
            Uncertainty { of, interval, numerals: Numerals::of(table, of.column), of_cells }
        })
        .collect();
    let mut sums = vec![0.0_f32; table.rows()];
    let mut cells = vec![0_u32; table.rows()];
    for uncertainty in &columns {
        for (&row, own) in uncertainty.of.rows.iter().zip(&uncertainty.of_cells) {
            sums[row] += own;
            cells[row] += 1;
        }
    }
    let mut order: Vec<usize> = (0..table.rows()).filter(|&i| cells[i] > 0).collect();
    order.sort_by(|&a, &b| sums[b].total_cmp(&sums[a]).then(a.cmp(&b)));
    order.truncate(ROWS);
    let row = |i: usize| UncertainRow {
        row: i + 1,
        filled: cells[i] as usize,
        uncertainty: f64::from(sums[i]),
        cells: worst_cells(table, filled, &columns, i),
    };
    let rows = order.into_iter().map(row).collect();
    (rows, least_certain(table, filled, &columns))
}

/// The least certain cells, in the order of rows where they are alike.
fn least_certain(table: &Table, filled: &Table, columns: &[Uncertainty<'_>]) -> Vec<FilledCell> {
    let mut all: Vec<(f32, usize, usize)> = Vec::new();
    for (c, uncertainty) in columns.iter().enumerate() {
        // One column of which nothing is known would leave no room for any other.
        let mut own: Vec<(f32, usize)> = uncertainty.of_cells.iter().copied().zip(0..).collect();
        own.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        all.extend(own.into_iter().take(LISTED_OF_COLUMN).map(|(own, at)| (own, c, at)));
    }
    let row = |&(_, c, at): &(f32, usize, usize)| columns[c].of.rows[at];
    let order = |a: &(f32, usize, usize), b: &(f32, usize, usize)| {
        b.0.total_cmp(&a.0).then(row(a).cmp(&row(b))).then(a.1.cmp(&b.1))
    };
    all.sort_unstable_by(order);
    all.truncate(LISTED);
    let of = |&(own, c, at): &(f32, usize, usize)| {
        let row = columns[c].of.rows[at];
        let cell = cell(table, filled, &columns[c], row, at);
        FilledCell { row: row + 1, cell, uncertainty: Some(f64::from(own)) }
    };
    all.iter().map(of).collect()
}

/// The first filled cells, row by row, where nothing is known of their certainty; `filled_rows` has the filled rows of
/// each column.
pub(super) fn first_cells(table: &Table, filled: &Table, filled_rows: &[Vec<usize>]) -> Vec<FilledCell> {
    // The first cells of the table are among the first of each column.
    let of_column =
        |(col, rows): (usize, &Vec<usize>)| rows.iter().take(LISTED).map(move |&i| (i, col)).collect::<Vec<_>>();
    let mut all: Vec<(usize, usize)> = filled_rows.iter().enumerate().flat_map(of_column).collect();
    all.sort_unstable();
    all.truncate(LISTED);
    let of = |(i, col): (usize, usize)| {
        let spec = &filled.schema().columns()[col];
        let point = filled.number(i, col);
        let value = if spec.kind.has_levels() {
            short(spec.levels.get(point as usize).map_or("", String::as_str), 40)
        } else {
            Numerals::of(table, col).value(point)
        };
        let cell = UncertainCell { column: spec.name.clone(), value, certainty: String::new() };
        FilledCell { row: i + 1, cell, uncertainty: None }
    };
    all.into_iter().map(of).collect()
}

/// The width of an interval as a share of that of the column's observed values.
fn by_width(table: &Table, interval: &Interval) -> Vec<f32> {
    let mut observed: Vec<f64> =
        (0..table.rows()).map(|i| table.number(i, interval.column)).filter(|v| !v.is_nan()).collect();
    observed.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - super::LEVEL) / 2.0;
    let usual = quantile(&observed, 1.0 - tail) - quantile(&observed, tail);
    let usual = if usual > 0.0 { usual } else { quantile(&observed, 1.0) - quantile(&observed, 0.0) };
    let share = |width: f64| if usual > 0.0 { (width / usual).clamp(0.0, 1.0) as f32 } else { 0.0 };
    interval.lower.iter().zip(&interval.upper).map(|(low, high)| share(high - low)).collect()
}

/// The entropy of a missing cell's levels as a share of that of the column's observed levels.
fn by_entropy(table: &Table, of: &ColumnDistributions) -> Vec<f32> {
    let Distributions::Shares { values, shares } = &of.of else { return vec![1.0; of.rows.len()] };
    let mut observed = vec![0.0_f32; table.schema().columns()[of.column].levels.len()];
    let count = table.rows() - table.missing_in(of.column);
    let codes = (0..table.rows()).map(|i| table.number(i, of.column)).filter(|v| !v.is_nan());
    codes.for_each(|code| observed[code as usize] += 1.0 / count as f32);
    let most = entropy(&observed);
    let share = |cell: &[f32]| if most > 0.0 { (entropy(cell) / most).clamp(0.0, 1.0) } else { 0.0 };
    shares.chunks_exact(values.len().max(1)).map(share).collect()
}

fn entropy(shares: &[f32]) -> f32 {
    shares.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum()
}

fn worst_cells(table: &Table, filled: &Table, columns: &[Uncertainty<'_>], row: usize) -> Vec<UncertainCell> {
    let mut own: Vec<(&Uncertainty<'_>, usize)> =
        columns.iter().filter_map(|d| d.of.rows.binary_search(&row).ok().map(|at| (d, at))).collect();
    own.sort_by(|(a, i), (b, k)| b.of_cells[*k].total_cmp(&a.of_cells[*i]));
    own.truncate(CELLS);
    own.into_iter().map(|(uncertainty, at)| cell(table, filled, uncertainty, row, at)).collect()
}

fn cell(table: &Table, filled: &Table, uncertainty: &Uncertainty<'_>, row: usize, at: usize) -> UncertainCell {
    let col = uncertainty.of.column;
    let spec = &table.schema().columns()[col];
    let column = spec.name.clone();
    let point = filled.number(row, col);
    if !spec.kind.has_levels() {
        let certainty = uncertainty.interval.map_or_else(String::new, |interval| {
            format!(
                "{} to {}",
                uncertainty.numerals.value(interval.lower[at]),
                uncertainty.numerals.value(interval.upper[at])
            )
        });
        return UncertainCell { column, value: uncertainty.numerals.value(point), certainty };
    }
    let level = filled.schema().columns()[col].levels.get(point as usize).map_or("", String::as_str);
    let certainty = match &uncertainty.of.of {
        Distributions::Shares { values, shares } => {
            let is_level = |v: &f64| uncertainty.of.levels.get(*v as usize).is_some_and(|l| l == level);
            let place = values.iter().position(is_level);
            place.map_or_else(String::new, |p| format!("{:.0} % sure", 100.0 * shares[at * values.len() + p]))
        }
        Distributions::Quantiles(_) => String::new(),
    };
    UncertainCell { column, value: short(level, 40), certainty }
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::distributions::QUANTILE_LEVELS;
    use m3impute_core::{Column, ColumnSpec, Kind, Schema};

    /// Numbers 0 to 10 with missing cells in rows 11 and 12, levels with one in row 12.
    fn tables() -> (Table, Table) {
        let schema = Schema::new(vec![
            ColumnSpec::new("x", Kind::Continuous),
            ColumnSpec::with_levels("c", Kind::Categorical, ["u", "v"]),
        ])
        .unwrap();
        let numbers = (0..=10).map(|v| Some(f64::from(v))).chain([None, None]);
        let codes = (0..12).map(|i| Some(i % 2)).chain([None]);
        let table = Table::new(schema, vec![Column::numbers(numbers), Column::codes(codes)]).unwrap();
        let mut filled = table.clone();
        [(11, 0, 5.0), (12, 0, 5.0), (12, 1, 1.0)].iter().for_each(|&(i, j, v)| filled.fill(i, j, v));
        (table, filled)
    }

    #[test]
    fn the_least_certain_rows_come_first() {
        let (table, filled) = tables();
        let even = |half: f64| std::array::from_fn(|k| 5.0 + half * (2.0 * QUANTILE_LEVELS[k] - 1.0));
        let distributions = PredictiveDistributions {
            columns: vec![
                ColumnDistributions {
                    column: 0,
                    levels: Vec::new(),
                    unordered: false,
                    step: 0.0,
                    rows: vec![11, 12],
                    of: Distributions::Quantiles(vec![even(1.0), even(5.0)]),
                },
                ColumnDistributions {
                    column: 1,
                    levels: vec!["u".to_owned(), "v".to_owned()],
                    unordered: true,
                    step: 0.0,
                    rows: vec![12],
                    of: Distributions::Shares { values: vec![0.0, 1.0], shares: vec![0.4, 0.6] },
                },
            ],
        };
        let intervals: Vec<Interval> = distributions.intervals(0.9).into_iter().map(|i| i.around(&filled)).collect();
        let (rows, cells) = gather(&table, &filled, &distributions, &intervals);
        assert_eq!(rows.iter().map(|r| (r.row, r.filled)).collect::<Vec<_>>(), [(13, 2), (12, 1)]);
        // Row 13: an interval of 9 beside the 9 of the column, and levels 4 : 6 beside 1 : 1.
        assert!((rows[0].uncertainty - 1.971).abs() < 1e-3 && (rows[1].uncertainty - 0.2).abs() < 1e-5, "{rows:?}");
        assert_eq!(rows[1].cells[0].certainty, "4.1 to 5.9");
        // An interval as wide as that of the column, then the levels, then the narrow interval.
        let listed: Vec<(usize, &str)> = cells.iter().map(|c| (c.row, c.cell.column.as_str())).collect();
        assert_eq!(listed, [(13, "x"), (13, "c"), (12, "x")]);
        assert!(rows[0].cells.iter().any(|c| c.value == "v" && c.certainty == "60 % sure"), "{rows:?}");
    }
    #[test]
    fn without_distributions_the_first_filled_cells_are_listed() {
        let (table, filled) = tables();
        let cells = first_cells(&table, &filled, &[vec![11, 12], vec![12]]);
        let listed: Vec<(usize, &str, &str)> =
            cells.iter().map(|c| (c.row, c.cell.column.as_str(), c.cell.value.as_str())).collect();
        assert_eq!(listed, [(12, "x", "5"), (13, "x", "5"), (13, "c", "v")]);
    }
}
