//! A fitted method in Python's hands.

use crate::columns::Column;
use crate::errors::{bug, core, io};
use crate::requests::{RunRequest, ShiftRequest, infinities, shifts};
use crate::tables::{Changed, Said, batch_of, notes_of, rows_as_bytes};
use crate::watch::watched;
use m3impute::{
    Error, Explanation, FittedImputer, Imputation, ModelFile, PredictiveDistributions, RowSeeds, Run, Shifted, Shifts,
    Table,
};
use m3impute_io::arrow::document_as_in;
use m3impute_io::{AtomicFile, ColumnReading, Document, Format, Infinities, ReadOptions, Reading};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// What a method has learnt, and how new rows are read.
#[pyclass(frozen, module = "m3impute._native")]
pub(crate) struct Model {
    fitted: Box<dyn FittedImputer>,
    reading: Reading,
    card: Value,
    /// What was asked of the package when the model was made, as JSON; empty where it was made elsewhere.
    asked: Value,
}

impl Model {
    pub(crate) fn new(fitted: Box<dyn FittedImputer>, reading: Reading) -> PyResult<Model> {
        let file = fitted.to_file().map_err(core)?;
        Ok(Model { card: card_of(&file, &*fitted), fitted, reading, asked: Value::Null })
    }

    /// New rows, read as those that the model was made from.
    fn document(&self, py: Python<'_>, columns: &[(String, Bound<'_, Column>)], infinite: &str) -> PyResult<Document> {
        let batch = batch_of(columns)?;
        let options = ReadOptions { infinities: infinities(infinite).map_err(core)?, ..ReadOptions::default() };
        py.detach(|| document_as_in(vec![batch], &options, &self.reading, self.fitted.schema())).map_err(io)
    }

    /// The bytes of its file, with what was asked of the package.
    fn bytes(&self, asked: Value) -> m3impute::Result<Vec<u8>> {
        let mut file = self.fitted.to_file()?;
        file.header.asked = asked;
        file.header.reading = serde_json::to_value(&self.reading).map_err(|e| Error::Bug(e.to_string()))?;
        let mut bytes = Vec::new();
        file.write(&mut bytes)?;
        Ok(bytes)
    }

    fn filled(&self, rows: &Table, run: &mut Run) -> m3impute::Result<Imputation> {
        if rows.rows() == 0 {
            return Ok(unchanged(rows)); // a method need not know what to make of no row at all
        }
        self.fitted.transform(rows, run)
    }

    /// The shifts that are asked of what it fills.
    fn shifts(&self, asked: &ShiftRequest) -> m3impute::Result<Shifts> {
        if asked.is_empty() {
            return Ok(Shifts::default());
        }
        let header = self.fitted.to_file()?.header;
        Shifts::of_model(&shifts(asked)?, &header.encoder, header.finish)
    }

    /// So many joint draws, and what was said of the first.
    fn drawn(&self, rows: &Table, draws: u64, run: &Run) -> m3impute::Result<(Imputation, Vec<Table>)> {
        if rows.rows() == 0 && self.fitted.has_distributions() {
            return Ok((unchanged(rows), vec![rows.clone(); draws as usize]));
        }
        let seeds = RowSeeds::default().of(rows);
        let (mut first, mut tables) = (unchanged(rows), Vec::new());
        for number in 1..=draws {
            let drawn = self.fitted.draw(rows, &seeds, number, run)?.ok_or_else(|| self.without_distributions())?;
            tables.push(drawn.table.clone());
            if number == 1 {
                first = drawn;
            }
            run.report("drawing", number, draws, "");
        }
        Ok((first, tables))
    }

    fn without_distributions(&self) -> Error {
        Error::Request {
            what: "method".to_owned(),
            expected: "one that has distributions, such as `m3`".to_owned(),
            got: self.card["method"].as_str().unwrap_or_default().to_owned(),
        }
    }

    fn predicted(&self, rows: &Table, run: &mut Run) -> m3impute::Result<(Imputation, PredictiveDistributions)> {
        if rows.rows() == 0 && self.fitted.has_distributions() {
            return Ok((unchanged(rows), PredictiveDistributions::default()));
        }
        let found = self.fitted.predict_distributions(rows, run)?;
        found.ok_or_else(|| self.without_distributions())
    }
}

