//! A detector of factorial designs: combinations that are already present rule out values for a missing cell.
//!
//! In a full factorial table of four orientations of every building, of which three are present, the row without one has
//! the fourth; a model of similar rows would predict one of the three. Rows are compared by their columns of few values,
//! with the networks' predictions for missing cells. From the expected number of rows with each value, those that are
//! present are subtracted.

use super::{Context, FittedFolds, FittedRowMember, Predicted, Request, RowMember, Section};
use crate::columns::Columns;
use crate::folds::Fold;
use m3impute_core::explain::KeptNumbers;
use m3impute_core::{Error, ModelFile, Result, Run, Tensor};
use m3impute_gnn::network::Grid;
use m3impute_learners::Response;
use rayon::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;

/// Tables with more rows are not compared row by row.
const MOST_ROWS: usize = 5000;
/// Nor are those with more columns of few values.
const MOST_COLUMNS: usize = 100;
/// Rows that match with less probability do not count.
const LEAST: f32 = 0.03;
/// The share of its probability that a level keeps when all its rows are present: log loss punishes a zero, and a table
/// may not be strictly factorial. Numbers are filled with the median, which such remainders would move.
const DOUBT: f32 = 0.05;
/// Columns are related if Pearson's statistic is so many standard deviations above its mean.
const SURELY: f64 = 3.0;
/// The bit that marks a missing cell; the other bits are then its index among the missing cells of its column.
const MISSING: u32 = 1 << 31;

/// The columns by which rows are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// All columns of few values. The expected share of rows with a value is its probability by the networks.
    All,
    /// Those that are unrelated to the target column, because an outcome of it is no factor. The expected share of rows
    /// with a value is its share in the column.
    Unrelated,
}

/// Both, one output each.
const BYS: [By; 2] = [By::All, By::Unrelated];

/// The member.
#[derive(Debug)]
pub struct Factorial;

impl RowMember for Factorial {
    fn name(&self) -> &'static str {
        "factorial"
    }

    fn outputs(&self) -> usize {
        BYS.len()
    }

    fn needs(&self) -> Option<&'static str> {
        Some("network")
    }

    fn is_possible(&self, rows: usize, context: Context<'_>) -> bool {
        let factors = Factors::of(context.columns);
        context.budget.is_enough_for_mixtures && rows <= MOST_ROWS && factors.are_enough()
    }

    fn fit(&self, folds: &[&Fold], needed: &[Predicted], context: Context<'_>) -> Result<FittedFolds> {
        let fit = |(fold, needed): (&&Fold, &Predicted)| {
            let factors = Factors::of(context.columns);
            let rows = Rows::of(&fold.grid, factors, context.columns, &needed[0]);
            Some(Box::new(Design::new(rows, context.columns.clone())) as Box<dyn FittedRowMember>)
        };
        Ok(FittedFolds { models: folds.iter().zip(needed).map(fit).collect(), ..FittedFolds::default() })
    }

    fn restore(&self, section: &Section<'_>, columns: &Columns) -> Result<Box<dyn FittedRowMember>> {
        Ok(Box::new(Design::restore(section.file, section.prefix, columns)?))
    }
}

/// The columns of few values.
#[derive(Clone, Debug)]
struct Factors {
    /// Which columns those are, `[c]`.
    columns: Vec<usize>,
    /// How many values each has, `[c]`.
    classes: Vec<usize>,
    /// The share of its probability that a value keeps when it is ruled out, `[c]`.
    doubt: Vec<f32>,
}

impl Factors {
    fn of(columns: &Columns) -> Factors {
        let of = &columns.responses;
        let few: Vec<usize> = (0..of.len()).filter(|&f| of[f] != Response::Number).collect();
        let classes = few.iter().map(|&f| of[f].classes()).collect();
        let doubt = few.iter().map(|&f| if of[f].is_number() { 0.0 } else { DOUBT }).collect();
        Factors { columns: few, classes, doubt }
    }

    fn are_enough(&self) -> bool {
        (2..=MOST_COLUMNS).contains(&self.columns.len())
    }
}

