//! Fitting, from a table to a model: row members on each fold, layers of column members on completed folds, then selection
//! and calibration on out-of-fold predictions.

use crate::budget::Budget;
use crate::calibrate::{Calibration, HeldOut, Pooled, ShownScale};
use crate::columns::Columns;
use crate::explain::nearness_forest;
use crate::factored::FactoredRegressions;
use crate::folds::{Fold, folds};
use crate::layers::{CompletedFold, Layer, OfColumn, Order, View, fill_column, fit_column, groups_of, without_group};
use crate::members::{Context, FittedRowMember, Members, Predicted, Refit, Request};
use crate::model::{
    BASELINE, ByPurpose, Candidate, ColumnModel, Ensemble, Purpose, StackModel, Validation, candidates,
};
use crate::predictions::{OutOfFold, gain_in_errors, is_right, loss, mean_and_error, set_spreads};
use crate::regressions::Regressions;
use crate::select::{Selection, select};
use crate::spread::spread_weights;
use m3impute_core::{HeldOutCell, Pattern, Result, Run};
use m3impute_gnn::network::Grid;
use m3impute_learners::Response;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The share of the remaining time that a member which builds on another may take.
const DEPENDENT_SHARE: f64 = 0.1;
/// The share of the time remaining after the row members that completing the folds may take.
const COMPLETING_SHARE: f64 = 0.5;
/// The share of the time remaining after that which is reserved for predicting the missing cells.
const PREDICTING_SHARE: f64 = 0.25;

/// With fewer cells that were held out with others of their row, a column has no ensemble of its own to draw it next.
const MIN_NEXT_CELLS: usize = 24;
/// So many held-out cells of a column are kept for reports.
const REPORTED_CELLS: usize = 500;

/// A row member fitted to each validation fold, and to all observed cells.
#[derive(Debug, Default)]
struct FittedRows {
    folds: Vec<Option<Box<dyn FittedRowMember>>>,
    all: Option<Box<dyn FittedRowMember>>,
    /// The predictions of the member that it needs, for each fold.
    needed: Vec<Predicted>,
}

impl FittedRows {
    /// The model of a fold, or of all cells.
    fn of(&self, fold: Option<usize>) -> Option<&dyn FittedRowMember> {
        let of_fold = fold.and_then(|k| self.folds.get(k)).map(Option::as_deref);
        of_fold.unwrap_or(self.all.as_deref())
    }
}

/// What a model is made of, but for its layers, and notes.
struct Finished {
    rows: Vec<Option<Box<dyn FittedRowMember>>>,
    members: Members,
    models: Vec<ColumnModel>,
    scale: ByPurpose<ShownScale>,
    drawn_from: Option<FactoredRegressions>,
    notes: Vec<String>,
}

/// The ensembles of the columns for one purpose, and what held-out cells say about them.
struct Calibrated {
    ensembles: Vec<Ensemble>,
    validations: Vec<Validation>,
    scale: ShownScale,
    /// By how many standard errors they are better than regressions, where there are some.
    gains: Vec<f64>,
}

/// The out-of-fold predictions of each column, `[m]`.
struct HeldOutCells {
    /// Of cells that are held out as cells are missing.
    as_missing: Vec<OutOfFold>,
    /// Of those of which others in their row are shown again.
    partly_shown: Vec<OutOfFold>,
}

impl HeldOutCells {
    /// Those on which the ensemble of a purpose is chosen.
    fn of(&self, purpose: Purpose) -> &[OutOfFold] {
        match purpose {
            Purpose::Fill | Purpose::DrawFirst => &self.as_missing,
            Purpose::DrawNext => &self.partly_shown,
        }
    }
}

/// The work on one table.
struct Fitting<'a> {
    grid: &'a Grid,
    members: Members,
    context: Context<'a>,
    /// All folds.
    folds: Vec<Fold>,
    /// Those on which all members are validated, perhaps with fewer rows.
    tried: Vec<Fold>,
    /// Their rows as they are when some of their cells have been drawn.
    partly_shown: Vec<Fold>,
    /// The row members so far.
    rows: Vec<FittedRows>,
    /// The out-of-fold predictions of each column, `[m]`.
    cells: HeldOutCells,
    /// The regressions that columns may be drawn from.
    regressions: Regressions,
    notes: Vec<String>,
}

