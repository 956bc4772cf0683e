//! Bagged greedy ensemble selection (Caruana et al., 2004): weights of candidates from their out-of-fold predictions.
//!
//! On each of several random half-samples of the held-out cells, candidates are added one at a time, with replacement,
//! whichever lowers the loss most; the weights are averaged over the half-samples. Where a column has few held-out cells,
//! its weights are shrunk towards those of similar columns.

use crate::model::Purpose;
use crate::predictions::{Aggregation, OutOfFold, aggregate, draw_loss, gain_in_errors, loss};
use m3impute_core::RandomStream;
use m3impute_learners::Response;
use rayon::prelude::*;
use std::collections::BTreeSet;

/// How often a candidate is added; weights are multiples of one over it.
const ROUNDS: usize = 16;
/// How many half-samples of the cells select.
const HALF_SAMPLES: usize = 16;
/// So many cells of similar columns are worth as much to a column as its own.
const SHRINKAGE_CELLS: f32 = 50.0;
/// Smaller weights are set to zero: they are not worth the time of a prediction.
const MIN_WEIGHT: f32 = 0.06;
/// With fewer held-out cells in a column there is nothing to select by.
pub const MIN_CELLS: usize = 12;

/// An ensemble that was selected for a column.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The weight of each candidate.
    pub weights: Vec<f32>,
    /// How their points are combined.
    pub aggregation: Aggregation,
    /// The ensemble's prediction of each held-out cell, with the weights of the half-samples without it.
    pub predicted: Vec<f32>,
}

impl Selection {
    /// The mean of this and other weights, and of their predictions.
    fn half_and(&self, weights: &[f32], predicted: &[f32]) -> Selection {
        let half = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a + b) / 2.0).collect();
        let (weights, predicted) = (half(&self.weights, weights), half(&self.predicted, predicted));
        Selection { weights, aggregation: self.aggregation, predicted }
    }
}

/// A column and its out-of-fold predictions.
type Cells<'a> = (&'a Response, &'a OutOfFold);

/// A selection compared with the baseline on the held-out cells of a column.
struct Compared {
    selection: Selection,
    /// Its losses, cell by cell.
    losses: Vec<f64>,
    /// Its mean gain over the baseline, in standard errors.
    gain: f64,
}

impl Compared {
    fn new(selection: Selection, (response, cells): Cells, baseline: usize) -> Compared {
        let plain = cells.measured(response, &cells.predictions[baseline], loss);
        let losses = cells.measured(response, &selection.predicted, loss);
        let gain = gain_in_errors(&plain, &losses);
        Compared { selection, losses, gain }
    }
}

/// The ensemble of each column: the selection if it beats the `baseline` candidate by a standard error, else half of it
/// if that does, else the baseline. A column with too few held-out cells gets its `unproven` weights.
///
/// To draw from, the selection is taken without the baseline, whatever it gains: where a column depends on others but
/// little, its baseline is as good a point, but draws of it would lose what dependence there is.
pub fn select(
    columns: &[Cells],
    baseline: usize,
    purpose: Purpose,
    unproven: impl Fn(usize) -> Vec<f32>,
) -> Vec<Selection> {
    let candidates = columns.first().map_or(0, |(_, cells)| cells.predictions.len());
    let only_baseline: Vec<f32> = (0..candidates).map(|c| f32::from(u8::from(c == baseline))).collect();
    let is_enough = |cells: &OutOfFold| cells.truth.len() >= MIN_CELLS;
    let enough: Vec<Cells> = columns.iter().copied().filter(|(_, cells)| is_enough(cells)).collect();
    let mut selected = selections(&enough, purpose, baseline).into_iter();
    // Of each column with enough cells, the ensemble by each aggregation, the mean first.
    let compared: Vec<Vec<Compared>> = (columns.iter())
        .map(|&(response, cells)| {
            let selections = if is_enough(cells) { selected.next().expect("one for each") } else { Vec::new() };
            selections.into_iter().map(|s| Compared::new(s, (response, cells), baseline)).collect()
        })
        .collect();
    let is_learnt = is_anything_learnt(&compared.iter().filter_map(|c| Some(c.first()?.gain)).collect::<Vec<f64>>());
    let choose = |(f, compared): (usize, Vec<Compared>)| {
        let (response, cells) = columns[f];
        // One standard error; half of the ensemble may reach it where all of it does not.
        let is_sure = |c: &Compared| purpose != Purpose::Fill || (is_learnt && c.gain > 1.0);
        let weights = if compared.is_empty() { unproven(f) } else { only_baseline.clone() };
        let half = compared.first().map(|mean| mean.selection.half_and(&only_baseline, &cells.predictions[baseline]));
        // The median has to beat the mean by a standard error, too.
        let is_better =
            |a: &Compared, b: &Compared| purpose == Purpose::Fill && gain_in_errors(&a.losses, &b.losses) > 1.0;
        let whole = compared.into_iter().filter(is_sure).reduce(|a, b| if is_better(&a, &b) { b } else { a });
        let half = || half.map(|half| Compared::new(half, (response, cells), baseline)).filter(is_sure);
        match whole.or_else(half) {
            Some(compared) => compared.selection,
            None => {
                let predicted = cells.ensemble(response, Aggregation::Mean, &weights);
                Selection { weights, aggregation: Aggregation::Mean, predicted }
            }
        }
    };
    compared.into_iter().enumerate().map(choose).collect()
}

