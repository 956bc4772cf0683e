//! The folds of the stack: tables in which some observed cells are held out.

use crate::columns::Columns;
use m3impute_core::heldout::{self, Matrix};
use m3impute_core::{RandomStream, Run, sample_rows};
use m3impute_gnn::network::{Grid, select_rows};
use rand_chacha::rand_core::Rng;

/// The share of observed cells that each fold holds out.
const HELD_OUT: f64 = 0.1;
/// How many times each row is looked at with another part of its held-out cells shown again.
const TIMES_SHOWN_AGAIN: usize = 3;

/// A table without some of its observed cells.
#[derive(Clone, Debug)]
pub struct Fold {
    /// The table: held-out cells are not observed in it, but their values are still there.
    pub grid: Grid,
    /// Which cells are held out, `[n, m]`; empty where none are.
    pub held: Vec<bool>,
    /// Which row of the whole table each row is.
    pub rows: Vec<u32>,
}

impl Fold {
    /// All observed cells of a table.
    pub fn all(grid: Grid) -> Fold {
        Fold { rows: (0..grid.n as u32).collect(), grid, held: Vec::new() }
    }

    /// A sample of at most `most` of its rows.
    pub fn sample(&self, most: usize, run: &Run, index: u64) -> Fold {
        let rows = sample_rows(self.grid.n, most, &mut run.rng("rows of column members", index));
        let held = if self.held.is_empty() { Vec::new() } else { select_rows(&self.held, &rows, self.grid.m) };
        Fold { grid: self.grid.select(&rows), held, rows: self.rows_of(&rows) }
    }

    /// Its rows with several held-out cells, a few times, each time with some of these cells shown again, any number from
    /// one to all but one: what a cell is drawn from when others of its row have been drawn before it.
    pub fn partly_shown(&self, run: &Run, index: u64) -> Fold {
        let Grid { n, m, .. } = self.grid;
        let mut rng = RandomStream::new(run.rng("shown again", index).next_u64());
        let held_of = |i: &u32| self.held[*i as usize * m..(*i as usize + 1) * m].iter().filter(|held| **held).count();
        let rows: Vec<u32> = (0..n as u32).filter(|i| held_of(i) > 1).collect();
        let rows = rows.repeat(TIMES_SHOWN_AGAIN);
        let held = select_rows(&self.held, &rows, m);
        let mut fold = Fold { grid: self.grid.select(&rows), held, rows: self.rows_of(&rows) };
        for i in 0..rows.len() {
            let mut held: Vec<usize> = (i * m..(i + 1) * m).filter(|&at| fold.held[at]).collect();
            // The position of a cell in a random order of the row's missing cells is uniform.
            let shown = 1 + rng.below(held.len() - 1);
            rng.shuffle_front(&mut held, shown);
            held[..shown].iter().for_each(|&at| (fold.held[at], fold.grid.observed[at]) = (false, true));
        }
        fold
    }

    /// Which rows of the whole table some of its rows are.
    fn rows_of(&self, rows: &[u32]) -> Vec<u32> {
        rows.iter().map(|&i| self.rows[i as usize]).collect()
    }

    /// The held-out values of a column, row by row.
    pub fn truth(&self, column: usize) -> impl Iterator<Item = f32> + '_ {
        self.held_rows(column).map(move |i| self.grid.x[i * self.grid.m + column])
    }

    /// How many cells the row of each of them shows.
    pub fn shown(&self, column: usize) -> impl Iterator<Item = u32> + '_ {
        self.held_rows(column).map(|i| self.grid.shown(i))
    }

    /// The rows of a column's held-out cells; none where none are.
    pub fn held_rows(&self, column: usize) -> impl Iterator<Item = usize> + '_ {
        let n = if self.held.is_empty() { 0 } else { self.grid.n };
        (0..n).filter(move |i| self.held[i * self.grid.m + column])
    }
}

/// Folds of a table, each with [`HELD_OUT`] of its observed cells held out.
pub fn folds(grid: &Grid, columns: &Columns, count: usize, run: &Run) -> Vec<Fold> {
    let is_level: Vec<bool> = columns.frequent_levels().iter().map(|&levels| levels > 0).collect();
    let matrix = Matrix { x: &grid.x, observed: &grid.observed, is_level: &is_level };
    let held = heldout::folds(matrix, count, HELD_OUT, &mut run.rng("held out", 0));
    let without = |held: Vec<bool>| {
        let observed = grid.observed.iter().zip(&held).map(|(o, h)| *o && !h).collect();
        Fold { held, ..Fold::all(Grid { observed, ..grid.clone() }) }
    };
    held.into_iter().map(without).collect()
}
