//! Gradients against central differences.
//!
//! For layers built on this crate as much as for its own operations:
//!
//! ```
//! use m3impute_nn::gradcheck::{assert_gradients, random};
//!
//! let inputs = [random(4, 3, 1), random(2, 3, 2)]; // [n, in], [out, in]
//! assert_gradients(&inputs, |tape, v| {
//!     let y = tape.linear(v[0], v[1], None, m3impute_nn::Activation::Gelu);
//!     tape.l2_normalise(y)
//! });
//! ```

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::matrix::Matrix;
use crate::tape::{Tape, Var};

/// Where a gradient is furthest from the difference quotient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disagreement {
    /// Which of the inputs.
    pub input: usize,
    /// Its row.
    pub row: usize,
    /// Its column.
    pub col: usize,
    /// The gradient of the tape.
    pub gradient: f64,
    /// The difference quotient.
    pub difference: f64,
}

impl Disagreement {
    /// The distance, relative where the numbers are above one.
    pub fn error(&self) -> f64 {
        let size = self.gradient.abs().max(self.difference.abs()).max(1.0);
        let error = (self.gradient - self.difference).abs() / size;
        if error.is_nan() { f64::INFINITY } else { error }
    }
}

/// Finds the worst gradient of `f` over all values of all inputs.
///
/// The loss is a random weighted sum of the output, carried in `f64`, so that the rounding of the output is the only
/// error. The quotient takes four points: its own error falls with the fourth power of the step, which can then be
/// wide enough to leave the rounding of `f32` behind.
pub fn worst_gradient(inputs: &[Matrix], f: impl Fn(&mut Tape, &[Var]) -> Var) -> Disagreement {
    const STEP: f32 = 0.015_625;
    let run = |inputs: &[Matrix]| {
        let mut tape = Tape::new();
        let vars: Vec<Var> = inputs.iter().map(|x| tape.input(x.clone())).collect();
        let output = f(&mut tape, &vars);
        (tape, vars, output)
    };
    let (mut tape, vars, output) = run(inputs);
    let (rows, cols) = tape.shape(output);
    let seed = Matrix::uniform(rows, cols, 0.5, 1.5, &mut ChaCha8Rng::seed_from_u64(17));
    let seed = Matrix::from_fn(rows, cols, |i, j| if (i + j) % 3 == 0 { -seed.get(i, j) } else { seed.get(i, j) });
    tape.backward_from(output, &seed);
    let loss = |inputs: &[Matrix]| {
        let (tape, _, output) = run(inputs);
        let terms = tape.value(output).as_slice().iter().zip(seed.as_slice());
        terms.map(|(y, s)| f64::from(*y) * f64::from(*s)).sum::<f64>()
    };

    let mut worst = Disagreement { input: 0, row: 0, col: 0, gradient: 0.0, difference: 0.0 };
    let mut moved = inputs.to_vec();
    for (input, x) in inputs.iter().enumerate() {
        for i in 0..x.as_slice().len() {
            let mut at = |steps: f32| {
                moved[input].as_mut_slice()[i] = x.as_slice()[i] + steps * STEP;
                let loss = loss(&moved);
                moved[input].as_mut_slice()[i] = x.as_slice()[i];
                loss
            };
            let difference = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * f64::from(STEP));
            let gradient = tape.grad(vars[input]).map_or(0.0, |g| f64::from(g.as_slice()[i]));
            let here = Disagreement { input, row: i / x.cols(), col: i % x.cols(), gradient, difference };
            if here.error() > worst.error() {
                worst = here;
            }
        }
    }
    worst
}

/// Asserts that all gradients of `f` agree with differences to 3 in ten thousand.
///
/// # Panics
/// If one does not, with its place and both numbers.
#[track_caller]
pub fn assert_gradients(inputs: &[Matrix], f: impl Fn(&mut Tape, &[Var]) -> Var) {
    let worst = worst_gradient(inputs, f);
    assert!(worst.error() < 3e-4, "gradient and difference disagree by {:.1e}: {worst:?}", worst.error());
}

/// Values between -1.5 and 1.5 to check gradients at.
pub fn random(rows: usize, cols: usize, seed: u64) -> Matrix {
    Matrix::uniform(rows, cols, -1.5, 1.5, &mut ChaCha8Rng::seed_from_u64(seed))
}

/// Values like [`random`] that keep a distance from zero, where some functions have a corner.
pub fn away_from_zero(rows: usize, cols: usize, seed: u64) -> Matrix {
    let x = random(rows, cols, seed);
    Matrix::from_fn(rows, cols, |i, j| x.get(i, j) + 0.3f32.copysign(x.get(i, j)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_gradient_is_found() {
        // The copy cuts the tape: the gradient sees one factor only.
        let worst = worst_gradient(&[away_from_zero(2, 2, 1)], |tape, v| {
            let copy = tape.value(v[0]).clone();
            let copy = tape.constant(copy);
            tape.mul(v[0], copy)
        });
        assert!(worst.error() > 0.1);
    }
}
