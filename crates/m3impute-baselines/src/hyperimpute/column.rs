//! A feature as the learners see it, and what is to be learnt of it.

use m3impute_learners::Response;
use m3impute_learners::scaler::Ruler;
use serde::{Deserialize, Serialize};

/// A number with at most so many distinct values is learnt by the chance of each of them.
const FEW: usize = 12;
/// ... if each of them was seen so often, on average.
const FEW_TIMES: usize = 8;

/// How a feature is read and written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// How it is scaled.
    pub ruler: Ruler,
    /// Whether its numbers are taken as levels: the place of each among the distinct ones is its code.
    pub coded: bool,
}

impl Column {
    /// The column of observed values, of which there is at least one.
    pub fn of(values: &[f64], levels: usize, coded_below: usize) -> Column {
        let mut ruler = Ruler::of(values, levels);
        let coded = levels == 0 && ruler.known.len() < coded_below;
        if coded {
            let code = |v: f64| ruler.known.partition_point(|&k| k < v);
            let mut counts = vec![0_usize; ruler.known.len()];
            values.iter().for_each(|&v| counts[code(v)] += 1);
            let most = (0..counts.len()).reduce(|a, b| if counts[b] > counts[a] { b } else { a });
            ruler.start = most.unwrap_or(0) as f32;
        }
        Column { ruler, coded }
    }

    /// How many levels there are; 0 for numbers.
    pub fn levels(&self) -> usize {
        if self.coded { self.ruler.known.len() } else { self.ruler.levels }
    }

    /// A value as the learners see it, and the start for `NaN`.
    pub fn read(&self, value: f64) -> f32 {
        if value.is_nan() {
            return self.ruler.start;
        }
        if !self.coded {
            return self.ruler.read(value);
        }
        let apart = |k: usize| (self.ruler.known[k] - value).abs();
        (0..self.ruler.known.len()).reduce(|a, b| if apart(b) < apart(a) { b } else { a }).unwrap_or(0) as f32
    }

    /// A learner's value as a number of the feature.
    pub fn write(&self, value: f32) -> f64 {
        if self.coded {
            self.ruler.known.get(value as usize).copied().unwrap_or(f64::NAN)
        } else {
            self.ruler.write(value)
        }
    }

    /// What is predicted of it from so many observed cells; `few` says whether numbers with few values are learnt by the
    /// probability of each.
    pub fn response(&self, observed: usize, few: bool) -> Response {
        let known = &self.ruler.known;
        match self.levels() {
            0 if few && known.len() <= FEW && observed >= known.len() * FEW_TIMES => {
                Response::Values(known.iter().map(|&v| self.ruler.read(v)).collect())
            }
            0 => Response::Number,
            levels => Response::Levels(levels),
        }
    }
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
        assert_eq!((column.levels(), column.ruler.start, column.read(f64::NAN)), (3, 2.0, 2.0));
        assert!([10.0, 20.0, 30.0].iter().all(|&v| column.write(column.read(v)) == v));
        assert_eq!(column.read(24.0), 1.0);
        assert_eq!(Column::of(&[1.0, 2.0, 3.0, 4.0], 0, 4).levels(), 0);
    }
}
