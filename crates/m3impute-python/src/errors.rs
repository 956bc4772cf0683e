//! Errors of the library become Python's: the class says what sort it is, the text is the one of the command line, the
//! hint names arguments instead of flags.

use crate::hints::in_python;
use m3impute::{Category, Hint};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// An error of the library.
pub(crate) fn core(error: m3impute::Error) -> PyErr {
    raise(error.category(), error.to_string(), error.hint())
}

/// An error of reading a table.
pub(crate) fn io(error: m3impute_io::Error) -> PyErr {
    raise(error.category(), error.to_string(), error.hint())
}

/// A fault of this software.
pub(crate) fn bug(message: impl std::fmt::Display) -> PyErr {
    core(m3impute::Error::Bug(message.to_string()))
}

fn raise(category: Category, message: String, hint: Option<Hint>) -> PyErr {
    let message = m3impute::escaped(&message).into_owned();
    let hint = hint.as_ref().and_then(in_python).map(|hint| m3impute::escaped(&hint).into_owned());
    let class = match category {
        Category::Usage => "UsageError",
        Category::Data => "DataError",
        Category::Numeric => "NumericError",
        Category::Resource => "ResourceError",
        Category::Cancelled => return PyKeyboardInterrupt::new_err(message),
        Category::Bug => "BugError",
    };
    Python::attach(|py| {
        let made = py.import("m3impute._messages").and_then(|m| m.getattr(class)?.call1((message, hint)));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}