/// Rows as they came.
fn unchanged(rows: &Table) -> Imputation {
    Imputation { table: rows.clone(), fallbacks: Vec::new(), notes: Vec::new(), scores: Vec::new() }
}

/// What a model says about itself.
fn card_of(file: &ModelFile, fitted: &dyn FittedImputer) -> Value {
    let header = &file.header;
    json!({
        "method": header.method, "format": header.format, "version": header.version, "rows": header.rows,
        "fingerprint": header.fingerprint, "params": header.params, "finish": header.finish,
        "columns": header.encoder.schema(), "notes": header.notes, "scores": fitted.scores(),
        "training_rows": fitted.kept_rows(),
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
                known => Reading::deserialize(known).map_err(|e| Error::damaged(format!("how rows are read: {e}")))?,
            };
            let fitted = m3impute::load_file(&file)?;
            let asked = file.header.asked.clone();
            Ok(Model { card: card_of(&file, &*fitted), fitted, reading, asked })
        };
        py.detach(read).map_err(core)
    }

    /// The bytes of its file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.bytes(self.asked.clone())).map_err(core)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes its file, in which stands what was asked of the package, as JSON. It appears whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf, asked: &str) -> PyResult<()> {
        let asked = serde_json::from_str(asked).map_err(bug)?;
        let write = || -> m3impute_io::Result<()> {
            let bytes = self.bytes(asked)?;
            let mut file = AtomicFile::create(&path)?;
            // A failure to write is told by the file itself, with its name.
            let written = file.write_all(&bytes).map_err(m3impute_io::Error::Output);
            file.failure().map_or(written, Err)?;
            file.commit()
        };
        py.detach(write).map_err(io)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Model>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py())?,)))
    }

    /// What the model is: method, parameters, columns, as JSON.
    fn card(&self) -> String {
        self.card.to_string()
    }

    /// How new rows are read, as JSON.
    fn reading(&self) -> PyResult<String> {
        serde_json::to_string(&self.reading).map_err(bug)
    }

    /// What was asked of the package when the model was made, as JSON; `null` where it was made elsewhere.
    fn asked(&self) -> String {
        self.asked.to_string()
    }

    /// What was decided in another way than asked while fitting.
    fn notes(&self) -> Vec<String> {
        self.fitted.notes().to_vec()
    }

    /// Fills new rows and, with a level, fills them with the lower and the upper ends of their intervals too; without one,
    /// draws so many times from their distributions. All are shifted as asked. With it, what was found in the rows.
    #[allow(clippy::type_complexity, clippy::too_many_arguments)]
    fn predict_distributions(
        &self,
        py: Python<'_>,
        columns: Vec<(String, Bound<'_, Column>)>,
        infinite: &str,
        run: RunRequest,
        level: Option<f64>,
        draws: u64,
        shift: ShiftRequest,
    ) -> PyResult<(Vec<Changed>, Vec<Said>)> {
        let document = self.document(py, &columns, infinite)?;
        let rows = document.table();
        let mut shifted = Vec::new();
        let (imputation, tables) = watched(py, run.progress.as_ref(), |cancel, send| {
            let mut run = run.run(cancel, send)?;
            let shifts = self.shifts(&shift)?;
            if let Some(level) = level {
                let (mut imputation, mut distributions) = self.predicted(rows, &mut run)?;
                shifted = shifts.apply(rows, &mut imputation.table);
                shifts.apply_to_distributions(rows, &mut distributions);
                let ends = distributions.ends(&imputation.table, level);
                return Ok((imputation, ends.into()));
            }
            let (imputation, mut tables) = self.drawn(rows, draws, &run)?;
            tables.iter_mut().for_each(|table| Shifted::add(&mut shifted, shifts.apply(rows, table)));
            Ok((imputation, tables))
        })?;
        let again = |table| Changed::filled(&document, Imputation { table, ..imputation.clone() });
        let mut changed = if level.is_some() { vec![again(imputation.table.clone())?] } else { Vec::new() };
        for table in tables {
            changed.push(again(table)?);
        }
        // What was done to all of them is said once, with the first.
        if !changed.is_empty() {
            let first = changed.remove(0).shifted_by(shifted, if level.is_some() { 1 } else { draws as usize });
            changed.insert(0, first);
        }
        Ok((changed, notes_of(document.findings())))
    }

    /// The probabilities of the levels of holes: column, rows, levels, and a probability for each row and level.
    #[allow(clippy::type_complexity)]
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<(String, Bound<'_, Column>)>,
        infinite: &str,
        run: RunRequest,
    ) -> PyResult<Vec<(String, Bound<'py, PyBytes>, Vec<String>, Bound<'py, PyBytes>)>> {
        let document = self.document(py, &columns, infinite)?;
        let (_, distributions) = watched(py, run.progress.as_ref(), |cancel, send| {
            self.predicted(document.table(), &mut run.run(cancel, send)?)
        })?;
        let mut all = Vec::new();
        for column in &distributions.columns {
            let of_levels = column.levels_with_probabilities();
            if of_levels.is_empty() {
                continue;
            }
            let name = document.table().schema().columns()[column.column].name.clone();
            let of_row = |i: usize| of_levels.iter().flat_map(move |(_, shares)| shares[i].to_ne_bytes());
            let shares: Vec<u8> = (0..column.rows.len()).flat_map(of_row).collect();
            let levels = of_levels.iter().map(|(level, _)| (*level).to_owned()).collect();
            all.push((name, rows_as_bytes(py, &column.rows), levels, PyBytes::new(py, &shares)));
        }
        Ok(all)
    }

    /// Why missing cells are filled with their values, as JSON, and in words under `text`. A cell is a row, what the row is
    /// called, and a column, where it is not all missing cells of the row.
    #[allow(clippy::type_complexity)]
    fn explain(
        &self,
        py: Python<'_>,
        columns: Vec<(String, Bound<'_, Column>)>,
        infinite: &str,
        run: RunRequest,
        cells: Vec<(usize, String, Option<String>)>,
    ) -> PyResult<(String, Vec<Said>)> {
        let document = self.document(py, &columns, infinite)?;
        let model = &*self.fitted;
        let mut asked: Vec<((usize, usize), String)> = Vec::new();
        for (row, name, column) in cells {
            let cells = match column {
                Some(column) => vec![document.missing_cell(row, &name, &column, model).map_err(core)?],
                None => document.missing_cells(row, model),
            };
            asked.extend(cells.into_iter().map(|cell| (cell, name.clone())));
        }
        let cells: Vec<(usize, usize)> = asked.iter().map(|(cell, _)| *cell).collect();
        let explained = watched(py, run.progress.as_ref(), |cancel, send| {
            model.explain(document.table(), &cells, &run.run(cancel, send)?)
        })?;
        let shown = |(explanation, (_, name)): (&Explanation, &(_, String))| {
            let mut json = explanation.json(explanation.row, 0, |_, number| json!(number));
            let lines = explanation.lines(name, 0, |column, number| document.value_text(column, number));
            json["text"] = Value::from(lines.join("\n"));
            json
        };
        let all: Vec<Value> = explained.iter().zip(&asked).map(shown).collect();
        Ok((Value::from(all).to_string(), notes_of(document.findings())))
    }

    /// Fills new rows, each by itself, and shifts what was filled; with it, what was found in them.
    #[allow(clippy::type_complexity)]
    fn transform(
        &self,
        py: Python<'_>,
        columns: Vec<(String, Bound<'_, Column>)>,
        infinite: &str,
        run: RunRequest,
        shift: ShiftRequest,
    ) -> PyResult<(Changed, Vec<Said>)> {
        let document = self.document(py, &columns, infinite)?;
        let rows = document.table();
        let (imputation, shifted) = watched(py, run.progress.as_ref(), |cancel, send| {
            let shifts = self.shifts(&shift)?;
            let mut imputation = self.filled(rows, &mut run.run(cancel, send)?)?;
            let shifted = shifts.apply(rows, &mut imputation.table);
            Ok((imputation, shifted))
        })?;
        Ok((Changed::filled(&document, imputation)?.shifted_by(shifted, 1), notes_of(document.findings())))
    }
}
