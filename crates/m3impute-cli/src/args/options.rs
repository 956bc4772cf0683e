//! Options that several verbs have.

use super::parse::{
    parse_bounds, parse_bytes, parse_delimiter, parse_encoding, parse_format, parse_kind, parse_level, parse_na_column,
    parse_pair, parse_seconds, parse_shift,
};
use clap::{Args, ValueEnum};
use m3impute::{Bounds, Kind, Shift};
use std::path::PathBuf;

/// What the program prints, and how.
#[derive(Clone, Copy, Debug, Args)]
pub struct VerbosityArgs {
    /// Print errors only
    #[arg(short, long, global = true, help_heading = "Output")]
    pub quiet: bool,

    /// When to show progress
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub progress: When,

    /// When to use colour; `NO_COLOR` is honoured
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub color: When,
}

/// When to do what only a person at a terminal needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal
    Auto,
    Always,
    Never,
}

/// Where a table goes.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Where to write; `-` or nothing is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Format of the output, if its extension does not tell [default: that of the input]
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    pub output_format: Option<m3impute_io::Format>,
}

/// Where a table comes from, and how it is read.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// Format of the input, if its extension does not tell: csv, tsv, parquet or arrow
    #[arg(short, long, value_name = "FORMAT", value_parser = parse_format, help_heading = "Reading")]
    pub format: Option<m3impute_io::Format>,

    /// Delimiter of a CSV file; detected by default
    #[arg(short, long, value_name = "CHAR", value_parser = parse_delimiter, help_heading = "Reading")]
    pub delimiter: Option<u8>,

    /// The first line of a CSV file is data: columns are called `column_1`, `column_2`, ...
    #[arg(short, long, help_heading = "Reading")]
    pub no_headers: bool,

    /// Encoding of a CSV file: utf-8, utf-16le, utf-16be or latin-1; detected by default
    #[arg(long, value_name = "NAME", value_parser = parse_encoding, help_heading = "Reading")]
    pub encoding: Option<m3impute_io::Encoding>,

    /// Take these texts as missing, instead of the usual ones
    ///
    /// The usual ones: an empty cell, and NA, N/A, NaN, nan, null, NULL, `<NA>`, #N/A without quotes; None in columns
    /// of numbers; and one token such as ? or - in a column that is numbers otherwise.
    #[arg(long, value_name = "TOKEN,...", value_delimiter = ',', help_heading = "Reading")]
    pub na: Option<Vec<String>>,

    /// Take these values of one column as missing too
    #[arg(long, value_name = "COLUMN=TOKEN,...", value_parser = parse_na_column, help_heading = "Reading")]
    pub na_col: Vec<(String, Vec<String>)>,

    /// What to do with infinities
    #[arg(long, value_name = "POLICY", default_value = "error", help_heading = "Reading")]
    pub inf: InfinityPolicy,

    /// The most memory that reading may take, such as 500MB or 8GB [default: the larger of 2GB and 50 times the file, at
    /// most 80 % of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, help_heading = "Reading")]
    pub max_memory: Option<u64>,

    /// Set the kind of a column: continuous, integer, boolean, categorical, ordered, datetime, identifier or text
    #[arg(long, value_name = "COLUMN=KIND", value_parser = parse_kind, help_heading = "Columns")]
    pub kind: Vec<(String, Kind)>,

    /// Leave these columns as they are: neither filled nor used to fill others
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', help_heading = "Columns")]
    pub ignore: Vec<String>,
}

/// Which columns are to be filled, and within what limits.
#[derive(Debug, Args)]
pub struct ColumnArgs {
    /// Fill only these columns; the others are predictors and stay incomplete
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', help_heading = "Columns")]
    pub only: Option<Vec<String>>,

    /// Keep filled values of a column within bounds
    #[arg(long, value_name = "COLUMN=LOW..HIGH", value_parser = parse_bounds, allow_hyphen_values = true, help_heading = "Columns")]
    pub bounds: Vec<(String, Bounds)>,
}

/// What is to be filled.
#[derive(Debug, Args)]
pub struct FillArgs {
    #[command(flatten)]
    pub columns: ColumnArgs,

    /// What to do with a column that has no value at all
    #[arg(long, value_name = "POLICY", default_value = "keep", help_heading = "Columns")]
    pub empty_columns: EmptyColumns,
}

/// Which method imputes, and how.
#[derive(Debug, Args)]
pub struct MethodArgs {
    /// Method, with its preset after a colon where wanted (`m3:fast`); `m3impute methods` lists them
    #[arg(short, long, value_name = "NAME[:PRESET]", default_value = m3impute::DEFAULT_METHOD, env = "M3IMPUTE_METHOD", help_heading = "Method")]
    pub method: String,

