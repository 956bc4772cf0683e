//! Every method of the registry keeps the contract.

use m3impute_testkit::{CHECKS, check_group};

macro_rules! contract {
    ($($method:ident),* $(,)?) => {
        const COVERED: &[&str] = &[$(stringify!($method)),*];
        $(contract!(@method $method: requests, filling, edges, repeating, fitted, files);)*
    };
    (@method $method:ident: $($group:ident),*) => {
        mod $method {
            $(#[test]
            fn $group() {
                let spec = m3impute::method(stringify!($method)).expect("a method of the registry");
                super::check_group(spec, stringify!($group));
            })*
        }
    };
}

contract!(mean, median, mode, knn, mice, svd, softimpute, missforest);

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
