//! `methods`: the registry.

use crate::args::MethodsArgs;
use crate::failure::Outcome;
use crate::terminal::{Verbosity, print};
use m3impute::{METHODS, MethodSpec};
use serde_json::{Value, json};
use std::fmt::Write;

pub fn methods(args: &MethodsArgs, verbosity: &Verbosity) -> Outcome {
    let chosen: Vec<&MethodSpec> = match &args.name {
        Some(name) => vec![m3impute::method_and_preset(name, None)?.0],
        None => METHODS.to_vec(),
    };
    if args.json {
        let rows: Vec<Value> = chosen.iter().map(|spec| as_json(spec)).collect();
        return print(format!("{:#}\n", Value::from(rows)));
    }
    let mut out = String::new();
    for spec in &chosen {
        let remark = match spec {
            _ if spec.name == m3impute::DEFAULT_METHOD => " (default)",
            _ if spec.slow => " (slow)",
            _ => "",
        };
        let _ = writeln!(out, "{}{remark}", verbosity.style(1, spec.name));
        let _ = writeln!(out, "  {}", spec.summary);
        if args.name.is_some() {
            describe(spec, &mut out);
        }
    }
    if args.name.is_none() {
        let _ = writeln!(out, "\n`m3impute methods NAME` shows presets and parameters.");
    }
    print(out)
}

/// Presets and parameters, with the value that each preset gives.
fn describe(spec: &MethodSpec, out: &mut String) {
    let _ = writeln!(out, "  Not for: {}", spec.avoid);
    let _ = writeln!(out, "  New rows: {}", if spec.inductive { "yes (fit, transform)" } else { "no" });
    let sure = if spec.distributions { "yes (--interval, --probabilities, --draws)" } else { "no" };
    let _ = writeln!(out, "  Uncertainty: {sure}");
    let _ = writeln!(out, "  Seed: {}", if spec.randomised { "matters" } else { "does not matter" });
    if spec.slow {
        let _ = writeln!(out, "  Time: trains for minutes or more; `evaluate` runs it only when it is named");
    }
    let _ = writeln!(out, "  Presets:");
    for (name, doc) in spec.presets {
        let _ = writeln!(out, "    {name:<13} {doc}");
    }
    if !spec.params.is_empty() {
        let _ = writeln!(out, "  Parameters (--param NAME=VALUE):");
    }
    for param in spec.params {
        let values: Vec<String> = spec
            .presets
            .iter()
            .filter_map(|(preset, _)| {
                let value = (spec.preset_values)(preset)?.get(param.name)?.clone();
                let text = if value.is_null() { "auto".to_owned() } else { value.to_string().replace('"', "") };
                Some(format!("{preset}: {text}"))
            })
            .collect();
        let _ = writeln!(out, "    {:<13} {}", param.name, param.doc);
        let _ = writeln!(out, "    {:<13} {} [{}]", "", param.expects, values.join(", "));
    }
}

fn as_json(spec: &MethodSpec) -> Value {
    let presets: Vec<Value> = spec
        .presets
        .iter()
        .map(|(name, doc)| json!({"name": name, "doc": doc, "params": (spec.preset_values)(name)}))
        .collect();
    let params: Vec<Value> =
        spec.params.iter().map(|p| json!({"name": p.name, "doc": p.doc, "expects": p.expects.to_string()})).collect();
    json!({
        "name": spec.name, "summary": spec.summary, "not_for": spec.avoid, "inductive": spec.inductive,
        "distributions": spec.distributions,
        "randomised": spec.randomised, "slow": spec.slow, "default": spec.name == m3impute::DEFAULT_METHOD,
        "presets": presets, "params": params,
    })
}
