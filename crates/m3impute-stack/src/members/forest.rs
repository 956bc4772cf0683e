//! Extremely randomised trees; the median, or the probabilities, of what the leaves hold that a row falls into.

use super::ColumnMember;
use crate::budget::{Budget, MOST_TRIED};
use m3impute_learners::forest::{Aggregate, ForestLearner, ForestParams, Mtry};
use m3impute_learners::tree::Growth;
use m3impute_learners::{Learner, Stream};

/// A forest whose leaves hold at least so many rows.
#[derive(Debug)]
pub struct Forest {
    key: &'static str,
    min_leaf: f64,
    number: u64,
    unproven_weight: f32,
}

/// It follows every value.
pub static SMALL_LEAVES: Forest = Forest { key: "forest_small_leaves", min_leaf: 1.0, number: 0, unproven_weight: 0.0 };
/// It is steadier where values are noise.
pub static LARGE_LEAVES: Forest = Forest { key: "forest_large_leaves", min_leaf: 6.0, number: 1, unproven_weight: 0.5 };

impl ColumnMember for Forest {
    fn name(&self) -> &'static str {
        "forest"
    }

    fn key(&self) -> &'static str {
        self.key
    }

    fn unproven_weight(&self) -> f32 {
        self.unproven_weight
    }

    fn learner(&self, budget: &Budget) -> Box<dyn Learner> {
        let growth = Growth { mtry: 1, min_leaf: self.min_leaf, max_depth: usize::MAX, random_cuts: true };
        let params = ForestParams { trees: budget.trees, growth, bootstrap: false, aggregate: Aggregate::Median };
        Box::new(ForestLearner { mtry: Mtry::Half(MOST_TRIED), params })
    }

    fn stream(&self, index: u64) -> Stream<'static> {
        Stream { purpose: "forest", index: 2 * index + self.number }
    }
}
