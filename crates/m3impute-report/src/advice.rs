//! Recommendations after a comparison.

use crate::facts::{Compared, Repeats};
use crate::words::{duration, named};

/// Baselines: they learn nothing from other columns.
const SIMPLE: [&str; 3] = ["median", "mean", "mode"];

/// The result of comparing two methods on the same hidden cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// Smaller errors by more than repeats differ.
    Better,
    /// Larger errors by more than repeats differ.
    Worse,
    /// Not significantly different.
    Alike,
}

/// Which method to use, and whether it is significantly better. `methods` come best first.
pub(crate) fn advice(methods: &[Compared], mechanism: &str) -> Vec<String> {
    let working: Vec<&Compared> = methods.iter().filter(|m| m.error.is_none()).collect();
    let Some((&best, others)) = working.split_first() else {
        return vec!["No method filled these cells in every repeat: see the warnings below.".to_owned()];
    };
    let mut sentences = Vec::new();
    let repeats = each(best).map_or(0, <[f64]>::len);
    let alike: Vec<&Compared> = others.iter().copied().filter(|m| stands(best, m) == Stands::Alike).collect();
    let simple = working.iter().copied().find(|m| SIMPLE.contains(&m.label.as_str()));
    let simple_alike = alike.iter().copied().find(|m| SIMPLE.contains(&m.label.as_str()));
    if others.is_empty() {
        sentences.push(format!("Only “{}” took part: name others with it to compare.", best.label));
    } else if repeats < 2 {
        sentences.push(format!("“{}” came out best, in a single repeat.", best.label));
        sentences.push(
            "One repeat does not show the spread: small differences may be chance. Use `--repeats 5`.".to_owned(),
        );
    } else if SIMPLE.contains(&best.label.as_str()) {
        sentences.push(format!(
            "Use “{}”: no method that learns from other columns beats this baseline on this table. The columns may be nearly \
             independent.",
            best.label
        ));
    } else if let Some(simple) = simple_alike {
        sentences.push(format!(
            "No clear winner: “{}” came out best, but not by more than repeats differ from “{}”, which learns nothing from \
             other columns.",
            best.label, simple.label
        ));
    } else {
        sentences.push(format!("Use “{}”.", best.label));
    }
    if let Some(simple) = simple.filter(|s| s.label != best.label) {
        sentences.extend(beside(best, simple));
    }
    if repeats > 1 && !others.is_empty() {
        if alike.is_empty() {
            let both = best.mae.is_some() && best.accuracy.is_some();
            let measure =
                if both { "in numbers or in levels, and clearly behind in neither" } else { "on these hidden cells" };
            sentences.push(format!("It is ahead of every other method by more than repeats differ, {measure}."));
        } else {
            let names = named(alike.iter().map(|m| m.label.as_str()), 6);
            let verb = if alike.len() == 1 { "is" } else { "are" };
            sentences.push(format!(
                "{names} {verb} not significantly different: the differences are within the spread over repeats."
            ));
            sentences.extend(faster(best, &alike));
        }
    }
    sentences.push(format!(
        "This holds for cells hidden as here ({mechanism}). Where yours are missing for another reason, compare with the \
         `--mechanism` that resembles it."
    ));
    sentences
}

/// The scores of each repeat, of numbers or else of levels.
fn each(method: &Compared) -> Option<&[f64]> {
    method.mae.as_ref().or(method.accuracy.as_ref()).map(|of| of.each.as_slice())
}

/// Compares repeat by repeat, as both had the same hidden cells. Better in one measure and not worse in the other is
/// better.
fn stands(one: &Compared, other: &Compared) -> Stands {
    let pairs = [(&one.mae, &other.mae, 1.0), (&one.accuracy, &other.accuracy, -1.0)];
    let mut verdict = Stands::Alike;
    for (one, other, sign) in pairs {
        let (Some(one), Some(other)) = (one, other) else { continue };
        let ahead: Vec<f64> = one.each.iter().zip(&other.each).map(|(a, b)| sign * (b - a)).collect();
        verdict = match (verdict, clearly(&ahead)) {
            (Stands::Alike, now) => now,
            (Stands::Better, Stands::Worse) | (Stands::Worse, Stands::Better) => return Stands::Alike,
            (before, _) => before,
        };
    }
    verdict
}

