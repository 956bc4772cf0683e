//! What kind of values a column of text holds.

use crate::cells::{Cell, Cells, Trouble};
use crate::datetime::{Finder, Found, TimestampFormat};
use crate::findings::Note;
use crate::na::{Missing, means_nothing};
use crate::number::{self, LARGEST_EXACT, Number};
use crate::options::ColumnReading;
use m3impute_core::{ColumnSpec, Kind};
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;

/// What is known of a column before its cells are looked at.
#[derive(Clone, Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) name: &'a str,
    /// The kind that was asked for.
    pub(crate) kind: Option<Kind>,
    /// The words that mean missing in all columns, where they are not the usual ones.
    pub(crate) na: Option<&'a [String]>,
    /// The words that mean missing in this column.
    pub(crate) na_column: &'a [String],
    /// Whether numbers may have a decimal comma.
    pub(crate) comma: bool,
    /// Whether the file says that the column is text: then it is not tried as numbers or timestamps.
    pub(crate) typed: bool,
}

/// What a column was found to be.
#[derive(Debug)]
pub(crate) struct Inferred {
    pub(crate) spec: ColumnSpec,
    pub(crate) reading: ColumnReading,
    pub(crate) reason: String,
    /// The text that was found to mean missing.
    pub(crate) found: Option<String>,
    /// The first cell that does not fit the rest: its row, its text, and why.
    pub(crate) odd: Option<(usize, String, String)>,
    /// The kind that a user could give the column instead, where it is taken for an identifier.
    pub(crate) instead: Option<Kind>,
    /// Why it is neither filled nor used, where that is not because of its kind.
    pub(crate) passed_through: Option<String>,
    pub(crate) asides: Vec<Note>,
    pub(crate) distinct: Option<usize>,
    pub(crate) top: Vec<(String, usize)>,
}

impl Inferred {
    pub(crate) fn new(name: &str, kind: Kind, reason: impl Into<String>) -> Inferred {
        Inferred {
            spec: ColumnSpec::new(name, kind),
            reading: ColumnReading { name: name.to_owned(), ..ColumnReading::default() },
            reason: reason.into(),
            found: None,
            odd: None,
            instead: None,
            passed_through: None,
            asides: Vec::new(),
            distinct: None,
            top: Vec::new(),
        }
    }
}

/// Finds out what a column holds.
pub(crate) fn infer(cells: &impl Cells, wish: &Wish<'_>) -> Result<Inferred, Trouble> {
    let wants_numbers = matches!(wish.kind, Some(Kind::Continuous | Kind::Integer));
    let mut odd = None;
    if wants_numbers || (wish.kind.is_none() && !wish.typed) {
        let mut survey = survey(cells, wish, b'.');
        if !survey.is_numeric() && wish.comma {
            let comma = self::survey(cells, wish, b',');
            if comma.is_numeric() {
                survey = comma;
            }
        }
        if survey.is_numeric() || (wants_numbers && survey.strange.is_empty()) {
            return numeric(cells, wish, &survey);
        }
        if let Some((text, _, row)) = survey.strange.first() {
            let got = String::from_utf8_lossy(text).into_owned();
            if wants_numbers {
                return Err(Trouble::Cell { row: *row, expected: "a number".to_owned(), got });
            }
            if survey.complete && survey.numbers >= 9 * survey.strange.iter().map(|s| s.1).sum::<usize>() {
                let why = "not a number, unlike nearly all others; the column is read as text".to_owned();
                odd = Some((*row, got, why));
            }
        }
    }
    let mut inferred = textual(cells, wish)?;
    inferred.odd = odd;
    Ok(inferred)
}

/// What the cells of a column are as numbers.
struct Survey {
    point: u8,
    numbers: usize,
    whole: bool,
    exact: bool,
    quoted: bool,
    decimals: u32,
    /// Whether each number is one more than the one before it, from 0 or 1 on, with none missing.
    counts_up: bool,
    /// A number that begins with a zero, as codes do.
    zero_led: Option<String>,
    /// The texts that are no numbers, how often, and the first row.
    strange: Vec<(Vec<u8>, usize, usize)>,
    /// Whether all cells were looked at: with several strange texts the rest is not worth it.
    complete: bool,
}

