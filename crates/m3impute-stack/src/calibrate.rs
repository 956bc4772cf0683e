//! Split-conformal calibration: turns predictions into distributions with the nominal coverage, from out-of-fold
//! predictions and the truth.

use m3impute_core::distributions::{QUANTILE_LEVELS, around_median};
use m3impute_learners::Response;
use serde::{Deserialize, Serialize};

/// With fewer held-out cells the tails are those of the normal distribution.
const ENOUGH: usize = 40;
/// The quantiles of the normal distribution at [`QUANTILE_LEVELS`].
const NORMAL: [f32; QUANTILE_LEVELS.len()] = [
    -2.576, -1.96, -1.645, -1.282, -1.036, -0.842, -0.674, -0.524, -0.385, -0.253, 0.0, 0.253, 0.385, 0.524, 0.674,
    0.842, 1.036, 1.282, 1.645, 1.96, 2.576,
];
/// The nominal coverage at which probabilities are calibrated.
const CALIBRATED: f64 = 0.9;

/// How a prediction becomes a distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Calibration {
    /// A point and a spread: the quantiles at [`QUANTILE_LEVELS`] are the point plus the spread times these conformal scales.
    Conformal {
        /// In units of the spread; 0 in the middle.
        quantiles: Vec<f32>,
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

impl Calibration {
    /// From predictions of held-out cells, and the truth.
    pub fn of(response: &Response, predicted: &[f32], truth: &[f32], prior: &[f32]) -> Calibration {
        let cells = || predicted.chunks_exact(response.width()).zip(truth);
        if *response != Response::Number {
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
        let mut spreads: Vec<f32> = cells().map(|(o, _)| o[1]).collect();
        spreads.sort_by(f32::total_cmp);
        let least = 0.2 * spreads.get(spreads.len() / 2).copied().unwrap_or(0.0) + 1e-6;
        let mut residuals: Vec<f32> = cells().map(|(o, &t)| (t - o[0]) / o[1].max(least)).collect();
        if residuals.len() < ENOUGH {
            return Calibration::Conformal { quantiles: NORMAL.to_vec(), least };
        }
        residuals.sort_by(f32::total_cmp);
        let n = residuals.len();
        // Ranks among n + 1 values, as a new residual may lie outside of all others.
        let at = |level: f64| {
            let place = level * (n + 1) as f64;
            let place = if level < 0.5 { place.floor() } else { place.ceil() };
            residuals[(place as usize).clamp(1, n) - 1]
        };
        let middle = at(0.5);
        let quantiles = QUANTILE_LEVELS.map(|l| at(l) - middle).to_vec();
        Calibration::Conformal { quantiles, least }
    }

    /// Whether what came from a file fits the column.
    pub fn is_sound(&self, response: &Response) -> bool {
        match self {
            Calibration::Conformal { quantiles, least } => {
                *response == Response::Number
                    && quantiles.len() == QUANTILE_LEVELS.len()
                    && quantiles.windows(2).all(|w| w[0] <= w[1])
                    && least.is_finite()
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

    #[test]
    fn quantiles_are_those_of_the_residuals_in_units_of_the_spread() {
        // The truth lies up to one spread away on both sides, evenly.
        let truth: Vec<f32> = (0..=100).map(|i| 0.5 + 0.2 * (i as f32 - 50.0) / 50.0).collect();
        let predicted = [0.5, 0.2].repeat(truth.len());
        let Calibration::Conformal { quantiles, .. } =
            Calibration::of(&Response::Number, &predicted, &truth, &[0.5, 0.3])
        else {
            panic!()
        };
        let at = |level: f64| quantiles[QUANTILE_LEVELS.iter().position(|l| *l == level).unwrap()];
        assert!(at(0.5) == 0.0 && (at(0.9) - 0.8).abs() < 0.05 && (at(0.05) + 0.9).abs() < 0.05, "{quantiles:?}");
    }

    #[test]
    fn overconfident_probabilities_are_shrunk_until_they_have_their_coverage() {
        let truth: Vec<f32> = (0..100).map(|i| f32::from(u8::from(i < 70))).collect();
        // Sure of 1, which is true seven times in ten. From a half on both values, 1.0, are nearer to 0.9 than 0.75.
        let response = Response::Values(vec![0.0, 1.0]);
        let calibration = Calibration::of(&response, &[0.0, 1.0].repeat(100), &truth, &[0.5, 0.5]);
        assert_eq!(calibration, Calibration::Shrinkage { share: 0.5, prior: vec![0.5, 0.5] });
    }
}
