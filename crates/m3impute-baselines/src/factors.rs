//! What `svd` and `softimpute` share: a matrix is filled again and again by its own smoothed version, in which each
//! principal direction is kept in part. Smoothing with fixed directions has a closed form for a new row.
//!
//! Notation: `n` rows, `w` features, `r` directions.

use m3impute_core::distributions::Distributions;
use m3impute_core::{Encoded, Error, MatrixModel, ModelFile, Result, Run, Tensor, Want};
use m3impute_learners::linalg::{GoOn, add, cholesky, cross, dot, product, singular, solve_cholesky};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The ridge under which new rows are solved where the directions do not need more.
pub(crate) const RIDGE: f64 = 1e-6;

/// The rows that are filled between two looks at the run.
const ROWS_AT_ONCE: usize = 8192;

/// How much of each direction a smoothing pass keeps, given the singular values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Filter {
    /// All of the first 1, 2, 4, ... up to this many: one doubling a pass.
    Doubling(usize),
    /// The first ones, each shrunk by the noise that the others show.
    Regularised(usize),
    /// Every singular value less this much.
    Soft(f64),
}

impl Filter {
    /// The parts kept, of singular values that descend.
    fn kept(self, pass: usize, singular: &[f64]) -> Vec<f64> {
        match self {
            Filter::Doubling(rank) => {
                let now = if pass < 32 { rank.min(1 << pass) } else { rank };
                vec![1.0; now.min(singular.len())]
            }
            Filter::Regularised(rank) => {
                let (kept, rest) = singular.split_at(rank.min(singular.len()));
                let noise = rest.iter().map(|s| s * s).sum::<f64>() / rest.len().max(1) as f64;
                kept.iter().filter(|&&s| s > 0.0).map(|s| 1.0 - noise / (s * s)).collect()
            }
            Filter::Soft(lambda) => singular.iter().take_while(|&&s| s > lambda).map(|s| 1.0 - lambda / s).collect(),
        }
    }

    /// Whether later passes filter in the same way as this one.
    fn may_stop(self, pass: usize) -> bool {
        match self {
            Filter::Doubling(rank) => pass >= 32 || 1 << pass >= rank,
            Filter::Regularised(_) | Filter::Soft(_) => true,
        }
    }
}

/// Principal directions and how much of each is kept. It smooths a row `x` to `centre + (x - centre) P`, where
/// `P = sum of kept v v'`.
#[derive(Clone, Debug, PartialEq)]
pub struct Factors {
    centre: Vec<f64>,     // [w]
    directions: Vec<f64>, // [r, w]
    kept: Vec<f64>,       // [r]
    ridge: f64,
}

/// What a pass does with the cells that are missing, once it has its directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// They get their smoothed values.
    Smooth,
    /// Columns are centred, and each row gets the fixed point of being smoothed again and again: far fewer passes.
    Solve,
}

/// How the smoothing goes on, and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Iteration {
    pub step: Step,
    /// The change of the filled cells, relative to their size, that is small enough.
    pub tolerance: f64,
    pub passes: usize,
    /// What is left of a limited time when it stops.
    pub kept: Option<Duration>,
}

/// What the smoothing came to.
#[derive(Debug)]
pub(crate) struct Smoothed {
    pub factors: Factors,
    pub passes: usize,
    /// Why it stopped before it converged.
    pub not_converged: Option<NotConverged>,
}

/// Why a smoothing stopped before it converged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotConverged {
    Passes,
    Time,
}

impl std::fmt::Display for NotConverged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NotConverged::Passes => "no more passes are allowed (`passes`)",
            NotConverged::Time => "time limit reached",
        })
    }
}

/// The share of a limited time that choosing a setting may take.
pub(crate) const CHOOSING_SHARE: f64 = 0.5;

/// The matrix with zeros where it is missing.
pub(crate) fn zero_filled(data: &Encoded) -> Vec<f64> {
    data.x.iter().zip(&data.observed).map(|(&x, &seen)| if seen { x } else { 0.0 }).collect()
}

