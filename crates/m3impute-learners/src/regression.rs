//! Linear regressions as column learners: least absolute deviations or ridge for numbers, softmax for levels.

use crate::design_matrix::{DesignMatrix, Scaling};
use crate::lad::Linear;
use crate::learner::{FittedLearner, Learner, Response, Stored, Stream, Task};
use crate::ridge::penalised;
use crate::softmax::Softmax;
use m3impute_core::{Result, Run, Tensor};
use std::collections::BTreeMap;

/// The penalty of softmax regression on squared weights, and its steps.
const SOFTMAX: (f64, usize) = (1.0, 200);

/// How numbers are regressed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OfNumbers {
    /// By the least absolute deviation: the median.
    Lad,
    /// By ridge regression with this penalty: the mean.
    Ridge(f64),
}

/// How levels are regressed, all by softmax regression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfLevels {
    /// They are not.
    None,
    /// As likely as they are.
    Likely,
    /// As if all levels were as frequent as each other.
    Balanced,
}

/// A linear regression with its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegressionLearner {
    /// How predictors are scaled.
    pub scaling: Scaling,
    /// How numbers are learnt, also those of few values.
    pub numbers: OfNumbers,
    /// How levels are learnt.
    pub levels: OfLevels,
}

impl Learner for RegressionLearner {
    fn fit(&self, task: &Task<'_>, run: &Run, _: Stream<'_>) -> Result<Option<Box<dyn FittedLearner>>> {
        let go_on = || run.goes_on();
        let design = DesignMatrix::new(task.frame, task.rows, task.feature, self.scaling);
        let Response::Levels(levels) = *task.response else {
            let points = design.points_f64(task.frame.x(), task.rows);
            let y: Vec<f64> = task.truths().into_iter().map(f64::from).collect();
            let linear = match self.numbers {
                OfNumbers::Lad => Linear::fit(&points, &y, true, &go_on),
                OfNumbers::Ridge(penalty) => penalised(&points, &y, penalty, &go_on),
            };
            run.check()?;
            let model = |linear| Box::new(LinearModel { design, linear, response: task.response.clone() });
            return Ok(linear.map(|linear| model(linear) as Box<dyn FittedLearner>));
        };
        if self.levels == OfLevels::None {
            return Ok(None);
        }
        let rows = with_intercepts(&design, task.frame.x(), task.rows);
        let classes: Vec<u32> = task.rows.iter().map(|&i| task.class(task.truth(i))).collect();
        let mut softmax = Softmax::flat(design.width() + 1, levels);
        let improved = softmax.improve(&rows, &classes, SOFTMAX.0, SOFTMAX.1, &go_on);
        run.check()?;
        if improved.is_none() {
            return Ok(None);
        }
        let mut factors = vec![1.0; levels];
        if self.levels == OfLevels::Balanced {
            let mut counts = vec![1.0; levels];
            classes.iter().for_each(|&c| counts[c as usize] += 1.0);
            factors.iter_mut().zip(counts).for_each(|(f, c)| *f = classes.len() as f64 / c);
        }
        Ok(Some(Box::new(SoftmaxModel { design, softmax, factors })))
    }
}

/// The points of some rows, each with a one behind it, `[rows, p + 1]`.
fn with_intercepts(design: &DesignMatrix, x: &[f32], rows: &[u32]) -> Vec<f64> {
    let (points, p) = (design.points_f64(x, rows), design.width());
    (0..rows.len()).flat_map(|k| points[k * p..(k + 1) * p].iter().copied().chain([1.0])).collect()
}

/// A linear regression and its predictors.
#[derive(Debug)]
pub struct LinearModel {
    design: DesignMatrix,
    linear: Linear,
    response: Response,
}

impl LinearModel {
    pub(crate) const KIND: &str = "linear";

