//! What the networks see of a table: numbers as the encoder scales them, and a flag for each level.
//!
//! `n` rows, `m` features of the encoded table, `w` inputs of a network: numbers first, then flags.

use m3impute_core::distributions::{Distributions, QUANTILE_LEVELS};
use m3impute_core::encode::{Constants, Layout, MAX_FLAGS, Meaning, Scale};
use m3impute_core::{Encoded, Encoding, Error, ModelFile, Result};
use m3impute_nn::Matrix;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Numbers of new rows may lie anywhere; what is further out than this would only overflow.
const FARTHEST: f64 = 1e6;

/// Where a feature stands among the inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Slot {
    /// A number.
    Number(usize),
    /// Flags of these levels, the first of them there.
    Levels(usize, Vec<u32>),
}

/// How the features of a table become the inputs of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Inputs {
    slots: Vec<Slot>, // [m]
    numbers: usize,
    width: usize,
}

/// Rows as a network sees them.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// The values; zero where they are not observed. // [n, w]
    pub(crate) x: Matrix,
    /// One where they are, zero where not. // [n, w]
    pub(crate) observed: Matrix,
}

/// What the methods of this crate want to see. A level is a code: the flags are made here, so that each column with
/// levels has one distribution. A column of one value has nothing to learn.
pub(crate) fn encoding(standardise: bool) -> Encoding {
    let scale = if standardise { Scale::Standard } else { Scale::MinMax };
    Encoding { layout: Layout::Codes, scale, constants: Constants::Leave }
}

/// The rows with missing cells.
pub(crate) fn incomplete_rows(data: &Encoded) -> Vec<usize> {
    (0..data.rows).filter(|&i| data.observed_row(i).contains(&false)).collect()
}

impl Inputs {
    /// The inputs for a table: the levels that it has seen, or the most frequent of them.
    pub(crate) fn of(data: &Encoded) -> Inputs {
        let numbers = data.features.iter().filter(|f| f.meaning == Meaning::Number).count();
        let (mut number, mut flag) = (0, numbers);
        let slot = |(f, meaning): (usize, Meaning)| {
            let Meaning::Category(levels) = meaning else {
                number += 1;
                return Slot::Number(number - 1);
            };
            let mut counts = vec![0_usize; levels as usize];
            data.observed_values(f).iter().for_each(|&code| counts[code as usize] += 1);
            let mut codes: Vec<u32> = (0..levels).filter(|&c| counts[c as usize] > 0).collect();
            codes.sort_by_key(|&c| (usize::MAX - counts[c as usize], c));
            codes.truncate(MAX_FLAGS);
            codes.sort_unstable();
            flag += codes.len();
            Slot::Levels(flag - codes.len(), codes)
        };
        let slots = data.features.iter().map(|f| f.meaning).enumerate().map(slot).collect();
        Inputs { slots, numbers, width: flag }
    }

    /// How many inputs there are.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// How many of them are numbers: the first ones.
    pub(crate) fn numbers(&self) -> usize {
        self.numbers
    }

    /// The inputs of each feature.
    pub(crate) fn cells(&self) -> impl Iterator<Item = Range<usize>> {
        self.slots.iter().map(|slot| match slot {
            Slot::Number(at) => *at..at + 1,
            Slot::Levels(first, codes) => *first..first + codes.len(),
        })
    }

    /// The inputs of a table of so many numbers.
    #[cfg(test)]
    pub(crate) fn of_numbers(numbers: usize) -> Inputs {
        Inputs { slots: (0..numbers).map(Slot::Number).collect(), numbers, width: numbers }
    }

    /// Rows as a network sees them.
    pub(crate) fn read(&self, data: &Encoded, rows: impl ExactSizeIterator<Item = usize>) -> Rows {
        let mut x = Matrix::zeros(rows.len(), self.width); // [n, w]
        let mut observed = Matrix::zeros(rows.len(), self.width); // [n, w]
        for (at, i) in rows.enumerate() {
            let (x, observed) = (x.row_mut(at), observed.row_mut(at));
            for (f, slot) in self.slots.iter().enumerate().filter(|(f, _)| data.observed_row(i)[*f]) {
                let value = data.row(i)[f];
                match slot {
                    Slot::Number(at) => {
                        x[*at] = value.clamp(-FARTHEST, FARTHEST) as f32;
                        observed[*at] = 1.0;
                    }
                    Slot::Levels(first, codes) => {
                        observed[*first..first + codes.len()].fill(1.0);
                        if let Some(place) = codes.iter().position(|&c| f64::from(c) == value) {
                            x[first + place] = 1.0;
                        }
                    }
                }
            }
        }
        Rows { x, observed }
    }

