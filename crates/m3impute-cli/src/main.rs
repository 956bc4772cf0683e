//! The command line `m3impute`: reads arguments, calls the library, prints for a person.

mod args;
mod failure;
mod grid;
mod hints;
mod memory;
#[cfg(test)]
mod reference;
mod reports;
mod scores;
mod table_io;
mod terminal;
mod uncertainty;
mod verbs;

use clap::Parser;
use m3impute::Cancel;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    let verbosity = terminal::Verbosity::of(cli.verbosity);
    let cancel = cancel_on_signal();
    memory::limit_to_machine();
    let outcome = failure::guarded(|| match &cli.verb {
        args::Verb::Impute(args) => verbs::impute::impute(args, &verbosity, &cancel),
        args::Verb::Fit(args) => verbs::fit::fit(args, &verbosity, &cancel),
        args::Verb::Transform(args) => verbs::transform::transform(args, &verbosity, &cancel),
        args::Verb::Info(args) => verbs::info::info(args, &verbosity),
        args::Verb::Evaluate(args) => verbs::evaluate::evaluate(args, &verbosity, &cancel),
        args::Verb::Describe(args) => verbs::describe::describe(args, &verbosity),
        args::Verb::Ampute(args) => verbs::ampute::ampute(args, &verbosity),
        args::Verb::Methods(args) => verbs::methods::methods(args, &verbosity),
        args::Verb::Bench(args::BenchVerb::Engine(args)) => verbs::bench::engine(args, &verbosity, &cancel),
        args::Verb::Bench(args::BenchVerb::M3(args)) => verbs::bench::m3(args, &verbosity, &cancel),
        args::Verb::Bench(args::BenchVerb::Paper(args)) => verbs::bench_paper::paper(args, &verbosity, &cancel),
        args::Verb::Completions(args) => verbs::shell::completions(args),
        args::Verb::Man(args) => verbs::shell::man(args),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => ExitCode::from(failure.report(&verbosity)),
    }
}

/// The first signal asks the work to stop and clean up; a second one ends the program at once.
fn cancel_on_signal() -> Cancel {
    static ASKED: AtomicBool = AtomicBool::new(false);
    let cancel = Cancel::default();
    let raised = cancel.clone();
    // Without a handler a signal ends the program, which is what it would do anyway.
    let _ = ctrlc::set_handler(move || {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        raised.cancel();
    });
    cancel
}
