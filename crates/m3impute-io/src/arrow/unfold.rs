//! How large a Parquet or Arrow file becomes in memory, found out before it is unfolded.

use super::delta;
use crate::error::Result;
use crate::limit::MemoryLimit;
use arrow_ipc::RecordBatch as BatchHeader;
use parquet::basic::{Encoding, Type};
use parquet::column::page::Page;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

type Broken<T> = std::result::Result<T, String>;

/// The bytes of an Arrow batch whose body begins at `body` once its buffers are decompressed.
pub(crate) fn batch_size(file: &mut File, body: u64, batch: &BatchHeader<'_>, length: u64) -> Broken<u64> {
    let mut size = 0u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let (Ok(offset), Ok(stored)) = (u64::try_from(buffer.offset()), u64::try_from(buffer.length())) else {
            return Err("a buffer of a negative length".to_owned());
        };
        let declared = if batch.compression().is_some() && stored >= 8 {
            let mut prefix = [0; 8];
            let at = body.checked_add(offset).filter(|at| at.saturating_add(8) <= length);
            let at = at.ok_or("a buffer lies beyond its end")?;
            let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut prefix));
            read.map_err(|e| e.to_string())?;
            // A length of -1 says that the buffer is not compressed.
            u64::try_from(i64::from_le_bytes(prefix)).unwrap_or(stored)
        } else {
            stored
        };
        size = size.saturating_add(declared);
    }
    Ok(size)
}

/// How many rows of a Parquet file are read at once, at most `rows`, so that a batch stays well within the limit whatever
/// its text unfolds to.
///
/// A short page may hold one long text and many references to it, or texts that repeat the beginning of the one before.
/// The headers of the pages say what a batch of rows can unfold to at most; nothing is decompressed, but dictionaries
/// where the headers alone leave it open.
pub(crate) fn batch_rows(
    file: &File,
    metadata: &ParquetMetaData,
    rows: usize,
    limit: &MemoryLimit,
) -> std::result::Result<usize, Unfolding> {
    let mut columns = Vec::new();
    for (group, row_group) in metadata.row_groups().iter().enumerate() {
        for (column, chunk) in row_group.columns().iter().enumerate() {
            let mut pages = pages_of(file, chunk).map_err(Unfolding::Damaged)?;
            for page in &pages {
                limit.check(page.bytes).map_err(Unfolding::Limit)?;
            }
            if pages.iter().any(|page| page.delta) {
                delta::check_lengths(file, group, column)?;
            }
            let long = most_of_batch(&pages, rows) > limit.bytes / 16;
            if long && let Some(longest) = longest_in_dictionary(file, group, column)? {
                pages.iter_mut().filter(|p| p.text == Text::Referred).for_each(|p| p.longest = longest);
            }
            columns.push(pages);
        }
    }
    let mut rows = rows;
    loop {
        let most = columns.iter().map(|pages| most_of_batch(pages, rows)).fold(0, u64::saturating_add);
        if most <= limit.bytes / 4 {
            return Ok(rows);
        }
        if rows == 1 {
            return limit.check(most).map(|()| 1).map_err(Unfolding::Limit);
        }
        rows = (rows / 4).max(1);
    }
}

/// Why a file is not unfolded.
pub(crate) enum Unfolding {
    Damaged(String),
    Limit(crate::error::Error),
}

impl From<ParquetError> for Unfolding {
    fn from(error: ParquetError) -> Unfolding {
        Unfolding::Damaged(error.to_string())
    }
}

/// What the header of a data page says.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PageSize {
    values: u64,
    /// The length of the page once it is decompressed.
    bytes: u64,
    /// No value is longer than this.
    longest: u64,
    text: Text,
    /// Whether the lengths of its texts are stored by differences.
    delta: bool,
    /// Whether a row may have several of its values.
    repeated: bool,
}

/// Where the bytes of a page's values stand.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Text {
    /// In the page, each once.
    Own,
    /// In the dictionary of the column.
    Referred,
    /// In the page, or in the value before.
    Shared,
    /// They are numbers, or of a fixed length.
    Fixed,
}

impl PageSize {
    /// The most that some of its values unfold to.
    fn unfolded(&self, values: u64) -> u64 {
        let most = values.min(self.values).saturating_mul(self.longest);
        if self.text == Text::Own { most.min(self.bytes) } else { most }
    }
}

