//! Predictive distributions of missing cells, from which a point, an interval or a draw is taken.

use crate::table::Table;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// The levels of the quantiles by which the distribution of a number is described.
pub const QUANTILE_LEVELS: [f64; 21] = [
    0.005, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.975,
    0.995,
];

/// The index of the median in [`QUANTILE_LEVELS`].
const MEDIAN: usize = QUANTILE_LEVELS.len() / 2;

/// The distributions of some missing cells of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Distributions {
    /// Of numbers: the values below which the shares of [`QUANTILE_LEVELS`] lie, for each missing cell.
    Quantiles(Vec<[f64; QUANTILE_LEVELS.len()]>),
    /// Of one out of a few values.
    Shares {
        /// The values, increasing where they have an order; indices into [`ColumnDistributions::levels`] for levels.
        values: Vec<f64>,
        /// The probability of each, cell by cell, `[cells, values]`.
        shares: Vec<f32>,
    },
}

/// The predictive distributions of the missing cells of one column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDistributions {
    /// The index of the column in the table.
    pub column: usize,
    /// The levels, where it has levels: distributions and intervals hold indices into this list.
    pub levels: Vec<String>,
    /// Whether its values are levels without an order, of which there is no median.
    pub unordered: bool,
    /// Values are rounded to multiples of this; 0 where they are not.
    pub step: f64,
    /// The rows of its missing cells.
    pub rows: Vec<usize>,
    /// Their distributions, in the same order.
    pub of: Distributions,
}

impl ColumnDistributions {
    /// The levels that have probabilities, in the order in which they are shown everywhere: that of the column's levels.
    /// For each its name and its probability for each row.
    pub fn levels_with_probabilities(&self) -> Vec<(&str, Vec<f32>)> {
        let Distributions::Shares { values, shares } = &self.of else { return Vec::new() };
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
        let level = |place: usize| {
            let name = self.levels.get(values[place] as usize)?;
            Some((name.as_str(), shares.iter().skip(place).step_by(values.len()).copied().collect()))
        };
        order.into_iter().filter_map(level).collect()
    }
}

/// The predictive distributions of the missing cells of a table. Columns that a method has no distribution for are left
/// out; those without missing cells are there, without rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PredictiveDistributions {
    /// Column by column.
    pub columns: Vec<ColumnDistributions>,
}

/// The point estimate that fills a missing cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Point {
    /// The median: the smallest absolute error. The most probable level, where levels have no order.
    #[default]
    Median,
    /// The mean: the smallest squared error. Levels have none: they get their median, or the most probable.
    Mean,
    /// The most probable value.
    Mode,
}

/// The ends of an interval for each missing cell of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// The index of the column in the table.
    pub column: usize,
    /// The rows of its missing cells.
    pub rows: Vec<usize>,
    /// Where each interval begins.
    pub lower: Vec<f64>,
    /// Where each ends.
    pub upper: Vec<f64>,
}

/// The values around the median, by index, with about this probability: starting from the median, the more probable
/// neighbour is added as long as that comes nearer to the level. With few values no interval has just this probability;
/// to take always more would make intervals of such columns too wide on average. Intervals of higher levels contain
/// those of lower ones.
///
/// ```
/// use m3impute_core::distributions::around_median;
/// assert_eq!(around_median(&[0.05, 0.5, 0.3, 0.15], 0.5), 1..=1);
/// assert_eq!(around_median(&[0.05, 0.5, 0.3, 0.15], 0.9), 1..=3); // 0.95 is nearer than 0.8
/// assert_eq!(around_median(&[0.02, 0.88, 0.1], 0.9), 1..=1); // 0.88 is nearer than 0.98
/// ```
pub fn around_median(shares: &[f32], level: f64) -> RangeInclusive<usize> {
    let mut below = 0.0;
    let reaches_half = |p: &f32| {
        below += p;
        below >= 0.5 - 1e-6
    };
    let last = shares.len().saturating_sub(1);
    let mut from = shares.iter().position(reaches_half).unwrap_or(last);
    let mut to = from;
    let mut inside = f64::from(shares.get(from).copied().unwrap_or(1.0));
    let mut run = from..=to;
    while inside < level - 1e-6 && (from > 0 || to < last) {
        let left = if from > 0 { shares[from - 1] } else { -1.0 };
        let right = if to < last { shares[to + 1] } else { -1.0 };
        if left > right {
            from -= 1;
        } else {
            to += 1;
        }
        let after = inside + f64::from(left.max(right));
        if after - level > level - inside {
            break;
        }
        // Values without probability are added only on the way to one that has some.
        if after > inside {
            (run, inside) = (from..=to, after);
        }
    }
    run
}

