//! What missForest has learnt: one forest a feature.

use crate::in_turn::{UnitFeature, fill_in_turn, levels_of};
use m3impute_core::distributions::Distributions;
use m3impute_core::{Encoded, Error, MatrixModel, ModelFile, Result, Run, Tensor, Want};
use m3impute_learners::forest::Forest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One forest a feature, and the order in which features are filled.
#[derive(Clone, Debug)]
pub struct Forests {
    new_row_sweeps: usize,
    features: Vec<UnitFeature>, // [w]
    order: Vec<usize>,
    /// None for features that there was no time for, `[w]`.
    forests: Vec<Option<Forest>>,
}

#[derive(Serialize, Deserialize)]
struct State {
    new_row_sweeps: usize,
    order: Vec<usize>,
    levels: Vec<usize>,
    /// Which features have a forest.
    learnt: Vec<bool>,
}

impl Forests {
    pub(super) fn new(
        new_row_sweeps: usize,
        features: Vec<UnitFeature>,
        order: Vec<usize>,
        forests: Vec<Option<Forest>>,
    ) -> Forests {
        Forests { new_row_sweeps, features, order, forests }
    }
}

impl MatrixModel for Forests {
    fn predict(&self, rows: &mut Encoded, _: Want, run: &Run) -> Result<Option<Vec<Distributions>>> {
        // New rows may lie outside of what was seen; to a tree they are then at its edge, whatever the distance.
        let read = |f: usize, v| self.features[f].read(v);
        let write = |_, v| f64::from(v);
        fill_in_turn(rows, self.new_row_sweeps, &self.order, read, write, |f, x, holes| {
            self.forests[f].as_ref().map(|forest| forest.predict(x, holes, run)).transpose()
        })?;
        Ok(None)
    }

    fn store(&self, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        let starts: Vec<f32> = self.features.iter().map(|f| f.initial).collect();
        tensors.insert("initial".to_owned(), Tensor::F32(vec![starts.len()], starts));
        for (f, forest) in self.forests.iter().enumerate() {
            if let Some(forest) = forest {
                forest.store(&format!("{f}."), tensors);
            }
        }
        let state = State {
            new_row_sweeps: self.new_row_sweeps,
            order: self.order.clone(),
            levels: self.features.iter().map(|f| f.levels).collect(),
            learnt: self.forests.iter().map(Option::is_some).collect(),
        };
        serde_json::to_value(state).unwrap_or_default()
    }

    fn restore(file: &ModelFile, width: usize) -> Result<Forests> {
        let state: State = file.state()?;
        let mut sorted = state.order.clone();
        sorted.sort_unstable();
        if sorted != (0..width).collect::<Vec<_>>() {
            return Err(Error::damaged("`order`: not each feature once"));
        }
        let expected: Vec<usize> = file.header.encoder.features().iter().map(|f| levels_of(f.meaning)).collect();
        let (shape, starts) = file.f32s("initial")?;
        if state.levels != expected || state.learnt.len() != width || shape != [width] || state.new_row_sweeps > 1000 {
            return Err(Error::damaged(format!("the state does not fit {width} features")));
        }
        let mut features = Vec::with_capacity(width);
        let mut forests = Vec::with_capacity(width);
        for (f, (&levels, &initial)) in state.levels.iter().zip(starts).enumerate() {
            let feature = UnitFeature { levels, initial };
            if !feature.is_sound() {
                return Err(Error::damaged(format!("the initial imputation of feature {f}")));
            }
            features.push(feature);
            let learnt = state.learnt[f];
            forests.push(if learnt { Some(Forest::restore(file, &format!("{f}."), f, &state.levels)?) } else { None });
        }
        Ok(Forests { new_row_sweeps: state.new_row_sweeps, features, order: state.order, forests })
    }
}
