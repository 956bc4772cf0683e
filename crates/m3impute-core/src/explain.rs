//! Why a missing cell is filled with its value: what the members of an ensemble predict, which observed cells of the row
//! decide, and which rows of the training table are similar.
//!
//! [`FittedImputer::explain`] makes [`Explanation`]s, which are plain data; [`Explanation::lines`] puts one into words.
//! [`least_certain`] picks the cells that are worth explaining.

mod certainty;
mod hidden;
mod json;
mod text;

pub use certainty::least_certain;
pub(crate) use hidden::Explainer;

use crate::PredictiveDistributions;
use crate::error::Result;
use crate::imputer::FittedImputer;
use crate::run::Run;
use crate::schema::Kind;
use crate::table::Table;
use serde::Serialize;

/// The level of the interval of an explanation.
pub const INTERVAL_LEVEL: f64 = 0.9;
/// So many donors are named.
pub const DONORS: usize = 5;
/// So many cells of one column are among the explanations of the least certain ones.
const EXPLAINED_OF_COLUMN: usize = 2;
/// The values of so many deciding columns are shown of each donor.
const DECIDING: usize = 5;

/// The value of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CellValue {
    /// A number; of a timestamp the seconds since 1970.
    Number(f64),
    /// A level.
    Level(String),
}

/// Why a missing cell is filled with its value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The row of the table, counted from 0.
    pub row: usize,
    /// The place of the column in the table, counted from 0.
    pub column: usize,
    /// The name of the column.
    pub name: String,
    /// What its values mean.
    pub kind: Kind,
    /// The value that fills the cell.
    pub filled: CellValue,
    /// What was done instead, where the method has no prediction: `the median`, `the most frequent level`.
    pub fallback: Option<&'static str>,
    /// The ends of the 90 % interval; none for levels without an order, and where the method has no distributions.
    pub interval: Option<[CellValue; 2]>,
    /// The probability of each level, the most probable first; empty for numbers, and where the method has none.
    pub probabilities: Vec<(String, f64)>,
    /// The members of the ensemble that predict the column, the largest weight first; empty where there is no ensemble.
    pub members: Vec<MemberPrediction>,
    /// What happens to the fill when an observed cell of the row is hidden, for each of them, the largest change first.
    pub influences: Vec<Influence>,
    /// The nearest rows of the training table, the nearest first; none where the model keeps no rows for this.
    pub donors: Option<Vec<Donor>>,
}

impl Explanation {
    /// The cells without which the fill would be another, or less probable; the first decides most.
    pub fn deciding(&self) -> impl Iterator<Item = &Influence> {
        self.influences.iter().filter(|influence| influence.size() > 0.0)
    }
}

/// What a member of an ensemble predicts of a cell by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemberPrediction {
    /// Its name.
    pub name: String,
    /// Its weight in the ensemble of the column; all of them add up to one.
    pub weight: f64,
    /// The number, or the level that it takes for the most probable.
    pub predicted: CellValue,
    /// The probability that it gives to the level that fills the cell; none for numbers.
    pub probability: Option<f64>,
}

/// What happens to a fill when one observed cell of its row is hidden.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Influence {
    /// The place of the hidden column in the table, counted from 0.
    pub column: usize,
    /// Its name.
    pub name: String,
    /// What its values mean.
    pub kind: Kind,
    /// The value of the cell that is hidden.
    pub value: CellValue,
    /// What would fill the missing cell then.
    pub without: CellValue,
    /// For a number: by how much the prediction would be higher, before it is rounded, in the column's own units (seconds
    /// for timestamps).
    pub change: Option<f64>,
    /// By how much the probability of the value that fills the cell would be higher; none where the
    /// method has no probabilities.
    pub probability_change: Option<f64>,
    /// Whether another value would fill the cell.
    pub is_other: bool,
}

