//! `evaluate`: hide known cells, fill them with several methods, compare.

use crate::args::{EmptyColumns, EvaluateArgs, ScaleChoice};
use crate::failure::{Failure, Outcome};
use crate::grid::{Cell, Grid, Look};
use crate::memory::MemoryProbe;
use crate::reports;
use crate::table_io::{self, Target};
use crate::terminal::{Bar, Verbosity, bytes, count, print};
use m3impute::missing::HideIn;
use m3impute::{Cancel, METHODS, Progress, Table};
use m3impute_eval::{Candidate, HideBy, Plan, Recommendation, Row, ScaleBy, Spread, Summary, Watch};
use m3impute_io::Input;
use m3impute_report::{EvaluateFacts, Evaluated, Event};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Instant;

pub fn evaluate(args: &EvaluateArgs, verbosity: &Verbosity, cancel: &Cancel) -> Outcome {
    let (methods, left_out) = candidates(args, verbosity)?;
    let mut asides = Vec::from_iter(left_out);
    let input = match &args.truth {
        Some(name) => Input::parse(name),
        None => table_io::input(args.input.as_ref())?,
    };
    let report = reports::open(args.report.as_deref())?;
    let document = table_io::read(&input, &args.read, Some(&args.fill))?;
    table_io::say_findings(verbosity, document.findings());
    let (table, hide, aside) = hide_by(args, document.table().clone())?;
    aside.iter().for_each(|aside| verbosity.note(aside));
    asides.extend(aside);
    let plan = Plan {
        methods,
        hide,
        seed: args.run.seed,
        threads: args.run.threads,
        max_seconds: args.run.max_seconds.map(|s| s.as_secs_f64()),
        scale: match args.scale {
            ScaleChoice::Observed => ScaleBy::Observed,
            ScaleChoice::Paper => ScaleBy::Paper,
        },
    };
    table_io::say_fewer_threads(args.run.threads, verbosity);
    let started = Instant::now();
    let bar = verbosity.bar();
    let watch: Arc<dyn Watch> = Arc::new(OnBar { bar: bar.clone(), task: Mutex::default() });
    let rows = m3impute_eval::evaluate(&table, &plan, &MemoryProbe, cancel, &watch)?;
    bar.clear();
    let mut hidden_notes: Vec<&String> = rows.iter().flat_map(|r| &r.hidden_notes).collect();
    hidden_notes.dedup(); // every method has them
    hidden_notes.iter().for_each(|note| verbosity.note(note));
    let summary = m3impute_eval::summarise(&rows);
    if let Some(mut report) = report {
        let how = format!("{} on the same hidden cells, seed {}", count(plan.methods.len(), "method"), args.run.seed);
        let mut work = reports::work(&input, how, settings_of(args, &plan), document.findings(), started);
        work.events.extend(asides.into_iter().map(|what| Event { place: "comparison".to_owned(), what }));
        let evaluated = Evaluated { truth: &table, rows: &rows, summary: &summary, work };
        report.put(EvaluateFacts::gather(evaluated).page().as_bytes())?;
        table_io::say_written(&Target::commit(vec![report], cancel)?, verbosity);
    }
    cancel.check()?;
    let recommended = m3impute_eval::recommend(&rows, &summary);
    let advice = m3impute_report::advice(&recommended, &summary, &rows);
    if args.json {
        let Recommendation { method, comparisons } = recommended;
        return print(format!(
            "{:#}\n",
            json!({
                "input": input.name(), "rows": rows, "summary": summary,
                "recommended": method, "advice": advice, "comparisons": comparisons,
            })
        ));
    }
    let table = summary_table(&summary, recommended.method.as_deref(), verbosity);
    print(comparison(&input.name(), &plan, &rows, &summary, &table) + &advice.join("\n") + "\n")
}

/// The methods to compare, set as they are asked for, and a note about those that are left out.
fn candidates(args: &EvaluateArgs, verbosity: &Verbosity) -> Result<(Vec<Candidate>, Option<String>), Failure> {
    let (names, left_out): (Vec<&str>, _) = if args.methods.is_empty() {
        let slow: Vec<String> = METHODS.iter().filter(|m| m.slow).map(|m| format!("`{}`", m.name)).collect();
        let left_out = format!("left out because they are slow: {}; name them with `--methods`", slow.join(", "));
        (
            METHODS.iter().filter(|spec| !spec.slow).map(|spec| spec.name).collect(),
            (!slow.is_empty()).then_some(left_out),
        )
    } else {
        (args.methods.iter().map(String::as_str).collect(), None)
    };
    left_out.iter().for_each(|aside: &String| verbosity.note(aside));
    if names.len() > 1 && !args.tuning.param.is_empty() {
        return Err(Failure::usage("`--param` is for one method", "name it with `--methods NAME`"));
    }
    let candidate = |name: &str| -> Result<Candidate, Failure> {
        let (spec, settings) = table_io::method(name, &args.tuning, EmptyColumns::Keep)?;
        (spec.build)(&settings)?; // a wrong request fails before the work
        Ok(Candidate { spec, settings, label: name.to_owned() })
    };
    Ok((names.into_iter().map(candidate).collect::<Result<_, _>>()?, left_out))
}

