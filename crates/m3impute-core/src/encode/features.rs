//! The features of a column, learnt from its observed values.

use super::{Constants, Encoding, Feature, Layout, MAX_FLAGS, Meaning, Scale};
use crate::schema::{ColumnSpec, Kind};

/// The features of one column with observed values.
pub(super) fn features_of(
    column: usize,
    spec: &ColumnSpec,
    values: &[f64],
    encoding: Encoding,
    features: &mut Vec<Feature>,
) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if low == high && spec.range.is_none() && encoding.constants == Constants::Leave {
        return;
    }
    let number = |values: &[f64], low: f64, high: f64| {
        let (centre, scale) = match encoding.scale {
            Scale::Raw => (0.0, 1.0),
            Scale::MinMax | Scale::Unit => (low, high - low),
            Scale::Standard => mean_and_deviation(values),
        };
        // A single value becomes 0, and so do values that differ by less than can be divided by.
        let scale = if scale > 0.0 && !scale.is_subnormal() { scale } else { 1.0 };
        Feature { column, meaning: Meaning::Number, centre, scale }
    };
    match (spec.kind, encoding.layout) {
        (Kind::Categorical | Kind::Boolean, Layout::Codes) => {
            let meaning = Meaning::Category(spec.levels.len() as u32);
            features.push(Feature { column, meaning, centre: 0.0, scale: 1.0 });
        }
        (Kind::Categorical, Layout::Flags) => {
            let mut counts = vec![0_usize; spec.levels.len()];
            values.iter().for_each(|&v| counts[v as usize] += 1);
            let mut seen: Vec<u32> = (0..counts.len() as u32).filter(|&c| counts[c as usize] > 0).collect();
            if seen.len() > MAX_FLAGS {
                seen.sort_by_key(|&c| (usize::MAX - counts[c as usize], c));
                seen.truncate(MAX_FLAGS);
                seen.sort_unstable();
            }
            for level in seen {
                let flags: Vec<f64> = values.iter().map(|&v| f64::from(u8::from(v == f64::from(level)))).collect();
                let mut feature = number(&flags, 0.0, 1.0);
                feature.meaning = Meaning::Flag(level);
                if encoding.scale == Scale::MinMax {
                    // Two rows of different levels differ in two flags: together they count like the range of a number.
                    feature.scale = std::f64::consts::SQRT_2;
                }
                features.push(feature);
            }
        }
        _ => {
            let range = spec.range.filter(|_| encoding.scale != Scale::Unit);
            let (low, high) = range.map_or((low, high), |r| (r.low, r.high));
            features.push(number(values, low, high));
        }
    }
}

/// The distinct values of a number, increasing; none of levels, which are codes.
pub(super) fn distinct_values(spec: &ColumnSpec, values: &[f64]) -> Vec<f64> {
    if matches!(spec.kind, Kind::Categorical | Kind::Boolean) {
        return Vec::new();
    }
    let mut distinct = values.to_vec();
    distinct.sort_unstable_by(f64::total_cmp);
    distinct.dedup();
    distinct
}

/// The mean and the population deviation.
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

/// The standard deviation of a sample; none of fewer than two values, or where it is too large for a float.
///
/// ```
/// use m3impute_core::encode::deviation;
/// assert_eq!(deviation([1.0, 3.0].into_iter()), Some(2.0_f64.sqrt()));
/// assert_eq!(deviation([1.0].into_iter()), None);
/// ```
pub fn deviation(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let deviation = (values.map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    (n >= 2.0 && deviation.is_finite()).then_some(deviation)
}

/// The median; the mean of the two middle values of an even number.
///
/// # Panics
/// Without a value.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        return sorted[half];
    }
    let (low, high) = (sorted[half - 1], sorted[half]);
    let mean = (low + high) / 2.0;
    if mean.is_finite() { mean } else { low / 2.0 + high / 2.0 }
}

/// The most frequent code; the smallest of several.
pub(super) fn most_frequent(codes: &[f64], levels: usize) -> f64 {
    let mut counts = vec![0_usize; levels];
    codes.iter().for_each(|&c| counts[c as usize] += 1);
    (0..levels).max_by_key(|&c| (counts[c], levels - c)).unwrap_or(0) as f64
}
