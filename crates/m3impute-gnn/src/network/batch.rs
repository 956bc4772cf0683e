//! The table as the network sees it, and the batch of its rows that one pass works on.

use super::inputs::ColumnInput;
use super::pairwise::Pairwise;
use m3impute_nn::{Index, Matrix};
use std::sync::Arc;

/// A table of numbers: `x` and `observed` are `[n, m]`, row by row. Numbers lie about [0, 1]; a level is its index among
/// the frequent levels, or their count for a rare one.
#[derive(Clone, Debug)]
pub struct Grid {
    /// How many rows.
    pub n: usize,
    /// How many columns.
    pub m: usize,
    /// The numbers; anything where not observed.
    pub x: Vec<f32>,
    /// Which are observed.
    pub observed: Vec<bool>,
}

impl Grid {
    /// The observed values of a column.
    pub fn values(&self, column: usize) -> Vec<f32> {
        (0..self.n).map(|i| i * self.m + column).filter(|&at| self.observed[at]).map(|at| self.x[at]).collect()
    }

    /// The rows whose cell in a column is selected.
    pub fn rows_where(&self, column: usize, is_selected: impl Fn(usize) -> bool) -> Vec<u32> {
        (0..self.n).filter(|i| is_selected(i * self.m + column)).map(|i| i as u32).collect()
    }

    /// How many cells a row shows.
    pub fn shown(&self, row: usize) -> u32 {
        self.observed[row * self.m..(row + 1) * self.m].iter().map(|o| u32::from(*o)).sum()
    }

    /// Some of the rows.
    pub fn select(&self, rows: &[u32]) -> Grid {
        let x = select_rows(&self.x, rows, self.m);
        Grid { n: rows.len(), m: self.m, x, observed: select_rows(&self.observed, rows, self.m) }
    }
}

/// Some rows of a matrix `[n, m]`.
pub fn select_rows<T: Copy>(of: &[T], rows: &[u32], m: usize) -> Vec<T> {
    rows.iter().flat_map(|&i| of[i as usize * m..(i as usize + 1) * m].iter().copied()).collect()
}

/// The shown cells and the target cells of some rows. Rows are counted within the batch.
///
/// Notation: `b` rows, `e` shown cells, `t` targets; both in the order of columns, so that each column is one piece.
#[derive(Debug)]
pub struct Batch {
    /// How the shown values enter, `[e, codes]`.
    pub codes: Matrix,
    /// The row of each shown cell, `[e]`.
    pub edge_row: Arc<Index>,
    /// Its column, `[e]`.
    pub edge_column: Arc<Index>,
    /// Which cells are shown, as 0 and 1, `[b, m]`.
    pub shown: Matrix,
    /// The row of each target, `[t]`.
    pub target_row: Arc<Index>,
    /// Its column, `[t]`.
    pub target_column: Arc<Index>,
    /// The values of each target's partners, 0 where not shown, `[t, k]`.
    pub partner_values: Matrix,
    /// Whether they are shown, `[t, k]`.
    pub partner_shown: Matrix,
}

impl Batch {
    /// The batch of some rows: `shown` and `is_target` are of cells `[row in the batch, column]`.
    pub fn new(
        grid: &Grid,
        rows: &[u32],
        columns: &[ColumnInput],
        pairwise: &Pairwise,
        shown: &[bool],
        is_target: impl Fn(usize) -> bool,
    ) -> Batch {
        let (m, b, k) = (grid.m, rows.len(), pairwise.k);
        let width = columns.iter().map(ColumnInput::code_width).max().unwrap_or(1);
        let e = shown.iter().filter(|s| **s).count();
        let mut codes = vec![0.0; e * width];
        let (mut edge_row, mut edge_column) = (Vec::with_capacity(e), Vec::with_capacity(e));
        let (mut target_row, mut target_column) = (Vec::new(), Vec::new());
        let (mut partner_values, mut partner_shown) = (Vec::new(), Vec::new());
        let mut free = codes.chunks_exact_mut(width);
        for (f, column) in columns.iter().enumerate() {
            for (i, &row) in rows.iter().enumerate() {
                let at = i * m + f;
                if shown[at] {
                    let code = free.next().expect("a code a shown cell");
                    column.encode(grid.x[row as usize * m + f], code);
                    edge_row.push(i as u32);
                    edge_column.push(f as u32);
                }
                if is_target(at) {
                    target_row.push(i as u32);
                    target_column.push(f as u32);
                    for &j in &pairwise.partners[f * k..(f + 1) * k] {
                        let seen = shown[i * m + j as usize];
                        partner_values.push(if seen { grid.x[row as usize * m + j as usize] } else { 0.0 });
                        partner_shown.push(f32::from(u8::from(seen)));
                    }
                }
            }
        }
        let t = target_row.len();
        Batch {
            codes: Matrix::from_vec(e, width, codes).expect("a code a shown cell"),
            edge_row: Index::new(edge_row, b),
            edge_column: Index::new(edge_column, m),
            shown: Matrix::from_fn(b, m, |i, j| f32::from(u8::from(shown[i * m + j]))),
            target_row: Index::new(target_row, b),
            target_column: Index::new(target_column, m),
            partner_values: Matrix::from_vec(t, k, partner_values).expect("k partners a target"),
            partner_shown: Matrix::from_vec(t, k, partner_shown).expect("k partners a target"),
        }
    }

    /// How many cells are to be predicted.
    pub fn targets(&self) -> usize {
        self.target_row.len()
    }
}
