//! `transform`: fill new rows with a model, chunk by chunk.

use crate::args::TransformArgs;
use crate::failure::{Failure, Outcome};
use crate::table_io::{self, Target};
use crate::terminal::{Verbosity, count};
use crate::uncertainty::{self, Output, Shifting};
use m3impute::{
    Cancel, Error, Fallback, FittedImputer, Imputation, ModelFile, PredictiveDistributions, RowSeeds, Run, Shifts,
    Table,
};
use m3impute_io::{Change, ChunkReader, Document, DocumentWriter, Reading};
use serde::Deserialize;
use std::path::Path;

/// A model file, read whole.
pub fn read_model(path: &Path) -> Result<ModelFile, Failure> {
    let bytes = std::fs::read(path).map_err(|e| Failure::io(&path.display().to_string(), &e))?;
    ModelFile::read(&bytes).map_err(|e| Failure::from(e).at(path))
}

/// How the rows of a model are read, from its file.
pub fn reading_of(file: &ModelFile, path: &Path) -> Result<Reading, Failure> {
    Reading::deserialize(&file.header.reading)
        .map_err(|e| Failure::from(Error::damaged(format!("how rows are read: {e}"))).at(path))
}

pub fn transform(args: &TransformArgs, verbosity: &Verbosity, cancel: &Cancel) -> Outcome {
    let input = table_io::input(args.input.as_ref())?;
    let file = read_model(&args.model)?;
    let fitted = m3impute::load_file(&file).map_err(|e| Failure::from(e).at(&args.model))?;
    let reading = reading_of(&file, &args.model)?;
    if args.uncertainty.is_asked() && !fitted.has_distributions() {
        let whose = format!("the model of `{}`", file.header.method);
        return Err(args.uncertainty.refused(&whose, "fit with one of them"));
    }
    let mut shifting = Shifting::by(Shifts::of_model(&args.shift.shift, &file.header.encoder, file.header.finish)?);
    let output = Output::open(&args.uncertainty, args.to.output.as_deref())?;

    let options = table_io::new_rows(&args.read);
    let bar = verbosity.bar();
    let mut run = table_io::run(&args.run, &bar, cancel, verbosity)?;
    let mut chunks = m3impute_io::open_chunks(&input, &options, &reading, fitted.schema(), args.chunk)?;
    let input_format = chunks.format();
    let mut work = Work { fitted: fitted.as_ref(), rows: 0, fallbacks: Vec::new() };
    let targets = match output {
        Output::Draws(draws) => draws.fill(&args.to, input_format, &[], |writers| {
            let mut seeds = RowSeeds::default();
            work.each(&mut chunks, &mut run, false, |document, _, _, run| {
                uncertainty::write_draws(writers, document, fitted.as_ref(), &mut seeds, &mut shifting, run)
            })
        })?,
        Output::Table(mut target) => {
            let format = target.format(&args.to, input_format);
            target.fill(|to| {
                let mut writer = DocumentWriter::new(Box::new(to), format, Vec::new());
                let mut said = false;
                let asked = args.uncertainty.is_asked();
                work.each(&mut chunks, &mut run, asked, |document, filled, mut distributions, _| {
                    let mut filled = args.uncertainty.filled(filled, &distributions);
                    shifting.apply(document.table(), &mut filled, &mut distributions);
                    let mut extras = args.uncertainty.columns(document.table(), &filled, &distributions, true);
                    // Every chunk has the same names: notes about them are printed once.
                    let quiet = Verbosity::quiet();
                    uncertainty::name(document, &mut extras, if said { &quiet } else { verbosity });
                    said = true;
                    Ok(writer.write_with(document, Change::Fill(&filled), &extras)?)
                })?;
                Ok(writer.finish()?)
            })?;
            vec![target]
        }
    };
    let written = Target::commit(targets, cancel)?;
    bar.clear();
    let Work { rows, fallbacks, .. } = work;
    table_io::say_findings(verbosity, chunks.findings());
    table_io::say_fallbacks(verbosity, &fallbacks);
    let tables = args.uncertainty.draws.map_or(1, |count| count as usize);
    shifting.notes(tables, &[]).iter().for_each(|note| verbosity.note(note));
    // Levels that training never saw are unknown to the model, but they are not missing.
    let holes: usize = chunks.findings().iter().map(|f| f.missing).sum();
    let left: usize = fallbacks.iter().filter(|f| f.is_left()).map(|f| f.cells).sum();
    let filled = holes.saturating_sub(left);
    verbosity.say(format!("filled {} in {} with `{}`", count(filled, "cell"), count(rows, "row"), file.header.method));
    table_io::say_written(&written, verbosity);
    Ok(())
}

/// Chunks on their way through a model.
struct Work<'a> {
    fitted: &'a dyn FittedImputer,
    rows: usize,
    fallbacks: Vec<Fallback>,
}

impl Work<'_> {
    /// Fills every chunk and hands it on, with the predictive distributions of its missing cells where they are asked
    /// for.
    fn each(
        &mut self,
        chunks: &mut ChunkReader,
        run: &mut Run,
        with_distributions: bool,
        mut hand_on: impl FnMut(&Document, Table, PredictiveDistributions, &Run) -> Outcome + Send,
    ) -> Outcome {
        let pool = run.pool().clone();
        let mut next = pool.install(|| chunks.next())?;
        while let Some(document) = next {
            run.check()?;
            self.rows += document.table().rows();
            let fill = || -> Result<Vec<Fallback>, Failure> {
                let (imputation, distributions) = if with_distributions {
                    let predicted = self.fitted.predict_distributions(document.table(), run)?;
                    predicted.ok_or_else(|| Error::Bug("no distributions".to_owned()))?
                } else {
                    (self.fitted.transform(document.table(), run)?, PredictiveDistributions::default())
                };
                let Imputation { table, fallbacks, .. } = imputation;
                hand_on(&document, table, distributions, run)?;
                Ok(fallbacks)
            };
            // One chunk is read while the one before is filled and written.
            let (ahead, filled) = pool.install(|| rayon::join(|| chunks.next(), fill));
            add_up(&mut self.fallbacks, filled?);
            next = ahead?;
        }
        Ok(())
    }
}

/// The same note about several chunks is printed once.
fn add_up(all: &mut Vec<Fallback>, more: Vec<Fallback>) {
    for fallback in more {
        match all.iter_mut().find(|f| f.column == fallback.column && f.reason == fallback.reason) {
            Some(same) => same.cells += fallback.cells,
            None => all.push(fallback),
        }
    }
}
