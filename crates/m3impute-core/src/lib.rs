//! Tables with holes, how they become numbers and back, and the contract that every imputation method keeps.
//!
//! The way of the data: a [`Table`] is encoded to numbers ([`encode`]), a method fills them ([`Imputer`]), and they are
//! decoded into the holes. Observed cells are never touched. This crate knows no file, prints nothing, and has no method.

pub mod beliefs;
pub mod encode;
mod error;
mod held_out;
mod hint;
mod imputer;
mod matrix_method;
mod metrics;
pub mod missing;
mod model_file;
mod run;
mod schema;
mod table;

pub use beliefs::{Beliefs, Point};
pub use encode::{Encoded, Encoder, Encoding, Finish};
pub use error::{Category, Error, Result, nearest};
pub use held_out::{ColumnScore, HeldOut, Measure, Single};
pub use hint::{Hint, Setting};
pub use imputer::{
    Expect, Fallback, FinishChoice, FittedImputer, Imputation, Imputer, InductiveImputer, MethodSpec, ParamSpec,
    Settings,
};
pub use matrix_method::{Answer, Learnt, MatrixImputer, MatrixMethod, MatrixModel, load_matrix_model};
pub use metrics::{Score, score};
pub use model_file::{Header, ModelFile, Tensor};
pub use run::{Cancel, Observer, Progress, Run};
pub use schema::{Bounds, ColumnSpec, Kind, Role, Schema};
pub use table::{Column, MISSING_CODE, Observed, Table, Values};
