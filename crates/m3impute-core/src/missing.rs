//! Missingness mechanisms: rules by which observed cells of a table are hidden.
//!
//! Notation: `n` rows; a cell is *eligible* when it is observed and its column is to be filled. Rates are shares of the
//! eligible cells of the whole table.

mod logistic;

use crate::error::{Error, Result};
use crate::heldout::{self, Matrix};
use crate::run::Run;
use crate::sampler::normal;
use crate::schema::{ColumnSpec, Kind};
use crate::table::{Observed, Table, Values};
use rand::RngExt;

/// A rule by which cells go missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// As cells are missing in the table itself: some rows lose what other rows lack. So groups of columns that are
    /// missing together are hidden together, and columns with more missing cells lose more.
    Own,
    /// Completely at random: every cell with the same probability.
    Mcar,
    /// At random: half of the columns stay complete, and a logistic function of them decides about the others.
    Mar,
    /// The published experiments' mechanism "not at random": [`Mechanism::Mar`], then an eighth of the rest at random,
    /// so that some of the values that missingness depends on are missing themselves.
    Mnar,
    /// Not at random: a logistic function of the cell's own value decides.
    SelfMasked,
    /// Not at random: censoring, only cells in a tail of their column go missing.
    Quantile(Tail),
}

/// Which end of a column is censored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// The largest values.
    Upper,
    /// The smallest values.
    Lower,
    /// Both ends alike.
    Both,
}

impl Mechanism {
    /// Every mechanism, in the order in which they are listed to users.
    pub const ALL: [Mechanism; 8] = [
        Mechanism::Own,
        Mechanism::Mcar,
        Mechanism::Mar,
        Mechanism::Mnar,
        Mechanism::SelfMasked,
        Mechanism::Quantile(Tail::Upper),
        Mechanism::Quantile(Tail::Lower),
        Mechanism::Quantile(Tail::Both),
    ];

    /// The word users write and read.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Own => "own",
            Mechanism::Mcar => "mcar",
            Mechanism::Mar => "mar",
            Mechanism::Mnar => "mnar",
            Mechanism::SelfMasked => "self-masked",
            Mechanism::Quantile(Tail::Upper) => "quantile",
            Mechanism::Quantile(Tail::Lower) => "quantile-lower",
            Mechanism::Quantile(Tail::Both) => "quantile-both",
        }
    }

    /// What it does, in one line.
    pub fn summary(self) -> &'static str {
        match self {
            Mechanism::Own => "in the table's own patterns: some rows lose what other rows lack",
            Mechanism::Mcar => "every cell with the same probability",
            Mechanism::Mar => "half of the columns stay complete and decide about the others",
            Mechanism::Mnar => "as `mar`, then an eighth of the rest at random, as in the paper",
            Mechanism::SelfMasked => "a cell's own value decides",
            Mechanism::Quantile(Tail::Upper) => "only large values of a column go missing",
            Mechanism::Quantile(Tail::Lower) => "only small values of a column go missing",
            Mechanism::Quantile(Tail::Both) => "only large and small values of a column go missing",
        }
    }

    /// The mechanism of that name.
    ///
    /// ```
    /// use m3impute_core::missing::Mechanism;
    /// assert_eq!(Mechanism::parse("mar")?, Mechanism::Mar);
    /// assert!(Mechanism::parse("mra").is_err());
    /// # Ok::<(), m3impute_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such mechanism.
    pub fn parse(name: &str) -> Result<Mechanism> {
        Mechanism::ALL.into_iter().find(|m| m.name() == name).ok_or_else(|| {
            let names: Vec<String> = Mechanism::ALL.iter().map(|m| format!("`{}`", m.name())).collect();
            request("mechanism", format!("one of {}", names.join(", ")), name)
        })
    }
}

impl std::fmt::Display for Mechanism {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// In which of the columns to fill cells are hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HideIn {
    /// In those that have missing cells.
    Incomplete,
    /// In all of them.
    All,
}

