//! Least-absolute-deviation regression of a number on the other columns.

use super::ColumnMember;
use crate::budget::Budget;
use m3impute_learners::Learner;
use m3impute_learners::design_matrix::Scaling;
use m3impute_learners::regression::{OfLevels, OfNumbers, RegressionLearner};

/// The member.
#[derive(Debug)]
pub struct Regression;

impl ColumnMember for Regression {
    fn name(&self) -> &'static str {
        "regression"
    }

    fn learner(&self, _: &Budget) -> Box<dyn Learner> {
        let (numbers, levels) = (OfNumbers::Lad, OfLevels::None);
        Box::new(RegressionLearner { scaling: Scaling::None, numbers, levels })
    }
}
