//! A small network as a column learner.

use super::{Aim, Network, NetworkParams};
use crate::design_matrix::{DesignMatrix, Scaling};
use crate::learner::{FittedLearner, Learner, Response, Stored, Stream, Task};
use m3impute_core::{Result, Run, Tensor};
use std::collections::BTreeMap;

/// What a network is trained to predict of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Centre {
    /// Its median: the absolute error is made small.
    Median,
    /// Its mean: the squared error is made small.
    Mean,
}

/// A small network with its settings.
#[derive(Clone, Debug)]
pub struct NetworkLearner {
    /// What it predicts of a number.
    pub centre: Centre,
    /// How it is trained.
    pub params: NetworkParams,
}

impl Learner for NetworkLearner {
    fn fit(&self, task: &Task<'_>, run: &Run, stream: Stream<'_>) -> Result<Option<Box<dyn FittedLearner>>> {
        let design = DesignMatrix::new(task.frame, task.rows, task.feature, Scaling::Standard);
        let points = design.points(task.frame.x(), task.rows);
        let y = task.truths();
        let classes: Vec<u32> = y.iter().map(|&y| task.class(y)).collect();
        let aim = match (task.response.classes(), self.centre) {
            (0, Centre::Mean) => Aim::Means(&y),
            (0, Centre::Median) => Aim::Medians(&y),
            (count, _) => Aim::Classes(&classes, count),
        };
        let Stream { purpose, index } = stream;
        let model = Network::fit(&points, design.width(), aim, &self.params, run, purpose, index)?;
        Ok(Some(Box::new(NetworkModel { design, model, response: task.response.clone() })))
    }
}

/// A network and its predictors.
#[derive(Debug)]
pub struct NetworkModel {
    design: DesignMatrix,
    model: Network,
    response: Response,
}

impl NetworkModel {
    pub(crate) const KIND: &str = "network";

    pub(crate) fn restore(stored: &Stored<'_>) -> Result<NetworkModel> {
        let design = DesignMatrix::restore(stored)?;
        let outputs = stored.response.classes().max(1);
        let model = Network::restore(stored.file, stored.prefix, design.width(), outputs)?;
        Ok(NetworkModel { design, model, response: stored.response.clone() })
    }
}

impl FittedLearner for NetworkModel {
    fn predict(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        run.check()?;
        if self.design.width() == 0 {
            return Ok(vec![0.0; rows.len()]);
        }
        let predicted = self.predict_distribution(x, rows, run)?;
        let point = |p: &[f32]| match self.response {
            Response::Number => p[0].clamp(0.0, 1.0),
            _ => self.response.point(p),
        };
        Ok(predicted.chunks_exact(self.response.width()).map(point).collect())
    }

    /// A number has no spread.
    fn predict_distribution(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        let mut outputs = self.model.predict(&self.design.points(x, rows), run)?;
        if self.response == Response::Number {
            return Ok(outputs.into_iter().flat_map(|point| [point, 0.0]).collect());
        }
        for scores in outputs.chunks_exact_mut(self.response.classes()) {
            let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            scores.iter_mut().for_each(|s| *s = (*s - highest).exp());
            let total: f32 = scores.iter().sum();
            scores.iter_mut().for_each(|s| *s /= total);
        }
        Ok(outputs)
    }

    fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) -> &'static str {
        self.design.store(prefix, tensors);
        self.model.store(prefix, tensors);
        Self::KIND
    }
}
