//! Rows of results, one a measurement, in a file that survives being stopped at any time.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// How columns are scaled before methods see them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// By the complete column, as in the published experiments.
    #[default]
    Paper,
    /// By the observed cells: all that a user has.
    Observed,
}

/// How missing cells are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// A table at once.
    Impute,
    /// Learning and filling apart, each with its own time.
    Transform,
}

/// The names of the columns of a file of rows: the fields of [`Row`].
const HEADER: [&str; 21] = [
    "table",
    "mask",
    "mask_source",
    "method",
    "preset",
    "settings",
    "seed",
    "scale",
    "way",
    "max_seconds",
    "cells",
    "mae10",
    "rmse10",
    "label_mae",
    "seconds",
    "fill_seconds",
    "peak_bytes",
    "version",
    "commit",
    "machine",
    "error",
];

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The table.
    pub table: String,
    /// Its mask, such as `mcar30`.
    pub mask: String,
    /// Where the mask comes from: `given` by a file, or `made`.
    pub mask_source: String,
    /// The method.
    pub method: String,
    /// Its preset.
    pub preset: String,
    /// Parameters on top of the preset: `peers=2;width=64`.
    pub settings: String,
    /// The seed.
    pub seed: u64,
    /// How columns are scaled.
    pub scale: Scale,
    /// How missing cells are filled.
    pub way: Way,
    /// The time limit in seconds.
    pub max_seconds: Option<f64>,
    /// How many hidden cells are scored.
    pub cells: usize,
    /// Mean absolute error times 10, columns scaled to 0..1.
    pub mae10: Option<f64>,
    /// Root mean squared error times 10.
    pub rmse10: Option<f64>,
    /// Mean absolute error of labels predicted from the filled table.
    pub label_mae: Option<f64>,
    /// Seconds of filling; of learning, where that is apart.
    pub seconds: f64,
    /// Seconds of filling alone, where learning is apart.
    pub fill_seconds: Option<f64>,
    /// Peak memory in bytes.
    pub peak_bytes: Option<u64>,
    /// The version of the program.
    pub version: String,
    /// The commit it was built from.
    pub commit: String,
    /// The processor and its cores.
    pub machine: String,
    /// Why there are no figures.
    pub error: String,
}

impl Row {
    /// The key of the measurement: rows with the same key are repetitions.
    pub fn key(&self) -> String {
        let Row { table, mask, method, preset, settings, seed, scale, way, max_seconds, .. } = self;
        format!("{table}|{mask}|{method}|{preset}|{settings}|{seed}|{scale:?}|{way:?}|{max_seconds:?}")
    }
}

/// A file of rows. While it is open, no other bench may write to it.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
    rows: Vec<Row>,
    keys: HashSet<String>,
    /// Whether the names of the columns are still to be written, with the first row.
    is_blank: bool,
}

