//! A text document on its way out: its own bytes, but for the cells that change.

use super::read::{TextSource, header_tokens};
use crate::column::filled_text;
use crate::document::{Change, Document};
use crate::encoding;
use crate::error::Result;
use crate::extra::ExtraColumn;
use crate::na;
use m3impute_core::Table;

/// The bytes of a text document with its changes, without some columns and with others after its own. The header comes
/// before the first chunk only.
pub(crate) fn write_text(
    document: &Document,
    source: &TextSource,
    change: Change<'_>,
    delimiter: u8,
    (drop, extras): (&[String], &[ExtraColumn]),
    first: bool,
) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(source.text.len() + source.text.len() / 8 + source.head.len());
    let kept: Vec<usize> = (0..source.names.len()).filter(|&f| !drop.contains(&source.names[f])).collect();
    let same = delimiter == source.dialect.delimiter && kept.len() == source.names.len() && extras.is_empty();
    let layout = Layout { kept, delimiter, extras };
    if first {
        if same { out.extend_from_slice(&source.head) } else { put_head(source, &layout, &mut out) }
    }
    match change {
        Change::Fill(filled) if same => fill_in_place(document, source, filled, &mut out),
        _ => rewrite(document, source, change, &layout, &mut out),
    }
    let encoding = source.dialect.encoding;
    let mut bytes = encoding::encode(encoding, out)?;
    if first && source.dialect.mark > 0 {
        bytes.splice(0..0, encoding::mark(encoding, source.dialect.mark).iter().copied());
    }
    Ok(bytes)
}

/// What a record is made of.
struct Layout<'a> {
    /// The fields that stay.
    kept: Vec<usize>,
    delimiter: u8,
    /// What follows them.
    extras: &'a [ExtraColumn],
}

/// The text of filled cells, quoted where it must be. The last text of each column is kept: many methods fill a column
/// with one value.
struct Filler<'a> {
    document: &'a Document,
    filled: &'a Table,
    delimiter: u8,
    last: Vec<(u64, Vec<u8>)>,
}

impl<'a> Filler<'a> {
    fn new(document: &'a Document, filled: &'a Table, delimiter: u8) -> Filler<'a> {
        // The first entry matches no value: it is a NaN with its own bits.
        Filler { document, filled, delimiter, last: vec![(u64::MAX, Vec::new()); document.table.cols()] }
    }

    /// Writes the filled cell; false where the table has no value for it.
    fn put(&mut self, row: usize, col: usize, out: &mut Vec<u8>) -> bool {
        if !self.filled.observed().get(row, col) {
            return false;
        }
        let bits = self.filled.number(row, col).to_bits();
        let (known, bytes) = &mut self.last[col];
        if *known != bits {
            let reading = &self.document.reading.columns[col];
            let Some(text) = filled_text(self.filled, row, col, reading) else { return false };
            bytes.clear();
            put_field(&text, self.delimiter, reading.quoted, bytes);
            *known = bits;
        }
        out.extend_from_slice(bytes);
        true
    }
}

fn fill_in_place(document: &Document, source: &TextSource, filled: &Table, out: &mut Vec<u8>) {
    let mut filler = Filler::new(document, filled, source.dialect.delimiter);
    let mut copied = 0;
    for hole in &source.holes {
        out.extend_from_slice(&source.text[copied..hole.start]);
        copied = hole.start;
        if filler.put(hole.row as usize, hole.col as usize, out) {
            copied = hole.end;
        }
    }
    out.extend_from_slice(&source.text[copied..]);
}

