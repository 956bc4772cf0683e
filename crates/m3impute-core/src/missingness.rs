//! What goes together with missing cells: how well the other columns tell where a column is missing, and which columns
//! are missing together. Evidence against cells that are missing completely at random; never a proof of anything else.

mod auc;
mod effects;
mod together;

pub use auc::Auc;
pub use effects::{Effect, Predictor};
pub use together::{Pair, Together, missing_together};

use crate::sampler::RandomStream;
use crate::table::Table;
use auc::{Features, validated};
use effects::strongest;

/// Columns with missing cells that are looked at.
const COLUMNS: usize = 24;
/// Rows with the cell missing, and rows with the cell observed, that are looked at.
const ROWS: usize = 1000;
/// Other columns that are looked at.
const OTHERS: usize = 100;
/// With fewer missing or fewer observed cells nothing can be said of a column.
const MIN_CELLS: usize = 10;
/// The probability of an interval or a predictor by chance, over all columns together.
const CHANCE: f64 = 0.05;

/// What goes together with the missing cells of some columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Missingness {
    /// The columns that were looked at, the most missing cells first.
    pub columns: Vec<ColumnMissingness>,
    /// How many columns have too few missing or too few observed cells for that.
    pub too_few: usize,
    /// How many further columns could have been looked at: those with fewer missing cells.
    pub further: usize,
    /// How many other columns were looked at for each, and how many there are.
    pub others: (usize, usize),
    /// Whether some columns have more rows than were looked at.
    pub sampled: bool,
}

/// What goes together with the missing cells of one column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnMissingness {
    /// The index of the column.
    pub column: usize,
    /// How many of its cells are missing.
    pub missing: usize,
    /// How well the values of the other columns tell where it is missing.
    pub values: Auc,
    /// How well they do together with where the other columns are missing.
    pub values_and_missingness: Auc,
    /// What differs most between rows where it is missing and others, beyond chance; the strongest first. Empty without
    /// evidence.
    pub predictors: Vec<Predictor>,
}

impl ColumnMissingness {
    /// Whether other columns tell where it is missing better than chance.
    pub fn is_evidence(&self) -> bool {
        self.values.is_evidence() || self.values_and_missingness.is_evidence()
    }
}

/// The rows of a table that are looked at for one column.
struct Sample {
    rows: Vec<usize>,
    /// Whether the cell is missing, for each of them.
    missing: Vec<bool>,
}

/// How well other columns tell where a column is missing, for the columns with the most missing cells.
///
/// For each column a ridge logistic regression predicts whether its cell is missing, from the values of other columns
/// and, a second time, also from whether these are missing; a number counts by its rank, a missing value as the mean.
/// The area under the ROC curve (AUC) is that of five-fold cross-validation. Intervals hold for all columns together
/// with 95 % confidence (Bonferroni). Large tables are sampled; the same table gives the same answer.
///
/// ```
/// use m3impute_core::missingness::{Effect, missingness};
/// use m3impute_core::{Column, ColumnSpec, Kind, Schema, Table};
/// // The income of those over 60 is missing.
/// let age = |i: u32| f64::from(20 + i * 37 % 60);
/// let columns = vec![
///     Column::numbers((0..200).map(|i| Some(age(i)))),
///     Column::numbers((0..200).map(|i| (age(i) < 60.0).then_some(f64::from(i % 7)))),
/// ];
/// let schema = Schema::new(vec![ColumnSpec::new("age", Kind::Integer), ColumnSpec::new("income", Kind::Integer)])?;
/// let of = missingness(&Table::new(schema, columns)?);
/// let income = &of.columns[0];
/// assert!(income.values.is_evidence() && income.values.value > 0.99);
/// assert_eq!(income.predictors[0].column, 0);
/// assert!(matches!(income.predictors[0].effect, Effect::MeanDifference(d) if d > 2.0));
/// # Ok::<(), m3impute_core::Error>(())
/// ```
pub fn missingness(table: &Table) -> Missingness {
    let specs = table.schema().columns();
    let counts: Vec<usize> = (0..table.cols()).map(|j| table.missing_in(j)).collect();
    let incomplete: Vec<usize> = (0..table.cols()).filter(|&j| counts[j] > 0 && counts[j] < table.rows()).collect();
    let enough = |j: &usize| counts[*j] >= MIN_CELLS && table.rows() - counts[*j] >= MIN_CELLS;
    let mut able: Vec<usize> = incomplete.iter().copied().filter(enough).collect();
    let too_few = incomplete.len() - able.len();
    able.sort_by_key(|&j| std::cmp::Reverse(counts[j]));
    let further = able.len().saturating_sub(COLUMNS);
    able.truncate(COLUMNS);
    let used: Vec<usize> = (0..table.cols()).filter(|&j| specs[j].is_used() && counts[j] < table.rows()).collect();
    let all_others = used.len();
    let others: Vec<usize> = evenly(&used, OTHERS);
    // Each column has two intervals.
    let z = normal_quantile(CHANCE / (4 * able.len().max(1)) as f64);
    let mut sampled = false;
    let columns = able.iter().map(|&column| {
        let sample = sample(table, column);
        sampled |= sample.rows.len() < table.rows();
        let others: Vec<usize> = others.iter().copied().filter(|&k| k != column).collect();
        let mut features = Features::default();
        others.iter().for_each(|&k| features.add_values(table, k, &sample));
        let values = validated(&features, &sample, z);
        others.iter().for_each(|&k| features.add_missingness(table, k, &sample));
        let both = validated(&features, &sample, z);
        let is_evidence = values.is_evidence() || both.is_evidence();
        let predictors = if is_evidence { strongest(table, &others, &sample, CHANCE) } else { Vec::new() };
        ColumnMissingness { column, missing: counts[column], values, values_and_missingness: both, predictors }
    });
    let columns = columns.collect();
    Missingness { columns, too_few, further, others: (others.len(), all_others), sampled }
}

