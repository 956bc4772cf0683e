//! Models of one feature given others, on which the iterative methods are built.

pub mod binning;
pub mod boosting;
pub mod curve;
pub mod density;
pub mod design;
pub mod forest;
mod forest_file;
pub mod lad;
pub mod logistic;
pub mod neighbours;
pub mod network;
pub mod ridge;
pub mod ruler;
mod split;
pub mod tree;
