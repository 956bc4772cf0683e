//! Predictions of a column's cells, a point with a spread or probabilities by its [`Response`]: their losses, and their
//! aggregation.

use crate::calibrate::HeldOut;
use crate::spread::log_spread;
use m3impute_learners::Response;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The continuous ranked probability score of the probabilities of few values: the squared distance of two distribution
/// functions. Elsewhere the error.
pub fn crps(response: &Response, prediction: &[f32], truth: f32) -> f64 {
    let Response::Values(values) = response else { return response.error(prediction, truth) };
    let (mut below, mut total) = (0.0, 0.0);
    for (share, ends) in prediction.iter().zip(values.windows(2)) {
        below += f64::from(*share);
        let apart = below - f64::from(u8::from(truth <= ends[0]));
        total += apart * apart * f64::from(ends[1] - ends[0]);
    }
    total
}

/// The loss of selection: the error plus the CRPS. The error of the median of few values jumps where probabilities
/// change a little; the CRPS makes the loss less variable on few cells.
pub fn loss(response: &Response, prediction: &[f32], truth: f32) -> f64 {
    response.error(prediction, truth) + crps(response, prediction, truth)
}

/// The loss of selecting what draws are taken from: of numbers the squared error, whose best point is the mean, because
/// around medians draws of a skewed column would have the wrong mean; of probabilities the likelihood.
pub fn draw_loss(response: &Response, prediction: &[f32], truth: f32) -> f64 {
    match response {
        Response::Number => f64::from(prediction[0] - truth).powi(2),
        _ => log_loss(response, prediction, truth),
    }
}

/// Whether the point of a prediction is the truth: 1, otherwise 0.
pub fn is_right(response: &Response, prediction: &[f32], truth: f32) -> f64 {
    f64::from(u8::from(response.point(prediction) == truth))
}

/// The negative logarithm of the probability of the truth.
pub fn log_loss(response: &Response, prediction: &[f32], truth: f32) -> f64 {
    let share = response.class_of(truth).map_or(0.0, |class| f64::from(prediction[class]));
    -share.max(1e-3).ln()
}

/// How the points of several candidates are combined. Probabilities are always averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregation {
    /// By their weighted mean, in which errors cancel out.
    Mean,
    /// By their weighted median, which keeps a value that many of them predict.
    Median,
}

/// Gives predictions of a number the geometric mean of the spreads of several candidates, by their weights.
pub fn set_spreads(predicted: &mut [f32], parts: &[(f32, &[f32])]) {
    let total: f32 = parts.iter().map(|(weight, _)| weight).sum();
    if total <= 0.0 {
        return;
    }
    for (i, prediction) in predicted.chunks_exact_mut(2).enumerate() {
        let log: f32 = parts.iter().map(|(weight, of)| weight * log_spread(of[2 * i + 1])).sum();
        prediction[1] = (log / total).exp();
    }
}

/// Aggregates weighted predictions of the same cells of a column.
pub fn aggregate(response: &Response, aggregation: Aggregation, parts: &[(f32, &[f32])]) -> Vec<f32> {
    let cells = parts.first().map_or(0, |(_, predicted)| predicted.len());
    let mut all = vec![0.0; cells];
    for (weight, predicted) in parts {
        all.iter_mut().zip(*predicted).for_each(|(all, p)| *all += weight * p);
    }
    // Weights are rescaled where a candidate has no prediction.
    let total: f32 = parts.iter().map(|(weight, _)| weight).sum();
    if total < 0.99 {
        all.iter_mut().for_each(|all| *all /= total);
    }
    if aggregation == Aggregation::Median && *response == Response::Number {
        let mut points = Vec::with_capacity(parts.len());
        for (i, all) in all.chunks_exact_mut(response.width()).enumerate() {
            points.clear();
            points.extend(parts.iter().map(|(weight, predicted)| (predicted[i * response.width()], *weight)));
            all[0] = weighted_median(&mut points);
        }
    }
    all
}

/// The value below and above which lies half of the weight; between two values that share it, their middle.
fn weighted_median(points: &mut [(f32, f32)]) -> f32 {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = points.iter().map(|p| p.1).sum::<f32>() / 2.0;
    let mut below = 0.0;
    for (i, (point, weight)) in points.iter().enumerate() {
        below += weight;
        if (below - half).abs() < 1e-4 * half {
            let next = points.get(i + 1).map_or(*point, |next| next.0);
            return (point + next) / 2.0;
        }
        if below > half {
            return *point;
        }
    }
    points.last().map_or(0.0, |last| last.0)
}

