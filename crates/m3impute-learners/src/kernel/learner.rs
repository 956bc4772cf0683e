//! Kernel median regression as a column learner.

use super::KernelRegression;
use crate::design_matrix::{DesignMatrix, Scaling};
use crate::learner::{FittedLearner, Learner, Response, Stored, Stream, Task};
use m3impute_core::{Result, Run, Tensor, sample_rows};
use std::collections::BTreeMap;

/// Kernel median regression with its settings; it learns numbers alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelLearner {
    /// Rows that it is learnt from, at most: it bends little.
    pub rows: usize,
    /// Rows that nearness is measured to (Nyström landmarks).
    pub landmarks: usize,
}

impl Learner for KernelLearner {
    fn fit(&self, task: &Task<'_>, run: &Run, stream: Stream<'_>) -> Result<Option<Box<dyn FittedLearner>>> {
        let design = DesignMatrix::new(task.frame, task.rows, task.feature, Scaling::None);
        if !task.response.is_number() || design.width() == 0 {
            return Ok(None);
        }
        let some = sample_rows(task.rows.len(), self.rows, &mut run.rng("kernel rows", stream.index));
        let landmarks = sample_rows(some.len(), self.landmarks, &mut run.rng("kernel landmarks", stream.index));
        let rows: Vec<u32> = some.iter().map(|&k| task.rows[k as usize]).collect();
        let y: Vec<f64> = rows.iter().map(|&i| f64::from(task.truth(i))).collect();
        let points = design.points_f64(task.frame.x(), &rows);
        let kernel = KernelRegression::fit(&points, &y, &landmarks, &|| run.goes_on());
        run.check()?;
        let model = |kernel| Box::new(KernelModel { design, kernel, response: task.response.clone() });
        Ok(kernel.map(|kernel| model(kernel) as Box<dyn FittedLearner>))
    }
}

/// A kernel regression and its predictors.
#[derive(Debug)]
pub struct KernelModel {
    design: DesignMatrix,
    kernel: KernelRegression,
    response: Response,
}

impl KernelModel {
    pub(crate) const KIND: &str = "kernel";

    pub(crate) fn restore(stored: &Stored<'_>) -> Result<KernelModel> {
        if !stored.response.is_number() {
            return Err(stored.damaged("its kind"));
        }
        let design = DesignMatrix::restore(stored)?;
        let kernel = KernelRegression::restore(stored.file, &stored.name("kernel."), design.width())?;
        Ok(KernelModel { design, kernel, response: stored.response.clone() })
    }

    fn points(&self, x: &[f32], rows: &[u32], run: &Run) -> Vec<f64> {
        let x = self.design.points_f64(x, rows);
        run.install(|| self.kernel.predict(&x))
    }
}

impl FittedLearner for KernelModel {
    fn predict(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        run.check()?;
        Ok(self.points(x, rows, run).into_iter().map(|v| (v as f32).clamp(0.0, 1.0)).collect())
    }

    fn predict_distribution(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        run.check()?;
        Ok(self.response.around(&self.points(x, rows, run), self.kernel.error as f32))
    }

    /// The landmarks.
    fn kept_rows(&self) -> usize {
        self.kernel.weights.len()
    }

    fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) -> &'static str {
        self.design.store(prefix, tensors);
        self.kernel.store(&format!("{prefix}kernel."), tensors);
        Self::KIND
    }
}
