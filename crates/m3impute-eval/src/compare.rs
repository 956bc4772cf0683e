//! Methods compared pair by pair on the same hidden cells, with the uncertainty over repeats.

use crate::evaluate::{EvaluatedColumn, Row};
use crate::summary::Summary;
use serde::Serialize;
use std::collections::HashMap;

/// How one method stands to another, with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better in numbers or in categories, and in neither worse.
    Better,
    /// Worse in numbers or in categories, and in neither better.
    Worse,
    /// Better in one of the two and worse in the other.
    Mixed,
    /// The two cannot be told apart.
    Undecided,
}

/// By how much one method is ahead of another in one measure: positive where it is better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The mean over repeats.
    pub mean: f64,
    /// The lower end of its 95 % confidence interval; none with a single repeat.
    pub lower: Option<f64>,
    /// The upper end.
    pub upper: Option<f64>,
}

/// Two methods on the same hidden cells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The label of the one.
    pub one: String,
    /// The label of the other.
    pub other: String,
    /// How the one stands to the other.
    pub verdict: Verdict,
    /// By how much the mean absolute error of the one is smaller.
    pub numbers: Option<Difference>,
    /// By how much the accuracy of the one is higher.
    pub levels: Option<Difference>,
    /// In how many columns the one has the smaller mean error.
    pub columns_ahead: usize,
    /// In how many the other has.
    pub columns_behind: usize,
}

/// Which method to use, and how every pair of methods compares.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Recommendation {
    /// The label of the method to use: of those that no other is better than, the first in the summary. None where every
    /// method failed.
    pub method: Option<String>,
    /// Every pair of the methods that did not fail, in the order of the summary.
    pub comparisons: Vec<Comparison>,
}

/// Compares methods pair by pair, and recommends one. `summary` is that of `rows`.
///
/// Both methods of a pair had the same hidden cells in each repeat, so their difference is taken repeat by repeat. Its
/// confidence interval is that of Nadeau and Bengio (2003) for repeated random splits: repeats hide cells of the same
/// table, so the mean over repeats varies by more than it would over new tables.
///
/// ```
/// use m3impute_core::missing::Mechanism;
/// use m3impute_core::{Cancel, Column, ColumnSpec, Kind, Schema, Table};
/// use m3impute_eval::{Candidate, HideBy, NoProbe, Plan, Verdict, evaluate, recommend, summarise};
///
/// let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous), ColumnSpec::new("y", Kind::Continuous)])?;
/// let numbers = |f: fn(f64) -> f64| Column::from_numbers((0..80).map(|i| f(f64::from(i))).collect());
/// let truth = Table::new(schema, vec![numbers(|i| i), numbers(|i| 3.0 * i)])?;
/// let methods = ["mean", "mice"].map(|name| m3impute::method(name).map(Candidate::new));
/// let plan = Plan {
///     methods: methods.into_iter().collect::<Result<_, _>>()?,
///     hide: HideBy::Mechanism { mechanism: Mechanism::Mcar, within: None, rate: 0.2, repeats: 3 },
///     ..Plan::default()
/// };
/// let rows = evaluate(&truth, &plan, &NoProbe, &Cancel::default(), &m3impute_eval::no_observer())?;
/// let recommended = recommend(&rows, &summarise(&rows));
/// assert_eq!(recommended.method.as_deref(), Some("mice"));
/// assert_eq!(recommended.verdict("mice", "mean"), Some(Verdict::Better));
/// # Ok::<(), m3impute_core::Error>(())
/// ```
pub fn recommend(rows: &[Row], summary: &[Summary]) -> Recommendation {
    let labels: Vec<&str> = summary.iter().filter(|s| s.failed == 0).map(|s| s.label.as_str()).collect();
    let pairs = labels.iter().enumerate().flat_map(|(at, one)| labels[at + 1..].iter().map(move |other| (one, other)));
    let comparisons = pairs.map(|(one, other)| Comparison::of(one, other, rows)).collect();
    let mut recommended = Recommendation { method: None, comparisons };
    let is_beaten = |label: &str| labels.iter().any(|o| recommended.verdict(o, label) == Some(Verdict::Better));
    // Where each is beaten by another, which two measures make possible, the ranks decide.
    let first = labels.iter().find(|label| !is_beaten(label)).or(labels.first());
    recommended.method = first.map(|&label| label.to_owned());
    recommended
}

impl Recommendation {
    /// How one method stands to another; none where one of them failed, or took no part.
    pub fn verdict(&self, one: &str, other: &str) -> Option<Verdict> {
        self.comparison(one, other).map(|c| c.verdict)
    }

    /// The comparison of two methods, seen from the first; none where one of them failed, or took no part.
    pub fn comparison(&self, one: &str, other: &str) -> Option<Comparison> {
        let find = |one: &str, other: &str| self.comparisons.iter().find(|c| c.one == one && c.other == other);
        find(one, other).cloned().or_else(|| find(other, one).map(Comparison::reversed))
    }
}