    /// Puts predictions for row `i`, numbers and a score for each level, into its missing cells.
    pub(crate) fn put(&self, data: &mut Encoded, i: usize, predicted: &[f32]) {
        let m = data.width();
        for (f, slot) in self.slots.iter().enumerate() {
            if !data.observed[i * m + f] {
                data.x[i * m + f] = match slot {
                    Slot::Number(at) => f64::from(predicted[*at]),
                    Slot::Levels(first, codes) => {
                        let of = |place: usize| predicted[first + place];
                        let likeliest = (0..codes.len()).reduce(|a, b| if of(b) > of(a) { b } else { a });
                        likeliest.map_or(f64::NAN, |place| f64::from(codes[place]))
                    }
                };
            }
        }
    }

    /// Room for the distributions of every feature.
    pub(crate) fn no_distributions(&self) -> Vec<Distributions> {
        let of = |slot: &Slot| match slot {
            Slot::Number(_) => Distributions::Quantiles(Vec::new()),
            Slot::Levels(_, codes) => {
                Distributions::Shares { values: codes.iter().map(|&c| f64::from(c)).collect(), shares: Vec::new() }
            }
        };
        self.slots.iter().map(of).collect()
    }

    /// Adds the predictive distributions of the missing cells of row `i`: quantiles of weighted samples for numbers,
    /// their weighted mean for levels. The weights add up to one.
    pub(crate) fn predict_distributions(
        &self,
        data: &Encoded,
        i: usize,
        samples: &Samples<'_>,
        to: &mut [Distributions],
    ) {
        for ((slot, seen), to) in self.slots.iter().zip(data.observed_row(i)).zip(to) {
            match (slot, to) {
                _ if *seen => {}
                (Slot::Number(at), Distributions::Quantiles(to)) => to.push(samples.quantiles(*at)),
                (Slot::Levels(first, codes), Distributions::Shares { shares, .. }) => {
                    let means: Vec<f32> = (0..codes.len()).map(|place| samples.mean(first + place).max(1e-6)).collect();
                    let total: f32 = means.iter().sum();
                    shares.extend(means.iter().map(|p| p / total));
                }
                _ => unreachable!("distributions are made for their slots"),
            }
        }
    }

    /// Checks inputs that came from a file against the features that are encoded.
    pub(crate) fn checked(self, file: &ModelFile) -> Result<Inputs> {
        let features = file.header.encoder.features();
        let (mut number, mut flag) = (0, self.numbers);
        let fits = |(slot, meaning): (&Slot, Meaning)| match (slot, meaning) {
            (Slot::Number(at), Meaning::Number) => {
                number += 1;
                at.checked_add(1) == Some(number)
            }
            (Slot::Levels(first, codes), Meaning::Category(levels)) => {
                flag = flag.saturating_add(codes.len());
                first.checked_add(codes.len()) == Some(flag) && codes.iter().all(|&c| c < levels) && !codes.is_empty()
            }
            _ => false,
        };
        let all = self.slots.iter().zip(features.iter().map(|f| f.meaning)).all(fits);
        if !all || self.slots.len() != features.len() || number != self.numbers || flag != self.width {
            return Err(Error::damaged("the inputs of the network"));
        }
        Ok(self)
    }
}

impl Rows {
    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.x.rows()
    }

    /// Some of them, in this order.
    pub(crate) fn select(&self, rows: &[usize]) -> Rows {
        Rows { x: select(&self.x, rows), observed: select(&self.observed, rows) }
    }
}

/// Some rows of a matrix, in this order.
pub(crate) fn select(from: &Matrix, rows: &[usize]) -> Matrix {
    let mut values = Vec::with_capacity(rows.len() * from.cols());
    rows.iter().for_each(|&row| values.extend_from_slice(from.row(row)));
    Matrix::from_vec(rows.len(), from.cols(), values).expect("rows of equal length")
}

