//! The shape of the distributions around predictions, from held-out cells: quantiles of residuals, and how likely the values
//! are that occur often, such as zeros. Draws have a shape that depends on the prediction: where a column is skewed, has
//! bounds or many zeros, the distribution around a small prediction has another shape than around a large one.

use m3impute_core::distributions::QUANTILE_LEVELS;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// There are shapes around so many points at most, each of at least twice so many cells.
const MOST_POINTS: usize = 10;
const CELLS: usize = 30;
/// With fewer cells there is one shape for the whole column.
const FEWEST_CELLS: usize = 80;
/// So many cells of other columns are worth as much to the scale of a column as its own.
const SHRINKAGE_CELLS: f32 = 20.0;
/// A value of at least this share of a column occurs often; so many of them at most count.
const FREQUENT: f64 = 0.05;
const MOST_FREQUENT: usize = 4;
/// A few units in the last place of numbers between 0 and 1.
const ROUNDING: f32 = 1e-6;
/// The share of a distribution that each of [`QUANTILE_LEVELS`] stands for: up to the middles between them.
const LEVEL_SHARES: [f64; QUANTILE_LEVELS.len()] = {
    let mut shares = [0.0; QUANTILE_LEVELS.len()];
    let mut k = 0;
    while k < shares.len() {
        let from = if k == 0 { 0.0 } else { (QUANTILE_LEVELS[k - 1] + QUANTILE_LEVELS[k]) / 2.0 };
        let to = if k + 1 == shares.len() { 1.0 } else { (QUANTILE_LEVELS[k] + QUANTILE_LEVELS[k + 1]) / 2.0 };
        shares[k] = to - from;
        k += 1;
    }
    shares
};

/// Quantiles at [`QUANTILE_LEVELS`].
pub type Quantiles = [f32; QUANTILE_LEVELS.len()];

/// The distributions around the points of a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Values that occur often.
    frequent: Vec<f32>,
    /// What is around some points, which increase; between two of them in proportion.
    around: Vec<Around>,
}

/// What cells with predictions around a point say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Around {
    point: f32,
    /// The probability of each frequent value.
    shares: Vec<f32>,
    /// Of all other values, the quantiles of residuals in units of the spread.
    quantiles: Vec<f32>,
}

/// A cell of a number whose truth is known.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Its prediction.
    pub point: f32,
    /// The scale of its residual.
    pub spread: f32,
    /// The truth.
    pub truth: f32,
    /// How much it counts; those of a column have the sum one.
    pub weight: f64,
    /// In which half of the cells it is when shapes are compared.
    pub is_in_half: bool,
}

impl Cell {
    /// The distance from the prediction to the truth, in units of the spread.
    pub fn residual(&self) -> f32 {
        (self.truth - self.point) / self.spread
    }
}

impl Shape {
    /// The same quantiles of residuals around every point, and no frequent values.
    pub fn uniform(quantiles: Vec<f32>) -> Shape {
        Shape { frequent: Vec::new(), around: vec![Around { point: 0.0, shares: Vec::new(), quantiles }] }
    }

