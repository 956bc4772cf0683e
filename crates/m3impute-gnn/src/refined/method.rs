//! `m3` as a method: its parameters, and what it makes of them for a table of a certain size.

use super::calibrate::{Calibration, softened};
use super::columns::{Column, columns_of};
use super::grid::Grid;
use super::learn::{Effort, learn};
use super::model::Model;
use super::network::Shape;
use super::stage::MOST_TRIED;
use super::train::Training;
use m3impute_core::beliefs::Distributions;
use m3impute_core::encode::{Constants, Layout, Meaning, Scale};
use m3impute_core::{Encoded, Encoding, Learnt, MatrixMethod, Result, Run};
use m3impute_learners::scaler::Ruler;
use serde::{Deserialize, Serialize};

/// The parameters of `m3`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct M3Params {
    /// The width of states, at most.
    pub width: usize,
    /// How many layers a network has.
    pub layers: usize,
    /// The largest step of AdamW.
    pub learning_rate: f64,
    /// The decay of weights.
    pub decay: f64,
    /// The rate of dropout.
    pub dropout: f64,
    /// How many networks.
    pub nets: usize,
    /// How many steps a network is trained at most; fewer for small tables, and for those where a step is dear.
    pub steps: usize,
    /// How many rows a step looks at, at most.
    pub batch: usize,
    /// How often forests, lines and curves learn from the completed table.
    pub stages: usize,
    /// How often, after that, the columns take turns in learning from each other's answers.
    pub turns: usize,
    /// How many trees a forest has.
    pub trees: usize,
}

impl Default for M3Params {
    /// The preset `balanced`.
    fn default() -> M3Params {
        M3Params {
            width: 64,
            layers: 2,
            learning_rate: 4e-3,
            decay: 1e-2,
            dropout: 0.1,
            nets: 4,
            steps: 800,
            batch: 512,
            stages: 2,
            turns: 2,
            trees: 50,
        }
    }
}

impl M3Params {
    /// The parameters of a preset.
    pub fn of_preset(name: &str) -> M3Params {
        let balanced = M3Params::default();
        match name {
            "fast" => M3Params { width: 48, nets: 2, steps: 250, stages: 1, turns: 1, trees: 12, ..balanced },
            "best" => M3Params {
                width: 128,
                layers: 3,
                learning_rate: 3e-3,
                nets: 8,
                steps: 2000,
                stages: 3,
                turns: 3,
                trees: 100,
                ..balanced
            },
            _ => balanced,
        }
    }

    /// What is done for a table with so many columns and observed cells.
    pub fn effort(&self, m: usize, cells: usize) -> Effort {
        // A small table cannot feed a wide network.
        let roomy = (2.0 * (cells as f64).sqrt()) as usize;
        let width = self.width.min(roomy.next_multiple_of(8).max(16));
        let batch = self.batch.min((BATCH_CELLS / m).max(16));
        // Networks of a small table cost little and differ much: more of them are steadier.
        let nets = if cells < TINY { self.nets.min(2) } else { self.nets * (SMALL / cells).clamp(1, 4) };
        let shape = Shape { width, layers: self.layers, lines: true };
        // Arithmetic in proportion to what was asked for: the presets differ in width and number.
        let budget = FLOPS * (self.width * self.width * self.nets) as f64;
        let affordable = budget / (step_flops(m, batch, shape) * nets as f64);
        let steps = self.steps.min(affordable as usize).min((cells / 2).max(40)).max(1);
        let training = Training {
            shape,
            steps,
            rows: batch,
            learning_rate: self.learning_rate as f32,
            decay: self.decay as f32,
            dropout: self.dropout as f32,
            ..Training::default()
        };
        let stages = match m {
            _ if m > MOST_COLUMNS => 0,
            _ if cells < TINY => self.stages.min(1),
            _ => self.stages,
        };
        let turns = if m > MOST_COLUMNS || cells < TINY { 0 } else { self.turns };
        // A row is completed once for each group of columns that are hidden from it.
        let copies = m * m.min(super::learn::GROUPS);
        let rows = TRIAL_ROWS.min(TRIAL_CELLS / copies);
        let final_rows = FINAL_ROWS.min(FINAL_CELLS / copies);
        // Values that one tree a column looks at, in all trials and for the model.
        let n = cells / m;
        let looks = |rows: usize| (rows * m * m.min(2 * MOST_TRIED)) as f64;
        let work = |trials: usize| trials as f64 * looks(n.min(rows)) + looks(n.min(final_rows));
        // Held-out cells of many rows tell enough in two trials; those of a wide table have to.
        let trials = if n > MANY_ROWS || work(nets) > TREE_WORK { nets.min(2) } else { nets };
        let trees = match TREE_WORK / work(trials) {
            _ if cells < TINY => self.trees.min(20),
            share if share < 1.0 => self.trees.min(LEAST_TREES).max((self.trees as f64 * share) as usize),
            _ => self.trees,
        };
        let (kinds, design) = (cells >= TINY, cells >= TINY);
        Effort { nets, held: 0.1, training, kinds, design, stages, turns, trials, trees, rows, final_rows }
    }
}

