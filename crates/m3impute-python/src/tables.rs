//! A table that came from Python, and what is done with it.

use crate::columns::Column;
use crate::errors::{bug, core, io};
use crate::fitted::Model;
use crate::hints::in_python;
use crate::requests::{MethodRequest, ReadRequest, RunRequest, ShiftRequest, shifts};
use crate::watch::watched;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::Schema as ArrowSchema;
use m3impute::missing::{self, HideIn, Mechanism};
use m3impute::{Cancel, Error, Fallback, Finish, Imputation, Observed, Progress, Run, Shifted, Shifts};
use m3impute_eval::{Candidate, HideBy, NoProbe, Plan, Recommendation, Watch};
use m3impute_io::arrow::document_of_batches;
use m3impute_io::{Change, Document, Finding, Note};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

/// The columns of a table as one batch under their names.
pub(crate) fn batch_of(columns: &[(String, Bound<'_, Column>)]) -> PyResult<RecordBatch> {
    let field = |(name, column): &(String, Bound<'_, Column>)| {
        let field = column.get().field.as_ref().clone();
        field.with_name(name.as_str()).with_nullable(true)
    };
    let schema = Arc::new(ArrowSchema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let arrays = columns.iter().map(|(_, column)| column.get().array.clone()).collect();
    let rows = columns.first().map(|(_, column)| column.get().array.len());
    let options = RecordBatchOptions::new().with_row_count(rows.or(Some(0)));
    RecordBatch::try_new_with_options(schema, arrays, &options).map_err(bug)
}

/// A table with holes.
#[pyclass(frozen, module = "m3impute._native")]
pub(crate) struct Table {
    document: Document,
}

#[pymethods]
impl Table {
    #[new]
    fn new(py: Python<'_>, columns: Vec<(String, Bound<'_, Column>)>, reading: ReadRequest) -> PyResult<Table> {
        let batch = batch_of(&columns)?;
        let options = reading.options().map_err(core)?;
        let document = py.detach(|| document_of_batches(vec![batch], &options)).map_err(io)?;
        Ok(Table { document })
    }

    /// What a user should know about the columns: the column, a sentence, and a hint.
    fn notes(&self) -> Vec<Said> {
        notes_of(self.document.findings())
    }

    /// The columns without a single observed value.
    fn empty_columns(&self) -> Vec<usize> {
        let table = self.document.table();
        let specs = table.schema().columns();
        (0..table.cols()).filter(|&j| specs[j].is_used() && table.missing_in(j) == table.rows()).collect()
    }

    /// Fails as the command line does where a column is empty and that is not allowed.
    fn refuse_empty(&self) -> PyResult<()> {
        match self.empty_columns().first() {
            Some(&at) => {
                let column = self.document.table().schema().columns()[at].name.clone();
                Err(core(Error::EmptyColumn { column }))
            }
            None => Ok(()),
        }
    }

    /// The rows in which a column has no value, 64 bits each.
    fn holes<'py>(&self, py: Python<'py>, column: usize) -> Bound<'py, PyBytes> {
        rows_as_bytes(py, &self.document.holes(column))
    }

    /// What is missing and what the columns are, as JSON.
    fn describe(&self) -> String {
        let (table, findings) = (self.document.table(), self.document.findings());
        let specs = table.schema().columns();
        let columns: Vec<Value> = findings
            .iter()
            .enumerate()
            .map(|(j, finding)| {
                let missing = table.missing_in(j);
                json!({
                    "name": specs[j].name, "kind": specs[j].kind, "role": specs[j].role, "missing": missing,
                    "missing_share": missing as f64 / table.rows().max(1) as f64, "finding": finding,
                })
            })
            .collect();
        let named = |at: Vec<usize>| at.into_iter().map(|j| specs[j].name.clone()).collect::<Vec<_>>();
        let patterns: Vec<Value> =
            table.patterns().into_iter().map(|(at, rows)| json!({"missing": named(at), "rows": rows})).collect();
        let cells = table.rows() * table.cols();
        json!({
            "rows": table.rows(), "columns": columns, "cells": cells, "missing": cells - table.observed().count(),
            "patterns": patterns,
        })
        .to_string()
    }

    /// Fills the holes, and shifts what was filled.
    fn impute(&self, py: Python<'_>, method: MethodRequest, run: RunRequest, shift: ShiftRequest) -> PyResult<Changed> {
        let imputer = method.build().map_err(core)?;
        let table = self.document.table();
        let shifts = self.shifts(&method, &shift).map_err(core)?;
        let (mut imputation, spent) = watched(py, run.progress.as_ref(), |cancel, send| {
            let mut run = run.run(cancel, send)?;
            Ok((imputer.impute(table, &mut run)?, run.was_short()))
        })?;
        let shifted = shifts.apply(table, &mut imputation.table);
        Ok(Changed { spent, ..Changed::filled(&self.document, imputation)?.shifted_by(shifted, 1) })
    }

    /// Learns; with the model, whether the time was up before it was done. What is filled later may be shifted as asked.
    fn fit(
        &self,
        py: Python<'_>,
        method: MethodRequest,
        run: RunRequest,
        shift: ShiftRequest,
    ) -> PyResult<(Model, bool)> {
        let imputer = method.build().map_err(core)?;
        let name = method.asked().map_err(core)?.0.name;
        let table = self.document.table();
        self.shifts(&method, &shift).map_err(core)?; // a wrong request fails before the work
        let (fitted, spent) = watched(py, run.progress.as_ref(), |cancel, send| {
            let inductive = imputer.as_inductive().ok_or(Error::NotInductive { method: name })?;
            let mut run = run.run(cancel, send)?;
            Ok((inductive.fit(table, &mut run)?, run.was_short()))
        })?;
        Ok((Model::new(fitted, self.document.reading().clone())?, spent))
    }

    /// Makes holes.
    fn ampute(&self, py: Python<'_>, mechanism: &str, rate: f64, seed: u64) -> PyResult<Changed> {
        let mechanism = Mechanism::parse(mechanism).map_err(core)?;
        let table = self.document.table();
        let holes = watched(py, None, |cancel, _| {
            missing::hide(table, mechanism, rate, &Run::new(seed, 1)?.cancelled_by(cancel))
        })?;
        Changed::hidden(&self.document, &holes.shown, holes.notes)
    }

    /// Hides known cells, lets every method fill them, and scores: rows and their summary as JSON.
    ///
    /// `shown` has a byte a cell, row by row, where the holes are given.
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (methods, run, mechanism, columns, rate, repeats, shown=None))]
    fn evaluate(
        &self,
        py: Python<'_>,
        methods: Vec<(String, MethodRequest)>,
        run: RunRequest,
        mechanism: &str,
        columns: Option<&str>,
        rate: f64,
        repeats: usize,
        shown: Option<Vec<u8>>,
    ) -> PyResult<String> {
        let candidates = methods.into_iter().map(|(label, method)| {
            method.build()?; // a wrong request fails before the work
            let (spec, settings) = method.asked()?;
            Ok(Candidate { spec, settings, label })
        });
        let table = self.document.table();
        let hide = match shown {
            None => {
                let within = columns.map(HideIn::parse).transpose().map_err(core)?;
                HideBy::Mechanism { mechanism: Mechanism::parse(mechanism).map_err(core)?, within, rate, repeats }
            }
            Some(cells) if cells.len() == table.rows() * table.cols() => {
                let mut shown = Observed::all(table.rows(), table.cols());
                for (at, _) in cells.iter().enumerate().filter(|(_, cell)| **cell == 0) {
                    shown.set(at / table.cols(), at % table.cols(), false);
                }
                HideBy::Given(shown)
            }
            Some(cells) => {
                return Err(core(Error::Request {
                    what: "observed".to_owned(),
                    expected: format!("{} cells", table.rows() * table.cols()),
                    got: cells.len().to_string(),
                }));
            }
        };
        let plan = Plan {
            methods: candidates.collect::<m3impute::Result<_>>().map_err(core)?,
            hide,
            seed: run.seed,
            threads: run.threads,
            max_seconds: run.max_seconds,
            ..Plan::default()
        };
        let rows = watched(py, run.progress.as_ref(), |cancel: Cancel, send| {
            let watch: Arc<dyn Watch> = Arc::new(Told(Mutex::new(send)));
            m3impute_eval::evaluate(table, &plan, &NoProbe, &cancel, &watch)
        })?;
        let summary = m3impute_eval::summarise(&rows);
        let recommended = m3impute_eval::recommend(&rows, &summary);
        let advice = m3impute_report::advice(&recommended, &summary, &rows);
        let Recommendation { method, comparisons } = recommended;
        let compared = json!({
            "rows": rows, "summary": summary, "recommended": method, "advice": advice, "comparisons": comparisons,
        });
        Ok(compared.to_string())
    }
}