impl HideIn {
    /// The choice of that name.
    ///
    /// ```
    /// use m3impute_core::missing::HideIn;
    /// assert_eq!(HideIn::parse("all")?, HideIn::All);
    /// assert!(HideIn::parse("none").is_err());
    /// # Ok::<(), m3impute_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such choice.
    pub fn parse(name: &str) -> Result<HideIn> {
        match name {
            "incomplete" => Ok(HideIn::Incomplete),
            "all" => Ok(HideIn::All),
            _ => Err(request("columns", "one of `incomplete`, `all`".to_owned(), name)),
        }
    }
}

/// The cells that a mechanism hid.
#[derive(Clone, Debug, PartialEq)]
pub struct HiddenCells {
    /// How they were hidden, which may differ from what was requested: see [`hide`].
    pub mechanism: Mechanism,
    /// The cells that stay: observed before, and not hidden.
    pub shown: Observed,
    /// How many cells could have been hidden.
    pub eligible: usize,
    /// How many were.
    pub hidden: usize,
    /// The share of a column's eligible cells that was hidden; none where it has no eligible cell.
    pub column_rates: Vec<Option<f64>>,
    /// What could not be done as requested, a sentence each.
    pub notes: Vec<String>,
}

impl HiddenCells {
    /// The share of the eligible cells that was hidden.
    pub fn rate(&self) -> f64 {
        if self.eligible == 0 { 0.0 } else { self.hidden as f64 / self.eligible as f64 }
    }
}

/// The table without the hidden cells.
///
/// # Panics
/// When `shown` is of another shape.
pub fn without_hidden(table: &Table, shown: &Observed) -> Table {
    assert_eq!((table.rows(), table.cols()), (shown.rows(), shown.cols()), "the shapes of a table and what is shown");
    let mut out = table.clone();
    for j in 0..table.cols() {
        for i in (0..table.rows()).filter(|&i| table.observed().get(i, j) && !shown.get(i, j)) {
            out.hide(i, j);
        }
    }
    out
}

/// Hides about `rate` of the observed cells of the columns that are to be filled.
///
/// Cells that are missing already stay missing and do not count. A column keeps at least one observed cell; rows may
/// become empty. The same seed hides the same cells.
///
/// ```
/// use m3impute_core::missing::{Mechanism, hide};
/// use m3impute_core::{Column, ColumnSpec, Kind, Run, Schema, Table};
/// let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous)])?;
/// let table = Table::new(schema, vec![Column::from_numbers((0..1000).map(f64::from).collect())])?;
/// let cells = hide(&table, Mechanism::Mcar, 0.3, &Run::new(0, 1)?)?;
/// assert!((cells.rate() - 0.3).abs() < 0.05);
/// # Ok::<(), m3impute_core::Error>(())
/// ```
///
/// # Errors
/// When the rate is not between 0 and 1, cannot be reached by the mechanism, or the table has no column for it.
pub fn hide(table: &Table, mechanism: Mechanism, rate: f64, run: &Run) -> Result<HiddenCells> {
    hide_in(table, mechanism, HideIn::All, rate, run)
}

