//! `impute`: fill the missing cells of a table.

use crate::args::{EmptyColumns, ImputeArgs, LearnArgs};
use crate::failure::{Failure, Outcome};
use crate::reports;
use crate::scores;
use crate::table_io::{self, Target};
use crate::terminal::{Verbosity, count, percent};
use crate::uncertainty::{self, Output, Shifting};
use m3impute::{
    Cancel, ColumnScore, Error, FilledScores, Finish, FittedImputer, Imputation, MethodSpec, PredictiveDistributions,
    RowSeeds, Run, Settings, Shifts, Table, explain_least_certain,
};
use m3impute_io::{Change, Document, DocumentWriter, Input};
use m3impute_report::{ImputeFacts, Imputed};
use std::path::Path;
use std::time::Instant;

/// So many of the least certain cells are explained in a report.
const EXPLAINED: usize = 6;

/// A method, and what is asked of it.
type Asked = (&'static MethodSpec, Settings);

pub fn impute(args: &ImputeArgs, verbosity: &Verbosity, cancel: &Cancel) -> Outcome {
    let input = table_io::input(args.input.as_ref())?;
    let LearnArgs { fill, read, run: run_args } = &args.learn;
    let asked = table_io::method(&args.method.method, &args.method.tuning, fill.empty_columns)?;
    let (spec, settings) = &asked;
    let method = (spec.build)(settings)?;
    if args.uncertainty.is_asked() && !method.has_distributions() {
        let preset = settings.preset.as_deref().filter(|_| spec.distributions);
        let whose = preset.map_or_else(|| format!("`{}`", spec.name), |p| format!("preset `{p}` of `{}`", spec.name));
        return Err(args.uncertainty.refused(&whose, "choose one with `--method NAME`"));
    }
    let output = Output::open(&args.uncertainty, output_path(args, &input)?)?;
    let report = reports::open(args.report.as_deref())?;

    let document = table_io::read(&input, read, Some(&fill.columns))?;
    let table = document.table();
    say_missing(&input.name(), table, verbosity);
    table_io::say_findings(verbosity, document.findings());
    let empty = table_io::empty_columns(table, fill.empty_columns)?;
    let round = settings.finish.over(Finish::default()).round;
    let shifts = Shifts::of_table(&args.shift.shift, table, round)?;

    let started = Instant::now();
    let bar = verbosity.bar();
    let mut run = table_io::run(run_args, &bar, cancel, verbosity)?;
    // A report shows distributions wherever there are some; the filled values are the same.
    let with_distributions = args.uncertainty.is_asked() || (report.is_some() && method.has_distributions());
    let fitted = if with_distributions { method.fit_distributions(table, &mut run)? } else { None };
    let (mut imputation, mut distributions) = match &fitted {
        Some(fitted) => {
            let predicted = fitted.predict_distributions(table, &mut run)?;
            let (filled, distributions) = predicted.ok_or_else(|| Error::Bug("no distributions".to_owned()))?;
            (filled.with_notes_of(fitted.as_ref()), distributions)
        }
        None => (method.impute(table, &mut run)?, PredictiveDistributions::default()),
    };
    let explanations = match (&report, &fitted) {
        (Some(_), Some(fitted)) => explain_least_certain(fitted.as_ref(), table, &distributions, EXPLAINED, &run)?,
        _ => Vec::new(),
    };
    bar.clear();

    imputation.table = args.uncertainty.filled(imputation.table, &distributions);
    say_filled(args, &asked, table, &imputation, started, verbosity);
    let mut shifting = Shifting::by(shifts);
    shifting.apply(table, &mut imputation.table, &mut distributions);
    imputation.notes.extend(shifting.notes(1, &imputation.scores));
    // Of draws, each has cells of its own that stop at bounds: what was done to them is printed when they are written.
    if args.uncertainty.draws.is_none() {
        shifting.notes(1, &imputation.scores).iter().for_each(|note| verbosity.note(note));
    }
    let page = report.as_ref().map(|_| {
        let (how, settings) = described(args, &asked, run.threads());
        let work = reports::work(&input, how, settings, document.findings(), started);
        let distributions = with_distributions.then_some(&distributions);
        let explanations = &explanations;
        ImputeFacts::gather(Imputed { table, imputation: &imputation, distributions, explanations, work }).page()
    });
    let drop = if fill.empty_columns == EmptyColumns::Drop { empty } else { Vec::new() };
    let fitted = fitted.as_deref();
    let filled = Filled {
        document: &document,
        table: imputation.table,
        distributions: &distributions,
        fitted,
        shifting: Shifting::by(shifting.shifts),
        scores: &imputation.scores,
        drop,
    };
    let mut targets = filled.write(args, output, &run, verbosity)?;
    let tables = targets.len();
    if let (Some(mut report), Some(page)) = (report, page) {
        report.put(page.as_bytes())?;
        targets.push(report);
    }
    let written = Target::commit(targets, cancel)?;
    let (tables, report) = written.split_at(tables.min(written.len()));
    table_io::say_written(tables, verbosity);
    table_io::say_written(report, verbosity);
    Ok(())
}

/// Where the filled table is written; none is standard output.
fn output_path<'a>(args: &'a ImputeArgs, input: &'a Input) -> Result<Option<&'a Path>, Failure> {
    match (args.in_place, input) {
        (false, _) => Ok(args.to.output.as_deref()),
        (true, Input::Path(path)) => Ok(Some(path)),
        (true, _) => Err(Failure::usage("`--in-place` needs an input file", "name the file instead of piping it")),
    }
}

/// Prints how large a table is, and how much of it is missing.
fn say_missing(name: &str, table: &Table, verbosity: &Verbosity) {
    let cells = table.rows() * table.cols();
    let missing = cells - table.observed().count();
    verbosity.say(format!(
        "{name}: {}, {}, {} missing ({})",
        count(table.rows(), "row"),
        count(table.cols(), "column"),
        count(missing, "cell"),
        percent(missing, cells)
    ));
}

/// Prints what was filled, how, and how well as far as that is known.
fn say_filled(
    args: &ImputeArgs,
    (spec, settings): &Asked,
    table: &Table,
    imputation: &Imputation,
    started: Instant,
    verbosity: &Verbosity,
) {
    let filled = imputation.table.observed().count() - table.observed().count();
    verbosity.say(format!(
        "filled {} with `{}` (preset `{}`, seed {}) in {:.1} s",
        count(filled, "cell"),
        spec.name,
        reports::preset(spec, settings),
        args.learn.run.seed,
        started.elapsed().as_secs_f64()
    ));
    imputation.notes.iter().for_each(|note| verbosity.note(note));
    table_io::say_fallbacks(verbosity, &imputation.fallbacks);
    if !imputation.scores.is_empty() {
        scores::say(&FilledScores::of(&imputation.scores, filled_cells(table, &imputation.table)), "filled", verbosity);
    }
}

/// How many cells of each column were filled.
fn filled_cells<'a>(table: &'a Table, filled: &Table) -> impl Iterator<Item = (&'a str, usize)> {
    let names = table.schema().columns().iter().map(|spec| spec.name.as_str());
    names.enumerate().map(|(j, name)| (name, table.missing_in(j) - filled.missing_in(j)))
}

