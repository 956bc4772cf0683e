//! How likely rows are under independent distributions whose parameters a network gives.
//!
//! Numbers have Student's t distribution with location `l`, scale `s = softplus(.) + 0.001` and `v = softplus(.) + 3`
//! degrees of freedom; flags are one with probability `sigmoid(.)`. With `y = (x - l) / s`, the log density of a number
//! is `g(v / 2) - ln(pi v) / 2 - ln s - (v + 1) / 2 ln(1 + y^2 / v)`, where `g(a) = ln gamma(a + 1/2) - ln gamma(a)`.
//!
//! All slopes are computed with the value, where they share its exponentials and logarithms, and kept.

use crate::blocks;
use crate::math;
use crate::matrix::Matrix;
use crate::ops::Op;
use crate::pool::Pool;
use crate::simd::kernel;
use crate::tape::{Backward, Tape, Var};

/// The least scale and the fewest degrees of freedom: three have a variance.
const LEAST_SCALE: f32 = 0.001;
const LEAST_FREEDOM: f32 = 3.0;
/// `ln(pi) / 2`.
const HALF_LN_PI: f32 = 0.572_364_9;

#[derive(Debug)]
pub(crate) struct Likelihood {
    raw: Var,
    /// The gradient of each row's value, `[r, 3 q + p - q]`.
    slope: Vec<f32>,
}

impl Tape {
    /// The log density of the observed values of rows, `[r, 1]`.
    ///
    /// `x` and `observed` (one or zero) are `[b, p]`; the first `numbers = q` columns are numbers, the others flags. `raw`
    /// is `[r, 3 q + p - q]`: locations, then what scales and degrees of freedom are made of, then the logits of the
    /// flags. It has `r / b` rows for each row of `x`, one after the other: as many samples. No gradient goes to `x`.
    ///
    /// ```
    /// use m3impute_nn::{Matrix, Tape};
    ///
    /// let mut tape = Tape::new();
    /// let x = tape.constant(Matrix::from_rows(&[[1.0, 7.0]])); // two flags, the second not observed
    /// let observed = tape.constant(Matrix::from_rows(&[[1.0, 0.0]]));
    /// let raw = tape.input(Matrix::from_rows(&[[0.0, 0.0]]));
    /// let y = tape.log_likelihood(raw, x, observed, 0);
    /// assert!((tape.value(y).get(0, 0) - 0.5f32.ln()).abs() < 1e-6);
    /// ```
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn log_likelihood(&mut self, raw: Var, x: Var, observed: Var, numbers: usize) -> Var {
        let ((rows, width), (each, p)) = (self.shape(raw), self.shape(x));
        let samples = rows / each.max(1);
        assert!(numbers <= p, "numbers: expected at most `{p}`, got `{numbers}`");
        self.expect(raw, (samples * each, p + 2 * numbers), "parameters of a likelihood");
        self.expect(observed, (each, p), "what is observed");
        let needs_grad = self.needs_grad(raw) && self.is_recording();
        let mut out = self.buffer(rows);
        let mut slope = if needs_grad { self.buffer(rows * width) } else { Vec::new() };
        let (parameters, x) = (self.value(raw).as_slice(), self.value(x).as_slice());
        let observed = self.value(observed).as_slice();
        // Smaller blocks than those of plain arithmetic: seven buffers of this size are used at a time.
        let block = (blocks::rows(width) / 8).max(1);
        blocks::each_pair(rows * width, (&mut out, block), (&mut slope, block * width), |i, out, slope| {
            let at = Block { first: i * block, rows: out.len(), samples, p, numbers };
            at.evaluate(&parameters[i * block * width..], x, observed, out, slope);
        });
        let op = Op::Likelihood(Likelihood { raw, slope });
        self.push(Matrix::from_parts(rows, 1, out), needs_grad, op)
    }
}

impl Likelihood {
    pub(crate) fn backward(&self, back: &mut Backward<'_>, dy: Vec<f32>) {
        let width = back.value(self.raw).cols();
        let mut grad = back.pool.take(self.slope.len());
        let block = blocks::rows(width);
        blocks::each(&mut grad, block * width, |i, grad| {
            let slope = &self.slope[i * block * width..];
            for ((grad, slope), d) in grad.chunks_exact_mut(width).zip(slope.chunks_exact(width)).zip(&dy[i * block..])
            {
                grad.iter_mut().zip(slope).for_each(|(g, s)| *g = d * s);
            }
        });
        back.give(self.raw, grad);
        back.pool.give(dy);
    }

