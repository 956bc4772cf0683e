//! Whom to believe: opinions on held-out cells, and weights that make them agree best with the truth.

use super::columns::Column;
use m3impute_core::RandomStream;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How often a candidate is taken in; the weights are multiples of one over it.
const PICKS: usize = 16;

/// How many halves of the cells choose.
const HALVES: usize = 16;
/// So many cells of those like it are worth as much to a column as its own.
const LIKENESS: f32 = 50.0;
/// Candidates that are believed less are not asked.
const LEAST: f32 = 0.06;

/// The mean of some numbers, and how far it may be off: its standard error.
pub fn mean_and_error(x: &[f64]) -> (f64, f64) {
    let n = x.len().max(1) as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    (mean, (variance / n).sqrt())
}

/// How points become one. Shares of answers are always added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manner {
    /// By their mean, in which errors cancel out.
    Mean,
    /// By their median, which keeps a value that many of them name, where those are the same again and again.
    Median,
}

/// What several say of the same cells of a column, each with its weight, as one opinion of each cell.
pub fn mixture(column: &Column, manner: Manner, parts: &[(f32, &[f32])]) -> Vec<f32> {
    let cells = parts.first().map_or(0, |(_, said)| said.len());
    let mut mixed = vec![0.0; cells];
    for (weight, said) in parts {
        mixed.iter_mut().zip(*said).for_each(|(m, said)| *m += weight * said);
    }
    // Where somebody has nothing to say, the others make up for it.
    let total: f32 = parts.iter().map(|(weight, _)| weight).sum();
    if total < 0.99 {
        mixed.iter_mut().for_each(|m| *m /= total);
    }
    if manner == Manner::Median && !column.has_shares() {
        let mut points = Vec::with_capacity(parts.len());
        for (i, mixed) in mixed.chunks_exact_mut(column.opinion_width()).enumerate() {
            points.clear();
            points.extend(parts.iter().map(|(weight, said)| (said[i * column.opinion_width()], *weight)));
            mixed[0] = weighted_median(&mut points);
        }
    }
    mixed
}

/// The value below and above which lies half of the weight; between two values that share it, their middle.
fn weighted_median(points: &mut [(f32, f32)]) -> f32 {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = points.iter().map(|p| p.1).sum::<f32>() / 2.0;
    let mut below = 0.0;
    for (i, (point, weight)) in points.iter().enumerate() {
        below += weight;
        if (below - half).abs() < 1e-4 * half {
            let next = points.get(i + 1).map_or(*point, |next| next.0);
            return (point + next) / 2.0;
        }
        if below > half {
            return *point;
        }
    }
    points.last().map_or(0.0, |last| last.0)
}

/// Whom held-out cells believe.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The weight of each candidate.
    pub weights: Vec<f32>,
    /// How what they say becomes one.
    pub manner: Manner,
    /// What the mixture says of each cell, by the halves that it had no part in.
    pub said: Vec<f32>,
}

impl Chosen {
    /// Half of this, and half of other weights, with what those say of each cell.
    pub fn half_and(&self, weights: &[f32], said: &[f32]) -> Chosen {
        let half = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a + b) / 2.0).collect();
        Chosen { weights: half(&self.weights, weights), manner: self.manner, said: half(&self.said, said) }
    }
}

/// How wrong an opinion of a column is, given the truth.
pub type Measure = fn(&Column, &[f32], f32) -> f64;

/// The opinions of several candidates on the held-out cells of one column.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// What was in the cells.
    pub truth: Vec<f32>,
    /// What each candidate said; empty where it said nothing.
    pub said: Vec<Vec<f32>>,
}

impl Heard {
    /// The mean error of one candidate.
    pub fn error(&self, column: &Column, candidate: usize) -> Option<f64> {
        self.mean_of(column, candidate, Column::error)
    }

    /// The mean loss of one candidate.
    pub fn loss(&self, column: &Column, candidate: usize) -> Option<f64> {
        self.mean_of(column, candidate, Column::loss)
    }

    fn mean_of(&self, column: &Column, candidate: usize, of: Measure) -> Option<f64> {
        let said = self.said.get(candidate).filter(|said| !said.is_empty() && self.is_whole(column, said))?;
        Some(self.measured(column, said, of).iter().sum::<f64>() / self.truth.len() as f64)
    }

    /// Whether something was said of every cell.
    fn is_whole(&self, column: &Column, said: &[f32]) -> bool {
        said.len() == self.truth.len() * column.opinion_width()
    }

    /// How wrong opinions are, cell by cell.
    pub fn measured(&self, column: &Column, said: &[f32], of: Measure) -> Vec<f64> {
        said.chunks_exact(column.opinion_width()).zip(&self.truth).map(|(o, &t)| of(column, o, t)).collect()
    }

