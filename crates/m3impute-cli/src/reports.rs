//! Reports as files, and how they describe the run.

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::table_io::{self, Target};
use m3impute::{MethodSpec, Settings};
use m3impute_io::{Finding, Input};
use m3impute_report::{Event, Suspect, Work};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Opens the file of a report, where one is asked for.
pub fn open(path: Option<&Path>) -> Result<Option<Target>, Failure> {
    if path == Some(Path::new("-")) {
        return Err(Failure::usage(
            "a report goes to a file, not to standard output",
            "name one with `--report report.html`",
        ));
    }
    path.map(|path| Target::open(Some(path))).transpose()
}

/// What both reports show of a run; `settings` are those of the verb.
pub fn work(input: &Input, how: String, settings: Vec<(&str, String)>, findings: &[Finding], started: Instant) -> Work {
    let event = |what| Event { place: "reading".to_owned(), what };
    Work {
        source: input.name(),
        how,
        settings: settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        command: command(std::env::args()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        when: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()),
        seconds: started.elapsed().as_secs_f64(),
        suspects: findings.iter().filter_map(suspect).collect(),
        events: table_io::notes(findings).into_iter().map(event).collect(),
    }
}

/// Values of a column that may stand for missing, with the flag to paste.
fn suspect(finding: &Finding) -> Option<Suspect> {
    let tokens: Vec<&str> = finding.sentinels.iter().map(|s| s.token.as_str()).collect();
    (!tokens.is_empty()).then(|| Suspect {
        column: finding.column.clone(),
        values: finding.sentinels.iter().map(|s| (s.token.clone(), s.count, s.why.clone())).collect(),
        setting: format!("--na-col {}", quoted(format!("{}={}", finding.column, tokens.join(",")))),
    })
}

/// The settings of a run, with the threads that it has; 0 where each method takes as many as there are.
pub fn run_settings(args: &RunArgs, threads: usize) -> Vec<(&'static str, String)> {
    let threads = if threads == 0 { "as many as the machine has".to_owned() } else { threads.to_string() };
    let mut settings = vec![("Seed", args.seed.to_string()), ("Threads", threads)];
    if let Some(limit) = args.max_seconds {
        settings.push(("Time limit", format!("{} s", limit.as_secs_f64())));
    }
    settings
}

/// The settings of a method: its preset, and every parameter with its value.
pub fn method_settings(spec: &MethodSpec, asked: &Settings) -> Vec<(&'static str, String)> {
    let preset = preset(spec, asked);
    let values = (spec.preset_values)(preset);
    let of_preset = values.as_ref().and_then(|v| v.as_object()).into_iter().flatten().map(|(name, value)| {
        let own = asked.params.iter().rfind(|(named, _)| named == name).map(|(_, text)| text.clone());
        let given = if value.is_null() { "auto".to_owned() } else { value.to_string().replace('"', "") };
        format!("{name} = {}", own.unwrap_or(given))
    });
    let parameters = of_preset.collect::<Vec<_>>().join(", ");
    let mut settings = vec![("Method", format!("{}: {}", spec.name, spec.summary)), ("Preset", preset.to_owned())];
    if !parameters.is_empty() {
        settings.push(("Parameters", parameters));
    }
    settings
}

/// The preset that is asked for, or the method's own.
pub fn preset<'a>(spec: &MethodSpec, asked: &'a Settings) -> &'a str {
    asked.preset.as_deref().unwrap_or(spec.presets[0].0)
}

/// An argument as a shell takes it.
fn quoted(argument: String) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./,=:%+@".contains(c);
    match argument.chars().all(plain) && !argument.is_empty() {
        true => argument,
        false => format!("'{}'", argument.replace('\'', "'\\''")),
    }
}

/// A command as one would type it.
fn command(arguments: impl Iterator<Item = String>) -> String {
    std::iter::once("m3impute".to_owned()).chain(arguments.skip(1).map(quoted)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_typed_again() {
        let typed = ["target/m3impute", "impute", "my file.csv", "--kind", "zip=text", "it's", ""];
        let command = command(typed.into_iter().map(str::to_owned));
        assert_eq!(command, "m3impute impute 'my file.csv' --kind zip=text 'it'\\''s' ''");
    }
}
