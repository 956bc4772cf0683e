//! Values of options, from the texts that are given for them.

use m3impute::missing::{HideIn, Mechanism};
use m3impute::{Bounds, Kind, Shift};

pub fn parse_format(text: &str) -> Result<m3impute_io::Format, String> {
    m3impute_io::Format::parse(text).ok_or_else(|| "expected csv, tsv, parquet or arrow".to_owned())
}

pub fn parse_encoding(text: &str) -> Result<m3impute_io::Encoding, String> {
    m3impute_io::Encoding::parse(text).ok_or_else(|| "expected utf-8, utf-16le, utf-16be or latin-1".to_owned())
}

pub fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text {
        "\\t" | "tab" => Ok(b'\t'),
        _ => match text.as_bytes() {
            [one] if !matches!(one, b'"' | b'\r' | b'\n') => Ok(*one),
            _ => Err("expected one character, or `\\t`".to_owned()),
        },
    }
}

/// `key=value`, split at the last `=` before which something stands, so that a column name may hold one.
pub fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.rsplit_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

pub fn parse_na_column(text: &str) -> Result<(String, Vec<String>), String> {
    let (column, tokens) = parse_pair(text)?;
    Ok((column, tokens.split(',').map(str::to_owned).collect()))
}

pub fn parse_kind(text: &str) -> Result<(String, Kind), String> {
    let (column, kind) = parse_pair(text)?;
    let names = Kind::ALL.map(Kind::name);
    let kind = Kind::parse(&kind).ok_or_else(|| format!("expected one of {}, got `{kind}`", names.join(", ")))?;
    Ok((column, kind))
}

pub fn parse_bounds(text: &str) -> Result<(String, Bounds), String> {
    let (column, range) = parse_pair(text)?;
    let end = |text: &str, open: f64| if text.is_empty() { Ok(open) } else { text.parse::<f64>() };
    let bounds = range
        .split_once("..")
        .and_then(|(low, high)| Some(Bounds { low: end(low, f64::MIN).ok()?, high: end(high, f64::MAX).ok()? }));
    match bounds {
        Some(b) if b.low <= b.high => Ok((column, b)),
        _ => Err(format!("expected COLUMN=LOW..HIGH with LOW at most HIGH, got `{text}`")),
    }
}

pub fn parse_shift(text: &str) -> Result<Shift, String> {
    let (column, amount) = parse_pair(text)?;
    Shift::parse(&column, &amount).map_err(|e| e.to_string())
}

pub fn parse_mechanism(text: &str) -> Result<Mechanism, String> {
    Mechanism::parse(text).map_err(|e| e.to_string())
}

pub fn parse_hide_in(text: &str) -> Result<HideIn, String> {
    HideIn::parse(text).map_err(|e| e.to_string())
}

pub fn parse_rate(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|r| *r > 0.0 && *r < 1.0)
        .ok_or_else(|| "expected a share between 0 and 1".to_owned())
}

/// A level of an interval. Distributions are written down up to one in two hundred on either side.
pub fn parse_level(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|l| *l > 0.0 && *l <= 0.99)
        .ok_or_else(|| "expected a probability above 0 and at most 0.99, such as 0.9".to_owned())
}

pub fn parse_seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds = text.parse::<f64>().map_err(|_| "expected a number of seconds".to_owned())?;
    std::time::Duration::try_from_secs_f64(seconds).map_err(|_| "expected a number of seconds of at least 0".to_owned())
}

pub fn parse_chunk(text: &str) -> Result<usize, String> {
    text.parse::<usize>().ok().filter(|&n| n > 0).ok_or_else(|| "expected a number of rows of at least 1".to_owned())
}

pub fn parse_row(text: &str) -> Result<usize, String> {
    text.parse::<usize>().ok().filter(|&n| n > 0).ok_or_else(|| "expected the number of a row, at least 1".to_owned())
}

/// A number of bytes, with a unit or without one.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 8] = [
        ("TIB", (1u64 << 40) as f64),
        ("GIB", (1 << 30) as f64),
        ("MIB", (1 << 20) as f64),
        ("TB", 1e12),
        ("GB", 1e9),
        ("MB", 1e6),
        ("KB", 1e3),
        ("", 1.0),
    ];
    let upper = text.to_ascii_uppercase();
    let (number, unit) = UNITS
        .into_iter()
        .find_map(|(name, unit)| Some((upper.strip_suffix(name)?, unit)))
        .unwrap_or((upper.as_str(), 1.0));
    let bytes = number.trim().parse::<f64>().ok().map(|number| number * unit).filter(|bytes| *bytes >= 1.0);
    bytes.map(|bytes| bytes as u64).ok_or_else(|| "expected a size such as 500MB or 8GB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_or_none() {
        assert_eq!(parse_bytes("500MB"), Ok(500_000_000));
        assert_eq!(parse_bytes("1.5 gb"), Ok(1_500_000_000));
        assert_eq!(parse_bytes("2GiB"), Ok(1 << 31));
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert!(["", "GB", "-1MB", "nan", "much"].iter().all(|text| parse_bytes(text).is_err()));
    }
}
