//! The opinion of those who see that a table was laid out: every combination of some values as often as every other.
//!
//! Such rows tell what a hole is not. In a table of four orientations of every building, of which three are there, the row
//! without one has the fourth; whoever learns from rows that are alike would name one of the three. Rows are compared by
//! their columns of few values, holes by what the networks say of them. Of each value of a hole so many rows are expected;
//! those that are there already are taken away.

use super::columns::Column;
use super::ensemble::Voices;
use super::grid::Grid;
use m3impute_core::{Error, ModelFile, Result, Run, Tensor};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Tables with more rows are not compared row by row.
const MOST_ROWS: usize = 5000;
/// Nor are those with more columns of few values.
const MOST_COLUMNS: usize = 100;
/// Rows that are less likely to be alike are not.
const LEAST: f32 = 0.03;
/// What remains of a level of which all rows are there already: it is asked how likely it was, and a table may not be laid
/// out as strictly as it seems. Of a number it is asked what lies in the middle, where a remainder of all others would count.
const DOUBT: f32 = 0.05;
/// Columns are related if they are by so many standard deviations more than by chance.
const SURELY: f64 = 3.0;
/// What is a hole rather than a value; the rest of it counts the holes of its column.
const HOLE: u32 = 1 << 31;

/// What rows are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// All columns of few values. Of a value as many rows are expected as the networks' share of it says.
    All,
    /// Those that tell nothing of the column in question: an outcome was not laid out, it followed. Of a value as many
    /// rows are expected as the column has of it.
    Free,
}

/// Both.
pub const BYS: [By; 2] = [By::All, By::Free];

/// Rows, seen through the columns of few values.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Which columns those are, `[c]`.
    pub columns: Vec<usize>,
    /// How many answers each has, `[c]`.
    answers: Vec<usize>,
    /// What remains of an answer that is taken away, `[c]`.
    doubt: Vec<f32>,
    /// The answer that each value is, or [`HOLE`] and which one of its column, `[n, c]`.
    cells: Vec<u32>,
    /// The shares of answers in each hole, `[c][holes, answers]`.
    shares: Vec<Vec<f32>>,
}

/// The rows of the table, and what is known of its columns.
#[derive(Clone, Debug)]
pub struct Design {
    /// The rows.
    pub rows: Rows,
    /// The shares of answers among the values of each column, `[c][answers]`.
    typical: Vec<Vec<f32>>,
    /// Which columns tell something of each other, `[c, c]`.
    related: Vec<bool>,
}

/// What is said of holes in a column, row by row, and whether any of it differs from what the networks say.
#[derive(Clone, Debug, Default)]
pub struct Left {
    /// The opinions.
    pub said: Vec<f32>,
    /// Whether other rows tell anything.
    pub tells: bool,
}

impl Rows {
    /// The rows of a table, with what networks say of the holes in its columns of few values.
    pub fn of(grid: &Grid, columns: &[Column], voices: &[Voices]) -> Rows {
        let (few, answers, doubt) = of_few_values(columns);
        let mut holes = vec![0; few.len()];
        let mut cells = Vec::with_capacity(grid.n * few.len());
        for i in 0..grid.n {
            for (&f, holes) in few.iter().zip(&mut holes) {
                let at = i * grid.m + f;
                let column = &columns[f];
                cells.push(if grid.observed[at] {
                    column.answer_of(grid.x[at]).unwrap_or(column.answers()) as u32
                } else {
                    *holes += 1;
                    HOLE | (*holes - 1)
                });
            }
        }
        let shares = few.iter().map(|&f| voices[f][0].clone()).collect();
        Rows { columns: few, answers, doubt, cells, shares }
    }

    fn each(&self) -> std::slice::ChunksExact<'_, u32> {
        self.cells.chunks_exact(self.columns.len())
    }

    fn shares_of(&self, k: usize, hole: u32) -> &[f32] {
        let (hole, width) = ((hole & !HOLE) as usize, self.answers[k]);
        &self.shares[k][hole * width..(hole + 1) * width]
    }

    /// How likely two cells of a column are the same.
    fn likeness(&self, a: u32, other: &Rows, b: u32, k: usize) -> f32 {
        match (a & HOLE != 0, b & HOLE != 0) {
            (false, false) => f32::from(u8::from(a == b)),
            (false, true) => other.shares_of(k, b).get(a as usize).copied().unwrap_or(0.0),
            (true, false) => self.shares_of(k, a).get(b as usize).copied().unwrap_or(0.0),
            (true, true) => self.shares_of(k, a).iter().zip(other.shares_of(k, b)).map(|(a, b)| a * b).sum(),
        }
    }
}

impl Design {
    /// Whether a table can be looked at in this way.
    pub fn is_possible(n: usize, columns: &[Column]) -> bool {
        n <= MOST_ROWS && (2..=MOST_COLUMNS).contains(&of_few_values(columns).0.len())
    }

