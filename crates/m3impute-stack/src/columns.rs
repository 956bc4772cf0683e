//! The columns of a table as the stack sees them: what is predicted of each, and levels by their frequency.

use m3impute_core::encode::Meaning;
use m3impute_core::{Encoded, Error, Result};
use m3impute_gnn::network::Grid;
use m3impute_learners::Response;
use serde::{Deserialize, Serialize};

/// Categories with more levels keep the most frequent ones; the others are rare levels, which share one code.
const MOST_LEVELS: usize = 64;
/// A number with at most so many values ...
const FEW: usize = 64;
/// ... each of which occurs so often on average, is predicted by the probability of each.
const FEW_EACH: usize = 6;

/// The responses and levels of the columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Columns {
    /// What is predicted of each, `[m]`.
    pub responses: Vec<Response>,
    /// The codes of the frequent levels, the most frequent first; empty for numbers, `[m]`.
    levels: Vec<Vec<u32>>,
}

impl Columns {
    /// From the observed values of each feature.
    pub fn of(data: &Encoded) -> Columns {
        let (mut responses, mut levels) = (Vec::new(), Vec::new());
        for (f, feature) in data.features.iter().enumerate() {
            let values = data.observed_values(f);
            if let Meaning::Category(count) = feature.meaning {
                let frequent = most_frequent(&values, count);
                responses.push(Response::Levels(frequent.len()));
                levels.push(frequent);
            } else {
                responses.push(response_of(values.iter().map(|&v| v as f32).collect()));
                levels.push(Vec::new());
            }
        }
        Columns { responses, levels }
    }

    /// Columns of which this is predicted, with levels in their own order: for tests.
    #[cfg(test)]
    pub fn of_responses(responses: Vec<Response>) -> Columns {
        let levels = responses.iter().map(|r| match r {
            Response::Levels(count) => (0..*count as u32).collect(),
            _ => Vec::new(),
        });
        Columns { levels: levels.collect(), responses }
    }

    /// How many columns.
    pub fn len(&self) -> usize {
        self.responses.len()
    }

    /// How many codes trees see of each column: one more than the frequent levels; 0 for numbers.
    pub fn tree_levels(&self) -> Vec<usize> {
        self.levels.iter().map(|levels| if levels.is_empty() { 0 } else { levels.len() + 1 }).collect()
    }

    /// How many frequent levels each column has.
    pub fn frequent_levels(&self) -> Vec<usize> {
        self.levels.iter().map(Vec::len).collect()
    }

    /// The code of a level by its place.
    pub fn code(&self, column: usize, place: usize) -> f64 {
        f64::from(self.levels[column][place])
    }

    /// The codes of the levels of a column, in the order of their probabilities.
    pub fn codes(&self, column: usize) -> impl Iterator<Item = f64> + '_ {
        self.levels[column].iter().map(|&l| f64::from(l))
    }

    /// Some rows of a table as the members see them.
    pub fn grid(&self, data: &Encoded, rows: std::ops::Range<usize>) -> Grid {
        let m = data.width();
        let cells = rows.start * m..rows.end * m;
        let observed = data.observed[cells.clone()].to_vec();
        let read = |(at, (&value, &seen)): (usize, (&f64, &bool))| match &self.levels[at % m][..] {
            _ if !seen => 0.0,
            [] => value as f32,
            levels => levels.iter().position(|&l| f64::from(l) == value).unwrap_or(levels.len()) as f32,
        };
        let x = data.x[cells].iter().zip(&observed).enumerate().map(read).collect();
        Grid { n: rows.len(), m, x, observed }
    }

    /// Checks what came from a file against the features.
    ///
    /// # Errors
    /// When something does not fit.
    pub fn check(&self, meanings: &[Meaning]) -> Result<()> {
        if self.responses.len() != meanings.len() || self.levels.len() != meanings.len() {
            return Err(Error::damaged("the number of columns"));
        }
        for (f, (response, levels)) in self.responses.iter().zip(&self.levels).enumerate() {
            let fits = match (response, meanings[f]) {
                (Response::Levels(frequent), Meaning::Category(count)) => {
                    let are_codes = levels.len() == *frequent && levels.iter().all(|&l| l < count);
                    (1..=MOST_LEVELS).contains(frequent) && are_codes
                }
                (Response::Values(values), Meaning::Number) => {
                    let increasing = values.iter().all(|v| v.is_finite()) && values.windows(2).all(|w| w[0] < w[1]);
                    (1..=FEW).contains(&values.len()) && increasing && levels.is_empty()
                }
                (Response::Number, Meaning::Number) => levels.is_empty(),
                _ => false,
            };
            if !fits {
                return Err(Error::damaged(format!("the response or the levels of feature {f}")));
            }
        }
        Ok(())
    }
}

fn most_frequent(values: &[f64], count: u32) -> Vec<u32> {
    let mut counts = vec![0_usize; count as usize];
    values.iter().for_each(|&v| counts[v as usize] += 1);
    let mut levels: Vec<u32> = (0..count).filter(|&l| counts[l as usize] > 0).collect();
    levels.sort_by_key(|&l| (std::cmp::Reverse(counts[l as usize]), l));
    levels.truncate(MOST_LEVELS);
    levels
}

/// What is predicted of a number with these observed values.
fn response_of(mut values: Vec<f32>) -> Response {
    let count = values.len();
    values.sort_by(f32::total_cmp);
    values.dedup();
    if values.len() <= FEW && count >= FEW_EACH * values.len() { Response::Values(values) } else { Response::Number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_few_values_is_predicted_by_their_probabilities() {
        let values: Vec<f32> = (0..60).map(|i| [0.0, 0.25, 1.0][i % 3]).collect();
        assert_eq!(response_of(values), Response::Values(vec![0.0, 0.25, 1.0]));
        assert_eq!(response_of((0..60).map(|i| i as f32).collect()), Response::Number);
    }

    #[test]
    fn the_rarest_levels_share_a_code() {
        let values: Vec<f64> = (0..200).map(|i| if i < 100 { 7.0 } else { f64::from(i) }).collect();
        let levels = most_frequent(&values, 200);
        assert_eq!((levels[0], levels.len()), (7, MOST_LEVELS));
        let columns = Columns { responses: vec![Response::Levels(levels.len())], levels: vec![levels] };
        assert!(columns.check(&[Meaning::Category(200)]).is_ok());
        assert!(columns.check(&[Meaning::Category(7)]).is_err() && columns.check(&[Meaning::Number]).is_err());
    }
}
