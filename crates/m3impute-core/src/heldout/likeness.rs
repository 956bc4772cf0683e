//! How alike rows are in what goes together with a cell being missing.
//!
//! Rows are compared by the features whose values differ surely between the rows that lack a column and those that show
//! it, and by no others. Where cells are missing completely at random there are none, and any row will do: the nearest of
//! several rows by all features would be one in the midst of the table, whose cells are easier to predict than others.

use super::Matrix;

/// A difference of means by at least so many standard errors is no chance.
const SURE: f64 = 3.0;
/// How far apart two numbers are at most, in standard deviations.
const FAR: f64 = 4.0;
/// How far apart two different levels are.
const OTHER_LEVEL: f64 = 1.5;
/// At most so many pairs of cells are looked at, so that wide tables do not take long.
const MOST_WORK: usize = 400_000_000;
/// With fewer rows hardly any difference is sure.
const FEWEST_ROWS: usize = 30;

/// Which features tell that a column is missing.
pub struct Likeness<'a, T> {
    matrix: Matrix<'a, T>,
    /// One divided by the standard deviation of each feature, 0 for constants, `[w]`.
    scales: Vec<f64>,
    /// For each column the features whose means differ, and by how many standard deviations, `[m]`.
    related: Vec<Vec<(usize, f64)>>,
}

impl<'a, T: Copy + Into<f64>> Likeness<'a, T> {
    /// Of a matrix of which `starts` are the features that tell whether a column is observed.
    pub fn of(matrix: Matrix<'a, T>, starts: &[usize]) -> Likeness<'a, T> {
        let (m, w) = (starts.len(), matrix.is_level.len());
        let n = matrix.observed.len() / w.max(1);
        let mut likeness = Likeness { matrix, scales: Vec::new(), related: vec![Vec::new(); m] };
        let most = (MOST_WORK / (m * w).max(1)).min(n);
        if most < FEWEST_ROWS {
            return likeness;
        }
        let rows = || (0..most).map(|k| k * n / most);
        let shown = Moments::of(matrix, rows());
        likeness.scales = (0..w).map(|f| shown.scale(f)).collect();
        for (related, &start) in likeness.related.iter_mut().zip(starts) {
            let lacks = |i: &usize| !matrix.observed[i * w + start];
            if !rows().any(|i| lacks(&i)) {
                continue;
            }
            let lacking = Moments::of(matrix, rows().filter(lacks));
            let differ = (0..w).map(|f| (f, shown.difference(&lacking, f)));
            *related = differ.filter(|&(_, difference)| difference > 0.0).collect();
        }
        likeness
    }

    /// The features to compare rows by when one lacks these columns, each with its weight.
    pub fn features_of(&self, columns: impl Iterator<Item = usize>) -> Vec<(usize, f64)> {
        let mut features: Vec<(usize, f64)> = columns.flat_map(|column| self.related[column].iter().copied()).collect();
        features.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        features.dedup_by_key(|(f, _)| *f);
        features
    }

    /// How far two rows are apart by these features, as far as both show them.
    pub fn distance(&self, a: usize, b: usize, features: &[(usize, f64)]) -> f64 {
        let Matrix { x, observed, is_level } = self.matrix;
        let (a, b) = (a * is_level.len(), b * is_level.len());
        let of_feature = |&(f, weight): &(usize, f64)| {
            let apart: f64 = (x[a + f].into() - x[b + f].into()).abs();
            let apart = match is_level[f] {
                true if apart > 0.0 => OTHER_LEVEL,
                true => 0.0,
                false => (apart * self.scales[f]).min(FAR),
            };
            weight * apart
        };
        features.iter().filter(|(f, _)| observed[a + f] && observed[b + f]).map(of_feature).sum()
    }
}

/// Count, sum and sum of squares of each feature's observed values, `[w]`.
struct Moments {
    of: Vec<[f64; 3]>,
}

impl Moments {
    fn of<T: Copy + Into<f64>>(matrix: Matrix<'_, T>, rows: impl Iterator<Item = usize>) -> Moments {
        let w = matrix.is_level.len();
        let mut of = vec![[0.0; 3]; w];
        for i in rows {
            for (f, moments) in of.iter_mut().enumerate().filter(|(f, _)| matrix.observed[i * w + f]) {
                let x: f64 = matrix.x[i * w + f].into();
                *moments = [moments[0] + 1.0, moments[1] + x, moments[2] + x * x];
            }
        }
        Moments { of }
    }

    fn variance(&self, f: usize) -> f64 {
        let [count, sum, squares] = self.of[f];
        let (mean, count) = (sum / count.max(1.0), count.max(1.0));
        let variance = squares / count - mean * mean;
        // What is left of constants is rounding.
        if variance > 1e-12 * mean * mean { variance } else { 0.0 }
    }

    fn scale(&self, f: usize) -> f64 {
        let variance = self.variance(f);
        if variance > 0.0 { 1.0 / variance.sqrt() } else { 0.0 }
    }

    /// By how many standard deviations the mean of a feature in a part of the rows differs from that in the others; 0
    /// where that may be chance.
    fn difference(&self, part: &Moments, f: usize) -> f64 {
        let ([all, sum, _], [count, part_sum, _]) = (self.of[f], part.of[f]);
        let others = all - count;
        if count < 2.0 || others < 2.0 {
            return 0.0;
        }
        let difference = (part_sum / count - (sum - part_sum) / others).abs() * self.scale(f);
        let is_sure = difference > SURE * (1.0 / count + 1.0 / others).sqrt();
        if is_sure { difference } else { 0.0 }
    }
}
