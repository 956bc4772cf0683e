//! Predicting: every member with weight predicts, and the predictions of a column are aggregated.

use crate::layers::{Step, fill_column};
use crate::members::{FittedRowMember, Predicted, Request};
use crate::model::{BASELINE, Candidate, Purpose, StackModel};
use crate::predictions::{aggregate, set_spreads};
use m3impute_core::{Result, Run};
use m3impute_gnn::network::Grid;
use m3impute_learners::Response;

/// The predictions of the candidates with weight for the missing cells of a column, in the order of candidates.
pub type Parts = Vec<(usize, Vec<f32>)>;

impl StackModel {
    /// Predicts the missing cells, each row independently: for each column the predictions of its cells, row by row.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn predict(&self, grid: &Grid, purpose: Purpose, run: &Run) -> Result<Vec<Vec<f32>>> {
        let of_columns = self.parts(grid, purpose, run, |_, _, _| {})?;
        let mut all = Vec::with_capacity(grid.m);
        for (f, parts) in of_columns.iter().enumerate() {
            let (response, ensemble) = (&self.columns.responses[f], self.ensemble(f, purpose));
            let weighted = |weights: &[f32]| -> Vec<(f32, &[f32])> {
                parts.iter().map(|(c, predicted)| (weights[*c], &predicted[..])).collect()
            };
            // The baseline alone has no weight where no member with weight has a prediction.
            if parts.iter().all(|(c, _)| ensemble.weights[*c] <= 0.0) {
                all.push(parts.first().map_or_else(Vec::new, |(_, predicted)| predicted.clone()));
                continue;
            }
            let mut predicted = aggregate(response, ensemble.aggregation, &weighted(&ensemble.weights));
            if *response == Response::Number {
                set_spreads(&mut predicted, &weighted(&ensemble.spread_weights));
            }
            all.push(predicted);
        }
        Ok(all)
    }

    /// Whether a missing cell is drawn from regressions: nothing else is missing in its row, and its column has one.
    pub fn is_drawn_from_regressions(&self, grid: &Grid, f: usize, row: u32) -> bool {
        grid.shown(row as usize) as usize + 1 == grid.m && self.drawn_from.as_ref().is_some_and(|of| of.has(f))
    }

    /// What the candidates with weight predict of the missing cells of each column; the baseline, where none of them has a
    /// prediction. `sees` is told which completed rows the members of each layer and column see.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn parts(
        &self,
        grid: &Grid,
        purpose: Purpose,
        run: &Run,
        mut sees: impl FnMut(usize, usize, &[f32]),
    ) -> Result<Vec<Parts>> {
        let m = grid.m;
        let candidates = self.candidates();
        let weight = |f: usize, c: usize| self.ensemble(f, purpose).weights[c];
        let missing: Vec<Vec<u32>> = (0..m).map(|f| grid.rows_where(f, |at| !grid.observed[at])).collect();
        let mut parts: Vec<Parts> = vec![Vec::new(); m];
        let mut z = grid.x.clone();
        let mut of_rows: Vec<Option<Predicted>> = Vec::with_capacity(self.rows.len());
        for (k, fitted) in self.rows.iter().enumerate() {
            let is_requested = |f: usize| self.has_to_predict(k, f, purpose, &candidates);
            let of =
                fitted.as_ref().map(|fitted| self.predict_rows(k, fitted.as_ref(), grid, is_requested, &of_rows, run));
            let of = of.transpose()?.flatten();
            for (c, candidate) in candidates.iter().enumerate() {
                let Candidate::Row { member, output } = *candidate else { continue };
                let Some(of) = of.as_ref().filter(|_| member == k) else { continue };
                for (f, predicted) in of[output].iter().enumerate() {
                    if self.models[f].initial == c {
                        fill_column(&mut z, f, &self.columns.responses[f], m, &missing[f], predicted);
                    }
                    if weight(f, c) > 0.0 {
                        parts[f].push((c, predicted.clone()));
                    }
                }
            }
            of_rows.push(of);
        }
        for (l, layer) in self.layers.iter().enumerate() {
            let place = |member: usize| candidates.iter().position(|c| *c == Candidate::Column { layer: l, member });
            let places: Vec<usize> = (0..self.members.columns.len()).filter_map(place).collect();
            let has_weight = |f: usize, which: usize| weight(f, places[which]) > 0.0;
            layer.predict(&mut z, &self.columns, &missing, has_weight, run, |f, step| match step {
                Step::Sees(z) => sees(l, f, z),
                Step::Predicts(which, predicted) => parts[f].push((places[which], predicted.to_vec())),
            })?;
        }
        for (f, parts) in parts.iter_mut().enumerate().filter(|(_, parts)| parts.is_empty()) {
            parts.push((BASELINE, self.baseline(f, grid, run)?));
        }
        Ok(parts)
    }

    /// Whether a row member has to predict a column: it has weight, layers build on it, or a member that needs it does.
    fn has_to_predict(&self, member: usize, f: usize, purpose: Purpose, candidates: &[Candidate]) -> bool {
        let is_own = |c: usize| matches!(candidates[c], Candidate::Row { member: k, .. } if k == member);
        let has_weight = (0..candidates.len()).any(|c| is_own(c) && self.ensemble(f, purpose).weights[c] > 0.0);
        let is_initial = !self.layers.is_empty() && is_own(self.models[f].initial);
        let name = self.members.rows[member].name();
        let fitted = self.members.rows.iter().zip(&self.rows).filter(|(_, fitted)| fitted.is_some());
        let is_needed = fitted.into_iter().any(|(other, _)| other.needs() == Some(name));
        has_weight || is_initial || (is_needed && self.columns.responses[f] != Response::Number)
    }

    fn predict_rows(
        &self,
        member: usize,
        fitted: &dyn FittedRowMember,
        grid: &Grid,
        is_requested: impl Fn(usize) -> bool,
        before: &[Option<Predicted>],
        run: &Run,
    ) -> Result<Option<Predicted>> {
        let requested: Vec<bool> = (0..grid.m).map(is_requested).collect();
        let cells: Vec<bool> = grid.observed.iter().enumerate().map(|(at, o)| !o && requested[at % grid.m]).collect();
        if !cells.contains(&true) {
            return Ok(None);
        }
        let needed = self.members.rows[member].needs().and_then(|name| self.members.row(name));
        let needed = needed.and_then(|k| before[k].as_ref());
        fitted.predict(&Request { grid, cells: &cells, needed }, run).map(Some)
    }

    fn baseline(&self, f: usize, grid: &Grid, run: &Run) -> Result<Vec<f32>> {
        let cells: Vec<bool> = grid.observed.iter().enumerate().map(|(at, o)| !o && at % grid.m == f).collect();
        let Some(fitted) = &self.rows[BASELINE] else { return Ok(Vec::new()) };
        let mut predicted = fitted.predict(&Request { grid, cells: &cells, needed: None }, run)?;
        Ok(predicted.swap_remove(0).swap_remove(f))
    }
}
