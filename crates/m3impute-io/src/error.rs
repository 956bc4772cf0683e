//! What can go wrong with a file, where, and what to do about it.

use crate::atomic::STDOUT;
use crate::encoding::Encoding;
use crate::limit::in_units;
use m3impute_core::{Category, Hint, Kind};
use std::fmt;
use std::io;

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Where in a file a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// A line of a text file, counted from 1.
    Line(usize),
    /// A row of a table without lines, counted from 1.
    Row(usize),
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spot::Line(at) => write!(f, "line {at}"),
            Spot::Row(at) => write!(f, "row {at}"),
        }
    }
}

/// Where a cell stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, or `stdin`.
    pub file: String,
    /// Where in it.
    pub spot: Spot,
    /// The column.
    pub column: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`, {}, column `{}`", self.file, self.spot, self.column)
    }
}

/// What is at a target that could not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nothing was written yet.
    NotBegun,
    /// What was there before.
    Unchanged,
    /// A stream got so many bytes.
    Partly {
        /// How many.
        bytes: u64,
    },
    /// What was there before, while these files, which belong to it, were written.
    Written {
        /// The other files.
        files: Vec<String>,
    },
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Left::NotBegun => Ok(()),
            Left::Unchanged => write!(f, "; nothing was changed"),
            Left::Partly { bytes } => write!(f, "; {bytes} bytes were written before"),
            Left::Written { files } => {
                let named: Vec<String> = files.iter().map(|file| format!("`{file}`")).collect();
                write!(f, "; written were {}", named.join(", "))
            }
        }
    }
}

/// An error of reading or writing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that cannot be opened or read.
    #[error("cannot read `{file}`: {}", plain(source))]
    Read {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// A target that cannot be written.
    #[error("cannot write `{file}`: {}{left}", plain(source))]
    Write {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
        /// What is there now.
        left: Left,
    },
    /// A target whose folder takes no new file, so that it could not appear whole.
    #[error("cannot write `{file}`: no file can be made in its folder: {}", plain(source))]
    Folder {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// A file that would belong to somebody else after it was replaced.
    #[error("cannot replace `{file}`: it belongs to others ({owner}), and would not afterwards")]
    Owner {
        /// The file.
        file: String,
        /// Its user and group.
        owner: String,
    },
    /// Bytes that could not be written where the target has no name; a broken pipe comes as this.
    #[error("cannot write: {}", plain(.0))]
    Output(io::Error),
    /// Nothing in the file.
    #[error("`{file}` is empty")]
    Empty {
        /// The file.
        file: String,
    },
    /// A header without a row.
    #[error("`{file}` has a header but no rows")]
    NoRows {
        /// The file.
        file: String,
    },
    /// A row with more or fewer fields than the first.
    #[error("`{file}`, line {line}: expected {expected} fields, got {got}")]
    Ragged {
        /// The file.
        file: String,
        /// Where the row begins.
        line: usize,
        /// The fields of the first row.
        expected: usize,
        /// The fields of this row.
        got: usize,
        /// Whether the row has a quoted field that goes over several lines.
        quoted_newline: bool,
    },
    /// Two columns of one name.
    #[error("`{file}`: column name `{column}` occurs twice: columns {first} and {second}")]
    DuplicateColumn {
        /// The file.
        file: String,
        /// The name.
        column: String,
        /// Where it stands first, counted from 1.
        first: usize,
        /// Where it stands again, counted from 1.
        second: usize,
    },
    /// A quote that never closes.
    #[error("`{file}`, line {line}: a quoted field begins here and never ends")]
    OpenQuote {
        /// The file.
        file: String,
        /// Where it begins.
        line: usize,
    },
    /// Bytes that are no text.
    #[error("`{file}`, line {line}: expected text, got a NUL byte")]
    Binary {
        /// The file.
        file: String,
        /// Where the first such byte stands.
        line: usize,
        /// What to do where the file looks like one of another format.
        hint: Option<Hint>,
    },
    /// Bytes that are no text of the encoding.
    #[error("`{file}`, line {line}: expected {encoding} text, got the byte 0x{byte:02x}")]
    Encoding {
        /// The file.
        file: String,
        /// Where it stands.
        line: usize,
        /// The encoding.
        encoding: &'static str,
        /// The first byte that does not fit.
        byte: u8,
    },
    /// A filled text that the encoding of the file cannot hold.
    #[error("`{text}` cannot be written in {encoding}")]
    Unencodable {
        /// The text.
        text: String,
        /// The encoding.
        encoding: &'static str,
    },
    /// A cell that is not what its column holds.
    #[error("{place}: expected {expected}, got `{got}`")]
    Cell {
        /// Where it stands.
        place: Place,
        /// What was expected.
        expected: String,
        /// The text of the cell.
        got: String,
    },
    /// An infinite number.
    #[error("{place}: expected a finite number, got `{got}`")]
    Infinite {
        /// Where it stands.
        place: Place,
        /// The text of the cell.
        got: String,
    },
    /// A column that cannot be of the kind that was asked for.
    #[error("`{file}`: column `{column}` cannot be {kind}: {reason}")]
    Kind {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// The kind that was asked for.
        kind: Kind,
        /// Why not.
        reason: String,
    },
    /// An option that names a column there is not.
    #[error("`{file}` has no column `{column}`")]
    UnknownColumn {
        /// The file.
        file: String,
        /// The name that was asked for.
        column: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// Columns the model needs are not in the file.
    #[error("`{file}` has no {}, which the model needs", named(columns))]
    ColumnsNotThere {
        /// The file.
        file: String,
        /// The columns, and their kinds in training.
        columns: Vec<(String, Kind)>,
        /// The nearest name there is to the first of them.
        nearest: Option<String>,
    },
    /// A column of another type than in training.
    #[error("`{file}`, column `{column}`: expected {expected}, got {got}")]
    Type {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// What was expected.
        expected: String,
        /// The type in the file.
        got: String,
    },
    /// A parquet or arrow file that is none, or is damaged.
    #[error("`{file}` is not a readable {format} file: {reason}")]
    Damaged {
        /// The file.
        file: String,
        /// The format.
        format: &'static str,
        /// What is wrong.
        reason: String,
        /// What to do where the file looks like one of another format.
        hint: Option<Hint>,
    },
    /// A file that would take more memory than it may.
    #[error("`{file}` needs {} of memory, more than the {} that it may take", in_units(*needed), in_units(*limit))]
    TooLarge {
        /// The file.
        file: String,
        /// What it would take at least, in bytes.
        needed: u64,
        /// What it may take, in bytes.
        limit: u64,
    },
    /// A column that the target format cannot hold.
    #[error("column `{column}` of type {got} cannot be written as {format}")]
    Unwritable {
        /// The column.
        column: String,
        /// Its type.
        got: String,
        /// The target format.
        format: &'static str,
    },
    /// A line of a file of 0 and 1 that has another width than the first.
    #[error("`{file}`, line {line}: expected {expected} characters, got {got}")]
    ObservedWidth {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// The width of the first line.
        expected: usize,
        /// The width of this line.
        got: usize,
    },
    /// A character that is neither 0 nor 1.
    #[error("`{file}`, line {line}, column {column}: expected `0` or `1`, got `{got}`")]
    ObservedCell {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// The character.
        got: char,
    },
    /// An error of the table itself.
    #[error(transparent)]
    Core(#[from] m3impute_core::Error),
    /// A fault of this software.
    #[error("internal error: {0}")]
    Bug(String),
}

/// The reason of an input or output error in words, without the number that the system gives it.
fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or folder".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::QuotaExceeded => "the disk quota is used up".to_owned(),
        io::ErrorKind::FileTooLarge => "the file is larger than allowed".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the disk is read-only".to_owned(),
        io::ErrorKind::BrokenPipe => "broken pipe".to_owned(),
        _ => error.to_string(),
    }
}

/// Columns with their kinds, the first few of many.
fn named(columns: &[(String, Kind)]) -> String {
    const FEW: usize = 6;
    let listed: Vec<String> = columns.iter().take(FEW).map(|(name, kind)| format!("`{name}` ({kind})")).collect();
    let more = columns.len().saturating_sub(FEW);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("column{} {}{more}", if columns.len() == 1 { "" } else { "s" }, listed.join(", "))
}

impl Error {
    /// Whether nobody reads standard output any more, which is no failure of ours.
    pub fn is_broken_pipe(&self) -> bool {
        match self {
            Error::Write { file, source, .. } => file == STDOUT && source.kind() == io::ErrorKind::BrokenPipe,
            Error::Output(source) => source.kind() == io::ErrorKind::BrokenPipe,
            _ => false,
        }
    }

    /// What sort of failure it is.
    pub fn category(&self) -> Category {
        match self {
            Error::Core(error) => error.category(),
            Error::Bug(_) => Category::Bug,
            Error::UnknownColumn { .. } => Category::Usage,
            Error::Read { source, .. } => match source.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => Category::Data,
                _ => Category::Resource,
            },
            Error::Write { .. }
            | Error::Folder { .. }
            | Error::Owner { .. }
            | Error::Output(_)
            | Error::TooLarge { .. } => Category::Resource,
            _ => Category::Data,
        }
    }

    /// What the user can do about it, where that is known.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Error::Core(error) => error.hint(),
            Error::UnknownColumn { nearest, .. } | Error::ColumnsNotThere { nearest, .. } => {
                Hint::did_you_mean(nearest)
            }
            Error::Ragged { quoted_newline: true, .. } => Some(Hint::CloseQuote),
            Error::Ragged { .. } => Some(Hint::QuoteOrDelimiter),
            Error::DuplicateColumn { .. } => Some(Hint::RenameColumn),
            Error::OpenQuote { .. } => Some(Hint::DoubleQuotes),
            Error::Binary { hint, .. } | Error::Damaged { hint, .. } => hint.clone(),
            Error::Encoding { .. } => Some(Hint::Encoding { name: Encoding::Latin1.name() }),
            Error::Unencodable { .. } => Some(Hint::WriteUtf8),
            Error::Infinite { .. } => Some(Hint::InfinitiesAsMissing),
            Error::Cell { place, got, .. } => {
                Some(Hint::MissingOrKind { column: place.column.clone(), value: got.clone() })
            }
            Error::Unwritable { .. } => Some(Hint::WriteTyped),
            Error::NoRows { .. } => Some(Hint::NoHeader),
            Error::TooLarge { .. } => Some(Hint::AllowMemory),
            Error::Write { source, .. } | Error::Output(source) if source.kind() == io::ErrorKind::StorageFull => {
                Some(Hint::FreeSpace)
            }
            Error::Owner { .. } => Some(Hint::CopyOver),
            Error::Folder { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => Some(Hint::OtherFolder),
            Error::Bug(_) => Some(Hint::ReportBug),
            _ => None,
        }
    }
}
