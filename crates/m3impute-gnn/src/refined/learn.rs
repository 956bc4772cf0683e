//! Learning, from a table to a model: networks, stages of learners on top of them, and whom to believe.

use super::blend::{Chosen, Heard, Manner, chosen as chosen_of, mean_and_error};
use super::calibrate::Calibration;
use super::columns::Column;
use super::design::{BYS, Design};
use super::ensemble::{self, Voices};
use super::folds::held_out;
use super::grid::Grid;
use super::kinds::{Kinds, WAYS};
use super::model::{ANSWERS, DESIGN, First, KINDS, Model, Opinions, POINT, STAGES, TYPICAL, open_rows};
use super::stage::{LEARNERS, Learners, Order, Stage, put};
use super::train::Training;
use m3impute_core::sample_rows;
use m3impute_core::{Result, Run};
use rayon::prelude::*;
use std::time::{Duration, Instant};

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How many networks.
    pub nets: usize,
    /// The share of observed cells that each does not see.
    pub held: f64,
    /// How each is trained.
    pub training: Training,
    /// Whether kinds of rows are learnt.
    pub kinds: bool,
    /// Whether rows are compared as those of a table that was laid out.
    pub design: bool,
    /// How many stages of learners follow.
    pub stages: usize,
    /// How many stages follow them in which the columns take turns.
    pub turns: usize,
    /// How many of the held-out sets the learners are tried on.
    pub trials: usize,
    /// How many trees a forest has.
    pub trees: usize,
    /// How many rows a learner sees at most in a trial.
    pub rows: usize,
    /// How many those of the final model see at most.
    pub final_rows: usize,
}

/// Columns are hidden in so many groups at most, so that learners see rows completed without knowing their column.
pub const GROUPS: usize = 24;
/// With fewer held-out cells in a column there is nothing to tell whom to believe.
pub(super) const ENOUGH: usize = 12;

/// A loss is clearly smaller if it is less than this share of the other.
const CLEARLY: f64 = 0.9;

/// The mixture beside the typical value, on the held-out cells of a column.
struct Compared {
    /// The mixture.
    chosen: Chosen,
    /// Its losses, cell by cell.
    losses: Vec<f64>,
    /// What the mixture gains on average, in standard errors.
    surely: f64,
}

/// Rows of the table without some of the observed cells, on which opinions are tried.
struct Trial {
    grid: Grid,
    held: Vec<bool>,
    /// What was learnt of kinds of rows without those cells, `[WAYS]`.
    kinds: Vec<Option<Kinds>>,
}

