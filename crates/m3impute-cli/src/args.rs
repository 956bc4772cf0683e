//! What can be said on the command line. Defaults and meanings stand here once: help, man page and completions follow.

mod bench;

pub use bench::{BenchEngineArgs, BenchM3Args, BenchPaperArgs, BenchVerb, TableFormat};

use clap::{Args, Parser, Subcommand, ValueEnum};
use m3impute::missing::Mechanism;
use m3impute::{Bounds, Kind};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  m3impute impute data.csv -o filled.csv            fill every hole
  m3impute describe data.csv                        what is missing, and what the columns are
  m3impute evaluate data.csv                        which method is best on this table
  m3impute fit data.csv -o model.m3                 learn once ...
  m3impute transform new.csv --model model.m3       ... and fill new rows every day
  cat data.csv | m3impute impute > filled.csv       in a pipe";

const EXIT_CODES: &str = "\
Exit codes:
  0 done   2 wrong request   3 wrong data   4 no finite answer   5 out of memory, disk or permission
  70 a fault of this program   130 stopped";

/// Fill the holes of a table.
///
/// Reads CSV, TSV, Parquet and Arrow files, fills the missing cells and writes everything else back as it was, byte for
/// byte. Nothing is sent anywhere.
#[derive(Debug, Parser)]
#[command(name = "m3impute", version, propagate_version = true, max_term_width = 110)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,

    #[command(flatten)]
    pub manner: MannerArgs,
}

/// How the program speaks.
#[derive(Clone, Copy, Debug, Args)]
pub struct MannerArgs {
    /// Say nothing but errors
    #[arg(short, long, global = true, help_heading = "Manner")]
    pub quiet: bool,

    /// When to show how far the work is
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Manner")]
    pub progress: When,

    /// When to use colour; `NO_COLOR` is honoured
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Manner")]
    pub color: When,
}

/// When to do something that only a person at a terminal enjoys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Fill the holes of a table
    #[command(visible_alias = "fill")]
    Impute(ImputeArgs),
    /// Learn from a table, for new rows later
    Fit(FitArgs),
    /// Fill new rows with a model
    Transform(TransformArgs),
    /// Show what a model file holds
    Info(InfoArgs),
    /// Hide known cells, fill them with several methods, and compare
    #[command(visible_alias = "eval")]
    Evaluate(EvaluateArgs),
    /// Show what is missing and what the columns are
    Describe(DescribeArgs),
    /// Make holes in a table
    Ampute(AmputeArgs),
    /// List the methods and their parameters
    Methods(MethodsArgs),
    /// Measure how fast this machine runs the program
    #[command(subcommand)]
    Bench(BenchVerb),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one a verb
    Man(ManArgs),
}

/// Where a table comes from, and how it is read.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// Format of the input, where its extension does not say it: csv, tsv, parquet or arrow
    #[arg(short, long, value_name = "FORMAT", value_parser = parse_format, help_heading = "Reading")]
    pub format: Option<m3impute_io::Format>,

    /// What stands between two fields of a CSV file; found by itself where not given
    #[arg(short, long, value_name = "CHAR", value_parser = parse_delimiter, help_heading = "Reading")]
    pub delimiter: Option<u8>,

    /// The first line of a CSV file is data: columns are called `column_1`, `column_2`, ...
    #[arg(short, long, help_heading = "Reading")]
    pub no_headers: bool,

    /// Encoding of a CSV file: utf-8, utf-16le, utf-16be or latin-1; found by itself where not given
    #[arg(long, value_name = "NAME", value_parser = parse_encoding, help_heading = "Reading")]
    pub encoding: Option<m3impute_io::Encoding>,

    /// Take these texts as missing, instead of the usual ones
    ///
    /// The usual ones: an empty cell, and NA, N/A, NaN, nan, null, NULL, `<NA>`, #N/A without quotes; None in columns of
    /// numbers; and one token such as ? or - in a column that is numbers otherwise.
    #[arg(long, value_name = "TOKEN,...", value_delimiter = ',', help_heading = "Reading")]
    pub na: Option<Vec<String>>,

    /// Take these values of one column as missing too
    #[arg(long, value_name = "COLUMN=TOKEN,...", value_parser = parse_na_column, help_heading = "Reading")]
    pub na_col: Vec<(String, Vec<String>)>,

    /// What to do with infinities
    #[arg(long, value_name = "POLICY", default_value = "error", help_heading = "Reading")]
    pub inf: InfinityPolicy,

    /// Say what a column is: continuous, integer, boolean, categorical, ordered, datetime, identifier or text
    #[arg(long, value_name = "COLUMN=KIND", value_parser = parse_kind, help_heading = "Columns")]
    pub kind: Vec<(String, Kind)>,

    /// Pass these columns through: neither filled nor used to fill others
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', help_heading = "Columns")]
    pub ignore: Vec<String>,
}

