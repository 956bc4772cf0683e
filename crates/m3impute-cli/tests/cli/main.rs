//! The program as its users meet it.

mod bad_input;
mod guides;
mod hostile;
mod messy;
mod pages;
mod program;
mod reports;
mod uncertainty;
mod verbs;
