//! Split-conformal calibration: turns predictions into distributions with the nominal coverage, from out-of-fold
//! predictions and the truth.

use crate::balance::balancing_weights;
use crate::predictions::log_loss;
use crate::select::is_in;
use crate::shape::{Cell, Shape, frequent_values, own_share};
use m3impute_core::distributions::{QUANTILE_LEVELS, around_median};
use m3impute_learners::Response;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// With fewer held-out cells a column has the shape of all columns' residuals together, and with fewer in all the normal
/// distribution's.
const ENOUGH: usize = 40;
/// The quantiles of the normal distribution at [`QUANTILE_LEVELS`].
const NORMAL: [f32; QUANTILE_LEVELS.len()] = [
    -2.576, -1.96, -1.645, -1.282, -1.036, -0.842, -0.674, -0.524, -0.385, -0.253, 0.0, 0.253, 0.385, 0.524, 0.674,
    0.842, 1.036, 1.282, 1.645, 1.96, 2.576,
];
/// The nominal coverage at which probabilities are calibrated, and strata compared.
const CALIBRATED: f64 = 0.9;
/// The places of the ends of its interval in [`QUANTILE_LEVELS`].
const LOWER: usize = 2;
const UPPER: usize = QUANTILE_LEVELS.len() - 3;
/// At most so many strata of rows by how many cells they show, each of at least so many held-out cells.
const STRATA: usize = 5;
const STRATUM: usize = 100;
/// What a spread to draw with is at least, in shares of the mean residual: the best of these.
const FLOORS: [f32; 3] = [0.0, 0.3, 1.0];

/// How a prediction becomes a distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Calibration {
    /// A point and a spread: residuals in units of the spread have this shape (conformal scales).
    Conformal {
        /// Of one shape for all points to fill, of another around each to draw.
        shape: Shape,
        /// A spread is at least this much.
        least: f32,
    },
    /// Probabilities: they are shrunk towards the prior, the shares of the classes in the column.
    Shrinkage {
        /// How much.
        share: f32,
        /// The shares of the classes.
        prior: Vec<f32>,
    },
}

/// Held-out cells of a column.
#[derive(Clone, Copy, Debug)]
pub struct HeldOut<'a> {
    /// What is predicted of the column.
    pub response: &'a Response,
    /// The predictions of the cells.
    pub predicted: &'a [f32],
    /// Their true values.
    pub truth: &'a [f32],
    /// How many cells the row of each shows.
    pub shown: &'a [u32],
    /// Which row of the table each is in.
    pub rows: &'a [u32],
}

impl HeldOut<'_> {
    /// The least spread that a prediction gets, so that one that is too sure does not divide by nothing.
    fn least_spread(&self) -> f32 {
        let mut spreads: Vec<f32> = self.predicted.chunks_exact(2).map(|p| p[1]).collect();
        spreads.sort_by(f32::total_cmp);
        0.2 * spreads.get(spreads.len() / 2).copied().unwrap_or(0.0) + 1e-6
    }

    /// The distances from the predictions to the truth, in units of the spread and of a factor for what the row shows.
    fn residuals(&self, least: f32, scale: &ShownScale) -> Vec<f32> {
        let cells = self.predicted.chunks_exact(2).zip(self.truth).zip(self.shown);
        cells.map(|((p, t), &shown)| (t - p[0]) / (p[1].max(least) * scale.at(shown))).collect()
    }
}

/// How much wider the distributions of rows that show few cells are, beyond what predicted spreads say: a factor for each
/// stratum of rows by how many cells they show. It is one for the whole table, because a column has too few held-out
/// cells for one of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShownScale {
    /// Where strata begin: a row belongs to the last whose beginning it reaches. Increasing.
    from: Vec<u32>,
    /// The factor of each.
    factors: Vec<f32>,
}

impl Default for ShownScale {
    fn default() -> ShownScale {
        ShownScale { from: vec![0], factors: vec![1.0] }
    }
}

