//! Rows as points in space, for learners that reckon with distances and products: numbers are standardised, levels are
//! flags.
//!
//! Notation: `w` features of a row, `p` coordinates of its point.

use m3impute_core::{Error, ModelFile, Result, Tensor};
use std::collections::BTreeMap;

/// Features with more levels are not looked at: their flags would drown the rest.
const MAX_LEVELS: usize = 16;

/// How rows become points. One feature, the one that is learnt, is left out.
///
/// ```
/// use m3impute_learners::design::DesignMatrix;
/// // A number, a category of two levels, and what is learnt.
/// let x = [1.0, 0.0, 9.0, 3.0, 1.0, 9.0];
/// let design = DesignMatrix::of(&x, &[0, 2, 0], &[0, 1], 2);
/// assert_eq!(design.points(&x, &[0, 1]), [-1.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DesignMatrix {
    learnt: usize,
    levels: Vec<usize>, // [w]
    centres: Vec<f32>,  // [w]
    /// What a number's distance from its centre is multiplied by; 0 where all are the same. // [w]
    factors: Vec<f32>,
}

impl DesignMatrix {
    /// Learns means and deviations from some rows of a table (`x` row by row); `levels` says how many levels each
    /// feature has, 0 for numbers.
    pub fn of(x: &[f32], levels: &[usize], rows: &[u32], learnt: usize) -> DesignMatrix {
        let w = levels.len();
        let mut design = DesignMatrix { learnt, levels: levels.to_vec(), centres: vec![0.0; w], factors: vec![0.0; w] };
        for f in (0..w).filter(|&f| levels[f] == 0 && f != learnt) {
            let values = || rows.iter().map(|&i| f64::from(x[i as usize * w + f]));
            let mean = values().sum::<f64>() / rows.len().max(1) as f64;
            let deviation = (values().map(|v| (v - mean).powi(2)).sum::<f64>() / rows.len().max(1) as f64).sqrt();
            design.centres[f] = mean as f32;
            design.factors[f] = if deviation > 1e-9 { (1.0 / deviation) as f32 } else { 0.0 };
        }
        design
    }

    /// The design that leaves numbers as they are.
    pub fn plain(levels: &[usize], learnt: usize) -> DesignMatrix {
        let w = levels.len();
        DesignMatrix { learnt, levels: levels.to_vec(), centres: vec![0.0; w], factors: vec![1.0; w] }
    }

    /// How many coordinates a point has.
    pub fn width(&self) -> usize {
        self.used().map(|f| self.levels[f].max(1)).sum()
    }

    fn used(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.levels.len()).filter(|&f| f != self.learnt && self.levels[f] <= MAX_LEVELS)
    }

    /// The points of some rows, one after the other, `[rows, p]`.
    pub fn points(&self, x: &[f32], rows: &[u32]) -> Vec<f32> {
        let w = self.levels.len();
        let mut points = Vec::with_capacity(rows.len() * self.width());
        for &i in rows {
            let row = &x[i as usize * w..(i as usize + 1) * w];
            for f in self.used() {
                match self.levels[f] {
                    0 => points.push((row[f] - self.centres[f]) * self.factors[f]),
                    levels => points.extend((0..levels).map(|l| f32::from(u8::from(row[f] as usize == l)))),
                }
            }
        }
        points
    }

    /// Writes the design into tensors whose names start with `prefix`.
    pub fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) {
        let mut put = |name: &str, values: &[f32]| {
            tensors.insert(format!("{prefix}{name}"), Tensor::F32(vec![values.len()], values.to_vec()));
        };
        put("centres", &self.centres);
        put("factors", &self.factors);
    }

    /// The design for feature `learnt` back.
    ///
    /// # Errors
    /// When something is not there or does not fit.
    pub fn restore(file: &ModelFile, prefix: &str, learnt: usize, levels: &[usize]) -> Result<DesignMatrix> {
        let numbers = |name: &str| -> Result<Vec<f32>> {
            let values = file.f32s(&format!("{prefix}{name}"))?.1;
            if values.len() != levels.len() || values.iter().any(|v| !v.is_finite()) {
                return Err(Error::damaged(format!("`{prefix}{name}` does not fit the features")));
            }
            Ok(values.to_vec())
        };
        Ok(DesignMatrix { learnt, levels: levels.to_vec(), centres: numbers("centres")?, factors: numbers("factors")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_constant_is_zero_and_what_has_many_levels_is_left_out() {
        let x = [5.0, 3.0, 1.0, 5.0, 4.0, 2.0];
        let design = DesignMatrix::of(&x, &[0, 40, 0], &[0, 1], 2);
        assert_eq!((design.width(), design.points(&x, &[1])), (1, vec![0.0]));
    }
}
