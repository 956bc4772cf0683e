//! `ampute`: make cells of a table missing.

use crate::args::AmputeArgs;
use crate::failure::Outcome;
use crate::table_io::{self, Target};
use crate::terminal::{Verbosity, count};
use m3impute::{Cancel, Run};
use m3impute_io::{Change, DocumentWriter};

pub fn ampute(args: &AmputeArgs, verbosity: &Verbosity, cancel: &Cancel) -> Outcome {
    let input = table_io::input(args.input.as_ref())?;
    let mut target = Target::open(args.to.output.as_deref())?;
    let document = table_io::read(&input, &args.read, None)?;
    table_io::say_findings(verbosity, document.findings());
    let run = Run::new(args.seed, 1)?.cancelled_by(cancel.clone());
    run.check()?;
    let holes = m3impute::missing::hide(document.table(), args.mechanism, args.rate, &run)?;
    let format = target.format(&args.to, document.format());
    target.fill(|to| {
        let mut writer = DocumentWriter::new(Box::new(to), format, Vec::new());
        writer.write(&document, Change::Hide(&holes.shown))?;
        Ok(writer.finish()?)
    })?;
    let written = Target::commit(vec![target], cancel)?;
    verbosity.say(format!(
        "hid {} of {} ({}, {:.1} % asked, {:.1} % realised)",
        count(holes.hidden, "cell"),
        input.name(),
        holes.mechanism.name(),
        100.0 * args.rate,
        100.0 * holes.rate()
    ));
    holes.notes.iter().for_each(|note| verbosity.note(note));
    table_io::say_written(&written, verbosity);
    Ok(())
}
