//! The encoding of values for the network, and the classes that it predicts probabilities of.
//!
//! A number is encoded by its position among the quantiles of its column, which makes the network robust to scale and
//! outliers. The network predicts a point and the probabilities of classes: for a number, [`Bins`] with about equally
//! many observed values, and single values that occur often; for a category, its levels.

use m3impute_learners::Response;
use serde::{Deserialize, Serialize};

/// A column as the network sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnInput {
    /// What is predicted of it.
    pub response: Response,
    /// Quantiles of the observed values, increasing; equal ones stand for a value that occurs often. None for levels.
    knots: Vec<f32>,
    /// The classes of a number. None for levels.
    pub(super) bins: Bins,
}

/// Intervals of a column's range, increasing. One whose ends agree is a single value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bins {
    /// Where each begins.
    low: Vec<f32>,
    /// Where each ends.
    high: Vec<f32>,
}

/// How many bins a column of few values may have in a file, at most.
const MOST_BINS: usize = 128;

impl ColumnInput {
    /// From the observed values of a column, at least one.
    pub fn of(values: &[f32], response: &Response) -> ColumnInput {
        // Few values do not support many knots and bins.
        let fineness = ((values.len() / 24).clamp(4, 16), (values.len() / 8).clamp(8, 64));
        ColumnInput::with_fineness(values, response, fineness)
    }

    fn with_fineness(values: &[f32], response: &Response, (knots, bins): (usize, usize)) -> ColumnInput {
        let response = response.clone();
        if !response.is_number() {
            return ColumnInput { response, knots: Vec::new(), bins: Bins::default() };
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f32::total_cmp);
        let last = sorted.len() - 1;
        let steps = knots.min(sorted.len()).max(2);
        let knots = (0..=steps).map(|k| sorted[(k * last + steps / 2) / steps]).collect();
        let bins = match &response {
            Response::Values(values) => Bins { low: values.clone(), high: values.clone() },
            _ => Bins::of(&sorted, bins),
        };
        ColumnInput { response, knots, bins }
    }

    /// The width of an encoded value.
    pub fn code_width(&self) -> usize {
        match self.response {
            Response::Levels(levels) => levels + 1,
            _ => self.knots.len(), // a share for each interval between knots, and the value
        }
    }

    /// How many classes have a probability.
    pub fn classes(&self) -> usize {
        match self.response {
            Response::Levels(levels) => levels,
            _ => self.bins.len(),
        }
    }

    /// Writes the encoded value.
    pub fn encode(&self, value: f32, code: &mut [f32]) {
        if !self.response.is_number() {
            code[value as usize] = 1.0;
            return;
        }
        for (share, ends) in code.iter_mut().zip(self.knots.windows(2)) {
            let size = ends[1] - ends[0];
            *share = if size > 1e-6 {
                ((value - ends[0]) / size).clamp(0.0, 1.0)
            } else {
                f32::from(u8::from(value >= ends[0]))
            };
        }
        code[self.knots.len() - 1] = value;
    }

    /// The class of a value; none for a rare level.
    pub fn class_of(&self, value: f32) -> Option<usize> {
        match self.response {
            Response::Number => Some(self.bins.place(value)),
            _ => self.response.class_of(value),
        }
    }

    /// Whether what came from a file is valid: increasing and finite, with the number of classes of the response.
    pub fn is_sound(&self) -> bool {
        let increasing = |v: &[f32]| v.iter().all(|x| x.is_finite()) && v.windows(2).all(|w| w[0] <= w[1]);
        let Bins { low, high } = &self.bins;
        if !self.response.is_number() {
            return self.knots.is_empty() && low.is_empty() && high.is_empty();
        }
        self.knots.len() >= 2
            && (1..=MOST_BINS).contains(&low.len())
            && high.len() == low.len()
            && [&self.knots, low, high].into_iter().all(|v| increasing(v))
            && low.iter().zip(high).all(|(low, high)| low <= high)
            && (self.response == Response::Number || low.len() == self.response.classes())
    }
}

