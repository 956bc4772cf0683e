//! Whom to believe: opinions on held-out cells, and weights that make them agree best with the truth.

use super::columns::Column;
use rayon::prelude::*;

/// How often a candidate is taken in; the weights are multiples of one over it.
const PICKS: usize = 16;

/// How many halves of the cells choose.
const HALVES: usize = 16;
/// Candidates that are believed less are not asked.
const LEAST: f32 = 0.03;

/// The mean of some numbers, and how far it may be off: its standard error.
pub fn mean_and_error(x: &[f64]) -> (f64, f64) {
    let n = x.len().max(1) as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    (mean, (variance / n).sqrt())
}

/// Whom held-out cells believe.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The weight of each candidate.
    pub weights: Vec<f32>,
    /// The error of the mixture in each cell, by the halves that it had no part in.
    pub errors: Vec<f64>,
}

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
        let said = self.said.get(candidate)?;
        let width = column.opinion_width();
        if said.is_empty() || said.len() != self.truth.len() * width {
            return None;
        }
        let total: f64 = said.chunks_exact(width).zip(&self.truth).map(|(o, &t)| column.error(o, t)).sum();
        Some(total / self.truth.len() as f64)
    }

    /// The opinions of a mixture, cell by cell.
    pub fn mixed(&self, column: &Column, weights: &[f32]) -> Vec<f32> {
        let mut sum = vec![0.0; self.truth.len() * column.opinion_width()];
        for (said, &weight) in self.said.iter().zip(weights).filter(|(_, w)| **w > 0.0) {
            sum.iter_mut().zip(said).for_each(|(s, said)| *s += weight * said);
        }
        sum
    }

    /// The error of a mixture in each cell.
    pub fn errors(&self, column: &Column, weights: &[f32]) -> Vec<f64> {
        let mixed = self.mixed(column, weights);
        mixed.chunks_exact(column.opinion_width()).zip(&self.truth).map(|(o, &t)| column.error(o, t)).collect()
    }

    /// How much to believe each candidate: the mean of what halves of the cells choose, because what all of them choose
    /// once is chosen by luck where they are few.
    pub fn chosen(&self, column: &Column) -> Chosen {
        let width = column.opinion_width();
        let halves: Vec<Vec<f32>> = (0..HALVES)
            .into_par_iter()
            .map(|half| self.cells(width, |i| is_in(i, half)).greedy_weights(column))
            .collect();
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
        let error = |i: usize| {
            // A cell that is in all halves had a part in all choices.
            let others = if (0..HALVES).all(|half| is_in(i, half)) { weights.clone() } else { mean(&|h| !is_in(i, h)) };
            let mut mixed = vec![0.0; width];
            for (said, weight) in self.said.iter().zip(others).filter(|(_, w)| *w > 0.0) {
                mixed.iter_mut().zip(&said[i * width..]).for_each(|(m, said)| *m += weight * said);
            }
            column.error(&mixed, self.truth[i])
        };
        let errors = (0..self.truth.len()).map(error).collect();
        Chosen { weights, errors }
    }

    /// The same for some of the cells.
    fn cells(&self, width: usize, keep: impl Fn(usize) -> bool) -> Heard {
        let of = |cells: &[f32], width: usize| {
            let kept = cells.chunks_exact(width).enumerate().filter(|(i, _)| keep(*i));
            kept.flat_map(|(_, cell)| cell.iter().copied()).collect()
        };
        Heard { truth: of(&self.truth, 1), said: self.said.iter().map(|said| of(said, width)).collect() }
    }

    /// The weights that all cells choose: those of the best candidate first, then again and again of the one that helps
    /// most.
    fn greedy_weights(&self, column: &Column) -> Vec<f32> {
        let width = column.opinion_width();
        let able: Vec<usize> = (0..self.said.len()).filter(|&c| self.error(column, c).is_some()).collect();
        let mut counts = vec![0_usize; self.said.len()];
        let mut sum = vec![0.0_f32; self.truth.len() * width];
        let mut best: (f64, Vec<usize>) = (f64::INFINITY, counts.clone());
        for pick in 0..PICKS {
            let share = 1.0 / (pick + 1) as f32;
            let error = |c: usize| -> f64 {
                let mut mixed = vec![0.0; width];
                let mut total = 0.0;
                for (i, &truth) in self.truth.iter().enumerate() {
                    let cells = i * width..(i + 1) * width;
                    for ((mixed, sum), said) in mixed.iter_mut().zip(&sum[cells.clone()]).zip(&self.said[c][cells]) {
                        *mixed = (sum + said) * share;
                    }
                    total += column.error(&mixed, truth);
                }
                total / self.truth.len().max(1) as f64
            };
            let Some((c, e)) = able.iter().map(|&c| (c, error(c))).min_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            counts[c] += 1;
            sum.iter_mut().zip(&self.said[c]).for_each(|(s, said)| *s += said);
            if e < best.0 {
                best = (e, counts.clone());
            }
        }
        let total = best.1.iter().sum::<usize>().max(1) as f32;
        best.1.iter().map(|&c| c as f32 / total).collect()
    }
}

/// Whether a cell is in a half of them, as if by the throw of a coin.
fn is_in(cell: usize, half: usize) -> bool {
    // The finaliser of SplitMix64.
    let mut x = ((cell * HALVES + half) as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) & 1 == 1
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
        let Chosen { weights, .. } = heard.chosen(&column());
        assert_eq!(weights, [0.5, 0.5, 0.0, 0.0]);
        assert!(mean_and_error(&heard.errors(&column(), &weights)).0 < 1e-6);
        assert_eq!(heard.error(&column(), 3), None);
        assert!((heard.mixed(&column(), &weights)[0] - truth[0]).abs() < 1e-6);
    }

    #[test]
    fn many_candidates_that_are_believed_a_little_each_still_make_a_whole() {
        // Each of a hundred is right in one cell alone.
        let truth: Vec<f32> = (0..100).map(|i| i as f32 / 100.0).collect();
        let said =
            |knows: usize| (0..100).flat_map(|i| [if i == knows { truth[i] } else { 2.0 }, 0.1]).collect::<Vec<f32>>();
        let heard = Heard { said: (0..100).map(said).collect(), truth: truth.clone() };
        let Chosen { weights, errors } = heard.chosen(&column());
        assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{weights:?}");
        assert!(errors.iter().all(|e| e.is_finite()));
    }

    #[test]
    fn what_is_chosen_by_luck_is_measured_on_other_cells() {
        // Each of twenty candidates is right in the one cell in twenty that it happens to know, and wrong elsewhere.
        let truth = vec![0.5_f32; 20];
        let said = |lucky: usize| (0..20).flat_map(|i| [if i == lucky { 0.5 } else { 0.1 }, 0.1]).collect::<Vec<f32>>();
        let heard = Heard { said: (0..20).map(said).collect(), truth };
        let Chosen { weights, errors } = heard.chosen(&column());
        let (chosen, _) = mean_and_error(&heard.errors(&column(), &weights));
        let (honest, _) = mean_and_error(&errors);
        assert!(chosen < 0.3805 && honest > 0.395, "{chosen} {honest}");
    }
}