/// Rows, seen through the columns of few values.
#[derive(Clone, Debug)]
struct Rows {
    factors: Factors,
    /// The class of each value, or [`MISSING`] and its index in the column, `[n, c]`.
    cells: Vec<u32>,
    /// The probabilities of each missing cell, `[c][missing, classes]`.
    shares: Vec<Vec<f32>>,
}

/// The rows of the table, with the class shares and relations of its columns.
#[derive(Clone, Debug)]
struct Design {
    columns: Columns,
    rows: Rows,
    /// The shares of classes among the values of each column, `[c][classes]`.
    marginals: Vec<Vec<f32>>,
    /// Which columns are related, `[c, c]`.
    related: Vec<bool>,
}

impl Rows {
    /// The rows of a table, with the networks' predictions for missing cells of columns of few values, `[m]`.
    fn of(grid: &Grid, factors: Factors, columns: &Columns, predicted: &[Vec<f32>]) -> Rows {
        let mut missing = vec![0; factors.columns.len()];
        let mut cells = Vec::with_capacity(grid.n * factors.columns.len());
        for i in 0..grid.n {
            for (&f, missing) in factors.columns.iter().zip(&mut missing) {
                let at = i * grid.m + f;
                let response = &columns.responses[f];
                cells.push(if grid.observed[at] {
                    response.class_of(grid.x[at]).unwrap_or(response.classes()) as u32
                } else {
                    *missing += 1;
                    MISSING | (*missing - 1)
                });
            }
        }
        let shares = factors.columns.iter().map(|&f| predicted[f].clone()).collect();
        Rows { factors, cells, shares }
    }

    fn each(&self) -> std::slice::ChunksExact<'_, u32> {
        self.cells.chunks_exact(self.factors.columns.len())
    }

    fn shares_of(&self, k: usize, cell: u32) -> &[f32] {
        let (missing, width) = ((cell & !MISSING) as usize, self.factors.classes[k]);
        &self.shares[k][missing * width..(missing + 1) * width]
    }

    /// The probability that two cells of a column are the same.
    fn match_of(&self, a: u32, other: &Rows, b: u32, k: usize) -> f32 {
        match (a & MISSING != 0, b & MISSING != 0) {
            (false, false) => f32::from(u8::from(a == b)),
            (false, true) => other.shares_of(k, b).get(a as usize).copied().unwrap_or(0.0),
            (true, false) => self.shares_of(k, a).get(b as usize).copied().unwrap_or(0.0),
            (true, true) => self.shares_of(k, a).iter().zip(other.shares_of(k, b)).map(|(a, b)| a * b).sum(),
        }
    }
}

impl Design {
    /// Computes class shares and relations of the columns.
    fn new(rows: Rows, columns: Columns) -> Design {
        let (c, classes) = (rows.factors.columns.len(), &rows.factors.classes);
        let marginal = |k: usize| {
            let mut counts = vec![0.0; classes[k]];
            for row in rows.each().filter(|row| (row[k] as usize) < classes[k]) {
                counts[row[k] as usize] += 1.0;
            }
            let total = counts.iter().sum::<f32>().max(1.0);
            counts.into_iter().map(|n| n / total).collect()
        };
        let marginals = (0..c).map(marginal).collect();
        let related = (0..c * c).map(|at| is_related(&rows, at / c, at % c)).collect();
        Design { columns, marginals, related, rows }
    }

    /// The probabilities of the requested missing cells after subtracting the rows that are present: for each column of few
    /// values, cell by cell in the order of rows. A row that is not in the table keeps the networks' predictions.
    fn left(
        &self,
        by: By,
        rows: &Rows,
        is_requested: impl Fn(usize, usize) -> bool + Sync,
        run: &Run,
    ) -> Result<Vec<Vec<f32>>> {
        let all: Vec<&[u32]> = rows.each().collect();
        let of_row = |(i, row): (usize, &&[u32])| {
            run.check()?;
            let is_target = |&k: &usize| row[k] & MISSING != 0 && is_requested(i, rows.factors.columns[k]);
            let targets: Vec<usize> = (0..row.len()).filter(is_target).collect();
            let left = if targets.is_empty() { Vec::new() } else { self.left_in_row(by, rows, row, &targets) };
            Ok((targets, left))
        };
        type OfRow = Result<(Vec<usize>, Vec<Vec<f32>>)>;
        let of_rows: Vec<OfRow> = run.install(|| all.par_iter().enumerate().map(of_row).collect());
        let mut of_columns = vec![Vec::new(); rows.factors.columns.len()];
        for of_row in of_rows {
            let (targets, left) = of_row?;
            targets.into_iter().zip(left).for_each(|(k, left)| of_columns[k].extend(left));
        }
        Ok(of_columns)
    }

