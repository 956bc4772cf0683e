//! Explanations. A method that is not inductive passes.

use crate::subject::{SEED, check_same, ensure, fit, run, saved, transform};
use crate::tables::{self, ROWS};
use m3impute_core::{CellValue, Error, Explanation, FittedImputer, Kind, MethodSpec, Table};

/// A difference of two numbers has lost their last digits.
const ROUNDING: f64 = 1e-6;

/// The filled value is that of `transform`, and what it would be without a cell is that of the same row without it.
pub fn an_explanation_is_what_transform_does(spec: &'static MethodSpec) {
    let Some((fitted, rows, all)) = explained(spec, 90) else { return };
    let filled = transform(spec, fitted.as_ref(), &rows).table;
    ensure!(!all.is_empty(), spec, "nothing is explained");
    for explanation in &all {
        let (row, column) = (explanation.row, explanation.column);
        check_value(spec, &filled, (row, column), &explanation.filled, "as it is");
        let shown = (0..rows.cols()).filter(|&j| rows.observed().get(row, j)).count();
        ensure!(
            explanation.influences.len() == shown,
            spec,
            "{} cells are hidden of {shown} in row {}",
            explanation.influences.len(),
            row + 1
        );
        for influence in &explanation.influences {
            let mut hidden = rows.select_rows(&[row]);
            let is_value = value(&rows, (row, influence.column)) == influence.value;
            ensure!(is_value, spec, "`{}` has the value {:?}", influence.name, influence.value);
            hidden.hide(0, influence.column);
            let without = transform(spec, fitted.as_ref(), &hidden).table;
            check_value(spec, &without, (0, column), &influence.without, &format!("without `{}`", influence.name));
            let Some(change) = influence.change else { continue };
            // Before rounding, so within one step of the difference of the fills.
            let moved = without.number(0, column) - filled.number(row, column);
            let step = rows.schema().columns()[column].step.max(ROUNDING * moved.abs());
            ensure!(
                (change - moved).abs() <= step + ROUNDING * filled.number(row, column).abs(),
                spec,
                "without `{}`, `{}` moves by {moved}, and is said to by {change}",
                influence.name,
                explanation.name
            );
        }
        let sizes: Vec<f64> = explanation.influences.iter().filter_map(|i| i.change).map(f64::abs).collect();
        ensure!(
            sizes.windows(2).all(|s| s[0] >= s[1]),
            spec,
            "influences are not in the order of their size: {sizes:?}"
        );
        let weights: f64 = explanation.members.iter().map(|m| m.weight).sum();
        let are_shares = explanation.members.is_empty() || (weights - 1.0).abs() < 1e-4;
        ensure!(are_shares, spec, "the weights of members add up to {weights}");
        let has_levels = explanation.kind.has_levels();
        let total: f64 = explanation.probabilities.iter().map(|(_, p)| p).sum();
        let has_them = !explanation.probabilities.is_empty();
        ensure!(!has_them || (total - 1.0).abs() < 1e-3, spec, "probabilities add up to {total}");
        let is_certain =
            if has_levels && explanation.kind != Kind::Ordered { has_them } else { explanation.interval.is_some() };
        ensure!(
            is_certain == fitted.has_distributions(),
            spec,
            "`{}` has neither an interval nor probabilities, or has them without distributions",
            explanation.name
        );
    }
}

