//! How a file is to be read, and how it was read.

use crate::datetime::TimestampFormat;
use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::infer::Wish;
use m3impute_core::{Bounds, Kind, nearest};
use serde::{Deserialize, Serialize};

/// What becomes of infinite numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Infinities {
    /// They are an error.
    #[default]
    Refuse,
    /// They are taken as missing.
    Missing,
}

/// How a file is to be read; the default finds out everything by itself.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The format, where it is not the one of the extension or the first bytes.
    pub format: Option<Format>,
    /// The delimiter, where it is not to be sniffed.
    pub delimiter: Option<u8>,
    /// Whether the first record holds the names. Without, columns are named `column_1`, `column_2`, ...
    pub header: bool,
    /// The encoding of the text, where it is not to be detected.
    pub encoding: Option<Encoding>,
    /// The words that mean missing, instead of the usual ones. An empty cell is missing whatever stands here.
    pub na: Option<Vec<String>>,
    /// Further words that mean missing in one column, quoted or not; in a column of numbers they are compared as
    /// numbers.
    pub na_columns: Vec<(String, Vec<String>)>,
    /// What becomes of infinite numbers.
    pub infinities: Infinities,
    /// The kinds of columns that are not to be inferred.
    pub kinds: Vec<(String, Kind)>,
    /// Columns that are neither filled nor used.
    pub ignore: Vec<String>,
    /// The only columns to be filled; others predict.
    pub only: Option<Vec<String>>,
    /// The smallest and largest value of columns.
    pub bounds: Vec<(String, Bounds)>,
    /// The most memory, in bytes, that reading may take, where it is not [the usual](crate::usual_limit).
    pub max_memory: Option<u64>,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            format: None,
            delimiter: None,
            header: true,
            encoding: None,
            na: None,
            na_columns: Vec::new(),
            infinities: Infinities::Refuse,
            kinds: Vec::new(),
            ignore: Vec::new(),
            only: None,
            bounds: Vec::new(),
            max_memory: None,
        }
    }
}

/// How a file was read, enough to read new rows in the same way. It is kept in the model file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The format.
    pub format: Format,
    /// The delimiter of a text file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<char>,
    /// Whether the first record held the names.
    pub header: bool,
    /// The words that mean missing where they stand unquoted; `None` for the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub na: Option<Vec<String>>,
    /// What becomes of infinite numbers.
    #[serde(default)]
    pub infinities: Infinities,
    /// How each column was read.
    pub columns: Vec<ColumnReading>,
}

impl Reading {
    /// How the column of that name was read.
    pub fn column(&self, name: &str) -> Option<&ColumnReading> {
        self.columns.iter().find(|c| c.name == name)
    }
}

/// How a column was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnReading {
    /// Its name.
    pub name: String,
    /// Words that mean missing in this column alone: asked for, or found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub na: Vec<String>,
    /// How its timestamps are written. Model files call it `moment`.
    #[serde(rename = "moment", default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<TimestampFormat>,
    /// Whether its numbers have a decimal comma.
    #[serde(default)]
    pub decimal_comma: bool,
    /// The most decimals that a cell shows.
    #[serde(default)]
    pub decimals: u32,
    /// Whether every observed cell is quoted.
    #[serde(default)]
    pub quoted: bool,
}

impl ReadOptions {
    /// An error where an option names a column there is not.
    pub(crate) fn check_names(&self, file: &str, names: &[String]) -> Result<()> {
        let asked = self.kinds.iter().map(|(name, _)| name);
        let asked = asked.chain(self.na_columns.iter().map(|(name, _)| name)).chain(&self.ignore);
        let asked = asked.chain(self.only.iter().flatten()).chain(self.bounds.iter().map(|(name, _)| name));
        for name in asked {
            if !names.contains(name) {
                return Err(Error::UnknownColumn {
                    file: file.to_owned(),
                    column: name.clone(),
                    nearest: nearest(name, names.iter().map(String::as_str)),
                });
            }
        }
        Ok(())
    }

    /// The words that mean missing in one column.
    pub(crate) fn na_of(&self, name: &str) -> &[String] {
        self.na_columns.iter().find(|(n, _)| n == name).map_or(&[], |(_, words)| words.as_slice())
    }

    /// What is known of each column before its cells are looked at.
    pub(crate) fn wishes<'a>(&'a self, file: &str, names: &'a [String], comma: bool) -> Result<Vec<Wish<'a>>> {
        self.check_names(file, names)?;
        let wish = |name: &'a String| Wish {
            name,
            kind: self.kinds.iter().rev().find(|(n, _)| n == name).map(|&(_, kind)| kind),
            na: self.na.as_deref(),
            na_column: self.na_of(name),
            comma,
            typed: false,
        };
        Ok(names.iter().map(wish).collect())
    }
}
