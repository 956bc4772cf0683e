//! The graph network of [`m3impute_gnn::network`]: one for each fold, whose predictions are averaged.

use super::{Context, FittedFolds, FittedRowMember, Predicted, Refit, Request, RowMember, Section};
use crate::columns::Columns;
use crate::folds::Fold;
use m3impute_core::{Error, Result, Run, Tensor};
use m3impute_gnn::network::bag::{self, TrainedNetwork};
use m3impute_gnn::network::{ColumnInput, Grid, Shape};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The share of the remaining time that is reserved for what follows the networks.
const KEPT_TIME: f64 = 0.4;
/// Networks in a file, at most.
const MOST_NETWORKS: usize = 1024;

/// The member. Its first output is from the probabilities of classes (their median for a number), its second the point.
#[derive(Debug)]
pub struct Network;

/// Networks that are averaged.
#[derive(Debug)]
struct FittedNetworks {
    shape: Shape,
    inputs: Arc<[ColumnInput]>,
    networks: Vec<Arc<TrainedNetwork>>,
}

#[derive(Serialize, Deserialize)]
struct State {
    shape: Shape,
    inputs: Vec<ColumnInput>,
    networks: usize,
}

impl RowMember for Network {
    fn name(&self) -> &'static str {
        "network"
    }

    fn outputs(&self) -> usize {
        2
    }

    fn refit(&self) -> Refit {
        Refit::Bagged
    }

    /// The layers above learn more from the networks' imputation than from others, unless it is clearly worse.
    fn initial(&self) -> Option<f64> {
        Some(0.9)
    }

    fn unproven_weight(&self) -> f32 {
        0.5
    }

    fn fit(&self, folds: &[&Fold], _: &[Predicted], context: Context<'_>) -> Result<FittedFolds> {
        let Context { columns, budget, run } = context;
        let Some(first) = folds.first() else { return Ok(FittedFolds::default()) };
        let mut all = first.grid.clone();
        all.observed.iter_mut().zip(&first.held).for_each(|(observed, held)| *observed |= *held);
        let input = |(f, response)| ColumnInput::of(&all.values(f), response);
        let inputs: Arc<[ColumnInput]> = columns.responses.iter().enumerate().map(input).collect();
        let kept = run.time_left().map(|t| t.mul_f64(KEPT_TIME));
        let views: Vec<(&Grid, &[bool])> = folds.iter().map(|fold| (&fold.grid, &fold.held[..])).collect();
        let (networks, notes) = bag::train(&views, &inputs, budget.training, kept, run)?;
        let networks: Vec<Arc<TrainedNetwork>> = networks.into_iter().map(Arc::new).collect();
        let fitted = |networks: &[Arc<TrainedNetwork>]| -> Option<Box<dyn FittedRowMember>> {
            let (shape, inputs) = (budget.training.shape, inputs.clone());
            let networks = networks.to_vec();
            (!networks.is_empty()).then(|| Box::new(FittedNetworks { shape, inputs, networks }) as _)
        };
        Ok(FittedFolds { models: networks.chunks(1).map(fitted).collect(), bagged: fitted(&networks), notes })
    }

    fn restore(&self, section: &Section<'_>, columns: &Columns) -> Result<Box<dyn FittedRowMember>> {
        let Section { file, prefix, state } = *section;
        let State { shape, inputs, networks } =
            State::deserialize(state).map_err(|e| Error::damaged(format!("the networks: {e}")))?;
        let fits = inputs.iter().map(|input| &input.response).eq(&columns.responses);
        if !fits || !(1..=MOST_NETWORKS).contains(&networks) {
            return Err(Error::damaged("the shape of the networks"));
        }
        let restore = |k: usize| TrainedNetwork::restore(file, &format!("{prefix}{k}."), shape, &inputs).map(Arc::new);
        let networks = (0..networks).map(restore).collect::<Result<_>>()?;
        Ok(Box::new(FittedNetworks { shape, inputs: inputs.into(), networks }))
    }
}

impl FittedRowMember for FittedNetworks {
    fn predict(&self, request: &Request<'_>, run: &Run) -> Result<Predicted> {
        let networks: Vec<&TrainedNetwork> = self.networks.iter().map(Arc::as_ref).collect();
        let of_columns = bag::predict(&networks, &self.inputs, request.grid, request.cells, run)?;
        let (from_classes, points) = of_columns.into_iter().map(|[from_classes, point]| (from_classes, point)).unzip();
        Ok(vec![from_classes, points])
    }

    fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        for (k, network) in self.networks.iter().enumerate() {
            network.store(&format!("{prefix}{k}."), tensors);
        }
        let (shape, inputs) = (self.shape, self.inputs.to_vec());
        serde_json::to_value(State { shape, inputs, networks: self.networks.len() }).unwrap_or_default()
    }
}