/// A table in which some observed cells are hidden, its holes completed.
struct World {
    grid: Grid,
    held: Vec<bool>,
    /// All holes filled, `[n, m]`.
    plain: Vec<f32>,
    /// The same with the columns of a group hidden before, `[groups][n, m]`.
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
    let trainable = (0..grid.n).any(|i| grid.observed[i * m..(i + 1) * m].iter().filter(|o| **o).count() > 1);
    let reserve = run.time_left().map(|t| t.mul_f64(LEARNERS_SHARE));
    let (nets, mut notes) = if trainable {
        ensemble::train(&grids, &held, &columns, effort.training, reserve, run)?
    } else {
        (Vec::new(), vec!["no row has two values: every hole gets its column's typical value".to_owned()])
    };
    let typical: Vec<Vec<f32>> = (0..m).map(|f| typical_opinion(grid, f, &columns[f])).collect();
    let mut model = Model {
        shape: effort.training.shape,
        first: vec![ANSWERS; m],
        kinds: vec![None; WAYS.len()],
        design: None,
        stages: Vec::new(),
        typical,
        weights: Vec::new(),
        manners: Vec::new(),
        opinions: Vec::new(),
        calibration: Vec::new(),
        nets,
        columns,
    };
    let stages = if model.nets.is_empty() || m < 2 { 0 } else { effort.stages + effort.turns };
    let blank = Heard { truth: Vec::new(), said: vec![Vec::new(); STAGES + LEARNERS * stages] };
    let mut heard: Vec<Heard> = vec![blank; m];
    let mut trials: Vec<Trial> = Vec::new();
    if trainable {
        for (k, (grid, held)) in grids.iter().zip(&held).enumerate().take(effort.trials) {
            let rows = sample(grid.n, effort.rows, run, k as u64);
            let (grid, held) = (some_rows(grid, &rows), cells_of(held, &rows, m));
            let voices = ensemble::say(&[&model.nets[k]], &model.columns, &grid, &held, run)?;
            model.hear_first(&grid, &held, voices, &mut heard);
            trials.push(Trial { grid, held, kinds: vec![None; WAYS.len()] });
        }
    }
    if trainable && effort.kinds && !run.is_spent() {
        model.learn_kinds(grid, &mut trials, &mut heard, run)?;
    }
    if trainable && effort.design && Design::is_possible(grid.n, &model.columns) {
        model.hear_design(&trials, &mut heard, run)?;
    }
    for (f, heard) in heard.iter().enumerate() {
        let loss = |c: &usize| heard.loss(&model.columns[f], *c).unwrap_or(f64::INFINITY);
        // What networks fill teaches the stages more, unless it is clearly worse.
        let loss = |c: &usize| if *c < KINDS { CLEARLY * loss(c) } else { loss(c) };
        let best = (ANSWERS..DESIGN).min_by(|a, b| loss(a).total_cmp(&loss(b)));
        model.first[f] = best.filter(|c| loss(c).is_finite()).unwrap_or(ANSWERS);
    }
    if stages > 0 {
        notes.extend(model.learn_on_top(grid, trials, &mut heard, effort, run)?);
    }
    model.mix(heard, run);
    if model.weights.iter().any(|weights| weights[DESIGN..STAGES].iter().any(|w| *w > 0.0)) {
        model.design = Some(model.design_of(&model.first().nets, grid, run)?);
    }
    Ok((model, notes))
}

/// The share of a limited time that is kept for what follows the networks.
const LEARNERS_SHARE: f64 = 0.4;
/// The share of what is left after training that learning kinds of rows may take.
const KINDS_SHARE: f64 = 0.3;
/// The share of what is then left that comparing rows may take.
const DESIGN_SHARE: f64 = 0.1;
/// The share of what is then left that is kept for filling the holes.
const SAYING_SHARE: f64 = 0.25;
/// The share of what is left after training that completing tables may take.
const COMPLETING_SHARE: f64 = 0.5;

impl Model {
    /// Chooses, on the held-out cells of each column, whom to believe and how far.
    fn mix(&mut self, mut heard: Vec<Heard>, run: &Run) {
        let opinions = STAGES + LEARNERS * self.stages.len();
        heard.iter_mut().for_each(|heard| heard.said.truncate(opinions));
        let typical = only(TYPICAL, opinions);
        let compare = |chosen: Chosen, heard: &Heard, column: &Column| {
            let plain = heard.measured(column, &heard.said[TYPICAL], Column::loss);
            let losses = heard.measured(column, &chosen.said, Column::loss);
            let surely = gain_in_errors(&plain, &losses);
            Compared { chosen, losses, surely }
        };
        let tellable: Vec<(&Column, &Heard)> =
            self.columns.iter().zip(&heard).filter(|(_, heard)| heard.truth.len() >= ENOUGH).collect();
        let mut chosen = run.install(|| chosen_of(&tellable)).into_iter();
        // Of each column that can be told of, the mixture in each manner, the mean first.
        let compared: Vec<Vec<Compared>> = (heard.iter().zip(&self.columns))
            .map(|(h, column)| {
                let chosen = (h.truth.len() >= ENOUGH).then(|| chosen.next().expect("one for each column"));
                chosen.into_iter().flatten().map(|chosen| compare(chosen, h, column)).collect()
            })
            .collect();
        let known = anything_known(&compared.iter().filter_map(|c| Some(c.first()?.surely)).collect::<Vec<f64>>());
        for (f, (heard, compared)) in heard.into_iter().zip(compared).enumerate() {
            let column = &self.columns[f];
            // What does not do better, by a standard error, is not worth the risk; half of it may be.
            let is_sure = |c: &Compared| known && c.surely > 1.0;
            let fallback = if compared.is_empty() { self.usual_weights(f) } else { typical.clone() };
            let half = compared.first().map(|mean| mean.chosen.half_and(&typical, &heard.said[TYPICAL]));
            // The median has to be better than the mean as surely.
            let is_better = |a: &Compared, b: &Compared| gain_in_errors(&a.losses, &b.losses) > 1.0;
            let whole = compared.into_iter().filter(is_sure).reduce(|a, b| if is_better(&a, &b) { b } else { a });
            let half = || half.map(|half| compare(half, &heard, column)).filter(is_sure);
            let Chosen { weights, manner, said } = match whole.or_else(half) {
                Some(compared) => compared.chosen,
                None => {
                    let said = heard.mixed(column, Manner::Mean, &fallback);
                    Chosen { weights: fallback, manner: Manner::Mean, said }
                }
            };
            let alone = (0..opinions).map(|c| heard.error(column, c)).collect();
            let (mixed, _) = mean_and_error(&heard.measured(column, &said, Column::error));
            self.opinions.push(Opinions { cells: heard.truth.len(), mixed, alone });
            self.calibration.push(Calibration::of(column, &heard, (manner, &weights), &self.typical[f]));
            self.weights.push(weights);
            self.manners.push(manner);
        }
        self.forget_the_unheard();
    }