impl Store {
    /// Opens a file of rows, or begins one.
    ///
    /// A last line without an end was left by a program that was killed: it is cut off, and its measurement is repeated.
    ///
    /// # Errors
    /// When the file cannot be read or written, is in use, or is not one of rows.
    pub fn open(path: &Path) -> Result<Store> {
        let wrong = |reason: String, hint| Error::Rows { file: path.to_owned(), reason, hint };
        let failed = |e: std::io::Error| wrong(e.to_string(), "`--rows` names a file that can be written");
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(wrong(
                    "another bench writes to it".to_owned(),
                    "wait for it, or name another file with `--rows`",
                ));
            }
            Err(TryLockError::Error(e)) => return Err(failed(e)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let whole = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        // Nothing is cut off before it is known that every whole line is one of ours.
        let none = |reason| wrong(reason, "this is no file of rows of this version: name another one");
        let header = HEADER.join(",");
        if !header.as_bytes().starts_with(&bytes[..bytes.len().min(header.len())]) {
            return Err(none("line 1: these are not the names of the columns".to_owned()));
        }
        let mut rows: Vec<Row> = Vec::new();
        for (at, row) in csv::Reader::from_reader(&bytes[..whole]).deserialize().enumerate() {
            rows.push(row.map_err(|e| none(format!("line {}: {e}", at + 2)))?);
        }
        file.set_len(whole as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let keys = rows.iter().map(Row::key).collect();
        Ok(Store { path: path.to_owned(), file, rows, keys, is_blank: whole == 0 })
    }

    /// The rows so far.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Whether a measurement is there.
    pub fn has(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    /// Adds a row and brings it to the disk. A measurement that is there already is not added again.
    ///
    /// # Errors
    /// When the file cannot be written; then it is as it was.
    pub fn push(&mut self, row: Row) -> Result<()> {
        if !self.keys.insert(row.key()) {
            return Ok(());
        }
        let mut writer = csv::WriterBuilder::new().has_headers(self.is_blank).from_writer(Vec::new());
        let line = writer
            .serialize(&row)
            .map_err(|e| e.to_string())
            .and_then(|()| writer.into_inner().map_err(|e| e.to_string()));
        let line = line.map_err(|reason| Error::Rows { file: self.path.clone(), reason, hint: "this is a bug" })?;
        self.append(&line)?;
        self.is_blank = false;
        self.rows.push(row);
        Ok(())
    }

    /// One write for the whole line: where it is cut short, the line has no end, and is cut off when the file is
    /// opened.
    fn append(&mut self, line: &[u8]) -> Result<()> {
        let before = self.file.stream_position();
        let written = self.file.write_all(line).and_then(|()| self.file.sync_data());
        written.map_err(|e| {
            if let Ok(before) = before {
                let _ = self.file.set_len(before);
            }
            Error::Rows { file: self.path.clone(), reason: e.to_string(), hint: "is the disk full?" }
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row(table: &str, method: &str, seed: u64, mae10: f64) -> Row {
        Row {
            table: table.to_owned(),
            mask: "mcar30".to_owned(),
            mask_source: "given".to_owned(),
            method: method.to_owned(),
            preset: m3impute::method(method).unwrap().presets[0].0.to_owned(),
            settings: String::new(),
            seed,
            scale: Scale::Paper,
            way: Way::Impute,
            max_seconds: None,
            cells: 10,
            mae10: Some(mae10),
            rmse10: Some(2.0 * mae10),
            label_mae: None,
            seconds: 0.5,
            fill_seconds: None,
            peak_bytes: Some(1000),
            version: "0.1.0".to_owned(),
            commit: "abc".to_owned(),
            machine: "a machine, 2 cores".to_owned(),
            error: "got \"no\"".to_owned(),
        }
    }

    #[test]
    fn rows_come_back_as_they_were_and_none_is_doubled() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        let rows = [row("yacht", "mean", 0, 2.06), row("yacht", "mean", 1, 2.1), row("wine", "knn", 0, 0.7)];
        for _ in 0..2 {
            let mut store = Store::open(&path).unwrap();
            rows.iter().for_each(|row| store.push(row.clone()).unwrap());
            assert_eq!(store.rows(), rows);
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 4);
        assert_eq!(text.lines().next().unwrap(), HEADER.join(","));
    }

    #[test]
    fn a_file_that_was_cut_at_any_byte_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        let rows = [row("yacht", "mean", 0, 2.06), row("wine", "knn", 0, 0.7)];
        let mut store = Store::open(&path).unwrap();
        rows.iter().for_each(|row| store.push(row.clone()).unwrap());
        drop(store);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut store = Store::open(&path).unwrap();
            rows.iter().for_each(|row| store.push(row.clone()).unwrap());
            drop(store);
            assert_eq!(std::fs::read(&path).unwrap(), whole, "cut at {cut}");
        }
    }

    #[test]
    fn two_benches_do_not_write_to_one_file_and_other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        let first = Store::open(&path).unwrap();
        assert!(Store::open(&path).unwrap_err().to_string().contains("another bench"));
        drop(first);
        std::fs::write(&path, "a,b\n1,2\n").unwrap();
        assert!(Store::open(&path).unwrap_err().to_string().contains("line 1"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a,b\n1,2\n");
    }
}
