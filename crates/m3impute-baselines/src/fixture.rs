//! What the tests of several methods share: a table of which one knows the predictions, and how it is filled.

use m3impute_core::{Column, ColumnSpec, Kind, MethodSpec, ModelFile, Run, Schema, Settings, Table};

/// `y` is twice `x`, and `side` says whether `x` is above 5; a missing cell in each of the last two.
pub(crate) fn table() -> Table {
    let schema = schema(&["x", "y"], "side", ["low", "high"]);
    let x = (0..12).map(f64::from);
    let columns = vec![
        Column::numbers(x.clone().map(Some)),
        Column::numbers(x.clone().map(|v| (v != 9.0).then_some(2.0 * v))),
        Column::codes(x.map(|v| (v != 2.0).then_some(u32::from(v > 5.0)))),
    ];
    Table::new(schema, columns).unwrap()
}

/// Columns of numbers, and after them one of two levels.
pub(crate) fn schema(numbers: &[&str], category: &str, levels: [&str; 2]) -> Schema {
    let numbers = numbers.iter().map(|name| ColumnSpec::new(*name, Kind::Continuous));
    Schema::new(numbers.chain([ColumnSpec::with_levels(category, Kind::Categorical, levels)]).collect::<Vec<_>>())
        .unwrap()
}

pub(crate) fn settings(preset: &str, params: &[(&str, &str)]) -> Settings {
    let params = params.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Settings { preset: Some(preset.to_owned()), params, ..Settings::default() }
}

/// The table, filled by the method without a fallback.
pub(crate) fn impute(spec: &'static MethodSpec, settings: &Settings) -> Table {
    let out = (spec.build)(settings).unwrap().impute(&table(), &mut Run::new(0, 1).unwrap()).unwrap();
    assert!(out.fallbacks.is_empty());
    out.table
}

/// Each preset of each method that learns relations between columns.
fn relational() -> impl Iterator<Item = (&'static MethodSpec, &'static str)> {
    let methods = crate::METHODS.iter().filter(|spec| !["mean", "median", "mode"].contains(&spec.name));
    methods.flat_map(|&spec| spec.presets.iter().map(move |(preset, _)| (spec, *preset)))
}

#[test]
fn a_saved_model_fills_rows_as_before_and_each_by_itself() {
    for (spec, preset) in relational() {
        let mut run = Run::new(0, 1).unwrap();
        let imputer = (spec.build)(&settings(preset, &[])).unwrap();
        let fitted = imputer.as_inductive().unwrap().fit(&table(), &mut run).unwrap();
        let mut bytes = Vec::new();
        fitted.save(&mut bytes).unwrap();
        let loaded = (spec.load)(&ModelFile::read(&bytes).unwrap()).unwrap();
        let whole = loaded.transform(&table(), &mut run).unwrap().table;
        assert_eq!(whole, fitted.transform(&table(), &mut run).unwrap().table, "{} {preset}", spec.name);
        let alone = fitted.transform(&table().select_rows(&[9]), &mut run).unwrap().table;
        assert_eq!(alone, whole.select_rows(&[9]), "{} {preset}", spec.name);
    }
}

/// A missing cell of a new row in `x`, which was complete, is filled from the value of `y`.
#[test]
fn a_column_that_was_complete_is_filled_in_new_rows() {
    for (spec, preset) in relational().filter(|(_, preset)| *preset != "paper") {
        let mut run = Run::new(0, 1).unwrap();
        let imputer = (spec.build)(&settings(preset, &[])).unwrap();
        let fitted = imputer.as_inductive().unwrap().fit(&table(), &mut run).unwrap();
        let mut row = table().select_rows(&[10]);
        row.hide(0, 0);
        let out = fitted.transform(&row, &mut run).unwrap();
        assert!(out.fallbacks.is_empty());
        assert!(out.table.number(0, 0) > 7.0, "{} {preset}: {}", spec.name, out.table.number(0, 0));
    }
}
