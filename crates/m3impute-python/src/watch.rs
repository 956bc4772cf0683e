//! Work beside Python: other threads of the program go on, Ctrl-C stops it, and progress is told on the calling thread.

use crate::errors::{bug, core};
use m3impute::{Cancel, Progress};
use pyo3::prelude::*;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Python is asked for signals, and told about progress, that often.
const TICK: Duration = Duration::from_millis(50);

/// Does `job` on a thread of its own while this one looks after Python.
///
/// The callback gets stage, done, total and a note: the latest of each tick, and the last of all. An exception that it
/// raises, or a signal, cancels the job.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    callback: Option<&Py<PyAny>>,
    job: impl FnOnce(Cancel, Sender<Progress>) -> m3impute::Result<T> + Send,
) -> PyResult<T> {
    let cancel = Cancel::default();
    let (send, receive) = mpsc::channel();
    let mut interrupted = None;
    let error = &mut interrupted;
    let outcome = py.detach(move || {
        std::thread::scope(|scope| {
            let worker = scope.spawn({
                let cancel = cancel.clone();
                move || job(cancel, send)
            });
            let (mut latest, mut before) = (None, Instant::now());
            loop {
                let mut ended = false;
                match receive.recv_timeout(TICK.saturating_sub(before.elapsed())) {
                    Ok(progress) => latest = Some(progress),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => ended = true,
                }
                if error.is_none() && (ended || before.elapsed() >= TICK) {
                    *error = Python::attach(|py| look_after(py, callback, latest.take())).err();
                    if error.is_some() {
                        cancel.cancel();
                    }
                    before = Instant::now();
                }
                if ended {
                    break worker.join();
                }
            }
        })
    });
    match (interrupted, outcome) {
        (Some(error), _) => Err(error),
        (None, Ok(result)) => result.map_err(core),
        (None, Err(_)) => Err(bug("a thread panicked")),
    }
}

fn look_after(py: Python<'_>, callback: Option<&Py<PyAny>>, latest: Option<Progress>) -> PyResult<()> {
    py.check_signals()?;
    if let (Some(callback), Some(Progress { stage, done, total, note })) = (callback, latest) {
        callback.call1(py, (stage, done, total, note))?;
    }
    Ok(())
}