    /// Lets go of learners whom nobody believes, unless others see what they answer: most of a model would be theirs.
    fn forget_the_unheard(&mut self) {
        let mut is_seen = false;
        for (s, stage) in self.stages.iter_mut().enumerate().rev() {
            let is_believed = |f: usize, which: usize| self.weights[f][STAGES + LEARNERS * s + which] > 0.0;
            let is_heard = (0..stage.learners.len()).any(|f| (0..LEARNERS).any(|which| is_believed(f, which)));
            // Those who take turns see each other's answers, too.
            let is_looked_at = is_seen || (is_heard && stage.order == Order::InTurn);
            if !is_looked_at {
                stage.sources.fill(None);
            }
            for (f, learners) in stage.learners.iter_mut().enumerate() {
                let is_idle = |which: &usize| stage.sources[f] != Some(*which) && !is_believed(f, *which);
                (0..LEARNERS).filter(is_idle).for_each(|which| learners.forget(which));
            }
            is_seen |= is_heard;
        }
    }

    /// Learns kinds of rows, and notes what those of the trials say of held-out cells.
    fn learn_kinds(&mut self, grid: &Grid, trials: &mut [Trial], heard: &mut [Heard], run: &Run) -> Result<()> {
        let grids: Vec<&Grid> = trials.iter().map(|trial| &trial.grid).chain([grid]).collect();
        let kept = run.time_left().map(|left| left.mul_f64(1.0 - KINDS_SHARE));
        let go_on = || run.check().is_ok() && !run.is_down_to(kept);
        let learnt: Vec<Option<Kinds>> = run.install(|| {
            (0..grids.len() * WAYS.len())
                .into_par_iter()
                .map(|k| {
                    let (grid, taken) = (grids[k / WAYS.len()], WAYS[k % WAYS.len()]);
                    Kinds::learn(grid, &self.columns, taken, (run, k as u64), &go_on)
                })
                .collect()
        });
        run.check()?;
        let mut learnt = learnt.into_iter();
        for trial in trials {
            trial.kinds = learnt.by_ref().take(WAYS.len()).collect();
            for (way, kinds) in trial.kinds.iter().enumerate().filter_map(|(way, kinds)| Some((way, kinds.as_ref()?))) {
                for (heard, said) in heard.iter_mut().zip(kinds.say(&self.columns, &trial.grid, &trial.held, run)?) {
                    heard.said[KINDS + way].extend(said);
                }
            }
        }
        self.kinds = learnt.collect();
        Ok(())
    }