impl Influence {
    /// How large the change is: of numbers in the column's own units, of levels in probability; 1 for another level, where
    /// the method has no probabilities.
    pub fn size(&self) -> f64 {
        let [moved, probability] = self.sizes();
        if moved > 0.0 { moved } else { probability }
    }

    /// How far the number moves, and how much the probability does: the second matters where the first is the same.
    fn sizes(&self) -> [f64; 2] {
        let is_other = f64::from(u8::from(self.is_other));
        [self.change.unwrap_or(0.0).abs(), self.probability_change.map_or(is_other, f64::abs)]
    }
}

/// A row of the training table that is near to a row, in which the explained column is observed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Donor {
    /// The row of the training table, counted from 0.
    pub row: usize,
    /// The share of the forest's trees in which both rows fall into the same leaf.
    pub proximity: f64,
    /// Its value of the explained column.
    pub value: CellValue,
    /// Its values of the columns that decide; none where one is missing.
    pub deciding: Vec<DonorCell>,
}

/// The value of a donor in a column that decides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DonorCell {
    /// The place of the column in the table that is explained, counted from 0.
    pub column: usize,
    /// Its name.
    pub name: String,
    /// The value; none where it is missing.
    pub value: Option<CellValue>,
}

/// What a fitted model holds of the rows that it was fitted to.
///
/// Every model holds what is learnt from values: medians, ranges, the values that a tree predicts. This is about whole rows,
/// or several values of one row side by side, which somebody who reads the file could put together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptRows {
    /// What they are kept for.
    pub what: &'static str,
    /// How many rows, at most.
    pub rows: usize,
    /// The names of the columns of which values are kept.
    pub columns: Vec<String>,
}

/// What a model says of its own prediction of a missing number, in the units of the encoded matrix.
#[derive(Clone, Debug, Default)]
pub struct Reasons {
    /// The members of its ensemble.
    pub members: Vec<MemberReason>,
    /// The nearest rows that it was fitted to; none where it keeps no rows for this.
    pub donors: Option<Vec<DonorRow>>,
}

/// A member's prediction of a missing number of the encoded matrix.
#[derive(Clone, Debug)]
pub struct MemberReason {
    /// The name of the member.
    pub name: String,
    /// Its weight.
    pub weight: f64,
    /// The number, or the code of the most probable level.
    pub point: f64,
    /// The probability of each value or code, where there are a few.
    pub shares: Vec<(f64, f32)>,
}

/// A row that a model was fitted to.
#[derive(Clone, Debug)]
pub struct DonorRow {
    /// Which row of the training table.
    pub row: usize,
    /// The share of the forest's trees in which it falls into the same leaf.
    pub proximity: f64,
    /// Its numbers, `NaN` where missing, `[w]`.
    pub x: Vec<f64>,
}

/// Rows of the encoded matrix that a model holds: see [`KeptRows`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptNumbers {
    /// What they are kept for.
    pub what: &'static str,
    /// How many rows, at most.
    pub rows: usize,
    /// The features of which numbers are kept; all of them where nothing is said.
    pub features: Option<Vec<usize>>,
}

/// Explanations of the least certain cells of a table, at most so many, and two of each column: what a report shows. It
/// costs a few predictions of each of their rows.
///
/// # Errors
/// As [`FittedImputer::explain`].
pub fn explain_least_certain(
    fitted: &dyn FittedImputer,
    rows: &Table,
    distributions: &PredictiveDistributions,
    most: usize,
    run: &Run,
) -> Result<Vec<Explanation>> {
    // One column of which nothing is known would leave no room for any other.
    let mut counts = vec![0; rows.cols()];
    let is_early = |cell: &(usize, usize)| {
        counts[cell.1] += 1;
        counts[cell.1] <= EXPLAINED_OF_COLUMN
    };
    let cells = least_certain(rows, distributions, usize::MAX).into_iter().filter(is_early).take(most);
    fitted.explain(rows, &cells.collect::<Vec<_>>(), run)
}
