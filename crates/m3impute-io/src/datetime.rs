//! Timestamps as text: one format a column, found once and used both ways.

use chrono::{DateTime, Datelike, NaiveDate, Timelike};
use serde::{Deserialize, Serialize};

/// How the timestamps of a column are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimestampFormat {
    /// The order of year, month and day.
    pub order: DateOrder,
    /// What stands between them.
    pub separator: char,
    /// Whether day and month always have two digits.
    pub padded: bool,
    /// The time of day, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeFormat>,
}

/// The order of year, month and day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DateOrder {
    /// Year, month, day.
    Ymd,
    /// Day, month, year.
    Dmy,
    /// Month, day, year.
    Mdy,
}

/// How a time of day is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeFormat {
    /// What stands between date and time: a space or a `T`.
    pub before: char,
    /// Whether there are seconds.
    pub seconds: bool,
    /// The most digits after the seconds' point.
    pub digits: u32,
    /// The zone.
    pub zone: Zone,
}

/// How the zone of a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Zone {
    /// Not at all.
    None,
    /// As `Z`.
    Utc,
    /// As `+01:00`, or `+0100` without the colon.
    Offset {
        /// The minutes east of UTC in the first cell.
        minutes: i32,
        /// Whether there is a colon.
        colon: bool,
    },
}

/// A timestamp as it was written: its value, and the format in which it was.
struct Parsed {
    seconds: f64,
    format: TimestampFormat,
}

impl TimestampFormat {
    /// The seconds between two timestamps that the format can tell apart.
    pub(crate) fn step(&self) -> f64 {
        match self.time {
            None => 86_400.0,
            Some(TimeFormat { seconds: false, .. }) => 60.0,
            Some(TimeFormat { digits, .. }) => 0.1_f64.powi(digits as i32),
        }
    }

    /// The seconds since 1970 of a text in this format. A fraction may have any number of digits; the offset may
    /// differ.
    pub(crate) fn parse(&self, text: &str) -> Option<f64> {
        let parsed = parse_as(text, self.order)?;
        agree(*self, parsed.format).map(|_| parsed.seconds)
    }

    /// The text of a timestamp, rounded to what the format can show.
    pub(crate) fn write(&self, seconds: f64) -> Option<String> {
        let shift = match self.time {
            Some(TimeFormat { zone: Zone::Offset { minutes, .. }, .. }) => f64::from(minutes) * 60.0,
            _ => 0.0,
        };
        let step = self.step();
        let ticks = (seconds / step).round() * step + shift;
        let mut whole = ticks.floor();
        let digits = self.time.map_or(0, |t| t.digits.min(9));
        let scale = 10_f64.powi(digits as i32);
        let mut fraction = ((ticks - whole) * scale).round();
        if fraction >= scale {
            fraction = 0.0;
            whole += 1.0;
        }
        if whole.abs() > 1e14 {
            return None;
        }
        let at = DateTime::from_timestamp(whole as i64, 0)?.naive_utc();
        let (y, m, d, s) = (at.year(), at.month(), at.day(), self.separator);
        let pair = |v: u32| if self.padded { format!("{v:02}") } else { v.to_string() };
        let mut text = match self.order {
            DateOrder::Ymd => format!("{y:04}{s}{}{s}{}", pair(m), pair(d)),
            DateOrder::Dmy => format!("{}{s}{}{s}{y:04}", pair(d), pair(m)),
            DateOrder::Mdy => format!("{}{s}{}{s}{y:04}", pair(m), pair(d)),
        };
        if let Some(time) = self.time {
            text += &format!("{}{:02}:{:02}", time.before, at.hour(), at.minute());
            if time.seconds {
                text += &format!(":{:02}", at.second());
                if digits > 0 {
                    text += &format!(".{:0width$}", fraction as u64, width = digits as usize);
                }
            }
            match time.zone {
                Zone::None => {}
                Zone::Utc => text.push('Z'),
                Zone::Offset { minutes, colon } => {
                    let sign = if minutes < 0 { '-' } else { '+' };
                    let (h, m) = (minutes.abs() / 60, minutes.abs() % 60);
                    text += &format!("{sign}{h:02}{}{m:02}", if colon { ":" } else { "" });
                }
            }
        }
        Some(text)
    }
}

/// The seconds since 1970 of any text that begins with year, month and day.
pub(crate) fn parse_iso(text: &str) -> Option<f64> {
    parse_as(text, DateOrder::Ymd).map(|p| p.seconds)
}

