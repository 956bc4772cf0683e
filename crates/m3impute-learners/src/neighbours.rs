//! The nearest points, and what they say: the weighted median, or the level with the largest weight.
//!
//! Notation: `n` points, `p` coordinates.

mod learner;

pub use learner::{NeighboursLearner, NeighboursModel};
use m3impute_core::{Result, Run};
use rayon::prelude::*;

/// Queries that are predicted together.
const BLOCK: usize = 32;

/// Points with a value each.
///
/// ```
/// use m3impute_learners::neighbours::Neighbours;
/// use m3impute_core::Run;
/// let model = Neighbours { width: 1, points: vec![0.0, 1.0, 10.0], values: vec![5.0, 7.0, 90.0], nearest: 2, levels: 0 };
/// assert_eq!(model.predict(&[0.1], &Run::new(0, 1)?)?, [5.0]);
/// # Ok::<(), m3impute_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    /// How many coordinates a point has.
    pub width: usize,
    /// The points, one after the other, `[n, p]`.
    pub points: Vec<f32>,
    /// What each point has, `[n]`.
    pub values: Vec<f32>,
    /// How many are asked.
    pub nearest: usize,
    /// How many levels the values have; 0 for numbers.
    pub levels: usize,
}

impl Neighbours {
    /// The predictions for some points, `[q, p]`. A near point weighs more: by the inverse of its distance.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn predict(&self, queries: &[f32], run: &Run) -> Result<Vec<f32>> {
        let p = self.width.max(1);
        let mut predictions = vec![0.0; queries.len() / p];
        // Cancelling is looked at between batches of some ten milliseconds.
        let batch = (20_000_000 / (self.points.len() + 1)).clamp(BLOCK, 1 << 16);
        for (predictions, queries) in predictions.chunks_mut(batch).zip(queries.chunks(batch * p)) {
            run.check()?;
            run.install(|| {
                predictions.par_chunks_mut(BLOCK).zip(queries.par_chunks(BLOCK * p)).for_each(
                    |(predictions, queries)| {
                        let mut near = Vec::new();
                        for (prediction, query) in predictions.iter_mut().zip(queries.chunks_exact(p)) {
                            *prediction = self.prediction(query, &mut near);
                        }
                    },
                );
            });
        }
        Ok(predictions)
    }

    fn prediction(&self, query: &[f32], near: &mut Vec<(f32, u32)>) -> f32 {
        near.clear();
        let apart = |point: &[f32]| point.iter().zip(query).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
        near.extend(self.points.chunks_exact(self.width.max(1)).map(apart).zip(0..));
        let k = self.nearest.min(near.len());
        if k == 0 {
            return 0.0;
        }
        let order = |a: &(f32, u32), b: &(f32, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        near.select_nth_unstable_by(k - 1, order);
        near.truncate(k);
        near.sort_unstable_by(order);
        let mut said: Vec<(f32, f64)> =
            near.iter().map(|&(d, i)| (self.values[i as usize], 1.0 / (f64::from(d).sqrt() + 1e-3))).collect();
        if self.levels > 0 {
            let mut votes = vec![0.0; self.levels];
            said.iter().for_each(|&(v, weight)| votes[v as usize] += weight);
            return (0..self.levels).reduce(|a, b| if votes[b] > votes[a] { b } else { a }).unwrap_or(0) as f32;
        }
        said.sort_by(|a, b| a.0.total_cmp(&b.0));
        weighted_median(&said)
    }
}

/// The value at which half of the weight is reached, of values in rising order.
pub(crate) fn weighted_median(rising: &[(f32, f64)]) -> f32 {
    let half = rising.iter().map(|v| v.1).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let reached = rising.iter().find(|(_, weight)| {
        below += weight;
        below >= half
    });
    reached.or(rising.last()).map_or(0.0, |v| v.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_point_decides_and_levels_vote() {
        let run = Run::new(0, 1).unwrap();
        let values = vec![0.0, 2.0, 2.0];
        let mut model = Neighbours { width: 1, points: vec![0.0, 3.0, 4.0], values, nearest: 3, levels: 0 };
        assert_eq!(model.predict(&[0.0, 3.5], &run).unwrap(), [0.0, 2.0]);
        model.levels = 3;
        assert_eq!(model.predict(&[0.0, 3.5], &run).unwrap(), [0.0, 2.0]);
        model.nearest = 1;
        assert_eq!(model.predict(&[2.0], &run).unwrap(), [2.0]);
    }
}
