//! What the network knows of the columns before it learns: how values enter it, and what it may answer.
//!
//! A value enters as its place among the quantiles of its column, so that any scale and any outlier looks alike to the
//! network. It answers with a point and with probabilities over [`Bins`]: for a number, stretches of its range that hold
//! about equally many observed values, and single values that occur often; for a category, its levels.

use m3impute_core::encode::{Feature, Meaning};
use serde::{Deserialize, Serialize};

/// Categories with more levels know the most frequent ones by name; the others are one.
const MOST_LEVELS: usize = 64;
/// A number with at most so many values ...
const FEW: usize = 64;
/// ... each of which occurs so often on average, is answered by one of them.
const FEW_EACH: usize = 6;

/// What is known of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Column {
    /// A number.
    Number {
        /// Quantiles of the observed values, rising; equal ones stand for a value that occurs often.
        knots: Vec<f32>,
        /// What probabilities are given to.
        bins: Bins,
        /// Whether it has so few values that the answer is one of them.
        few: bool,
    },
    /// A level out of several. The grid holds its place among those known by name, or their number for another.
    Category {
        /// The levels known by name, by their codes; the most frequent first.
        levels: Vec<u32>,
    },
}

/// Stretches of a column's range, rising. One whose ends agree is a single value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bins {
    /// Where each begins.
    pub low: Vec<f32>,
    /// Where each ends.
    pub high: Vec<f32>,
}

impl Column {
    /// Learns from the observed values of a feature. There are about as many knots and bins as asked for, at most.
    pub fn of(values: &[f32], meaning: Meaning, (most_knots, most_bins): (usize, usize)) -> Column {
        if let Meaning::Category(count) = meaning {
            let mut counts = vec![0_usize; count as usize];
            values.iter().for_each(|&v| counts[v as usize] += 1);
            let mut levels: Vec<u32> = (0..count).filter(|&l| counts[l as usize] > 0).collect();
            levels.sort_by_key(|&l| (std::cmp::Reverse(counts[l as usize]), l));
            levels.truncate(MOST_LEVELS);
            return Column::Category { levels };
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f32::total_cmp);
        let last = sorted.len() - 1;
        let steps = most_knots.min(sorted.len()).max(2);
        let knots = (0..=steps).map(|k| sorted[(k * last + steps / 2) / steps]).collect();
        let distinct = 1 + sorted.windows(2).filter(|w| w[0] < w[1]).count();
        let few = distinct <= FEW && sorted.len() >= FEW_EACH * distinct;
        Column::Number { knots, bins: Bins::of(&sorted, if few { FEW } else { most_bins }), few }
    }

    /// How many knots and bins a column with so many observed values has, at most: few values cannot teach many.
    pub fn fineness(values: usize) -> (usize, usize) {
        ((values / 24).clamp(4, 16), (values / 8).clamp(8, 64))
    }

    /// How many numbers a value enters as.
    pub fn code_width(&self) -> usize {
        match self {
            Column::Number { knots, .. } => knots.len(), // a share a stretch, and the value
            Column::Category { levels } => levels.len() + 1,
        }
    }

    /// How many answers there are to give probabilities to.
    pub fn answers(&self) -> usize {
        match self {
            Column::Number { bins, .. } => bins.len(),
            Column::Category { levels } => levels.len(),
        }
    }

    /// Writes the numbers as which a value enters.
    pub fn encode(&self, value: f32, code: &mut [f32]) {
        match self {
            Column::Number { knots, .. } => {
                for (share, ends) in code.iter_mut().zip(knots.windows(2)) {
                    let size = ends[1] - ends[0];
                    *share = if size > 1e-6 {
                        ((value - ends[0]) / size).clamp(0.0, 1.0)
                    } else {
                        f32::from(u8::from(value >= ends[0]))
                    };
                }
                code[knots.len() - 1] = value;
            }
            Column::Category { .. } => code[value as usize] = 1.0,
        }
    }

    /// The answer that a value is; none for a level that is not known by name.
    pub fn answer_of(&self, value: f32) -> Option<usize> {
        match self {
            Column::Number { bins, .. } => Some(bins.place(value)),
            Column::Category { levels } => (value < levels.len() as f32).then_some(value as usize),
        }
    }

    /// How many levels trees see; 0 for a number.
    pub fn tree_levels(&self) -> usize {
        match self {
            Column::Number { .. } => 0,
            Column::Category { levels } => levels.len() + 1,
        }
    }

    /// Whether opinions of it are shares of its answers, rather than a point and a spread.
    pub fn has_shares(&self) -> bool {
        matches!(self, Column::Category { .. } | Column::Number { few: true, .. })
    }

    /// How many numbers an opinion of it is: a share for each answer, or a point and its spread.
    pub fn opinion_width(&self) -> usize {
        if self.has_shares() { self.answers() } else { 2 }
    }

    /// The value that an opinion stands for: the median of a number, the likeliest level.
    pub fn point(&self, opinion: &[f32]) -> f32 {
        match self {
            Column::Number { few: false, .. } => opinion[0],
            Column::Number { bins, .. } => bins.quantile(opinion, 0.5),
            Column::Category { .. } => {
                let best = (0..opinion.len()).reduce(|a, b| if opinion[b] > opinion[a] { b } else { a });
                best.unwrap_or(0) as f32
            }
        }
    }

    /// How wrong an opinion is: by how much, for a number; by how little the truth was expected, for a level.
    pub fn error(&self, opinion: &[f32], truth: f32) -> f64 {
        match self {
            Column::Number { .. } => f64::from((self.point(opinion) - truth).abs()),
            Column::Category { .. } => {
                let share = self.answer_of(truth).map_or(0.0, |a| f64::from(opinion[a]));
                -share.max(1e-3).ln()
            }
        }
    }