impl Bins {
    /// About `most` bins of sorted values at most.
    fn of(sorted: &[f32], most: usize) -> Bins {
        let mut runs: Vec<(f32, usize)> = Vec::new();
        for &v in sorted {
            match runs.last_mut() {
                Some(run) if run.0 == v => run.1 += 1,
                _ => runs.push((v, 1)),
            }
        }
        let (mut low, mut high) = (Vec::new(), Vec::new());
        let mass = if runs.len() <= most { 0.0 } else { sorted.len() as f64 / most as f64 };
        let mut open: Option<(f32, usize)> = None;
        for (i, &(value, count)) in runs.iter().enumerate() {
            let alone = count as f64 >= 0.75 * mass;
            if let Some((from, held)) = open
                && (alone || held as f64 >= mass)
            {
                low.push(from);
                high.push(runs[i - 1].0);
                open = None;
            }
            if alone {
                low.push(value);
                high.push(value);
            } else {
                open = Some(open.map_or((value, count), |(from, held)| (from, held + count)));
            }
        }
        if let Some((from, _)) = open {
            low.push(from);
            high.push(runs[runs.len() - 1].0);
        }
        Bins { low, high }
    }

    /// How many.
    fn len(&self) -> usize {
        self.low.len()
    }

    /// The bin that a value falls into, or the nearest.
    fn place(&self, value: f32) -> usize {
        let after = self.low.partition_point(|&l| l <= value);
        if after == 0 {
            return 0;
        }
        let before = after - 1;
        if after < self.len() && value > self.high[before] && self.low[after] - value < value - self.high[before] {
            after
        } else {
            before
        }
    }

    /// The value below which this share of the probability lies.
    pub fn quantile(&self, probabilities: &[f32], share: f32) -> f32 {
        let mut below = 0.0;
        for (b, &p) in probabilities.iter().enumerate().take(self.len()) {
            if below + p >= share && p > 0.0 {
                return self.low[b] + (self.high[b] - self.low[b]) * ((share - below) / p).clamp(0.0, 1.0);
            }
            below += p;
        }
        self.high[self.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_encoded_by_its_position_among_the_quantiles() {
        let values: Vec<f32> = (0..=100).map(|v| v as f32 / 100.0).collect();
        let column = ColumnInput::with_fineness(&values, &Response::Number, (4, 8));
        let mut code = vec![0.0; column.code_width()];
        column.encode(0.375, &mut code);
        assert_eq!(code, [1.0, 0.5, 0.0, 0.0, 0.375]);
    }

    #[test]
    fn bins_hold_about_equally_many_values_and_frequent_values_stand_alone() {
        let values: Vec<f32> = (0..400).map(|i| if i % 2 == 0 { 0.0 } else { i as f32 }).collect();
        let column = ColumnInput::with_fineness(&values, &Response::Number, (8, 8));
        let bins = &column.bins;
        assert_eq!((bins.low[0], bins.high[0]), (0.0, 0.0));
        assert!((4..=8).contains(&bins.len()) && column.is_sound(), "{bins:?}");
        assert!(bins.low.iter().skip(1).zip(&bins.high).all(|(low, high)| low > high));
        // Half of the probability lies at zero, the other half spreads over the rest.
        let mut shares = vec![0.0; bins.len()];
        (shares[0], shares[1]) = (0.5, 0.5);
        assert_eq!(bins.quantile(&shares, 0.4), 0.0);
        assert!((bins.quantile(&shares, 0.75) - (bins.low[1] + bins.high[1]) / 2.0).abs() < 1e-3);
    }

    #[test]
    fn few_values_are_classes_of_their_own() {
        let response = Response::Values(vec![0.0, 0.25, 1.0]);
        let column = ColumnInput::of(&[0.0, 0.25, 1.0].repeat(20), &response);
        assert_eq!((column.classes(), column.class_of(0.9)), (3, Some(2)));
        assert!(column.is_sound());
        assert!(!ColumnInput { response: Response::Levels(2), ..column }.is_sound());
    }
}
