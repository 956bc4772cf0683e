//! Errors of a bench.

use std::path::PathBuf;

/// An error of a bench.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A study, a table, a method or a number that is not there.
    #[error("unknown {what} `{got}`")]
    Unknown {
        /// What it is.
        what: &'static str,
        /// Its name.
        got: String,
        /// The names there are.
        valid: String,
    },
    /// A table that a study cannot use.
    #[error("{file}: {reason}")]
    Data {
        /// The table.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The file of rows.
    #[error("{file}: {reason}")]
    Rows {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What to do.
        hint: &'static str,
    },
    /// A table or a mask cannot be read.
    #[error(transparent)]
    Io(#[from] m3impute_io::Error),
    /// A method or a table is wrong, or the run was cancelled.
    #[error(transparent)]
    Core(#[from] m3impute::Error),
}

impl Error {
    /// What a user could do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Unknown { valid, .. } => Some(format!("there are: {valid}")),
            Error::Rows { hint, .. } => Some((*hint).to_owned()),
            Error::Data { .. } => {
                Some("`--data` names a folder with `datasets/NAME.csv` and `masks/NAME.MASK.txt`".to_owned())
            }
            Error::Io(_) | Error::Core(_) => None,
        }
    }
}

/// A result of a bench.
pub type Result<T> = std::result::Result<T, Error>;
