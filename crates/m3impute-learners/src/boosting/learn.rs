//! The rounds of boosting: slopes of the loss, a tree for each output, and when to stop.

use super::grow::{Branch, Grown, Limits, grow};
use super::inputs::{BoostingTask, Prepared};
use super::{Boosting, BoostingParams, Loss};
use crate::softmax::softmax;
use crate::tree::Target;
use m3impute_core::{RandomStream, Result, Run};
use rayon::prelude::*;

/// The part of the loss by which a round must better it to be worth keeping.
const LEAST_GAIN: f64 = 1e-7;

/// The rows to learn from, and those to watch.
pub(super) fn parted(task: &BoostingTask<'_>, params: &BoostingParams, rng: &mut RandomStream) -> (Vec<u32>, Vec<u32>) {
    if params.patience.is_none() || !task.watch.is_empty() {
        return (task.rows.to_vec(), task.watch.to_vec());
    }
    let mut rows = task.rows.to_vec();
    let watched = (rows.len() as f32 * params.watched) as usize;
    rng.shuffle_front(&mut rows, watched);
    let mut watch: Vec<u32> = rows.drain(..watched).collect();
    rows.sort_unstable();
    watch.sort_unstable();
    (rows, watch)
}

pub(super) fn sigmoid(score: f64) -> f64 {
    1.0 / (1.0 + (-score).exp())
}

/// A model while it is learnt.
pub(super) struct Learning<'a> {
    target: Target<'a>,
    weights: Option<&'a [f32]>,
    params: &'a BoostingParams,
    prepared: &'a Prepared<'a>,
    rows: Vec<u32>,
    watch: Vec<u32>,
    /// The predictions so far, for every row of the table, of each output, `[outputs][n]`.
    scores: Vec<Vec<f32>>,
    /// Slope and curvature of every row, of each output, `[outputs][n]`.
    pulls: Vec<Vec<[f32; 2]>>,
    pub model: Boosting,
}