    /// What those rows tell of their columns.
    pub fn new(rows: Rows) -> Design {
        let c = rows.columns.len();
        let typical = |k: usize| {
            let mut counts = vec![0.0; rows.answers[k]];
            for row in rows.each().filter(|row| (row[k] as usize) < rows.answers[k]) {
                counts[row[k] as usize] += 1.0;
            }
            let total = counts.iter().sum::<f32>().max(1.0);
            counts.into_iter().map(|n| n / total).collect()
        };
        let typical = (0..c).map(typical).collect();
        let related = (0..c * c).map(|at| is_related(&rows, at / c, at % c)).collect();
        Design { typical, related, rows }
    }

    /// What is left for the holes of some rows: of each column, cell by cell in the order of rows. A row that is not one
    /// of the table's, in which the same is missing, takes nobody's place: of its holes the networks' word stands.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn say(
        &self,
        by: By,
        rows: &Rows,
        asked: impl Fn(usize, usize) -> bool + Sync,
        run: &Run,
    ) -> Result<Vec<Left>> {
        let all: Vec<&[u32]> = rows.each().collect();
        let of_row = |(i, row): (usize, &&[u32])| {
            run.check()?;
            let is_wanted = |&k: &usize| row[k] & HOLE != 0 && asked(i, rows.columns[k]);
            let wanted: Vec<usize> = (0..row.len()).filter(is_wanted).collect();
            let left = if wanted.is_empty() { Vec::new() } else { self.say_row(by, rows, row, &wanted) };
            Ok((wanted, left))
        };
        type OfRow = Result<(Vec<usize>, Vec<Left>)>;
        let of_rows: Vec<OfRow> = run.install(|| all.par_iter().enumerate().map(of_row).collect());
        let mut of_columns = vec![Left::default(); rows.columns.len()];
        for of_row in of_rows {
            let (wanted, left) = of_row?;
            for (k, left) in wanted.into_iter().zip(left) {
                of_columns[k].said.extend(left.said);
                of_columns[k].tells |= left.tells;
            }
        }
        Ok(of_columns)
    }

    /// The same for the wanted holes of one row.
    fn say_row(&self, by: By, rows: &Rows, row: &[u32], wanted: &[usize]) -> Vec<Left> {
        let c = row.len();
        let counts = |k: usize, e: usize| e != k && (by == By::All || !self.related[k * c + e]);
        // Rows in which no value that both show differs, where it counts for all that is wanted.
        let matters: Vec<bool> = (0..c).map(|e| wanted.iter().all(|&k| k == e || counts(k, e))).collect();
        let differs = |e: usize, a: u32, b: u32| matters[e] && (a | b) & HOLE == 0 && a != b;
        let is_alike = |other: &&[u32]| !(0..c).any(|e| differs(e, row[e], other[e]));
        let alike: Vec<&[u32]> = self.rows.each().filter(is_alike).collect();
        let is_same = |(&a, &b): (&u32, &u32)| if a & HOLE != 0 { b & HOLE != 0 } else { a == b };
        let is_known = alike.iter().any(|other| row.iter().zip(*other).all(is_same));
        // The rows that are there already, by their value, and those in which it is missing too.
        let mut there: Vec<Vec<f32>> = wanted.iter().map(|&k| vec![0.0; self.rows.answers[k]]).collect();
        let mut open = vec![0.0; wanted.len()];
        for other in alike.iter().filter(|_| is_known) {
            let likeness: Vec<f32> = (0..c).map(|e| rows.likeness(row[e], &self.rows, other[e], e)).collect();
            for ((&k, there), open) in wanted.iter().zip(&mut there).zip(&mut open) {
                let alike = (0..c).filter(|&e| counts(k, e)).map(|e| likeness[e]).product::<f32>();
                match there.get_mut(other[k] as usize) {
                    _ if alike < LEAST => {}
                    Some(there) => *there += alike,
                    None => *open += alike,
                }
            }
        }
        let left = |((&k, there), open): ((&usize, Vec<f32>), f32)| {
            let word = rows.shares_of(k, row[k]);
            let expected = if by == By::All { word } else { &self.typical[k] };
            let all = there.iter().sum::<f32>() + open.max(1.0);
            let doubt = rows.doubt[k];
            let left = |((w, e), t): ((&f32, &f32), &f32)| w * (1.0 - t / (e * all).max(f32::MIN_POSITIVE)).max(doubt);
            let mut said: Vec<f32> = word.iter().zip(expected).zip(&there).map(left).collect();
            let total: f32 = said.iter().sum();
            let tells = total > 0.0 && there.iter().any(|t| *t > 0.0);
            said.iter_mut().for_each(|s| *s /= total);
            Left { said: if tells { said } else { word.to_vec() }, tells }
        };
        wanted.iter().zip(there).zip(open).map(left).collect()
    }

    /// Puts the rows into a file.
    pub fn store(&self, tensors: &mut BTreeMap<String, Tensor>) {
        let Rows { columns, answers, cells, shares, .. } = &self.rows;
        let shape = vec![cells.len() / columns.len(), columns.len()];
        tensors.insert("design.cells".to_owned(), Tensor::U32(shape, cells.clone()));
        for (k, (shares, width)) in shares.iter().zip(answers).enumerate() {
            let shape = vec![shares.len() / width, *width];
            tensors.insert(format!("design.{k}"), Tensor::F32(shape, shares.clone()));
        }
    }

    /// The rows back from a file.
    ///
    /// # Errors
    /// When something is missing or does not fit the columns.
    pub fn restore(file: &ModelFile, columns: &[Column]) -> Result<Design> {
        let (few, answers, doubt) = of_few_values(columns);
        let (shape, cells) = file.u32s("design.cells")?;
        let damaged = || Error::damaged("the rows of the design");
        if !(2..=MOST_COLUMNS).contains(&few.len()) || shape.len() != 2 || shape[1] != few.len() {
            return Err(damaged());
        }
        let mut shares = Vec::with_capacity(few.len());
        for (k, &width) in answers.iter().enumerate() {
            let (shape, of) = file.f32s(&format!("design.{k}"))?;
            let fits = |&cell: &u32| match cell & HOLE {
                0 => cell as usize <= width,
                _ => ((cell & !HOLE) as usize) < shape[0],
            };
            if shape.len() != 2 || shape[1] != width || !cells.iter().skip(k).step_by(few.len()).all(fits) {
                return Err(damaged());
            }
            shares.push(of.to_vec());
        }
        Ok(Design::new(Rows { columns: few, answers, doubt, cells: cells.to_vec(), shares }))
    }
}

