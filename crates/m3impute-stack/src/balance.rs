//! Entropy balancing (Hainmueller, 2012): the held-out cells of a column are a sample of its observed cells, and what they
//! have by chance in their mean and spread would go into every draw. So they are weighted, as little as it takes, until
//! they have the mean and the variance of all observed cells.

/// Newton's steps at most.
const STEPS: usize = 30;
/// Weights that leave less than this share of the cells effective are not used.
const MIN_EFFECTIVE: f64 = 0.5;

/// The mean and the variance of a column's observed values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// The mean.
    pub mean: f64,
    /// The variance.
    pub variance: f64,
}

impl Moments {
    /// Of some values.
    pub fn of(values: &[f32]) -> Moments {
        let count = values.len().max(1) as f64;
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / count;
        let variance = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / count;
        Moments { mean, variance }
    }
}

/// Weights, of sum one, under which values have these moments: both, or the mean alone where both would rest on a few of
/// the values, or equal ones where that would, too.
pub fn balancing_weights(values: &[f32], moments: Moments) -> Vec<f64> {
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
        let weights = balancing_weights(&values, wanted);
        let mean: f64 = values.iter().zip(&weights).map(|(v, w)| f64::from(*v) * w).sum();
        let variance: f64 = values.iter().zip(&weights).map(|(v, w)| (f64::from(*v) - mean).powi(2) * w).sum();
        assert!((mean - 0.5).abs() < 1e-4 && (variance - 0.07).abs() < 1e-4, "{mean} {variance}");
        // Those that have the moments already are equal.
        let weights = balancing_weights(&values, Moments::of(&values));
        assert!(weights.iter().all(|w| (w * 60.0 - 1.0).abs() < 1e-3), "{weights:?}");
    }

    #[test]
    fn cells_that_cannot_be_balanced_have_equal_weights() {
        // All are below the mean that is wanted.
        let weights = balancing_weights(&[0.1, 0.2, 0.3, 0.2], Moments { mean: 0.9, variance: 0.01 });
        assert_eq!(weights, [0.25; 4]);
        assert_eq!(balancing_weights(&[0.5; 3], Moments { mean: 0.5, variance: 0.0 }), [1.0 / 3.0; 3]);
    }
}
