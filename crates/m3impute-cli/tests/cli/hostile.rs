//! Files that mean harm, and what they may not do.

use crate::program::Folder;
use std::path::Path;

fn hostile(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
    std::fs::read(folder.join(name)).expect("the file is there")
}

#[test]
fn a_small_file_that_unfolds_to_gigabytes_ends_with_exit_code_5() {
    for name in ["declares-petabytes.arrow", "unfolds-to-gigabytes.parquet"] {
        let folder = Folder::with(name, hostile(name));
        for verb in ["describe", "impute"] {
            folder.run(&[verb, name, "--max-memory", "200MB"]).fails(5, &["memory", "--max-memory"]);
        }
    }
}

#[test]
fn reading_takes_no_more_than_is_allowed() {
    let folder = Folder::with("in.csv", format!("a,b\n{}", "1,\n".repeat(100_000)));
    folder.run(&["describe", "in.csv", "--max-memory", "1MB"]).fails(5, &["out of memory", "--max-memory"]);
    folder.run(&["describe", "in.csv", "--max-memory", "100MB"]).done();
    folder.run(&["describe", "in.csv", "--max-memory", "much"]).fails(2, &["expected a size such as 500MB"]);
}

#[test]
fn a_training_that_diverges_is_exit_code_4() {
    let folder = Folder::with("in.csv", include_str!("../../../../examples/penguins.csv"));
    let diverging = ["impute", "in.csv", "--method", "miracle", "--param", "learning_rate=1"];
    folder.run(&diverging).fails(4, &["not finite", "learning_rate"]);
}

#[test]
fn a_mean_that_overflows_is_a_median() {
    let folder = Folder::with("in.csv", "a\n1e308\n1.7e308\n1.5e308\n\"\"\n");
    for method in ["mean", "median"] {
        let filled = folder.run(&["impute", "in.csv", "--method", method]).done().out;
        assert!(filled.ends_with("1.5e308\n1.5e308\n"), "{method}: {filled}");
    }
}

#[test]
fn the_smallest_numbers_are_filled() {
    let folder = Folder::with("in.csv", "a,b\n1e-320,1\n5e-324,2\n,3\n3e-310,\n2e-320,5\n1e-322,6\n");
    for method in ["mean", "knn", "mice", "svd", "softimpute", "missforest"] {
        folder.run(&["fit", "in.csv", "--method", method, "-o", "model.m3"]).done();
        folder.run(&["transform", "in.csv", "--model", "model.m3", "-o", "out.csv"]).done();
    }
}

#[test]
fn control_characters_of_names_and_cells_are_never_shown() {
    let folder = Folder::with("in.csv", "a\x1b[31m,b\u{202e}\n1,\x1b]0;x\x07\n,NA\n3,\x1b]0;x\x07\n4,y\n5,\u{9b}2J\n");
    let shown = |text: &str| assert!(!text.contains(['\x1b', '\x07', '\u{9b}', '\u{202e}']), "{text:?}");
    for arguments in [
        &["describe", "in.csv"][..],
        &["impute", "in.csv", "--method", "mean", "--kind", "b\u{202e}=categorical", "-o", "out.csv"],
        &["fit", "in.csv", "--method", "mean", "-o", "model.m3"],
        &["info", "model.m3"],
        &["explain", "model.m3", "in.csv", "--row", "2"],
        &["explain", "model.m3", "in.csv", "--row", "1", "--column", "b\u{202e}"],
        &["impute", "in.csv", "--kind", "b\u{202e}=continuous"],
        &["describe", "no\x1b[31m.csv"],
        &["describe", "in.csv", "--no\x1b[31m"],
        &["impute", "in.csv", "--max-seconds", "\x1b[31m"],
    ] {
        let ran = folder.run(arguments);
        shown(&ran.out);
        shown(&ran.err);
    }
    let ran = folder.run(&["describe", "in.csv"]).done();
    assert!(ran.out.contains("a\\u{1b}[31m"), "{}", ran.out);
}

#[test]
fn a_model_whose_scale_divides_by_nothing_is_refused() {
    let folder = Folder::with("in.csv", "a,b\n1,5\n2,4\n,3\n4,\n5,1\n7,2\n");
    folder.run(&["fit", "in.csv", "--method", "missforest", "-o", "model.m3"]).done();
    let model = folder.read("model.m3");
    let text = String::from_utf8_lossy(&model);
    let at = text.find(r#"\"scale\":"#).map(|at| at + r#"\"scale\":"#.len());
    let at = text[at.unwrap()..].find(r#"\"scale\":"#).map_or(at.unwrap(), |next| at.unwrap() + next + 10);
    let end = at + model[at..].iter().position(|b| !b.is_ascii_digit() && *b != b'.').unwrap();
    let mut damaged = model[..at].to_vec();
    damaged.extend_from_slice(b"1e-320");
    damaged.extend_from_slice(&model[end..]);
    let header = u64::from_le_bytes(model[..8].try_into().unwrap()) + 6 - (end - at) as u64;
    damaged[..8].copy_from_slice(&header.to_le_bytes());
    folder.write("damaged.m3", damaged);
    let transform = ["transform", "in.csv", "--model", "damaged.m3"];
    folder.run(&transform).fails(3, &["damaged.m3", "the feature of column `a`"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_table_of_100_000_columns_is_described_in_two_seconds_of_processor_time() {
    let names: Vec<String> = (0..100_000).map(|j| format!("c{j}")).collect();
    let row = |i: usize| (0..100_000).map(|j| ["NA", "1", "2.5", "", "-999", "?"][(i + j * j) % 6]).collect::<Vec<_>>();
    let rows: Vec<String> = (0..10).map(|i| row(i).join(",")).collect();
    let folder = Folder::with("in.csv", format!("{}\n{}\n", names.join(","), rows.join("\n")));
    // The limit is the system's: more than two seconds of processor time end the program with a signal.
    let program = env!("CARGO_BIN_EXE_m3impute");
    let command = format!("ulimit -t 2 && '{program}' describe in.csv > out.txt");
    let status = std::process::Command::new("sh").args(["-c", &command]).current_dir(folder.path("")).status().unwrap();
    assert!(status.success(), "{status}");
    assert!(folder.text("out.txt").contains("100,000 columns"));
}
