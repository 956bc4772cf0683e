//! Activations, on their own or fused with the operation before them.
//!
//! GELU is `z * cdf(z)` with the exact normal distribution function, as PyTorch's default. Its slope is kept
//! from the forward pass, where it costs two operations more, so that the backward pass is one product; the
//! slopes of the others follow from the output.

use crate::blocks;
use crate::math;
use crate::matrix::Matrix;
use crate::ops::Op;
use crate::ops::dropout::Dropout;
use crate::pool::Pool;
use crate::simd::kernel;
use crate::tape::{Backward, Tape, Var};

/// A function applied to each value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Activation {
    /// The value itself.
    #[default]
    None,
    /// `max(z, 0)`.
    Relu,
    /// `z` above zero, `slope * z` below; the slope must be positive.
    LeakyRelu(f32),
    /// `z` above zero, `exp(z) - 1` below.
    Elu,
    /// `z` times the normal distribution function of `z`.
    Gelu,
    /// `1 / (1 + exp(-z))`.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// `ln(1 + exp(z))`.
    Softplus,
}

/// What is done to each value at the end of an operation: an activation, then perhaps dropout.
///
/// ```
/// use m3impute_nn::{Activation, Epilogue};
///
/// let plain: Epilogue = Activation::Gelu.into();
/// let thinned: Epilogue = Activation::Gelu.dropout(0.1, 42);
/// assert_ne!(plain, thinned);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Epilogue {
    activation: Activation,
    dropout: Option<Dropout>,
}

impl From<Activation> for Epilogue {
    fn from(activation: Activation) -> Self {
        Self { activation, dropout: None }
    }
}

impl From<Dropout> for Epilogue {
    fn from(dropout: Dropout) -> Self {
        Self { activation: Activation::None, dropout: (dropout.rate() > 0.0).then_some(dropout) }
    }
}

impl Activation {
    /// This activation, then dropout at `rate` with the mask of `key`.
    pub fn dropout(self, rate: f32, key: u64) -> Epilogue {
        Epilogue { activation: self, ..Dropout::new(rate, key).into() }
    }

    fn slope_from_output(self) -> bool {
        !matches!(self, Activation::Gelu | Activation::Softplus)
    }
}

/// How the gradient passes back through an [`Epilogue`].
#[derive(Debug)]
pub(crate) enum Slope {
    One,
    FromOutput(Activation),
    Saved(Vec<f32>),
}

impl Slope {
    /// Turns the gradient of the output into that of the input. All slices are the same block.
    pub(crate) fn apply(&self, from: usize, output: &[f32], grad: &mut [f32]) {
        match self {
            Slope::One => {}
            Slope::FromOutput(activation) => scale_by_output(*activation, &output[from..][..grad.len()], grad),
            Slope::Saved(slope) => scale(&slope[from..][..grad.len()], grad),
        }
    }

    pub(crate) fn recycle(self, pool: &mut Pool) {
        if let Slope::Saved(buffer) = self {
            pool.give(buffer);
        }
    }
}

impl Epilogue {
    /// Without dropout, for a tape that does not record.
    pub(crate) fn for_tape(mut self, tape: &Tape) -> Self {
        if !tape.is_recording() {
            self.dropout = None;
        }
        self
    }

    pub(crate) fn is_identity(&self) -> bool {
        self.activation == Activation::None && self.dropout.is_none()
    }

    /// Room for what the backward pass needs of `len` values; empty if the output is enough.
    pub(crate) fn slope_buffer(&self, tape: &mut Tape, len: usize, needs_grad: bool) -> Vec<f32> {
        let saved = self.dropout.is_some() || !self.activation.slope_from_output();
        if saved && needs_grad && tape.is_recording() { tape.buffer(len) } else { Vec::new() }
    }

    /// Finishes block number `block`, in place. An empty `slope` is not wanted.
    pub(crate) fn finish(&self, block: usize, values: &mut [f32], slope: &mut [f32]) {
        if slope.is_empty() {
            activate(self.activation, values);
        } else {
            activate_with_slope(self.activation, values, slope);
        }
        if let Some(dropout) = &self.dropout {
            dropout.thin(block, values, slope);
        }
    }

    pub(crate) fn slope(self, buffer: Vec<f32>) -> Slope {
        if self.is_identity() {
            Slope::One
        } else if buffer.is_empty() {
            Slope::FromOutput(self.activation)
        } else {
            Slope::Saved(buffer)
        }
    }
}

