//! Evaluates methods: hides observed cells, fills them, and scores the imputed values.
//!
//! This is the only crate that has the truth and the hidden cells together. A method gets a table without the hidden
//! cells; only the score sees both.
//!
//! ```
//! use m3impute_core::missing::Mechanism;
//! use m3impute_core::{Cancel, Column, ColumnSpec, Kind, Schema, Table};
//! use m3impute_eval::{Candidate, HideBy, NoProbe, Plan, evaluate, summarise};
//!
//! let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous), ColumnSpec::new("y", Kind::Continuous)])?;
//! let numbers = |f: fn(f64) -> f64| Column::from_numbers((0..50).map(|i| f(f64::from(i))).collect());
//! let truth = Table::new(schema, vec![numbers(|i| i), numbers(|i| i * i)])?;
//!
//! let methods = ["mean", "knn"].map(|name| m3impute::method(name).map(Candidate::new));
//! let plan = Plan {
//!     methods: methods.into_iter().collect::<Result<_, _>>()?,
//!     hide: HideBy::Mechanism { mechanism: Mechanism::Mcar, within: None, rate: 0.2, repeats: 2 },
//!     ..Plan::default()
//! };
//! let rows = evaluate(&truth, &plan, &NoProbe, &Cancel::default(), &m3impute_eval::no_observer())?;
//! assert_eq!(rows.len(), 4);
//! assert_eq!(summarise(&rows)[0].label, "knn");
//! # Ok::<(), m3impute_core::Error>(())
//! ```

mod compare;
mod evaluate;
pub mod given;
mod plan;
mod summary;
mod timing;

pub use compare::{Comparison, Difference, Recommendation, Verdict, recommend};
pub use evaluate::{EvaluatedColumn, NoProbe, Probe, Row, Watch, evaluate, no_observer};
pub use plan::{Candidate, HideBy, Plan, ScaleBy};
pub use summary::{Spread, Summary, summarise};
pub use timing::{Timing, time_fit};
