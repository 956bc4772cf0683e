//! Kernel median regression of a number on the other columns, on Nyström landmarks.

use super::ColumnMember;
use crate::budget::{Budget, KERNEL_LANDMARKS, KERNEL_ROWS};
use m3impute_learners::Learner;
use m3impute_learners::kernel::KernelLearner;

/// The member.
#[derive(Debug)]
pub struct Kernel;

impl ColumnMember for Kernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn learner(&self, _: &Budget) -> Box<dyn Learner> {
        Box::new(KernelLearner { rows: KERNEL_ROWS, landmarks: KERNEL_LANDMARKS })
    }
}