/// The columns of few values, how many each has, and how much doubt.
fn of_few_values(columns: &[Column]) -> (Vec<usize>, Vec<usize>, Vec<f32>) {
    let few: Vec<usize> = (0..columns.len()).filter(|&f| columns[f].has_shares()).collect();
    let answers = few.iter().map(|&f| columns[f].answers()).collect();
    let doubt = few.iter().map(|&f| if columns[f].is_number() { 0.0 } else { DOUBT }).collect();
    (few, answers, doubt)
}

/// Whether two columns tell something of each other: whether pairs of values occur more often or less than by chance.
fn is_related(of: &Rows, k: usize, e: usize) -> bool {
    let (rows, cols) = (of.answers[k], of.answers[e]);
    let mut counts = vec![0_u32; rows * cols];
    for row in of.each().filter(|row| (row[k] as usize) < rows && (row[e] as usize) < cols) {
        counts[row[k] as usize * cols + row[e] as usize] += 1;
    }
    let of_rows: Vec<f64> = counts.chunks_exact(cols).map(|row| f64::from(row.iter().sum::<u32>())).collect();
    let of_cols: Vec<f64> =
        (0..cols).map(|j| counts.iter().skip(j).step_by(cols).map(|n| f64::from(*n)).sum()).collect();
    let total: f64 = of_rows.iter().sum();
    // Pearson's statistic, whose mean by chance is the freedom that there is, and its variance twice that.
    let mut square = 0.0;
    for (at, &count) in counts.iter().enumerate() {
        let expected = of_rows[at / cols] * of_cols[at % cols] / total.max(1.0);
        square += if expected > 0.0 { (f64::from(count) - expected).powi(2) / expected } else { 0.0 };
    }
    let freedom = ((rows - 1) * (cols - 1)) as f64;
    square > freedom + SURELY * (2.0 * freedom).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::encode::Meaning;

    /// Every combination of four and six values, in rows with a third column of either of two that does not matter.
    fn grid() -> Grid {
        let x = (0..48).flat_map(|i| [(i % 4) as f32, (i / 4 % 6) as f32, (i / 24) as f32]).collect();
        Grid { n: 48, m: 3, x, observed: vec![true; 48 * 3] }
    }

    fn columns() -> Vec<Column> {
        let of = |f: usize| {
            let values: Vec<f32> = grid().x.iter().skip(f).step_by(3).copied().collect();
            Column::of(&values, Meaning::Number, (8, 8))
        };
        (0..3).map(of).collect()
    }

    /// The rows without some cells, of which networks would say that every value is as likely as every other.
    fn design(grid: &Grid) -> Design {
        let voices = |(f, column): (usize, &Column)| {
            let holes = grid.observed.iter().skip(f).step_by(3).filter(|o| !**o).count();
            [vec![1.0 / column.answers() as f32; holes * column.answers()], Vec::new()]
        };
        let voices: Vec<Voices> = columns().iter().enumerate().map(voices).collect();
        Design::new(Rows::of(grid, &columns(), &voices))
    }

    fn without(holes: &[(usize, usize)]) -> Grid {
        let mut grid = grid();
        holes.iter().for_each(|(i, f)| grid.observed[i * 3 + f] = false);
        grid
    }

    fn left(design: &Design, of: &Design, by: By, f: usize) -> Left {
        design.say(by, &of.rows, |_, asked| asked == f, &Run::new(0, 1).unwrap()).unwrap().remove(f)
    }

    /// Whether shares are in proportion to these.
    fn close(said: &[f32], to: &[f32]) -> bool {
        let total: f32 = to.iter().sum();
        said.len() == to.len() && said.iter().zip(to).all(|(a, b)| (a - b / total).abs() < 1e-3)
    }

    #[test]
    fn what_other_rows_have_is_taken_away() {
        // Rows 4 to 7 differ in the first column alone. One is missing there; then two; then one of a row whose twin
        // lacks another value: it is one in six that this is the same.
        let one = design(&without(&[(5, 0)]));
        assert!(close(&left(&one, &one, By::All, 0).said, &[0.0, 1.0, 0.0, 0.0]));
        let two = design(&without(&[(5, 0), (7, 0)]));
        let said = left(&two, &two, By::All, 0).said;
        assert!(said.chunks(4).all(|said| close(said, &[0.0, 1.0, 0.0, 1.0])), "{said:?}");
        let unsure = design(&without(&[(5, 0), (6, 1)]));
        let said = left(&unsure, &unsure, By::All, 0).said;
        // Three and a sixth rows in all: a quarter of them is 0.792 of each value, of which a sixth is there.
        assert!(close(&said, &[0.0, 1.0, 1.0 - 0.1667 / 0.792, 0.0]), "{said:?}");
    }

    #[test]
    fn some_doubt_remains_of_a_level() {
        let levels: Vec<f32> = (0..48).map(|i| (i % 4) as f32).collect();
        let mut columns = columns();
        columns[0] = Column::of(&levels, Meaning::Category(4), (8, 8));
        let voices = [[vec![0.25; 4], Vec::new()], Voices::default(), Voices::default()];
        let rows = Design::new(Rows::of(&without(&[(5, 0)]), &columns, &voices));
        let said = left(&rows, &rows, By::All, 0).said;
        assert!(close(&said, &[DOUBT, 1.0, DOUBT, DOUBT]), "{said:?}");
    }

    #[test]
    fn rows_that_have_nothing_in_common_tell_nothing() {
        // Without the others of its kind a row is left with what networks say.
        let holes: Vec<(usize, usize)> = [4, 5, 6, 7].into_iter().map(|i| (i, 0)).collect();
        let alone = design(&without(&holes));
        for by in BYS {
            let Left { said, tells } = left(&alone, &alone, by, 0);
            assert!(!tells && said == [0.25; 16]);
        }
    }

    #[test]
    fn what_follows_from_a_value_does_not_tell_its_rows_apart() {
        // The third column says whether the first is above 1; each combination of the first two is there twice.
        let follow = |holes: &[(usize, usize)]| {
            let mut grid = without(holes);
            (0..48).for_each(|i| grid.x[i * 3 + 2] = f32::from(u8::from(grid.x[i * 3] > 1.0)));
            grid
        };
        let rows = design(&follow(&[(5, 0)]));
        assert!(rows.related[2] && rows.related[6] && !rows.related[1]);
        // Seven of eight rows are there, two of each value but one, of which the column has 11 in 47, and 12 of the others.
        let (some, all) = (1.0 - 47.0 / 88.0, 1.0 - 47.0 / 48.0);
        assert!(close(&left(&rows, &rows, By::Free, 0).said, &[all, some, all, all]));
        // By all columns it is compared with those of the same outcome alone: networks that know better would expect no
        // others.
        let all = left(&rows, &rows, By::All, 0).said;
        assert!(all[2] > all[0] && all[3] > all[0], "{all:?}");
    }

    #[test]
    fn a_row_that_was_not_there_takes_nobodys_place() {
        let all = design(&without(&[(9, 1)]));
        let hidden = design(&without(&[(5, 0)]));
        for by in BYS {
            let Left { said, tells } = left(&all, &hidden, by, 0);
            assert!(!tells && said == [0.25; 4]);
        }
    }

    #[test]
    fn a_long_table_or_one_without_few_values_is_none() {
        assert!(Design::is_possible(48, &columns()) && !Design::is_possible(MOST_ROWS + 1, &columns()));
        assert!(!Design::is_possible(48, &columns()[..1]));
        assert!(!Design::is_possible(48, &vec![columns().remove(0); MOST_COLUMNS + 1]));
    }
}
