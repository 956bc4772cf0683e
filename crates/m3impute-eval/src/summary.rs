//! The rows summarised: the mean over repeats, best first.

use crate::evaluate::Row;
use serde::Serialize;
use std::cmp::Ordering;

/// The mean and the deviation over repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The sample deviation; none with a single repeat.
    pub deviation: Option<f64>,
}

/// The results of one candidate over all repeats.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The candidate's label.
    pub label: String,
    /// The key of its method.
    pub method: String,
    /// Its preset.
    pub preset: String,
    /// Its rank among the candidates without a failure, see [`summarise`]; none where it failed.
    pub rank: Option<f64>,
    /// How many repeats have a score.
    pub repeats: usize,
    /// How many repeats failed.
    pub failed: usize,
    /// The mean absolute error of numbers.
    pub mae: Option<Spread>,
    /// The root of the mean squared error of numbers.
    pub rmse: Option<Spread>,
    /// The share of hidden levels that are right.
    pub accuracy: Option<Spread>,
    /// The seconds that filling took.
    pub seconds: Option<Spread>,
    /// The most memory of any repeat.
    pub peak_bytes: Option<u64>,
    /// How many cells were filled in another way than requested, over all repeats.
    pub fallbacks: usize,
    /// The first failure.
    pub error: Option<String>,
}

/// Sums rows up, best candidate first.
///
/// Candidates are ranked by their mean MAE and by their mean accuracy, as far as the table has hidden numbers and
/// hidden levels; candidates that are equal share the mean of their ranks. The overall rank is the mean of the two. Of
/// equal candidates the one with the smaller MAE comes first, then the one with the larger accuracy, then the faster.
/// A candidate that failed in any repeat comes last and has no rank: it was measured on less.
pub fn summarise(rows: &[Row]) -> Vec<Summary> {
    let mut labels: Vec<&str> = Vec::new();
    for row in rows {
        if !labels.contains(&row.label.as_str()) {
            labels.push(&row.label);
        }
    }
    let of_label = |label: &&str| rows.iter().filter(|r| r.label == *label).collect::<Vec<_>>();
    let mut summaries: Vec<Summary> = labels.iter().map(|label| Summary::of(&of_label(label))).collect();
    rank(&mut summaries);
    let mean = |s: Option<Spread>| s.map_or(f64::INFINITY, |s| s.mean);
    summaries.sort_by(|a, b| {
        let by = |key: fn(&Summary) -> Option<f64>| {
            key(a).unwrap_or(f64::INFINITY).total_cmp(&key(b).unwrap_or(f64::INFINITY))
        };
        by(|s| s.rank)
            .then(by(|s| s.mae.map(|m| m.mean)))
            .then(by(|s| s.accuracy.map(|m| -m.mean)))
            .then(mean(a.seconds).total_cmp(&mean(b.seconds)))
    });
    summaries
}

impl Summary {
    /// Of the rows of one candidate; at least one.
    fn of(rows: &[&Row]) -> Summary {
        let scored: Vec<&Row> = rows.iter().copied().filter(|r| r.error.is_none()).collect();
        let over =
            |value: fn(&Row) -> Option<f64>| Spread::of(&scored.iter().filter_map(|r| value(r)).collect::<Vec<_>>());
        Summary {
            label: rows[0].label.clone(),
            method: rows[0].method.clone(),
            preset: rows[0].preset.clone(),
            rank: None,
            repeats: scored.len(),
            failed: rows.len() - scored.len(),
            mae: over(|r| r.mae),
            rmse: over(|r| r.rmse),
            accuracy: over(|r| r.accuracy),
            seconds: over(|r| Some(r.seconds)),
            peak_bytes: scored.iter().filter_map(|r| r.peak_bytes).max(),
            fallbacks: scored.iter().map(|r| r.fallbacks).sum(),
            error: rows.iter().find_map(|r| r.error.clone()),
        }
    }
}

impl Spread {
    fn of(values: &[f64]) -> Option<Spread> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let deviation = (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt());
        (!values.is_empty()).then_some(Spread { mean, deviation })
    }
}

