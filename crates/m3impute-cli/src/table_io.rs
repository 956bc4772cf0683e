//! From arguments to tables and back to files.

use crate::args::{
    ColumnArgs, EmptyColumns, InfinityPolicy, NewRowsArgs, OutputArgs, ReadArgs, RunArgs, Switch, TuningArgs,
};
use crate::failure::{Failure, Outcome};
use crate::hints::in_flags;
use crate::memory;
use crate::terminal::{Bar, Verbosity, count, plain};
use m3impute::{Cancel, Fallback, FinishChoice, MethodSpec, Run, Settings, Table};
use m3impute_io::{
    AtomicFile, Document, Finding, Format, Infinities, Input, Note, ReadOptions, most_of_machine, usual_limit,
};
use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The input that an argument names.
pub fn input(argument: Option<&String>) -> Result<Input, Failure> {
    match argument.map(String::as_str) {
        None if std::io::stdin().is_terminal() => {
            Err(Failure::usage("no input: expected a file, or a table on standard input", "try `m3impute --help`"))
        }
        None => Ok(Input::Stdin),
        Some(name) => Ok(Input::parse(name)),
    }
}

/// Reads a whole table within the memory that it may take.
pub fn read(input: &Input, args: &ReadArgs, fill: Option<&ColumnArgs>) -> Result<Document, Failure> {
    let length = |path: &Path| path.metadata().ok().filter(|m| m.is_file()).map(|m| m.len());
    let usual = match input {
        Input::Path(path) => length(path).map_or_else(most_of_machine, usual_limit),
        _ => most_of_machine(),
    };
    let bytes = args.max_memory.unwrap_or(usual);
    Ok(memory::within(bytes, || m3impute_io::read(input, &read_options(args, fill)))?)
}

/// How to read, from the arguments.
pub fn read_options(read: &ReadArgs, fill: Option<&ColumnArgs>) -> ReadOptions {
    ReadOptions {
        format: read.format,
        delimiter: read.delimiter,
        header: !read.no_headers,
        encoding: read.encoding,
        na: read.na.clone(),
        na_columns: read.na_col.clone(),
        infinities: infinities(read.inf),
        kinds: read.kind.clone(),
        ignore: read.ignore.clone(),
        only: fill.and_then(|f| f.only.clone()),
        bounds: fill.map(|f| f.bounds.clone()).unwrap_or_default(),
        max_memory: read.max_memory,
    }
}

/// How new rows are read.
pub fn new_rows(read: &NewRowsArgs) -> ReadOptions {
    ReadOptions {
        format: read.format,
        delimiter: read.delimiter,
        infinities: infinities(read.inf),
        max_memory: read.max_memory,
        ..ReadOptions::default()
    }
}

pub fn infinities(policy: InfinityPolicy) -> Infinities {
    match policy {
        InfinityPolicy::Error => Infinities::Refuse,
        InfinityPolicy::Missing => Infinities::Missing,
    }
}

/// The method of that name, which may have its preset after a colon, and what is asked of it.
pub fn method(
    name: &str,
    tuning: &TuningArgs,
    empty: EmptyColumns,
) -> Result<(&'static MethodSpec, Settings), Failure> {
    let (spec, preset) = m3impute::method_and_preset(name, tuning.preset.as_deref())?;
    let switch = |s: Option<Switch>| s.map(|s| s == Switch::On);
    let zero_empty = empty == EmptyColumns::Constant;
    let finish = FinishChoice { round: switch(tuning.round), clip: switch(tuning.clip), zero_empty };
    Ok((spec, Settings { preset, params: tuning.param.clone(), finish }))
}

/// A run that the arguments describe, shown by a bar and stopped by Ctrl-C.
pub fn run(args: &RunArgs, bar: &Bar, cancel: &Cancel, verbosity: &Verbosity) -> Result<Run, Failure> {
    say_fewer_threads(args.threads, verbosity);
    let bar = bar.clone();
    let run = Run::new(args.seed, args.threads)?
        .cancelled_by(cancel.clone())
        .observed_by(move |progress: &m3impute::Progress| bar.show(progress));
    Ok(match args.max_seconds {
        Some(budget) => run.within(budget),
        None => run,
    })
}

/// Says so where a run has fewer threads than are asked for.
pub fn say_fewer_threads(asked: usize, verbosity: &Verbosity) {
    Run::fewer_threads(asked).iter().for_each(|note| verbosity.note(note));
}