/// Whether differences are on one side of zero by more than they differ among themselves.
fn clearly(differences: &[f64]) -> Stands {
    let n = differences.len() as f64;
    if differences.len() < 2 {
        return Stands::Alike;
    }
    let mean = differences.iter().sum::<f64>() / n;
    let deviation = (differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    match mean {
        m if m > deviation => Stands::Better,
        m if -m > deviation => Stands::Worse,
        _ => Stands::Alike,
    }
}

fn mean(of: &Option<Repeats>) -> Option<f64> {
    of.as_ref().map(|of| of.spread.mean)
}

/// The figures of the best method beside those of a simple one.
fn beside(best: &Compared, simple: &Compared) -> Option<String> {
    let mut parts = Vec::new();
    if let (Some(own), Some(baseline)) = (mean(&best.mae), mean(&simple.mae)) {
        let less = if baseline > 0.0 { 100.0 * (1.0 - own / baseline) } else { 0.0 };
        let than = if less >= 0.0 { format!("{less:.0} % below") } else { format!("{:.0} % above", -less) };
        parts.push(format!(
            "its mean absolute error is {:.3} of a column’s range, {than} that of “{}” ({:.3})",
            own, simple.label, baseline
        ));
    }
    if let (Some(own), Some(baseline)) = (mean(&best.accuracy), mean(&simple.accuracy)) {
        parts.push(format!(
            "its accuracy on levels is {:.0} %, that of “{}” {:.0} %",
            100.0 * own,
            simple.label,
            100.0 * baseline
        ));
    }
    let text = parts.join("; ");
    let mut letters = text.chars();
    letters.next().map(|first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

/// The fastest of those that do as well, where it saves time that one would notice.
fn faster(best: &Compared, alike: &[&Compared]) -> Option<String> {
    let seconds = |m: &Compared| mean(&m.seconds);
    let own = seconds(best)?;
    let timed = alike.iter().filter_map(|m| Some((m, seconds(m)?)));
    let (quickest, time) = timed.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    (own > 1.0 && time < own / 3.0)
        .then(|| format!("“{}” takes {} instead of {}.", quickest.label, duration(time), duration(own)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_eval::Spread;

    fn method(label: &str, mae: &[f64], seconds: f64) -> Compared {
        let mean = mae.iter().sum::<f64>() / mae.len() as f64;
        let spread = Spread { mean, deviation: None };
        let time = Spread { mean: seconds, deviation: None };
        Compared {
            label: label.to_owned(),
            mae: Some(Repeats { spread, each: mae.to_vec() }),
            seconds: Some(Repeats { spread: time, each: vec![seconds; mae.len()] }),
            ..Compared::default()
        }
    }

    fn advised(methods: &[Compared]) -> String {
        advice(methods, "mcar, 30 %").join(" ")
    }

    #[test]
    fn a_clear_winner_is_recommended_with_its_figures() {
        let text = advised(&[method("mice", &[0.10, 0.11], 1.0), method("median", &[0.20, 0.22], 0.0)]);
        assert!(
            text.starts_with("Use “mice”. Its mean absolute error is 0.105 of a column’s range, 50 % below"),
            "{text}"
        );
        assert!(text.contains("ahead of every other method"), "{text}");
    }

    #[test]
    fn differences_within_the_spread_are_called_that() {
        let text = advised(&[
            method("m3", &[0.10, 0.14], 60.0),
            method("knn", &[0.12, 0.13], 0.5),
            method("median", &[0.3, 0.3], 0.0),
        ]);
        assert!(text.contains("“knn” is not significantly different"), "{text}");
        assert!(text.contains("“knn” takes 0.500 s instead of 60.0 s"), "{text}");
    }

    #[test]
    fn hidden_cells_that_are_the_same_for_both_make_small_differences_clear() {
        // Repeats differ by far more than the methods, but the second is farther off in every one of them.
        let text = advised(&[method("a", &[0.1, 0.5, 0.9], 0.0), method("b", &[0.12, 0.53, 0.92], 0.0)]);
        assert!(text.contains("ahead of every other method"), "{text}");
    }

    #[test]
    fn a_baseline_is_recommended_where_no_method_beats_it() {
        let text = advised(&[method("median", &[0.2, 0.2], 0.0), method("knn", &[0.3, 0.3], 0.0)]);
        assert!(text.starts_with("Use “median”: no method that learns"), "{text}");
        let text = advised(&[method("knn", &[0.1, 0.3], 0.0), method("median", &[0.2, 0.25], 0.0)]);
        assert!(text.starts_with("No clear winner"), "{text}");
        let text = advised(&[method("knn", &[0.1], 0.0), method("median", &[0.2], 0.0)]);
        assert!(text.contains("single repeat") && text.contains("--repeats 5"), "{text}");
        let failed = Compared { error: Some("no".to_owned()), ..method("knn", &[0.1], 0.0) };
        assert!(advised(&[failed]).starts_with("No method filled"));
        assert!(advised(&[method("knn", &[0.1], 0.0)]).starts_with("Only “knn” took part"));
    }

    #[test]
    fn better_in_numbers_and_worse_in_levels_is_alike() {
        let spread = Spread { mean: 0.5, deviation: None };
        let mut one = method("a", &[0.1, 0.1], 0.0);
        let mut other = method("b", &[0.2, 0.2], 0.0);
        assert_eq!(stands(&one, &other), Stands::Better);
        one.accuracy = Some(Repeats { spread, each: vec![0.4, 0.4] });
        other.accuracy = Some(Repeats { spread, each: vec![0.6, 0.6] });
        assert_eq!(stands(&one, &other), Stands::Alike);
    }
}
