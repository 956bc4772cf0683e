//! Nearest rows as a column learner.

use super::Neighbours;
use crate::design_matrix::{DesignMatrix, Scaling};
use crate::learner::{FittedLearner, Learner, Response, Stored, Stream, Task};
use m3impute_core::{RandomStream, Result, Run, Tensor};
use rand::Rng;
use std::collections::BTreeMap;

/// Nearest rows with their settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighboursLearner {
    /// How many rows are asked.
    pub nearest: usize,
    /// How many rows are kept, at most.
    pub most: usize,
}

impl Learner for NeighboursLearner {
    fn fit(&self, task: &Task<'_>, run: &Run, stream: Stream<'_>) -> Result<Option<Box<dyn FittedLearner>>> {
        let mut rows = task.rows.to_vec();
        if rows.len() > self.most {
            let mut rng = RandomStream::new(run.rng(stream.purpose, stream.index).next_u64());
            rng.shuffle_front(&mut rows, self.most);
            rows.truncate(self.most);
        }
        let design = DesignMatrix::new(task.frame, task.rows, task.feature, Scaling::Standard);
        let model = Neighbours {
            width: design.width(),
            points: design.points(task.frame.x(), &rows),
            values: rows.iter().map(|&i| task.truth(i)).collect(),
            nearest: self.nearest,
            levels: task.frame.levels()[task.feature],
        };
        Ok(Some(Box::new(NeighboursModel { design, model, response: task.response.clone() })))
    }
}

/// Rows to compare with, and their predictors.
#[derive(Debug)]
pub struct NeighboursModel {
    design: DesignMatrix,
    model: Neighbours,
    response: Response,
}

impl NeighboursModel {
    pub(crate) const KIND: &str = "neighbours";

    pub(crate) fn restore(stored: &Stored<'_>) -> Result<NeighboursModel> {
        let design = DesignMatrix::restore(stored)?;
        let floats = |name: &str| stored.file.f32s(&stored.name(name)).map(|t| t.1);
        let (points, values) = (floats("points")?, floats("values")?);
        let [nearest] = *stored.file.u32s(&stored.name("nearest"))?.1 else {
            return Err(stored.damaged("its number of neighbours"));
        };
        let levels = stored.levels[stored.feature];
        let fits = |v: &f32| if levels > 0 { (0.0..levels as f32).contains(v) } else { v.is_finite() };
        if points.len() != values.len() * design.width() || !values.iter().all(fits) {
            return Err(stored.damaged("its points"));
        }
        let (points, values) = (points.to_vec(), values.to_vec());
        let model = Neighbours { width: design.width(), points, values, nearest: nearest as usize, levels };
        Ok(NeighboursModel { design, model, response: stored.response.clone() })
    }
}

impl FittedLearner for NeighboursModel {
    fn predict(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        run.check()?;
        match self.design.width() {
            0 => Ok(vec![self.model.values.first().copied().unwrap_or(0.0); rows.len()]),
            _ => self.model.predict(&self.design.points(x, rows), run),
        }
    }

    /// The predicted class alone has probability; a number has no spread.
    fn predict_distribution(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        let predictions = self.predict(x, rows, run)?;
        let classes = self.response.classes();
        if classes == 0 {
            return Ok(predictions.into_iter().flat_map(|a| [a, 0.0]).collect());
        }
        let flags = |a: f32| {
            let class = self.response.class_of(a);
            (0..classes).map(move |c| f32::from(u8::from(class == Some(c))))
        };
        Ok(predictions.into_iter().flat_map(flags).collect())
    }

    fn kept_rows(&self) -> usize {
        self.model.values.len()
    }

    fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) -> &'static str {
        self.design.store(prefix, tensors);
        let mut put = |name: &str, values: &[f32]| {
            tensors.insert(format!("{prefix}{name}"), Tensor::F32(vec![values.len()], values.to_vec()));
        };
        put("points", &self.model.points);
        put("values", &self.model.values);
        tensors.insert(format!("{prefix}nearest"), Tensor::U32(vec![1], vec![self.model.nearest as u32]));
        Self::KIND
    }
}
