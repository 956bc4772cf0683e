//! Reports as one HTML file: missing cells, imputed values, validation errors, uncertainty; or a comparison of methods.
//!
//! Facts are counted from tables ([`Imputed`], [`Evaluated`]) and a page is made of facts. Facts have a bounded size
//! whatever the table, so a page stays under one megabyte. A page loads nothing, and text of a table stays text. This
//! crate knows no file and no method.
//!
//! ```
//! use m3impute_core::{Column, ColumnSpec, Imputation, Kind, Schema, Table};
//! use m3impute_report::{ImputeFacts, Imputed, Work};
//!
//! let schema = Schema::new(vec![ColumnSpec::new("<age>", Kind::Integer)])?;
//! let table = Table::new(schema, vec![Column::numbers([Some(31.0), None, Some(40.0)])])?;
//! let mut filled = table.clone();
//! filled.fill(1, 0, 35.0);
//! let imputation = Imputation { table: filled, fallbacks: vec![], notes: vec![], scores: vec![] };
//! let work = Work { source: "people.csv".to_owned(), ..Work::default() };
//! let imputed = Imputed { table: &table, imputation: &imputation, distributions: None, explanations: &[], work };
//! let page = ImputeFacts::gather(imputed).page();
//! assert!(page.starts_with("<!doctype html>") && page.contains("&lt;age&gt;"));
//! # Ok::<(), m3impute_core::Error>(())
//! ```

mod advice;
mod charts;
mod facts;
mod gather;
mod html;
mod page;
mod pages;
pub mod svg;
pub mod words;

pub use advice::advice;
pub use facts::{
    Accuracy, Axis, ColumnCompared, ColumnMissing, Compared, Correlated, DrawSpread, EvaluateFacts, Event, Filled,
    FilledCell, Heat, Histogram, ImputeFacts, LevelShare, Matrix, Missing, MissingTogether, MissingnessOf, NotAtRandom,
    Pattern, Repeats, Scatter, Shape, Suspect, Tell, UncertainCell, UncertainRow, Whisker, Work,
};
pub use gather::{Evaluated, Imputed};