impl Comparison {
    fn of(one: &str, other: &str, rows: &[Row]) -> Comparison {
        let of_label = |label: &str| rows.iter().filter(|r| r.label == label).map(|r| (r.repeat, r)).collect();
        let others: HashMap<usize, &Row> = of_label(other);
        let mut pairs: Vec<(&Row, &Row)> =
            of_label(one).into_iter().filter_map(|(repeat, row)| Some((row, *others.get(&repeat)?))).collect();
        pairs.sort_by_key(|(row, _)| row.repeat);
        let rate = pairs.iter().map(|(row, _)| row.rate).sum::<f64>() / pairs.len().max(1) as f64;
        let ahead = |by: fn(&Row, &Row) -> Option<f64>| {
            let each: Vec<f64> = pairs.iter().filter_map(|(one, other)| by(one, other)).collect();
            Difference::of(&each, rate)
        };
        let numbers = ahead(|one, other| Some(other.mae? - one.mae?));
        let levels = ahead(|one, other| Some(one.accuracy? - other.accuracy?));
        let (columns_ahead, columns_behind) = columns(&pairs);
        Comparison {
            one: one.to_owned(),
            other: other.to_owned(),
            verdict: verdict([numbers, levels]),
            numbers,
            levels,
            columns_ahead,
            columns_behind,
        }
    }

    fn reversed(&self) -> Comparison {
        let numbers = self.numbers.map(Difference::reversed);
        let levels = self.levels.map(Difference::reversed);
        Comparison {
            one: self.other.clone(),
            other: self.one.clone(),
            verdict: verdict([numbers, levels]),
            numbers,
            levels,
            columns_ahead: self.columns_behind,
            columns_behind: self.columns_ahead,
        }
    }
}

fn verdict(measures: [Option<Difference>; 2]) -> Verdict {
    let any = |of| measures.iter().flatten().any(|d| d.verdict() == of);
    match (any(Verdict::Better), any(Verdict::Worse)) {
        (true, true) => Verdict::Mixed,
        (true, false) => Verdict::Better,
        (false, true) => Verdict::Worse,
        (false, false) => Verdict::Undecided,
    }
}

/// In how many columns each of two methods has the smaller error, summed over repeats.
fn columns(pairs: &[(&Row, &Row)]) -> (usize, usize) {
    let errors = |row: &Row| -> Vec<(String, f64)> {
        let error = |c: &EvaluatedColumn| {
            let error = c.score.mae.or(c.score.accuracy.map(|a| 1.0 - a))?;
            Some((c.column.clone(), error * (c.score.numbers + c.score.levels) as f64))
        };
        row.columns.iter().filter_map(error).collect()
    };
    let mut ahead: HashMap<String, f64> = HashMap::new();
    for (one, other) in pairs {
        errors(one).into_iter().for_each(|(column, error)| *ahead.entry(column).or_default() -= error);
        errors(other).into_iter().for_each(|(column, error)| *ahead.entry(column).or_default() += error);
    }
    let count = |sign: f64| ahead.values().filter(|&&by| sign * by > 1e-12).count();
    (count(1.0), count(-1.0))
}

impl Difference {
    /// Of the differences of each repeat, in which `rate` of the known cells are hidden.
    fn of(each: &[f64], rate: f64) -> Option<Difference> {
        let n = each.len() as f64;
        let mean = each.iter().sum::<f64>() / n;
        match each.len() {
            0 => None,
            1 => Some(Difference { mean, lower: None, upper: None }),
            _ => {
                let variance = each.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0);
                let scored_to_shown = rate / (1.0 - rate).max(f64::EPSILON);
                let half = t_quantile(each.len() - 1) * (variance * (1.0 / n + scored_to_shown)).sqrt();
                Some(Difference { mean, lower: Some(mean - half), upper: Some(mean + half) })
            }
        }
    }

    /// Better or worse where zero is outside the interval, else undecided.
    pub fn verdict(&self) -> Verdict {
        match (self.lower, self.upper) {
            (Some(lower), _) if lower > 0.0 => Verdict::Better,
            (_, Some(upper)) if upper < 0.0 => Verdict::Worse,
            _ => Verdict::Undecided,
        }
    }

    fn reversed(self) -> Difference {
        Difference { mean: -self.mean, lower: self.upper.map(|u| -u), upper: self.lower.map(|l| -l) }
    }
}