impl Table {
    /// The shifts that are asked of the table.
    fn shifts(&self, method: &MethodRequest, asked: &ShiftRequest) -> m3impute::Result<Shifts> {
        let round = method.asked()?.1.finish.over(Finish::default()).round;
        Shifts::of_table(&shifts(asked)?, self.document.table(), round)
    }
}

/// Tells how far a comparison is.
struct Told(Mutex<Sender<Progress>>);

impl Watch for Told {
    fn begins(&self, label: &str, repeat: usize, done: usize, total: usize) {
        let note = format!("{label}, repeat {repeat}");
        if let Ok(send) = self.0.lock() {
            // Nobody listens once the calling thread has given up.
            let _ = send.send(Progress { stage: "evaluate", done: done as u64, total: total as u64, note });
        }
    }
}

/// What a user should know: the column, a sentence, and a hint.
pub(crate) type Said = (String, String, Option<String>);

/// The notes of findings, without what a user of a frame knows already: that `NaN`, and what was asked for, is missing.
pub(crate) fn notes_of(findings: &[Finding]) -> Vec<Said> {
    let is_known = |note: &str| note.contains("` taken as missing ") && !note.ends_with("as the rest are numbers");
    let said = |finding: &Finding| {
        let notes = finding.notes.iter().filter(|note| !is_known(&note.text));
        let said = |note: &Note| (finding.column.clone(), note.text.clone(), note.hint.as_ref().and_then(in_python));
        notes.map(said).collect::<Vec<_>>()
    };
    findings.iter().flat_map(said).collect()
}

