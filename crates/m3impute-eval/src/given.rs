//! Hidden cells that are given, rather than drawn.

use m3impute_core::{Error, Observed, Result, Role, Table};

/// The truth and the given hidden cells as tables of one shape.
///
/// Where the given cells have one column fewer than the truth, its last column is the target of another task: it is set
/// aside, so that no method sees or fills it.
///
/// # Errors
/// When rows or columns do not match in another way.
pub fn align(truth: Table, shown: &Observed) -> Result<(Table, Observed)> {
    let (n, m) = (truth.rows(), truth.cols());
    if shown.rows() != n {
        return Err(mismatch("rows of the given hidden cells", &format!("{n} as in the table"), shown.rows()));
    }
    if shown.cols() == m {
        return Ok((truth, shown.clone()));
    }
    if shown.cols() + 1 != m {
        let expected = format!("{m} as in the table, or {} where its last column is set aside", m.saturating_sub(1));
        return Err(mismatch("columns of the given hidden cells", &expected, shown.cols()));
    }
    let mut wide = Observed::all(n, m);
    for j in 0..shown.cols() {
        (0..n).for_each(|i| wide.set(i, j, shown.get(i, j)));
    }
    let mut schema = truth.schema().clone();
    schema.column_mut(m - 1).role = Role::Ignore;
    Ok((truth.with_schema(schema)?, wide))
}

fn mismatch(what: &str, expected: &str, got: impl std::fmt::Display) -> Error {
    Error::Request { what: what.to_owned(), expected: expected.to_owned(), got: got.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::{Column, ColumnSpec, Kind, Schema};

    fn table(cols: usize) -> Table {
        let specs = (0..cols).map(|j| ColumnSpec::new(format!("x{j}"), Kind::Continuous)).collect();
        let columns = (0..cols).map(|_| Column::from_numbers(vec![1.0, 2.0])).collect();
        Table::new(Schema::new(specs).unwrap(), columns).unwrap()
    }

    /// Two rows and two columns; the first cell is hidden.
    fn first_hidden() -> Observed {
        let mut shown = Observed::all(2, 2);
        shown.set(0, 0, false);
        shown
    }

    #[test]
    fn a_target_behind_the_last_column_is_set_aside() {
        let (truth, wide) = align(table(3), &first_hidden()).unwrap();
        assert!(!truth.schema().columns()[2].is_used() && truth.schema().columns()[1].is_filled());
        assert_eq!((wide.cols(), wide.count(), wide.get(0, 0)), (3, 5, false));
    }

    #[test]
    fn hidden_cells_of_the_same_shape_are_taken_as_they_are() {
        assert_eq!(align(table(2), &first_hidden()).unwrap(), (table(2), first_hidden()));
    }

    #[test]
    fn other_shapes_are_errors_that_name_both() {
        let message = |outcome: Result<_>| outcome.map(|_: (Table, Observed)| ()).unwrap_err().to_string();
        let three_rows = Observed::all(3, 2);
        assert_eq!(
            message(align(table(2), &three_rows)),
            "rows of the given hidden cells: expected 2 as in the table, got `3`"
        );
        assert_eq!(
            message(align(table(4), &Observed::all(2, 2))),
            "columns of the given hidden cells: expected 4 as in the table, or 3 where its last column is set aside, got `2`"
        );
    }
}
