//! What went wrong, as an exit code and a few lines for a person.

use crate::hints::in_flags;
use crate::terminal::Verbosity;
use m3impute::{Category, Hint};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// What a shell reports of a program that ended because nobody reads its output: 128 and the number of the signal.
const BROKEN_PIPE: u8 = 141;

/// A failure on its way to the user.
#[derive(Debug)]
pub struct Failure {
    category: Category,
    message: String,
    hint: Option<String>,
    /// The reader of our output went away: not worth a word.
    broken_pipe: bool,
}

pub type Outcome = Result<(), Failure>;

impl Failure {
    fn of(category: Category, message: &impl Display, hint: Option<Hint>) -> Failure {
        let hint = hint.as_ref().and_then(in_flags);
        Failure { category, message: message.to_string(), hint, broken_pipe: false }
    }

    /// A request that cannot be fulfilled.
    pub fn usage(message: impl Display, hint: impl Into<String>) -> Failure {
        Failure { category: Category::Usage, message: message.to_string(), hint: Some(hint.into()), broken_pipe: false }
    }

    /// Bytes that could not be written or read at `place`.
    pub fn io(place: &str, error: &std::io::Error) -> Failure {
        Failure {
            category: Category::Resource,
            message: format!("{place}: {error}"),
            hint: None,
            broken_pipe: error.kind() == std::io::ErrorKind::BrokenPipe,
        }
    }

    /// The same failure with the file in which it stands.
    pub fn at(mut self, path: &std::path::Path) -> Failure {
        self.message = format!("{}: {}", path.display(), self.message);
        self
    }

    /// Says it on standard error; returns the exit code.
    pub fn report(&self, verbosity: &Verbosity) -> u8 {
        if self.broken_pipe {
            return BROKEN_PIPE;
        }
        verbosity.complain(31, "error", &self.message);
        if let Some(hint) = &self.hint {
            verbosity.complain(36, "hint", hint);
        }
        exit_code(self.category)
    }
}

/// The exit code of a sort of failure, as `--help` lists them.
fn exit_code(category: Category) -> u8 {
    match category {
        Category::Usage => 2,
        Category::Data => 3,
        Category::Numeric => 4,
        Category::Resource => 5,
        Category::Cancelled => 130,
        Category::Bug => 70,
    }
}

/// Does the work; a panic in it, on whatever thread, is a failure like others. Destructors run, so that no file is left
/// half written.
pub fn guarded(work: impl FnOnce() -> Outcome) -> Outcome {
    static LAST: Mutex<String> = Mutex::new(String::new());
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = text.lines().collect::<Vec<_>>().join(" ");
    }));
    let outcome = catch_unwind(AssertUnwindSafe(work));
    outcome.unwrap_or_else(|_| {
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Err(m3impute::Error::Bug(format!("{last} (m3impute {})", env!("CARGO_PKG_VERSION"))).into())
    })
}

impl From<m3impute::Error> for Failure {
    fn from(error: m3impute::Error) -> Failure {
        Failure::of(error.category(), &error, error.hint())
    }
}

impl From<m3impute_io::Error> for Failure {
    fn from(error: m3impute_io::Error) -> Failure {
        Failure { broken_pipe: error.is_broken_pipe(), ..Failure::of(error.category(), &error, error.hint()) }
    }
}

impl From<m3impute_paper::Error> for Failure {
    fn from(error: m3impute_paper::Error) -> Failure {
        use m3impute_paper::Error;
        let category = match error {
            Error::Core(error) => return error.into(),
            Error::Io(error) => return error.into(),
            Error::Unknown { .. } => Category::Usage,
            Error::Data { .. } => Category::Data,
            Error::Rows { .. } => Category::Resource,
        };
        Failure { category, message: error.to_string(), hint: error.hint(), broken_pipe: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn a_panic_on_any_thread_is_a_fault_of_one_line_with_exit_code_70() {
        let faults: [fn() -> Outcome; 2] = [
            || panic!("out of\nstep"),
            || {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
                pool.install(|| panic!("out of\nstep"))
            },
        ];
        for fault in faults {
            let failure = guarded(fault).unwrap_err();
            assert_eq!(exit_code(failure.category), 70);
            assert!(failure.message.contains("failure.rs") && failure.message.contains("out of step"), "{failure:?}");
            assert!(!failure.message.contains('\n') && failure.hint.is_some(), "{failure:?}");
        }
    }

    #[test]
    fn every_exit_code_is_listed_by_help() {
        let help = crate::args::Cli::command().render_long_help().to_string();
        let codes = help.split("Exit codes:").nth(1).unwrap();
        use Category::{Bug, Cancelled, Data, Numeric, Resource, Usage};
        let all = [Usage, Data, Numeric, Resource, Cancelled, Bug];
        assert_eq!(all.map(exit_code), [2, 3, 4, 5, 130, 70]);
        assert!(all.iter().all(|&c| codes.contains(&format!("  {} ", exit_code(c)))), "{codes}");
    }
}
