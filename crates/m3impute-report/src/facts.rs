//! The facts of a page, as plain data: already counted, and limited in size for any table.

use crate::words::Numerals;
use m3impute_core::missingness::Auc;
use m3impute_core::{ColumnScore, Kind};
use m3impute_eval::Spread;

/// Method, settings, command and warnings of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// The table's name, usually that of its file.
    pub source: String,
    /// Method and settings in one line: `m3, preset balanced, seed 0`.
    pub how: String,
    /// Settings by name, in the order in which they are shown.
    pub settings: Vec<(String, String)>,
    /// The command that does it again; empty where there is none.
    pub command: String,
    /// The version of the program.
    pub version: String,
    /// When it was done, in seconds since 1970.
    pub when: f64,
    /// How long it took.
    pub seconds: f64,
    /// Values that may stand for missing.
    pub suspects: Vec<Suspect>,
    /// Warnings.
    pub events: Vec<Event>,
}

/// Values of a column that may stand for missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// The column.
    pub column: String,
    /// Each such value, how often it occurs, and what is suspicious about it.
    pub values: Vec<(String, usize, String)>,
    /// The setting that takes them as missing, as it is typed.
    pub setting: String,
}

/// A warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Where it happened, in a word or two: `reading`, `m3`, `column age`.
    pub place: String,
    /// What happened, in a sentence.
    pub what: String,
}

/// The facts of an imputation report.
#[derive(Clone, Debug, PartialEq)]
pub struct ImputeFacts {
    /// The run.
    pub work: Work,
    /// The missing cells.
    pub missing: Missing,
    /// What goes together with missing cells.
    pub not_at_random: NotAtRandom,
    /// Which columns are missing together.
    pub together: MissingTogether,
    /// How many cells were filled.
    pub filled: usize,
    /// The imputed values of the columns that are shown.
    pub columns: Vec<Filled>,
    /// How many columns were filled, shown or not.
    pub filled_columns: usize,
    /// The validation errors on held-out cells.
    pub accuracy: Accuracy,
    /// How far draws lie apart in columns with distributions, most filled cells first, and how many columns there are.
    pub draws: (Vec<DrawSpread>, usize),
    /// The least certain rows, worst first; none where the method has no distributions.
    pub uncertain: Option<Vec<UncertainRow>>,
    /// Why the least certain cells have their values, in words.
    pub explanations: Vec<Vec<String>>,
    /// Some filled cells: the least certain ones, or the first ones where the method has no distributions.
    pub cells: Vec<FilledCell>,
}

/// What validation says of the filled cells; nothing where the method holds no cells out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accuracy {
    /// Columns that were validated, filled or not; 0 where the method holds no cells out.
    pub columns: usize,
    /// The mean over filled cells of their column's error as a share of that of the baseline.
    pub ratio: Option<f64>,
    /// Filled columns with an error, worst first, and how many of their cells were filled; as many as are shown.
    pub known: Vec<(ColumnScore, usize)>,
    /// How many such columns there are.
    pub known_columns: usize,
    /// How many of their cells were filled.
    pub known_cells: usize,
    /// Those of them in which no model beats the baseline.
    pub poor_columns: usize,
    /// How many of their cells were filled.
    pub poor_cells: usize,
    /// Filled columns without an error, most filled cells first, as many as are named.
    pub unknown: Vec<(String, usize)>,
    /// How many such columns there are.
    pub unknown_columns: usize,
    /// How many of their cells were filled.
    pub unknown_cells: usize,
    /// Predicted against true numbers of held-out cells, in columns with filled cells, most of them first.
    pub scatters: Vec<Scatter>,
    /// How many such columns there are.
    pub all_scatters: usize,
    /// Columns without filled cells, worst first, as many as are shown.
    pub unfilled: Vec<ColumnScore>,
    /// How many such columns there are.
    pub unfilled_columns: usize,
}

/// The missing cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Missing {
    /// Rows of the table.
    pub rows: usize,
    /// Columns of the table.
    pub columns: usize,
    /// Missing cells.
    pub cells: usize,
    /// Rows with a missing cell.
    pub incomplete_rows: usize,
    /// Columns with a missing cell.
    pub incomplete_columns: usize,
    /// Columns with missing cells, most first, as many as are shown.
    pub by_column: Vec<ColumnMissing>,
    /// The picture.
    pub matrix: Matrix,
    /// Columns that are missing together, most frequent first, as many as are shown.
    pub patterns: Vec<Pattern>,
    /// How many different patterns there are.
    pub all_patterns: usize,
    /// Columns without a single value, which are no part of any pattern.
    pub empty_columns: usize,
}

/// The missing cells of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMissing {
    /// Its name.
    pub name: String,
    /// What its values mean.
    pub kind: Kind,
    /// How many cells are missing.
    pub missing: usize,
    /// How many of these were filled.
    pub filled: usize,
}

