//! Pairwise linear predictors: each column regressed on each other one, and its best partners.

use super::batch::Grid;
use super::inputs::ColumnInput;
use m3impute_learners::linalg::{GoOn, cross};
use m3impute_nn::Matrix;
use rayon::prelude::*;
use std::ops::Range;

/// For each column its best partners, with the regression on each over the rows where both are observed.
///
/// Partners are the columns with the smallest residual variance, at most [`Pairwise::MOST`]. All matrices are `[m, k]`.
#[derive(Clone, Debug)]
pub struct Pairwise {
    /// The partners of each column.
    pub partners: Vec<u32>,
    /// How many each has.
    pub k: usize,
    /// The slope of each regression.
    pub slope: Matrix,
    /// Its intercept.
    pub shift: Matrix,
    /// Minus the log of its residual variance.
    pub logit: Matrix,
}

impl Pairwise {
    /// The most partners that a column has.
    pub const MOST: usize = 24;

    /// The lines of the observed cells of a table, or of some of its rows where it is large. Columns for which `go_on` left
    /// no time have partners without lines.
    pub fn of(grid: &Grid, columns: &[ColumnInput], go_on: GoOn<'_>) -> Pairwise {
        let m = grid.m;
        let k = (m - 1).min(Pairwise::MOST);
        let others = (0..m).flat_map(|f| (0..m as u32).filter(move |&j| j as usize != f).take(k));
        let (slope, shift) = (Matrix::zeros(m, k), Matrix::zeros(m, k));
        let mut all =
            Pairwise { partners: others.collect(), k, slope, shift, logit: Matrix::full(m, k, NO_LINE as f32) };
        let cells = Cells::of(grid, columns);
        for first in (0..m).step_by(BLOCK) {
            let block = first..(first + BLOCK).min(m);
            let Some(sums) = cells.sums(block.clone(), go_on) else { break };
            let lines: Vec<Vec<(u32, [f64; 3])>> =
                block.clone().into_par_iter().map(|f| cells.best_lines(&sums, f - first, f, k)).collect();
            for (f, lines) in block.zip(lines) {
                for (i, (j, [a, b, left])) in lines.into_iter().enumerate() {
                    all.partners[f * k + i] = j;
                    all.slope.row_mut(f)[i] = a as f32;
                    all.shift.row_mut(f)[i] = b as f32;
                    all.logit.row_mut(f)[i] = left as f32;
                }
            }
        }
        all
    }
}

/// Columns that are regressed on all others at a time.
const BLOCK: usize = 128;
/// Cells of the rows that lines are drawn through, about: with more, a line hardly moves.
const MOST_CELLS: usize = 8_000_000;
/// The logit of a pair without a line.
const NO_LINE: f64 = -30.0;

/// The observed numbers of some rows, each less the mean of its column, so that no sum loses digits.
struct Cells {
    m: usize,
    numbers: Vec<bool>, // [m]
    means: Vec<f64>,    // [m]
    x: Vec<f64>,        // [n, m], 0 where not observed
    squares: Vec<f64>,  // [n, m]
    observed: Vec<f64>, // [n, m], 0 or 1
}

/// Sums over the rows that have both columns of a pair, `[b, m]` each.
struct Sums {
    count: Vec<f64>,
    x: Vec<f64>,
    y: Vec<f64>,
    xx: Vec<f64>,
    xy: Vec<f64>,
    yy: Vec<f64>,
}

impl Cells {
    fn of(grid: &Grid, columns: &[ColumnInput]) -> Cells {
        let m = grid.m;
        let numbers: Vec<bool> = columns.iter().map(|c| c.response.is_number()).collect();
        let stride = (grid.x.len() / MOST_CELLS).max(1);
        let cells: Vec<usize> = (0..grid.n).step_by(stride).flat_map(|i| i * m..(i + 1) * m).collect();
        let is_used = |at: usize| grid.observed[at] && numbers[at % m];
        let (mut sums, mut counts) = (vec![0.0; m], vec![0.0; m]);
        for &at in cells.iter().filter(|&&at| is_used(at)) {
            sums[at % m] += f64::from(grid.x[at]);
            counts[at % m] += 1.0;
        }
        let means: Vec<f64> = sums.iter().zip(&counts).map(|(s, c): (&f64, &f64)| s / c.max(1.0)).collect();
        let centred = |&at: &usize| if is_used(at) { f64::from(grid.x[at]) - means[at % m] } else { 0.0 };
        let x: Vec<f64> = cells.iter().map(centred).collect();
        let squares = x.iter().map(|v| v * v).collect();
        let observed = cells.iter().map(|&at| f64::from(u8::from(is_used(at)))).collect();
        Cells { m, numbers, means, x, squares, observed }
    }

