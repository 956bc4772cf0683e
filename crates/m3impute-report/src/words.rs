//! Formatting of numbers for reports and the command line.

use crate::html::{Html, html};
use m3impute_core::{ColumnScore, Kind, Measure, Table};

/// `1 cell`, `2 cells`.
///
/// ```
/// use m3impute_report::words::count;
/// assert_eq!((count(1, "cell"), count(1234, "cell")), ("1 cell".to_owned(), "1,234 cells".to_owned()));
/// ```
pub fn count(number: usize, thing: &str) -> String {
    format!("{} {thing}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// `12,345`.
pub fn thousands(number: usize) -> String {
    grouped(&number.to_string())
}

/// `12.3 %`.
pub fn percent(part: usize, whole: usize) -> String {
    format!("{:.1} %", if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 })
}

/// `12 %` of a share.
pub(crate) fn share(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A name that may be broken after its marks, and so need not be broken inside of a word.
pub(crate) fn breakable(name: &str) -> Html {
    let mut pieces = Html::default();
    let mut from = 0;
    for (at, mark) in name.char_indices().filter(|(_, c)| "_-./:,;=+|".contains(*c)) {
        let to = at + mark.len_utf8();
        pieces += html!("{}<wbr>", name[from..to].to_owned());
        from = to;
    }
    pieces += html!("{}", name[from..].to_owned());
    pieces
}

/// `1.2 GB`, `34.5 MB`, `678 kB`.
pub fn bytes(number: u64) -> String {
    match number as f64 {
        b if b >= 1e9 => format!("{:.1} GB", b / 1e9),
        b if b >= 1e6 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.0} kB", b / 1e3),
    }
}

/// Three significant figures.
pub fn figures(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    if (-5.0..=9.0).contains(&magnitude) {
        grouped(&format!("{value:.0$}", (2.0 - magnitude).max(0.0) as usize))
    } else {
        format!("{value:.2e}")
    }
}

/// A duration in seconds, with the unit that suits it.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 86_400.0 => format!("{} days", figures(s / 86_400.0)),
        s if s >= 3_600.0 => format!("{} h", figures(s / 3_600.0)),
        s if s >= 180.0 => format!("{} min", figures(s / 60.0)),
        s => format!("{} s", figures(s)),
    }
}

/// A difference between two values of a column of this kind, in the column's own units.
pub fn difference(kind: Kind, value: f64) -> String {
    match kind {
        Kind::Datetime => duration(value),
        Kind::Ordered => format!("{} levels", figures(value)),
        _ => figures(value),
    }
}

/// A held-out error in the units of its column.
pub fn error(score: &ColumnScore, error: f64) -> String {
    match score.measure {
        Measure::LogLoss => format!("{error:.3} log loss"),
        Measure::AbsoluteError => difference(score.kind, error),
    }
}

/// How the numbers of a column are written.
///
/// ```
/// use m3impute_core::{Column, ColumnSpec, Kind, Schema, Table};
/// use m3impute_report::words::Numerals;
/// let schema = Schema::new(vec![ColumnSpec::new("born", Kind::Integer), ColumnSpec::new("income", Kind::Integer)])?;
/// let columns = vec![Column::numbers([Some(1984.0), None]), Column::numbers([Some(31_500.0), Some(900.0)])];
/// let table = Table::new(schema, columns)?;
/// assert_eq!(Numerals::of(&table, 0).value(1990.0), "1990");
/// assert_eq!(Numerals::of(&table, 1).value(1990.0), "1,990");
/// # Ok::<(), m3impute_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numerals {
    kind: Kind,
    /// Whether they look like years, which have no separators.
    years: bool,
}

impl Numerals {
    /// Those of a column.
    pub fn of(table: &Table, column: usize) -> Numerals {
        let kind = table.schema().columns()[column].kind;
        let mut values = (0..table.rows()).map(|i| table.number(i, column)).filter(|v| !v.is_nan()).peekable();
        let years = kind == Kind::Integer && values.peek().is_some() && values.all(|v| (1500.0..2200.0).contains(&v));
        Numerals { kind, years }
    }

    /// Those of columns of a kind.
    pub fn of_kind(kind: Kind) -> Numerals {
        Numerals { kind, years: false }
    }

