//! Entropy balancing (Hainmueller, 2012): the held-out cells of a column are a sample of its observed cells, and what they
//! have by chance in their mean and spread would go into every draw. So they are weighted, as little as it takes, until
//! they have the mean and the variance of all observed cells.

/// Newton's steps at most.
const STEPS: usize = 30;
/// Weights that leave less than this share of the cells effective are not used.
const MIN_EFFECTIVE: f64 = 0.5;

/// The mean and the variance of a column's observed values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Moments {
    /// The mean.
    mean: f64,
    /// The variance.
    variance: f64,
}

impl Moments {
    /// Of some values.
    fn of(values: &[f32]) -> Moments {
        let count = values.len().max(1) as f64;
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / count;
        let variance = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / count;
        Moments { mean, variance }
    }
}

/// Weights, of sum one, under which some of the `observed` values are as all of them: each `frequent` value, where there is
/// one, has the same share, and the others have the same mean and variance.
pub fn balancing_weights(values: &[f32], observed: &[f32], frequent: &[f32]) -> Vec<f64> {
    let share =
        |of: &dyn Fn(f32) -> bool| observed.iter().filter(|v| of(**v)).count() as f64 / observed.len().max(1) as f64;
    let mut weights = vec![0.0; values.len()];
    let is_rest = |v: f32| !frequent.contains(&v);
    let places = |of: &dyn Fn(f32) -> bool| (0..values.len()).filter(|&i| of(values[i])).collect::<Vec<usize>>();
    for &value in frequent {
        let cells = places(&|v| v == value);
        cells.iter().for_each(|&i| weights[i] = share(&|v| v == value) / cells.len() as f64);
    }
    let cells = places(&is_rest);
    let of_rest: Vec<f32> = observed.iter().copied().filter(|&v| is_rest(v)).collect();
    let balanced = weights_with_moments(&cells.iter().map(|&i| values[i]).collect::<Vec<f32>>(), Moments::of(&of_rest));
    cells.iter().zip(balanced).for_each(|(&i, weight)| weights[i] = share(&is_rest) * weight);
    // A share may have no cell to stand for it.
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= total);
    weights
}

/// Weights, of sum one, under which values have these moments: both, or the mean alone where both would rest on a few of
/// the values, or equal ones where that would, too.
fn weights_with_moments(values: &[f32], moments: Moments) -> Vec<f64> {
    let n = values.len() as f64;
    let deviation = moments.variance.sqrt();
    if deviation > 0.0 {
        let scaled: Vec<f64> = values.iter().map(|&v| (f64::from(v) - moments.mean) / deviation).collect();
        for is_spread_balanced in [true, false] {
            let weights = tilted(&scaled, is_spread_balanced);
            let effective = weights.as_ref().map_or(0.0, |w| 1.0 / w.iter().map(|w| w * w).sum::<f64>());
            if let Some(weights) = weights.filter(|_| effective >= MIN_EFFECTIVE * n) {
                return weights;
            }
        }
    }
    vec![1.0 / n; values.len()]
}

/// The weights `exp(a z + b z^2)` with mean 0 and, if wanted, mean square 1, by Newton's method on the convex dual. None
/// where no such weights are found.
fn tilted(scaled: &[f64], is_spread_balanced: bool) -> Option<Vec<f64>> {
    let (mut a, mut b) = (0.0, 0.0);
    for _ in 0..STEPS {
        let mut weights: Vec<f64> =
            scaled.iter().map(|z| (a * z + b * (z * z - 1.0)).clamp(-30.0, 30.0).exp()).collect();
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= total);
        let mean_of = |of: &dyn Fn(f64) -> f64| -> f64 { scaled.iter().zip(&weights).map(|(z, w)| w * of(*z)).sum() };
        let first = mean_of(&|z| z);
        let second = if is_spread_balanced { mean_of(&|z| z * z - 1.0) } else { 0.0 };
        if first.abs() < 1e-6 && second.abs() < 1e-6 {
            return Some(weights);
        }
        let aa = mean_of(&|z| z * z) - first * first;
        let ab = mean_of(&|z| z * (z * z - 1.0)) - first * second;
        let bb = mean_of(&|z| (z * z - 1.0).powi(2)) - second * second;
        // Half a unit at most: a whole Newton step may go too far at first.
        let step = |by: f64| by.clamp(-0.5, 0.5);
        if is_spread_balanced {
            let determinant = aa * bb - ab * ab;
            if determinant <= 1e-9 {
                return None;
            }
            a -= step((bb * first - ab * second) / determinant);
            b -= step((aa * second - ab * first) / determinant);
        } else {
            a -= step(first / aa.max(1e-9));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_give_the_mean_and_the_variance_of_all_cells() {
        let values: Vec<f32> = (0..60).map(|i| (i % 10) as f32 / 10.0).collect();
        let wanted = Moments { mean: 0.5, variance: 0.07 };
        let weights = weights_with_moments(&values, wanted);
        let mean: f64 = values.iter().zip(&weights).map(|(v, w)| f64::from(*v) * w).sum();
        let variance: f64 = values.iter().zip(&weights).map(|(v, w)| (f64::from(*v) - mean).powi(2) * w).sum();
        assert!((mean - 0.5).abs() < 1e-4 && (variance - 0.07).abs() < 1e-4, "{mean} {variance}");
        // Those that have the moments already are equal.
        let weights = weights_with_moments(&values, Moments::of(&values));
        assert!(weights.iter().all(|w| (w * 60.0 - 1.0).abs() < 1e-3), "{weights:?}");
    }

    #[test]
    fn frequent_values_have_their_share_and_the_others_their_mean() {
        // Half of the column is 0, but a fifth of these cells; the others are too large.
        let observed: Vec<f32> = (0..200).map(|i| if i % 2 == 0 { 0.0 } else { i as f32 / 200.0 }).collect();
        let values: Vec<f32> = (0..50).map(|i| if i < 10 { 0.0 } else { 0.1 + i as f32 / 55.0 }).collect();
        let weights = balancing_weights(&values, &observed, &[0.0]);
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9 && (weights[0] - 0.05).abs() < 1e-9, "{weights:?}");
        let mean: f64 = values.iter().zip(&weights).map(|(v, w)| f64::from(*v) * w).sum();
        assert!((mean - 0.25).abs() < 0.01, "{mean}");
        // One that no cell has is left to the others.
        let without = balancing_weights(&values[10..], &observed, &[0.0]);
        assert!((without.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn cells_that_cannot_be_balanced_have_equal_weights() {
        // All are below the mean that is wanted.
        let weights = weights_with_moments(&[0.1, 0.2, 0.3, 0.2], Moments { mean: 0.9, variance: 0.01 });
        assert_eq!(weights, [0.25; 4]);
        assert_eq!(weights_with_moments(&[0.5; 3], Moments { mean: 0.5, variance: 0.0 }), [1.0 / 3.0; 3]);
    }
}
