//! A Gaussian mixture of numbers with latent classes of levels, learnt from observed cells alone.
//!
//! Nothing that is filled misleads it; with a few hundred rows, and where rows fall into groups, it is hard to beat. There
//! are two: one takes numbers as they are, the other by their normal scores (a Gaussian copula).

use super::{Asked, Context, FittedFolds, FittedRowMember, Predicted, RowMember, Section};
use crate::columns::Columns;
use crate::folds::Fold;
use m3impute_core::{Error, Result, Run, Tensor, sample_rows};
use m3impute_gnn::network::Grid;
use m3impute_learners::Response;
use m3impute_learners::mixture::{Conditional, Mixture};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// How numbers are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transform {
    /// Standardised.
    Standard,
    /// By their normal scores: each column is made normal by its ranks.
    NormalScores,
}

/// The member.
#[derive(Debug)]
pub struct Mixtures {
    key: &'static str,
    transform: Transform,
    number: u64,
}

/// Numbers as they are.
pub static PLAIN: Mixtures = Mixtures { key: "mixture", transform: Transform::Standard, number: 0 };
/// Numbers by their normal scores.
pub static NORMAL_SCORES: Mixtures =
    Mixtures { key: "mixture_normal_scores", transform: Transform::NormalScores, number: 1 };
/// How many of them there are, which share streams of random numbers.
const TRANSFORMS: u64 = 2;

/// Numbers of components; the predictions of all are averaged, so that none needs to be chosen.
const COMPONENTS: [usize; 2] = [3, 6];
/// Tables with more columns have too many covariances.
const MOST_COLUMNS: usize = 100;
/// Rows that a mixture is learnt from, at most.
const ROWS: usize = 1000;
/// Knots of a transform, at most.
const KNOTS: usize = 64;
/// Halvings of the stretch in which a median lies.
const HALVINGS: usize = 20;

/// Mixtures of several numbers of components.
#[derive(Debug)]
struct FittedMixtures {
    responses: Vec<Response>,
    /// How the numbers of each column are taken, `[m]`.
    scales: Vec<Monotone>,
    /// One for each number of components.
    mixtures: Vec<Mixture>,
}

/// A rising function that runs straight between knots, and stays where it is beyond them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Monotone {
    /// Values of the column; none for a category.
    from: Vec<f32>,
    /// What they become.
    to: Vec<f32>,
}

impl Monotone {
    /// Of the values of a column.
    fn of(mut values: Vec<f32>, transform: Transform) -> Monotone {
        values.sort_by(f32::total_cmp);
        let n = values.len();
        let (Some(&low), Some(&high)) = (values.first(), values.last()) else { return Monotone::default() };
        match transform {
            Transform::Standard => {
                let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n as f64;
                let square = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n as f64;
                let scaled = |v: f32| ((f64::from(v) - mean) / square.sqrt().max(1e-6)) as f32;
                if low == high {
                    return Monotone { from: vec![low], to: vec![0.0] };
                }
                Monotone { from: vec![low, high], to: vec![scaled(low), scaled(high)] }
            }
            Transform::NormalScores => {
                let (mut from, mut to) = (Vec::new(), Vec::new());
                let steps = KNOTS.min(n) - 1;
                for k in 0..=steps {
                    let value = values[(k * (n - 1)).checked_div(steps).unwrap_or(0)];
                    if from.last() == Some(&value) {
                        continue;
                    }
                    // Equal values have the rank in their middle.
                    let below = values.partition_point(|v| *v < value);
                    let not_above = values.partition_point(|v| *v <= value);
                    from.push(value);
                    to.push(normal_quantile((below + not_above) as f64 / (2 * n) as f64) as f32);
                }
                Monotone { from, to }
            }
        }
    }

    /// What a value becomes.
    fn apply(&self, value: f32) -> f64 {
        along(&self.from, &self.to, value)
    }

    /// The value that becomes this.
    fn invert(&self, value: f64) -> f32 {
        along(&self.to, &self.from, value as f32) as f32
    }

    /// Whether what came from a file can be used: rising, and empty for a category alone.
    fn is_sound(&self, response: &Response) -> bool {
        let rising = |v: &[f32]| v.iter().all(|x| x.is_finite()) && v.windows(2).all(|w| w[0] < w[1]);
        self.from.is_empty() != response.is_number()
            && self.from.len() == self.to.len()
            && rising(&self.from)
            && rising(&self.to)
    }
}

fn along(from: &[f32], to: &[f32], x: f32) -> f64 {
    let after = from.partition_point(|k| *k <= x);
    if after == 0 || after == from.len() {
        return f64::from(to[after.min(from.len() - 1)]);
    }
    let share = f64::from((x - from[after - 1]) / (from[after] - from[after - 1]));
    f64::from(to[after - 1]) + share * f64::from(to[after] - to[after - 1])
}

