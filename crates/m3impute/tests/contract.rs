//! Every method of the registry keeps the contract.

use m3impute::{MethodSpec, Settings};
use m3impute_testkit::{CHECKS, check_group};

macro_rules! contract {
    ($($name:ident $(quick in $module:path, $preset:expr)?),* $(,)?) => {
        fn covered() -> Vec<&'static str> {
            vec![$($name::spec().name),*]
        }
        $(
            mod $name {
                #[allow(unused_mut, unused_assignments)]
                pub fn spec() -> &'static super::MethodSpec {
                    let mut spec = None;
                    $({
                        use $module as module;
                        static QUICK: super::MethodSpec = super::MethodSpec {
                            build: |settings| (module::SPEC.build)(&super::quick(&module::SPEC, settings, $preset)),
                            ..module::SPEC
                        };
                        spec = Some(&QUICK);
                    })?
                    spec.unwrap_or_else(|| m3impute::method(stringify!($name)).expect("a method of the registry"))
                }

                contract!(@groups requests, filling, edges, repeating, fitted, distributions, explaining, files);
            }
        )*
    };
    (@groups $($group:ident),*) => {
        $(#[test]
        fn $group() {
            super::check_group(spec(), stringify!($group));
        })*
    };
}

contract!(
    mean,
    median,
    mode,
    knn,
    mice,
    svd,
    softimpute,
    missforest,
    hyperimpute quick in m3impute_baselines::hyperimpute, "default",
    hyperimpute_paper quick in m3impute_baselines::hyperimpute, "paper",
    m3 quick in m3impute_stack::m3, "balanced",
    m3_paper quick in m3impute_stack::m3, "paper",
    grape quick in m3impute_gnn::grape, "default",
    gain quick in m3impute_deep::gain, "default",
    gain_paper quick in m3impute_deep::gain, "paper",
    miwae quick in m3impute_deep::miwae, "default",
    miwae_paper quick in m3impute_deep::miwae, "paper",
    miracle quick in m3impute_deep::miracle, "default",
    miracle_paper quick in m3impute_deep::miracle, "paper",
);

/// A training short enough for a test.
const SHORT: &[(&str, &str)] =
    &[("epochs", "4"), ("steps", "6"), ("width", "8"), ("folds", "2"), ("trees", "3"), ("samples", "10")];

/// The settings on top of a preset and of parameters that make a training short enough for a test, where they do not say
/// otherwise.
fn quick(spec: &MethodSpec, settings: &Settings, preset: &str) -> Settings {
    let mut quick = settings.clone();
    let preset = quick.preset.get_or_insert_with(|| preset.to_owned()).clone();
    // Another preset may be a model with other parameters.
    let known = |name: &str| (spec.preset_values)(&preset).is_some_and(|values| values.get(name).is_some());
    for (name, value) in SHORT.iter().filter(|p| known(p.0)) {
        if settings.params.iter().all(|p| p.0 != *name) {
            quick.params.push(((*name).to_owned(), (*value).to_owned()));
        }
    }
    quick
}

#[test]
fn every_method_and_every_group_of_checks_is_covered() {
    let mut names: Vec<&str> = m3impute::METHODS.iter().map(|m| m.name).collect();
    let mut covered = covered();
    names.sort_unstable();
    covered.sort_unstable();
    covered.dedup();
    assert_eq!(covered, names, "`contract!` in this file lists the methods");
    let groups = ["requests", "filling", "edges", "repeating", "fitted", "distributions", "explaining", "files"];
    assert!(CHECKS.iter().all(|check| groups.contains(&check.group)));
}
