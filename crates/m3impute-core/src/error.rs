//! Errors, with their place, category and hint.

use crate::hint::Hint;
use crate::schema::Kind;

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// The category of an error. The command line maps it to an exit code, Python to an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// The request is wrong: an unknown name, a value out of range.
    Usage,
    /// The data is wrong: unreadable, infinite, of another shape than the model.
    Data,
    /// The arithmetic failed: no finite result.
    Numeric,
    /// Something ran out: memory, disk, permission.
    Resource,
    /// The run was cancelled.
    Cancelled,
    /// A fault of this software.
    Bug,
}

/// An error of this crate and of the methods built on it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such column.
    #[error("unknown column `{column}`")]
    UnknownColumn {
        /// The requested name.
        column: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// Two columns of one name.
    #[error("column name `{column}` stands twice: columns {first} and {second}")]
    DuplicateColumn {
        /// The name.
        column: String,
        /// Its first position, counted from 1.
        first: usize,
        /// Its second position, counted from 1.
        second: usize,
    },
    /// A column of another length than the rest.
    #[error("column `{column}`: expected {expected} rows, got {got}")]
    Length {
        /// The column.
        column: String,
        /// The rows of the table.
        expected: usize,
        /// The rows of the column.
        got: usize,
    },
    /// An infinite value in the data.
    #[error("column `{column}`, row {row}: expected a finite number, got `{value}`")]
    Infinite {
        /// The column.
        column: String,
        /// The row, counted from 1.
        row: usize,
        /// The value.
        value: f64,
    },
    /// Numbers so large that their range or spread is not finite.
    #[error("column `{column}`: its numbers are too large to compute with")]
    Extreme {
        /// The column.
        column: String,
    },
    /// A code that is no index into the column's levels.
    #[error("column `{column}`, row {row}: expected a code below {levels}, got `{code}`")]
    Level {
        /// The column.
        column: String,
        /// The row, counted from 1.
        row: usize,
        /// The code.
        code: u32,
        /// How many levels the column has.
        levels: usize,
    },
    /// Values of another type than the kind needs.
    #[error("column `{column}`: expected {expected}, got {got}")]
    Kind {
        /// The column.
        column: String,
        /// What was expected.
        expected: String,
        /// What was there.
        got: String,
    },
    /// A table without rows, or without a column a method could use.
    #[error("the table has no {what}")]
    EmptyTable {
        /// What there is none of.
        what: &'static str,
    },
    /// A column without a single observed value, where the policy is to refuse.
    #[error("column `{column}` has no observed value")]
    EmptyColumn {
        /// The column.
        column: String,
    },
    /// No such method.
    #[error("unknown method `{method}`")]
    UnknownMethod {
        /// The requested name.
        method: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// No such parameter.
    #[error("method `{method}` has no parameter `{parameter}`")]
    UnknownParameter {
        /// The method.
        method: &'static str,
        /// The requested name.
        parameter: String,
        /// The nearest name there is.
        nearest: Option<String>,
        /// All the names there are.
        valid: Vec<&'static str>,
    },
    /// A parameter out of its range or of another type.
    #[error("parameter `{parameter}` of `{method}`: expected {expected}, got `{got}`")]
    BadParameter {
        /// The method.
        method: &'static str,
        /// The parameter.
        parameter: String,
        /// What was expected.
        expected: String,
        /// What was given.
        got: String,
    },
    /// No such preset.
    #[error("method `{method}` has no preset `{preset}`: expected one of {valid}")]
    UnknownPreset {
        /// The method.
        method: &'static str,
        /// The requested preset.
        preset: String,
        /// The presets there are.
        valid: String,
    },
    /// A method that cannot be fitted once and used on new rows.
    #[error("method `{method}` cannot fill new rows: it only fills the table it is given")]
    NotInductive {
        /// The method.
        method: &'static str,
    },
    /// A column the model needs is not in the rows.
    #[error("the model needs column `{column}` ({kind}), which the rows do not have")]
    ColumnNotThere {
        /// The column.
        column: String,
        /// Its kind in training.
        kind: Kind,
    },
    /// A model file that is not one, or is damaged.
    #[error("not a usable model file: {reason}")]
    ModelFile {
        /// What is wrong with it.
        reason: String,
    },
    /// A model file of a version this software does not read.
    #[error("model file of format {got}: this version reads formats {oldest} to {newest}")]
    ModelVersion {
        /// The version of the file.
        got: u32,
        /// The oldest version that is read.
        oldest: u32,
        /// The newest version that is read.
        newest: u32,
    },
    /// A shift that a column cannot have.
    #[error("shift of column `{column}`: expected {expected}, got `{got}`")]
    Shift {
        /// The column.
        column: String,
        /// What was expected.
        expected: String,
        /// What was given, or what the column is.
        got: String,
        /// What can be done about it; in a box, because every result has room for the largest error.
        hint: Option<Box<Hint>>,
    },
    /// A request that does not fit the table.
    #[error("{what}: expected {expected}, got `{got}`")]
    Request {
        /// The subject of the request.
        what: String,
        /// What was expected.
        expected: String,
        /// What was given.
        got: String,
    },
    /// A cell that has a value, where a missing one is to be explained.
    #[error("{row} shows `{column}`: {value}; only missing cells are filled")]
    NotMissing {
        /// The row as the interface calls it: `row 17`.
        row: String,
        /// The column.
        column: String,
        /// The value of the cell.
        value: String,
    },
    /// A column that no method fills, where one of its cells is to be explained.
    #[error("column `{column}` is not filled: {reason}")]
    NotFilled {
        /// The column.
        column: String,
        /// Why.
        reason: &'static str,
    },
    /// A result that is not finite.
    #[error("method `{method}` got a value that is not finite in {place}")]
    NotFinite {
        /// The method.
        method: &'static str,
        /// Where.
        place: String,
    },
    /// The threads could not be started.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// How many.
        threads: usize,
        /// Why.
        reason: String,
    },
    /// Bytes could not be written or read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// A fault of this software.
    #[error("internal error: {0}")]
    Bug(String),
}