/// The 97.5 % quantile of Student's t: exact to three figures up to 10 degrees of freedom, above it a little too large
/// rather than too small.
fn t_quantile(degrees: usize) -> f64 {
    match degrees {
        0 => f64::INFINITY,
        1..=10 => [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228][degrees - 1],
        11..=19 => 2.201,
        20..=59 => 2.086,
        _ => 2.001,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarise;
    use crate::summary::tests::row;
    use m3impute_core::Score;

    /// Rows of a method, one for each repeat.
    fn rows(label: &str, mae: &[f64], accuracy: &[f64]) -> Vec<Row> {
        let repeats = mae.len().max(accuracy.len());
        let at = |of: &[f64], repeat: usize| of.get(repeat).copied();
        (0..repeats).map(|r| Row { repeat: r + 1, ..row(label, at(mae, r), at(accuracy, r)) }).collect()
    }

    fn recommended(methods: &[Vec<Row>]) -> Recommendation {
        let rows = methods.concat();
        recommend(&rows, &summarise(&rows))
    }

    #[test]
    fn the_interval_is_that_of_repeated_random_splits() {
        // Mean 2, variance 1, half of the cells hidden: 2 -+ 4.303 sqrt(1/3 + 1).
        let difference = Difference::of(&[1.0, 2.0, 3.0], 0.5).unwrap();
        let half = 4.303 * (4.0_f64 / 3.0).sqrt();
        assert!((difference.mean - 2.0).abs() < 1e-12);
        assert!((difference.lower.unwrap() - (2.0 - half)).abs() < 1e-12);
        assert!((difference.upper.unwrap() - (2.0 + half)).abs() < 1e-12);
        assert_eq!(Difference::of(&[1.0], 0.3).unwrap().verdict(), Verdict::Undecided);
        assert_eq!(Difference::of(&[0.0, 0.0], 0.3).unwrap().verdict(), Verdict::Undecided);
        assert_eq!(Difference::of(&[], 0.3), None);
    }

    #[test]
    fn quantiles_fall_with_the_repeats() {
        let all: Vec<f64> = (0..100).map(t_quantile).collect();
        assert!(all.windows(2).all(|pair| pair[0] >= pair[1]) && all[99] > 1.98);
    }

    #[test]
    fn the_same_hidden_cells_make_small_differences_clear() {
        // Repeats differ by far more than the methods, but the second is farther off in every one of them.
        let found = recommended(&[rows("a", &[0.1, 0.5, 0.9], &[]), rows("b", &[0.12, 0.521, 0.922], &[])]);
        assert_eq!(found.verdict("a", "b"), Some(Verdict::Better));
        assert_eq!(found.verdict("b", "a"), Some(Verdict::Worse));
        let found = recommended(&[rows("a", &[0.1, 0.5, 0.9], &[]), rows("b", &[0.2, 0.49, 0.92], &[])]);
        assert_eq!(found.verdict("a", "b"), Some(Verdict::Undecided));
    }

    #[test]
    fn a_rival_that_is_better_is_recommended_whatever_the_ranks_say() {
        // Both have the mean rank 1.5, and the smaller MAE comes first: but it is smaller by chance, and the accuracy of
        // the other is higher in every repeat.
        let mice = rows("mice", &[0.100, 0.130, 0.110], &[0.60, 0.61, 0.60]);
        let forest = rows("missforest", &[0.112, 0.118, 0.113], &[0.80, 0.82, 0.81]);
        let all = [mice, forest].concat();
        let summary = summarise(&all);
        assert_eq!(summary[0].label, "mice");
        let found = recommend(&all, &summary);
        assert_eq!(found.method.as_deref(), Some("missforest"));
        assert_eq!(found.verdict("mice", "missforest"), Some(Verdict::Worse));
    }

    #[test]
    fn winning_numbers_and_losing_categories_is_mixed() {
        let found = recommended(&[rows("a", &[0.1, 0.1], &[0.4, 0.4]), rows("b", &[0.2, 0.2], &[0.6, 0.6])]);
        assert_eq!(found.verdict("a", "b"), Some(Verdict::Mixed));
        assert_eq!(found.verdict("b", "a"), Some(Verdict::Mixed));
        assert_eq!(found.comparison("b", "a").unwrap().levels.unwrap().verdict(), Verdict::Better);
    }

    #[test]
    fn columns_are_counted_for_both_and_a_failed_method_is_not_compared() {
        let scored = |label: &str, errors: [f64; 3]| {
            let score = |mae| Score { numbers: 10, mae: Some(mae), ..Score::default() };
            let column = |(name, mae): (&str, f64)| EvaluatedColumn { column: name.to_owned(), score: score(mae) };
            let columns = ["x", "y", "z"].into_iter().zip(errors).map(column).collect();
            vec![Row { columns, ..row(label, Some(errors.iter().sum::<f64>() / 3.0), None) }]
        };
        let failed = vec![Row { error: Some("no".to_owned()), ..row("c", None, None) }];
        let found = recommended(&[scored("a", [0.3, 0.2, 0.2]), scored("b", [0.1, 0.3, 0.2]), failed]);
        let pair = found.comparison("a", "b").unwrap();
        assert_eq!((pair.columns_ahead, pair.columns_behind), (1, 1));
        assert_eq!((found.comparisons.len(), found.verdict("a", "c")), (1, None));
        assert_eq!(recommended(&[]), Recommendation::default());
        let json = serde_json::to_value(&pair).unwrap();
        assert_eq!((&json["verdict"], &json["numbers"]["lower"]), (&"undecided".into(), &serde_json::Value::Null));
    }
}
