//! What Python asks for, as plain dictionaries whose keys are the fields of these structs.

use m3impute::{
    Bounds, Cancel, Error, FinishChoice, Imputer, Kind, MethodSpec, Progress, Result, Run, Settings, Shift,
};
use m3impute_io::{Infinities, ReadOptions};
use pyo3::prelude::*;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// How a table is to be read.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ReadRequest {
    kinds: Vec<(String, String)>,
    ignore: Vec<String>,
    only: Option<Vec<String>>,
    bounds: Vec<(String, f64, f64)>,
    missing_values: Vec<(String, Vec<String>)>,
    infinities: String,
}

impl ReadRequest {
    pub(crate) fn options(self) -> Result<ReadOptions> {
        let kind = |(column, name): (String, String)| match Kind::parse(&name) {
            Some(kind) => Ok((column, kind)),
            None => Err(Error::Request {
                what: format!("kind of column `{column}`"),
                expected: format!("one of {}", Kind::ALL.map(|k| format!("`{k}`")).join(", ")),
                got: name,
            }),
        };
        Ok(ReadOptions {
            na_columns: self.missing_values,
            infinities: infinities(&self.infinities)?,
            kinds: self.kinds.into_iter().map(kind).collect::<Result<_>>()?,
            ignore: self.ignore,
            only: self.only,
            bounds: self.bounds.into_iter().map(|(column, low, high)| (column, Bounds { low, high })).collect(),
            ..ReadOptions::default()
        })
    }
}

/// What becomes of infinities.
pub(crate) fn infinities(policy: &str) -> Result<Infinities> {
    match policy {
        "error" => Ok(Infinities::Refuse),
        "missing" => Ok(Infinities::Missing),
        other => Err(Error::Request {
            what: "infinities".to_owned(),
            expected: "one of `error`, `missing`".to_owned(),
            got: other.to_owned(),
        }),
    }
}

/// How imputed values are shifted: columns and amounts.
pub(crate) type ShiftRequest = Vec<(String, String)>;

/// The shifts that are asked for.
pub(crate) fn shifts(asked: &ShiftRequest) -> Result<Vec<Shift>> {
    asked.iter().map(|(column, amount)| Shift::parse(column, amount)).collect()
}

/// Which method, and how it is set.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct MethodRequest {
    method: String,
    preset: Option<String>,
    params: Vec<(String, String)>,
    round: Option<bool>,
    clip: Option<bool>,
    zero_empty: bool,
}

impl MethodRequest {
    /// The method, and what is asked of it.
    pub(crate) fn asked(&self) -> Result<(&'static MethodSpec, Settings)> {
        let (spec, preset) = m3impute::method_and_preset(&self.method, self.preset.as_deref())?;
        let finish = FinishChoice { round: self.round, clip: self.clip, zero_empty: self.zero_empty };
        Ok((spec, Settings { preset, params: self.params.clone(), finish }))
    }

    pub(crate) fn build(&self) -> Result<Box<dyn Imputer>> {
        let (spec, settings) = self.asked()?;
        (spec.build)(&settings)
    }
}

/// What a run may use.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RunRequest {
    pub(crate) seed: u64,
    pub(crate) threads: usize,
    pub(crate) max_seconds: Option<f64>,
    pub(crate) progress: Option<Py<PyAny>>,
}

impl RunRequest {
    /// The run, which tells its progress to `send` and stops when asked.
    pub(crate) fn run(&self, cancel: Cancel, send: Sender<Progress>) -> Result<Run> {
        let run = Run::new(self.seed, self.threads)?.cancelled_by(cancel).observed_by(move |progress: &Progress| {
            // Nobody listens once the calling thread has given up.
            let _ = send.send(progress.clone());
        });
        let Some(seconds) = self.max_seconds else { return Ok(run) };
        match Duration::try_from_secs_f64(seconds) {
            Ok(budget) => Ok(run.within(budget)),
            Err(_) => Err(Error::Request {
                what: "max_seconds".to_owned(),
                expected: "a number of at least 0".to_owned(),
                got: seconds.to_string(),
            }),
        }
    }
}
