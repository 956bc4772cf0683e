//! The fitted stack, and how it is stored in a model file.

use crate::calibrate::{Calibration, ShownScale};
use crate::columns::Columns;
use crate::donors::Donors;
use crate::factored::FactoredRegressions;
use crate::layers::{Layer, LayerState};
use crate::members::{FittedRowMember, MEMBERS, Members, RowMember, Section};
use crate::predictions::Aggregation;
use crate::regressions::SWEEPS;
use m3impute_core::{Error, HeldOutCell, ModelFile, Pattern, Result, Tensor};
use m3impute_learners::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A prediction that can get weight in an ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// An output of a row member.
    Row {
        /// Its place among the row members.
        member: usize,
        /// Which of its outputs.
        output: usize,
    },
    /// A column member in a layer.
    Column {
        /// The layer.
        layer: usize,
        /// Its place among the column members.
        member: usize,
    },
}

/// The place of the baseline among the candidates.
pub const BASELINE: usize = 0;

/// Out-of-fold errors of a column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// How many cells are missing in the table that was learnt from.
    #[serde(default)]
    pub missing: usize,
    /// How many cells were held out.
    pub cells: usize,
    /// How many of them are different ones: several folds may hold out the same cell.
    #[serde(default)]
    pub different: usize,
    /// The mean error of the ensemble.
    pub ensemble: f64,
    /// That of each candidate, where it has one.
    pub candidates: Vec<Option<f64>>,
    /// The share of them whose most probable level is right; none of numbers.
    #[serde(default)]
    pub accuracy: Option<f64>,
    /// That of the baseline.
    #[serde(default)]
    pub baseline_accuracy: Option<f64>,
    /// The share of them that the calibrated 90 % interval covers; none where there are too few, or levels.
    pub coverage: Option<f64>,
    /// Whether they were held out in the table's own patterns, because the column has missing cells.
    pub pattern: Pattern,
    /// Some of the cells, for reports. Values of the table that was learnt from do not go into a file.
    #[serde(skip)]
    pub held_out: Vec<HeldOutCell>,
}

/// What the predictions of an ensemble are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To fill a missing cell from what its row shows.
    Fill,
    /// To draw the first missing cell of a row.
    DrawFirst,
    /// To draw a missing cell after others of its row.
    DrawNext,
}

/// One value for each [`Purpose`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByPurpose<T> {
    /// That of filling.
    pub fill: T,
    /// That of drawing the first cell of a row.
    pub first: T,
    /// That of drawing the next ones.
    pub next: T,
}

impl<T> ByPurpose<T> {
    /// That of each purpose.
    pub fn all(&self) -> [&T; 3] {
        [&self.fill, &self.first, &self.next]
    }

    /// The one of a purpose.
    pub fn of(&self, purpose: Purpose) -> &T {
        match purpose {
            Purpose::Fill => &self.fill,
            Purpose::DrawFirst => &self.first,
            Purpose::DrawNext => &self.next,
        }
    }
}

/// The ensemble of a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ensemble {
    /// The weight of each candidate.
    pub weights: Vec<f32>,
    /// The weight of the spread of each, for a number.
    pub spread_weights: Vec<f32>,
    /// How their points are combined.
    pub aggregation: Aggregation,
    /// How a prediction becomes a distribution.
    pub calibration: Calibration,
}

/// What a column is predicted by.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ColumnModel {
    /// The candidate whose prediction is the initial imputation, on which the layers build.
    pub initial: usize,
    /// Its ensembles.
    pub ensemble: ByPurpose<Ensemble>,
    /// Out-of-fold errors.
    pub validation: Validation,
}

impl ColumnModel {
    /// Whether a candidate has weight in an ensemble.
    pub fn uses(&self, candidate: usize) -> bool {
        self.ensemble.all().iter().any(|e| e.weights[candidate] > 0.0)
    }
}

/// The fitted stack.
#[derive(Debug)]
pub struct StackModel {
    /// The responses and levels of the columns.
    pub columns: Columns,
    /// The members that took part.
    pub members: Members,
    /// The row members that were fitted, in the order of the members.
    pub rows: Vec<Option<Box<dyn FittedRowMember>>>,
    /// The layers of column members.
    pub layers: Vec<Layer>,
    /// What each column is predicted by, `[m]`.
    pub models: Vec<ColumnModel>,
    /// How much wider distributions are in rows that show less.
    pub scale: ByPurpose<ShownScale>,
    /// The regressions from which a cell is drawn where nothing else is missing in the row, instead of an ensemble.
    pub drawn_from: Option<FactoredRegressions>,
    /// Rows of the training table to compare others with, where they are to be kept.
    pub donors: Option<Donors>,
}

/// The candidates of some members with so many layers, in the order of weights.
pub fn candidates(members: &Members, layers: usize) -> Vec<Candidate> {
    let of_rows = members.rows.iter().enumerate();
    let rows = of_rows.flat_map(|(member, m)| (0..m.outputs()).map(move |output| Candidate::Row { member, output }));
    let columns = members.columns.len();
    let of_layers = (0..layers).flat_map(|layer| (0..columns).map(move |member| Candidate::Column { layer, member }));
    rows.chain(of_layers).collect()
}

impl StackModel {
    /// The candidates, in the order of weights.
    pub fn candidates(&self) -> Vec<Candidate> {
        candidates(&self.members, self.layers.len())
    }

