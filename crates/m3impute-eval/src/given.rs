//! Holes that are given in a file: a line a row, a character a cell, `1` where the cell stays and `0` where it is hidden.

use m3impute_core::{Error, Observed, Result, Role, Table};

/// Reads which cells stay. Spaces, tabs and commas between cells are skipped, and so are empty lines.
///
/// ```
/// let shown = m3impute_eval::given::parse("101\n111\n")?;
/// assert_eq!((shown.rows(), shown.cols(), shown.count()), (2, 3, 5));
/// # Ok::<(), m3impute_core::Error>(())
/// ```
///
/// # Errors
/// When a character is neither `0` nor `1`, lines differ in length, or there is none; the error says where.
pub fn parse(text: &str) -> Result<Observed> {
    let mut lines: Vec<Vec<bool>> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let mut cells = Vec::new();
        for (column, c) in line.chars().enumerate() {
            match c {
                '0' | '1' => cells.push(c == '1'),
                ' ' | '\t' | ',' | '\r' | '\u{feff}' => {}
                other => {
                    let what = format!("given holes, line {}, column {}", at + 1, column + 1);
                    return Err(mismatch(&what, "`0` or `1`", other));
                }
            }
        }
        if let Some(first) = lines.first()
            && !cells.is_empty()
            && cells.len() != first.len()
        {
            let what = format!("given holes, line {}", at + 1);
            return Err(mismatch(&what, &format!("{} cells as in the first line", first.len()), cells.len()));
        }
        if !cells.is_empty() {
            lines.push(cells);
        }
    }
    let Some(first) = lines.first() else { return Err(mismatch("given holes", "a line a row", "nothing")) };
    let mut shown = Observed::all(lines.len(), first.len());
    for (i, line) in lines.iter().enumerate() {
        line.iter().enumerate().for_each(|(j, &cell)| shown.set(i, j, cell));
    }
    Ok(shown)
}

/// The truth and the given holes as tables of one shape.
///
/// Where the holes have one column fewer than the truth, its last column is the target of another task: it is set
/// aside, so that no method sees or fills it.
///
/// # Errors
/// When rows or columns do not match in another way.
pub fn align(truth: Table, shown: &Observed) -> Result<(Table, Observed)> {
    let (n, m) = (truth.rows(), truth.cols());
    if shown.rows() != n {
        return Err(mismatch("rows of the given holes", &format!("{n} as in the table"), shown.rows()));
    }
    if shown.cols() == m {
        return Ok((truth, shown.clone()));
    }
    if shown.cols() + 1 != m {
        let expected = format!("{m} as in the table, or {} where its last column is set aside", m.saturating_sub(1));
        return Err(mismatch("columns of the given holes", &expected, shown.cols()));
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

    #[test]
    fn a_target_behind_the_last_column_is_set_aside() {
        let shown = parse("01\n11\n").unwrap();
        let (truth, wide) = align(table(3), &shown).unwrap();
        assert!(!truth.schema().columns()[2].is_used() && truth.schema().columns()[1].is_filled());
        assert_eq!((wide.cols(), wide.count(), wide.get(0, 0)), (3, 5, false));
    }

    #[test]
    fn holes_of_the_same_shape_are_taken_as_they_are() {
        let shown = parse("0 1\r\n1,1\r\n\r\n").unwrap();
        assert_eq!(align(table(2), &shown).unwrap(), (table(2), shown));
    }

    #[test]
    fn other_shapes_and_characters_are_errors_with_their_place() {
        let message = |outcome: Result<_>| outcome.map(|_: (Table, Observed)| ()).unwrap_err().to_string();
        let three_rows = Observed::all(3, 2);
        assert_eq!(
            message(align(table(2), &three_rows)),
            "rows of the given holes: expected 2 as in the table, got `3`"
        );
        assert_eq!(
            message(align(table(4), &Observed::all(2, 2))),
            "columns of the given holes: expected 4 as in the table, or 3 where its last column is set aside, got `2`"
        );
        let error = |text| parse(text).unwrap_err().to_string();
        assert_eq!(error("11\n1x\n"), "given holes, line 2, column 2: expected `0` or `1`, got `x`");
        assert_eq!(error("11\n1\n"), "given holes, line 2: expected 2 cells as in the first line, got `1`");
        assert_eq!(error("\n"), "given holes: expected a line a row, got `nothing`");
    }
}