/// A table with fewer observed cells is an example that somebody types: the answer comes at once.
const TINY: usize = 200;
/// A table with fewer observed cells is small.
const SMALL: usize = 4200;
/// Cells of a batch, observed or not.
const BATCH_CELLS: usize = 32 * 1024;
/// Floating-point operations that training may take, for each network and squared width.
const FLOPS: f64 = 2e8;
/// Wider tables get no learners on top of the networks.
const MOST_COLUMNS: usize = 100;
/// Observed cells a column from which on two trials are enough.
const MANY_ROWS: usize = 3000;
/// Values that one tree a column may look at, in all trials and for the model: with more, there are fewer trees.
const TREE_WORK: f64 = 8e6;
/// Trees of a forest, however much they have to look at.
const LEAST_TREES: usize = 10;
/// Rows that learners see in a trial, at most. Far fewer than the final ones see, they would be believed too little.
const TRIAL_ROWS: usize = 8000;
/// Numbers in all completions of those rows, at most.
const TRIAL_CELLS: usize = 2_000_000;
/// Rows that the learners of the final model see, at most.
const FINAL_ROWS: usize = 36_000;
/// Numbers in all completions of those rows, at most.
const FINAL_CELLS: usize = 24_000_000;

/// The floating-point operations of a training step, about.
fn step_flops(m: usize, batch: usize, shape: Shape) -> f64 {
    let d2 = (shape.width * shape.width) as f64;
    let (rows, cells) = (batch as f64, (batch * m) as f64);
    6.0 * d2 * (0.42 * cells * shape.layers as f64 + rows * 3.0 * (1 + shape.layers) as f64 + 0.28 * cells * 6.0)
}

/// M3-Impute, refined.
#[derive(Clone, Debug, Default)]
pub struct M3 {
    /// The parameters.
    pub params: M3Params,
}

/// What was learnt, and how numbers of the table become those of the networks.
#[derive(Debug)]
pub struct FittedM3 {
    pub(super) rulers: Vec<Ruler>, // [m]
    pub(super) model: Model,
}

/// Rows that are filled at a time.
const ROWS: usize = 8192;

impl MatrixMethod for M3 {
    type Model = FittedM3;
    type Params = M3Params;

    fn params(&self) -> &M3Params {
        &self.params
    }

    fn encoding(&self) -> Encoding {
        Encoding { layout: Layout::Codes, scale: Scale::Raw, constants: Constants::Leave }
    }

    fn fit(&self, data: &Encoded, run: &mut Run) -> Result<Learnt<FittedM3>> {
        let m = data.width();
        let rulers: Vec<Ruler> = (0..m).map(|f| Ruler::of(&data.observed_values(f), levels(data, f))).collect();
        let columns =
            columns_of(&data.features, |f| data.observed_values(f).iter().map(|&v| rulers[f].read(v)).collect());
        let grid = grid_of(data, 0..data.rows, &rulers, &columns);
        let cells = data.observed.iter().filter(|o| **o).count();
        let (model, notes) = learn(&grid, columns, self.params.effort(m, cells), run)?;
        Ok(Learnt { model: FittedM3 { rulers, model }, notes })
    }
}

