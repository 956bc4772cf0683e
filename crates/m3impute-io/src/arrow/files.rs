//! Parquet and Arrow IPC files, batch by batch. A damaged file is an error, never a panic.

use super::read::{Origin, document_of};
use super::unfold::{Unfolding, batch_rows, batch_size, check_views};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::format::{Format, looks_like};
use crate::input::{Input, Started};
use crate::limit::MemoryLimit;
use crate::options::ReadOptions;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{DataType, SchemaRef};
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
    let mut batches = Batches::open(input, started, format, BATCH, options)?;
    let (limit, columns) = (&batches.limit, batches.schema.fields().len());
    limit.check_table(batches.rows, columns, batches.bytes)?;
    let limit = limit.clone();
    let (mut all, mut rows, mut taken) = (Vec::new(), 0u64, 0u64);
    while let Some(batch) = batches.next()? {
        rows = rows.saturating_add(batch.num_rows() as u64);
        taken = taken.saturating_add(size_of(&batch));
        limit.check_table(rows, columns, taken)?;
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
    limit: MemoryLimit,
    /// How many rows the file declares.
    rows: u64,
    /// How many bytes of memory all batches take, as far as the file declares it.
    bytes: u64,
}

/// Whether the values of a dictionary are of the type that its field declares, which a reader of Parquet takes on trust.
fn has_its_type(array: &ArrayRef) -> bool {
    match array.data_type() {
        DataType::Dictionary(_, declared) => {
            array.as_any_dictionary_opt().is_some_and(|own| own.values().data_type() == declared.as_ref())
        }
        _ => true,
    }
}