    /// The same for the target cells of one row.
    fn left_in_row(&self, by: By, rows: &Rows, row: &[u32], targets: &[usize]) -> Vec<Vec<f32>> {
        let c = row.len();
        let counts = |k: usize, e: usize| e != k && (by == By::All || !self.related[k * c + e]);
        // Rows that differ in no value that both have, of columns that count for all targets.
        let matters: Vec<bool> = (0..c).map(|e| targets.iter().all(|&k| k == e || counts(k, e))).collect();
        let differs = |e: usize, a: u32, b: u32| matters[e] && (a | b) & MISSING == 0 && a != b;
        let is_alike = |other: &&[u32]| !(0..c).any(|e| differs(e, row[e], other[e]));
        let alike: Vec<&[u32]> = self.rows.each().filter(is_alike).collect();
        let is_same = |(&a, &b): (&u32, &u32)| if a & MISSING != 0 { b & MISSING != 0 } else { a == b };
        let is_in_table = alike.iter().any(|other| row.iter().zip(*other).all(is_same));
        // Matching rows by the value that they have, and those in which it is missing, too.
        let mut there: Vec<Vec<f32>> = targets.iter().map(|&k| vec![0.0; self.rows.factors.classes[k]]).collect();
        let mut open = vec![0.0; targets.len()];
        for other in alike.iter().filter(|_| is_in_table) {
            let matches: Vec<f32> = (0..c).map(|e| rows.match_of(row[e], &self.rows, other[e], e)).collect();
            for ((&k, there), open) in targets.iter().zip(&mut there).zip(&mut open) {
                let alike = (0..c).filter(|&e| counts(k, e)).map(|e| matches[e]).product::<f32>();
                match there.get_mut(other[k] as usize) {
                    _ if alike < LEAST => {}
                    Some(there) => *there += alike,
                    None => *open += alike,
                }
            }
        }
        let left = |((&k, there), open): ((&usize, Vec<f32>), f32)| {
            let predicted = rows.shares_of(k, row[k]);
            let expected = if by == By::All { predicted } else { &self.marginals[k] };
            let all = there.iter().sum::<f32>() + open.max(1.0);
            let doubt = rows.factors.doubt[k];
            let left = |((p, e), t): ((&f32, &f32), &f32)| p * (1.0 - t / (e * all).max(f32::MIN_POSITIVE)).max(doubt);
            let mut rest: Vec<f32> = predicted.iter().zip(expected).zip(&there).map(left).collect();
            let total: f32 = rest.iter().sum();
            if total <= 0.0 || there.iter().all(|t| *t <= 0.0) {
                return predicted.to_vec();
            }
            rest.iter_mut().for_each(|p| *p /= total);
            rest
        };
        targets.iter().zip(there).zip(open).map(left).collect()
    }

    fn restore(file: &ModelFile, prefix: &str, columns: &Columns) -> Result<Design> {
        let factors = Factors::of(columns);
        let (shape, cells) = file.u32s(&format!("{prefix}cells"))?;
        let damaged = || Error::damaged("the rows of the factorial design");
        let c = factors.columns.len();
        if !factors.are_enough() || shape.len() != 2 || shape[1] != c {
            return Err(damaged());
        }
        let mut shares = Vec::with_capacity(c);
        for (k, &width) in factors.classes.iter().enumerate() {
            let (shape, of) = file.f32s(&format!("{prefix}{k}"))?;
            let fits = |&cell: &u32| match cell & MISSING {
                0 => cell as usize <= width,
                _ => ((cell & !MISSING) as usize) < shape[0],
            };
            if shape.len() != 2 || shape[1] != width || !cells.iter().skip(k).step_by(c).all(fits) {
                return Err(damaged());
            }
            shares.push(of.to_vec());
        }
        Ok(Design::new(Rows { factors, cells: cells.to_vec(), shares }, columns.clone()))
    }
}

