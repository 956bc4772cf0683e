//! The density of the residuals of a regression: a kernel estimate, as a table of logarithms.

use serde::{Deserialize, Serialize};

/// Entries of the table.
const ENTRIES: usize = 161;
/// The table reaches this much further than the largest residual.
const MARGIN: f64 = 1.25;
/// A share of residuals may be anywhere: those of a normal distribution with twice the deviation.
const ANYWHERE: f64 = 0.005;

/// The logarithm of a density at equidistant residuals, those in the middle near zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResidualDensity {
    /// The largest residual of the table.
    reach: f64,
    /// The standard deviation of the residuals.
    deviation: f64,
    log: Vec<f32>,
}

impl ResidualDensity {
    /// Of some residuals; none where they do not differ.
    pub fn of(residuals: &[f64]) -> Option<ResidualDensity> {
        let n = residuals.len().max(1) as f64;
        let deviation = (residuals.iter().map(|r| r * r).sum::<f64>() / n).sqrt();
        let largest = residuals.iter().fold(0.0, |most: f64, r| most.max(r.abs()));
        if !(deviation.is_normal() && largest.is_finite()) {
            return None;
        }
        let reach = MARGIN * largest.max(3.0 * deviation);
        let step = 2.0 * reach / (ENTRIES - 1) as f64;
        // The rule of Silverman; residuals are moved towards zero, so that the kernel does not add to their variance.
        let width = (0.9 * deviation * n.powf(-0.2)).max(step);
        let shrinkage = (1.0 - (width / deviation).powi(2)).max(0.0).sqrt();
        let mut counts = vec![0.0; ENTRIES];
        for r in residuals {
            let place = (shrinkage * r + reach) / step;
            let (low, share) = ((place as usize).min(ENTRIES - 2), place.fract());
            counts[low] += 1.0 - share;
            counts[low + 1] += share;
        }
        let normal = |x: f64, deviation: f64| (-0.5 * (x / deviation).powi(2)).exp() / deviation;
        let at = |k: usize| {
            let near = |l: usize| counts[l] * normal((k as f64 - l as f64) * step, width);
            let kernel = (0..ENTRIES).map(near).sum::<f64>() / n;
            let anywhere = normal(k as f64 * step - reach, 2.0 * deviation);
            ((1.0 - ANYWHERE) * kernel + ANYWHERE * anywhere).ln() as f32
        };
        Some(ResidualDensity { reach, deviation, log: (0..ENTRIES).map(at).collect() })
    }

    /// The logarithm of the density, but for a constant.
    pub fn log(&self, residual: f64) -> f64 {
        let place = (residual + self.reach) / (2.0 * self.reach) * (ENTRIES - 1) as f64;
        if !(0.0..=(ENTRIES - 1) as f64).contains(&place) {
            let deviation = 2.0 * self.deviation;
            return (ANYWHERE / deviation).ln() - 0.5 * (residual / deviation).powi(2);
        }
        let low = (place as usize).min(ENTRIES - 2);
        let share = place - low as f64;
        f64::from(self.log[low]) * (1.0 - share) + f64::from(self.log[low + 1]) * share
    }

    /// Residuals lie within this distance of zero.
    pub fn reach(&self) -> f64 {
        self.reach
    }

    /// Whether what came from a file makes sense.
    pub fn is_sound(&self) -> bool {
        let is_size = |x: f64| x.is_finite() && x > 0.0;
        is_size(self.reach)
            && is_size(self.deviation)
            && self.log.len() == ENTRIES
            && self.log.iter().all(|x| x.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_density_has_the_variance_and_the_skewness_of_its_residuals() {
        let plain: Vec<f64> = (0..500).map(|i| -((i as f64 + 0.5) / 500.0).ln() - 1.0).collect();
        let density = ResidualDensity::of(&plain).unwrap();
        let step = 0.01;
        let moment = |power: i32| {
            let at = |k: i32| f64::from(k) * step;
            let sum: f64 = (-3000..3000).map(|k| density.log(at(k)).exp() * at(k).powi(power)).sum();
            sum / (-3000..3000).map(|k| density.log(at(k)).exp()).sum::<f64>()
        };
        assert!(moment(1).abs() < 0.03 && (moment(2) - 1.0).abs() < 0.08, "{} {}", moment(1), moment(2));
        // That of an exponential distribution is 2.
        assert!((moment(3) - 2.0).abs() < 0.5, "{}", moment(3));
        assert!(density.is_sound() && ResidualDensity::of(&[0.0; 5]).is_none());
    }
}
