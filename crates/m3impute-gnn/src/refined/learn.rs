//! Learning, from a table to a model: networks, stages of learners on top of them, and whom to believe.

use super::blend::Heard;
use super::columns::Column;
use super::ensemble::{self, Net, Voices};
use super::folds::held_out;
use super::grid::Grid;
use super::stage::{Learners, Source, Stage};
use super::train::Training;
use m3impute_core::{Result, Run};

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How many networks.
    pub nets: usize,
    /// The share of observed cells that each does not see.
    pub held: f64,
    /// How each is trained.
    pub training: Training,
    /// How many stages of learners follow.
    pub stages: usize,
    /// How many of the held-out sets the learners are tried on.
    pub trials: usize,
    /// How many trees a forest has.
    pub trees: usize,
    /// How many rows a learner sees at most.
    pub rows: usize,
}

/// The opinions there are: of the typical value, of the networks' answers, of their point, and of each stage's forest
/// and line.
pub const TYPICAL: usize = 0;
/// See [`TYPICAL`].
pub const ANSWERS: usize = 1;
/// See [`TYPICAL`].
pub const POINT: usize = 2;
/// See [`TYPICAL`].
pub const STAGES: usize = 3;

/// What was learnt.
#[derive(Clone, Debug)]
pub struct Model {
    /// What is known of the columns.
    pub columns: Vec<Column>,
    /// The networks.
    pub nets: Vec<Net>,
    /// Whether the networks' point completes the rows of a column, rather than their answers.
    pub by_point: Vec<bool>,
    /// The learners on top.
    pub stages: Vec<Stage>,
    /// The opinion of who knows nothing of the row. // [m]
    pub typical: Vec<Vec<f32>>,
    /// How much each opinion counts. // [m][opinions]
    pub weights: Vec<Vec<f32>>,
    /// The error on held-out cells: of the mixture, and of each opinion. // [m]
    pub errors: Vec<(usize, f64, Vec<Option<f64>>)>,
}

/// A table in which some observed cells are hidden, its holes completed.
struct World {
    grid: Grid,
    held: Vec<bool>,
    nets: Vec<usize>,
    /// All holes filled. // [n, m]
    plain: Vec<f32>,
    /// The same with column `f` hidden before. // [m][n, m]
    without: Vec<Vec<f32>>,
}