/// Weighted samples of one row.
pub(crate) struct Samples<'a> {
    /// Sample by sample. // [samples, w]
    pub(crate) values: &'a [f32],
    /// How many inputs a sample has.
    pub(crate) width: usize,
    /// The weight of each; together they are one.
    pub(crate) weights: &'a [f32],
}

impl Samples<'_> {
    fn of(&self, at: usize) -> impl Iterator<Item = (f32, f32)> {
        self.values.iter().skip(at).step_by(self.width).copied().zip(self.weights.iter().copied())
    }

    pub(crate) fn mean(&self, at: usize) -> f32 {
        self.of(at).map(|(value, weight)| weight * value).sum()
    }

    /// The quantiles at [`QUANTILE_LEVELS`]: each sample stands in the middle of its weight, with linear interpolation between.
    fn quantiles(&self, at: usize) -> [f64; QUANTILE_LEVELS.len()] {
        let mut sorted: Vec<(f32, f32)> = self.of(at).filter(|(value, _)| value.is_finite()).collect();
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = sorted.iter().map(|s| f64::from(s.1)).sum();
        let (mut place, mut below) = (0, 0.0);
        let middle = |place: usize, below: f64| below + 0.5 * f64::from(sorted[place].1);
        std::array::from_fn(|k| {
            let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
            let share = QUANTILE_LEVELS[k] * total;
            while place < last && middle(place + 1, below + f64::from(sorted[place].1)) < share {
                below += f64::from(sorted[place].1);
                place += 1;
            }
            let from = middle(place, below);
            let (low, high) = (f64::from(sorted[place].0), f64::from(sorted[(place + 1).min(last)].0));
            let to = middle((place + 1).min(last), below + f64::from(sorted[place].1));
            if share <= from || to <= from { low } else { low + (high - low) * ((share - from) / (to - from)).min(1.0) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::{Column, ColumnSpec, Encoder, Kind, Schema, Table};

    /// A category, and a number.
    fn data() -> Encoded {
        let schema = Schema::new(vec![
            ColumnSpec::with_levels("colour", Kind::Categorical, ["red", "green", "blue"]),
            ColumnSpec::new("size", Kind::Continuous),
        ]);
        let colour = Column::codes([Some(2), Some(0), None, Some(2)]);
        let size = Column::numbers([Some(0.0), None, Some(10.0), Some(5.0)]);
        let table = Table::new(schema.unwrap(), vec![colour, size]).unwrap();
        Encoder::fit(&table, encoding(false)).unwrap().encode(&table).unwrap()
    }

    #[test]
    fn numbers_stand_before_flags_of_the_levels_that_are_seen() {
        let data = data();
        let inputs = Inputs::of(&data);
        let Rows { x, observed } = inputs.read(&data, 0..4);
        assert_eq!((inputs.width(), inputs.numbers()), (3, 1));
        assert_eq!(x, Matrix::from_rows(&[[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.0, 1.0]]));
        assert_eq!(observed.row(1), [0.0, 1.0, 1.0]);
        assert_eq!(observed.row(2), [1.0, 0.0, 0.0]);
    }

    #[test]
    fn only_missing_cells_are_filled() {
        let mut data = data();
        let inputs = Inputs::of(&data);
        inputs.put(&mut data, 1, &[0.25, 0.1, 0.9]);
        inputs.put(&mut data, 2, &[0.25, 0.1, 0.9]);
        assert_eq!(data.row(1), [0.0, 0.25]);
        assert_eq!(data.row(2), [2.0, 1.0]);
    }

    #[test]
    fn quantiles_of_samples_go_by_their_weights() {
        let samples = Samples { values: &[3.0, 1.0, 2.0], width: 1, weights: &[0.25, 0.25, 0.5] };
        let quantiles = samples.quantiles(0);
        assert_eq!(quantiles[0], 1.0);
        assert_eq!(quantiles[QUANTILE_LEVELS.len() / 2], 2.0);
        assert_eq!(quantiles[QUANTILE_LEVELS.len() - 1], 3.0);
        assert!(quantiles.windows(2).all(|w| w[0] <= w[1]));
        assert_eq!(samples.mean(0), 2.0);
    }
}
