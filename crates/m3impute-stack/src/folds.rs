//! The folds of the stack: tables in which some observed cells are held out.

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

    /// A sample of at most `most` of its rows.
    pub fn sample(&self, most: usize, run: &Run, index: u64) -> Fold {
        let rows = sample_rows(self.grid.n, most, &mut run.rng("rows of column members", index));
        let held = if self.held.is_empty() { Vec::new() } else { select_rows(&self.held, &rows, self.grid.m) };
        Fold { grid: self.grid.select(&rows), held }
    }

    /// The held-out values of a column, row by row.
    pub fn truth(&self, column: usize) -> impl Iterator<Item = f32> + '_ {
        self.held_rows(column).map(move |i| self.grid.x[i * self.grid.m + column])
    }

    /// How many cells the row of each of them shows.
    pub fn shown(&self, column: usize) -> impl Iterator<Item = u32> + '_ {
        self.held_rows(column).map(|i| self.grid.shown(i))
    }

    fn held_rows(&self, column: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.grid.n).filter(move |i| self.held[i * self.grid.m + column])
    }
}

/// Folds of a table, each with [`HELD_OUT`] of its observed cells held out.
pub fn folds(grid: &Grid, count: usize, run: &Run) -> Vec<Fold> {
    let held = heldout::folds(&grid.observed, grid.m, count, HELD_OUT, &mut run.rng("held out", 0));
    let without = |held: Vec<bool>| {
        let observed = grid.observed.iter().zip(&held).map(|(o, h)| *o && !h).collect();
        Fold { grid: Grid { observed, ..grid.clone() }, held }
    };
    held.into_iter().map(without).collect()
}