/// The columns without a single observed value, after the policy was applied.
pub fn empty_columns(table: &Table, policy: EmptyColumns) -> Result<Vec<String>, Failure> {
    let specs = table.schema().columns();
    let empty: Vec<String> = (0..table.cols())
        .filter(|&j| specs[j].is_used() && table.missing_in(j) == table.rows())
        .map(|j| specs[j].name.clone())
        .collect();
    match (policy, empty.first()) {
        (EmptyColumns::Error, Some(column)) => Err(m3impute::Error::EmptyColumn { column: column.clone() }.into()),
        _ => Ok(empty),
    }
}

/// What was found while reading; the same thing found in several columns is one line, with the hint for the first.
pub fn notes(findings: &[Finding]) -> Vec<String> {
    const NAMED: usize = 6;
    let mut said: Vec<(&Note, Vec<&str>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (note, column) in findings.iter().flat_map(|f| f.notes.iter().map(|note| (note, f.column.as_str()))) {
        let place = *places.entry(&note.text).or_insert(said.len());
        if place == said.len() {
            said.push((note, Vec::new()));
        }
        said[place].1.push(column);
    }
    said.into_iter()
        .map(|(note, columns)| {
            let named: Vec<String> = columns.iter().take(NAMED).map(|c| format!("`{c}`")).collect();
            let more = columns.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let plural = if columns.len() == 1 { "" } else { "s" };
            let hint = note.hint.as_ref().and_then(in_flags).map_or_else(String::new, |hint| format!(" ({hint})"));
            plain(&format!("column{plural} {}{more}: {}{hint}", named.join(", "), note.text))
        })
        .collect()
}

/// Prints what was found while reading.
pub fn say_findings(verbosity: &Verbosity, findings: &[Finding]) {
    notes(findings).iter().for_each(|note| verbosity.note(note));
}

/// Prints what was filled in another way than asked.
pub fn say_fallbacks(verbosity: &Verbosity, fallbacks: &[Fallback]) {
    for f in fallbacks {
        let done = if f.is_left() { "left missing".to_owned() } else { format!("filled with {}", f.done) };
        let line = format!("column `{}`: {} {done}, because {}", f.column, count(f.cells, "cell"), f.reason);
        verbosity.note(line);
    }
}

/// Where a table, a model or a report goes: a file that appears whole or not at all, or standard output.
pub struct Target {
    /// The file; none is standard output.
    path: Option<PathBuf>,
    file: AtomicFile,
}

impl Target {
    /// Opens the target, before the work begins: what cannot be written fails early. `-` or nothing is standard output.
    pub fn open(path: Option<&Path>) -> Result<Target, Failure> {
        let path = path.filter(|path| *path != Path::new("-"));
        let file = path.map_or_else(|| Ok(AtomicFile::stdout()), AtomicFile::create)?;
        Ok(Target { path: path.map(Path::to_owned), file })
    }

    /// The format to write: as told, as the extension says, or as the input.
    pub fn format(&self, told: &OutputArgs, input: Format) -> Format {
        told.output_format.or_else(|| Format::of_path(self.path.as_ref()?)).unwrap_or(input)
    }

    /// Writes through `work`. A file appears when it is committed.
    pub fn fill(&mut self, work: impl FnOnce(&mut AtomicFile) -> Outcome) -> Outcome {
        let outcome = work(&mut self.file);
        self.failure().map_or(outcome, Err)
    }

    /// Bytes that could not be written: this names the file, whatever a writer of a format made of it.
    pub fn failure(&mut self) -> Option<Failure> {
        self.file.failure().map(Failure::from)
    }

    /// What writers write to.
    pub fn file(&mut self) -> &mut AtomicFile {
        &mut self.file
    }

    /// Writes bytes.
    pub fn put(&mut self, bytes: &[u8]) -> Outcome {
        self.fill(|to| to.write_all(bytes).map_err(|e| m3impute_io::Error::Output(e).into()))
    }

    /// Makes all files appear together, unless the work was cancelled; returns their paths.
    pub fn commit(targets: Vec<Target>, cancel: &Cancel) -> Result<Vec<PathBuf>, Failure> {
        cancel.check()?;
        let paths = targets.iter().filter_map(|target| target.path.clone()).collect();
        AtomicFile::commit_all(targets.into_iter().map(|target| target.file).collect())?;
        Ok(paths)
    }
}

/// Says which files were written.
pub fn say_written(paths: &[PathBuf], verbosity: &Verbosity) {
    match paths {
        [] => {}
        [one] => verbosity.say(format!("wrote {}", one.display())),
        [first, .., last] => verbosity.say(format!("wrote {} to {}", first.display(), last.display())),
    }
}
