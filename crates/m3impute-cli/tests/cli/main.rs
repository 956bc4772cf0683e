//! The program as its users meet it.

mod bad_input;
#[cfg(unix)]
mod files;
mod guides;
mod messy;
mod pages;
mod program;
mod reports;
mod uncertainty;
mod verbs;