    /// The opinions of a mixture, cell by cell.
    pub fn mixed(&self, column: &Column, manner: Manner, weights: &[f32]) -> Vec<f32> {
        mixture(column, manner, &self.parts(column, weights, 0..self.truth.len()))
    }

    /// What those who are believed say of some cells, with their weights; those who said something of every cell.
    fn parts(&self, column: &Column, weights: &[f32], cells: std::ops::Range<usize>) -> Vec<(f32, &[f32])> {
        let places = cells.start * column.opinion_width()..cells.end * column.opinion_width();
        let believed = self.said.iter().zip(weights).filter(|(said, w)| **w > 0.0 && self.is_whole(column, said));
        believed.map(|(said, &weight)| (weight, &said[places.clone()])).collect()
    }

    /// The same for some of the cells.
    fn cells(&self, width: usize, keep: impl Fn(usize) -> bool) -> Heard {
        let of = |cells: &[f32], width: usize| {
            let kept = cells.chunks_exact(width).enumerate().filter(|(i, _)| keep(*i));
            kept.flat_map(|(_, cell)| cell.iter().copied()).collect()
        };
        Heard { truth: of(&self.truth, 1), said: self.said.iter().map(|said| of(said, width)).collect() }
    }

    /// The mean of what halves of the cells chose, mixed in each manner that there is for the column.
    fn by_halves(&self, column: &Column, halves: &[Vec<f32>]) -> Vec<Chosen> {
        let mean = |of: &dyn Fn(usize) -> bool| {
            let mut sum = vec![0.0; self.said.len()];
            let taken: Vec<&Vec<f32>> = halves.iter().enumerate().filter(|(h, _)| of(*h)).map(|(_, w)| w).collect();
            for weights in &taken {
                sum.iter_mut().zip(*weights).for_each(|(s, w)| *s += w / taken.len() as f32);
            }
            // Hardly any belief is not worth the time of an answer.
            let most = sum.iter().copied().fold(0.0, f32::max);
            sum.iter_mut().filter(|s| **s < LEAST.min(most)).for_each(|s| *s = 0.0);
            let total = sum.iter().sum::<f32>().max(f32::MIN_POSITIVE);
            sum.iter_mut().for_each(|s| *s /= total);
            sum
        };
        let weights = mean(&|_| true);
        let manners: &[Manner] = if column.has_shares() { &[Manner::Mean] } else { &[Manner::Mean, Manner::Median] };
        let chosen = |&manner: &Manner| Chosen { weights: weights.clone(), manner, said: Vec::new() };
        let mut all: Vec<Chosen> = manners.iter().map(chosen).collect();
        for i in 0..self.truth.len() {
            // A cell that is in all halves had a part in all choices.
            let others = if (0..HALVES).all(|half| is_in(i, half)) { weights.clone() } else { mean(&|h| !is_in(i, h)) };
            let parts = self.parts(column, &others, i..i + 1);
            for chosen in &mut all {
                chosen.said.extend(mixture(column, chosen.manner, &parts));
            }
        }
        all
    }

    /// Who says something.
    fn able(&self, column: &Column) -> Vec<usize> {
        (0..self.said.len()).filter(|&c| self.loss(column, c).is_some()).collect()
    }
}

/// A column, and what was heard of it.
type Asked<'a> = (&'a Column, &'a Heard);

/// How much to believe each candidate in each column: the mean of what halves of the cells choose, because what all of them
/// choose once is chosen by luck where they are few. For the same reason a column listens to those like it. Of each column
/// the mixture in each manner, the mean first.
pub fn chosen(asked: &[Asked]) -> Vec<Vec<Chosen>> {
    let able: Vec<Vec<usize>> = asked.iter().map(|(column, heard)| heard.able(column)).collect();
    // Columns are alike if the same candidates say something of them.
    let groups: BTreeSet<&Vec<usize>> = able.iter().collect();
    let jobs: Vec<(&Vec<usize>, usize)> =
        groups.into_iter().flat_map(|g| (0..HALVES).map(move |half| (g, half))).collect();
    let found: Vec<(Vec<usize>, Vec<Vec<f32>>)> = jobs
        .into_par_iter()
        .map(|(group, half)| {
            let of: Vec<usize> = (0..asked.len()).filter(|&f| able[f] == *group).collect();
            let cells = |&f: &usize| asked[f].1.cells(asked[f].0.opinion_width(), |i| is_in(i, half));
            let heard: Vec<Heard> = of.iter().map(cells).collect();
            let some: Vec<Asked> = of.iter().zip(&heard).map(|(&f, heard)| (asked[f].0, heard)).collect();
            let together = greedy_weights(&some, group);
            let weights = some.iter().map(|one| {
                let own =
                    if some.len() > 1 { greedy_weights(std::slice::from_ref(one), group) } else { together.clone() };
                let likeness = LIKENESS / (LIKENESS + one.1.truth.len() as f32);
                own.iter().zip(&together).map(|(own, all)| own + likeness * (all - own)).collect()
            });
            (of.clone(), weights.collect())
        })
        .collect();
    let mut halves: Vec<Vec<Vec<f32>>> = vec![Vec::new(); asked.len()];
    for (of, weights) in found {
        of.into_iter().zip(weights).for_each(|(f, weights)| halves[f].push(weights));
    }
    asked.par_iter().zip(halves).map(|((column, heard), halves)| heard.by_halves(column, &halves)).collect()
}

