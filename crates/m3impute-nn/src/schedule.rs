//! Learning rates over the steps of a training.

/// The share of the peak learning rate at each step.
///
/// ```
/// use m3impute_nn::Schedule;
///
/// let schedule = Schedule::WarmUpCosine { warm_up: 2, steps: 10 };
/// assert_eq!(schedule.factor(0), 0.5);
/// assert_eq!(schedule.factor(2), 1.0);
/// assert_eq!(schedule.factor(6), 0.5);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// The peak all the time.
    #[default]
    Constant,
    /// A straight line up to the peak over `warm_up` steps, then half a cosine down to zero at `steps`.
    WarmUpCosine {
        /// Steps on the way up.
        warm_up: usize,
        /// Steps in all.
        steps: usize,
    },
}

impl Schedule {
    /// The factor for step number `step`, counted from zero.
    pub fn factor(self, step: usize) -> f32 {
        match self {
            Schedule::Constant => 1.0,
            Schedule::WarmUpCosine { warm_up, .. } if step < warm_up => (step + 1) as f32 / warm_up as f32,
            Schedule::WarmUpCosine { warm_up, steps } => {
                let length = steps.saturating_sub(warm_up).max(1);
                let through = ((step - warm_up) as f64 / length as f64).min(1.0);
                (0.5 * (1.0 + (std::f64::consts::PI * through).cos())) as f32
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_rises_in_a_line_and_falls_in_a_cosine() {
        let schedule = Schedule::WarmUpCosine { warm_up: 4, steps: 12 };
        let expected = [0.25, 0.5, 0.75, 1.0, 1.0, 0.961_939_7, 0.853_553_4];
        for (step, want) in expected.into_iter().enumerate() {
            assert!((schedule.factor(step) - want).abs() < 1e-6, "step {step}");
        }
        assert_eq!(schedule.factor(12), 0.0);
        assert_eq!(schedule.factor(100), 0.0);
    }

    #[test]
    fn a_training_shorter_than_its_warm_up_is_defined() {
        let schedule = Schedule::WarmUpCosine { warm_up: 5, steps: 3 };
        assert_eq!(schedule.factor(4), 1.0);
        assert_eq!(schedule.factor(5), 1.0);
        assert_eq!(schedule.factor(6), 0.0);
        assert_eq!(Schedule::Constant.factor(7), 1.0);
    }
}