    /// Notes what the designs of the trials leave for held-out cells.
    fn hear_design(&self, trials: &[Trial], heard: &mut [Heard], run: &Run) -> Result<()> {
        let mut tells = vec![[false; BYS.len()]; self.columns.len()];
        let kept = run.time_left().map(|left| left.mul_f64(1.0 - DESIGN_SHARE));
        for (net, Trial { grid, held, .. }) in self.nets.iter().zip(trials) {
            if run.is_down_to(kept) {
                tells.fill([false; BYS.len()]);
                break;
            }
            let design = self.design_of(&[net], grid, run)?;
            for (which, by) in BYS.into_iter().enumerate() {
                let left = design.say(by, &design.rows, |i, f| held[i * grid.m + f], run)?;
                for (&f, left) in design.rows.columns.iter().zip(left) {
                    heard[f].said[DESIGN + which].extend(left.said);
                    tells[f][which] |= left.tells;
                }
            }
        }
        for ((heard, column), tells) in heard.iter_mut().zip(&self.columns).zip(tells) {
            for (which, tells) in tells.into_iter().enumerate() {
                let losses = |c: usize| heard.measured(column, &heard.said[c], Column::loss);
                // What is not surely better than the word of the networks that it began with was not laid out.
                if !(tells && gain_in_errors(&losses(ANSWERS), &losses(DESIGN + which)) > 1.0) {
                    heard.said[DESIGN + which].clear();
                }
            }
        }
        Ok(())
    }

    /// Completes the tables of the trials and the whole one, and adds stages of learners to the networks. Says so where
    /// the time did not allow it.
    fn learn_on_top(
        &mut self,
        grid: &Grid,
        trials: Vec<Trial>,
        heard: &mut [Heard],
        effort: Effort,
        run: &mut Run,
    ) -> Result<Option<String>> {
        let too_late = Some("the time did not allow for learners on top of the networks".to_owned());
        let count = trials.len();
        let kept = run.time_left().map(|left| left.mul_f64(1.0 - COMPLETING_SHARE));
        let mut worlds = Vec::with_capacity(count + 1);
        for (k, Trial { grid, held, kinds }) in trials.into_iter().enumerate() {
            let started = Instant::now();
            let first = First { nets: vec![&self.nets[k]], kinds: &kinds };
            let Some(world) = self.world(grid, held, &first, kept, run)? else { return Ok(too_late) };
            worlds.push(world);
            let needed = started.elapsed().mul_f64((count - k - 1) as f64 + self.nets.len() as f64);
            if run.is_down_to(kept.map(|kept| kept + needed)) {
                return Ok(too_late);
            }
        }
        let all = some_rows(grid, &sample(grid.n, effort.final_rows, run, u64::MAX));
        let Some(world) = self.world(all, Vec::new(), &self.first(), kept, run)? else { return Ok(too_late) };
        worlds.push(world);
        self.add_stages(&mut worlds, heard, effort, run)
    }

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

