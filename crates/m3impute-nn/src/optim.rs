//! Adam and AdamW as PyTorch defines them, and clipping of gradients.

use crate::blocks;
use crate::lanes;
use crate::params::Params;
use crate::simd::{fma, kernel};

/// How weights decay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Decay {
    /// Not at all.
    #[default]
    None,
    /// `rate * weight` is added to the gradient, as in Adam.
    Gradient(f32),
    /// Weights are multiplied by `1 - learning rate * rate`, as in AdamW.
    Decoupled(f32),
}

/// Settings of [`Adam`]. The default is that of PyTorch, without decay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamParams {
    /// How long the mean of the gradient remembers.
    pub beta1: f64,
    /// How long the mean of its square remembers.
    pub beta2: f64,
    /// Added to the denominator.
    pub eps: f64,
    /// How weights decay.
    pub decay: Decay,
}

impl Default for AdamParams {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, eps: 1e-8, decay: Decay::None }
    }
}

/// Adam, or AdamW with [`Decay::Decoupled`].
///
/// ```
/// use m3impute_nn::{Adam, AdamParams, Matrix, Params};
///
/// let mut params = Params::new();
/// let w = params.add("w", Matrix::full(1, 1, 1.0));
/// let mut adam = Adam::new(&params, AdamParams::default());
/// params.grad_mut(w).as_mut_slice()[0] = 5.0;
/// adam.step(&mut params, 1e-3);
/// assert!((params.value(w).get(0, 0) - 0.999).abs() < 1e-6);
/// ```
#[derive(Clone, Debug)]
pub struct Adam {
    settings: AdamParams,
    state: AdamState,
}

/// What [`Adam`] remembers from step to step, for training that is stopped and goes on later.
#[derive(Clone, Debug, PartialEq)]
pub struct AdamState {
    /// Number of steps taken.
    pub steps: u32,
    /// Running mean of the gradient and of its square, a parameter each.
    pub moments: Vec<[Vec<f32>; 2]>,
}

/// What is the same for all weights in one step.
#[derive(Clone, Copy)]
struct Step {
    take1: f32,
    keep2: f32,
    take2: f32,
    eps: f32,
    shrink: f32,
    pull: f32,
    /// Learning rate over the first bias correction.
    rate: f32,
    /// Square root of the second bias correction.
    root: f32,
}

impl Adam {
    /// An optimiser for these parameters, before its first step.
    pub fn new(params: &Params, settings: AdamParams) -> Self {
        let zeros = |len| [vec![0.0; len], vec![0.0; len]];
        let moments = params.entries().iter().map(|p| zeros(p.value.as_slice().len())).collect();
        Self { settings, state: AdamState { steps: 0, moments } }
    }

    /// Number of steps taken.
    pub fn steps(&self) -> usize {
        self.state.steps as usize
    }

    /// What it remembers from the steps taken.
    pub fn state(&self) -> &AdamState {
        &self.state
    }

    /// Goes on from a state: with the weights of the same time, later steps are to the last bit those that would have
    /// been.
    ///
    /// ```
    /// use m3impute_nn::{Adam, AdamParams, Matrix, Params};
    ///
    /// let mut params = Params::new();
    /// params.add("w", Matrix::full(1, 1, 1.0));
    /// let mut adam = Adam::new(&params, AdamParams::default());
    /// adam.step(&mut params, 1e-3);
    /// let mut other = Adam::new(&params, AdamParams::default());
    /// other.restore(adam.state().clone());
    /// assert_eq!(other.steps(), 1);
    /// ```
    ///
    /// # Panics
    /// If the state is not of the same parameters.
    pub fn restore(&mut self, state: AdamState) {
        let sizes =
            |state: &AdamState| -> Vec<[usize; 2]> { state.moments.iter().map(|[m, v]| [m.len(), v.len()]).collect() };
        assert_eq!(sizes(&state), sizes(&self.state), "a state serves the parameters it was taken from");
        self.state = state;
    }