impl ShownScale {
    /// From the held-out cells of all columns.
    pub fn of(columns: &[HeldOut]) -> ShownScale {
        let mut cells: Vec<(u32, f32)> = Vec::new();
        for column in numbers(columns) {
            let residuals = column.residuals(column.least_spread(), &ShownScale::default());
            let sizes: Vec<f32> = residuals.iter().map(|r| r.abs()).collect();
            // Columns are compared in units of their own intervals.
            let unit = quantile(&mut sizes.clone(), CALIBRATED).max(f32::MIN_POSITIVE);
            cells.extend(column.shown.iter().zip(&sizes).map(|(&shown, size)| (shown, size / unit)));
        }
        cells.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let each = (cells.len() / STRATA).max(STRATUM);
        let (mut from, mut factors, mut begin) = (Vec::new(), Vec::new(), 0);
        while begin < cells.len() {
            // A stratum ends between two counts, and the last one is never a small rest.
            let mut end = (begin + each).min(cells.len());
            while end < cells.len() && (cells[end].0 == cells[end - 1].0 || cells.len() - end < each) {
                end += 1;
            }
            let mut sizes: Vec<f32> = cells[begin..end].iter().map(|c| c.1).collect();
            let count = sizes.len() as f32;
            let factor = quantile(&mut sizes, CALIBRATED).clamp(0.2, 5.0);
            from.push(cells[begin].0);
            factors.push((count * factor + STRATUM as f32) / (count + STRATUM as f32));
            begin = end;
        }
        if from.is_empty() { ShownScale::default() } else { ShownScale { from, factors } }
    }

    /// The factor of a row that shows so many cells: the largest where no held-out cell has a row that shows so few.
    pub fn at(&self, shown: u32) -> f32 {
        match self.from.partition_point(|&from| from <= shown) {
            0 => self.factors.iter().copied().fold(1.0, f32::max),
            stratum => self.factors[stratum - 1],
        }
    }

    /// The fewest cells that the row of a held-out cell shows.
    pub fn fewest(&self) -> u32 {
        self.from[0]
    }

    /// Whether what came from a file makes sense.
    pub fn is_sound(&self) -> bool {
        let is_factor = |f: &f32| f.is_finite() && *f > 0.0;
        !self.from.is_empty()
            && self.from.len() == self.factors.len()
            && self.from.windows(2).all(|w| w[0] < w[1])
            && self.factors.iter().all(is_factor)
    }
}

/// Columns of numbers with held-out cells.
fn numbers<'a>(columns: &'a [HeldOut<'a>]) -> impl Iterator<Item = &'a HeldOut<'a>> {
    columns.iter().filter(|c| *c.response == Response::Number && !c.truth.is_empty())
}

/// What the held-out cells of all columns say together, for columns that have too few of their own.
#[derive(Clone, Debug)]
pub struct Pooled {
    /// The factors for what a row shows.
    pub scale: ShownScale,
    /// The quantiles of residuals at [`QUANTILE_LEVELS`], in units of their mean size.
    shape: Vec<f32>,
    /// The mean size of residuals.
    size: f32,
}

impl Pooled {
    /// From the held-out cells of all columns.
    pub fn of(columns: &[HeldOut]) -> Pooled {
        let scale = ShownScale::of(columns);
        let (mut all, mut sizes) = (Vec::new(), Vec::new());
        for column in numbers(columns) {
            let residuals = column.residuals(column.least_spread(), &scale);
            let size = mean_size(&residuals);
            all.extend(residuals.iter().map(|r| r / size));
            sizes.push(size);
        }
        if all.len() < ENOUGH {
            return Pooled { scale, ..Pooled::default() };
        }
        sizes.sort_by(f32::total_cmp);
        Pooled { scale, shape: quantiles(&mut all), size: sizes[sizes.len() / 2] }
    }

    /// The quantiles of a column's residuals with the shape of all columns' and a size between theirs and its own.
    fn quantiles(&self, residuals: &[f32]) -> Vec<f32> {
        let own = if residuals.is_empty() { self.size } else { mean_size(residuals) };
        let share = own_share(residuals.len());
        let size = share * own + (1.0 - share) * self.size;
        self.shape.iter().map(|q| q * size).collect()
    }
}

impl Default for Pooled {
    fn default() -> Pooled {
        Pooled { scale: ShownScale::default(), shape: NORMAL.to_vec(), size: 1.0 }
    }
}

fn mean_size(residuals: &[f32]) -> f32 {
    let sum: f32 = residuals.iter().map(|r| r.abs()).sum();
    (sum / residuals.len().max(1) as f32).max(f32::MIN_POSITIVE)
}

