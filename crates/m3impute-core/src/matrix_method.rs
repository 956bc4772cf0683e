//! Most methods work on numbers alone. This makes an [`Imputer`] of such a method: the table is encoded, the method
//! fills the matrix, the matrix is decoded; saving, loading and new rows come with it.

use crate::beliefs::{Beliefs, Distributions};
use crate::encode::{Encoded, Encoder, Encoding, Finish};
use crate::error::{Error, Result};
use crate::held_out::{ColumnScore, HeldOut};
use crate::imputer::{FittedImputer, Imputation, Imputer, InductiveImputer, MethodSpec};
use crate::model_file::{Header, ModelFile, Tensor};
use crate::run::Run;
use crate::schema::Schema;
use crate::table::Table;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// A method that works on an encoded matrix.
pub trait MatrixMethod: Debug + Send + Sync + 'static {
    /// What it learns.
    type Model: MatrixModel;
    /// Its parameters.
    type Params: Serialize;

    /// Its row in the registry.
    const SPEC: &'static MethodSpec;

    /// Its parameters.
    fn params(&self) -> &Self::Params;

    /// What it wants to see.
    fn encoding(&self) -> Encoding;

    /// Learns from the observed numbers and puts its answers where `data.observed` is false. A number left `NaN`
    /// gets the column's median or most frequent level, and is listed.
    ///
    /// The matrix has at least one row and one feature, and every feature at least one observed number.
    ///
    /// # Errors
    /// When it cannot learn, or the run is cancelled.
    fn fit(&self, data: &mut Encoded, run: &mut Run) -> Result<Learnt<Self::Model>>;

    /// Puts the same answers as [`MatrixMethod::fit`] where `data.observed` is false, without a model for new rows;
    /// returns what is to be said of them. For methods whose model costs more than the answers.
    ///
    /// # Errors
    /// When it cannot learn, or the run is cancelled.
    fn answer(&self, data: &mut Encoded, run: &mut Run) -> Result<Answer> {
        let Learnt { model, notes } = self.fit(data, run)?;
        Ok(Answer { notes, scores: model.scores() })
    }
}

/// What there is to say of answers.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// A sentence each.
    pub notes: Vec<String>,
    /// How good they are: see [`MatrixModel::scores`].
    pub scores: Vec<HeldOut>,
}

/// A model, and what is to be said about how it was learnt.
#[derive(Debug)]
pub struct Learnt<M> {
    /// The model.
    pub model: M,
    /// A sentence each.
    pub notes: Vec<String>,
}

impl<M> Learnt<M> {
    /// A model without anything to say.
    pub fn quietly(model: M) -> Learnt<M> {
        Learnt { model, notes: Vec::new() }
    }
}