/// Fits a stack of these members to a table.
///
/// # Errors
/// When the run is cancelled, or a loss is not finite.
pub fn fit(
    grid: &Grid,
    columns: Columns,
    members: Members,
    budget: Budget,
    run: &Run,
) -> Result<(StackModel, Vec<String>)> {
    let context = Context { columns: &columns, budget: &budget, run };
    let observed = |i: usize| grid.observed[i * grid.m..(i + 1) * grid.m].iter().filter(|o| **o).count();
    let is_trainable = (0..grid.n).any(|i| observed(i) > 1);
    let folds = if is_trainable { folds(grid, &columns, budget.folds, run) } else { Vec::new() };
    run.check()?;
    let tried: Vec<Fold> = (folds.iter().enumerate().take(budget.tried_folds))
        .map(|(k, f)| f.sample(budget.fold_rows, run, k as u64))
        .collect();
    let partly_shown: Vec<Fold> = tried.iter().enumerate().map(|(k, f)| f.partly_shown(run, k as u64)).collect();
    let of_column = |folds: &[Fold], f: usize| OutOfFold {
        truth: folds.iter().flat_map(|fold| fold.truth(f)).collect(),
        shown: folds.iter().flat_map(|fold| fold.shown(f)).collect(),
        rows: folds.iter().flat_map(|fold| fold.held_rows(f).map(|i| fold.rows[i])).collect(),
        predictions: Vec::new(),
    };
    let of_columns = |folds: &[Fold]| (0..grid.m).map(|f| of_column(folds, f)).collect();
    let cells = HeldOutCells { as_missing: of_columns(&tried), partly_shown: of_columns(&partly_shown) };
    let (rows, regressions, notes) = (Vec::new(), Regressions::default(), Vec::new());
    let mut fitting = Fitting { grid, members, context, folds, tried, partly_shown, rows, cells, regressions, notes };
    for member in 0..fitting.members.rows.len() {
        run.check()?;
        let fitted = if is_trainable || member == BASELINE { fitting.fit_row_member(member)? } else { None };
        fitting.add_candidates(member, fitted)?;
    }
    if !is_trainable {
        fitting.notes.push("no row has two observed values: every missing cell gets its column's baseline".to_owned());
    }
    let initial = fitting.initial();
    let mut layers = Vec::new();
    if is_trainable && grid.m > 1 && budget.layers + budget.sweeps > 0 && !fitting.members.columns.is_empty() {
        layers = fitting.fit_layers(&initial)?;
    }
    let Finished { rows, members, models, scale, drawn_from, notes } = fitting.finish(initial, &mut layers)?;
    Ok((StackModel { columns, members, rows, layers, models, scale, drawn_from, donors: None }, notes))
}

