//! Fitted once, used on new rows. A method that is not inductive passes.

use crate::subject::{SEED, check_complete, check_same, check_untouched, ensure, fit, run, transform, transform_on};
use crate::tables::{self, ROWS, columns_of, select_columns};
use m3impute_core::{Cancel, Column, Error, MethodSpec, Schema, Table};

/// An inductive method can be fitted, and its model has the table's columns.
pub fn what_is_inductive_can_be_fitted(spec: &'static MethodSpec) {
    let table = tables::mixed(ROWS, 40);
    match fit(spec, &table) {
        Some(fitted) => {
            ensure!(fitted.schema() == table.schema(), spec, "the model has other columns than the table")
        }
        None => ensure!(!spec.inductive, spec, "it claims to be inductive, but cannot be fitted"),
    }
}

/// New rows are filled, and their observed cells untouched.
pub fn transform_keeps_the_contract(spec: &'static MethodSpec) {
    let Some(fitted) = fit(spec, &tables::mixed(ROWS, 41)) else { return };
    let mut rows = tables::mixed(20, 42);
    (0..rows.cols()).for_each(|j| rows.hide(11, j));
    check_complete(spec, &transform(spec, fitted.as_ref(), &rows).table, "in new rows");
    let none = transform(spec, fitted.as_ref(), &rows.select_rows(&[]));
    ensure!(none.table.rows() == 0, spec, "no rows become {}", none.table.rows());
}

/// A row of numbers as large as there are is filled somehow, and the other rows as without it.
pub fn an_extreme_row_does_not_fail_the_others(spec: &'static MethodSpec) {
    let Some(fitted) = fit(spec, &tables::mixed(ROWS, 68)) else { return };
    let mut rows = tables::mixed(9, 69);
    let others = [0, 1, 2, 3, 5, 6, 7, 8];
    let alone = transform(spec, fitted.as_ref(), &rows.select_rows(&others)).table;
    for value in [f64::MAX, -1e308, 1e200, f64::from_bits(1)] {
        rows.hide(4, 2);
        [0, 1, 6].into_iter().for_each(|j| rows.fill(4, j, value));
        let filled = transform(spec, fitted.as_ref(), &rows).table;
        check_complete(spec, &filled, &format!("beside a row of {value:e}"));
        check_same(spec, &alone, &filled.select_rows(&others), &format!("beside a row of {value:e}"));
    }
}

/// Rows in reverse order are filled with the same values.
pub fn row_order_does_not_matter(spec: &'static MethodSpec) {
    let Some(fitted) = fit(spec, &tables::mixed(ROWS, 43)) else { return };
    let rows = tables::mixed(23, 44);
    let turned: Vec<usize> = (0..23).rev().collect();
    let there = transform(spec, fitted.as_ref(), &rows).table;
    let back = transform(spec, fitted.as_ref(), &rows.select_rows(&turned)).table.select_rows(&turned);
    check_same(spec, &there, &back, "in another order of rows");
}

/// One row at a time, seven, or all at once.
pub fn batch_size_does_not_matter(spec: &'static MethodSpec) {
    let Some(fitted) = fit(spec, &tables::mixed(ROWS, 45)) else { return };
    let rows = tables::mixed(23, 46);
    let all = transform(spec, fitted.as_ref(), &rows).table;
    for size in [1, 7] {
        for batch in (0..23).collect::<Vec<_>>().chunks(size) {
            let some = transform(spec, fitted.as_ref(), &rows.select_rows(batch)).table;
            check_same(spec, &all.select_rows(batch), &some, &format!("in batches of {size}"));
        }
    }
}

/// One, two and three threads.
pub fn threads_do_not_matter_to_transform(spec: &'static MethodSpec) {
    let Some(fitted) = fit(spec, &tables::mixed(ROWS, 47)) else { return };
    let rows = tables::mixed(40, 48);
    let [one, two, three] = [1, 2, 3].map(|threads| transform_on(spec, fitted.as_ref(), &rows, threads).table);
    check_same(spec, &one, &two, "on two threads");
    check_same(spec, &one, &three, "on three threads");
}

