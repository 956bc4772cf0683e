//! Most methods work on numbers alone. This makes an [`Imputer`] of such a method: the table is encoded, the method
//! fills the matrix, the matrix is decoded; saving, loading and new rows come with it.

use crate::distributions::{Distributions, PredictiveDistributions};
use crate::draws::draw;
use crate::encode::{Encoded, Encoder, Encoding, Finish};
use crate::error::{Error, Result};
use crate::explain::{Explainer, Explanation, KeptNumbers, KeptRows, Reasons};
use crate::imputer::{FittedImputer, Imputation, Imputer, InductiveImputer, MethodSpec};
use crate::model_file::{Header, ModelFile, Tensor};
use crate::run::Run;
use crate::schema::Schema;
use crate::table::Table;
use crate::validation::{ColumnScore, ValidationScore};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// A method that works on an encoded matrix: it is fitted to one, and the model predicts the missing numbers of any.
pub trait MatrixMethod: Debug + Send + Sync + 'static {
    /// The fitted model.
    type Model: MatrixModel;
    /// Its parameters.
    type Params: Serialize;

    /// Its parameters.
    fn params(&self) -> &Self::Params;

    /// The encoding of tables that it needs.
    fn encoding(&self) -> Encoding;

    /// Learns from the observed numbers.
    ///
    /// The matrix has at least one row and one feature, and every feature at least one observed number.
    ///
    /// # Errors
    /// When it cannot learn, or the run is cancelled.
    fn fit(&self, data: &Encoded, run: &mut Run) -> Result<Learnt<Self::Model>>;

    /// For transductive methods, whose fitting completes the table it learns from: fits, and puts the completed numbers
    /// where `data.observed` is false. Other methods return nothing, and a table is filled by fitting and predicting.
    ///
    /// # Errors
    /// When it cannot learn, or the run is cancelled.
    fn complete(&self, _data: &mut Encoded, _run: &mut Run) -> Result<Option<Completed>> {
        Ok(None)
    }
}

/// A transductive method: fitting completes the table that it learns from. [`Transductive`] makes a [`MatrixMethod`] of it.
pub trait TransductiveMethod: Debug + Send + Sync + 'static {
    /// The fitted model.
    type Model: MatrixModel;
    /// Its parameters.
    type Params: Serialize;

    /// Its parameters.
    fn params(&self) -> &Self::Params;

    /// The encoding of tables that it needs.
    fn encoding(&self) -> Encoding;

    /// Learns from the observed numbers, and puts the completed ones where `data.observed` is false.
    ///
    /// # Errors
    /// When it cannot learn, or the run is cancelled.
    fn learn(&self, data: &mut Encoded, run: &mut Run) -> Result<Learnt<Self::Model>>;
}

/// A [`TransductiveMethod`] as a [`MatrixMethod`].
#[derive(Clone, Debug)]
pub struct Transductive<M>(pub M);

impl<M: TransductiveMethod> MatrixMethod for Transductive<M> {
    type Model = M::Model;
    type Params = M::Params;

    fn params(&self) -> &M::Params {
        self.0.params()
    }

    fn encoding(&self) -> Encoding {
        self.0.encoding()
    }

    fn fit(&self, data: &Encoded, run: &mut Run) -> Result<Learnt<M::Model>> {
        self.0.learn(&mut data.clone(), run)
    }

    fn complete(&self, data: &mut Encoded, run: &mut Run) -> Result<Option<Completed>> {
        Ok(Some(Completed::with_notes(self.0.learn(data, run)?.notes)))
    }
}

/// Notes and validation errors of a table that was completed.
#[derive(Clone, Debug, Default)]
pub struct Completed {
    /// A sentence each.
    pub notes: Vec<String>,
    /// Validation errors: see [`MatrixModel::scores`].
    pub scores: Vec<ValidationScore>,
}

impl Completed {
    /// With these notes alone.
    pub fn with_notes(notes: Vec<String>) -> Completed {
        Completed { notes, scores: Vec::new() }
    }
}

/// A fitted model with notes about the fit.
#[derive(Debug)]
pub struct Learnt<M> {
    /// The model.
    pub model: M,
    /// A sentence each.
    pub notes: Vec<String>,
}

impl<M> Learnt<M> {
    /// A model without notes.
    pub fn quietly(model: M) -> Learnt<M> {
        Learnt { model, notes: Vec::new() }
    }
}

/// What is to be predicted of a missing cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A point estimate.
    Point,
    /// A point estimate and a predictive distribution.
    Distribution,
    /// A predictive distribution to draw the first missing cell of each row from, for the draw of this number.
    FirstDraw(u64),
    /// The same to draw a cell after others of its row.
    NextDraw(u64),
}