/// Gives each candidate without a failure the mean of its ranks.
fn rank(summaries: &mut [Summary]) {
    // Small is good in both.
    let measures: [fn(&Summary) -> Option<f64>; 2] = [|s| s.mae.map(|m| m.mean), |s| s.accuracy.map(|m| -m.mean)];
    let of_measure = |measure: fn(&Summary) -> Option<f64>| -> Vec<Option<f64>> {
        let values: Vec<Option<f64>> = summaries.iter().map(|s| measure(s).filter(|_| s.failed == 0)).collect();
        let rank_of = |value: f64| {
            let count =
                |order: Ordering| values.iter().flatten().filter(|v| v.total_cmp(&value) == order).count() as f64;
            count(Ordering::Less) + (count(Ordering::Equal) + 1.0) / 2.0
        };
        values.iter().map(|v| v.map(rank_of)).collect()
    };
    let ranks = measures.map(of_measure);
    for (at, summary) in summaries.iter_mut().enumerate() {
        let own: Vec<f64> = ranks.iter().filter_map(|r| r[at]).collect();
        summary.rank = (!own.is_empty()).then(|| own.iter().sum::<f64>() / own.len() as f64);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row(label: &str, mae: Option<f64>, accuracy: Option<f64>) -> Row {
        Row {
            label: label.to_owned(),
            method: label.to_owned(),
            preset: "default".to_owned(),
            repeat: 1,
            seed: 0,
            cells: 10,
            mechanism: "mcar".to_owned(),
            rate: 0.3,
            mae,
            rmse: mae,
            accuracy,
            seconds: 1.0,
            peak_bytes: Some(3),
            fallbacks: 1,
            columns: Vec::new(),
            hidden_notes: Vec::new(),
            notes: Vec::new(),
            error: None,
        }
    }

    fn order(rows: &[Row]) -> Vec<(String, Option<f64>)> {
        summarise(rows).into_iter().map(|s| (s.label, s.rank)).collect()
    }

    #[test]
    fn repeats_become_a_mean_and_a_spread() {
        let rows = [row("a", Some(1.0), None), row("a", Some(3.0), None)];
        let summary = &summarise(&rows)[0];
        assert_eq!(summary.mae, Some(Spread { mean: 2.0, deviation: Some(2.0_f64.sqrt()) }));
        assert_eq!((summary.repeats, summary.accuracy, summary.fallbacks), (2, None, 2));
        assert_eq!(summarise(&rows[..1])[0].mae, Some(Spread { mean: 1.0, deviation: None }));
    }

    #[test]
    fn numbers_alone_are_ranked_by_mae() {
        let rows = [row("c", Some(0.3), None), row("a", Some(0.1), None), row("b", Some(0.2), None)];
        assert_eq!(order(&rows), [("a".into(), Some(1.0)), ("b".into(), Some(2.0)), ("c".into(), Some(3.0))]);
    }

    #[test]
    fn levels_alone_are_ranked_by_accuracy() {
        let rows = [row("a", None, Some(0.3)), row("b", None, Some(0.9))];
        assert_eq!(order(&rows), [("b".into(), Some(1.0)), ("a".into(), Some(2.0))]);
    }

    #[test]
    fn mixed_tables_are_ranked_by_the_mean_of_both_ranks_then_by_mae() {
        // Ranks by MAE 1, 2, 3; by accuracy 3, 1, 2.
        let rows = [row("a", Some(0.1), Some(0.2)), row("b", Some(0.2), Some(0.9)), row("c", Some(0.3), Some(0.5))];
        assert_eq!(order(&rows), [("b".into(), Some(1.5)), ("a".into(), Some(2.0)), ("c".into(), Some(2.5))]);
        let tied = [row("b", Some(0.2), Some(0.9)), row("a", Some(0.1), Some(0.2))];
        assert_eq!(order(&tied), [("a".into(), Some(1.5)), ("b".into(), Some(1.5))]);
    }

    #[test]
    fn equal_candidates_share_the_mean_of_their_ranks() {
        let rows = [row("a", Some(0.1), None), row("b", Some(0.1), None), row("c", Some(0.2), None)];
        assert_eq!(order(&rows)[..2], [("a".into(), Some(1.5)), ("b".into(), Some(1.5))]);
    }

    #[test]
    fn a_candidate_that_failed_comes_last() {
        let mut failed = row("a", None, None);
        failed.error = Some("no".to_owned());
        let rows = [row("a", Some(0.1), None), failed, row("b", Some(0.9), None)];
        assert_eq!(order(&rows), [("b".into(), Some(1.0)), ("a".into(), None)]);
        let summary = &summarise(&rows)[1];
        assert_eq!((summary.repeats, summary.failed, summary.error.as_deref()), (1, 1, Some("no")));
    }
}
