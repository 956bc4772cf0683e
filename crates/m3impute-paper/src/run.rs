//! Makes the measurements of a study that are not in its rows yet.

use crate::data::{Case, MaskSource, case};
use crate::error::{Error, Result};
use crate::labels::label_error;
use crate::rows::{Row, Scale, Store, Way};
use crate::studies::{Question, Setting, Study};
use m3impute::missing::without_hidden;
use m3impute::{Cancel, Run, Settings, Table};
use m3impute_eval::{Candidate, HideBy, Plan, Probe, ScaleBy};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How a bench runs.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The seeds of methods; missing cells are the same for all.
    pub seeds: Vec<u64>,
    /// How columns are scaled.
    pub scale: Scale,
    /// The seconds that a method may take on a table.
    pub max_seconds: Option<f64>,
    /// The threads of each method; 0 takes as many as the machine has.
    pub threads: usize,
    /// The version of the program, its commit, and the machine.
    pub provenance: [String; 3],
}

/// One measurement that a study needs.
#[derive(Clone, Debug)]
pub struct Task {
    /// The table.
    pub table: String,
    /// Its mask.
    pub mask: String,
    /// The method with its settings.
    pub setting: Setting,
    /// The seed.
    pub seed: u64,
    /// How missing cells are filled.
    pub way: Way,
}

/// The measurements of a study, by table and mask, so that a table is read once for many settings.
pub fn tasks(study: &Study, tables: &[String], settings: &[Setting], bench: &Bench) -> Vec<Task> {
    let mut all = Vec::new();
    for table in tables {
        for mask in study.masks {
            for setting in settings {
                let spec = m3impute::METHODS.iter().find(|m| m.name == setting.method);
                let apart = study.question == Question::Seconds && spec.is_some_and(|m| m.inductive);
                let seeds = if spec.is_some_and(|m| m.randomised) { bench.seeds.as_slice() } else { &bench.seeds[..1] };
                for &seed in seeds {
                    let way = if apart { Way::Transform } else { Way::Impute };
                    let (table, mask, setting) = (table.clone(), (*mask).to_owned(), setting.clone());
                    all.push(Task { table, mask, setting, seed, way });
                }
            }
        }
    }
    all
}

impl Task {
    /// The row of this task, without figures.
    fn blank(&self, bench: &Bench) -> Row {
        let [version, commit, machine] = bench.provenance.clone();
        Row {
            table: self.table.clone(),
            mask: self.mask.clone(),
            mask_source: String::new(),
            method: self.setting.method.clone(),
            preset: self.setting.preset.clone(),
            settings: self.setting.params_text(),
            seed: self.seed,
            scale: bench.scale,
            way: self.way,
            max_seconds: bench.max_seconds,
            cells: 0,
            mae10: None,
            rmse10: None,
            label_mae: None,
            seconds: 0.0,
            fill_seconds: None,
            peak_bytes: None,
            version,
            commit,
            machine,
            error: String::new(),
        }
    }

    /// The key of its row.
    pub fn key(&self, bench: &Bench) -> String {
        self.blank(bench).key()
    }
}

/// How far a bench is.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// What is measured now.
    pub task: &'a Task,
    /// How many measurements are there, those of earlier runs too.
    pub done: usize,
    /// Of how many.
    pub total: usize,
    /// The estimated seconds of the others, from those of this run.
    pub seconds_left: Option<f64>,
    /// The best setting so far on this table and mask, and its error.
    pub best: Option<(String, f64)>,
}

