//! The method under test: building, fitting and running it, comparing its results. Every failure names it.

use m3impute_core::{FittedImputer, Imputation, Imputer, MethodSpec, Run, Settings, Table};

/// The seed of runs where it does not matter which.
pub(crate) const SEED: u64 = 7;

/// Panics with the method's name before the sentence.
macro_rules! ensure {
    ($condition:expr, $spec:expr, $($sentence:tt)+) => {
        assert!($condition, "method `{}`: {}", $spec.name, format!($($sentence)+))
    };
}
pub(crate) use ensure;

pub(crate) fn run(seed: u64, threads: usize) -> Run {
    Run::new(seed, threads).expect("threads start")
}

pub(crate) fn build(spec: &'static MethodSpec, settings: &Settings) -> Box<dyn Imputer> {
    (spec.build)(settings).unwrap_or_else(|e| panic!("method `{}`: cannot be built with {settings:?}: {e}", spec.name))
}

/// A table imputed by the method with its default settings.
pub(crate) fn impute(spec: &'static MethodSpec, table: &Table) -> Imputation {
    impute_with(spec, &Settings::default(), table, &mut run(SEED, 1))
}

pub(crate) fn impute_with(spec: &'static MethodSpec, settings: &Settings, table: &Table, run: &mut Run) -> Imputation {
    let imputation = build(spec, settings)
        .impute(table, run)
        .unwrap_or_else(|e| panic!("method `{}`: cannot fill a table of {} rows: {e}", spec.name, table.rows()));
    check_untouched(spec, table, &imputation.table);
    imputation
}

/// The method fitted on a table; none where it is not inductive.
pub(crate) fn fit(spec: &'static MethodSpec, table: &Table) -> Option<Box<dyn FittedImputer>> {
    let imputer = build(spec, &Settings::default());
    let fitted = imputer.as_inductive()?.fit(table, &mut run(SEED, 1));
    Some(fitted.unwrap_or_else(|e| panic!("method `{}`: cannot be fitted: {e}", spec.name)))
}

pub(crate) fn transform(spec: &'static MethodSpec, fitted: &dyn FittedImputer, rows: &Table) -> Imputation {
    transform_on(spec, fitted, rows, 1)
}

pub(crate) fn transform_on(
    spec: &'static MethodSpec,
    fitted: &dyn FittedImputer,
    rows: &Table,
    threads: usize,
) -> Imputation {
    let imputation = fitted
        .transform(rows, &mut run(SEED, threads))
        .unwrap_or_else(|e| panic!("method `{}`: cannot fill {} new rows: {e}", spec.name, rows.rows()));
    check_untouched(spec, rows, &imputation.table);
    imputation
}

pub(crate) fn saved(spec: &'static MethodSpec, fitted: &dyn FittedImputer) -> Vec<u8> {
    let mut bytes = Vec::new();
    fitted.save(&mut bytes).unwrap_or_else(|e| panic!("method `{}`: cannot be saved: {e}", spec.name));
    bytes
}

/// Every observed cell comes back bit for bit, in a table of the same shape.
pub(crate) fn check_untouched(spec: &'static MethodSpec, before: &Table, after: &Table) {
    ensure!(
        (before.rows(), before.cols()) == (after.rows(), after.cols()),
        spec,
        "the shape of the table changed from {} x {} to {} x {}",
        before.rows(),
        before.cols(),
        after.rows(),
        after.cols()
    );
    for (j, column) in before.schema().columns().iter().enumerate() {
        for i in (0..before.rows()).filter(|&i| before.observed().get(i, j)) {
            let (want, got) = (before.number(i, j), after.number(i, j));
            ensure!(
                after.observed().get(i, j) && want.to_bits() == got.to_bits(),
                spec,
                "the observed cell of column `{}`, row {}, changed from {want} to {got}",
                column.name,
                i + 1
            );
        }
    }
}

/// No cell of a column to fill is missing.
pub(crate) fn check_complete(spec: &'static MethodSpec, table: &Table, situation: &str) {
    for (j, column) in table.schema().columns().iter().enumerate().filter(|(_, c)| c.is_filled()) {
        for i in 0..table.rows() {
            let filled = table.observed().get(i, j) && table.number(i, j).is_finite();
            ensure!(filled, spec, "column `{}`, row {}, is left missing {situation}", column.name, i + 1);
        }
    }
}

/// Two tables are the same, bit for bit.
pub(crate) fn check_same(spec: &'static MethodSpec, one: &Table, two: &Table, situation: &str) {
    ensure!(one.rows() == two.rows() && one.schema() == two.schema(), spec, "shapes differ {situation}");
    for (j, column) in one.schema().columns().iter().enumerate() {
        for i in 0..one.rows() {
            let (a, b) = (one.number(i, j), two.number(i, j));
            ensure!(
                a.to_bits() == b.to_bits() && one.observed().get(i, j) == two.observed().get(i, j),
                spec,
                "column `{}`, row {}, is {a} and then {b} {situation}",
                column.name,
                i + 1
            );
        }
    }
}

/// The missing cells of a column that were filled: row and number.
pub(crate) fn filled_in(before: &Table, after: &Table, j: usize) -> Vec<(usize, f64)> {
    (0..before.rows())
        .filter(|&i| !before.observed().get(i, j) && after.observed().get(i, j))
        .map(|i| (i, after.number(i, j)))
        .collect()
}
