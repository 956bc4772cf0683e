//! Tables with missing values, their encoding as numbers, and the contract that every imputation method keeps.
//!
//! The data flow: a [`Table`] is encoded to numbers ([`encode`]), a method fills them ([`Imputer`]), and they are decoded
//! into the missing cells. Observed cells are never changed. This crate reads no file, prints nothing, and has no method.

pub mod distributions;
mod draws;
pub mod encode;
mod error;
pub mod explain;
mod hash;
pub mod heldout;
mod hint;
mod imputer;
mod matrix_method;
mod metrics;
pub mod missing;
pub mod missingness;
mod model_file;
mod run;
mod sampler;
mod schema;
mod shift;
mod table;
mod text;
mod validation;

pub use distributions::{Point, PredictiveDistributions};
pub use draws::RowSeeds;
pub use encode::{Encoded, Encoder, Encoding, Finish};
pub use error::{Category, Error, Result, nearest};
pub use explain::{CellValue, Explanation, KeptRows, explain_least_certain};
pub use hash::row_hash;
pub use hint::{Hint, Setting};
pub use imputer::{
    Expect, Fallback, FinishChoice, FittedImputer, Imputation, Imputer, InductiveImputer, MethodSpec, ParamSpec,
    Settings,
};
pub use matrix_method::{
    Completed, Learnt, MatrixImputer, MatrixMethod, MatrixModel, Transductive, TransductiveMethod, Want,
    load_matrix_model,
};
pub use metrics::{Score, score};
pub use model_file::{Header, ModelFile, Tensor};
pub use run::{Cancel, Observer, Progress, Run};
pub use sampler::{RandomStream, normal, sample_rows, shuffle_front, unit};
pub use schema::{Bounds, ColumnSpec, Kind, Role, Schema};
pub use shift::{Amount, Shift, Shifted, Shifts};
pub use table::{Column, MISSING_CODE, Observed, Table, Values};
pub use text::escaped;
pub use validation::{ColumnScore, FilledScores, HeldOutCell, Measure, Pattern, SingleModel, ValidationScore};