/// What is to be filled, and within what limits.
#[derive(Debug, Args)]
pub struct FillArgs {
    /// Fill only these columns; the others help, but keep their holes
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', help_heading = "Columns")]
    pub only: Option<Vec<String>>,

    /// Keep filled values of a column within bounds
    #[arg(long, value_name = "COLUMN=LOW..HIGH", value_parser = parse_bounds, allow_hyphen_values = true, help_heading = "Columns")]
    pub bounds: Vec<(String, Bounds)>,

    /// What to do with a column that has no value at all
    #[arg(long, value_name = "POLICY", default_value = "keep", help_heading = "Columns")]
    pub empty_columns: EmptyColumns,
}

/// Which method fills, and how.
#[derive(Debug, Args)]
pub struct MethodArgs {
    /// Method; `m3impute methods` lists them
    #[arg(short, long, value_name = "NAME", default_value = m3impute::DEFAULT_METHOD, env = "M3IMPUTE_METHOD", help_heading = "Method")]
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

    /// Stop learning after so many seconds and use the best so far
    #[arg(long, value_name = "S", value_parser = parse_seconds, help_heading = "Run")]
    pub max_seconds: Option<std::time::Duration>,
}

const IMPUTE_EXAMPLES: &str = "\
Examples:
  m3impute impute data.csv -o filled.csv
  m3impute impute data.parquet -o filled.parquet --method knn --param neighbours=10
  m3impute impute survey.csv -o filled.csv --kind zip=categorical --ignore id --bounds age=0..120
  m3impute impute data.csv --in-place --na-col income=-99,999
  m3impute impute data.csv -o filled.csv --method m3 --interval 0.9 --probabilities
  m3impute impute data.csv -o filled.csv --method m3 --draws 5
  m3impute impute data.csv -o filled.csv --report report.html
  m3impute impute < data.csv > filled.csv";

#[derive(Debug, Args)]
#[command(after_help = IMPUTE_EXAMPLES)]
pub struct ImputeArgs {
    /// The table; `-` or nothing is standard input
    pub input: Option<String>,

    #[command(flatten)]
    pub to: OutputArgs,

    /// Write the filled table over the input
    #[arg(long, conflicts_with_all = ["output", "interval", "probabilities", "draws"])]
    pub in_place: bool,

    /// Write a report too: what was missing, what was put in, how far to trust it (one HTML file, for any browser)
    #[arg(long, value_name = "HTML")]
    pub report: Option<PathBuf>,

    #[command(flatten)]
    pub method: MethodArgs,
    #[command(flatten)]
    pub sureness: SurenessArgs,
    #[command(flatten)]
    pub fill: FillArgs,
    #[command(flatten)]
    pub read: ReadArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

/// How sure a filled cell is, for methods that know: `m3impute methods` says which.
#[derive(Clone, Debug, Args)]
pub struct SurenessArgs {
    /// Add columns `<column>_lower` and `<column>_upper`: the value lies between them with this probability, such as 0.9
    #[arg(long, value_name = "LEVEL", value_parser = parse_level, help_heading = "Uncertainty")]
    pub interval: Option<f64>,

    /// Add a column `<column>_p_<level>` for each level of a category: its probability
    #[arg(long, help_heading = "Uncertainty")]
    pub probabilities: bool,

    /// Write so many tables, each with its holes drawn from what they may be (multiple imputation): `-o filled.csv` gives
    /// `filled.1.csv`, `filled.2.csv`, ...
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=200),
        conflicts_with_all = ["interval", "probabilities", "point"],
        requires = "output",
        help_heading = "Uncertainty"
    )]
    pub draws: Option<u32>,

    /// What of its distribution fills a hole [default: median]
    #[arg(long, value_name = "POINT", help_heading = "Uncertainty")]
    pub point: Option<PointChoice>,
}

/// What of its distribution fills a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PointChoice {
    /// The smallest absolute error
    Median,
    /// The smallest squared error
    Mean,
    /// The likeliest value
    Mode,
}

