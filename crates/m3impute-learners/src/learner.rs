//! The one interface of column learners: fit a response from other features, predict it, store it, restore it.

use crate::boosting::BoostedModel;
use crate::forest::{ForestModel, Frame};
use crate::kernel::KernelModel;
use crate::neighbours::NeighboursModel;
use crate::network::NetworkModel;
use crate::regression::{LinearModel, SoftmaxModel};
use m3impute_core::{Error, ModelFile, Result, Run, Tensor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// What is predicted of a feature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// A number. Its prediction is a point and a spread: half the distance of the quantiles at 16 and 84 %.
    Number,
    /// A number of few values, in rising order. Its prediction is the probability of each.
    Values(Vec<f32>),
    /// A level of so many. Its prediction is the probability of each.
    Levels(usize),
}

impl Response {
    /// How many classes there are to give probabilities to; 0 for numbers.
    pub fn classes(&self) -> usize {
        match self {
            Response::Number => 0,
            Response::Values(values) => values.len(),
            Response::Levels(levels) => *levels,
        }
    }

    /// How many numbers a prediction has.
    pub fn width(&self) -> usize {
        if *self == Response::Number { 2 } else { self.classes() }
    }

    /// Whether it is a number, of few values or of many.
    pub fn is_number(&self) -> bool {
        !matches!(self, Response::Levels(_))
    }

    /// The class of a value: the nearest of few values; none for a level beyond those that are known.
    ///
    /// ```
    /// use m3impute_learners::Response;
    /// assert_eq!(Response::Values(vec![0.0, 0.25, 1.0]).class_of(0.9), Some(2));
    /// assert_eq!(Response::Levels(3).class_of(3.0), None);
    /// ```
    pub fn class_of(&self, value: f32) -> Option<usize> {
        match self {
            Response::Number => None,
            Response::Values(values) => {
                let after = values.partition_point(|&v| v <= value);
                let before = after.saturating_sub(1);
                let nearer = after < values.len() && values[after] - value < value - values[before];
                Some(if nearer { after } else { before })
            }
            Response::Levels(levels) => (value < *levels as f32).then_some(value as usize),
        }
    }

    /// The point estimate of a prediction: the median of a number, the most likely level.
    ///
    /// ```
    /// use m3impute_learners::Response;
    /// assert_eq!(Response::Values(vec![0.0, 0.5, 1.0]).point(&[0.4, 0.3, 0.3]), 0.5);
    /// assert_eq!(Response::Levels(3).point(&[0.4, 0.3, 0.3]), 0.0);
    /// ```
    pub fn point(&self, prediction: &[f32]) -> f32 {
        match self {
            Response::Number => prediction[0],
            Response::Values(values) => {
                let mut below = 0.0;
                for (value, &p) in values.iter().zip(prediction) {
                    if below + p >= 0.5 && p > 0.0 {
                        return *value;
                    }
                    below += p;
                }
                values.last().copied().unwrap_or(0.0)
            }
            Response::Levels(_) => most_likely(prediction) as f32,
        }
    }

    /// How wrong a prediction is: the absolute error of a number's point, the log loss of a level.
    pub fn error(&self, prediction: &[f32], truth: f32) -> f64 {
        match self {
            Response::Levels(_) => {
                let share = self.class_of(truth).map_or(0.0, |class| f64::from(prediction[class]));
                -share.max(1e-3).ln()
            }
            _ => f64::from((self.point(prediction) - truth).abs()),
        }
    }

    /// Points as predictions, given how far they are off on average.
    pub fn around(&self, points: &[f64], error: f32) -> Vec<f32> {
        let mut predictions = Vec::with_capacity(points.len() * self.width());
        for &point in points {
            let point = point as f32;
            if let Response::Values(values) = self {
                // Probabilities fall off exponentially on both sides, as absolute errors do.
                let spread = error.max(1e-6);
                let apart = |value: &f32| (value - point).abs();
                let nearest = values.iter().map(apart).fold(f32::INFINITY, f32::min);
                let from = predictions.len();
                predictions.extend(values.iter().map(|value| (-(apart(value) - nearest) / spread).exp()));
                let total: f32 = predictions[from..].iter().sum();
                predictions[from..].iter_mut().for_each(|p| *p /= total);
            } else {
                predictions.extend([point, error]);
            }
        }
        predictions
    }
}

/// The place of the largest number, the first of several.
pub fn most_likely(probabilities: &[f32]) -> usize {
    (0..probabilities.len()).reduce(|a, b| if probabilities[b] > probabilities[a] { b } else { a }).unwrap_or(0)
}

