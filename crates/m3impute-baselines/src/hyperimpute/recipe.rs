//! The learners among which a column's is searched, each with its settings, and what they have learnt.

use super::column::Task;
use m3impute_core::{Error, ModelFile, RandomStream, Result, Run, Tensor};
use m3impute_learners::boosting::{self, Boosting, Inputs, Lesson, Loss};
use m3impute_learners::design_matrix::DesignMatrix;
use m3impute_learners::forest::{Aggregate, Forest, Frame, Plan};
use m3impute_learners::lad::Line;
use m3impute_learners::neighbours::Neighbours;
use m3impute_learners::network::{self, Aim, Network};
use m3impute_learners::ridge::penalised;
use m3impute_learners::softmax::Softmax;
use m3impute_learners::tree::{Growth, Target};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// More points than this are not kept as neighbours.
const MOST_POINTS: usize = 10_000;

/// A learner with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recipe {
    /// The line of the least absolute error; softmax regression for levels.
    Line,
    /// A random forest.
    Forest,
    /// Extremely random trees that follow every value.
    Extra,
    /// Extremely random trees with large leaves.
    ExtraLarge,
    /// Boosted trees.
    Boosting,
    /// Boosted trees of few leaves.
    BoostingSmall,
    /// The nearest rows.
    Neighbours,
    /// A small network.
    Network,
    /// Ridge regression of penalty 1; softmax regression with balanced classes for levels.
    PublishedLine,
    /// A random forest of depth 3.
    PublishedForest,
    /// 100 boosted trees of depth 3, rate 0.3.
    PublishedBoosting,
    /// 10 boosted trees at rate 0.001: hardly more than a constant.
    PublishedConstant,
    /// A network of one layer of 100 units.
    PublishedNetwork,
}

/// How much each learner may do.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Trees of a forest.
    pub trees: usize,
    /// Steps of a network.
    pub steps: usize,
    /// Rounds of boosting; none where they are to be found on held-out rows.
    pub rounds: Option<usize>,
}

/// What is to be learnt, and from what.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The table without holes, for forests.
    pub frame: &'a Frame,
    /// The same for boosting.
    pub inputs: &'a Inputs,
    /// The levels of each feature, 0 for numbers. // [w]
    pub levels: &'a [usize],
    /// The feature to learn.
    pub f: usize,
    /// What is learnt of it.
    pub task: &'a Task,
    /// The rows to learn from.
    pub rows: &'a [u32],
}

/// What was learnt.
#[derive(Clone, Debug)]
pub enum Learner {
    /// A line.
    Line(DesignMatrix, Line),
    /// The chances of levels, and what each is multiplied by.
    Softmax(DesignMatrix, Softmax, Vec<f64>),
    /// A forest.
    Forest(Box<Forest>),
    /// Boosted trees, and what their outputs mean.
    Boosting(Box<Boosting>, Task),
    /// Rows to compare with.
    Neighbours(DesignMatrix, Neighbours),
    /// A network, and what its outputs mean.
    Network(DesignMatrix, Network, Task),
}

