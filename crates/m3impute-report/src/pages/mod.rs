//! One file a report.

mod evaluate;
mod impute;