/// The largest singular value of `x: [n, w]`; none where the time ran out.
pub(crate) fn largest_singular_value(x: &[f64], w: usize, run: &Run) -> Result<Option<f64>> {
    let found = run.install(|| singular(x, w, &|| run.goes_on()));
    run.check()?;
    Ok(found.map(|(values, _)| values.first().copied().unwrap_or(0.0)))
}

/// Fills `x: [n, w]` by its smoothed version where `observed` is false, until the filled cells settle. A pass for which the
/// time is too short changes nothing.
pub(crate) fn smooth(
    x: &mut [f64],
    observed: &[bool],
    w: usize,
    filter: Filter,
    plan: Iteration,
    run: &Run,
) -> Result<Smoothed> {
    let mut factors = Factors { centre: vec![0.0; w], directions: Vec::new(), kept: Vec::new(), ridge: RIDGE };
    let mut not_converged = Some(NotConverged::Passes);
    let mut passes = 0;
    let go_on = || !run.cancel().is_cancelled() && !run.is_down_to(plan.kept);
    while passes < plan.passes {
        let done = run.install(|| pass(x, observed, w, filter, passes, plan.step, &go_on));
        run.check()?;
        let Some((found, old, change)) = done else {
            not_converged = Some(NotConverged::Time);
            break;
        };
        factors = found;
        passes += 1;
        if filter.may_stop(passes - 1) && change <= plan.tolerance.powi(2) * old && (old > 0.0 || change == 0.0) {
            not_converged = None;
            break;
        }
    }
    Ok(Smoothed { factors, passes, not_converged })
}

/// One pass; also the squares of the filled cells before it, and of their change. None where it was told to stop.
fn pass(
    x: &mut [f64],
    observed: &[bool],
    w: usize,
    filter: Filter,
    number: usize,
    step: Step,
    go_on: GoOn<'_>,
) -> Option<(Factors, f64, f64)> {
    let centre = if step == Step::Solve { means(x, w) } else { vec![0.0; w] };
    let shifted: Vec<f64> = x.iter().enumerate().map(|(c, v)| v - centre[c % w]).collect(); // [n, w]
    let (values, vectors) = singular(&shifted, w, go_on)?;
    let kept = filter.kept(number, &values);
    let factors = Factors { centre, directions: vectors[..kept.len() * w].to_vec(), kept, ridge: RIDGE };
    let smoother = factors.smoother(go_on)?; // [w, w]
    let filled = match step {
        Step::Smooth => product(&shifted, &smoother, w, w, go_on)?, // [n, w]
        Step::Solve => {
            let mut filled = x.to_vec(); // [n, w]
            factors.fill_rows(&smoother, &mut filled, observed, go_on)?;
            filled
        }
    };
    let (mut old, mut change) = (0.0, 0.0);
    for ((cell, &seen), new) in x.iter_mut().zip(observed).zip(filled) {
        if !seen {
            old += *cell * *cell;
            change += (new - *cell).powi(2);
            *cell = new;
        }
    }
    Some((factors, old, change))
}

/// The mean of each column.
fn means(x: &[f64], w: usize) -> Vec<f64> {
    let mut sums = vec![0.0; w];
    x.chunks_exact(w).for_each(|row| add(&mut sums, row));
    let n = (x.len() / w).max(1) as f64;
    sums.iter().map(|s| s / n).collect()
}

impl Factors {
    /// The same, with new rows solved under another ridge.
    pub(crate) fn with_ridge(self, ridge: f64) -> Factors {
        Factors { ridge, ..self }
    }

    /// How many directions there are.
    pub(crate) fn rank(&self) -> usize {
        self.kept.len()
    }

    /// `P`, `[w, w]`.
    fn smoother(&self, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        let w = self.centre.len();
        let mut scaled = self.directions.clone(); // [r, w]
        for (direction, kept) in scaled.chunks_exact_mut(w).zip(&self.kept) {
            direction.iter_mut().for_each(|v| *v *= kept);
        }
        if self.kept.is_empty() { Some(vec![0.0; w * w]) } else { cross(&scaled, w, &self.directions, w, go_on) }
    }

