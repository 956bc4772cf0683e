//! What HyperImpute has learnt: one learner a feature.

use super::column::Column;
use crate::in_turn::{UnitFeature, fill_in_turn, levels_of};
use m3impute_core::distributions::Distributions;
use m3impute_core::explain::KeptNumbers;
use m3impute_core::{Encoded, Error, MatrixModel, ModelFile, Result, Run, Tensor, Want};
use m3impute_learners::{FittedLearner, Response, Stored, restore};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One learner a feature, and the order in which features are filled.
#[derive(Debug)]
pub struct Learners {
    pub(super) new_row_sweeps: usize,
    pub(super) columns: Vec<Column>, // [w]
    pub(super) order: Vec<usize>,
    /// What is predicted of each feature, `[w]`.
    pub(super) responses: Vec<Response>,
    /// None for features that there was no time for, `[w]`.
    pub(super) learners: Vec<Option<Box<dyn FittedLearner>>>,
}

#[derive(Serialize, Deserialize)]
struct State {
    new_row_sweeps: usize,
    order: Vec<usize>,
    /// Which numbers are taken as levels.
    coded: Vec<bool>,
    responses: Vec<Response>,
    /// The kind of each feature's learner.
    learners: Vec<Option<String>>,
}

impl MatrixModel for Learners {
    fn predict(&self, rows: &mut Encoded, _: Want, run: &Run) -> Result<Option<Vec<Distributions>>> {
        let read = |f: usize, v| self.columns[f].read(v);
        let write = |f: usize, v| self.columns[f].write(v);
        fill_in_turn(rows, self.new_row_sweeps, &self.order, read, write, |f, x, holes| {
            self.learners[f].as_ref().map(|learner| learner.predict(x, holes, run)).transpose()
        })?;
        Ok(None)
    }

    fn kept_rows(&self) -> Vec<KeptNumbers> {
        let rows: usize = self.learners.iter().flatten().map(|learner| learner.kept_rows()).sum();
        let kept = KeptNumbers { what: "the nearest neighbours of some columns", rows, features: None };
        if rows > 0 { vec![kept] } else { Vec::new() }
    }

    fn store(&self, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        let starts: Vec<f32> = self.columns.iter().map(|c| c.feature.initial).collect();
        tensors.insert("initial".to_owned(), Tensor::F32(vec![starts.len()], starts));
        let mut kinds = Vec::with_capacity(self.columns.len());
        for (f, (column, learner)) in self.columns.iter().zip(&self.learners).enumerate() {
            if let Some(known) = &column.coded {
                tensors.insert(format!("{f}.known"), Tensor::F64(vec![known.len()], known.clone()));
            }
            kinds.push(learner.as_ref().map(|l| l.store(&format!("{f}."), tensors).to_owned()));
        }
        let state = State {
            new_row_sweeps: self.new_row_sweeps,
            order: self.order.clone(),
            coded: self.columns.iter().map(|c| c.coded.is_some()).collect(),
            responses: self.responses.clone(),
            learners: kinds,
        };
        serde_json::to_value(state).unwrap_or_default()
    }

    fn restore(file: &ModelFile, width: usize) -> Result<Learners> {
        let state: State = file.state()?;
        let mut sorted = state.order.clone();
        sorted.sort_unstable();
        if sorted != (0..width).collect::<Vec<_>>() {
            return Err(Error::damaged("`order`: not each feature once"));
        }
        let (shape, starts) = file.f32s("initial")?;
        let fits = state.coded.len() == width
            && state.learners.len() == width
            && state.responses.len() == width
            && shape == [width];
        if !fits || state.new_row_sweeps > 1000 {
            return Err(Error::damaged(format!("the state does not fit {width} features")));
        }
        let mut columns = Vec::with_capacity(width);
        for (f, feature) in file.header.encoder.features().iter().enumerate() {
            let feature = UnitFeature { levels: levels_of(feature.meaning), initial: starts[f] };
            let known = if state.coded[f] { Some(file.f64s(&format!("{f}.known"))?.1.to_vec()) } else { None };
            let rises = |k: &Vec<f64>| k.iter().all(|v| v.is_finite()) && k.windows(2).all(|w| w[0] < w[1]);
            let column = Column { feature, coded: known };
            let sound = match &column.coded {
                Some(known) => {
                    let initial = (0.0..known.len() as f32).contains(&feature.initial);
                    feature.levels == 0 && rises(known) && initial
                }
                None => feature.is_sound(),
            };
            if !sound {
                return Err(Error::damaged(format!("the values of feature {f}")));
            }
            columns.push(column);
        }
        let levels: Vec<usize> = columns.iter().map(Column::levels).collect();
        let mut learners = Vec::with_capacity(width);
        for (f, kind) in state.learners.iter().enumerate() {
            let (prefix, response) = (format!("{f}."), &state.responses[f]);
            let fits = match response {
                Response::Levels(count) => *count == levels[f],
                Response::Values(values) => {
                    levels[f] == 0 && !values.is_empty() && values.iter().all(|v| v.is_finite())
                }
                Response::Number => levels[f] == 0,
            };
            if !fits {
                return Err(Error::damaged(format!("what is predicted of feature {f}")));
            }
            let stored = Stored { file, prefix: &prefix, feature: f, levels: &levels, flags: &levels, response };
            learners.push(kind.as_ref().map(|kind| restore(kind, &stored)).transpose()?);
        }
        Ok(Learners {
            new_row_sweeps: state.new_row_sweeps,
            columns,
            order: state.order,
            responses: state.responses,
            learners,
        })
    }
}
