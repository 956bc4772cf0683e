//! New rows, a chunk at a time.

use crate::arrow::ArrowChunks;
use crate::csv::{self, TextChunks};
use crate::document::{Document, format_of};
use crate::error::Result;
use crate::findings::Finding;
use crate::format::Format;
use crate::input::{Input, Started};
use crate::options::{ReadOptions, Reading};
use crate::training::AsInTraining;
use m3impute_core::Schema;
use std::fmt;

/// Reads new rows as the rows of training were read, in constant memory. See [`open_chunks`].
pub struct ChunkReader {
    rows: Rows,
    findings: Vec<Finding>,
}

enum Rows {
    Text(Box<TextChunks>),
    Arrow(Box<ArrowChunks>),
}

impl fmt::Debug for ChunkReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkReader").field("format", &self.format()).finish_non_exhaustive()
    }
}

impl ChunkReader {
    /// The next rows, or `None` at the end.
    ///
    /// # Errors
    /// When the rows cannot be read: the error names file, line and column.
    #[allow(clippy::should_implement_trait)] // an iterator cannot stop at its first error
    pub fn next(&mut self) -> Result<Option<Document>> {
        let document = match &mut self.rows {
            Rows::Text(text) => text.next()?,
            Rows::Arrow(arrow) => arrow.next()?,
        };
        if let Some(document) = &document {
            if self.findings.is_empty() {
                self.findings = document.findings.clone();
            } else {
                for (all, more) in self.findings.iter_mut().zip(&document.findings) {
                    all.add(more);
                }
            }
        }
        Ok(document)
    }

    /// What was found so far, over all chunks.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The format of the rows.
    pub fn format(&self) -> Format {
        match &self.rows {
            Rows::Text(text) => text.format(),
            Rows::Arrow(arrow) => arrow.format(),
        }
    }
}

/// Opens new rows, to be read as the rows of training were, `rows` at a time.
///
/// The table of each chunk has the columns of `schema`, found by name; other columns of the file are left as they are.
/// A level that training never saw is unknown to the method, but its cell comes back untouched.
///
/// # Errors
/// When the file cannot be read, or lacks a column that the model uses.
pub fn open_chunks(
    input: &Input,
    options: &ReadOptions,
    reading: &Reading,
    schema: &Schema,
    rows: usize,
) -> Result<ChunkReader> {
    let started = Started::open(input, csv::SAMPLE)?;
    let how = AsInTraining { options, training: reading, schema };
    let rows = match format_of(input, &started.start, options) {
        format @ (Format::Csv | Format::Tsv) => {
            Rows::Text(Box::new(TextChunks::open(input, started, format, how, rows)?))
        }
        format => Rows::Arrow(Box::new(ArrowChunks::open(input, started, format, how, rows)?)),
    };
    Ok(ChunkReader { rows, findings: Vec::new() })
}
