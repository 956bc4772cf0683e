//! Imputation by message passing on the bipartite graph of rows and columns: M3-Impute and GRAPE.
//!
//! The way of the data: observed cells become edges ([`graph`]), the [`encoder`] passes messages over them
//! ([`layers`]), the [`units`] look at related features and similar rows, the [`head`] predicts cells, [`train`] learns.
//! [`m3`] and [`grape`] are the methods.

pub mod cost;
pub mod encoder;
pub mod fitted;
pub mod grape;
pub mod graph;
pub mod head;
pub mod layers;
pub mod m3;
pub mod model;
pub mod pass;
pub mod peers;
pub mod published;
pub mod refined;
pub mod speed;
pub mod train;
pub mod units;

pub use fitted::FittedGnn;
pub use grape::{Grape, GrapeParams};
pub use published::{PublishedM3, PublishedParams};
pub use refined::{M3, M3Params};

use m3impute_core::MethodSpec;

/// The methods of this crate.
pub static METHODS: &[&MethodSpec] = &[&m3::SPEC, &grape::SPEC];
