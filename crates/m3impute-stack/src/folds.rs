//! The folds of the stack: observed cells that some models do not see.

use m3impute_core::{Run, heldout, sample_rows};
use m3impute_gnn::network::{Grid, select_rows};

/// The share of observed cells that each fold holds out.
const HELD_OUT: f64 = 0.1;

/// A table without some of its observed cells.
#[derive(Clone, Debug)]
pub struct Fold {
    /// The table: held-out cells are not observed in it, but their values are still there.
    pub grid: Grid,
    /// Which cells are held out, `[n, m]`; empty where none are.
    pub held: Vec<bool>,
}

impl Fold {
    /// All observed cells of a table.
    pub fn all(grid: Grid) -> Fold {
        Fold { grid, held: Vec::new() }
    }

    /// At most so many of its rows.
    pub fn sample(&self, most: usize, run: &Run, index: u64) -> Fold {
        let rows = sample_rows(self.grid.n, most, &mut run.rng("rows of column members", index));
        let held = if self.held.is_empty() { Vec::new() } else { select_rows(&self.held, &rows, self.grid.m) };
        Fold { grid: self.grid.select(&rows), held }
    }

    /// The held-out values of a column, row by row.
    pub fn truth(&self, column: usize) -> Vec<f32> {
        let Grid { n, m, x, .. } = &self.grid;
        (0..*n).map(|i| i * m + column).filter(|&at| self.held[at]).map(|at| x[at]).collect()
    }
}

/// A table in so many folds.
pub fn folds(grid: &Grid, count: usize, run: &Run) -> Vec<Fold> {
    let held = heldout::folds(&grid.observed, grid.m, count, HELD_OUT, &mut run.rng("held out", 0));
    let without = |held: Vec<bool>| {
        let observed = grid.observed.iter().zip(&held).map(|(o, h)| *o && !h).collect();
        Fold { grid: Grid { observed, ..grid.clone() }, held }
    };
    held.into_iter().map(without).collect()
}
