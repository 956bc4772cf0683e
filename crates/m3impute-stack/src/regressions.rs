//! Draws from Bayesian regressions, in tables where nothing is surely better than them.
//!
//! An ensemble shrinks relations that it is not sure of, so that coefficients estimated from its draws are a little too
//! small. A regression on the other columns and their products does not, and its coefficients can be drawn. So it is
//! fitted to every column of numbers beside the ensemble, predicts the same held-out cells, and draws instead of the
//! ensembles unless these make the held-out cells surely more likely, by their points or by their spreads.

use crate::calibrate::{Calibration, HeldOut};
use crate::layers::{CompletedFold, Order};
use crate::model::Purpose;
use crate::predictions::gain_in_errors;
use crate::select::{MIN_CELLS, is_anything_learnt, is_in};
use crate::shape::{Cell, frequent_values};
use crate::spread::log_spread;
use m3impute_core::Run;
use m3impute_gnn::network::Grid;
use m3impute_learners::Response;
use m3impute_learners::bayesian_regression::BayesianRegression;
use serde::{Deserialize, Serialize};

/// Tables with more columns have too many products, and no regressions.
const MOST_COLUMNS: usize = 12;
/// Rows that a regression is fitted to, at most: with more, an ensemble is better or all regressions are alike.
const MOST_ROWS: usize = 4000;
/// Residuals are those of rows in which nothing was completed, where there are so many.
const ENOUGH_ROWS: usize = 50;
/// How often the missing cells of a row are drawn once more, each given all others. The first draws come from the ensembles:
/// more sweeps would hand small errors of two closely related regressions back and forth until they are large ones.
const SWEEPS: usize = 1;

/// The regression from which a column is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrawnFrom {
    regression: BayesianRegression,
    /// The distribution of its residuals.
    calibration: Calibration,
}

/// A regression, and its points of the held-out cells of its column in each view of the folds.
#[derive(Debug)]
struct Fitted {
    drawn_from: DrawnFrom,
    points: [Vec<f32>; 2],
}

/// The regressions of the columns of numbers, `[m]`.
#[derive(Debug, Default)]
pub struct Regressions {
    of: Vec<Option<Fitted>>,
}

impl Regressions {
    /// Fits them to the completed folds, of which the last one is the whole table, and predicts held-out cells.
    pub fn fit(completed: &[CompletedFold], responses: &[Response], run: &Run) -> Regressions {
        let m = responses.len();
        let is_level: Vec<bool> = responses.iter().map(|r| !r.is_number()).collect();
        let of_column = |f: usize| {
            let (whole, folds) = completed.split_last()?;
            let mut points = [Vec::new(), Vec::new()];
            for fold in folds {
                let DrawnFrom { regression, .. } = fit_column(fold, f, &is_level, run)?;
                for (view, points) in fold.views.iter().zip(&mut points) {
                    let point = |i| regression.predict(regression.mean(), &view.plain[i * m..(i + 1) * m]) as f32;
                    points.extend(view.fold.held_rows(f).map(point));
                }
            }
            Some(Fitted { drawn_from: fit_column(whole, f, &is_level, run)?, points })
        };
        let is_possible = |f: usize| m <= MOST_COLUMNS && responses[f] == Response::Number;
        Regressions { of: (0..m).map(|f| if is_possible(f) { of_column(f) } else { None }).collect() }
    }

    /// By how many standard errors the predictions of an ensemble for this purpose are better in the held-out cells of a
    /// column; none where there are too few, or no regression, or nothing is drawn.
    pub fn gain_of_ensemble(&self, purpose: Purpose, f: usize, held: HeldOut) -> Option<f64> {
        let [as_missing, partly_shown] = &self.of.get(f)?.as_ref()?.points;
        let points = match purpose {
            Purpose::Fill => return None,
            Purpose::DrawFirst => as_missing,
            Purpose::DrawNext => partly_shown,
        };
        if points.len() != held.truth.len() || points.len() < MIN_CELLS {
            return None;
        }
        let own: Vec<f32> = points.iter().flat_map(|&point| [point, 1.0]).collect();
        Some(gain_in_errors(&likelihood_losses(&own, held.truth), &likelihood_losses(held.predicted, held.truth)))
    }

