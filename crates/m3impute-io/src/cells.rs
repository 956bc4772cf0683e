//! The cells of a column as text, wherever they come from.

/// How a text stands in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quoting {
    /// Without quotes: a word may mean missing.
    Bare,
    /// In quotes: it is text.
    Quoted,
    /// In a file that knows by itself what is missing: it is text even when empty.
    Typed,
}

/// A cell: its text without quotes and, where it is bare, without the spaces around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) quoting: Quoting,
}

impl Cell<'_> {
    pub(crate) fn string(&self) -> String {
        String::from_utf8_lossy(self.text).into_owned()
    }
}

/// The cells of a column.
pub(crate) trait Cells: Sync {
    /// Shows every cell in order, `None` where there is no value at all, until one is an error.
    fn each<E>(&self, see: impl FnMut(usize, Option<Cell<'_>>) -> Result<(), E>) -> Result<(), E>;
}

/// What is wrong with a column, before it is known where in the file that is.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// A cell is not what the column holds.
    Cell { row: usize, expected: String, got: String },
    /// A cell is infinite.
    Infinite { row: usize, got: String },
    /// The column cannot be of the kind that was asked for.
    Kind { kind: m3impute_core::Kind, reason: String },
}

impl Trouble {
    /// The error, with its place.
    pub(crate) fn at(self, file: &str, column: &str, spot: impl Fn(usize) -> crate::Spot) -> crate::Error {
        let place = |row| crate::Place { file: file.to_owned(), spot: spot(row), column: column.to_owned() };
        match self {
            Trouble::Cell { row, expected, got } => crate::Error::Cell { place: place(row), expected, got },
            Trouble::Infinite { row, got } => crate::Error::Infinite { place: place(row), got },
            Trouble::Kind { kind, reason } => {
                crate::Error::Kind { file: file.to_owned(), column: column.to_owned(), kind, reason }
            }
        }
    }
}