/// Rows in which the cell is missing and rows in which it is not, in random order: so many of each at most.
fn sample(table: &Table, column: usize) -> Sample {
    let observed = table.observed().column(column);
    let mut rows = Vec::new();
    for class in [false, true] {
        let mut of_class: Vec<usize> = (0..table.rows()).filter(|&i| observed[i] == class).collect();
        let count = of_class.len().min(ROWS);
        // The order is random also where all rows are taken: folds follow it, and the order of a file may mean something.
        RandomStream::new(column as u64).shuffle_front(&mut of_class, count);
        rows.extend(of_class.into_iter().take(count));
    }
    let missing = rows.iter().map(|&i| !observed[i]).collect();
    Sample { rows, missing }
}

/// At most `most` of these, evenly over them.
fn evenly(all: &[usize], most: usize) -> Vec<usize> {
    let taken = all.len().min(most);
    (0..taken).map(|at| all[at * all.len() / taken]).collect()
}

/// How many standard deviations above the mean a share `tail` of the normal distribution begins; right to 0.0005
/// (Abramowitz and Stegun 26.2.23).
fn normal_quantile(tail: f64) -> f64 {
    let t = (-2.0 * tail.ln()).sqrt();
    t - (2.515_517 + t * (0.802_853 + t * 0.010_328)) / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{ColumnSpec, Kind, Schema};
    use crate::table::Column;

    /// Three columns of random numbers and levels; cells are missing where `is_missing` says so.
    pub(super) fn table(rows: usize, seed: u64, is_missing: impl Fn(f64, u32, &mut RandomStream) -> bool) -> Table {
        let mut stream = RandomStream::new(seed);
        let (mut x, mut c, mut y) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rows {
            let (number, level) = (f64::from(stream.unit()), stream.below(3) as u32);
            let missing = is_missing(number, level, &mut stream);
            x.push(Some(number));
            c.push(Some(level));
            y.push((!missing).then_some(f64::from(stream.unit())));
        }
        let schema = Schema::new(vec![
            ColumnSpec::new("x", Kind::Continuous),
            ColumnSpec::with_levels("c", Kind::Categorical, ["u", "v", "w"]),
            ColumnSpec::new("y", Kind::Continuous),
        ]);
        Table::new(schema.unwrap(), vec![Column::numbers(x), Column::codes(c), Column::numbers(y)]).unwrap()
    }

    #[test]
    fn a_level_that_decides_is_named_with_the_largest_difference() {
        let of = missingness(&table(300, 1, |_, level, stream| level == 2 && stream.unit() < 0.8));
        let y = &of.columns[0];
        assert!((y.column, y.values.is_evidence()) == (2, true) && y.values.value > 0.8, "{y:?}");
        let Effect::ShareDifference { level, missing, observed } = y.predictors[0].effect else { panic!("{y:?}") };
        assert_eq!((y.predictors[0].column, level, missing), (1, 2, 1.0));
        assert!(observed < 0.2, "{observed}");
    }

    #[test]
    fn cells_that_are_missing_at_random_are_rarely_evidence_of_anything() {
        let found = |seed| missingness(&table(120, seed, |_, _, stream| stream.unit() < 0.3)).columns[0].is_evidence();
        let wrong = (0..200).filter(|&seed| found(seed)).count();
        assert!(wrong <= 10, "{wrong} of 200, where 5 % are allowed");
    }

    #[test]
    fn a_few_missing_cells_say_nothing() {
        let of = missingness(&table(300, 2, |x, _, _| x > 0.985));
        assert_eq!((of.columns.len(), of.too_few), (0, 1), "less than {MIN_CELLS} cells");
    }

    #[test]
    fn where_another_column_is_missing_is_kept_apart_from_its_values() {
        // Both columns are missing in the same rows, which nothing else tells.
        let mut table = table(400, 3, |_, _, stream| stream.unit() < 0.3);
        (0..400)
            .filter(|&i| !table.observed().get(i, 2))
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|i| table.hide(i, 0));
        let of = missingness(&table);
        let y = of.columns.iter().find(|c| c.column == 2).unwrap();
        assert!(!y.values.is_evidence() && y.values_and_missingness.value > 0.99, "{y:?}");
        assert_eq!(y.predictors[0].effect, Effect::Missing { missing: 1.0, observed: 0.0 });
    }

    #[test]
    fn a_long_table_is_sampled_and_gives_the_same_answer_again() {
        let table = table(5000, 4, |x, _, _| x > 0.5);
        let of = missingness(&table);
        assert!(of.sampled && of.columns[0].values.value > 0.99);
        assert_eq!(missingness(&table), of);
    }

    #[test]
    fn quantiles_of_the_normal_distribution_are_right() {
        for (tail, z) in [(0.025, 1.959_96), (0.5, 0.0), (0.000_5, 3.290_53)] {
            assert!((normal_quantile(tail) - z).abs() < 1e-3, "{tail}");
        }
    }
}