    /// Fills rows, each by itself. None where it was told to stop.
    fn fill_rows(&self, smoother: &[f64], x: &mut [f64], observed: &[bool], go_on: GoOn<'_>) -> Option<()> {
        let w = self.centre.len();
        x.par_chunks_mut(64 * w).zip(observed.par_chunks(64 * w)).for_each(|(x, observed)| {
            let rows = x.chunks_exact_mut(w).zip(observed.chunks_exact(w));
            rows.for_each(|(row, observed)| self.fill_row(smoother, row, observed, go_on));
        });
        go_on().then_some(())
    }

    /// Fills one row with the fixed point of the smoothing: the missing part `m` solves
    /// `((1 + ridge) I - P_mm) x_m = P_mo x_o`.
    fn fill_row(&self, smoother: &[f64], row: &mut [f64], observed: &[bool], go_on: GoOn<'_>) {
        let w = row.len();
        let missing: Vec<usize> = (0..w).filter(|&f| !observed[f]).collect();
        if missing.is_empty() || !go_on() {
            return;
        }
        let shifted: Vec<f64> = (0..w).map(|f| if observed[f] { row[f] - self.centre[f] } else { 0.0 }).collect();
        let right: Vec<f64> = missing.iter().map(|&f| dot(&smoother[f * w..(f + 1) * w], &shifted)).collect();
        let mut ridge = self.ridge;
        let prediction = loop {
            let mut left = Vec::with_capacity(missing.len() * missing.len());
            for &f in &missing {
                left.extend(missing.iter().map(|&g| f64::from(u8::from(f == g)) * (1.0 + ridge) - smoother[f * w + g]));
            }
            if cholesky(&mut left, missing.len(), go_on) {
                let mut prediction = right.clone();
                solve_cholesky(&left, &mut prediction);
                break prediction;
            }
            ridge = 10.0 * ridge.max(1e-12);
            if !ridge.is_finite() || !go_on() {
                break vec![0.0; missing.len()];
            }
        };
        for (&f, a) in missing.iter().zip(prediction) {
            row[f] = a + self.centre[f];
        }
    }
}

/// What of [`Factors`] is not a tensor.
#[derive(Serialize, Deserialize)]
struct State {
    ridge: f64,
}

impl MatrixModel for Factors {
    fn predict(&self, rows: &mut Encoded, _: Want, run: &Run) -> Result<Option<Vec<Distributions>>> {
        let w = self.centre.len();
        let go_on = || !run.cancel().is_cancelled();
        let smoother = run.install(|| self.smoother(&go_on)).unwrap_or_default(); // [w, w]
        let batches = rows.x.chunks_mut(ROWS_AT_ONCE * w).zip(rows.observed.chunks(ROWS_AT_ONCE * w));
        for (x, observed) in batches {
            run.check()?;
            run.install(|| self.fill_rows(&smoother, x, observed, &go_on));
        }
        run.check()?;
        Ok(None)
    }

    fn store(&self, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        let (r, w) = (self.kept.len(), self.centre.len());
        tensors.insert("centre".to_owned(), Tensor::F64(vec![w], self.centre.clone()));
        tensors.insert("directions".to_owned(), Tensor::F64(vec![r, w], self.directions.clone()));
        tensors.insert("kept".to_owned(), Tensor::F64(vec![r], self.kept.clone()));
        serde_json::json!(State { ridge: self.ridge })
    }