/// Learns a model from a table.
///
/// # Errors
/// When the run is cancelled, or a loss is not finite.
pub fn learn(grid: &Grid, columns: Vec<Column>, effort: Effort, run: &mut Run) -> Result<(Model, Vec<String>)> {
    let m = grid.m;
    let held = held_out(grid, effort.nets, effort.held, &mut run.rng("held out", 0));
    let grids: Vec<Grid> = held.iter().map(|held| without_cells(grid, held)).collect();
    let (nets, notes) = ensemble::train(&grids, &held, &columns, effort.training, run)?;
    let typical: Vec<Vec<f32>> = (0..m).map(|f| typical_opinion(grid, f, &columns[f])).collect();
    let mut model = Model {
        by_point: vec![false; m],
        stages: Vec::new(),
        typical,
        weights: Vec::new(),
        errors: Vec::new(),
        nets,
        columns,
    };

    // What the networks say of the cells that each has not seen.
    let mut heard: Vec<Heard> = vec![Heard::default(); m];
    for f in 0..m {
        heard[f].said = vec![Vec::new(); STAGES + 2 * effort.stages];
    }
    let trials = effort.trials.min(held.len());
    let mut worlds = Vec::new();
    for (k, (grid, held)) in grids.iter().zip(&held).enumerate() {
        let voices = ensemble::say(&[&model.nets[k]], &model.columns, grid, held, run)?;
        if k < trials || effort.stages == 0 {
            model.hear_first(grid, held, voices, &mut heard);
        }
        if k < trials {
            worlds.push((sampled(grid, effort.rows, run, k as u64), vec![k]));
        }
    }
    for f in 0..m {
        let error = |c| heard[f].error(&model.columns[f], c).unwrap_or(f64::INFINITY);
        model.by_point[f] = error(POINT) < error(ANSWERS);
    }
    if effort.stages > 0 && m > 1 {
        let all: Vec<usize> = (0..model.nets.len()).collect();
        worlds.push((sampled(grid, effort.rows, run, u64::MAX), all));
        let mut completed = Vec::new();
        for ((grid, rows), nets) in worlds {
            let cells = |what: &[bool]| -> Vec<bool> {
                rows.iter().flat_map(|&i| what[i as usize * m..(i as usize + 1) * m].iter().copied()).collect()
            };
            let held = if nets.len() == 1 && completed.len() < trials { cells(&held[nets[0]]) } else { Vec::new() };
            completed.push(model.world(grid, held, nets, run)?);
        }
        // Only the rows that the learners see are heard from here on.
        for f in 0..m {
            heard[f] = Heard { truth: Vec::new(), said: vec![Vec::new(); STAGES + 2 * effort.stages] };
        }
        for world in &completed[..completed.len() - 1] {
            let nets: Vec<&Net> = world.nets.iter().map(|&k| &model.nets[k]).collect();
            let voices = ensemble::say(&nets, &model.columns, &world.grid, &world.held, run)?;
            model.hear_first(&world.grid, &world.held, voices, &mut heard);
        }
        model.add_stages(&mut completed, &mut heard, effort, run)?;
    }
    for f in 0..m {
        let column = &model.columns[f];
        let opinions = STAGES + 2 * model.stages.len();
        heard[f].said.truncate(opinions);
        let (weights, error) = heard[f].weights(column);
        let errors = (0..opinions).map(|c| heard[f].error(column, c)).collect();
        model.errors.push((heard[f].truth.len(), error, errors));
        // Without cells to tell, the networks are believed.
        let trusted = weights.iter().sum::<f32>() > 0.0;
        model.weights.push(if trusted { weights } else { (0..opinions).map(|c| f32::from(u8::from(c == ANSWERS))).collect() });
    }
    Ok((model, notes))
}

impl Model {
    /// Notes what is known before any stage of held-out cells.
    fn hear_first(&self, grid: &Grid, held: &[bool], voices: Vec<Voices>, heard: &mut [Heard]) {
        for (f, [answers, point]) in voices.into_iter().enumerate() {
            let truth: Vec<f32> =
                (0..grid.n).map(|i| i * grid.m + f).filter(|&at| held[at]).map(|at| grid.x[at]).collect();
            for _ in &truth {
                heard[f].said[TYPICAL].extend(&self.typical[f]);
            }
            heard[f].truth.extend(truth);
            heard[f].said[ANSWERS].extend(answers);
            heard[f].said[POINT].extend(point);
        }
    }

    fn world(&self, grid: Grid, held: Vec<bool>, nets: Vec<usize>, run: &mut Run) -> Result<World> {
        let m = grid.m;
        let chosen: Vec<&Net> = nets.iter().map(|&k| &self.nets[k]).collect();
        let plain = self.complete_first(&chosen, &grid, run)?;
        let mut without = Vec::with_capacity(m);
        for f in 0..m {
            let mut hidden = grid.clone();
            (0..grid.n).for_each(|i| hidden.observed[i * m + f] = false);
            without.push(self.complete_first(&chosen, &hidden, run)?);
            run.report("completing", f as u64 + 1, m as u64, "");
        }
        Ok(World { grid, held, nets, plain, without })
    }

