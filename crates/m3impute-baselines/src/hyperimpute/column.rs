//! A feature as the learners see it, and what is to be learnt of it.

use crate::in_turn::{UnitFeature, most_frequent};
use m3impute_learners::Response;

/// A number with at most so many distinct values is learnt by the chance of each of them.
const FEW: usize = 12;
/// ... if each of them was seen so often, on average.
const FEW_TIMES: usize = 8;

/// How a feature is read and written.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The feature as learners see it; its initial imputation is a code where its numbers are coded.
    pub feature: UnitFeature,
    /// Where its numbers are taken as levels: its distinct values, whose places are the codes.
    pub coded: Option<Vec<f64>>,
}

impl Column {
    /// The column of observed values, of which there is at least one.
    pub fn of(values: &[f64], levels: usize, coded_below: usize) -> Column {
        let mut feature = UnitFeature::of(values, levels);
        let known = distinct(values);
        let coded = (levels == 0 && known.len() < coded_below).then_some(known);
        if let Some(known) = &coded {
            let codes = values.iter().map(|&v| known.partition_point(|&k| k < v));
            feature.initial = most_frequent(codes, known.len()) as f32;
        }
        Column { feature, coded }
    }

    /// How many levels there are; 0 for numbers.
    pub fn levels(&self) -> usize {
        self.coded.as_ref().map_or(self.feature.levels, Vec::len)
    }

    /// A value as the learners see it, and the initial imputation for `NaN`.
    pub fn read(&self, value: f64) -> f32 {
        match &self.coded {
            Some(known) if !value.is_nan() => {
                let apart = |k: usize| (known[k] - value).abs();
                (0..known.len()).reduce(|a, b| if apart(b) < apart(a) { b } else { a }).unwrap_or(0) as f32
            }
            _ => self.feature.read(value),
        }
    }

    /// A learner's value as a number of the feature.
    pub fn write(&self, value: f32) -> f64 {
        match &self.coded {
            Some(known) => known.get(value as usize).copied().unwrap_or(f64::NAN),
            None => f64::from(value),
        }
    }

    /// What is predicted of it, given its observed values; `few` says whether numbers with few values are learnt by the
    /// probability of each.
    pub fn response(&self, values: &[f64], few: bool) -> Response {
        match self.levels() {
            0 => {
                let known = distinct(values);
                let is_few = few && known.len() <= FEW && values.len() >= known.len() * FEW_TIMES;
                if is_few { Response::Values(known.iter().map(|&v| v as f32).collect()) } else { Response::Number }
            }
            levels => Response::Levels(levels),
        }
    }
}

/// The distinct values, rising.
fn distinct(values: &[f64]) -> Vec<f64> {
    let mut known = values.to_vec();
    known.sort_unstable_by(f64::total_cmp);
    known.dedup();
    known
}

/// How wrong a point estimate is: by how much, for numbers, or at all, for levels.
pub fn error(response: &Response, truth: f32, point: f32) -> f64 {
    let apart = f64::from((truth - point).abs());
    if matches!(response, Response::Levels(_)) { f64::from(u8::from(apart > 0.0)) } else { apart }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_taken_as_levels_come_back() {
        let column = Column::of(&[10.0, 30.0, 30.0, 20.0], 0, 5);
        assert_eq!((column.levels(), column.feature.initial, column.read(f64::NAN)), (3, 2.0, 2.0));
        assert!([10.0, 20.0, 30.0].iter().all(|&v| column.write(column.read(v)) == v));
        assert_eq!(column.read(24.0), 1.0);
        assert_eq!(Column::of(&[1.0, 2.0, 3.0, 4.0], 0, 4).levels(), 0);
    }
}
