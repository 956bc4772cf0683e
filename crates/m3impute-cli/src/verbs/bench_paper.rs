//! `bench paper`: the tables and figures of the paper.

use super::bench::{COMMIT, VERSION};
use crate::args::{BenchPaperArgs, ScaleChoice, TableFormat};
use crate::failure::{Failure, Outcome};
use crate::grid::{Cell, Grid};
use crate::memory::MemoryProbe;
use crate::table_io::{Target, say_fewer_threads, say_written};
use crate::terminal::{Bar, Verbosity, print, thousands};
use m3impute::{Cancel, Progress};
use m3impute_gnn::speed::Machine;
use m3impute_paper::{Bench, Question, Row, STUDIES, Scale, Store, Study, View, Watch, figures};
use m3impute_report::words::duration;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

pub fn paper(args: &BenchPaperArgs, verbosity: &Verbosity, cancel: &Cancel) -> Outcome {
    let (Some(name), Some(data), false) = (&args.study, &args.data, args.list) else { return print(list()) };
    let study = m3impute_paper::study(name)?;
    let settings = study.settings(args.methods.as_deref(), args.epochs)?;
    let (there, absent) = m3impute_paper::tables_in(data, &study.tables());
    let tables = m3impute_paper::chosen_tables(study, args.datasets.as_deref(), &there)?;
    if tables.is_empty() {
        let reason = format!("no table of this study is in {}", data.join("datasets").display());
        return Err(Failure::usage(reason, "`--data` names the folder that holds `datasets` and `masks`"));
    }
    if args.datasets.is_none() && !absent.is_empty() {
        verbosity.note(format!("tables of the paper that are not there: {}", absent.join(", ")));
    }
    if !study.is_measured() {
        return facts(study, data, &tables, args, verbosity, cancel);
    }
    say_fewer_threads(args.threads, verbosity);
    let machine = Machine::this();
    let bench = Bench {
        seeds: args.seeds.clone(),
        scale: match args.scale {
            ScaleChoice::Paper => Scale::Paper,
            ScaleChoice::Observed => Scale::Observed,
        },
        max_seconds: args.max_seconds.map(|s| s.as_secs_f64()),
        threads: args.threads,
        provenance: [
            VERSION.to_owned(),
            COMMIT.unwrap_or("unknown").to_owned(),
            format!("{}, {} cores", machine.processor, machine.cores),
        ],
    };
    let mut store = Store::open(&args.rows)?;
    if !args.draw_only {
        let tasks = m3impute_paper::tasks(study, &tables, &settings, &bench);
        let bar = verbosity.bar();
        let watch: Arc<dyn Watch> = Arc::new(OnBar { bar: bar.clone(), verbosity: *verbosity, task: Mutex::default() });
        let outcome = m3impute_paper::run(data, &tasks, &bench, &mut store, &MemoryProbe, cancel, &watch);
        bar.clear();
        if outcome.is_err() {
            let done = tasks.iter().filter(|task| store.has(&task.key(&bench))).count();
            verbosity.note(format!(
                "{} of {} rows are in {}: the same command goes on from there",
                thousands(done),
                thousands(tasks.len()),
                args.rows.display()
            ));
        }
        outcome?;
    }
    let drawn = study.drawn(args.methods.as_deref(), args.epochs)?;
    let view = m3impute_paper::view(study, store.rows(), &tables, &drawn, bench.scale, bench.max_seconds);
    if let Some(folder) = &args.figures {
        draw(study, &view, folder, verbosity, cancel)?;
    }
    print(match args.format {
        TableFormat::Text => view.to_text(),
        TableFormat::Markdown => view.to_markdown(),
        TableFormat::Latex => view.to_latex(),
    })
}

fn list() -> String {
    let mut out = String::new();
    for study in STUDIES {
        let _ = writeln!(out, "{:<14}{:<18}{}", study.name, study.place, study.title);
    }
    out
}

/// The studies that fill nothing: what the tables are.
fn facts(
    study: &'static Study,
    data: &Path,
    tables: &[String],
    args: &BenchPaperArgs,
    verbosity: &Verbosity,
    cancel: &Cancel,
) -> Outcome {
    let mut lines: Vec<Vec<String>> = Vec::new();
    if study.question == Question::Overview {
        lines.push(
            ["table", "rows", "columns", "of whole numbers", "rows (paper)", "continuous (paper)", "discrete (paper)"]
                .map(str::to_owned)
                .into(),
        );
        for table in tables {
            let found = m3impute_paper::overview(data, table)?;
            let printed =
                |line| m3impute_paper::published(study, line, table).map_or_else(|| "-".to_owned(), |v| v.to_string());
            let ours = [found.rows, found.columns, found.whole].map(|v| v.to_string());
            let paper = ["rows", "continuous", "discrete"].map(printed);
            lines.push([found.table].into_iter().chain(ours).chain(paper).collect());
        }
    } else {
        let mut all = Vec::new();
        lines.push(["table", "pairs", "mean |r|", "|r| over 0.5", "largest |r|"].map(str::to_owned).into());
        for table in tables {
            let found = m3impute_paper::correlations(data, table)?;
            let strengths = found.strengths();
            let pairs = strengths.len().max(1) as f64;
            let strong = strengths.iter().filter(|r| **r > 0.5).count() as f64;
            lines.push(vec![
                table.clone(),
                strengths.len().to_string(),
                format!("{:.2}", strengths.iter().sum::<f64>() / pairs),
                format!("{:.0} %", 100.0 * strong / pairs),
                format!("{:.2}", strengths.first().copied().unwrap_or_default()),
            ]);
            all.push(found);
        }
        if let Some(folder) = &args.figures {
            write(folder, vec![("correlations".to_owned(), figures::correlations(&all))], verbosity, cancel)?;
        }
    }
    print(grid(study, &lines, args.format, verbosity))
}