/// What a [`MatrixMethod`] has learnt.
pub trait MatrixModel: Debug + Send + Sync + Sized + 'static {
    /// Whether [`MatrixModel::believe`] has an answer.
    const BELIEVES: bool = false;

    /// Puts answers where `rows.observed` is false, each row by itself.
    ///
    /// # Errors
    /// When the run is cancelled.
    fn fill(&self, rows: &mut Encoded, run: &mut Run) -> Result<()>;

    /// [`MatrixModel::fill`], with the distributions of the holes of each feature, row by row: none where the model has no
    /// distributions.
    ///
    /// # Errors
    /// When the run is cancelled.
    fn believe(&self, _rows: &mut Encoded, _run: &mut Run) -> Result<Option<Vec<Distributions>>> {
        Ok(None)
    }

    /// What held-out cells say of each feature, in the units of the encoded matrix; empty where none were held out.
    fn scores(&self) -> Vec<HeldOut> {
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

/// A [`MatrixMethod`] as an [`Imputer`].
#[derive(Debug)]
pub struct MatrixImputer<M> {
    method: M,
    finish: Finish,
}

impl<M: MatrixMethod> MatrixImputer<M> {
    /// The method, with how filled numbers are finished.
    pub fn new(method: M, finish: Finish) -> MatrixImputer<M> {
        MatrixImputer { method, finish }
    }

    fn learn(&self, table: &Table, run: &mut Run) -> Result<Fitted<M>> {
        run.check()?;
        let encoder = Encoder::fit(table, self.method.encoding())?;
        let mut data = encoder.encode(table)?;
        let learnt = if data.width() == 0 { None } else { Some(self.method.fit(&mut data, run)?) };
        let (model, notes) = learnt.map_or((None, Vec::new()), |l| (Some(l.model), l.notes));
        let params = serde_json::to_value(self.method.params()).map_err(|e| Error::Bug(e.to_string()))?;
        Ok(Fitted {
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
        M::SPEC
    }

    fn impute(&self, table: &Table, run: &mut Run) -> Result<Imputation> {
        run.check()?;
        let encoder = Encoder::fit(table, self.method.encoding())?;
        let mut data = encoder.encode(table)?;
        let answer = if data.width() == 0 { Answer::default() } else { self.method.answer(&mut data, run)? };
        let (table, fallbacks) = encoder.decode(table, &data, self.finish, M::SPEC.name)?;
        Ok(Imputation { table, fallbacks, notes: answer.notes, scores: encoder.scores(answer.scores) })
    }

    fn believes(&self) -> bool {
        M::Model::BELIEVES
    }

    fn as_inductive(&self) -> Option<&dyn InductiveImputer> {
        M::SPEC.inductive.then_some(self)
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
    encoder: Encoder,
    finish: Finish,
    params: Value,
    /// None where the table has no feature to learn from: then every hole has one possible answer.
    model: Option<M::Model>,
    rows: usize,
    fingerprint: String,
    notes: Vec<String>,
}

impl<M: MatrixMethod> FittedImputer for Fitted<M> {
    fn schema(&self) -> &Schema {
        self.encoder.schema()
    }

    fn transform(&self, rows: &Table, run: &mut Run) -> Result<Imputation> {
        run.check()?;
        let mut data = self.encoder.encode(rows)?;
        if let Some(model) = &self.model {
            model.fill(&mut data, run)?;
        }
        let (table, fallbacks) = self.encoder.decode(rows, &data, self.finish, M::SPEC.name)?;
        Ok(Imputation { table, fallbacks, notes: Vec::new(), scores: Vec::new() })
    }

    fn believes(&self) -> bool {
        M::Model::BELIEVES
    }

    fn believe(&self, rows: &Table, run: &mut Run) -> Result<Option<(Imputation, Beliefs)>> {
        run.check()?;
        if !M::Model::BELIEVES {
            return Ok(None);
        }
        let mut data = self.encoder.encode(rows)?;
        let of = match &self.model {
            Some(model) => model.believe(&mut data, run)?.unwrap_or_default(),
            None => Vec::new(),
        };
        let (table, fallbacks) = self.encoder.decode(rows, &data, self.finish, M::SPEC.name)?;
        let beliefs = self.encoder.beliefs(rows, &data, of, self.finish)?;
        Ok(Some((Imputation { table, fallbacks, notes: Vec::new(), scores: Vec::new() }, beliefs)))
    }

    fn scores(&self) -> Vec<ColumnScore> {
        self.encoder.scores(self.model.as_ref().map_or_else(Vec::new, MatrixModel::scores))
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn to_file(&self) -> Result<ModelFile> {
        let mut tensors = BTreeMap::new();
        let state = self.model.as_ref().map_or(Value::Null, |m| m.store(&mut tensors));
        let (format, version) = Header::versions();
        let header = Header {
            format,
            version,
            method: M::SPEC.name.to_owned(),
            encoder: self.encoder.clone(),
            finish: self.finish,
            params: self.params.clone(),
            state,
            rows: self.rows,
            fingerprint: self.fingerprint.clone(),
            notes: self.notes.clone(),
            reading: Value::Null,
        };
        Ok(ModelFile { header, tensors })
    }
}

/// Reads a fitted [`MatrixMethod`] back: what [`MethodSpec::load`] does for them.
///
/// # Errors
/// When the file does not hold what the method needs.
pub fn load_matrix_model<M: MatrixMethod>(file: &ModelFile) -> Result<Box<dyn FittedImputer>> {
    let header = &file.header;
    let width = header.encoder.features().len();
    let model = if width == 0 { None } else { Some(M::Model::restore(file, width)?) };
    Ok(Box::new(Fitted::<M> {
        encoder: header.encoder.clone(),
        finish: header.finish,
        params: header.params.clone(),
        model,
        rows: header.rows,
        fingerprint: header.fingerprint.clone(),
        notes: header.notes.clone(),
    }))
}