/// The quantiles of residuals at [`QUANTILE_LEVELS`]: of ranks among one more, as a new residual may lie outside of all
/// others. The point stays the median: where most residuals are on one side of it, the quantiles in between are 0.
fn quantiles(residuals: &mut [f32]) -> Vec<f32> {
    residuals.sort_by(f32::total_cmp);
    let n = residuals.len();
    let at = |level: f64| {
        let place = level * (n + 1) as f64;
        let residual = |place: f64| residuals[(place as usize).clamp(1, n) - 1];
        match level.total_cmp(&0.5) {
            Ordering::Less => residual(place.floor()).min(0.0),
            Ordering::Equal => 0.0,
            Ordering::Greater => residual(place.ceil()).max(0.0),
        }
    };
    QUANTILE_LEVELS.map(at).to_vec()
}

/// The value below which this share lies: of ranks among one more, as a new value may lie above all others.
fn quantile(values: &mut [f32], share: f64) -> f32 {
    values.sort_by(f32::total_cmp);
    let rank = (share * (values.len() + 1) as f64).ceil() as usize;
    values[rank.clamp(1, values.len()) - 1]
}

impl Calibration {
    /// From held-out cells, and the shares of the classes in the column.
    pub fn of(held: HeldOut, prior: &[f32], pooled: &Pooled) -> Calibration {
        let HeldOut { response, predicted, truth, .. } = held;
        if *response != Response::Number {
            let cells = || predicted.chunks_exact(response.width()).zip(truth);
            // The least shrinkage with which the central regions cover as many cells as their probability claims.
            let has_coverage = |shrinkage: f32| {
                let mut balance = 0.0;
                for (o, t) in cells() {
                    let region = central(response, &shrunk(o, prior, shrinkage), *t);
                    balance += f64::from(u8::from(region.covers)) - region.share;
                }
                balance >= -1e-3
            };
            let choices = [0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4];
            let shrinkage = choices.into_iter().find(|&s| has_coverage(s)).unwrap_or(0.5);
            let share = if truth.is_empty() { 0.1 } else { shrinkage };
            return Calibration::Shrinkage { share, prior: prior.to_vec() };
        }
        let least = held.least_spread();
        let mut residuals = held.residuals(least, &pooled.scale);
        let count = residuals.len();
        let quantiles = if count < ENOUGH { pooled.quantiles(&residuals) } else { quantiles(&mut residuals) };
        Calibration::Conformal { shape: Shape::uniform(quantiles), least }
    }