/// The weights that the cells of some columns choose, among those who are able: those of the best candidate first, then
/// again and again of the one that helps most. A column's losses count by those of its first candidate.
fn greedy_weights(asked: &[Asked], able: &[usize]) -> Vec<f32> {
    let candidates = asked.iter().map(|(_, heard)| heard.said.len()).max().unwrap_or(0);
    let units: Vec<f64> = (asked.iter())
        .map(|(column, heard)| {
            let typical = able.first().and_then(|&c| heard.loss(column, c)).unwrap_or(1.0);
            1.0 / typical.max(1e-9)
        })
        .collect();
    let mut counts = vec![0_usize; candidates];
    let mut sums: Vec<Vec<f32>> =
        asked.iter().map(|(column, heard)| vec![0.0; heard.truth.len() * column.opinion_width()]).collect();
    let mut best: (f64, Vec<usize>) = (f64::INFINITY, counts.clone());
    for pick in 0..PICKS {
        let share = 1.0 / (pick + 1) as f32;
        let loss = |c: usize| -> f64 {
            let mut total = 0.0;
            for (((column, heard), sum), unit) in asked.iter().zip(&sums).zip(&units) {
                let width = column.opinion_width();
                let mut mixed = vec![0.0; width];
                for (i, &truth) in heard.truth.iter().enumerate() {
                    let cells = i * width..(i + 1) * width;
                    for ((mixed, sum), said) in mixed.iter_mut().zip(&sum[cells.clone()]).zip(&heard.said[c][cells]) {
                        *mixed = (sum + said) * share;
                    }
                    total += unit * column.loss(&mixed, truth);
                }
            }
            total
        };
        let Some((c, e)) = able.iter().map(|&c| (c, loss(c))).min_by(|a, b| a.1.total_cmp(&b.1)) else { break };
        counts[c] += 1;
        for ((_, heard), sum) in asked.iter().zip(&mut sums) {
            sum.iter_mut().zip(&heard.said[c]).for_each(|(s, said)| *s += said);
        }
        if e < best.0 {
            best = (e, counts.clone());
        }
    }
    let total = best.1.iter().sum::<usize>().max(1) as f32;
    best.1.iter().map(|&c| c as f32 / total).collect()
}