kernel! {
    fn activate<const FMA: bool>(activation: Activation, values: &mut [f32]) {
        match activation {
            Activation::None => {}
            Activation::Relu => values.iter_mut().for_each(|v| *v = if *v < 0.0 { 0.0 } else { *v }),
            Activation::LeakyRelu(slope) => values.iter_mut().for_each(|v| *v = if *v < 0.0 { slope * *v } else { *v }),
            Activation::Elu => values.iter_mut().for_each(|v| *v = elu::<FMA>(*v)),
            Activation::Gelu => values.iter_mut().for_each(|v| *v = math::gelu::<FMA>(*v).0),
            Activation::Sigmoid => values.iter_mut().for_each(|v| *v = math::sigmoid::<FMA>(*v)),
            Activation::Tanh => values.iter_mut().for_each(|v| *v = math::tanh::<FMA>(*v)),
            Activation::Softplus => values.iter_mut().for_each(|v| *v = softplus::<FMA>(*v)),
        }
    }
}

kernel! {
    fn activate_with_slope<const FMA: bool>(activation: Activation, values: &mut [f32], slope: &mut [f32]) {
        // Loops where there is arithmetic to be fused: the compiler may leave a closure outside of the function, and
        // there the instructions of this version of it are not to be had.
        let pairs = values.iter_mut().zip(slope.iter_mut());
        match activation {
            Activation::None => slope.fill(1.0),
            Activation::Relu => pairs.for_each(|(v, s)| (*v, *s) = if *v < 0.0 { (0.0, 0.0) } else { (*v, 1.0) }),
            Activation::LeakyRelu(a) => pairs.for_each(|(v, s)| (*v, *s) = if *v < 0.0 { (a * *v, a) } else { (*v, 1.0) }),
            Activation::Elu => {
                for (v, s) in pairs {
                    *v = elu::<FMA>(*v);
                    *s = if *v < 0.0 { *v + 1.0 } else { 1.0 };
                }
            }
            Activation::Gelu => {
                for (v, s) in pairs {
                    (*v, *s) = math::gelu::<FMA>(*v);
                }
            }
            Activation::Sigmoid => {
                for (v, s) in pairs {
                    *v = math::sigmoid::<FMA>(*v);
                    *s = *v * (1.0 - *v);
                }
            }
            Activation::Tanh => {
                for (v, s) in pairs {
                    *v = math::tanh::<FMA>(*v);
                    *s = 1.0 - *v * *v;
                }
            }
            Activation::Softplus => {
                for (v, s) in pairs {
                    *s = math::sigmoid::<FMA>(*v);
                    *v = softplus::<FMA>(*v);
                }
            }
        }
    }
}

kernel! {
    fn scale_by_output<const FMA: bool>(activation: Activation, output: &[f32], grad: &mut [f32]) {
        let pairs = grad.iter_mut().zip(output);
        match activation {
            Activation::None | Activation::Gelu | Activation::Softplus => {}
            Activation::Relu => pairs.for_each(|(g, y)| *g = if *y > 0.0 { *g } else { 0.0 }),
            Activation::LeakyRelu(a) => pairs.for_each(|(g, y)| *g = if *y > 0.0 { *g } else { a * *g }),
            Activation::Elu => pairs.for_each(|(g, y)| *g = if *y > 0.0 { *g } else { *g * (y + 1.0) }),
            Activation::Sigmoid => pairs.for_each(|(g, y)| *g *= y * (1.0 - y)),
            Activation::Tanh => pairs.for_each(|(g, y)| *g *= 1.0 - y * y),
        }
    }
}

kernel! {
    fn scale<const FMA: bool>(slope: &[f32], grad: &mut [f32]) {
        for (g, s) in grad.iter_mut().zip(slope) {
            *g *= s;
        }
    }
}

#[inline(always)]
fn elu<const FMA: bool>(z: f32) -> f32 {
    // Near zero `exp(z) - 1` would cancel; the first terms of the series are exact there.
    let near = z + 0.5 * z * z + z * z * z / 6.0;
    let far = math::exp::<FMA>(if z < 0.0 { z } else { 0.0 }) - 1.0;
    if z >= 0.0 {
        z
    } else if z > -0.01 {
        near
    } else {
        far
    }
}

#[inline(always)]
fn softplus<const FMA: bool>(z: f32) -> f32 {
    let above = if z > 0.0 { z } else { 0.0 };
    above + math::ln_1p::<FMA>(math::exp::<FMA>(-z.abs()))
}

#[derive(Debug)]
pub(crate) struct Activate {
    pub(crate) x: Var,
    pub(crate) slope: Slope,
}

