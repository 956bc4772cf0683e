//! `transform`: fill new rows with a model, chunk by chunk.

use crate::args::TransformArgs;
use crate::failure::{Failure, Outcome};
use crate::table_io::{self, Target};
use crate::terminal::{Manner, count};
use m3impute::{Cancel, Fallback, ModelFile};
use m3impute_io::{Change, DocumentWriter, ReadOptions, Reading};
use serde::Deserialize;
use std::path::Path;

/// A model file, read whole.
pub fn read_model(path: &Path) -> Result<ModelFile, Failure> {
    let bytes = std::fs::read(path).map_err(|e| Failure::io(&path.display().to_string(), &e))?;
    ModelFile::read(&bytes).map_err(|e| Failure::from(e).at(path))
}

pub fn transform(args: &TransformArgs, manner: &Manner, cancel: &Cancel) -> Outcome {
    let input = table_io::input(args.input.as_ref())?;
    let file = read_model(&args.model)?;
    let fitted = m3impute::load_file(&file).map_err(|e| Failure::from(e).at(&args.model))?;
    let reading = Reading::deserialize(&file.header.reading).map_err(|e| {
        Failure::from(m3impute::Error::ModelFile { reason: format!("how rows are read: {e}") }).at(&args.model)
    })?;
    let target = Target::open(args.to.output.as_deref(), &input, false)?;

    let options = ReadOptions {
        format: args.format,
        delimiter: args.delimiter,
        infinities: table_io::infinities(args.inf),
        ..ReadOptions::default()
    };
    let bar = manner.bar();
    let mut run = table_io::run(&args.run, &bar, cancel)?;
    let mut chunks = m3impute_io::open_chunks(&input, &options, &reading, fitted.schema(), args.chunk)?;
    let format = target.format(&args.to, chunks.format());
    let mut rows = 0;
    let mut fallbacks: Vec<Fallback> = Vec::new();
    let written = target.write(|to| {
        let mut writer = DocumentWriter::new(Box::new(to), format, Vec::new());
        let pool = run.pool().clone();
        let mut next = pool.install(|| chunks.next())?;
        while let Some(document) = next {
            run.check()?;
            rows += document.table().rows();
            let fill = || -> Result<Vec<Fallback>, Failure> {
                let imputation = fitted.transform(document.table(), &mut run)?;
                writer.write(&document, Change::Fill(&imputation.table))?;
                Ok(imputation.fallbacks)
            };
            // One chunk is read while the one before is filled and written.
            let (ahead, filled) = pool.install(|| rayon::join(|| chunks.next(), fill));
            add_up(&mut fallbacks, filled?);
            next = ahead?;
        }
        writer.finish()?;
        Ok(())
    })?;
    bar.clear();
    table_io::say_findings(manner, chunks.findings());
    table_io::say_fallbacks(manner, &fallbacks);
    // Levels that training never saw are unknown to the model, but they are no holes.
    let holes: usize = chunks.findings().iter().map(|f| f.missing).sum();
    let left: usize = fallbacks.iter().filter(|f| f.is_left()).map(|f| f.cells).sum();
    let filled = holes.saturating_sub(left);
    manner.say(format!("filled {} in {} with `{}`", count(filled, "cell"), count(rows, "row"), file.header.method));
    if let Some(path) = written {
        manner.say(format!("wrote {}", path.display()));
    }
    Ok(())
}

/// The same thing said of several chunks is said once.
fn add_up(all: &mut Vec<Fallback>, more: Vec<Fallback>) {
    for fallback in more {
        match all.iter_mut().find(|f| f.column == fallback.column && f.reason == fallback.reason) {
            Some(same) => same.cells += fallback.cells,
            None => all.push(fallback),
        }
    }
}