    /// One of the numbers.
    pub fn value(self, value: f64) -> String {
        // Nobody reads -0 as a number.
        let value = if value == 0.0 { 0.0 } else { value };
        match self.kind {
            Kind::Datetime => timestamp(value),
            Kind::Integer if self.years => format!("{value:.0}"),
            Kind::Integer => grouped(&format!("{value:.0}")),
            _ => {
                // Four significant figures, without trailing zeros.
                let magnitude = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
                if !(-5.0..=9.0).contains(&magnitude) {
                    return format!("{value:.3e}");
                }
                let text = format!("{value:.0$}", (3.0 - magnitude).max(0.0) as usize);
                let short = text.trim_end_matches('0').trim_end_matches('.');
                grouped(if text.contains('.') { short } else { &text })
            }
        }
    }

    /// The same as the end of an axis. Bins of whole numbers begin half a step before them.
    pub(crate) fn end(self, value: f64, low: bool) -> String {
        match (self.kind, low) {
            (Kind::Integer, true) => self.value(value.ceil()),
            (Kind::Integer, false) => self.value(value.floor()),
            _ => self.value(value),
        }
    }
}

/// A number that is written already, with separators of thousands: `-12,345.6`.
fn grouped(number: &str) -> String {
    let (sign, rest) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = rest.find('.').map_or((rest, ""), |at| rest.split_at(at));
    let mut out = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// A timestamp given in seconds since 1970: a date, with the time of day where there is one.
pub(crate) fn timestamp(seconds: f64) -> String {
    let Some(at) = chrono::DateTime::from_timestamp(seconds.floor() as i64, 0) else { return figures(seconds) };
    let format = if at.timestamp().rem_euclid(86_400) == 0 { "%Y-%m-%d" } else { "%Y-%m-%d %H:%M" };
    at.format(format).to_string()
}

/// A text of a table, cut where it would take the page over.
pub(crate) fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// “a”, “b” and 3 more, of `all` names of which the first are given.
pub(crate) fn named<'a>(names: impl Iterator<Item = &'a str>, all: usize, most: usize) -> String {
    let shown: Vec<String> = names.take(most).map(|name| format!("“{}”", short(name, 60))).collect();
    let more = all.saturating_sub(shown.len());
    match more {
        0 => listed(shown.into_iter(), most),
        _ => format!("{} and {} more", shown.join(", "), thousands(more)),
    }
}

/// a, b and 3 more.
pub(crate) fn listed(things: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let more = things.len().saturating_sub(most);
    let listed: Vec<String> = things.take(most).collect();
    match (listed.as_slice(), more) {
        (_, 1..) => format!("{} and {} more", listed.join(", "), thousands(more)),
        ([before @ .., last], 0) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => listed.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([thousands(1), thousands(1234), thousands(1_234_567)], ["1", "1,234", "1,234,567"]);
        assert_eq!([percent(1, 8), percent(0, 0)], ["12.5 %", "0.0 %"]);
        assert_eq!([bytes(999_000), bytes(1_250_000)], ["999 kB", "1.2 MB"]);
        assert_eq!([figures(123.456), figures(0.012_345), figures(0.0)], ["123", "0.0123", "0"]);
    }

    #[test]
    fn values_are_written_by_the_kind_of_their_column() {
        let value = |kind, value| Numerals::of_kind(kind).value(value);
        assert_eq!([value(Kind::Integer, -1234.0), value(Kind::Integer, 999.0)], ["-1,234", "999"]);
        assert_eq!(value(Kind::Integer, -0.0), "0");
        assert_eq!([figures(123_456.7), figures(-12_345.0)], ["123,457", "-12,345"]);
        assert_eq!([value(Kind::Continuous, 44.5), value(Kind::Continuous, 0.1)], ["44.5", "0.1"]);
        assert_eq!([value(Kind::Continuous, 1e-9), value(Kind::Continuous, 12_345.6)], ["1.000e-9", "12,346"]);
        assert_eq!(
            [value(Kind::Datetime, 86_400.0), value(Kind::Datetime, 3_660.0)],
            ["1970-01-02", "1970-01-01 01:01"]
        );
        assert_eq!(
            [difference(Kind::Datetime, 129_600.0), difference(Kind::Ordered, 0.25)],
            ["1.50 days", "0.250 levels"]
        );
    }

    #[test]
    fn long_names_and_long_lists_are_cut() {
        assert_eq!([short("äöü", 2), short("äöü", 3)], ["äö…", "äöü"]);
        assert_eq!(named(["a", "b", "c"].into_iter(), 3, 2), "“a”, “b” and 1 more");
        assert_eq!([named(["a", "b"].into_iter(), 2, 2), named(["a"].into_iter(), 1, 2)], ["“a” and “b”", "“a”"]);
    }
}
