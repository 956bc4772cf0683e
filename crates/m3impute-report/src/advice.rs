//! Recommendations after a comparison, in words.

use crate::words::{count, duration, listed};
use m3impute_eval::{Comparison, Difference, Recommendation, Row, Spread, Summary, Verdict};

/// Baselines: they learn nothing from other columns.
const SIMPLE: [&str; 3] = ["median", "mean", "mode"];

/// Which method to use, and how sure that is: a sentence each, with names in backticks.
///
/// `summary` and `recommended` are those of `rows`, by [`m3impute_eval::summarise`] and [`m3impute_eval::recommend`].
///
/// ```
/// use m3impute_report::advice;
/// assert_eq!(advice(&Default::default(), &[], &[]), ["No method filled the hidden cells in every repeat."]);
/// ```
pub fn advice<'a>(recommended: &Recommendation, summary: &'a [Summary], rows: &[Row]) -> Vec<String> {
    let find = |label: &str| summary.iter().find(|s| s.label == label);
    let Some(best) = recommended.method.as_deref().and_then(find) else {
        return vec!["No method filled the hidden cells in every repeat.".to_owned()];
    };
    let place = summary.iter().position(|s| s.label == best.label);
    let rival = |(at, of): (usize, &'a Summary)| {
        let pair = recommended.comparison(&best.label, &of.label)?;
        Some(Rival { of, pair, stands_before: Some(at) < place })
    };
    let rivals: Vec<Rival<'_>> = summary.iter().enumerate().filter_map(rival).collect();
    let given = rows.first().is_some_and(|r| r.mechanism == "given");
    let mut sentences = Vec::new();
    if rivals.is_empty() {
        sentences.push(format!("Only `{}` took part: name others with it to compare.", best.label));
    } else if best.repeats < 2 {
        sentences.push(format!("`{}` came out best on one set of hidden cells.", best.label));
        let more = if given { "." } else { ": compare with more repeats." };
        sentences.push(format!("How much of the differences is chance, one set does not show{more}"));
    } else {
        sentences.extend(verdicts(best, &rivals));
    }
    let simple = summary.iter().find(|s| is_simple(s) && s.failed == 0 && s.label != best.label);
    sentences.extend(simple.and_then(|simple| beside(best, simple)));
    let undecided: Vec<&Rival<'_>> = rivals.iter().filter(|r| r.pair.verdict == Verdict::Undecided).collect();
    if best.repeats > 1 {
        sentences.extend(faster(best, &undecided));
    }
    sentences.push(scope(rows));
    sentences
}

/// A method beside the recommended one.
struct Rival<'a> {
    of: &'a Summary,
    /// The recommended method compared with it.
    pair: Comparison,
    /// Whether its mean rank puts it before the recommended method.
    stands_before: bool,
}

fn is_simple(method: &Summary) -> bool {
    SIMPLE.contains(&method.method.as_str())
}