/// The bytes that the arrays of a batch hold; those of a type that does not say count nothing.
fn size_of(batch: &RecordBatch) -> u64 {
    let sizes = batch.columns().iter().map(|array| array.to_data().get_slice_memory_size().unwrap_or(0) as u64);
    sizes.fold(0, u64::saturating_add)
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
    pub(crate) fn open(
        input: &Input,
        started: Started,
        format: Format,
        rows: usize,
        options: &ReadOptions,
    ) -> Result<Batches> {
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
        let limit = MemoryLimit::new(input.name(), options.max_memory, length);
        if format == Format::Parquet {
            if !right {
                return Err(damage.error("it does not begin with `PAR1`"));
            }
            check_end(&mut file, length, b"PAR1", &damage)?;
            return Batches::open_parquet(file, rows, limit, damage);
        }
        let (reader, schema, origin, declared) = if start.starts_with(b"ARROW1") {
            check_end(&mut file, length, b"ARROW1", &damage)?;
            let declared = damage.guard(|| check_blocks(&mut file, length))?;
            declared.check(&limit)?;
            damage.guard(|| {
                let reader = FileReader::try_new(BufReader::new(file), None)?;
                let schema = reader.schema();
                Ok::<_, arrow_schema::ArrowError>((Reader::File(reader), schema, Origin::File, declared))
            })?
        } else {
            if !right {
                return Err(damage.error("it begins neither like a file nor like a stream"));
            }
            let declared = damage.guard(|| check_stream(&mut file, length))?;
            declared.check(&limit)?;
            damage.guard(|| {
                let reader = StreamReader::try_new(BufReader::new(file), None)?;
                let schema = reader.schema();
                Ok::<_, arrow_schema::ArrowError>((Reader::Stream(reader), schema, Origin::Stream, declared))
            })?
        };
        // A batch that is filled as a chunk is a table of its own.
        limit.check_table(declared.batch_rows, schema.fields().len(), declared.batch)?;
        Ok(Batches { reader, schema, origin, damage, limit, rows: declared.rows, bytes: declared.bytes })
    }

    fn open_parquet(file: File, rows: usize, limit: MemoryLimit, damage: Damage) -> Result<Batches> {
        let builder = damage.guard(|| ParquetRecordBatchReaderBuilder::try_new(file.try_clone()?))?;
        let metadata = builder.metadata().clone();
        let rows = match damage.guard(|| Ok::<_, String>(batch_rows(&file, &metadata, rows, &limit)))? {
            Ok(rows) => rows,
            Err(Unfolding::Damaged(reason)) => return Err(damage.error(reason)),
            Err(Unfolding::Limit(error)) => return Err(error),
        };
        let schema = builder.schema().clone();
        let reader = damage.guard(|| builder.with_batch_size(rows).build())?;
        let first = metadata.row_groups().first().and_then(|g| g.columns().first());
        let origin = Origin::Parquet(first.map_or(Compression::SNAPPY, |c| c.compression()));
        let rows = u64::try_from(metadata.file_metadata().num_rows()).unwrap_or(0);
        let texts = metadata.row_groups().iter().flat_map(|group| group.columns());
        let texts = texts.filter_map(|column| u64::try_from(column.unencoded_byte_array_data_bytes()?).ok());
        let bytes = texts.fold(0, u64::saturating_add);
        Ok(Batches { reader: Reader::Parquet(reader), schema, origin, damage, limit, rows, bytes })
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Batches { reader, damage, .. } = self;
        let batch = damage.guard(|| {
            match reader {
                Reader::Parquet(reader) => reader.next(),
                Reader::File(reader) => reader.next(),
                Reader::Stream(reader) => reader.next(),
            }
            .transpose()
        })?;
        if let Some(batch) = &batch {
            check_views(batch, &self.limit)?;
            if !batch.columns().iter().all(has_its_type) {
                return Err(self.damage.error("its contents do not fit together"));
            }
        }
        Ok(batch)
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

/// What the messages of an Arrow file declare.
#[derive(Default)]
struct Declared {
    /// Rows of all batches.
    rows: u64,
    /// Rows of the largest batch.
    batch_rows: u64,
    /// Bytes of all batches, decompressed.
    bytes: u64,
    /// Bytes of the largest batch, decompressed.
    batch: u64,
    /// Bytes of all dictionaries, decompressed.
    dictionaries: u64,
}

impl Declared {
    /// Adds a message, whose body begins at `body`.
    fn add(&mut self, file: &mut File, message: &[u8], body: u64, length: u64) -> std::result::Result<u64, String> {
        let message = arrow_ipc::root_as_message(message).map_err(|e| format!("{e:?}"))?;
        let size = u64::try_from(message.bodyLength()).map_err(|_| "a body of a negative length")?;
        if body.saturating_add(size) > length {
            return Err("it is cut off inside a body".to_owned());
        }
        if let Some(batch) = message.header_as_record_batch() {
            let rows = u64::try_from(batch.length()).map_err(|_| "a batch of a negative number of rows")?;
            self.rows = self.rows.saturating_add(rows);
            self.batch_rows = self.batch_rows.max(rows);
            let bytes = batch_size(file, body, &batch, length)?;
            self.bytes = self.bytes.saturating_add(bytes);
            self.batch = self.batch.max(bytes);
        } else if let Some(batch) = message.header_as_dictionary_batch().and_then(|d| d.data()) {
            self.dictionaries = self.dictionaries.saturating_add(batch_size(file, body, &batch, length)?);
        }
        Ok(size)
    }

    fn check(&self, limit: &MemoryLimit) -> Result<()> {
        limit.check(self.batch.saturating_add(self.dictionaries))
    }
}

/// Checks that the blocks of a file lie in it, before anything is allocated by their lengths; gives what they declare.
fn check_blocks(file: &mut File, length: u64) -> std::result::Result<Declared, String> {
    let broken = |e: std::io::Error| e.to_string();
    let mut end = [0u8; 4];
    file.seek(SeekFrom::End(-10)).and_then(|_| file.read_exact(&mut end)).map_err(broken)?;
    let size = u64::try_from(i32::from_le_bytes(end)).map_err(|_| "a footer of a negative length")?;
    if size + 10 > length {
        return Err("its footer is longer than the file".to_owned());
    }
    let footer = piece(file, length - 10 - size, size)?;
    let footer = arrow_ipc::root_as_footer(&footer).map_err(|e| format!("{e:?}"))?;
    let mut declared = Declared::default();
    for block in footer.dictionaries().into_iter().chain(footer.recordBatches()).flatten() {
        let parts = [block.offset(), i64::from(block.metaDataLength()), block.bodyLength()];
        let [offset, header, body] = parts.map(|part| u64::try_from(part).unwrap_or(u64::MAX));
        if offset.saturating_add(header).saturating_add(body) > length {
            return Err("a block lies beyond its end".to_owned());
        }
        // The length of a message stands before it, after a mark that old files do not have.
        let message = piece(file, offset, header)?;
        let skip = if message.starts_with(&[0xff; 4]) { 8 } else { 4 };
        let message = message.get(skip..).ok_or("a block without a message")?;
        declared.add(file, message, offset + header, length)?;
    }
    file.seek(SeekFrom::Start(0)).map_err(broken)?;
    Ok(declared)
}

/// Bytes of a file, whose place and length are within it.
fn piece(file: &mut File, at: u64, length: u64) -> std::result::Result<Vec<u8>, String> {
    let mut bytes = vec![0; length as usize];
    let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut bytes));
    read.map(|()| bytes).map_err(|e| e.to_string())
}

/// Walks the messages of a stream and checks that their lengths fit into the file, before anything is allocated by them;
/// gives what they declare.
fn check_stream(file: &mut File, length: u64) -> std::result::Result<Declared, String> {
    let (mut at, mut declared) = (0u64, Declared::default());
    while at + 8 <= length {
        let prefix = piece(file, at, 8)?;
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
        let message = piece(file, at + 8, size)?;
        at += 8 + size;
        at += declared.add(file, &message, at, length)?;
    }
    file.seek(SeekFrom::Start(0)).map_err(|e| e.to_string())?;
    Ok(declared)
}
