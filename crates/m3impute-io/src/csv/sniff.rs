//! Which delimiter a text has.

use super::tokens::{Scan, scan};
use crate::number::{self, Number};

const CANDIDATES: [u8; 4] = [b'\t', b'|', b';', b','];
const RECORDS: usize = 200;

/// The delimiter of a text that begins like this; a comma where nothing speaks for another.
pub(crate) fn delimiter(text: &[u8]) -> u8 {
    let mut best: Option<Guess> = None;
    for candidate in CANDIDATES {
        let Some(guess) = guess(text, candidate) else { continue };
        if best.as_ref().is_none_or(|b| guess.beats(b)) {
            best = Some(guess);
        }
    }
    best.map_or(b',', |b| b.delimiter)
}

struct Guess {
    delimiter: u8,
    fields: usize,
    records: usize,
    agreeing: usize,
    /// Whether fields are numbers with a decimal comma, which speaks for a semicolon.
    commas: bool,
}

impl Guess {
    fn beats(&self, other: &Guess) -> bool {
        let (mine, others) = (self.agreeing * other.records, other.agreeing * self.records);
        if mine != others {
            return mine > others;
        }
        !other.commas && self.fields > other.fields
    }
}

fn guess(text: &[u8], delimiter: u8) -> Option<Guess> {
    let (mut at, mut ends) = (0, Vec::new());
    let mut guess = Guess { delimiter, fields: 0, records: 0, agreeing: 0, commas: false };
    while guess.records < RECORDS && at < text.len() {
        ends.clear();
        let (next, cut) = match scan(text, at, delimiter, &mut ends) {
            Scan::Line(next) => (next, false),
            Scan::Text => (text.len(), true),
            Scan::Quote(_) => break,
        };
        if ends.len() == 1 && text[at..at + ends[0] as usize].trim_ascii().is_empty() {
            at = next;
            continue;
        }
        // The last record may be cut off, unless it is all there is.
        if cut && guess.records > 1 {
            break;
        }
        if guess.records == 0 {
            guess.fields = ends.len();
        }
        guess.records += 1;
        guess.agreeing += usize::from(ends.len() == guess.fields);
        if delimiter == b';' && !guess.commas {
            let mut begin = at;
            for &end in &ends {
                let field = &text[begin..at + end as usize];
                guess.commas |= field.contains(&b',') && matches!(number::parse(field, b','), Number::Finite(_));
                begin = at + end as usize + 1;
            }
        }
        at = next;
    }
    (guess.fields > 1).then_some(guess)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_is_sniffed() {
        assert_eq!(delimiter(b"a,b\n1,2\n"), b',');
        assert_eq!(delimiter(b"a;b\n1,5;2,5\n"), b';');
        assert_eq!(delimiter(b"1,5;2,5\n1,5;2,5\n"), b';');
        assert_eq!(delimiter(b"a\tb c\n1\t2,5\n"), b'\t');
        assert_eq!(delimiter(b"a|b\n1|2\n"), b'|');
        assert_eq!(delimiter(b"a\n1\n"), b',');
        assert_eq!(delimiter(b""), b',');
        assert_eq!(delimiter(b"name,note\n\"x;y\",\"a;b;c\"\nu,v;w\n"), b',');
        assert_eq!(delimiter(b"\"a,b\";c\n\"1,2\";3\n"), b';');
    }
}