    /// The sums of a block of columns `y` with every column `x`; none where it was told to stop.
    fn sums(&self, block: Range<usize>, go_on: GoOn<'_>) -> Option<Sums> {
        let (m, b) = (self.m, block.len());
        let part =
            |of: &[f64]| -> Vec<f64> { of.chunks_exact(m).flat_map(|row| &row[block.clone()]).copied().collect() };
        let (y, squares, observed) = (part(&self.x), part(&self.squares), part(&self.observed));
        let of = |left: &[f64], right: &[f64]| cross(left, b, right, m, go_on);
        Some(Sums {
            count: of(&observed, &self.observed)?,
            x: of(&observed, &self.x)?,
            y: of(&y, &self.observed)?,
            xx: of(&observed, &self.squares)?,
            xy: of(&y, &self.x)?,
            yy: of(&squares, &self.observed)?,
        })
    }

    /// The `k` columns whose lines leave the least of column `f`, row `row` of the sums; equals in their order.
    fn best_lines(&self, sums: &Sums, row: usize, f: usize, k: usize) -> Vec<(u32, [f64; 3])> {
        let line = |j: usize| {
            let is_pair = self.numbers[f] && self.numbers[j];
            let line = if is_pair { self.line(sums, row * self.m + j, f, j) } else { None };
            (j as u32, line.unwrap_or([0.0, 0.0, NO_LINE]))
        };
        let mut lines: Vec<(u32, [f64; 3])> = (0..self.m).filter(|&j| j != f).map(line).collect();
        lines.sort_by(|a, b| b.1[2].total_cmp(&a.1[2]).then(a.0.cmp(&b.0)));
        lines.truncate(k);
        lines
    }

    /// Slope, shift, and minus the log of what is left of column `f` on column `j`.
    fn line(&self, sums: &Sums, at: usize, f: usize, j: usize) -> Option<[f64; 3]> {
        let count = sums.count[at];
        if count < 3.0 {
            return None;
        }
        let (mx, my) = (sums.x[at] / count, sums.y[at] / count);
        let xx = (sums.xx[at] - count * mx * mx).max(0.0);
        let yy = (sums.yy[at] - count * my * my).max(0.0);
        let xy = sums.xy[at] - count * mx * my;
        let slope = xy / (xx + 1e-8 * count);
        let left = (yy - slope * (2.0 * xy - slope * xx)).max(0.0) / count;
        Some([slope, self.means[f] + my - slope * (self.means[j] + mx), -(left + 1e-6).ln()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_learners::{Response, linalg::ALWAYS};

    #[test]
    fn the_best_partner_comes_first_with_its_regression() {
        let n = 40;
        // The second column is half the first, the third is unlike both.
        let x: Vec<f32> =
            (0..n).flat_map(|i| [i as f32 / 40.0, i as f32 / 80.0 + 0.1, (i * 7 % 13) as f32 / 13.0]).collect();
        let grid = Grid { n, m: 3, observed: vec![true; x.len()], x };
        let columns: Vec<ColumnInput> = (0..3).map(|f| ColumnInput::of(&grid.values(f), &Response::Number)).collect();
        let pairwise = Pairwise::of(&grid, &columns, ALWAYS);
        assert_eq!((pairwise.k, pairwise.partners[0], pairwise.partners[2]), (2, 1, 0));
        assert!((pairwise.slope.get(0, 0) - 2.0).abs() < 1e-2 && (pairwise.shift.get(0, 0) + 0.2).abs() < 1e-2);
    }

    #[test]
    fn without_time_partners_have_no_lines() {
        let grid = Grid { n: 4, m: 3, observed: vec![true; 12], x: (0..12).map(|v| v as f32 / 12.0).collect() };
        let columns: Vec<ColumnInput> = (0..3).map(|f| ColumnInput::of(&grid.values(f), &Response::Number)).collect();
        let pairwise = Pairwise::of(&grid, &columns, &|| false);
        assert_eq!(pairwise.partners, [1, 2, 0, 2, 0, 1]);
        assert!(pairwise.slope.as_slice().iter().all(|v| *v == 0.0));
    }

    #[test]
    fn a_line_goes_through_the_rows_that_have_both() {
        // The second column is one less the first, and missing in the last row; the third is missing in the first.
        let x = vec![0.0, 1.0, 0.3, 0.5, 0.5, 0.1, 0.25, 0.75, 0.9, 1.0, 0.0, 0.2, 0.8, 0.9, 0.4];
        let observed = (0..15).map(|at| at != 2 && at != 13).collect();
        let grid = Grid { n: 5, m: 3, x, observed };
        let columns: Vec<ColumnInput> = (0..3).map(|f| ColumnInput::of(&grid.values(f), &Response::Number)).collect();
        let pairwise = Pairwise::of(&grid, &columns, ALWAYS);
        assert_eq!((pairwise.partners[0], pairwise.partners[2]), (1, 0));
        assert!((pairwise.slope.get(0, 0) + 1.0).abs() < 1e-5 && (pairwise.shift.get(0, 0) - 1.0).abs() < 1e-5);
    }
}
