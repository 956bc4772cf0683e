//! Several networks, each of which has not seen some cells: trained side by side, asked together.

use super::columns::Column;
use super::grid::{Batch, Grid};
use super::lines::Lines;
use super::network::{Answer, Network};
use super::train::{Task, Trainer, Training};
use crate::pass::Pass;
use m3impute_core::{Result, Run};
use m3impute_nn::{Params, Tape, alone};
use rayon::prelude::*;
use std::time::Duration;

/// Cells, observed or not, of the rows that are answered at a time.
const CELLS: usize = 4096;
/// Cells, observed or not, of the rows that are looked at to tell when to stop.
const JUDGED_CELLS: usize = 64 * 1024;
/// What an unexpected level counts beside an absolute error.
const LEVEL_ERROR: f64 = 0.1;

/// A trained network.
#[derive(Clone, Debug)]
pub struct Net {
    /// Its maps.
    pub network: Network,
    /// Its weights.
    pub params: Params,
    /// The partners of each column, `k` each.
    pub lines: Lines,
}

/// What the networks say of the cells of one column: two opinions each, from its answers and from its point. A column
/// that is answered by shares has the first alone.
pub type Voices = [Vec<f32>; 2];

/// A network in training, with the best state so far.
struct Pupil<'a> {
    trainer: Trainer<'a>,
    /// The held-out cells that are looked at to tell when to stop, `[n, m]`.
    judged: Vec<bool>,
    best: (f64, Params),
    at: usize,
    done: bool,
}

/// Trains a network for each set of held-out cells, until its error on those has stopped to fall, or no more than
/// `reserve` is left of a limited time.
///
/// # Errors
/// When the run is cancelled, or a loss is not finite.
pub fn train(
    grids: &[Grid],
    held: &[Vec<bool>],
    columns: &[Column],
    training: Training,
    reserve: Option<Duration>,
    run: &mut Run,
) -> Result<(Vec<Net>, Vec<String>)> {
    let lines: Vec<Lines> = grids.iter().map(|grid| Lines::of(grid, columns, |at| grid.observed[at])).collect();
    let mut pupils: Vec<Pupil<'_>> = Vec::new();
    for (k, grid) in grids.iter().enumerate() {
        let m = grid.m;
        let shows = |i: usize| grid.observed[i * m..(i + 1) * m].iter().filter(|o| **o).count();
        let rows = (0..grid.n).filter(|&i| shows(i) > 1).map(|i| i as u32).collect();
        let task = Task { grid, columns, lines: &lines[k], rows };
        let trainer = Trainer::new(task, training, &mut run.rng("weights", k as u64));
        let best = (f64::INFINITY, trainer.smoothed());
        // Some rows of a large table tell as much as all of them.
        let stride = (grid.observed.len() / JUDGED_CELLS).max(1);
        let judged = held[k].iter().enumerate().map(|(at, h)| *h && (at / m) % stride == 0).collect();
        pupils.push(Pupil { trainer, judged, best, at: 0, done: false });
    }
    let mut notes = Vec::new();
    let every = (training.steps / 24).max(10);
    let chunk = 5;
    let mut step = 0;
    while step < training.steps && pupils.iter().any(|p| !p.done) {
        run.check()?;
        if run.is_down_to(reserve) {
            notes.push(format!("the time was spent after {step} of {} steps", training.steps));
            break;
        }
        let to = (step + chunk).min(training.steps);
        let look = to / every > step / every || to == training.steps;
        let shared: &Run = run;
        let advanced: Result<Vec<()>> = shared.install(|| {
            pupils
                .par_iter_mut()
                .enumerate()
                .filter(|(_, p)| !p.done)
                .map(|(k, pupil)| alone(|| pupil.advance(k, step..to, look.then_some(columns), shared)))
                .collect()
        });
        advanced?;
        step = to;
        for pupil in pupils.iter_mut().filter(|p| look && !p.done) {
            pupil.done = step - pupil.at > (training.steps / 3).max(100);
        }
        if look {
            let error = pupils.iter().map(|p| p.best.0).sum::<f64>() / pupils.len() as f64;
            run.report("training", step as u64, training.steps as u64, format!("held-out error {error:.4}"));
        }
    }
    let nets = pupils
        .into_iter()
        .zip(&lines)
        .map(|(pupil, lines)| {
            let params = if pupil.best.0.is_finite() { pupil.best.1 } else { pupil.trainer.smoothed() };
            Net { network: pupil.trainer.into_network(), params, lines: lines.clone() }
        })
        .collect();
    Ok((nets, notes))
}

