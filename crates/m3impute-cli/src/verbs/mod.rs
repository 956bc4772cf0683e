//! One file a verb.

pub mod ampute;
pub mod bench;
pub mod bench_paper;
pub mod describe;
pub mod evaluate;
pub mod explain;
pub mod fit;
pub mod impute;
pub mod info;
pub mod methods;
pub mod shell;
pub mod transform;
