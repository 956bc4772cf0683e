//! Training: steps over parts of batches, and the error on held-out cells.

use super::{FittedMiwae, MiwaeParams, Seen};
use crate::chance::RowSampler;
use crate::held::Held;
use crate::inputs::{Rows, Samples};
use crate::mlp::Weights;
use m3impute_core::{Result, Run};
use m3impute_nn::{Adam, AdamParams, Matrix, Tape, alone};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

/// Samples of a row in an evaluation on held-out cells.
const EVALUATION_SAMPLES: usize = 50;
/// Parts of a batch, each learnt from by one thread.
const PARTS: usize = 4;

/// A model in training.
#[derive(Debug)]
pub(super) struct Training<'a> {
    settings: &'a MiwaeParams,
    rows: Rows,
    sampler: RowSampler,
    pub(super) model: FittedMiwae,
    adam: Adam,
    /// For each part of a batch.
    parts: [Tape; PARTS],
}

impl<'a> Training<'a> {
    pub(super) fn new(settings: &'a MiwaeParams, rows: Rows, model: FittedMiwae) -> Training<'a> {
        let adam = Adam::new(&model.params, AdamParams::default());
        Training { settings, sampler: RowSampler::new(rows.len()), rows, model, adam, parts: Default::default() }
    }

    /// Steps of an epoch: as many as there are whole batches, between which the rows are shared out.
    pub(super) fn batches(&self) -> usize {
        (self.rows.len() / self.settings.batch.min(self.rows.len())).max(1)
    }

    /// One epoch; returns the loss of its last step.
    pub(super) fn epoch(&mut self, rng: &mut ChaCha8Rng, check: impl Fn() -> Result<()>) -> Result<f32> {
        let (n, batches) = (self.rows.len(), self.batches());
        let order = self.sampler.shuffle(rng).to_vec();
        let mut loss = 0.0;
        for batch in 0..batches {
            check()?;
            loss = self.step(&order[batch * n / batches..(batch + 1) * n / batches], rng);
        }
        Ok(loss)
    }

    fn step(&mut self, rows: &[usize], rng: &mut ChaCha8Rng) -> f32 {
        let Self { settings, model, parts, .. } = self;
        let (b, k, z) = (rows.len(), settings.particles, model.shape.latent);
        let key = rng.next_u64();
        let (model, all) = (&mut *model, &self.rows);
        let one = |model: &FittedMiwae, tape: &mut Tape, part: usize, rows: &[usize]| {
            tape.reset();
            let mut rng = ChaCha8Rng::seed_from_u64(key);
            rng.set_stream(part as u64);
            let noise = Matrix::normal(rows.len() * k, z, 1.0, &mut rng); // [rows k, z]
            let seen = Seen::new(tape, all.select(rows));
            let (weights, _) = model.weights(tape, Weights::Trained, seen, k, noise); // [rows, k]
            let bound = tape.log_sum_exp(weights); // [rows, 1]
            let bound = tape.sum(bound);
            let loss = tape.scale(bound, -1.0 / b as f32);
            tape.backward_from(loss, &Matrix::full(1, 1, 1.0));
            tape.scalar(loss)
        };
        // A thread a part, each of rows that do not know of each other.
        let part = b.div_ceil(PARTS);
        let count = b.div_ceil(part);
        let shared: &FittedMiwae = model;
        let of_parts = parts[..count].par_iter_mut().zip(rows.par_chunks(part)).enumerate();
        let losses: Vec<f32> = of_parts.map(|(part, (tape, rows))| alone(|| one(shared, tape, part, rows))).collect();
        model.params.zero_grads();
        parts[..count].iter().for_each(|tape| tape.add_gradients_to(&mut model.params));
        self.adam.step(&mut model.params, settings.learning_rate as f32);
        losses.iter().sum()
    }

    /// The error of the weighted means on held-out cells; the same noise in every evaluation.
    pub(super) fn error(&self, held: &Held, run: &Run) -> f32 {
        let (w, k) = (held.rows.x.cols(), EVALUATION_SAMPLES);
        let mut predicted = Matrix::zeros(held.rows.len(), w); // [n, w]
        let chunk = self.model.rows_at_a_time(k);
        let one = |tape: &mut Tape, at: usize, predicted: &mut [f32]| {
            let rows: Vec<usize> = (at * chunk..at * chunk + predicted.len() / w).collect();
            let mut rng = run.rng("evaluation", at as u64);
            let noise = Matrix::normal(rows.len() * k, self.model.shape.latent, 1.0, &mut rng); // [rows k, z]
            let (weights, of) = self.model.samples(tape, held.rows.select(&rows), k, noise, |_, _| {});
            for (predicted, (of, weights)) in predicted.chunks_mut(w).zip(of.chunks(k * w).zip(weights.chunks(k))) {
                let samples = Samples { values: of, width: w, weights };
                predicted.iter_mut().enumerate().for_each(|(j, p)| *p = samples.mean(j));
            }
        };
        let chunks = predicted.as_mut_slice().par_chunks_mut(chunk * w).enumerate();
        chunks.for_each_init(Tape::inference, |tape, (at, predicted)| alone(|| one(tape, at, predicted)));
        held.error(&predicted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Inputs;
    use crate::miwae::{Fill, Shape};

    /// Two columns, the second the same as the first, with missing cells.
    fn rows() -> Rows {
        let x =
            Matrix::from_fn(120, 2, |i, j| if (i + 3 * j) % 5 == 0 { 0.0 } else { (i * 7 % 11) as f32 / 3.0 - 1.5 });
        Rows { x, observed: Matrix::from_fn(120, 2, |i, j| f32::from(u8::from((i + 3 * j) % 5 != 0))) }
    }

    fn training(settings: &MiwaeParams, run: &Run) -> FittedMiwae {
        let shape = Shape { width: 16, latent: 1, samples: 50, fill: Fill::Mean };
        let mut training = Training::new(settings, rows(), FittedMiwae::new(Inputs::of_numbers(2), shape, run));
        let mut losses = Vec::new();
        for epoch in 0..150 {
            losses.push(training.epoch(&mut run.rng("epoch", epoch), || Ok(())).unwrap());
        }
        let mean = |l: &[f32]| l.iter().sum::<f32>() / l.len() as f32;
        assert!(mean(&losses[140..]) < mean(&losses[..10]) - 1.0, "{losses:?}");
        training.model
    }

    #[test]
    fn training_raises_the_bound_and_samples_follow_what_is_observed() {
        let run = Run::new(1, 1).unwrap();
        let settings = MiwaeParams { batch: 32, learning_rate: 5e-3, ..MiwaeParams::default() };
        let model = training(&settings, &run);
        let seen = |x: f32| Rows { x: Matrix::from_rows(&[[x, 0.0]]), observed: Matrix::from_rows(&[[1.0, 0.0]]) };
        let second = |x: f32| {
            let noise = Matrix::normal(200, 1, 1.0, &mut run.rng("noise", 0));
            let (weights, values) = model.samples(&mut Tape::inference(), seen(x), 200, noise, |_, _| {});
            Samples { values: &values, width: 2, weights: &weights }.mean(1)
        };
        assert!(second(1.5) - second(-1.2) > 1.0, "{} {}", second(1.5), second(-1.2));
    }
}
