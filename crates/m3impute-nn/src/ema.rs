//! A running mean of the parameters.

use crate::blocks;
use crate::params::Params;
use crate::simd::{fma, kernel};

/// An exponential moving average of parameters: `mean = decay * mean + (1 - decay) * value` after each step.
///
/// ```
/// use m3impute_nn::{Ema, Matrix, Params};
///
/// let mut params = Params::new();
/// let w = params.add("w", Matrix::full(1, 1, 0.0));
/// let mut ema = Ema::new(&params, 0.9, false);
/// params.value_mut(w).as_mut_slice()[0] = 10.0;
/// ema.update(&params);
/// ema.swap(&mut params); // evaluate with the mean
/// assert!((params.value(w).get(0, 0) - 1.0).abs() < 1e-6);
/// ema.swap(&mut params); // and train on
/// assert_eq!(params.value(w).get(0, 0), 10.0);
/// ```
#[derive(Clone, Debug)]
pub struct Ema {
    decay: f32,
    warm_up: bool,
    updates: usize,
    means: Vec<Vec<f32>>,
}

impl Ema {
    /// Starts at the values of `params`. With `warm_up`, update number `t` from zero decays by
    /// `min(decay, (t + 1) / (t + 10))`, so that the first values are soon forgotten.
    pub fn new(params: &Params, decay: f32, warm_up: bool) -> Self {
        let means = params.entries().iter().map(|p| p.value.as_slice().to_vec()).collect();
        Self { decay, warm_up, updates: 0, means }
    }

    /// Takes in the values after a step.
    pub fn update(&mut self, params: &Params) {
        let t = self.updates as f32;
        let keep = if self.warm_up { self.decay.min((t + 1.0) / (t + 10.0)) } else { self.decay };
        self.updates += 1;
        let mut tasks = Vec::new();
        for (means, param) in self.means.iter_mut().zip(params.entries()) {
            let len = blocks::ELEMENTS;
            tasks.extend(means.chunks_mut(len).zip(param.value.as_slice().chunks(len)));
        }
        blocks::run(params.size(), tasks, |(means, values)| approach(1.0 - keep, values, means));
    }

    /// Exchanges the means with the values of `params`; a second call undoes it.
    pub fn swap(&mut self, params: &mut Params) {
        for (means, param) in self.means.iter_mut().zip(params.entries_mut()) {
            means.swap_with_slice(param.value.as_mut_slice());
        }
    }

    /// Writes the means into `params`.
    pub fn copy_to(&self, params: &mut Params) {
        for (means, param) in self.means.iter().zip(params.entries_mut()) {
            param.value.as_mut_slice().copy_from_slice(means);
        }
    }
}

kernel! {
    fn approach<const FMA: bool>(share: f32, values: &[f32], means: &mut [f32]) {
        for (mean, value) in means.iter_mut().zip(values) {
            *mean = fma::<FMA>(share, value - *mean, *mean);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;

    #[test]
    fn early_updates_weigh_more_with_a_warm_up() {
        let mut params = Params::new();
        let w = params.add("w", Matrix::full(1, 1, 0.0));
        let mut ema = Ema::new(&params, 0.995, true);
        let mut expected = 0.0f32;
        for (t, value) in [1.0f32, 2.0, 3.0].into_iter().enumerate() {
            params.value_mut(w).as_mut_slice()[0] = value;
            ema.update(&params);
            let keep = (t as f32 + 1.0) / (t as f32 + 10.0);
            expected = keep * expected + (1.0 - keep) * value;
        }
        ema.copy_to(&mut params);
        assert!((params.value(w).get(0, 0) - expected).abs() < 1e-6);
    }
}
