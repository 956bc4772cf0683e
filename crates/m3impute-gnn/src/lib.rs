//! Imputation by message passing on the bipartite graph of rows and columns: M3-Impute and GRAPE.
//!
//! The data flow: observed cells become edges ([`graph`]), the [`encoder`] passes messages over them ([`layers`]), the
//! [`units`] use related features and similar rows, the [`head`] predicts cells, [`train`] is the training loop.
//! [`published`] M3-Impute and [`grape`] are the methods; [`network`] is the graph network of the default `m3`, which the
//! stack combines with other models.

pub mod cost;
pub mod encoder;
pub mod fitted;
pub mod grape;
pub mod graph;
pub mod head;
pub mod layers;
pub mod model;
pub mod network;
pub mod params;
pub mod pass;
pub mod peers;
pub mod published;
pub mod speed;
pub mod train;
pub mod units;

pub use fitted::FittedGnn;
pub use grape::{Grape, GrapeParams};
pub use published::{PublishedM3, PublishedParams};

use m3impute_core::MethodSpec;

/// The methods of this crate.
pub static METHODS: &[&MethodSpec] = &[&grape::SPEC];
