//! The refined M3: the paper's ideas in a form that learns fast.

pub mod blend;
pub mod columns;
pub mod ensemble;
pub mod folds;
pub mod grid;
pub mod learn;
pub mod lines;
pub mod network;
pub mod stage;
pub mod train;
