//! Hints in the words of the command line: a setting is a flag.

use m3impute::{Hint, Setting};

/// The hint as a person at a terminal reads it.
pub fn in_flags(hint: &Hint) -> Option<String> {
    hint.text(|setting| Some(flag(setting)))
}

/// The flag of a setting.
fn flag(setting: Setting<'_>) -> String {
    match setting {
        Setting::Kinds => "--kind".to_owned(),
        Setting::Kind { column, kind } => format!("--kind {column}={kind}"),
        Setting::Ignore { column } => format!("--ignore {column}"),
        Setting::MissingValue { column, value } => format!("--na-col {column}={value}"),
        Setting::InfinitiesAsMissing => "--inf missing".to_owned(),
        Setting::KeepEmptyColumns => "--empty-columns keep".to_owned(),
        Setting::Delimiter => "--delimiter".to_owned(),
        Setting::Encoding { name } => format!("--encoding {name}"),
        Setting::NoHeader => "--no-headers".to_owned(),
        Setting::MaxMemory => "--max-memory".to_owned(),
        Setting::Format { name } => format!("--format {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use m3impute::Kind;

    /// A chain through every kind of hint. Whoever adds one must say here what comes before and after it.
    fn after(hint: &Hint) -> Option<Hint> {
        let column = || "t".to_owned();
        Some(match hint {
            Hint::DidYouMean { .. } => Hint::KnownParameters { names: vec!["trees", "depth"] },
            Hint::KnownParameters { names } if !names.is_empty() => Hint::KnownParameters { names: Vec::new() },
            Hint::KnownParameters { .. } => Hint::RenameColumn,
            Hint::RenameColumn => Hint::InfinitiesAsMissing,
            Hint::InfinitiesAsMissing => Hint::RescaleOrIgnore { column: column() },
            Hint::RescaleOrIgnore { .. } => Hint::AllowEmptyColumns,
            Hint::AllowEmptyColumns => Hint::InstallNewer,
            Hint::InstallNewer => Hint::FitAgain,
            Hint::FitAgain => Hint::ImputeWholeTable,
            Hint::ImputeWholeTable => Hint::FindExtremes,
            Hint::FindExtremes => Hint::ShiftByNumber,
            Hint::ShiftByNumber => Hint::OverrideKind { column: column(), kind: Kind::Integer },
            Hint::OverrideKind { .. } => Hint::MissingOrKind { column: column(), value: "old".to_owned() },
            Hint::MissingOrKind { .. } => Hint::TakeAsMissing { column: column(), value: "-99".to_owned() },
            Hint::TakeAsMissing { .. } => Hint::CloseQuote,
            Hint::CloseQuote => Hint::QuoteOrDelimiter,
            Hint::QuoteOrDelimiter => Hint::DoubleQuotes,
            Hint::DoubleQuotes => Hint::ReadAs { what: "parquet", format: "parquet" },
            Hint::ReadAs { .. } => Hint::Convert { what: "gzip", first: Some("unpack it") },
            Hint::Convert { first: Some(_), .. } => Hint::Convert { what: "an image", first: None },
            Hint::Convert { first: None, .. } => Hint::Encoding { name: "latin1" },
            Hint::Encoding { .. } => Hint::WriteUtf8,
            Hint::WriteUtf8 => Hint::WriteTyped,
            Hint::WriteTyped => Hint::NoHeader,
            Hint::NoHeader => Hint::FreeSpace,
            Hint::FreeSpace => Hint::CopyOver,
            Hint::CopyOver => Hint::OtherFolder,
            Hint::OtherFolder => Hint::AllowMemory,
            Hint::AllowMemory => Hint::ReportBug,
            Hint::ReportBug => return None,
        })
    }

    fn every_hint() -> impl Iterator<Item = Hint> {
        std::iter::successors(Some(Hint::DidYouMean { name: "median".to_owned() }), after)
    }

    #[test]
    fn every_hint_is_a_whole_sentence() {
        for hint in every_hint() {
            let text = in_flags(&hint).unwrap();
            let placeholder = ["{", "}", "<", ">", "``", "COLUMN", "VALUE", "Some(", "None"];
            assert!(!text.is_empty() && !placeholder.iter().any(|p| text.contains(p)), "{hint:?}: {text}");
        }
    }

    #[test]
    fn every_flag_of_a_hint_is_one_of_the_command_line() {
        let command = crate::args::Cli::command();
        let impute = command.find_subcommand("impute").unwrap();
        let mut flags = 0;
        for text in every_hint().filter_map(|hint| in_flags(&hint)) {
            for proposed in text.split('`').filter(|part| part.starts_with("--")) {
                let arguments = ["m3impute", "impute"].into_iter().chain(proposed.split(' '));
                if proposed.contains(' ') || proposed == "--no-headers" {
                    assert!(command.clone().try_get_matches_from(arguments).is_ok(), "{text}");
                } else {
                    let is_known = impute.get_arguments().any(|a| a.get_long() == proposed.strip_prefix("--"));
                    assert!(is_known, "{text}");
                }
                flags += 1;
            }
        }
        assert_eq!(flags, 12, "a setting is never proposed");
    }

    #[test]
    fn a_column_with_another_kind_is_a_flag() {
        let hint = Hint::OverrideKind { column: "t".to_owned(), kind: Kind::Integer };
        assert_eq!(in_flags(&hint).unwrap(), "override: `--kind t=integer`");
    }
}
