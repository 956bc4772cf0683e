//! Settings that a method takes, and errors for those it does not.

use crate::subject::{SEED, build, check_complete, ensure, impute_with, run};
use crate::tables;
use m3impute_core::{Cancel, Column, ColumnSpec, Error, Expect, Kind, MethodSpec, ParamSpec, Schema, Settings, Table};
use serde_json::Value;
use std::time::Duration;

/// The row of the registry is complete, and the method agrees with it.
pub fn the_row_of_the_registry_is_whole(spec: &'static MethodSpec) {
    let word =
        |w: &str| !w.is_empty() && w.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c));
    ensure!(word(spec.name), spec, "its name is not a lower-case word");
    ensure!(!spec.summary.is_empty() && !spec.avoid.is_empty(), spec, "it lacks a summary or when to avoid it");
    ensure!(!spec.presets.is_empty(), spec, "it has no preset");
    for (preset, doc) in spec.presets {
        ensure!(word(preset) && !doc.is_empty(), spec, "its preset `{preset}` lacks a name or a line about it");
    }
    for param in spec.params {
        ensure!(word(param.name) && !param.doc.is_empty(), spec, "its parameter `{}` lacks a line", param.name);
    }
    let imputer = build(spec, &Settings::default());
    ensure!(imputer.spec().name == spec.name, spec, "what it builds is named `{}`", imputer.spec().name);
    ensure!(imputer.as_inductive().is_some() == spec.inductive, spec, "row and method disagree about being inductive");
}

/// Each preset is there and fills the usual table.
pub fn every_preset_builds_and_fills(spec: &'static MethodSpec) {
    for (preset, _) in spec.presets {
        let settings = Settings { preset: Some((*preset).to_owned()), ..Settings::default() };
        let filled = impute_with(spec, &settings, &tables::mixed(tables::ROWS, 0), &mut run(SEED, 1));
        check_complete(spec, &filled.table, &format!("by preset `{preset}`"));
    }
}

/// The listed values of a preset have the names of the parameters, and each is one that may be set.
pub fn defaults_are_values_that_are_allowed(spec: &'static MethodSpec) {
    for (preset, _) in spec.presets {
        let listed = (spec.preset_values)(preset);
        let values = listed.as_ref().and_then(Value::as_object);
        let Some(values) = values else { panic!("method `{}`: preset `{preset}` lists no values", spec.name) };
        for name in values.keys() {
            let is_param = spec.params.iter().any(|p| p.name == name);
            ensure!(is_param, spec, "preset `{preset}` lists `{name}`, which is no parameter");
        }
        for ParamSpec { name, expects, .. } in spec.params {
            let Some(value) = values.get(*name) else {
                // A preset that is a model of its own may lack parameters of the others, but not silently.
                let outcome = (spec.build)(&with_param(preset, name, "1"));
                let refused = matches!(outcome, Err(Error::UnknownParameter { .. }));
                ensure!(refused, spec, "preset `{preset}` does not list parameter `{name}` and takes it");
                continue;
            };
            let text = match value {
                Value::Null => "auto".to_owned(),
                Value::String(word) => word.clone(),
                Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
                other => other.to_string(),
            };
            ensure!(expects.parse(&text).is_some(), spec, "`{name}` is {text} in `{preset}`: expected {expects}");
            let settings = Settings {
                preset: Some((*preset).to_owned()),
                params: vec![((*name).to_owned(), text)],
                ..Settings::default()
            };
            build(spec, &settings);
        }
    }
    ensure!((spec.preset_values)("no-such-preset").is_none(), spec, "a preset that is not there lists values");
}

/// An unknown preset is an error that names it.
pub fn an_unknown_preset_is_named(spec: &'static MethodSpec) {
    let settings = Settings { preset: Some("no-such-preset".to_owned()), ..Settings::default() };
    match (spec.build)(&settings) {
        Err(Error::UnknownPreset { method, preset, .. }) => {
            ensure!(method == spec.name && preset == "no-such-preset", spec, "an unknown preset is named `{preset}`");
        }
        other => panic!("method `{}`: an unknown preset gives {other:?}", spec.name),
    }
}