impl Survey {
    fn is_numeric(&self) -> bool {
        match self.strange.as_slice() {
            [] => self.numbers > 0,
            [(text, ..)] => self.complete && self.numbers >= 2 && means_nothing(text),
            _ => false,
        }
    }
}

const STRANGE_ENOUGH: usize = 4;

fn survey(cells: &impl Cells, wish: &Wish<'_>, point: u8) -> Survey {
    let missing = Missing::new(wish.na, wish.na_column, true);
    let mut s = Survey {
        point,
        numbers: 0,
        whole: true,
        exact: true,
        quoted: true,
        decimals: 0,
        counts_up: true,
        zero_led: None,
        strange: Vec::new(),
        complete: true,
    };
    let mut before = None;
    let stopped = cells.each(|row, cell| {
        let Some(cell) = cell else {
            s.counts_up = false;
            return Ok(());
        };
        match number::parse(cell.text, point) {
            Number::Finite(value) if missing.is_number(value) => s.counts_up = false,
            Number::Finite(value) => {
                s.numbers += 1;
                if !number::is_whole(cell.text) {
                    s.whole = false;
                    s.decimals = s.decimals.max(number::decimals(cell.text, point));
                }
                s.exact &= value.abs() < LARGEST_EXACT;
                s.quoted &= cell.quoting != crate::cells::Quoting::Bare;
                s.counts_up &= before.map_or(value == 0.0 || value == 1.0, |b| value == b + 1.0);
                before = Some(value);
                if s.zero_led.is_none() && cell.text.len() > 1 && cell.text[0] == b'0' && number::is_whole(cell.text) {
                    s.zero_led = Some(cell.string());
                }
            }
            _ if missing.is_word(&cell) => s.counts_up = false,
            Number::Infinite => s.counts_up = false,
            Number::No => {
                s.counts_up = false;
                match s.strange.iter_mut().find(|(text, ..)| text == cell.text) {
                    Some((_, count, _)) => *count += 1,
                    None => s.strange.push((cell.text.to_vec(), 1, row)),
                }
                if s.strange.len() >= STRANGE_ENOUGH {
                    return Err(());
                }
            }
        }
        Ok(())
    });
    s.complete = stopped.is_ok();
    s
}

fn numeric(cells: &impl Cells, wish: &Wish<'_>, survey: &Survey) -> Result<Inferred, Trouble> {
    let found = survey.strange.first().map(|(text, ..)| String::from_utf8_lossy(text).into_owned());
    let na: Vec<String> = wish.na_column.iter().cloned().chain(found.clone()).collect();
    let (kind, reason) = match wish.kind {
        Some(Kind::Integer) if !survey.whole => {
            check_whole(cells, &Wish { na_column: &na, ..wish.clone() }, survey.point)?;
            (Kind::Integer, "asked for")
        }
        Some(kind) => (kind, "asked for"),
        None if survey.numbers == 0 => (Kind::Continuous, "no observed value"),
        None if survey.whole && !survey.exact => {
            (Kind::Identifier, "whole numbers beyond 2^53, which a filled table could not give back exactly")
        }
        None if survey.whole && survey.counts_up && survey.numbers >= 10 => (Kind::Identifier, "it counts the rows"),
        None if survey.whole && is_id(wish.name) && all_distinct(cells, survey.point) => {
            (Kind::Identifier, "named like a key, and every value differs")
        }
        None if survey.whole => (Kind::Integer, "whole numbers"),
        None => (Kind::Continuous, "numbers"),
    };
    let mut inferred = Inferred::new(wish.name, kind, reason);
    inferred.reading.na = na;
    inferred.reading.decimal_comma = survey.point == b',';
    inferred.reading.decimals = survey.decimals;
    inferred.reading.quoted = survey.quoted && survey.numbers > 0;
    inferred.found = found;
    // As numbers, whole numbers beyond 2^53 would not come back exactly.
    inferred.instead = (kind == Kind::Identifier && wish.kind.is_none() && survey.exact).then_some(Kind::Integer);
    if let (Some(code), true) = (&survey.zero_led, kind == Kind::Integer) {
        let text = format!("`{code}` begins with a zero: these may be codes");
        inferred.asides.push(Note::or_kind(text, wish.name, Some(Kind::Categorical)));
    }
    Ok(inferred)
}

