//! The graph network of the stack: the paper's ideas in a form that learns fast, on batches of rows.
//!
//! A table becomes a [`Grid`]; values enter as [`ColumnInput`]s; [`GraphNetwork`] passes messages between the cells of a
//! row and the row, and predicts cells that are dropped ([`Trainer`]). [`bag`] trains a network on each fold and
//! averages their predictions.

pub mod bag;
mod batch;
mod forward;
mod inputs;
mod pairwise;
mod train;

pub use batch::{Batch, Grid, select_rows};
pub use forward::{GraphNetwork, Output, Shape};
pub use inputs::{Bins, ColumnInput};
pub use pairwise::Pairwise;
pub use train::{Task, Trainer, Training};
