//! The learners among which a column's is searched, each with its settings.

use m3impute_core::{Result, Run};
use m3impute_learners::boosting::{BoostingLearner, BoostingParams, Loss};
use m3impute_learners::design_matrix::Scaling;
use m3impute_learners::forest::{Aggregate, ForestLearner, ForestParams, Mtry};
use m3impute_learners::neighbours::NeighboursLearner;
use m3impute_learners::network::{Centre, NetworkLearner, NetworkParams};
use m3impute_learners::regression::{OfLevels, OfNumbers, RegressionLearner};
use m3impute_learners::tree::Growth;
use m3impute_learners::{FittedLearner, Learner, Stream, Task};

/// More points than this are not kept as neighbours.
const MOST_POINTS: usize = 10_000;

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

/// A learner that may fill a column.
#[derive(Debug)]
pub struct Candidate {
    /// What it is called in notes; also the name of its random streams.
    pub name: &'static str,
    build: fn(&Effort) -> Box<dyn Learner>,
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        self.name == other.name
    }
}

impl Candidate {
    /// Learns. Nothing is returned when the budget is spent before there is a prediction.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn fit(
        &self,
        task: &Task<'_>,
        effort: &Effort,
        run: &Run,
        stream: Stream<'_>,
    ) -> Result<Option<Box<dyn FittedLearner>>> {
        run.check()?;
        if run.is_spent() {
            return Ok(None);
        }
        (self.build)(effort).fit(task, run, stream)
    }
}

/// Least absolute deviations; softmax regression for levels.
pub static LINEAR: Candidate = Candidate {
    name: "linear",
    build: |_| {
        let (numbers, levels) = (OfNumbers::Lad, OfLevels::Likely);
        Box::new(RegressionLearner { scaling: Scaling::Standard, numbers, levels })
    },
};
/// A random forest.
pub static FOREST: Candidate = Candidate {
    name: "forest",
    build: |effort| {
        let growth = Growth { min_leaf: 2.0, ..ROOM };
        forest(Mtry::Third, ForestParams { trees: effort.trees, growth, bootstrap: true, aggregate: Aggregate::Median })
    },
};
/// Extremely randomised trees that follow every value.
pub static EXTRA: Candidate = Candidate { name: "extra trees", build: |effort| extra(effort, 1.0) };
/// Extremely randomised trees with large leaves.
pub static EXTRA_LARGE: Candidate =
    Candidate { name: "extra trees with large leaves", build: |effort| extra(effort, 6.0) };
/// Boosted trees.
pub static BOOSTING: Candidate = Candidate { name: "boosting", build: |effort| boosting(effort, 24) };
/// Boosted trees of few leaves.
pub static BOOSTING_SMALL: Candidate =
    Candidate { name: "boosting of small trees", build: |effort| boosting(effort, 6) };
/// The nearest rows.
pub static NEIGHBOURS: Candidate =
    Candidate { name: "neighbours", build: |_| Box::new(NeighboursLearner { nearest: 10, most: MOST_POINTS }) };
/// A small network.
pub static NETWORK: Candidate = Candidate {
    name: "network",
    build: |effort| {
        let params = NetworkParams { steps: effort.steps, ..NetworkParams::default() };
        Box::new(NetworkLearner { centre: Centre::Median, params })
    },
};
/// As published: ridge regression of penalty 1; softmax regression with balanced classes for levels.
pub static PUBLISHED_LINEAR: Candidate = Candidate {
    name: "ridge or logistic",
    build: |_| {
        let (numbers, levels) = (OfNumbers::Ridge(1.0), OfLevels::Balanced);
        Box::new(RegressionLearner { scaling: Scaling::None, numbers, levels })
    },
};
/// As published: a random forest of depth 3.
pub static PUBLISHED_FOREST: Candidate = Candidate {
    name: "forest of depth 3",
    build: |effort| {
        let growth = Growth { max_depth: 3, ..ROOM };
        forest(Mtry::Root, ForestParams { trees: effort.trees, growth, bootstrap: true, aggregate: Aggregate::Mean })
    },
};
/// As published: 100 boosted trees of depth 3, rate 0.3.
pub static PUBLISHED_BOOSTING: Candidate = Candidate {
    name: "boosting of depth 3",
    build: |_| Box::new(BoostingLearner { numbers: PUBLISHED, classes: PUBLISHED }),
};
/// As published: 10 boosted trees at rate 0.001, hardly more than a constant.
pub static PUBLISHED_CONSTANT: Candidate = Candidate {
    name: "boosting of 10 trees",
    build: |_| {
        let params = BoostingParams { rounds: 10, rate: 1e-3, max_leaves: 64, max_depth: 6, l2: 3.0, ..PUBLISHED };
        Box::new(BoostingLearner { numbers: params, classes: params })
    },
};
/// As published: a network of one layer of 100 units.
pub static PUBLISHED_NETWORK: Candidate = Candidate {
    name: "network of one layer",
    build: |effort| {
        let params = NetworkParams { hidden: vec![100], steps: effort.steps, rate: 1e-3, decay: 1e-3, batch: 512 };
        Box::new(NetworkLearner { centre: Centre::Mean, params })
    },
};

/// Trees without limits.
const ROOM: Growth = Growth { mtry: 1, min_leaf: 1.0, max_depth: usize::MAX, random_cuts: false };

/// Boosting with exact cuts and every row, as published.
const PUBLISHED: BoostingParams = BoostingParams {
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

fn forest(mtry: Mtry, params: ForestParams) -> Box<dyn Learner> {
    Box::new(ForestLearner { mtry, params })
}

fn extra(effort: &Effort, min_leaf: f64) -> Box<dyn Learner> {
    let growth = Growth { min_leaf, random_cuts: true, ..ROOM };
    let aggregate = Aggregate::Median;
    forest(Mtry::Root, ForestParams { trees: effort.trees, growth, bootstrap: false, aggregate })
}

fn boosting(effort: &Effort, max_leaves: usize) -> Box<dyn Learner> {
    let params = BoostingParams {
        rounds: effort.rounds.unwrap_or(300),
        max_leaves,
        patience: effort.rounds.is_none().then_some(20),
        ..BoostingParams::default()
    };
    Box::new(BoostingLearner {
        numbers: BoostingParams { rate: 0.08, min_leaf: 4.0, ..params },
        classes: BoostingParams { rate: 0.12, min_leaf: 0.5, ..params },
    })
}
