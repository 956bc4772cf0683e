//! Predictive distributions. A method without distributions passes, if the registry agrees.

use crate::subject::{SEED, build, check_same, check_untouched, ensure, fit, run, transform};
use crate::tables::{self, ROWS, columns_of};
use m3impute_core::distributions::{ColumnDistributions, Distributions};
use m3impute_core::{
    Column, FittedImputer, Imputation, MethodSpec, Point, PredictiveDistributions, RowSeeds, Schema, Settings, Table,
};

/// The row of the registry, the method and its model agree on whether there are distributions.
pub fn the_registry_knows_whether_there_are_distributions(spec: &'static MethodSpec) {
    let has_them = build(spec, &Settings::default()).has_distributions();
    ensure!(spec.distributions || !has_them, spec, "it has distributions, but not in the registry");
    let first = Settings { preset: Some(spec.presets[0].0.to_owned()), ..Settings::default() };
    ensure!(
        build(spec, &first).has_distributions() == spec.distributions,
        spec,
        "its first preset and the registry disagree"
    );
    let Some(fitted) = fit(spec, &tables::mixed(ROWS, 70)) else {
        ensure!(!has_them, spec, "it cannot be fitted, so it cannot have distributions");
        return;
    };
    ensure!(fitted.has_distributions() == has_them, spec, "the method and its model disagree on distributions");
    let has = fitted.predict_distributions(&tables::mixed(3, 71), &mut run(SEED, 1)).is_ok_and(|b| b.is_some());
    ensure!(has == has_them, spec, "it has distributions: {has}, but it claims {has_them}");
}

/// Predicting distributions fills the same, and there is one for every missing cell of every column that varies.
pub fn distributions_fill_as_transform_does(spec: &'static MethodSpec) {
    let Some((fitted, rows, imputation, distributions)) = with_distributions(spec, 72) else { return };
    check_untouched(spec, &rows, &imputation.table);
    check_same(spec, &transform(spec, fitted.as_ref(), &rows).table, &imputation.table, "with distributions");
    for (j, column) in rows.schema().columns().iter().enumerate() {
        let count: usize = distributions.columns.iter().filter(|c| c.column == j).map(|c| c.of.len()).sum();
        let missing = rows.missing_in(j);
        ensure!(count == missing, spec, "`{}` has {missing} missing cells and {count} distributions", column.name);
    }
    for point in [Point::Median, Point::Mean, Point::Mode] {
        let filled = distributions.fill(&imputation.table, point);
        check_untouched(spec, &rows, &filled);
        check_kinds(spec, &filled, &format!("{point:?}"));
    }
}

/// Intervals contain the median, and a higher level never gives a narrower one.
pub fn an_interval_holds_its_point_and_widens_with_its_level(spec: &'static MethodSpec) {
    let Some((_, _, imputation, distributions)) = with_distributions(spec, 74) else { return };
    let points = distributions.fill(&imputation.table, Point::Median);
    let mut before: Option<Vec<m3impute_core::distributions::Interval>> = None;
    for level in [0.5, 0.8, 0.9, 0.95, 0.99] {
        let intervals = distributions.intervals(level);
        for (c, interval) in intervals.iter().enumerate() {
            let name = &points.schema().columns()[interval.column].name;
            for (i, &row) in interval.rows.iter().enumerate() {
                let (low, point, high) = (interval.lower[i], points.number(row, interval.column), interval.upper[i]);
                let holds = low <= point && point <= high;
                ensure!(holds, spec, "`{name}`, row {}, is {point}: not in {low}..{high} ({level})", row + 1);
                let wider = before.as_ref().is_none_or(|b| low <= b[c].lower[i] && high >= b[c].upper[i]);
                ensure!(wider, spec, "`{name}`, row {}, has a narrower interval at {level}", row + 1);
            }
        }
        before = Some(intervals);
    }
    let numbers = points.schema().columns().iter().filter(|c| c.kind.is_number()).count();
    let with_numbers = before.iter().flatten().filter(|i| points.schema().columns()[i.column].kind.is_number()).count();
    ensure!(with_numbers == numbers, spec, "{with_numbers} of {numbers} columns of numbers have intervals");
}

/// Probabilities are not negative and add up to one; quantiles increase.
pub fn shares_add_up_to_one(spec: &'static MethodSpec) {
    let Some((_, rows, _, distributions)) = with_distributions(spec, 76) else { return };
    for column in &distributions.columns {
        let name = &rows.schema().columns()[column.column].name;
        match &column.of {
            Distributions::Quantiles(of) => {
                let rise = of.iter().all(|q| q.windows(2).all(|w| w[0] <= w[1]));
                ensure!(rise, spec, "the quantiles of `{name}` do not increase");
            }
            Distributions::Shares { values, shares } => {
                for shares in shares.chunks_exact(values.len()) {
                    let total: f32 = shares.iter().sum();
                    let sound = shares.iter().all(|s| *s >= 0.0) && (total - 1.0).abs() < 1e-3;
                    ensure!(sound, spec, "the shares of `{name}` are {shares:?}: {total} together");
                }
            }
        }
    }
}

/// A draw is repeated by its seed and number, and another number gives another.
pub fn draws_are_repeated_by_their_seed_and_number(spec: &'static MethodSpec) {
    let Some((fitted, rows, _, _)) = with_distributions(spec, 78) else { return };
    let draw = |number: u64| drawn(spec, fitted.as_ref(), &rows, number);
    let draws = [draw(1), draw(1), draw(2)];
    check_same(spec, &draws[0], &draws[1], "in a draw of the same number");
    ensure!(draws[0] != draws[2], spec, "draws of different numbers are the same");
    check_untouched(spec, &rows, &draws[2]);
    check_kinds(spec, &draws[2], "a draw");
}