impl FittedRowMember for Design {
    fn predict(&self, request: &Request<'_>, run: &Run) -> Result<Predicted> {
        let Request { grid, cells, needed } = *request;
        let needed = needed.ok_or_else(|| Error::Bug("a factorial design needs networks".to_owned()))?;
        let rows = Rows::of(grid, self.rows.factors.clone(), &self.columns, &needed[0]);
        let mut outputs = Vec::with_capacity(BYS.len());
        for by in BYS {
            let mut predicted = vec![Vec::new(); grid.m];
            let left = self.left(by, &rows, |i, f| cells[i * grid.m + f], run)?;
            for (&f, left) in rows.factors.columns.iter().zip(left) {
                predicted[f] = left;
            }
            outputs.push(predicted);
        }
        Ok(outputs)
    }

    fn kept_rows(&self) -> Option<KeptNumbers> {
        let Rows { factors, cells, .. } = &self.rows;
        let (rows, features) = (cells.len() / factors.columns.len(), Some(factors.columns.clone()));
        Some(KeptNumbers { what: "the factorial design detector", rows, features })
    }

    fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        let Rows { factors, cells, shares } = &self.rows;
        let shape = vec![cells.len() / factors.columns.len(), factors.columns.len()];
        tensors.insert(format!("{prefix}cells"), Tensor::U32(shape, cells.clone()));
        for (k, (shares, width)) in shares.iter().zip(&factors.classes).enumerate() {
            let shape = vec![shares.len() / width, *width];
            tensors.insert(format!("{prefix}{k}"), Tensor::F32(shape, shares.clone()));
        }
        Value::Null
    }
}

