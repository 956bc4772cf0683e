//! What was learnt, and what it says of a row: networks, kinds of rows and stages of learners, mixed column by column.

use super::blend::{Manner, mixture};
use super::calibrate::Calibration;
use super::columns::Column;
use super::design::{BYS, Design, Rows};
use super::ensemble::{self, Net, Voices};
use super::grid::Grid;
use super::kinds::{Kinds, WAYS};
use super::network::Shape;
use super::stage::{LEARNERS, Stage, put};
use m3impute_core::{Result, Run};
use serde::{Deserialize, Serialize};

/// The opinions there are: of the typical value, of the networks' answers, of their point, of kinds of rows taken in
/// either way, of what the design leaves by either comparison, and of each stage's learners.
pub const TYPICAL: usize = 0;
/// See [`TYPICAL`].
pub const ANSWERS: usize = 1;
/// See [`TYPICAL`].
pub const POINT: usize = 2;
/// See [`TYPICAL`].
pub const KINDS: usize = 3;
/// See [`TYPICAL`].
pub const DESIGN: usize = KINDS + WAYS.len();
/// See [`TYPICAL`].
pub const STAGES: usize = DESIGN + BYS.len();

/// What was heard of a column's held-out cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Opinions {
    /// How many cells.
    pub cells: usize,
    /// The mean error of the mixture.
    pub mixed: f64,
    /// That of each opinion, where it had one.
    pub alone: Vec<Option<f64>>,
}

/// What was learnt.
#[derive(Clone, Debug)]
pub struct Model {
    /// The shape of the networks.
    pub shape: Shape,
    /// What is known of the columns.
    pub columns: Vec<Column>,
    /// The networks.
    pub nets: Vec<Net>,
    /// Whose opinion completes the rows of a column before any stage, `[m]`.
    pub first: Vec<usize>,
    /// Kinds of rows, taken in each way, `[WAYS]`; none where nothing was learnt of them.
    pub kinds: Vec<Option<Kinds>>,
    /// The rows that were laid out, where that is believed.
    pub design: Option<Design>,
    /// The learners on top.
    pub stages: Vec<Stage>,
    /// The opinion of who knows nothing of the row, `[m]`.
    pub typical: Vec<Vec<f32>>,
    /// How much each opinion counts, `[m][opinions]`.
    pub weights: Vec<Vec<f32>>,
    /// How what they say becomes one, `[m]`.
    pub manners: Vec<Manner>,
    /// How good the opinions are, `[m]`.
    pub opinions: Vec<Opinions>,
    /// How a mixed opinion becomes a distribution, `[m]`.
    pub calibration: Vec<Calibration>,
}

/// Those who fill holes before any stage.
pub(super) struct First<'a> {
    pub nets: Vec<&'a Net>,
    pub kinds: &'a [Option<Kinds>],
}

