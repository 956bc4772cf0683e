//! Draws from factored regressions, in tables where nothing is surely better than them.
//!
//! An ensemble shrinks relations that it is not sure of, so that coefficients estimated from its draws are a little too
//! small. Regressions on the other columns and their products do not, and their coefficients can be drawn. So a joint model
//! of the columns of numbers is fitted beside the ensembles, predicts the same held-out cells, and draws instead of the
//! ensembles unless these make the held-out cells surely more likely, by their points or by their spreads.

use crate::calibrate::HeldOut;
use crate::factored::{CompletedTable, FactoredRegressions, order_of_factors};
use crate::layers::{CompletedFold, View};
use crate::model::Purpose;
use crate::predictions::gain_in_errors;
use crate::select::{MIN_CELLS, is_anything_learnt};
use crate::shape::frequent_values;
use crate::spread::log_spread;
use m3impute_core::Run;
use m3impute_learners::Response;

/// Tables with more columns have too many products, and no regressions.
const MOST_COLUMNS: usize = 12;
/// Rows that regressions are fitted to, at most: with more, an ensemble is better or all regressions are alike.
const MOST_ROWS: usize = 2000;
/// A column in which one value has more than this share has no density; whole numbers may have values of less.
const ATOM: f64 = 0.1;
/// How often the missing cells of a row are drawn once more, each given all others. The first draws come from the ensembles.
pub const SWEEPS: usize = 6;

/// The regressions of a table, and what those of the folds predict of held-out cells.
#[derive(Debug, Default)]
pub struct Regressions {
    whole: Option<FactoredRegressions>,
    /// Points and spreads in each view of the folds, of each column.
    predicted: Vec<[Vec<f32>; 2]>,
}

impl Regressions {
    /// Fits them to the completed folds, of which the last one is the whole table, and predicts held-out cells. There are
    /// none where a table has many columns, few rows, or no numbers but such as have many cells of one value.
    pub fn fit(completed: &[CompletedFold], responses: &[Response], run: &Run) -> Regressions {
        Regressions::of_folds(completed, responses, run).unwrap_or_default()
    }

    fn of_folds(completed: &[CompletedFold], responses: &[Response], run: &Run) -> Option<Regressions> {
        let m = responses.len();
        let (whole, folds) = completed.split_last()?;
        let grid = whole.grid();
        let is_modelled = |&f: &usize| responses[f] == Response::Number && !has_atom(&grid.values(f));
        let columns: Vec<usize> = (0..m).filter(is_modelled).collect();
        if columns.is_empty() || m > MOST_COLUMNS {
            return None;
        }
        let is_level: Vec<bool> = responses.iter().map(|r| !r.is_number()).collect();
        let sampled = |of: &CompletedFold| {
            let View { fold, plain } = &of.views[0];
            let every = fold.grid.n.div_ceil(MOST_ROWS).max(1);
            let rows = || (0..fold.grid.n).step_by(every).map(|i| i * m..(i + 1) * m);
            let x: Vec<f32> = rows().flat_map(|row| plain[row].iter().copied()).collect();
            let observed: Vec<bool> = rows().flat_map(|row| fold.grid.observed[row].iter().copied()).collect();
            (x, observed)
        };
        let (x, observed) = sampled(whole);
        let table = CompletedTable { x: &x, observed: &observed, is_level: &is_level };
        let order = order_of_factors(table, &columns, run)?;
        let fit = |of: &CompletedFold, index: usize| {
            let (x, observed) = sampled(of);
            let table = CompletedTable { x: &x, observed: &observed, is_level: &is_level };
            FactoredRegressions::fit(table, &order, &mut run.rng("augmentation", index as u64), run)
        };
        let mut predicted: Vec<[Vec<f32>; 2]> = vec![[Vec::new(), Vec::new()]; m];
        for (index, fold) in folds.iter().enumerate() {
            let model = fit(fold, index)?;
            let coefficients = model.mean();
            for (number, View { fold, plain }) in fold.views.iter().enumerate() {
                for (f, i) in columns.iter().flat_map(|&f| fold.held_rows(f).map(move |i| (f, i))) {
                    let density = model.density_of(&coefficients, &plain[i * m..(i + 1) * m], f)?;
                    let (point, spread) = density.moments();
                    predicted[f][number].extend([point as f32, spread as f32]);
                }
            }
        }
        Some(Regressions { whole: Some(fit(whole, folds.len())?), predicted })
    }

    /// By how many standard errors the predictions of an ensemble for this purpose are better in the held-out cells of a
    /// column; none where there are too few, or no regression, or nothing is drawn.
    pub fn gain_of_ensemble(&self, purpose: Purpose, f: usize, held: HeldOut) -> Option<f64> {
        let [as_missing, partly_shown] = self.predicted.get(f)?;
        let own = match purpose {
            Purpose::Fill => return None,
            Purpose::DrawFirst => as_missing,
            Purpose::DrawNext => partly_shown,
        };
        if own.len() != 2 * held.truth.len() || held.truth.len() < MIN_CELLS {
            return None;
        }
        Some(gain_in_errors(&likelihood_losses(own, held.truth), &likelihood_losses(held.predicted, held.truth)))
    }

    /// The regressions to draw from, given the gains of ensembles for first cells of a row and for those that follow: none if
    /// no first cells were compared or if ensembles are surely better for either, in all columns together by a standard error
    /// or significantly in one of them.
    pub fn chosen(self, first: &[f64], next: &[f64]) -> Option<FactoredRegressions> {
        let are_worse = |gains: &[f64]| {
            let together = gains.iter().sum::<f64>() / (gains.len().max(1) as f64).sqrt();
            together > 1.0 || is_anything_learnt(gains)
        };
        let is_chosen = !are_worse(first) && (next.is_empty() || !are_worse(next));
        self.whole.filter(|_| is_chosen && !first.is_empty())
    }
}

/// Whether many cells of a column have one value, as in one of many zeros: no density describes it.
fn has_atom(values: &[f32]) -> bool {
    let share = |value: f32| values.iter().filter(|v| **v == value).count() as f64 / values.len() as f64;
    frequent_values(values).first().is_some_and(|&value| share(value) > ATOM)
}

/// The negative logarithms of the likelihood (Laplace) of true values under points and spreads, with the best common factor
/// of all spreads: of the shape of residuals both have what suits them.
fn likelihood_losses(predicted: &[f32], truth: &[f32]) -> Vec<f64> {
    let cells = || predicted.chunks_exact(2).zip(truth);
    let size = |(p, t): (&[f32], &f32)| f64::from((t - p[0]).abs()) / f64::from(log_spread(p[1])).exp();
    let factor = (cells().map(size).sum::<f64>() / truth.len().max(1) as f64).max(f64::MIN_POSITIVE);
    cells().map(|(p, t)| f64::from(log_spread(p[1])) + factor.ln() + size((p, t)) / factor).collect()
}