/// An observer of a bench.
pub trait Watch: Send + Sync {
    /// A measurement begins.
    fn begins(&self, progress: &Progress<'_>);
    /// Its method made progress.
    fn moves(&self, progress: &m3impute::Progress);
    /// It has ended.
    fn ends(&self, row: &Row);
}

/// Makes the measurements that are not there yet, one row after the other.
///
/// # Errors
/// When a table cannot be read, a row cannot be written, or the run is cancelled. A method that fails gives a row with
/// its error, and the others go on.
pub fn run(
    data: &Path,
    tasks: &[Task],
    bench: &Bench,
    store: &mut Store,
    probe: &dyn Probe,
    cancel: &Cancel,
    watch: &Arc<dyn Watch>,
) -> Result<()> {
    let started = Instant::now();
    let before = tasks.iter().filter(|task| store.has(&task.key(bench))).count();
    let mut read: Option<(String, String, Case)> = None;
    let mut done = before;
    for task in tasks {
        if store.has(&task.key(bench)) {
            continue;
        }
        if read.as_ref().is_none_or(|(table, mask, _)| (table, mask) != (&task.table, &task.mask)) {
            read = Some((task.table.clone(), task.mask.clone(), case(data, &task.table, &task.mask)?));
        }
        let Some((_, _, case)) = &read else { continue };
        let measured = done - before;
        let each = (measured > 0).then(|| started.elapsed().as_secs_f64() / measured as f64);
        watch.begins(&Progress {
            task,
            done,
            total: tasks.len(),
            seconds_left: each.map(|each| each * (tasks.len() - done) as f64),
            best: best(store.rows(), task, bench),
        });
        let row = measure(task, case, bench, probe, cancel, watch)?;
        watch.ends(&row);
        store.push(row)?;
        done += 1;
    }
    Ok(())
}

fn best(rows: &[Row], task: &Task, bench: &Bench) -> Option<(String, f64)> {
    let here = |row: &&Row| row.table == task.table && row.mask == task.mask && row.scale == bench.scale;
    let errors =
        rows.iter().filter(here).filter_map(|row| Some((format!("{}:{}", row.method, row.preset), row.mae10?)));
    errors.min_by(|a, b| a.1.total_cmp(&b.1))
}

fn measure(
    task: &Task,
    case: &Case,
    bench: &Bench,
    probe: &dyn Probe,
    cancel: &Cancel,
    watch: &Arc<dyn Watch>,
) -> Result<Row> {
    let mut row = task.blank(bench);
    row.mask_source = match case.source {
        MaskSource::Given => "given",
        MaskSource::Made => "made",
    }
    .to_owned();
    let settings = Settings {
        preset: Some(task.setting.preset.clone()),
        params: task.setting.params.clone(),
        ..Settings::default()
    };
    let spec = m3impute::method(&task.setting.method)?;
    match task.way {
        Way::Impute => {
            let filled = Arc::new(Kept { table: Mutex::default(), watch: watch.clone() });
            let plan = Plan {
                methods: vec![Candidate { settings, ..Candidate::new(spec) }],
                hide: HideBy::Given(case.shown.clone()),
                seed: task.seed,
                threads: bench.threads,
                max_seconds: bench.max_seconds,
                scale: match bench.scale {
                    Scale::Paper => ScaleBy::Paper,
                    Scale::Observed => ScaleBy::Observed,
                },
            };
            let watcher: Arc<dyn m3impute_eval::Watch> = filled.clone();
            let rows = m3impute_eval::evaluate(&case.truth, &plan, probe, cancel, &watcher)?;
            let Some(found) = rows.into_iter().next() else { return Ok(row) };
            (row.cells, row.seconds, row.peak_bytes) = (found.cells, found.seconds, found.peak_bytes);
            (row.mae10, row.rmse10) = (found.mae.map(|e| 10.0 * e), found.rmse.map(|e| 10.0 * e));
            row.error = found.error.unwrap_or_default();
            let kept = filled.table.lock().ok().and_then(|mut table| table.take());
            row.label_mae = kept.and_then(|table| label_error(&table, &case.truth));
        }
        Way::Transform => {
            let watch = watch.clone();
            let mut run = Run::new(task.seed, bench.threads)?
                .cancelled_by(cancel.clone())
                .observed_by(move |progress: &m3impute::Progress| watch.moves(progress));
            if let Some(seconds) = bench.max_seconds {
                run = run.within(Duration::from_secs_f64(seconds));
            }
            probe.start();
            let seen = without_hidden(&case.truth, &case.shown);
            match apart(spec, &settings, &seen, &mut run) {
                Ok((fitting, filling)) => (row.seconds, row.fill_seconds) = (fitting, Some(filling)),
                Err(m3impute::Error::Cancelled) => return Err(m3impute::Error::Cancelled.into()),
                Err(error) => row.error = error.to_string(),
            }
            row.peak_bytes = probe.peak_bytes();
        }
    }
    Ok(row)
}

/// The seconds of fitting a table, and of filling it.
fn apart(
    spec: &'static m3impute::MethodSpec,
    settings: &Settings,
    seen: &Table,
    run: &mut Run,
) -> m3impute::Result<(f64, f64)> {
    let imputer = (spec.build)(settings)?;
    let inductive = imputer.as_inductive().ok_or(m3impute::Error::NotInductive { method: spec.name })?;
    let started = Instant::now();
    let fitted = inductive.fit(seen, run)?;
    let fitting = started.elapsed().as_secs_f64();
    let started = Instant::now();
    fitted.transform(seen, run)?;
    Ok((fitting, started.elapsed().as_secs_f64()))
}

/// Keeps the table that a method filled, and passes its progress on.
struct Kept {
    table: Mutex<Option<Table>>,
    watch: Arc<dyn Watch>,
}

impl m3impute_eval::Watch for Kept {
    fn progress(&self, progress: &m3impute::Progress) {
        self.watch.moves(progress);
    }