/// The loss of a prediction of a column, given the truth.
pub type LossFn = fn(&Response, &[f32], f32) -> f64;

/// The out-of-fold predictions of several candidates for the held-out cells of one column.
#[derive(Clone, Debug, Default)]
pub struct OutOfFold {
    /// The true values of the cells.
    pub truth: Vec<f32>,
    /// How many cells the row of each shows.
    pub shown: Vec<u32>,
    /// Which row of the table each is in. Several folds may hold out the same cell.
    pub rows: Vec<u32>,
    /// The predictions of each candidate; empty where it has none.
    pub predictions: Vec<Vec<f32>>,
}

impl OutOfFold {
    /// Cells that are each in a row of their own.
    #[cfg(test)]
    pub fn in_separate_rows(truth: Vec<f32>, predictions: Vec<Vec<f32>>) -> OutOfFold {
        let cells = truth.len();
        OutOfFold { truth, shown: vec![1; cells], rows: (0..cells as u32).collect(), predictions }
    }

    /// The mean error of one candidate.
    pub fn error(&self, response: &Response, candidate: usize) -> Option<f64> {
        self.mean_of(response, candidate, Response::error)
    }

    /// The mean loss of one candidate.
    pub fn loss(&self, response: &Response, candidate: usize) -> Option<f64> {
        self.mean_of(response, candidate, loss)
    }

    /// The mean loss of one candidate by a function.
    pub fn mean_of(&self, response: &Response, candidate: usize, of: LossFn) -> Option<f64> {
        let whole = |p: &&Vec<f32>| !p.is_empty() && self.is_whole(response, p);
        let predicted = self.predictions.get(candidate).filter(whole)?;
        Some(self.measured(response, predicted, of).iter().sum::<f64>() / self.truth.len() as f64)
    }

    /// Whether every cell was predicted.
    fn is_whole(&self, response: &Response, predicted: &[f32]) -> bool {
        predicted.len() == self.truth.len() * response.width()
    }

    /// How wrong predictions are, cell by cell.
    pub fn measured(&self, response: &Response, predicted: &[f32], of: LossFn) -> Vec<f64> {
        predicted.chunks_exact(response.width()).zip(&self.truth).map(|(p, &t)| of(response, p, t)).collect()
    }

    /// The predictions of an ensemble with these weights, cell by cell.
    pub fn ensemble(&self, response: &Response, aggregation: Aggregation, weights: &[f32]) -> Vec<f32> {
        aggregate(response, aggregation, &self.parts(response, weights, 0..self.truth.len()))
    }

    /// The cells with these predictions.
    pub fn held_out<'a>(&'a self, response: &'a Response, predicted: &'a [f32]) -> HeldOut<'a> {
        HeldOut { response, predicted, truth: &self.truth, shown: &self.shown, rows: &self.rows }
    }

    /// The predictions for some cells by the candidates that have weight and predicted every cell.
    pub fn parts(&self, response: &Response, weights: &[f32], cells: Range<usize>) -> Vec<(f32, &[f32])> {
        let places = cells.start * response.width()..cells.end * response.width();
        let weighted = self.predictions.iter().zip(weights).filter(|(p, w)| **w > 0.0 && self.is_whole(response, p));
        weighted.map(|(predicted, &weight)| (weight, &predicted[places.clone()])).collect()
    }

    /// The same for the cells in some of the rows.
    pub fn in_rows(&self, response: &Response, keep: impl Fn(u32) -> bool) -> OutOfFold {
        let kept: Vec<usize> = (0..self.truth.len()).filter(|&i| keep(self.rows[i])).collect();
        let width = response.width();
        let cells = |predicted: &Vec<f32>| match predicted.is_empty() {
            true => Vec::new(),
            false => kept.iter().flat_map(|&i| &predicted[i * width..(i + 1) * width]).copied().collect(),
        };
        OutOfFold {
            truth: kept.iter().map(|&i| self.truth[i]).collect(),
            shown: kept.iter().map(|&i| self.shown[i]).collect(),
            rows: kept.iter().map(|&i| self.rows[i]).collect(),
            predictions: self.predictions.iter().map(cells).collect(),
        }
    }

    /// The candidates that predicted every cell.
    pub fn able(&self, response: &Response) -> Vec<usize> {
        (0..self.predictions.len()).filter(|&c| self.loss(response, c).is_some()).collect()
    }
}

