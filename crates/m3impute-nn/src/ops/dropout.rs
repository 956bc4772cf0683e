//! Dropout: each value is set to zero with probability `rate`, the others divided by `1 - rate`.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::simd::kernel;
use crate::tape::{Tape, Var};

/// Which values are dropped: a rate, and the key of a ChaCha8 stream.
///
/// The mask depends on the key and the shape alone: block `b` of the values draws from stream `b` of the key.
/// Give each use in each step a key of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    rate: f32,
    key: u64,
}

impl Dropout {
    /// Drops with probability `rate`, to the nearest 1/256, but at least that if it is not zero.
    ///
    /// # Panics
    /// If the rate is not in `[0, 1)`.
    pub fn new(rate: f32, key: u64) -> Self {
        assert!((0.0..1.0).contains(&rate), "dropout rate: expected in [0, 1), got `{rate}`");
        Self { rate, key }
    }

    /// The probability.
    pub fn rate(&self) -> f32 {
        self.rate
    }

    /// Thins block number `block`, and its slopes if there are any, by the same mask.
    pub(crate) fn thin(&self, block: usize, values: &mut [f32], slope: &mut [f32]) {
        // Eight bits a value: the stream is the cost of this function, and no rate needs to be met more closely.
        let threshold = (self.rate * 256.0).round().clamp(1.0, 255.0);
        let scale = 256.0 / (256.0 - threshold);
        let mut rng = ChaCha8Rng::seed_from_u64(self.key);
        rng.set_stream(block as u64);
        let mut draws = [0; DRAWS];
        for (i, values) in values.chunks_mut(DRAWS).enumerate() {
            let draws = &mut draws[..values.len()];
            rng.fill_bytes(draws);
            let slope = if slope.is_empty() { &mut [] } else { &mut slope[i * DRAWS..][..values.len()] };
            thin(draws, threshold as u8, scale, values, slope);
        }
    }
}

const DRAWS: usize = 2048;

kernel! {
    fn thin<const FMA: bool>(draws: &[u8], threshold: u8, scale: f32, values: &mut [f32], slope: &mut [f32]) {
        let factor = |draw: u8| if draw < threshold { 0.0 } else { scale };
        if slope.is_empty() {
            values.iter_mut().zip(draws).for_each(|(v, d)| *v *= factor(*d));
        } else {
            for ((v, s), d) in values.iter_mut().zip(slope).zip(draws) {
                *v *= factor(*d);
                *s *= factor(*d);
            }
        }
    }
}

impl Tape {
    /// Drops values; see [`Dropout`]. On a tape for inference the values pass unchanged.
    pub fn dropout(&mut self, x: Var, dropout: Dropout) -> Var {
        self.activate(x, dropout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck::{assert_gradients, away_from_zero};
    use crate::{Activation, Matrix};

    #[test]
    fn gradient_of_dropout_matches_central_differences() {
        assert_gradients(&[away_from_zero(6, 9, 3)], |tape, v| tape.dropout(v[0], Dropout::new(0.4, 5)));
        assert_gradients(&[away_from_zero(6, 9, 3)], |tape, v| tape.activate(v[0], Activation::Tanh.dropout(0.4, 5)));
    }

    #[test]
    fn the_share_of_dropped_values_is_the_rate_and_the_mean_is_kept() {
        let mut tape = Tape::new();
        let x = tape.constant(Matrix::full(1000, 100, 1.0));
        let y = tape.dropout(x, Dropout::new(0.3, 11));
        let values = tape.value(y).as_slice();
        let dropped = values.iter().filter(|v| **v == 0.0).count() as f32 / values.len() as f32;
        let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / values.len() as f64;
        assert!((dropped - 0.3).abs() < 0.006, "{dropped}");
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn another_key_is_another_mask_and_inference_has_none() {
        let run = |tape: &mut Tape, key| {
            let x = tape.constant(Matrix::full(20, 20, 1.0));
            let y = tape.dropout(x, Dropout::new(0.5, key));
            tape.value(y).clone()
        };
        assert_eq!(run(&mut Tape::new(), 1), run(&mut Tape::new(), 1));
        assert_ne!(run(&mut Tape::new(), 1), run(&mut Tape::new(), 2));
        assert_eq!(run(&mut Tape::inference(), 1), Matrix::full(20, 20, 1.0));
    }
}
