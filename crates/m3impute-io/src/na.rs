//! Which texts mean missing.

use crate::cells::{Cell, Quoting};
use crate::number::{self, Number};

/// The words that mean missing where they stand unquoted, unless others are asked for.
pub(crate) const USUAL: [&str; 8] = ["NA", "N/A", "NaN", "nan", "null", "NULL", "<NA>", "#N/A"];

/// The word that means missing in columns of numbers only: elsewhere it is a level like another.
pub(crate) const IN_NUMBERS: &str = "None";

/// Which texts of a column mean missing.
#[derive(Debug)]
pub(crate) struct Missing<'a> {
    bare: Vec<&'a [u8]>,
    always: Vec<&'a [u8]>,
    numbers: Vec<f64>,
}

impl<'a> Missing<'a> {
    /// The general words (`None` for the usual ones), those of the column, and whether the column holds numbers.
    pub(crate) fn new(general: Option<&'a [String]>, column: &'a [String], in_numbers: bool) -> Missing<'a> {
        let mut bare: Vec<&[u8]> = match general {
            Some(words) => words.iter().map(String::as_bytes).collect(),
            None => USUAL.iter().map(|w| w.as_bytes()).collect(),
        };
        let always: Vec<&[u8]> = column.iter().map(String::as_bytes).collect();
        let mut numbers = Vec::new();
        if in_numbers {
            if general.is_none() {
                bare.push(IN_NUMBERS.as_bytes());
            }
            let asked = general.unwrap_or_default().iter().chain(column);
            numbers.extend(asked.filter_map(|w| match number::parse(w.trim().as_bytes(), b'.') {
                Number::Finite(value) => Some(value),
                _ => None,
            }));
        }
        Missing { bare, always, numbers }
    }

    /// Whether the text of the cell means missing.
    pub(crate) fn is_word(&self, cell: &Cell<'_>) -> bool {
        match cell.quoting {
            Quoting::Bare => cell.text.is_empty() || self.bare.contains(&cell.text) || self.always.contains(&cell.text),
            Quoting::Quoted => cell.text.is_empty() || self.always.contains(&cell.text),
            Quoting::Typed => self.always.contains(&cell.text),
        }
    }

    /// Whether the number means missing.
    pub(crate) fn is_number(&self, value: f64) -> bool {
        self.numbers.contains(&value)
    }
}

/// How a missing cell is called when it is counted.
pub(crate) fn shown(text: &[u8]) -> String {
    if text.is_empty() { "(empty)".to_owned() } else { String::from_utf8_lossy(text).into_owned() }
}

/// Whether a text that is the only one among numbers is a way to write that there is none.
pub(crate) fn means_nothing(text: &[u8]) -> bool {
    const WORDS: [&str; 16] = [
        "na",
        "n/a",
        "n.a.",
        "nan",
        "-nan",
        "null",
        "none",
        "nil",
        "missing",
        "unknown",
        "undefined",
        "not available",
        "#value!",
        "#div/0!",
        "#ref!",
        "#null!",
    ];
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let marks = text.chars().count() <= 3 && text.chars().all(|c| !c.is_alphanumeric());
    marks || WORDS.contains(&text.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(text: &str) -> Cell<'_> {
        Cell { text: text.as_bytes(), quoting: Quoting::Bare }
    }

    #[test]
    fn words_mean_missing_only_without_quotes() {
        let usual = Missing::new(None, &[], false);
        assert!(
            ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "<NA>", "#N/A"].iter().all(|w| usual.is_word(&bare(w)))
        );
        assert!(!usual.is_word(&Cell { text: b"NA", quoting: Quoting::Quoted }));
        assert!(usual.is_word(&Cell { text: b"", quoting: Quoting::Quoted }));
        assert!(!usual.is_word(&Cell { text: b"", quoting: Quoting::Typed }));
        assert!(!usual.is_word(&bare("None")) && !usual.is_word(&bare("na")));
    }

    #[test]
    fn none_means_missing_among_numbers() {
        assert!(Missing::new(None, &[], true).is_word(&bare("None")));
    }

    #[test]
    fn asked_words_replace_the_usual_and_a_column_adds_its_own() {
        let (general, column) = (["?".to_owned()], ["-99".to_owned()]);
        let asked = Missing::new(Some(&general), &column, true);
        assert!(asked.is_word(&bare("?")) && !asked.is_word(&bare("NA")) && asked.is_word(&bare("")));
        assert!(asked.is_word(&bare("-99")) && asked.is_number(-99.0) && !asked.is_number(99.0));
    }

    #[test]
    fn marks_and_some_words_mean_nothing() {
        assert!([&b"?"[..], b"-", b".", b"--", b"Missing", b"NAN"].iter().all(|t| means_nothing(t)));
        assert!([&b"high"[..], b"x", b"3?"].iter().all(|t| !means_nothing(t)));
    }
}
