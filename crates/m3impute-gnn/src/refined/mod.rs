//! The refined M3: the paper's ideas in a form that learns fast.
//!
//! The way of the data: a table becomes a [`grid`] of numbers ([`columns`] know how), [`network`]s learn to say what
//! dropped cells were ([`mod@train`], [`ensemble`]), each without some cells that are held out ([`folds`]); [`kinds`] of rows
//! are learnt beside them, and a table that was laid out tells what a hole is not ([`design`]); forests, lines and curves
//! learn from the rows that these completed ([`stage`]); and held-out cells tell whom to believe ([`blend`]) and how far
//! ([`calibrate`]).
//! [`mod@learn`] is that way as a whole, [`model`] what comes of it, [`method`] its parameters, `file` how it is kept.

pub mod blend;
pub mod calibrate;
pub mod columns;
pub mod design;
pub mod ensemble;
mod file;
pub mod folds;
pub mod grid;
pub mod kinds;
pub mod learn;
pub mod lines;
pub mod method;
pub mod model;
pub mod network;
mod scores;
pub mod stage;
pub mod train;

pub use method::{FittedM3, M3, M3Params};