/// The most that a batch of so many rows of a column takes.
fn most_of_batch(pages: &[PageSize], rows: usize) -> u64 {
    if pages.iter().any(|page| page.repeated) {
        return pages.iter().map(|page| page.unfolded(page.values)).fold(0, u64::saturating_add);
    }
    let rows = rows as u64;
    let (mut most, mut here, mut left) = (0u64, 0u64, rows);
    for page in pages {
        let mut values = page.values;
        // A page that goes on over whole batches unfolds alike in each of them.
        if values > left + rows {
            most = most.max(page.unfolded(rows));
            values = left + rows + values % rows;
        }
        while values > 0 {
            let part = values.min(left);
            here = here.saturating_add(page.unfolded(part));
            values -= part;
            left -= part;
            most = most.max(here);
            if left == 0 {
                (here, left) = (0, rows);
            }
        }
    }
    most
}

/// The longest text of the dictionary of a column, where it has one.
fn longest_in_dictionary(file: &File, group: usize, column: usize) -> std::result::Result<Option<u64>, ParquetError> {
    let reader = SerializedFileReader::new(file.try_clone()?)?;
    let mut pages = reader.get_row_group(group)?.get_column_page_reader(column)?;
    let Some(Page::DictionaryPage { buf, .. }) = pages.get_next_page()? else { return Ok(None) };
    let (mut rest, mut longest) = (&buf[..], 0);
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = u32::from_le_bytes(*length) as usize;
        longest = longest.max(length as u64);
        rest = after.get(length..).unwrap_or_default();
    }
    Ok(Some(longest))
}

/// The data pages of a column chunk, from their headers.
fn pages_of(file: &File, chunk: &ColumnChunkMetaData) -> Broken<Vec<PageSize>> {
    let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
    let (Ok(start), Ok(stored)) = (u64::try_from(start), u64::try_from(chunk.compressed_size())) else {
        return Err("a column of a negative length".to_owned());
    };
    let end = start.saturating_add(stored);
    let mut reader = BufReader::with_capacity(1 << 12, file);
    reader.seek(SeekFrom::Start(start)).map_err(|e| e.to_string())?;
    let mut headers = Headers { reader, at: start };
    let repeated = chunk.column_descr().max_rep_level() > 0;
    let (mut pages, mut dictionary) = (Vec::new(), 0);
    while headers.at < end {
        let header = headers.page()?;
        let bytes = u64::try_from(header.bytes).map_err(|_| "a page of a negative length")?;
        let values = u64::try_from(header.values).map_err(|_| "a page of a negative number of values")?;
        let stored = u64::try_from(header.stored).map_err(|_| "a page of a negative length")?;
        headers.pass(stored)?;
        match header.page {
            DATA | DATA_V2 => {
                let (text, longest) = match (chunk.column_type(), header.encoding) {
                    (Type::BYTE_ARRAY, e) if e == Encoding::DELTA_BYTE_ARRAY as i32 => (Text::Shared, bytes),
                    (Type::BYTE_ARRAY, e) if e == Encoding::RLE_DICTIONARY as i32 => (Text::Referred, dictionary),
                    (Type::BYTE_ARRAY, 2) => (Text::Referred, dictionary), // dictionaries of the first version
                    (Type::BYTE_ARRAY, _) => (Text::Own, bytes),
                    (Type::FIXED_LEN_BYTE_ARRAY, _) => {
                        (Text::Fixed, u64::try_from(chunk.column_descr().type_length()).unwrap_or(0))
                    }
                    _ => (Text::Fixed, 8),
                };
                let delta = [Encoding::DELTA_BYTE_ARRAY, Encoding::DELTA_LENGTH_BYTE_ARRAY]
                    .iter()
                    .any(|&encoding| header.encoding == encoding as i32);
                // Beside its bytes a value has an offset, and where it may be missing a level.
                pages.push(PageSize { values, bytes, longest: longest.saturating_add(8), text, delta, repeated });
            }
            DICTIONARY => dictionary = bytes,
            _ => {}
        }
    }
    Ok(pages)
}

const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
const DATA_V2: i64 = 3;

/// What a page header says, as far as it is needed.
#[derive(Clone, Copy, Debug, Default)]
struct PageHeader {
    page: i64,
    bytes: i64,
    stored: i64,
    values: i64,
    encoding: i32,
}