impl Fitting<'_> {
    /// Fits a row member to the folds and to all cells; one that needs another is fitted to all cells once it has weight.
    fn fit_row_member(&mut self, k: usize) -> Result<Option<FittedRows>> {
        let (member, run) = (self.members.rows[k], self.context.run);
        let is_late = member.refit() == Refit::All && run.is_spent();
        if is_late || !member.is_possible(self.grid.n, self.context) {
            return Ok(None);
        }
        if let Some(needed) = member.needs() {
            let Some(needed) = self.predictions_of(needed)? else { return Ok(None) };
            let folds = member.fit(&self.tried.iter().collect::<Vec<_>>(), &needed, self.context)?.models;
            return Ok(Some(FittedRows { folds, all: None, needed }));
        }
        Ok(Some(match member.refit() {
            Refit::Once => {
                let all = Fold::all(self.grid.clone());
                let mut fitted = member.fit(&[&all], &[], self.context)?;
                FittedRows { all: fitted.models.pop().flatten(), ..FittedRows::default() }
            }
            Refit::Bagged => {
                let mut fitted = member.fit(&self.folds.iter().collect::<Vec<_>>(), &[], self.context)?;
                self.notes.append(&mut fitted.notes);
                fitted.models.truncate(self.tried.len());
                FittedRows { folds: fitted.models, all: fitted.bagged, needed: Vec::new() }
            }
            Refit::All => {
                let all = Fold::all(self.grid.clone());
                let folds: Vec<&Fold> = self.tried.iter().chain([&all]).collect();
                let mut folds = member.fit(&folds, &[], self.context)?.models;
                let all = folds.pop().flatten();
                FittedRows { folds, all, needed: Vec::new() }
            }
        }))
    }

    /// The predictions of a member for the missing cells of columns with classes, in each fold; none if time is short.
    fn predictions_of(&self, name: &str) -> Result<Option<Vec<Predicted>>> {
        let run = self.context.run;
        let kept = run.time_left().map(|left| left.mul_f64(1.0 - DEPENDENT_SHARE));
        let Some(member) = self.members.row(name) else { return Ok(None) };
        let mut all = Vec::with_capacity(self.tried.len());
        for (k, fold) in self.tried.iter().enumerate() {
            let Some(fitted) = self.rows[member].of(Some(k)).filter(|_| !run.is_down_to(kept)) else {
                return Ok(None);
            };
            all.push(self.predict_classes(fitted, &fold.grid)?);
        }
        Ok(Some(all))
    }

    fn predict_classes(&self, fitted: &dyn FittedRowMember, grid: &Grid) -> Result<Predicted> {
        let has_classes = |at: usize| self.context.columns.responses[at % grid.m] != Response::Number;
        let cells: Vec<bool> = (0..grid.observed.len()).map(|at| !grid.observed[at] && has_classes(at)).collect();
        fitted.predict(&Request { grid, cells: &cells, needed: None }, self.context.run)
    }

    /// Adds the out-of-fold predictions of a row member; none where it was not fitted.
    fn add_candidates(&mut self, k: usize, fitted: Option<FittedRows>) -> Result<()> {
        let (member, m) = (self.members.rows[k], self.grid.m);
        let first = self.cells.as_missing[0].predictions.len();
        let outputs = member.outputs();
        self.resize_predictions(first + outputs);
        let fitted = fitted.unwrap_or_default();
        let needed = member.needs().and_then(|name| self.members.row(name));
        for which in 0..self.tried.len() {
            let Some(model) = fitted.of(Some(which)) else { continue };
            let partly = &self.partly_shown[which];
            let other = needed.and_then(|k| self.rows[k].of(Some(which)));
            let needed = other.map(|other| self.predict_classes(other, &partly.grid)).transpose()?;
            let requests = [(&self.tried[which], fitted.needed.get(which)), (partly, needed.as_ref())];
            for ((fold, needed), cells) in
                requests.into_iter().zip([&mut self.cells.as_missing, &mut self.cells.partly_shown])
            {
                let request = Request { grid: &fold.grid, cells: &fold.held, needed };
                for (output, of_columns) in model.predict(&request, self.context.run)?.into_iter().enumerate() {
                    for (cells, predicted) in cells.iter_mut().zip(of_columns) {
                        cells.predictions[first + output].extend(predicted);
                    }
                }
            }
        }
        if let Some(needed) = member.needs() {
            let of_needed = |c: &Candidate| matches!(c, Candidate::Row { member, .. } if self.members.rows[*member].name() == needed);
            let other = candidates(&self.members, 0).iter().position(of_needed);
            for (f, c) in (0..m).flat_map(|f| (first..first + outputs).map(move |c| (f, c))) {
                let (cells, response) = (&self.cells.as_missing[f], &self.context.columns.responses[f]);
                let losses = |c: usize| cells.measured(response, &cells.predictions[c], loss);
                // It is no candidate unless it beats the member it builds on by a standard error.
                if other.is_none_or(|other| gain_in_errors(&losses(other), &losses(c)) <= 1.0) {
                    self.cells.as_missing[f].predictions[c].clear();
                    self.cells.partly_shown[f].predictions[c].clear();
                }
            }
        }
        self.rows.push(fitted);
        Ok(())
    }

    /// Makes room for the predictions of so many candidates, or forgets those of later ones.
    fn resize_predictions(&mut self, candidates: usize) {
        let all = self.cells.as_missing.iter_mut().chain(&mut self.cells.partly_shown);
        all.for_each(|cells| cells.predictions.resize(candidates, Vec::new()));
    }

    /// The candidate for the initial imputation of each column: the one with the smallest loss.
    fn initial(&self) -> Vec<usize> {
        let all = candidates(&self.members, 0);
        let factor = |c: usize| match all[c] {
            Candidate::Row { member, .. } => self.members.rows[member].initial(),
            Candidate::Column { .. } => None,
        };
        let is_fitted = |c: usize| matches!(all[c], Candidate::Row { member, .. } if self.rows[member].all.is_some());
        let able: Vec<(usize, f64)> =
            (0..all.len()).filter(|&c| is_fitted(c)).filter_map(|c| Some((c, factor(c)?))).collect();
        let of_column = |(cells, response): (&OutOfFold, &Response)| {
            let loss =
                |&(c, factor): &(usize, f64)| cells.loss(response, c).map_or(f64::INFINITY, |loss| factor * loss);
            let best = able.iter().min_by(|a, b| loss(a).total_cmp(&loss(b))).filter(|best| loss(best).is_finite());
            best.or(able.first()).map_or(BASELINE, |best| best.0)
        };
        self.cells.as_missing.iter().zip(&self.context.columns.responses).map(of_column).collect()
    }

    /// All missing cells of a table filled by the initial imputation, by the models of a fold or of all cells.
    fn complete(&self, initial: &[usize], fold: Option<usize>, grid: &Grid) -> Result<Vec<f32>> {
        let (m, run, responses) = (grid.m, self.context.run, &self.context.columns.responses);
        let all = candidates(&self.members, 0);
        let source = |f: usize| match all[initial[f]] {
            Candidate::Row { member, output } => (member, output),
            Candidate::Column { .. } => unreachable!("the initial imputation is of a row member"),
        };
        let mut z = grid.x.clone();
        for (member, fitted) in self.rows.iter().enumerate() {
            run.check()?;
            let cells: Vec<bool> =
                grid.observed.iter().enumerate().map(|(at, o)| !o && source(at % m).0 == member).collect();
            let Some(fitted) = fitted.of(fold).filter(|_| cells.contains(&true)) else { continue };
            let predicted = fitted.predict(&Request { grid, cells: &cells, needed: None }, run)?;
            for f in (0..m).filter(|&f| source(f).0 == member) {
                let rows = grid.rows_where(f, |at| cells[at]);
                fill_column(&mut z, f, &responses[f], m, &rows, &predicted[source(f).1][f]);
            }
        }
        Ok(z)
    }

    /// Completes the views of a fold, and copies of the first without each group of columns; none if no more than `kept`
    /// of the time remains.
    fn completed(
        &self,
        initial: &[usize],
        views: Vec<Fold>,
        of: Option<usize>,
        kept: Option<Duration>,
    ) -> Result<Option<CompletedFold>> {
        let (run, groups) = (self.context.run, groups_of(self.grid.m));
        let view = |fold: Fold| Ok(View { plain: self.complete(initial, of, &fold.grid)?, fold });
        let views: Vec<View> = views.into_iter().map(view).collect::<Result<_>>()?;
        let mut without = Vec::with_capacity(groups);
        for group in 0..groups {
            if run.is_down_to(kept) {
                return Ok(None);
            }
            without.push(self.complete(initial, of, &without_group(&views[0].fold.grid, group))?);
            run.report("completing", group as u64 + 1, groups as u64, "");
        }
        Ok(Some(CompletedFold { views, without }))
    }

    /// Completes the folds and the whole table, and fits layers of column members to them.
    fn fit_layers(&mut self, initial: &[usize]) -> Result<Vec<Layer>> {
        let (run, budget) = (self.context.run, self.context.budget);
        let too_late = "the time limit did not allow for layers of column members";
        let count = self.tried.len();
        let kept = run.time_left().map(|left| left.mul_f64(1.0 - COMPLETING_SHARE));
        let mut all = Vec::with_capacity(count + 1);
        let folds = std::mem::take(&mut self.tried).into_iter().zip(std::mem::take(&mut self.partly_shown));
        for (k, (fold, partly)) in folds.enumerate() {
            let started = Instant::now();
            let Some(completed) = self.completed(initial, vec![fold, partly], Some(k), kept)? else {
                self.notes.push(too_late.to_owned());
                return Ok(Vec::new());
            };
            all.push(completed);
            let needed = started.elapsed().mul_f64((count - k - 1) as f64 + budget.folds as f64);
            if run.is_down_to(kept.map(|kept| kept + needed)) {
                self.notes.push(too_late.to_owned());
                return Ok(Vec::new());
            }
        }
        let whole = Fold::all(self.grid.clone()).sample(budget.final_rows, run, u64::MAX);
        let Some(completed) = self.completed(initial, vec![whole], None, kept)? else {
            self.notes.push(too_late.to_owned());
            return Ok(Vec::new());
        };
        all.push(completed);
        let reserve = run.time_left().map(|t| t.mul_f64(PREDICTING_SHARE));
        // The candidate that completes the rows of each column so far.
        let mut sources = initial.to_vec();
        let (mut layers, mut converged) = (Vec::new(), None);
        let most = budget.layers + budget.sweeps;
        for number in 0..most {
            let order = if number < budget.layers { Order::Parallel } else { Order::Chained };
            if converged == Some(order) {
                continue;
            }
            let Some(layer) = self.fit_layer(order, layers.len(), &mut all, &mut sources, reserve)? else {
                self.notes.push(format!("time limit reached in layer {} of {most}", number + 1));
                break;
            };
            // Without a better prediction the next layer would learn from the same rows.
            if layer.sources.iter().all(Option::is_none) {
                converged = Some(order);
            }
            layers.push(layer);
        }
        if !run.is_down_to(reserve) {
            self.regressions = Regressions::fit(&all, &self.context.columns.responses, run);
        }
        Ok(layers)
    }

    /// Fits a layer to every completed fold, adds its out-of-fold predictions, and completes the folds with the best of
    /// them. Returns the layer of all cells; none if the time limit is reached.
    fn fit_layer(
        &mut self,
        order: Order,
        number: usize,
        all: &mut [CompletedFold],
        sources_so_far: &mut [usize],
        reserve: Option<Duration>,
    ) -> Result<Option<Layer>> {
        let (run, budget, columns) = (self.context.run, self.context.budget, self.context.columns);
        let (m, members) = (columns.len(), self.members.columns.clone());
        let first = self.cells.as_missing[0].predictions.len();
        self.resize_predictions(first + members.len());
        let mut learners: Vec<Vec<OfColumn>> = all.iter().map(|_| Vec::with_capacity(m)).collect();
        let mut sources = vec![None; m];
        let total = (budget.layers + budget.sweeps) * m * all.len();
        for f in 0..m {
            let response = &columns.responses[f];
            for (k, (completed, learners)) in all.iter().zip(&mut learners).enumerate() {
                if run.is_down_to(reserve) {
                    self.resize_predictions(first);
                    return Ok(None);
                }
                let index = ((number * all.len() + k) * m + f) as u64;
                let rows = completed.rows_for(f, order);
                let fitted = fit_column(&members, rows, completed.grid(), f, index, self.context)?;
                for (View { fold, plain }, cells) in
                    completed.views.iter().zip([&mut self.cells.as_missing, &mut self.cells.partly_shown])
                {
                    let rows = fold.held_rows(f).map(|i| i as u32).collect::<Vec<u32>>();
                    for (which, learner) in fitted.iter().enumerate().filter(|_| !rows.is_empty()) {
                        let Some(learner) = learner else { continue };
                        let predicted = learner.predict_distribution(plain, &rows, run)?;
                        cells[f].predictions[first + which].extend(predicted);
                    }
                }
                learners.push(fitted);
                let done = (number * m + f) * all.len() + k + 1;
                run.report("column members", done as u64, total as u64, "");
            }
            let loss = |c| self.cells.as_missing[f].loss(response, c).unwrap_or(f64::INFINITY);
            for which in 0..members.len() {
                if loss(first + which) < loss(sources_so_far[f]) {
                    (sources_so_far[f], sources[f]) = (first + which, Some(which));
                }
            }
            let Some(which) = sources[f].filter(|_| order == Order::Chained) else { continue };
            for (completed, learners) in all.iter_mut().zip(&learners) {
                let Some(learner) = &learners[f][which] else { continue };
                for View { fold: Fold { grid, .. }, plain } in &mut completed.views {
                    let rows = grid.rows_where(f, |at| !grid.observed[at]);
                    let predicted = learner.predict_distribution(plain, &rows, run)?;
                    fill_column(plain, f, response, m, &rows, &predicted);
                }
            }
        }
        let mut last = None;
        for (completed, learners) in all.iter_mut().zip(learners) {
            let layer = Layer { order, learners, sources: sources.clone() };
            if order == Order::Parallel && number + 1 < budget.layers + budget.sweeps {
                let is_careful = number + 1 < budget.layers;
                complete_with(&layer, completed, columns, is_careful, run)?;
            }
            last = Some(layer);
        }
        Ok(last)
    }

    /// Selects, calibrates, prunes members without weight, and fits those to all cells that had to wait for their weight.
    fn finish(mut self, initial: Vec<usize>, layers: &mut [Layer]) -> Result<Finished> {
        let run = self.context.run;
        run.check()?;
        let all = candidates(&self.members, layers.len());
        let (models, scale, drawn_from) = self.column_models(&initial, layers, &all);
        run.check()?;
        let mut is_seen = false;
        // Where rows are kept as donors, so is the forest that says which of them are near.
        let forests = |f| nearness_forest(&models[f], layers, &all, f).filter(|_| self.context.budget.keep_donors);
        let forests: Vec<Option<(usize, usize)>> = (0..self.grid.m).map(forests).collect();
        for (l, layer) in layers.iter_mut().enumerate().rev() {
            let place = |member| all.iter().position(|c| *c == Candidate::Column { layer: l, member });
            let has_weight =
                |f: usize, member| place(member).is_some_and(|c| models[f].uses(c)) || forests[f] == Some((l, member));
            is_seen |= layer.prune(is_seen, has_weight);
        }
        for k in 0..self.rows.len() {
            let member = self.members.rows[k];
            let is_own = |c: &Candidate| matches!(c, Candidate::Row { member, .. } if *member == k);
            let is_used = || models.iter().any(|model| (0..all.len()).any(|c| is_own(&all[c]) && model.uses(c)));
            let Some(needed) = member.needs().and_then(|name| self.members.row(name)) else { continue };
            if let Some(other) = self.rows[needed].all.as_deref().filter(|_| !run.is_spent() && is_used()) {
                let needed = self.predict_classes(other, self.grid)?;
                let whole = Fold::all(self.grid.clone());
                self.rows[k].all = member.fit(&[&whole], &[needed], self.context)?.models.pop().flatten();
            }
        }
        self.add_notes_on_patterns(&scale.fill);
        let rows = self.rows.into_iter().map(|fitted| fitted.all).collect();
        Ok(Finished { rows, members: self.members, models, scale, drawn_from, notes: self.notes })
    }

    /// Selects and calibrates the ensembles of each column.
    fn column_models(
        &mut self,
        initial: &[usize],
        layers: &[Layer],
        all: &[Candidate],
    ) -> (Vec<ColumnModel>, ByPurpose<ShownScale>, Option<FactoredRegressions>) {
        let fill = self.calibrated(Purpose::Fill, layers, all);
        let first = self.calibrated(Purpose::DrawFirst, layers, all);
        let next = self.calibrated(Purpose::DrawNext, layers, all);
        let scale = ByPurpose { fill: fill.scale, first: first.scale, next: next.scale };
        let draws = first.ensembles.into_iter().zip(next.ensembles);
        let drawn_from = std::mem::take(&mut self.regressions).chosen(&first.gains, &next.gains);
        let of_columns = fill.ensembles.into_iter().zip(draws).zip(fill.validations).zip(initial);
        let model = |(f, (((fill, (first, next)), validation), &initial)): (usize, _)| {
            // A column that is rarely missing with others is always drawn as the first.
            let is_proven = self.cells.partly_shown[f].truth.len() >= MIN_NEXT_CELLS;
            let ensemble = ByPurpose { fill, next: if is_proven { next } else { Ensemble::clone(&first) }, first };
            ColumnModel { initial, ensemble, validation }
        };
        (of_columns.enumerate().map(model).collect(), scale, drawn_from)
    }

    /// Selects and calibrates an ensemble for each column on its held-out cells.
    fn calibrated(&self, purpose: Purpose, layers: &[Layer], all: &[Candidate]) -> Calibrated {
        let (Context { columns, run, .. }, cells) = (self.context, self.cells.of(purpose));
        let pairs: Vec<(&Response, &OutOfFold)> = columns.responses.iter().zip(cells).collect();
        let mut selections =
            run.install(|| select(&pairs, BASELINE, purpose, |f| self.unproven_weights(f, layers, all)));
        let spread = |(selection, &(response, cells)): (&mut Selection, &(&Response, &OutOfFold))| {
            if *response != Response::Number {
                return selection.weights.clone();
            }
            let weights = spread_weights(cells, &selection.weights, &selection.predicted);
            set_spreads(&mut selection.predicted, &cells.parts(response, &weights, 0..cells.truth.len()));
            weights
        };
        let spreads: Vec<Vec<f32>> = selections.iter_mut().zip(&pairs).map(spread).collect();
        let of_columns = pairs.iter().zip(&selections);
        let held: Vec<HeldOut> =
            of_columns.map(|((response, cells), s)| cells.held_out(response, &s.predicted)).collect();
        let pooled = Pooled::of(&held);
        let (mut ensembles, mut validations, mut gains) = (Vec::new(), Vec::new(), Vec::new());
        for (f, ((selection, spread_weights), held)) in selections.iter().zip(spreads).zip(held).enumerate() {
            let prior = crate::members::marginal_of(self.grid, f, held.response);
            let (weights, aggregation) = (selection.weights.clone(), selection.aggregation);
            let calibration = match purpose {
                Purpose::Fill => Calibration::of(held, &prior, &pooled),
                Purpose::DrawFirst | Purpose::DrawNext => {
                    Calibration::for_draws(held, &prior, &self.grid.values(f), &pooled)
                }
            };
            gains.extend(self.regressions.gain_of_ensemble(purpose, f, held));
            ensembles.push(Ensemble { weights, spread_weights, aggregation, calibration });
            let candidates = (0..all.len()).map(|c| cells[f].error(held.response, c)).collect();
            let is_level = !held.response.is_number();
            validations.push(Validation {
                candidates,
                baseline_accuracy: cells[f].mean_of(held.response, BASELINE, is_right).filter(|_| is_level),
                coverage: Calibration::coverage(held, &prior, &pooled),
                ..self.validation(f, held)
            });
        }
        Calibrated { ensembles, validations, scale: pooled.scale, gains }
    }

    /// What held-out cells of a column say about the predictions of its ensemble.
    fn validation(&self, f: usize, held: HeldOut) -> Validation {
        let (response, grid) = (held.response, self.grid);
        let predicted = || held.predicted.chunks_exact(response.width()).zip(held.truth);
        let errors: Vec<f64> = predicted().map(|(p, &t)| response.error(p, t)).collect();
        let right = (!errors.is_empty())
            .then(|| predicted().map(|(p, &t)| is_right(response, p, t)).sum::<f64>() / errors.len() as f64);
        let missing = (0..grid.n).filter(|i| !grid.observed[i * grid.m + f]).count();
        let cell = |(p, t): (&[f32], &f32)| HeldOutCell { truth: (*t).into(), predicted: response.point(p).into() };
        Validation {
            missing,
            cells: held.truth.len(),
            different: held.rows.iter().collect::<BTreeSet<_>>().len(),
            ensemble: mean_and_error(&errors).0,
            accuracy: right.filter(|_| !response.is_number()),
            pattern: if missing == 0 { Pattern::Random } else { Pattern::Own },
            held_out: predicted().take(if response.is_number() { REPORTED_CELLS } else { 0 }).map(cell).collect(),
            ..Validation::default()
        }
    }

    /// Says where the held-out cells are not missing as those of the table are.
    fn add_notes_on_patterns(&mut self, scale: &ShownScale) {
        let grid = self.grid;
        let is_open = |&i: &usize| (grid.shown(i) as usize) < grid.m;
        if !(0..grid.n).any(|i| is_open(&i)) {
            self.notes.push("no cell is missing: validation errors are those of cells held out at random".to_owned());
        }
        let emptier = (0..grid.n).filter(is_open).filter(|&i| grid.shown(i) < scale.fewest()).count();
        if emptier > 0 && !self.folds.is_empty() {
            let rows = if emptier == 1 { "1 row shows".to_owned() } else { format!("{emptier} rows show") };
            self.notes.push(format!(
                "{rows} fewer cells than any row in which cells were held out: nothing like it could be validated, and \
                 intervals there are the widest"
            ));
        }
    }

    /// The fixed weights of a column with too few held-out cells to select by; the rest goes to the first with weight.
    fn unproven_weights(&self, f: usize, layers: &[Layer], all: &[Candidate]) -> Vec<f32> {
        let last = layers.len().checked_sub(1);
        let weight = |candidate: &Candidate| match *candidate {
            Candidate::Row { member, output: 0 } if self.rows[member].all.is_some() => {
                self.members.rows[member].unproven_weight()
            }
            Candidate::Column { layer, member }
                if Some(layer) == last && layers[layer].learners[f][member].is_some() =>
            {
                self.members.columns[member].unproven_weight()
            }
            _ => 0.0,
        };
        let mut weights: Vec<f32> = all.iter().map(weight).collect();
        let rest = 1.0 - weights.iter().sum::<f32>();
        let first = weights.iter().position(|w| *w > 0.0).unwrap_or(BASELINE);
        weights[first] += rest;
        weights
    }
}

