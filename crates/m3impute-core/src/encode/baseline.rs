//! The baseline of a column (median or most frequent level) and its range.

use super::Finish;
use super::features::{deviation, median, most_frequent};
use crate::schema::ColumnSpec;
use serde::{Deserialize, Serialize};

/// The baseline of one column and its range, with which cells without a prediction are filled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Baseline {
    /// The median of numbers, the most frequent level; none without an observed cell.
    pub(super) value: Option<f64>,
    pub(super) low: f64,
    pub(super) high: f64,
    /// The standard deviation of numbers: see [`deviation`]. Model files did not always have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deviation: Option<f64>,
}

impl Baseline {
    pub(super) fn of(spec: &ColumnSpec, values: &[f64]) -> Baseline {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if values.is_empty() {
            return Baseline { value: None, low: 0.0, high: 0.0, deviation: None };
        }
        let value = if spec.kind.has_levels() { most_frequent(values, spec.levels.len()) } else { median(values) };
        let deviation = if spec.kind.has_levels() { None } else { deviation(values.iter().copied()) };
        Baseline { value: Some(value), low, high, deviation }
    }

    /// Whether it is valid for such a column: a file may hold anything.
    pub(super) fn fits(&self, spec: &ColumnSpec) -> bool {
        let ordered = |low: f64, high: f64| low <= high && low.is_finite() && high.is_finite();
        let is_level = |code: f64| code.fract() == 0.0 && (0.0..spec.levels.len() as f64).contains(&code);
        let value_fits = self.value.is_none_or(|t| if spec.kind.has_levels() { is_level(t) } else { t.is_finite() });
        value_fits
            && ordered(self.low, self.high)
            && self.deviation.is_none_or(|d| d.is_finite() && d >= 0.0)
            && spec.bounds.is_none_or(|b| b.low <= b.high)
            && spec.step.is_finite()
            && spec.step >= 0.0
    }

    /// Rounds and bounds a filled number.
    pub(super) fn finish(&self, spec: &ColumnSpec, value: f64, finish: Finish) -> f64 {
        if spec.kind.has_levels() {
            return value.round().clamp(0.0, spec.levels.len() as f64 - 1.0);
        }
        let (mut low, mut high) = if finish.clip { (self.low, self.high) } else { (f64::NEG_INFINITY, f64::INFINITY) };
        if let Some(bounds) = spec.bounds {
            (low, high) = (low.max(bounds.low), high.min(bounds.high));
            if low > high {
                (low, high) = (bounds.low, bounds.high); // every observed value is out of bounds
            }
        }
        within(value, low, high, if finish.round { spec.step } else { 0.0 })
    }
}

/// The number within these limits that is nearest to `value`, and a multiple of `step` where that is not 0.
pub(crate) fn within(value: f64, low: f64, high: f64, step: f64) -> f64 {
    let value = value.clamp(low, high);
    if step == 0.0 {
        return value;
    }
    // Dividing by the inverse of a step such as 0.001 would not give back the nearest float.
    let rounded = (value / step).round() * step;
    if rounded > high {
        (high / step).floor() * step
    } else if rounded < low {
        (low / step).ceil() * step
    } else {
        rounded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Bounds, Kind};

    #[test]
    fn bounds_and_the_observed_range_hold() {
        let mut spec = ColumnSpec::new("age", Kind::Integer);
        let baseline = Baseline::of(&spec, &[3.0, 90.0]);
        let clip = Finish { round: true, clip: true, zero_empty: false };
        let open = Finish { round: false, clip: false, zero_empty: false };
        assert_eq!(baseline.finish(&spec, 200.4, clip), 90.0);
        assert_eq!(baseline.finish(&spec, 200.4, open), 200.4);
        spec.bounds = Some(Bounds { low: 0.5, high: 120.5 });
        assert_eq!(baseline.finish(&spec, 200.4, open), 120.5);
        assert_eq!(baseline.finish(&spec, 200.4, Finish { clip: false, ..clip }), 120.0);
    }
}