    /// Completes a table in every way that learners need; none if no more than `kept` is left of a limited time.
    fn world(
        &self,
        grid: Grid,
        held: Vec<bool>,
        first: &First,
        kept: Option<Duration>,
        run: &mut Run,
    ) -> Result<Option<World>> {
        let m = grid.m;
        let plain = self.complete_first(first, &grid, run)?;
        let groups = m.min(GROUPS);
        let mut without = Vec::with_capacity(groups);
        for group in 0..groups {
            if run.is_down_to(kept) {
                return Ok(None);
            }
            let mut hidden = grid.clone();
            hidden
                .observed
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| at % m % groups == group)
                .for_each(|(_, o)| *o = false);
            without.push(self.complete_first(first, &hidden, run)?);
            run.report("completing", group as u64 + 1, groups as u64, "");
        }
        Ok(Some(World { grid, held, plain, without }))
    }

    /// The weights of a column of which too little is known: half the networks, half the last forest.
    fn usual_weights(&self, f: usize) -> Vec<f32> {
        let mut weights = vec![0.0; STAGES + LEARNERS * self.stages.len()];
        let first = if self.nets.is_empty() { TYPICAL } else { ANSWERS };
        let last = self.stages.len().checked_sub(1).filter(|&s| self.stages[s].learners[f].forests[1].is_some());
        weights[first] += 0.5;
        weights[last.map_or(first, |s| STAGES + LEARNERS * s + 1)] += 0.5;
        weights
    }

    fn add_stages(
        &mut self,
        worlds: &mut [World],
        heard: &mut [Heard],
        effort: Effort,
        run: &mut Run,
    ) -> Result<Option<String>> {
        let all = effort.stages + effort.turns;
        let reserve = run.time_left().map(|t| t.mul_f64(SAYING_SHARE));
        // What the completed rows hold for the held-out cells so far, as an opinion.
        let mut before = self.first.clone();
        let mut settled = None;
        for stage in 0..all {
            let order = if stage < effort.stages { Order::Together } else { Order::InTurn };
            if settled == Some(order) {
                continue;
            }
            let Some(added) = self.add_stage(order, worlds, heard, &mut before, (effort, reserve), run)? else {
                return Ok(Some(format!("the time was spent in stage {} of {all}", stage + 1)));
            };
            // Without a better answer the next stage would learn from the same rows.
            if added.sources.iter().all(Option::is_none) {
                settled = Some(order);
            }
            self.stages.push(added);
        }
        Ok(None)
    }

    /// Learns a stage in every world, notes what its learners say of held-out cells, and completes the worlds with the
    /// best of it. Returns the stage of the last world, of all cells; none if the time was spent.
    fn add_stage(
        &self,
        order: Order,
        worlds: &mut [World],
        heard: &mut [Heard],
        before: &mut [usize],
        (effort, reserve): (Effort, Option<Duration>),
        run: &mut Run,
    ) -> Result<Option<Stage>> {
        let (m, number) = (self.columns.len(), self.stages.len());
        let groups = m.min(GROUPS);
        let first = STAGES + LEARNERS * number;
        let mut learners: Vec<Vec<Learners>> = worlds.iter().map(|_| Vec::with_capacity(m)).collect();
        let mut sources = vec![None; m];
        for f in 0..m {
            let column = &self.columns[f];
            for (w, (world, learners)) in worlds.iter().zip(&mut learners).enumerate() {
                if run.is_down_to(reserve) {
                    return Ok(None);
                }
                let z = if order == Order::Together { &world.without[f % groups] } else { &world.plain };
                let index = ((number * worlds.len() + w) * m + f) as u64;
                let fitted = Learners::fit(z, &world.grid, f, &self.columns, effort.trees, run, index)?;
                if !world.held.is_empty() {
                    let rows = open_rows(&world.grid, f, |at| world.held[at]);
                    for which in 0..LEARNERS {
                        let said = fitted.say(which, f, &self.columns, &world.plain, &rows, run)?;
                        heard[f].said[first + which].extend(said.unwrap_or_default());
                    }
                }
                learners.push(fitted);
                let done = (number * m + f) * worlds.len() + w + 1;
                run.report("learners", done as u64, ((effort.stages + effort.turns) * m * worlds.len()) as u64, "");
            }
            let loss = |c| heard[f].loss(column, c).unwrap_or(f64::INFINITY);
            for which in 0..LEARNERS {
                if loss(first + which) < loss(before[f]) {
                    (before[f], sources[f]) = (first + which, Some(which));
                }
            }
            let Some(which) = sources[f].filter(|_| order == Order::InTurn) else { continue };
            for (world, learners) in worlds.iter_mut().zip(&learners) {
                let rows = open_rows(&world.grid, f, |at| !world.grid.observed[at]);
                if let Some(said) = learners[f].say(which, f, &self.columns, &world.plain, &rows, run)? {
                    put(&mut world.plain, f, column, m, &rows, &said);
                }
            }
        }
        let mut last = None;
        for (world, learners) in worlds.iter_mut().zip(learners) {
            let stage = Stage { order, learners, sources: sources.clone() };
            if order == Order::Together && number + 1 < effort.stages + effort.turns {
                let observed = &world.grid.observed;
                let answer = |z: &mut Vec<f32>, open: &dyn Fn(usize) -> bool| {
                    let rows: Vec<Vec<u32>> = (0..m).map(|f| open_rows(&world.grid, f, open)).collect();
                    stage.answer(z, &self.columns, &rows, |_, _| false, run, |_, _, _| {})
                };
                answer(&mut world.plain, &|at| !observed[at])?;
                // Those who take turns learn from rows as they stand.
                let carefully = if number + 1 < effort.stages { groups } else { 0 };
                for (group, z) in world.without.iter_mut().enumerate().take(carefully) {
                    answer(z, &|at| at % m % groups == group || !observed[at])?;
                }
            }
            last = Some(stage);
        }
        Ok(last)
    }
}