    /// All holes filled by networks.
    fn complete_first(&self, nets: &[&Net], grid: &Grid, run: &Run) -> Result<Vec<f32>> {
        let asked: Vec<bool> = grid.observed.iter().map(|o| !o).collect();
        let voices = ensemble::say(nets, &self.columns, grid, &asked, run)?;
        let mut z = grid.x.clone();
        for (f, voices) in voices.iter().enumerate() {
            let column = &self.columns[f];
            let said = &voices[usize::from(self.by_point[f])];
            let cells = (0..grid.n).map(|i| i * grid.m + f).filter(|&at| asked[at]);
            for (at, opinion) in cells.zip(said.chunks_exact(column.opinion_width())) {
                z[at] = column.point(opinion);
            }
        }
        Ok(z)
    }

    fn add_stages(&mut self, worlds: &mut [World], heard: &mut [Heard], effort: Effort, run: &mut Run) -> Result<()> {
        let m = self.columns.len();
        // What the completed rows hold for the held-out cells so far, as an opinion.
        let mut before: Vec<usize> = self.by_point.iter().map(|&p| if p { POINT } else { ANSWERS }).collect();
        for stage in 0..effort.stages {
            let mut learners: Vec<Vec<Learners>> = Vec::new();
            for (w, world) in worlds.iter().enumerate() {
                let mut of_world = Vec::with_capacity(m);
                for f in 0..m {
                    let index = ((stage * worlds.len() + w) * m + f) as u64;
                    let fitted =
                        Learners::fit(&world.without[f], &world.grid, f, &self.columns, effort.trees, run, index)?;
                    if !world.held.is_empty() {
                        let rows: Vec<u32> =
                            (0..world.grid.n).filter(|i| world.held[i * m + f]).map(|i| i as u32).collect();
                        let column = &self.columns[f];
                        let forest = fitted.forest_says(column, &world.plain, &rows, run)?.unwrap_or_default();
                        let line = fitted.line_says(f, &self.columns, &world.plain, &rows).unwrap_or_default();
                        heard[f].said[STAGES + 2 * stage].extend(forest);
                        heard[f].said[STAGES + 2 * stage + 1].extend(line);
                    }
                    of_world.push(fitted);
                    let done = (stage * worlds.len() + w) * m + f + 1;
                    run.report("learners", done as u64, (effort.stages * worlds.len() * m) as u64, "");
                }
                learners.push(of_world);
            }
            let mut sources = vec![Source::Before; m];
            for f in 0..m {
                let error = |c| heard[f].error(&self.columns[f], c).unwrap_or(f64::INFINITY);
                let choices = [
                    (before[f], Source::Before),
                    (STAGES + 2 * stage, Source::Forest),
                    (STAGES + 2 * stage + 1, Source::Line),
                ];
                let best = choices.into_iter().reduce(|a, b| if error(b.0) < error(a.0) { b } else { a });
                if let Some((opinion, source)) = best {
                    (before[f], sources[f]) = (opinion, source);
                }
            }
            let changed = sources.iter().any(|s| *s != Source::Before);
            if stage + 1 < effort.stages && changed {
                for (world, learners) in worlds.iter_mut().zip(&learners) {
                    let stage = Stage { learners: learners.clone(), sources: sources.clone() };
                    let observed = &world.grid.observed;
                    world.plain = stage.complete(&world.plain, &self.columns, |i, f| !observed[i * m + f], run)?;
                    for j in 0..m {
                        let open = |i: usize, f: usize| f == j || !observed[i * m + f];
                        world.without[j] = stage.complete(&world.without[j], &self.columns, open, run)?;
                    }
                }
            }
            let last = learners.pop().expect("the world of all cells is the last");
            self.stages.push(Stage { learners: last, sources });
            if !changed {
                break;
            }
        }
        Ok(())
    }

