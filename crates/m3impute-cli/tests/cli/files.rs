//! What happens to files: no output is an input, owners and modes are kept, and every message names the file.

use crate::program::{Folder, Ran, penguins};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// A user without rights, as every system has one.
const NOBODY: u32 = 65_534;

const TABLE: &str = "a,b\n1,2\n,4\n3,6\n4,\n5,10\n6,12\n";

/// A folder with a table, a model, a list of observed cells and the data of a bench.
fn folder() -> Folder {
    let folder = Folder::with("in.csv", TABLE);
    folder.run(&["fit", "in.csv", "-o", "model.m3", "--method", "median"]).done();
    folder.write("observed.txt", "11\n01\n11\n10\n11\n11\n");
    for name in ["data", "data/datasets", "data/masks"] {
        fs::create_dir(folder.path(name)).unwrap();
    }
    let rows: String = (0..40).map(|i| format!("{}.5,{},{}\n", i, 2 * i, 3 * i)).collect();
    folder.write("data/datasets/yacht.csv", format!("a,b,label\n{rows}"));
    folder
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[test]
fn no_output_may_be_an_input_the_model_or_another_output() {
    let cases: &[(&str, &str, &str)] = &[
        ("impute in.csv -o in.csv", "the output `in.csv` is the input", "use `--in-place` to overwrite it"),
        ("impute in.csv -o hard.csv", "the output `hard.csv` is the input", "use `--in-place`"),
        ("impute in.csv -o link.csv", "the output `link.csv` is the input", "use `--in-place`"),
        ("impute - -o in.csv < in.csv", "the output `in.csv` is the input", "name the input, and use `--in-place`"),
        ("impute in.csv >> in.csv", "the standard output is the input", "use `--in-place`"),
        ("impute in.csv -o in.csv --interval 0.9", "the output `in.csv` is the input", "give it a name of its own"),
        ("impute in.csv -o out.csv --report in.csv", "the report `in.csv` is the input", "give it a name"),
        ("impute in.csv --in-place --report in.csv", "the report `in.csv` is the input", "give it a name"),
        ("impute in.csv -o o.csv --report ./o.csv", "the report `./o.csv` is the output", "give it a name"),
        ("impute - -o out.csv --report in.csv < in.csv", "the report `in.csv` is the input", "give it a name"),
        ("impute x.1.csv -o x.csv --draws 2", "the output `x.1.csv` is the input", "give it a name"),
        ("fit in.csv -o in.csv", "the model `in.csv` is the input", "give it a name"),
        ("fit - -o in.csv < in.csv", "the model `in.csv` is the input", "give it a name"),
        ("transform in.csv --model model.m3 -o model.m3", "the output `model.m3` is the model", "give it a name"),
        ("transform in.csv --model model.m3 -o in.csv", "the output `in.csv` is the input", "give it a name"),
        ("transform in.csv --model model.m3 >> model.m3", "the standard output is the model", "give it a name"),
        ("transform x.2.csv --model model.m3 -o x.csv --draws 2", "the output `x.2.csv` is the input", "give it"),
        ("explain model.m3 in.csv --row 1 >> model.m3", "the standard output is the model", "give it a name"),
        ("explain model.m3 in.csv --row 1 >> in.csv", "the standard output is the input", "give it a name"),
        ("info model.m3 >> model.m3", "the standard output is the model", "give it a name"),
        ("ampute in.csv -o in.csv", "the output `in.csv` is the input", "give it a name"),
        ("ampute -o in.csv < in.csv", "the output `in.csv` is the input", "give it a name"),
        ("describe in.csv >> in.csv", "the standard output is the input", "give it a name"),
        ("evaluate in.csv --report in.csv", "the report `in.csv` is the input", "give it a name"),
        ("evaluate in.csv --report link.csv", "the report `link.csv` is the input", "give it a name"),
        (
            "evaluate --truth in.csv --observed observed.txt --report observed.txt",
            "the report `observed.txt` is the list of observed cells",
            "give it a name",
        ),
        (
            "bench paper main --data data --rows data/datasets/yacht.csv",
            "the file of rows `data/datasets/yacht.csv` is the data of the bench",
            "give it a name",
        ),
        (
            "bench paper main --data data --rows f/main-ranks.svg --figures f",
            "the figure `f/main-ranks.svg` is the file of rows",
            "give it a name",
        ),
    ];
    let folder = folder();
    fs::create_dir(folder.path("f")).unwrap();
    fs::hard_link(folder.path("in.csv"), folder.path("hard.csv")).unwrap();
    symlink("in.csv", folder.path("link.csv")).unwrap();
    ["x.1.csv", "x.2.csv"].iter().for_each(|name| folder.write(name, TABLE));
    let before = everything(&folder);
    for (line, message, hint) in cases {
        let words: Vec<&str> = line.split(' ').collect();
        let (mut arguments, mut command) = (Vec::new(), folder.command(&[]));
        command.stdout(Stdio::null());
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word {
                "<" => drop(command.stdin(fs::File::open(folder.path(words.next().unwrap())).unwrap())),
                ">>" => {
                    let file = fs::OpenOptions::new().append(true).open(folder.path(words.next().unwrap())).unwrap();
                    command.stdout(file);
                }
                word => arguments.push(word),
            }
        }
        let ran = Ran::of(command.args(arguments).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap());
        assert!(ran.code == 2 && ran.err.contains(message) && ran.err.contains(hint), "{line}: {ran:?}");
        assert_eq!(everything(&folder), before, "{line}");
    }
}

