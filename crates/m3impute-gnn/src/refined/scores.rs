//! What held-out cells said of each column, for people.

use super::learn::ENOUGH;
use super::method::FittedM3;
use super::model::{DESIGN, KINDS, Opinions, STAGES, TYPICAL};
use super::stage::{CURVE, LEARNERS, LINE};
use m3impute_core::{HeldOut, Single};

/// What held-out cells said, feature by feature, in the units of the table.
pub(super) fn scores(fitted: &FittedM3) -> Vec<HeldOut> {
    let of = |(f, heard): (usize, &Opinions)| {
        let known = &fitted.rulers[f].known;
        // Errors of numbers are shares of the observed range.
        let unit = match (known.first(), known.last()) {
            (Some(low), Some(high)) if high > low => high - low,
            _ => 1.0,
        };
        let alone = |c: usize| heard.alone.get(c).copied().flatten().map(|e| e * unit);
        let best = (0..heard.alone.len())
            .filter(|&c| c != TYPICAL)
            .filter_map(|c| Some(Single { name: name(c).to_owned(), error: alone(c)? }))
            .min_by(|a, b| a.error.total_cmp(&b.error));
        HeldOut {
            cells: heard.cells,
            error: (heard.cells >= ENOUGH).then_some(heard.mixed * unit),
            typical: alone(TYPICAL),
            best,
            mixture: in_words(&fitted.model.weights[f]),
        }
    };
    fitted.model.opinions.iter().enumerate().map(of).collect()
}

/// Whose opinion it is.
fn name(opinion: usize) -> &'static str {
    match opinion {
        TYPICAL => "typical value",
        c if c < KINDS => "networks",
        c if c < DESIGN => "kinds of rows",
        c if c < STAGES => "design",
        c => match (c - STAGES) % LEARNERS {
            LINE => "line",
            CURVE => "curve",
            _ => "forests",
        },
    }
}

/// Weights in words, the largest first: `forests 60 %, networks 40 %`.
fn in_words(weights: &[f32]) -> String {
    let mut shares: Vec<(&str, f32)> = Vec::new();
    for (c, &weight) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
        match shares.iter_mut().find(|(who, _)| *who == name(c)) {
            Some((_, share)) => *share += weight,
            None => shares.push((name(c), weight)),
        }
    }
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words: Vec<String> = shares.iter().map(|(who, share)| format!("{who} {:.0} %", 100.0 * share)).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opinions_of_a_kind_are_one_in_words() {
        let mut weights = vec![0.0; STAGES + 2 * LEARNERS];
        (weights[KINDS - 1], weights[STAGES], weights[STAGES + LEARNERS]) = (0.25, 0.25, 0.375);
        weights[STAGES + LINE] = 0.125;
        assert_eq!(in_words(&weights), "forests 62 %, networks 25 %, line 12 %");
        assert_eq!(in_words(&[1.0]), "typical value 100 %");
    }
}
