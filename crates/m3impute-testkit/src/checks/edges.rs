//! Tables at the edge: constant, empty, of one row or column, complete, all alike.

use crate::subject::{SEED, build, check_complete, check_same, check_untouched, ensure, impute, impute_with, run};
use crate::tables::{self, ROWS, columns_of, select_columns};
use m3impute_core::{Column, ColumnSpec, Error, FinishChoice, Kind, MethodSpec, Schema, Settings, Table};

/// A column with one value is filled with it.
pub fn a_constant_column_is_filled_with_its_value(spec: &'static MethodSpec) {
    let mut table = tables::mixed(ROWS, 20);
    for (j, value) in [(1, 12.5), (2, 40.0), (3, 1.0)] {
        (0..ROWS).filter(|i| i % 3 != 0).for_each(|i| table.fill(i, j, value));
        (0..ROWS).filter(|i| i % 3 == 0).for_each(|i| table.hide(i, j));
    }
    let filled = impute(spec, &table).table;
    check_complete(spec, &filled, "in a table with constant columns");
    for (j, value) in [(1, 12.5_f64), (2, 40.0), (3, 1.0)] {
        for i in 0..ROWS {
            let got = filled.number(i, j);
            ensure!((got - value).abs() <= 1e-6 * value, spec, "a column of {value} only is filled with {got}");
        }
    }
}

/// A column without an observed value is left as it is and listed; zeros are filled in on request.
pub fn an_empty_column_is_left_and_listed(spec: &'static MethodSpec) {
    let mut table = tables::mixed(ROWS, 21);
    for j in [0, 3] {
        (0..ROWS).for_each(|i| table.hide(i, j));
    }
    let imputation = impute(spec, &table);
    for (j, name) in [(0, "x"), (3, "colour")] {
        ensure!(imputation.table.missing_in(j) == ROWS, spec, "the empty column `{name}` is filled");
        let listed = imputation.fallbacks.iter().any(|f| f.column == name && f.cells == ROWS);
        ensure!(listed, spec, "the empty column `{name}` is not listed");
    }
    let rest = select_columns(&imputation.table, &[1, 2, 4, 5, 6]);
    check_complete(spec, &rest, "beside empty columns");

    let finish = FinishChoice { zero_empty: true, ..FinishChoice::default() };
    let filled = impute_with(spec, &Settings { finish, ..Settings::default() }, &table, &mut run(SEED, 1)).table;
    ensure!((0..ROWS).all(|i| filled.number(i, 0) == 0.0), spec, "the empty column `x` is not filled with zeros");
}

/// A table without a single observed cell comes back as it is.
pub fn an_empty_table_of_cells_is_left(spec: &'static MethodSpec) {
    let mut table = tables::complete(5, 22);
    for j in 0..table.cols() {
        (0..5).for_each(|i| table.hide(i, j));
    }
    let imputation = impute(spec, &table);
    check_same(spec, &table, &imputation.table, "though nothing is observed");
    ensure!(imputation.fallbacks.len() == table.cols(), spec, "{:?} are listed", imputation.fallbacks);
}

/// A row without an observed cell is filled like others.
pub fn an_empty_row_is_filled(spec: &'static MethodSpec) {
    let mut table = tables::mixed(ROWS, 23);
    for i in [0, 31] {
        (0..table.cols()).for_each(|j| table.hide(i, j));
    }
    check_complete(spec, &impute(spec, &table).table, "in a table with empty rows");
}

/// One row: its missing cells have no observed value in their columns, and are left; two rows are filled.
pub fn one_row_is_no_trouble(spec: &'static MethodSpec) {
    let mut one = tables::complete(1, 24);
    one.hide(0, 0);
    one.hide(0, 3);
    let filled = impute(spec, &one).table;
    ensure!(filled.missing_in(0) == 1 && filled.missing_in(3) == 1, spec, "a value comes out of nothing");
    let mut two = tables::complete(2, 24);
    (0..two.cols()).for_each(|j| two.hide(j % 2, j));
    check_complete(spec, &impute(spec, &two).table, "in a table of two rows");
}

/// One column, of every kind.
pub fn one_column_is_no_trouble(spec: &'static MethodSpec) {
    for (j, name) in tables::NAMES.iter().enumerate() {
        let mut table = select_columns(&tables::complete(ROWS, 25), &[j]);
        (0..ROWS).filter(|i| i % 4 == 0).for_each(|i| table.hide(i, 0));
        check_complete(spec, &impute(spec, &table).table, &format!("where `{name}` is the only column"));
    }
}