    fn filled(&self, table: &Table) {
        if let Ok(mut kept) = self.table.lock() {
            *kept = Some(table.clone());
        }
    }
}

/// Which of the paper's tables to take: those that are named and there, or all that are there.
///
/// # Errors
/// When one that is named does not belong to the study or is not there, or none is.
pub fn chosen_tables(study: &Study, named: Option<&[String]>, there: &[&str]) -> Result<Vec<String>> {
    let unknown = |name: &str| Error::Unknown { what: "table", got: name.to_owned(), valid: there.join(", ") };
    let Some(named) = named else {
        return Ok(study.tables().into_iter().filter(|t| there.contains(t)).map(str::to_owned).collect());
    };
    named
        .iter()
        .map(|name| if there.contains(&name.as_str()) { Ok(name.clone()) } else { Err(unknown(name)) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::study;
    use m3impute_eval::NoProbe;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Counted {
        begun: AtomicUsize,
        /// Cancels when so many measurements have ended.
        stop_after: Option<(usize, Cancel)>,
    }

    impl Watch for Counted {
        fn begins(&self, progress: &Progress<'_>) {
            assert!(progress.done < progress.total);
            let begun = self.begun.fetch_add(1, Ordering::SeqCst);
            if let Some((_, cancel)) = self.stop_after.as_ref().filter(|(after, _)| begun == *after) {
                cancel.cancel();
            }
        }

        fn moves(&self, _: &m3impute::Progress) {}

        fn ends(&self, row: &Row) {
            assert_eq!(row.error, "");
        }
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("datasets")).unwrap();
        let rows: String = (0..60).map(|i| format!("{}.5,{},{}\n", i, 2 * i, 3 * i)).collect();
        for table in ["yacht", "wine"] {
            std::fs::write(folder.path().join(format!("datasets/{table}.csv")), format!("a,b,label\n{rows}")).unwrap();
        }
        folder
    }

    fn bench() -> Bench {
        let provenance = ["0".to_owned(), "c".to_owned(), "m".to_owned()];
        Bench { seeds: vec![0, 1], scale: Scale::Paper, max_seconds: None, threads: 1, provenance }
    }

    fn named(names: &[&str]) -> Vec<String> {
        names.iter().map(|n| (*n).to_owned()).collect()
    }

    #[test]
    fn a_bench_that_was_stopped_goes_on_where_it_was() {
        let (folder, bench) = (folder(), bench());
        let main = study("main").unwrap();
        let settings = main.settings(Some(&named(&["mean", "mice", "missforest"])), None).unwrap();
        let tables = chosen_tables(main, None, &["yacht", "wine"]).unwrap();
        let tasks = tasks(main, &tables, &settings, &bench);
        assert_eq!(tasks.len(), 8, "two seeds for missforest, which draws; one for the others");
        let rows = folder.path().join("rows.csv");
        let cancel = Cancel::default();
        let stopped = Arc::new(Counted { stop_after: Some((3, cancel.clone())), ..Counted::default() });
        let watch: Arc<dyn Watch> = stopped.clone();
        let mut store = Store::open(&rows).unwrap();
        assert!(run(folder.path(), &tasks, &bench, &mut store, &NoProbe, &cancel, &watch).is_err());
        assert_eq!(store.rows().len(), 3);
        drop(store);
        let counted = Arc::new(Counted::default());
        let watch: Arc<dyn Watch> = counted.clone();
        let mut store = Store::open(&rows).unwrap();
        run(folder.path(), &tasks, &bench, &mut store, &NoProbe, &Cancel::default(), &watch).unwrap();
        assert_eq!((store.rows().len(), counted.begun.load(Ordering::SeqCst)), (8, 5));
        // The columns are linear in each other, so a regression fills them well, and the label follows from them.
        let mice = store.rows().iter().find(|r| r.method == "mice").unwrap();
        let mean = store.rows().iter().find(|r| r.method == "mean").unwrap();
        assert!(mice.mae10.unwrap() < 0.3 * mean.mae10.unwrap() && mice.label_mae.unwrap() < mean.label_mae.unwrap());
    }

    #[test]
    fn times_are_those_of_fitting_and_of_filling() {
        let (folder, bench) = (folder(), bench());
        let times = study("times").unwrap();
        let settings = times.settings(Some(&named(&["mice"])), None).unwrap();
        let tasks = tasks(times, &named(&["yacht"]), &settings, &bench);
        let mut store = Store::open(&folder.path().join("rows.csv")).unwrap();
        let watch: Arc<dyn Watch> = Arc::new(Counted::default());
        run(folder.path(), &tasks, &bench, &mut store, &NoProbe, &Cancel::default(), &watch).unwrap();
        let row = &store.rows()[0];
        assert_eq!((row.way, row.mae10), (Way::Transform, None));
        assert!(row.fill_seconds.is_some_and(|s| s > 0.0) && row.seconds > 0.0);
    }
}