    /// The shape that describes these cells best, and its loss: one for all points, another around each, or that with frequent
    /// values; compared on the half of the cells that it is not made of. Where there are few cells, it is one for all points,
    /// and `plain` quantiles of residuals count as well.
    pub fn best(cells: &[Cell], frequent: &[f32], plain: &[f32]) -> (Shape, f64) {
        let (half, other): (Vec<Cell>, Vec<Cell>) = cells.iter().partition(|cell| cell.is_in_half);
        let most = (cells.len() / CELLS).clamp(1, MOST_POINTS);
        let shapes: [(usize, &[f32]); 3] = [(1, &[]), (most, &[]), (most, frequent)];
        let are_few = half.len().min(other.len()) < FEWEST_CELLS / 2;
        let loss_of = |&(points, frequent): &(usize, &[f32])| {
            let of = |cells: &[Cell], measured: &[Cell]| -> f64 {
                if cells.is_empty() {
                    return 0.0;
                }
                let shape = Shape::of(cells, points, frequent, plain);
                let loss = |c: &Cell| c.weight * quantile_loss(&shape.quantiles(c.point, c.spread), c.truth);
                measured.iter().map(loss).sum()
            };
            of(&half, &other) + of(&other, &half)
        };
        let tried = if are_few { &shapes[..1] } else { &shapes[..] };
        let losses: Vec<f64> = tried.iter().map(loss_of).collect();
        let best = (0..losses.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap_or(0);
        (Shape::of(cells, shapes[best].0, shapes[best].1, plain), losses[best])
    }

    fn of(cells: &[Cell], points: usize, frequent: &[f32], plain: &[f32]) -> Shape {
        // The residuals of other values than the frequent ones are not those of all.
        let others: Vec<&Cell> = cells.iter().filter(|cell| !frequent.contains(&cell.truth)).collect();
        let plain = if frequent.is_empty() || others.is_empty() { plain.to_vec() } else { residual_quantiles(&others) };
        let mut sorted: Vec<&Cell> = cells.iter().collect();
        sorted.sort_by(|a, b| a.point.total_cmp(&b.point).then(a.truth.total_cmp(&b.truth)));
        let each = sorted.len() as f64 / points as f64;
        let mut around: Vec<Around> = Vec::with_capacity(points);
        for k in 0..points {
            // Half of the cells on each side are those of its neighbours, too.
            let from = ((k as f64 - 0.5) * each).max(0.0) as usize;
            let to = (((k as f64 + 1.5) * each).ceil() as usize).min(sorted.len());
            let near = Around::of(&sorted[from..to], frequent, &plain);
            // Equal points make one.
            if around.last().is_none_or(|last| last.point < near.point) {
                around.push(near);
            }
        }
        Shape { frequent: frequent.to_vec(), around }
    }

    /// The quantiles of the distribution around a point with this spread.
    pub fn quantiles(&self, point: f32, spread: f32) -> Quantiles {
        let above = self.around.partition_point(|a| a.point <= point);
        let (low, high) = (&self.around[above.saturating_sub(1)], &self.around[above.min(self.around.len() - 1)]);
        let share = ((point - low.point) / (high.point - low.point).max(f32::MIN_POSITIVE)).clamp(0.0, 1.0);
        let between = |low: f32, high: f32| low + share * (high - low);
        let quantiles: Quantiles =
            // Bounds are rounded outwards: one that is a value of the column must not lie beside it by a rounding error.
            std::array::from_fn(|k| point + spread * between(low.quantiles[k], high.quantiles[k]) + outwards(k));
        let frequent: Vec<(f32, f64)> = (self.frequent.iter().zip(low.shares.iter().zip(&high.shares)))
            .map(|(&value, (&low, &high))| (value, f64::from(between(low, high))))
            .filter(|(_, share)| *share > 0.0)
            .collect();
        if frequent.is_empty() { quantiles } else { mixture(&quantiles, &frequent) }
    }

    /// Whether what came from a file makes sense.
    pub fn is_sound(&self) -> bool {
        let is_share = |share: &f32| (0.0..=1.0).contains(share);
        let is_distribution = |of: &Around| {
            of.quantiles.len() == QUANTILE_LEVELS.len()
                && of.quantiles.windows(2).all(|w| w[0] <= w[1])
                && of.shares.len() == self.frequent.len()
                && of.shares.iter().all(is_share)
        };
        !self.around.is_empty()
            && self.around.windows(2).all(|w| w[0].point < w[1].point)
            && self.around.iter().all(is_distribution)
            && self.frequent.iter().all(|value| value.is_finite())
    }
}

impl Around {
    fn of(cells: &[&Cell], frequent: &[f32], plain: &[f32]) -> Around {
        let total: f64 = cells.iter().map(|cell| cell.weight).sum();
        let mean = |of: &dyn Fn(&Cell) -> f64| cells.iter().map(|c| c.weight / total * of(c)).sum::<f64>() as f32;
        let shares: Vec<f32> =
            frequent.iter().map(|&value| mean(&|cell| f64::from(u8::from(cell.truth == value)))).collect();
        let others: Vec<&Cell> = cells.iter().copied().filter(|cell| !frequent.contains(&cell.truth)).collect();
        let mut quantiles = plain.to_vec();
        if !others.is_empty() {
            let share = own_share(others.len());
            let own = residual_quantiles(&others);
            quantiles.iter_mut().zip(own).for_each(|(q, own)| *q += share * (own - *q));
        }
        Around { point: mean(&|cell| cell.point.into()), shares, quantiles }
    }
}

fn residual_quantiles(cells: &[&Cell]) -> Vec<f32> {
    let total: f64 = cells.iter().map(|cell| cell.weight).sum();
    let weights: Vec<f64> = cells.iter().map(|cell| cell.weight / total).collect();
    weighted_quantiles(&cells.iter().map(|cell| cell.residual()).collect::<Vec<f32>>(), &weights)
}

/// The values that occur often in a column: at least [`FREQUENT`] of all, the most frequent first.
pub fn frequent_values(values: &[f32]) -> Vec<f32> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f32::total_cmp);
    let mut runs: Vec<(usize, f32)> = sorted.chunk_by(|a, b| a == b).map(|run| (run.len(), run[0])).collect();
    runs.retain(|(count, _)| *count > 1 && *count as f64 >= FREQUENT * values.len() as f64);
    runs.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.total_cmp(&b.1)));
    runs.into_iter().take(MOST_FREQUENT).map(|(_, value)| value).collect()
}

