//! Random streams: batches of rows, and draws that depend on a row alone.

use crate::inputs::Rows;
use m3impute_core::{row_hash, shuffle_front};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Draws rows without replacement, anew for every batch or epoch.
#[derive(Debug)]
pub(crate) struct RowSampler(Vec<usize>);

impl RowSampler {
    pub(crate) fn new(rows: usize) -> RowSampler {
        RowSampler((0..rows).collect())
    }

    /// `count` different rows.
    pub(crate) fn draw(&mut self, count: usize, rng: &mut ChaCha8Rng) -> &[usize] {
        shuffle_front(&mut self.0, count, || rng.next_u32());
        &self.0[..count]
    }

    /// All rows.
    pub(crate) fn shuffle(&mut self, rng: &mut ChaCha8Rng) -> &[usize] {
        self.draw(self.0.len(), rng)
    }
}

/// A random stream for each row that depends on its observed values and the model's seed alone: so rows are filled
/// alike in any order and batch.
pub(crate) fn of_row(seed: u64, rows: &Rows, i: usize) -> ChaCha8Rng {
    let (x, observed) = (rows.x.row(i), rows.observed.row(i));
    let cells = x.iter().map(|value| u64::from(value.to_bits())).enumerate();
    ChaCha8Rng::seed_from_u64(row_hash(seed, cells.filter(|(j, _)| observed[*j] == 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_nn::Matrix;

    #[test]
    fn a_draw_has_no_row_twice() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut sampler = RowSampler::new(5);
        for count in [2, 5] {
            let mut drawn = sampler.draw(count, &mut rng).to_vec();
            drawn.sort_unstable();
            drawn.dedup();
            assert_eq!(drawn.len(), count);
        }
    }

    #[test]
    fn the_stream_of_a_row_does_not_depend_on_its_neighbours() {
        let observed = Matrix::from_rows(&[[1.0, 0.0], [1.0, 1.0]]);
        let rows = Rows { x: Matrix::from_rows(&[[0.5, 0.0], [0.5, 0.25]]), observed };
        let alone = rows.select(&[1]);
        assert_eq!(of_row(7, &rows, 1).next_u64(), of_row(7, &alone, 0).next_u64());
        assert_ne!(of_row(7, &rows, 0).next_u64(), of_row(7, &rows, 1).next_u64());
        assert_ne!(of_row(7, &rows, 0).next_u64(), of_row(8, &rows, 0).next_u64());
    }
}