/// Order and batch of rows change neither distributions nor draws.
pub fn distributions_of_rows_are_independent(spec: &'static MethodSpec) {
    let Some((fitted, rows, _, distributions)) = with_distributions(spec, 80) else { return };
    let all = drawn(spec, fitted.as_ref(), &rows, 3);
    let turned: Vec<usize> = (0..rows.rows()).rev().collect();
    for batch in [&turned[..], &turned[4..5], &turned[7..14]] {
        let some = rows.select_rows(batch);
        let (_, of_some) = predicted(spec, fitted.as_ref(), &some);
        let drawn = drawn(spec, fitted.as_ref(), &some, 3);
        let situation = format!("drawn in a batch of {}", batch.len());
        check_same(spec, &all.select_rows(batch), &drawn, &situation);
        for (one, two) in distributions.columns.iter().zip(&of_some.columns) {
            let same = batch.iter().enumerate().all(|(at, row)| {
                let places = (one.rows.iter().position(|r| r == row), two.rows.iter().position(|&r| r == at));
                match places {
                    (Some(a), Some(b)) => {
                        [0.05, 0.5, 0.9].iter().all(|&s| one.of.quantile(a, s) == two.of.quantile(b, s))
                    }
                    (None, None) => true,
                    _ => false,
                }
            });
            ensure!(same, spec, "a distribution is another {situation}");
        }
    }
}

/// A cell with an unknown level is not missing: it has no distribution, and those of missing cells keep their rows.
pub fn only_missing_cells_have_distributions(spec: &'static MethodSpec) {
    let Some(fitted) = fit(spec, &tables::mixed(ROWS, 82)).filter(|f| f.has_distributions()) else { return };
    let rows = tables::complete(6, 83);
    let mut specs = Vec::from(rows.schema().clone());
    specs[3].levels = vec!["violet".to_owned(), "blue".to_owned()];
    let mut columns = columns_of(&rows);
    columns[3] = Column::codes([Some(0), Some(0), None, Some(1), None, Some(0)]);
    let rows = Table::new(Schema::new(specs).expect("names differ"), columns).expect("columns fit");
    let (imputation, distributions) = predicted(spec, fitted.as_ref(), &rows);
    let cells = |c: &ColumnDistributions| (c.rows.clone(), c.of.len());
    let colour = distributions.columns.iter().find(|c| c.column == 3).map(cells);
    ensure!(colour == Some((vec![2, 4], 2)), spec, "the missing cells of rows 3 and 5 are taken for {colour:?}");
    for table in [distributions.fill(&imputation.table, Point::Mode), drawn(spec, fitted.as_ref(), &rows, 1)] {
        check_untouched(spec, &rows, &table);
        for i in [2, 4] {
            let level = &table.schema().columns()[3].levels[table.number(i, 3) as usize];
            ensure!(level != "violet", spec, "a missing cell is filled with an unknown level");
        }
    }
}

/// The method fitted on the usual table, new rows, and their distributions; none where it has no distributions.
fn with_distributions(
    spec: &'static MethodSpec,
    seed: u64,
) -> Option<(Box<dyn FittedImputer>, Table, Imputation, PredictiveDistributions)> {
    let fitted = fit(spec, &tables::mixed(ROWS, seed)).filter(|f| f.has_distributions())?;
    let mut rows = tables::mixed(23, seed + 1);
    (0..rows.cols()).for_each(|j| rows.hide(11, j));
    let (imputation, distributions) = predicted(spec, fitted.as_ref(), &rows);
    Some((fitted, rows, imputation, distributions))
}

fn drawn(spec: &'static MethodSpec, fitted: &dyn FittedImputer, rows: &Table, number: u64) -> Table {
    let seeds = RowSeeds::default().of(rows);
    let drawn = fitted.draw(rows, &seeds, number, &run(SEED, 1));
    let drawn = drawn.unwrap_or_else(|e| panic!("method `{}`: cannot draw: {e}", spec.name));
    drawn.unwrap_or_else(|| panic!("method `{}`: has no draws", spec.name)).table
}

fn predicted(
    spec: &'static MethodSpec,
    fitted: &dyn FittedImputer,
    rows: &Table,
) -> (Imputation, PredictiveDistributions) {
    let found = fitted.predict_distributions(rows, &mut run(SEED, 1));
    found
        .unwrap_or_else(|e| {
            panic!("method `{}`: cannot predict the distributions of {} rows: {e}", spec.name, rows.rows())
        })
        .unwrap_or_else(|| panic!("method `{}`: has no distributions for {} rows", spec.name, rows.rows()))
}

/// Integers are whole, levels are levels.
fn check_kinds(spec: &'static MethodSpec, table: &Table, situation: &str) {
    for (j, column) in table.schema().columns().iter().enumerate() {
        for i in 0..table.rows() {
            let value = table.number(i, j);
            let whole = column.step == 0.0 || value % column.step == 0.0;
            let level = !column.kind.has_levels() || (value >= 0.0 && value < column.levels.len() as f64);
            ensure!(
                value.is_finite() && whole && level,
                spec,
                "`{}`, row {}, is {value}: {situation}",
                column.name,
                i + 1
            );
        }
    }
}
