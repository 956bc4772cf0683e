//! missForest on published tables: its error on the published hidden cells. The tables lie beside the workspace, in
//! `../shared`; where they do not, these tests are ignored. Two small tables are part of the repository:
//! `crates/m3impute/tests/accuracy.rs`.

use m3impute_baselines::METHODS;
use m3impute_core::{Run, Settings};
use m3impute_testkit::benchmark::{Benchmark, in_shared, trial};
use std::process::ExitCode;

/// Tables, with ceilings at most 5 % above the error that is reached.
const TABLES: [(&str, f64); 5] =
    [("yacht", 1.25), ("housing", 0.48), ("energy", 1.37), ("concrete", 0.64), ("wine", 0.55)];

/// Fills the table and checks ten times the mean absolute error, each column scaled by its complete range.
fn check(name: &str, ceiling: f64) {
    let benchmark = Benchmark::read(&in_shared(), name, "mcar30");
    let spec = METHODS.iter().find(|m| m.name == "missforest").unwrap();
    let imputer = (spec.build)(&Settings::default()).unwrap();
    let filled = imputer.impute(&benchmark.table(), &mut Run::new(0, 2).unwrap()).unwrap();
    let error = benchmark.error(&filled.table);
    assert!(error <= ceiling, "{name}: expected at most {ceiling}, got {error:.4}");
}

fn main() -> ExitCode {
    let trials = TABLES.map(|(name, ceiling)| {
        trial(format!("{name}_is_filled_as_well_as_it_must_be"), false, move || check(name, ceiling))
    });
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials.into()).exit_code()
}
