//! Learners on top of the networks' answers: forests, a line and a curve for each column, learnt from completed rows.
//!
//! A learner of column `f` sees rows in which every hole is filled, and should see them in learning as it will meet them:
//! filled *without knowing the cell of `f`*. So in the first stages it learns from completions in which column `f` was
//! hidden from whoever filled the rest. The answers of one stage may be the completions of the next.
//!
//! In the last stages the columns take turns, as in missForest: a learner learns from rows as they stand, and its answers
//! are what the next column sees. That is less careful and comes nearer where columns hang together closely.

use super::columns::Column;
use super::grid::Grid;
use m3impute_core::sample_rows;
use m3impute_core::{Result, Run};
use m3impute_learners::forest::{Aggregate, Forest, ForestParams as Plan, Frame};
use m3impute_learners::kernel::KernelRegression;
use m3impute_learners::lad::Linear as Line;
use m3impute_learners::tree::Growth;
use serde::{Deserialize, Serialize};

/// Categories with more levels say nothing to lines and curves.
const LINE_LEVELS: usize = 16;

/// How many learners a column has in a stage: two forests, a line and a curve.
pub const LEARNERS: usize = 4;
/// Of them, the line. The forests come before it.
pub const LINE: usize = 2;
/// Of them, the curve.
pub const CURVE: usize = 3;
/// Rows that a curve is learnt from, at most: it bends little.
const CURVE_ROWS: usize = 5000;
/// Rows that a curve measures nearness to.
const LANDMARKS: usize = 100;
/// The least number of rows in a leaf of the two forests: one follows every value, the other is steadier where values are
/// noise.
const LEAVES: [f64; 2] = [1.0, 6.0];

/// Columns that a tree tries for a cut, at most.
pub const MOST_TRIED: usize = 20;

/// The learners of one column.
#[derive(Clone, Debug, Default)]
pub struct Learners {
    /// Forests with small and with large leaves.
    pub forests: [Option<Forest>; 2],
    /// A line; none for a category.
    pub line: Option<Line>,
    /// A curve; none for a category.
    pub curve: Option<KernelRegression>,
}

/// How the columns of a stage go about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// All learn and answer from the same completed rows.
    #[default]
    Together,
    /// Each sees what those before it have answered.
    InTurn,
}

/// The learners of all columns.
#[derive(Clone, Debug)]
pub struct Stage {
    /// How the columns go about it.
    pub order: Order,
    /// Of each column, `[m]`.
    pub learners: Vec<Learners>,
    /// Which learner's answers complete the rows for those who come after; none where those of before stay, `[m]`.
    pub sources: Vec<Option<usize>>,
}

impl Learners {
    /// Learns column `f` from completed rows `z`, `[n, m]`, with the truth where `f` is observed.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn fit(
        z: &[f32],
        grid: &Grid,
        f: usize,
        columns: &[Column],
        trees: usize,
        run: &Run,
        index: u64,
    ) -> Result<Learners> {
        let m = grid.m;
        let known = |x: f32| columns[f].answer_of(x).is_some();
        let rows: Vec<u32> = (0..grid.n as u32)
            .filter(|&i| grid.observed[i as usize * m + f] && known(grid.x[i as usize * m + f]))
            .collect();
        if rows.len() < 5 || m < 2 {
            return Ok(Learners::default());
        }
        let mut x = z.to_vec();
        for &i in &rows {
            x[i as usize * m + f] = grid.x[i as usize * m + f];
        }
        // A line or a curve is one piece of work, and a forest many small ones: side by side no core waits.
        let (smooth, forests) = run.install(|| {
            rayon::join(
                || if columns[f].is_number() { smooth(&x, &rows, f, columns, run, index) } else { (None, None) },
                || grown(&x, &rows, f, columns, trees, run, index),
            )
        });
        let ((line, curve), forests) = (smooth, forests?);
        Ok(Learners { forests, line, curve })
    }

    /// Lets go of one of the learners.
    pub fn forget(&mut self, which: usize) {
        match which {
            LINE => self.line = None,
            CURVE => self.curve = None,
            forest => self.forests[forest] = None,
        }
    }

    /// What one of the learners says of column `f` in some completed rows.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn say(
        &self,
        which: usize,
        f: usize,
        columns: &[Column],
        z: &[f32],
        rows: &[u32],
        run: &Run,
    ) -> Result<Option<Vec<f32>>> {
        let column = &columns[f];
        let Some(forest) = self.forests.get(which) else {
            let x = || predictors_of(z, rows, f, columns);
            let (points, error) = match (which, &self.line, &self.curve) {
                (LINE, Some(line), _) => {
                    let (x, p) = (x(), line.weights.len());
                    let points = (0..rows.len()).map(|i| line.predict(&x[i * p..(i + 1) * p])).collect();
                    (points, line.error)
                }
                (CURVE, _, Some(curve)) => (run.install(|| curve.predict(&x())), curve.error),
                _ => return Ok(None),
            };
            return Ok(Some(around(&points, error as f32, column)));
        };
        let Some(forest) = forest else { return Ok(None) };
        if column.has_shares() {
            forest.shares(z, rows, run, column.answers(), |v| column.answer_of(v)).map(Some)
        } else {
            forest.medians_and_spreads(z, rows, run).map(Some)
        }
    }
}

