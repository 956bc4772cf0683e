//! The opinion of those who see that a table was laid out: every combination of some values as often as every other.
//!
//! Such rows tell what a hole is not. In a table of four orientations of every building, of which three are there, the row
//! without one has the fourth; whoever learns from rows that are alike would name one of the three. Rows are compared by
//! their columns of few values, holes by what the networks say of them: of each value of a hole, as many rows are
//! expected as the networks' share of it says, and those that are there already are taken away.

use super::columns::Column;
use super::ensemble::Voices;
use super::grid::Grid;
use m3impute_core::{Error, ModelFile, Result, Run, Tensor};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Tables with more rows are not compared row by row.
const MOST_ROWS: usize = 5000;
/// Rows that are less likely to be alike are not.
const LEAST: f32 = 0.03;
/// What is a hole rather than a value; the rest of it counts the holes of its column.
const HOLE: u32 = 1 << 31;

/// Rows, seen through the columns of few values.
#[derive(Clone, Debug)]
pub struct Design {
    /// Which columns those are.
    columns: Vec<usize>, // [c]
    /// The answer that each value is, or [`HOLE`] and which one of its column, `[n, c]`.
    cells: Vec<u32>,
    /// The shares of answers in each hole, `[c][holes, answers]`.
    shares: Vec<Vec<f32>>,
    /// How many answers there are, `[c]`.
    answers: Vec<usize>,
}

/// What is said of holes in a column, row by row, and whether any of it differs from what the networks say.
#[derive(Clone, Debug, Default)]
pub struct Left {
    /// The opinions.
    pub said: Vec<f32>,
    /// Whether other rows tell anything.
    pub tells: bool,
}

impl Design {
    /// Whether a table can be looked at in this way.
    pub fn is_possible(n: usize, columns: &[Column]) -> bool {
        n <= MOST_ROWS && columns.iter().filter(|column| column.has_shares()).count() > 1
    }

    /// The rows of a table, with what networks say of the holes in its columns of few values.
    pub fn of(grid: &Grid, columns: &[Column], voices: &[Voices]) -> Design {
        let few: Vec<usize> = (0..grid.m).filter(|&f| columns[f].has_shares()).collect();
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
        Design { cells, shares, answers: few.iter().map(|&f| columns[f].answers()).collect(), columns: few }
    }

    fn row(&self, i: usize) -> &[u32] {
        &self.cells[i * self.columns.len()..(i + 1) * self.columns.len()]
    }

    fn shares_of(&self, k: usize, hole: u32) -> &[f32] {
        let (hole, width) = ((hole & !HOLE) as usize, self.answers[k]);
        &self.shares[k][hole * width..(hole + 1) * width]
    }

    /// How likely two cells of a column are the same.
    fn likeness(&self, a: u32, other: &Design, b: u32, k: usize) -> f32 {
        match (a & HOLE != 0, b & HOLE != 0) {
            (false, false) => f32::from(u8::from(a == b)),
            (false, true) => other.shares_of(k, b).get(a as usize).copied().unwrap_or(0.0),
            (true, false) => self.shares_of(k, a).get(b as usize).copied().unwrap_or(0.0),
            (true, true) => self.shares_of(k, a).iter().zip(other.shares_of(k, b)).map(|(a, b)| a * b).sum(),
        }
    }

    /// Whether two rows show the same values in the same places.
    fn is_same(a: &[u32], b: &[u32]) -> bool {
        a.iter().zip(b).all(|(&a, &b)| if a & HOLE != 0 { b & HOLE != 0 } else { a == b })
    }

