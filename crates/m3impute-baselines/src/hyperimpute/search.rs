//! Which learner fills which column: found on observed cells that are hidden, in chains that never see them.
//!
//! Several chains run side by side, each without some of the observed cells. Column by column every candidate learns in
//! every chain; the one that is nearest to the hidden cells of all chains fills the column in each. So candidates are
//! compared on rows as they will be met, filled by what was chosen before, and nothing that has seen a hidden cell has a
//! part in its prediction. The sweeps go on until the hidden cells are met no better.

use super::candidates::{self, Candidate, Effort};
use super::column::{Column, error};
use super::state::State;
use super::{HyperImputeParams, Problem};
use m3impute_core::heldout::{HeldOut, hold_out};
use m3impute_core::{Encoded, RandomStream, Result, Run};
use m3impute_learners::{FittedLearner, Response, Stream};
use rand::Rng;
use rayon::prelude::*;

/// The share of a column's observed cells that a chain does not see.
const HIDDEN: f64 = 0.12;
/// A chain hides about this many cells of a column at most.
const HIDDEN_CELLS: usize = 400;
/// Candidates learn from this many rows at most.
const SEARCH_ROWS: usize = 2500;
/// How many candidates go on after the first sweep.
const KEPT: usize = 2;
/// The part of an error that may be luck, where there is one cell.
const LUCK: f64 = 0.5;
/// A sweep must lower the error by this part, or it is the last.
const WORTH: f64 = 0.003;
/// The share of the time that the search may take, where the time is limited.
const SEARCH_SHARE: f64 = 0.6;
/// A column with fewer observed cells is not searched: there is nothing to tell good from bad.
const SEARCH_FROM: usize = 20;

/// What the search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The recipe of each feature, with the rounds that boosting takes, `[w]`.
    pub chosen: Vec<(&'static Candidate, Option<usize>)>,
    /// The error of each feature on hidden cells, by what it was chosen: none where it was not searched, `[w]`.
    pub errors: Vec<Option<f64>>,
    /// How often the columns are gone through.
    pub sweeps: usize,
    /// What there is to say.
    pub notes: Vec<String>,
}

/// A chain that does not see some observed cells.
struct Chain {
    state: State,
    /// The rows of each feature whose observed cell it does not see, and what they hold, `[w]`.
    hidden: Vec<Vec<(u32, f32)>>,
}

/// What a candidate did in all chains.
struct Trial {
    candidate: &'static Candidate,
    /// On so many hidden cells.
    cells: usize,
    error: f64,
    learners: Vec<Box<dyn FittedLearner>>,
}

impl Trial {
    /// The smallest of eight errors on a few cells is small by luck, too: another learner must beat extremely random
    /// trees by more than that.
    fn handicapped(&self) -> f64 {
        let steady = [&candidates::EXTRA, &candidates::EXTRA_LARGE].contains(&self.candidate);
        let luck = if steady { 0.0 } else { LUCK / (self.cells.max(1) as f64).sqrt() };
        self.error * (1.0 + luck)
    }

    fn rounds(&self) -> Option<usize> {
        let rounds: Vec<usize> = self.learners.iter().filter_map(|learner| learner.rounds()).collect();
        let mean = rounds.iter().sum::<usize>() / rounds.len().max(1);
        (!rounds.is_empty()).then_some(mean.max(1))
    }
}

/// Searches a recipe for each of these features.
///
/// # Errors
/// When the run is cancelled.
pub fn search(problem: Problem<'_>, run: &Run) -> Result<Found> {
    let run = &run.part(SEARCH_SHARE);
    let Problem { params, data, columns, responses, open } = problem;
    let w = columns.len();
    let mut found = Found {
        chosen: vec![(&candidates::EXTRA, None); w],
        errors: vec![None; w],
        sweeps: if open.len() > 1 { params.sweeps.min(2) } else { 1 },
        notes: Vec::new(),
    };
    let candidates = params.candidates();
    if let Some(&first) = candidates.first().filter(|_| !candidates.contains(&&candidates::EXTRA)) {
        found.chosen = vec![(first, None); w];
    }
    let searched: Vec<usize> =
        open.iter().copied().filter(|&f| data.rows - data.missing_in(f) >= SEARCH_FROM && w > 1).collect();
    if searched.is_empty() || candidates.len() < 2 {
        return Ok(found);
    }
    let mut chains: Vec<Chain> = (0..params.folds_for(data.rows)).map(|k| Chain::new(data, columns, k, run)).collect();
    let mut kept: Vec<Vec<&'static Candidate>> = vec![candidates; w];
    let mut before: Option<(f64, Found)> = None;
    let most = if open.len() > 1 { params.sweeps } else { 1 };
    for sweep in 0..most {
        let mut now = found.clone();
        let mut total = 0.0;
        for (at, &f) in searched.iter().enumerate() {
            run.report("search", (sweep * searched.len() + at) as u64, (most * searched.len()) as u64, "");
            run.check()?;
            let index = (sweep * w + f) as u64 * 64;
            let mut trials =
                if run.is_spent() { None } else { trials(&chains, &kept[f], f, &responses[f], params, run, index)? };
            let Some(trials) = &mut trials else {
                let left = searched.len() - at;
                if sweep == 0 {
                    now.notes.push(format!(
                        "the time for the search was up: {left} columns get {} without one",
                        now.chosen[f].0.name
                    ));
                } else if let Some((_, best)) = before {
                    now = best;
                    now.notes.push("the time for the search was up: it could have gone on".to_owned());
                }
                return Ok(now);
            };
            trials.sort_by(|a, b| a.handicapped().total_cmp(&b.handicapped()));
            let best = &trials[0];
            for (chain, learner) in chains.iter_mut().zip(&best.learners) {
                chain.state.fill(f, learner.as_ref(), run)?;
            }
            now.chosen[f] = (best.candidate, best.rounds());
            now.errors[f] = Some(best.error);
            total += best.error / baseline_error(&responses[f], &chains[0].hidden[f], &columns[f]);
            kept[f] = trials.iter().take(KEPT).map(|t| t.candidate).collect();
        }
        now.sweeps = sweep + 1;
        match &before {
            Some((least, best)) if total >= least * (1.0 - WORTH) => return Ok(best.clone()),
            _ => {}
        }
        found = now.clone();
        before = Some((total, now));
    }
    Ok(found)
}