/// How cells were filled, for the report: a line, and the settings.
fn described(args: &ImputeArgs, (spec, asked): &Asked, threads: usize) -> (String, Vec<(&'static str, String)>) {
    let run = &args.learn.run;
    let how = format!("Imputed by {}, preset {}, seed {}", spec.name, reports::preset(spec, asked), run.seed);
    let mut settings = reports::method_settings(spec, asked);
    settings.push(("Less suited to", spec.avoid.to_owned()));
    settings.extend(reports::run_settings(run, threads));
    (how, settings)
}

/// What is written.
struct Filled<'a> {
    document: &'a Document,
    table: Table,
    distributions: &'a PredictiveDistributions,
    /// The model that draws, where there is one.
    fitted: Option<&'a dyn FittedImputer>,
    /// How draws are shifted; the table is already.
    shifting: Shifting,
    scores: &'a [ColumnScore],
    /// Columns that are left out.
    drop: Vec<String>,
}

impl Filled<'_> {
    /// Writes the filled table with its further columns, or completed tables drawn from the distributions; returns
    /// what is to be committed.
    fn write(
        self,
        args: &ImputeArgs,
        output: Output,
        run: &Run,
        verbosity: &Verbosity,
    ) -> Result<Vec<Target>, Failure> {
        let Filled { document, table, distributions, fitted, mut shifting, scores, drop } = self;
        match output {
            Output::Draws(draws) => {
                let targets = draws.fill(&args.to, document.format(), &drop, |writers| {
                    let fitted = fitted.ok_or_else(|| Error::Bug("no model to draw from".to_owned()))?;
                    uncertainty::write_draws(writers, document, fitted, &mut RowSeeds::default(), &mut shifting, run)
                })?;
                shifting.notes(targets.len(), scores).iter().for_each(|note| verbosity.note(note));
                Ok(targets)
            }
            Output::Table(mut target) => {
                let mut extras = args.uncertainty.columns(document.table(), &table, distributions, false);
                uncertainty::name(document, &mut extras, verbosity);
                let format = target.format(&args.to, document.format());
                target.fill(|to| {
                    let mut writer = DocumentWriter::new(Box::new(to), format, drop);
                    writer.write_with(document, Change::Fill(&table), &extras)?;
                    Ok(writer.finish()?)
                })?;
                Ok(vec![target])
            }
        }
    }
}
