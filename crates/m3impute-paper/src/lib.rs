//! Every table and figure of the M3-Impute paper, by name.
//!
//! A [`Study`] is a table or a figure. [`tasks`] lists the measurements it needs, [`run`] makes them and appends one
//! [`Row`] for each to a file, [`view`] makes a table of the rows, the published figures beside ours, and [`figures`]
//! draws them. Tables and figures are made from rows alone: a bench that was stopped continues where it was.
//!
//! ```
//! let study = m3impute_paper::study("peers")?;
//! assert_eq!(study.title, "Peers of a sample");
//! let settings = study.settings(None, None)?;
//! assert_eq!((settings.len(), settings[2].name.as_str()), (6, "5"));
//! assert_eq!(m3impute_paper::published(study, "5", "yacht"), Some(1.33));
//! # Ok::<(), m3impute_paper::Error>(())
//! ```

mod data;
mod error;
pub mod figures;
mod labels;
mod overview;
mod published;
mod rows;
mod run;
mod studies;
mod view;

pub use data::{Case, MaskSource, tables_in};
pub use error::{Error, Result};
pub use overview::{Correlations, Overview, correlations, overview};
pub use published::published;
pub use rows::{Row, Scale, Store, Way};
pub use run::{Bench, Progress, Task, Watch, chosen_tables, run, tasks};
pub use studies::{Question, STUDIES, Setting, Study, study};
pub use view::{Cell, View, view};
