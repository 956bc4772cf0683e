//! Supervised learners of one column from the others, on which the iterative methods and the stack are built.
//!
//! They know numbers alone: a completed table of 32-bit floats ([`forest::Frame`]) in which levels are codes. They know
//! nothing of missing cells, folds or ensembles.

pub mod bayesian_regression;
pub mod binning;
mod blocks;
pub mod boosting;
pub mod design_matrix;
mod eigen;
pub mod forest;
pub mod kernel;
pub mod lad;
pub mod learner;
pub mod linalg;
pub mod mixture;
pub mod neighbours;
pub mod network;
pub mod regression;
pub mod ridge;
pub mod softmax;
mod split;
pub mod tree;

pub use learner::{FittedLearner, Learner, Response, Stored, Stream, Task, restore};
