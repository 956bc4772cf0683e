//! A fitted method in Python's hands.

use crate::columns::Column;
use crate::errors::{core, io};
use crate::requests::{RunRequest, infinities};
use crate::tables::{Changed, batch_of, notes_of};
use crate::watch::watched;
use m3impute::{Error, FittedImputer, ModelFile};
use m3impute_io::arrow::document_as_in;
use m3impute_io::{ColumnReading, Format, Infinities, ReadOptions, Reading};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use serde_json::{Value, json};

/// What a method has learnt, and how new rows are read.
#[pyclass(frozen, module = "m3impute._native")]
pub(crate) struct Model {
    fitted: Box<dyn FittedImputer>,
    reading: Reading,
    card: Value,
}

impl Model {
    pub(crate) fn new(fitted: Box<dyn FittedImputer>, reading: Reading) -> PyResult<Model> {
        let file = fitted.to_file().map_err(core)?;
        Ok(Model { card: card_of(&file), fitted, reading })
    }
}

/// What a model says about itself.
fn card_of(file: &ModelFile) -> Value {
    let header = &file.header;
    json!({
        "method": header.method, "format": header.format, "version": header.version, "rows": header.rows,
        "fingerprint": header.fingerprint, "params": header.params, "finish": header.finish,
        "columns": header.encoder.schema(), "notes": header.notes,
    })
}

/// How rows are read for a model that was not made from a file or a frame.
fn reading_by_type(file: &ModelFile) -> Reading {
    let named = |name: &str| ColumnReading { name: name.to_owned(), ..ColumnReading::default() };
    Reading {
        format: Format::Arrow,
        delimiter: None,
        header: true,
        na: None,
        infinities: Infinities::Refuse,
        columns: file.header.encoder.schema().columns().iter().map(|c| named(&c.name)).collect(),
    }
}

#[pymethods]
impl Model {
    /// The model that the bytes of a file hold.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Model> {
        let read = || -> m3impute::Result<Model> {
            let file = ModelFile::read(bytes)?;
            let reading = match &file.header.reading {
                Value::Null => reading_by_type(&file),
                known => Reading::deserialize(known)
                    .map_err(|e| Error::ModelFile { reason: format!("how rows are read: {e}") })?,
            };
            Ok(Model { fitted: m3impute::load_file(&file)?, reading, card: card_of(&file) })
        };
        py.detach(read).map_err(core)
    }

    /// The bytes of its file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let write = || -> m3impute::Result<Vec<u8>> {
            let mut file = self.fitted.to_file()?;
            file.header.reading = serde_json::to_value(&self.reading).map_err(|e| Error::Bug(e.to_string()))?;
            let mut bytes = Vec::new();
            file.write(&mut bytes)?;
            Ok(bytes)
        };
        Ok(PyBytes::new(py, &py.detach(write).map_err(core)?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Model>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py())?,)))
    }

    /// What the model is: method, parameters, columns, as JSON.
    fn card(&self) -> String {
        self.card.to_string()
    }

    /// What was decided in another way than asked while fitting.
    fn notes(&self) -> Vec<String> {
        self.fitted.notes().to_vec()
    }

    /// Fills new rows, each by itself; with it, what was found in them.
    #[allow(clippy::type_complexity)]
    fn transform(
        &self,
        py: Python<'_>,
        columns: Vec<(String, Bound<'_, Column>)>,
        infinite: &str,
        run: RunRequest,
    ) -> PyResult<(Changed, Vec<(String, String)>)> {
        let batch = batch_of(&columns)?;
        let options = ReadOptions { infinities: infinities(infinite).map_err(core)?, ..ReadOptions::default() };
        let document =
            py.detach(|| document_as_in(vec![batch], &options, &self.reading, self.fitted.schema())).map_err(io)?;
        let imputation = watched(py, run.progress.as_ref(), |cancel, send| {
            self.fitted.transform(document.table(), &mut run.run(cancel, send)?)
        })?;
        Ok((Changed::filled(&document, imputation)?, notes_of(document.findings())))
    }
}
