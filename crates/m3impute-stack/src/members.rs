//! The members of the stack: base models, one file each, and the list of them.
//!
//! A *row member* sees the observed cells of rows and predicts those that are missing; it stands in layer 0. A *column
//! member* learns one column from completed rows; there is one for each column in every layer above. To add a member,
//! write a file here and add a line to [`MEMBERS`]: selection, calibration, storing and leaving it out by
//! `--param members=...` come with it.

mod factorial;
mod forest;
mod kernel;
mod marginal;
mod mixture;
mod network;
mod regression;

pub(crate) use marginal::marginal as marginal_of;

use crate::budget::Budget;
use crate::columns::Columns;
use crate::folds::Fold;
use m3impute_core::explain::KeptNumbers;
use m3impute_core::{ModelFile, Result, Run, Tensor};
use m3impute_gnn::network::Grid;
use m3impute_learners::{FittedLearner, Learner, Stream, Task};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::LazyLock;

/// All members, in the order of their candidates. The first is the baseline, with which ensembles are compared.
pub static MEMBERS: &[Member] = &[
    Member::Row(&marginal::Marginal),
    Member::Row(&network::Network),
    Member::Row(&mixture::PLAIN),
    Member::Row(&mixture::NORMAL_SCORES),
    Member::Row(&factorial::Factorial),
    Member::Column(&forest::SMALL_LEAVES),
    Member::Column(&forest::LARGE_LEAVES),
    Member::Column(&regression::Regression),
    Member::Column(&kernel::Kernel),
];

/// The names that `--param members=...` takes: of all members but the baseline, which is always there.
pub fn names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let mut names: Vec<&'static str> = MEMBERS.iter().skip(1).map(|member| member.name()).collect();
        names.dedup();
        names
    });
    &NAMES
}

/// A row of the list.
#[derive(Clone, Copy, Debug)]
pub enum Member {
    /// It predicts the missing cells of rows from their observed ones.
    Row(&'static dyn RowMember),
    /// It predicts one column from completed rows.
    Column(&'static dyn ColumnMember),
}

impl Member {
    /// Its name for users; several rows of the list may share one.
    pub fn name(self) -> &'static str {
        match self {
            Member::Row(member) => member.name(),
            Member::Column(member) => member.name(),
        }
    }
}

/// How the final model is made from those of the folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refit {
    /// There are none: the model is fitted once, to all observed cells, because a single cell hardly changes it.
    Once,
    /// All of them are kept, and their predictions are averaged.
    Bagged,
    /// The model is fitted once more, to all observed cells.
    All,
}

/// Columns, budget and run of a fit.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The responses and levels of the columns.
    pub columns: &'a Columns,
    /// How much work the table gets.
    pub budget: &'a Budget,
    /// Seed, threads, time.
    pub run: &'a Run,
}

/// The predictions of a row member: for each of its outputs and each column those of its cells, row by row.
pub type Predicted = Vec<Vec<Vec<f32>>>;

/// The missing cells that a row member has to predict.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The rows.
    pub grid: &'a Grid,
    /// The cells, `[n, m]`.
    pub cells: &'a [bool],
    /// For a member that builds on another: the predictions of that one for all missing cells of columns with classes.
    pub needed: Option<&'a Predicted>,
}

/// A base model of whole rows, before it is fitted.
pub trait RowMember: Debug + Sync {
    /// Its name for users.
    fn name(&self) -> &'static str;