/// Completes a fold with the predictions of a layer; its copies without groups of columns only if the next layer needs
/// them.
fn complete_with(
    layer: &Layer,
    completed: &mut CompletedFold,
    columns: &Columns,
    is_careful: bool,
    run: &Run,
) -> Result<()> {
    let CompletedFold { views, without } = completed;
    let m = columns.len();
    let predict = |z: &mut Vec<f32>, grid: &Grid, open: &dyn Fn(usize) -> bool| {
        let rows: Vec<Vec<u32>> = (0..m).map(|f| grid.rows_where(f, open)).collect();
        layer.predict(z, columns, &rows, |_, _| false, run, |_, _| {})
    };
    for View { fold: Fold { grid, .. }, plain } in views.iter_mut() {
        predict(plain, grid, &|at| !grid.observed[at])?;
    }
    let (grid, groups) = (&views[0].fold.grid, without.len());
    for (group, z) in without.iter_mut().enumerate().filter(|_| is_careful) {
        predict(z, grid, &|at| at % m % groups == group || !grid.observed[at])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::m3::M3Params;
    use crate::members::{ColumnMember, FittedFolds, MEMBERS, Member, RowMember, Section};
    use m3impute_core::Tensor;
    use m3impute_gnn::network::{Shape, Training};
    use m3impute_learners::Learner;
    use m3impute_learners::neighbours::NeighboursLearner;
    use serde_json::Value;
    use std::collections::BTreeMap;

    /// Three columns: one number, its double, and whether it is above a half; every fifth cell is missing.
    fn table() -> (Grid, Columns) {
        let n = 200;
        let value = |i: usize| (i * 37 % 101) as f32 / 100.0;
        let row = |i: usize| [value(i), value(i) * 0.8 + 0.1, f32::from(u8::from(value(i) > 0.5))];
        let observed = (0..n * 3).map(|at| at % 5 != 2).collect();
        let grid = Grid { n, m: 3, x: (0..n).flat_map(row).collect(), observed };
        let responses = vec![Response::Number, Response::Number, Response::Levels(2)];
        (grid, Columns::of_responses(responses))
    }

    fn budget() -> Budget {
        let shape = Shape { width: 16, layers: 1, pairwise: true };
        let usual = Budget::of(&M3Params::default(), 3, 480);
        Budget {
            folds: 2,
            tried_folds: 2,
            training: Training { shape, steps: 60, ..Training::default() },
            layers: 2,
            sweeps: 1,
            trees: 10,
            ..usual
        }
    }

    fn fitted(list: &[Member], names: &[&str], run: &Run) -> (StackModel, Grid) {
        let (grid, columns) = table();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let (model, notes) = fit(&grid, columns, Members::named(list, &names), budget(), run).unwrap();
        assert!(notes.is_empty(), "{notes:?}");
        (model, grid)
    }

    #[test]
    fn predictable_columns_are_predicted_and_validation_errors_show_it() {
        let run = Run::new(0, 2).unwrap();
        let (model, grid) = fitted(MEMBERS, crate::members::names(), &run);
        for (f, ColumnModel { validation, .. }) in model.models.iter().enumerate() {
            let baseline = validation.candidates[BASELINE].unwrap();
            assert!(validation.cells > 12 && validation.ensemble < 0.6 * baseline, "column {f}: {validation:?}");
        }
        let predicted = model.predict(&grid, Purpose::Fill, &run).unwrap();
        let wrong = grid.rows_where(2, |at| !grid.observed[at]).into_iter().zip(predicted[2].chunks_exact(2));
        let wrong = wrong.filter(|(i, p)| Response::Levels(2).point(p) != grid.x[*i as usize * 3 + 2]);
        assert!(wrong.count() <= 6);
    }

    #[test]
    fn members_without_weight_are_pruned_unless_later_layers_use_them() {
        let run = Run::new(0, 1).unwrap();
        let (model, _) = fitted(MEMBERS, crate::members::names(), &run);
        let all = model.candidates();
        let mut pruned = 0;
        for (l, layer) in model.layers.iter().enumerate() {
            for (f, learners) in layer.learners.iter().enumerate() {
                for (member, learner) in learners.iter().enumerate() {
                    let c = all.iter().position(|c| *c == Candidate::Column { layer: l, member }).unwrap();
                    let is_used = model.models[f].uses(c) || layer.sources[f] == Some(member);
                    // A level has neither regression nor kernel in any case.
                    assert!(learner.is_some() == is_used || (f == 2 && learner.is_none()), "{l} {f} {member}");
                    pruned += usize::from(learner.is_none());
                }
            }
        }
        assert!(pruned > model.layers.len() * 2, "{pruned}");
    }

    #[test]
    fn rows_are_predicted_independently() {
        let run = Run::new(0, 1).unwrap();
        let (model, grid) = fitted(MEMBERS, crate::members::names(), &run);
        let all = model.predict(&grid, Purpose::Fill, &run).unwrap();
        let alone = model.predict(&grid.select(&[5]), Purpose::Fill, &run).unwrap();
        assert!(!grid.observed[5 * 3 + 2]);
        let before = (0..5).filter(|i| !grid.observed[i * 3 + 2]).count();
        assert_eq!(alone[2], all[2][before * 2..(before + 1) * 2]);
    }

    #[test]
    fn any_members_make_a_stack() {
        let run = Run::new(0, 1).unwrap();
        for names in [&["forest"][..], &["mixture"], &["network"], &["regression", "kernel"], &[]] {
            let (model, grid) = fitted(MEMBERS, names, &run);
            let used: Vec<&str> = model.candidates().into_iter().map(|c| model.name(c)).collect();
            assert!(used.iter().all(|name| *name == "baseline" || names.contains(name)), "{names:?}: {used:?}");
            let predicted = model.predict(&grid, Purpose::Fill, &run).unwrap();
            assert!(predicted.iter().flatten().all(|p| p.is_finite()), "{names:?}");
        }
    }

    /// A member of columns: the nearest rows. This and a line in the list is all it takes.
    #[derive(Debug)]
    struct Nearest;

    impl ColumnMember for Nearest {
        fn name(&self) -> &'static str {
            "nearest"
        }

        fn learner(&self, _: &Budget) -> Box<dyn Learner> {
            Box::new(NeighboursLearner { nearest: 5, most: 1000 })
        }
    }

    /// A member of rows that uses the truth of the table above: the second column follows from the first.
    #[derive(Debug)]
    struct Oracle;

    impl RowMember for Oracle {
        fn name(&self) -> &'static str {
            "oracle"
        }

        fn fit(&self, folds: &[&Fold], _: &[Predicted], _: Context<'_>) -> Result<FittedFolds> {
            let models = folds.iter().map(|_| Some(Box::new(Oracle) as Box<dyn FittedRowMember>)).collect();
            Ok(FittedFolds { models, ..FittedFolds::default() })
        }

        fn restore(&self, _: &Section<'_>, _: &Columns) -> Result<Box<dyn FittedRowMember>> {
            Ok(Box::new(Oracle))
        }
    }

    impl FittedRowMember for Oracle {
        fn predict(&self, request: &Request<'_>, _: &Run) -> Result<Predicted> {
            let Request { grid, cells, .. } = *request;
            let of = |i: u32| {
                let first = i as usize * 3;
                let value = if grid.observed[first] { grid.x[first] } else { 0.5 };
                [value * 0.8 + 0.1, 0.01]
            };
            let second = grid.rows_where(1, |at| cells[at]).into_iter().flat_map(of).collect();
            Ok(vec![vec![Vec::new(), second, Vec::new()]])
        }

        fn store(&self, _: &str, _: &mut BTreeMap<String, Tensor>) -> Value {
            Value::Null
        }
    }

    #[test]
    fn a_new_member_is_one_implementation_and_one_line_of_the_list() {
        let mut list = MEMBERS.to_vec();
        list.push(Member::Column(&Nearest));
        list.push(Member::Row(&Oracle));
        let run = Run::new(0, 1).unwrap();
        let (model, grid) = fitted(&list, &["nearest", "oracle"], &run);
        let weight = |f: usize, name: &str| -> f32 {
            let all = model.candidates().into_iter().zip(&model.models[f].ensemble.fill.weights);
            all.filter(|(c, _)| model.name(*c) == name).map(|(_, weight)| weight).sum()
        };
        // The nearest rows predict the first column from its double; the oracle predicts the second.
        assert!(weight(0, "nearest") > 0.5 && weight(1, "oracle") > 0.0, "{:?}", model.models);
        let validation = &model.models[1].validation;
        assert!(validation.ensemble < 0.5 * validation.candidates[BASELINE].unwrap(), "{validation:?}");
        assert!(model.predict(&grid, Purpose::Fill, &run).unwrap().iter().flatten().all(|p| p.is_finite()));
    }
}