/// What goes together with missing cells: evidence against missing completely at random.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NotAtRandom {
    /// The columns that were looked at, the most missing cells first.
    pub columns: Vec<MissingnessOf>,
    /// How many columns have too few missing or too few observed cells.
    pub too_few: usize,
    /// How many further columns could have been looked at.
    pub further: usize,
    /// How many other columns were looked at for each, and how many there are.
    pub others: (usize, usize),
    /// Whether rows were sampled.
    pub sampled: bool,
}

/// What goes together with the missing cells of one column.
#[derive(Clone, Debug, PartialEq)]
pub struct MissingnessOf {
    /// Its name.
    pub name: String,
    /// How many of its cells are missing.
    pub missing: usize,
    /// How well the values of other columns tell where it is missing.
    pub values: Auc,
    /// How well they do together with where these are missing.
    pub values_and_missingness: Auc,
    /// What differs most where it is missing.
    pub tells: Vec<Tell>,
}

/// A column that differs where another one is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tell {
    /// Its name.
    pub column: String,
    /// By how much, in words.
    pub effect: String,
}

/// Which columns are missing together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MissingTogether {
    /// How many columns were compared.
    pub columns: usize,
    /// How many further incomplete columns there are.
    pub further: usize,
    /// How many pairs are beyond chance.
    pub all_pairs: usize,
    /// The strongest of them.
    pub pairs: Vec<Correlated>,
    /// A picture of the pairs.
    pub heat: Heat,
}

/// Two columns whose missing cells are correlated.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlated {
    /// Their names.
    pub names: [String; 2],
    /// The correlation.
    pub phi: f64,
    /// In how many rows both are missing.
    pub rows: usize,
}

/// The correlations of some columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// Their names.
    pub names: Vec<String>,
    /// The correlation of each with those before it; 0 where it may be chance. // [names, names]
    pub phi: Vec<f32>,
}

/// Where cells are missing: rows and columns in groups, so that the picture has a bounded size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// Groups of rows from top to bottom, as the first row of each (counted from 0), and the end.
    pub rows: Vec<usize>,
    /// Groups of columns from left to right, likewise.
    pub columns: Vec<usize>,
    /// The names of the columns, where each is a group of its own.
    pub names: Vec<String>,
    /// The share of missing cells in each group. // [groups of rows, groups of columns]
    pub shares: Vec<f32>,
}

/// Columns that are missing together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Their names, as many as are shown.
    pub names: Vec<String>,
    /// How many columns it has.
    pub columns: usize,
    /// In how many rows.
    pub rows: usize,
}

/// The imputed values of one column.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// Its name.
    pub name: String,
    /// What its values mean.
    pub kind: Kind,
    /// How its numbers are written.
    pub numerals: Numerals,
    /// How many cells are observed.
    pub observed: usize,
    /// How many were filled.
    pub filled: usize,
    /// The distribution of its values.
    pub shape: Shape,
}

/// The distributions of observed and filled values.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Numbers: shares in bins of equal width.
    Numbers(Box<Histogram>),
    /// Levels: a share for each.
    Levels(Vec<LevelShare>),
}

/// An axis of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Axis {
    /// Where it begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
    /// Whether it is logarithmic.
    pub log: bool,
}

impl Axis {
    /// Where a number lies: 0 at the beginning, 1 at the end, and nowhere beyond.
    ///
    /// ```
    /// let axis = m3impute_report::Axis { low: 1.0, high: 10_000.0, log: true };
    /// assert_eq!((axis.place(100.0), axis.place(0.1)), (0.5, 0.0));
    /// ```
    pub fn place(&self, value: f64) -> f64 {
        let there = |value: f64| if self.log { value.max(self.low).ln() } else { value };
        ((there(value) - there(self.low)) / (there(self.high) - there(self.low))).clamp(0.0, 1.0)
    }
}

/// Shares of numbers in bins of equal width. What lies outside is counted in the first or the last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Where the first bin begins and the last one ends; on a logarithmic axis bins have equal ratios.
    pub axis: Axis,
    /// Of the observed values.
    pub observed: Vec<f64>,
    /// Of the filled ones.
    pub filled: Vec<f64>,
    /// Of the predictive distributions of the filled cells, where the method has them.
    pub predicted: Option<Vec<f64>>,
    /// How many values lie outside of the bins.
    pub outside: usize,
    /// The median of the observed values.
    pub observed_median: f64,
    /// The median of the filled ones.
    pub filled_median: f64,
    /// Whether there are enough filled values to draw their shares in bins.
    pub binned: bool,
    /// Some of the filled cells with their 90 % intervals, smallest first; all of them where they are few.
    pub whiskers: Vec<Whisker>,
    /// The median width of these intervals, over all filled cells.
    pub width: Option<f64>,
}

