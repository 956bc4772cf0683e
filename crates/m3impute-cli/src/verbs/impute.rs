//! `impute`: fill the holes of a table.

use crate::args::{EmptyColumns, ImputeArgs};
use crate::failure::Outcome;
use crate::table_io::{self, Target};
use crate::terminal::{Manner, count, percent};
use m3impute::Cancel;
use m3impute_io::Change;
use std::time::Instant;

pub fn impute(args: &ImputeArgs, manner: &Manner, cancel: &Cancel) -> Outcome {
    let input = table_io::input(args.input.as_ref())?;
    let spec = m3impute::method(&args.method.method)?;
    let method = (spec.build)(&table_io::settings(&args.method.tuning, args.fill.empty_columns))?;
    let target = Target::open(args.to.output.as_deref(), &input, args.in_place)?;

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
    let imputation = method.impute(table, &mut run)?;
    bar.clear();
    let filled = imputation.table.observed().count() - table.observed().count();
    manner.say(format!(
        "filled {} with `{}` (preset `{}`, seed {}) in {:.1} s",
        count(filled, "cell"),
        spec.name,
        args.method.tuning.preset.as_deref().unwrap_or(spec.presets[0].0),
        args.run.seed,
        started.elapsed().as_secs_f64()
    ));
    imputation.notes.iter().for_each(|note| manner.note(note));
    table_io::say_fallbacks(manner, &imputation.fallbacks);

    let drop = if args.fill.empty_columns == EmptyColumns::Drop { empty } else { Vec::new() };
    if let Some(path) = table_io::write_document(target, &args.to, &document, Change::Fill(&imputation.table), drop)? {
        manner.say(format!("wrote {}", path.display()));
    }
    Ok(())
}