/// A line and a curve of column `f`, learnt from some rows of `x`, `[n, m]`.
fn smooth(
    x: &[f32],
    rows: &[u32],
    f: usize,
    columns: &[Column],
    run: &Run,
    index: u64,
) -> (Option<Line>, Option<KernelRegression>) {
    let learn_from = |rows: &[u32]| -> (Vec<f64>, Vec<f64>) {
        let y = rows.iter().map(|&i| f64::from(x[i as usize * columns.len() + f])).collect();
        (predictors_of(x, rows, f, columns), y)
    };
    let (predictors, y) = learn_from(rows);
    let line = Line::fit(&predictors, &y, true);
    if predictors.is_empty() {
        return (Some(line), None);
    }
    let some = sample_rows(rows.len(), CURVE_ROWS, &mut run.rng("rows of curves", index));
    let landmarks = sample_rows(some.len(), LANDMARKS, &mut run.rng("landmarks", index));
    let (predictors, y) = learn_from(&some.iter().map(|&k| rows[k as usize]).collect::<Vec<u32>>());
    (Some(line), Some(KernelRegression::fit(&predictors, &y, &landmarks)))
}

/// The forests of column `f`, grown from some rows of `x`, `[n, m]`.
fn grown(
    x: &[f32],
    rows: &[u32],
    f: usize,
    columns: &[Column],
    trees: usize,
    run: &Run,
    index: u64,
) -> Result<[Option<Forest>; 2]> {
    let levels: Vec<usize> = columns.iter().map(Column::tree_levels).collect();
    let frame = Frame::new(x.to_vec(), &levels);
    let mut forests = [None, None];
    for (which, forest) in forests.iter_mut().enumerate() {
        let plan = Plan {
            trees,
            growth: Growth {
                mtry: columns.len().div_ceil(2).min(MOST_TRIED),
                min_leaf: LEAVES[which],
                max_depth: usize::MAX,
                random_cuts: true,
            },
            bootstrap: false,
            aggregate: Aggregate::Median,
        };
        *forest = Forest::fit(&frame, f, rows, &plan, run, "m3 trees", 2 * index + which as u64)?;
    }
    Ok(forests)
}

/// Points as opinions, given how far they are off on average.
fn around(points: &[f64], error: f32, column: &Column) -> Vec<f32> {
    let mut said = Vec::with_capacity(points.len() * column.opinion_width());
    for &point in points {
        let point = point as f32;
        match column {
            Column::Number { bins, few: true, .. } => {
                // As if what is left of it fell off evenly on both sides.
                let spread = error.max(1e-6);
                let apart = |b: usize| ((bins.low[b] + bins.high[b]) / 2.0 - point).abs();
                let nearest = (0..bins.len()).map(apart).fold(f32::INFINITY, f32::min);
                let from = said.len();
                said.extend((0..bins.len()).map(|b| (-(apart(b) - nearest) / spread).exp()));
                let total: f32 = said[from..].iter().sum();
                said[from..].iter_mut().for_each(|s| *s /= total);
            }
            _ => said.extend([point, error]),
        }
    }
    said
}

/// How many predictors lines and curves of column `f` have.
pub fn predictors(columns: &[Column], f: usize) -> usize {
    columns.iter().enumerate().filter(|(j, _)| *j != f).map(|(_, column)| predictors_of_column(column)).sum()
}

fn predictors_of_column(column: &Column) -> usize {
    match column {
        Column::Number { .. } => 1,
        Column::Category { levels } if levels.len() <= LINE_LEVELS => levels.len(),
        Column::Category { .. } => 0,
    }
}

/// The predictors of column `f` in some completed rows, `[rows, predictors]`.
fn predictors_of(z: &[f32], rows: &[u32], f: usize, columns: &[Column]) -> Vec<f64> {
    let m = columns.len();
    let mut to = Vec::with_capacity(rows.len() * predictors(columns, f));
    for &i in rows {
        let row = &z[i as usize * m..(i as usize + 1) * m];
        for (_, (&v, column)) in row.iter().zip(columns).enumerate().filter(|(j, _)| *j != f) {
            match column {
                Column::Number { .. } => to.push(f64::from(v)),
                Column::Category { .. } => {
                    to.extend((0..predictors_of_column(column)).map(|l| f64::from(u8::from(l as f32 == v))));
                }
            }
        }
    }
    to
}

impl Stage {
    /// Answers the open cells of completed rows `z` anew, `rows` for each column. `hear` is told what those learners say
    /// that `wanted` names, by column and number.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn answer(
        &self,
        z: &mut [f32],
        columns: &[Column],
        rows: &[Vec<u32>],
        wanted: impl Fn(usize, usize) -> bool,
        run: &Run,
        mut hear: impl FnMut(usize, usize, &[f32]),
    ) -> Result<()> {
        let before = (self.order == Order::Together).then(|| z.to_vec());
        for (f, column) in columns.iter().enumerate() {
            for which in 0..LEARNERS {
                let is_source = self.sources[f] == Some(which);
                if !is_source && !wanted(f, which) {
                    continue;
                }
                let seen = before.as_deref().unwrap_or(z);
                let Some(said) = self.learners[f].say(which, f, columns, seen, &rows[f], run)? else { continue };
                if wanted(f, which) {
                    hear(f, which, &said);
                }
                if is_source {
                    put(z, f, column, columns.len(), &rows[f], &said);
                }
            }
        }
        Ok(())
    }
}

/// Puts what was said of a column into some rows of `z`, `[n, m]`.
pub fn put(z: &mut [f32], f: usize, column: &Column, m: usize, rows: &[u32], said: &[f32]) {
    for (&i, opinion) in rows.iter().zip(said.chunks_exact(column.opinion_width())) {
        z[i as usize * m + f] = column.point(opinion);
    }
}