    /// The same for distributions that draws are taken from: numbers have the plain quantiles of the residuals, which an
    /// interval widens, of held-out cells in the balance of all `observed` ones; probabilities are as sure as makes the
    /// held-out cells most likely.
    pub fn for_draws(held: HeldOut, prior: &[f32], observed: &[f32], pooled: &Pooled) -> Calibration {
        let HeldOut { response, predicted, truth, .. } = held;
        if *response != Response::Number {
            let cells = || predicted.chunks_exact(response.width()).zip(truth);
            let loss =
                |share: f32| -> f64 { cells().map(|(p, &t)| log_loss(response, &shrunk(p, prior, share), t)).sum() };
            let choices = [0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5];
            let best = choices.into_iter().min_by(|a, b| loss(*a).total_cmp(&loss(*b)));
            return Calibration::Shrinkage { share: best.unwrap_or(0.1), prior: prior.to_vec() };
        }
        let least = held.least_spread();
        if truth.is_empty() {
            return Calibration::Conformal { shape: Shape::uniform(pooled.quantiles(&[])), least };
        }
        let frequent = frequent_values(observed);
        let weights = balancing_weights(truth, observed, &frequent);
        let of_floor = |least: f32| {
            let cell = |(i, p): (usize, &[f32])| Cell {
                point: p[0],
                spread: p[1].max(least) * pooled.scale.at(held.shown[i]),
                truth: truth[i],
                weight: weights[i],
                is_in_half: is_in(held.rows[i], 0),
            };
            let cells: Vec<Cell> = predicted.chunks_exact(2).enumerate().map(cell).collect();
            let (shape, loss) =
                Shape::best(&cells, &frequent, &pooled.quantiles(&held.residuals(least, &pooled.scale)));
            (loss, Calibration::Conformal { shape, least })
        };
        // A spread near nothing, where the trees of a forest agree, makes a residual enormous, and so draws elsewhere.
        let sizes: Vec<f32> = predicted.chunks_exact(2).zip(truth).map(|(p, t)| (t - p[0]).abs()).collect();
        let floors = FLOORS.map(|share| least.max(share * mean_size(&sizes)));
        let all = floors.map(of_floor);
        all.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).map(|best| best.1).expect("there are floors")
    }

    /// The share of held-out cells in the interval, those in each half of the rows with the calibration of the other half;
    /// none where there are too few.
    pub fn coverage(held: HeldOut, prior: &[f32], pooled: &Pooled) -> Option<f64> {
        let (response, n) = (held.response, held.truth.len());
        let is_ordered = response.is_number();
        if n < ENOUGH || !is_ordered {
            return None;
        }
        let width = response.width();
        let mut covered = 0;
        for half in [false, true] {
            let is_measured = |i: &usize| is_in(held.rows[*i], 0) == half;
            let others: Vec<usize> = (0..n).filter(|i| !is_measured(i)).collect();
            let of = |cells: &[f32], width: usize| -> Vec<f32> {
                others.iter().flat_map(|&i| &cells[i * width..(i + 1) * width]).copied().collect()
            };
            let (predicted, truth) = (of(held.predicted, width), of(held.truth, 1));
            let [shown, rows] = [held.shown, held.rows].map(|x| others.iter().map(|&i| x[i]).collect::<Vec<u32>>());
            let others = HeldOut { response, predicted: &predicted, truth: &truth, shown: &shown, rows: &rows };
            let calibration = Calibration::of(others, prior, pooled);
            for i in (0..n).filter(is_measured) {
                let (predicted, truth) = (&held.predicted[i * width..(i + 1) * width], held.truth[i]);
                covered += usize::from(match &calibration {
                    Calibration::Conformal { .. } => {
                        let quantiles = calibration.quantiles(predicted, pooled.scale.at(held.shown[i]));
                        (quantiles[LOWER]..=quantiles[UPPER]).contains(&truth)
                    }
                    Calibration::Shrinkage { .. } => central(response, &calibration.shares(predicted), truth).covers,
                });
            }
        }
        Some(covered as f64 / n as f64)
    }

    /// The quantiles of a number at [`QUANTILE_LEVELS`], given the factor for what its row shows.
    ///
    /// # Panics
    /// For probabilities.
    pub fn quantiles(&self, prediction: &[f32], factor: f32) -> [f32; QUANTILE_LEVELS.len()] {
        let Calibration::Conformal { shape, least } = self else { unreachable!("probabilities have none") };
        shape.quantiles(prediction[0], prediction[1].max(*least) * factor)
    }

    /// The calibrated probabilities of classes.
    ///
    /// # Panics
    /// For numbers.
    pub fn shares(&self, probabilities: &[f32]) -> Vec<f32> {
        let Calibration::Shrinkage { share, prior } = self else { unreachable!("numbers have none") };
        shrunk(probabilities, prior, *share)
    }

    /// Whether what came from a file fits the column.
    pub fn is_sound(&self, response: &Response) -> bool {
        match self {
            Calibration::Conformal { shape, least } => {
                *response == Response::Number && shape.is_sound() && least.is_finite()
            }
            Calibration::Shrinkage { share, prior } => {
                *response != Response::Number
                    && (0.0..=1.0).contains(share)
                    && prior.len() == response.classes()
                    && prior.iter().all(|p| p.is_finite())
            }
        }
    }
}

/// Probabilities shrunk to the prior.
pub fn shrunk(probabilities: &[f32], prior: &[f32], shrinkage: f32) -> Vec<f32> {
    probabilities.iter().zip(prior).map(|(p, prior)| (1.0 - shrinkage) * p + shrinkage * prior).collect()
}

/// The central region of a distribution, with a probability of about [`CALIBRATED`].
struct Central {
    /// Whether it covers the truth.
    covers: bool,
    /// Its probability.
    share: f64,
}

