//! The same request gives the same bytes.

use crate::subject::{SEED, build, check_same, ensure, impute_with, run, saved};
use crate::tables::{self, ROWS};
use m3impute_core::{MethodSpec, Settings};

/// Twice the same seed, by one imputer and by two.
pub fn the_same_seed_gives_the_same_bytes(spec: &'static MethodSpec) {
    let table = tables::mixed(ROWS, 30);
    let first = impute_with(spec, &Settings::default(), &table, &mut run(SEED, 1)).table;
    let imputer = build(spec, &Settings::default());
    for _ in 0..2 {
        let again = imputer.impute(&table, &mut run(SEED, 1));
        let again = again.unwrap_or_else(|e| panic!("method `{}`: fails the second time: {e}", spec.name));
        check_same(spec, &first, &again.table, "with the same seed");
    }
}

/// Where the method is not randomised by the registry, the seed does not matter.
pub fn a_seed_that_does_not_matter_does_not(spec: &'static MethodSpec) {
    if spec.randomised {
        return;
    }
    let table = tables::mixed(ROWS, 31);
    let [one, two] = [1, 2].map(|seed| impute_with(spec, &Settings::default(), &table, &mut run(seed, 1)).table);
    check_same(spec, &one, &two, "with another seed");
}

/// One, two and three threads.
pub fn threads_do_not_change_bytes(spec: &'static MethodSpec) {
    let table = tables::mixed(ROWS, 32);
    let [one, two, three] =
        [1, 2, 3].map(|threads| impute_with(spec, &Settings::default(), &table, &mut run(SEED, threads)).table);
    check_same(spec, &one, &two, "on two threads");
    check_same(spec, &one, &three, "on three threads");
}

/// Fitting twice, by the same imputer and on other threads, gives the same model file.
pub fn a_second_fit_equals_the_first(spec: &'static MethodSpec) {
    let imputer = build(spec, &Settings::default());
    let Some(inductive) = imputer.as_inductive() else { return };
    let table = tables::mixed(ROWS, 33);
    let [one, two, three] = [1, 1, 2].map(|threads| {
        let fitted = inductive.fit(&table, &mut run(SEED, threads));
        saved(spec, fitted.unwrap_or_else(|e| panic!("method `{}`: cannot be fitted: {e}", spec.name)).as_ref())
    });
    ensure!(one == two, spec, "the second fit differs from the first");
    ensure!(one == three, spec, "a fit on two threads differs from one on one");
}