    /// Moves all parameters by their gradients, in one pass. Gradients are left as they are.
    ///
    /// # Panics
    /// If the parameters are not those it was made for.
    pub fn step(&mut self, params: &mut Params, learning_rate: f32) {
        assert_eq!(params.len(), self.state.moments.len(), "an optimiser serves the parameters it was made for");
        self.state.steps += 1;
        let AdamParams { beta1, beta2, eps, decay } = self.settings;
        let correction = |beta: f64| 1.0 - beta.powi(self.state.steps as i32);
        // `1 - beta` is taken before it is rounded: of 0.999 the difference would keep four digits.
        let step = Step {
            take1: (1.0 - beta1) as f32,
            keep2: beta2 as f32,
            take2: (1.0 - beta2) as f32,
            eps: eps as f32,
            shrink: if let Decay::Decoupled(rate) = decay { 1.0 - learning_rate * rate } else { 1.0 },
            pull: if let Decay::Gradient(rate) = decay { rate } else { 0.0 },
            rate: (f64::from(learning_rate) / correction(beta1)) as f32,
            root: correction(beta2).sqrt() as f32,
        };
        let work = params.size();
        let mut tasks = Vec::new();
        for (param, [m, v]) in params.entries_mut().iter_mut().zip(&mut self.state.moments) {
            let len = blocks::ELEMENTS;
            let values = param.value.as_mut_slice().chunks_mut(len);
            let grads = param.grad.as_slice().chunks(len);
            tasks.extend(values.zip(grads).zip(m.chunks_mut(len)).zip(v.chunks_mut(len)));
        }
        blocks::run(work, tasks, |(((values, grads), m), v)| update(step, values, grads, m, v));
    }
}

kernel! {
    fn update<const FMA: bool>(step: Step, values: &mut [f32], grads: &[f32], m: &mut [f32], v: &mut [f32]) {
        for (((w, g), m), v) in values.iter_mut().zip(grads).zip(m).zip(v) {
            let g = fma::<FMA>(step.pull, *w, *g);
            let mean = fma::<FMA>(step.take1, g - *m, *m);
            let square = fma::<FMA>(step.take2 * g, g, step.keep2 * *v);
            // Where the gradient has died out, both would shrink into denormal numbers and stay there, and every
            // later step would be slowed down by them. Beside `eps` they are nothing.
            *m = if mean.abs() < 1e-30 { 0.0 } else { mean };
            *v = if square < 1e-35 { 0.0 } else { square };
            let denominator = v.sqrt() / step.root + step.eps;
            *w = *w * step.shrink - step.rate * (*m / denominator);
        }
    }
}

impl Params {
    /// The L2 norm of all gradients together.
    pub fn grad_norm(&self) -> f32 {
        let parts: Vec<&[f32]> =
            self.entries().iter().flat_map(|p| p.grad.as_slice().chunks(blocks::ELEMENTS)).collect();
        blocks::map(self.size(), parts.len(), 1, |i, _| squares(parts[i])).iter().sum::<f64>().sqrt() as f32
    }

    /// Scales all gradients by `most / (norm + 1e-6)` if that is less than one, and returns the norm before.
    pub fn clip_grad_norm(&mut self, most: f32) -> f32 {
        let norm = self.grad_norm();
        let factor = most / (norm + 1e-6);
        if factor < 1.0 {
            let work = self.size();
            let parts = self.entries_mut().iter_mut().flat_map(|p| p.grad.as_mut_slice().chunks_mut(blocks::ELEMENTS));
            blocks::run(work, parts.collect(), |grads| scale(factor, grads));
        }
        norm
    }
}

kernel! {
    fn squares<const FMA: bool>(values: &[f32]) -> f64 {
        // Short runs in `f32`, their sum in `f64`.
        let mut sum = 0.0;
        for run in values.chunks(1024) {
            sum += f64::from(lanes::squares::<FMA>(run, 0.0));
        }
        sum
    }
}

