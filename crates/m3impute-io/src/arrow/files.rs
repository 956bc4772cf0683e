//! Parquet and Arrow IPC files, batch by batch. A damaged file is an error, never a panic.

use super::read::{Origin, document_of};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::format::{Format, looks_like};
use crate::input::{Input, Started};
use crate::options::ReadOptions;
use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::SchemaRef;
use m3impute_core::Hint;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::Compression;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many rows of a whole Parquet file are read at once.
const BATCH: usize = 1 << 16;

/// Reads a whole file.
pub(crate) fn read_file(input: &Input, started: Started, format: Format, options: &ReadOptions) -> Result<Document> {
    let mut batches = Batches::open(input, started, format, BATCH)?;
    let mut all = Vec::new();
    while let Some(batch) = batches.next()? {
        all.push(batch);
    }
    document_of(&input.name(), batches.schema(), all, batches.origin(), options)
}

/// The batches of a file.
pub(crate) struct Batches {
    reader: Reader,
    schema: SchemaRef,
    origin: Origin,
    damage: Damage,
}

enum Reader {
    Parquet(ParquetRecordBatchReader),
    File(FileReader<BufReader<File>>),
    Stream(StreamReader<BufReader<File>>),
}

/// What is said of a file that cannot be read.
struct Damage {
    file: String,
    format: &'static str,
    hint: Option<Hint>,
}

impl Damage {
    fn error(&self, reason: impl ToString) -> Error {
        let reason = reason.to_string();
        let reason = reason.lines().next().unwrap_or_default().to_owned();
        Error::Damaged { file: self.file.clone(), format: self.format, reason, hint: self.hint.clone() }
    }

    /// Runs a reader of foreign bytes: its panics are the file's fault, not ours.
    fn guard<T, E: ToString>(&self, read: impl FnOnce() -> std::result::Result<T, E>) -> Result<T> {
        match catch_unwind(AssertUnwindSafe(read)) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.error(error.to_string())),
            Err(_) => Err(self.error("its contents do not fit together")),
        }
    }
}

impl Batches {
    pub(crate) fn open(input: &Input, started: Started, format: Format, rows: usize) -> Result<Batches> {
        let start: Vec<u8> = started.start.iter().take(64).copied().collect();
        if start.is_empty() {
            return Err(Error::Empty { file: input.name() });
        }
        // Text or another format is told apart from a damaged file of this one.
        let right = Format::of_bytes(&start) == Some(format);
        let hint = if right { None } else { looks_like(&start) };
        let damage = Damage { file: input.name(), format: format.name(), hint };
        let mut file = started.into_file(input)?;
        let length = file.metadata().map_or(0, |m| m.len());
        let (reader, schema, origin) = if format == Format::Parquet {
            if !right {
                return Err(damage.error("it does not begin with `PAR1`"));
            }
            check_end(&mut file, length, b"PAR1", &damage)?;
            damage.guard(|| {
                let builder = ParquetRecordBatchReaderBuilder::try_new(file)?.with_batch_size(rows);
                let groups = builder.metadata().row_groups();
                let compression = groups.first().and_then(|g| g.columns().first()).map(|c| c.compression());
                let schema = builder.schema().clone();
                let reader = builder.build()?;
                Ok::<_, parquet::errors::ParquetError>((
                    Reader::Parquet(reader),
                    schema,
                    Origin::Parquet(compression.unwrap_or(Compression::SNAPPY)),
                ))
            })?
        } else if start.starts_with(b"ARROW1") {
            check_end(&mut file, length, b"ARROW1", &damage)?;
            damage.guard(|| check_blocks(&mut file, length))?;
            damage.guard(|| {
                let reader = FileReader::try_new(BufReader::new(file), None)?;
                let schema = reader.schema();
                Ok::<_, arrow_schema::ArrowError>((Reader::File(reader), schema, Origin::File))
            })?
        } else {
            if !right {
                return Err(damage.error("it begins neither like a file nor like a stream"));
            }
            damage.guard(|| check_stream(&mut file, length))?;
            damage.guard(|| {
                let reader = StreamReader::try_new(BufReader::new(file), None)?;
                let schema = reader.schema();
                Ok::<_, arrow_schema::ArrowError>((Reader::Stream(reader), schema, Origin::Stream))
            })?
        };
        Ok(Batches { reader, schema, origin, damage })
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Batches { reader, damage, .. } = self;
        damage.guard(|| {
            match reader {
                Reader::Parquet(reader) => reader.next(),
                Reader::File(reader) => reader.next(),
                Reader::Stream(reader) => reader.next(),
            }
            .transpose()
        })
    }
}