/// The model of a [`MatrixMethod`].
pub trait MatrixModel: Debug + Send + Sync + Sized + 'static {
    /// Whether [`MatrixModel::predict`] has predictive distributions.
    const DISTRIBUTIONS: bool = false;

    /// Writes point estimates where `rows.observed` is false, each row independently. A number left `NaN` gets the
    /// column's median or most frequent level, and is listed. Unless a [`Want::Point`] is all, and
    /// with [`Self::DISTRIBUTIONS`], also returns the predictive distributions of the missing numbers of each feature, row by row.
    ///
    /// # Errors
    /// When the run is cancelled.
    fn predict(&self, rows: &mut Encoded, want: Want, run: &Run) -> Result<Option<Vec<Distributions>>>;

    /// Validation errors of each feature, in the units of the encoded matrix; empty where no cell was held out.
    fn scores(&self) -> Vec<ValidationScore> {
        Vec::new()
    }

    /// What it says of its own predictions of missing numbers, each a row and a feature, in their order: the members of an
    /// ensemble, and rows that it was fitted to. Nothing, where it has neither.
    ///
    /// # Errors
    /// When the run is cancelled.
    fn reasons(&self, _rows: &Encoded, _cells: &[(usize, usize)], _run: &Run) -> Result<Vec<Reasons>> {
        Ok(Vec::new())
    }

    /// How often the missing cells of a row are drawn once more after the first time, each given all others (Gibbs
    /// sampling).
    fn gibbs_sweeps(&self) -> usize {
        0
    }

    /// What it holds of the rows that it was fitted to.
    fn kept_rows(&self) -> Vec<KeptNumbers> {
        Vec::new()
    }

    /// Features of which no finite model could be learnt: their missing cells are left `NaN`.
    fn unpredicted(&self) -> Vec<usize> {
        Vec::new()
    }

    /// The state: JSON for what is small, tensors for what is large.
    fn store(&self, tensors: &mut BTreeMap<String, Tensor>) -> Value;

    /// The state back. Shapes and indices are checked against the `width` of the encoded matrix: a file may be hostile.
    ///
    /// # Errors
    /// When something is not there or does not fit.
    fn restore(file: &ModelFile, width: usize) -> Result<Self>;
}

/// Rows that are predicted before the first look at the clock, where the time is limited.
const FIRST_ROWS: usize = 32;
/// How often the clock is looked at, about.
const LOOK: Duration = Duration::from_millis(100);

/// A [`MatrixMethod`] as an [`Imputer`].
#[derive(Debug)]
pub struct MatrixImputer<M> {
    spec: &'static MethodSpec,
    method: M,
    finish: Finish,
}

impl<M: MatrixMethod> MatrixImputer<M> {
    /// The method with its row of the registry, and how filled numbers are finished.
    pub fn new(spec: &'static MethodSpec, method: M, finish: Finish) -> MatrixImputer<M> {
        MatrixImputer { spec, method, finish }
    }

    fn learn(&self, table: &Table, run: &mut Run) -> Result<Fitted<M>> {
        run.check()?;
        let encoder = Encoder::fit(table, self.method.encoding())?;
        run.check()?;
        let data = encoder.encode(table)?;
        self.learn_encoded(table, encoder, &data, run)
    }

    fn learn_encoded(&self, table: &Table, encoder: Encoder, data: &Encoded, run: &mut Run) -> Result<Fitted<M>> {
        run.check()?;
        let learnt = if data.width() == 0 { None } else { Some(self.method.fit(data, run)?) };
        let (model, mut notes) = learnt.map_or((None, Vec::new()), |l| (Some(l.model), l.notes));
        let unpredicted = model.as_ref().map_or_else(Vec::new, MatrixModel::unpredicted);
        let mut columns: Vec<usize> = unpredicted.iter().map(|&f| data.features[f].column).collect();
        columns.dedup();
        for spec in columns.into_iter().map(|j| &encoder.schema().columns()[j]) {
            let baseline = if spec.kind.has_levels() { "most frequent level" } else { "median" };
            notes.push(format!(
                "column `{}`: `{}` has no finite prediction; missing cells get the {baseline}",
                spec.name, self.spec.name
            ));
        }
        let params = serde_json::to_value(self.method.params()).map_err(|e| Error::Bug(e.to_string()))?;
        Ok(Fitted {
            spec: self.spec,
            encoder,
            finish: self.finish,
            params,
            model,
            rows: table.rows(),
            fingerprint: format!("{:016x}", table.fingerprint()),
            notes,
        })
    }
}