/// Where a table goes.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Where to write; `-` or nothing is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Format of the output, where its extension does not say it [default: that of the input]
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    pub output_format: Option<m3impute_io::Format>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  m3impute fit data.csv -o model.m3
  m3impute fit data.csv -o model.m3 --method mice --seed 1")]
pub struct FitArgs {
    /// The table to learn from; `-` or nothing is standard input
    pub input: Option<String>,

    /// The model file to write
    #[arg(short, long, value_name = "MODEL")]
    pub output: PathBuf,

    #[command(flatten)]
    pub method: MethodArgs,
    #[command(flatten)]
    pub fill: FillArgs,
    #[command(flatten)]
    pub read: ReadArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  m3impute transform new.csv --model model.m3 -o filled.csv
  tail -f log.csv | m3impute transform --model model.m3
  m3impute transform new.csv --model model.m3 -o filled.csv --interval 0.9
  m3impute transform new.csv --model model.m3 -o filled.csv --draws 5 --seed 1

Rows are filled one by one: their order and number do not matter, and memory does not grow with them.")]
pub struct TransformArgs {
    /// The new rows; `-` or nothing is standard input
    pub input: Option<String>,

    /// The model file, made by `fit`
    #[arg(long, value_name = "MODEL")]
    pub model: PathBuf,

    #[command(flatten)]
    pub to: OutputArgs,

    #[command(flatten)]
    pub sureness: SurenessArgs,

    /// Format of the input, where its extension does not say it
    #[arg(short, long, value_name = "FORMAT", value_parser = parse_format, help_heading = "Reading")]
    pub format: Option<m3impute_io::Format>,

    /// What stands between two fields of a CSV file; found by itself where not given
    #[arg(short, long, value_name = "CHAR", value_parser = parse_delimiter, help_heading = "Reading")]
    pub delimiter: Option<u8>,

    /// What to do with infinities
    #[arg(long, value_name = "POLICY", default_value = "error", help_heading = "Reading")]
    pub inf: InfinityPolicy,

    /// Rows that are read, filled and written at a time
    #[arg(long, value_name = "ROWS", default_value_t = 16_384, value_parser = parse_chunk, help_heading = "Run")]
    pub chunk: usize,

    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, Args)]
pub struct InfoArgs {
    /// The model file
    pub model: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  m3impute evaluate data.csv
  m3impute evaluate data.csv --methods missforest,knn,mean --mechanism mar --rate 0.2 --repeats 5
  m3impute evaluate data.csv --repeats 5 --report report.html
  m3impute evaluate --truth complete.csv --observed observed.txt --json

Every method gets the same holes, made in cells whose value is known.")]
pub struct EvaluateArgs {
    /// The table; `-` or nothing is standard input
    #[arg(conflicts_with = "truth")]
    pub input: Option<String>,

    /// Methods to compare [default: all but the slow ones]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub methods: Vec<String>,

    /// How cells are hidden
    #[arg(long, value_name = "NAME", default_value = "mcar", value_parser = parse_mechanism)]
    pub mechanism: Mechanism,

    /// The share of known cells to hide
    #[arg(long, value_name = "SHARE", default_value_t = 0.3, value_parser = parse_rate)]
    pub rate: f64,

    /// How often, with new holes each time
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,

    /// Score on given holes: the complete table, with `--observed`
    #[arg(long, value_name = "FILE", requires = "observed")]
    pub truth: Option<String>,

    /// Score on given holes: a line a row, `1` for a cell that is shown, `0` for one that is hidden
    ///
    /// A file with one column fewer than the table leaves the table's last column out: it is the target.
    #[arg(long, value_name = "FILE", requires = "truth")]
    pub observed: Option<PathBuf>,

    /// By what columns are scaled before a method sees them: their observed cells, or the complete column as in the paper
    #[arg(long, value_name = "BY", default_value = "observed")]
    pub scale: ScaleChoice,

    /// Write a report too: methods compared, with their spread, and a recommendation (one HTML file, for any browser)
    #[arg(long, value_name = "HTML")]
    pub report: Option<PathBuf>,

    /// Print JSON: a row a method and repeat, and the summary
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub tuning: TuningArgs,
    #[command(flatten)]
    pub read: ReadArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, Args)]