impl Recipe {
    /// What it is called in notes.
    pub fn name(self) -> &'static str {
        match self {
            Recipe::Line => "line",
            Recipe::Forest => "forest",
            Recipe::Extra => "extra trees",
            Recipe::ExtraLarge => "extra trees with large leaves",
            Recipe::Boosting => "boosting",
            Recipe::BoostingSmall => "boosting of small trees",
            Recipe::Neighbours => "neighbours",
            Recipe::Network => "network",
            Recipe::PublishedLine => "ridge or logistic",
            Recipe::PublishedForest => "forest of depth 3",
            Recipe::PublishedBoosting => "boosting of depth 3",
            Recipe::PublishedConstant => "boosting of 10 trees",
            Recipe::PublishedNetwork => "network of one layer",
        }
    }

    /// Learns. Nothing is returned when the budget is spent before there is an answer.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn fit(
        self,
        scene: &Scene<'_>,
        effort: &Effort,
        run: &Run,
        purpose: &str,
        index: u64,
    ) -> Result<Option<Learner>> {
        run.check()?;
        if run.is_spent() {
            return Ok(None);
        }
        Ok(Some(match self {
            Recipe::Line | Recipe::PublishedLine => self.line(scene),
            Recipe::Forest | Recipe::Extra | Recipe::ExtraLarge | Recipe::PublishedForest => {
                let plan = self.forest(scene, effort.trees);
                let forest = Forest::fit(scene.frame, scene.f, scene.rows, &plan, run, purpose, index)?;
                return Ok(forest.map(|forest| Learner::Forest(Box::new(forest))));
            }
            Recipe::Boosting | Recipe::BoostingSmall | Recipe::PublishedBoosting | Recipe::PublishedConstant => {
                let classes = scene.classes();
                let y: Vec<f32> = scene.frame.column(scene.f).collect();
                let target = match scene.task.classes() {
                    0 => Target::Numbers(&y),
                    count => Target::Classes(&classes, count),
                };
                let lesson = Lesson {
                    inputs: scene.inputs,
                    leave_out: Some(scene.f),
                    target,
                    rows: scene.rows,
                    weights: None,
                    watch: &[],
                };
                let plan = self.boosting(scene, effort.rounds);
                let model = Boosting::fit(&lesson, &plan, run, purpose, index)?;
                Learner::Boosting(Box::new(model), scene.task.clone())
            }
            Recipe::Neighbours => {
                let mut rows = scene.rows.to_vec();
                if rows.len() > MOST_POINTS {
                    let mut rng = RandomStream::new(run.rng(purpose, index).next_u64());
                    rng.shuffle_front(&mut rows, MOST_POINTS);
                    rows.truncate(MOST_POINTS);
                }
                let design = scene.design();
                let model = Neighbours {
                    width: design.width(),
                    points: design.points(scene.frame.x(), &rows),
                    values: rows.iter().map(|&i| scene.truth(i)).collect(),
                    nearest: 10,
                    levels: scene.levels[scene.f],
                };
                Learner::Neighbours(design, model)
            }
            Recipe::Network | Recipe::PublishedNetwork => {
                let design = scene.design();
                let points = design.points(scene.frame.x(), scene.rows);
                let y: Vec<f32> = scene.rows.iter().map(|&i| scene.truth(i)).collect();
                let classes: Vec<u32> = y.iter().map(|&y| scene.task.class(y)).collect();
                let published = self == Recipe::PublishedNetwork;
                let aim = match scene.task.classes() {
                    0 if published => Aim::Means(&y),
                    0 => Aim::Medians(&y),
                    count => Aim::Classes(&classes, count),
                };
                let mut plan = network::Plan { steps: effort.steps, ..network::Plan::default() };
                if published {
                    plan = network::Plan { hidden: vec![100], rate: 1e-3, decay: 1e-3, batch: 512, ..plan };
                }
                let model = Network::fit(&points, design.width(), aim, &plan, run, purpose, index)?;
                Learner::Network(design, model, scene.task.clone())
            }
        }))
    }

    fn line(self, scene: &Scene<'_>) -> Learner {
        let published = self == Recipe::PublishedLine;
        let design = if published { DesignMatrix::plain(scene.levels, scene.f) } else { scene.design() };
        let points: Vec<f64> = design.points(scene.frame.x(), scene.rows).iter().map(|&v| f64::from(v)).collect();
        let Task::Levels(levels) = scene.task else {
            let y: Vec<f64> = scene.rows.iter().map(|&i| f64::from(scene.truth(i))).collect();
            let line = if published { penalised(&points, &y, 1.0) } else { Line::fit(&points, &y, true) };
            return Learner::Line(design, line);
        };
        let p = design.width();
        let with_one: Vec<f64> = if p == 0 {
            vec![1.0; scene.rows.len()]
        } else {
            points.chunks_exact(p).flat_map(|row| row.iter().copied().chain([1.0])).collect()
        };
        let classes: Vec<u32> = scene.rows.iter().map(|&i| scene.task.class(scene.truth(i))).collect();
        let mut softmax = Softmax::flat(p + 1, *levels);
        softmax.improve(&with_one, &classes, 1.0, 200);
        let mut factors = vec![1.0; *levels];
        if published {
            // Classes that weigh the same: chances over shares.
            let mut counts = vec![1.0; *levels];
            classes.iter().for_each(|&c| counts[c as usize] += 1.0);
            factors.iter_mut().zip(counts).for_each(|(f, c)| *f = classes.len() as f64 / c);
        }
        Learner::Softmax(design, softmax, factors)
    }

    fn forest(self, scene: &Scene<'_>, trees: usize) -> Plan {
        let w = scene.levels.len();
        let published = self == Recipe::PublishedForest;
        let root = ((w - 1) as f64).sqrt() as usize;
        Plan {
            trees,
            growth: Growth {
                mtry: if self == Recipe::Forest { w.div_ceil(3) } else { root.max(1) },
                min_leaf: match self {
                    Recipe::Forest => 2.0,
                    Recipe::ExtraLarge => 6.0,
                    _ => 1.0,
                },
                max_depth: if published { 3 } else { usize::MAX },
                random_cuts: matches!(self, Recipe::Extra | Recipe::ExtraLarge),
            },
            bootstrap: matches!(self, Recipe::Forest | Recipe::PublishedForest),
            aggregate: if published { Aggregate::Mean } else { Aggregate::Median },
        }
    }

    fn boosting(self, scene: &Scene<'_>, rounds: Option<usize>) -> boosting::Plan {
        let numbers = scene.task.classes() == 0;
        let exact = boosting::Plan {
            loss: Loss::Squared,
            rounds: 100,
            rate: 0.3,
            max_leaves: 8,
            max_depth: 3,
            min_leaf: 1.0,
            l2: 1.0,
            rows: 1.0,
            features: 1.0,
            patience: None,
            watched: 0.0,
        };
        match self {
            Recipe::PublishedBoosting => exact,
            Recipe::PublishedConstant => {
                boosting::Plan { rounds: 10, rate: 1e-3, max_leaves: 64, max_depth: 6, l2: 3.0, ..exact }
            }
            _ => boosting::Plan {
                rounds: rounds.unwrap_or(300),
                rate: if numbers { 0.08 } else { 0.12 },
                max_leaves: if self == Recipe::BoostingSmall { 6 } else { 24 },
                min_leaf: if numbers { 4.0 } else { 0.5 },
                patience: rounds.is_none().then_some(20),
                ..boosting::Plan::default()
            },
        }
    }
}