/// Whether gains over the typical value, in standard errors, are more than luck: of so many columns some gain a little by
/// chance where the rows tell nothing of each other. Either one column is beyond what the luckiest would be, or all together.
fn anything_known(gains: &[f64]) -> bool {
    let count = gains.len() as f64;
    let together = gains.iter().sum::<f64>() / count.max(1.0).sqrt();
    // One in twenty, were nothing known: each of two ways, by the bound exp(-z^2 / 2) / 2 on what is above z.
    gains.is_empty() || together > 1.645 || gains.iter().any(|&z| z > (2.0 * (10.0 * count).ln()).sqrt())
}

/// What is gained on average from some losses to others of the same cells, in standard errors.
fn gain_in_errors(from: &[f64], to: &[f64]) -> f64 {
    let gains: Vec<f64> = from.iter().zip(to).map(|(from, to)| from - to).collect();
    let (gain, off) = mean_and_error(&gains);
    // Without a spread a gain is sure, and none is none.
    if gain == 0.0 { 0.0 } else { gain / off }
}

/// Weights that believe one opinion alone.
fn only(opinion: usize, of: usize) -> Vec<f32> {
    (0..of).map(|c| f32::from(u8::from(c == opinion))).collect()
}

fn without_cells(grid: &Grid, held: &[bool]) -> Grid {
    let observed = grid.observed.iter().zip(held).map(|(o, h)| *o && !h).collect();
    Grid { observed, ..grid.clone() }
}

/// At most so many rows, in order.
fn sample(n: usize, most: usize, run: &Run, index: u64) -> Vec<u32> {
    sample_rows(n, most, &mut run.rng("rows of learners", index))
}

fn some_rows(grid: &Grid, rows: &[u32]) -> Grid {
    let take = |i: &u32| *i as usize * grid.m..(*i as usize + 1) * grid.m;
    let x = rows.iter().flat_map(|i| grid.x[take(i)].iter().copied()).collect();
    Grid { n: rows.len(), m: grid.m, x, observed: cells_of(&grid.observed, rows, grid.m) }
}