/// Whether two columns are related: whether pairs of values occur more often or less than by chance (Pearson's test).
fn is_related(of: &Rows, k: usize, e: usize) -> bool {
    let (rows, cols) = (of.factors.classes[k], of.factors.classes[e]);
    let mut counts = vec![0_u32; rows * cols];
    for row in of.each().filter(|row| (row[k] as usize) < rows && (row[e] as usize) < cols) {
        counts[row[k] as usize * cols + row[e] as usize] += 1;
    }
    let of_rows: Vec<f64> = counts.chunks_exact(cols).map(|row| f64::from(row.iter().sum::<u32>())).collect();
    let of_cols: Vec<f64> =
        (0..cols).map(|j| counts.iter().skip(j).step_by(cols).map(|n| f64::from(*n)).sum()).collect();
    let total: f64 = of_rows.iter().sum();
    // Pearson's statistic: under independence its mean is the degrees of freedom, its variance twice that.
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

    /// Every combination of four and six values, in rows with a third column of either of two that does not matter.
    fn grid() -> Grid {
        let x = (0..48).flat_map(|i| [(i % 4) as f32, (i / 4 % 6) as f32, (i / 24) as f32]).collect();
        Grid { n: 48, m: 3, x, observed: vec![true; 48 * 3] }
    }

    fn columns() -> Columns {
        let values = |count: usize| Response::Values((0..count).map(|v| v as f32).collect());
        Columns::of_responses(vec![values(4), values(6), values(2)])
    }

    /// The rows without some cells, for which networks would predict every value with the same probability.
    fn design_of(grid: &Grid, columns: &Columns) -> Design {
        let predicted = |(f, response): (usize, &Response)| {
            let missing = grid.observed.iter().skip(f).step_by(3).filter(|o| !**o).count();
            vec![1.0 / response.classes() as f32; missing * response.classes()]
        };
        let predicted: Vec<Vec<f32>> = columns.responses.iter().enumerate().map(predicted).collect();
        Design::new(Rows::of(grid, Factors::of(columns), columns, &predicted), columns.clone())
    }

    fn design(grid: &Grid) -> Design {
        design_of(grid, &columns())
    }

    fn without(missing: &[(usize, usize)]) -> Grid {
        let mut grid = grid();
        missing.iter().for_each(|(i, f)| grid.observed[i * 3 + f] = false);
        grid
    }

    fn left(design: &Design, of: &Design, by: By, f: usize) -> Vec<f32> {
        design.left(by, &of.rows, |_, column| column == f, &Run::new(0, 1).unwrap()).unwrap().remove(f)
    }

    /// Whether probabilities are in proportion to these.
    fn close(predicted: &[f32], to: &[f32]) -> bool {
        let total: f32 = to.iter().sum();
        predicted.len() == to.len() && predicted.iter().zip(to).all(|(a, b)| (a - b / total).abs() < 1e-3)
    }

    #[test]
    fn what_other_rows_have_is_ruled_out() {
        // Rows 4 to 7 differ in the first column alone. One is missing there; then two; then one of a row whose twin
        // lacks another value: it is one in six that this is the same.
        let one = design(&without(&[(5, 0)]));
        assert!(close(&left(&one, &one, By::All, 0), &[0.0, 1.0, 0.0, 0.0]));
        let two = design(&without(&[(5, 0), (7, 0)]));
        let predicted = left(&two, &two, By::All, 0);
        assert!(predicted.chunks(4).all(|p| close(p, &[0.0, 1.0, 0.0, 1.0])), "{predicted:?}");
        let unsure = design(&without(&[(5, 0), (6, 1)]));
        let predicted = left(&unsure, &unsure, By::All, 0);
        // Three and a sixth rows in all: a quarter of them is 0.792 of each value, of which a sixth is present.
        assert!(close(&predicted, &[0.0, 1.0, 1.0 - 0.1667 / 0.792, 0.0]), "{predicted:?}");
    }

    #[test]
    fn some_doubt_remains_of_a_level() {
        let mut columns = columns();
        columns.responses[0] = Response::Levels(4);
        let rows = design_of(&without(&[(5, 0)]), &columns);
        let predicted = left(&rows, &rows, By::All, 0);
        assert!(close(&predicted, &[DOUBT, 1.0, DOUBT, DOUBT]), "{predicted:?}");
    }

    #[test]
    fn rows_without_matches_keep_the_prediction_of_the_networks() {
        // The others of its combination are missing, too.
        let missing: Vec<(usize, usize)> = [4, 5, 6, 7].into_iter().map(|i| (i, 0)).collect();
        let alone = design(&without(&missing));
        for by in BYS {
            assert_eq!(left(&alone, &alone, by, 0), [0.25; 16]);
        }
    }

    #[test]
    fn an_outcome_is_not_compared() {
        // The third column is whether the first is above 1; each combination of the first two is present twice.
        let follow = |missing: &[(usize, usize)]| {
            let mut grid = without(missing);
            (0..48).for_each(|i| grid.x[i * 3 + 2] = f32::from(u8::from(grid.x[i * 3] > 1.0)));
            grid
        };
        let rows = design(&follow(&[(5, 0)]));
        assert!(rows.related[2] && rows.related[6] && !rows.related[1]);
        // Seven of eight rows are present, two of each value but one, of which the column has 11 in 47, and 12 of the
        // others.
        let (some, all) = (1.0 - 47.0 / 88.0, 1.0 - 47.0 / 48.0);
        assert!(close(&left(&rows, &rows, By::Unrelated, 0), &[all, some, all, all]));
        // By all columns it is compared only with rows of the same outcome.
        let all = left(&rows, &rows, By::All, 0);
        assert!(all[2] > all[0] && all[3] > all[0], "{all:?}");
    }

    #[test]
    fn a_row_that_was_not_in_the_table_keeps_the_prediction_of_the_networks() {
        let all = design(&without(&[(9, 1)]));
        let hidden = design(&without(&[(5, 0)]));
        for by in BYS {
            assert_eq!(left(&all, &hidden, by, 0), [0.25; 4]);
        }
    }
}