impl FittedM3 {
    /// Puts answers where `rows.observed` is false; every opinion is also shown to `each`, with its feature, row by row
    /// within a feature.
    pub(super) fn put(&self, rows: &mut Encoded, run: &Run, mut each: impl FnMut(usize, &[f32])) -> Result<()> {
        let (m, n) = (rows.width(), rows.rows);
        for from in (0..n).step_by(ROWS) {
            let part = from..(from + ROWS).min(n);
            let grid = grid_of(rows, part, &self.rulers, &self.model.columns);
            for (f, said) in self.model.say(&grid, run)?.iter().enumerate() {
                let column = &self.model.columns[f];
                let holes = (0..grid.n).filter(|i| !grid.observed[i * m + f]);
                for (i, opinion) in holes.zip(said.chunks_exact(column.opinion_width())) {
                    rows.x[(from + i) * m + f] = self.value(f, column.point(opinion));
                    each(f, opinion);
                }
            }
        }
        Ok(())
    }

    /// Room for the distributions of every feature.
    pub(super) fn no_distributions(&self) -> Vec<Distributions> {
        let of = |(f, column): (usize, &Column)| {
            let values = match column {
                Column::Number { few: false, .. } => return Distributions::Quantiles(Vec::new()),
                Column::Number { bins, .. } => bins.low.iter().map(|&v| self.rulers[f].write(v)).collect(),
                Column::Category { levels } => levels.iter().map(|&l| f64::from(l)).collect(),
            };
            Distributions::Shares { values, shares: Vec::new() }
        };
        self.model.columns.iter().enumerate().map(of).collect()
    }

    /// Adds the distribution that an opinion of a feature stands for.
    pub(super) fn distribution(&self, f: usize, opinion: &[f32], to: &mut Distributions) {
        match (&self.model.calibration[f], to) {
            (Calibration::Spread { quantiles, least }, Distributions::Quantiles(to)) => {
                let spread = opinion[1].max(*least);
                let ruler = &self.rulers[f];
                to.push(std::array::from_fn(|k| ruler.write(opinion[0] + spread * quantiles[k])));
            }
            (Calibration::Softened(soft), Distributions::Shares { shares, .. }) => {
                shares.extend(softened(opinion, &self.model.typical[f], *soft));
            }
            _ => unreachable!("a column's calibration is of its kind"),
        }
    }

    /// A number of the networks as one of the table.
    fn value(&self, f: usize, point: f32) -> f64 {
        match &self.model.columns[f] {
            Column::Number { .. } => self.rulers[f].write(point),
            Column::Category { levels } => f64::from(levels[point as usize]),
        }
    }
}

fn levels(data: &Encoded, f: usize) -> usize {
    match data.features[f].meaning {
        Meaning::Category(levels) => levels as usize,
        Meaning::Number | Meaning::Flag(_) => 0,
    }
}

/// Some rows of a table as the networks see them.
fn grid_of(data: &Encoded, rows: std::ops::Range<usize>, rulers: &[Ruler], columns: &[Column]) -> Grid {
    let m = data.width();
    let cells = rows.start * m..rows.end * m;
    let observed = data.observed[cells.clone()].to_vec();
    let read = |(at, (&value, &seen)): (usize, (&f64, &bool))| match &columns[at % m] {
        _ if !seen => 0.0,
        Column::Number { .. } => rulers[at % m].read(value),
        Column::Category { levels } => {
            levels.iter().position(|&l| f64::from(l) == value).unwrap_or(levels.len()) as f32
        }
    };
    let x = data.x[cells].iter().zip(&observed).enumerate().map(read).collect();
    Grid { n: rows.len(), m, x, observed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_tables_get_fewer_trees_and_trials_and_others_what_the_preset_says() {
        let balanced = M3Params::default();
        let usual = balanced.effort(15, 2000 * 15);
        assert_eq!((usual.trees, usual.trials, usual.nets), (50, 4, 4));
        let wide = balanced.effort(100, 2000 * 100);
        assert!(wide.trials == 2 && (LEAST_TREES..50).contains(&wide.trees), "{wide:?}");
        let huge = balanced.effort(100, 1_000_000 * 100);
        assert!(huge.trees >= LEAST_TREES && huge.rows < 1000, "{huge:?}");
    }

    #[test]
    fn an_example_that_somebody_types_is_answered_with_little_effort() {
        let effort = M3Params::of_preset("best").effort(3, 100);
        assert!(
            effort.nets == 2 && effort.trees == 20 && effort.turns == 0 && !effort.kinds && !effort.design,
            "{effort:?}"
        );
    }
}
