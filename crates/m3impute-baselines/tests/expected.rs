//! The preset `paper` against the figures of the reference implementations: tables and masks stand beside the
//! workspace, in `../shared`. Where they do not, these tests are ignored.
//!
//! Run the large tables too with `cargo test --release -p m3impute-baselines --test expected -- --include-ignored`.

use m3impute_baselines::METHODS;
use m3impute_core::{FinishChoice, Run, Settings};
use m3impute_testkit::benchmark::{Benchmark, in_shared, trial};
use serde_json::Value;
use std::process::ExitCode;

/// The allowed difference, in units of the mean absolute error times ten.
const ALLOWED: f64 = 0.01;
/// Where more neighbours are equally far than there are places left, the reference takes those that an unstable sort
/// happens to put first: its own figures move by up to 0.04 from one processor to another (0.923 to 0.967 on `blood`).
/// Here they share the places, which needs no order and errs less. On these masks that shows.
const TIES: [&str; 6] =
    ["blood.mcar30", "cmc.mcar30", "energy.mcar30", "energy.mcar50", "yacht.mcar10", "yacht.mcar30"];
const ALLOWED_WITH_TIES: f64 = 0.04;
const LARGE: [&str; 5] = ["kin8nm", "naval", "power", "protein", "wine-white"];

/// Compares one method on the masks of small or large tables, under both scalings.
fn compare(method: &str, large: bool) {
    let figures = std::fs::read_to_string(in_shared().join("reference/expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&figures).unwrap();
    let spec = METHODS.iter().find(|m| m.name == method).unwrap();
    let finish = FinishChoice { round: Some(false), clip: Some(false), zero_empty: false };
    let imputer = (spec.build)(&Settings { preset: Some("paper".to_owned()), finish, ..Settings::default() }).unwrap();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (scaling, by_complete_column) in [("observed_scaling", false), ("paper_scaling", true)] {
        for (name, figures) in expected[scaling].as_object().unwrap() {
            let Some(figure) = figures.get(method).and_then(Value::as_f64) else { continue };
            let (table, pattern) = name.split_once('.').unwrap();
            if LARGE.contains(&table) != large {
                continue;
            }
            let benchmark = Benchmark::read(&in_shared(), table, pattern);
            let shown = if by_complete_column { benchmark.table_with_ranges() } else { benchmark.table() };
            let filled = imputer.impute(&shown, &mut Run::new(0, 0).unwrap()).unwrap();
            let got = benchmark.error(&filled.table);
            compared += 1;
            let line = format!("{method} {scaling} {name}: expected {figure}, got {got:.4}");
            let tied = method == "knn" && TIES.contains(&name.as_str());
            if (got - figure).abs() > if tied { ALLOWED_WITH_TIES } else { ALLOWED } {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 0, "no figure of `{method}` was compared");
}

fn main() -> ExitCode {
    let methods = ["mean", "median", "knn", "mice", "svd", "softimpute"];
    let small = methods.map(|method| trial(method, false, move || compare(method, false)));
    let large = methods.map(|method| trial(format!("{method}_of_large_tables"), true, move || compare(method, true)));
    let trials = small.into_iter().chain(large).collect();
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit_code()
}
