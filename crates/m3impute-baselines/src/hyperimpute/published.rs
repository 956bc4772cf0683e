//! The search as it was published and run: two-fold cross-validation within the iteration, and its shortcuts.
//!
//! The scores are those of rows whose other missing cells were filled by models that have seen the cell; columns borrow the
//! learner of others that were searched before them; a learner once chosen gives way only to a higher score than any
//! before. All of that is as it was.

use super::Problem;
use super::candidates::{self, Candidate, Effort};
use super::state::State;
use m3impute_core::{Encoded, RandomStream, Result, Run};
use m3impute_learners::{FittedLearner, Response, Stream};
use rand::Rng;
use rayon::prelude::*;

/// Columns with fewer observed cells choose among two learners only.
const ALL_FROM: usize = 500;
/// Cross-validation looks at this many rows at most.
const SCORED_ROWS: usize = 5000;
/// Iterations without a better score before the end.
const PATIENCE: usize = 5;
/// A smaller change of the table ends the iterations, after so many of them.
const SETTLED: f32 = 1e-8;
const SETTLED_AFTER: usize = 10;

/// What the iterations came to.
pub struct Outcome {
    pub state: State,
    /// What filled each feature last, `[w]`.
    pub learners: Vec<Option<Box<dyn FittedLearner>>>,
    pub chosen: Vec<Option<&'static Candidate>>,
    /// The order of the last iteration.
    pub order: Vec<usize>,
    pub notes: Vec<String>,
}

