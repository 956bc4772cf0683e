//! How fast rows are read, filled with the column's mean and written: `cargo run --release -p m3impute-io --example
//! throughput -- ROWS.csv [whole]`. The method is as small as can be, so what is measured is reading and writing.

use m3impute_io::{AtomicFile, Change, DocumentWriter, Input, ReadOptions, open_chunks, read};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("expected a CSV file")?;
    let size = std::fs::metadata(&path)?.len() as f64 / 1e6;
    let options = ReadOptions::default();

    // The model: what the first rows say.
    let mut head = Vec::new();
    for line in BufReader::new(std::fs::File::open(&path)?).lines().take(10_000) {
        head.extend(line?.into_bytes());
        head.push(b'\n');
    }
    let training = read(&Input::Bytes { name: "head.csv".to_owned(), bytes: head }, &options)?;
    let means: Vec<f64> = training.findings().iter().map(|f| f.mean.unwrap_or(0.0)).collect();

    let target = std::env::temp_dir().join("throughput.csv");
    let begun = Instant::now();
    let mut file = AtomicFile::create(Path::new(&target))?;
    let mut writer = DocumentWriter::new(Box::new(&mut file), training.format(), Vec::new());
    let mut chunks = open_chunks(&Input::parse(&path), &options, training.reading(), training.table().schema(), 8192)?;
    let (mut rows, mut holes) = (0, 0);
    while let Some(chunk) = chunks.next()? {
        let mut filled = chunk.table().clone();
        for (col, &mean) in
            means.iter().enumerate().filter(|&(col, _)| training.table().schema().columns()[col].is_filled())
        {
            for row in 0..filled.rows() {
                if !filled.observed().get(row, col) {
                    filled.fill(row, col, mean);
                    holes += 1;
                }
            }
        }
        rows += filled.rows();
        writer.write(&chunk, Change::Fill(&filled))?;
    }
    writer.finish()?;
    file.commit()?;
    let seconds = begun.elapsed().as_secs_f64();
    std::fs::remove_file(&target)?;
    println!("{rows} rows, {holes} holes, {size:.0} MB in {seconds:.2} s: {:.0} MB/s", size / seconds);

    if std::env::args().nth(2).is_none() {
        return Ok(());
    }
    let begun = Instant::now();
    let whole = read(&Input::parse(&path), &options)?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("read whole with inference: {} rows in {seconds:.2} s: {:.0} MB/s", whole.table().rows(), size / seconds);
    Ok(())
}