    /// The regressions to draw from, given the gains of ensembles for first cells of a row and for those that follow: all, or
    /// none if no first cells were compared or if ensembles are surely better for either, in all columns together by a standard
    /// error or significantly in one of them.
    pub fn chosen(self, first: &[f64], next: &[f64]) -> Vec<Option<DrawnFrom>> {
        let are_worse = |gains: &[f64]| {
            let together = gains.iter().sum::<f64>() / (gains.len().max(1) as f64).sqrt();
            together > 1.0 || is_anything_learnt(gains)
        };
        let is_chosen = !are_worse(first) && (next.is_empty() || !are_worse(next));
        self.of.into_iter().map(|fitted| fitted.filter(|_| is_chosen).map(|fitted| fitted.drawn_from)).collect()
    }
}

/// The negative logarithms of the likelihood (Laplace) of true values under points and spreads, with the best common factor
/// of all spreads: of the shape of residuals both have what suits them.
fn likelihood_losses(predicted: &[f32], truth: &[f32]) -> Vec<f64> {
    let cells = || predicted.chunks_exact(2).zip(truth);
    let size = |(p, t): (&[f32], &f32)| f64::from((t - p[0]).abs()) / f64::from(log_spread(p[1])).exp();
    let factor = (cells().map(size).sum::<f64>() / truth.len().max(1) as f64).max(f64::MIN_POSITIVE);
    cells().map(|(p, t)| f64::from(log_spread(p[1])) + factor.ln() + size((p, t)) / factor).collect()
}

/// The regression of column `f` of a completed fold.
fn fit_column(completed: &CompletedFold, f: usize, is_level: &[bool], run: &Run) -> Option<DrawnFrom> {
    let (grid, m) = (completed.grid(), is_level.len());
    let mut rows = grid.rows_where(f, |at| grid.observed[at]);
    rows.truncate(MOST_ROWS);
    let mut x = completed.rows_for(f, Order::Parallel).to_vec();
    rows.iter().for_each(|&i| x[i as usize * m + f] = grid.x[i as usize * m + f]);
    let is_whole = |i: &u32| grid.shown(*i as usize) as usize == m;
    let whole: Vec<u32> = rows.iter().copied().filter(is_whole).collect();
    let measured = if whole.len() < ENOUGH_ROWS { &rows } else { &whole };
    let (regression, residuals) =
        run.install(|| BayesianRegression::fit(&x, is_level, f, &rows, measured, &|| run.goes_on()))?;
    let cell = |(&i, residual): (&u32, f32)| {
        let truth = x[i as usize * m + f];
        let weight = 1.0 / measured.len() as f64;
        Cell { point: truth - residual, spread: 1.0, truth, weight, is_in_half: is_in(i, 0) }
    };
    let cells: Vec<Cell> = measured.iter().zip(residuals).map(cell).collect();
    Some(DrawnFrom { calibration: Calibration::of_regression(&cells, &frequent_values(&grid.values(f))), regression })
}

impl DrawnFrom {
    /// The predictions of a draw of this number for some rows of a table in which nothing else is missing.
    pub fn predict(&self, grid: &Grid, f: usize, rows: &[u32], number: u64, run: &Run) -> Vec<f32> {
        let index = number * grid.m as u64 + f as u64;
        let coefficients = self.regression.drawn(&mut run.rng("coefficients of a draw", index));
        let row = |i: u32| &grid.x[i as usize * grid.m..(i as usize + 1) * grid.m];
        rows.iter().flat_map(|&i| [self.regression.predict(&coefficients, row(i)) as f32, 1.0]).collect()
    }

    /// The distribution of its residuals.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Whether what came from a file makes sense, for a table of `m` columns.
    pub fn is_sound(&self, m: usize) -> bool {
        self.regression.is_sound(m) && self.calibration.is_sound(&Response::Number)
    }
}

/// How often a model with these regressions draws missing cells once more.
pub fn sweeps<'a>(mut of: impl Iterator<Item = &'a Option<DrawnFrom>>) -> usize {
    if of.any(Option::is_some) { SWEEPS } else { 0 }
}
