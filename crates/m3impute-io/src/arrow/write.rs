//! Batches go into Parquet and Arrow IPC files.

use super::change::with_keys;
use super::columns::{Sort, dictionary, sort_of, text_at};
use super::read::Origin;
use crate::document::{Document, Source};
use crate::error::{Error, Result};
use crate::format::Format;
use arrow_array::RecordBatch;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::collections::HashMap;
use std::io::{self, Write};

type Out<'a> = Box<dyn Write + Send + 'a>;

/// Writes batches of one schema.
pub(crate) struct BatchWriter<'a> {
    file: File<'a>,
    schema: SchemaRef,
    /// For each column with a dictionary, the values written so far: chunks may bring dictionaries of their own.
    dictionaries: Vec<Option<Levels>>,
}

enum File<'a> {
    Parquet(Box<ArrowWriter<Out<'a>>>),
    Ipc(Box<FileWriter<Out<'a>>>),
    Stream(Box<StreamWriter<Out<'a>>>),
}

#[derive(Default)]
struct Levels {
    all: Vec<String>,
    at: HashMap<String, usize>,
}

impl<'a> BatchWriter<'a> {
    pub(crate) fn new(to: Out<'a>, format: Format, document: &Document, schema: SchemaRef) -> Result<BatchWriter<'a>> {
        let origin = match &document.source {
            Source::Arrow(source) => source.origin,
            Source::Text(_) => Origin::Memory,
        };
        let ipc = || IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
        let file = match (format, origin) {
            (Format::Parquet, origin) => {
                let compression = match origin {
                    // Codecs that are not built in are replaced by one that is.
                    Origin::Parquet(
                        known @ (Compression::UNCOMPRESSED
                        | Compression::SNAPPY
                        | Compression::GZIP(_)
                        | Compression::ZSTD(_)),
                    ) => known,
                    _ => Compression::SNAPPY,
                };
                let pairs = schema.metadata().iter().filter(|(key, _)| *key != "ARROW:schema");
                let mut pairs: Vec<KeyValue> = pairs.map(|(k, v)| KeyValue::new(k.clone(), v.clone())).collect();
                pairs.sort_by(|a, b| a.key.cmp(&b.key)); // a map has no order, and the bytes must be the same each time
                let properties = WriterProperties::builder()
                    .set_compression(compression)
                    .set_key_value_metadata((!pairs.is_empty()).then_some(pairs))
                    .build();
                let writer = ArrowWriter::try_new(to, schema.clone(), Some(properties)).map_err(parquet_error)?;
                File::Parquet(Box::new(writer))
            }
            (_, Origin::Stream) => {
                let writer = StreamWriter::try_new_with_options(to, &schema, ipc()).map_err(arrow_error)?;
                File::Stream(Box::new(writer))
            }
            _ => File::Ipc(Box::new(FileWriter::try_new_with_options(to, &schema, ipc()).map_err(arrow_error)?)),
        };
        let dictionaries =
            schema.fields().iter().map(|f| (sort_of(f.data_type()) == Sort::Category).then(Levels::default)).collect();
        Ok(BatchWriter { file, schema, dictionaries })
    }

    pub(crate) fn write(&mut self, batch: RecordBatch) -> Result<()> {
        let batch = match self.file {
            File::Parquet(_) => batch,
            File::Ipc(_) | File::Stream(_) => self.with_common_dictionaries(batch)?,
        };
        match &mut self.file {
            File::Parquet(writer) => writer.write(&batch).map_err(parquet_error),
            File::Ipc(writer) => writer.write(&batch).map_err(arrow_error),
            File::Stream(writer) => writer.write(&batch).map_err(arrow_error),
        }
    }

    /// A file has one dictionary a column, which may only grow: keys are put in terms of it.
    fn with_common_dictionaries(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let mut arrays = batch.columns().to_vec();
        for (array, levels) in arrays.iter_mut().zip(&mut self.dictionaries) {
            let (Some(levels), DataType::Dictionary(key, value)) = (levels, array.data_type().clone()) else {
                continue;
            };
            let (keys, values) = dictionary(array);
            let common: Vec<Option<usize>> = (0..values.len())
                .map(|at| {
                    let text = text_at(values, at)?;
                    if let Some(&known) = levels.at.get(text) {
                        return Some(known);
                    }
                    levels.all.push(text.to_owned());
                    levels.at.insert(text.to_owned(), levels.all.len() - 1);
                    Some(levels.all.len() - 1)
                })
                .collect();
            let keys: Vec<Option<usize>> = keys.into_iter().map(|k| common.get(k?).copied().flatten()).collect();
            let values = super::change::strings(levels.all.iter().map(|l| Some(l.as_str())), &value);
            *array = with_keys(&keys, values, &key).ok_or_else(|| Error::Unwritable {
                column: String::new(),
                got: format!("Dictionary({key}, {value}) with {} levels", levels.all.len()),
                format: "arrow",
            })?;
        }
        RecordBatch::try_new(self.schema.clone(), arrays).map_err(|e| Error::Bug(e.to_string()))
    }

    pub(crate) fn finish(self) -> Result<()> {
        match self.file {
            File::Parquet(writer) => writer.into_inner().map_err(parquet_error)?.flush().map_err(Error::Output),
            File::Ipc(writer) => writer.into_inner().map_err(arrow_error)?.flush().map_err(Error::Output),
            File::Stream(writer) => writer.into_inner().map_err(arrow_error)?.flush().map_err(Error::Output),
        }
    }
}

/// The error of the output behind an error of the writer, so that a broken pipe is seen as one.
fn arrow_error(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, source) => Error::Output(source),
        other => Error::Output(io::Error::other(other.to_string())),
    }
}

fn parquet_error(error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => Error::Output(*source),
            Err(source) => Error::Output(io::Error::other(source.to_string())),
        },
        other => Error::Output(io::Error::other(other.to_string())),
    }
}