impl Scene<'_> {
    fn design(&self) -> DesignMatrix {
        DesignMatrix::of(self.frame.x(), self.levels, self.rows, self.f)
    }

    fn truth(&self, i: u32) -> f32 {
        self.frame.x()[i as usize * self.levels.len() + self.f]
    }

    /// The class of every row of the table, also of those that are not learnt from.
    fn classes(&self) -> Vec<u32> {
        self.frame.column(self.f).map(|v| self.task.class(v)).collect()
    }
}

impl Learner {
    /// The answers for some rows of a table without holes (`x` row by row).
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn predict(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        run.check()?;
        match self {
            Learner::Forest(forest) => forest.predict(x, rows, run),
            Learner::Boosting(model, Task::Number) => {
                Ok(model.predict(x, rows, run)?.iter().map(|v| v.clamp(0.0, 1.0)).collect())
            }
            Learner::Boosting(model, task) => {
                let chances = model.chances(x, rows, run)?;
                Ok(chances.chunks_exact(task.classes()).map(|c| task.answer(c)).collect())
            }
            Learner::Line(design, line) => {
                let points = design.points(x, rows);
                let answer = |row: &[f32]| {
                    let row: Vec<f64> = row.iter().map(|&v| f64::from(v)).collect();
                    (line.predict(&row) as f32).clamp(0.0, 1.0)
                };
                Ok(match design.width() {
                    0 => rows.iter().map(|_| answer(&[])).collect(),
                    p => points.chunks_exact(p).map(answer).collect(),
                })
            }
            Learner::Softmax(design, softmax, factors) => {
                let points = design.points(x, rows);
                let p = design.width();
                let answer = |k: usize| {
                    let mut row: Vec<f64> = points[k * p..(k + 1) * p].iter().map(|&v| f64::from(v)).collect();
                    row.push(1.0);
                    let weighed: Vec<f64> = softmax.chances(&row).iter().zip(factors).map(|(c, f)| c * f).collect();
                    (0..weighed.len()).reduce(|a, b| if weighed[b] > weighed[a] { b } else { a }).unwrap_or(0) as f32
                };
                Ok((0..rows.len()).map(answer).collect())
            }
            Learner::Neighbours(design, model) => match design.width() {
                0 => Ok(vec![model.values.first().copied().unwrap_or(0.0); rows.len()]),
                _ => model.predict(&design.points(x, rows), run),
            },
            Learner::Network(design, model, task) => {
                if design.width() == 0 {
                    return Ok(vec![0.0; rows.len()]);
                }
                let said = model.say(&design.points(x, rows), run)?;
                Ok(said
                    .chunks_exact(model.outputs())
                    .map(|scores| match task {
                        Task::Number => scores[0].clamp(0.0, 1.0),
                        _ => {
                            let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                            task.answer(&scores.iter().map(|s| (s - highest).exp()).collect::<Vec<f32>>())
                        }
                    })
                    .collect())
            }
        }
    }