/// The values around the median or, for levels, the most probable ones.
fn central(response: &Response, shares: &[f32], truth: f32) -> Central {
    let class = response.class_of(truth);
    if response.is_number() {
        let run = around_median(shares, CALIBRATED);
        let share = shares[run.clone()].iter().map(|s| f64::from(*s)).sum();
        return Central { covers: class.is_some_and(|c| run.contains(&c)), share };
    }
    let mut sorted: Vec<f32> = shares.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let mut share = 0.0;
    let enough = sorted.iter().position(|&s| {
        share += f64::from(s);
        share >= CALIBRATED
    });
    let least = enough.map_or(sorted.last(), |place| sorted.get(place)).copied().unwrap_or(0.0);
    Central { covers: class.is_some_and(|c| shares[c] >= least), share }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each cell is in a row of its own.
    static ROWS: [u32; 400] = {
        let mut rows = [0; 400];
        let mut i = 0;
        while i < 400 {
            rows[i] = i as u32;
            i += 1;
        }
        rows
    };

    fn held<'a>(response: &'a Response, predicted: &'a [f32], truth: &'a [f32]) -> HeldOut<'a> {
        HeldOut { response, predicted, truth, shown: &[3; 400], rows: &ROWS }
    }

    #[test]
    fn most_cells_on_one_side_of_the_point_stay_inside_of_the_interval() {
        // Half of the truth is 0, the rest spreads far above; the point is a little above 0.
        let truth: Vec<f32> = (0..200).map(|i| if i % 2 == 0 { 0.0 } else { i as f32 / 200.0 }).collect();
        let predicted = [0.05, 0.1].repeat(truth.len());
        let calibration = Calibration::of(held(&Response::Number, &predicted, &truth), &[], &Pooled::default());
        let quantiles = calibration.quantiles(&predicted[..2], 1.0);
        assert!(quantiles[LOWER] <= 0.0 && quantiles[UPPER] >= 0.85, "{quantiles:?}");
        assert_eq!(quantiles[QUANTILE_LEVELS.len() / 2], 0.05);
    }

    #[test]
    fn rows_that_show_less_have_wider_intervals_where_spreads_do_not_know() {
        // Errors are three times as large where a row shows one cell instead of four.
        let shown: Vec<u32> = (0..400).map(|i| if i < 200 { 1 } else { 4 }).collect();
        let size = |i: usize| if shown[i] == 1 { 0.3 } else { 0.1 };
        let truth: Vec<f32> = (0..400).map(|i| 0.5 + size(i) * ((i % 200) as f32 - 99.5) / 100.0).collect();
        let predicted = [0.5, 0.1].repeat(400);
        let shown = &shown[..];
        let held = HeldOut { shown, ..held(&Response::Number, &predicted, &truth) };
        let pooled = Pooled::of(&[held]);
        let scale = &pooled.scale;
        assert!(scale.is_sound() && scale.fewest() == 1, "{scale:?}");
        assert!((scale.at(2) / scale.at(4) - 3.0).abs() < 1.2, "{scale:?}");
        // No row of a held-out cell shows nothing: the widest.
        assert_eq!(scale.at(0), scale.at(1));
        let coverage = Calibration::coverage(held, &[], &pooled).unwrap();
        assert!((coverage - 0.9).abs() < 0.03, "{coverage}");
    }

    #[test]
    fn quantiles_are_those_of_the_residuals_in_units_of_the_spread() {
        // The truth lies up to one spread away on both sides, evenly.
        let truth: Vec<f32> = (0..=100).map(|i| 0.5 + 0.2 * (i as f32 - 50.0) / 50.0).collect();
        let predicted = [0.5, 0.2].repeat(truth.len());
        let calibration = Calibration::of(held(&Response::Number, &predicted, &truth), &[0.5, 0.3], &Pooled::default());
        let quantiles = calibration.quantiles(&[0.0, 1.0], 1.0);
        let at = |level: f64| quantiles[QUANTILE_LEVELS.iter().position(|l| *l == level).unwrap()];
        assert!(at(0.5) == 0.0 && (at(0.9) - 0.8).abs() < 0.05 && (at(0.05) + 0.9).abs() < 0.05, "{quantiles:?}");
    }

    #[test]
    fn overconfident_probabilities_are_shrunk_until_they_have_their_coverage() {
        let truth: Vec<f32> = (0..100).map(|i| f32::from(u8::from(i < 70))).collect();
        // Sure of 1, which is true seven times in ten. From a half on both values, 1.0, are nearer to 0.9 than 0.75.
        let response = Response::Values(vec![0.0, 1.0]);
        let predicted = [0.0, 1.0].repeat(100);
        let calibration = Calibration::of(held(&response, &predicted, &truth), &[0.5, 0.5], &Pooled::default());
        assert_eq!(calibration, Calibration::Shrinkage { share: 0.5, prior: vec![0.5, 0.5] });
    }
}
