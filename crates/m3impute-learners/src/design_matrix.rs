//! Rows as points in space, for learners that reckon with distances and products: numbers are standardised, levels are
//! flags.
//!
//! Notation: `w` features of a row, `p` coordinates of its point.

use crate::forest::Frame;
use crate::learner::Stored;
use m3impute_core::{Result, Tensor};
use std::collections::BTreeMap;

/// Features with more levels are not looked at: their flags would drown the rest.
const MAX_LEVELS: usize = 16;

/// How numbers become coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// As they are.
    None,
    /// Mean 0 and deviation 1 over the rows that are learnt from.
    Standard,
}

/// How rows become points. One feature, the one that is learnt, is left out.
///
/// ```
/// use m3impute_learners::design_matrix::{DesignMatrix, Scaling};
/// use m3impute_learners::forest::Frame;
/// // A number, a category of two levels, and what is learnt.
/// let frame = Frame::new(vec![1.0, 0.0, 9.0, 3.0, 1.0, 9.0], &[0, 2, 0]);
/// let design = DesignMatrix::new(&frame, &[0, 1], 2, Scaling::Standard);
/// assert_eq!(design.points(frame.x(), &[0, 1]), [-1.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DesignMatrix {
    learnt: usize,
    /// 0 for numbers, `[w]`.
    levels: Vec<usize>,
    /// How many levels have a flag, `[w]`.
    flags: Vec<usize>,
    centres: Vec<f32>, // [w]
    /// What a number's distance from its centre is multiplied by; 0 where all are the same, `[w]`.
    factors: Vec<f32>,
}

impl DesignMatrix {
    /// The points of a table without its feature `learnt`; scaled by some of its rows.
    pub fn new(frame: &Frame, rows: &[u32], learnt: usize, scaling: Scaling) -> DesignMatrix {
        let (w, levels, x) = (frame.width(), frame.levels().to_vec(), frame.x());
        let mut design =
            DesignMatrix { learnt, levels, flags: frame.flags(), centres: vec![0.0; w], factors: vec![1.0; w] };
        if scaling == Scaling::None {
            return design;
        }
        design.factors.fill(0.0);
        for f in (0..w).filter(|&f| design.levels[f] == 0 && f != learnt) {
            let values = || rows.iter().map(|&i| f64::from(x[i as usize * w + f]));
            let mean = values().sum::<f64>() / rows.len().max(1) as f64;
            let deviation = (values().map(|v| (v - mean).powi(2)).sum::<f64>() / rows.len().max(1) as f64).sqrt();
            design.centres[f] = mean as f32;
            design.factors[f] = if deviation > 1e-9 { (1.0 / deviation) as f32 } else { 0.0 };
        }
        design
    }

    /// How many coordinates a point has.
    pub fn width(&self) -> usize {
        self.used().map(|f| if self.levels[f] == 0 { 1 } else { self.flags[f] }).sum()
    }

    fn used(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.levels.len()).filter(|&f| f != self.learnt && self.flags[f] <= MAX_LEVELS)
    }

    /// The points of some rows of a table (`x` row by row), one after the other.
    pub fn points(&self, x: &[f32], rows: &[u32]) -> Vec<f32> {
        let w = self.levels.len();
        let mut points = Vec::with_capacity(rows.len() * self.width());
        for &i in rows {
            let row = &x[i as usize * w..(i as usize + 1) * w];
            for f in self.used() {
                match self.levels[f] {
                    0 => points.push((row[f] - self.centres[f]) * self.factors[f]),
                    _ => points.extend((0..self.flags[f]).map(|l| f32::from(u8::from(row[f] as usize == l)))),
                }
            }
        }
        points
    }

    /// The same as 64-bit numbers.
    pub fn points_f64(&self, x: &[f32], rows: &[u32]) -> Vec<f64> {
        self.points(x, rows).into_iter().map(f64::from).collect()
    }

    /// Writes the design into tensors whose names start with `prefix`.
    pub fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) {
        let mut put = |name: &str, values: &[f32]| {
            tensors.insert(format!("{prefix}{name}"), Tensor::F32(vec![values.len()], values.to_vec()));
        };
        put("centres", &self.centres);
        put("factors", &self.factors);
    }

    /// Restores the design of a stored learner.
    ///
    /// # Errors
    /// When something is not there or does not fit.
    pub fn restore(stored: &Stored<'_>) -> Result<DesignMatrix> {
        let numbers = |name: &str| -> Result<Vec<f32>> {
            let values = stored.file.f32s(&stored.name(name))?.1;
            if values.len() != stored.levels.len() || values.iter().any(|v| !v.is_finite()) {
                return Err(stored.damaged(&format!("`{name}` does not fit the features")));
            }
            Ok(values.to_vec())
        };
        let (centres, factors) = (numbers("centres")?, numbers("factors")?);
        let (levels, flags) = (stored.levels.to_vec(), stored.flags.to_vec());
        Ok(DesignMatrix { learnt: stored.feature, levels, flags, centres, factors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_constant_is_zero_and_what_has_many_levels_is_left_out() {
        let frame = Frame::new(vec![5.0, 3.0, 1.0, 5.0, 4.0, 2.0], &[0, 40, 0]);
        let design = DesignMatrix::new(&frame, &[0, 1], 2, Scaling::Standard);
        assert_eq!((design.width(), design.points(frame.x(), &[1])), (1, vec![0.0]));
    }

    #[test]
    fn a_level_that_stands_for_all_others_has_no_flag() {
        let frame = Frame::with_other_level(vec![2.0, 9.0, 0.0, 9.0], &[3, 0]);
        let design = DesignMatrix::new(&frame, &[0, 1], 1, Scaling::None);
        assert_eq!(design.points(frame.x(), &[0, 1]), [0.0, 0.0, 1.0, 0.0]);
    }
}