    pub(crate) fn restore(stored: &Stored<'_>) -> Result<LinearModel> {
        if !stored.response.is_number() {
            return Err(stored.damaged("its kind"));
        }
        let design = DesignMatrix::restore(stored)?;
        let weights = stored.file.f64s(&stored.name("weights"))?.1;
        let [intercept, error] = *stored.file.f64s(&stored.name("rest"))?.1 else {
            return Err(stored.damaged("its intercept"));
        };
        if weights.len() != design.width() || !weights.iter().chain([&intercept, &error]).all(|w| w.is_finite()) {
            return Err(stored.damaged("its weights"));
        }
        let linear = Linear { weights: weights.to_vec(), intercept, error };
        Ok(LinearModel { design, linear, response: stored.response.clone() })
    }

    fn points(&self, x: &[f32], rows: &[u32]) -> Vec<f64> {
        let (points, p) = (self.design.points_f64(x, rows), self.design.width());
        (0..rows.len()).map(|i| self.linear.predict(&points[i * p..(i + 1) * p])).collect()
    }
}

impl FittedLearner for LinearModel {
    fn predict(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        run.check()?;
        Ok(self.points(x, rows).into_iter().map(|v| (v as f32).clamp(0.0, 1.0)).collect())
    }

    fn predict_distribution(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        run.check()?;
        Ok(self.response.around(&self.points(x, rows), self.linear.error as f32))
    }

    fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) -> &'static str {
        let Linear { weights, intercept, error } = &self.linear;
        self.design.store(prefix, tensors);
        tensors.insert(format!("{prefix}weights"), Tensor::F64(vec![weights.len()], weights.clone()));
        tensors.insert(format!("{prefix}rest"), Tensor::F64(vec![2], vec![*intercept, *error]));
        Self::KIND
    }
}

/// A softmax regression and its predictors.
#[derive(Debug)]
pub struct SoftmaxModel {
    design: DesignMatrix,
    softmax: Softmax,
    /// What the chance of each level is multiplied by before the most likely one is taken.
    factors: Vec<f64>,
}

impl SoftmaxModel {
    pub(crate) const KIND: &str = "softmax";

    pub(crate) fn restore(stored: &Stored<'_>) -> Result<SoftmaxModel> {
        let Response::Levels(levels) = *stored.response else { return Err(stored.damaged("its kind")) };
        let design = DesignMatrix::restore(stored)?;
        let weights = stored.file.f64s(&stored.name("weights"))?.1;
        let factors = stored.file.f64s(&stored.name("chance_factors"))?.1;
        let fits = weights.len() == (design.width() + 1) * levels && factors.len() == levels;
        if !fits || !weights.iter().chain(factors).all(|v| v.is_finite()) {
            return Err(stored.damaged("its weights"));
        }
        let softmax = Softmax { weights: weights.to_vec(), levels };
        Ok(SoftmaxModel { design, softmax, factors: factors.to_vec() })
    }

    fn chances(&self, x: &[f32], rows: &[u32]) -> Vec<Vec<f64>> {
        let rows = with_intercepts(&self.design, x, rows);
        rows.chunks_exact(self.design.width() + 1).map(|row| self.softmax.chances(row)).collect()
    }
}

impl FittedLearner for SoftmaxModel {
    fn predict(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        run.check()?;
        let most = |chances: Vec<f64>| {
            let weighed: Vec<f64> = chances.iter().zip(&self.factors).map(|(c, f)| c * f).collect();
            (0..weighed.len()).reduce(|a, b| if weighed[b] > weighed[a] { b } else { a }).unwrap_or(0) as f32
        };
        Ok(self.chances(x, rows).into_iter().map(most).collect())
    }

    fn predict_distribution(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        run.check()?;
        Ok(self.chances(x, rows).into_iter().flatten().map(|c| c as f32).collect())
    }

    fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) -> &'static str {
        self.design.store(prefix, tensors);
        let mut put = |name: &str, values: &[f64]| {
            tensors.insert(format!("{prefix}{name}"), Tensor::F64(vec![values.len()], values.to_vec()));
        };
        put("weights", &self.softmax.weights);
        put("chance_factors", &self.factors);
        Self::KIND
    }
}
