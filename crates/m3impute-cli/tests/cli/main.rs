//! The program as its users meet it.

mod bad_input;
mod guides;
mod messy;
mod pages;
mod program;
mod reports;
mod sureness;
mod verbs;
