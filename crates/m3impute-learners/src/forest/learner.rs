//! Forests as column learners.

use super::{Forest, ForestParams};
use crate::learner::{FittedLearner, Learner, Response, Stored, Stream, Task};
use crate::tree::Growth;
use m3impute_core::{Result, Run, Tensor};
use std::collections::BTreeMap;

/// How many features a tree tries for a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mtry {
    /// The root of the number of predictors.
    Root,
    /// A third of the features.
    Third,
    /// Half of the features, but no more than this.
    Half(usize),
}

impl Mtry {
    fn of(self, features: usize) -> usize {
        match self {
            Mtry::Root => (((features - 1) as f64).sqrt() as usize).max(1),
            Mtry::Third => features.div_ceil(3),
            Mtry::Half(most) => features.div_ceil(2).min(most),
        }
    }
}

/// A forest with its settings; [`Growth::mtry`] comes from [`ForestLearner::mtry`].
#[derive(Clone, Copy, Debug)]
pub struct ForestLearner {
    /// How many features are tried for a cut.
    pub mtry: Mtry,
    /// The rest.
    pub params: ForestParams,
}

impl Learner for ForestLearner {
    fn fit(&self, task: &Task<'_>, run: &Run, stream: Stream<'_>) -> Result<Option<Box<dyn FittedLearner>>> {
        let growth = Growth { mtry: self.mtry.of(task.frame.width()), ..self.params.growth };
        let params = ForestParams { growth, ..self.params };
        let forest = Forest::fit(task.frame, task.feature, task.rows, &params, run, stream.purpose, stream.index)?;
        Ok(forest.map(|forest| Box::new(ForestModel { forest, response: task.response.clone() }) as _))
    }
}

/// A forest and what it predicts.
#[derive(Debug)]
pub struct ForestModel {
    forest: Forest,
    response: Response,
}

impl ForestModel {
    pub(crate) const KIND: &str = "forest";

    pub(crate) fn restore(stored: &Stored<'_>) -> Result<ForestModel> {
        let forest = Forest::restore(stored.file, stored.prefix, stored.feature, stored.levels)?;
        Ok(ForestModel { forest, response: stored.response.clone() })
    }
}

impl FittedLearner for ForestModel {
    fn predict(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        self.forest.predict(x, rows, run)
    }

    fn predict_distribution(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        match &self.response {
            Response::Number => self.forest.medians_and_spreads(x, rows, run),
            classes => self.forest.shares(x, rows, run, classes.classes(), |v| classes.class_of(v)),
        }
    }

    fn trees(&self) -> usize {
        self.forest.trees()
    }

    fn leaves(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<u32>> {
        self.forest.leaves(x, rows, run)
    }

    fn truncate(&mut self, nodes: usize) {
        self.forest.keep_nodes(nodes);
    }

    fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) -> &'static str {
        self.forest.store(prefix, tensors);
        Self::KIND
    }
}