    /// A name of its own, where several members share one.
    fn key(&self) -> &'static str {
        self.name()
    }

    /// How many predictions it makes of a cell.
    fn outputs(&self) -> usize {
        1
    }

    /// The member on whose predictions it builds. In every column it has to beat that one by a standard error.
    fn needs(&self) -> Option<&'static str> {
        None
    }

    /// How the final model is made from those of the folds.
    fn refit(&self) -> Refit {
        Refit::All
    }

    /// The factor of its loss when the initial imputation is chosen, on which the layers above build; none if it is not
    /// considered.
    fn initial(&self) -> Option<f64> {
        None
    }

    /// Its share of the weight in a column with too few held-out cells to select by.
    fn unproven_weight(&self) -> f32 {
        0.0
    }

    /// Whether a table of this many rows with these columns gets it.
    fn is_possible(&self, _rows: usize, _context: Context<'_>) -> bool {
        true
    }

    /// Fits a model on each of these folds, which are independent; none where a table does not allow for one. `needed` has
    /// the predictions of the member that this one builds on, for each fold.
    ///
    /// # Errors
    /// When the run is cancelled, or a loss is not finite.
    fn fit(&self, folds: &[&Fold], needed: &[Predicted], context: Context<'_>) -> Result<FittedFolds>;

    /// Restores what [`FittedRowMember::store`] stored. A file may be hostile: everything is checked.
    ///
    /// # Errors
    /// When something is not there or does not fit.
    fn restore(&self, section: &Section<'_>, columns: &Columns) -> Result<Box<dyn FittedRowMember>>;
}

/// The section of a model file that belongs to a member.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// The file.
    pub file: &'a ModelFile,
    /// The prefix of the names of its tensors.
    pub prefix: &'a str,
    /// Its JSON.
    pub state: &'a Value,
}

/// A model for each fold, and notes.
#[derive(Debug, Default)]
pub struct FittedFolds {
    /// In the order of the folds.
    pub models: Vec<Option<Box<dyn FittedRowMember>>>,
    /// All of them as one, for [`Refit::Bagged`].
    pub bagged: Option<Box<dyn FittedRowMember>>,
    /// A sentence each.
    pub notes: Vec<String>,
}

/// A base model of whole rows.
pub trait FittedRowMember: Debug + Send + Sync {
    /// Predicts the requested cells, each row independently.
    ///
    /// # Errors
    /// When the run is cancelled.
    fn predict(&self, request: &Request<'_>, run: &Run) -> Result<Predicted>;

    /// What it holds of the rows that it was fitted to: how many, and the columns of which it has values.
    fn kept_rows(&self) -> Option<KeptNumbers> {
        None
    }

    /// Writes it into tensors whose names start with `prefix`; returns the rest as JSON.
    fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) -> Value;
}

/// A base model of one column.
pub trait ColumnMember: Debug + Sync {
    /// Its name for users.
    fn name(&self) -> &'static str;

    /// A name of its own, where several members share one.
    fn key(&self) -> &'static str {
        self.name()
    }

    /// Its share of the weight in a column with too few held-out cells to select by, in the last layer.
    fn unproven_weight(&self) -> f32 {
        0.0
    }

    /// The learner with its settings.
    fn learner(&self, budget: &Budget) -> Box<dyn Learner>;

    /// The name of its random numbers, given that of the task.
    fn stream(&self, index: u64) -> Stream<'static> {
        Stream { purpose: "stack", index }
    }

    /// Learns a column; none where it cannot.
    ///
    /// # Errors
    /// When the run is cancelled.
    fn fit(&self, task: &Task<'_>, index: u64, context: Context<'_>) -> Result<Option<Box<dyn FittedLearner>>> {
        self.learner(context.budget).fit(task, context.run, self.stream(index))
    }
}

/// The members of a stack.
#[derive(Clone, Debug)]
pub struct Members {
    /// Those of rows, the baseline first.
    pub rows: Vec<&'static dyn RowMember>,
    /// Those of columns.
    pub columns: Vec<&'static dyn ColumnMember>,
}

impl Members {
    /// The baseline and those of the list with these names.
    pub fn named(list: &[Member], names: &[String]) -> Members {
        let mut members = Members { rows: Vec::new(), columns: Vec::new() };
        for (at, member) in list.iter().enumerate() {
            let is_named = at == 0 || names.iter().any(|name| name == member.name());
            match member {
                Member::Row(member) if is_named => members.rows.push(*member),
                Member::Column(member) if is_named => members.columns.push(*member),
                _ => {}
            }
        }
        members
    }

    /// The place of the row member of that name.
    pub fn row(&self, name: &str) -> Option<usize> {
        self.rows.iter().position(|member| member.name() == name)
    }
}
