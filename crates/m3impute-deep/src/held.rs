//! Observed cells that are held out of training, to validate it.

use crate::inputs::{Inputs, Rows, select};
use m3impute_core::heldout::{HeldOut, hold_out};
use m3impute_core::{Encoded, Run};
use m3impute_nn::Matrix;

/// At most so many cells are held out: more would not make the estimate of the error better.
const MOST: usize = 3000;

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

/// What a training starts from: how a table is seen, its rows, and the held-out cells, which the rows lack; none where
/// `share` leaves nothing to validate on.
pub(crate) fn split(data: &Encoded, share: f64, run: &Run) -> (Inputs, Rows, Option<Held>) {
    let inputs = Inputs::of(data);
    let mut shown = data.clone();
    let HeldOut { cells, .. } = hold_out(&mut shown, share, MOST, "held out", run);
    let rows = inputs.read(&shown, 0..data.rows);
    let m = data.width();
    let mut places: Vec<usize> = cells.iter().map(|cell| cell / m).collect();
    places.dedup();
    let mut held = Matrix::zeros(places.len(), inputs.width()); // [n, w]
    let of_features: Vec<_> = inputs.cells().collect();
    for (place, of_row) in cells.chunk_by(|a, b| a / m == b / m).enumerate() {
        of_row.iter().for_each(|cell| held.row_mut(place)[of_features[cell % m].clone()].fill(1.0));
    }
    let truth = inputs.read(data, places.iter().copied()).x;
    let held = (!places.is_empty()).then(|| Held { rows: rows.select(&places), truth, held, places });
    (inputs, rows, held)
}

impl Held {
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
    use m3impute_core::encode::{Feature, Meaning};

    #[test]
    fn held_out_cells_are_hidden_and_scored() {
        let number = |column| Feature { column, meaning: Meaning::Number, centre: 0.0, scale: 1.0 };
        let x = (0..80).map(|cell| f64::from(cell / 2)).collect();
        let data = Encoded { rows: 40, features: [0, 1].map(number).into(), x, observed: vec![true; 80] };
        let run = Run::new(1, 1).unwrap();
        let (_, rows, held) = split(&data, 0.25, &run);
        let held = held.unwrap();
        let hidden = rows.observed.as_slice().iter().filter(|o| **o == 0.0).count();
        assert_eq!(hidden, 20);
        assert_eq!(held.error(&held.truth), 0.0);
        let off = Matrix::from_fn(held.truth.rows(), 2, |i, j| held.truth.get(i, j) + 0.5);
        assert_eq!(held.error(&off), 0.5);
        assert!(split(&data, 0.0, &run).2.is_none());
    }
}