/// What was found out about the dates of a column.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    /// They have this format.
    Format(TimestampFormat),
    /// They are dates, but day and month are ambiguous; day first would be this.
    Ambiguous(TimestampFormat),
    /// Not all of them are dates of one format.
    No,
}

/// Finds the format of a column, text by text.
#[derive(Default)]
pub(crate) struct Finder {
    /// For each order, the format of all texts so far; gone once one does not fit.
    candidates: Vec<TimestampFormat>,
    begun: bool,
}

impl Finder {
    /// Looks at one more text; false once no format is left.
    pub(crate) fn see(&mut self, text: &str) -> bool {
        if self.begun {
            self.candidates =
                self.candidates.iter().filter_map(|&known| agree(known, parse_as(text, known.order)?.format)).collect();
        } else {
            self.begun = true;
            let orders = [DateOrder::Ymd, DateOrder::Dmy, DateOrder::Mdy];
            self.candidates = orders.into_iter().filter_map(|o| Some(parse_as(text, o)?.format)).collect();
        }
        !self.candidates.is_empty()
    }

    pub(crate) fn found(&self) -> Found {
        match self.candidates.as_slice() {
            [only] => Found::Format(*only),
            [first, ..] => Found::Ambiguous(*first),
            [] => Found::No,
        }
    }
}

/// The format of a column with both of these, where there is one.
fn agree(known: TimestampFormat, other: TimestampFormat) -> Option<TimestampFormat> {
    if known.order != other.order || known.separator != other.separator {
        return None;
    }
    let time = match (known.time, other.time) {
        (None, None) => None,
        (Some(a), Some(b)) if a.before == b.before && a.seconds == b.seconds => {
            let same_zone = match (a.zone, b.zone) {
                (Zone::Offset { colon: a, .. }, Zone::Offset { colon: b, .. }) => a == b,
                (a, b) => a == b,
            };
            if !same_zone {
                return None;
            }
            Some(TimeFormat { digits: a.digits.max(b.digits), ..a })
        }
        _ => return None,
    };
    Some(TimestampFormat { padded: known.padded && other.padded, time, ..known })
}