/// Every candidate in every chain; nothing when the time is up.
#[allow(clippy::too_many_arguments)]
fn trials(
    chains: &[Chain],
    candidates: &[&'static Candidate],
    f: usize,
    response: &Response,
    params: &HyperImputeParams,
    run: &Run,
    index: u64,
) -> Result<Option<Vec<Trial>>> {
    let jobs: Vec<(usize, usize)> =
        (0..candidates.len()).flat_map(|c| (0..chains.len()).map(move |k| (c, k))).collect();
    let effort = Effort { trees: params.trees.min(50), steps: params.steps, rounds: None };
    let rows: Vec<Vec<u32>> = chains.iter().map(|chain| sample(&chain.state.shown[f], run, index)).collect();
    let job = |&(c, k): &(usize, usize)| -> Result<Option<(f64, Box<dyn FittedLearner>)>> {
        let chain = &chains[k];
        let task = chain.state.task(f, response, &rows[k]);
        let index = index + k as u64;
        let Some(learner) = candidates[c].fit(&task, &effort, run, Stream { purpose: candidates[c].name, index })?
        else {
            return Ok(None);
        };
        let (rows, truth): (Vec<u32>, Vec<f32>) = chain.hidden[f].iter().copied().unzip();
        let predictions = learner.predict(chain.state.x(), &rows, run)?;
        let error = truth.iter().zip(predictions).map(|(&t, a)| error(response, t, a)).sum();
        Ok(Some((error, learner)))
    };
    let done: Vec<Option<(f64, Box<dyn FittedLearner>)>> =
        run.install(|| jobs.par_iter().with_max_len(1).map(job).collect::<Result<_>>())?;
    let cells: usize = chains.iter().map(|chain| chain.hidden[f].len()).sum();
    let mut trials: Vec<Trial> =
        candidates.iter().map(|&candidate| Trial { candidate, cells, error: 0.0, learners: Vec::new() }).collect();
    for (&(c, _), done) in jobs.iter().zip(done) {
        let Some((error, learner)) = done else { return Ok(None) };
        trials[c].error += error / cells.max(1) as f64;
        trials[c].learners.push(learner);
    }
    Ok(Some(trials))
}

/// Some of the rows, at random, where there are many.
fn sample(rows: &[u32], run: &Run, index: u64) -> Vec<u32> {
    let mut rows = rows.to_vec();
    if rows.len() > SEARCH_ROWS {
        let mut rng = RandomStream::new(run.rng("hyperimpute rows", index).next_u64());
        rng.shuffle_front(&mut rows, SEARCH_ROWS);
        rows.truncate(SEARCH_ROWS);
        rows.sort_unstable();
    }
    rows
}

impl Chain {
    fn new(data: &Encoded, columns: &[Column], k: usize, run: &Run) -> Chain {
        let w = columns.len();
        let mut data = data.clone();
        let HeldOut { cells, truth } =
            hold_out(&mut data, HIDDEN, HIDDEN_CELLS * w, &format!("hyperimpute chain {k}"), run);
        let mut hidden = vec![Vec::new(); w];
        for (&cell, &truth) in cells.iter().zip(&truth) {
            hidden[cell % w].push(((cell / w) as u32, columns[cell % w].read(truth)));
        }
        Chain { state: State::start(&data, columns), hidden }
    }
}

/// The error of the initial imputation, so that columns weigh alike.
fn baseline_error(response: &Response, hidden: &[(u32, f32)], column: &Column) -> f64 {
    let wrong = |&(_, truth): &(u32, f32)| error(response, truth, column.feature.initial);
    (hidden.iter().map(wrong).sum::<f64>() / hidden.len().max(1) as f64).max(1e-3)
}
