//! `evaluate`: hide known cells, fill them with several methods, compare.

use crate::args::{EmptyColumns, EvaluateArgs, ScaleChoice};
use crate::failure::{Failure, Outcome};
use crate::memory::MemoryProbe;
use crate::table_io;
use crate::terminal::{Bar, Manner, bytes, count, print};
use m3impute::{Cancel, METHODS, MethodSpec, Progress, Table};
use m3impute_eval::{Candidate, HolesFrom, Plan, ScaleBy, Spread, Summary, Watch};
use m3impute_io::Input;
use serde_json::json;
use std::sync::{Arc, Mutex};

pub fn evaluate(args: &EvaluateArgs, manner: &Manner, cancel: &Cancel) -> Outcome {
    let specs: Vec<&'static MethodSpec> = if args.methods.is_empty() {
        METHODS.iter().copied().filter(|spec| !spec.slow).collect()
    } else {
        args.methods.iter().map(|name| m3impute::method(name)).collect::<Result<_, _>>()?
    };
    if args.methods.is_empty() {
        let slow: Vec<String> = METHODS.iter().filter(|m| m.slow).map(|m| format!("`{}`", m.name)).collect();
        if !slow.is_empty() {
            manner.note(format!("left out because they train for long: {}; `--methods` names them", slow.join(", ")));
        }
    }
    let settings = table_io::settings(&args.tuning, EmptyColumns::Keep);
    if specs.len() > 1 && !settings.params.is_empty() {
        return Err(Failure::usage("`--param` is for one method", "say `--methods NAME` with it"));
    }
    let methods: Vec<Candidate> =
        specs.into_iter().map(|spec| Candidate { settings: settings.clone(), ..Candidate::new(spec) }).collect();
    for candidate in &methods {
        (candidate.spec.build)(&candidate.settings)?; // a wrong request fails before the work
    }

    let input = match &args.truth {
        Some(name) => Input::parse(name),
        None => table_io::input(args.input.as_ref())?,
    };
    let document = m3impute_io::read(&input, &table_io::read_options(&args.read, None))?;
    table_io::say_findings(manner, document.findings());
    let (table, holes) = holes(args, document.table().clone(), manner)?;
    let plan = Plan {
        methods,
        holes,
        seed: args.run.seed,
        threads: args.run.threads,
        max_seconds: args.run.max_seconds.map(|s| s.as_secs_f64()),
        scale: match args.scale {
            ScaleChoice::Observed => ScaleBy::Observed,
            ScaleChoice::Paper => ScaleBy::Paper,
        },
    };
    let bar = manner.bar();
    let watch: Arc<dyn Watch> = Arc::new(OnBar { bar: bar.clone(), task: Mutex::default() });
    let rows = m3impute_eval::evaluate(&table, &plan, &MemoryProbe, cancel, &watch)?;
    bar.clear();
    let summary = m3impute_eval::summarise(&rows);
    if args.json {
        return print(format!("{:#}\n", json!({"input": input.name(), "rows": rows, "summary": summary})));
    }
    let cells = rows.first().map_or(0, |r| r.cells);
    let rate = rows.iter().map(|r| r.rate).sum::<f64>() / rows.len().max(1) as f64;
    let what = match &plan.holes {
        HolesFrom::Mechanism { mechanism, repeats, .. } => format!("{mechanism}, {}", count(*repeats, "repeat")),
        HolesFrom::Given(_) => "given holes".to_owned(),
    };
    let mut out =
        format!("{}: {} hidden ({:.1} %), {what}\n\n", input.name(), count(cells, "known cell"), 100.0 * rate);
    out.push_str(&summary_table(&summary, manner));
    out.push_str("\nMAE and RMSE are of numbers, each column scaled to 0..1 by its range; accuracy is of levels.\n");
    out.push_str("Best first, by the mean of the ranks in MAE and accuracy.\n");
    for row in &summary {
        if let Some(error) = &row.error {
            out.push_str(&format!("{} failed: {error}\n", row.method));
        }
    }
    print(out)
}

/// The table to score on, and the holes: made by a mechanism, or given.
fn holes(args: &EvaluateArgs, table: Table, manner: &Manner) -> Result<(Table, HolesFrom), Failure> {
    let Some(path) = &args.observed else {
        return Ok((
            table,
            HolesFrom::Mechanism { mechanism: args.mechanism, rate: args.rate, repeats: args.repeats as usize },
        ));
    };
    let shown = m3impute_io::read_observed(path)?;
    if let Some(column) = table.schema().columns().get(shown.cols()) {
        manner.note(format!("column `{}` is set aside: {} has one column fewer", column.name, path.display()));
    }
    let (truth, shown) = m3impute_eval::given::align(table, &shown)?;
    Ok((truth, HolesFrom::Given(shown)))
}

fn summary_table(summary: &[Summary], manner: &Manner) -> String {
    let mut rows = comfy_table::Table::new();
    rows.load_style(comfy_table::presets::NOTHING);
    rows.set_header(["method", "preset", "MAE", "RMSE", "accuracy", "seconds", "memory"]);
    let figure = |spread: &Option<Spread>| match spread {
        Some(Spread { mean, deviation: Some(deviation) }) => format!("{mean:.4} ± {deviation:.4}"),
        Some(Spread { mean, deviation: None }) => format!("{mean:.4}"),
        None => "-".to_owned(),
    };
    for (at, row) in summary.iter().enumerate() {
        let name = if at == 0 { manner.style(1, &row.method) } else { row.method.clone() };
        rows.add_row([
            name,
            row.preset.clone(),
            figure(&row.mae),
            figure(&row.rmse),
            figure(&row.accuracy),
            row.seconds.as_ref().map_or_else(|| "-".to_owned(), |s| format!("{:.2}", s.mean)),
            row.peak_bytes.map_or_else(|| "-".to_owned(), bytes),
        ]);
    }
    rows.lines().map(|line| format!("{}\n", line.trim_end())).collect()
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
