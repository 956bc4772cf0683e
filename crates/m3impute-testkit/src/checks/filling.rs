//! Filled cells are of their column's kind and within its bounds; observed cells are unchanged.

use crate::subject::{SEED, check_complete, check_same, ensure, filled_in, impute, impute_with, run};
use crate::tables::{self, DAY, ROWS};
use m3impute_core::{Bounds, FinishChoice, Imputation, MethodSpec, Role, Settings, Table};

/// Observed cells come back bit for bit, also numbers that are hard to keep: zero with a sign, the smallest, the largest.
pub fn observed_cells_are_untouched(spec: &'static MethodSpec) {
    impute(spec, &tables::mixed(ROWS, 0)); // every imputation of these checks is compared with its table
    impute(spec, &tables::with_identifier(ROWS, 1));
    let mut table = tables::mixed(ROWS, 2);
    for (i, value) in [-0.0, f64::MIN_POSITIVE, 1.0 + f64::EPSILON, 0.1 + 0.2].into_iter().enumerate() {
        table.fill(i, 0, value);
    }
    impute(spec, &table);
}

/// No cell is left missing in a column that has observed values, and a plain table needs no fallback.
pub fn nothing_is_left_missing(spec: &'static MethodSpec) {
    for share in [0.05, 0.2, 0.6] {
        let table = tables::with_missing(tables::complete(ROWS, 3), share, 3);
        let Imputation { table: filled, fallbacks, .. } = impute(spec, &table);
        check_complete(spec, &filled, &format!("with {share} of the cells missing"));
        ensure!(fallbacks.is_empty(), spec, "with {share} of the cells missing, it falls back: {fallbacks:?}");
    }
}

/// Integers are filled whole with any preset, when that is requested.
pub fn integers_are_whole(spec: &'static MethodSpec) {
    let table = tables::mixed(ROWS, 4);
    for (preset, _) in spec.presets {
        let settings = Settings {
            preset: Some((*preset).to_owned()),
            finish: FinishChoice { round: Some(true), ..FinishChoice::default() },
            ..Settings::default()
        };
        let filled = impute_with(spec, &settings, &table, &mut run(SEED, 1)).table;
        for (i, value) in filled_in(&table, &filled, column(&table, "count")) {
            ensure!(value.fract() == 0.0, spec, "integer `count`, row {}, is {value} by preset `{preset}`", i + 1);
        }
    }
}

/// Categories, booleans and ordered levels are filled with levels that the column has.
pub fn levels_are_levels(spec: &'static MethodSpec) {
    let table = tables::mixed(ROWS, 5);
    let filled = impute(spec, &table).table;
    for (j, column) in table.schema().columns().iter().enumerate().filter(|(_, c)| c.kind.has_levels()) {
        let after = &filled.schema().columns()[j].levels;
        ensure!(after == &column.levels, spec, "the levels of `{}` are {after:?} after", column.name);
        for (i, code) in filled_in(&table, &filled, j) {
            let is_level = code.fract() == 0.0 && code >= 0.0 && (code as usize) < column.levels.len();
            ensure!(is_level, spec, "`{}`, row {}, is filled with code {code}", column.name, i + 1);
        }
    }
}

/// Timestamps are filled with whole steps, within the observed range.
pub fn datetimes_are_steps_within_the_observed_range(spec: &'static MethodSpec) {
    let table = tables::mixed(ROWS, 6);
    let finish = FinishChoice { round: Some(true), clip: Some(true), zero_empty: false };
    let filled = impute_with(spec, &Settings { finish, ..Settings::default() }, &table, &mut run(SEED, 1)).table;
    let j = column(&table, "when");
    let (low, high) = observed_range(&table, j);
    for (i, value) in filled_in(&table, &filled, j) {
        ensure!(value % DAY == 0.0, spec, "timestamp `when`, row {}, is {value}: no whole day", i + 1);
        ensure!((low..=high).contains(&value), spec, "timestamp `when`, row {}, is {value}: out of range", i + 1);
    }
}

/// Filled numbers keep to the bounds that the user gives, clipped or not.
pub fn bounds_are_respected(spec: &'static MethodSpec) {
    let mut schema = tables::mixed(ROWS, 7).schema().clone();
    let bounds = [(0, Bounds { low: 0.0, high: 0.2 }), (2, Bounds { low: 30.0, high: 31.0 })];
    bounds.iter().for_each(|&(j, b)| schema.column_mut(j).bounds = Some(b));
    let table = tables::mixed(ROWS, 7).with_schema(schema).expect("the same kinds");
    for clip in [true, false] {
        let finish = FinishChoice { clip: Some(clip), ..FinishChoice::default() };
        let filled = impute_with(spec, &Settings { finish, ..Settings::default() }, &table, &mut run(SEED, 1)).table;
        for (j, Bounds { low, high }) in bounds {
            for (i, value) in filled_in(&table, &filled, j) {
                let name = &table.schema().columns()[j].name;
                ensure!((low..=high).contains(&value), spec, "`{name}`, row {}, is {value}: out of bounds", i + 1);
            }
        }
    }
}