/// Explaining changes neither the model nor what it fills, and the same is said twice, on any number of threads and in a
/// table of other rows.
pub fn an_explanation_changes_nothing_and_repeats(spec: &'static MethodSpec) {
    let Some(fitted) = fit(spec, &tables::mixed(ROWS, 92)) else { return };
    let rows = tables::mixed(9, 93);
    let (before, file) = (transform(spec, fitted.as_ref(), &rows).table, saved(spec, fitted.as_ref()));
    let cells = missing(&rows, 4);
    let first = explain(spec, fitted.as_ref(), &rows, &cells, 1);
    check_same(spec, &before, &transform(spec, fitted.as_ref(), &rows).table, "after explaining");
    ensure!(file == saved(spec, fitted.as_ref()), spec, "the model is another after explaining");
    ensure!(first == explain(spec, fitted.as_ref(), &rows, &cells, 2), spec, "threads change an explanation");
    let alone = rows.select_rows(&[cells[0].0]);
    let mut again = explain(spec, fitted.as_ref(), &alone, &[(0, cells[0].1)], 1);
    again[0].row = cells[0].0;
    ensure!(again[0] == first[0], spec, "another table changes an explanation: {:?} and {:?}", first[0], again[0]);
}

/// A cell that is observed, and a row that is not there, are errors.
pub fn only_missing_cells_are_explained(spec: &'static MethodSpec) {
    let Some(fitted) = fit(spec, &tables::mixed(ROWS, 94)) else { return };
    let rows = tables::complete(3, 95);
    let error = |cell| fitted.explain(&rows, &[cell], &run(SEED, 1)).expect_err("an error");
    ensure!(matches!(error((1, 1)), Error::NotMissing { .. }), spec, "an observed cell is explained");
    ensure!(matches!(error((3, 1)), Error::Request { .. }), spec, "a row that is not there is explained");
    ensure!(
        fitted.explain(&rows, &[], &run(SEED, 1)).is_ok_and(|all| all.is_empty()),
        spec,
        "no cells have explanations"
    );
}

/// A model that keeps rows of its table names them, and no more than there were.
pub fn a_row_that_is_kept_is_on_the_card(spec: &'static MethodSpec) {
    let Some(fitted) = fit(spec, &tables::mixed(ROWS, 96)) else { return };
    for kept in fitted.kept_rows() {
        let is_sound = (1..=ROWS).contains(&kept.rows) && !kept.what.is_empty() && !kept.columns.is_empty();
        ensure!(is_sound, spec, "it keeps {kept:?}");
    }
}

/// A fitted model, new rows, and explanations of some of their missing cells.
fn explained(spec: &'static MethodSpec, seed: u64) -> Option<(Box<dyn FittedImputer>, Table, Vec<Explanation>)> {
    let fitted = fit(spec, &tables::mixed(ROWS, seed))?;
    let rows = tables::mixed(8, seed + 1);
    let all = explain(spec, fitted.as_ref(), &rows, &missing(&rows, 5), 1);
    Some((fitted, rows, all))
}

fn explain(
    spec: &'static MethodSpec,
    fitted: &dyn FittedImputer,
    rows: &Table,
    cells: &[(usize, usize)],
    threads: usize,
) -> Vec<Explanation> {
    let all = fitted.explain(rows, cells, &run(SEED, threads));
    all.unwrap_or_else(|e| panic!("method `{}`: cannot explain {} cells: {e}", spec.name, cells.len()))
}

/// Missing cells of a table, at most so many, of different columns where there are.
fn missing(rows: &Table, most: usize) -> Vec<(usize, usize)> {
    let first = |j: usize| (0..rows.rows()).find(|&i| !rows.observed().get(i, j)).map(|i| (i, j));
    (0..rows.cols()).filter_map(first).take(most).collect()
}

fn value(table: &Table, (row, column): (usize, usize)) -> CellValue {
    let spec = &table.schema().columns()[column];
    match table.number(row, column) {
        code if spec.kind.has_levels() => CellValue::Level(spec.levels[code as usize].clone()),
        number => CellValue::Number(number),
    }
}

fn check_value(spec: &'static MethodSpec, table: &Table, cell: (usize, usize), said: &CellValue, situation: &str) {
    let want = value(table, cell);
    ensure!(
        want == *said,
        spec,
        "column {}, row {}, is filled with {want:?} and explained as {said:?} {situation}",
        cell.1,
        cell.0 + 1
    );
}