/// The quantiles of a distribution mixed with frequent values, of which each has this probability.
fn mixture(quantiles: &Quantiles, frequent: &[(f32, f64)]) -> Quantiles {
    let rest = (1.0 - frequent.iter().map(|(_, share)| share).sum::<f64>()).max(0.0);
    let mut all: Vec<(f32, f64)> = quantiles.iter().zip(LEVEL_SHARES).map(|(&q, share)| (q, rest * share)).collect();
    all.extend(frequent);
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut place, mut below) = (0, all[0].1);
    QUANTILE_LEVELS.map(|level| {
        while below < level - 1e-9 && place + 1 < all.len() {
            place += 1;
            below += all[place].1;
        }
        all[place].0
    })
}

/// What is added to a quantile so that it is not moved inwards by rounding.
fn outwards(quantile: usize) -> f32 {
    match quantile.cmp(&(QUANTILE_LEVELS.len() / 2)) {
        Ordering::Less => -ROUNDING,
        Ordering::Equal => 0.0,
        Ordering::Greater => ROUNDING,
    }
}

/// How well quantiles describe a value: the sum of their losses, which grows with the CRPS.
fn quantile_loss(quantiles: &Quantiles, truth: f32) -> f64 {
    let loss = |(q, level): (&f32, f64)| {
        let above = f64::from(truth - q);
        if above > 0.0 { level * above } else { (level - 1.0) * above }
    };
    quantiles.iter().zip(QUANTILE_LEVELS).map(loss).sum()
}

/// How much so many held-out cells of a column count against those of all columns.
pub fn own_share(cells: usize) -> f32 {
    cells as f32 / (cells as f32 + SHRINKAGE_CELLS)
}

