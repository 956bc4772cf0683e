//! Every method of the registry keeps the contract.

use m3impute::{MethodSpec, Settings};
use m3impute_testkit::{CHECKS, check_group};

macro_rules! contract {
    ($($method:ident $(quick in $module:path)?),* $(,)?) => {
        const COVERED: &[&str] = &[$(stringify!($method)),*];
        $(
            mod $method {
                #[allow(unused_mut, unused_assignments)]
                fn spec() -> &'static super::MethodSpec {
                    let mut spec = m3impute::method(stringify!($method)).expect("a method of the registry");
                    $({
                        use $module as module;
                        static QUICK: super::MethodSpec = super::MethodSpec {
                            build: |settings| (module::SPEC.build)(&super::quick(settings)),
                            ..module::SPEC
                        };
                        spec = &QUICK;
                    })?
                    spec
                }

                contract!(@groups requests, filling, edges, repeating, fitted, files);
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
    m3 quick in m3impute_gnn::m3,
    grape quick in m3impute_gnn::grape,
);

/// The settings with a few epochs of a narrow model, where they do not say otherwise: a training short enough for a
/// test.
fn quick(settings: &Settings) -> Settings {
    let mut quick = settings.clone();
    for (name, value) in [("epochs", "4"), ("width", "8")] {
        if settings.params.iter().all(|p| p.0 != name) {
            quick.params.push((name.to_owned(), value.to_owned()));
        }
    }
    quick
}

#[test]
fn every_method_and_every_group_of_checks_is_covered() {
    let mut names: Vec<&str> = m3impute::METHODS.iter().map(|m| m.name).collect();
    let mut covered = COVERED.to_vec();
    names.sort_unstable();
    covered.sort_unstable();
    assert_eq!(covered, names, "`contract!` in this file lists the methods");
    let groups = ["requests", "filling", "edges", "repeating", "fitted", "files"];
    assert!(CHECKS.iter().all(|check| groups.contains(&check.group)));
}
