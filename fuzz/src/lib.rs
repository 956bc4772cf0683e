//! What is fuzzed: each target is a function of bytes that must not panic. It says whether the bytes were accepted, so
//! that a run shows how many of its inputs came past the first check.
//!
//! `cargo fuzz` runs them by coverage on a nightly toolchain (`fuzz_targets`); the binary `m3impute-fuzz` runs them on
//! the stable one, by mutating seeds, under a memory limit. `seeds` has a folder for each target.

pub mod mutate;
pub mod runner;
pub mod seeds;

use m3impute::{FittedImputer, Kind, ModelFile, Run};
use m3impute_io::{Change, Document, DocumentWriter, Format, Infinities, Input, ReadOptions, Reading};
use rayon::ThreadPool;
use serde::Deserialize;
use std::sync::{Arc, LazyLock};

/// A target: its name, which is that of the folder of its seeds, and its function.
pub type Target = (&'static str, fn(&[u8]) -> bool);

/// Every target.
pub const TARGETS: [Target; 5] =
    [("csv", csv), ("cells", cells), ("parquet", parquet), ("arrow", arrow), ("model", model)];

/// One thread: an execution is short, and threads that wait for each other would cost more than it.
pub static POOL: LazyLock<Arc<ThreadPool>> = LazyLock::new(|| {
    Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started"))
});

/// A CSV file. One that is read comes back byte for byte when nothing is filled.
pub fn csv(bytes: &[u8]) -> bool {
    let Some(document) = read("fuzz.csv", bytes, &ReadOptions::default()) else { return false };
    let written = written(&document, Format::Csv);
    assert!(written.is_none_or(|written| written == bytes), "an unchanged file is written as other bytes");
    true
}

/// Cells of one column, read as the first byte says: kind, words for missing, infinities, header, encoding.
pub fn cells(bytes: &[u8]) -> bool {
    let Some((&how, cells)) = bytes.split_first() else { return false };
    let kind = Kind::ALL.get(usize::from(how & 15)).copied();
    let words = || vec!["-999".to_owned(), "n/a".to_owned(), "1e308".to_owned(), String::new()];
    let options = ReadOptions {
        delimiter: Some(b'\x1f'),
        header: false,
        na: (how & 16 != 0).then(words),
        na_columns: if how & 32 != 0 { vec![("column_1".to_owned(), words())] } else { Vec::new() },
        infinities: if how & 64 != 0 { Infinities::Missing } else { Infinities::Refuse },
        encoding: (how & 128 != 0).then_some(m3impute_io::Encoding::Latin1),
        kinds: kind.map(|kind| ("column_1".to_owned(), kind)).into_iter().collect(),
        ..ReadOptions::default()
    };
    let document = read("fuzz.csv", cells, &options);
    document.inspect(|document| _ = written(document, Format::Arrow)).is_some()
}

/// A Parquet file.
pub fn parquet(bytes: &[u8]) -> bool {
    columnar("fuzz.parquet", bytes)
}

/// An Arrow IPC file or stream.
pub fn arrow(bytes: &[u8]) -> bool {
    columnar("fuzz.arrow", bytes)
}

fn columnar(name: &str, bytes: &[u8]) -> bool {
    let Some(document) = read(name, bytes, &ReadOptions::default()) else { return false };
    let _ = written(&document, Format::Csv);
    let _ = written(&document, document.format());
    true
}

/// A model file: it is read, and fills rows as `m3impute transform` does.
pub fn model(bytes: &[u8]) -> bool {
    let Ok(file) = ModelFile::read(bytes) else { return false };
    let Ok(fitted) = m3impute::load_file(&file) else { return false };
    let Ok(reading) = Reading::deserialize(&file.header.reading) else { return false };
    let _ = (fitted.scores(), fitted.to_file());
    POOL.install(|| fill(&*fitted, &reading));
    true
}

fn fill(fitted: &dyn FittedImputer, reading: &Reading) {
    let mut run = Run::on_pool(0, POOL.clone());
    let input = Input::Bytes { name: "rows.csv".to_owned(), bytes: seeds::NEW_ROWS.as_bytes().to_vec() };
    let chunks = m3impute_io::open_chunks(&input, &ReadOptions::default(), reading, fitted.schema(), 2);
    let Ok(mut chunks) = chunks else { return };
    while let Ok(Some(document)) = chunks.next() {
        let Ok(filled) = fitted.transform(document.table(), &mut run) else { return };
        let mut out = Vec::new();
        let mut writer = DocumentWriter::new(Box::new(&mut out), Format::Csv, Vec::new());
        let _ = writer.write(&document, Change::Fill(&filled.table)).and_then(|()| writer.finish());
        let _ = fitted.predict_distributions(document.table(), &mut run);
        let _ = (fitted.explain(document.table(), &document.missing_cells(1, fitted), &run), fitted.kept_rows());
        let seeds = m3impute::RowSeeds::default().of(document.table());
        let _ = fitted.draw(document.table(), &seeds, 1, &run);
    }
}

/// The readers catch panics of the Arrow and Parquet libraries and refuse the file; libFuzzer's hook would end the process
/// before. A panic that nobody catches ends it all the same.
pub fn let_panics_be_caught() {
    std::panic::set_hook(Box::new(|_| {}));
}

fn read(name: &str, bytes: &[u8], options: &ReadOptions) -> Option<Document> {
    let input = Input::Bytes { name: name.to_owned(), bytes: bytes.to_vec() };
    // Far less than the runner allows: a file that takes more than it may ends the process. Little, so that it is quick.
    let options = ReadOptions { max_memory: Some(16 << 20), ..options.clone() };
    POOL.install(|| m3impute_io::read(&input, &options)).ok()
}

/// The document with nothing filled.
fn written(document: &Document, format: Format) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut writer = DocumentWriter::new(Box::new(&mut out), format, Vec::new());
    writer.write(document, Change::Fill(document.table())).and_then(|()| writer.finish()).ok()?;
    Some(out)
}
