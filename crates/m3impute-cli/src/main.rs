//! The command line `m3impute`: reads arguments, calls the library, prints for a person.

mod args;
mod failure;
mod files;
mod grid;
mod hints;
mod memory;
#[cfg(test)]
mod reference;
mod reports;
mod scores;
mod signals;
mod table_io;
mod terminal;
mod uncertainty;
mod verbs;

use failure::Outcome;
use m3impute::Cancel;
use std::process::ExitCode;
use terminal::Verbosity;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

fn main() -> ExitCode {
    let cli = args::Cli::of_process();
    let verbosity = Verbosity::of(cli.verbosity);
    let cancel = signals::cancel_on_signal(verbosity);
    memory::limit_to_machine();
    let outcome = failure::guarded(|| {
        files::check(&cli.verb)?;
        perform(&cli.verb, &verbosity, &cancel)
    });
    signals::end_alone();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => ExitCode::from(failure.report(&verbosity)),
    }
}

fn perform(verb: &args::Verb, verbosity: &Verbosity, cancel: &Cancel) -> Outcome {
    match verb {
        args::Verb::Impute(args) => verbs::impute::impute(args, verbosity, cancel),
        args::Verb::Fit(args) => verbs::fit::fit(args, verbosity, cancel),
        args::Verb::Transform(args) => verbs::transform::transform(args, verbosity, cancel),
        args::Verb::Explain(args) => verbs::explain::explain(args, verbosity, cancel),
        args::Verb::Info(args) => verbs::info::info(args, verbosity),
        args::Verb::Evaluate(args) => verbs::evaluate::evaluate(args, verbosity, cancel),
        args::Verb::Describe(args) => verbs::describe::describe(args, verbosity, cancel),
        args::Verb::Ampute(args) => verbs::ampute::ampute(args, verbosity, cancel),
        args::Verb::Methods(args) => verbs::methods::methods(args, verbosity),
        args::Verb::Bench(args::BenchVerb::Engine(args)) => verbs::bench::engine(args, verbosity, cancel),
        args::Verb::Bench(args::BenchVerb::M3(args)) => verbs::bench::m3(args, verbosity, cancel),
        args::Verb::Bench(args::BenchVerb::Paper(args)) => verbs::bench_paper::paper(args, verbosity, cancel),
        args::Verb::Completions(args) => verbs::shell::completions(args),
        args::Verb::Man(args) => verbs::shell::man(args),
    }
}