/// Fills a table as it was published.
///
/// # Errors
/// When the run is cancelled.
pub fn iterate(problem: Problem<'_>, run: &Run) -> Result<Outcome> {
    let Problem { params, data, columns, responses, open } = problem;
    let w = columns.len();
    let mut out = Outcome {
        state: State::start(data, columns),
        learners: (0..w).map(|_| None).collect(),
        chosen: vec![None; w],
        order: open.to_vec(),
        notes: Vec::new(),
    };
    let candidates = |f: usize| -> Vec<&'static Candidate> {
        let mut all = vec![&candidates::PUBLISHED_FOREST, &candidates::PUBLISHED_LINEAR];
        if out_of(data, f) >= ALL_FROM {
            all.extend([&candidates::PUBLISHED_BOOSTING, &candidates::PUBLISHED_CONSTANT]);
            if params.network {
                all.push(&candidates::PUBLISHED_NETWORK);
            }
        }
        all
    };
    let effort = Effort { trees: params.trees, steps: params.steps, rounds: None };
    let mut winners: Vec<Option<(f64, &'static Candidate)>> = vec![None; w];
    let (mut best, mut worse) = (f64::NEG_INFINITY, 0);
    for iteration in 0..params.sweeps {
        let old = out.state.x().to_vec();
        let mut rng = RandomStream::new(run.rng("hyperimpute order", iteration as u64).next_u64());
        rng.shuffle_front(&mut out.order, open.len());
        let mut chosen: Vec<(bool, &'static Candidate)> = Vec::new();
        let mut total = 0.0;
        for at in 0..open.len() {
            let f = out.order[at];
            run.report("iterations", (iteration * open.len() + at) as u64, (params.sweeps * open.len()) as u64, "");
            let classes = responses[f].classes() > 0;
            let borrowed = chosen.iter().find(|c| c.0 == classes && chosen.iter().filter(|d| d == c).count() > 1);
            let candidate = if let Some(&(_, candidate)) = borrowed {
                candidate
            } else {
                let scores = scores(&out.state, f, &responses[f], &candidates(f), &effort, run)?;
                let mut highest = f64::NEG_INFINITY;
                for (candidate, score) in candidates(f).into_iter().zip(scores) {
                    highest = highest.max(score);
                    if winners[f].is_none_or(|w| score > w.0) {
                        winners[f] = Some((score, candidate));
                    }
                }
                total += if highest.is_finite() { highest } else { 0.0 };
                winners[f].map_or(&candidates::PUBLISHED_LINEAR, |w| w.1)
            };
            chosen.push((classes, candidate));
            let task = out.state.task(f, &responses[f], &out.state.shown[f]);
            let index = (iteration * w + f) as u64;
            let Some(learner) = candidate.fit(&task, &effort, run, Stream { purpose: "hyperimpute fit", index })?
            else {
                out.notes.push(format!(
                    "time limit reached in iteration {} of at most {}: its last {} columns keep earlier predictions",
                    iteration + 1,
                    params.sweeps,
                    open.len() - at
                ));
                return Ok(out);
            };
            out.state.fill(f, learner.as_ref(), run)?;
            out.learners[f] = Some(learner);
            out.chosen[f] = Some(candidate);
        }
        let rows = old.chunks_exact(w).zip(out.state.x().chunks_exact(w));
        let change = rows.map(|(a, b)| a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f32>()).fold(0.0, f32::max);
        if total > best {
            (best, worse) = (total, 0);
        } else {
            worse += 1;
        }
        if (change < SETTLED && iteration > SETTLED_AFTER) || worse > PATIENCE {
            break;
        }
    }
    Ok(out)
}

fn out_of(data: &Encoded, f: usize) -> usize {
    data.rows - data.missing_in(f)
}

/// The scores of candidates for a column by two-fold cross-validation: R2 for numbers, the area under the curve for classes.
fn scores(
    state: &State,
    f: usize,
    response: &Response,
    candidates: &[&'static Candidate],
    effort: &Effort,
    run: &Run,
) -> Result<Vec<f64>> {
    let mut rows = state.shown[f].clone();
    let n = rows.len();
    // The same folds every time, as they were.
    let mut rng = RandomStream::new(run.rng("hyperimpute folds", f as u64).next_u64());
    rng.shuffle_front(&mut rows, n);
    rows.truncate(SCORED_ROWS);
    if rows.len() < 2 {
        return Ok(vec![0.0; candidates.len()]);
    }
    let (first, second) = rows.split_at(rows.len() / 2);
    let jobs: Vec<(&'static Candidate, &[u32], &[u32])> =
        candidates.iter().flat_map(|&c| [(c, first, second), (c, second, first)]).collect();
    let job = |&(candidate, learnt_from, held): &(&'static Candidate, &[u32], &[u32])| -> Result<f64> {
        let mut learnt_from = learnt_from.to_vec();
        learnt_from.sort_unstable();
        let task = state.task(f, response, &learnt_from);
        let Some(learner) =
            candidate.fit(&task, effort, run, Stream { purpose: "hyperimpute score", index: f as u64 })?
        else {
            return Ok(f64::NEG_INFINITY);
        };
        let truth: Vec<f32> = held.iter().map(|&i| task.truth(i)).collect();
        Ok(match response.classes() {
            0 => r_squared(&truth, &learner.predict(state.x(), held, run)?),
            classes => area_under_curve(&truth, &learner.predict_distribution(state.x(), held, run)?, classes),
        })
    };
    let done: Vec<f64> = run.install(|| jobs.par_iter().with_max_len(1).map(job).collect::<Result<_>>())?;
    Ok(done.chunks_exact(2).map(|s| (s[0] + s[1]) / 2.0).collect())
}

/// The part of the variance that is explained.
fn r_squared(truth: &[f32], predictions: &[f32]) -> f64 {
    let mean = truth.iter().map(|&t| f64::from(t)).sum::<f64>() / truth.len() as f64;
    let (mut rest, mut all) = (0.0, 0.0);
    for (&t, &a) in truth.iter().zip(predictions) {
        rest += (f64::from(t) - f64::from(a)).powi(2);
        all += (f64::from(t) - mean).powi(2);
    }
    if all > 0.0 { 1.0 - rest / all } else { 0.0 }
}

/// How often a row of a class has a higher score than one of another, the mean over the classes.
fn area_under_curve(truth: &[f32], scores: &[f32], classes: usize) -> f64 {
    let mut areas = Vec::new();
    for class in 0..classes {
        let mut ranked: Vec<(f32, bool)> =
            truth.iter().zip(scores.chunks_exact(classes)).map(|(&t, s)| (s[class], t as usize == class)).collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        let own = ranked.iter().filter(|r| r.1).count();
        let others = ranked.len() - own;
        if own == 0 || others == 0 {
            continue;
        }
        let (mut below, mut pairs) = (0.0, 0.0);
        for same in ranked.chunk_by(|a, b| a.0 == b.0) {
            let mine = same.iter().filter(|r| r.1).count() as f64;
            let theirs = same.len() as f64 - mine;
            pairs += mine * (below + theirs / 2.0);
            below += theirs;
        }
        areas.push(pairs / (own * others) as f64);
    }
    if areas.is_empty() { 0.5 } else { areas.iter().sum::<f64>() / areas.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_is_one_for_a_perfect_ranking_and_a_half_for_none() {
        let truth = [0.0, 0.0, 1.0, 1.0];
        let flat = |second: [f32; 4]| second.iter().flat_map(|&s| [1.0 - s, s]).collect::<Vec<f32>>();
        assert_eq!(area_under_curve(&truth, &flat([0.1, 0.2, 0.8, 0.9]), 2), 1.0);
        assert_eq!(area_under_curve(&truth, &flat([0.5; 4]), 2), 0.5);
        assert_eq!(area_under_curve(&truth, &flat([0.1, 0.8, 0.2, 0.9]), 2), 0.75);
    }

    #[test]
    fn r_squared_is_one_for_the_truth_and_zero_for_the_mean() {
        assert_eq!(r_squared(&[1.0, 3.0], &[1.0, 3.0]), 1.0);
        assert_eq!(r_squared(&[1.0, 3.0], &[2.0, 2.0]), 0.0);
    }
}
