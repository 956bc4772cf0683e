//! An explanation in words, a sentence a line.

use super::{CellValue, Explanation, Influence};
use crate::schema::Kind;

/// So many deciding cells are named.
const NAMED: usize = 10;
/// So many levels are named with their probability.
const LEVELS: usize = 5;
/// Predictions beside the fill are written with so many significant figures: the fill itself as it is in the file.
const FIGURES: i32 = 6;
/// A change of probability that is shown as zero is none.
const LEAST_PROBABILITY: f64 = 0.000_5;

impl Explanation {
    /// The explanation in words, a sentence a line. `row` is what the interface calls the row, rows of the training table are
    /// counted from `first`, and `write` writes a number of a column, given by its place in the table, as cells of that
    /// column are written.
    ///
    /// ```
    /// use m3impute_core::{CellValue, Explanation, Kind, explain::Influence};
    /// let explanation = Explanation {
    ///     row: 16,
    ///     column: 1,
    ///     name: "income".to_owned(),
    ///     kind: Kind::Integer,
    ///     filled: CellValue::Number(52_000.0),
    ///     fallback: None,
    ///     interval: None,
    ///     probabilities: Vec::new(),
    ///     members: Vec::new(),
    ///     influences: vec![Influence {
    ///         column: 0,
    ///         name: "education".to_owned(),
    ///         kind: Kind::Categorical,
    ///         value: CellValue::Level("university".to_owned()),
    ///         without: CellValue::Number(47_900.0),
    ///         change: Some(-4_100.0),
    ///         probability_change: None,
    ///         is_other: true,
    ///     }],
    ///     donors: None,
    /// };
    /// let lines = explanation.lines("row 17", 1, |_, number| number.to_string());
    /// assert_eq!(lines[0], "row 17: `income` is filled with 52000");
    /// assert_eq!(lines[2], "  without `education` (university) the fill would be 4,100 lower: 47900");
    /// ```
    pub fn lines(&self, row: &str, first: usize, write: impl Fn(usize, f64) -> String) -> Vec<String> {
        let own = |value: &CellValue| self.predicted(value, &write);
        let filled = text(&self.filled, self.column, &write);
        let mut fill = format!("{row}: `{}` is filled with {filled}", self.name);
        if let Some(done) = self.fallback {
            fill += &format!(", {done}: the method has no prediction");
        }
        if let Some([low, high]) = &self.interval {
            fill += &format!("; with 90 % probability it is between {} and {}", own(low), own(high));
        }
        let mut lines = vec![fill];
        if !self.probabilities.is_empty() {
            let named = self.probabilities.iter().take(LEVELS).map(|(level, p)| format!("{level} {}", percent(*p)));
            let more = self.probabilities.len().saturating_sub(LEVELS);
            let more = if more > 0 { format!(", and {more} other levels") } else { String::new() };
            lines.push(format!("probabilities: {}{more}", named.collect::<Vec<_>>().join(", ")));
        }
        self.add_members(&mut lines, &own);
        self.add_influences(&mut lines, &write);
        self.add_donors(&mut lines, first, &write);
        lines
    }

    fn add_members(&self, lines: &mut Vec<String>, own: &impl Fn(&CellValue) -> String) {
        if self.members.is_empty() {
            return;
        }
        lines.push("members of the ensemble, their weights, and what each predicts by itself:".to_owned());
        let width = self.members.iter().map(|m| m.name.chars().count()).max().unwrap_or(0);
        for member in &self.members {
            let weight = percent(member.weight);
            let mut line = format!("  {:width$}  {weight:>5}  {}", member.name, own(&member.predicted));
            if let Some(p) = member.probability {
                let of =
                    if member.predicted == self.filled { String::new() } else { format!(" for {}", own(&self.filled)) };
                line += &format!(" ({}{of})", percent(p));
            }
            lines.push(line);
        }
    }

    fn add_influences(&self, lines: &mut Vec<String>, write: &impl Fn(usize, f64) -> String) {
        let deciding: Vec<&Influence> = self.deciding().filter(|i| i.is_worth_a_line()).collect();
        let others = self.influences.len() - deciding.len().min(NAMED);
        match (self.influences.len(), deciding.len()) {
            (0, _) => lines.push("the row shows nothing that the method uses".to_owned()),
            (_, 0) => {
                lines.push("no single cell of the row decides: without any of them the fill is the same".to_owned())
            }
            _ => lines.push("what decides, one observed cell of the row hidden at a time:".to_owned()),
        }
        for influence in deciding.iter().take(NAMED) {
            let value = text(&influence.value, influence.column, write);
            lines.push(format!("  without `{}` ({value}) {}", influence.name, self.moved(influence, write)));
        }
        if !deciding.is_empty() && others > 0 {
            let cells = if others == 1 {
                "the other cell changes".to_owned()
            } else {
                format!("the {others} other cells change")
            };
            let what = if deciding.len() > NAMED { "it less" } else { "nothing" };
            lines.push(format!("  {cells} {what}"));
        }
    }

    /// What happens without a cell: `the fill would be 4,100 lower: 47,900`.
    fn moved(&self, influence: &Influence, write: &impl Fn(usize, f64) -> String) -> String {
        let without = self.predicted(&influence.without, write);
        let other = if influence.is_other { format!(", and the fill would be {without}") } else { String::new() };
        match (influence.change, influence.probability_change) {
            (Some(change), _) if change != 0.0 => {
                let moved = match (&self.filled, &influence.without) {
                    (CellValue::Number(filled), CellValue::Number(without)) if influence.is_other => without - filled,
                    _ => change,
                };
                let words = format!("{} {}", difference(self.kind, moved.abs()), direction(self.kind, moved));
                match influence.is_other {
                    true => format!("the fill would be {words}: {without}"),
                    false => format!("the prediction would be {words}, and the fill the same"),
                }
            }
            (_, Some(change)) => {
                let words = if change < 0.0 { "less" } else { "more" };
                let points = figures((1000.0 * change.abs()).round() / 10.0);
                format!(
                    "{} would be {points} percentage points {words} probable{other}",
                    self.predicted(&self.filled, write)
                )
            }
            _ => format!("the fill would be {without}"),
        }
    }

