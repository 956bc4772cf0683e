//! The arguments of the command line. Defaults and meanings stand here once: help, man page and completions follow.

mod bench;
mod options;
mod parse;

pub use bench::{BenchEngineArgs, BenchM3Args, BenchPaperArgs, BenchVerb, TableFormat};
pub use options::{
    ColumnArgs, EmptyColumns, InfinityPolicy, LearnArgs, MethodArgs, OutputArgs, PointChoice, ReadArgs, RunArgs,
    ScaleChoice, ShiftArgs, Switch, TuningArgs, UncertaintyArgs, VerbosityArgs, When,
};

use clap::{Args, Parser, Subcommand};
use m3impute::escaped;
use m3impute::missing::{HideIn, Mechanism};
use parse::{
    parse_bytes, parse_chunk, parse_delimiter, parse_format, parse_hide_in, parse_mechanism, parse_rate, parse_row,
};
use std::borrow::Cow;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  m3impute impute data.csv -o filled.csv            fill every missing cell
  m3impute describe data.csv                        what is missing, and what the columns are
  m3impute evaluate data.csv                        which method is best on this table
  m3impute fit data.csv -o model.m3                 fit once ...
  m3impute transform new.csv --model model.m3       ... and fill new rows every day
  m3impute explain model.m3 new.csv --row 17        why these values?
  cat data.csv | m3impute impute > filled.csv       in a pipe";

const EXIT_CODES: &str = "\
Exit codes:
  0 done   2 wrong request   3 wrong data   4 no finite answer   5 out of memory, disk or permission
  70 a fault of this program   130 stopped   141 nobody reads the output";

/// Impute missing values in tables.
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
    pub verbosity: VerbosityArgs,
}

impl Cli {
    /// The arguments of this process. What a message repeats of them has its control characters written out.
    pub fn of_process() -> Cli {
        Cli::try_parse().unwrap_or_else(|error| {
            if std::env::args_os().all(|argument| matches!(escaped(&argument.to_string_lossy()), Cow::Borrowed(_))) {
                error.exit();
            }
            let message = error.to_string();
            message.lines().for_each(|line| eprintln!("{}", escaped(line)));
            std::process::exit(error.exit_code())
        })
    }
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Impute the missing values of a table
    #[command(visible_alias = "fill")]
    Impute(ImputeArgs),
    /// Fit a model to a table, for new rows later
    Fit(FitArgs),
    /// Fill new rows with a model
    Transform(TransformArgs),
    /// Explain filled values: what decides them, and what each member of the ensemble predicts
    Explain(ExplainArgs),
    /// Show what a model file holds
    Info(InfoArgs),
    /// Hide known cells, fill them with several methods, and compare
    #[command(visible_alias = "eval")]
    Evaluate(EvaluateArgs),
    /// Show what is missing and what the columns are
    Describe(DescribeArgs),
    /// Make cells of a table missing
    Ampute(AmputeArgs),
    /// List the methods and their parameters
    Methods(MethodsArgs),
    /// Benchmark the program on this machine
    #[command(subcommand)]
    Bench(BenchVerb),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one a verb
    Man(ManArgs),
}

/// How new rows are read; the model knows what their columns mean.
#[derive(Debug, Args)]
pub struct NewRowsArgs {
    /// Format of the input, if its extension does not tell
    #[arg(short, long, value_name = "FORMAT", value_parser = parse_format, help_heading = "Reading")]
    pub format: Option<m3impute_io::Format>,

    /// Delimiter of a CSV file; detected by default
    #[arg(short, long, value_name = "CHAR", value_parser = parse_delimiter, help_heading = "Reading")]
    pub delimiter: Option<u8>,

    /// What to do with infinities
    #[arg(long, value_name = "POLICY", default_value = "error", help_heading = "Reading")]
    pub inf: InfinityPolicy,

    /// The most memory that reading may take, such as 500MB or 8GB [default: the larger of 2GB and 50 times the file, at
    /// most 80 % of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, help_heading = "Reading")]
    pub max_memory: Option<u64>,
}