/// Whether a cell is in a half of them, as if by the throw of a coin.
fn is_in(cell: usize, half: usize) -> bool {
    RandomStream::new((cell * HALVES + half) as u64).next_u32() & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::encode::Meaning;

    fn column() -> Column {
        let values: Vec<f32> = (0..200).map(|v| v as f32 / 200.0).collect();
        Column::of(&values, Meaning::Number, (8, 8))
    }

    #[test]
    fn errors_that_cancel_out_are_mixed_and_a_bad_opinion_is_left_out() {
        let truth: Vec<f32> = (0..40).map(|i| i as f32 / 40.0).collect();
        let said = |shift: f32| truth.iter().flat_map(|t| [t + shift, 0.1]).collect::<Vec<f32>>();
        let heard = Heard { said: vec![said(0.1), said(-0.1), said(0.9), Vec::new()], truth: truth.clone() };
        let Chosen { weights, .. } = chosen(&[(&column(), &heard)]).remove(0).remove(0);
        assert_eq!(weights, [0.5, 0.5, 0.0, 0.0]);
        let mixed = heard.mixed(&column(), Manner::Mean, &weights);
        assert!(mean_and_error(&heard.measured(&column(), &mixed, Column::error)).0 < 1e-6);
        assert_eq!(heard.error(&column(), 3), None);
        assert!((heard.mixed(&column(), Manner::Mean, &weights)[0] - truth[0]).abs() < 1e-6);
    }

    #[test]
    fn a_median_keeps_the_value_that_most_of_the_weight_names_and_a_mean_does_not() {
        let said: [[f32; 4]; 3] = [[0.0, 0.1, 0.2, 0.1], [0.0, 0.3, 0.4, 0.1], [0.8, 0.1, 0.6, 0.1]];
        let of = |weights: [f32; 3], manner: Manner| {
            let parts: Vec<(f32, &[f32])> = weights.into_iter().zip(said.iter().map(|s| &s[..])).collect();
            mixture(&column(), manner, &parts)
        };
        let close = |a: Vec<f32>, b: [f32; 4]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(close(of([0.5, 0.25, 0.25], Manner::Mean), [0.2, 0.15, 0.35, 0.1]));
        // Half of the weight lies at 0.2 or below: between it and the next. Spreads are those of the mean.
        assert!(close(of([0.5, 0.25, 0.25], Manner::Median), [0.0, 0.15, 0.3, 0.1]));
        assert!(close(of([0.25, 0.25, 0.5], Manner::Median), [0.4, 0.15, 0.5, 0.1]));
        assert!(close(of([0.125, 0.25, 0.625], Manner::Median), [0.8, 0.15, 0.6, 0.1]));
    }

    #[test]
    fn others_make_up_for_those_who_have_nothing_to_say() {
        let heard = Heard { truth: vec![0.5; 2], said: vec![vec![0.4, 0.1, 0.6, 0.1], vec![0.9, 0.1], Vec::new()] };
        let mixed = heard.mixed(&column(), Manner::Mean, &[0.5, 0.25, 0.25]);
        assert_eq!(mixed, [0.4, 0.1, 0.6, 0.1]);
    }

    #[test]
    fn shares_have_no_median() {
        let values: Vec<f32> = (0..100).map(|i| f32::from(u8::from(i % 2 == 0))).collect();
        let few = Column::of(&values, Meaning::Number, (4, 8));
        let parts: [(f32, &[f32]); 2] = [(0.75, &[0.5, 0.5]), (0.25, &[1.0, 0.0])];
        assert_eq!(mixture(&few, Manner::Median, &parts), [0.625, 0.375]);
        let heard = Heard { truth: vec![0.0; 40], said: vec![[0.5, 0.5].repeat(40), [1.0, 0.0].repeat(40)] };
        assert_eq!(chosen(&[(&few, &heard)])[0].len(), 1);
        let truth: Vec<f32> = (0..40).map(|i| i as f32 / 40.0).collect();
        let heard = Heard { said: vec![truth.iter().flat_map(|t| [*t, 0.1]).collect()], truth };
        let manners: Vec<Manner> = chosen(&[(&column(), &heard)])[0].iter().map(|c| c.manner).collect();
        assert_eq!(manners, [Manner::Mean, Manner::Median]);
    }

    #[test]
    fn half_of_a_choice_leaves_the_other_half_to_others() {
        let chosen = Chosen { weights: vec![0.0, 1.0], manner: Manner::Mean, said: vec![0.75, 0.25] };
        let half = chosen.half_and(&[1.0, 0.0], &[0.25, 0.25]);
        assert_eq!((half.weights, half.said), (vec![0.5, 0.5], vec![0.5, 0.25]));
    }

    #[test]
    fn many_candidates_that_are_believed_a_little_each_still_make_a_whole() {
        // Each of a hundred is right in one cell alone.
        let truth: Vec<f32> = (0..100).map(|i| i as f32 / 100.0).collect();
        let said =
            |knows: usize| (0..100).flat_map(|i| [if i == knows { truth[i] } else { 2.0 }, 0.1]).collect::<Vec<f32>>();
        let heard = Heard { said: (0..100).map(said).collect(), truth: truth.clone() };
        let Chosen { weights, said, .. } = chosen(&[(&column(), &heard)]).remove(0).remove(0);
        assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{weights:?}");
        assert!(said.iter().all(|e| e.is_finite()));
    }

    #[test]
    fn what_is_chosen_by_luck_is_measured_on_other_cells() {
        // Each of twenty candidates is right in the one cell in twenty that it happens to know, and wrong elsewhere.
        let truth = vec![0.5_f32; 20];
        let said = |lucky: usize| (0..20).flat_map(|i| [if i == lucky { 0.5 } else { 0.1 }, 0.1]).collect::<Vec<f32>>();
        let heard = Heard { said: (0..20).map(said).collect(), truth };
        let Chosen { weights, said, .. } = chosen(&[(&column(), &heard)]).remove(0).remove(0);
        let error = |said: &[f32]| mean_and_error(&heard.measured(&column(), said, Column::error)).0;
        let (chosen, honest) = (error(&heard.mixed(&column(), Manner::Mean, &weights)), error(&said));
        assert!(chosen < 0.3805 && honest > 0.395, "{chosen} {honest}");
    }
}