/// What is to be learnt, and from what.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The completed table.
    pub frame: &'a Frame,
    /// The feature to learn from the others.
    pub feature: usize,
    /// What is predicted of it.
    pub response: &'a Response,
    /// The rows to learn from.
    pub rows: &'a [u32],
}

impl Task<'_> {
    /// The value of the feature in a row.
    pub fn truth(&self, row: u32) -> f32 {
        self.frame.x()[row as usize * self.frame.width() + self.feature]
    }

    /// The values of the feature in the rows to learn from.
    pub fn truths(&self) -> Vec<f32> {
        self.rows.iter().map(|&i| self.truth(i)).collect()
    }

    /// The class of a value in training.
    pub fn class(&self, value: f32) -> u32 {
        self.response.class_of(value).unwrap_or(0) as u32
    }
}

/// The name of a stream of random numbers.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'a> {
    /// What it is for.
    pub purpose: &'a str,
    /// Which of several.
    pub index: u64,
}

/// A column learner with its settings.
pub trait Learner: Debug + Send + Sync {
    /// Learns. Nothing is returned when the budget is spent before there is a prediction, or the response is not one that
    /// it can learn.
    ///
    /// # Errors
    /// When the run is cancelled.
    fn fit(&self, task: &Task<'_>, run: &Run, stream: Stream<'_>) -> Result<Option<Box<dyn FittedLearner>>>;
}

/// What a column learner has learnt.
pub trait FittedLearner: Debug + Send + Sync {
    /// Point estimates for some rows of a completed table (`x` row by row), within the observed range.
    ///
    /// # Errors
    /// When the run is cancelled.
    fn predict(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>>;

    /// Predictions for some rows: a point and a spread, or the probability of each class, as [`Response`] says.
    ///
    /// # Errors
    /// When the run is cancelled.
    fn predict_distribution(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>>;

    /// The rounds of boosting that were taken, where there were some.
    fn rounds(&self) -> Option<usize> {
        None
    }

    /// How many trees it has.
    fn trees(&self) -> usize {
        0
    }

    /// The leaf of each tree into which some rows of a completed table fall, `[rows, trees]`: rows that fall into the same
    /// leaf are near to each other.
    ///
    /// # Errors
    /// When the run is cancelled.
    fn leaves(&self, _x: &[f32], _rows: &[u32], _run: &Run) -> Result<Vec<u32>> {
        Ok(Vec::new())
    }

    /// How many of the rows that it was fitted to it holds.
    fn kept_rows(&self) -> usize {
        0
    }

    /// Lets go of what makes the model larger than about so many nodes, where it has any.
    fn truncate(&mut self, _nodes: usize) {}

    /// Writes it into tensors whose names start with `prefix`; returns the name by which [`restore`] knows it.
    fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) -> &'static str;
}

/// Where a stored learner stands in a file, and what it has learnt.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    /// The file.
    pub file: &'a ModelFile,
    /// What the names of its tensors start with.
    pub prefix: &'a str,
    /// The feature that was learnt.
    pub feature: usize,
    /// How many levels each feature has; 0 for numbers.
    pub levels: &'a [usize],
    /// How many of the levels of each feature have a flag of their own.
    pub flags: &'a [usize],
    /// What is predicted.
    pub response: &'a Response,
}

impl Stored<'_> {
    /// The full name of a tensor.
    pub fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// An error that says what does not fit.
    pub fn damaged(&self, what: &str) -> Error {
        Error::damaged(format!("the learner `{}` of feature {}: {what}", self.prefix, self.feature))
    }
}

/// Restores a learner of the kind that [`FittedLearner::store`] returned.
///
/// # Errors
/// When something is not there or does not fit.
pub fn restore(kind: &str, stored: &Stored<'_>) -> Result<Box<dyn FittedLearner>> {
    Ok(match kind {
        ForestModel::KIND => Box::new(ForestModel::restore(stored)?),
        BoostedModel::KIND => Box::new(BoostedModel::restore(stored)?),
        LinearModel::KIND => Box::new(LinearModel::restore(stored)?),
        KernelModel::KIND => Box::new(KernelModel::restore(stored)?),
        SoftmaxModel::KIND => Box::new(SoftmaxModel::restore(stored)?),
        NeighboursModel::KIND => Box::new(NeighboursModel::restore(stored)?),
        NetworkModel::KIND => Box::new(NetworkModel::restore(stored)?),
        _ => return Err(stored.damaged("a learner that this version does not have")),
    })
}