    /// A predicted value of the explained column. Digits that nobody reads are left out.
    fn predicted(&self, value: &CellValue, write: &impl Fn(usize, f64) -> String) -> String {
        match value {
            CellValue::Number(x) if self.kind == Kind::Continuous && *x != 0.0 && x.is_finite() => {
                let decimals = FIGURES - 1 - x.abs().log10().floor() as i32;
                // A text that is parsed is the nearest number to it, which dividing by a power of ten is not.
                let rounded = match decimals {
                    0..=300 => format!("{x:.0$}", decimals as usize).parse().unwrap_or(*x),
                    _ => *x,
                };
                write(self.column, rounded)
            }
            _ => text(value, self.column, write),
        }
    }

    fn add_donors(&self, lines: &mut Vec<String>, first: usize, write: &impl Fn(usize, f64) -> String) {
        let Some(donors) = &self.donors else { return };
        if donors.is_empty() {
            lines.push("no row that the model keeps is near by the forest's leaves".to_owned());
            return;
        }
        lines.push("nearest rows of the training table, by the share of trees in whose leaf both fall:".to_owned());
        for donor in donors {
            let cells = donor.deciding.iter().map(|cell| {
                let value = cell.value.as_ref().map_or_else(|| "missing".to_owned(), |v| text(v, cell.column, write));
                format!(", `{}` {value}", cell.name)
            });
            let value = text(&donor.value, self.column, write);
            let cells: String = cells.collect();
            lines.push(format!(
                "  row {}, {}: `{}` {value}{cells}",
                donor.row + first,
                percent(donor.proximity),
                self.name
            ));
        }
    }
}

impl Influence {
    /// Whether the change is one that is seen when it is written down.
    fn is_worth_a_line(&self) -> bool {
        self.is_other
            || self.change.is_some_and(|change| change != 0.0)
            || self.probability_change.is_some_and(|change| change.abs() >= LEAST_PROBABILITY)
    }
}

fn text(value: &CellValue, column: usize, write: &impl Fn(usize, f64) -> String) -> String {
    match value {
        CellValue::Number(number) => write(column, *number),
        CellValue::Level(level) => level.clone(),
    }
}

fn percent(share: f64) -> String {
    match 100.0 * share {
        p if p > 0.0 && p < 1.0 => "< 1 %".to_owned(),
        p if p > 99.0 && p < 100.0 => "> 99 %".to_owned(),
        p => format!("{p:.0} %"),
    }
}

fn direction(kind: Kind, change: f64) -> &'static str {
    match (kind, change < 0.0) {
        (Kind::Datetime, true) => "earlier",
        (Kind::Datetime, false) => "later",
        (_, true) => "lower",
        (_, false) => "higher",
    }
}

/// A difference of two values in three significant figures: `4,100`, `0.0123`, `1.5 days`.
fn difference(kind: Kind, size: f64) -> String {
    if kind != Kind::Datetime {
        return figures(size);
    }
    let (unit, name) = [(86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")]
        .into_iter()
        .find(|(unit, _)| size >= *unit)
        .unwrap_or((1.0, "seconds"));
    format!("{} {name}", figures(size / unit))
}

fn figures(size: f64) -> String {
    let magnitude = if size == 0.0 { 0.0 } else { size.abs().log10().floor() };
    if !(-5.0..=14.0).contains(&magnitude) {
        return format!("{size:.2e}");
    }
    let unit = 10_f64.powf(magnitude - 2.0);
    let rounded = if magnitude > 2.0 { (size / unit).round() * unit } else { size };
    let text = format!("{rounded:.0$}", (2.0 - magnitude).max(0.0) as usize);
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let rest = rest.trim_end_matches('0');
    if rest.is_empty() { grouped } else { format!("{grouped}.{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_three_figures_and_the_units_of_their_column() {
        assert_eq!([figures(4_100.0), figures(1_234_567.0), figures(0.012_345)], ["4,100", "1,230,000", "0.0123"]);
        assert_eq!([figures(0.5), figures(99.96), figures(1e-9)], ["0.5", "100", "1.00e-9"]);
        assert_eq!(difference(Kind::Datetime, 129_600.0), "1.5 days");
        assert_eq!((direction(Kind::Datetime, -1.0), direction(Kind::Integer, 1.0)), ("earlier", "higher"));
    }

    #[test]
    fn a_prediction_is_written_without_digits_that_nobody_reads() {
        let explanation = Explanation {
            row: 0,
            column: 0,
            name: "x".to_owned(),
            kind: Kind::Continuous,
            filled: CellValue::Number(39.089_847_9),
            fallback: None,
            interval: Some([CellValue::Number(34.831_919_4), CellValue::Number(1_234_567.891)]),
            probabilities: Vec::new(),
            members: Vec::new(),
            influences: Vec::new(),
            donors: None,
        };
        let lines = explanation.lines("row 1", 1, |_, x| x.to_string());
        assert_eq!(
            lines[0],
            "row 1: `x` is filled with 39.0898479; with 90 % probability it is between 34.8319 and 1234567.891"
        );
    }

    #[test]
    fn a_share_that_is_not_whole_is_not_called_so() {
        assert_eq!([percent(0.999), percent(1.0), percent(0.003), percent(0.0)], ["> 99 %", "100 %", "< 1 %", "0 %"]);
    }
}