    /// What the model says of the cells that are asked for: for each column the opinions of its cells, row by row.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn say(&self, grid: &Grid, run: &Run) -> Result<Vec<Vec<f32>>> {
        let m = grid.m;
        let asked: Vec<bool> = grid.observed.iter().map(|o| !o).collect();
        let nets: Vec<&Net> = self.nets.iter().collect();
        let voices = ensemble::say(&nets, &self.columns, grid, &asked, run)?;
        let rows: Vec<Vec<u32>> =
            (0..m).map(|f| (0..grid.n).filter(|i| asked[i * m + f]).map(|i| i as u32).collect()).collect();
        let mut mixed: Vec<Vec<f32>> = (0..m)
            .map(|f| {
                let mut sum = vec![0.0; rows[f].len() * self.columns[f].opinion_width()];
                let typical = self.typical[f].repeat(rows[f].len());
                add(&mut sum, self.weights[f][TYPICAL], &typical);
                add(&mut sum, self.weights[f][ANSWERS], &voices[f][0]);
                add(&mut sum, self.weights[f][POINT], &voices[f][1]);
                sum
            })
            .collect();
        let mut z = grid.x.clone();
        for f in 0..m {
            let column = &self.columns[f];
            let said = &voices[f][usize::from(self.by_point[f])];
            for (&i, opinion) in rows[f].iter().zip(said.chunks_exact(column.opinion_width())) {
                z[i as usize * m + f] = column.point(opinion);
            }
        }
        for (s, stage) in self.stages.iter().enumerate() {
            for f in 0..m {
                let learners = &stage.learners[f];
                let [of_forest, of_line] = [0, 1].map(|c| self.weights[f][STAGES + 2 * s + c]);
                if of_forest > 0.0
                    && let Some(said) = learners.forest_says(&self.columns[f], &z, &rows[f], run)?
                {
                    add(&mut mixed[f], of_forest, &said);
                }
                if of_line > 0.0
                    && let Some(said) = learners.line_says(f, &self.columns, &z, &rows[f])
                {
                    add(&mut mixed[f], of_line, &said);
                }
            }
            if s + 1 < self.stages.len() {
                z = stage.complete(&z, &self.columns, |i, f| asked[i * m + f], run)?;
            }
        }
        Ok(mixed)
    }
}

fn add(sum: &mut [f32], weight: f32, said: &[f32]) {
    if weight > 0.0 {
        sum.iter_mut().zip(said).for_each(|(s, said)| *s += weight * said);
    }
}

fn without_cells(grid: &Grid, held: &[bool]) -> Grid {
    let observed = grid.observed.iter().zip(held).map(|(o, h)| *o && !h).collect();
    Grid { observed, ..grid.clone() }
}

/// At most so many rows of a table, and which they are.
fn sampled(grid: &Grid, most: usize, run: &Run, index: u64) -> (Grid, Vec<u32>) {
    let rows = crate::fitted::chosen(grid.n, most, &mut run.rng("rows of learners", index));
    let m = grid.m;
    let take = |i: &u32| *i as usize * m..(*i as usize + 1) * m;
    let x = rows.iter().flat_map(|i| grid.x[take(i)].iter().copied()).collect();
    let observed = rows.iter().flat_map(|i| grid.observed[take(i)].iter().copied()).collect();
    (Grid { n: rows.len(), m, x, observed }, rows)
}

/// The opinion of who knows the column alone.
fn typical_opinion(grid: &Grid, f: usize, column: &Column) -> Vec<f32> {
    let mut values: Vec<f32> =
        (0..grid.n).map(|i| i * grid.m + f).filter(|&at| grid.observed[at]).map(|at| grid.x[at]).collect();
    if column.has_shares() {
        let mut shares = vec![0.0; column.answers()];
        values.iter().filter_map(|&v| column.answer_of(v)).for_each(|a| shares[a] += 1.0);
        let total: f32 = shares.iter().sum();
        shares.iter_mut().for_each(|s| *s /= total.max(1.0));
        return shares;
    }
    values.sort_by(f32::total_cmp);
    let at = |share: f32| values[((values.len() - 1) as f32 * share).round() as usize];
    vec![at(0.5), (at(0.84) - at(0.16)) / 2.0]
}