fn check_whole(cells: &impl Cells, wish: &Wish<'_>, point: u8) -> Result<(), Trouble> {
    let missing = Missing::new(wish.na, wish.na_column, true);
    cells.each(|row, cell| match cell {
        Some(cell) => match number::parse(cell.text, point) {
            Number::Finite(v) if v != v.trunc() && !missing.is_number(v) => {
                Err(Trouble::Cell { row, expected: "a whole number".to_owned(), got: cell.string() })
            }
            _ => Ok(()),
        },
        None => Ok(()),
    })
}

/// Whether a column is named like a key.
pub(crate) fn is_id(name: &str) -> bool {
    let lower = name.to_lowercase();
    ["id", "uuid", "guid", "index", "rowid", "row_number"].contains(&lower.as_str())
        || lower.ends_with("_id")
        || lower.ends_with("-id")
        || lower.ends_with(" id")
        || name.ends_with("Id") && name.len() > 2
        || lower.ends_with("uuid")
}

fn all_distinct(cells: &impl Cells, point: u8) -> bool {
    let mut seen = HashSet::new();
    let all = cells.each(|_, cell| match cell.map(|c| number::parse(c.text, point)) {
        Some(Number::Finite(v)) if !seen.insert(v.to_bits()) => Err(()),
        _ => Ok(()),
    });
    all.is_ok() && seen.len() >= 2
}

/// The different texts of a column.
struct Texts {
    counts: HashMap<Vec<u8>, usize>,
    observed: usize,
    quoted: bool,
}