    pub(crate) fn recycle(self, pool: &mut Pool) {
        pool.give(self.slope);
    }
}

/// Some rows of parameters.
struct Block {
    first: usize,
    rows: usize,
    samples: usize,
    p: usize,
    numbers: usize,
}

impl Block {
    fn evaluate(&self, raw: &[f32], x: &[f32], observed: &[f32], out: &mut [f32], slope: &mut [f32]) {
        let &Block { first, rows, samples, p, numbers } = self;
        let (q, width) = (numbers, p + 2 * numbers);
        // Short rows would leave most lanes empty: everything of one sort is put side by side first.
        let mut of = vec![0.0; 5 * rows * q]; // x, observed, locations, scales, freedoms
        let mut value = vec![0.0; rows * q];
        if q > 0 {
            let (xs, rest) = of.split_at_mut(rows * q);
            let (seen, rest) = rest.split_at_mut(rows * q);
            let (location, rest) = rest.split_at_mut(rows * q);
            let (scale, freedom) = rest.split_at_mut(rows * q);
            for r in 0..rows {
                let from = (first + r) / samples * p;
                let (at, own) = (r * q..(r + 1) * q, &raw[r * width..]);
                xs[at.clone()].copy_from_slice(&x[from..from + q]);
                seen[at.clone()].copy_from_slice(&observed[from..from + q]);
                location[at.clone()].copy_from_slice(&own[..q]);
                scale[at.clone()].copy_from_slice(&own[q..2 * q]);
                freedom[at].copy_from_slice(&own[2 * q..3 * q]);
            }
            student(xs, seen, location, scale, freedom, &mut value);
            if !slope.is_empty() {
                for (r, slope) in slope.chunks_exact_mut(width).enumerate() {
                    let at = r * q..(r + 1) * q;
                    slope[..q].copy_from_slice(&location[at.clone()]);
                    slope[q..2 * q].copy_from_slice(&scale[at.clone()]);
                    slope[2 * q..3 * q].copy_from_slice(&freedom[at]);
                }
            }
        }
        for (r, out) in out.iter_mut().enumerate() {
            let from = (first + r) / samples * p;
            let own = &raw[r * width + 3 * q..(r + 1) * width];
            let slope = if slope.is_empty() { &mut [][..] } else { &mut slope[r * width + 3 * q..(r + 1) * width] };
            *out = value[r * q..(r + 1) * q].iter().sum::<f32>();
            *out += bernoulli(&x[from + q..from + p], &observed[from + q..from + p], own, slope);
        }
    }
}

kernel! {
    /// Writes the log densities, and the slopes over the parameters.
    fn student<const FMA: bool>(
        x: &[f32], observed: &[f32], location: &mut [f32], scale: &mut [f32], freedom: &mut [f32], value: &mut [f32],
    ) {
        let parameters = location.iter_mut().zip(scale).zip(freedom);
        for (((value, x), observed), ((location, scale), freedom)) in value.iter_mut().zip(x).zip(observed).zip(parameters) {
            let (s, ds) = softplus::<FMA>(*scale);
            let (v, dv) = softplus::<FMA>(*freedom);
            let (s, v) = (s + LEAST_SCALE, v + LEAST_FREEDOM);
            let (series, factor, dg) = gamma_ratio(0.5 * v);
            let y = (*x - *location) / s;
            let y2 = y * y;
            let tail = 0.5 * math::ln_1p::<FMA>(y2 / v);
            // Three logarithms in one: of the ratio of gammas, of the degrees of freedom, of the scale.
            let density = series + 0.5 * math::ln::<FMA>(factor / (v * s * s)) - HALF_LN_PI - (v + 1.0) * tail;
            let pull = (v + 1.0) / (v + y2);
            *value = *observed * density;
            *location = *observed * pull * y / s;
            *scale = *observed * ds * (pull * y2 - 1.0) / s;
            *freedom = *observed * dv * (0.5 * dg - 0.5 / v - tail + 0.5 * pull * y2 / v);
        }
    }
}

