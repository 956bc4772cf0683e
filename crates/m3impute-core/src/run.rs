//! What a method is given beside its table: the seed, the threads, who watches, and when to stop.

use crate::error::{Error, Result};
use crate::hash::Fnv;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Threads that a run has at most, for each core of the machine: more make it slower, and thousands can hang it.
const THREADS_PER_CORE: usize = 4;

/// A flag that stops a run from elsewhere: a signal handler, another thread.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks the run to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails when somebody asked: for work inside [`Run::install`], where the run itself cannot go.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when the flag is raised.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// How far a method is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What is being done, in a word or two.
    pub stage: &'static str,
    /// How many of `total` are done.
    pub done: u64,
    /// How many there are.
    pub total: u64,
    /// A figure worth watching (a loss, a change), already in words.
    pub note: String,
}

/// Who watches a run. The library never prints: it tells an observer.
pub trait Observer: Send {
    /// Something moved on.
    fn progress(&mut self, progress: &Progress);
}

impl<F: FnMut(&Progress) + Send> Observer for F {
    fn progress(&mut self, progress: &Progress) {
        self(progress);
    }
}

/// One run of a method: its seed, its threads, its observer, its budget, and the flag that stops it.
pub struct Run {
    seed: u64,
    pool: Arc<rayon::ThreadPool>,
    /// Behind a lock, because several threads may report.
    observer: Option<Arc<Mutex<Box<dyn Observer>>>>,
    cancel: Cancel,
    started: Instant,
    budget: Option<Duration>,
    /// Whether work was told that the time is short.
    was_short: Arc<AtomicBool>,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("seed", &self.seed)
            .field("threads", &self.threads())
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

impl Run {
    /// A run of that seed on its own pool of `threads` threads; 0 takes as many as the machine has cores, and no run
    /// has more than four for each core. [`Run::fewer_threads`] says so.
    ///
    /// ```
    /// use rand_chacha::rand_core::Rng;
    /// let run = m3impute_core::Run::new(7, 1)?;
    /// // The same seed, purpose and index give the same numbers, whatever else is drawn.
    /// assert_eq!(run.rng("rows", 3).next_u64(), run.rng("rows", 3).next_u64());
    /// # Ok::<(), m3impute_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the threads cannot be started.
    pub fn new(seed: u64, threads: usize) -> Result<Run> {
        let threads = threads.min(most_threads());
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|e| Error::Threads { threads, reason: e.to_string() })?;
        Ok(Run::on_pool(seed, Arc::new(pool)))
    }

    /// What is to be said where so many threads are asked for, but a run gets fewer.
    ///
    /// ```
    /// use m3impute_core::Run;
    /// assert_eq!(Run::fewer_threads(1), None);
    /// assert!(Run::fewer_threads(1_000_000).unwrap().starts_with("1000000 threads asked for, "));
    /// ```
    pub fn fewer_threads(asked: usize) -> Option<String> {
        let most = most_threads();
        (asked > most).then(|| format!("{asked} threads asked for, {most} used: {THREADS_PER_CORE} for each core"))
    }

    /// A run of that seed on a pool that exists already.
    pub fn on_pool(seed: u64, pool: Arc<rayon::ThreadPool>) -> Run {
        let (cancel, was_short) = (Cancel::default(), Arc::default());
        Run { seed, pool, observer: None, cancel, started: Instant::now(), budget: None, was_short }
    }

    /// Tells this observer how far the run is.
    pub fn observed_by(mut self, observer: impl Observer + 'static) -> Run {
        self.observer = Some(Arc::new(Mutex::new(Box::new(observer))));
        self
    }

    /// Stops when this flag is raised.
    pub fn cancelled_by(mut self, cancel: Cancel) -> Run {
        self.cancel = cancel;
        self
    }

    /// Lets the run take that long, counted from now; then a method returns the best it has.
    pub fn within(mut self, budget: Duration) -> Run {
        self.started = Instant::now();
        self.budget = Some(budget);
        self
    }

    /// The same run with this share of the time that is left: for a part of the work that must leave time for the rest.
    ///
    /// ```
    /// use m3impute_core::Run;
    /// use std::time::Duration;
    ///
    /// let run = Run::new(0, 1)?.within(Duration::from_secs(60));
    /// assert!(run.part(0.5).is_down_to(Some(Duration::from_secs(30))));
    /// assert!(Run::new(0, 1)?.part(0.5).time_left().is_none());
    /// # Ok::<(), m3impute_core::Error>(())
    /// ```
    pub fn part(&self, share: f64) -> Run {
        Run {
            seed: self.seed,
            pool: self.pool.clone(),
            observer: self.observer.clone(),
            cancel: self.cancel.clone(),
            started: Instant::now(),
            budget: self.time_left().map(|left| left.mul_f64(share)),
            was_short: self.was_short.clone(),
        }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The pool on which parallel work is installed.
    pub fn pool(&self) -> &Arc<rayon::ThreadPool> {
        &self.pool
    }

    /// How many threads the run has.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// The one door to randomness: a stream that depends on seed, purpose and index only.
    pub fn rng(&self, purpose: &str, index: u64) -> ChaCha8Rng {
        let mut hash = Fnv::default();
        hash.bytes(purpose.as_bytes());
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&hash.0.to_le_bytes());
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(index);
        rng
    }