impl Pupil<'_> {
    fn advance(&mut self, k: usize, steps: std::ops::Range<usize>, look: Option<&[Column]>, run: &Run) -> Result<()> {
        let last = steps.end;
        for step in steps {
            run.check()?;
            let stream = ((k as u64) << 40) | step as u64;
            self.trainer.step(run.rng("training", stream))?;
        }
        let Some(columns) = look else { return Ok(()) };
        let params = self.trainer.smoothed();
        let (network, lines, grid) = self.trainer.parts();
        let mut error = 0.0;
        let mut count = 0;
        let rows = rows_at_a_time(grid);
        let mut tape = Tape::inference();
        for from in (0..grid.n).step_by(rows) {
            run.check()?;
            let part = from..(from + rows).min(grid.n);
            let said = say_rows(&mut tape, &[(network, &params, lines)], columns, grid, part.clone(), &self.judged);
            for (f, [answers, point]) in said.iter().enumerate() {
                let column = &columns[f];
                let asked = part.clone().map(|i| i * grid.m + f).filter(|&at| self.judged[at]);
                let scale = if column.is_number() { 1.0 } else { LEVEL_ERROR };
                for (c, at) in asked.enumerate() {
                    let cell = c * column.opinion_width()..(c + 1) * column.opinion_width();
                    let of = |voice: &[f32]| scale * column.error(&voice[cell.clone()], grid.x[at]);
                    error += of(answers) + of(if point.is_empty() { answers } else { point });
                    count += 2;
                }
            }
        }
        let error = if count == 0 { 0.0 } else { error / f64::from(count) };
        // Without cells to tell, the latest is the best.
        if error < self.best.0 || count == 0 {
            self.best = (error, params);
            self.at = last;
        }
        Ok(())
    }
}

/// What the networks say, on average, of the cells that are asked for, given all that is observed. For each column the
/// opinions of its cells, row by row.
///
/// # Errors
/// When the run is cancelled.
pub fn say(nets: &[&Net], columns: &[Column], grid: &Grid, asked: &[bool], run: &Run) -> Result<Vec<Voices>> {
    let nets: Vec<_> = nets.iter().map(|net| (&net.network, &net.params, &net.lines)).collect();
    let rows = rows_at_a_time(grid);
    let starts: Vec<usize> = (0..grid.n).step_by(rows).collect();
    let parts: Vec<Result<Vec<Voices>>> = run.install(|| {
        starts
            .par_iter()
            // A tape keeps its memory for the next rows.
            .map_init(Tape::inference, |tape, &from| {
                run.check()?;
                Ok(alone(|| say_rows(tape, &nets, columns, grid, from..(from + rows).min(grid.n), asked)))
            })
            .collect()
    });
    let mut all: Vec<Voices> = vec![Voices::default(); grid.m];
    for part in parts {
        for (all, part) in all.iter_mut().zip(part?) {
            all.iter_mut().zip(part).for_each(|(all, part)| all.extend(part));
        }
    }
    Ok(all)
}

/// How many rows are answered at a time.
fn rows_at_a_time(grid: &Grid) -> usize {
    (CELLS / grid.m).clamp(8, 512)
}

fn say_rows(
    tape: &mut Tape,
    nets: &[(&Network, &Params, &Lines)],
    columns: &[Column],
    grid: &Grid,
    rows: std::ops::Range<usize>,
    asked: &[bool],
) -> Vec<Voices> {
    let m = grid.m;
    let rows: Vec<u32> = rows.filter(|i| asked[i * m..(i + 1) * m].iter().any(|a| *a)).map(|i| i as u32).collect();
    let mut voices = vec![Voices::default(); m];
    if rows.is_empty() {
        return voices;
    }
    let of = |what: &[bool]| -> Vec<bool> {
        rows.iter().flat_map(|&i| what[i as usize * m..(i as usize + 1) * m].iter().copied()).collect()
    };
    let (shown, wanted) = (of(&grid.observed), of(asked));
    let mut points: Vec<f32> = Vec::new();
    let mut shares: Vec<f32> = Vec::new(); // [t, most answers]
    let mut targets = Vec::new();
    let most = columns.iter().map(Column::answers).max().unwrap_or(1);
    let part = 1.0 / nets.len() as f32;
    for &(network, params, lines) in nets {
        let batch = Batch::new(grid, &rows, columns, lines, &shown, |at| wanted[at]);
        tape.reset();
        let mut pass = Pass::new(tape, params);
        let Answer { point, logits } = network.answer(&mut pass, &batch);
        let (said, logits) = (pass.tape.value(point).as_slice(), pass.tape.value(logits));
        if targets.is_empty() {
            targets = batch.target_column.targets().to_vec();
            points = vec![0.0; targets.len()];
            shares = vec![0.0; targets.len() * most];
        }
        let mut raised = vec![0.0; most];
        for (t, (shares, &f)) in shares.chunks_exact_mut(most).zip(&targets).enumerate() {
            points[t] += part * said[t];
            let answers = columns[f as usize].answers();
            add_softmax(&logits.row(t)[..answers], part, &mut raised, shares);
        }
    }
    for ((&f, point), shares) in targets.iter().zip(points).zip(shares.chunks_exact(most)) {
        let voices = &mut voices[f as usize];
        let column = &columns[f as usize];
        let shares = &shares[..column.answers()];
        match column {
            Column::Number { bins, few: false, .. } => {
                let [low, median, high] = [0.16, 0.5, 0.84].map(|q| bins.quantile(shares, q));
                let spread = (high - low) / 2.0;
                voices[0].extend([median, spread]);
                voices[1].extend([point, spread]);
            }
            _ => voices[0].extend(shares),
        }
    }
    voices
}

/// Adds a part of the shares that these logits mean to `sum`; `raised` is room to work in.
fn add_softmax(logits: &[f32], part: f32, raised: &mut [f32], sum: &mut [f32]) {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let raised = &mut raised[..logits.len()];
    raised.iter_mut().zip(logits).for_each(|(raised, l)| *raised = (l - most).exp());
    let total: f32 = raised.iter().sum();
    for (sum, raised) in sum.iter_mut().zip(raised) {
        *sum += part * *raised / total;
    }
}