fn texts(cells: &impl Cells, wish: &Wish<'_>) -> Texts {
    let missing = Missing::new(wish.na, wish.na_column, false);
    let mut texts = Texts { counts: HashMap::new(), observed: 0, quoted: true };
    let seen: Result<(), Infallible> = cells.each(|_, cell| {
        let Some(cell) = cell.filter(|c: &Cell<'_>| !missing.is_word(c)) else { return Ok(()) };
        texts.observed += 1;
        texts.quoted &= cell.quoting == crate::cells::Quoting::Quoted;
        match texts.counts.get_mut(cell.text) {
            Some(count) => *count += 1,
            None => {
                texts.counts.insert(cell.text.to_vec(), 1);
            }
        }
        Ok(())
    });
    let Ok(()) = seen;
    texts
}

fn textual(cells: &impl Cells, wish: &Wish<'_>) -> Result<Inferred, Trouble> {
    let texts = texts(cells, wish);
    let mut levels: Vec<(String, usize)> =
        texts.counts.iter().map(|(text, &count)| (String::from_utf8_lossy(text).into_owned(), count)).collect();
    levels.sort_unstable();
    let (kind, reason, timestamp) = textual_kind(&texts, &levels, wish)?;
    let mut inferred = Inferred::new(wish.name, kind, reason);
    inferred.distinct = Some(levels.len());
    if kind.has_levels() {
        inferred.top.clone_from(&levels);
        inferred.top.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        inferred.top.truncate(5);
        inferred.spec.levels = in_order(kind, levels.into_iter().map(|(level, _)| level).collect());
    }
    if kind == Kind::Boolean && inferred.spec.levels.len() > 2 {
        let reason = format!("it has {} different values", inferred.spec.levels.len());
        return Err(Trouble::Kind { kind, reason });
    }
    if let Some((format, ambiguous)) = timestamp {
        inferred.spec.step = format.step();
        inferred.reading.timestamp = Some(format);
        if ambiguous {
            inferred.asides.push("day and month are ambiguous: read as day first".to_owned().into());
        }
    }
    if kind == Kind::Categorical && wish.kind.is_none() && !wish.typed && looks_ambiguous(&inferred.spec.levels) {
        let text = "these may be dates, but day and month are ambiguous".to_owned();
        inferred.asides.push(Note::or_kind(text, wish.name, Some(Kind::Datetime)));
    }
    inferred.instead = (kind == Kind::Identifier && wish.kind.is_none()).then_some(Kind::Categorical);
    inferred.reading.na = wish.na_column.to_vec();
    inferred.reading.quoted = texts.quoted && texts.observed > 0;
    Ok(inferred)
}

type TextualKind = (Kind, String, Option<(TimestampFormat, bool)>);

fn textual_kind(texts: &Texts, levels: &[(String, usize)], wish: &Wish<'_>) -> Result<TextualKind, Trouble> {
    let plain = |kind, reason: &str| Ok((kind, reason.to_owned(), None));
    match wish.kind {
        Some(Kind::Datetime) => {
            return match timestamps(levels) {
                Found::Format(format) => Ok((Kind::Datetime, "asked for".to_owned(), Some((format, false)))),
                Found::Ambiguous(format) => Ok((Kind::Datetime, "asked for".to_owned(), Some((format, true)))),
                Found::No if levels.is_empty() => plain(Kind::Datetime, "asked for"),
                Found::No => {
                    let first = &levels[0].0;
                    let reason = format!("no date format fits all of its values, such as `{first}`");
                    Err(Trouble::Kind { kind: Kind::Datetime, reason })
                }
            };
        }
        Some(kind) => return plain(kind, "asked for"),
        None => {}
    }
    if levels.is_empty() {
        let kind = if wish.typed { Kind::Categorical } else { Kind::Continuous };
        return plain(kind, "no observed value");
    }
    if !wish.typed {
        if boolean(levels).is_some() {
            return plain(Kind::Boolean, "two values that mean no and yes");
        }
        if let Found::Format(format) = timestamps(levels) {
            return Ok((Kind::Datetime, "dates of one format".to_owned(), Some((format, false))));
        }
    }
    let (distinct, observed) = (levels.len(), texts.observed);
    let nearly = distinct > 20 && observed >= 30 && 2 * distinct > observed;
    if observed >= 2 && (distinct == observed || nearly) {
        let short = levels.iter().filter(|(text, _)| text.len() <= 40 && !text.contains(' ')).count();
        let much = if distinct == observed { "every value differs" } else { "most values differ" };
        return if 10 * short >= 9 * distinct {
            plain(Kind::Identifier, &format!("{much}, and they are short"))
        } else {
            plain(Kind::Text, &format!("{much}, and they have spaces or are long"))
        };
    }
    plain(Kind::Categorical, &format!("text with {distinct} {}", if distinct == 1 { "level" } else { "levels" }))
}

fn timestamps(levels: &[(String, usize)]) -> Found {
    let mut finder = Finder::default();
    for (text, _) in levels {
        if !finder.see(text) {
            break;
        }
    }
    finder.found()
}

fn looks_ambiguous(levels: &[String]) -> bool {
    let mut finder = Finder::default();
    levels.iter().all(|l| finder.see(l)) && matches!(finder.found(), Found::Ambiguous(_))
}

const BOOLEANS: [(&str, &str); 4] = [("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y")];

/// The words for no and yes, where the levels are such a pair in one case style.
fn boolean(levels: &[(String, usize)]) -> Option<()> {
    let [(a, _), (b, _)] = levels else { return None };
    let style = |text: &str| {
        let mut chars = text.chars();
        let first = chars.next().is_some_and(char::is_uppercase);
        (first, chars.clone().next().is_some() && chars.all(char::is_uppercase))
    };
    let (low_a, low_b) = (a.to_lowercase(), b.to_lowercase());
    let pair = BOOLEANS.iter().any(|&(no, yes)| (low_a == no && low_b == yes) || (low_a == yes && low_b == no));
    (pair && style(a).0 == style(b).0 && (a.len() == 1 || style(a) == style(b))).then_some(())
}

/// The levels as their kind orders them: no before yes, numbers by size where all are numbers, else by text.
pub(crate) fn in_order(kind: Kind, mut levels: Vec<String>) -> Vec<String> {
    match kind {
        Kind::Boolean => {
            let no = |level: &String| level == "0" || BOOLEANS.iter().any(|&(no, _)| level.eq_ignore_ascii_case(no));
            levels.sort_by_key(|level| !no(level));
        }
        Kind::Ordered => {
            let numbers: Option<Vec<f64>> = levels
                .iter()
                .map(|l| match number::parse(l.as_bytes(), b'.') {
                    Number::Finite(v) => Some(v),
                    _ => None,
                })
                .collect();
            if let Some(numbers) = numbers {
                let mut pairs: Vec<(f64, String)> = numbers.into_iter().zip(levels).collect();
                pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
                return pairs.into_iter().map(|(_, level)| level).collect();
            }
        }
        _ => {}
    }
    levels
}
