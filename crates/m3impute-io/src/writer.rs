//! Documents on their way out.

use crate::arrow::{self, BatchWriter};
use crate::csv;
use crate::document::{Change, Document, Source};
use crate::error::{Error, Result};
use crate::extra::ExtraColumn;
use crate::format::Format;
use std::fmt;
use std::io::Write;

/// Writes a document, or several chunks of one in a row, in its own format or another.
pub struct DocumentWriter<'a> {
    to: To<'a>,
    format: Format,
    drop: Vec<String>,
}

enum To<'a> {
    Fresh(Box<dyn Write + Send + 'a>),
    Text(Box<dyn Write + Send + 'a>),
    Batches(Box<BatchWriter<'a>>),
    Broken,
}

impl fmt::Debug for DocumentWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DocumentWriter").field("format", &self.format).field("drop", &self.drop).finish_non_exhaustive()
    }
}

impl<'a> DocumentWriter<'a> {
    /// A writer of that format that leaves out the columns named in `drop`.
    pub fn new(to: Box<dyn Write + Send + 'a>, format: Format, drop: Vec<String>) -> DocumentWriter<'a> {
        DocumentWriter { to: To::Fresh(to), format, drop }
    }

    /// Writes the rows of a document; the header goes before the first.
    ///
    /// # Errors
    /// When the bytes cannot be written, or the format cannot hold a column.
    pub fn write(&mut self, document: &Document, change: Change<'_>) -> Result<()> {
        self.write_with(document, change, &[])
    }

    /// [`DocumentWriter::write`], with further columns after the document's own. Every chunk of a document has the same
    /// ones.
    ///
    /// # Errors
    /// As [`DocumentWriter::write`].
    pub fn write_with(&mut self, document: &Document, change: Change<'_>, extras: &[ExtraColumn]) -> Result<()> {
        if self.format.is_text() {
            self.write_text(document, change, extras)
        } else {
            self.write_batches(document, change, extras)
        }
    }

    fn write_text(&mut self, document: &Document, change: Change<'_>, extras: &[ExtraColumn]) -> Result<()> {
        let (first, mut to) = match std::mem::replace(&mut self.to, To::Broken) {
            To::Fresh(to) => (true, to),
            To::Text(to) => (false, to),
            _ => return Err(Error::Bug("written to after an error".to_owned())),
        };
        let bytes = match &document.source {
            Source::Text(source) => {
                let own = source.dialect.delimiter;
                let delimiter = match (self.format, document.format()) {
                    (Format::Tsv, _) => b'\t',
                    (_, Format::Tsv) if own == b'\t' => b',',
                    _ => own,
                };
                csv::write_text(document, source, change, delimiter, (&self.drop, extras), first)?
            }
            Source::Arrow(_) => {
                let delimiter = if self.format == Format::Tsv { b'\t' } else { b',' };
                arrow::write_as_text(document, change, delimiter, (&self.drop, extras), first)?
            }
        };
        to.write_all(&bytes).map_err(Error::Output)?;
        self.to = To::Text(to);
        Ok(())
    }

    fn write_batches(&mut self, document: &Document, change: Change<'_>, extras: &[ExtraColumn]) -> Result<()> {
        let batches = arrow::changed_batches(document, change, &self.drop, extras)?;
        let mut writer = match std::mem::replace(&mut self.to, To::Broken) {
            To::Fresh(to) => {
                let Some(first) = batches.first() else {
                    self.to = To::Fresh(to);
                    return Ok(());
                };
                Box::new(BatchWriter::new(to, self.format, document, first.schema())?)
            }
            To::Batches(writer) => writer,
            _ => return Err(Error::Bug("written to after an error".to_owned())),
        };
        for batch in batches {
            writer.write(batch)?;
        }
        self.to = To::Batches(writer);
        Ok(())
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// When the bytes cannot be written.
    pub fn finish(self) -> Result<()> {
        match self.to {
            To::Fresh(mut to) | To::Text(mut to) => to.flush().map_err(Error::Output),
            To::Batches(writer) => writer.finish(),
            To::Broken => Err(Error::Bug("finished after an error".to_owned())),
        }
    }
}