/// Reads page headers, which are written in the compact protocol of Thrift.
struct Headers<R> {
    reader: R,
    at: u64,
}

impl<R: Read + Seek> Headers<R> {
    fn page(&mut self) -> Broken<PageHeader> {
        let mut header = PageHeader { page: -1, ..PageHeader::default() };
        self.fields(0, &mut |this, id, kind| {
            match (id, kind) {
                (1, 5) => header.page = this.number()?,
                (2, 5) => header.bytes = this.number()?,
                (3, 5) => header.stored = this.number()?,
                // The headers of data pages of both versions; those of dictionaries are passed over.
                (5 | 8, 12) => {
                    let encoding = if id == 5 { 2 } else { 4 };
                    this.fields(1, &mut |this, inner, kind| {
                        match (inner, kind) {
                            (1, 5) => header.values = this.number()?,
                            (at, 5) if at == encoding => header.encoding = this.number()? as i32,
                            _ => this.skip(kind, 1)?,
                        }
                        Ok(())
                    })?;
                }
                _ => this.skip(kind, 0)?,
            }
            Ok(())
        })?;
        Ok(header)
    }

    /// Hands each field of a struct to `take`, with its number and type.
    fn fields(&mut self, depth: usize, take: &mut dyn FnMut(&mut Self, i64, u8) -> Broken<()>) -> Broken<()> {
        if depth > 8 {
            return Err("a page header without end".to_owned());
        }
        let mut id = 0i64;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Ok(());
            }
            let step = i64::from(byte >> 4);
            id = if step == 0 { self.number()? } else { id.wrapping_add(step) };
            take(self, id, byte & 15)?;
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Broken<()> {
        match kind {
            1 | 2 => Ok(()),
            3 => self.byte().map(|_| ()),
            4..=6 => self.number().map(|_| ()),
            7 => self.pass(8),
            8 => {
                let length = self.varint()?;
                self.pass(length)
            }
            12 => self.fields(depth + 1, &mut |this, _, kind| this.skip(kind, depth + 1)),
            _ => Err("a page header of an unknown form".to_owned()),
        }
    }

    fn byte(&mut self) -> Broken<u8> {
        let mut byte = [0];
        self.reader.read_exact(&mut byte).map_err(|_| "it is cut off inside a page".to_owned())?;
        self.at += 1;
        Ok(byte[0])
    }

    fn varint(&mut self) -> Broken<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(value);
            }
        }
        Err("a number without end".to_owned())
    }

    /// A number in zigzag order.
    fn number(&mut self) -> Broken<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn pass(&mut self, bytes: u64) -> Broken<()> {
        self.at = self.at.saturating_add(bytes);
        let step = i64::try_from(bytes).map_err(|_| "a page of an impossible length")?;
        self.reader.seek_relative(step).map_err(|e| e.to_string())
    }
}

/// Whether rows of text in a batch unfold beyond the limit: views may all show the same bytes.
pub(crate) fn check_views(batch: &arrow_array::RecordBatch, limit: &MemoryLimit) -> Result<()> {
    use arrow_array::cast::AsArray;
    use arrow_schema::DataType;
    for array in batch.columns() {
        let views = match array.data_type() {
            DataType::Utf8View => array.as_string_view().views(),
            DataType::BinaryView => array.as_binary_view().views(),
            _ => continue,
        };
        // The length of a view stands in its lowest four bytes.
        limit.check(views.iter().map(|&view| u64::from(view as u32)).sum())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(values: u64, bytes: u64, longest: u64, text: Text) -> PageSize {
        PageSize { values, bytes, longest, text, delta: false, repeated: false }
    }

    #[test]
    fn a_batch_takes_what_its_pages_can_unfold_to() {
        let own = [page(10, 100, 100, Text::Own), page(10, 500, 500, Text::Own)];
        assert_eq!(most_of_batch(&own, 10), 500);
        assert_eq!(most_of_batch(&own, 20), 600);
        let referred = [page(1_000_000, 10, 1 << 20, Text::Referred)];
        assert_eq!(most_of_batch(&referred, 10), 10 << 20);
        let numbers = [page(5, 10, 8, Text::Fixed), page(100, 10, 8, Text::Fixed)];
        assert_eq!(most_of_batch(&numbers, 10), 80);
    }
}