/// A table without missing cells comes back, and nothing is listed.
pub fn a_complete_table_comes_back(spec: &'static MethodSpec) {
    let table = tables::complete(ROWS, 26);
    let imputation = impute(spec, &table);
    check_same(spec, &table, &imputation.table, "though nothing is missing");
    ensure!(imputation.fallbacks.is_empty(), spec, "{:?} are listed, though nothing is missing", imputation.fallbacks);
}

/// Three rows, twenty times each.
pub fn duplicate_rows_are_no_trouble(spec: &'static MethodSpec) {
    let rows: Vec<usize> = (0..ROWS).map(|i| i % 3).collect();
    let table = tables::with_missing(tables::complete(3, 27).select_rows(&rows), 0.2, 27);
    check_complete(spec, &impute(spec, &table).table, "in a table of duplicate rows");
    let all_alike = tables::with_missing(tables::complete(1, 28).select_rows(&[0; 20]), 0.3, 28);
    check_complete(spec, &impute(spec, &all_alike).table, "in a table whose rows are all alike");
}

/// A single observed cell in each column.
pub fn few_observed_cells_are_no_trouble(spec: &'static MethodSpec) {
    let mut table = tables::complete(10, 29);
    for j in 0..table.cols() {
        (0..10).filter(|&i| i != j).for_each(|i| table.hide(i, j));
    }
    check_complete(spec, &impute(spec, &table).table, "where each column has one observed cell");
}

/// Columns that are multiples of each other: no matrix of theirs can be inverted.
pub fn collinear_columns_are_no_trouble(spec: &'static MethodSpec) {
    let base = tables::complete(ROWS, 65);
    let names = ["one", "double", "shifted", "negative"];
    let factors = [(1.0, 0.0), (2.0, 0.0), (1.0, 1e6), (-1.0, 0.0)];
    let specs = names.map(|name| ColumnSpec::new(name, Kind::Continuous)).to_vec();
    let columns =
        factors.map(|(a, b)| Column::from_numbers((0..ROWS).map(|i| a * base.number(i, 0) + b).collect())).to_vec();
    let table = Table::new(Schema::new(specs).expect("names differ"), columns).expect("columns fit");
    let table = tables::with_missing(table, 0.2, 65);
    check_complete(spec, &impute(spec, &table).table, "among collinear columns");
}

/// A category as long as the table.
pub fn a_level_of_its_own_for_every_row_is_no_trouble(spec: &'static MethodSpec) {
    let table = tables::complete(ROWS, 66);
    let mut specs = Vec::from(table.schema().clone());
    specs[3].levels = (0..ROWS).map(|i| format!("level {i}")).collect();
    let mut columns = columns_of(&table);
    columns[3] = Column::from_codes((0..ROWS as u32).collect());
    let table = Table::new(Schema::new(specs).expect("names differ"), columns).expect("columns fit");
    let table = tables::with_missing(table, 0.2, 66);
    check_complete(spec, &impute(spec, &table).table, "where every row has a level of its own");
}

/// Numbers whose squares and sums are no numbers any more: a complete table or an error, never a panic.
pub fn extreme_numbers_are_filled_or_refused(spec: &'static MethodSpec) {
    let denormal = f64::from_bits(7);
    // One number in `every` is as large as that, or as small.
    for (size, every) in [(denormal, 1), (1e-300, 1), (1e150, 1), (1e300, 1), (f64::MAX, 1), (1e308, 30), (denormal, 3)]
    {
        let mut table = tables::mixed(ROWS, 67);
        for i in (0..ROWS).filter(|i| i % every == 0 && table.observed().get(*i, 0)).collect::<Vec<_>>() {
            table.fill(i, 0, if i % 2 == 0 { size } else { -size / (i as f64) });
        }
        match build(spec, &Settings::default()).impute(&table, &mut run(SEED, 1)) {
            Ok(imputation) => {
                check_untouched(spec, &table, &imputation.table);
                check_complete(spec, &imputation.table, &format!("beside numbers of size {size}"));
            }
            Err(error) => {
                let named = matches!(&error, Error::Extreme { column } if column == "x");
                ensure!(named || matches!(error, Error::NotFinite { .. }), spec, "numbers of size {size} give {error}");
            }
        }
    }
}

/// No rows or no columns: an error, not a crash.
pub fn a_table_without_rows_is_refused(spec: &'static MethodSpec) {
    let no_rows = tables::complete(3, 0).select_rows(&[]);
    let no_columns =
        Table::new(Schema::new(Vec::new()).expect("no name twice"), Vec::<Column>::new()).expect("no column");
    for table in [no_rows, no_columns] {
        let outcome = build(spec, &Settings::default()).impute(&table, &mut run(SEED, 1));
        ensure!(matches!(outcome, Err(Error::EmptyTable { .. })), spec, "an empty table gives {outcome:?}");
    }
}