/// How the recommended method stands to the others.
fn verdicts(best: &Summary, rivals: &[Rival<'_>]) -> Vec<String> {
    let name = &best.label;
    let with = |wanted: fn(Verdict) -> bool| rivals.iter().filter(|r| wanted(r.pair.verdict)).collect::<Vec<_>>();
    let undecided = with(|v| v == Verdict::Undecided);
    let ahead_somewhere = with(|v| matches!(v, Verdict::Mixed | Verdict::Worse));
    let names = |of: &[&Rival<'_>]| listed(of.iter().map(|r| format!("`{}`", r.of.label)), 6);
    let confidence = format!("{} repeats, 95 % confidence", best.repeats);
    let mut sentences = Vec::new();
    if is_simple(best) {
        sentences.push(format!(
            "Use `{name}`: no method that learns from other columns is clearly better than this baseline on this table \
             ({confidence}). The columns may be nearly independent."
        ));
    } else if let Some(simple) = undecided.iter().find(|r| is_simple(r.of)) {
        sentences.push(format!(
            "No clear winner: `{name}` came out best, but cannot be told apart from `{}`, which learns nothing from other \
             columns ({confidence}).",
            simple.of.label
        ));
    } else if !ahead_somewhere.is_empty() {
        sentences.push(format!("No method is best in both numbers and categories. `{name}` came out best overall."));
    } else if !undecided.is_empty() {
        sentences.push(format!("`{name}` came out best, but not clearly."));
    } else {
        let both = best.mae.is_some() && best.accuracy.is_some();
        let clause = if both { ", in numbers or in categories, and clearly worse in neither" } else { "" };
        sentences.push(format!("Use `{name}`: it is better than every other method{clause} ({confidence})."));
    }
    sentences.extend(ahead_somewhere.iter().map(|rival| split(best, rival)));
    if !undecided.is_empty() {
        sentences.push(format!(
            "{} cannot be told apart from `{name}`: the differences are within the variation over {} repeats. More repeats \
             may tell.",
            names(&undecided),
            best.repeats
        ));
    }
    // One rival is enough to show that the mean over all cells hides something.
    let by_columns = rivals.iter().find(|r| r.pair.columns_behind > r.pair.columns_ahead);
    sentences.extend(by_columns.map(|rival| {
        let (ahead, behind) = (rival.pair.columns_behind, rival.pair.columns_ahead);
        format!("`{}` has the smaller error in {}, `{name}` in {behind}.", rival.of.label, count(ahead, "column"))
    }));
    let passed_over = rivals.iter().find(|r| r.stands_before && r.pair.verdict == Verdict::Better);
    sentences.extend(
        passed_over.map(|first| format!("{} Its mean rank alone puts it before `{name}`.", split(best, first))),
    );
    sentences
}

/// In what a rival is better than the recommended method, and in what worse.
fn split(best: &Summary, rival: &Rival<'_>) -> String {
    let figures = |own: &Option<Spread>, other: &Option<Spread>, is_share: bool| {
        let text = |s: &Option<Spread>| match s {
            Some(s) if is_share => format!("{:.1} %", 100.0 * s.mean),
            Some(s) => format!("{:.4}", s.mean),
            None => "none".to_owned(),
        };
        format!("{} beside {}", text(other), text(own))
    };
    let numbers = format!("numbers (MAE {})", figures(&best.mae, &rival.of.mae, false));
    let levels = format!("categories (accuracy {})", figures(&best.accuracy, &rival.of.accuracy, true));
    let says = |of: Option<Difference>, what: String| match of.map(|d| (d.verdict(), d.mean)) {
        Some((Verdict::Better, _)) => Some(format!("worse in {what}")),
        Some((Verdict::Worse, _)) => Some(format!("better in {what}")),
        Some((_, mean)) if mean < 0.0 => Some(format!("ahead, but not clearly, in {what}")),
        _ => None,
    };
    let mut parts: Vec<String> =
        [says(rival.pair.numbers, numbers), says(rival.pair.levels, levels)].into_iter().flatten().collect();
    parts.sort(); // ahead or better before worse
    format!("Compared with `{}`, `{}` is {}.", best.label, rival.of.label, parts.join(" and "))
}

/// The figures of the best method beside those of a simple one.
fn beside(best: &Summary, simple: &Summary) -> Option<String> {
    let mean = |of: &Option<Spread>| of.map(|of| of.mean);
    let mut parts = Vec::new();
    if let (Some(own), Some(baseline)) = (mean(&best.mae), mean(&simple.mae)) {
        let less = if baseline > 0.0 { 100.0 * (1.0 - own / baseline) } else { 0.0 };
        let than = if less >= 0.0 { format!("{less:.0} % below") } else { format!("{:.0} % above", -less) };
        parts.push(format!(
            "the mean absolute error of `{}` is {own:.3} of a column’s range, {than} that of `{}` ({baseline:.3})",
            best.label, simple.label
        ));
    }
    if let (Some(own), Some(baseline)) = (mean(&best.accuracy), mean(&simple.accuracy)) {
        parts.push(format!(
            "the accuracy of `{}` in categories is {:.0} %, that of `{}` {:.0} %",
            best.label,
            100.0 * own,
            simple.label,
            100.0 * baseline
        ));
    }
    let text = parts.join("; ");
    let mut letters = text.chars();
    letters.next().map(|first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

/// The fastest of those that cannot be told apart, where it saves time that one would notice.
fn faster(best: &Summary, undecided: &[&Rival<'_>]) -> Option<String> {
    let own = best.seconds?.mean;
    let timed = undecided.iter().filter_map(|r| Some((r, r.of.seconds?.mean)));
    let (quickest, time) = timed.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    (own > 1.0 && time < own / 3.0)
        .then(|| format!("`{}` takes {} instead of {}.", quickest.of.label, duration(time), duration(own)))
}

/// For which missing cells this holds.
fn scope(rows: &[Row]) -> String {
    let rate = 100.0 * rows.iter().map(|r| r.rate).sum::<f64>() / rows.len().max(1) as f64;
    match rows.first().map_or("", |r| r.mechanism.as_str()) {
        "own" => "Cells were hidden in the patterns in which cells of this table are missing. If values are missing \
                  because of what they are (MNAR), hidden cells cannot show it."
            .to_owned(),
        "given" => "This holds for cells that are missing like the given ones.".to_owned(),
        mechanism => format!(
            "This holds for cells hidden as here (`{mechanism}`, {rate:.0} % of the known cells). Where yours are missing \
             in another way, compare with the mechanism that resembles it."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_eval::{recommend, summarise};

    /// The rows of a method: one for each repeat, with MAE and accuracy.
    fn method(label: &str, mae: &[f64], accuracy: &[f64], seconds: f64) -> Vec<Row> {
        let at = |of: &[f64], r: usize| of.get(r).copied();
        let row = |r| Row {
            label: label.to_owned(),
            method: label.to_owned(),
            preset: "default".to_owned(),
            repeat: r + 1,
            seed: 0,
            cells: 10,
            mechanism: "mcar".to_owned(),
            rate: 0.3,
            mae: at(mae, r),
            rmse: None,
            accuracy: at(accuracy, r),
            seconds,
            peak_bytes: None,
            fallbacks: 0,
            columns: Vec::new(),
            hidden_notes: Vec::new(),
            notes: Vec::new(),
            error: None,
        };
        (0..mae.len().max(accuracy.len())).map(row).collect()
    }

    fn advised(methods: &[Vec<Row>]) -> String {
        let rows = methods.concat();
        let summary = summarise(&rows);
        advice(&recommend(&rows, &summary), &summary, &rows).join(" ")
    }

    fn holds(text: &str, parts: &[&str]) {
        parts.iter().for_each(|part| assert!(text.contains(part), "`{part}` is not in: {text}"));
    }

    #[test]
    fn a_clear_winner_is_recommended_with_its_figures() {
        let median = method("median", &[0.20, 0.21, 0.20], &[], 0.0);
        let text = advised(&[method("mice", &[0.10, 0.11, 0.10], &[], 1.0), median]);
        holds(
            &text,
            &[
                "Use `mice`: it is better than every other method (3 repeats, 95 % confidence). The mean absolute error of \
             `mice` is 0.103 of a column’s range, 49 % below that of `median` (0.203).",
                "(`mcar`, 30 % of the known cells)",
            ],
        );
    }

    #[test]
    fn methods_that_cannot_be_told_apart_are_said_to_be() {
        let text = advised(&[
            method("m3", &[0.10, 0.14, 0.12], &[], 60.0),
            method("knn", &[0.12, 0.13, 0.13], &[], 0.5),
            method("median", &[0.3, 0.34, 0.32], &[], 0.0),
        ]);
        holds(&text, &["`m3` came out best, but not clearly.", "`knn` cannot be told apart from `m3`"]);
        holds(&text, &["`knn` takes 0.500 s instead of 60.0 s."]);
        assert!(!text.contains("Use `"), "{text}");
    }

    #[test]
    fn a_rival_that_is_better_is_never_counted_as_beaten() {
        let text = advised(&[
            method("mice", &[0.100, 0.130, 0.110], &[0.60, 0.61, 0.60], 0.0),
            method("missforest", &[0.112, 0.118, 0.113], &[0.80, 0.82, 0.81], 0.0),
        ]);
        assert!(text.starts_with("Use `missforest`: it is better than every other method, in numbers or in"), "{text}");
        holds(
            &text,
            &["Compared with `missforest`, `mice` is ahead, but not clearly, in numbers (MAE 0.1133 beside 0.1143)"],
        );
        holds(&text, &["and worse in categories (accuracy 60.3 % beside 81.0 %). Its mean rank alone puts it before"]);
    }

    #[test]
    fn a_method_that_wins_numbers_and_loses_categories_is_said_to() {
        let text = advised(&[
            method("a", &[0.10, 0.11, 0.10], &[0.4, 0.4, 0.4], 0.0),
            method("b", &[0.20, 0.21, 0.20], &[0.6, 0.6, 0.6], 0.0),
        ]);
        holds(
            &text,
            &[
                "No method is best in both numbers and categories. `a` came out best overall.",
                "Compared with `a`, `b` is better in categories (accuracy 60.0 % beside 40.0 %) and worse in numbers (MAE \
                 0.2033 beside 0.1033).",
            ],
        );
    }

    #[test]
    fn a_baseline_is_recommended_where_no_method_beats_it() {
        let text = advised(&[method("median", &[0.2, 0.2], &[], 0.0), method("knn", &[0.3, 0.3], &[], 0.0)]);
        assert!(text.starts_with("Use `median`: no method that learns"), "{text}");
        let text = advised(&[method("knn", &[0.1, 0.3], &[], 0.0), method("median", &[0.2, 0.25], &[], 0.0)]);
        assert!(text.starts_with("No clear winner: `knn` came out best, but cannot be told apart"), "{text}");
    }

    #[test]
    fn one_repeat_or_one_method_decides_nothing() {
        let text = advised(&[method("knn", &[0.1], &[], 0.0), method("median", &[0.2], &[], 0.0)]);
        holds(&text, &["on one set of hidden cells.", "compare with more repeats"]);
        let mut failed = method("knn", &[0.1], &[], 0.0);
        failed[0].error = Some("no".to_owned());
        assert!(advised(&[failed]).starts_with("No method filled"));
        assert!(advised(&[method("knn", &[0.1], &[], 0.0)]).starts_with("Only `knn` took part"));
    }
}
