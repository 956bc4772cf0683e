//! Runs a plan: the same hidden cells for every method in a repeat, a row of results for each.

use crate::plan::{Candidate, HideBy, Plan, ScaleBy, usual_columns};
use m3impute_core::missing::{hide_in, without_hidden};
use m3impute_core::{Bounds, Cancel, Error, Imputation, Observed, Progress, Result, Run, Score, Table, score};
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How one method imputed one set of hidden cells.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The candidate's label.
    pub label: String,
    /// The key of its method.
    pub method: String,
    /// Its preset.
    pub preset: String,
    /// Which repeat, counted from 1.
    pub repeat: usize,
    /// The seed of the repeat: of its hidden cells and of the method.
    pub seed: u64,
    /// How many hidden cells are scored.
    pub cells: usize,
    /// How they were hidden: the name of a mechanism, or `given`.
    pub mechanism: String,
    /// The share of the eligible cells that is hidden.
    pub rate: f64,
    /// The mean absolute error of numbers, each column scaled by its complete range.
    pub mae: Option<f64>,
    /// The root mean squared error of numbers, scaled alike.
    pub rmse: Option<f64>,
    /// The share of hidden levels that are right.
    pub accuracy: Option<f64>,
    /// The wall-clock seconds that filling took.
    pub seconds: f64,
    /// The peak memory while filling, where it is measured.
    pub peak_bytes: Option<u64>,
    /// How many cells were filled in another way than requested.
    pub fallbacks: usize,
    /// The score of each column with scored cells.
    pub columns: Vec<EvaluatedColumn>,
    /// Notes about the hidden cells, the same for every method: what was not hidden or is not scored as requested.
    pub hidden_notes: Vec<String>,
    /// Notes of the method, a sentence each.
    pub notes: Vec<String>,
    /// Why there is no score, where the method failed.
    pub error: Option<String>,
}

/// The score of one column on its hidden cells.
#[derive(Clone, Debug, Serialize)]
pub struct EvaluatedColumn {
    /// The column.
    pub column: String,
    /// Its score.
    #[serde(flatten)]
    pub score: Score,
}

/// Measures memory while a method runs.
pub trait Probe {
    /// Starts a new measurement.
    fn start(&self);
    /// The peak memory since then, beyond what was in use at the start.
    fn peak_bytes(&self) -> Option<u64>;
}

/// Measures nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoProbe;

impl Probe for NoProbe {
    fn start(&self) {}
    fn peak_bytes(&self) -> Option<u64> {
        None
    }
}

/// An observer of an evaluation.
pub trait Watch: Send + Sync {
    /// A method begins to fill the hidden cells of a repeat, counted from 1; `done` of `total` such tasks are finished.
    fn begins(&self, _label: &str, _repeat: usize, _done: usize, _total: usize) {}
    /// The method made progress.
    fn progress(&self, _progress: &Progress) {}
    /// The method has filled the table.
    fn filled(&self, _table: &Table) {}
    /// The method has finished.
    fn ends(&self, _row: &Row) {}
}

impl Watch for () {}

/// No observer.
pub fn no_observer() -> Arc<dyn Watch> {
    Arc::new(())
}

/// Hides cells of `truth`, lets every method fill them, and scores the imputed values.
///
/// Within a repeat every method gets the same hidden cells. A method that fails gives a row with its error, and the
/// others go on. Hidden cells in columns that are not to be filled, or in which nothing is shown, cannot be scored and
/// are left out for every method alike.
///
/// # Errors
/// When the plan does not fit the table, cells cannot be hidden, or the run is cancelled.
pub fn evaluate(
    truth: &Table,
    plan: &Plan,
    probe: &dyn Probe,
    cancel: &Cancel,
    watch: &Arc<dyn Watch>,
) -> Result<Vec<Row>> {
    plan.check(truth)?;
    let pool = Run::new(plan.seed, plan.threads)?.pool().clone();
    let scaled = match plan.scale {
        ScaleBy::Observed => truth.clone(),
        ScaleBy::Paper => scaled_by_truth(truth)?,
    };
    let total = plan.repeats() * plan.methods.len();
    let mut rows = Vec::with_capacity(total);
    for repeat in 1..=plan.repeats() {
        let seed = plan.seed.wrapping_add(repeat as u64 - 1);
        let task = Task::new(truth, &scaled, plan, seed)?;
        for candidate in &plan.methods {
            watch.begins(&candidate.label, repeat, rows.len(), total);
            let mut run = Run::on_pool(seed, pool.clone()).cancelled_by(cancel.clone()).observed_by({
                let watch = watch.clone();
                move |progress: &Progress| watch.progress(progress)
            });
            if let Some(seconds) = plan.max_seconds {
                run = run.within(Duration::from_secs_f64(seconds));
            }
            let row = task.row(candidate, repeat, run, probe, watch.as_ref())?;
            watch.ends(&row);
            rows.push(row);
        }
    }
    Ok(rows)
}