/// Every column in turn is complete in training and missing in the new rows.
pub fn a_column_missing_only_at_transform_is_filled(spec: &'static MethodSpec) {
    let mut table = tables::mixed(ROWS, 49);
    let complete = tables::complete(ROWS, 49);
    for j in [0, 3] {
        (0..ROWS).for_each(|i| table.fill(i, j, complete.number(i, j)));
    }
    for training in [table, complete] {
        let Some(fitted) = fit(spec, &training) else { return };
        for j in 0..training.cols() {
            let mut rows = tables::complete(6, 50);
            (0..6).for_each(|i| rows.hide(i, j));
            let situation = format!("where `{}` is missing in new rows", tables::NAMES[j]);
            check_complete(spec, &transform(spec, fitted.as_ref(), &rows).table, &situation);
        }
    }
}

/// A level that was never seen comes back as it is, and its row is filled.
pub fn an_unseen_level_is_taken_as_missing(spec: &'static MethodSpec) {
    let Some(fitted) = fit(spec, &tables::mixed(ROWS, 51)) else { return };
    let rows = tables::complete(6, 52);
    let mut specs = Vec::from(rows.schema().clone());
    specs[3].levels = vec!["violet".to_owned(), "blue".to_owned()];
    let mut columns = columns_of(&rows);
    columns[3] = Column::codes([Some(0), Some(0), None, Some(1), None, Some(0)]);
    columns[0] = Column::numbers([None, Some(0.5), Some(0.1), None, None, None]);
    let rows = Table::new(Schema::new(specs).expect("names differ"), columns).expect("columns fit");
    let filled = transform(spec, fitted.as_ref(), &rows).table;
    check_complete(spec, &filled, "beside a level that was never seen");
    let level = |i: usize| filled.schema().columns()[3].levels[filled.number(i, 3) as usize].as_str();
    ensure!(level(0) == "violet" && level(3) == "blue", spec, "a level that was never seen changes");
    for i in [2, 4] {
        let learnt = ["red", "green", "blue"].contains(&level(i));
        ensure!(learnt, spec, "a missing cell is filled with `{}`, an unknown level", level(i));
    }
}

/// Columns are matched by their names.
pub fn columns_may_stand_in_another_order(spec: &'static MethodSpec) {
    let Some(fitted) = fit(spec, &tables::mixed(ROWS, 53)) else { return };
    let rows = tables::mixed(12, 54);
    let turned: Vec<usize> = (0..rows.cols()).rev().collect();
    let there = transform(spec, fitted.as_ref(), &rows).table;
    let back = transform(spec, fitted.as_ref(), &select_columns(&rows, &turned)).table;
    check_same(spec, &there, &select_columns(&back, &turned), "in another order of columns");
}

/// Rows without a column of the model are refused, and the column is named.
pub fn a_missing_column_is_named(spec: &'static MethodSpec) {
    let Some(fitted) = fit(spec, &tables::mixed(ROWS, 55)) else { return };
    let rows = select_columns(&tables::mixed(5, 56), &[0, 1, 3, 4, 5, 6]);
    let outcome = fitted.transform(&rows, &mut run(SEED, 1));
    let named = matches!(&outcome, Err(Error::ColumnNotThere { column, .. }) if column == "count");
    ensure!(named, spec, "rows without `count` give {outcome:?}");
}

/// A run that is cancelled before it starts ends with that, in fit and in transform.
pub fn cancel_is_honoured_by_transform(spec: &'static MethodSpec) {
    let Some(fitted) = fit(spec, &tables::mixed(ROWS, 57)) else { return };
    let cancel = Cancel::default();
    cancel.cancel();
    let rows = tables::mixed(20, 58);
    let outcome = fitted.transform(&rows, &mut run(SEED, 1).cancelled_by(cancel));
    if let Ok(imputation) = &outcome {
        check_untouched(spec, &rows, &imputation.table);
    }
    ensure!(matches!(outcome, Err(Error::Cancelled)), spec, "a cancelled transform ends with {outcome:?}");
}
