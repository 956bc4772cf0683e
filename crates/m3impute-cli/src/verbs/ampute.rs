//! `ampute`: make cells of a table missing.

use crate::args::AmputeArgs;
use crate::failure::Outcome;
use crate::table_io::{self, Target};
use crate::terminal::{Verbosity, count};
use m3impute::Run;
use m3impute_io::Change;

pub fn ampute(args: &AmputeArgs, verbosity: &Verbosity) -> Outcome {
    let input = table_io::input(args.input.as_ref())?;
    let target = Target::open(args.to.output.as_deref(), &input, false)?;
    let document = table_io::read(&input, &args.read, None)?;
    table_io::say_findings(verbosity, document.findings());
    let run = Run::new(args.seed, 1)?;
    let holes = m3impute::missing::hide(document.table(), args.hide.mechanism, args.hide.rate, &run)?;
    let written = table_io::write_document(target, &args.to, &document, Change::Hide(&holes.shown), Vec::new())?;
    verbosity.say(format!(
        "hid {} of {} ({}, {:.1} % asked, {:.1} % realised)",
        count(holes.hidden, "cell"),
        input.name(),
        args.hide.mechanism.name(),
        100.0 * args.hide.rate,
        100.0 * holes.rate()
    ));
    holes.notes.iter().for_each(|note| verbosity.note(note));
    if let Some(path) = written {
        verbosity.say(format!("wrote {}", path.display()));
    }
    Ok(())
}
