//! From arguments to tables and back to files.

use crate::args::{EmptyColumns, FillArgs, InfinityPolicy, OutputArgs, ReadArgs, RunArgs, Switch, TuningArgs};
use crate::failure::Failure;
use crate::hints::in_flags;
use crate::memory;
use crate::terminal::{Bar, Verbosity, count, plain};
use m3impute::{Cancel, Fallback, FinishChoice, Run, Settings, Table};
use m3impute_io::{
    AtomicFile, Change, Document, DocumentWriter, Finding, Format, Infinities, Input, Note, ReadOptions,
    most_of_machine, usual_limit,
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
pub fn read(input: &Input, args: &ReadArgs, fill: Option<&FillArgs>) -> Result<Document, Failure> {
    let length = |path: &Path| path.metadata().ok().filter(|m| m.is_file()).map(|m| m.len());
    let usual = match input {
        Input::Path(path) => length(path).map_or_else(most_of_machine, usual_limit),
        _ => most_of_machine(),
    };
    let bytes = args.max_memory.unwrap_or(usual);
    Ok(memory::within(bytes, || m3impute_io::read(input, &read_options(args, fill)))?)
}

/// How to read, from the arguments.
pub fn read_options(read: &ReadArgs, fill: Option<&FillArgs>) -> ReadOptions {
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

pub fn infinities(policy: InfinityPolicy) -> Infinities {
    match policy {
        InfinityPolicy::Error => Infinities::Refuse,
        InfinityPolicy::Missing => Infinities::Missing,
    }
}

/// What is asked of a method, from the arguments.
pub fn settings(tuning: &TuningArgs, empty: EmptyColumns) -> Settings {
    let switch = |s: Option<Switch>| s.map(|s| s == Switch::On);
    let zero_empty = empty == EmptyColumns::Constant;
    Settings {
        preset: tuning.preset.clone(),
        params: tuning.param.clone(),
        finish: FinishChoice { round: switch(tuning.round), clip: switch(tuning.clip), zero_empty },
    }
}

/// A run that the arguments describe, shown by a bar and stopped by Ctrl-C.
pub fn run(args: &RunArgs, bar: &Bar, cancel: &Cancel) -> Result<Run, Failure> {
    let bar = bar.clone();
    let run = Run::new(args.seed, args.threads)?
        .cancelled_by(cancel.clone())
        .observed_by(move |progress: &m3impute::Progress| bar.show(progress));
    Ok(match args.max_seconds {
        Some(budget) => run.within(budget),
        None => run,
    })
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

/// Where a table goes: a file that appears whole or not at all, or standard output.
pub enum Target {
    File { path: PathBuf, file: AtomicFile },
    Stdout,
}

impl Target {
    /// Opens the target. A path that is the input itself is refused unless `in_place`.
    pub fn open(path: Option<&Path>, input: &Input, in_place: bool) -> Result<Target, Failure> {
        let path = match (path, input) {
            (Some(path), _) if path != Path::new("-") => path.to_owned(),
            (_, Input::Path(path)) if in_place => path.clone(),
            _ if in_place => {
                return Err(Failure::usage("`--in-place` needs an input file", "name the file instead of piping it"));
            }
            _ => return Ok(Target::Stdout),
        };
        if let Input::Path(source) = input
            && !in_place
            && same_file(source, &path)
        {
            return Err(Failure::usage(
                format!("the output `{}` is the input", path.display()),
                "use `--in-place` to overwrite it",
            ));
        }
        let file = AtomicFile::create(&path)?;
        Ok(Target::File { path, file })
    }

    /// The format to write: as told, as the extension says, or as the input.
    pub fn format(&self, told: &OutputArgs, input: Format) -> Format {
        let by_path = match self {
            Target::File { path, .. } => Format::of_path(path),
            Target::Stdout => None,
        };
        told.output_format.or(by_path).unwrap_or(input)
    }

    /// Writes through `work`, then makes the file appear.
    pub fn write(
        self,
        work: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Failure>,
    ) -> Result<Option<PathBuf>, Failure> {
        match self {
            Target::File { path, file } => {
                let mut buffered = std::io::BufWriter::with_capacity(1 << 18, file);
                work(&mut buffered)?;
                let file = buffered.into_inner().map_err(|e| Failure::io(&path.display().to_string(), e.error()))?;
                file.commit()?;
                Ok(Some(path))
            }
            Target::Stdout => {
                let mut out = std::io::BufWriter::with_capacity(1 << 18, std::io::stdout());
                work(&mut out)?;
                out.flush().map_err(|e| Failure::io("standard output", &e))?;
                Ok(None)
            }
        }
    }
}

/// Writes one document with a change.
pub fn write_document(
    target: Target,
    told: &OutputArgs,
    document: &Document,
    change: Change<'_>,
    drop: Vec<String>,
) -> Result<Option<PathBuf>, Failure> {
    let format = target.format(told, document.format());
    target.write(|to| {
        let mut writer = DocumentWriter::new(Box::new(to), format, drop);
        writer.write(document, change)?;
        writer.finish()?;
        Ok(())
    })
}

/// Whether two paths lead to the same file, which need not be there yet.
pub fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| {
        path.canonicalize().ok().or_else(|| {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Some(folder.canonicalize().ok()?.join(path.file_name()?))
        })
    };
    one == other || real(one).is_some_and(|one| Some(one) == real(other))
}
