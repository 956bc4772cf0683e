//! The checks that every method passes, on a training short enough for a test: narrow states and a few epochs.

use m3impute_core::{MethodSpec, Settings};
use m3impute_gnn::{METHODS, grape, m3};
use m3impute_testkit::CHECKS;

/// The settings with a few epochs of a narrow model, where they do not say otherwise.
fn quick(settings: &Settings) -> Settings {
    let mut quick = settings.clone();
    for (name, value) in [("epochs", "4"), ("width", "8")] {
        if settings.params.iter().all(|p| p.0 != name) {
            quick.params.push((name.to_owned(), value.to_owned()));
        }
    }
    quick
}

macro_rules! quick_spec {
    ($name:ident, $method:ident) => {
        static $name: MethodSpec = MethodSpec {
            name: $method::SPEC.name,
            summary: $method::SPEC.summary,
            avoid: $method::SPEC.avoid,
            inductive: true,
            randomised: true,
            presets: $method::SPEC.presets,
            params: $method::SPEC.params,
            preset_values: $method::SPEC.preset_values,
            build: |settings| ($method::SPEC.build)(&quick(settings)),
            load: $method::SPEC.load,
        };
    };
}

quick_spec!(QUICK_M3, m3);
quick_spec!(QUICK_GRAPE, grape);

/// Runs the checks of a group on the quick method.
fn check(spec: &'static MethodSpec, group: &str) {
    for check in CHECKS.iter().filter(|c| c.group == group && c.name != REGISTRY) {
        (check.run)(spec);
    }
}

/// The one check that needs the row of the registry itself, and trains nothing.
const REGISTRY: &str = "the_row_of_the_registry_is_whole";

#[test]
fn the_rows_of_the_registry_are_whole() {
    let check = CHECKS.iter().find(|c| c.name == REGISTRY).unwrap();
    METHODS.iter().for_each(|spec| (check.run)(spec));
}

macro_rules! contract {
    ($($group:ident)*) => {$(
        mod $group {
            #[test]
            fn of_m3() {
                super::check(&super::QUICK_M3, stringify!($group));
            }

            #[test]
            fn of_grape() {
                super::check(&super::QUICK_GRAPE, stringify!($group));
            }
        }
    )*};
}

contract!(requests filling edges repeating fitted files);