impl<'a> Learning<'a> {
    pub fn start(
        task: &BoostingTask<'a>,
        params: &'a BoostingParams,
        prepared: &'a Prepared<'a>,
        rows: Vec<u32>,
        watch: Vec<u32>,
    ) -> Learning<'a> {
        let weight = |i: u32| task.weights.map_or(1.0, |w| f64::from(w[i as usize]));
        let (n, classes, base) = match task.target {
            Target::Numbers(y) => {
                let values: Vec<(f32, f64)> = rows.iter().map(|&i| (y[i as usize], weight(i))).collect();
                let base = if params.loss == Loss::Absolute { median(values) } else { mean(&values) };
                (y.len(), 0, vec![base])
            }
            Target::Classes(y, classes) => {
                // As if each class had been seen once more than it was.
                let mut counts = vec![1.0; classes];
                rows.iter().for_each(|&i| counts[y[i as usize] as usize] += weight(i));
                let base = if classes == 2 {
                    vec![f64::ln(counts[1] / counts[0]) as f32]
                } else {
                    let total: f64 = counts.iter().sum();
                    counts.iter().map(|c| (c / total).ln() as f32).collect()
                };
                (y.len(), classes, base)
            }
        };
        Learning {
            target: task.target,
            weights: task.weights,
            params,
            prepared,
            rows,
            watch,
            scores: base.iter().map(|&b| vec![b; n]).collect(),
            pulls: base.iter().map(|_| vec![[0.0; 2]; n]).collect(),
            model: Boosting {
                classes,
                base,
                orders: prepared.orders.clone(),
                roots: Vec::new(),
                nodes: Vec::new(),
                curve: Vec::new(),
                watched_loss: 0.0,
            },
        }
    }

    fn weight(&self, i: u32) -> f32 {
        self.weights.map_or(1.0, |w| w[i as usize])
    }

    pub fn go(&mut self, run: &Run, rng: &mut RandomStream) -> Result<()> {
        let params = self.params;
        let watches = params.patience.is_some() && !self.watch.is_empty();
        let mut best = (f64::INFINITY, 0);
        if watches {
            best.0 = self.loss();
            self.model.curve.push(best.0);
        }
        let limits = Limits {
            max_leaves: params.max_leaves,
            max_depth: params.max_depth,
            min_leaf: params.min_leaf,
            l2: params.l2,
        };
        let p = self.prepared.features.len();
        let most = ((p as f32 * params.features).ceil() as usize).clamp(1, p.max(1));
        for round in 1..=params.rounds {
            run.check()?;
            if run.is_spent() || p == 0 || self.rows.is_empty() {
                break;
            }
            let rows: Vec<u32> = if params.rows < 1.0 {
                self.rows.iter().copied().filter(|_| rng.unit() < params.rows).collect()
            } else {
                self.rows.clone()
            };
            let mut used: Vec<usize> = (0..p).collect();
            rng.shuffle_front(&mut used, most);
            used.truncate(most);
            used.sort_unstable();
            self.pull();
            let (prepared, cancel) = (self.prepared, run.cancel());
            let grown: Vec<Grown> = if self.pulls.len() == 1 {
                vec![grow(prepared, &self.pulls[0], rows, &used, &limits, cancel)?]
            } else {
                let grown = self.pulls.par_iter();
                grown.map(|pulls| grow(prepared, pulls, rows.clone(), &used, &limits, cancel)).collect::<Result<_>>()?
            };
            for (output, grown) in grown.iter().enumerate() {
                let values = self.leaf_values(grown, output);
                self.move_scores(grown, &values, output);
                self.model.plant(grown, &values, prepared);
            }
            if watches {
                let loss = self.loss();
                self.model.curve.push(loss);
                if loss < best.0 - LEAST_GAIN * best.0.abs() {
                    best = (loss, round);
                } else if params.patience.is_some_and(|patience| round - best.1 >= patience) {
                    break;
                }
            }
        }
        if watches {
            self.model.truncate(best.1);
        }
        Ok(())
    }

    /// Slope and curvature of the loss for every row that is learnt from.
    fn pull(&mut self) {
        let weight = |i: u32| self.weights.map_or(1.0, |w: &[f32]| w[i as usize]);
        match self.target {
            Target::Numbers(y) => {
                let scores = &self.scores[0];
                let rest = |i: u32| y[i as usize] - scores[i as usize];
                // Cuts follow the rests, but beyond nine tenths of them only their sign: by the bare sign trees learn
                // slowly, and by the rests alone they follow outliers.
                let large = match self.params.loss {
                    Loss::Squared => None,
                    Loss::Absolute => {
                        let mut sizes: Vec<f32> = self.rows.iter().map(|&i| rest(i).abs()).collect();
                        let at = sizes.len() * 9 / 10;
                        Some(*sizes.select_nth_unstable_by(at, f32::total_cmp).1)
                    }
                };
                for &i in &self.rows {
                    let rest = rest(i);
                    let slope = match large {
                        None => rest,
                        Some(large) if rest.abs() < large => rest / large,
                        Some(_) if rest == 0.0 => 0.0,
                        Some(_) => rest.signum(),
                    };
                    self.pulls[0][i as usize] = [slope * weight(i), weight(i)];
                }
            }
            Target::Classes(y, 2) => {
                for &i in &self.rows {
                    let at = i as usize;
                    let chance = sigmoid(f64::from(self.scores[0][at])) as f32;
                    let slope = (y[at] as f32 - chance) * weight(i);
                    self.pulls[0][at] = [slope, (chance * (1.0 - chance)).max(1e-6) * weight(i)];
                }
            }
            Target::Classes(y, classes) => {
                let mut chances = vec![0.0; classes];
                for &i in &self.rows {
                    let at = i as usize;
                    chances.iter_mut().zip(&self.scores).for_each(|(c, s)| *c = f64::from(s[at]));
                    softmax(&mut chances);
                    for (class, &chance) in chances.iter().enumerate() {
                        let slope = f64::from(u8::from(y[at] as usize == class)) - chance;
                        // All classes move at once: a step of half the size is as long as it may be.
                        let curve = (2.0 * chance * (1.0 - chance)).max(1e-6);
                        self.pulls[class][at] = [slope as f32 * weight(i), curve as f32 * weight(i)];
                    }
                }
            }
        }
    }

    /// What each leaf adds; 0 for branches that are no leaves.
    fn leaf_values(&self, grown: &Grown, output: usize) -> Vec<f32> {
        let (rate, l2) = (self.params.rate, self.params.l2);
        let value = |branch: &Branch| -> f32 {
            // A tree without a cut has learnt nothing but which rows it saw.
            if branch.fork.is_some() || grown.branches.len() == 1 {
                return 0.0;
            }
            if let (Target::Numbers(y), Loss::Absolute) = (self.target, self.params.loss) {
                let rests: Vec<(f32, f64)> = grown.rows[branch.from..branch.to]
                    .iter()
                    .map(|&i| (y[i as usize] - self.scores[output][i as usize], f64::from(self.weight(i))))
                    .collect();
                let weight = branch.sums.curve;
                return rate * median(rests) * (weight / (weight + l2).max(1e-12)) as f32;
            }
            rate * (branch.sums.slope / (branch.sums.curve + l2).max(1e-12)) as f32
        };
        grown.branches.iter().map(value).collect()
    }

    fn move_scores(&mut self, grown: &Grown, values: &[f32], output: usize) {
        let scores = &mut self.scores[output];
        if self.params.rows < 1.0 {
            for &i in &self.rows {
                scores[i as usize] += values[grown.leaf(self.prepared, i as usize)];
            }
        } else {
            for (branch, &value) in grown.branches.iter().zip(values).filter(|(b, _)| b.fork.is_none()) {
                grown.rows[branch.from..branch.to].iter().for_each(|&i| scores[i as usize] += value);
            }
        }
        for &i in &self.watch {
            scores[i as usize] += values[grown.leaf(self.prepared, i as usize)];
        }
    }

    /// The mean loss on the watched rows.
    fn loss(&self) -> f64 {
        let (mut sum, mut total) = (0.0, 0.0);
        let mut scores = vec![0.0; self.scores.len()];
        for &i in &self.watch {
            let at = i as usize;
            let loss = match self.target {
                Target::Numbers(y) => {
                    let rest = f64::from(y[at] - self.scores[0][at]);
                    if self.params.loss == Loss::Absolute { rest.abs() } else { rest * rest }
                }
                Target::Classes(y, 2) => {
                    let score = f64::from(self.scores[0][at]);
                    (if y[at] == 1 { -score } else { score }).exp().ln_1p()
                }
                Target::Classes(y, _) => {
                    scores.iter_mut().zip(&self.scores).for_each(|(c, s)| *c = f64::from(s[at]));
                    let own = scores[y[at] as usize];
                    softmax(&mut scores) - own
                }
            };
            let weight = f64::from(self.weight(i));
            sum += weight * loss;
            total += weight;
        }
        sum / total.max(1e-12)
    }
}

fn mean(values: &[(f32, f64)]) -> f32 {
    let (sum, weight) = values.iter().fold((0.0, 0.0), |(s, w), &(v, weight)| (s + f64::from(v) * weight, w + weight));
    if weight > 0.0 { (sum / weight) as f32 } else { 0.0 }
}

/// The weighted median: half of the weight lies on either side.
fn median(mut values: Vec<(f32, f64)>) -> f32 {
    if values.is_empty() {
        return 0.0;
    }
    let first = values[0].1;
    if values.iter().all(|v| v.1 == first) {
        let middle = values.len() / 2;
        let even = values.len().is_multiple_of(2);
        let (below, &mut (high, _), _) = values.select_nth_unstable_by(middle, |a, b| a.0.total_cmp(&b.0));
        return if even {
            let low = below.iter().map(|v| v.0).fold(f32::NEG_INFINITY, f32::max);
            low + (high - low) / 2.0
        } else {
            high
        };
    }
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|v| v.1).sum::<f64>() / 2.0;
    let mut below = 0.0;
    for &(value, weight) in &values {
        below += weight;
        if below >= half {
            return value;
        }
    }
    values[values.len() - 1].0
}