impl Distributions {
    /// How many cells there are.
    pub fn len(&self) -> usize {
        match self {
            Distributions::Quantiles(of) => of.len(),
            Distributions::Shares { values, shares } => shares.len() / values.len().max(1),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of cell `i` below which this share of probability lies.
    ///
    /// ```
    /// use m3impute_core::distributions::Distributions;
    /// let two = Distributions::Shares { values: vec![1.0, 5.0], shares: vec![0.3, 0.7] };
    /// assert_eq!((two.quantile(0, 0.2), two.quantile(0, 0.5)), (1.0, 5.0));
    /// ```
    pub fn quantile(&self, i: usize, share: f64) -> f64 {
        match self {
            Distributions::Quantiles(of) => {
                let values = &of[i];
                let after = QUANTILE_LEVELS.partition_point(|&l| l < share);
                // At one of the levels its quantile is returned unchanged by rounding.
                if after == 0 || after == QUANTILE_LEVELS.len() || QUANTILE_LEVELS[after] == share {
                    return values[after.min(QUANTILE_LEVELS.len() - 1)];
                }
                let (from, to) = (QUANTILE_LEVELS[after - 1], QUANTILE_LEVELS[after]);
                values[after - 1] + (values[after] - values[after - 1]) * (share - from) / (to - from)
            }
            Distributions::Shares { values, shares } => {
                let mut below = 0.0;
                for (value, p) in values.iter().zip(&shares[i * values.len()..]) {
                    below += f64::from(*p);
                    // Probabilities of 32 bits do not add up exactly.
                    if below >= share - 1e-6 {
                        return *value;
                    }
                }
                values.last().copied().unwrap_or(f64::NAN)
            }
        }
    }

    /// The ends of the central interval of cell `i`. For few values it is built around the median: with equal tails, most
    /// values would be inside at any level.
    fn interval(&self, i: usize, level: f64) -> [f64; 2] {
        match self {
            Distributions::Quantiles(_) => {
                let tail = (1.0 - level) / 2.0;
                [tail, 1.0 - tail].map(|share| self.quantile(i, share))
            }
            Distributions::Shares { values, shares } => {
                let run = around_median(&shares[i * values.len()..(i + 1) * values.len()], level);
                [values[*run.start()], values[*run.end()]]
            }
        }
    }

    fn mean(&self, i: usize) -> f64 {
        self.values(i).map(|(value, p)| value * p).sum()
    }

    /// The values of cell `i` with the probability that each stands for.
    fn values(&self, i: usize) -> Box<dyn Iterator<Item = (f64, f64)> + '_> {
        match self {
            Distributions::Quantiles(of) => {
                // Each value stands for the probability that is nearer to it than to its neighbours.
                let edge = |k: usize| match k {
                    0 => 0.0,
                    k if k == QUANTILE_LEVELS.len() => 1.0,
                    k => (QUANTILE_LEVELS[k - 1] + QUANTILE_LEVELS[k]) / 2.0,
                };
                Box::new((0..QUANTILE_LEVELS.len()).map(move |k| (of[i][k], edge(k + 1) - edge(k))))
            }
            Distributions::Shares { values, shares } => {
                Box::new(values.iter().zip(&shares[i * values.len()..]).map(|(v, p)| (*v, f64::from(*p))))
            }
        }
    }

    /// The mean of cell `i` and its variance: that between draws of the cell.
    ///
    /// ```
    /// use m3impute_core::distributions::Distributions;
    /// let two = Distributions::Shares { values: vec![0.0, 10.0], shares: vec![0.5, 0.5] };
    /// assert_eq!(two.mean_and_variance(0), (5.0, 25.0));
    /// ```
    pub fn mean_and_variance(&self, i: usize) -> (f64, f64) {
        let mean = self.mean(i);
        (mean, self.values(i).map(|(value, p)| p * (value - mean).powi(2)).sum())
    }

    /// The probability that two draws of cell `i` differ; 1 for numbers of many values.
    ///
    /// ```
    /// use m3impute_core::distributions::Distributions;
    /// let two = Distributions::Shares { values: vec![0.0, 1.0], shares: vec![0.5, 0.5] };
    /// assert_eq!(two.disagreement(0), 0.5);
    /// ```
    pub fn disagreement(&self, i: usize) -> f64 {
        match self {
            Distributions::Quantiles(_) => 1.0,
            Distributions::Shares { .. } => 1.0 - self.values(i).map(|(_, p)| p * p).sum::<f64>(),
        }
    }

    fn mode(&self, i: usize) -> f64 {
        match self {
            Distributions::Quantiles(of) => {
                // The middle of where a tenth of the probability is packed most densely.
                let density =
                    |k: usize| (QUANTILE_LEVELS[k + 1] - QUANTILE_LEVELS[k]) / (of[i][k + 1] - of[i][k]).max(1e-300);
                let best = (2..QUANTILE_LEVELS.len() - 3).reduce(|a, b| if density(b) > density(a) { b } else { a });
                best.map_or(of[i][MEDIAN], |k| (of[i][k] + of[i][k + 1]) / 2.0)
            }
            Distributions::Shares { values, shares } => {
                let shares = &shares[i * values.len()..(i + 1) * values.len()];
                let best = (0..values.len()).reduce(|a, b| if shares[b] > shares[a] { b } else { a });
                best.map_or(f64::NAN, |b| values[b])
            }
        }
    }
}

impl ColumnDistributions {
    /// The ends of the central interval of the cell in place `i`, rounded as values of the column are.
    pub(crate) fn interval(&self, i: usize, level: f64) -> [f64; 2] {
        self.of.interval(i, level).map(|end| self.rounded(end))
    }

