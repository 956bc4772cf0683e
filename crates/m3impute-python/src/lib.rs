//! The native half of the Python package: columns in, columns out, and the run between them.
//!
//! Python knows its frames (`python/m3impute`), this crate knows Arrow and the library. A `Column`
//! crosses the border, nothing else does but names, numbers and JSON.

mod columns;
mod errors;
mod fitted;
mod hints;
mod requests;
mod tables;
mod watch;

use m3impute::missing::Mechanism;
use m3impute::{METHODS, MethodSpec};
use pyo3::prelude::*;
use serde_json::{Value, json};

/// Fill the holes of a table: the native half.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("DEFAULT_METHOD", m3impute::DEFAULT_METHOD)?;
    module.add_class::<columns::Column>()?;
    module.add_class::<tables::Table>()?;
    module.add_class::<tables::Changed>()?;
    module.add_class::<fitted::Model>()?;
    module.add_function(wrap_pyfunction!(methods, module)?)?;
    module.add_function(wrap_pyfunction!(mechanisms, module)?)?;
    module.add_function(wrap_pyfunction!(fewer_threads, module)?)?;
    module.add_function(wrap_pyfunction!(escaped, module)?)?;
    module.add_function(wrap_pyfunction!(check, module)?)
}

/// The registry as JSON.
#[pyfunction]
fn methods() -> String {
    let row = |spec: &&MethodSpec| {
        let preset =
            |&(name, doc): &(&str, &str)| json!({"name": name, "doc": doc, "params": (spec.preset_values)(name)});
        let params: Vec<Value> = spec
            .params
            .iter()
            .map(|p| json!({"name": p.name, "doc": p.doc, "expects": p.expects.to_string()}))
            .collect();
        json!({
            "name": spec.name, "summary": spec.summary, "not_for": spec.avoid, "inductive": spec.inductive,
            "randomised": spec.randomised, "slow": spec.slow, "default": spec.name == m3impute::DEFAULT_METHOD,
            "presets": spec.presets.iter().map(preset).collect::<Vec<_>>(), "params": params,
        })
    };
    Value::from(METHODS.iter().map(row).collect::<Vec<_>>()).to_string()
}

/// The mechanisms that make holes: name and what it does.
#[pyfunction]
fn mechanisms() -> Vec<(&'static str, &'static str)> {
    Mechanism::ALL.iter().map(|m| (m.name(), m.summary())).collect()
}

/// What is to be said where so many threads are asked for, but a run gets fewer.
#[pyfunction]
fn fewer_threads(asked: usize) -> Option<String> {
    m3impute::Run::fewer_threads(asked)
}

/// A text with its control characters written out.
#[pyfunction]
fn escaped(text: &str) -> String {
    m3impute::escaped(text).into_owned()
}

/// Fails where a method cannot be made as asked.
#[pyfunction]
fn check(method: requests::MethodRequest) -> PyResult<()> {
    method.build().map(drop).map_err(errors::core)
}