kernel! {
    fn scale<const FMA: bool>(factor: f32, values: &mut [f32]) {
        values.iter_mut().for_each(|v| *v *= factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;

    /// Adam in `f64`, written as in the paper.
    fn reference(settings: AdamParams, rates: &[f64], grads: &[f64], mut w: f64) -> f64 {
        let AdamParams { beta1, beta2, eps, .. } = settings;
        let (mut m, mut v) = (0.0, 0.0);
        for (t, (rate, grad)) in rates.iter().zip(grads).enumerate() {
            let mut grad = *grad;
            match settings.decay {
                Decay::None => {}
                Decay::Gradient(decay) => grad += f64::from(decay) * w,
                Decay::Decoupled(decay) => w *= 1.0 - rate * f64::from(decay),
            }
            m = beta1 * m + (1.0 - beta1) * grad;
            v = beta2 * v + (1.0 - beta2) * grad * grad;
            let t = t as i32 + 1;
            let (m_hat, v_hat) = (m / (1.0 - beta1.powi(t)), v / (1.0 - beta2.powi(t)));
            w -= rate * m_hat / (v_hat.sqrt() + eps);
        }
        w
    }

    #[test]
    fn steps_match_the_definition() {
        let rates = [1e-3, 2e-3, 1e-3, 5e-4, 1e-2];
        let grads = [0.3, -2.0, 1e-4, 0.0, 7.0];
        for decay in [Decay::None, Decay::Gradient(0.1), Decay::Decoupled(0.1)] {
            let settings = AdamParams { beta2: 0.99, decay, ..AdamParams::default() };
            let mut params = Params::new();
            let id = params.add("w", Matrix::full(3, 7, 0.8));
            let mut adam = Adam::new(&params, settings);
            for (rate, grad) in rates.iter().zip(grads) {
                params.grad_mut(id).as_mut_slice().fill(grad as f32);
                adam.step(&mut params, *rate as f32);
            }
            let expected = reference(settings, &rates, &grads, 0.8);
            for w in params.value(id).as_slice() {
                assert!((f64::from(*w) - expected).abs() < 2e-7, "{decay:?}: {w} {expected}");
            }
            assert_eq!(adam.steps(), 5);
        }
    }

    #[test]
    fn a_restored_state_takes_the_same_steps() {
        let mut params = Params::new();
        let id = params.add("w", Matrix::full(2, 3, 0.8));
        let mut adam = Adam::new(&params, AdamParams::default());
        let steps = |adam: &mut Adam, params: &mut Params, grads: &[f32]| {
            for grad in grads {
                params.grad_mut(id).as_mut_slice().fill(*grad);
                adam.step(params, 1e-2);
            }
        };
        steps(&mut adam, &mut params, &[0.3, -2.0]);
        let (mut later, mut forgetful) = (params.clone(), params.clone());
        let mut restored = Adam::new(&later, AdamParams::default());
        restored.restore(adam.state().clone());
        steps(&mut adam, &mut params, &[0.5, 0.1]);
        steps(&mut restored, &mut later, &[0.5, 0.1]);
        steps(&mut Adam::new(&forgetful, AdamParams::default()), &mut forgetful, &[0.5, 0.1]);
        assert_eq!(later.value(id), params.value(id));
        assert_eq!(restored.state(), adam.state());
        assert_ne!(forgetful.value(id), params.value(id));
    }

    #[test]
    #[should_panic(expected = "a state serves the parameters it was taken from")]
    fn a_state_of_other_parameters_is_refused() {
        let adam_of = |size| {
            let mut params = Params::new();
            params.add("w", Matrix::zeros(1, size));
            Adam::new(&params, AdamParams::default())
        };
        adam_of(2).restore(adam_of(3).state().clone());
    }

    #[test]
    fn moments_of_a_dead_weight_become_zero() {
        let mut params = Params::new();
        let id = params.add("w", Matrix::full(1, 40, 0.8));
        let mut adam = Adam::new(&params, AdamParams { beta2: 0.9, ..AdamParams::default() });
        params.grad_mut(id).as_mut_slice().fill(1e-3);
        for _ in 0..1500 {
            adam.step(&mut params, 1e-3);
            params.zero_grads();
        }
        assert!(adam.state().moments[0].iter().flatten().all(|v| *v == 0.0));
    }

    #[test]
    fn clipping_brings_the_norm_down_and_leaves_small_gradients() {
        let mut params = Params::new();
        let a = params.add("a", Matrix::zeros(1, 1));
        let b = params.add("b", Matrix::zeros(1, 1));
        params.grad_mut(a).as_mut_slice()[0] = 3.0;
        params.grad_mut(b).as_mut_slice()[0] = -4.0;
        assert_eq!(params.clip_grad_norm(10.0), 5.0);
        assert_eq!(params.grad(a).get(0, 0), 3.0);
        assert_eq!(params.clip_grad_norm(1.0), 5.0);
        assert!((params.grad_norm() - 1.0).abs() < 1e-6);
        assert!((params.grad(b).get(0, 0) + 0.8).abs() < 1e-6);
    }
}
