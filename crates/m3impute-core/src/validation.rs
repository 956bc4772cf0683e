//! Validation errors of a fitted method: on observed cells that were held out in fitting.

use crate::schema::Kind;
use serde::{Deserialize, Serialize};

/// How an error is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The mean absolute difference, in the column's own units; seconds for timestamps, steps for ordered levels.
    AbsoluteError,
    /// The mean of `-ln p`, where `p` is the predicted probability of the true level.
    LogLoss,
}

/// One model of an ensemble, by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SingleModel {
    /// The name of the model.
    pub name: String,
    /// Its mean error on the held-out cells.
    pub error: f64,
}

/// How the cells of a column were held out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// As cells of the table are missing, together with those that are missing with them.
    #[default]
    Own,
    /// At random, because the column has no missing cells.
    Random,
}

/// A held-out cell of a number: in the column's own units; seconds for timestamps, steps for ordered levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOutCell {
    /// The value that was held out.
    pub truth: f64,
    /// The prediction.
    pub predicted: f64,
}

/// The validation errors of one feature or column.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ValidationScore {
    /// How many cells were held out.
    pub cells: usize,
    /// The mean error of the ensemble; none where too few cells were held out.
    pub error: Option<f64>,
    /// That of the baseline: the median, or the shares of the levels.
    pub baseline: Option<f64>,
    /// The best single model other than the baseline.
    pub best: Option<SingleModel>,
    /// The ensemble weights, in words: `forest 60 %, network 40 %`.
    pub ensemble: String,
    /// The share of the held-out cells that the 90 % interval covers, each half of them calibrated on the other half; none
    /// where there are too few, or levels.
    pub coverage: Option<f64>,
    /// How the cells were held out.
    pub pattern: Pattern,
    /// Some of the held-out cells of a number, as soon as it is fitted: they are not stored in a model file.
    #[serde(skip)]
    pub held_out: Vec<HeldOutCell>,
}

impl ValidationScore {
    /// The same in other units: numbers are `unit` times those before, and held-out cells lie `centre` higher.
    pub(crate) fn in_units(mut self, unit: f64, centre: f64) -> ValidationScore {
        for cell in &mut self.held_out {
            (cell.truth, cell.predicted) = (cell.truth * unit + centre, cell.predicted * unit + centre);
        }
        let errors = [self.error.as_mut(), self.baseline.as_mut(), self.best.as_mut().map(|b| &mut b.error)];
        errors.into_iter().flatten().for_each(|error| *error *= unit);
        self
    }
}

/// The validation errors of one column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnScore {
    /// The column.
    pub column: String,
    /// What its values mean.
    pub kind: Kind,
    /// How the errors are measured.
    pub measure: Measure,
    /// The errors.
    #[serde(flatten)]
    pub validation: ValidationScore,
}

impl ColumnScore {
    /// Whether no model beats the baseline; false without errors.
    ///
    /// ```
    /// use m3impute_core::{ColumnScore, ValidationScore, Kind, Measure};
    /// let validation = ValidationScore { cells: 40, error: Some(2.0), baseline: Some(8.0), ..ValidationScore::default() };
    /// let measure = Measure::AbsoluteError;
    /// let score = ColumnScore { column: "age".to_owned(), kind: Kind::Integer, measure, validation };
    /// assert!(!score.is_no_better_than_baseline());
    /// assert_eq!(score.ratio(), Some(0.25));
    /// ```
    pub fn is_no_better_than_baseline(&self) -> bool {
        self.ratio().is_some_and(|ratio| ratio >= 1.0)
    }

    /// The error as a share of that of the baseline, where both are known.
    pub fn ratio(&self) -> Option<f64> {
        let (error, baseline) = self.validation.error.zip(self.validation.baseline)?;
        Some(if baseline > 0.0 { error / baseline } else { 1.0 })
    }
}