/// The log probability of flags.
fn bernoulli(x: &[f32], observed: &[f32], logits: &[f32], slope: &mut [f32]) -> f32 {
    kernel! {
        fn body<const FMA: bool>(x: &[f32], observed: &[f32], logits: &[f32], slope: &mut [f32]) -> f32 {
            let mut total = 0.0;
            for (j, ((x, o), z)) in x.iter().zip(observed).zip(logits).enumerate() {
                let (one, share) = softplus::<FMA>(*z);
                total += o * (x * z - one);
                if let Some(slope) = slope.get_mut(j) {
                    *slope = o * (x - share);
                }
            }
            total
        }
    }
    if x.is_empty() { 0.0 } else { body(x, observed, logits, slope) }
}

/// `ln(1 + exp(z))` and its slope.
#[inline(always)]
fn softplus<const FMA: bool>(z: f32) -> (f32, f32) {
    let e = math::exp::<FMA>(-z.abs());
    let above = if z > 0.0 { z } else { 0.0 };
    let slope = if z > 0.0 { 1.0 } else { e } / (1.0 + e);
    (above + math::ln_1p::<FMA>(e), slope)
}

/// `g(a) = ln gamma(a + 1/2) - ln gamma(a)` for `a >= 1.5` as `series + ln(factor) / 2`, and its slope.
///
/// Two steps of the recurrence, then the series of `g` for large `a`, which is good to 2e-8 from 3.5 on.
#[inline(always)]
fn gamma_ratio(a: f32) -> (f32, f32, f32) {
    let b = a + 2.0;
    let (r, r2) = (1.0 / b, 1.0 / (b * b));
    let series = r * (-0.125 + r2 * (1.0 / 192.0 + r2 * (-1.0 / 640.0 + r2 * (17.0 / 14336.0))));
    let slope = r * (0.5 + r * (0.125 + r2 * (-1.0 / 64.0 + r2 * (1.0 / 128.0 + r2 * (-17.0 / 2048.0)))));
    let (one, two) = (a / (a + 0.5), (a + 1.0) / (a + 1.5));
    let back = 1.0 / a - 1.0 / (a + 0.5) + 1.0 / (a + 1.0) - 1.0 / (a + 1.5);
    (series, b * (one * two) * (one * two), slope + back)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck::{assert_gradients, random};

    #[test]
    fn gradients_of_numbers_and_flags_match_central_differences() {
        let x = Matrix::from_fn(3, 5, |i, j| if j < 3 { 0.4 * i as f32 - 0.3 * j as f32 } else { (i % 2) as f32 });
        let observed = Matrix::from_fn(3, 5, |i, j| f32::from((i + 2 * j) % 4 != 0));
        for samples in [1, 2] {
            assert_gradients(&[random(3 * samples, 11, 1)], |tape, v| {
                let (x, observed) = (tape.constant(x.clone()), tape.constant(observed.clone()));
                tape.log_likelihood(v[0], x, observed, 3)
            });
        }
    }

    #[test]
    fn densities_are_those_of_students_distribution() {
        // Degrees of freedom so large that it is the normal distribution, and the four of a table: at 0 its density is 3/8.
        let softplus_inverse = |y: f32| y.exp_m1().ln();
        for (freedom, expected) in [(1e6, (2.0 * std::f32::consts::PI).powf(-0.5)), (softplus_inverse(1.0), 0.375)] {
            let mut tape = Tape::new();
            let (x, observed) = (tape.constant(Matrix::full(1, 1, 2.0)), tape.constant(Matrix::full(1, 1, 1.0)));
            let raw = tape.constant(Matrix::from_rows(&[[2.0, softplus_inverse(0.999), freedom]]));
            let y = tape.log_likelihood(raw, x, observed, 1);
            assert!((tape.value(y).get(0, 0) - expected.ln()).abs() < 3e-6, "{freedom}");
        }
    }

    #[test]
    fn the_ratio_of_gammas_is_that_of_tables() {
        // gamma(2) / gamma(3/2) = 2 / sqrt(pi), gamma(5/2) / gamma(2) = 3 sqrt(pi) / 4, and 100 from Stirling's series.
        let root = std::f64::consts::PI.sqrt();
        let large = 10.0 * (1.0 - 1.0 / 800.0 + 1.0 / 1_280_000.0_f64);
        for (a, expected) in [(1.5, 2.0 / root), (2.0, 0.75 * root), (100.0, large)] {
            let (series, factor, _) = gamma_ratio(a);
            let got = f64::from(series) + 0.5 * f64::from(factor).ln();
            assert!((got - expected.ln()).abs() < 3e-7, "{a}: {got} {}", expected.ln());
        }
    }
}