/// An unknown parameter is an error that names it and, for a typing error, the nearest name.
pub fn an_unknown_parameter_is_named_with_the_nearest(spec: &'static MethodSpec) {
    let nearest_to = |preset: &str, name: &str| match (spec.build)(&with_param(preset, name, "1")) {
        Err(Error::UnknownParameter { method, parameter, nearest, .. }) => {
            ensure!(method == spec.name && parameter == name, spec, "parameter `{name}` is named `{parameter}`");
            nearest
        }
        other => panic!("method `{}`: the unknown parameter `{name}` gives {other:?}", spec.name),
    };
    nearest_to(spec.presets[0].0, "no-such-parameter");
    for param in spec.params {
        let nearest = nearest_to(preset_with(spec, param), &format!("{}q", param.name));
        ensure!(nearest.as_deref() == Some(param.name), spec, "`{}q` suggests {nearest:?}", param.name);
    }
}

/// A value that does not fit is an error that names parameter and value.
pub fn a_bad_parameter_is_named(spec: &'static MethodSpec) {
    for param in spec.params {
        for text in values_that_do_not_fit(&param.expects) {
            match (spec.build)(&with_param(preset_with(spec, param), param.name, &text)) {
                Err(Error::BadParameter { method, parameter, got, .. }) => ensure!(
                    method == spec.name && parameter == param.name && got == text,
                    spec,
                    "`{}={text}` is reported as `{parameter}={got}`",
                    param.name
                ),
                other => panic!("method `{}`: `{}={text}` gives {other:?}", spec.name, param.name),
            }
        }
    }
}

/// A run that is cancelled before it starts ends with that.
pub fn cancel_is_honoured(spec: &'static MethodSpec) {
    let cancel = Cancel::default();
    cancel.cancel();
    let mut run = run(SEED, 1).cancelled_by(cancel);
    let outcome = build(spec, &Settings::default()).impute(&tables::mixed(tables::ROWS, 0), &mut run);
    ensure!(matches!(outcome, Err(Error::Cancelled)), spec, "a cancelled run ends with {outcome:?}");
}

/// Without any time a method returns the best it has: a complete table.
pub fn a_budget_of_zero_still_fills(spec: &'static MethodSpec) {
    let mut run = run(SEED, 1).within(Duration::ZERO);
    let filled = impute_with(spec, &Settings::default(), &tables::mixed(tables::ROWS, 0), &mut run);
    check_complete(spec, &filled.table, "with a budget of zero");
}

/// An infinite number cannot get as far as the method.
pub fn infinities_are_refused(spec: &'static MethodSpec) {
    let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous)]).expect("one name");
    for value in [f64::INFINITY, f64::NEG_INFINITY] {
        let table = Table::new(schema.clone(), vec![Column::from_numbers(vec![1.0, value, f64::NAN])]);
        ensure!(matches!(table, Err(Error::Infinite { row: 2, .. })), spec, "{value} gets into a table");
    }
}

fn with_param(preset: &str, name: &str, value: &str) -> Settings {
    let params = vec![(name.to_owned(), value.to_owned())];
    Settings { preset: Some(preset.to_owned()), params, ..Settings::default() }
}

/// A preset that has this parameter.
fn preset_with(spec: &MethodSpec, param: &ParamSpec) -> &'static str {
    let has = |preset: &str| (spec.preset_values)(preset).is_some_and(|values| values.get(param.name).is_some());
    let found = spec.presets.iter().map(|p| p.0).find(|preset| has(preset));
    found.unwrap_or_else(|| panic!("method `{}`: no preset has parameter `{}`", spec.name, param.name))
}

fn values_that_do_not_fit(expects: &Expect) -> Vec<String> {
    let mut texts = vec!["no-such-value".to_owned(), String::new()];
    match expects {
        Expect::Whole(low, high) => {
            texts.push("-1".to_owned());
            texts.push("1.5".to_owned());
            texts.extend(low.checked_sub(1).map(|v| v.to_string()));
            texts.extend(high.checked_add(1).map(|v| v.to_string()));
        }
        Expect::Number(low, high) => {
            texts.push("nan".to_owned());
            texts.extend(low.is_finite().then(|| (low - 1.0).to_string()));
            texts.extend(high.is_finite().then(|| (high + 1.0).to_string()));
        }
        Expect::Some(words) => texts.push(format!("{},no-such-value", words()[0])),
        Expect::Flag | Expect::Choice(_) => {}
        Expect::Auto(inside) => return values_that_do_not_fit(inside),
    }
    texts
}
