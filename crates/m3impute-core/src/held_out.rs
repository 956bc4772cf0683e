//! How good a fitted method is, as far as it knows: its errors on observed cells that were held out while it learnt.

use crate::schema::Kind;
use serde::Serialize;

/// What an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The mean absolute difference, in the column's own units; seconds for moments, steps for ordered levels.
    AbsoluteError,
    /// The mean of `-ln p`, where `p` is the probability that the true level was given.
    LogLoss,
}

/// One opinion that an answer may be mixed of, by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Single {
    /// Whose opinion, in a word or two.
    pub name: String,
    /// Its mean error on the held-out cells.
    pub error: f64,
}

/// What held-out cells say.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HeldOut {
    /// How many cells were held out.
    pub cells: usize,
    /// The mean error of the answers; none where too few cells were held out to tell.
    pub error: Option<f64>,
    /// That of the typical value: the median, or the shares that the levels have.
    pub typical: Option<f64>,
    /// The best of the opinions other than the typical value.
    pub best: Option<Single>,
    /// What answers are mixed of, in words: `networks 40 %, forests 60 %`.
    pub mixture: String,
}

impl HeldOut {
    /// The same with errors in other units.
    pub(crate) fn times(mut self, unit: f64) -> HeldOut {
        let errors = [self.error.as_mut(), self.typical.as_mut(), self.best.as_mut().map(|b| &mut b.error)];
        errors.into_iter().flatten().for_each(|error| *error *= unit);
        self
    }
}

/// What held-out cells say of one column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnScore {
    /// The column.
    pub column: String,
    /// What its values mean.
    pub kind: Kind,
    /// What the errors are.
    pub measure: Measure,
    /// What was found.
    #[serde(flatten)]
    pub held_out: HeldOut,
}

impl ColumnScore {
    /// Whether the typical value does as well as all that was learnt. Not where nothing is known.
    ///
    /// ```
    /// use m3impute_core::{ColumnScore, HeldOut, Kind, Measure};
    /// let held_out = HeldOut { cells: 40, error: Some(2.0), typical: Some(8.0), ..HeldOut::default() };
    /// let measure = Measure::AbsoluteError;
    /// let score = ColumnScore { column: "age".to_owned(), kind: Kind::Integer, measure, held_out };
    /// assert!(!score.is_typical());
    /// assert_eq!(score.ratio(), Some(0.25));
    /// ```
    pub fn is_typical(&self) -> bool {
        self.ratio().is_some_and(|ratio| ratio >= 1.0)
    }

    /// The error as a share of that of the typical value, where both are known.
    pub fn ratio(&self) -> Option<f64> {
        let (error, typical) = self.held_out.error.zip(self.held_out.typical)?;
        Some(if typical > 0.0 { error / typical } else { 1.0 })
    }
}
