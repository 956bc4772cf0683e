//! A file takes no more memory than it may, whatever it declares and whatever it unfolds to.

use arrow_array::*;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use m3impute_core::{Category, Hint};
use m3impute_io::{Document, Error, Input, ReadOptions, Result, open_chunks, read};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use std::sync::Arc;

const MEGABYTE: u64 = 1_000_000;

fn input(name: &str, bytes: &[u8]) -> Input {
    Input::Bytes { name: name.to_owned(), bytes: bytes.to_vec() }
}

fn read_within(name: &str, bytes: &[u8], max_memory: u64) -> Result<Document> {
    read(&input(name, bytes), &ReadOptions { max_memory: Some(max_memory), ..ReadOptions::default() })
}

/// Expects that a file is refused for its size.
fn is_too_large(name: &str, bytes: &[u8], max_memory: u64) {
    let error = read_within(name, bytes, max_memory).expect_err("it is too large");
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert_eq!((error.category(), error.hint()), (Category::Resource, Some(Hint::AllowMemory)));
    assert!(error.to_string().contains(name), "{error}");
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn zeros(rows: usize) -> RecordBatch {
    batch(vec![("x", Arc::new(Float64Array::from(vec![0.0; rows])))])
}

fn parquet_of(batch: &RecordBatch, set: impl FnOnce(WriterPropertiesBuilder) -> WriterPropertiesBuilder) -> Vec<u8> {
    let builder = WriterProperties::builder().set_compression(Compression::ZSTD(Default::default()));
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), Some(set(builder).build())).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    out
}

fn compressed() -> IpcWriteOptions {
    IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap()
}

fn arrow_file(batch: &RecordBatch) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = FileWriter::try_new_with_options(&mut out, &batch.schema(), compressed()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    out
}

fn arrow_stream(batch: &RecordBatch) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = StreamWriter::try_new_with_options(&mut out, &batch.schema(), compressed()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    out
}

#[test]
fn an_arrow_file_that_unfolds_beyond_the_limit_is_refused_before_it_is_unfolded() {
    let rows = zeros(2_000_000);
    for bytes in [arrow_file(&rows), arrow_stream(&rows)] {
        assert!(bytes.len() < 20_000, "{}", bytes.len());
        is_too_large("zeros.arrow", &bytes, 10 * MEGABYTE);
        assert_eq!(read_within("zeros.arrow", &bytes, 100 * MEGABYTE).unwrap().table().rows(), 2_000_000);
    }
}

#[test]
fn a_buffer_that_declares_petabytes_is_refused_in_files_and_streams() {
    for mut bytes in [arrow_file(&zeros(4096)), arrow_stream(&zeros(4096))] {
        // The length of a compressed buffer stands before it.
        let length = 32_768_u64.to_le_bytes();
        let at = bytes.windows(8).rposition(|window| window == length).expect("the length of the buffer");
        bytes[at..at + 8].copy_from_slice(&(1_u64 << 50).to_le_bytes());
        is_too_large("declared.arrow", &bytes, 2_000 * MEGABYTE);
    }
}

#[test]
fn rows_without_a_byte_are_refused_where_the_table_would_be_too_large() {
    let nothing = batch(vec![("x", Arc::new(NullArray::new(1 << 30)))]);
    for bytes in [arrow_file(&nothing), arrow_stream(&nothing)] {
        is_too_large("nothing.arrow", &bytes, 100 * MEGABYTE);
    }
}

#[test]
fn views_of_the_same_bytes_are_counted_each_time() {
    let mut views = builder::StringViewBuilder::new();
    let block = views.append_block("a".repeat(100_000).into_bytes().into());
    for row in 0..1_000 {
        views.try_append_view(block, row, 99_000).unwrap();
    }
    is_too_large("views.arrow", &arrow_file(&batch(vec![("x", Arc::new(views.finish()))])), 20 * MEGABYTE);
}

#[test]
fn a_long_text_to_which_many_rows_refer_is_refused() {
    let long = "a".repeat(100_000);
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..2_000).map(|_| long.as_str())));
    let bytes = parquet_of(&batch(vec![("x", texts)]), |p| p);
    assert!(bytes.len() < 10_000, "{}", bytes.len());
    is_too_large("texts.parquet", &bytes, 50 * MEGABYTE);
}