impl RowMember for Mixtures {
    fn name(&self) -> &'static str {
        "mixture"
    }

    fn key(&self) -> &'static str {
        self.key
    }

    fn initial(&self) -> Option<f64> {
        Some(1.0)
    }

    fn is_possible(&self, _: usize, context: Context<'_>) -> bool {
        context.budget.is_enough_for_mixtures && (2..=MOST_COLUMNS).contains(&context.columns.len())
    }

    fn fit(&self, folds: &[&Fold], _: &[Predicted], context: Context<'_>) -> Result<FittedFolds> {
        let run = context.run;
        let kept = run.time_left().map(|left| left.mul_f64(1.0 - TIME_SHARE));
        let go_on = || run.check().is_ok() && !run.is_down_to(kept);
        let fit = |(k, fold): (usize, &&Fold)| {
            let index = k as u64 * TRANSFORMS + self.number;
            let fitted = FittedMixtures::fit(&fold.grid, context.columns, self.transform, (run, index), &go_on);
            fitted.map(|fitted| Box::new(fitted) as Box<dyn FittedRowMember>)
        };
        let models = run.install(|| folds.par_iter().enumerate().map(fit).collect());
        run.check()?;
        Ok(FittedFolds { models, ..FittedFolds::default() })
    }

    fn restore(&self, section: &Section<'_>, columns: &Columns) -> Result<Box<dyn FittedRowMember>> {
        let Section { file, prefix, state } = *section;
        let scales: Vec<Monotone> =
            Vec::deserialize(state).map_err(|e| Error::damaged(format!("the mixture `{}`: {e}", self.key)))?;
        let sound = |(scale, response): (&Monotone, &Response)| scale.is_sound(response);
        if scales.len() != columns.len() || !scales.iter().zip(&columns.responses).all(sound) {
            return Err(Error::damaged(format!("the scales of the mixture `{}`", self.key)));
        }
        let levels = columns.tree_levels();
        let restore = |k: usize| Mixture::restore(file, &format!("{prefix}{k}."), &levels);
        let mixtures = (0..COMPONENTS.len()).map(restore).collect::<Result<_>>()?;
        Ok(Box::new(FittedMixtures { responses: columns.responses.clone(), scales, mixtures }))
    }
}

/// The share of what is left of a limited time that learning a mixture may take.
const TIME_SHARE: f64 = 0.16;

impl FittedMixtures {
    /// Learns from the observed cells of a table, while `go_on` says yes; none of a few rows, or where nothing of a column
    /// was observed.
    fn fit(
        grid: &Grid,
        columns: &Columns,
        transform: Transform,
        (run, index): (&Run, u64),
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<FittedMixtures> {
        let m = grid.m;
        let scale = |(f, response): (usize, &Response)| {
            if response.is_number() { Monotone::of(grid.values(f), transform) } else { Monotone::default() }
        };
        let scales: Vec<Monotone> = columns.responses.iter().enumerate().map(scale).collect();
        // Rows that show nothing teach nothing.
        let shows = |i: u32| grid.observed[i as usize * m..(i as usize + 1) * m].contains(&true);
        let full: Vec<u32> = (0..grid.n as u32).filter(|&i| shows(i)).collect();
        let is_seen = |f: usize| (0..grid.n).any(|i| grid.observed[i * m + f]);
        if full.len() < COMPONENTS[COMPONENTS.len() - 1] * 4 || !(0..m).all(is_seen) {
            return None;
        }
        let some = sample_rows(full.len(), ROWS, &mut run.rng("mixture rows", index));
        let rows: Vec<u32> = some.iter().map(|&k| full[k as usize]).collect();
        let x: Vec<f64> = rows.iter().flat_map(|&i| scaled_row(&scales, grid, i as usize)).collect();
        let observed: Vec<bool> =
            rows.iter().flat_map(|&i| grid.observed[i as usize * m..(i as usize + 1) * m].iter().copied()).collect();
        let levels = columns.tree_levels();
        let fit = |(which, &count): (usize, &usize)| {
            let number = index * COMPONENTS.len() as u64 + which as u64;
            let starts = sample_rows(rows.len(), count, &mut run.rng("mixture centres", number));
            Mixture::fit(&x, &observed, &levels, &starts, go_on)
        };
        let mixtures = COMPONENTS.iter().enumerate().map(fit).collect();
        Some(FittedMixtures { responses: columns.responses.clone(), scales, mixtures })
    }
}

impl FittedRowMember for FittedMixtures {
    fn predict(&self, asked: &Asked<'_>, run: &Run) -> Result<Predicted> {
        let Asked { grid, cells: asked, .. } = *asked;
        let m = grid.m;
        // Between the values of a column with a few.
        let edges: Vec<Vec<f64>> = self.responses.iter().zip(&self.scales).map(|(r, scale)| edges(r, scale)).collect();
        let rows: Vec<Vec<Vec<f32>>> = run.install(|| {
            (0..grid.n)
                .into_par_iter()
                .map(|i| {
                    let cells = i * m..(i + 1) * m;
                    if !asked[cells.clone()].contains(&true) {
                        return Vec::new();
                    }
                    let row = scaled_row(&self.scales, grid, i);
                    let of = |mixture: &Mixture| mixture.condition(&row, &grid.observed[cells.clone()]).components;
                    let all: Vec<Vec<Conditional>> = self.mixtures.iter().map(of).collect();
                    let prediction = |f: usize| self.prediction(&all, f, &edges[f], self.missing_number(grid, i, f));
                    (0..m).filter(|f| asked[i * m + f]).map(prediction).collect()
                })
                .collect()
        });
        run.check()?;
        let mut predicted = vec![Vec::new(); m];
        for (i, row) in rows.into_iter().enumerate() {
            for (f, prediction) in (0..m).filter(|f| asked[i * m + f]).zip(row) {
                predicted[f].extend(prediction);
            }
        }
        Ok(vec![predicted])
    }

    fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        for (k, mixture) in self.mixtures.iter().enumerate() {
            mixture.store(&format!("{prefix}{k}."), tensors);
        }
        serde_json::to_value(&self.scales).unwrap_or_default()
    }
}

impl FittedMixtures {
    /// Which of the numbers that a row does not show is in column `f`.
    fn missing_number(&self, grid: &Grid, i: usize, f: usize) -> usize {
        (0..f).filter(|&j| self.responses[j].is_number() && !grid.observed[i * grid.m + j]).count()
    }

    fn prediction(&self, all: &[Vec<Conditional>], f: usize, edges: &[f64], missing: usize) -> Vec<f32> {
        let response = &self.responses[f];
        let share = |part: &Conditional| part.share / all.len() as f64;
        if !response.is_number() {
            let mut shares = vec![0.0_f64; response.classes()];
            for (mixture, parts) in self.mixtures.iter().zip(all) {
                for part in parts {
                    let levels = mixture.level_shares(part, f);
                    shares.iter_mut().zip(levels).for_each(|(s, level)| *s += share(part) * level);
                }
            }
            let total: f64 = shares.iter().sum();
            return shares.iter().map(|s| (s / total) as f32).collect();
        }
        let parts: Vec<(f64, f64, f64)> =
            (all.iter().flatten()).map(|p| (share(p), p.means[missing], p.spread(missing).max(1e-6))).collect();
        let below = |x: f64| parts.iter().map(|(share, mean, off)| share * normal((x - mean) / off)).sum::<f64>();
        if *response != Response::Number {
            let mut last = 0.0;
            let shares = edges.iter().map(|&edge| below(edge)).chain([1.0]).map(|b| {
                let share = (b - last).max(0.0);
                last = b;
                share as f32
            });
            return shares.collect();
        }
        // The median lies between the means, for below each of them lies half of its own.
        let mut low = parts.iter().map(|part| part.1).fold(f64::INFINITY, f64::min);
        let mut high = parts.iter().map(|part| part.1).fold(f64::NEG_INFINITY, f64::max);
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            if below(middle) < 0.5 { low = middle } else { high = middle }
        }
        let median = (low + high) / 2.0;
        let square: f64 = parts.iter().map(|(share, mean, off)| share * (off * off + (mean - median).powi(2))).sum();
        let off = square.sqrt();
        let scale = &self.scales[f];
        vec![scale.invert(median), (scale.invert(median + off) - scale.invert(median - off)) / 2.0]
    }
}

fn scaled_row(scales: &[Monotone], grid: &Grid, i: usize) -> Vec<f64> {
    let row = &grid.x[i * grid.m..(i + 1) * grid.m];
    row.iter()
        .zip(scales)
        .map(|(&v, scale)| if scale.from.is_empty() { f64::from(v) } else { scale.apply(v) })
        .collect()
}

fn edges(response: &Response, scale: &Monotone) -> Vec<f64> {
    match response {
        Response::Values(values) => values.windows(2).map(|w| scale.apply((w[0] + w[1]) / 2.0)).collect(),
        _ => Vec::new(),
    }
}

/// The share of the normal distribution below `z`, within two ten-thousandths.
fn normal(z: f64) -> f64 {
    1.0 / (1.0 + (-z * (1.597_6 + 0.070_56 * z * z)).exp())
}

/// The `z` below which this share of the normal distribution lies.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-6.0, 6.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if normal(middle) < share { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transform_is_undone_and_never_leaves_what_was_observed() {
        let values: Vec<f32> = (0..200).map(|i| (i as f32 / 100.0).exp()).collect();
        for transform in [Transform::Standard, Transform::NormalScores] {
            let scale = Monotone::of(values.clone(), transform);
            for value in [1.0, 1.5, 3.0, 7.0] {
                assert!((scale.invert(scale.apply(value)) - value).abs() < 1e-4, "{value} {transform:?}");
            }
            assert_eq!((scale.invert(-9.0), scale.invert(9.0)), (values[0], values[199]));
            assert!(scale.is_sound(&Response::Number));
        }
        let scores = Monotone::of(values, Transform::NormalScores);
        assert!((scores.apply(std::f32::consts::E)).abs() < 0.02, "the median is in the middle");
    }

    #[test]
    fn quantiles_of_the_normal_distribution_are_about_right() {
        for (share, z) in [(0.5, 0.0), (0.841_34, 1.0), (0.05, -1.644_85), (0.977_25, 2.0)] {
            assert!((normal_quantile(share) - z).abs() < 4e-3, "{share}");
            assert!((normal(z) - share).abs() < 2e-4, "{share}");
        }
    }
}
