//! Advice that goes with an error or a finding, without the words of any one interface.

use crate::schema::Kind;

/// What a user can do about an error or a finding.
///
/// It is plain data. [`Hint::text`] makes a sentence of it, in which the interface writes the settings: the command line
/// as flags, Python as keyword arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// A similar name exists.
    DidYouMean {
        /// The nearest name there is.
        name: String,
    },
    /// A method has other parameters, or none.
    KnownParameters {
        /// All the names there are.
        names: Vec<&'static str>,
    },
    /// One of two columns needs another name.
    RenameColumn,
    /// Infinities can be read as missing values.
    InfinitiesAsMissing,
    /// A column of numbers that are too large can be rescaled, or ignored.
    RescaleOrIgnore {
        /// The column.
        column: String,
    },
    /// Columns without an observed value can be allowed.
    AllowEmptyColumns,
    /// The model file needs a newer version of this software.
    InstallNewer,
    /// The model file is too old: the model has to be fitted again.
    FitAgain,
    /// The method only fills whole tables.
    ImputeWholeTable,
    /// The arithmetic failed: extreme values, or the wrong method.
    FindExtremes,
    /// A shift can be given as a number instead of in standard deviations.
    ShiftByNumber,
    /// The column can be given another kind than the inferred one.
    OverrideKind {
        /// The column.
        column: String,
        /// The kind that it may have instead.
        kind: Kind,
    },
    /// A cell that does not fit its column can be read as missing, or the column can be given another kind.
    MissingOrKind {
        /// The column.
        column: String,
        /// The text of the cell.
        value: String,
    },
    /// A value that may stand for missing can be read as missing.
    TakeAsMissing {
        /// The column.
        column: String,
        /// The value, as the file has it.
        value: String,
    },
    /// A row that goes over several lines may have a quote that is not closed.
    CloseQuote,
    /// A field with a delimiter in it needs quotes, or the file has another delimiter.
    QuoteOrDelimiter,
    /// Quotes inside a quoted field are doubled.
    DoubleQuotes,
    /// The file is of another format, which can be read.
    ReadAs {
        /// What the file looks like.
        what: &'static str,
        /// The format to read it as.
        format: &'static str,
    },
    /// The file is of a format that cannot be read.
    Convert {
        /// What the file looks like.
        what: &'static str,
        /// What to do with it first, where that helps.
        first: Option<&'static str>,
    },
    /// The file may have another encoding.
    Encoding {
        /// One that reads any bytes.
        name: &'static str,
    },
    /// The output needs an encoding that holds every character.
    WriteUtf8,
    /// The output needs a format that holds every type.
    WriteTyped,
    /// The first line may be a row and no header.
    NoHeader,
    /// The disk is full.
    FreeSpace,
    /// A file that cannot be replaced can be given the bytes of another.
    CopyOver,
    /// The folder takes no new file.
    OtherFolder,
    /// More memory can be allowed.
    AllowMemory,
    /// The fault is ours.
    ReportBug,
}

/// A setting that a hint proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting<'a> {
    /// The kinds of columns, whatever they are set to.
    Kinds,
    /// The kind of one column.
    Kind {
        /// The column.
        column: &'a str,
        /// Its kind.
        kind: Kind,
    },
    /// A column that is neither filled nor used.
    Ignore {
        /// The column.
        column: &'a str,
    },
    /// A value of one column that stands for missing.
    MissingValue {
        /// The column.
        column: &'a str,
        /// The value.
        value: &'a str,
    },
    /// Infinities are missing values.
    InfinitiesAsMissing,
    /// Columns without an observed value stay as they are.
    KeepEmptyColumns,
    /// The delimiter of a text file, whatever it is set to.
    Delimiter,
    /// The encoding of a text file.
    Encoding {
        /// Its name.
        name: &'a str,
    },
    /// A text file has no header.
    NoHeader,
    /// The most memory that reading a file may take, whatever it is set to.
    MaxMemory,
    /// The format of a file.
    Format {
        /// Its name.
        name: &'a str,
    },
}

impl Hint {
    /// The nearest name, where there is one.
    pub fn did_you_mean(nearest: &Option<String>) -> Option<Hint> {
        nearest.clone().map(|name| Hint::DidYouMean { name })
    }