#[test]
fn texts_that_repeat_the_one_before_are_refused() {
    let long = "a".repeat(100_000);
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..2_000).map(|_| long.as_str())));
    let delta = |p: WriterPropertiesBuilder| p.set_dictionary_enabled(false).set_encoding(Encoding::DELTA_BYTE_ARRAY);
    let bytes = parquet_of(&batch(vec![("x", texts)]), delta);
    is_too_large("prefixes.parquet", &bytes, 50 * MEGABYTE);
}

#[test]
fn a_page_that_counts_more_texts_than_it_has_is_refused() {
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..100).map(|i| format!("text {i}"))));
    for encoding in [Encoding::DELTA_BYTE_ARRAY, Encoding::DELTA_LENGTH_BYTE_ARRAY] {
        let delta = |p: WriterPropertiesBuilder| {
            p.set_dictionary_enabled(false).set_encoding(encoding).set_compression(Compression::UNCOMPRESSED)
        };
        let mut bytes = parquet_of(&batch(vec![("x", texts.clone())]), delta);
        assert_eq!(read_within("counts.parquet", &bytes, MEGABYTE).unwrap().table().rows(), 100);
        // Blocks of 128 lengths in four parts, and how many lengths there are; the last such list is that of the texts.
        let at = bytes.windows(4).rposition(|window| window == [0x80, 1, 4, 100]).expect("the lengths of the texts");
        bytes[at + 3] = 101;
        let error = read_within("counts.parquet", &bytes, MEGABYTE).unwrap_err().to_string();
        assert!(error.contains("counts more texts than it has"), "{error}");
    }
}

#[test]
fn many_rows_in_few_bytes_of_parquet_are_refused_before_they_are_read() {
    let bytes = parquet_of(&zeros(4_000_000), |p| p);
    assert!(bytes.len() < 20_000, "{}", bytes.len());
    is_too_large("zeros.parquet", &bytes, 20 * MEGABYTE);
}

#[test]
fn new_rows_are_read_in_chunks_that_stay_within_the_limit() {
    let long = "a".repeat(50_000);
    let texts = StringArray::from_iter_values((0..2_000).map(|_| long.as_str()));
    let numbers = Float64Array::from_iter((0..2_000).map(|i| (i % 3 > 0).then_some(f64::from(i))));
    let rows = batch(vec![("text", Arc::new(texts)), ("x", Arc::new(numbers))]);
    let bytes = parquet_of(&rows, |p| p);
    let training = read_within("rows.parquet", &parquet_of(&rows.slice(0, 20), |p| p), 100 * MEGABYTE).unwrap();
    let options = ReadOptions { max_memory: Some(20 * MEGABYTE), ..ReadOptions::default() };
    let (reading, schema) = (training.reading(), training.table().schema());
    let mut chunks = open_chunks(&input("rows.parquet", &bytes), &options, reading, schema, 1_000).unwrap();
    let mut read = 0;
    while let Some(document) = chunks.next().unwrap() {
        assert!(document.table().rows() < 200, "a chunk of {} rows", document.table().rows());
        read += document.table().rows();
    }
    assert_eq!(read, 2_000);
}

#[test]
fn a_record_that_never_ends_is_not_kept_for_ever() {
    let training = read(&input("rows.csv", b"a,b\n1,x\n2,y\n"), &ReadOptions::default()).unwrap();
    let endless = [b"a,b\n1,\"".to_vec(), vec![b'x'; 3_000_000]].concat();
    let options = ReadOptions { max_memory: Some(MEGABYTE), ..ReadOptions::default() };
    let (reading, schema) = (training.reading(), training.table().schema());
    let chunks = open_chunks(&input("endless.csv", &endless), &options, reading, schema, 10);
    assert!(matches!(chunks.and_then(|mut chunks| chunks.next()), Err(Error::TooLarge { .. })));
    is_too_large("endless.csv", &endless, MEGABYTE);
}
