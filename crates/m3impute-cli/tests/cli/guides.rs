//! The commands of README and guides run as they stand there, in a folder with small tables of the names they use.

use crate::program::{Folder, Ran, penguins};
use std::path::{Path, PathBuf};

/// The pages that have commands, each with a test of its own.
macro_rules! pages {
    ($($test:ident $page:literal)*) => {
        const PAGES: &[&str] = &[$($page),*];
        $(#[test]
        fn $test() {
            run_page($page);
        })*
    };
}

pages! {
    the_readme_runs "README.md"
    the_benchmark_guide_runs "docs/guides/benchmark.md"
    the_guide_to_multiple_imputation_runs "docs/guides/multiple-imputation.md"
    the_guide_to_new_rows_runs "docs/guides/new-rows.md"
    the_python_guide_is_installed_as_it_says "docs/guides/python.md"
    the_terminal_guide_runs "docs/guides/terminal.md"
    the_tables_of_the_paper_are_drawn_from_their_rows "docs/results/paper.md"
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_page_with_commands_or_rust_is_run() {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("docs")];
    let mut pages = vec![PathBuf::from("README.md")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            match path.extension() {
                Some(extension) if extension == "md" => pages.push(path),
                _ if root().join(&path).is_dir() => folders.push(path),
                _ => {}
            }
        }
    }
    for page in pages {
        let text = std::fs::read_to_string(root().join(&page)).unwrap();
        let name = page.to_str().unwrap().replace('\\', "/");
        if !commands(&text).is_empty() {
            found.push(name.clone());
        }
        let rust = text.lines().any(|line| line.starts_with("```rust"));
        assert!(
            !rust || name == "docs/guides/rust.md",
            "{name}: only docs/guides/rust.md is compiled (crates/m3impute)"
        );
    }
    found.sort_unstable();
    assert_eq!(found, PAGES, "`pages!` in this file lists the pages with commands");
}

/// The commands of a page, each with what it is said to print.
fn commands(text: &str) -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            inside = !inside && matches!(language, "console" | "sh" | "bash");
        } else if inside && let Some(command) = line.strip_prefix("$ ") {
            commands.push((command.to_owned(), Vec::new()));
        } else if inside && let Some((_, printed)) = commands.last_mut() {
            printed.push(line.to_owned());
        }
    }
    commands
}

fn run_page(page: &str) {
    let top = Folder::new();
    lay_out(&top);
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    for (command, printed) in commands(&text) {
        match command.as_str() {
            // This very test is part of the one, and `python/tests` run what the other installs.
            "./test" => assert!(root().join("test").is_file()),
            "pip install ." => assert!(root().join("pyproject.toml").is_file()),
            _ => {
                let command = command.replace("cargo run --release -- ", "m3impute ");
                assert!(command.starts_with("m3impute "), "{page}: no test runs `{command}`");
                run(&top, page, &command, &printed);
            }
        }
    }
}

/// Small tables under the names that the pages use: `work` is where commands run, `shared` lies beside it.
fn lay_out(top: &Folder) {
    for folder in ["work/examples", "work/docs/results", "shared/datasets", "shared/masks"] {
        std::fs::create_dir_all(top.path(folder)).unwrap();
    }
    let penguins = String::from_utf8(penguins()).unwrap();
    let some = |keep: &dyn Fn(usize, &str) -> bool| {
        let lines = penguins.lines().enumerate().filter(|(i, line)| *i == 0 || keep(*i, line));
        lines.map(|(_, line)| format!("{line}\n")).collect::<String>()
    };
    let small = some(&|i, line| i % 12 == 0 || line.contains("NA"));
    for name in ["examples/penguins.csv", "history.csv", "in.csv"] {
        top.write(&format!("work/{name}"), &small);
    }
    top.write("work/today.csv", some(&|_, line| line.contains("NA")));
    let sh = "m3impute impute in.csv --method mean -o in.parquet";
    shell(top, sh).done();
    for (folder, ending) in [("datasets", "csv"), ("masks", "mcar30.txt")] {
        for table in ["yacht", "iris"] {
            let text = std::fs::read_to_string(root().join(format!("tests/tables/{folder}/{table}.{ending}"))).unwrap();
            let header = usize::from(folder == "datasets");
            let lines = text.lines().enumerate().filter(|(i, _)| *i < header || (i - header) % 6 == 0);
            let small: String = lines.map(|(_, line)| format!("{line}\n")).collect();
            top.write(&format!("shared/{folder}/{table}.{ending}"), small);
        }
    }
    // Only named, where tables are drawn from rows.
    std::fs::copy(top.path("shared/datasets/yacht.csv"), top.path("shared/datasets/energy.csv")).unwrap();
    std::fs::copy(root().join("docs/results/paper.csv"), top.path("work/docs/results/paper.csv")).unwrap();
}

/// Runs a line of shell in the folder `work`, where `m3impute` is the program under test.
fn shell(top: &Folder, line: &str) -> Ran {
    let program = Path::new(env!("CARGO_BIN_EXE_m3impute"));
    let mut path = std::ffi::OsString::from(program.parent().unwrap());
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut command = std::process::Command::new("sh");
    command.args(["-c", line]).current_dir(top.path("work")).env("PATH", path).stdin(std::process::Stdio::null());
    Ran::of(command.output().expect("the shell runs"))
}

fn run(top: &Folder, page: &str, command: &str, printed: &[String]) {
    // What is selected from JSON is checked without the program that selects it: the keys must be there.
    let (command, filter) = match command.split_once(" | jq ") {
        Some((command, filter)) => (command.to_owned(), filter),
        // Pages of results were measured for days: their tables are drawn again from the rows in the repository.
        None if page.starts_with("docs/results/") && !command.contains("--draw-only") => {
            (format!("{command} --draw-only"), "")
        }
        None => (command.to_owned(), ""),
    };
    let ran = shell(top, &command);
    assert_eq!(ran.code, 0, "{page}: `{command}` failed: {}", ran.err);
    for key in filter.split('.').skip(1).map(|rest| rest.split(|c: char| !c.is_alphabetic()).next().unwrap()) {
        let quoted = format!("\"{key}\":");
        assert!(key.is_empty() || ran.out.contains(&quoted), "{page}: `{command}` prints no key {quoted}");
    }
    // Figures are of the whole table: what does not depend on them is compared, the first two words of a row.
    let rows = |text: &mut dyn Iterator<Item = &str>| {
        let mut rows: Vec<Vec<String>> = text
            .filter(|line| line.starts_with(' '))
            .map(|line| line.split_whitespace().take(2).map(str::to_owned).collect())
            .collect();
        rows.sort_unstable();
        rows
    };
    if !printed.is_empty() {
        let expected = rows(&mut printed.iter().map(String::as_str));
        assert_eq!(rows(&mut ran.out.lines()), expected, "{page}: `{command}` prints other rows");
    }
}