/// One set of hidden cells: the table that methods see, and the cells that are scored.
struct Task<'a> {
    truth: &'a Table,
    seed: u64,
    /// The table without the hidden cells.
    seen: Table,
    /// The cells that are shown or cannot be scored.
    unscored: Observed,
    rate: f64,
    mechanism: String,
    notes: Vec<String>,
}

impl<'a> Task<'a> {
    fn new(truth: &'a Table, scaled: &Table, plan: &Plan, seed: u64) -> Result<Task<'a>> {
        let (shown, rate, mechanism, mut notes) = match &plan.hide {
            HideBy::Mechanism { mechanism, within, rate, .. } => {
                let within = within.unwrap_or_else(|| usual_columns(*mechanism, truth));
                let hidden = hide_in(truth, *mechanism, within, *rate, &Run::new(seed, 1)?)?;
                let rate = hidden.rate();
                (hidden.shown, rate, hidden.mechanism.to_string(), hidden.notes)
            }
            HideBy::Given(shown) => (shown.clone(), hidden_share(truth, shown), "given".to_owned(), Vec::new()),
        };
        let seen = without_hidden(scaled, &shown);
        let mut unscored = shown;
        for (j, spec) in truth.schema().columns().iter().enumerate() {
            let hidden = (0..truth.rows()).filter(|&i| truth.observed().get(i, j) && !unscored.get(i, j)).count();
            let empty = seen.missing_in(j) == seen.rows();
            if hidden == 0 || (spec.is_filled() && !empty) {
                continue;
            }
            let why = if empty { "nothing of it is shown" } else { "it is not to be filled" };
            notes.push(format!("the {hidden} hidden cells of column `{}` are not scored: {why}", spec.name));
            (0..truth.rows()).for_each(|i| unscored.set(i, j, true));
        }
        Ok(Task { truth, seed, seen, unscored, rate, mechanism, notes })
    }

    fn row(&self, candidate: &Candidate, repeat: usize, run: Run, probe: &dyn Probe, watch: &dyn Watch) -> Result<Row> {
        let cells = |i| (0..self.truth.cols()).filter(move |&j| self.is_scored(i, j)).count();
        let mut row = Row {
            label: candidate.label.clone(),
            method: candidate.spec.name.to_owned(),
            preset: candidate.preset().to_owned(),
            repeat,
            seed: self.seed,
            cells: (0..self.truth.rows()).map(cells).sum(),
            mechanism: self.mechanism.clone(),
            rate: self.rate,
            mae: None,
            rmse: None,
            accuracy: None,
            seconds: 0.0,
            peak_bytes: None,
            fallbacks: 0,
            columns: Vec::new(),
            hidden_notes: self.notes.clone(),
            notes: Vec::new(),
            error: None,
        };
        match self.fill(candidate, run, probe, &mut row) {
            Ok(imputation) => {
                watch.filled(&imputation.table);
                self.score(&imputation, &mut row);
            }
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => row.error = Some(error.to_string()),
        }
        Ok(row)
    }

    fn fill(&self, candidate: &Candidate, mut run: Run, probe: &dyn Probe, row: &mut Row) -> Result<Imputation> {
        let imputer = (candidate.spec.build)(&candidate.settings)?;
        run.check()?;
        probe.start();
        let started = Instant::now();
        let outcome = imputer.impute(&self.seen, &mut run);
        row.seconds = started.elapsed().as_secs_f64();
        row.peak_bytes = probe.peak_bytes();
        outcome
    }

    fn score(&self, imputation: &Imputation, row: &mut Row) {
        let filled = &imputation.table;
        let left: usize = (0..self.truth.cols())
            .map(|j| (0..self.truth.rows()).filter(|&i| self.is_scored(i, j) && !filled.observed().get(i, j)).count())
            .sum();
        if left > 0 {
            row.error = Some(format!("it left {left} of {} hidden cells missing", row.cells));
            return;
        }
        let (all, columns) = score(self.truth, filled, &self.unscored);
        (row.mae, row.rmse, row.accuracy) = (all.mae, all.rmse, all.accuracy);
        let specs = self.truth.schema().columns();
        row.columns = specs
            .iter()
            .zip(columns)
            .filter(|(_, score)| score.numbers + score.levels > 0)
            .map(|(spec, score)| EvaluatedColumn { column: spec.name.clone(), score })
            .collect();
        let is_filled = |column: &str| specs.iter().any(|s| s.name == column && s.is_filled());
        row.fallbacks = imputation.fallbacks.iter().filter(|f| is_filled(&f.column)).map(|f| f.cells).sum();
        row.notes.clone_from(&imputation.notes);
    }

    fn is_scored(&self, i: usize, j: usize) -> bool {
        self.truth.observed().get(i, j) && !self.unscored.get(i, j)
    }
}

/// The share of the observed cells of columns to fill that is hidden.
fn hidden_share(truth: &Table, shown: &Observed) -> f64 {
    let (mut all, mut hidden) = (0_usize, 0_usize);
    for (j, _) in truth.schema().columns().iter().enumerate().filter(|(_, spec)| spec.is_filled()) {
        for i in (0..truth.rows()).filter(|&i| truth.observed().get(i, j)) {
            all += 1;
            hidden += usize::from(!shown.get(i, j));
        }
    }
    if all == 0 { 0.0 } else { hidden as f64 / all as f64 }
}

/// The table with the range of the complete values as the range of each column of numbers.
fn scaled_by_truth(truth: &Table) -> Result<Table> {
    let mut schema = truth.schema().clone();
    for j in (0..truth.cols()).filter(|&j| truth.schema().columns()[j].kind.is_number()) {
        let values = (0..truth.rows()).map(|i| truth.number(i, j)).filter(|v| !v.is_nan());
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if low <= high {
            schema.column_mut(j).range = Some(Bounds { low, high });
        }
    }
    truth.clone().with_schema(schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::missing::Mechanism;
    use m3impute_core::{Column, ColumnSpec, Imputer, Kind, MethodSpec, Role, Schema, Settings};
    use std::sync::Mutex;

    /// A method of these tests: what it does to a table is its function.
    #[derive(Debug)]
    struct Fake(&'static MethodSpec, fn(&Table, &Run) -> Result<Table>);

    impl Imputer for Fake {
        fn spec(&self) -> &'static MethodSpec {
            self.0
        }

        fn impute(&self, table: &Table, run: &mut Run) -> Result<Imputation> {
            run.check()?;
            Ok(Imputation {
                table: (self.1)(table, run)?,
                fallbacks: Vec::new(),
                notes: Vec::new(),
                scores: Vec::new(),
            })
        }
    }

    macro_rules! fake {
        ($name:literal, $fill:expr) => {{
            static SPEC: MethodSpec = MethodSpec {
                name: $name,
                summary: "",
                avoid: "",
                inductive: false,
                distributions: false,
                randomised: false,
                slow: false,
                presets: &[("default", "")],
                params: &[],
                preset_values: |_| None,
                build: |settings: &Settings| {
                    SPEC.preset(settings)?;
                    Ok(Box::new(Fake(&SPEC, $fill)))
                },
                load: |_| Err(Error::Bug("no model".to_owned())),
            };
            Candidate::new(&SPEC)
        }};
    }

    fn fill_all(table: &Table, value: f64) -> Table {
        let mut out = table.clone();
        for (j, spec) in table.schema().columns().iter().enumerate().filter(|(_, spec)| spec.is_filled()) {
            let code = if spec.kind.has_levels() { 0.0 } else { value };
            (0..table.rows()).filter(|&i| !table.observed().get(i, j)).for_each(|i| out.fill(i, j, code));
        }
        out
    }

    /// x = 0, 1, ..., 39 and its parity as levels; y is constant.
    fn truth() -> Table {
        let schema = Schema::new(vec![
            ColumnSpec::new("x", Kind::Continuous),
            ColumnSpec::with_levels("parity", Kind::Categorical, ["even", "odd"]),
            ColumnSpec::new("y", Kind::Continuous),
        ])
        .unwrap();
        let columns = vec![
            Column::from_numbers((0..40).map(f64::from).collect()),
            Column::from_codes((0..40).map(|i| i % 2).collect()),
            Column::from_numbers(vec![5.0; 40]),
        ];
        Table::new(schema, columns).unwrap()
    }

    fn plan(methods: Vec<Candidate>, repeats: usize) -> Plan {
        let hide = HideBy::Mechanism { mechanism: Mechanism::Mcar, within: None, rate: 0.3, repeats };
        Plan { methods, hide, threads: 1, ..Plan::default() }
    }

    fn run(truth: &Table, plan: &Plan) -> Result<Vec<Row>> {
        evaluate(truth, plan, &NoProbe, &Cancel::default(), &no_observer())
    }

    #[test]
    fn every_method_gets_the_same_missing_cells_and_never_the_hidden_values() {
        static SEEN: Mutex<Vec<Table>> = Mutex::new(Vec::new());
        fn spy(table: &Table, _: &Run) -> Result<Table> {
            SEEN.lock().unwrap().push(table.clone());
            Ok(fill_all(table, 0.0))
        }
        let rows = run(&truth(), &plan(vec![fake!("spy", spy), fake!("other-spy", spy)], 2)).unwrap();
        let seen = SEEN.lock().unwrap();
        assert_eq!((rows.len(), seen.len()), (4, 4));
        assert_eq!(seen[0].observed(), seen[1].observed());
        assert_ne!(seen[0].observed(), seen[2].observed(), "another repeat hides other cells");
        let complete = truth();
        for (table, row) in seen.iter().zip(&rows) {
            let mut hidden = 0;
            for j in 0..3 {
                for i in 0..40 {
                    let value = table.number(i, j);
                    assert!(if table.observed().get(i, j) { value == complete.number(i, j) } else { value.is_nan() });
                    hidden += usize::from(!table.observed().get(i, j));
                }
            }
            assert_eq!((hidden, row.rate), (row.cells, hidden as f64 / 120.0));
            assert!(table.schema().columns().iter().all(|c| c.range.is_none()));
        }
    }

    #[test]
    fn own_patterns_are_scored_in_incomplete_columns_or_in_those_that_are_named() {
        let mut incomplete = truth();
        (0..40).step_by(4).for_each(|i| incomplete.hide(i, 0));
        let mut plan = plan(vec![fake!("zero-own", |t, _| Ok(fill_all(t, 0.0)))], 1);
        plan.hide = Plan::default().hide;
        let scored = |table: &Table| {
            let row = run(table, &plan).unwrap().remove(0);
            (row.mechanism, row.columns.into_iter().map(|c| c.column).collect::<Vec<_>>())
        };
        assert_eq!(scored(&incomplete), ("own".to_owned(), vec!["x".to_owned()]));
        let mut schema = incomplete.schema().clone();
        schema.column_mut(2).role = Role::Predict;
        let named = incomplete.with_schema(schema).unwrap();
        assert_eq!(scored(&named), ("own".to_owned(), vec!["x".to_owned(), "parity".to_owned()]));
        let row = run(&truth(), &plan).unwrap().remove(0);
        assert_eq!((row.mechanism.as_str(), row.columns.len(), row.hidden_notes.len()), ("mcar", 3, 1));
    }

    #[test]
    fn given_hidden_cells_are_scored_as_given() {
        let mut shown = Observed::all(40, 3);
        [(0, 0), (39, 0), (0, 1), (1, 1)].iter().for_each(|&(i, j)| shown.set(i, j, false));
        let mut plan = plan(vec![fake!("zero", |t, _| Ok(fill_all(t, 0.0)))], 1);
        plan.hide = HideBy::Given(shown);
        let row = &run(&truth(), &plan).unwrap()[0];
        // x: errors 0 and 39 of a range of 39; parity: even is right once of twice.
        assert_eq!((row.cells, row.mae, row.accuracy), (4, Some(0.5), Some(0.5)));
        assert_eq!(row.rmse, Some(0.5_f64.sqrt()));
        assert_eq!(row.columns.iter().map(|c| c.column.as_str()).collect::<Vec<_>>(), ["x", "parity"]);
        let json = serde_json::to_value(row).unwrap();
        assert_eq!((&json["method"], &json["columns"][0]["column"]), (&"zero".into(), &"x".into()));
    }

    #[test]
    fn a_failing_method_is_reported_and_the_others_go_on() {
        let methods = vec![
            fake!("fails", |_, _| Err(Error::EmptyColumn { column: "x".to_owned() })),
            fake!("leaves", |t, _| Ok(t.clone())),
            Candidate {
                settings: Settings { preset: Some("none".to_owned()), ..Settings::default() },
                ..fake!("wrong-preset", |t, _| Ok(fill_all(t, 0.0)))
            },
            fake!("works", |t, _| Ok(fill_all(t, 0.0))),
        ];
        let rows = run(&truth(), &plan(methods, 1)).unwrap();
        assert_eq!(rows[0].error.as_deref(), Some("column `x` has no observed value"));
        assert_eq!(rows[1].error, Some(format!("it left {0} of {0} hidden cells missing", rows[1].cells)));
        assert!(rows[2].error.as_deref().unwrap().contains("no preset `none`"));
        assert!(rows[3].error.is_none() && rows[3].mae.is_some());
    }

    #[test]
    fn cells_that_cannot_be_scored_are_left_out_with_a_note() {
        let mut schema = truth().schema().clone();
        schema.column_mut(2).role = Role::Ignore;
        let truth = truth().with_schema(schema).unwrap();
        let mut shown = Observed::all(40, 3);
        (0..40).for_each(|i| shown.set(i, 0, false));
        shown.set(3, 1, false);
        shown.set(3, 2, false);
        let mut plan = plan(vec![fake!("zero-again", |t, _| Ok(fill_all(t, 0.0)))], 1);
        plan.hide = HideBy::Given(shown);
        let row = &run(&truth, &plan).unwrap()[0];
        assert_eq!((row.cells, row.mae, row.accuracy), (1, None, Some(0.0)));
        assert_eq!(row.hidden_notes[0], "the 40 hidden cells of column `x` are not scored: nothing of it is shown");
        assert_eq!(row.hidden_notes[1], "the 1 hidden cells of column `y` are not scored: it is not to be filled");
    }

    #[test]
    fn the_papers_scale_is_the_range_of_the_truth() {
        let mut plan = plan(
            vec![fake!("range", |t, _| {
                let range = t.schema().columns()[0].range.map(|r| (r.low, r.high));
                assert_eq!(range, Some((0.0, 39.0)));
                assert!(t.schema().columns()[1].range.is_none());
                Ok(fill_all(t, 0.0))
            })],
            1,
        );
        plan.scale = ScaleBy::Paper;
        assert!(run(&truth(), &plan).unwrap()[0].error.is_none());
    }

    #[test]
    fn cancel_ends_the_evaluation() {
        let cancel = Cancel::default();
        cancel.cancel();
        let plan = plan(vec![fake!("idle", |t, _| Ok(fill_all(t, 0.0)))], 1);
        let outcome = evaluate(&truth(), &plan, &NoProbe, &cancel, &no_observer());
        assert!(matches!(outcome, Err(Error::Cancelled)));
    }

    #[test]
    fn the_observer_sees_every_task_and_the_probe_every_start() {
        #[derive(Default)]
        struct Recorder(Mutex<Vec<String>>);
        impl Watch for Recorder {
            fn begins(&self, label: &str, repeat: usize, done: usize, total: usize) {
                self.0.lock().unwrap().push(format!("{label} {repeat} {done}/{total}"));
            }
            fn progress(&self, progress: &Progress) {
                self.0.lock().unwrap().push(progress.stage.to_owned());
            }
            fn ends(&self, row: &Row) {
                self.0.lock().unwrap().push(format!("{} ends", row.label));
            }
        }
        struct Seven;
        impl Probe for Seven {
            fn start(&self) {}
            fn peak_bytes(&self) -> Option<u64> {
                Some(7)
            }
        }
        let recorder = Arc::new(Recorder::default());
        let watch: Arc<dyn Watch> = recorder.clone();
        let plan = plan(vec![fake!("one", |t, _| Ok(fill_all(t, 0.0)))], 2);
        let rows = evaluate(&truth(), &plan, &Seven, &Cancel::default(), &watch).unwrap();
        assert_eq!(*recorder.0.lock().unwrap(), ["one 1 0/2", "one ends", "one 2 1/2", "one ends"]);
        assert!(rows.iter().all(|r| r.peak_bytes == Some(7)));
    }

    #[test]
    fn a_plan_that_does_not_fit_is_refused() {
        let zero = || fake!("twice", |t, _| Ok(fill_all(t, 0.0)));
        let message = |plan: Plan| run(&truth(), &plan).unwrap_err().to_string();
        assert_eq!(message(plan(vec![], 1)), "methods: expected at least one, got `none`");
        assert_eq!(message(plan(vec![zero(), zero()], 1)), "methods: expected each of them once, got `twice`");
        assert_eq!(message(plan(vec![zero()], 0)), "repeats: expected at least 1, got `0`");
        let given = Plan { hide: HideBy::Given(Observed::all(39, 3)), ..plan(vec![zero()], 1) };
        assert_eq!(message(given), "given hidden cells: expected 40 rows of 3 cells, got `39 rows of 3 cells`");
    }
}
