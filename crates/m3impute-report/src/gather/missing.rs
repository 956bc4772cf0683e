//! Facts about missing cells.

use super::filled_rows;
use crate::facts::{ColumnMissing, Matrix, Missing, Pattern};
use m3impute_core::Table;
use std::collections::HashMap;

/// Columns that are listed.
const COLUMNS: usize = 80;
/// Patterns that are listed, and columns that are named in each.
const PATTERNS: usize = 12;
const NAMED: usize = 10;
/// Groups of rows and of columns in the picture.
const ROW_GROUPS: usize = 80;
const COLUMN_GROUPS: usize = 60;

pub(super) fn gather(table: &Table, filled: &Table) -> Missing {
    let specs = table.schema().columns();
    let counts: Vec<usize> = (0..table.cols()).map(|j| table.missing_in(j)).collect();
    let mut order: Vec<usize> = (0..table.cols()).filter(|&j| counts[j] > 0).collect();
    let incomplete_columns = order.len();
    order.sort_by_key(|&j| std::cmp::Reverse(counts[j]));
    let by_column = order.iter().take(COLUMNS).map(|&j| ColumnMissing {
        name: specs[j].name.clone(),
        kind: specs[j].kind,
        missing: counts[j],
        filled: filled_rows(table, filled, j).len(),
    });
    let partial: Vec<usize> = order.iter().copied().filter(|&j| counts[j] < table.rows()).collect();
    let (patterns, all_patterns, pattern_rows) = patterns(table, &partial);
    // A column without a single value is missing in every row.
    let incomplete_rows = if partial.len() < order.len() { table.rows() } else { pattern_rows };
    Missing {
        rows: table.rows(),
        columns: table.cols(),
        cells: counts.iter().sum(),
        incomplete_rows,
        incomplete_columns,
        by_column: by_column.collect(),
        matrix: matrix(table),
        patterns,
        all_patterns,
        empty_columns: order.len() - partial.len(),
    }
}

/// The most frequent patterns of these columns, how many there are, and how many rows have one. Patterns are compared by
/// a hash of the missing cells, so that wide tables do not take memory for each pattern.
fn patterns(table: &Table, columns: &[usize]) -> (Vec<Pattern>, usize, usize) {
    let mut keys = vec![0_u64; table.rows()];
    for &j in columns {
        let own = mixed(j as u64 + 1);
        for (key, observed) in keys.iter_mut().zip(table.observed().column(j)) {
            *key ^= if *observed { 0 } else { own };
        }
    }
    let mut found: HashMap<u64, (usize, usize)> = HashMap::new(); // first row, rows
    for (row, &key) in keys.iter().enumerate().filter(|(_, key)| **key != 0) {
        found.entry(key).or_insert((row, 0)).1 += 1;
    }
    let mut order: Vec<(usize, usize)> = found.into_values().collect();
    let (all, rows) = (order.len(), order.iter().map(|(_, rows)| rows).sum());
    order.sort_by_key(|&(first, rows)| (std::cmp::Reverse(rows), first));
    let specs = table.schema().columns();
    let listed = order.into_iter().take(PATTERNS).map(|(first, rows)| {
        let mut missing: Vec<usize> = columns.iter().copied().filter(|&j| !table.observed().get(first, j)).collect();
        missing.sort_unstable();
        let names = missing.iter().take(NAMED).map(|&j| specs[j].name.clone()).collect();
        Pattern { names, columns: missing.len(), rows }
    });
    (listed.collect(), all, rows)
}

/// A number whose bits depend on all bits of another (splitmix64).
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

fn matrix(table: &Table) -> Matrix {
    let rows = groups(table.rows(), ROW_GROUPS);
    let columns = groups(table.cols(), COLUMN_GROUPS);
    let (high, wide) = (rows.len() - 1, columns.len() - 1);
    let mut shares = vec![0.0_f32; high * wide];
    for (c, ends) in columns.windows(2).enumerate() {
        for j in ends[0]..ends[1] {
            let observed = table.observed().column(j);
            for (r, ends) in rows.windows(2).enumerate() {
                let missing = observed[ends[0]..ends[1]].iter().filter(|&&o| !o).count();
                shares[r * wide + c] += missing as f32;
            }
        }
        for (r, row_ends) in rows.windows(2).enumerate() {
            shares[r * wide + c] /= ((row_ends[1] - row_ends[0]) * (ends[1] - ends[0])) as f32;
        }
    }
    let alone = wide == table.cols();
    let names = table.schema().columns().iter().filter(|_| alone).map(|c| c.name.clone()).collect();
    Matrix { rows, columns, names, shares }
}

/// The beginnings of at most `most` groups of equal size, and the end.
fn groups(all: usize, most: usize) -> Vec<usize> {
    let taken = all.min(most);
    (0..=taken).map(|at| (at * all).checked_div(taken).unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::{Column, ColumnSpec, Kind, Schema};

    fn table(columns: &[Vec<Option<f64>>]) -> Table {
        let specs = (0..columns.len()).map(|j| ColumnSpec::new(format!("c{j}"), Kind::Continuous)).collect();
        let columns = columns.iter().map(|c| Column::numbers(c.iter().copied())).collect();
        Table::new(Schema::new(specs).unwrap(), columns).unwrap()
    }

    #[test]
    fn missing_cells_are_counted_by_column_and_together() {
        let (x, o) = (Some(1.0), None);
        let table = table(&[vec![x, o, o, o], vec![x, o, o, x], vec![x, x, x, x]]);
        let missing = gather(&table, &table);
        assert_eq!((missing.cells, missing.incomplete_rows, missing.incomplete_columns), (5, 3, 2));
        assert_eq!((missing.by_column[0].name.as_str(), missing.by_column[0].missing), ("c0", 3));
        assert_eq!(
            (missing.patterns[0].names.as_slice(), missing.patterns[0].rows),
            (&["c0".into(), "c1".into()][..], 2)
        );
        assert_eq!((missing.patterns[1].rows, missing.all_patterns), (1, 2));
        assert_eq!(missing.matrix.shares[..6], [0.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
    }

    #[test]
    fn a_column_without_a_value_is_no_part_of_any_pattern() {
        let (x, o) = (Some(1.0), None);
        let table = table(&[vec![o, o, o], vec![x, o, x]]);
        let missing = gather(&table, &table);
        assert_eq!((missing.incomplete_rows, missing.empty_columns, missing.all_patterns), (3, 1, 1));
        assert_eq!((missing.patterns[0].names.as_slice(), missing.patterns[0].rows), (&["c1".to_owned()][..], 1));
    }

    #[test]
    fn the_picture_has_a_bounded_size() {
        let wide: Vec<Vec<Option<f64>>> =
            (0..130).map(|_| (0..200).map(|i| (i % 2 == 0).then_some(1.0)).collect()).collect();
        let matrix = matrix(&table(&wide));
        assert_eq!(
            (matrix.rows.len(), matrix.columns.len(), matrix.names.len()),
            (ROW_GROUPS + 1, COLUMN_GROUPS + 1, 0)
        );
        assert_eq!((matrix.rows[ROW_GROUPS], matrix.columns[COLUMN_GROUPS]), (200, 130));
        assert!(matrix.shares.iter().all(|s| (0.3..0.7).contains(s)));
    }

    #[test]
    fn a_table_without_rows_has_an_empty_picture() {
        let missing = gather(&table(&[vec![]]), &table(&[vec![]]));
        assert_eq!((missing.matrix.shares.len(), missing.cells), (0, 0));
    }
}
