//! The layers above the base models: column members that learn from completed rows.
//!
//! A member of column `f` predicts from rows whose missing cells were filled *without the cell of `f`*, so it should be
//! fitted to such rows, too. In the parallel layers it is fitted to rows that were completed with column `f` hidden. The
//! predictions of one layer may complete the rows for the next.
//!
//! In the chained sweeps that follow, a member is fitted to the rows as they are, and its predictions are what the next
//! column sees (as in missForest). That is less careful, and more accurate where columns are closely related.

use crate::budget::GROUPS;
use crate::columns::Columns;
use crate::folds::Fold;
use crate::members::{ColumnMember, Context};
use m3impute_core::{Error, ModelFile, Result, Run, Tensor};
use m3impute_gnn::network::Grid;
use m3impute_learners::forest::Frame;
use m3impute_learners::{FittedLearner, Response, Stored, Task, restore};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// No member is fitted to a column with fewer observed values.
const MIN_ROWS: usize = 5;

/// How the columns of a layer follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// All learn and predict from the same completed rows.
    Parallel,
    /// Each sees the predictions of those before it.
    Chained,
}

/// The fitted members of one column, in the order of the members; none where one was not fitted.
pub type OfColumn = Vec<Option<Box<dyn FittedLearner>>>;

/// A layer of column members.
#[derive(Debug)]
pub struct Layer {
    /// How the columns follow each other.
    pub order: Order,
    /// The members of each column, `[m]`.
    pub learners: Vec<OfColumn>,
    /// The member whose predictions complete the rows for later layers; none where earlier ones stay, `[m]`.
    pub sources: Vec<Option<usize>>,
}

/// A fold whose missing cells are completed.
pub struct CompletedFold {
    /// It as it is learnt from, and perhaps with some of its held-out cells shown again.
    pub views: Vec<View>,
    /// All missing cells of the first view filled, with the columns of a group hidden before, `[groups][n, m]`.
    pub without: Vec<Vec<f32>>,
}

/// A fold and its completed rows.
pub struct View {
    /// The fold.
    pub fold: Fold,
    /// All missing cells filled, `[n, m]`.
    pub plain: Vec<f32>,
}

impl CompletedFold {
    /// The completed rows that a member of column `f` learns from in a layer of this order.
    pub fn rows_for(&self, f: usize, order: Order) -> &[f32] {
        match order {
            Order::Parallel => &self.without[f % groups_of(self.grid().m)],
            Order::Chained => &self.views[0].plain,
        }
    }

    /// The table that is learnt from.
    pub fn grid(&self) -> &Grid {
        &self.views[0].fold.grid
    }
}

/// In how many groups the columns of a table are hidden.
pub fn groups_of(m: usize) -> usize {
    m.min(GROUPS)
}

/// A table in which the columns of a group are hidden.
pub fn without_group(grid: &Grid, group: usize) -> Grid {
    let (m, groups) = (grid.m, groups_of(grid.m));
    let mut hidden = grid.clone();
    let of_group = hidden.observed.iter_mut().enumerate().filter(|(at, _)| at % m % groups == group);
    of_group.for_each(|(_, observed)| *observed = false);
    hidden
}