/// Clipping keeps filled numbers within the observed range and changes nothing else.
pub fn clipping_is_a_clamp(spec: &'static MethodSpec) {
    let table = tables::mixed(ROWS, 8);
    let [open, clipped] = [false, true].map(|clip| finished(spec, &table, Some(false), Some(clip)).table);
    for (j, column) in table.schema().columns().iter().enumerate().filter(|(_, c)| c.kind.is_number()) {
        let (low, high) = observed_range(&table, j);
        for ((i, raw), (_, value)) in filled_in(&table, &open, j).into_iter().zip(filled_in(&table, &clipped, j)) {
            let want = raw.clamp(low, high);
            ensure!(want == value, spec, "`{}`, row {}, is {raw} open and {value} clipped", column.name, i + 1);
        }
    }
}

/// Rounding takes the nearest step and changes nothing else.
pub fn rounding_is_to_the_nearest(spec: &'static MethodSpec) {
    let table = tables::mixed(ROWS, 9);
    let [raw, rounded] = [false, true].map(|round| finished(spec, &table, Some(round), Some(true)).table);
    for (j, column) in table.schema().columns().iter().enumerate() {
        for ((i, a), (_, b)) in filled_in(&table, &raw, j).into_iter().zip(filled_in(&table, &rounded, j)) {
            let near = if column.step > 0.0 { (a - b).abs() <= column.step / 2.0 } else { a == b };
            ensure!(near, spec, "`{}`, row {}, is {a} raw and {b} rounded", column.name, i + 1);
        }
    }
}

/// Columns that only predict, are ignored or are opaque keep their missing cells, which are listed.
pub fn columns_not_to_fill_stay_missing(spec: &'static MethodSpec) {
    let table = with_roles(tables::with_identifier(ROWS, 10), &[("x", Role::Predict), ("colour", Role::Ignore)]);
    let Imputation { table: filled, fallbacks, .. } = impute(spec, &table);
    check_complete(spec, &filled, "beside columns that are not to fill");
    for name in ["x", "colour", "id"] {
        let j = column(&table, name);
        ensure!(filled_in(&table, &filled, j).is_empty(), spec, "column `{name}` is filled, though not requested");
        let listed: usize = fallbacks.iter().filter(|f| f.column == name).map(|f| f.cells).sum();
        ensure!(
            listed == table.missing_in(j),
            spec,
            "{listed} of {} missing cells of `{name}` are listed",
            table.missing_in(j)
        );
    }
}

/// The values of an ignored column change nothing elsewhere.
pub fn ignored_columns_have_no_influence(spec: &'static MethodSpec) {
    let table = with_roles(tables::mixed(ROWS, 11), &[("y", Role::Ignore)]);
    let mut other = table.clone();
    let j = column(&table, "y");
    (0..ROWS).for_each(|i| other.fill(i, j, (i * i) as f64));
    let (one, two) = (impute(spec, &table).table, impute(spec, &other).table);
    let rest: Vec<usize> = (0..table.cols()).filter(|&k| k != j).collect();
    let [one, two] = [one, two].map(|t| tables::select_columns(&t, &rest));
    check_same(spec, &one, &two, "when an ignored column changes");
}

fn column(table: &Table, name: &str) -> usize {
    table.schema().position(name).expect("the usual tables have this column")
}

fn finished(spec: &'static MethodSpec, table: &Table, round: Option<bool>, clip: Option<bool>) -> Imputation {
    let finish = FinishChoice { round, clip, zero_empty: false };
    impute_with(spec, &Settings { finish, ..Settings::default() }, table, &mut run(SEED, 1))
}

fn with_roles(table: Table, roles: &[(&str, Role)]) -> Table {
    let mut schema = table.schema().clone();
    roles.iter().for_each(|&(name, role)| schema.column_mut(column(&table, name)).role = role);
    table.with_schema(schema).expect("the same kinds")
}

fn observed_range(table: &Table, j: usize) -> (f64, f64) {
    let values = (0..table.rows()).map(|i| table.number(i, j)).filter(|v| !v.is_nan());
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}