/// Hides cells as [`hide`] does, in all columns that are to be filled or in the incomplete ones among them.
///
/// [`Mechanism::Own`] hides at most 0.3, or `rate` where it is larger, of any column: where columns differ in how often
/// they are missing, less than `rate` is hidden. Where no column to fill has a missing cell there is no pattern to
/// follow: cells are hidden by [`Mechanism::Mcar`] in [`HideIn::All`], and a note says so.
///
/// ```
/// use m3impute_core::missing::{HideIn, Mechanism, hide_in};
/// use m3impute_core::{Column, ColumnSpec, Kind, Run, Schema, Table};
/// let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous), ColumnSpec::new("y", Kind::Continuous)])?;
/// let x = Column::from_numbers((0..100).map(f64::from).collect());
/// let y = Column::numbers((0..100).map(|i| (i % 5 > 0).then_some(f64::from(i))));
/// let table = Table::new(schema, vec![x, y])?;
/// let cells = hide_in(&table, Mechanism::Own, HideIn::Incomplete, 0.3, &Run::new(0, 1)?)?;
/// assert_eq!((cells.column_rates[0], cells.hidden), (None, 24));
/// # Ok::<(), m3impute_core::Error>(())
/// ```
///
/// # Errors
/// As of [`hide`].
pub fn hide_in(table: &Table, mechanism: Mechanism, within: HideIn, rate: f64, run: &Run) -> Result<HiddenCells> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(request("rate", "a number above 0 and below 1".to_owned(), rate));
    }
    let mut eligible = eligible_rows(table);
    if eligible.iter().all(Vec::is_empty) {
        return Err(Error::EmptyTable { what: "observed cell in a column to fill" });
    }
    let mut notes = Vec::new();
    let is_complete = |rows: &Vec<usize>| rows.len() == table.rows();
    let no_pattern = eligible.iter().all(|rows| rows.is_empty() || is_complete(rows));
    if within == HideIn::Incomplete && !no_pattern {
        eligible.iter_mut().filter(|rows| is_complete(rows)).for_each(Vec::clear);
    }
    let patterns = (mechanism == Mechanism::Own && !no_pattern).then(|| own(table, &eligible, rate, run));
    let patterns = patterns.filter(|chances| chances.iter().flatten().any(|&chance| chance > 0.0));
    let follows = patterns.is_some() || mechanism != Mechanism::Own;
    let mechanism = if follows { mechanism } else { Mechanism::Mcar };
    if no_pattern && (!follows || within == HideIn::Incomplete) {
        notes.push(format!("no column to fill has a missing cell: cells are hidden by `{mechanism}` in all of them"));
    } else if !follows {
        notes.push(format!("too few values to follow the table's patterns: cells are hidden by `{mechanism}`"));
    }
    let at_random = || eligible.iter().map(|rows| vec![rate; rows.len()]).collect();
    let chances = match mechanism {
        Mechanism::Own | Mechanism::Mcar => patterns.unwrap_or_else(at_random),
        Mechanism::Mar => logistic::mar(table, &eligible, rate, 1.0, run, &mut notes)?,
        Mechanism::Mnar => logistic::mar(table, &eligible, rate, logistic::MNAR_KEPT, run, &mut notes)?,
        Mechanism::SelfMasked => logistic::self_masked(table, &eligible, rate, run),
        Mechanism::Quantile(tail) => quantile(table, &eligible, rate, tail, run),
    };
    Ok(draw(table, mechanism, &eligible, &chances, run, notes))
}

/// The table's own patterns: 1 for the cells that are hidden, 0 for the others.
fn own(table: &Table, eligible: &[Vec<usize>], rate: f64, run: &Run) -> Vec<Vec<f64>> {
    // A row in which only opaque columns are shown shows nothing to a method.
    let specs = table.schema().columns();
    let used: Vec<usize> = (0..table.cols()).filter(|&j| specs[j].is_used()).collect();
    let observed: Vec<bool> = (0..table.rows())
        .flat_map(|i| used.iter().map(move |&j| (i, j)))
        .map(|(i, j)| table.observed().get(i, j))
        .collect();
    let x: Vec<f64> = (0..table.rows()).flat_map(|i| used.iter().map(move |&j| table.number(i, j))).collect();
    let is_level: Vec<bool> = used.iter().map(|&j| matches!(table.values(j), Values::Codes(_))).collect();
    let matrix = Matrix { x: &x, observed: &observed, is_level: &is_level };
    let of_used: Vec<bool> = used.iter().map(|&j| !eligible[j].is_empty()).collect();
    let mut chances: Vec<Vec<f64>> = eligible.iter().map(|rows| vec![0.0; rows.len()]).collect();
    for (i, column) in heldout::cells_of(matrix, &of_used, rate, &mut run.rng("ampute patterns", 0)) {
        let j = used[column];
        if let Ok(at) = eligible[j].binary_search(&i) {
            chances[j][at] = 1.0;
        }
    }
    chances
}