impl<M: MatrixMethod> Imputer for MatrixImputer<M> {
    fn spec(&self) -> &'static MethodSpec {
        self.spec
    }

    fn impute(&self, table: &Table, run: &mut Run) -> Result<Imputation> {
        run.check()?;
        let encoder = Encoder::fit(table, self.method.encoding())?;
        run.check()?;
        let mut data = encoder.encode(table)?;
        run.check()?;
        if data.width() > 0
            && let Some(Completed { notes, scores }) = self.method.complete(&mut data, run)?
        {
            run.check()?;
            let (table, fallbacks) = encoder.decode(table, &data, self.finish, self.spec.name)?;
            return Ok(Imputation { table, fallbacks, notes, scores: encoder.scores(scores) });
        }
        let mut fitted = self.learn_encoded(table, encoder, &data, run)?;
        if run.time_left().is_none() {
            let (filled, _) = fitted.predict(table, data, Want::Point, run)?;
            return Ok(filled.with_notes_of(&fitted));
        }
        let left = fitted.predict_in_time(&mut data, run)?;
        if left > 0 {
            fitted.notes.push(format!("time limit reached: {left} of {} rows have no prediction", table.rows()));
        }
        let (table, fallbacks) = fitted.encoder.decode(table, &data, self.finish, self.spec.name)?;
        let filled = Imputation { table, fallbacks, notes: Vec::new(), scores: Vec::new() };
        Ok(filled.with_notes_of(&fitted))
    }

    fn has_distributions(&self) -> bool {
        M::Model::DISTRIBUTIONS
    }

    fn fit_distributions(&self, table: &Table, run: &mut Run) -> Result<Option<Box<dyn FittedImputer>>> {
        Ok(if M::Model::DISTRIBUTIONS { Some(Box::new(self.learn(table, run)?)) } else { None })
    }

    fn as_inductive(&self) -> Option<&dyn InductiveImputer> {
        self.spec.inductive.then_some(self)
    }
}

impl<M: MatrixMethod> InductiveImputer for MatrixImputer<M> {
    fn fit(&self, table: &Table, run: &mut Run) -> Result<Box<dyn FittedImputer>> {
        Ok(Box::new(self.learn(table, run)?))
    }
}

/// A fitted [`MatrixMethod`].
#[derive(Debug)]
struct Fitted<M: MatrixMethod> {
    spec: &'static MethodSpec,
    encoder: Encoder,
    finish: Finish,
    params: Value,
    /// None where the table has no feature: then every missing cell has one possible value.
    model: Option<M::Model>,
    rows: usize,
    fingerprint: String,
    notes: Vec<String>,
}

impl<M: MatrixMethod> Fitted<M> {
    /// Predicts rows, some at a time, until the time limit is exceeded; returns how many rows are left `NaN`.
    fn predict_in_time(&self, data: &mut Encoded, run: &Run) -> Result<usize> {
        let (w, mut done, mut at_once) = (data.width(), 0, FIRST_ROWS);
        let Some(model) = &self.model else { return Ok(0) };
        while done < data.rows && !run.is_overdue() {
            let started = Instant::now();
            let rows = at_once.min(data.rows - done);
            let cells = done * w..(done + rows) * w;
            let (x, observed) = (data.x[cells.clone()].to_vec(), data.observed[cells.clone()].to_vec());
            let mut some = Encoded { rows, features: data.features.clone(), x, observed };
            model.predict(&mut some, Want::Point, run)?;
            data.x[cells].copy_from_slice(&some.x);
            done += rows;
            if started.elapsed() < LOOK {
                at_once *= 2;
            }
        }
        Ok(data.rows - done)
    }

    /// Predicts the missing cells of a table, of which `data` is the encoding.
    fn predict(
        &self,
        table: &Table,
        mut data: Encoded,
        want: Want,
        run: &Run,
    ) -> Result<(Imputation, PredictiveDistributions)> {
        let of = match &self.model {
            Some(model) => model.predict(&mut data, want, run)?,
            None => None,
        };
        run.check()?;
        let (filled, fallbacks) = self.encoder.decode(table, &data, self.finish, self.spec.name)?;
        let distributions = match want {
            Want::Point => PredictiveDistributions::default(),
            Want::Distribution | Want::FirstDraw(_) | Want::NextDraw(_) => {
                self.encoder.distributions(table, &data, of.unwrap_or_default(), self.finish)?
            }
        };
        run.check()?;
        Ok((Imputation { table: filled, fallbacks, notes: Vec::new(), scores: Vec::new() }, distributions))
    }
}