/// A filled cell and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Whisker {
    /// Where the interval begins.
    pub low: f64,
    /// The filled value.
    pub point: f64,
    /// Where it ends.
    pub high: f64,
}

/// The frequency of a level.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelShare {
    /// The level; none for those that are not shown by themselves.
    pub level: Option<String>,
    /// Its share of the observed values.
    pub observed: f64,
    /// Its share of the filled ones.
    pub filled: f64,
    /// Its mean probability in the filled cells, where the method has distributions.
    pub predicted: Option<f64>,
}

/// Predicted against true values of held-out cells of a column of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter {
    /// Its name.
    pub name: String,
    /// How its numbers are written.
    pub numerals: Numerals,
    /// How many cells were held out, drawn or not.
    pub cells: usize,
    /// The share of them that lies in the 90 % interval.
    pub coverage: Option<f64>,
    /// The axis of both.
    pub axis: Axis,
    /// True and predicted values, as many as are drawn.
    pub points: Vec<[f64; 2]>,
    /// How many of the points lie outside of the axis; they are drawn at its ends.
    pub outside: usize,
}

/// How far draws of the filled cells of a column lie apart.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawSpread {
    /// Its name.
    pub name: String,
    /// What its values mean.
    pub kind: Kind,
    /// How many cells have draws.
    pub filled: usize,
    /// Of a number, the mean standard deviation of a cell over draws; of levels, the mean probability that two draws of
    /// a cell differ.
    pub cell: f64,
    /// That as a share of what it would be if a cell were drawn from the observed values of the column.
    pub share: f64,
    /// The share of the variance of the column's mean that lies between draws; none of levels.
    pub of_mean: Option<f64>,
}

/// A row with large uncertainty.
#[derive(Clone, Debug, PartialEq)]
pub struct UncertainRow {
    /// Which row, counted from 1.
    pub row: usize,
    /// How many of its cells were filled.
    pub filled: usize,
    /// The sum of the uncertainties of its filled cells, each from 0 (certain) to 1 (no better than the distribution of
    /// its column).
    pub uncertainty: f64,
    /// The least certain of its cells.
    pub cells: Vec<UncertainCell>,
}

/// A filled cell with large uncertainty.
#[derive(Clone, Debug, PartialEq)]
pub struct UncertainCell {
    /// Its column.
    pub column: String,
    /// The filled value, as text.
    pub value: String,
    /// Its interval or probability, as text.
    pub certainty: String,
}

/// A filled cell.
#[derive(Clone, Debug, PartialEq)]
pub struct FilledCell {
    /// Its row, counted from 1.
    pub row: usize,
    /// Its column, value, and interval or probability.
    pub cell: UncertainCell,
    /// From 0 (certain) to 1 (no better than the distribution of its column), where the method has distributions.
    pub uncertainty: Option<f64>,
}

/// The facts of a comparison report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvaluateFacts {
    /// The run.
    pub work: Work,
    /// Rows of the table.
    pub rows: usize,
    /// Columns of the table.
    pub columns: usize,
    /// Hidden cells that are scored, in the first repeat.
    pub cells: usize,
    /// The share of the observed cells that is hidden.
    pub rate: f64,
    /// How cells were hidden, in words.
    pub mechanism: String,
    /// How often.
    pub repeats: usize,
    /// The methods, best first.
    pub methods: Vec<Compared>,
    /// The recommended method.
    pub recommended: Option<String>,
    /// Why it is recommended, a sentence each.
    pub advice: Vec<String>,
    /// Errors column by column, as many as are shown.
    pub by_column: Vec<ColumnCompared>,
    /// How many columns were scored, shown or not.
    pub scored_columns: usize,
}

/// One method in a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// Its name.
    pub label: String,
    /// Its preset.
    pub preset: String,
    /// The mean absolute error of numbers.
    pub mae: Option<Repeats>,
    /// The share of levels that are right.
    pub accuracy: Option<Repeats>,
    /// The seconds that filling took.
    pub seconds: Option<Repeats>,
    /// Peak memory.
    pub peak_bytes: Option<u64>,
    /// Why it failed, where it did.
    pub error: Option<String>,
}

/// A figure over repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeats {
    /// The mean and deviation over repeats.
    pub spread: Spread,
    /// Repeat by repeat.
    pub each: Vec<f64>,
}

/// One column in a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnCompared {
    /// Its name.
    pub name: String,
    /// What its values mean.
    pub kind: Kind,
    /// Its hidden cells, over all repeats.
    pub cells: usize,
    /// For each method, in their order: the mean absolute error in the column's own units or, of levels, the share that
    /// is wrong; the mean over repeats.
    pub errors: Vec<Option<f64>>,
}