/// For each column the rows of its eligible cells.
fn eligible_rows(table: &Table) -> Vec<Vec<usize>> {
    let columns = table.schema().columns().iter().enumerate();
    columns
        .map(|(j, spec)| {
            let rows = if spec.is_filled() { 0..table.rows() } else { 0..0 };
            rows.filter(|&i| table.observed().get(i, j)).collect()
        })
        .collect()
}

/// Hides each eligible cell with its own probability.
fn draw(
    table: &Table,
    mechanism: Mechanism,
    eligible: &[Vec<usize>],
    chances: &[Vec<f64>],
    run: &Run,
    mut notes: Vec<String>,
) -> HiddenCells {
    let mut shown = table.observed().clone();
    let mut column_rates = vec![None; table.cols()];
    let mut hidden = 0;
    for (j, (rows, chances)) in eligible.iter().zip(chances).enumerate().filter(|(_, (rows, _))| !rows.is_empty()) {
        let mut rng = run.rng("ampute", j as u64);
        let mut taken: Vec<usize> =
            rows.iter().zip(chances).filter(|&(_, &chance)| rng.random::<f64>() < chance).map(|(&i, _)| i).collect();
        if taken.len() == rows.len() {
            taken.swap_remove(rng.random_range(0..taken.len()));
            notes.push(format!(
                "column `{}` would have lost every observed cell: one stays",
                table.schema().columns()[j].name
            ));
        }
        taken.iter().for_each(|&i| shown.set(i, j, false));
        column_rates[j] = Some(taken.len() as f64 / rows.len() as f64);
        hidden += taken.len();
    }
    let eligible = eligible.iter().map(Vec::len).sum();
    HiddenCells { mechanism, shown, eligible, hidden, column_rates, notes }
}