/// A file that was cut off lacks the mark at its end: the usual damage, and worth its own words.
fn check_end(file: &mut File, length: u64, mark: &[u8], damage: &Damage) -> Result<()> {
    let cut = || damage.error("it is cut off: the mark at its end is missing");
    if length < 2 * mark.len() as u64 + 4 {
        return Err(cut());
    }
    let mut end = vec![0; mark.len()];
    let read = file
        .seek(SeekFrom::End(-(mark.len() as i64)))
        .and_then(|_| file.read_exact(&mut end))
        .and_then(|()| file.seek(SeekFrom::Start(0)));
    read.map_err(|source| Error::Read { file: damage.file.clone(), source })?;
    if end == mark { Ok(()) } else { Err(cut()) }
}

/// Checks that the blocks of a file lie in it, before anything is allocated by their lengths.
fn check_blocks(file: &mut File, length: u64) -> std::result::Result<(), String> {
    let broken = |e: std::io::Error| e.to_string();
    let mut end = [0u8; 4];
    file.seek(SeekFrom::End(-10)).and_then(|_| file.read_exact(&mut end)).map_err(broken)?;
    let size = u64::try_from(i32::from_le_bytes(end)).map_err(|_| "a footer of a negative length")?;
    if size + 10 > length {
        return Err("its footer is longer than the file".to_owned());
    }
    let mut footer = vec![0; size as usize];
    file.seek(SeekFrom::Start(length - 10 - size)).and_then(|_| file.read_exact(&mut footer)).map_err(broken)?;
    file.seek(SeekFrom::Start(0)).map_err(broken)?;
    let footer = arrow_ipc::root_as_footer(&footer).map_err(|e| format!("{e:?}"))?;
    for block in footer.dictionaries().into_iter().chain(footer.recordBatches()).flatten() {
        let parts = [block.offset(), i64::from(block.metaDataLength()), block.bodyLength()];
        let parts = parts.map(|part| u64::try_from(part).unwrap_or(u64::MAX));
        if parts.into_iter().fold(0, u64::saturating_add) > length {
            return Err("a block lies beyond its end".to_owned());
        }
    }
    Ok(())
}

/// Walks the messages of a stream and checks that their lengths fit into the file, before anything is allocated by them.
fn check_stream(file: &mut File, length: u64) -> std::result::Result<(), String> {
    let broken = |e: std::io::Error| e.to_string();
    let mut at = 0u64;
    while at + 8 <= length {
        let mut prefix = [0u8; 8];
        file.seek(SeekFrom::Start(at)).map_err(broken)?;
        file.read_exact(&mut prefix).map_err(broken)?;
        if prefix[..4] != [0xff; 4] {
            return Err(format!("no message at byte {at}"));
        }
        let size = i32::from_le_bytes([prefix[4], prefix[5], prefix[6], prefix[7]]);
        if size == 0 {
            break;
        }
        let size = u64::try_from(size).map_err(|_| format!("a message of a negative length at byte {at}"))?;
        if at + 8 + size > length {
            return Err("it is cut off inside a message".to_owned());
        }
        let mut message = vec![0; size as usize];
        file.read_exact(&mut message).map_err(broken)?;
        let body = arrow_ipc::root_as_message(&message).map_err(|e| format!("{e:?}"))?.bodyLength();
        let body = u64::try_from(body).map_err(|_| format!("a body of a negative length at byte {at}"))?;
        at = at.saturating_add(8 + size).saturating_add(body);
        if at > length {
            return Err("it is cut off inside a body".to_owned());
        }
    }
    file.seek(SeekFrom::Start(0)).map_err(broken)?;
    Ok(())
}