/// Record by record: for other delimiters, fewer or more columns, and cells that are emptied.
fn rewrite(document: &Document, source: &TextSource, change: Change<'_>, layout: &Layout<'_>, out: &mut Vec<u8>) {
    let Layout { kept, delimiter, extras } = layout;
    let delimiter = *delimiter;
    let values = document.values_in_holes(extras);
    let tokens = source.tokens();
    let mut column_of = vec![None; source.names.len()];
    for (col, field) in source.fields.iter().enumerate() {
        if let Some(field) = field {
            column_of[*field] = Some(col);
        }
    }
    let mut filler = match change {
        Change::Fill(filled) => Some(Filler::new(document, filled, delimiter)),
        Change::Hide(_) => None,
    };
    let mut holes = source.holes.iter().peekable();
    let begin = tokens.starts.first().copied().unwrap_or(source.text.len());
    out.extend_from_slice(&source.text[..begin]);
    for row in 0..tokens.rows() {
        for (at, &field) in kept.iter().enumerate() {
            if at > 0 {
                out.push(delimiter);
            }
            let range = tokens.range(row, field);
            while holes.next_if(|h| h.start < range.start).is_some() {}
            let hole = holes.peek().is_some_and(|h| h.start == range.start);
            let done = match (change, column_of[field], &mut filler) {
                (Change::Hide(observed), Some(col), _) => !hole && !observed.get(row, col),
                (Change::Fill(_), Some(col), Some(filler)) => hole && filler.put(row, col, out),
                _ => false,
            };
            if !done {
                put_raw(&source.text[range], delimiter, source.dialect.delimiter, out);
            }
        }
        for (at, (extra, values)) in extras.iter().zip(&values).enumerate() {
            if at > 0 || !kept.is_empty() {
                out.push(delimiter);
            }
            if let Some(text) = values[row].and_then(|v| document.extra_text(extra, v)) {
                put_field(&text, delimiter, false, out);
            }
        }
        let next = tokens.starts.get(row + 1).copied().unwrap_or(source.text.len());
        out.extend_from_slice(&source.text[tokens.record_end(row)..next]);
    }
}

fn put_head(source: &TextSource, layout: &Layout<'_>, out: &mut Vec<u8>) {
    let Layout { kept, delimiter, extras } = layout;
    let delimiter = *delimiter;
    let tokens = header_tokens(source);
    if tokens.rows() == 0 {
        return;
    }
    out.extend_from_slice(&source.head[..tokens.starts[0]]);
    for (at, &field) in kept.iter().enumerate() {
        if at > 0 {
            out.push(delimiter);
        }
        put_raw(&source.head[tokens.range(0, field)], delimiter, source.dialect.delimiter, out);
    }
    for (at, extra) in extras.iter().enumerate() {
        if at > 0 || !kept.is_empty() {
            out.push(delimiter);
        }
        put_field(&extra.name, delimiter, false, out);
    }
    out.extend_from_slice(&source.head[tokens.record_end(0)..]);
}

/// A field as it stood, in quotes where only now it needs them.
fn put_raw(raw: &[u8], delimiter: u8, before: u8, out: &mut Vec<u8>) {
    if delimiter != before && raw.first() != Some(&b'"') && raw.contains(&delimiter) {
        put_quoted(raw, out);
    } else {
        out.extend_from_slice(raw);
    }
}

fn put_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &b in text {
        if b == b'"' {
            out.push(b'"');
        }
        out.push(b);
    }
    out.push(b'"');
}

/// Writes a text as a field: in quotes where it must be to come back as this text, or where `quoted` asks for it.
pub(crate) fn put_field(text: &str, delimiter: u8, quoted: bool, out: &mut Vec<u8>) {
    let special = |b: u8| b == delimiter || matches!(b, b'"' | b'\n' | b'\r');
    let must = text.is_empty() || text.bytes().any(special) || text.trim().len() != text.len();
    if must || quoted || na::USUAL.contains(&text) {
        put_quoted(text.as_bytes(), out);
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_quoted_only_where_it_must_be() {
        let of = |text: &str, quoted| {
            let mut out = Vec::new();
            put_field(text, b',', quoted, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(of("a b", false), "a b");
        assert_eq!(of("a,b", false), "\"a,b\"");
        assert_eq!(of("a\"b", false), "\"a\"\"b\"");
        assert_eq!(of("NA", false), "\"NA\"");
        assert_eq!(of("", false), "\"\"");
        assert_eq!(of(" a", false), "\" a\"");
        assert_eq!(of("a", true), "\"a\"");
    }
}
