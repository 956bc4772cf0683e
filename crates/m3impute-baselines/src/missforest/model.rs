//! What missForest has learnt: one forest a feature.

use crate::in_turn::fill_in_turn;
use m3impute_core::beliefs::Distributions;
use m3impute_core::{Encoded, Error, MatrixModel, ModelFile, Result, Run, Tensor, Want};
use m3impute_learners::forest::Forest;
use m3impute_learners::scaler::{Ruler, levels_of};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One forest a feature, and the order in which features are filled.
#[derive(Clone, Debug)]
pub struct Forests {
    rounds: usize,
    rulers: Vec<Ruler>, // [w]
    order: Vec<usize>,
    /// None for features that there was no time for. // [w]
    forests: Vec<Option<Forest>>,
}

#[derive(Serialize, Deserialize)]
struct State {
    rounds: usize,
    order: Vec<usize>,
    levels: Vec<usize>,
    /// Which features have a forest.
    learnt: Vec<bool>,
}

impl Forests {
    pub(super) fn new(rounds: usize, rulers: Vec<Ruler>, order: Vec<usize>, forests: Vec<Option<Forest>>) -> Forests {
        Forests { rounds, rulers, order, forests }
    }
}

impl MatrixModel for Forests {
    fn predict(&self, rows: &mut Encoded, _: Want, run: &Run) -> Result<Option<Vec<Distributions>>> {
        // New rows may lie outside of what was seen; to a tree they are then at its edge, whatever the distance.
        let read = |f: usize, v| self.rulers[f].read_or_start(v);
        let write = |f: usize, v| self.rulers[f].write(v);
        fill_in_turn(rows, self.rounds, &self.order, read, write, |f, x, holes| {
            self.forests[f].as_ref().map(|forest| forest.predict(x, holes, run)).transpose()
        })?;
        Ok(None)
    }

    fn store(&self, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        let starts: Vec<f32> = self.rulers.iter().map(|r| r.start).collect();
        tensors.insert("start".to_owned(), Tensor::F32(vec![starts.len()], starts));
        for (f, (ruler, forest)) in self.rulers.iter().zip(&self.forests).enumerate() {
            tensors.insert(format!("{f}.known"), Tensor::F64(vec![ruler.known.len()], ruler.known.clone()));
            if let Some(forest) = forest {
                forest.store(&format!("{f}."), tensors);
            }
        }
        let state = State {
            rounds: self.rounds,
            order: self.order.clone(),
            levels: self.rulers.iter().map(|r| r.levels).collect(),
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
        let features = file.header.encoder.features();
        let expected: Vec<usize> = features.iter().map(|f| levels_of(f.meaning)).collect();
        let (shape, starts) = file.f32s("start")?;
        if state.levels != expected || state.learnt.len() != width || shape != [width] || state.rounds > 1000 {
            return Err(Error::damaged(format!("the state does not fit {width} features")));
        }
        let mut rulers = Vec::with_capacity(width);
        let mut forests = Vec::with_capacity(width);
        for (f, (&levels, &start)) in state.levels.iter().zip(starts).enumerate() {
            let known = file.f64s(&format!("{f}.known"))?.1;
            let rising = known.iter().all(|k| k.is_finite()) && known.windows(2).all(|k| k[0] < k[1]);
            let starts_well = if levels > 0 { (0.0..levels as f32).contains(&start) } else { start.is_finite() };
            if !rising || !starts_well || known.is_empty() != (levels > 0) {
                return Err(Error::damaged(format!("the values of feature {f}")));
            }
            rulers.push(Ruler { levels, start, known: known.to_vec() });
            let learnt = state.learnt[f];
            forests.push(if learnt { Some(Forest::restore(file, &format!("{f}."), f, &state.levels)?) } else { None });
        }
        Ok(Forests { rounds: state.rounds, rulers, order: state.order, forests })
    }
}
