//! How training goes on: progress, cancel, budget, and a loss that must be finite.

use m3impute_core::{Error, Result, Run};
use std::ops::Range;
use std::time::{Duration, Instant};

/// The loop of a training.
#[derive(Debug)]
pub(crate) struct Pace {
    method: &'static str,
    /// What is counted, such as `steps`.
    unit: &'static str,
    done: u64,
    total: u64,
    spent: bool,
    started: Instant,
    reported: Duration,
}

impl Pace {
    pub(crate) fn new(method: &'static str, unit: &'static str, total: u64) -> Pace {
        Pace { method, unit, done: 0, total, spent: false, started: Instant::now(), reported: Duration::ZERO }
    }

    /// Epochs of so many batches, no more of them than `steps` allows.
    pub(crate) fn of_epochs(method: &'static str, epochs: u64, steps: u64, batches: u64) -> Pace {
        Pace::new(method, "epochs", epochs.min((steps / batches).max(1)))
    }

    /// The next ones to do, at most `most` of them; none when all are done, or the time limit is reached.
    ///
    /// Several at a time, because a step may be so short that handing it to the pool would cost more than the step.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub(crate) fn next(&mut self, most: u64, run: &Run) -> Result<Option<Range<u64>>> {
        run.check()?;
        self.spent = self.done < self.total && run.is_spent();
        let to = if self.spent { self.done } else { self.total.min(self.done + most) };
        Ok((self.done < to).then_some(self.done..to))
    }

    /// What came of the next ones; none where the time limit was reached in them, which [`within_time`] tells.
    ///
    /// # Errors
    /// When the run is cancelled, or the loss is not finite.
    pub(crate) fn outcome<T>(&mut self, outcome: Result<T>, run: &Run) -> Result<Option<T>> {
        run.check()?;
        if let Err(Error::Cancelled) = outcome {
            self.spent = true;
            return Ok(None);
        }
        outcome.map(Some)
    }

    /// These are done, and this is the loss of the last.
    ///
    /// # Errors
    /// When the loss is not finite.
    pub(crate) fn took(&mut self, steps: Range<u64>, loss: f32, run: &mut Run) -> Result<()> {
        self.done = steps.end;
        if !loss.is_finite() {
            let unit = self.unit.trim_end_matches('s');
            let place = format!("the loss of {unit} {} (a smaller `learning_rate` may help)", self.done);
            return Err(Error::NotFinite { method: self.method, place });
        }
        let passed = self.started.elapsed();
        if passed - self.reported > Duration::from_millis(100) || self.done == self.total {
            self.reported = passed;
            let rate = self.done as f64 / passed.as_secs_f64().max(1e-9);
            run.report("training", self.done, self.total, format!("loss {loss:.5}, {rate:.1} {}/s", self.unit));
        }
        Ok(())
    }

    /// A note where the time limit was reached.
    pub(crate) fn notes(&self) -> Vec<String> {
        let unit = self.unit.trim_end_matches('s');
        let spent = format!("time limit reached at {unit} {} of {}", self.done, self.total);
        self.spent.then_some(spent).into_iter().collect()
    }
}

/// What is asked between batches.
///
/// # Errors
/// [`Error::Cancelled`] when the run is cancelled or its time is spent: the epoch is given up.
pub(crate) fn within_time(run: &Run) -> Result<()> {
    if run.goes_on() { Ok(()) } else { Err(Error::Cancelled) }
}

/// The share of a limited time that training may take: the rest is for predicting.
pub(crate) const TRAINING_SHARE: f64 = 0.7;

/// The best state of a training so far, by its error on held-out cells.
#[derive(Debug)]
pub(crate) struct Best<T> {
    best: Option<(f32, T)>,
    /// How many states since the best one, and how many there may be.
    since: u64,
    patience: u64,
}

impl<T> Best<T> {
    pub(crate) fn new(patience: u64) -> Best<T> {
        Best { best: None, since: 0, patience }
    }

    /// Keeps the state where its error is the least so far; says whether training should go on.
    pub(crate) fn offer(&mut self, error: f32, state: impl FnOnce() -> T) -> bool {
        self.since += 1;
        if self.best.as_ref().is_none_or(|(least, _)| error < *least) {
            (self.best, self.since) = (Some((error, state())), 0);
        }
        self.since <= self.patience
    }

    /// The best state; none where nothing was held out.
    pub(crate) fn state(self) -> Option<T> {
        self.best.map(|(_, state)| state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_that_is_not_finite_names_what_to_try() {
        let mut run = Run::new(0, 1).unwrap();
        let mut pace = Pace::new("gain", "steps", 2);
        assert_eq!(pace.next(5, &run).unwrap(), Some(0..2));
        pace.took(0..1, 1.0, &mut run).unwrap();
        let error = pace.took(1..2, f32::NAN, &mut run).unwrap_err().to_string();
        assert!(error.contains("step 2") && error.contains("learning_rate"), "{error}");
    }

    #[test]
    fn a_time_limit_that_is_reached_ends_the_loop_and_is_noted() {
        let run = Run::new(0, 1).unwrap().within(Duration::ZERO);
        let mut pace = Pace::new("gain", "steps", 2);
        assert_eq!(pace.next(1, &run).unwrap(), None);
        assert_eq!(pace.notes(), ["time limit reached at step 0 of 2"]);
        assert!(Pace::new("gain", "steps", 2).notes().is_empty());
    }

    #[test]
    fn the_best_state_is_kept_and_patience_ends() {
        let mut best = Best::new(1);
        assert!(best.offer(2.0, || "a") && best.offer(1.0, || "b") && best.offer(1.5, || "c"));
        assert!(!best.offer(1.0, || "d"));
        assert_eq!(best.state(), Some("b"));
    }
}