/// The mean of some numbers, and its standard error.
pub fn mean_and_error(x: &[f64]) -> (f64, f64) {
    let n = x.len().max(1) as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    (mean, (variance / n).sqrt())
}

/// The mean gain from some losses to others of the same cells, in standard errors.
pub fn gain_in_errors(from: &[f64], to: &[f64]) -> f64 {
    let gains: Vec<f64> = from.iter().zip(to).map(|(from, to)| from - to).collect();
    let (gain, off) = mean_and_error(&gains);
    // Without a spread a gain is sure, and none is none.
    if gain == 0.0 { 0.0 } else { gain / off }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_keeps_the_value_that_most_of_the_weight_predicts_and_a_mean_does_not() {
        let predicted: [[f32; 4]; 3] = [[0.0, 0.1, 0.2, 0.1], [0.0, 0.3, 0.4, 0.1], [0.8, 0.1, 0.6, 0.1]];
        let of = |weights: [f32; 3], aggregation: Aggregation| {
            let parts: Vec<(f32, &[f32])> = weights.into_iter().zip(predicted.iter().map(|p| &p[..])).collect();
            aggregate(&Response::Number, aggregation, &parts)
        };
        let close = |a: Vec<f32>, b: [f32; 4]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(close(of([0.5, 0.25, 0.25], Aggregation::Mean), [0.2, 0.15, 0.35, 0.1]));
        // Half of the weight lies at 0.2 or below: between it and the next. Spreads are those of the mean.
        assert!(close(of([0.5, 0.25, 0.25], Aggregation::Median), [0.0, 0.15, 0.3, 0.1]));
        assert!(close(of([0.25, 0.25, 0.5], Aggregation::Median), [0.4, 0.15, 0.5, 0.1]));
        assert!(close(of([0.125, 0.25, 0.625], Aggregation::Median), [0.8, 0.15, 0.6, 0.1]));
        // Probabilities have no median.
        let parts: [(f32, &[f32]); 2] = [(0.75, &[0.5, 0.5]), (0.25, &[1.0, 0.0])];
        assert_eq!(aggregate(&Response::Levels(2), Aggregation::Median, &parts), [0.625, 0.375]);
    }

    #[test]
    fn weights_are_rescaled_where_a_candidate_has_no_prediction() {
        let predictions = vec![vec![0.4, 0.1, 0.6, 0.1], vec![0.9, 0.1], Vec::new()];
        let cells = OutOfFold::in_separate_rows(vec![0.5; 2], predictions);
        assert_eq!(cells.ensemble(&Response::Number, Aggregation::Mean, &[0.5, 0.25, 0.25]), [0.4, 0.1, 0.6, 0.1]);
    }

    #[test]
    fn the_crps_moves_with_probabilities_where_the_error_of_the_median_does_not() {
        let few = Response::Values(vec![0.0, 0.25, 1.0]);
        let (more, less) = ([0.4, 0.25, 0.35], [0.4, 0.2, 0.4]);
        assert_eq!(few.error(&more, 0.0), few.error(&less, 0.0));
        assert!(crps(&few, &more, 0.0) < crps(&few, &less, 0.0));
        assert_eq!(crps(&few, &[0.0, 1.0, 0.0], 0.25), 0.0);
        assert!((crps(&few, &[1.0, 0.0, 0.0], 1.0) - 1.0).abs() < 1e-6);
        assert_eq!(Response::Levels(2).error(&[0.0, 0.0], 7.0), -(1e-3_f64).ln());
    }

    #[test]
    fn a_gain_is_counted_in_standard_errors() {
        assert_eq!(gain_in_errors(&[1.0, 2.0], &[1.0, 2.0]), 0.0);
        assert_eq!(gain_in_errors(&[1.0, 2.0], &[0.5, 1.5]), f64::INFINITY);
        // Gains of 1 and 3: a mean of 2, a deviation of 1, over the root of two cells.
        assert!((gain_in_errors(&[2.0, 4.0], &[1.0, 1.0]) - 2.0 * 2f64.sqrt()).abs() < 1e-9);
        assert!(gain_in_errors(&[1.0, 1.0], &[2.0, 4.0]) < 0.0);
    }
}