    /// The score of each class for some rows of a table, as many numbers a row, where it has them: a ranking, not chances.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn scores(&self, x: &[f32], rows: &[u32], classes: usize, run: &Run) -> Result<Vec<f32>> {
        match self {
            Learner::Forest(forest) => {
                forest.shares(x, rows, run, classes, |v| ((v as usize) < classes).then_some(v as usize))
            }
            Learner::Boosting(model, _) => model.chances(x, rows, run),
            Learner::Softmax(design, softmax, _) => {
                let (points, p) = (design.points(x, rows), design.width());
                let scores = |k: usize| {
                    let mut row: Vec<f64> = points[k * p..(k + 1) * p].iter().map(|&v| f64::from(v)).collect();
                    row.push(1.0);
                    softmax.chances(&row).into_iter().map(|c| c as f32).collect::<Vec<f32>>()
                };
                Ok((0..rows.len()).flat_map(scores).collect())
            }
            Learner::Network(design, model, _) => {
                let mut said = model.say(&design.points(x, rows), run)?;
                for scores in said.chunks_exact_mut(classes) {
                    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                    scores.iter_mut().for_each(|s| *s = (*s - highest).exp());
                    let total: f32 = scores.iter().sum();
                    scores.iter_mut().for_each(|s| *s /= total);
                }
                Ok(said)
            }
            Learner::Line(..) | Learner::Neighbours(..) => {
                let answers = self.predict(x, rows, run)?;
                let flags = |a: f32| (0..classes).map(move |c| f32::from(u8::from(a as usize == c)));
                Ok(answers.into_iter().flat_map(flags).collect())
            }
        }
    }

    /// The rounds of boosting it has taken, where it is boosted.
    pub fn rounds(&self) -> Option<usize> {
        if let Learner::Boosting(model, _) = self { Some(model.rounds()) } else { None }
    }

    /// Writes it into tensors whose names start with `prefix`; returns what kind it is.
    pub fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) -> &'static str {
        let floats = |values: &[f32]| Tensor::F32(vec![values.len()], values.to_vec());
        let doubles = |values: &[f64]| Tensor::F64(vec![values.len()], values.to_vec());
        match self {
            Learner::Line(design, line) => {
                design.store(prefix, tensors);
                tensors.insert(format!("{prefix}weights"), doubles(&line.weights));
                tensors.insert(format!("{prefix}shift"), doubles(&[line.shift]));
                "line"
            }
            Learner::Softmax(design, softmax, factors) => {
                design.store(prefix, tensors);
                tensors.insert(format!("{prefix}weights"), doubles(&softmax.weights));
                tensors.insert(format!("{prefix}chance_factors"), doubles(factors));
                "softmax"
            }
            Learner::Forest(forest) => {
                forest.store(prefix, tensors);
                "forest"
            }
            Learner::Boosting(model, task) => {
                model.store(prefix, tensors);
                if let Task::Few(values) = task {
                    tensors.insert(format!("{prefix}few"), floats(values));
                }
                "boosting"
            }
            Learner::Neighbours(design, model) => {
                design.store(prefix, tensors);
                tensors.insert(format!("{prefix}points"), floats(&model.points));
                tensors.insert(format!("{prefix}values"), floats(&model.values));
                tensors.insert(format!("{prefix}nearest"), Tensor::U32(vec![1], vec![model.nearest as u32]));
                "neighbours"
            }
            Learner::Network(design, model, task) => {
                design.store(prefix, tensors);
                model.store(prefix, tensors);
                if let Task::Few(values) = task {
                    tensors.insert(format!("{prefix}few"), floats(values));
                }
                "network"
            }
        }
    }

    /// The learner of feature `f` back. `levels` says how many levels each feature has, 0 for numbers.
    ///
    /// # Errors
    /// When something is not there or does not fit.
    pub fn restore(file: &ModelFile, prefix: &str, kind: &str, f: usize, levels: &[usize]) -> Result<Learner> {
        let damaged = |what: &str| Error::damaged(format!("the {kind} of feature {f}: {what}"));
        let name = |name: &str| format!("{prefix}{name}");
        let design = || DesignMatrix::restore(file, prefix, f, levels);
        let finite = |values: &[f64]| values.iter().all(|v| v.is_finite());
        let task = || -> Result<Task> {
            if levels[f] > 0 {
                return Ok(Task::Levels(levels[f]));
            }
            if !file.tensors.contains_key(&name("few")) {
                return Ok(Task::Number);
            }
            let values = file.f32s(&name("few"))?.1;
            if values.is_empty() || values.iter().any(|v| !v.is_finite()) {
                return Err(damaged("its values"));
            }
            Ok(Task::Few(values.to_vec()))
        };
        let wants_number = |number: bool| if (levels[f] == 0) == number { Ok(()) } else { Err(damaged("its kind")) };
        match kind {
            "line" => {
                wants_number(true)?;
                let design = design()?;
                let weights = file.f64s(&name("weights"))?.1;
                let [shift] = file.f64s(&name("shift"))?.1 else { return Err(damaged("its shift")) };
                if weights.len() != design.width() || !finite(weights) || !shift.is_finite() {
                    return Err(damaged("its weights"));
                }
                Ok(Learner::Line(design, Line { weights: weights.to_vec(), shift: *shift, error: 0.0 }))
            }
            "softmax" => {
                wants_number(false)?;
                let design = design()?;
                let (weights, factors) = (file.f64s(&name("weights"))?.1, file.f64s(&name("chance_factors"))?.1);
                let fits = weights.len() == (design.width() + 1) * levels[f] && factors.len() == levels[f];
                if !fits || !finite(weights) || !finite(factors) {
                    return Err(damaged("its weights"));
                }
                let softmax = Softmax { weights: weights.to_vec(), levels: levels[f] };
                Ok(Learner::Softmax(design, softmax, factors.to_vec()))
            }
            "forest" => Ok(Learner::Forest(Box::new(Forest::restore(file, prefix, f, levels)?))),
            "boosting" => {
                let task = task()?;
                let model = Boosting::restore(file, prefix, f, levels, task.classes())?;
                Ok(Learner::Boosting(Box::new(model), task))
            }
            "neighbours" => {
                let design = design()?;
                let (points, values) = (file.f32s(&name("points"))?.1, file.f32s(&name("values"))?.1);
                let [nearest] = file.u32s(&name("nearest"))?.1 else { return Err(damaged("its number of neighbours")) };
                let fits = |v: &f32| if levels[f] > 0 { (0.0..levels[f] as f32).contains(v) } else { v.is_finite() };
                if points.len() != values.len() * design.width() || !values.iter().all(fits) {
                    return Err(damaged("its points"));
                }
                let model = Neighbours {
                    width: design.width(),
                    points: points.to_vec(),
                    values: values.to_vec(),
                    nearest: *nearest as usize,
                    levels: levels[f],
                };
                Ok(Learner::Neighbours(design, model))
            }
            "network" => {
                let (design, task) = (design()?, task()?);
                let model = Network::restore(file, prefix, design.width(), task.classes().max(1))?;
                Ok(Learner::Network(design, model, task))
            }
            _ => Err(damaged("a learner that this version does not have")),
        }
    }
}
