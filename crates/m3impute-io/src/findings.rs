//! What was found in a column while it was read.

use m3impute_core::{Hint, Kind};
use serde::Serialize;

/// What was found in a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The column.
    pub column: String,
    /// Its kind.
    pub kind: Kind,
    /// Why that kind.
    pub reason: String,
    /// How many rows were read.
    pub rows: usize,
    /// How many cells are missing.
    pub missing: usize,
    /// What stood in the missing cells, most frequent first; an empty cell is `(empty)`, no value at all `(null)`.
    pub tokens: Vec<TokenCount>,
    /// Numbers that may stand for a missing value.
    pub sentinels: Vec<Sentinel>,
    /// How many different values there are, where they were counted.
    pub distinct: Option<usize>,
    /// The smallest number; of a timestamp, in seconds since 1970.
    pub min: Option<f64>,
    /// The largest number.
    pub max: Option<f64>,
    /// The mean of the numbers.
    pub mean: Option<f64>,
    /// The most frequent levels and how often they occur.
    pub top: Vec<(String, usize)>,
    /// The first cell that does not fit the rest.
    pub odd: Option<Odd>,
    /// Cells with a level that training never saw.
    pub unseen: usize,
    /// The first of these levels.
    pub unseen_level: Option<String>,
    /// What a user should know, a sentence each.
    pub notes: Vec<Note>,
    /// The kind that a user could give the column instead, where it is taken for an identifier.
    #[serde(skip)]
    pub(crate) instead: Option<Kind>,
    /// Why it is neither filled nor used, where that is not because of its kind.
    #[serde(skip)]
    pub(crate) passed_through: Option<String>,
    #[serde(skip)]
    pub(crate) asides: Vec<Note>,
}

/// What a user should know about a column. JSON holds the sentence alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Note {
    /// The sentence.
    pub text: String,
    /// What the user can do about it, where that is known.
    #[serde(skip)]
    pub hint: Option<Hint>,
}

impl Note {
    /// The note with a hint that proposes another kind.
    pub(crate) fn or_kind(text: String, column: &str, kind: Option<Kind>) -> Note {
        Note { text, hint: kind.map(|kind| Hint::OverrideKind { column: column.to_owned(), kind }) }
    }
}

impl From<String> for Note {
    fn from(text: String) -> Note {
        Note { text, hint: None }
    }
}

/// A text that stood for missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenCount {
    /// The text.
    pub token: String,
    /// How often.
    pub count: usize,
    /// The first line (of a text file) or row where it stands, counted from 1.
    pub first: usize,
    /// Whether it was found by inference and not in a list.
    pub found: bool,
}

/// A number that may stand for a missing value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sentinel {
    /// The number; of a timestamp, in seconds since 1970.
    pub value: f64,
    /// The same as the file has it.
    pub token: String,
    /// How often it occurs.
    pub count: usize,
    /// What is suspicious about it.
    pub why: String,
}

/// A cell that does not fit the rest of its column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Odd {
    /// The line (of a text file) or row, counted from 1.
    pub at: usize,
    /// Its text.
    pub value: String,
    /// What is odd about it.
    pub why: String,
}

impl Finding {
    pub(crate) fn new(column: &str, kind: Kind, reason: &str) -> Finding {
        Finding {
            column: column.to_owned(),
            kind,
            reason: reason.to_owned(),
            rows: 0,
            missing: 0,
            tokens: Vec::new(),
            sentinels: Vec::new(),
            distinct: None,
            min: None,
            max: None,
            mean: None,
            top: Vec::new(),
            odd: None,
            unseen: 0,
            unseen_level: None,
            notes: Vec::new(),
            instead: None,
            passed_through: None,
            asides: Vec::new(),
        }
    }

    /// Counts a text that stood for missing.
    pub(crate) fn count_token(&mut self, token: &str, row: usize, found: bool) {
        match self.tokens.iter_mut().find(|t| t.token == token) {
            Some(known) => known.count += 1,
            None => self.tokens.push(TokenCount { token: token.to_owned(), count: 1, first: row, found }),
        }
    }

    /// Adds what was found in further rows of the same column.
    pub(crate) fn add(&mut self, later: &Finding) {
        self.rows += later.rows;
        self.missing += later.missing;
        self.unseen += later.unseen;
        if self.unseen_level.is_none() {
            self.unseen_level.clone_from(&later.unseen_level);
        }
        for token in &later.tokens {
            match self.tokens.iter_mut().find(|t| t.token == token.token) {
                Some(known) => known.count += token.count,
                None => self.tokens.push(token.clone()),
            }
        }
        if self.odd.is_none() {
            self.odd.clone_from(&later.odd);
        }
        self.compose();
    }

    /// Puts the tokens in order and says in sentences what a user should know.
    pub(crate) fn compose(&mut self) {
        self.tokens.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.token.cmp(&b.token)));
        let mut notes: Vec<Note> = Vec::new();
        for token in self.tokens.iter().filter(|t| t.token != "(empty)" && t.token != "(null)") {
            let found = if token.found { ", as the rest are numbers" } else { "" };
            notes.push(format!("`{}` taken as missing {}{found}", token.token, times(token.count)).into());
        }
        if self.missing == self.rows && self.rows > 0 {
            notes.push("no observed value".to_owned().into());
        }
        match (self.kind, &self.passed_through) {
            (_, Some(why)) => notes.push(format!("{why}: neither filled nor used").into()),
            (Kind::Identifier, None) => {
                let text = "looks like an identifier: neither filled nor used".to_owned();
                notes.push(Note::or_kind(text, &self.column, self.instead));
            }
            (Kind::Text, None) => notes.push("free text: neither filled nor used".to_owned().into()),
            _ => {}
        }
        if self.unseen > 0 {
            let cells = if self.unseen == 1 {
                "1 cell has a level".to_owned()
            } else {
                format!("{} cells have levels", self.unseen)
            };
            let such = self.unseen_level.as_ref().map_or_else(String::new, |level| format!(" (`{level}`)"));
            notes.push(format!("{cells} never seen in training{such}: taken as unknown").into());
        }
        for s in &self.sentinels {
            let text = format!("`{}` occurs {}: {}; does it mean missing?", s.token, times(s.count), s.why);
            let hint = Hint::TakeAsMissing { column: self.column.clone(), value: s.token.clone() };
            notes.push(Note { text, hint: Some(hint) });
        }
        if let Some(odd) = &self.odd {
            notes.push(format!("`{}` at {}: {}", odd.value, odd.at, odd.why).into());
        }
        notes.extend(self.asides.iter().cloned());
        self.notes = notes;
    }
}

fn times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_rows_are_added() {
        let mut one = Finding::new("a", Kind::Integer, "whole numbers");
        one.rows = 3;
        one.missing = 1;
        one.count_token("NA", 2, false);
        let mut two = one.clone();
        two.unseen = 2;
        two.unseen_level = Some("w".to_owned());
        one.add(&two);
        assert_eq!((one.rows, one.missing, one.tokens[0].count, one.tokens[0].first), (6, 2, 2, 2));
        let notes: Vec<&str> = one.notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(
            notes,
            ["`NA` taken as missing 2 times", "2 cells have levels never seen in training (`w`): taken as unknown"]
        );
    }
}
