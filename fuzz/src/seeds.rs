//! Seeds: small files of each format, and a small model of each method. `m3impute-fuzz seeds` writes them anew.

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use m3impute::{FittedImputer, METHODS, MethodSpec, Run, Settings};
use m3impute_io::{Change, Document, Input, ReadOptions};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::{WriterProperties, WriterVersion};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What models are fitted to.
const TABLE: &str = "x,n,c,b,t\n\
    0.5,3,red,no,2020-01-01\n1.25,7,blue,yes,2020-01-03\n,4,red,no,2020-02-01\n2.5,,green,yes,2020-03-01\n\
    0.75,3,,no,2020-03-09\n1.5,9,blue,,2020-04-01\n3.5,6,green,yes,\n2.25,8,blue,yes,2020-06-01\n\
    0.25,2,red,no,2020-06-02\n1.75,5,green,yes,2020-07-01\n2.75,7,blue,no,2020-08-01\n1.1,4,red,no,2020-09-01\n\
    0.9,3,red,,2020-10-01\n2.1,,blue,yes,2020-10-11\n1.9,6,green,yes,2020-11-01\n1.3,5,,no,2020-12-01\n";

/// The rows that models fill.
pub const NEW_ROWS: &str = "x,n,c,b,t\n,5,red,no,2020-05-05\n1.5,,blue,,\n,,,,\n2.5,7,purple,yes,2021-01-01\n";

/// Where the seeds are.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds")
}

/// The seeds of a target whose names begin like this.
///
/// # Errors
/// When they cannot be read, or there are none.
pub fn of(target: &str, prefix: &str) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder().join(target))?.map(|e| Ok(e?.path())).collect::<Result<_, std::io::Error>>()?;
    paths.sort();
    paths.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)));
    if paths.is_empty() {
        return Err(format!("no seeds of `{target}` begin with `{prefix}`").into());
    }
    Ok(paths.iter().map(fs::read).collect::<Result<_, _>>()?)
}

/// Writes the seeds that are made: those of Parquet, Arrow and models.
///
/// # Errors
/// When one cannot be made or written.
pub fn write() -> Result<(), Box<dyn Error>> {
    let input = Input::Bytes { name: "table.csv".to_owned(), bytes: TABLE.as_bytes().to_vec() };
    let document = m3impute_io::read(&input, &ReadOptions::default())?;
    let batches = document.filled_batches(Change::Fill(document.table()))?;
    put("parquet", "unfolds.parquet", &unfolding()?)?;
    for batch in &batches {
        parquet_seeds(batch)?;
        arrow_seeds(batch)?;
    }
    for spec in METHODS.iter().filter(|spec| spec.inductive) {
        for (preset, _) in [spec.presets[0]].into_iter().chain(spec.presets.iter().copied().find(|p| p.0 == "paper")) {
            let name = format!("{}-{preset}.m3", spec.name);
            put("model", &name, &model(spec, preset, &[], &document)?)?;
        }
    }
    put("model", "m3-donors.m3", &model(m3impute::method("m3")?, "balanced", &[("keep_donors", "true")], &document)?)?;
    Ok(())
}

/// A short file of many references to one long text.
fn unfolding() -> Result<Vec<u8>, Box<dyn Error>> {
    let long = "a".repeat(20_000);
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..2_000).map(|_| long.as_str())));
    let batch = RecordBatch::try_from_iter([("text", texts)])?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(Default::default())).build();
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(out)
}

fn put(target: &str, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(folder().join(target))?;
    fs::write(folder().join(target).join(name), bytes)
}

fn parquet_seeds(batch: &RecordBatch) -> Result<(), Box<dyn Error>> {
    let codecs = [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(Default::default())];
    for (codec, dictionary, version) in [
        (codecs[0], true, WriterVersion::PARQUET_1_0),
        (codecs[0], false, WriterVersion::PARQUET_2_0),
        (codecs[1], true, WriterVersion::PARQUET_1_0),
        (codecs[2], true, WriterVersion::PARQUET_2_0),
    ] {
        let properties = WriterProperties::builder()
            .set_compression(codec)
            .set_dictionary_enabled(dictionary)
            .set_writer_version(version)
            .build();
        let mut out = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), Some(properties))?;
        writer.write(batch)?;
        writer.close()?;
        let dictionary = if dictionary { "dictionary" } else { "plain" };
        let codec = codec.to_string();
        let codec = codec.split('(').next().unwrap_or_default().to_lowercase();
        put("parquet", &format!("{codec}-{dictionary}-{}.parquet", version.as_num()), &out)?;
    }
    Ok(())
}

fn arrow_seeds(batch: &RecordBatch) -> Result<(), Box<dyn Error>> {
    for (name, compression) in
        [("plain", None), ("lz4", Some(CompressionType::LZ4_FRAME)), ("zstd", Some(CompressionType::ZSTD))]
    {
        let options = IpcWriteOptions::default().try_with_compression(compression)?;
        let mut out = Vec::new();
        let mut writer = FileWriter::try_new_with_options(&mut out, &batch.schema(), options.clone())?;
        writer.write(batch)?;
        writer.finish()?;
        put("arrow", &format!("file-{name}.arrow"), &out)?;
        let mut out = Vec::new();
        let mut writer = StreamWriter::try_new_with_options(&mut out, &batch.schema(), options)?;
        writer.write(batch)?;
        writer.finish()?;
        put("arrow", &format!("stream-{name}.arrow"), &out)?;
    }
    Ok(())
}

/// A model of a training short enough for a seed.
fn model(
    spec: &'static MethodSpec,
    preset: &str,
    further: &[(&str, &str)],
    document: &Document,
) -> Result<Vec<u8>, Box<dyn Error>> {
    let small = [
        ("epochs", "2"),
        ("steps", "2"),
        ("width", "4"),
        ("folds", "2"),
        ("trees", "2"),
        ("samples", "4"),
        ("hidden", "4"),
        ("latent", "2"),
        ("stack_layers", "1"),
        ("sweeps", "1"),
    ];
    let values = (spec.preset_values)(preset);
    let known = |p: &&(&str, &str)| values.as_ref().is_some_and(|v| v.get(p.0).is_some());
    let params =
        small.iter().chain(further).filter(known).map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let settings = Settings { preset: Some(preset.to_owned()), params, ..Settings::default() };
    let method = (spec.build)(&settings)?;
    let inductive = method.as_inductive().ok_or("it is inductive")?;
    let fitted: Box<dyn FittedImputer> = inductive.fit(document.table(), &mut Run::new(0, 1)?)?;
    let mut file = fitted.to_file()?;
    file.header.reading = serde_json::to_value(document.reading())?;
    let mut out = Vec::new();
    file.write(&mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_of_a_model_is_a_model() {
        for bytes in of("model", "").unwrap() {
            let file = m3impute::ModelFile::read(&bytes).unwrap();
            assert!(m3impute::load_file(&file).is_ok(), "write the seeds anew: `m3impute-fuzz seeds`");
        }
    }
}