    fn restore(file: &ModelFile, width: usize) -> Result<Factors> {
        let State { ridge } = file.state()?;
        let (centre_shape, centre) = file.f64s("centre")?;
        let (directions_shape, directions) = file.f64s("directions")?;
        let (kept_shape, kept) = file.f64s("kept")?;
        let shapes_fit =
            centre_shape == [width] && directions_shape == [kept.len(), width] && kept_shape == [kept.len()];
        if !shapes_fit {
            return Err(Error::damaged(format!(
                "directions of {directions_shape:?}: expected {} of {width} features",
                kept.len()
            )));
        }
        let finite = |v: &[f64]| v.iter().all(|v| v.is_finite());
        if !finite(centre) || !finite(directions) || !finite(kept) || !ridge.is_finite() {
            return Err(Error::damaged("a direction is not finite"));
        }
        Ok(Factors { centre: centre.to_vec(), directions: directions.to_vec(), kept: kept.to_vec(), ridge })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_learners::linalg::ALWAYS;

    #[test]
    fn a_matrix_of_one_direction_is_completed() {
        // Rows are multiples of (1, 2); the last one lacks its second number.
        let mut x = [1.0, 2.0, 2.0, 4.0, 3.0, 0.0];
        let observed = [true, true, true, true, true, false];
        let run = Run::new(0, 1).unwrap();
        let plan = Iteration { step: Step::Smooth, tolerance: 1e-9, passes: 1000, kept: None };
        let smoothed = smooth(&mut x, &observed, 2, Filter::Doubling(1), plan, &run).unwrap();
        assert!((x[5] - 6.0).abs() < 1e-5, "{}", x[5]);
        assert!(smoothed.not_converged.is_none());
        let mut row = [5.0, f64::NAN];
        let smoother = smoothed.factors.smoother(ALWAYS).unwrap();
        smoothed.factors.fill_row(&smoother, &mut row, &[true, false], ALWAYS);
        assert!((row[1] - 10.0).abs() < 1e-3);
    }

    #[test]
    fn solving_rows_reaches_where_smoothing_goes_in_fewer_passes() {
        // Columns whose means stay at zero whatever the missing cells get: every row comes with its opposite.
        let start = [1.0, -1.1, -1.0, 1.1, 2.0, -2.0, -2.0, 2.0, -3.0, 0.0, 3.0, 0.0]; // [6, 2]
        let observed = [true, true, true, true, true, true, true, true, true, false, true, false];
        let run = Run::new(0, 1).unwrap();
        let reach = |step| {
            let mut x = start;
            let plan = Iteration { step, tolerance: 1e-10, passes: 10_000, kept: None };
            let passes = smooth(&mut x, &observed, 2, Filter::Soft(0.5), plan, &run).unwrap().passes;
            (x[9], passes)
        };
        let ((smoothed, many), (solved, few)) = (reach(Step::Smooth), reach(Step::Solve));
        assert!((smoothed - solved).abs() < 1e-4 && smoothed > 1.5, "{smoothed} {solved}");
        assert!(few < many, "{few} {many}");
    }

    #[test]
    fn filters_keep_what_they_say() {
        let singular = [4.0, 2.0, 1.0];
        assert_eq!(Filter::Doubling(3).kept(0, &singular), [1.0]);
        assert_eq!(Filter::Doubling(3).kept(2, &singular), [1.0, 1.0, 1.0]);
        assert_eq!(Filter::Regularised(2).kept(0, &singular), [15.0 / 16.0, 3.0 / 4.0]);
        assert_eq!(Filter::Soft(2.0).kept(0, &singular), [0.5]);
    }

    #[test]
    fn a_spent_or_short_run_says_why_it_did_not_settle() {
        let run = Run::new(0, 1).unwrap();
        let mut x = [1.0, 2.0, 2.0, 4.0, 3.0, 0.0];
        let observed = [true, true, true, true, true, false];
        let plan = Iteration { step: Step::Solve, tolerance: 0.0, passes: 1, kept: None };
        let smoothed = smooth(&mut x, &observed, 2, Filter::Soft(0.1), plan, &run).unwrap();
        assert_eq!(smoothed.not_converged, Some(NotConverged::Passes));
        let before = x;
        let spent = Run::new(0, 1).unwrap().within(Duration::ZERO);
        let plan = Iteration { passes: 9, kept: Some(Duration::ZERO), ..plan };
        let smoothed = smooth(&mut x, &observed, 2, Filter::Soft(0.1), plan, &spent).unwrap();
        assert_eq!((smoothed.not_converged, smoothed.passes, x), (Some(NotConverged::Time), 0, before));
    }
}