impl Imputation {
    /// The same with the notes and validation errors of the fit.
    pub fn with_notes_of(self, fitted: &dyn FittedImputer) -> Imputation {
        Imputation { notes: fitted.notes().to_vec(), scores: fitted.scores(), ..self }
    }
}

impl<M: MatrixMethod> FittedImputer for Fitted<M> {
    fn schema(&self) -> &Schema {
        self.encoder.schema()
    }

    fn transform(&self, rows: &Table, run: &mut Run) -> Result<Imputation> {
        run.check()?;
        Ok(self.predict(rows, self.encoder.encode(rows)?, Want::Point, run)?.0)
    }

    fn has_distributions(&self) -> bool {
        M::Model::DISTRIBUTIONS
    }

    fn predict_distributions(
        &self,
        rows: &Table,
        run: &mut Run,
    ) -> Result<Option<(Imputation, PredictiveDistributions)>> {
        run.check()?;
        if !M::Model::DISTRIBUTIONS {
            return Ok(None);
        }
        self.predict(rows, self.encoder.encode(rows)?, Want::Distribution, run).map(Some)
    }

    fn draw(&self, rows: &Table, seeds: &[u64], number: u64, run: &Run) -> Result<Option<Imputation>> {
        run.check()?;
        if !M::Model::DISTRIBUTIONS {
            return Ok(None);
        }
        let mut data = self.encoder.encode(rows)?;
        if let Some(model) = &self.model {
            draw(model, &mut data, seeds, number, run)?;
        }
        let (table, fallbacks) = self.encoder.decode(rows, &data, self.finish, self.spec.name)?;
        Ok(Some(Imputation { table, fallbacks, notes: Vec::new(), scores: Vec::new() }))
    }

    fn explain(&self, rows: &Table, cells: &[(usize, usize)], run: &Run) -> Result<Vec<Explanation>> {
        let explainer = Explainer { encoder: &self.encoder, finish: self.finish, model: self.model.as_ref() };
        explainer.explain(rows, cells, run)
    }

    fn fills(&self, column: &str) -> bool {
        let place = self.encoder.schema().position(column);
        place.is_some_and(|at| self.encoder.schema().columns()[at].is_filled() && self.encoder.has_value(at))
    }

    fn kept_rows(&self) -> Vec<KeptRows> {
        let features = self.encoder.features();
        let named = |KeptNumbers { what, rows, features: kept }: KeptNumbers| {
            let kept = kept.unwrap_or_else(|| (0..features.len()).collect());
            let mut columns: Vec<usize> = kept.into_iter().map(|f| features[f].column).collect();
            columns.dedup();
            let name = |column: usize| self.encoder.schema().columns()[column].name.clone();
            KeptRows { what, rows: rows.min(self.rows), columns: columns.into_iter().map(name).collect() }
        };
        self.model.as_ref().map_or_else(Vec::new, MatrixModel::kept_rows).into_iter().map(named).collect()
    }

    fn scores(&self) -> Vec<ColumnScore> {
        self.encoder.scores(self.model.as_ref().map_or_else(Vec::new, MatrixModel::scores))
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn to_file(&self) -> Result<ModelFile> {
        let mut tensors = BTreeMap::new();
        self.encoder.store(&mut tensors);
        let state = self.model.as_ref().map_or(Value::Null, |m| m.store(&mut tensors));
        let (format, version) = Header::versions();
        let header = Header {
            format,
            version,
            method: self.spec.name.to_owned(),
            encoder: self.encoder.clone(),
            finish: self.finish,
            params: self.params.clone(),
            state,
            rows: self.rows,
            fingerprint: self.fingerprint.clone(),
            notes: self.notes.clone(),
            reading: Value::Null,
            asked: Value::Null,
        };
        Ok(ModelFile { header, tensors })
    }
}

/// Reads a fitted [`MatrixMethod`] back: what [`MethodSpec::load`] does for them.
///
/// # Errors
/// When the file does not hold what the method needs.
pub fn load_matrix_model<M: MatrixMethod>(
    spec: &'static MethodSpec,
    file: &ModelFile,
) -> Result<Box<dyn FittedImputer>> {
    let header = &file.header;
    let width = header.encoder.features().len();
    let model = if width == 0 { None } else { Some(M::Model::restore(file, width)?) };
    Ok(Box::new(Fitted::<M> {
        spec,
        encoder: Encoder::restore(file)?,
        finish: header.finish,
        params: header.params.clone(),
        model,
        rows: header.rows,
        fingerprint: header.fingerprint.clone(),
        notes: header.notes.clone(),
    }))
}
