//! A feature's numbers as the 32-bit floats on which trees work, and back.

use m3impute_core::encode::Meaning;
use serde::{Deserialize, Serialize};

/// How a feature is read and written. Numbers are brought to [0, 1], so that 32 bits tell them apart; an observed number
/// comes back bit for bit.
///
/// ```
/// use m3impute_learners::ruler::Ruler;
/// let ruler = Ruler::of(&[0.1, 0.3, 0.7], 0);
/// assert_eq!(ruler.write(ruler.read(0.3)), 0.3);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ruler {
    /// How many levels there are; 0 for numbers.
    pub levels: usize,
    /// What stands in a hole before anything is learnt: the mean, or the most frequent level.
    pub start: f32,
    /// The distinct observed numbers, rising. Empty for levels.
    pub known: Vec<f64>,
}

/// The levels of a feature; 0 for numbers.
pub fn levels_of(meaning: Meaning) -> usize {
    match meaning {
        Meaning::Category(levels) => levels as usize,
        Meaning::Number | Meaning::Flag(_) => 0,
    }
}

impl Ruler {
    /// The ruler of observed values, of which there is at least one.
    pub fn of(values: &[f64], levels: usize) -> Ruler {
        if levels > 0 {
            let mut counts = vec![0_usize; levels];
            values.iter().for_each(|&v| counts[v as usize] += 1);
            let most = (0..levels).reduce(|a, b| if counts[b] > counts[a] { b } else { a }).unwrap_or(0);
            return Ruler { levels, start: most as f32, known: Vec::new() };
        }
        let mut known = values.to_vec();
        known.sort_unstable_by(f64::total_cmp);
        known.dedup();
        let mut ruler = Ruler { levels, start: 0.0, known };
        // Each value by itself, so that a sum of large numbers cannot overflow.
        let mean = values.iter().map(|&v| f64::from(ruler.read(v))).sum::<f64>() / values.len() as f64;
        ruler.start = mean as f32;
        ruler
    }

    fn low_and_span(&self) -> (f64, f64) {
        match (self.known.first(), self.known.last()) {
            (Some(&low), Some(&high)) if high > low => (low, high - low),
            (Some(&low), _) => (low, 1.0),
            _ => (0.0, 1.0),
        }
    }

    /// A value as the trees see it.
    pub fn read(&self, value: f64) -> f32 {
        let (low, span) = self.low_and_span();
        ((value - low) / span) as f32
    }

    /// The same, with the start for `NaN`.
    pub fn read_or_start(&self, value: f64) -> f32 {
        if value.is_nan() { self.start } else { self.read(value) }
    }

    /// A tree's value as a number of the feature.
    pub fn write(&self, value: f32) -> f64 {
        if self.levels > 0 {
            return f64::from(value);
        }
        let at = self.known.partition_point(|&k| self.read(k) < value);
        match self.known.get(at) {
            Some(&known) if self.read(known) == value => known,
            _ => {
                let (low, span) = self.low_and_span();
                low + f64::from(value) * span
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observed_number_comes_back_bit_for_bit() {
        let values = [0.1, 0.3, 0.7, 1e9 + 0.25];
        let ruler = Ruler::of(&values, 0);
        assert_eq!(ruler.write(ruler.read(1e9 + 0.25)), 1e9 + 0.25);
        let ruler = Ruler::of(&values[..3], 0);
        assert!(values[..3].iter().all(|&v| ruler.write(ruler.read(v)) == v));
        assert!((ruler.write(0.5) - 0.4).abs() < 1e-12);
    }

    #[test]
    fn levels_are_their_codes_and_start_with_the_most_frequent() {
        let ruler = Ruler::of(&[2.0, 0.0, 2.0], 3);
        assert_eq!((ruler.start, ruler.read(1.0), ruler.write(1.0)), (2.0, 1.0, 1.0));
    }
}
