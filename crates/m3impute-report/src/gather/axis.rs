//! Axes of numbers: where they begin and end, and whether they are logarithmic.

use super::quantile;
use crate::facts::Axis;
use m3impute_core::Kind;

/// The axis of sorted values. A few that lie far out do not make the rest invisible.
pub(super) fn axis_of(sorted: &[f64], kind: Kind) -> Axis {
    match (sorted.first(), sorted.last()) {
        (Some(&low), Some(&high)) => axis_between(low, high, sorted, kind),
        _ => Axis { low: 0.0, high: 1.0, log: false },
    }
}

/// The axis from `low` to `high`, of which only those parts are kept that are not far from most of the sorted values.
pub(super) fn axis_between(low: f64, high: f64, sorted: &[f64], kind: Kind) -> Axis {
    let log = low > 0.0 && is_skewed(sorted, kind);
    let there = |value: f64| if log { value.ln() } else { value };
    let back = |value: f64| if log { value.exp() } else { value };
    let (near, far) = (there(quantile(sorted, 0.005)), there(quantile(sorted, 0.995)));
    let reach = 0.75 * (far - near);
    let (low, high) =
        if reach > 0.0 { (low.max(back(near - reach)), high.min(back(far + reach))) } else { (low, high) };
    let half = if high > low { 0.0 } else { low.abs().max(1.0) * 0.05 };
    Axis { low: low - half, high: high + half, log }
}

/// Whether values lie so much closer together at their low end that a linear axis shows little of them.
fn is_skewed(sorted: &[f64], kind: Kind) -> bool {
    let [low, middle, high] = [0.05, 0.5, 0.95].map(|share| quantile(sorted, share));
    // Small whole numbers would lie farther apart than bins of a logarithmic axis.
    let able = kind == Kind::Continuous || (kind == Kind::Integer && low >= 20.0);
    able && low > 0.0 && high > 10.0 * low && high - middle > 3.0 * (middle - low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positive_values_that_crowd_at_the_low_end_have_a_logarithmic_axis() {
        let skewed: Vec<f64> = (0..101).map(|i| 10_f64.powf(f64::from(i) / 25.0)).collect(); // 1 to 10,000
        let axis = axis_of(&skewed, Kind::Continuous);
        assert!(axis.log && (axis.place(100.0) - 0.5).abs() < 1e-9, "{axis:?}");
        let even: Vec<f64> = (1..1000).map(f64::from).collect();
        assert!(!axis_of(&even, Kind::Continuous).log, "spread evenly");
        let around_zero: Vec<f64> = skewed.iter().map(|v| v - 1.0).collect();
        assert!(!axis_of(&around_zero, Kind::Continuous).log, "zero has no logarithm");
        assert!(!axis_of(&skewed, Kind::Datetime).log && !axis_of(&skewed, Kind::Integer).log);
    }

    #[test]
    fn places_on_an_axis_are_shares_of_it() {
        let axis = Axis { low: 10.0, high: 20.0, log: false };
        assert_eq!([5.0, 15.0, 25.0].map(|value| axis.place(value)), [0.0, 0.5, 1.0]);
        assert_eq!(axis_of(&[], Kind::Continuous).place(0.5), 0.5);
    }
}
