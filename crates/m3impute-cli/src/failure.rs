//! What went wrong, as an exit code and a few lines for a person.

use crate::hints::in_flags;
use crate::terminal::Verbosity;
use m3impute::{Category, Hint};
use std::fmt::Display;

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
        match self.category {
            Category::Usage => 2,
            Category::Data => 3,
            Category::Numeric => 4,
            Category::Resource => 5,
            Category::Cancelled => 130,
            Category::Bug => 70,
        }
    }
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
