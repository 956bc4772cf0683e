//! Observed cells that are held out of training, to validate it.

use crate::chance::unit;
use crate::inputs::{Inputs, Rows, select};
use m3impute_core::{Encoded, Run};
use m3impute_nn::Matrix;
use rand_chacha::ChaCha8Rng;

/// At most so many cells are held out: more would not make the estimate of the error better.
const MOST: f32 = 3000.0;

/// Held-out cells.
#[derive(Debug)]
pub(crate) struct Held {
    /// The rows that have some, without them.
    pub(crate) rows: Rows,
    /// The same rows as they are. // [n, w]
    truth: Matrix,
    /// One where a cell is held out. // [n, w]
    held: Matrix,
    /// Where these rows stand in the table.
    places: Vec<usize>,
}

/// What a training starts from: how a table is seen, its rows, and the held-out cells, which the rows lack.
pub(crate) fn split(data: &Encoded, share: f64, run: &Run) -> (Inputs, Rows, Option<Held>) {
    let inputs = Inputs::of(data);
    let mut rows = inputs.read(data, 0..data.rows);
    let held = Held::out_of(&mut rows, &inputs, share as f32, &mut run.rng("held out", 0));
    (inputs, rows, held)
}

impl Held {
    /// Takes about this share of the observed cells out of `rows`; none where that leaves nothing to validate on.
    fn out_of(rows: &mut Rows, inputs: &Inputs, share: f32, rng: &mut ChaCha8Rng) -> Option<Held> {
        let seen: f32 = rows.observed.as_slice().iter().sum();
        let share = share.min(MOST / seen.max(1.0));
        let mut held = Matrix::zeros(rows.len(), inputs.width()); // [n, w]
        let truth = rows.x.clone();
        let mut touched = Vec::new();
        for i in 0..rows.len() {
            for cell in inputs.cells() {
                if rows.observed.row(i)[cell.start] == 1.0 && unit(rng) < share {
                    held.row_mut(i)[cell.clone()].fill(1.0);
                    rows.observed.row_mut(i)[cell.clone()].fill(0.0);
                    rows.x.row_mut(i)[cell].fill(0.0);
                    touched.push(i);
                }
            }
        }
        touched.dedup();
        let (rows, truth, held) = (rows.select(&touched), select(&truth, &touched), select(&held, &touched));
        (!touched.is_empty()).then_some(Held { rows, truth, held, places: touched })
    }

    /// [`Held::error`] of predictions for the whole table.
    pub(crate) fn error_in(&self, predicted: &Matrix) -> f32 {
        self.error(&select(predicted, &self.places))
    }

    /// The mean absolute error of predictions for [`Held::rows`], `[n, w]`.
    pub(crate) fn error(&self, predicted: &Matrix) -> f32 {
        let cells = predicted.as_slice().iter().zip(self.truth.as_slice()).zip(self.held.as_slice());
        let total: f64 = cells.map(|((s, t), h)| f64::from(h * (s - t).abs())).sum();
        let count: f64 = self.held.as_slice().iter().map(|h| f64::from(*h)).sum();
        (total / count) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn held_out_cells_are_hidden_and_scored() {
        let x = Matrix::from_fn(40, 2, |i, _| i as f32);
        let mut rows = Rows { x: x.clone(), observed: Matrix::full(40, 2, 1.0) };
        let inputs = Inputs::of_numbers(2);
        let held = Held::out_of(&mut rows, &inputs, 0.25, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
        let hidden = rows.observed.as_slice().iter().filter(|o| **o == 0.0).count();
        assert!((10..30).contains(&hidden), "{hidden}");
        assert_eq!(held.error(&held.truth), 0.0);
        let off = Matrix::from_fn(held.truth.rows(), 2, |i, j| held.truth.get(i, j) + 0.5);
        assert_eq!(held.error(&off), 0.5);
        assert!(Held::out_of(&mut rows, &inputs, 0.0, &mut ChaCha8Rng::seed_from_u64(1)).is_none());
    }
}