/// What a terminal shows of a comparison.
fn comparison(input: &str, plan: &Plan, rows: &[Row], summary: &[Summary], table: &str) -> String {
    let cells = rows.first().map_or(0, |r| r.cells);
    let rate = rows.iter().map(|r| r.rate).sum::<f64>() / rows.len().max(1) as f64;
    let what = match (&plan.hide, rows.first().map_or("", |r| r.mechanism.as_str())) {
        (HideBy::Given(_), _) => "given cells".to_owned(),
        (_, "own") => format!("in the table's own patterns, {}", count(plan.repeats(), "repeat")),
        (_, mechanism) => format!("{mechanism}, {}", count(plan.repeats(), "repeat")),
    };
    let mut out = format!("{input}: {} hidden ({:.1} %), {what}\n\n", count(cells, "known cell"), 100.0 * rate);
    out.push_str(table);
    out.push_str("\nMAE and RMSE are of numbers, each column scaled to 0..1 by its range; accuracy is of levels.\n");
    out.push_str("In the order of the mean of the ranks in MAE and accuracy.\n");
    for row in summary {
        if let Some(error) = &row.error {
            out.push_str(&format!("{} failed: {error}\n", row.label));
        }
    }
    out.push('\n');
    out
}

/// What a report says of the settings.
fn settings_of(args: &EvaluateArgs, plan: &Plan) -> Vec<(&'static str, String)> {
    let labels: Vec<&str> = plan.methods.iter().map(|m| m.label.as_str()).collect();
    let mut settings = vec![("Methods", labels.join(", "))];
    match &plan.hide {
        HideBy::Mechanism { mechanism, within, rate, repeats } => settings.extend([
            ("Cells hidden", format!("{mechanism}, {} % asked{}", 100.0 * rate, words_of(*within))),
            ("Repeats", repeats.to_string()),
        ]),
        HideBy::Given(_) => settings.push(("Cells hidden", "as given by `--observed`".to_owned())),
    }
    let scale = match plan.scale {
        ScaleBy::Observed => "their observed cells",
        ScaleBy::Paper => "the complete column, as in the paper: methods know the range of the hidden cells",
    };
    settings.push(("Columns scaled by", scale.to_owned()));
    if let Some(preset) = &args.tuning.preset {
        settings.push(("Preset", preset.clone()));
    }
    let parameters: Vec<String> = args.tuning.param.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if !parameters.is_empty() {
        settings.push(("Parameters", parameters.join(", ")));
    }
    settings.extend(reports::run_settings(&args.run, args.run.threads));
    settings
}

fn words_of(within: Option<HideIn>) -> &'static str {
    match within {
        None => "",
        Some(HideIn::All) => ", in complete columns too",
        Some(HideIn::Incomplete) => ", in incomplete columns only",
    }
}

/// The table to score on, and the hidden cells: drawn by a mechanism, or given. And a note about that.
fn hide_by(args: &EvaluateArgs, table: Table) -> Result<(Table, HideBy, Option<String>), Failure> {
    let Some(path) = &args.observed else {
        let repeats = args.repeats as usize;
        let EvaluateArgs { mechanism, columns: within, rate, .. } = *args;
        return Ok((table, HideBy::Mechanism { mechanism, within, rate, repeats }, None));
    };
    let shown = m3impute_io::read_observed(path)?;
    let spare = table.schema().columns().get(shown.cols());
    let aside = spare.map(|c| format!("column `{}` is set aside: {} has one column fewer", c.name, path.display()));
    let (truth, shown) = m3impute_eval::given::align(table, &shown)?;
    Ok((truth, HideBy::Given(shown), aside))
}

fn summary_table(summary: &[Summary], recommended: Option<&str>, verbosity: &Verbosity) -> String {
    let mut grid = Grid::new(["method", "preset", "MAE", "RMSE", "accuracy", "seconds", "memory"]);
    let figure = |spread: &Option<Spread>| match spread {
        Some(Spread { mean, deviation: Some(deviation) }) => format!("{mean:.4} ± {deviation:.4}"),
        Some(Spread { mean, deviation: None }) => format!("{mean:.4}"),
        None => "-".to_owned(),
    };
    for row in summary {
        let look = match &row.error {
            Some(_) => Look::Bad,
            None if recommended == Some(&row.label) => Look::Good,
            None => Look::Plain,
        };
        grid.row([
            Cell::new(row.method.clone(), look),
            Cell::new(row.preset.clone(), Look::Dim),
            Cell::new(figure(&row.mae), look),
            Cell::new(figure(&row.rmse), look),
            Cell::new(figure(&row.accuracy), look),
            row.seconds.as_ref().map_or_else(|| "-".to_owned(), |s| format!("{:.2}", s.mean)).into(),
            row.peak_bytes.map_or_else(|| "-".to_owned(), bytes).into(),
        ]);
    }
    grid.text(verbosity)
}

/// Shows a comparison on a bar: which method is at work, and how far it is.
struct OnBar {
    bar: Bar,
    /// What began last, in words.
    task: Mutex<String>,
}

impl Watch for OnBar {
    fn begins(&self, label: &str, repeat: usize, done: usize, total: usize) {
        let note = format!("{label}, repeat {repeat}");
        if let Ok(mut task) = self.task.lock() {
            *task = format!("{note}, {} of {total}", done + 1);
        }
        self.bar.show(&Progress { stage: "evaluate", done: done as u64, total: total as u64, note });
    }

    fn progress(&self, progress: &Progress) {
        let task = self.task.lock().map(|task| task.clone()).unwrap_or_default();
        let note = if progress.note.is_empty() { task } else { format!("{}; {task}", progress.note) };
        self.bar.show(&Progress { note, ..progress.clone() });
    }
}