/// Reads a timestamp whose date has that order.
fn parse_as(text: &str, order: DateOrder) -> Option<Parsed> {
    let mut at = Reader { bytes: text.as_bytes(), at: 0 };
    let (a, a_digits) = at.number(1, 4)?;
    let separator = at.next()?;
    let allowed: &[u8] = if order == DateOrder::Ymd {
        b"-/."
    } else if order == DateOrder::Dmy {
        b"/.-"
    } else {
        b"/-"
    };
    if !allowed.contains(&separator) {
        return None;
    }
    let (b, b_digits) = at.number(1, 2)?;
    if at.next()? != separator {
        return None;
    }
    let (c, c_digits) = at.number(1, 4)?;
    let (year, month, day, year_digits, others) = match order {
        DateOrder::Ymd => (a, b, c, a_digits, [b_digits, c_digits]),
        DateOrder::Dmy => (c, b, a, c_digits, [a_digits, b_digits]),
        DateOrder::Mdy => (c, a, b, c_digits, [a_digits, b_digits]),
    };
    if year_digits != 4 || others.iter().any(|&d| d > 2) {
        return None;
    }
    let date = NaiveDate::from_ymd_opt(year as i32, month, day)?;
    let days = date.signed_duration_since(NaiveDate::from_ymd_opt(1970, 1, 1)?).num_days();
    let mut seconds = days as f64 * 86_400.0;
    let mut time = None;
    if let Some(before) = at.next() {
        let (value, format) = at.time(before)?;
        seconds += value;
        time = Some(format);
    }
    let padded = others.iter().all(|&d| d == 2);
    Some(Parsed { seconds, format: TimestampFormat { order, separator: separator as char, padded, time } })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// A number of so many digits, and how many it had.
    fn number(&mut self, least: usize, most: usize) -> Option<(u32, usize)> {
        let rest = self.bytes.get(self.at..)?;
        let digits = rest.iter().take(most).take_while(|b| b.is_ascii_digit()).count();
        if digits < least {
            return None;
        }
        self.at += digits;
        Some((rest[..digits].iter().fold(0, |v, b| v * 10 + u32::from(b - b'0')), digits))
    }

    /// The rest of the text as a time of day: seconds, and how they are written.
    fn time(&mut self, before: u8) -> Option<(f64, TimeFormat)> {
        if before != b' ' && before != b'T' {
            return None;
        }
        let (hour, _) = self.number(2, 2)?;
        if self.next()? != b':' {
            return None;
        }
        let (minute, _) = self.number(2, 2)?;
        let (mut second, mut has_seconds, mut fraction, mut digits) = (0, false, 0.0, 0);
        if self.peek() == Some(b':') {
            self.at += 1;
            second = self.number(2, 2)?.0;
            has_seconds = true;
            if self.peek() == Some(b'.') {
                self.at += 1;
                let (value, count) = self.number(1, 9)?;
                fraction = f64::from(value) / 10_f64.powi(count as i32);
                digits = count as u32;
            }
        }
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let (zone, minutes) = match self.next() {
            None => (Zone::None, 0),
            Some(b'Z') => (Zone::Utc, 0),
            Some(sign @ (b'+' | b'-')) => {
                let (h, _) = self.number(2, 2)?;
                let colon = self.peek() == Some(b':');
                self.at += usize::from(colon);
                let (m, _) = self.number(2, 2)?;
                if h > 23 || m > 59 {
                    return None;
                }
                let minutes = (h * 60 + m) as i32 * if sign == b'-' { -1 } else { 1 };
                (Zone::Offset { minutes, colon }, minutes)
            }
            Some(_) => return None,
        };
        if self.peek().is_some() {
            return None;
        }
        let seconds = f64::from(hour * 3600 + minute * 60 + second) + fraction - f64::from(minutes) * 60.0;
        Some((seconds, TimeFormat { before: before as char, seconds: has_seconds, digits, zone }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str]) -> Found {
        let mut finder = Finder::default();
        for text in texts {
            finder.see(text);
        }
        finder.found()
    }

    fn format(texts: &[&str]) -> TimestampFormat {
        let Found::Format(format) = found(texts) else { panic!("no single format for {texts:?}") };
        format
    }

    #[test]
    fn every_format_is_read_and_written_back() {
        let columns: [(&[&str], f64, f64); 11] = [
            (&["1970-01-02", "2024-01-31"], 86_400.0, 86_400.0),
            (&["1970-01-01 00:30"], 1_800.0, 60.0),
            (&["1970-01-01T00:00:07"], 7.0, 1.0),
            (&["1970-01-01 00:00:07.25"], 7.25, 0.01),
            (&["1970-01-01T00:00:07Z"], 7.0, 1.0),
            (&["1970-01-01T01:00:07+01:00"], 7.0, 1.0),
            (&["1969-12-31T23:30:00-0030"], 0.0, 1.0),
            (&["02/01/1970", "31/01/2024"], 86_400.0, 86_400.0),
            (&["01/02/1970", "01/31/2024"], 86_400.0, 86_400.0),
            (&["13.1.1970"], 12.0 * 86_400.0, 86_400.0),
            (&["1970/01/02"], 86_400.0, 86_400.0),
        ];
        for (texts, seconds, step) in columns {
            let format = format(texts);
            assert!((format.parse(texts[0]).unwrap() - seconds).abs() < 1e-9, "{texts:?}");
            assert!((format.step() - step).abs() < 1e-12, "{texts:?}");
            for text in texts {
                assert_eq!(&format.write(format.parse(text).unwrap()).unwrap(), text);
            }
        }
    }

    #[test]
    fn day_and_month_must_be_told_apart() {
        assert!(matches!(found(&["01/02/2024", "03/04/2024"]), Found::Ambiguous(f) if f.order == DateOrder::Dmy));
        assert_eq!(format(&["01/02/2024", "13/04/2024"]).order, DateOrder::Dmy);
        assert_eq!(found(&["13/01/2024", "01/13/2024"]), Found::No);
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in ["", "2024", "2024-13-01", "2024-02-30", "1.5", "24-01-01", "2024-01-01x", "2024-01-01 25:00", "é"]
        {
            assert_eq!(found(&[text]), Found::No, "{text}");
        }
        assert_eq!(found(&["2024-01-01", "2024-01-01 10:00"]), Found::No);
    }

    #[test]
    fn a_filled_timestamp_is_rounded_to_the_format() {
        assert_eq!(format(&["2024-01-31"]).write(86_400.0 * 1.6).unwrap(), "1970-01-03");
        assert_eq!(format(&["2024-01-31 10:00"]).write(119.0).unwrap(), "1970-01-01 00:02");
        assert_eq!(format(&["2024-01-31"]).write(f64::INFINITY), None);
    }
}