/// Whether gains over the baseline, in standard errors, are significant: among many columns some gain a little by
/// chance even where columns are independent. Tests the largest gain, and the sum of all.
pub fn is_anything_learnt(gains: &[f64]) -> bool {
    let count = gains.len() as f64;
    let together = gains.iter().sum::<f64>() / count.max(1.0).sqrt();
    // At a level of 5 % each, the largest by the bound exp(-z^2 / 2) / 2 on the upper tail.
    gains.is_empty() || together > 1.645 || gains.iter().any(|&z| z > (2.0 * (10.0 * count).ln()).sqrt())
}

/// The ensemble of each column by each aggregation, the mean first.
fn selections(columns: &[Cells], purpose: Purpose, baseline: usize) -> Vec<Vec<Selection>> {
    let able = |(response, cells): &Cells| {
        let mut able = cells.able(response);
        if purpose != Purpose::Fill && able.len() > 1 {
            able.retain(|&c| c != baseline);
        }
        able
    };
    let able: Vec<Vec<usize>> = columns.iter().map(able).collect();
    // Columns are similar if the same candidates predict them.
    let groups: BTreeSet<&Vec<usize>> = able.iter().collect();
    let jobs: Vec<(&Vec<usize>, usize)> =
        groups.into_iter().flat_map(|g| (0..HALF_SAMPLES).map(move |half| (g, half))).collect();
    let found: Vec<(Vec<usize>, Vec<Vec<f32>>)> = jobs
        .into_par_iter()
        .map(|(group, half)| {
            let of: Vec<usize> = (0..columns.len()).filter(|&f| able[f] == *group).collect();
            let some = |&f: &usize| columns[f].1.in_rows(columns[f].0, |row| is_in(row, half));
            let cells: Vec<OutOfFold> = of.iter().map(some).collect();
            let some: Vec<Cells> = of.iter().zip(&cells).map(|(&f, cells)| (columns[f].0, cells)).collect();
            let together = greedy_weights(&some, group, purpose);
            let weights = some.iter().map(|one| {
                let own = if some.len() > 1 {
                    greedy_weights(std::slice::from_ref(one), group, purpose)
                } else {
                    together.clone()
                };
                let shrinkage = SHRINKAGE_CELLS / (SHRINKAGE_CELLS + one.1.truth.len() as f32);
                own.iter().zip(&together).map(|(own, all)| own + shrinkage * (all - own)).collect()
            });
            (of.clone(), weights.collect())
        })
        .collect();
    let mut halves: Vec<Vec<Vec<f32>>> = vec![Vec::new(); columns.len()];
    for (of, weights) in found {
        of.into_iter().zip(weights).for_each(|(f, weights)| halves[f].push(weights));
    }
    columns.par_iter().zip(halves).map(|(&cells, halves)| averaged(cells, &halves)).collect()
}

/// The mean of the weights that half-samples selected, by each aggregation that there is for the column. Each cell is
/// predicted by the half-samples without it.
fn averaged((response, cells): Cells, halves: &[Vec<f32>]) -> Vec<Selection> {
    let mean = |of: &dyn Fn(usize) -> bool| {
        let mut sum = vec![0.0; cells.predictions.len()];
        let taken: Vec<&Vec<f32>> = halves.iter().enumerate().filter(|(h, _)| of(*h)).map(|(_, w)| w).collect();
        for weights in &taken {
            sum.iter_mut().zip(*weights).for_each(|(s, w)| *s += w / taken.len() as f32);
        }
        let most = sum.iter().copied().fold(0.0, f32::max);
        sum.iter_mut().filter(|s| **s < MIN_WEIGHT.min(most)).for_each(|s| *s = 0.0);
        let total = sum.iter().sum::<f32>().max(f32::MIN_POSITIVE);
        sum.iter_mut().for_each(|s| *s /= total);
        sum
    };
    let weights = mean(&|_| true);
    let aggregations: &[Aggregation] =
        if *response == Response::Number { &[Aggregation::Mean, Aggregation::Median] } else { &[Aggregation::Mean] };
    let selection =
        |&aggregation: &Aggregation| Selection { weights: weights.clone(), aggregation, predicted: Vec::new() };
    let mut all: Vec<Selection> = aggregations.iter().map(selection).collect();
    for (i, &row) in cells.rows.iter().enumerate() {
        // A row in all half-samples has no weights without it.
        let others =
            if (0..HALF_SAMPLES).all(|half| is_in(row, half)) { weights.clone() } else { mean(&|h| !is_in(row, h)) };
        let parts = cells.parts(response, &others, i..i + 1);
        for selection in &mut all {
            selection.predicted.extend(aggregate(response, selection.aggregation, &parts));
        }
    }
    all
}

