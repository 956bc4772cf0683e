//! The classic imputation methods: mean, median, mode, knn, mice, svd, softimpute, missforest, hyperimpute.
//!
//! Every method works on an encoded matrix ([`m3impute_core::MatrixMethod`]); [`METHODS`] lists them.
//!
//! ```
//! use m3impute_core::{Column, ColumnSpec, Kind, Run, Schema, Settings, Table};
//!
//! let schema = Schema::new(vec![ColumnSpec::new("age", Kind::Integer)])?;
//! let table = Table::new(schema, vec![Column::numbers([Some(30.0), None, Some(40.0)])])?;
//! let median = m3impute_baselines::METHODS.iter().find(|m| m.name == "median").unwrap();
//! let filled = (median.build)(&Settings::default())?.impute(&table, &mut Run::new(0, 1)?)?;
//! assert_eq!(filled.table.number(1, 0), 35.0);
//! # Ok::<(), m3impute_core::Error>(())
//! ```

mod factors;
#[cfg(test)]
mod fixture;
pub mod hyperimpute;
mod in_turn;
mod knn;
mod mice;
mod missforest;
mod simple;
mod softimpute;
mod svd;

use m3impute_core::MethodSpec;

pub use hyperimpute::{HyperImpute, HyperImputeParams, Search};
pub use knn::{Knn, KnnParams, Metric, NoNeighbour};
pub use mice::{Levels, Mice, MiceParams};
pub use missforest::{MissForest, MissForestParams};
pub use simple::{Mean, Median, Mode, SimpleParams};
pub use softimpute::{SoftImpute, SoftImputeParams};
pub use svd::{Svd, SvdParams};

/// The methods of this crate, in the order in which they are listed to users.
pub static METHODS: &[&MethodSpec] = &[
    &simple::MEAN,
    &simple::MEDIAN,
    &simple::MODE,
    &knn::SPEC,
    &mice::SPEC,
    &svd::SPEC,
    &softimpute::SPEC,
    &missforest::SPEC,
    &hyperimpute::SPEC,
];