impl Tape {
    /// Applies an activation, and dropout if asked for, to each value.
    pub fn activate(&mut self, x: Var, epilogue: impl Into<Epilogue>) -> Var {
        let epilogue = epilogue.into().for_tape(self);
        let (rows, cols) = self.shape(x);
        let needs_grad = self.needs_grad(x);
        let mut out = self.buffer(rows * cols);
        let mut slope = epilogue.slope_buffer(self, rows * cols, needs_grad);
        let input = self.value(x).as_slice();
        let len = blocks::ELEMENTS;
        blocks::each_pair(rows * cols, (&mut out, len), (&mut slope, len), |i, out, slope| {
            out.copy_from_slice(&input[i * len..][..out.len()]);
            epilogue.finish(i, out, slope);
        });
        let op = Op::Activate(Activate { x, slope: epilogue.slope(slope) });
        self.push(Matrix::from_parts(rows, cols, out), needs_grad, op)
    }

    /// `max(x, 0)`.
    pub fn relu(&mut self, x: Var) -> Var {
        self.activate(x, Activation::Relu)
    }

    /// `x` above zero, `0.2 x` below.
    pub fn leaky_relu(&mut self, x: Var) -> Var {
        self.activate(x, Activation::LeakyRelu(0.2))
    }

    /// `x` above zero, `exp(x) - 1` below.
    pub fn elu(&mut self, x: Var) -> Var {
        self.activate(x, Activation::Elu)
    }

    /// `x` times the normal distribution function of `x`.
    pub fn gelu(&mut self, x: Var) -> Var {
        self.activate(x, Activation::Gelu)
    }

    /// `1 / (1 + exp(-x))`.
    pub fn sigmoid(&mut self, x: Var) -> Var {
        self.activate(x, Activation::Sigmoid)
    }

    /// The hyperbolic tangent.
    pub fn tanh(&mut self, x: Var) -> Var {
        self.activate(x, Activation::Tanh)
    }

    /// `ln(1 + exp(x))`.
    pub fn softplus(&mut self, x: Var) -> Var {
        self.activate(x, Activation::Softplus)
    }
}

impl Activate {
    pub(crate) fn backward(&self, back: &mut Backward<'_>, output: &Matrix, mut dy: Vec<f32>) {
        let len = blocks::ELEMENTS;
        blocks::each(&mut dy, len, |i, dy| self.slope.apply(i * len, output.as_slice(), dy));
        back.give(self.x, dy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck::{assert_gradients, away_from_zero};

    const ALL: [Activation; 8] = [
        Activation::None,
        Activation::Relu,
        Activation::LeakyRelu(0.2),
        Activation::Elu,
        Activation::Gelu,
        Activation::Sigmoid,
        Activation::Tanh,
        Activation::Softplus,
    ];

    #[test]
    fn gradients_of_activations_match_central_differences() {
        for activation in ALL {
            let x = away_from_zero(5, 7, 1); // [5, 7]
            assert_gradients(&[x], |tape, v| tape.activate(v[0], activation));
        }
    }

    #[test]
    fn values_are_those_of_the_definitions() {
        let x = Matrix::from_rows(&[[-2.0f32, -0.005, 0.0, 1.5]]);
        let definition = |activation, v: f64| match activation {
            Activation::None => v,
            Activation::Relu => v.max(0.0),
            Activation::LeakyRelu(a) => {
                if v < 0.0 {
                    v * f64::from(a)
                } else {
                    v
                }
            }
            Activation::Elu => {
                if v < 0.0 {
                    v.exp_m1()
                } else {
                    v
                }
            }
            Activation::Gelu => {
                v * match v {
                    -2.0 => 0.022_750_131_948,
                    1.5 => 0.933_192_798_731,
                    0.0 => 0.5,
                    _ => 0.498_005_297_193,
                }
            }
            Activation::Sigmoid => 1.0 / (1.0 + (-v).exp()),
            Activation::Tanh => v.tanh(),
            Activation::Softplus => v.exp().ln_1p(),
        };
        for activation in ALL {
            let mut tape = Tape::new();
            let input = tape.constant(x.clone());
            let y = tape.activate(input, activation);
            for (got, v) in tape.value(y).as_slice().iter().zip(x.as_slice()) {
                let want = definition(activation, f64::from(*v));
                assert!((f64::from(*got) - want).abs() < 3e-7, "{activation:?} {v}: {got} {want}");
            }
        }
    }

    #[test]
    fn saved_slopes_agree_with_slopes_from_the_output() {
        let x = away_from_zero(3, 40, 2);
        for activation in ALL.into_iter().filter(|a| a.slope_from_output()) {
            let mut values = x.as_slice().to_vec();
            let mut slope = vec![0.0; values.len()];
            activate_with_slope(activation, &mut values, &mut slope);
            let mut grad = vec![1.0; values.len()];
            scale_by_output(activation, &values, &mut grad);
            for (a, b) in slope.iter().zip(&grad) {
                assert!((a - b).abs() < 1e-6, "{activation:?}: {a} {b}");
            }
        }
    }
}
