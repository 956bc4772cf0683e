//! Rows of the training table that stay in a model where that is asked for, so that an explanation can name the nearest of
//! them.
//!
//! A model holds none of them otherwise: who has the file could read them.

use crate::model::StackModel;
use m3impute_core::encode::{Feature, Meaning};
use m3impute_core::{Encoded, Error, ModelFile, Result, Run, Tensor, sample_rows};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows that are kept at most: an explanation predicts all of them.
pub const MOST_DONORS: usize = 1000;

/// Some rows of the training table.
#[derive(Clone, Debug, PartialEq)]
pub struct Donors {
    /// Which rows those are, increasing, `[k]`.
    rows: Vec<u32>,
    /// Their numbers in 32 bits, which give back observed values bit for bit; 0 where missing, `[k, m]`.
    x: Vec<f32>,
    /// Which of them are observed, `[k, m]`.
    observed: Vec<bool>,
}

impl Donors {
    /// A sample of the rows that the column members learnt from, at most [`MOST_DONORS`]; none where there is no forest.
    pub fn of(data: &Encoded, model: &StackModel, final_rows: usize, run: &Run) -> Option<Donors> {
        let m = data.width();
        if (0..m).all(|f| model.nearness_forest(f).is_none()) {
            return None;
        }
        // The same stream as that of the rows that are learnt from: of these some are taken.
        let learnt = sample_rows(data.rows, final_rows, &mut run.rng("rows of column members", u64::MAX));
        let some = sample_rows(learnt.len(), MOST_DONORS, &mut run.rng("donors", 0));
        let rows: Vec<u32> = some.into_iter().map(|k| learnt[k as usize]).collect();
        let cells = || rows.iter().flat_map(|&i| i as usize * m..(i as usize + 1) * m);
        let observed: Vec<bool> = cells().map(|at| data.observed[at]).collect();
        let x = cells().zip(&observed).map(|(at, seen)| if *seen { data.x[at] as f32 } else { 0.0 }).collect();
        Some(Donors { rows, x, observed })
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Which row of the training table a donor is.
    pub fn row(&self, donor: usize) -> usize {
        self.rows[donor] as usize
    }

    /// The donors that have a value of a feature.
    pub fn with(&self, f: usize) -> Vec<usize> {
        let m = self.x.len() / self.len().max(1);
        (0..self.len()).filter(|donor| self.observed[donor * m + f]).collect()
    }

    /// Some donors as encoded rows.
    pub fn encoded(&self, features: &Arc<[Feature]>, donors: &[usize]) -> Encoded {
        let m = features.len();
        let cells = || donors.iter().flat_map(|donor| donor * m..(donor + 1) * m);
        let number = |at: usize| if self.observed[at] { f64::from(self.x[at]) } else { f64::NAN };
        Encoded {
            rows: donors.len(),
            features: features.clone(),
            x: cells().map(number).collect(),
            observed: cells().map(|at| self.observed[at]).collect(),
        }
    }

    /// Stores them as tensors.
    pub fn store(&self, tensors: &mut BTreeMap<String, Tensor>) {
        let shape = vec![self.len(), self.x.len() / self.len().max(1)];
        tensors.insert("donors.rows".to_owned(), Tensor::U32(vec![self.len()], self.rows.clone()));
        tensors.insert("donors.x".to_owned(), Tensor::F32(shape.clone(), self.x.clone()));
        let observed = self.observed.iter().map(|&o| u8::from(o)).collect();
        tensors.insert("donors.observed".to_owned(), Tensor::U8(shape, observed));
    }

    /// Restores them. Nothing in a file is trusted.
    ///
    /// # Errors
    /// When something is not there or does not fit the features.
    pub fn restore(file: &ModelFile, meanings: &[Meaning]) -> Result<Donors> {
        let (_, rows) = file.u32s("donors.rows")?;
        let shape = (rows.len(), meanings.len());
        let x = file.matrix("donors.x", shape)?;
        let (of_observed, observed) = file.u8s("donors.observed")?;
        let are_rows = (1..=MOST_DONORS).contains(&rows.len())
            && rows.windows(2).all(|w| w[0] < w[1])
            && rows.last().is_some_and(|&last| (last as usize) < file.header.rows);
        let are_flags = of_observed == [shape.0, shape.1] && observed.iter().all(|&o| o <= 1);
        let is_code = |(at, &x): (usize, &f32)| match meanings[at % meanings.len()] {
            Meaning::Category(count) => x.fract() == 0.0 && (0.0..count as f32).contains(&x),
            Meaning::Number | Meaning::Flag(_) => true,
        };
        if !are_rows || !are_flags || !x.iter().enumerate().all(is_code) {
            return Err(Error::damaged("the donors"));
        }
        Ok(Donors { rows: rows.to_vec(), x: x.to_vec(), observed: observed.iter().map(|&o| o == 1).collect() })
    }
}