    fn rounded(&self, value: f64) -> f64 {
        if self.step == 0.0 { value } else { (value / self.step).round() * self.step }
    }
}

impl PredictiveDistributions {
    /// The table with its missing cells filled by a point of their distributions. Others stay as they are in `filled`, a
    /// table that the method has filled already.
    pub fn fill(&self, filled: &Table, point: Point) -> Table {
        self.fill_with(filled, |column, i| match point {
            Point::Mode => column.of.mode(i),
            Point::Median | Point::Mean if column.unordered => column.of.mode(i),
            Point::Mean if column.levels.is_empty() => column.of.mean(i),
            Point::Median | Point::Mean => column.of.quantile(i, 0.5),
        })
    }

    /// The central interval of that level for each missing cell; columns of levels without an order have none.
    pub fn intervals(&self, level: f64) -> Vec<Interval> {
        let of = |c: &ColumnDistributions| {
            let (lower, upper) = (0..c.rows.len()).map(|i| c.interval(i, level)).map(|[low, high]| (low, high)).unzip();
            Interval { column: c.column, rows: c.rows.clone(), lower, upper }
        };
        self.columns.iter().filter(|c| !c.unordered).map(of).collect()
    }

    /// The table filled with the lower, and with the upper ends of the intervals of that level. Levels without an order have
    /// no interval: they get the most probable.
    pub fn ends(&self, filled: &Table, level: f64) -> [Table; 2] {
        let end = |end: usize| {
            self.fill_with(filled, |c, i| if c.unordered { c.of.mode(i) } else { c.of.interval(i, level)[end] })
        };
        [end(0), end(1)]
    }

