//! Validation errors of each column, and the weights of its ensemble, for reports.

use crate::model::{BASELINE, Candidate, ColumnModel, StackModel};
use crate::select::MIN_CELLS;
use m3impute_core::{SingleModel, ValidationScore};

/// The validation errors by feature, in shares of the observed range.
pub fn scores(model: &StackModel) -> Vec<ValidationScore> {
    let candidates = model.candidates();
    let of = |ColumnModel { validation, ensemble, .. }: &ColumnModel| {
        let alone = |c: usize| validation.candidates.get(c).copied().flatten();
        let single = |c: usize| Some(SingleModel { name: model.name(candidates[c]).to_owned(), error: alone(c)? });
        let best = (0..candidates.len()).filter(|&c| c != BASELINE).filter_map(single);
        ValidationScore {
            missing: validation.missing,
            cells: validation.cells,
            error: (validation.different >= MIN_CELLS).then_some(validation.ensemble),
            baseline: alone(BASELINE),
            accuracy: validation.accuracy.filter(|_| validation.different >= MIN_CELLS),
            baseline_accuracy: validation.baseline_accuracy,
            best: best.min_by(|a, b| a.error.total_cmp(&b.error)),
            ensemble: in_words(&named(model, &candidates, &ensemble.fill.weights)),
            coverage: validation.coverage,
            pattern: validation.pattern,
            held_out: validation.held_out.clone(),
        }
    };
    model.models.iter().map(of).collect()
}

/// The weight of each name, in the order of candidates.
fn named(model: &StackModel, candidates: &[Candidate], weights: &[f32]) -> Vec<(&'static str, f32)> {
    let mut shares: Vec<(&'static str, f32)> = Vec::new();
    for (&candidate, &weight) in candidates.iter().zip(weights).filter(|(_, w)| **w > 0.0) {
        let name = model.name(candidate);
        match shares.iter_mut().find(|(other, _)| *other == name) {
            Some((_, share)) => *share += weight,
            None => shares.push((name, weight)),
        }
    }
    shares
}

/// Weights in words, the largest first: `forest 60 %, network 40 %`.
fn in_words(shares: &[(&str, f32)]) -> String {
    let mut shares = shares.to_vec();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words: Vec<String> = shares.iter().map(|(name, share)| format!("{name} {:.0} %", 100.0 * share)).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_weight_comes_first() {
        let shares = [("network", 0.25), ("forest", 0.625), ("regression", 0.125)];
        assert_eq!(in_words(&shares), "forest 62 %, network 25 %, regression 12 %");
    }
}