    /// What is left for the holes of some rows: of each column, cell by cell in the order of rows. A row that is not one
    /// of these, in which the same is missing, takes nobody's place: of its holes the networks' word stands.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn say(&self, rows: &Design, asked: impl Fn(usize, usize) -> bool + Sync, run: &Run) -> Result<Vec<Left>> {
        let c = self.columns.len();
        let n = rows.cells.len() / c;
        let of_rows: Vec<Result<Vec<(usize, Left)>>> =
            run.install(|| (0..n).into_par_iter().map(|i| self.say_row(rows, i, &asked, run)).collect());
        let mut all = vec![Left::default(); c];
        for of_row in of_rows {
            for (k, left) in of_row? {
                all[k].said.extend(left.said);
                all[k].tells |= left.tells;
            }
        }
        Ok(all)
    }

    fn say_row(
        &self,
        rows: &Design,
        i: usize,
        asked: &(impl Fn(usize, usize) -> bool + Sync),
        run: &Run,
    ) -> Result<Vec<(usize, Left)>> {
        let row = rows.row(i);
        let wanted: Vec<usize> = (0..row.len()).filter(|&k| row[k] & HOLE != 0 && asked(i, self.columns[k])).collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        run.check()?;
        // Rows in which no value that both show differs.
        let is_other = |&(&a, &b): &(&u32, &u32)| (a | b) & HOLE == 0 && a != b;
        let alike: Vec<&[u32]> = self
            .cells
            .chunks_exact(row.len())
            .filter(|other| !row.iter().zip(*other).any(|ab| is_other(&ab)))
            .collect();
        let is_known = alike.iter().any(|other| Self::is_same(row, other));
        // The rows that are there already, by their value, and those in which it is missing too.
        let mut there: Vec<Vec<f32>> = wanted.iter().map(|&k| vec![0.0; self.answers[k]]).collect();
        let mut open = vec![0.0; wanted.len()];
        for other in alike.iter().filter(|_| is_known) {
            let likeness = |e: usize| rows.likeness(row[e], self, other[e], e);
            let likeness: Vec<f32> = (0..row.len()).map(likeness).collect();
            for ((&k, there), open) in wanted.iter().zip(&mut there).zip(&mut open) {
                let alike = likeness[..k].iter().chain(&likeness[k + 1..]).product::<f32>();
                if alike >= LEAST {
                    *there.get_mut(other[k] as usize).unwrap_or(open) += alike;
                }
            }
        }
        let left = |((&k, there), open): ((&usize, Vec<f32>), f32)| {
            let expected = rows.shares_of(k, row[k]);
            let all = there.iter().sum::<f32>() + open.max(1.0);
            let mut said: Vec<f32> = expected.iter().zip(&there).map(|(e, t)| (e * all - t).max(0.0)).collect();
            let total: f32 = said.iter().sum();
            if total <= 0.0 || there.iter().all(|t| *t == 0.0) {
                return (k, Left { said: expected.to_vec(), tells: false });
            }
            said.iter_mut().for_each(|s| *s /= total);
            (k, Left { said, tells: true })
        };
        Ok(wanted.iter().zip(there).zip(open).map(left).collect())
    }

    /// Which columns are looked at.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Puts the rows into a file.
    pub fn store(&self, tensors: &mut BTreeMap<String, Tensor>) {
        let c = self.columns.len();
        tensors.insert("design.cells".to_owned(), Tensor::U32(vec![self.cells.len() / c, c], self.cells.clone()));
        for (k, shares) in self.shares.iter().enumerate() {
            let shape = vec![shares.len() / self.answers[k], self.answers[k]];
            tensors.insert(format!("design.{k}"), Tensor::F32(shape, shares.clone()));
        }
    }

    /// The rows back from a file.
    ///
    /// # Errors
    /// When something is missing or does not fit the columns.
    pub fn restore(file: &ModelFile, columns: &[Column]) -> Result<Design> {
        let few: Vec<usize> = (0..columns.len()).filter(|&f| columns[f].has_shares()).collect();
        let answers: Vec<usize> = few.iter().map(|&f| columns[f].answers()).collect();
        let (shape, cells) = file.u32s("design.cells")?;
        let damaged = || Error::damaged("the rows of the design");
        if few.len() < 2 || shape.len() != 2 || shape[1] != few.len() {
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
        Ok(Design { columns: few, cells: cells.to_vec(), shares, answers })
    }
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
        Design::of(grid, &columns(), &voices)
    }

    fn without(holes: &[(usize, usize)]) -> Grid {
        let mut grid = grid();
        holes.iter().for_each(|(i, f)| grid.observed[i * 3 + f] = false);
        grid
    }

    fn left(rows: &Design, of: &Design, f: usize) -> Left {
        rows.say(of, |_, asked| asked == f, &Run::new(0, 1).unwrap()).unwrap().remove(f)
    }

    #[test]
    fn what_other_rows_have_is_taken_away() {
        // Rows 4 to 7 differ in the first column alone. One is missing there; then two; then one of a row whose twin
        // lacks another value: it is one in six that this is the same.
        let one = design(&without(&[(5, 0)]));
        assert_eq!(left(&one, &one, 0).said, [0.0, 1.0, 0.0, 0.0]);
        let two = design(&without(&[(5, 0), (7, 0)]));
        assert_eq!(left(&two, &two, 0).said, [0.0, 0.5, 0.0, 0.5].repeat(2));
        let unsure = design(&without(&[(5, 0), (6, 1)]));
        let said = left(&unsure, &unsure, 0).said;
        // Three and a sixth rows in all: a quarter of them is 0.79 of each value, less the sixth.
        let expected = [0.0, 0.5588, 0.4412, 0.0];
        assert!(said.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-3), "{said:?}");
    }

    #[test]
    fn rows_that_have_nothing_in_common_tell_nothing() {
        // Without the others of its kind a row is left with what networks say.
        let holes: Vec<(usize, usize)> = [4, 5, 6, 7].into_iter().map(|i| (i, 0)).collect();
        let alone = design(&without(&holes));
        let Left { said, tells } = left(&alone, &alone, 0);
        assert!(!tells && said == [0.25; 16]);
    }

    #[test]
    fn a_row_that_was_not_there_takes_nobodys_place() {
        let all = design(&without(&[(9, 1)]));
        let hidden = design(&without(&[(5, 0)]));
        let Left { said, tells } = left(&all, &hidden, 0);
        assert!(!tells && said == [0.25; 4]);
    }

    #[test]
    fn a_long_table_or_one_without_few_values_is_none() {
        assert!(Design::is_possible(48, &columns()) && !Design::is_possible(MOST_ROWS + 1, &columns()));
        assert!(!Design::is_possible(48, &columns()[..1]));
    }
}