    fn fill_with(&self, filled: &Table, mut value: impl FnMut(&ColumnDistributions, usize) -> f64) -> Table {
        let mut out = filled.clone();
        for column in &self.columns {
            // The table may have its levels in another order, or not all of them.
            let levels = filled.schema().columns()[column.column].levels.iter().cloned();
            let mut places: HashMap<String, usize> = levels.zip(0..).collect();
            for (i, &row) in column.rows.iter().enumerate() {
                let value = column.rounded(value(column, i));
                let Some(level) = column.levels.get(value as usize) else {
                    out.fill(row, column.column, value);
                    continue;
                };
                match places.get(level) {
                    Some(&place) => out.fill(row, column.column, place as f64),
                    None => {
                        out.fill_with_level(row, column.column, level);
                        places.insert(level.clone(), places.len());
                    }
                }
            }
        }
        out
    }
}

impl Interval {
    /// The same intervals, widened to contain the filled values: the mean of a skewed distribution may lie outside of its
    /// central interval.
    pub fn around(mut self, filled: &Table) -> Interval {
        if filled.schema().columns()[self.column].levels.is_empty() {
            for (i, &row) in self.rows.iter().enumerate() {
                let point = filled.number(row, self.column);
                self.lower[i] = self.lower[i].min(point);
                self.upper[i] = self.upper[i].max(point);
            }
        }
        self
    }
}

/// A uniform draw from (0, 1).
pub(crate) fn share_of(rng: &mut ChaCha8Rng) -> f64 {
    (f64::from(rng.next_u32()) + 0.5) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, ColumnSpec, Kind, Schema};

    /// A number that is uniform from 0 to 100, and a level that is `b` three times out of four.
    fn distributions() -> (Table, PredictiveDistributions) {
        let schema = Schema::new(vec![
            ColumnSpec::new("x", Kind::Integer),
            ColumnSpec::with_levels("level", Kind::Categorical, ["a", "b"]),
        ])
        .unwrap();
        let table =
            Table::new(schema, vec![Column::numbers([None, Some(7.0)]), Column::codes([None, Some(0)])]).unwrap();
        let x = ColumnDistributions {
            column: 0,
            levels: Vec::new(),
            unordered: false,
            step: 1.0,
            rows: vec![0],
            of: Distributions::Quantiles(vec![QUANTILE_LEVELS.map(|l| 100.0 * l)]),
        };
        let of = Distributions::Shares { values: vec![0.0, 1.0], shares: vec![0.25, 0.75] };
        let levels = ["a", "b"].map(str::to_owned).to_vec();
        let level = ColumnDistributions { column: 1, levels, unordered: true, step: 1.0, rows: vec![0], of };
        (table, PredictiveDistributions { columns: vec![x, level] })
    }

    #[test]
    fn the_points_of_a_uniform_number_are_its_middle() {
        let (table, distributions) = distributions();
        for point in [Point::Median, Point::Mean] {
            let filled = distributions.fill(&table, point);
            assert_eq!((filled.number(0, 0), filled.number(1, 0), filled.number(0, 1)), (50.0, 7.0, 1.0));
        }
    }

    #[test]
    fn an_interval_leaves_the_same_share_on_both_sides_and_levels_have_none() {
        let (table, distributions) = distributions();
        let intervals = distributions.intervals(0.8);
        assert_eq!(intervals.len(), 1);
        assert_eq!((intervals[0].lower[0], intervals[0].upper[0]), (10.0, 90.0));
        let ends = distributions.ends(&table, 0.8).map(|t| (t.number(0, 0), t.number(1, 0), t.number(0, 1)));
        assert_eq!(ends, [(10.0, 7.0, 1.0), (90.0, 7.0, 1.0)]);
    }

    #[test]
    fn an_interval_is_widened_to_contain_the_filled_value() {
        let (mut table, distributions) = distributions();
        table.fill(0, 0, 95.0);
        let interval = distributions.intervals(0.8).remove(0).around(&table);
        assert_eq!((interval.lower[0], interval.upper[0]), (10.0, 95.0));
    }

    #[test]
    fn levels_are_put_by_their_names() {
        let (table, distributions) = distributions();
        let mut schema = table.schema().clone();
        schema.column_mut(1).levels = vec!["c".to_owned(), "b".to_owned()];
        let filled = distributions.fill(&table.clone().with_schema(schema.clone()).unwrap(), Point::Median);
        assert_eq!(filled.number(0, 1), 1.0);
        schema.column_mut(1).levels = vec!["c".to_owned()];
        let filled = distributions.fill(&table.with_schema(schema).unwrap(), Point::Median);
        assert_eq!(filled.schema().columns()[1].levels[filled.number(0, 1) as usize], "b");
    }
}
