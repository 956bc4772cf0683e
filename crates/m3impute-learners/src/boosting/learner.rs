//! Boosted trees as a column learner.

use super::{Boosting, BoostingParams, BoostingTask};
use crate::learner::{FittedLearner, Learner, Response, Stored, Stream, Task};
use crate::tree::Target;
use m3impute_core::{Result, Run, Tensor};
use std::collections::BTreeMap;

/// Boosted trees with their settings.
#[derive(Clone, Copy, Debug)]
pub struct BoostingLearner {
    /// For numbers.
    pub numbers: BoostingParams,
    /// For few values and levels, which are learnt as classes.
    pub classes: BoostingParams,
}

impl Learner for BoostingLearner {
    fn fit(&self, task: &Task<'_>, run: &Run, stream: Stream<'_>) -> Result<Option<Box<dyn FittedLearner>>> {
        let y: Vec<f32> = task.frame.column(task.feature).collect();
        let classes: Vec<u32> = y.iter().map(|&v| task.class(v)).collect();
        let (target, params) = match task.response.classes() {
            0 => (Target::Numbers(&y), &self.numbers),
            count => (Target::Classes(&classes, count), &self.classes),
        };
        let of = BoostingTask {
            inputs: task.frame.inputs(),
            leave_out: Some(task.feature),
            target,
            rows: task.rows,
            weights: None,
            watch: &[],
        };
        let model = Boosting::fit(&of, params, run, stream.purpose, stream.index)?;
        Ok(Some(Box::new(BoostedModel { model, response: task.response.clone() })))
    }
}

/// Boosted trees and what they predict.
#[derive(Debug)]
pub struct BoostedModel {
    model: Boosting,
    response: Response,
}

impl BoostedModel {
    pub(crate) const KIND: &str = "boosting";

    pub(crate) fn restore(stored: &Stored<'_>) -> Result<BoostedModel> {
        let classes = stored.response.classes();
        let model = Boosting::restore(stored.file, stored.prefix, stored.feature, stored.levels, classes)?;
        Ok(BoostedModel { model, response: stored.response.clone() })
    }
}

impl FittedLearner for BoostedModel {
    fn predict(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        match self.response.classes() {
            0 => Ok(self.model.predict(x, rows, run)?.iter().map(|v| v.clamp(0.0, 1.0)).collect()),
            classes => {
                let chances = self.model.chances(x, rows, run)?;
                Ok(chances.chunks_exact(classes).map(|c| self.response.point(c)).collect())
            }
        }
    }

    /// Of a number the spread is the last loss on the rows that were watched.
    fn predict_distribution(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        if self.response.classes() > 0 {
            return self.model.chances(x, rows, run);
        }
        let points: Vec<f64> = self.model.predict(x, rows, run)?.into_iter().map(f64::from).collect();
        Ok(self.response.around(&points, self.model.watched_loss()))
    }

    fn rounds(&self) -> Option<usize> {
        Some(self.model.rounds())
    }

    fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) -> &'static str {
        self.model.store(prefix, tensors);
        Self::KIND
    }
}