    #[command(flatten)]
    pub tuning: TuningArgs,
}

/// How a method is set.
#[derive(Clone, Debug, Args)]
pub struct TuningArgs {
    /// Preset of the method; `paper` gives the settings behind the paper's tables
    #[arg(short, long, value_name = "NAME", env = "M3IMPUTE_PRESET", help_heading = "Method")]
    pub preset: Option<String>,

    /// Set a parameter of the method
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair, help_heading = "Method")]
    pub param: Vec<(String, String)>,

    /// Whether whole-number columns are filled with whole numbers [default: on]
    #[arg(long, value_name = "SWITCH", help_heading = "Method")]
    pub round: Option<Switch>,

    /// Whether filled numbers stay within the observed range [default: on, off in preset `paper`]
    #[arg(long, value_name = "SWITCH", help_heading = "Method")]
    pub clip: Option<Switch>,
}

/// What a run may use.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Seed: the same seed gives the same bytes
    #[arg(long, value_name = "N", default_value_t = 0, env = "M3IMPUTE_SEED", help_heading = "Run")]
    pub seed: u64,

    /// Threads; 0 takes as many as the machine has
    #[arg(short, long, value_name = "N", default_value_t = 0, env = "M3IMPUTE_THREADS", help_heading = "Run")]
    pub threads: usize,

    /// Time limit in seconds: stop training and use the best model so far
    #[arg(long, value_name = "S", value_parser = parse_seconds, help_heading = "Run")]
    pub max_seconds: Option<std::time::Duration>,
}

/// What a method learns from: a table, the columns to fill in it, and the means to do so.
#[derive(Debug, Args)]
pub struct LearnArgs {
    #[command(flatten)]
    pub fill: FillArgs,
    #[command(flatten)]
    pub read: ReadArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

/// The uncertainty of filled cells, for methods that estimate it: `m3impute methods` lists them.
#[derive(Clone, Debug, Args)]
pub struct UncertaintyArgs {
    /// Add columns `<column>_lower` and `<column>_upper`: the value lies between them with this probability, such as
    /// 0.9
    #[arg(long, value_name = "LEVEL", value_parser = parse_level, help_heading = "Uncertainty")]
    pub interval: Option<f64>,

    /// Add a column `<column>_p_<level>` for each level of a category: its probability
    #[arg(long, help_heading = "Uncertainty")]
    pub probabilities: bool,

    /// Write N completed tables, with values drawn from the predictive distributions (multiple imputation):
    /// `-o filled.csv` gives `filled.1.csv`, `filled.2.csv`, ...
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=200),
        conflicts_with_all = ["interval", "probabilities", "point"],
        requires = "output",
        help_heading = "Uncertainty"
    )]
    pub draws: Option<u32>,

    /// Point estimate used for filling [default: median]
    #[arg(long, value_name = "POINT", help_heading = "Uncertainty")]
    pub point: Option<PointChoice>,
}

/// How imputed values are shifted, for a sensitivity analysis.
#[derive(Clone, Debug, Args)]
pub struct ShiftArgs {
    /// Shift the imputed values of a column: by a percentage (+10%), standard deviations of its observed values (-0.5sd),
    /// its own units (+5) or, for timestamps, a duration (+3d)
    ///
    /// Filled values, draws and intervals are shifted, observed values never. This is done once, after imputation: other
    /// columns are not filled again, and validation errors are those of the predictions before the shift. Whole numbers
    /// stay whole, and `--bounds` hold; the observed range is no limit. Repeat the option for several columns.
    #[arg(
        long,
        value_name = "COLUMN=AMOUNT",
        value_parser = parse_shift,
        allow_hyphen_values = true,
        help_heading = "Sensitivity"
    )]
    pub shift: Vec<Shift>,
}

/// Point estimate used for filling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PointChoice {
    /// The smallest absolute error
    Median,
    /// The smallest squared error
    Mean,
    /// The likeliest value
    Mode,
}

/// What to do with infinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InfinityPolicy {
    /// Stop with an error
    Error,
    /// Take them as missing
    Missing,
}

/// What to do with a column that has no value at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EmptyColumns {
    /// Keep it as it is, with a note
    Keep,
    /// Stop
    Error,
    /// Leave it out of the output
    Drop,
    /// Fill it with 0
    Constant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    On,
    Off,
}

/// By what columns are scaled before a method sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScaleChoice {
    /// Their observed cells
    Observed,
    /// The complete column, hidden cells included, as in the paper
    Paper,
}
