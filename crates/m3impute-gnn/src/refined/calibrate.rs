//! How far opinions may be trusted: what held-out cells say of their spread.

use super::blend::{Heard, Manner};
use super::columns::Column;
use m3impute_core::beliefs::{LEVELS, around_median};
use serde::{Deserialize, Serialize};

/// With fewer held-out cells the tails are those of the normal distribution.
const ENOUGH: usize = 40;
/// The quantiles of the normal distribution at [`LEVELS`].
const NORMAL: [f32; LEVELS.len()] = [
    -2.576, -1.96, -1.645, -1.282, -1.036, -0.842, -0.674, -0.524, -0.385, -0.253, 0.0, 0.253, 0.385, 0.524, 0.674,
    0.842, 1.036, 1.282, 1.645, 1.96, 2.576,
];
/// The share of probability by which shares of answers are judged.
const JUDGED: f64 = 0.9;

/// How an opinion becomes a distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Calibration {
    /// A point and a spread: the quantiles at [`LEVELS`] are the point plus the spread times these.
    Spread {
        /// In units of the spread; 0 in the middle.
        quantiles: Vec<f32>,
        /// A spread is at least this much.
        least: f32,
    },
    /// Shares of answers: so much of them is given to the typical opinion.
    Softened(f32),
}

impl Calibration {
    /// From the opinions of a mixture on held-out cells.
    pub fn of(column: &Column, heard: &Heard, (manner, weights): (Manner, &[f32]), typical: &[f32]) -> Calibration {
        let width = column.opinion_width();
        let mixed = heard.mixed(column, manner, weights);
        let cells = || mixed.chunks_exact(width).zip(&heard.truth);
        if column.has_shares() {
            // The least softening with which the middle of the probability holds as many cells as it says.
            let is_humble = |soft: f32| {
                let mut balance = 0.0;
                for (o, t) in cells() {
                    let middle = middle(column, &softened(o, typical, soft), *t);
                    balance += f64::from(u8::from(middle.holds)) - middle.share;
                }
                balance >= -1e-3
            };
            let choices = [0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4];
            let soft = choices.into_iter().find(|&soft| is_humble(soft)).unwrap_or(0.5);
            return Calibration::Softened(if heard.truth.is_empty() { 0.1 } else { soft });
        }
        let mut spreads: Vec<f32> = cells().map(|(o, _)| o[1]).collect();
        spreads.sort_by(f32::total_cmp);
        let least = 0.2 * spreads.get(spreads.len() / 2).copied().unwrap_or(0.0) + 1e-6;
        let mut rests: Vec<f32> = cells().map(|(o, &t)| (t - o[0]) / o[1].max(least)).collect();
        if rests.len() < ENOUGH {
            return Calibration::Spread { quantiles: NORMAL.to_vec(), least };
        }
        rests.sort_by(f32::total_cmp);
        let n = rests.len();
        // One more than the cells there are: the next one may lie outside of all of them.
        let at = |level: f64| {
            let place = level * (n + 1) as f64;
            let place = if level < 0.5 { place.floor() } else { place.ceil() };
            rests[(place as usize).clamp(1, n) - 1]
        };
        let middle = at(0.5);
        let quantiles = LEVELS.map(|l| at(l) - middle).to_vec();
        Calibration::Spread { quantiles, least }
    }

    /// Whether what came from a file fits the column.
    pub fn is_sound(&self, column: &Column) -> bool {
        match self {
            Calibration::Spread { quantiles, least } => {
                !column.has_shares()
                    && quantiles.len() == LEVELS.len()
                    && quantiles.windows(2).all(|w| w[0] <= w[1])
                    && least.is_finite()
            }
            Calibration::Softened(share) => column.has_shares() && (0.0..=1.0).contains(share),
        }
    }
}

/// An opinion of shares with some of it given to the typical one.
pub fn softened(shares: &[f32], typical: &[f32], soft: f32) -> Vec<f32> {
    shares.iter().zip(typical).map(|(s, t)| (1.0 - soft) * s + soft * t).collect()
}

/// The middle [`JUDGED`] of a distribution, about.
struct Middle {
    /// Whether the truth lies in it.
    holds: bool,
    /// The probability that it has.
    share: f64,
}

/// The middle of the probability or, for levels, the likeliest that hold it.
fn middle(column: &Column, shares: &[f32], truth: f32) -> Middle {
    let answer = column.answer_of(truth);
    if column.is_number() {
        let run = around_median(shares, JUDGED);
        let share = shares[run.clone()].iter().map(|s| f64::from(*s)).sum();
        return Middle { holds: answer.is_some_and(|a| run.contains(&a)), share };
    }
    let mut likeliest: Vec<f32> = shares.to_vec();
    likeliest.sort_by(|a, b| b.total_cmp(a));
    let mut share = 0.0;
    let enough = likeliest.iter().position(|&s| {
        share += f64::from(s);
        share >= JUDGED
    });
    let least = enough.map_or(likeliest.last(), |place| likeliest.get(place)).copied().unwrap_or(0.0);
    Middle { holds: answer.is_some_and(|a| shares[a] >= least), share }
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::encode::Meaning;

    #[test]
    fn quantiles_are_those_of_what_was_left_in_units_of_the_spread() {
        let values: Vec<f32> = (0..200).map(|v| v as f32 / 200.0).collect();
        let column = Column::of(&values, Meaning::Number, (8, 8));
        // The truth lies up to one spread away on both sides, evenly.
        let truth: Vec<f32> = (0..=100).map(|i| 0.5 + 0.2 * (i as f32 - 50.0) / 50.0).collect();
        let heard = Heard { said: vec![[0.5, 0.2].repeat(truth.len())], truth };
        let Calibration::Spread { quantiles, .. } =
            Calibration::of(&column, &heard, (Manner::Mean, &[1.0]), &[0.5, 0.3])
        else {
            panic!()
        };
        let at = |level: f64| quantiles[LEVELS.iter().position(|l| *l == level).unwrap()];
        assert!(at(0.5) == 0.0 && (at(0.9) - 0.8).abs() < 0.05 && (at(0.05) + 0.9).abs() < 0.05, "{quantiles:?}");
    }

    #[test]
    fn opinions_that_are_too_sure_are_softened_until_they_hold_what_they_say() {
        let values: Vec<f32> = (0..100).map(|i| f32::from(u8::from(i % 2 == 0))).collect();
        let column = Column::of(&values, Meaning::Number, (4, 8));
        let truth: Vec<f32> = (0..100).map(|i| f32::from(u8::from(i < 70))).collect();
        // Sure of 1, which is true seven times in ten.
        let heard = Heard { said: vec![[0.0, 1.0].repeat(100)], truth };
        let Calibration::Softened(soft) = Calibration::of(&column, &heard, (Manner::Mean, &[1.0]), &[0.5, 0.5]) else {
            panic!()
        };
        // From there on 1.0, both values, is nearer to 0.9 than 0.75.
        assert_eq!(soft, 0.5);
    }
}