const IMPUTE_EXAMPLES: &str = "\
Examples:
  m3impute impute data.csv -o filled.csv
  m3impute impute data.parquet -o filled.parquet --method knn --param neighbours=10
  m3impute impute survey.csv -o filled.csv --kind zip=categorical --ignore id --bounds age=0..120
  m3impute impute data.csv --in-place --na-col income=-99,999
  m3impute impute data.csv -o filled.csv --method m3 --interval 0.9 --probabilities
  m3impute impute data.csv -o filled.csv --method m3 --draws 5
  m3impute impute data.csv -o filled.csv --draws 5 --shift income=+10%
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

    /// Write a report too: what was missing, what was imputed, how accurate it is (one HTML file, for any browser)
    #[arg(long, value_name = "HTML")]
    pub report: Option<PathBuf>,

    #[command(flatten)]
    pub method: MethodArgs,
    #[command(flatten)]
    pub uncertainty: UncertaintyArgs,
    #[command(flatten)]
    pub shift: ShiftArgs,
    #[command(flatten)]
    pub learn: LearnArgs,
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

    /// Keep at most 1,000 rows of the table in the model, so that `explain` can name the nearest ones: anyone who has the
    /// file can read them
    #[arg(long, help_heading = "Method")]
    pub keep_donors: bool,

    #[command(flatten)]
    pub method: MethodArgs,
    #[command(flatten)]
    pub learn: LearnArgs,
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
    pub uncertainty: UncertaintyArgs,
    #[command(flatten)]
    pub shift: ShiftArgs,

    #[command(flatten)]
    pub read: NewRowsArgs,

    /// Rows that are read, filled and written at a time
    #[arg(long, value_name = "ROWS", default_value_t = 16_384, value_parser = parse_chunk, help_heading = "Run")]
    pub chunk: usize,

    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  m3impute explain model.m3 new.csv --row 17
  m3impute explain model.m3 new.csv --row 17 --row 40 --column income
  m3impute explain model.m3 new.csv --row 17 --json

For each missing cell: its fill with the 90 % interval or the probabilities of the levels; what each
member of the ensemble predicts, with its weight (method `m3`); how the fill would change if one
observed cell of the row were hidden; and the nearest rows of the training table, if the model was
fitted with `--keep-donors`.")]
pub struct ExplainArgs {
    /// The model file, made by `fit`
    pub model: PathBuf,

    /// The rows; `-` or nothing is standard input
    pub input: Option<String>,

    /// The row, counted from 1 below the names of the columns; several times for several rows
    #[arg(long, value_name = "N", required = true, value_parser = parse_row)]
    pub row: Vec<usize>,

    /// The column; several times for several columns [default: all missing cells of the row]
    #[arg(long, value_name = "COLUMN")]
    pub column: Vec<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub read: NewRowsArgs,

    /// Threads; 0 takes as many as the machine has
    #[arg(short, long, value_name = "N", default_value_t = 0, env = "M3IMPUTE_THREADS", help_heading = "Run")]
    pub threads: usize,
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
  m3impute evaluate data.csv --only age,income
  m3impute evaluate data.csv --methods m3:fast,missforest --mechanism mar --repeats 5
  m3impute evaluate data.csv --repeats 5 --report report.html
  m3impute evaluate --truth complete.csv --observed observed.txt --json

The same known cells are hidden from every method. By default they are hidden in the columns that
have missing cells, in the patterns in which these are missing; with `--only`, in those columns
alone. The other mechanisms are those of `m3impute ampute`.")]
pub struct EvaluateArgs {
    /// The table; `-` or nothing is standard input
    #[arg(conflicts_with = "truth")]
    pub input: Option<String>,

    /// Methods to compare [default: all but the slow ones]
    #[arg(long, value_name = "NAME[:PRESET],...", value_delimiter = ',')]
    pub methods: Vec<String>,

    /// How cells are hidden: as those of the table are missing, or by another mechanism
    #[arg(long, value_name = "NAME", default_value = "own", value_parser = parse_mechanism)]
    pub mechanism: Mechanism,

    /// The share of known cells to hide; `own` hides less where columns differ in how often they are missing
    #[arg(long, value_name = "SHARE", default_value_t = 0.3, value_parser = parse_rate)]
    pub rate: f64,

    /// Where cells are hidden: in the columns that have missing cells (`incomplete`), or in complete ones too (`all`)
    /// [default: incomplete with `own`, all otherwise]
    #[arg(long, value_name = "WHICH", value_parser = parse_hide_in)]
    pub columns: Option<HideIn>,

    /// How often, with other cells hidden each time
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,

    /// Score on given cells: the complete table, with `--observed`
    #[arg(long, value_name = "FILE", requires = "observed")]
    pub truth: Option<String>,

    /// Score on given cells: a line a row, `1` for a cell that is shown, `0` for one that is hidden
    ///
    /// A file with one column fewer than the table leaves the table's last column out: it is the target.
    #[arg(long, value_name = "FILE", requires = "truth")]
    pub observed: Option<PathBuf>,

    /// By what columns are scaled before a method sees them: their observed cells, or the complete column as in the
    /// paper
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
    pub fill: ColumnArgs,
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
  m3impute ampute complete.csv -o incomplete.csv --mechanism mar --rate 0.3 --seed 1

Mechanisms:
  mcar         completely at random
  own          as cells are missing in the table already: rows lose what other rows lack
  mar          depends on columns that stay complete
  mnar         mar, then mcar on the rest: what the paper calls MNAR
  self-masked  depends on the cell's own value
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

    /// Seed: the same seed hides the same cells
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