/// Every file of a folder with its bytes.
fn everything(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let files = folder.names().into_iter().filter(|name| folder.path(name).is_file());
    files.map(|name| (name.clone(), folder.read(&name))).collect()
}

#[test]
fn what_is_no_file_may_be_input_and_output_at_once() {
    let folder = folder();
    folder.run(&["impute", "in.csv", "-o", "/dev/null", "--report", "/dev/null", "--method", "mean"]).done();
    let ran = folder.run(&["describe", "/dev/null"]);
    ran.fails(3, &["is empty"]);
}

#[test]
fn a_file_of_rows_that_is_none_is_left_as_it_is() {
    let folder = folder();
    for content in ["no end of line", "a,b\n1,2\nhalf", "\u{0}\u{1}"] {
        folder.write("notes.txt", content);
        let arguments = ["bench", "paper", "main", "--data", "data", "--rows", "notes.txt", "--methods", "mean"];
        folder.run(&arguments).fails(5, &["notes.txt", "no file of rows"]);
        assert_eq!(folder.text("notes.txt"), content);
    }
}

#[test]
fn a_file_that_is_replaced_keeps_mode_links_and_owner() {
    let folder = folder();
    fs::create_dir(folder.path("elsewhere")).unwrap();
    symlink("elsewhere/real.csv", folder.path("out.csv")).unwrap();
    let impute = ["impute", "in.csv", "-o", "out.csv", "--method", "mean"];
    folder.run(&impute).done();
    let real = folder.path("elsewhere/real.csv");
    assert!(folder.path("out.csv").is_symlink() && real.is_file(), "a link to nothing makes the file it leads to");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o604)).unwrap();
    if is_root() {
        chown(&real, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let before = fs::metadata(&real).unwrap();
    folder.run(&impute).done();
    let after = fs::metadata(&real).unwrap();
    assert_eq!((after.uid(), after.gid(), after.mode()), (before.uid(), before.gid(), before.mode()));
    assert_ne!(after.ino(), before.ino(), "it was replaced, not written over");

    folder.run(&["impute", "elsewhere/real.csv", "--in-place", "--method", "mean"]).done();
    assert_eq!(fs::metadata(&real).unwrap().mode(), before.mode());
}

#[test]
#[cfg_attr(not(as_root), ignore = "only root can become another user")]
fn a_user_without_rights_replaces_no_file_of_another() {
    let folder = folder();
    folder.write("theirs.csv", "theirs");
    folder.write("open.csv", "open to all");
    for (name, mode) in [(".", 0o777), ("theirs.csv", 0o644), ("open.csv", 0o666), ("in.csv", 0o644)] {
        fs::set_permissions(folder.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let program = env!("CARGO_BIN_EXE_m3impute");
    let Ok(copy) = fs::copy(program, folder.path("program")) else { panic!("the program is copied") };
    assert!(copy > 0);
    let as_nobody = |arguments: &[&str]| {
        let mut command = Command::new(folder.path("program"));
        command.args(arguments).current_dir(folder.path(".")).uid(NOBODY).gid(NOBODY).stdin(Stdio::null());
        Ran::of(command.output().expect("the program runs as nobody"))
    };
    let impute = |to: &str| as_nobody(&["impute", "in.csv", "-o", to, "--method", "mean"]);
    impute("mine.csv").done();
    impute("theirs.csv").fails(5, &["cannot write `theirs.csv`: permission denied"]);
    let hint = "write to a new file, and copy it over this one";
    impute("open.csv").fails(5, &["cannot replace `open.csv`: it belongs to others (user 0, group 0)", hint]);
    as_nobody(&["impute", "in.csv", "--in-place", "--method", "mean"]).fails(5, &["`in.csv`: permission denied"]);

    fs::create_dir(folder.path("closed")).unwrap();
    fs::set_permissions(folder.path("closed"), fs::Permissions::from_mode(0o755)).unwrap();
    folder.write("closed/mine.csv", "mine");
    chown(folder.path("closed/mine.csv"), Some(NOBODY), Some(NOBODY)).unwrap();
    impute("closed/mine.csv").fails(5, &["no file can be made in its folder: permission denied", "folder of your own"]);
    let untouched = ["theirs.csv", "open.csv", "closed/mine.csv"].map(|name| folder.text(name));
    assert_eq!(untouched, ["theirs", "open to all", "mine"]);
    assert_eq!(folder.text("in.csv"), TABLE);
}

#[test]
fn a_full_device_is_named_with_what_was_written() {
    let folder = folder();
    let run = |arguments: &[&str]| folder.run(arguments);
    let full = "cannot write `/dev/full`: the disk is full; 0 bytes were written before";
    run(&["impute", "in.csv", "-o", "/dev/full", "--method", "mean"]).fails(5, &[full, "free some space"]);
    run(&["impute", "in.csv", "-o", "/dev/full", "--method", "mean", "--output-format", "parquet"]).fails(5, &[full]);
    run(&["fit", "in.csv", "-o", "/dev/full", "--method", "mean"]).fails(5, &[full]);
    run(&["transform", "in.csv", "--model", "model.m3", "-o", "/dev/full"]).fails(5, &[full]);
    run(&["ampute", "in.csv", "-o", "/dev/full"]).fails(5, &[full]);
    // The table does not appear without its report.
    run(&["impute", "in.csv", "-o", "out.csv", "--report", "/dev/full", "--method", "mean"]).fails(5, &[full]);
    assert!(!folder.path("out.csv").exists());
    let to_stdout = folder
        .command(&["impute", "in.csv", "--method", "mean"])
        .stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap())
        .stderr(Stdio::piped())
        .spawn();
    let ran = Ran::of(to_stdout.unwrap().wait_with_output().unwrap());
    ran.fails(5, &["cannot write `stdout`: the disk is full"]);
}

#[test]
fn a_reader_that_goes_away_ends_the_program_as_it_ends_others() {
    let folder = Folder::with("in.csv", "a,b\n1,2\n3,4\n,6\n".to_owned() + &"5,6\n".repeat(200_000));
    let model = ["fit", "in.csv", "-o", "model.m3", "--method", "mean"];
    folder.run(&model).done();
    for arguments in [
        &["impute", "in.csv", "--method", "mean"][..],
        &["impute", "in.csv", "--method", "mean", "--output-format", "parquet"],
        &["impute", "in.csv", "--method", "mean", "--output-format", "arrow"],
        &["transform", "in.csv", "--model", "model.m3"],
        &["ampute", "in.csv"],
        &["describe", "in.csv"],
        &["methods"],
    ] {
        // Nobody reads from the beginning: a reader that left later might have come too late for a short output.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = Ran::of(folder.command(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap());
        assert_eq!(ran.code, 141, "{arguments:?}: {}", ran.err);
        assert!(!ran.err.contains("error"), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn a_named_pipe_is_written_and_stays_one_and_is_named_when_its_reader_goes_away() {
    let folder = Folder::with("in.csv", "a,b\n1,2\n,4\n".to_owned() + &"5,6\n".repeat(100_000));
    let pipe = folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let start = || {
        let mut command = folder.command(&["impute", "in.csv", "-o", "pipe", "--method", "mean"]);
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    let child = start();
    let bytes = fs::read(&pipe).unwrap();
    Ran::of(child.wait_with_output().unwrap()).done();
    assert!(bytes.starts_with(b"a,b\n1,2\n"));
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());

    let child = start();
    drop(fs::File::open(&pipe).unwrap());
    let ran = Ran::of(child.wait_with_output().unwrap());
    ran.fails(5, &["cannot write `pipe`: broken pipe; ", "bytes were written before"]);
}

#[test]
fn the_longest_names_are_written_and_replaced() {
    let folder = Folder::with("penguins.csv", penguins());
    let name = format!("{}.csv", "n".repeat(251));
    for _ in 0..2 {
        folder.run(&["impute", "penguins.csv", "-o", &name, "--method", "mean"]).done();
    }
    assert_eq!(folder.names(), [name.as_str(), "penguins.csv"]);
}