    /// The hint in words; nothing where it is about a setting that the interface does not have.
    ///
    /// `write` returns a setting as the interface writes it, if it has it.
    ///
    /// ```
    /// use m3impute_core::{Hint, Setting};
    /// let hint = Hint::Encoding { name: "latin1" };
    /// let write = |setting: Setting<'_>| match setting {
    ///     Setting::Encoding { name } => Some(format!("encoding={name}")),
    ///     _ => None,
    /// };
    /// assert_eq!(hint.text(write), Some("`encoding=latin1` reads such bytes".to_owned()));
    /// assert_eq!(hint.text(|_| None), None);
    /// ```
    pub fn text(&self, write: impl Fn(Setting<'_>) -> Option<String>) -> Option<String> {
        let set = |setting: Setting<'_>| write(setting).map(|text| format!("`{text}`"));
        let text = match self {
            Hint::DidYouMean { name } => format!("did you mean `{name}`?"),
            Hint::KnownParameters { names } if names.is_empty() => "it has no parameters".to_owned(),
            Hint::KnownParameters { names } => format!("it has: {}", names.join(", ")),
            Hint::RenameColumn => "rename one of them".to_owned(),
            Hint::InfinitiesAsMissing => {
                format!("take infinities as missing with {}", set(Setting::InfinitiesAsMissing)?)
            }
            Hint::RescaleOrIgnore { column } => {
                format!("divide them by a constant, or leave the column out with {}", set(Setting::Ignore { column })?)
            }
            Hint::AllowEmptyColumns => {
                format!("{}, `drop` or `constant` accept such a column", set(Setting::KeepEmptyColumns)?)
            }
            Hint::InstallNewer => "install a newer version".to_owned(),
            Hint::FitAgain => "fit the model again".to_owned(),
            Hint::ImputeWholeTable => "use `impute` on the whole table".to_owned(),
            Hint::FindExtremes => "look for extreme values with `describe`, or try another method".to_owned(),
            Hint::ShiftByNumber => "give the number itself, in the column's own units".to_owned(),
            Hint::OverrideKind { column, kind } => {
                format!("override: {}", set(Setting::Kind { column, kind: *kind })?)
            }
            Hint::MissingOrKind { column, value } => format!(
                "take it as missing with {}, or set the kind with {}",
                set(Setting::MissingValue { column, value })?,
                set(Setting::Kinds)?
            ),
            Hint::TakeAsMissing { column, value } => {
                format!("if it does: {}", set(Setting::MissingValue { column, value })?)
            }
            Hint::CloseQuote => "the row goes over several lines: perhaps a quote is open".to_owned(),
            Hint::QuoteOrDelimiter => {
                format!(
                    "a field that holds the delimiter must be quoted; {} sets another one",
                    set(Setting::Delimiter)?
                )
            }
            Hint::DoubleQuotes => "a quote inside a quoted field is written twice".to_owned(),
            Hint::ReadAs { what, format } => {
                format!("it looks like {what}: {} reads it", set(Setting::Format { name: format })?)
            }
            Hint::Convert { what, first: Some(first) } => format!("it looks like {what}: {first} first"),
            Hint::Convert { what, first: None } => format!("it looks like {what}"),
            Hint::Encoding { name } => format!("{} reads such bytes", set(Setting::Encoding { name })?),
            Hint::WriteUtf8 => "write the input as UTF-8 first".to_owned(),
            Hint::WriteTyped => "write parquet or arrow instead".to_owned(),
            Hint::NoHeader => format!("if the first line is a row, say so with {}", set(Setting::NoHeader)?),
            Hint::FreeSpace => "free some space, or write to another disk".to_owned(),
            Hint::CopyOver => "write to a new file, and copy it over this one".to_owned(),
            Hint::OtherFolder => "write to a folder of your own".to_owned(),
            Hint::AllowMemory => format!("if the file is to be trusted, allow more with {}", set(Setting::MaxMemory)?),
            Hint::ReportBug => "please report this with what led to it".to_owned(),
        };
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_written_as_the_interface_writes_it() {
        let hint = Hint::OverrideKind { column: "t".to_owned(), kind: Kind::Integer };
        let write = |setting: Setting<'_>| match setting {
            Setting::Kind { column, kind } => Some(format!("{column} is {kind}")),
            _ => None,
        };
        assert_eq!(hint.text(write).unwrap(), "override: `t is integer`");
    }

    #[test]
    fn advice_without_a_setting_is_the_same_everywhere() {
        assert_eq!(Hint::FitAgain.text(|_| None).unwrap(), "fit the model again");
        assert_eq!(Hint::Encoding { name: "latin1" }.text(|_| None), None);
    }
}
