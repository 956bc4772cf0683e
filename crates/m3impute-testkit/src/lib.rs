//! The checks that every method of the registry must pass.
//!
//! A check is a function that takes a row of the registry and panics with a sentence that names the method. They run on
//! small tables of mixed kinds, so that all of them together take seconds.
//!
//! ```no_run
//! # fn example(spec: &'static m3impute_core::MethodSpec) {
//! m3impute_testkit::check_all(spec);
//! # }
//! ```

pub mod benchmark;
pub mod checks;
mod subject;
pub mod tables;

use m3impute_core::MethodSpec;
use std::panic::catch_unwind;

/// A named check.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// What it is about: the name of the module.
    pub group: &'static str,
    /// What is checked: the name of the function.
    pub name: &'static str,
    /// Panics where the method does not keep to it.
    pub run: fn(&'static MethodSpec),
}

macro_rules! checks {
    ($($group:ident :: { $($name:ident),* $(,)? })*) => {
        /// Every check, in the order in which [`check_all`] runs them.
        pub const CHECKS: &[Check] =
            &[$($(Check { group: stringify!($group), name: stringify!($name), run: checks::$group::$name }),*),*];
    };
}

checks! {
    requests::{
        the_row_of_the_registry_is_whole,
        every_preset_builds_and_fills,
        defaults_are_values_that_are_allowed,
        an_unknown_preset_is_named,
        an_unknown_parameter_is_named_with_the_nearest,
        a_bad_parameter_is_named,
        cancel_is_honoured,
        a_budget_of_zero_still_fills,
        infinities_are_refused,
    }
    filling::{
        observed_cells_are_untouched,
        nothing_is_left_missing,
        integers_are_whole,
        levels_are_levels,
        datetimes_are_steps_within_the_observed_range,
        bounds_are_respected,
        clipping_is_a_clamp,
        rounding_is_to_the_nearest,
        columns_not_to_fill_stay_missing,
        ignored_columns_have_no_influence,
    }
    edges::{
        a_constant_column_is_filled_with_its_value,
        an_empty_column_is_left_and_listed,
        an_empty_table_of_cells_is_left,
        an_empty_row_is_filled,
        one_row_is_no_trouble,
        one_column_is_no_trouble,
        a_complete_table_comes_back,
        duplicate_rows_are_no_trouble,
        few_observed_cells_are_no_trouble,
        collinear_columns_are_no_trouble,
        a_level_of_its_own_for_every_row_is_no_trouble,
        extreme_numbers_are_filled_or_refused,
        a_table_without_rows_is_refused,
    }
    repeating::{
        the_same_seed_gives_the_same_bytes,
        a_seed_that_does_not_matter_does_not,
        threads_do_not_change_bytes,
        a_second_fit_equals_the_first,
    }
    fitted::{
        what_is_inductive_can_be_fitted,
        transform_keeps_the_contract,
        an_extreme_row_does_not_fail_the_others,
        row_order_does_not_matter,
        batch_size_does_not_matter,
        threads_do_not_matter_to_transform,
        a_column_missing_only_at_transform_is_filled,
        an_unseen_level_is_taken_as_missing,
        columns_may_stand_in_another_order,
        a_missing_column_is_named,
        cancel_is_honoured_by_transform,
    }
    distributions::{
        the_registry_knows_whether_there_are_distributions,
        distributions_fill_as_transform_does,
        an_interval_holds_its_point_and_widens_with_its_level,
        shares_add_up_to_one,
        draws_are_repeated_by_their_seed_and_number,
        distributions_of_rows_are_independent,
        only_missing_cells_have_distributions,
    }
    explaining::{
        an_explanation_is_what_transform_does,
        an_explanation_changes_nothing_and_repeats,
        only_missing_cells_are_explained,
        a_row_that_is_kept_is_on_the_card,
    }
    files::{
        a_model_survives_its_file,
        a_cut_file_is_an_error,
        a_damaged_file_never_panics,
    }
}

/// Runs every check.
///
/// # Panics
/// With a sentence for each check that the method does not pass, once all of them have run.
pub fn check_all(spec: &'static MethodSpec) {
    check(spec, CHECKS.iter());
}

/// Runs the checks of one group, such as `filling` or `files`.
///
/// # Panics
/// As [`check_all`]; also when there is no such group.
pub fn check_group(spec: &'static MethodSpec, group: &str) {
    assert!(CHECKS.iter().any(|c| c.group == group), "no group of checks is called `{group}`");
    check(spec, CHECKS.iter().filter(|c| c.group == group));
}

fn check(spec: &'static MethodSpec, checks: impl Iterator<Item = &'static Check>) {
    let failed: Vec<String> = checks
        .filter_map(|check| {
            let panic = catch_unwind(|| (check.run)(spec)).err()?;
            let sentence = panic.downcast_ref::<String>().map(String::as_str);
            let sentence = sentence.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a sentence");
            Some(format!("{}::{}: {sentence}", check.group, check.name))
        })
        .collect();
    assert!(failed.is_empty(), "method `{}` does not keep the contract:\n{}", spec.name, failed.join("\n"));
}

#[cfg(test)]
mod tests;