    /// The name of the member behind a candidate.
    pub fn name(&self, candidate: Candidate) -> &'static str {
        match candidate {
            Candidate::Row { member, .. } => self.members.rows[member].name(),
            Candidate::Column { member, .. } => self.members.columns[member].name(),
        }
    }

    /// How often the missing cells of a row are drawn once more after the first time.
    pub fn sweeps(&self) -> usize {
        if self.drawn_from.is_some() { SWEEPS } else { 0 }
    }

    /// The ensemble of a column.
    pub fn ensemble(&self, column: usize, purpose: Purpose) -> &Ensemble {
        self.models[column].ensemble.of(purpose)
    }
}

/// The JSON of the header.
#[derive(Serialize, Deserialize)]
struct State {
    columns: Columns,
    /// The names of the members that took part.
    members: Vec<String>,
    /// The JSON of each fitted row member, by its key.
    rows: BTreeMap<String, Value>,
    layers: Vec<LayerState>,
    models: Vec<ColumnModel>,
    scale: ByPurpose<ShownScale>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    drawn_from: Option<FactoredRegressions>,
    /// Whether there are donors: those are tensors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    donors: bool,
}

impl StackModel {
    /// Stores it: tensors for what is large, JSON for the rest.
    pub fn store(&self, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        let mut rows = BTreeMap::new();
        for (member, fitted) in self.members.rows.iter().zip(&self.rows) {
            if let Some(fitted) = fitted {
                rows.insert(member.key().to_owned(), fitted.store(&format!("{}.", member.key()), tensors));
            }
        }
        let layers = self.layers.iter().enumerate();
        let layers =
            layers.map(|(l, layer)| layer.store(&format!("layer.{l}."), &self.members.columns, tensors)).collect();
        let names = self.members.rows.iter().map(|m| m.name()).chain(self.members.columns.iter().map(|m| m.name()));
        let (columns, models) = (self.columns.clone(), self.models.clone());
        let state = State {
            columns,
            members: names.map(str::to_owned).collect(),
            rows,
            layers,
            models,
            scale: self.scale.clone(),
            drawn_from: self.drawn_from.clone(),
            donors: self.donors.is_some(),
        };
        if let Some(donors) = &self.donors {
            donors.store(tensors);
        }
        serde_json::to_value(state).unwrap_or(Value::Null)
    }

    /// Restores it. Nothing in a file is trusted.
    ///
    /// # Errors
    /// When something is not there or does not fit.
    pub fn restore(file: &ModelFile) -> Result<StackModel> {
        let State { columns, members, rows: states, layers, models, scale, drawn_from, donors } = file.state()?;
        let meanings: Vec<_> = file.header.encoder.features().iter().map(|f| f.meaning).collect();
        columns.check(&meanings)?;
        let members = Members::named(MEMBERS, &members);
        let mut rows = Vec::with_capacity(members.rows.len());
        for member in &members.rows {
            let state = states.get(member.key());
            let prefix = format!("{}.", member.key());
            let restore = |state| member.restore(&Section { file, prefix: &prefix, state }, &columns);
            rows.push(state.map(restore).transpose()?);
        }
        let restore = |(l, state): (usize, &LayerState)| {
            Layer::restore(file, &format!("layer.{l}."), state, &members.columns, &columns)
        };
        let layers = layers.iter().enumerate().map(restore).collect::<Result<_>>()?;
        let donors = if donors { Some(Donors::restore(file, &meanings)?) } else { None };
        let model = StackModel { columns, members, rows, layers, models, scale, drawn_from, donors };
        model.check()?;
        Ok(model)
    }

    /// Whether all sizes agree, and every member that is needed is there.
    fn check(&self) -> Result<()> {
        let candidates = self.candidates();
        let is_initial = |c: usize| match candidates.get(c) {
            Some(Candidate::Row { member, .. }) => {
                let allowed = c == BASELINE || self.members.rows[*member].initial().is_some();
                allowed && self.rows[*member].is_some()
            }
            _ => false,
        };
        let is_sound = |ensemble: &Ensemble, response: &Response| {
            let are_weights = |w: &[f32]| w.len() == candidates.len() && w.iter().all(|w| w.is_finite());
            are_weights(&ensemble.weights)
                && are_weights(&ensemble.spread_weights)
                && ensemble.calibration.is_sound(response)
        };
        let fits = |(model, response): (&ColumnModel, &Response)| {
            model.ensemble.all().into_iter().all(|e| is_sound(e, response))
                && model.validation.candidates.len() <= candidates.len()
                && is_initial(model.initial)
        };
        let are_numbers = |of: &FactoredRegressions| {
            of.is_sound(self.models.len())
                && (self.columns.responses.iter().enumerate()).all(|(f, r)| *r == Response::Number || !of.has(f))
        };
        let needs = |(member, fitted): (&&'static dyn RowMember, &Option<_>)| {
            let needed = member.needs().map(|name| self.members.row(name).is_some_and(|k| self.rows[k].is_some()));
            fitted.is_none() || needed != Some(false)
        };
        let all = self.models.len() == self.columns.len()
            && self.scale.all().into_iter().all(ShownScale::is_sound)
            && self.drawn_from.as_ref().is_none_or(are_numbers)
            && self.rows.first().is_some_and(Option::is_some)
            && self.models.iter().zip(&self.columns.responses).all(fits)
            && self.members.rows.iter().zip(&self.rows).all(needs);
        if all { Ok(()) } else { Err(Error::damaged("the shape of the stack")) }
    }
}
