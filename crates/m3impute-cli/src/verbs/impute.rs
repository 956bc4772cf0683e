//! `impute`: fill the holes of a table.

use crate::args::{EmptyColumns, ImputeArgs};
use crate::failure::Outcome;
use crate::reports::{self, ReportFile};
use crate::scores;
use crate::sureness::{self, Output};
use crate::table_io;
use crate::terminal::{Manner, count, percent};
use m3impute::{Beliefs, Cancel, Error};
use m3impute_io::{Change, DocumentWriter};
use m3impute_report::{ImputeFacts, Imputed};
use std::time::Instant;

pub fn impute(args: &ImputeArgs, manner: &Manner, cancel: &Cancel) -> Outcome {
    let input = table_io::input(args.input.as_ref())?;
    let spec = m3impute::method(&args.method.method)?;
    let method = (spec.build)(&table_io::settings(&args.method.tuning, args.fill.empty_columns))?;
    if args.sureness.is_asked() && !method.believes() {
        let preset = args.method.tuning.preset.as_deref().filter(|_| spec.distributions);
        let whose = preset.map_or_else(|| format!("`{}`", spec.name), |p| format!("preset `{p}` of `{}`", spec.name));
        return Err(args.sureness.refused(&whose, "say `--method NAME`"));
    }
    let output = Output::open(&args.sureness, &args.to, &input, args.in_place)?;
    let others = [("input", reports::path_of(&input)), ("output", args.to.output.as_deref())];
    let report = ReportFile::open(args.report.as_deref(), &others)?;

    let document = m3impute_io::read(&input, &table_io::read_options(&args.read, Some(&args.fill)))?;
    let table = document.table();
    let cells = table.rows() * table.cols();
    let missing = cells - table.observed().count();
    manner.say(format!(
        "{}: {}, {}, {} missing ({})",
        input.name(),
        count(table.rows(), "row"),
        count(table.cols(), "column"),
        count(missing, "cell"),
        percent(missing, cells)
    ));
    table_io::say_findings(manner, document.findings());
    let empty = table_io::empty_columns(table, args.fill.empty_columns)?;

    let started = Instant::now();
    let bar = manner.bar();
    let mut run = table_io::run(&args.run, &bar, cancel)?;
    // A report shows distributions wherever there are some; the filled values are the same.
    let believing = args.sureness.is_asked() || (report.is_some() && method.believes());
    let (mut imputation, beliefs) = if believing {
        let with = method.impute_with_distributions(table, &mut run)?;
        with.ok_or_else(|| Error::Bug("no distributions".to_owned()))?
    } else {
        (method.impute(table, &mut run)?, Beliefs::default())
    };
    bar.clear();
    let filled = imputation.table.observed().count() - table.observed().count();
    manner.say(format!(
        "filled {} with `{}` (preset `{}`, seed {}) in {:.1} s",
        count(filled, "cell"),
        spec.name,
        reports::preset(spec, &args.method.tuning),
        args.run.seed,
        started.elapsed().as_secs_f64()
    ));
    imputation.notes.iter().for_each(|note| manner.note(note));
    table_io::say_fallbacks(manner, &imputation.fallbacks);
    scores::say(&imputation.scores, manner);

    imputation.table = args.sureness.filled(imputation.table, &beliefs);
    let page = report.as_ref().map(|_| {
        let tuning = &args.method.tuning;
        let how = format!("Filled by {}, preset {}, seed {}", spec.name, reports::preset(spec, tuning), args.run.seed);
        let mut settings = reports::method_settings(spec, tuning);
        settings.push(("Less suited to", spec.avoid.to_owned()));
        settings.extend(reports::run_settings(&args.run, run.threads()));
        let work = reports::work(&input, how, settings, document.findings(), started);
        let beliefs = believing.then_some(&beliefs);
        ImputeFacts::gather(Imputed { table, imputation: &imputation, beliefs, work }).page()
    });

    let drop = if args.fill.empty_columns == EmptyColumns::Drop { empty } else { Vec::new() };
    let written = match output {
        Output::Draws(draws) => draws.write(&args.to, document.format(), &drop, |writers| {
            let draw = |number| beliefs.draw(&imputation.table, &mut run.rng("draw", number));
            sureness::write_draws(writers, &document, draw)
        })?,
        Output::Table(target) => {
            let filled = imputation.table;
            let mut extras = args.sureness.columns(table, &filled, &beliefs, false);
            sureness::name(&document, &mut extras, manner);
            let format = target.format(&args.to, document.format());
            let written = target.write(|to| {
                let mut writer = DocumentWriter::new(Box::new(to), format, drop);
                writer.write_with(&document, Change::Fill(&filled), &extras)?;
                writer.finish()?;
                Ok(())
            })?;
            Vec::from_iter(written)
        }
    };
    sureness::say_written(&written, manner);
    match (report, page) {
        (Some(report), Some(page)) => report.write(&page, manner),
        _ => Ok(()),
    }
}
