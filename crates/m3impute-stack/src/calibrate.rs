//! Split-conformal calibration: how predictions become distributions that hold what they say, from out-of-fold
//! predictions and truth alone.

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
/// The share of probability by which probabilities are calibrated.
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
    /// Probabilities: so much of them is shrunk to the prior, the shares of the classes in the column.
    Shrinkage {
        /// How much.
        share: f32,
        /// The shares of the classes.
        prior: Vec<f32>,
    },
}

impl Calibration {
    /// From what was predicted of held-out cells, and the truth.
    pub fn of(response: &Response, predicted: &[f32], truth: &[f32], prior: &[f32]) -> Calibration {
        let cells = || predicted.chunks_exact(response.width()).zip(truth);
        if *response != Response::Number {
            // The least shrinkage with which the middle of the probability holds as many cells as it says.
            let is_honest = |shrinkage: f32| {
                let mut balance = 0.0;
                for (o, t) in cells() {
                    let middle = middle(response, &shrunk(o, prior, shrinkage), *t);
                    balance += f64::from(u8::from(middle.holds)) - middle.share;
                }
                balance >= -1e-3
            };
            let choices = [0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4];
            let shrinkage = choices.into_iter().find(|&s| is_honest(s)).unwrap_or(0.5);
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
        // One more than the cells there are: the next one may lie outside of all of them.
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

/// The middle [`CALIBRATED`] of a distribution, about.
struct Middle {
    /// Whether the truth lies in it.
    holds: bool,
    /// The probability that it has.
    share: f64,
}

/// The middle of the probability or, for levels, the likeliest that hold it.
fn middle(response: &Response, shares: &[f32], truth: f32) -> Middle {
    let answer = response.class_of(truth);
    if response.is_number() {
        let run = around_median(shares, CALIBRATED);
        let share = shares[run.clone()].iter().map(|s| f64::from(*s)).sum();
        return Middle { holds: answer.is_some_and(|a| run.contains(&a)), share };
    }
    let mut likeliest: Vec<f32> = shares.to_vec();
    likeliest.sort_by(|a, b| b.total_cmp(a));
    let mut share = 0.0;
    let enough = likeliest.iter().position(|&s| {
        share += f64::from(s);
        share >= CALIBRATED
    });
    let least = enough.map_or(likeliest.last(), |place| likeliest.get(place)).copied().unwrap_or(0.0);
    Middle { holds: answer.is_some_and(|a| shares[a] >= least), share }
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
    fn probabilities_that_are_too_sure_are_shrunk_until_they_hold_what_they_say() {
        let truth: Vec<f32> = (0..100).map(|i| f32::from(u8::from(i < 70))).collect();
        // Sure of 1, which is true seven times in ten. From a half on both values, 1.0, are nearer to 0.9 than 0.75.
        let response = Response::Values(vec![0.0, 1.0]);
        let calibration = Calibration::of(&response, &[0.0, 1.0].repeat(100), &truth, &[0.5, 0.5]);
        assert_eq!(calibration, Calibration::Shrinkage { share: 0.5, prior: vec![0.5, 0.5] });
    }
}