fn grid(study: &Study, lines: &[Vec<String>], format: TableFormat, verbosity: &Verbosity) -> String {
    let mut out = String::new();
    match format {
        TableFormat::Markdown => {
            let _ = writeln!(out, "### {}\n", study.title);
            for (at, line) in lines.iter().enumerate() {
                let _ = writeln!(out, "| {} |", line.join(" | "));
                if at == 0 {
                    let _ = writeln!(out, "| --- |{}", " ---: |".repeat(line.len() - 1));
                }
            }
        }
        TableFormat::Latex => {
            let columns = lines.first().map_or(0, Vec::len);
            let _ = writeln!(out, "\\begin{{tabular}}{{l{}}}", "r".repeat(columns.saturating_sub(1)));
            for line in lines {
                let _ = writeln!(out, "{} \\\\", line.join(" & ").replace('%', "\\%").replace("|r|", "$|r|$"));
            }
            out.push_str("\\end{tabular}\n");
        }
        TableFormat::Text => {
            let _ = writeln!(out, "{}\n", study.title);
            let mut table = Grid::new(lines.first().into_iter().flatten().map(String::as_str)).right(1..7);
            for line in lines.iter().skip(1) {
                table.row(line.iter().map(|cell| cell.as_str().into()).collect::<Vec<Cell>>());
            }
            out += &table.text(verbosity);
        }
    }
    out
}

fn draw(study: &Study, view: &View, folder: &Path, verbosity: &Verbosity, cancel: &Cancel) -> Outcome {
    let mut drawn = Vec::new();
    if study.masks.len() > 1 {
        drawn.push((study.name.to_owned(), figures::curves(study, view)));
    }
    drawn.push((format!("{}-ranks", study.name), figures::ranks(view)));
    if study.question == Question::Errors && study.masks.len() == 1 {
        drawn.push((format!("{}-times", study.name), figures::errors_against_time(view)));
    }
    write(folder, drawn, verbosity, cancel)
}

/// Writes figures, each under its name, into a folder.
fn write(folder: &Path, drawn: Vec<(String, String)>, verbosity: &Verbosity, cancel: &Cancel) -> Outcome {
    std::fs::create_dir_all(folder).map_err(|e| Failure::io(&folder.display().to_string(), &e))?;
    let mut targets = Vec::new();
    for (name, figure) in drawn {
        let mut target = Target::open(Some(&folder.join(format!("{name}.svg"))))?;
        target.put(figure.as_bytes())?;
        targets.push(target);
    }
    for path in Target::commit(targets, cancel)? {
        say_written(&[path], verbosity);
    }
    Ok(())
}

/// Shows a bench on a bar, and says each row when it is there.
struct OnBar {
    bar: Bar,
    verbosity: Verbosity,
    /// What is measured now, in words.
    task: Mutex<String>,
}

impl Watch for OnBar {
    fn begins(&self, progress: &m3impute_paper::Progress<'_>) {
        let task = progress.task;
        let mut words = format!("{} {} {}", task.table, task.mask, task.setting.name);
        let _ = write!(words, ", {} of {}", progress.done + 1, progress.total);
        if let Some(left) = progress.seconds_left {
            let _ = write!(words, ", {} left", duration(left));
        }
        if let Some((best, error)) = &progress.best {
            let _ = write!(words, ", best so far {best} {error:.2}");
        }
        let (done, total) = (progress.done as u64, progress.total as u64);
        self.bar.show(&Progress { stage: "bench", done, total, note: words.clone() });
        if let Ok(mut now) = self.task.lock() {
            *now = words;
        }
    }

    fn moves(&self, progress: &Progress) {
        let task = self.task.lock().map(|task| task.clone()).unwrap_or_default();
        self.bar.show(&Progress { note: task, ..progress.clone() });
    }

    fn ends(&self, row: &Row) {
        self.bar.clear();
        let error = row.mae10.map_or_else(String::new, |e| format!(" {e:.3}"));
        let failed = if row.error.is_empty() { String::new() } else { format!(" failed: {}", row.error) };
        let settings = if row.settings.is_empty() { String::new() } else { format!(" {}", row.settings) };
        self.verbosity.say(format!(
            "{} {} {}:{}{settings}, seed {}:{error}{failed} in {}",
            row.table,
            row.mask,
            row.method,
            row.preset,
            row.seed,
            duration(row.seconds + row.fill_seconds.unwrap_or_default())
        ));
    }
}