impl Error {
    /// A damaged model file, and which part is damaged.
    pub fn damaged(what: impl Into<String>) -> Error {
        Error::ModelFile { reason: what.into() }
    }

    /// Its category.
    pub fn category(&self) -> Category {
        match self {
            Error::UnknownColumn { .. }
            | Error::UnknownMethod { .. }
            | Error::UnknownParameter { .. }
            | Error::BadParameter { .. }
            | Error::UnknownPreset { .. }
            | Error::NotInductive { .. }
            | Error::Shift { .. }
            | Error::NotMissing { .. }
            | Error::NotFilled { .. }
            | Error::Request { .. } => Category::Usage,
            Error::DuplicateColumn { .. }
            | Error::Length { .. }
            | Error::Infinite { .. }
            | Error::Extreme { .. }
            | Error::Level { .. }
            | Error::Kind { .. }
            | Error::EmptyTable { .. }
            | Error::EmptyColumn { .. }
            | Error::ColumnNotThere { .. }
            | Error::ModelFile { .. }
            | Error::ModelVersion { .. } => Category::Data,
            Error::NotFinite { .. } => Category::Numeric,
            Error::Threads { .. } | Error::Io(_) => Category::Resource,
            Error::Cancelled => Category::Cancelled,
            Error::Bug(_) => Category::Bug,
        }
    }

    /// What the user can do about it, where there is something.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Error::UnknownColumn { nearest, .. } | Error::UnknownMethod { nearest, .. } => Hint::did_you_mean(nearest),
            Error::UnknownParameter { nearest: nearest @ Some(_), .. } => Hint::did_you_mean(nearest),
            Error::UnknownParameter { valid, .. } => Some(Hint::KnownParameters { names: valid.clone() }),
            Error::DuplicateColumn { .. } => Some(Hint::RenameColumn),
            Error::Infinite { .. } => Some(Hint::InfinitiesAsMissing),
            Error::Extreme { column } => Some(Hint::RescaleOrIgnore { column: column.clone() }),
            Error::EmptyColumn { .. } => Some(Hint::AllowEmptyColumns),
            Error::ModelVersion { got, newest, .. } if got > newest => Some(Hint::InstallNewer),
            Error::ModelVersion { .. } => Some(Hint::FitAgain),
            Error::NotInductive { .. } => Some(Hint::ImputeWholeTable),
            Error::Shift { hint, .. } => hint.as_deref().cloned(),
            Error::NotFinite { .. } => Some(Hint::FindExtremes),
            Error::Bug(_) => Some(Hint::ReportBug),
            _ => None,
        }
    }
}

/// The name nearest to `given`, where one is near enough to be a typing error.
///
/// ```
/// assert_eq!(m3impute_core::nearest("medain", ["mean", "median"]), Some("median".to_owned()));
/// assert_eq!(m3impute_core::nearest("xyz", ["mean", "median"]), None);
/// assert_eq!(m3impute_core::nearest("b", ["a"]), None);
/// ```
pub fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let given = given.to_lowercase();
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&given, &name.to_lowercase()), name))
        .min_by_key(|&(distance, _)| distance)
        .filter(|&(distance, name)| distance < given.chars().count() && distance <= 1 + name.chars().count() / 4)
        .map(|(_, name)| name.to_owned())
}