pub struct DescribeArgs {
    /// The table; `-` or nothing is standard input
    pub input: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  m3impute ampute complete.csv -o holes.csv --mechanism mar --rate 0.3 --seed 1

Mechanisms:
  mcar         every cell alike
  mar          by the values of columns that stay complete
  mnar         mar, then mcar on the rest: what the paper calls MNAR
  self-masked  by the cell's own value
  quantile     the upper tail of each column; quantile-lower and quantile-both for the others")]
pub struct AmputeArgs {
    /// The table; `-` or nothing is standard input
    pub input: Option<String>,

    #[command(flatten)]
    pub to: OutputArgs,

    /// How cells are hidden
    #[arg(long, value_name = "NAME", default_value = "mcar", value_parser = parse_mechanism)]
    pub mechanism: Mechanism,

    /// The share of known cells to hide
    #[arg(long, value_name = "SHARE", default_value_t = 0.3, value_parser = parse_rate)]
    pub rate: f64,

    #[command(flatten)]
    pub read: ReadArgs,

    /// Seed: the same seed makes the same holes
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

#[derive(Debug, Args)]
pub struct MethodsArgs {
    /// Show one method with its parameters
    pub name: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write the pages of all verbs into this folder instead
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// What to do with infinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InfinityPolicy {
    /// Stop and say where
    Error,
    /// Take them as missing
    Missing,
}

/// What to do with a column that has no value at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EmptyColumns {
    /// Keep it as it is, and say so
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

fn parse_format(text: &str) -> Result<m3impute_io::Format, String> {
    m3impute_io::Format::parse(text).ok_or_else(|| "expected csv, tsv, parquet or arrow".to_owned())
}

fn parse_encoding(text: &str) -> Result<m3impute_io::Encoding, String> {
    m3impute_io::Encoding::parse(text).ok_or_else(|| "expected utf-8, utf-16le, utf-16be or latin-1".to_owned())
}

fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text {
        "\\t" | "tab" => Ok(b'\t'),
        _ => match text.as_bytes() {
            [one] if !matches!(one, b'"' | b'\r' | b'\n') => Ok(*one),
            _ => Err("expected one character, or `\\t`".to_owned()),
        },
    }
}

/// `key=value`, split at the last `=` before which something stands, so that a column name may hold one.
fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.rsplit_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

fn parse_na_column(text: &str) -> Result<(String, Vec<String>), String> {
    let (column, tokens) = parse_pair(text)?;
    Ok((column, tokens.split(',').map(str::to_owned).collect()))
}

fn parse_kind(text: &str) -> Result<(String, Kind), String> {
    let (column, kind) = parse_pair(text)?;
    let names = Kind::ALL.map(Kind::name);
    let kind = Kind::parse(&kind).ok_or_else(|| format!("expected one of {}, got `{kind}`", names.join(", ")))?;
    Ok((column, kind))
}

fn parse_bounds(text: &str) -> Result<(String, Bounds), String> {
    let (column, range) = parse_pair(text)?;
    let end = |text: &str, open: f64| if text.is_empty() { Ok(open) } else { text.parse::<f64>() };
    let bounds = range
        .split_once("..")
        .and_then(|(low, high)| Some(Bounds { low: end(low, f64::MIN).ok()?, high: end(high, f64::MAX).ok()? }));
    match bounds {
        Some(b) if b.low <= b.high => Ok((column, b)),
        _ => Err(format!("expected COLUMN=LOW..HIGH with LOW at most HIGH, got `{text}`")),
    }
}

fn parse_mechanism(text: &str) -> Result<Mechanism, String> {
    Mechanism::parse(text).map_err(|e| e.to_string())
}

fn parse_rate(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|r| *r > 0.0 && *r < 1.0)
        .ok_or_else(|| "expected a share between 0 and 1".to_owned())
}

/// A level of an interval. Distributions are written down up to one in two hundred on either side.
fn parse_level(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|l| *l > 0.0 && *l <= 0.99)
        .ok_or_else(|| "expected a probability above 0 and at most 0.99, such as 0.9".to_owned())
}

fn parse_seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds = text.parse::<f64>().map_err(|_| "expected a number of seconds".to_owned())?;
    std::time::Duration::try_from_secs_f64(seconds).map_err(|_| "expected a number of seconds of at least 0".to_owned())
}

fn parse_chunk(text: &str) -> Result<usize, String> {
    text.parse::<usize>().ok().filter(|&n| n > 0).ok_or_else(|| "expected a number of rows of at least 1".to_owned())
}
