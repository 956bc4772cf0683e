//! `fit`: learn from a table, for new rows later.

use crate::args::FitArgs;
use crate::failure::{Failure, Outcome};
use crate::scores;
use crate::table_io::{self, Target};
use crate::terminal::{Verbosity, bytes, count};
use m3impute::{Cancel, Error, FilledScores, METHODS, MethodSpec, Settings};
use std::time::Instant;

pub fn fit(args: &FitArgs, verbosity: &Verbosity, cancel: &Cancel) -> Outcome {
    let input = table_io::input(args.input.as_ref())?;
    let (spec, mut settings) =
        table_io::method(&args.method.method, &args.method.tuning, args.learn.fill.empty_columns)?;
    if args.keep_donors {
        keep_donors(spec, &mut settings)?;
    }
    let method = (spec.build)(&settings)?;
    let inductive = method.as_inductive().ok_or(Error::NotInductive { method: spec.name })?;
    let mut target = Target::open(Some(&args.output))?;

    let document = table_io::read(&input, &args.learn.read, Some(&args.learn.fill.columns))?;
    table_io::say_findings(verbosity, document.findings());
    table_io::empty_columns(document.table(), args.learn.fill.empty_columns)?;

    let started = Instant::now();
    let bar = verbosity.bar();
    let mut run = table_io::run(&args.learn.run, &bar, cancel, verbosity)?;
    let fitted = inductive.fit(document.table(), &mut run)?;
    bar.clear();
    fitted.notes().iter().for_each(|note| verbosity.note(note));
    let (table, scores) = (document.table(), fitted.scores());
    if !scores.is_empty() {
        let specs = table.schema().columns().iter().enumerate().filter(|(_, spec)| spec.is_filled());
        let missing = specs.map(|(j, spec)| (spec.name.as_str(), table.missing_in(j)));
        scores::say(&FilledScores::of(&scores, missing), "missing", verbosity);
    }

    let mut file = fitted.to_file()?;
    file.header.reading =
        serde_json::to_value(document.reading()).map_err(|e| Failure::from(Error::Bug(e.to_string())))?;
    let mut model = Vec::new();
    file.write(&mut model)?;
    target.put(&model)?;
    let written = Target::commit(vec![target], cancel)?;
    verbosity.say(format!(
        "fitted {} with `{}` in {:.1} s; wrote {} ({})",
        count(document.table().rows(), "row"),
        spec.name,
        started.elapsed().as_secs_f64(),
        written.first().map_or_else(|| "standard output".to_owned(), |p| p.display().to_string()),
        bytes(model.len() as u64)
    ));
    Ok(())
}

/// Lets the model keep rows of the table, which is a parameter of the methods that can.
fn keep_donors(spec: &'static MethodSpec, settings: &mut Settings) -> Outcome {
    const NAME: &str = "keep_donors";
    let preset = settings.preset.as_deref().unwrap_or(spec.presets[0].0);
    let can = |spec: &MethodSpec, preset: &str| (spec.preset_values)(preset).is_some_and(|v| v.get(NAME).is_some());
    if !can(spec, preset) && spec.preset(settings).is_ok() {
        let able: Vec<&MethodSpec> = METHODS.iter().copied().filter(|m| can(m, m.presets[0].0)).collect();
        let able: Vec<String> = able.iter().map(|m| format!("`{}`", m.name)).collect();
        let which = if able.iter().any(|m| *m == format!("`{}`", spec.name)) {
            format!("preset `{preset}` of ")
        } else {
            String::new()
        };
        let message = format!(
            "`--keep-donors` needs forests, by whose leaves rows are near, which {which}`{}` does not have",
            spec.name
        );
        return Err(Failure::usage(message, format!("methods that do: {}", able.join(", "))));
    }
    settings.params.push((NAME.to_owned(), "true".to_owned()));
    Ok(())
}
