//! Columns that a document gets after its own when it is written: what there is to say of its filled cells.

use crate::column::value_text;
use crate::document::{Document, Source};
use crate::number;

/// How the values of an [`ExtraColumn`] are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueFormat {
    /// As filled cells of the column they belong to: its decimals, its way of writing timestamps, the names of its
    /// levels.
    AsColumn,
    /// As plain numbers.
    Plain,
}

/// A column that a document gets after its own when it is written.
///
/// It belongs to a column of the document's table, and has a value only where that one is missing in the file:
/// elsewhere its cells are empty.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtraColumn {
    /// Its name; see [`Document::name_extras`].
    pub name: String,
    /// The column of the table that it belongs to.
    pub of: usize,
    /// How its values are written.
    pub format: ValueFormat,
    /// Its values, a row each. Levels are the codes that the table has for them.
    pub values: Vec<Option<f64>>,
}

impl Document {
    /// Gives columns another name where the document or one before them has theirs already; returns what was asked for
    /// and what it became.
    ///
    /// ```
    /// use m3impute_io::{ExtraColumn, Input, ValueFormat, ReadOptions, read};
    /// let input = Input::Bytes { name: "a.csv".to_owned(), bytes: b"a,a_lower\n1,5\n,6\n".to_vec() };
    /// let document = read(&input, &ReadOptions::default())?;
    /// let extra = |name: &str| {
    ///     ExtraColumn { name: name.to_owned(), of: 0, format: ValueFormat::AsColumn, values: vec![None, Some(0.5)] }
    /// };
    /// let mut extras = [extra("a_lower"), extra("a_upper")];
    /// assert_eq!(document.name_extras(&mut extras), [("a_lower".to_owned(), "a_lower_2".to_owned())]);
    /// assert_eq!(extras[1].name, "a_upper");
    /// # Ok::<(), m3impute_io::Error>(())
    /// ```
    pub fn name_extras(&self, extras: &mut [ExtraColumn]) -> Vec<(String, String)> {
        let mut taken: std::collections::HashSet<String> = match &self.source {
            Source::Text(source) => source.names.iter().cloned().collect(),
            Source::Arrow(source) => source.schema.fields().iter().map(|f| f.name().clone()).collect(),
        };
        let mut renamed = Vec::new();
        for extra in extras {
            let mut name = extra.name.clone();
            let mut number = 2;
            while !taken.insert(name.clone()) {
                name = format!("{}_{number}", extra.name);
                number += 1;
            }
            if name != extra.name {
                renamed.push((std::mem::replace(&mut extra.name, name.clone()), name));
            }
        }
        renamed
    }

    /// The values of extra columns where cells are missing in the file; none elsewhere.
    pub(crate) fn values_in_holes(&self, extras: &[ExtraColumn]) -> Vec<Vec<Option<f64>>> {
        let rows = self.table.rows();
        let mut values = vec![vec![None; rows]; extras.len()];
        for (at, extra) in extras.iter().enumerate() {
            let value = |row: usize| extra.values.get(row).copied().flatten();
            match &self.source {
                Source::Text(source) => {
                    for hole in source.holes.iter().filter(|h| h.col as usize == extra.of) {
                        values[at][hole.row as usize] = value(hole.row as usize);
                    }
                }
                Source::Arrow(source) => {
                    for &row in &source.holes[extra.of] {
                        values[at][row as usize] = value(row as usize);
                    }
                }
            }
        }
        values
    }

    /// The text of a value of an extra column.
    pub(crate) fn extra_text(&self, extra: &ExtraColumn, value: f64) -> Option<String> {
        match extra.format {
            ValueFormat::AsColumn => {
                value_text(&self.table.schema().columns()[extra.of], value, &self.reading.columns[extra.of])
            }
            ValueFormat::Plain => {
                // A file has one decimal sign.
                let comma = self.reading.columns.iter().any(|c| c.decimal_comma);
                Some(number::write(value, false, 0, if comma { b',' } else { b'.' }))
            }
        }
    }
}