    /// How far an opinion is from the truth: its error; but for shares of a few numbers how far all of them are off,
    /// because the error of their median jumps where the shares move a little, and few cells cannot tell then.
    pub fn distance(&self, opinion: &[f32], truth: f32) -> f64 {
        let Column::Number { bins, few: true, .. } = self else { return self.error(opinion, truth) };
        // The continuous ranked probability score: the squared distance of two distribution functions.
        let (mut below, mut total) = (0.0, 0.0);
        for (b, share) in opinion.iter().enumerate().take(bins.len() - 1) {
            below += f64::from(*share);
            let apart = below - f64::from(u8::from(truth <= bins.high[b]));
            total += apart * apart * f64::from(bins.low[b + 1] - bins.low[b]);
        }
        total
    }

    /// What opinions are chosen by: the error, which is what counts in the end, and the distance, which is steadier.
    pub fn loss(&self, opinion: &[f32], truth: f32) -> f64 {
        self.error(opinion, truth) + self.distance(opinion, truth)
    }

    /// Whether what came from a file can be used: rising and finite, levels below `count`.
    pub fn is_sound(&self, count: usize) -> bool {
        match self {
            Column::Number { knots, bins, .. } => {
                let rising = |v: &[f32]| v.iter().all(|x| x.is_finite()) && v.windows(2).all(|w| w[0] <= w[1]);
                let ends = bins.low.iter().zip(&bins.high).all(|(low, high)| low <= high);
                knots.len() >= 2
                    && (1..=FEW.max(64) * 2).contains(&bins.len())
                    && bins.high.len() == bins.len()
                    && [knots, &bins.low, &bins.high].into_iter().all(|v| rising(v))
                    && ends
            }
            Column::Category { levels } => {
                (1..=MOST_LEVELS).contains(&levels.len()) && levels.iter().all(|&l| (l as usize) < count)
            }
        }
    }

    /// Whether it is a number.
    pub fn is_number(&self) -> bool {
        matches!(self, Column::Number { .. })
    }
}

impl Bins {
    /// At most about so many bins of sorted values.
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
    pub fn len(&self) -> usize {
        self.low.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.low.is_empty()
    }

    /// The bin that a value falls into, or the nearest.
    pub fn place(&self, value: f32) -> usize {
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

/// What is known of all columns, from their observed values.
pub fn columns_of(features: &[Feature], values: impl Fn(usize) -> Vec<f32>) -> Vec<Column> {
    let of = |(f, feature): (usize, &Feature)| {
        let values = values(f);
        Column::of(&values, feature.meaning, Column::fineness(values.len()))
    };
    features.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_enters_as_its_place_among_the_quantiles() {
        let values: Vec<f32> = (0..=100).map(|v| v as f32 / 100.0).collect();
        let column = Column::of(&values, Meaning::Number, (4, 8));
        let mut code = vec![0.0; column.code_width()];
        column.encode(0.375, &mut code);
        assert_eq!(code, [1.0, 0.5, 0.0, 0.0, 0.375]);
    }

    #[test]
    fn a_number_with_a_few_values_is_answered_by_one_of_them() {
        let values: Vec<f32> = (0..60).map(|i| [0.0, 0.25, 1.0][i % 3]).collect();
        let column = Column::of(&values, Meaning::Number, (4, 8));
        assert!(column.has_shares());
        assert_eq!(column.opinion_width(), 3);
        assert_eq!(column.point(&[0.4, 0.2, 0.4]), 0.25);
        assert_eq!(column.answer_of(0.9), Some(2));
        // A little more or less of a share changes its distance a little, and its error not at all.
        let (more, less) = ([0.4, 0.25, 0.35], [0.4, 0.2, 0.4]);
        assert_eq!(column.error(&more, 0.0), column.error(&less, 0.0));
        assert!(column.distance(&more, 0.0) < column.distance(&less, 0.0));
        assert_eq!(column.distance(&[0.0, 1.0, 0.0], 0.25), 0.0);
        assert!((column.distance(&[1.0, 0.0, 0.0], 1.0) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn bins_hold_about_equally_many_values_and_frequent_values_stand_alone() {
        let values: Vec<f32> = (0..400).map(|i| if i % 2 == 0 { 0.0 } else { i as f32 }).collect();
        let Column::Number { bins, few, .. } = Column::of(&values, Meaning::Number, (8, 8)) else { panic!() };
        assert!(!few);
        assert_eq!((bins.low[0], bins.high[0]), (0.0, 0.0));
        assert!((4..=8).contains(&bins.len()), "{bins:?}");
        assert!(bins.low.iter().skip(1).zip(&bins.high).all(|(low, high)| low > high));
        // Half of the probability lies at zero, the other half spreads over the rest.
        let mut shares = vec![0.0; bins.len()];
        (shares[0], shares[1]) = (0.5, 0.5);
        assert_eq!(bins.quantile(&shares, 0.4), 0.0);
        assert!((bins.quantile(&shares, 0.75) - (bins.low[1] + bins.high[1]) / 2.0).abs() < 1e-3);
    }

    #[test]
    fn the_rarest_levels_share_a_place() {
        let values: Vec<f32> = (0..200).map(|i| if i < 100 { 7.0 } else { i as f32 }).collect();
        let column = Column::of(&values, Meaning::Category(200), (4, 8));
        let Column::Category { levels } = &column else { panic!() };
        assert_eq!((levels[0], levels.len()), (7, MOST_LEVELS));
        assert_eq!(column.answer_of(levels.len() as f32), None);
        assert_eq!(column.error(&vec![0.0; levels.len()], 70.0), -(1e-3_f64).ln());
        assert!(column.is_sound(200) && !column.is_sound(7));
    }
}