/// Greedy selection with replacement on the cells of some columns, among the candidates `able` to predict them. A
/// column's losses count in units of those of its first such candidate.
fn greedy_weights(columns: &[Cells], able: &[usize], purpose: Purpose) -> Vec<f32> {
    let loss = match purpose {
        Purpose::Fill => loss,
        Purpose::DrawFirst | Purpose::DrawNext => draw_loss,
    };
    let candidates = columns.iter().map(|(_, cells)| cells.predictions.len()).max().unwrap_or(0);
    let units: Vec<f64> = (columns.iter())
        .map(|(response, cells)| {
            let baseline = able.first().and_then(|&c| cells.mean_of(response, c, loss)).unwrap_or(1.0);
            1.0 / baseline.max(1e-9)
        })
        .collect();
    let mut counts = vec![0_usize; candidates];
    let mut sums: Vec<Vec<f32>> =
        columns.iter().map(|(response, cells)| vec![0.0; cells.truth.len() * response.width()]).collect();
    let mut best: (f64, Vec<usize>) = (f64::INFINITY, counts.clone());
    for round in 0..ROUNDS {
        let share = 1.0 / (round + 1) as f32;
        let loss_with = |c: usize| -> f64 {
            let mut total = 0.0;
            for (((response, cells), sum), unit) in columns.iter().zip(&sums).zip(&units) {
                let width = response.width();
                let mut all = vec![0.0; width];
                for (i, &truth) in cells.truth.iter().enumerate() {
                    let places = i * width..(i + 1) * width;
                    let predicted = &cells.predictions[c][places.clone()];
                    for ((all, sum), predicted) in all.iter_mut().zip(&sum[places]).zip(predicted) {
                        *all = (sum + predicted) * share;
                    }
                    total += unit * loss(response, &all, truth);
                }
            }
            total
        };
        let Some((c, e)) = able.iter().map(|&c| (c, loss_with(c))).min_by(|a, b| a.1.total_cmp(&b.1)) else { break };
        counts[c] += 1;
        for ((_, cells), sum) in columns.iter().zip(&mut sums) {
            sum.iter_mut().zip(&cells.predictions[c]).for_each(|(s, p)| *s += p);
        }
        if e < best.0 {
            best = (e, counts.clone());
        }
    }
    let total = best.1.iter().sum::<usize>().max(1) as f32;
    best.1.iter().map(|&c| c as f32 / total).collect()
}

