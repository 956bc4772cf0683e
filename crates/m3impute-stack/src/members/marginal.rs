//! The baseline: the median with a spread, or the shares of the classes, the same for every row.

use super::{Context, FittedFolds, FittedRowMember, Predicted, Refit, Request, RowMember, Section};
use crate::columns::Columns;
use crate::folds::Fold;
use m3impute_core::{Error, Result, Run, Tensor};
use m3impute_gnn::network::Grid;
use m3impute_learners::Response;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The member.
#[derive(Debug)]
pub struct Marginal;

/// One prediction a column, `[m]`.
#[derive(Debug)]
struct FittedMarginal(Vec<Vec<f32>>);

impl RowMember for Marginal {
    fn name(&self) -> &'static str {
        "baseline"
    }

    fn refit(&self) -> Refit {
        Refit::Once
    }

    fn fit(&self, folds: &[&Fold], _: &[Predicted], context: Context<'_>) -> Result<FittedFolds> {
        let of = |fold: &&Fold| {
            let marginals = context.columns.responses.iter().enumerate();
            let fitted = FittedMarginal(marginals.map(|(f, response)| marginal(&fold.grid, f, response)).collect());
            Some(Box::new(fitted) as Box<dyn FittedRowMember>)
        };
        Ok(FittedFolds { models: folds.iter().map(of).collect(), ..FittedFolds::default() })
    }

    fn restore(&self, section: &Section<'_>, columns: &Columns) -> Result<Box<dyn FittedRowMember>> {
        let of: Vec<Vec<f32>> =
            Vec::deserialize(section.state).map_err(|e| Error::damaged(format!("the baseline: {e}")))?;
        let fits = of.len() == columns.len()
            && of.iter().zip(&columns.responses).all(|(p, r)| p.len() == r.width() && p.iter().all(|v| v.is_finite()));
        if fits { Ok(Box::new(FittedMarginal(of))) } else { Err(Error::damaged("the baseline")) }
    }
}

impl FittedRowMember for FittedMarginal {
    fn predict(&self, request: &Request<'_>, _: &Run) -> Result<Predicted> {
        let of = |(f, prediction): (usize, &Vec<f32>)| {
            prediction.repeat(request.grid.rows_where(f, |at| request.cells[at]).len())
        };
        Ok(vec![self.0.iter().enumerate().map(of).collect()])
    }

    fn store(&self, _: &str, _: &mut BTreeMap<String, Tensor>) -> Value {
        serde_json::json!(self.0)
    }
}

/// The prediction from the observed values of the column alone.
pub(crate) fn marginal(grid: &Grid, f: usize, response: &Response) -> Vec<f32> {
    let mut values = grid.values(f);
    if *response != Response::Number {
        let mut shares = vec![0.0; response.classes()];
        values.iter().filter_map(|&v| response.class_of(v)).for_each(|class| shares[class] += 1.0);
        let total: f32 = shares.iter().sum();
        shares.iter_mut().for_each(|s| *s /= total.max(1.0));
        return shares;
    }
    values.sort_by(f32::total_cmp);
    let at = |share: f32| values[((values.len() - 1) as f32 * share).round() as usize];
    vec![at(0.5), (at(0.84) - at(0.16)) / 2.0]
}
