//! Validation errors of a fitted method: on observed cells that were held out in fitting.

use crate::schema::Kind;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

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
    /// How many of the column's cells are missing in the table that was learnt from.
    pub missing: usize,
    /// How many cells were held out.
    pub cells: usize,
    /// The mean error of the ensemble; none where too few cells were held out.
    pub error: Option<f64>,
    /// That of the baseline: the median, or the shares of the levels.
    pub baseline: Option<f64>,
    /// The share of the held-out cells whose most probable level is right; none for numbers, and where too few cells were
    /// held out.
    pub accuracy: Option<f64>,
    /// That of the baseline: the most frequent level.
    pub baseline_accuracy: Option<f64>,
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

/// Validation errors beside what was filled: an error matters as much as the cells that were filled with it.
///
/// ```
/// use m3impute_core::{ColumnScore, FilledScores, Kind, Measure, ValidationScore};
/// let score = |column: &str, error| ColumnScore {
///     column: column.to_owned(),
///     kind: Kind::Continuous,
///     measure: Measure::AbsoluteError,
///     validation: ValidationScore { cells: 40, error, baseline: Some(4.0), ..ValidationScore::default() },
/// };
/// let scores = [score("age", Some(1.0)), score("income", Some(3.0)), score("rare", None), score("whole", Some(0.1))];
/// let of = FilledScores::of(&scores, [("age", 10), ("income", 30), ("rare", 500), ("whole", 0), ("other", 2)]);
/// assert_eq!(of.ratio(), Some(0.625)); // (10 * 0.25 + 30 * 0.75) / 40
/// assert_eq!(of.unknown, [("rare", 500), ("other", 2)]);
/// assert_eq!((of.known[0].0.column.as_str(), of.unfilled[0].column.as_str()), ("income", "whole"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilledScores<'a> {
    /// The columns with filled cells whose error is known, and how many cells each has; the worst first.
    pub known: Vec<(&'a ColumnScore, usize)>,
    /// The columns with filled cells whose error is not known, and how many cells each has; most cells first.
    pub unknown: Vec<(&'a str, usize)>,
    /// Columns without filled cells: their errors matter for new rows alone. The worst first.
    pub unfilled: Vec<&'a ColumnScore>,
}

impl<'a> FilledScores<'a> {
    /// Of the filled cells of each column, by its name.
    pub fn of(scores: &'a [ColumnScore], filled: impl IntoIterator<Item = (&'a str, usize)>) -> FilledScores<'a> {
        let by_name: HashMap<&str, &ColumnScore> = scores.iter().map(|s| (s.column.as_str(), s)).collect();
        let filled: Vec<(&str, usize)> = filled.into_iter().filter(|(_, cells)| *cells > 0).collect();
        let names: HashMap<&str, usize> = filled.iter().copied().collect();
        let mut of = FilledScores::default();
        for (name, cells) in filled {
            match by_name.get(name).filter(|score| score.validation.error.is_some()) {
                Some(score) => of.known.push((score, cells)),
                None => of.unknown.push((name, cells)),
            }
        }
        of.unfilled = scores.iter().filter(|s| !names.contains_key(s.column.as_str())).collect();
        // By the share of the baseline's error, a measure that columns have in common.
        let ratio = |score: &ColumnScore| score.ratio().unwrap_or(-1.0);
        of.known.sort_by(|(a, _), (b, _)| ratio(b).total_cmp(&ratio(a)));
        of.unfilled.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
        of.unknown.sort_by_key(|(_, cells)| std::cmp::Reverse(*cells));
        of
    }

    /// How many cells were filled in columns whose error is known.
    pub fn known_cells(&self) -> usize {
        self.known.iter().map(|(_, cells)| cells).sum()
    }

    /// How many cells were filled in columns whose error is not known.
    pub fn unknown_cells(&self) -> usize {
        self.unknown.iter().map(|(_, cells)| cells).sum()
    }

    /// The mean over filled cells of their column's error as a share of that of the baseline; none where no column with
    /// filled cells has both.
    pub fn ratio(&self) -> Option<f64> {
        let both = self.known.iter().filter_map(|(score, cells)| Some((score.ratio()?, *cells as f64)));
        let (sum, cells) = both.fold((0.0, 0.0), |(sum, all), (ratio, cells)| (sum + ratio * cells, all + cells));
        (cells > 0.0).then(|| sum / cells)
    }
}
