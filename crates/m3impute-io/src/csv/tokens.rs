//! Where records and fields begin and end. Quotes stay where they are: a field is its very bytes.

use crate::cells::{Cell, Cells, Quoting};

/// How the scan of a record ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// At a line end; the next record begins here.
    Line(usize),
    /// At the end of the text, where more may follow.
    Text,
    /// At the end of the text inside quotes that begin here.
    Quote(usize),
}

/// Finds the fields of the record that begins at `at`, and adds where each ends, counted from `at`.
pub(crate) fn scan(text: &[u8], at: usize, delimiter: u8, ends: &mut Vec<u32>) -> Scan {
    let begin = at;
    let mut at = at;
    loop {
        if text.get(at) == Some(&b'"') {
            match closing(text, at + 1) {
                Some(after) => at = after,
                None => return Scan::Quote(at),
            }
        }
        while let Some(&b) = text.get(at) {
            if b == delimiter || b == b'\n' || b == b'\r' {
                break;
            }
            at += 1;
        }
        ends.push((at - begin) as u32);
        match text.get(at) {
            None => return Scan::Text,
            Some(b'\n') => return Scan::Line(at + 1),
            Some(b'\r') => match text.get(at + 1) {
                Some(b'\n') => return Scan::Line(at + 2),
                Some(_) => return Scan::Line(at + 1),
                // Whether a line feed follows is not known yet.
                None => return Scan::Text,
            },
            Some(_) => at += 1,
        }
    }
}

/// Where the quotes that are open at `at` end: after the first quote that is not doubled.
fn closing(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let quote = at + memchr::memchr(b'"', text.get(at..)?)?;
        if text.get(quote + 1) != Some(&b'"') {
            return Some(quote + 1);
        }
        at = quote + 2;
    }
}

/// The records of a text and their fields.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    /// Where each record begins.
    pub(crate) starts: Vec<usize>, // [n]
    /// Where each field ends, counted from the begin of its record.
    pub(crate) ends: Vec<u32>, // [n, fields]
    /// How many fields each record has.
    pub(crate) fields: usize,
}

impl Tokens {
    pub(crate) fn rows(&self) -> usize {
        self.starts.len()
    }

    /// Where a field's bytes stand.
    pub(crate) fn range(&self, row: usize, field: usize) -> std::ops::Range<usize> {
        let (start, first) = (self.starts[row], row * self.fields);
        let begin = if field == 0 { 0 } else { self.ends[first + field - 1] as usize + 1 };
        start + begin..start + self.ends[first + field] as usize
    }

    /// Where a record's last field ends.
    pub(crate) fn record_end(&self, row: usize) -> usize {
        self.starts[row] + self.ends[(row + 1) * self.fields - 1] as usize
    }
}

/// A field without its quotes. `buffer` holds the text where quotes inside it were doubled.
pub(crate) fn unquoted<'a>(raw: &'a [u8], buffer: &'a mut Vec<u8>) -> Cell<'a> {
    let Some(inner) = raw.strip_prefix(b"\"") else {
        return Cell { text: raw.trim_ascii(), quoting: Quoting::Bare };
    };
    let quoting = Quoting::Quoted;
    // The usual case: one quote at the very end.
    if let Some(text) = inner.strip_suffix(b"\"")
        && memchr::memchr(b'"', text).is_none()
    {
        return Cell { text, quoting };
    }
    buffer.clear();
    let (mut open, mut at) = (true, 0);
    while let Some(&b) = inner.get(at) {
        if b == b'"' && open {
            if inner.get(at + 1) == Some(&b'"') {
                buffer.push(b'"');
                at += 1;
            } else {
                open = false;
            }
        } else {
            buffer.push(b);
        }
        at += 1;
    }
    Cell { text: buffer, quoting }
}

/// One field of every record.
pub(crate) struct Fields<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) tokens: &'a Tokens,
    pub(crate) field: usize,
}

impl Cells for Fields<'_> {
    fn each<E>(&self, mut see: impl FnMut(usize, Option<Cell<'_>>) -> Result<(), E>) -> Result<(), E> {
        let mut buffer = Vec::new();
        for row in 0..self.tokens.rows() {
            see(row, Some(unquoted(&self.text[self.tokens.range(row, self.field)], &mut buffer)))?;
        }
        Ok(())
    }
}

/// How many lines end in these bytes.
pub(crate) fn count_lines(text: &[u8]) -> usize {
    let feeds = memchr::memchr_iter(b'\n', text).count();
    if feeds == 0 { memchr::memchr_iter(b'\r', text).count() } else { feeds }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> (Vec<String>, Scan) {
        let mut ends = Vec::new();
        let scan = scan(text.as_bytes(), 0, b',', &mut ends);
        let mut begin = 0;
        let fields = ends.iter().map(|&end| {
            let field = text[begin..end as usize].to_owned();
            begin = end as usize + 1;
            field
        });
        (fields.collect(), scan)
    }

    #[test]
    fn fields_keep_their_quotes() {
        assert_eq!(
            fields("a,\"b,\n\"\"c\",\r\nd"),
            (vec!["a".into(), "\"b,\n\"\"c\"".into(), String::new()], Scan::Line(13))
        );
        assert_eq!(fields("a"), (vec!["a".into()], Scan::Text));
        assert_eq!(fields("a\rb").1, Scan::Line(2));
        assert_eq!(fields("a\r").1, Scan::Text);
        assert_eq!(fields("a,\"b").1, Scan::Quote(2));
        assert_eq!(fields("5\"x,b\n").0, ["5\"x", "b"]);
    }

    #[test]
    fn quotes_are_taken_off() {
        let of = |raw: &str| {
            let mut buffer = Vec::new();
            let cell = unquoted(raw.as_bytes(), &mut buffer);
            (String::from_utf8(cell.text.to_vec()).unwrap(), cell.quoting)
        };
        assert_eq!(of(" a "), ("a".to_owned(), Quoting::Bare));
        assert_eq!(of("\" a \""), (" a ".to_owned(), Quoting::Quoted));
        assert_eq!(of("\"a\"\"b\""), ("a\"b".to_owned(), Quoting::Quoted));
        assert_eq!(of("\"a\"b"), ("ab".to_owned(), Quoting::Quoted));
        assert_eq!(of("\"\""), (String::new(), Quoting::Quoted));
    }
}
