//! What `bench` is asked.

use super::ScaleChoice;
use super::parse::parse_seconds;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;

/// What can be measured.
#[derive(Debug, Subcommand)]
pub enum BenchVerb {
    /// Measure a training step of the published M3-Impute beside the machine's matrix products
    Engine(BenchEngineArgs),
    /// Measure how long `m3` takes to fit tables of some sizes, and to fill new rows
    M3(BenchM3Args),
    /// Run a table or figure of the M3-Impute paper
    Paper(BenchPaperArgs),
}

/// What every measurement is told.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// Threads; 0 takes as many as the machine has
    #[arg(short, long, value_name = "N", default_value_t = 0, env = "M3IMPUTE_THREADS")]
    pub threads: usize,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  m3impute bench m3
  m3impute bench m3 --presets best --sizes 2000x15
  m3impute bench m3 --sizes 45730x9,1000x1000        a long and a wide one
  m3impute bench m3 --sizes 5000x16 --new-rows 100000

Tables are made up: correlated numbers, with 30 % of their cells missing.")]
pub struct BenchM3Args {
    /// Tables to measure on
    #[arg(long, value_name = "ROWSxCOLUMNS,...", value_delimiter = ',', default_value = "40x3,2000x15")]
    pub sizes: Vec<TableSize>,

    /// Presets to measure
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "fast,balanced")]
    pub presets: Vec<String>,

    /// New rows to fill with each model
    #[arg(long, value_name = "ROWS", default_value_t = 10_000)]
    pub new_rows: usize,

    #[command(flatten)]
    pub measure: MeasureArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  m3impute bench engine
  m3impute bench engine --sizes yacht,concrete    without the large table, which takes longest
  m3impute bench engine --sizes 5000x20           how long would it train on a table like mine?
  m3impute bench engine --threads 1 --json

Tables are random, with 30 % of their cells missing. A step predicts every observed cell once.
Its arithmetic is counted after the exact rewrites of the model, its speed is set beside that of
matrix products, measured in turns with it.")]
pub struct BenchEngineArgs {
    /// Tables to measure on: yacht (308x6), concrete (1030x8), naval (11934x16), or any ROWSxCOLUMNS
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "yacht,concrete,naval")]
    pub sizes: Vec<TableSize>,

    /// Seconds of training on each table, at least; three steps are taken anyway
    #[arg(long, value_name = "S", default_value = "4", value_parser = parse_seconds)]
    pub seconds: std::time::Duration,

    #[command(flatten)]
    pub measure: MeasureArgs,
}

/// A table of some size, under the name that was given.
#[derive(Clone, Debug)]
pub struct TableSize {
    pub name: String,
    pub rows: usize,
    pub columns: usize,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  m3impute bench paper --list
  m3impute bench paper main --data ../shared
  m3impute bench paper main --data ../shared --datasets yacht,wine --methods m3,m3:best,missforest,knn:paper
  m3impute bench paper ratios --data ../shared --figures figures --format markdown > ratios.md
  m3impute bench paper gnn --data ../shared --datasets yacht --epochs 2000
  m3impute bench paper main --data ../shared --draw-only      tables and figures of the rows there are

The folder of the data has `datasets/NAME.csv`, complete tables of numbers whose last column is a label, and
`masks/NAME.MASK.txt`, a line a row, 1 for a cell that methods see and 0 for one that they do not. Where there is no such
file, our generator hides cells with seed 0.

Each measurement is a row that is appended to the file of rows. A bench that was stopped goes on where it was; one that is
run again with more tables, methods or seeds measures only what is not there yet.")]
pub struct BenchPaperArgs {
    /// The table or figure of the paper; `--list` names them
    #[arg(value_name = "NAME", required_unless_present = "list")]
    pub study: Option<String>,

    /// List the tables and figures
    #[arg(long)]
    pub list: bool,

    /// The folder of tables and masks
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    pub data: Option<PathBuf>,

    /// Tables of the paper to take, instead of all that are there
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub datasets: Option<Vec<String>>,

    /// Methods to take, instead of those of the study
    #[arg(long, value_name = "METHOD[:PRESET],...", value_delimiter = ',')]
    pub methods: Option<Vec<String>>,

    /// Train `grape` and `m3:paper`, which take hours as published, for so many epochs; comparisons do not run them
    /// otherwise, and draw the longest training of which there are rows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub epochs: Option<u64>,

    /// Seeds; methods that draw nothing run with the first alone
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "0")]
    pub seeds: Vec<u64>,

    /// What columns are scaled by
    #[arg(long, value_name = "BY", default_value = "paper")]
    pub scale: ScaleChoice,

    /// Give each method so many seconds on a table at most
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub max_seconds: Option<std::time::Duration>,

    /// Threads of each method; 0 takes as many as the machine has
    #[arg(short, long, value_name = "N", default_value_t = 0, env = "M3IMPUTE_THREADS")]
    pub threads: usize,

    /// The file of rows
    #[arg(long, value_name = "FILE", default_value = "bench-rows.csv")]
    pub rows: PathBuf,

    /// Measure nothing: make tables and figures of the rows that are there
    #[arg(long)]
    pub draw_only: bool,

    /// How the table is printed
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: TableFormat,

    /// Draw the figures of the study into this folder
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
}

/// How a table is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// For a terminal.
    Text,
    /// For a page.
    Markdown,
    /// For a paper.
    Latex,
}

impl FromStr for TableSize {
    type Err = String;

    /// The name of a benchmark table, or `ROWSxCOLUMNS`.
    fn from_str(text: &str) -> Result<TableSize, String> {
        /// Cells that a table may have: far beyond what can be trained on.
        const MOST: usize = 100_000_000;
        let size = |rows, columns| TableSize { name: text.to_owned(), rows, columns };
        match text {
            "yacht" => return Ok(size(308, 6)),
            "concrete" => return Ok(size(1030, 8)),
            "naval" => return Ok(size(11_934, 16)),
            _ => {}
        }
        text.split_once('x')
            .and_then(|(rows, columns)| Some((rows.parse::<usize>().ok()?, columns.parse::<usize>().ok()?)))
            .filter(|&(rows, columns)| rows > 1 && columns > 1 && rows.checked_mul(columns).is_some_and(|c| c <= MOST))
            .map(|(rows, columns)| size(rows, columns))
            .ok_or_else(|| {
                "expected yacht, concrete, naval or ROWSxCOLUMNS of at least 2x2, such as 5000x20".to_owned()
            })
    }
}