/// Censoring: with `r` the rate, the tail holds the share `2r / (1 + r)` of the column, more where values are tied, and
/// its cells go missing with the probability that gives the rate (`(1 + r) / 2` without ties). So the tail is thinned
/// rather than cut off, at any rate.
fn quantile(table: &Table, eligible: &[Vec<usize>], rate: f64, tail: Tail, run: &Run) -> Vec<Vec<f64>> {
    let share = 2.0 * rate / (1.0 + rate);
    let of_column = |(j, rows): (usize, &Vec<usize>)| {
        let scores = Scores::of(table, j, run);
        let values: Vec<f64> = rows.iter().map(|&i| scores.of_cell(table.number(i, j))).collect();
        let mut sorted = values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let cells = |share: f64| ((share * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
        let lowest_of_largest = |k: usize| sorted[sorted.len() - k];
        let highest_of_smallest = |k: usize| sorted[k - 1];
        let (above, below) = match tail {
            _ if rows.is_empty() => (f64::INFINITY, f64::NEG_INFINITY),
            Tail::Upper => (lowest_of_largest(cells(share)), f64::NEG_INFINITY),
            Tail::Lower => (f64::INFINITY, highest_of_smallest(cells(share))),
            Tail::Both => (lowest_of_largest(cells(share / 2.0)), highest_of_smallest(cells(share / 2.0))),
        };
        let in_tail: Vec<bool> = values.iter().map(|&v| v >= above || v <= below).collect();
        let chance = rate * values.len() as f64 / in_tail.iter().filter(|&&t| t).count().max(1) as f64;
        in_tail.iter().map(|&t| if t { chance } else { 0.0 }).collect()
    };
    eligible.iter().enumerate().map(of_column).collect()
}

/// How the cells of a column count as numbers: numbers and ordered levels as they are; levels without an order by a
/// random score each, which is what a logistic function of their flags would do.
enum Scores {
    AsTheyAre,
    OfLevels(Vec<f64>),
}

impl Scores {
    fn of(table: &Table, j: usize, run: &Run) -> Scores {
        let spec: &ColumnSpec = &table.schema().columns()[j];
        if spec.kind != Kind::Categorical {
            return Scores::AsTheyAre;
        }
        let mut rng = run.rng("ampute levels", j as u64);
        Scores::OfLevels(spec.levels.iter().map(|_| normal(&mut rng)).collect())
    }

    fn of_cell(&self, number: f64) -> f64 {
        match self {
            Scores::OfLevels(scores) if !number.is_nan() => scores[number as usize],
            _ => number,
        }
    }
}

fn request(what: &str, expected: String, got: impl std::fmt::Display) -> Error {
    Error::Request { what: what.to_owned(), expected, got: got.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Role, Schema};
    use crate::table::Column;

    const N: usize = 4000;
    /// The mechanisms that draw each cell by itself and so reach any rate.
    const DRAWN: [Mechanism; 7] = [
        Mechanism::Mcar,
        Mechanism::Mar,
        Mechanism::Mnar,
        Mechanism::SelfMasked,
        Mechanism::Quantile(Tail::Upper),
        Mechanism::Quantile(Tail::Lower),
        Mechanism::Quantile(Tail::Both),
    ];

    /// Four correlated columns of numbers and two with levels, complete.
    pub(super) fn complete() -> Table {
        let run = Run::new(11, 1).unwrap();
        let mut rng = run.rng("test", 0);
        let base: Vec<f64> = (0..N).map(|_| normal(&mut rng)).collect();
        let mut schema: Vec<ColumnSpec> =
            ["a", "b", "c", "d"].into_iter().map(|name| ColumnSpec::new(name, Kind::Continuous)).collect();
        let mut columns: Vec<Column> = (0..4)
            .map(|_| Column::from_numbers(base.iter().map(|&z| 10.0 * (z + normal(&mut rng))).collect()))
            .collect();
        schema.push(ColumnSpec::with_levels("e", Kind::Categorical, ["u", "v", "w"]));
        schema.push(ColumnSpec::with_levels("f", Kind::Ordered, ["low", "mid", "high"]));
        columns.push(Column::from_codes((0..N).map(|_| rng.random_range(0..3)).collect()));
        columns.push(Column::from_codes(
            base.iter().map(|&z| if z < -0.5 { 0 } else { u32::from(z > 0.5) + 1 }).collect(),
        ));
        Table::new(Schema::new(schema).unwrap(), columns).unwrap()
    }

    pub(super) fn run(seed: u64) -> Run {
        Run::new(seed, 1).unwrap()
    }

    /// Four deviations of a share of `cells` draws: a fair draw fails this once in ten thousand seeds.
    pub(super) fn tolerance(rate: f64, cells: usize) -> f64 {
        4.0 * (rate * (1.0 - rate) / cells as f64).sqrt()
    }

    /// The correlation of being hidden with a number.
    pub(super) fn correlation(hidden: &[f64], values: &[f64]) -> f64 {
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let (mx, my) = (mean(hidden), mean(values));
        let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
        for (x, y) in hidden.iter().zip(values) {
            xy += (x - mx) * (y - my);
            xx += (x - mx) * (x - mx);
            yy += (y - my) * (y - my);
        }
        xy / (xx * yy).sqrt()
    }

    pub(super) fn hidden_in(cells: &HiddenCells, j: usize) -> Vec<f64> {
        cells.shown.column(j).iter().map(|&s| f64::from(u8::from(!s))).collect()
    }

    pub(super) fn numbers(table: &Table, j: usize) -> Vec<f64> {
        (0..table.rows()).map(|i| table.number(i, j)).collect()
    }

    #[test]
    fn every_mechanism_reaches_its_rate() {
        let table = complete();
        for mechanism in DRAWN {
            for (seed, rate) in [(0, 0.2), (1, 0.3), (2, 0.45)] {
                let cells = hide(&table, mechanism, rate, &run(seed)).unwrap();
                let bound = tolerance(rate, 6 * N);
                assert!((cells.rate() - rate).abs() < bound, "{mechanism} at {rate}: {} ± {bound}", cells.rate());
                assert!(cells.notes.is_empty(), "{mechanism}: {:?}", cells.notes);
                assert_eq!(cells.hidden, 6 * N - cells.shown.count());
            }
        }
    }

    #[test]
    fn the_same_seed_takes_the_same_cells() {
        let table = complete();
        for mechanism in Mechanism::ALL {
            let [one, again, other] = [5, 5, 6].map(|seed| hide(&table, mechanism, 0.3, &run(seed)).unwrap());
            assert!(one == again && one.shown != other.shown, "{mechanism}");
        }
    }

    #[test]
    fn mcar_does_not_look_at_values() {
        let table = complete();
        let cells = hide(&table, Mechanism::Mcar, 0.3, &run(3)).unwrap();
        for j in 0..6 {
            for k in 0..6 {
                let r = correlation(&hidden_in(&cells, j), &numbers(&table, k));
                assert!(r.abs() < 4.0 / (N as f64).sqrt(), "hidden cells of {j} and values of {k}: {r}");
            }
        }
    }

    #[test]
    fn censoring_takes_the_tail_only() {
        let table = complete();
        for (tail, upper, lower) in [(Tail::Upper, true, false), (Tail::Lower, false, true), (Tail::Both, true, true)] {
            let cells = hide(&table, Mechanism::Quantile(tail), 0.3, &run(4)).unwrap();
            let mut sorted = numbers(&table, 0);
            sorted.sort_unstable_by(f64::total_cmp);
            let hidden: Vec<f64> = (0..N).filter(|&i| !cells.shown.get(i, 0)).map(|i| table.number(i, 0)).collect();
            let share = 2.0 * 0.3 / 1.3 / if upper && lower { 2.0 } else { 1.0 };
            let k = (share * N as f64).ceil() as usize;
            let in_tail = |v: f64| (upper && v >= sorted[N - k]) || (lower && v <= sorted[k - 1]);
            assert!(hidden.iter().all(|&v| in_tail(v)), "{tail:?}");
            assert_eq!(hidden.iter().any(|&v| v > sorted[N / 2]), upper);
            assert_eq!(hidden.iter().any(|&v| v < sorted[N / 2]), lower);
        }
    }

    #[test]
    fn censoring_an_ordered_column_follows_the_order_of_its_levels() {
        let table = complete();
        let cells = hide(&table, Mechanism::Quantile(Tail::Upper), 0.2, &run(4)).unwrap();
        assert!((0..N).all(|i| cells.shown.get(i, 5) || table.number(i, 5) > 0.0));
    }

    #[test]
    fn missing_cells_stay_missing_and_do_not_count() {
        let mut table = complete();
        (0..N / 2).for_each(|i| table.hide(i, 0));
        for mechanism in DRAWN {
            let cells = hide(&table, mechanism, 0.3, &run(7)).unwrap();
            assert_eq!(cells.eligible, 6 * N - N / 2);
            assert!((0..N / 2).all(|i| !cells.shown.get(i, 0)));
            assert!((cells.rate() - 0.3).abs() < tolerance(0.3, cells.eligible), "{mechanism}: {}", cells.rate());
        }
    }

    /// `a` and `b` are missing together in every fifth row, `e` in every tenth; the others are complete.
    fn in_patterns() -> Table {
        let mut table = complete();
        (0..N).step_by(5).for_each(|i| [0, 1].into_iter().for_each(|j| table.hide(i, j)));
        (1..N).step_by(10).for_each(|i| table.hide(i, 4));
        table
    }

    #[test]
    fn own_patterns_are_repeated_in_incomplete_columns_alone() {
        let table = in_patterns();
        let cells = hide_in(&table, Mechanism::Own, HideIn::Incomplete, 0.1, &run(2)).unwrap();
        assert_eq!((cells.mechanism, cells.notes.len()), (Mechanism::Own, 0));
        assert!([2, 3, 5].iter().all(|&j| cells.column_rates[j].is_none()));
        assert!((0..N).all(|i| cells.shown.get(i, 0) == cells.shown.get(i, 1)));
        let rates = [0, 4].map(|j| cells.column_rates[j].unwrap());
        assert!(rates[0] > 1.5 * rates[1] && rates[1] > 0.02, "{rates:?}");
        assert!((cells.rate() - 0.1).abs() < 0.02, "{}", cells.rate());
    }

    #[test]
    fn complete_columns_lose_cells_where_all_are_asked_for_or_they_alone_are_filled() {
        let cells = hide(&in_patterns(), Mechanism::Own, 0.3, &run(2)).unwrap();
        assert!(cells.mechanism == Mechanism::Own && cells.column_rates.iter().all(|rate| rate.unwrap() > 0.05));
        let mut schema = in_patterns().schema().clone();
        (0..6).filter(|&j| j != 2).for_each(|j| schema.column_mut(j).role = Role::Predict);
        let table = in_patterns().with_schema(schema).unwrap();
        let cells = hide_in(&table, Mechanism::Own, HideIn::Incomplete, 0.3, &run(2)).unwrap();
        assert_eq!((cells.mechanism, cells.eligible), (Mechanism::Mcar, N));
    }

    #[test]
    fn a_table_without_a_missing_cell_has_no_pattern_and_a_note_says_so() {
        let cells = hide_in(&complete(), Mechanism::Own, HideIn::Incomplete, 0.3, &run(2)).unwrap();
        let note = "no column to fill has a missing cell: cells are hidden by `mcar` in all of them";
        assert_eq!((cells.mechanism, cells.notes[0].as_str()), (Mechanism::Mcar, note));
        assert_eq!(cells.shown, hide(&complete(), Mechanism::Mcar, 0.3, &run(2)).unwrap().shown);
        let few = in_patterns().select_rows(&[0, 1, 2, 3]);
        let cells = hide_in(&few, Mechanism::Own, HideIn::Incomplete, 0.5, &run(2)).unwrap();
        assert!(cells.notes[0].starts_with("too few values to follow") && cells.hidden > 0, "{:?}", cells.notes);
    }

    #[test]
    fn columns_that_are_not_to_fill_are_left_alone() {
        let mut schema = complete().schema().clone();
        schema.column_mut(0).role = Role::Ignore;
        schema.column_mut(1).role = Role::Predict;
        let table = complete().with_schema(schema).unwrap();
        for mechanism in Mechanism::ALL {
            let cells = hide(&table, mechanism, 0.3, &run(8)).unwrap();
            assert!((0..N).all(|i| cells.shown.get(i, 0) && cells.shown.get(i, 1)), "{mechanism}");
            assert_eq!((cells.eligible, cells.column_rates[0]), (4 * N, None));
            assert!((cells.rate() - 0.3).abs() < tolerance(0.3, 4 * N), "{mechanism}: {}", cells.rate());
        }
    }

    #[test]
    fn a_column_keeps_its_last_cell_with_a_note() {
        let table = complete().select_rows(&[0]);
        let cells = hide(&table, Mechanism::Mcar, 0.999, &run(0)).unwrap();
        assert_eq!((cells.hidden, cells.notes.len()), (0, 6));
        assert_eq!(cells.notes[0], "column `a` would have lost every observed cell: one stays");
    }

    #[test]
    fn a_rate_out_of_range_is_refused() {
        for rate in [0.0, 1.0, -0.1, f64::NAN] {
            let error = hide(&complete(), Mechanism::Mcar, rate, &run(0)).unwrap_err();
            assert!(error.to_string().starts_with("rate: expected a number above 0 and below 1, got `"), "{error}");
        }
    }

    #[test]
    fn names_are_read_back() {
        for mechanism in Mechanism::ALL {
            assert_eq!(Mechanism::parse(mechanism.name()).unwrap(), mechanism);
        }
        let error = Mechanism::parse("mxar").unwrap_err().to_string();
        assert!(error.starts_with("mechanism: expected one of `own`, ") && error.ends_with(", got `mxar`"), "{error}");
    }

    #[test]
    fn hidden_cells_are_gone_from_the_table() {
        let table = complete();
        let cells = hide(&table, Mechanism::Mcar, 0.3, &run(0)).unwrap();
        let left = without_hidden(&table, &cells.shown);
        assert_eq!(left.observed(), &cells.shown);
        let (i, j) = (0..N).map(|i| (i, 2)).find(|&(i, j)| !cells.shown.get(i, j)).unwrap();
        assert!(left.number(i, j).is_nan());
    }
}