/// A table with its holes filled, or with new ones: the columns that differ, and the rows in which they do.
#[pyclass(frozen, module = "m3impute._native")]
pub(crate) struct Changed {
    /// The place of the column, the column as it is now, and the rows.
    columns: Vec<(usize, Column, Vec<usize>)>,
    /// The rows without a value before, for every column of the table.
    holes: Vec<Vec<usize>>,
    fallbacks: Vec<Fallback>,
    notes: Vec<String>,
    shifted: Vec<Shifted>,
    /// The completed tables that were shifted.
    tables: usize,
    spent: bool,
}

pub(crate) fn rows_as_bytes<'py>(py: Python<'py>, rows: &[usize]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &rows.iter().flat_map(|&row| (row as i64).to_ne_bytes()).collect::<Vec<u8>>())
}

impl Changed {
    pub(crate) fn filled(document: &Document, imputation: Imputation) -> PyResult<Changed> {
        let Imputation { table, fallbacks, notes, .. } = imputation;
        let rows = (0..table.cols()).map(|j| document.filled_rows(j, &table)).collect();
        Changed::of(document, Change::Fill(&table), rows, fallbacks, notes)
    }

    fn hidden(document: &Document, shown: &Observed, notes: Vec<String>) -> PyResult<Changed> {
        let before = document.table().observed();
        let hidden = |j| (0..shown.rows()).filter(|&i| before.get(i, j) && !shown.get(i, j)).collect();
        let rows = (0..shown.cols()).map(hidden).collect();
        Changed::of(document, Change::Hide(shown), rows, Vec::new(), notes)
    }

    /// `rows` are those in which each column of the document's table changes.
    fn of(
        document: &Document,
        change: Change<'_>,
        rows: Vec<Vec<usize>>,
        fallbacks: Vec<Fallback>,
        notes: Vec<String>,
    ) -> PyResult<Changed> {
        let batches = document.filled_batches(change).map_err(io)?;
        let [batch] = batches.as_slice() else { return Err(bug("more than one batch")) };
        let schema = batch.schema();
        let mut columns = Vec::new();
        for (spec, rows) in document.table().schema().columns().iter().zip(rows) {
            if !rows.is_empty() {
                let at = schema.index_of(&spec.name).map_err(bug)?;
                columns.push((at, Column::new(schema.fields()[at].clone(), batch.column(at).clone()), rows));
            }
        }
        let holes = (0..document.table().cols()).map(|j| document.holes(j)).collect();
        Ok(Changed { columns, holes, fallbacks, notes, shifted: Vec::new(), tables: 1, spent: false })
    }

    /// The same with what shifts did to so many completed tables.
    pub(crate) fn shifted_by(self, shifted: Vec<Shifted>, tables: usize) -> Changed {
        Changed { shifted, tables, ..self }
    }

    fn find(&self, column: usize) -> PyResult<&(usize, Column, Vec<usize>)> {
        self.columns.iter().find(|c| c.0 == column).ok_or_else(|| bug(format!("column {column} is unchanged")))
    }
}

#[pymethods]
impl Changed {
    /// The places of the columns that differ.
    fn columns(&self) -> Vec<usize> {
        self.columns.iter().map(|c| c.0).collect()
    }

    /// The rows in which a column differs, 64 bits each.
    fn rows<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyBytes>> {
        Ok(rows_as_bytes(py, &self.find(column)?.2))
    }

    /// The rows in which a column of the model had no value before, 64 bits each.
    fn holes<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyBytes>> {
        let holes = self.holes.get(column).ok_or_else(|| bug(format!("there is no column {column}")))?;
        Ok(rows_as_bytes(py, holes))
    }

    /// The whole column as it is now.
    fn column(&self, column: usize) -> PyResult<Column> {
        let (_, column, _) = self.find(column)?;
        Ok(Column::new(column.field.clone(), column.array.clone()))
    }

    /// The cells in which the column differs.
    fn cells(&self, column: usize) -> PyResult<Column> {
        let (_, column, rows) = self.find(column)?;
        column.take(rows)
    }

    /// Cells that were filled in another way than asked, or left: column, cells, reason, what was done.
    fn fallbacks(&self) -> Vec<(String, usize, String, String)> {
        let row = |f: &Fallback| (f.column.clone(), f.cells, f.reason.clone(), f.done.clone());
        self.fallbacks.iter().map(row).collect()
    }

    /// Whether the time was up before the method was done.
    #[getter]
    fn spent(&self) -> bool {
        self.spent
    }

    /// What shifts did: the column, a sentence where values were shifted, and one that warns.
    fn shifted(&self) -> Vec<(String, Option<String>, Option<String>)> {
        let said = |s: &Shifted| {
            let note = (s.cells > 0).then(|| s.note(self.tables));
            (s.column.clone(), note, s.warning())
        };
        self.shifted.iter().map(said).collect()
    }

    /// What else a user should know.
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
