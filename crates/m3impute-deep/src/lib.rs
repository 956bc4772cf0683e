//! Imputation by networks that see a whole row: [`gain`], [`miwae`] and [`miracle`].
//!
//! Each comes in two presets: `default` is the method with the settings its authors recommend, `paper` is how it was
//! run for the tables of the M3-Impute paper, where defaults and defects of the software that ran it weigh more than
//! the method.
//!
//! The way of the data: an encoded table becomes numbers and flags (`inputs`), a small network (`mlp`) is trained on
//! batches of rows, and every row is filled by itself.

mod chance;
mod files;
pub mod gain;
mod held;
mod inputs;
pub mod miracle;
pub mod miwae;
mod mlp;
mod pace;
mod registry;

pub use gain::{FittedGain, Gain, GainParams};
pub use miracle::{FittedMiracle, Miracle, MiracleParams};
pub use miwae::{FittedMiwae, Miwae, MiwaeParams};
pub use mlp::Start;

use m3impute_core::MethodSpec;

/// The methods of this crate.
pub static METHODS: &[&MethodSpec] = &[&gain::SPEC, &miwae::SPEC, &miracle::SPEC];