    /// Tells the observer how far the run is.
    pub fn report(&self, stage: &'static str, done: u64, total: u64, note: impl Into<String>) {
        if let Some(observer) = &self.observer {
            let mut observer = observer.lock().unwrap_or_else(PoisonError::into_inner);
            observer.progress(&Progress { stage, done, total, note: note.into() });
        }
    }

    /// Fails when somebody asked the run to stop. Long loops call this every few milliseconds.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when the flag is raised.
    pub fn check(&self) -> Result<()> {
        self.cancel.check()
    }

    /// The flag that stops the run.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// The time that is left, where there is a budget.
    pub fn time_left(&self) -> Option<Duration> {
        self.budget.map(|b| b.saturating_sub(self.started.elapsed()))
    }

    /// Whether the budget is spent.
    pub fn is_spent(&self) -> bool {
        self.is_down_to(Some(Duration::ZERO))
    }

    /// Whether the budget is exceeded by more than a run may: by a second, and by a twentieth of it. What is left of the
    /// work is then given up.
    pub fn is_overdue(&self) -> bool {
        let may = |budget: Duration| budget + budget.mul_f64(0.05).max(Duration::from_secs(1));
        self.budget.is_some_and(|budget| self.started.elapsed() > may(budget))
    }

    /// Whether work should go on: nobody asked it to stop, and the budget is not spent. For long loops inside parallel
    /// work, whose answer is then given up.
    pub fn goes_on(&self) -> bool {
        !self.cancel.is_cancelled() && !self.is_spent()
    }

    /// Whether no more than `kept` is left of the budget: what was kept for later work has to begin.
    ///
    /// ```
    /// use m3impute_core::Run;
    /// use std::time::Duration;
    ///
    /// let run = Run::new(0, 1)?.within(Duration::from_secs(60));
    /// assert!(run.is_down_to(Some(Duration::from_secs(60))));
    /// assert!(!run.is_down_to(Some(Duration::from_secs(6))));
    /// // Without a budget it is never late.
    /// assert!(!Run::new(0, 1)?.is_down_to(None));
    /// # Ok::<(), m3impute_core::Error>(())
    /// ```
    pub fn is_down_to(&self, kept: Option<Duration>) -> bool {
        let is_short = self.time_left().zip(kept).is_some_and(|(left, kept)| left <= kept);
        if is_short {
            self.was_short.store(true, Ordering::Relaxed);
        }
        is_short
    }

    /// Whether the budget was too small for some of the work: a method asked, and time was short.
    ///
    /// ```
    /// use m3impute_core::Run;
    /// use std::time::Duration;
    ///
    /// let run = Run::new(0, 1)?.within(Duration::from_secs(60));
    /// assert!(!run.was_short());
    /// assert!(run.is_down_to(Some(Duration::from_secs(60))) && run.was_short());
    /// # Ok::<(), m3impute_core::Error>(())
    /// ```
    pub fn was_short(&self) -> bool {
        self.was_short.load(Ordering::Relaxed)
    }

    /// Runs parallel work on the run's own pool.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.install(work)
    }
}

/// The most threads that a run has on this machine.
fn most_threads() -> usize {
    THREADS_PER_CORE * std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::Rng;

    #[test]
    fn streams_differ_by_seed_purpose_and_index() {
        let draw = |seed, purpose, index| Run::new(seed, 1).unwrap().rng(purpose, index).next_u64();
        let draws = [draw(0, "a", 0), draw(1, "a", 0), draw(0, "b", 0), draw(0, "a", 1)];
        for (i, a) in draws.iter().enumerate() {
            assert!(draws[i + 1..].iter().all(|b| a != b));
        }
    }

    #[test]
    fn a_cancelled_run_says_so() {
        let cancel = Cancel::default();
        let run = Run::new(0, 1).unwrap().cancelled_by(cancel.clone());
        assert!(run.check().is_ok());
        cancel.cancel();
        assert!(matches!(run.check(), Err(Error::Cancelled)));
    }

    #[test]
    fn a_run_has_no_more_threads_than_four_for_each_core() {
        let run = Run::new(0, 20_000).unwrap();
        assert_eq!(run.threads(), most_threads());
        assert!(Run::fewer_threads(most_threads()).is_none() && Run::fewer_threads(0).is_none());
        let said = Run::fewer_threads(20_000).unwrap();
        assert_eq!(said, format!("20000 threads asked for, {} used: 4 for each core", most_threads()));
    }

    #[test]
    fn a_part_of_a_spent_run_is_spent_and_draws_the_same_numbers() {
        let run = Run::new(3, 1).unwrap().within(Duration::ZERO);
        let part = run.part(0.5);
        assert!(part.is_spent() && !part.goes_on() && !part.is_overdue());
        assert_eq!(part.rng("a", 1).next_u64(), run.rng("a", 1).next_u64());
    }

    #[test]
    fn a_budget_of_nothing_is_spent() {
        assert!(Run::new(0, 1).unwrap().within(Duration::ZERO).is_spent());
        assert!(!Run::new(0, 1).unwrap().is_spent());
    }
}
