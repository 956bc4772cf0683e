//! The checks, grouped by what they are about.

pub mod believing;
pub mod edges;
pub mod files;
pub mod filling;
pub mod fitted;
pub mod repeating;
pub mod requests;