impl Model {
    /// Those of the model whose opinions complete rows before any stage.
    pub(super) fn first(&self) -> First<'_> {
        First { nets: self.nets.iter().collect(), kinds: &self.kinds }
    }

    /// All holes filled by those who are the first.
    pub(super) fn complete_first(&self, first: &First, grid: &Grid, run: &Run) -> Result<Vec<f32>> {
        let m = grid.m;
        let asked: Vec<bool> = grid.observed.iter().map(|o| !o).collect();
        let mut z = grid.x.clone();
        let voices = self.hear_nets(&first.nets, grid, |at| asked[at] && self.first[at % m] < KINDS, run)?;
        self.put_voices(&mut z, grid, &voices);
        for (way, kinds) in first.kinds.iter().enumerate() {
            let believed = |at: usize| asked[at] && self.first[at % m] == KINDS + way;
            if let Some(said) = self.hear_kinds(kinds.as_ref(), grid, believed, run)? {
                self.put_kinds(&mut z, grid, way, &said);
            }
        }
        Ok(z)
    }

    /// What networks say of cells; nothing of any column if there are no networks or no such cells.
    fn hear_nets(&self, nets: &[&Net], grid: &Grid, asked: impl Fn(usize) -> bool, run: &Run) -> Result<Vec<Voices>> {
        let asked: Vec<bool> = (0..grid.observed.len()).map(asked).collect();
        if nets.is_empty() || !asked.contains(&true) {
            return Ok(vec![Voices::default(); grid.m]);
        }
        ensemble::say(nets, &self.columns, grid, &asked, run)
    }

    /// The rows of a table as a design, with what networks say of their holes.
    pub(super) fn design_of(&self, nets: &[&Net], grid: &Grid, run: &Run) -> Result<Design> {
        let m = grid.m;
        let voices = self.hear_nets(nets, grid, |at| !grid.observed[at] && self.columns[at % m].has_shares(), run)?;
        Ok(Design::new(Rows::of(grid, &self.columns, &voices)))
    }

    /// What is said of cells by those who know kinds of rows; none if there are no such cells.
    fn hear_kinds(
        &self,
        kinds: Option<&Kinds>,
        grid: &Grid,
        asked: impl Fn(usize) -> bool,
        run: &Run,
    ) -> Result<Option<Vec<Vec<f32>>>> {
        let asked: Vec<bool> = (0..grid.observed.len()).map(asked).collect();
        let Some(kinds) = kinds.filter(|_| asked.contains(&true)) else { return Ok(None) };
        kinds.say(&self.columns, grid, &asked, run).map(Some)
    }

    /// Puts what networks said of the holes of columns where they are the first.
    fn put_voices(&self, z: &mut [f32], grid: &Grid, voices: &[Voices]) {
        for (f, voices) in voices.iter().enumerate().filter(|(f, _)| self.first[*f] < KINDS) {
            let rows = open_rows(grid, f, |at| !grid.observed[at]);
            put(z, f, &self.columns[f], grid.m, &rows, &voices[self.first[f] - ANSWERS]);
        }
    }

    /// The same for those who know kinds of rows.
    fn put_kinds(&self, z: &mut [f32], grid: &Grid, way: usize, said: &[Vec<f32>]) {
        for (f, said) in said.iter().enumerate().filter(|(f, _)| self.first[*f] == KINDS + way) {
            put(z, f, &self.columns[f], grid.m, &open_rows(grid, f, |at| !grid.observed[at]), said);
        }
    }

    /// What the model says of the cells that are asked for: for each column the opinions of its cells, row by row.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn say(&self, grid: &Grid, run: &Run) -> Result<Vec<Vec<f32>>> {
        let m = grid.m;
        let asked: Vec<bool> = grid.observed.iter().map(|o| !o).collect();
        // Those who are not believed, and whose answers nobody sees, are not asked.
        let has_stages = !self.stages.is_empty();
        let first_of = |f: usize| has_stages.then_some(self.first[f]);
        let nets_count = |f: usize| {
            self.weights[f][ANSWERS] > 0.0
                || self.weights[f][POINT] > 0.0
                || first_of(f).is_some_and(|c| c < KINDS)
                || (self.design.is_some() && self.columns[f].has_shares())
        };
        let voices = self.hear_nets(&self.first().nets, grid, |at| asked[at] && nets_count(at % m), run)?;
        let rows: Vec<Vec<u32>> = (0..m).map(|f| open_rows(grid, f, |at| asked[at])).collect();
        let mut z = grid.x.clone();
        self.put_voices(&mut z, grid, &voices);
        // What is said by those who are believed, with their weights.
        let mut parts: Vec<Vec<(f32, Vec<f32>)>> = vec![Vec::new(); m];
        let typical = |f: usize| self.typical[f].repeat(rows[f].len());
        let asked_rows = self.design.as_ref().map(|_| Rows::of(grid, &self.columns, &voices));
        for (f, [answers, point]) in voices.into_iter().enumerate() {
            let weights = &self.weights[f];
            if weights[TYPICAL] > 0.0 {
                parts[f].push((weights[TYPICAL], typical(f)));
            }
            let said = [(weights[ANSWERS], answers), (weights[POINT], point)];
            parts[f].extend(said.into_iter().filter(|(weight, _)| *weight > 0.0));
        }
        for (way, kinds) in self.kinds.iter().enumerate() {
            let weight = |f: usize| self.weights[f][KINDS + way];
            let counts = |f: usize| weight(f) > 0.0 || first_of(f) == Some(KINDS + way);
            let Some(said) = self.hear_kinds(kinds.as_ref(), grid, |at| asked[at] && counts(at % m), run)? else {
                continue;
            };
            self.put_kinds(&mut z, grid, way, &said);
            for (f, said) in said.into_iter().enumerate().filter(|(f, _)| weight(*f) > 0.0) {
                parts[f].push((weight(f), said));
            }
        }
        if let Some((design, asked)) = self.design.as_ref().zip(asked_rows) {
            for (which, by) in BYS.into_iter().enumerate() {
                let weight = |f: usize| self.weights[f][DESIGN + which];
                let left = design.say(by, &asked, |_, f| weight(f) > 0.0, run)?;
                for (&f, left) in asked.columns.iter().zip(left).filter(|(f, _)| weight(**f) > 0.0) {
                    parts[f].push((weight(f), left.said));
                }
            }
        }
        for (s, stage) in self.stages.iter().enumerate() {
            let weight = |f: usize, which: usize| self.weights[f][STAGES + LEARNERS * s + which];
            let wanted = |f, which| weight(f, which) > 0.0;
            stage.answer(&mut z, &self.columns, &rows, wanted, run, |f, which, said| {
                parts[f].push((weight(f, which), said.to_vec()));
            })?;
        }
        let mixed = (0..m).map(|f| {
            if parts[f].is_empty() {
                // Nobody who is believed has an answer.
                return typical(f);
            }
            let parts: Vec<(f32, &[f32])> = parts[f].iter().map(|(weight, said)| (*weight, &said[..])).collect();
            mixture(&self.columns[f], self.manners[f], &parts)
        });
        Ok(mixed.collect())
    }
}

/// The rows whose cell in column `f` is one of those.
pub(super) fn open_rows(grid: &Grid, f: usize, open: impl Fn(usize) -> bool) -> Vec<u32> {
    (0..grid.n).filter(|i| open(i * grid.m + f)).map(|i| i as u32).collect()
}