/// Whether the cells of a row are in a half-sample, with probability one half. Rows are taken whole: the cells of one are
/// wrong together, and several folds may hold out the same one.
pub fn is_in(row: u32, half: usize) -> bool {
    RandomStream::new((row as usize * HALF_SAMPLES + half) as u64).next_u32() & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predictions::mean_and_error;

    const NUMBER: Response = Response::Number;

    fn first(cells: &OutOfFold) -> Selection {
        selections(&[(&NUMBER, cells)], Purpose::Fill, 99).remove(0).remove(0)
    }

    #[test]
    fn errors_that_cancel_out_are_mixed_and_a_bad_candidate_is_left_out() {
        let truth: Vec<f32> = (0..40).map(|i| i as f32 / 40.0).collect();
        let predicted = |shift: f32| truth.iter().flat_map(|t| [t + shift, 0.1]).collect::<Vec<f32>>();
        let predictions = vec![predicted(0.1), predicted(-0.1), predicted(0.9), Vec::new()];
        let cells = OutOfFold::in_separate_rows(truth, predictions);
        let Selection { weights, .. } = first(&cells);
        assert_eq!(weights, [0.5, 0.5, 0.0, 0.0]);
        let all = cells.ensemble(&NUMBER, Aggregation::Mean, &weights);
        assert!(mean_and_error(&cells.measured(&NUMBER, &all, Response::error)).0 < 1e-6);
        assert_eq!(cells.error(&NUMBER, 3), None);
    }

    #[test]
    fn numbers_have_two_aggregations_and_probabilities_one() {
        let few = Response::Values(vec![0.0, 1.0]);
        let predictions = vec![[0.5, 0.5].repeat(40), [1.0, 0.0].repeat(40)];
        let cells = OutOfFold::in_separate_rows(vec![0.0; 40], predictions);
        assert_eq!(selections(&[(&few, &cells)], Purpose::Fill, 99)[0].len(), 1);
        let truth: Vec<f32> = (0..40).map(|i| i as f32 / 40.0).collect();
        let cells = {
            let exact = truth.iter().flat_map(|t| [*t, 0.1]).collect();
            OutOfFold::in_separate_rows(truth, vec![exact])
        };
        let kinds: Vec<Aggregation> =
            selections(&[(&NUMBER, &cells)], Purpose::Fill, 99)[0].iter().map(|s| s.aggregation).collect();
        assert_eq!(kinds, [Aggregation::Mean, Aggregation::Median]);
    }

    #[test]
    fn half_of_a_selection_leaves_the_other_half_to_others() {
        let selection =
            Selection { weights: vec![0.0, 1.0], aggregation: Aggregation::Mean, predicted: vec![0.75, 0.25] };
        let half = selection.half_and(&[1.0, 0.0], &[0.25, 0.25]);
        assert_eq!((half.weights, half.predicted), (vec![0.5, 0.5], vec![0.5, 0.25]));
    }

    #[test]
    fn many_candidates_with_a_little_weight_each_still_make_a_whole() {
        // Each of a hundred is right in one cell alone.
        let truth: Vec<f32> = (0..100).map(|i| i as f32 / 100.0).collect();
        let predicted =
            |right: usize| (0..100).flat_map(|i| [if i == right { truth[i] } else { 2.0 }, 0.1]).collect::<Vec<f32>>();
        let cells = OutOfFold::in_separate_rows(truth.clone(), (0..100).map(predicted).collect());
        let Selection { weights, predicted, .. } = first(&cells);
        assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{weights:?}");
        assert!(predicted.iter().all(|e| e.is_finite()));
    }

    #[test]
    fn what_is_selected_by_luck_is_measured_on_other_cells() {
        // Each of twenty candidates is right in one cell of twenty by luck, and wrong elsewhere.
        let predicted =
            |lucky: usize| (0..20).flat_map(|i| [if i == lucky { 0.5 } else { 0.1 }, 0.1]).collect::<Vec<f32>>();
        let cells = OutOfFold::in_separate_rows(vec![0.5; 20], (0..20).map(predicted).collect());
        let Selection { weights, predicted, .. } = first(&cells);
        let error = |p: &[f32]| mean_and_error(&cells.measured(&NUMBER, p, Response::error)).0;
        let (selected, validated) = (error(&cells.ensemble(&NUMBER, Aggregation::Mean, &weights)), error(&predicted));
        assert!(selected < 0.3805 && validated > 0.395, "{selected} {validated}");
    }

    #[test]
    fn a_cell_that_several_folds_hold_out_is_measured_with_weights_that_saw_none_of_its_copies() {
        // Twelve candidates are right by luck in some of fifteen cells, each of which is held out four times.
        let is_right = |candidate: usize, cell: usize| is_in((candidate * 15 + cell) as u32, 1);
        let predicted = |candidate: usize| -> Vec<f32> {
            (0..60).flat_map(|i| [if is_right(candidate, i / 4) { 0.5 } else { 0.1 }, 0.1]).collect()
        };
        let mut cells = OutOfFold::in_separate_rows(vec![0.5; 60], (0..12).map(predicted).collect());
        let error =
            |cells: &OutOfFold| mean_and_error(&cells.measured(&NUMBER, &first(cells).predicted, Response::error)).0;
        let with_copies = error(&cells);
        cells.rows = (0..60).map(|i| i / 4).collect();
        let without = error(&cells);
        // On average a candidate is off by 0.2.
        assert!(with_copies < 0.17 && without > 0.19, "{with_copies} {without}");
    }

    #[test]
    fn small_gains_in_many_columns_are_not_significant() {
        assert!(!is_anything_learnt(&[1.2, -0.5, 0.3, 1.4, -1.0, 0.2, -0.4, 1.1]));
        assert!(is_anything_learnt(&[4.0, -1.0, -1.0, -1.0]), "one column with a significant gain");
        assert!(is_anything_learnt(&[1.2, 0.9, 1.1, 1.3]), "a small gain in every column");
        assert!(is_anything_learnt(&[]), "too few cells: the unproven weights are used");
    }

    #[test]
    fn a_column_with_too_few_cells_gets_its_unproven_weights() {
        let cells = OutOfFold::in_separate_rows(vec![0.5; 3], vec![[0.1, 0.1].repeat(3), [0.5, 0.1].repeat(3)]);
        let selection = select(&[(&NUMBER, &cells)], 0, Purpose::Fill, |_| vec![0.25, 0.75]).remove(0);
        assert_eq!(selection.weights, [0.25, 0.75]);
    }
}