/// The quantiles of weighted numbers at [`QUANTILE_LEVELS`], between two of them in proportion.
fn weighted_quantiles(numbers: &[f32], weights: &[f64]) -> Vec<f32> {
    let mut sorted: Vec<(f32, f64)> = numbers.iter().copied().zip(weights.iter().copied()).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut below = 0.0;
    // The level of each is in the middle of its own share.
    let places = sorted.iter().map(|&(_, weight)| {
        below += weight;
        below - weight / 2.0
    });
    let places: Vec<f64> = places.collect();
    let at = |level: f64| match places.partition_point(|&p| p < level) {
        0 => sorted[0].0,
        k if k == sorted.len() => sorted[k - 1].0,
        k => {
            let share = (level - places[k - 1]) / (places[k] - places[k - 1]).max(f64::MIN_POSITIVE);
            sorted[k - 1].0 + (sorted[k].0 - sorted[k - 1].0) * share as f32
        }
    };
    QUANTILE_LEVELS.map(at).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Residuals of a normal distribution by its own quantiles, one after the other.
    fn noise(i: usize) -> f32 {
        let level = (i * 37 % 100) as f32 / 100.0 + 0.005;
        1.7 * (level / (1.0 - level)).ln() / 3.0
    }

    fn cell((i, (point, truth)): (usize, (f32, f32))) -> Cell {
        Cell { point, spread: 1.0, truth, weight: 1.0 / 400.0, is_in_half: i % 3 == 0 }
    }

    fn share_of(value: f32, quantiles: &Quantiles) -> f64 {
        quantiles.iter().zip(LEVEL_SHARES).filter(|(q, _)| **q == value).map(|(_, share)| share).sum()
    }

    #[test]
    fn zeros_are_as_frequent_as_among_cells_with_such_predictions() {
        // The smaller the prediction the more zeros: all of the smallest, and none of the largest.
        let of = |i: usize| {
            let point = i as f32 / 400.0;
            (point, if (i * 61 % 400) as f32 / 400.0 > point { 0.0 } else { 1.0 + 0.1 * noise(i) })
        };
        let cells: Vec<Cell> = (0..400).map(of).enumerate().map(cell).collect();
        let frequent = frequent_values(&cells.iter().map(|cell| cell.truth).collect::<Vec<f32>>());
        assert_eq!(frequent[0], 0.0);
        let (shape, _) = Shape::best(&cells, &frequent[..1], &[0.0; QUANTILE_LEVELS.len()]);
        assert!(shape.is_sound() && shape.around.len() > 4);
        for point in [0.2, 0.5, 0.8] {
            let quantiles = shape.quantiles(point, 1.0);
            let zeros = share_of(0.0, &quantiles);
            assert!((zeros - (1.0 - f64::from(point))).abs() < 0.12, "{point}: {quantiles:?}");
            assert!(quantiles.iter().all(|q| *q == 0.0 || (0.3..1.7).contains(q)), "{quantiles:?}");
        }
    }

    #[test]
    fn residuals_that_grow_with_the_prediction_have_another_shape_around_each() {
        let of = |i: usize| {
            let point = i as f32 / 400.0;
            (point, point + point * noise(i))
        };
        let cells: Vec<Cell> = (0..400).map(of).enumerate().map(cell).collect();
        let plain = weighted_quantiles(&cells.iter().map(Cell::residual).collect::<Vec<f32>>(), &[1.0 / 400.0; 400]);
        let (shape, _) = Shape::best(&cells, &[], &plain);
        let width = |point: f32| {
            let quantiles = shape.quantiles(point, 1.0);
            quantiles[18] - quantiles[2]
        };
        assert!((width(0.9) / width(0.3) - 3.0).abs() < 0.8, "{} {}", width(0.3), width(0.9));
        // With few cells the shape is one for all points.
        assert_eq!(Shape::best(&cells[..60], &[], &plain).0.around.len(), 1);
    }

    #[test]
    fn quantiles_of_a_mixture_are_those_of_both_parts() {
        let even: Quantiles = QUANTILE_LEVELS.map(|level| level as f32);
        let half = mixture(&even, &[(0.0, 0.5)]);
        assert!((share_of(0.0, &half) - 0.5).abs() < 0.06, "{half:?}");
        assert!((half[QUANTILE_LEVELS.len() - 3] - 0.9).abs() < 0.05, "{half:?}");
        assert_eq!(frequent_values(&[1.0, 2.0, 2.0, 3.0]), [2.0]);
    }
}
