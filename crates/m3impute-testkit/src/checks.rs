//! The checks, grouped by what they are about.

pub mod distributions;
pub mod edges;
pub mod explaining;
pub mod files;
pub mod filling;
pub mod fitted;
pub mod repeating;
pub mod requests;
