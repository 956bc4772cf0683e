//! Hints in the words of Python: a setting is a keyword argument.

use m3impute::{Hint, Setting};

/// The hint as a user of the package reads it; none where it is about reading files, which the package does not do.
pub(crate) fn in_python(hint: &Hint) -> Option<String> {
    hint.text(argument)
}

/// The keyword argument of a setting.
fn argument(setting: Setting<'_>) -> Option<String> {
    match setting {
        Setting::Kinds => Some("kinds".to_owned()),
        Setting::Kind { column, kind } => Some(format!("kinds={{{}: \"{kind}\"}}", quoted(column))),
        Setting::Ignore { column } => Some(format!("ignore=[{}]", quoted(column))),
        Setting::MissingValue { column, value } => {
            Some(format!("missing_values={{{}: [{}]}}", quoted(column), quoted(value)))
        }
        Setting::InfinitiesAsMissing => Some("infinities=\"missing\"".to_owned()),
        Setting::KeepEmptyColumns => Some("empty_columns=\"keep\"".to_owned()),
        Setting::Delimiter
        | Setting::Encoding { .. }
        | Setting::NoHeader
        | Setting::MaxMemory
        | Setting::Format { .. } => None,
    }
}

/// A text as Python writes it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
