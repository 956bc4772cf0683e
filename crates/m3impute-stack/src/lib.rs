//! The default method `m3`: a stacked ensemble.
//!
//! A table becomes a grid of numbers between 0 and 1 in several folds, each without some observed cells.
//! Base models, the members, are fitted on each fold and predict its held-out cells; layers of column members are
//! fitted to the completed rows. On the out-of-fold predictions, weights are chosen for each column (`select`) and
//! intervals are calibrated (`calibrate`). `fit` does all of this, `predict` fills rows, `model` is the fitted stack,
//! `budget` how much work a table gets, [`m3`] the method and its parameters.

mod balance;
mod budget;
mod calibrate;
mod columns;
mod donors;
mod explain;
mod factored;
mod fit;
mod folds;
mod layers;
pub mod m3;
mod members;
mod model;
mod predict;
mod predictions;
mod regressions;
mod residual_density;
mod scores;
mod select;
mod shape;
mod spread;

pub use m3::{M3, M3Params};

use m3impute_core::MethodSpec;

/// The methods of this crate.
pub static METHODS: &[&MethodSpec] = &[&m3::SPEC];
