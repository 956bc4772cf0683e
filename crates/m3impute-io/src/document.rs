//! A table and the bytes it came from.

use crate::arrow::ArrowSource;
use crate::column::ReadColumn;
use crate::csv::{self, TextSource};
use crate::error::Result;
use crate::findings::{Finding, Odd};
use crate::format::Format;
use crate::infer::Inferred;
use crate::input::{Input, Started};
use crate::options::{ColumnReading, ReadOptions, Reading};
use crate::sentinels;
use arrow_array::RecordBatch;
use m3impute_core::{ColumnSpec, Kind, Observed, Role, Table, Values};

/// What is to be changed in a document when it is written.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// Cells that were missing in the file get the values of this table, where it has one.
    Fill(&'a Table),
    /// Cells that are not observed here are emptied.
    Hide(&'a Observed),
}

/// A table and the bytes it came from.
#[derive(Debug)]
pub struct Document {
    pub(crate) table: Table,
    pub(crate) reading: Reading,
    pub(crate) findings: Vec<Finding>,
    pub(crate) source: Source,
}

/// What a document came from.
#[derive(Debug)]
pub(crate) enum Source {
    Text(TextSource),
    Arrow(ArrowSource),
}

impl Document {
    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// How it was read.
    pub fn reading(&self) -> &Reading {
        &self.reading
    }

    /// What was found, column by column.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The format it came in.
    pub fn format(&self) -> Format {
        self.reading.format
    }

    /// The document as Arrow batches, changed: of the same types where it came from Arrow.
    ///
    /// # Errors
    /// When a filled value does not fit the type of its column.
    pub fn filled_batches(&self, change: Change<'_>) -> Result<Vec<RecordBatch>> {
        crate::arrow::changed_batches(self, change, &[], &[])
    }

    /// The rows in which a column has no value. A level that training never saw is a value.
    pub fn holes(&self, col: usize) -> Vec<usize> {
        match &self.source {
            Source::Text(source) => {
                source.holes.iter().filter(|h| h.col as usize == col).map(|h| h.row as usize).collect()
            }
            Source::Arrow(source) => source.holes[col].iter().map(|&row| row as usize).collect(),
        }
    }

    /// The rows in which a column has no value and `filled` has one: the cells that [`Change::Fill`] changes.
    pub fn filled_rows(&self, col: usize, filled: &Table) -> Vec<usize> {
        let is_filled = |row: &usize| filled.observed().get(*row, col) && !matches!(filled.values(col), Values::Opaque);
        self.holes(col).into_iter().filter(is_filled).collect()
    }
}

/// Reads a whole table.
///
/// ```
/// use m3impute_core::Kind;
/// use m3impute_io::{Input, ReadOptions, read};
/// let input = Input::Bytes { name: "a.csv".to_owned(), bytes: b"size,colour\n1.5,red\n?,red\n2,\n".to_vec() };
/// let document = read(&input, &ReadOptions::default())?;
/// let kinds: Vec<Kind> = document.table().schema().columns().iter().map(|c| c.kind).collect();
/// assert_eq!(kinds, [Kind::Continuous, Kind::Categorical]);
/// assert_eq!(document.findings()[0].notes[0].text, "`?` taken as missing once, as the rest are numbers");
/// # Ok::<(), m3impute_io::Error>(())
/// ```
///
/// # Errors
/// When the file cannot be read, or is no table: the error names file, line and column.
pub fn read(input: &Input, options: &ReadOptions) -> Result<Document> {
    let started = Started::open(input, csv::SAMPLE)?;
    match format_of(input, &started.start, options) {
        format @ (Format::Csv | Format::Tsv) => csv::read_text(input, started, format, options),
        format => crate::arrow::read_file(input, started, format, options),
    }
}

/// The format of an input: as asked for, as its extension says, as its first bytes say, or CSV.
pub(crate) fn format_of(input: &Input, start: &[u8], options: &ReadOptions) -> Format {
    let named = match input {
        Input::Stdin => None,
        Input::Path(path) => Format::of_path(path),
        Input::Bytes { name, .. } => Format::of_path(name.as_ref()),
    };
    options.format.or(named).or_else(|| Format::of_bytes(start)).unwrap_or(Format::Csv)
}

/// Brings together what was found out about a column, what was read of it, and what was asked for.
pub(crate) fn finish_inferred(
    inferred: Inferred,
    mut read: ReadColumn,
    options: &ReadOptions,
) -> (ColumnSpec, ColumnReading, ReadColumn) {
    let Inferred { mut spec, reading, reason, found, odd, instead, passed_through, asides, distinct, top } = inferred;
    let finding = &mut read.finding;
    finding.reason = reason;
    finding.distinct = distinct;
    finding.top = top;
    finding.instead = instead;
    finding.passed_through = passed_through;
    finding.asides = asides;
    finding.odd = odd.map(|(at, value, why)| Odd { at, value, why });
    for token in &mut finding.tokens {
        token.found = Some(&token.token) == found.as_ref();
    }
    if let Values::Numbers(values) = &read.column.values {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        finding.min = sorted.first().copied();
        finding.max = sorted.last().copied();
        finding.mean = (!sorted.is_empty()).then(|| sorted.iter().sum::<f64>() / sorted.len() as f64);
        finding.sentinels = match (spec.kind, &reading.timestamp) {
            (Kind::Datetime, Some(format)) => sentinels::of_timestamps(&sorted, |seconds| format.write(seconds)),
            (Kind::Datetime, None) => Vec::new(),
            _ => sentinels::of_numbers(&sorted),
        };
        sorted.dedup();
        finding.distinct = Some(sorted.len());
    }
    if options.only.as_ref().is_some_and(|only| !only.contains(&spec.name)) {
        spec.role = Role::Predict;
    }
    if options.ignore.contains(&spec.name) {
        spec.role = Role::Ignore;
    }
    if let Some((_, bounds)) = options.bounds.iter().find(|(name, _)| *name == spec.name) {
        spec.bounds = Some(*bounds);
    }
    (spec, reading, read)
}
