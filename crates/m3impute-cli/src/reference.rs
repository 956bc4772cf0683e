//! The reference pages in `docs/reference`: methods as the registry has them, the command line as `args` has it.
//! `UPDATE_DOCS=1 cargo test -p m3impute-cli reference` writes them anew; without it the tests fail where a page differs.

use crate::args::Cli;
use clap::{Arg, ArgAction, Command, CommandFactory};
use m3impute::{DEFAULT_METHOD, METHODS, MethodSpec};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const COMMAND: &str = "UPDATE_DOCS=1 cargo test -p m3impute-cli reference";

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Compares a page with what it should be, or writes it.
fn check(name: &str, page: &str) {
    let path = docs(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        std::fs::write(&path, page).expect("the page is written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = written.lines().zip(page.lines()).find(|(is, should)| is != should);
    assert!(written == page, "docs/{name} is out of date (first difference: {differs:?}); `{COMMAND}` writes it anew");
}

/// A row of a table; what would end a cell is escaped.
fn row(page: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

fn heads(page: &mut String, names: &[&str]) {
    row(page, names);
    row(page, &vec!["---"; names.len()]);
}

fn start(title: &str, intro: &str) -> String {
    format!("<!-- Generated: `{COMMAND}` writes this page anew. -->\n\n# {title}\n\n{intro}\n")
}

fn methods_page() -> String {
    let mut page = start(
        "Methods, presets and parameters",
        "`m3impute methods NAME` prints the same. A preset is chosen by `--preset NAME`, a parameter set by\n\
         `--param NAME=VALUE`; in Python by the arguments `preset` and `params`. The first preset of a method is its\n\
         default. What the methods do, and when to use which: [methods](../methods/README.md).\n",
    );
    let yes = |flag: bool| if flag { "yes" } else { "no" };
    heads(&mut page, &["method", "what it does", "new rows", "distributions", "depends on the seed", "slow"]);
    for spec in METHODS {
        let default = if spec.name == DEFAULT_METHOD { " (the default)" } else { "" };
        let name = format!("[`{0}`](#{0}){default}", spec.name);
        let flags = [spec.inductive, spec.distributions, spec.randomised, spec.slow].map(yes);
        row(&mut page, &[&[name.as_str(), spec.summary][..], &flags[..]].concat());
    }
    page.push_str(
        "\n*New rows*: can be fitted once and used on rows that come later (`fit`, `transform`). *Distributions*: intervals,\n\
         probabilities and draws (`--interval`, `--probabilities`, `--draws`). *Slow*: trains for minutes or more;\n\
         `evaluate` runs it only when it is named.\n",
    );
    METHODS.iter().for_each(|spec| method(spec, &mut page));
    page
}

fn method(spec: &MethodSpec, page: &mut String) {
    let _ = writeln!(page, "\n## {}\n", spec.name);
    let _ = writeln!(page, "{}. Not for: {}.\n", capital(spec.summary), spec.avoid);
    heads(page, &["preset", "what it stands for"]);
    spec.presets.iter().for_each(|(name, doc)| row(page, &[&format!("`{name}`"), doc]));
    if spec.params.is_empty() {
        return page.push_str("\nIt has no parameters.\n");
    }
    page.push('\n');
    let presets: Vec<String> = spec.presets.iter().map(|(name, _)| format!("`{name}`")).collect();
    let presets: Vec<&str> = presets.iter().map(String::as_str).collect();
    heads(page, &[&["parameter", "what it does", "values"][..], &presets[..]].concat());
    for param in spec.params {
        let values: Vec<String> = spec.presets.iter().map(|(preset, _)| value(spec, preset, param.name)).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let (name, expects) = (format!("`{}`", param.name), param.expects.to_string());
        row(page, &[&[name.as_str(), param.doc, expects.as_str()][..], &values[..]].concat());
    }
}

/// What a preset gives a parameter; nothing where it has no such parameter.
fn value(spec: &MethodSpec, preset: &str, param: &str) -> String {
    match (spec.preset_values)(preset).and_then(|values| values.get(param).cloned()) {
        None => String::new(),
        Some(value) if value.is_null() => "auto".to_owned(),
        Some(value) => value.to_string().replace('"', ""),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn command_line_page() -> String {
    let mut page = start(
        "The command line",
        "`m3impute --help` and `m3impute VERB --help` print the same; `m3impute man` prints it as a manual page.",
    );
    let mut command = Cli::command();
    command.build();
    verb(&mut command, &mut page);
    page
}

fn verb(command: &mut Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let _ = writeln!(page, "\n## {name}\n");
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(page, "{}\n", sentence(&about));
    let _ = writeln!(page, "```text\n{}\n```", command.render_usage().to_string().trim_start_matches("Usage: "));
    let aliases: Vec<String> = command.get_visible_aliases().map(|alias| format!("`{alias}`")).collect();
    if !aliases.is_empty() {
        let _ = writeln!(page, "\nAlso called {}.", aliases.join(", "));
    }
    let verbs: Vec<(String, String)> = command
        .get_subcommands()
        .filter(|verb| verb.get_name() != "help")
        .map(|verb| (verb.get_bin_name().unwrap_or_default().to_owned(), verb.get_about().map(ToString::to_string)))
        .map(|(name, about)| (name, about.unwrap_or_default()))
        .collect();
    if !verbs.is_empty() {
        page.push('\n');
        heads(page, &["command", "what it does"]);
        verbs.iter().for_each(|(verb, about)| row(page, &[&format!("[`{verb}`](#{})", verb.replace(' ', "-")), about]));
    }
    options(command, page);
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    if let Some(after) = after {
        let _ = writeln!(page, "\n```text\n{}\n```", after.to_string().trim_end());
    }
    command.get_subcommands_mut().filter(|verb| verb.get_name() != "help").for_each(|inner| verb(inner, page));
}

/// Arguments and options, a table for each heading, in the order of the help. What every verb has stands once, with the
/// program itself.
fn options(command: &Command, page: &mut String) {
    let own = |arg: &&Arg| {
        let every = arg.is_global_set() || matches!(arg.get_id().as_str(), "help" | "version");
        !arg.is_hide_set() && (!every || command.get_bin_name().is_none_or(|name| !name.contains(' ')))
    };
    let heading = |arg: &Arg| match arg.get_help_heading() {
        Some(heading) => heading.to_owned(),
        None if arg.is_positional() => "Arguments".to_owned(),
        None => "Options".to_owned(),
    };
    let mut headings: Vec<String> = Vec::new();
    for arg in command.get_arguments().filter(own) {
        let heading = heading(arg);
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    headings.sort_by_key(|heading| match heading.as_str() {
        "Arguments" => 0,
        "Options" => 1,
        _ => 2,
    });
    for under in headings {
        page.push('\n');
        heads(page, &[&under, "what it does"]);
        for arg in command.get_arguments().filter(own).filter(|arg| heading(arg) == under) {
            row(page, &[&spelling(arg), &meaning(arg)]);
        }
    }
}

/// How an argument is written.
fn spelling(arg: &Arg) -> String {
    let values: Vec<String> =
        arg.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>")).collect();
    let takes = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let value = if takes && !arg.is_positional() { format!(" {}", values.join(" ")) } else { String::new() };
    let names = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => vec![format!("-{short}"), format!("--{long}{value}")],
        (Some(short), None) => vec![format!("-{short}{value}")],
        (None, Some(long)) => vec![format!("--{long}{value}")],
        (None, None) => vec![values.join(" ")],
    };
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// What an argument does, what it may be, and what it is where nothing is said.
fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = sentence(&help);
    let takes = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| takes && !value.is_hide_set())
        .map(|value| match value.get_help() {
            Some(help) => format!("`{}` ({help})", value.get_name()),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if !values.is_empty() {
        let _ = write!(text, " One of {}.", values.join(", "));
    }
    let defaults: Vec<String> = arg.get_default_values().iter().map(|v| v.to_string_lossy().into_owned()).collect();
    if takes && !defaults.is_empty() {
        let _ = write!(text, " Default: `{}`.", defaults.join(","));
    }
    if let Some(variable) = arg.get_env() {
        let _ = write!(text, " Environment: `{}`.", variable.to_string_lossy());
    }
    text
}

/// A help text as prose: paragraphs become sentences.
fn sentence(help: &str) -> String {
    let paragraphs: Vec<String> = help.split("\n\n").map(|p| p.trim().to_owned()).filter(|p| !p.is_empty()).collect();
    let ended = |p: &String| if p.ends_with(['.', '?', '!', ':', ']']) { p.clone() } else { format!("{p}.") };
    paragraphs.iter().map(ended).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_page_of_methods_is_that_of_the_registry() {
    check("reference/methods.md", &methods_page());
}

#[test]
fn the_page_of_the_command_line_is_that_of_its_arguments() {
    check("reference/command-line.md", &command_line_page());
}

#[test]
fn every_method_has_a_page_of_its_own_and_only_the_default_is_called_so() {
    let list = std::fs::read_to_string(docs("methods/README.md")).expect("the list of methods");
    for spec in METHODS {
        let page = if ["mean", "median", "mode"].contains(&spec.name) { "simple" } else { spec.name };
        let line = list.lines().find(|line| line.starts_with('|') && line.contains(&format!("({page}.md)")));
        let line = line.unwrap_or_else(|| panic!("docs/methods/README.md does not list `{}`", spec.name));
        assert_eq!(line.contains("(default)"), spec.name == DEFAULT_METHOD, "{line}");
        let own = std::fs::read_to_string(docs(&format!("methods/{page}.md"))).unwrap_or_default();
        let link = format!("../reference/methods.md#{}", spec.name);
        assert!(own.contains(&link), "docs/methods/{page}.md has no link to {link}");
    }
}