fn cells_of(what: &[bool], rows: &[u32], m: usize) -> Vec<bool> {
    rows.iter().flat_map(|&i| what[i as usize * m..(i as usize + 1) * m].iter().copied()).collect()
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

#[cfg(test)]
mod tests {
    use super::super::columns::columns_of;
    use super::super::network::Shape;
    use super::super::train::Training;
    use super::*;
    use m3impute_core::encode::{Feature, Meaning};

    /// Three columns: one number, its double, and whether it is above a half; every fifth cell is missing.
    fn grid() -> (Grid, Vec<Column>) {
        let n = 200;
        let value = |i: usize| (i * 37 % 101) as f32 / 100.0;
        let x: Vec<f32> =
            (0..n).flat_map(|i| [value(i), value(i) * 0.8 + 0.1, f32::from(u8::from(value(i) > 0.5))]).collect();
        let observed: Vec<bool> = (0..n * 3).map(|at| at % 5 != 2).collect();
        let grid = Grid { n, m: 3, x, observed };
        let meanings = [Meaning::Number, Meaning::Number, Meaning::Category(2)];
        let features: Vec<Feature> = (meanings.into_iter().enumerate())
            .map(|(column, meaning)| Feature { column, meaning, centre: 0.0, scale: 1.0 })
            .collect();
        let columns = columns_of(&features, |f| {
            (0..n).map(|i| i * 3 + f).filter(|&at| grid.observed[at]).map(|at| grid.x[at]).collect()
        });
        (places(grid, &columns), columns)
    }

    /// Levels by their places, as a grid has them.
    fn places(mut grid: Grid, columns: &[Column]) -> Grid {
        let Column::Category { levels } = &columns[2] else { panic!() };
        for x in grid.x.iter_mut().skip(2).step_by(3) {
            *x = levels.iter().position(|&l| l as f32 == *x).unwrap() as f32;
        }
        grid
    }

    fn effort() -> Effort {
        let training =
            Training { shape: Shape { width: 16, layers: 1, lines: true }, steps: 60, ..Training::default() };
        Effort {
            nets: 2,
            held: 0.1,
            training,
            kinds: true,
            design: true,
            stages: 2,
            turns: 1,
            trials: 2,
            trees: 10,
            rows: 1000,
            final_rows: 1000,
        }
    }

    #[test]
    fn what_can_be_known_is_learnt_and_held_out_cells_say_so() {
        let (grid, columns) = grid();
        let mut run = Run::new(0, 2).unwrap();
        let (model, notes) = learn(&grid, columns, effort(), &mut run).unwrap();
        assert!(notes.is_empty());
        for (f, opinions) in model.opinions.iter().enumerate() {
            let typical = opinions.alone[TYPICAL].unwrap();
            assert!(opinions.cells > ENOUGH && opinions.mixed < 0.6 * typical, "column {f}: {opinions:?}");
        }
        let said = model.say(&grid, &run).unwrap();
        let wrong = (0..grid.n).map(|i| i * 3 + 2).filter(|&at| !grid.observed[at]);
        let wrong = wrong.zip(said[2].chunks_exact(2)).filter(|(at, o)| model.columns[2].point(o) != grid.x[*at]);
        assert!(wrong.count() <= 6);
    }

    #[test]
    fn a_little_luck_in_many_columns_is_not_knowledge() {
        assert!(!anything_known(&[1.2, -0.5, 0.3, 1.4, -1.0, 0.2, -0.4, 1.1]));
        assert!(anything_known(&[4.0, -1.0, -1.0, -1.0]), "one column that is surely known");
        assert!(anything_known(&[1.2, 0.9, 1.1, 1.3]), "all a little");
        assert!(anything_known(&[]), "too few cells to tell: the usual weights stand");
    }

    #[test]
    fn a_gain_is_counted_in_standard_errors() {
        assert_eq!(gain_in_errors(&[1.0, 2.0], &[1.0, 2.0]), 0.0);
        assert_eq!(gain_in_errors(&[1.0, 2.0], &[0.5, 1.5]), f64::INFINITY);
        // Gains of 1 and 3: a mean of 2, a deviation of 1, over the root of two cells.
        assert!((gain_in_errors(&[2.0, 4.0], &[1.0, 1.0]) - 2.0 * 2f64.sqrt()).abs() < 1e-9);
        assert!(gain_in_errors(&[1.0, 1.0], &[2.0, 4.0]) < 0.0);
    }

    #[test]
    fn learners_stay_if_they_are_believed_or_seen_by_those_who_are() {
        let (grid, columns) = grid();
        let mut run = Run::new(0, 1).unwrap();
        let (model, _) = learn(&grid, columns, effort(), &mut run).unwrap();
        let believed = |s: usize, f: usize, which: usize| model.weights[f][STAGES + LEARNERS * s + which] > 0.0;
        let kept = |s: usize, f: usize, which: usize| {
            let Learners { forests, line, curve } = &model.stages[s].learners[f];
            [forests[0].is_some(), forests[1].is_some(), line.is_some(), curve.is_some()][which]
        };
        let mut forgotten = 0;
        for (s, f, which) in (0..3).flat_map(|s| (0..3).flat_map(move |f| (0..LEARNERS).map(move |w| (s, f, w)))) {
            let is_source = model.stages[s].sources[f] == Some(which);
            assert_eq!(kept(s, f, which), believed(s, f, which) || is_source, "{s} {f} {which}");
            forgotten += usize::from(!kept(s, f, which));
        }
        // A category has neither line nor curve in any case.
        assert!(forgotten > 3 * 2, "{forgotten}");
    }

    #[test]
    fn a_row_is_answered_by_itself() {
        let (grid, columns) = grid();
        let mut run = Run::new(0, 1).unwrap();
        let (model, _) = learn(&grid, columns, effort(), &mut run).unwrap();
        let all = model.say(&grid, &run).unwrap();
        let one = some_rows(&grid, &[5]);
        let alone = model.say(&one, &run).unwrap();
        let (f, width) = (2, 2);
        assert!(!grid.observed[5 * 3 + f]);
        let before = (0..5).filter(|i| !grid.observed[i * 3 + f]).count();
        assert_eq!(alone[f], all[f][before * width..(before + 1) * width]);
    }
}
