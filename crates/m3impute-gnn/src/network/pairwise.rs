//! Pairwise linear predictors: each column regressed on each other one, and its best partners.

use super::batch::Grid;
use super::inputs::ColumnInput;
use m3impute_core::{Result, Run};
use m3impute_nn::Matrix;

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

    /// The regressions of a table.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn of(grid: &Grid, columns: &[ColumnInput], used: impl Fn(usize) -> bool, run: &Run) -> Result<Pairwise> {
        let m = grid.m;
        let k = (m - 1).min(Pairwise::MOST);
        let mut partners = vec![0; m * k];
        let (mut slope, mut shift) = (Matrix::zeros(m, k), Matrix::zeros(m, k));
        let mut logit = Matrix::full(m, k, -30.0);
        for f in 0..m {
            run.check()?;
            let mut fits: Vec<(u32, [f64; 3])> = (0..m)
                .filter(|&j| j != f)
                .map(|j| {
                    let both = columns[f].response.is_number() && columns[j].response.is_number();
                    let fit = if both { regression(grid, f, j, &used) } else { None };
                    (j as u32, fit.unwrap_or([0.0, 0.0, -30.0]))
                })
                .collect();
            fits.sort_by(|a, b| b.1[2].total_cmp(&a.1[2]).then(a.0.cmp(&b.0)));
            for (i, (j, [a, b, left])) in fits.into_iter().take(k).enumerate() {
                partners[f * k + i] = j;
                slope.row_mut(f)[i] = a as f32;
                shift.row_mut(f)[i] = b as f32;
                logit.row_mut(f)[i] = left as f32;
            }
        }
        Ok(Pairwise { partners, k, slope, shift, logit })
    }
}

/// The regression of column `f` on column `j`: slope, intercept, and minus the log of the residual variance.
fn regression(grid: &Grid, f: usize, j: usize, used: impl Fn(usize) -> bool) -> Option<[f64; 3]> {
    let m = grid.m;
    let pairs = || {
        (0..grid.n)
            .filter(|i| used(i * m + f) && used(i * m + j))
            .map(|i| (f64::from(grid.x[i * m + j]), f64::from(grid.x[i * m + f])))
    };
    let (mut count, mut sx, mut sy) = (0.0, 0.0, 0.0);
    for (x, y) in pairs() {
        count += 1.0;
        sx += x;
        sy += y;
    }
    if count < 3.0 {
        return None;
    }
    let (mx, my) = (sx / count, sy / count);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in pairs() {
        xx += (x - mx) * (x - mx);
        xy += (x - mx) * (y - my);
        yy += (y - my) * (y - my);
    }
    let slope = xy / (xx + 1e-8 * count);
    let left = (yy - slope * (2.0 * xy - slope * xx)).max(0.0) / count;
    Some([slope, my - slope * mx, -(left + 1e-6).ln()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_learners::Response;

    #[test]
    fn the_best_partner_comes_first_with_its_regression() {
        let n = 40;
        // The second column is half the first, the third is unlike both.
        let x: Vec<f32> =
            (0..n).flat_map(|i| [i as f32 / 40.0, i as f32 / 80.0 + 0.1, (i * 7 % 13) as f32 / 13.0]).collect();
        let grid = Grid { n, m: 3, observed: vec![true; x.len()], x };
        let columns: Vec<ColumnInput> = (0..3).map(|f| ColumnInput::of(&grid.values(f), &Response::Number)).collect();
        let pairwise = Pairwise::of(&grid, &columns, |_| true, &Run::new(0, 1).unwrap()).unwrap();
        assert_eq!((pairwise.k, pairwise.partners[0], pairwise.partners[2]), (2, 1, 0));
        assert!((pairwise.slope.get(0, 0) - 2.0).abs() < 1e-2 && (pairwise.shift.get(0, 0) + 0.2).abs() < 1e-2);
    }
}
