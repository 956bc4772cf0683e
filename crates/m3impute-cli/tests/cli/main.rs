//! The program as its users meet it.

mod bad_input;
mod explain;
#[cfg(unix)]
mod files;
mod guides;
mod hostile;
mod messy;
mod pages;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod processors;
mod program;
mod reports;
mod shift;
#[cfg(target_os = "linux")]
mod signals;
mod uncertainty;
mod verbs;