/// Fits the members of column `f` to completed rows `z`, `[n, m]`, with the truth where `f` is observed.
///
/// # Errors
/// When the run is cancelled.
pub fn fit_column(
    members: &[&'static dyn ColumnMember],
    z: &[f32],
    grid: &Grid,
    f: usize,
    index: u64,
    context: Context<'_>,
) -> Result<OfColumn> {
    let (m, response) = (grid.m, &context.columns.responses[f]);
    let has_class = |x: f32| *response == Response::Number || response.class_of(x).is_some();
    let rows = grid.rows_where(f, |at| grid.observed[at] && has_class(grid.x[at]));
    if rows.len() < MIN_ROWS || m < 2 {
        return Ok(members.iter().map(|_| None).collect());
    }
    let mut x = z.to_vec();
    for &i in &rows {
        x[i as usize * m + f] = grid.x[i as usize * m + f];
    }
    let frame = Frame::with_other_level(x, &context.columns.tree_levels());
    let task = Task { frame: &frame, feature: f, response, rows: &rows };
    // A regression is one piece of work, and a forest many small ones: side by side no core waits.
    let fit = |member: &&'static dyn ColumnMember| member.fit(&task, index, context);
    context.run.install(|| members.par_iter().with_max_len(1).map(fit).collect())
}

/// What a layer does with a column while it predicts.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Its members see these completed rows, `[n, m]`.
    Sees(&'a [f32]),
    /// A member with weight predicts its cells.
    Predicts(usize, &'a [f32]),
}

impl Layer {
    /// Predicts the missing cells of completed rows `z`, `rows` for each column, and completes `z` with them. `each` is told
    /// what every column's members see and predict.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn predict(
        &self,
        z: &mut [f32],
        columns: &Columns,
        rows: &[Vec<u32>],
        has_weight: impl Fn(usize, usize) -> bool,
        run: &Run,
        mut each: impl FnMut(usize, Step<'_>),
    ) -> Result<()> {
        let before = (self.order == Order::Parallel).then(|| z.to_vec());
        for (f, response) in columns.responses.iter().enumerate() {
            each(f, Step::Sees(before.as_deref().unwrap_or(z)));
            for (which, learner) in self.learners[f].iter().enumerate() {
                let is_source = self.sources[f] == Some(which);
                if !is_source && !has_weight(f, which) {
                    continue;
                }
                let seen = before.as_deref().unwrap_or(z);
                let Some(learner) = learner else { continue };
                let predicted = learner.predict_distribution(seen, &rows[f], run)?;
                if has_weight(f, which) {
                    each(f, Step::Predicts(which, &predicted));
                }
                if is_source {
                    fill_column(z, f, response, columns.len(), &rows[f], &predicted);
                }
            }
        }
        Ok(())
    }

    /// Removes members without weight, unless later layers use their predictions. Returns whether any has weight.
    pub fn prune(&mut self, is_seen: bool, has_weight: impl Fn(usize, usize) -> bool) -> bool {
        let all = |f: usize| 0..self.learners[f].len();
        let is_used = (0..self.learners.len()).any(|f| all(f).any(|which| has_weight(f, which)));
        // Chained columns see each other's predictions, too.
        if !(is_seen || (is_used && self.order == Order::Chained)) {
            self.sources.fill(None);
        }
        for (f, learners) in self.learners.iter_mut().enumerate() {
            for (which, learner) in learners.iter_mut().enumerate() {
                if self.sources[f] != Some(which) && !has_weight(f, which) {
                    *learner = None;
                }
            }
        }
        is_used
    }
}

/// Writes the predicted points of a column into some rows of `z`, `[n, m]`.
pub fn fill_column(z: &mut [f32], f: usize, response: &Response, m: usize, rows: &[u32], predicted: &[f32]) {
    for (&i, prediction) in rows.iter().zip(predicted.chunks_exact(response.width())) {
        z[i as usize * m + f] = response.point(prediction);
    }
}

/// The part of a layer that is stored as JSON.
#[derive(Serialize, Deserialize)]
pub struct LayerState {
    order: Order,
    sources: Vec<Option<usize>>,
    /// The kind of each learner, by column and member.
    learners: Vec<Vec<Option<String>>>,
}

impl Layer {
    /// Writes it into tensors whose names start with `prefix`.
    pub fn store(
        &self,
        prefix: &str,
        members: &[&'static dyn ColumnMember],
        tensors: &mut BTreeMap<String, Tensor>,
    ) -> LayerState {
        let mut kinds = Vec::with_capacity(self.learners.len());
        for (f, learners) in self.learners.iter().enumerate() {
            let mut store = |(learner, member): (&Option<Box<dyn FittedLearner>>, &&dyn ColumnMember)| {
                let learner = learner.as_ref()?;
                Some(learner.store(&format!("{prefix}{f}.{}.", member.key()), tensors).to_owned())
            };
            kinds.push(learners.iter().zip(members).map(&mut store).collect());
        }
        LayerState { order: self.order, sources: self.sources.clone(), learners: kinds }
    }

    /// Restores it.
    ///
    /// # Errors
    /// When something is not there or does not fit.
    pub fn restore(
        file: &ModelFile,
        prefix: &str,
        state: &LayerState,
        members: &[&'static dyn ColumnMember],
        columns: &Columns,
    ) -> Result<Layer> {
        let m = columns.len();
        let fits = state.learners.len() == m
            && state.sources.len() == m
            && state.learners.iter().all(|kinds| kinds.len() == members.len())
            && state.sources.iter().flatten().all(|&which| which < members.len());
        if !fits {
            return Err(Error::damaged("a layer of the stack"));
        }
        let (levels, flags) = (columns.tree_levels(), columns.frequent_levels());
        let mut learners = Vec::with_capacity(m);
        for (f, kinds) in state.learners.iter().enumerate() {
            let mut of_column: OfColumn = Vec::with_capacity(members.len());
            for (kind, member) in kinds.iter().zip(members) {
                let prefix = format!("{prefix}{f}.{}.", member.key());
                let response = &columns.responses[f];
                let stored = Stored { file, prefix: &prefix, feature: f, levels: &levels, flags: &flags, response };
                of_column.push(kind.as_ref().map(|kind| restore(kind, &stored)).transpose()?);
            }
            learners.push(of_column);
        }
        Ok(Layer { order: state.order, learners, sources: state.sources.clone() })
    }
}
