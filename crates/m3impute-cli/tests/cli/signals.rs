//! Ctrl-C and SIGTERM end every verb soon, with 130 and nothing half done; a kill leaves whole files.

use crate::program::{Folder, Ran, penguins};
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a verb may take to end. The promise is a second, on a machine that does nothing else.
const PATIENCE: Duration = Duration::from_secs(5);
const PROMISE: Duration = Duration::from_secs(1);

/// What a verb is at when the signal comes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    /// It waits for rows that do not come.
    Reading,
    /// It waits for somebody to read what it writes.
    Writing,
    /// It computes.
    Work,
}

const CASES: &[(At, &str)] = &[
    (At::Reading, "impute --method mean"),
    (At::Reading, "impute -o out.csv --report page.html --method mean"),
    (At::Reading, "impute pipe -o out.csv --method mean"),
    (At::Reading, "fit -o out.m3 --method mean"),
    (At::Reading, "transform --model model.m3 -o out.csv"),
    (At::Reading, "evaluate --methods mean --report page.html"),
    (At::Reading, "describe"),
    (At::Reading, "describe pipe"),
    (At::Reading, "ampute -o out.csv"),
    (At::Reading, "info pipe"),
    (At::Reading, "explain pipe long.csv --row 1"),
    (At::Reading, "explain model.m3 --row 60001"),
    (At::Writing, "impute long.csv --method mean"),
    (At::Writing, "impute long.csv -o pipe --method mean"),
    (At::Writing, "impute long.csv --method mean --output-format parquet"),
    (At::Writing, "transform long.csv --model model.m3"),
    (At::Writing, "ampute long.csv"),
    (At::Writing, "describe wide.csv --json"),
    (At::Writing, "fit long.csv -o pipe --method knn"),
    (At::Work, "impute penguins.csv -o out.csv --preset best"),
    (At::Work, "fit penguins.csv -o out.m3 --preset paper"),
    (At::Work, "evaluate penguins.csv --methods grape --report page.html"),
    (At::Work, "bench engine --sizes 2000x10 --seconds 600"),
    (At::Work, "bench m3 --sizes 20000x12 --presets best"),
    (At::Work, "bench paper main --data data --rows data/rows.csv --methods m3:paper --epochs 40000"),
];

/// A folder with what the cases need.
fn folder() -> Folder {
    let folder = Folder::with("penguins.csv", penguins());
    let rows: String = (0..60_000).map(|i| format!("{i}.5,{},{}\n", i % 97, i % 89)).collect();
    folder.write("long.csv", format!("a,b,c\n{rows},1,2\n"));
    let names: Vec<String> = (0..3000).map(|j| format!("column_{j}")).collect();
    folder.write("wide.csv", format!("{}\n{}\n", names.join(","), vec!["1"; names.len()].join(",")));
    folder.run(&["fit", "long.csv", "-o", "model.m3", "--method", "median"]).done();
    for name in ["data", "data/datasets", "data/masks"] {
        std::fs::create_dir(folder.path(name)).unwrap();
    }
    let rows: String = (0..300).map(|i| format!("{}.5,{},{}\n", i, 2 * i, 3 * i)).collect();
    folder.write("data/datasets/yacht.csv", format!("a,b,label\n{rows}"));
    assert!(Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap().success());
    folder
}

/// Whether the program handles signals by now: the system shows it.
fn is_ready(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & (1 << 14) != 0)
}

/// Sends a verb a signal while it is at something that does not end by itself; says how long it took to end.
fn stop(folder: &Folder, signal: &str, at: At, line: &str) -> Duration {
    let arguments: Vec<&str> = line.split(' ').collect();
    let mut child = folder
        .command(&arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut input = child.stdin.take().unwrap();
    // The other end of the pipe, which is open and silent.
    let has_pipe = arguments.contains(&"pipe");
    let pipe = has_pipe.then(|| std::fs::OpenOptions::new().read(true).write(true).open(folder.path("pipe")).unwrap());
    if at == At::Reading && !has_pipe {
        input.write_all(b"a,b,c\n1,2,3\n").unwrap();
    }
    while !is_ready(&child) {
        assert!(child.try_wait().unwrap().is_none(), "{line} ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(150));
    assert!(child.try_wait().unwrap().is_none(), "{line} ended by itself");
    let asked = Instant::now();
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    while child.try_wait().unwrap().is_none() {
        if asked.elapsed() > Duration::from_secs(30) {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let took = asked.elapsed();
    drop((input, pipe));
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert!(ran.code == 130 && ran.err.contains("error: cancelled"), "{signal} {line}: {ran:?}");
    took
}

const BOTH: [&str; 2] = ["-INT", "-TERM"];

/// Stops every case by the signals that it is to get by its number.
fn stop_all(patience: Duration, signals: impl Fn(usize) -> Vec<&'static str>) {
    let folder = folder();
    let before = folder.names();
    for (nth, (at, line)) in CASES.iter().enumerate() {
        for signal in signals(nth) {
            let took = stop(&folder, signal, *at, line);
            assert!(took < patience, "{signal} {line}: {took:?}");
            assert_eq!(folder.names(), before, "{line} left something");
        }
    }
}

#[test]
fn a_signal_ends_every_verb_whatever_it_is_at() {
    stop_all(PATIENCE, |nth| vec![BOTH[nth % 2]]);
}

#[test]
#[ignore = "measures time: run it by itself, on demand"]
fn each_signal_ends_every_verb_within_a_second() {
    stop_all(PROMISE, |_| BOTH.to_vec());
}

#[test]
fn a_program_under_nohup_outlives_its_terminal() {
    let mut child = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$0\" describe", env!("CARGO_BIN_EXE_m3impute")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    while !is_ready(&child) {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success());
    child.stdin.take().unwrap().write_all(b"a,b\n1,2\n,3\n").unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap()).done();
    assert!(ran.out.contains("2 rows"), "{}", ran.out);
}

#[test]
fn threads_are_capped_with_a_note() {
    let folder = Folder::with("penguins.csv", penguins());
    let arguments = ["impute", "penguins.csv", "-o", "out.csv", "--method", "mean", "--threads"];
    let many = folder.run(&[&arguments[..], &["20000"]].concat()).done();
    assert!(many.err.contains("note: 20000 threads asked for, "), "{}", many.err);
    let bytes = folder.read("out.csv");
    let one = folder.run(&[&arguments[..], &["1"]].concat()).done();
    assert!(!one.err.contains("threads"), "{}", one.err);
    assert_eq!(folder.read("out.csv"), bytes);
    let evaluate = ["evaluate", "penguins.csv", "--methods", "mean", "--repeats", "1", "--threads", "20000"];
    assert!(folder.run(&evaluate).done().err.contains("20000 threads asked for"));
}

/// A verb that is killed, and the files that it writes with what ends a whole one.
struct Victim {
    line: &'static str,
    writes: &'static [(&'static str, &'static [u8])],
}

const END_OF_PAGE: &[u8] = b"</html>\n";
const END_OF_TABLE: &[u8] = b"last,7\n";

const VICTIMS: &[Victim] = &[
    Victim {
        line: "impute in.csv -o out.csv --method mean --report page.html",
        writes: &[("out.csv", END_OF_TABLE), ("page.html", END_OF_PAGE)],
    },
    Victim { line: "impute copy.csv --in-place --method mean", writes: &[("copy.csv", END_OF_TABLE)] },
    Victim {
        line: "impute in.csv -o out.csv --method gain --param steps=3 --draws 2",
        writes: &[("out.1.csv", END_OF_TABLE), ("out.2.csv", END_OF_TABLE)],
    },
    Victim { line: "fit in.csv -o new.m3 --method median", writes: &[("new.m3", b"")] },
    Victim { line: "transform in.csv --model model.m3 -o out.csv --chunk 500", writes: &[("out.csv", END_OF_TABLE)] },
    Victim { line: "ampute in.csv -o out.csv --mechanism quantile --rate 0.01", writes: &[("out.csv", b"\n")] },
    Victim {
        line: "evaluate in.csv --methods mean --repeats 1 --report page.html",
        writes: &[("page.html", END_OF_PAGE)],
    },
    Victim { line: "bench paper main --data data --methods mean,median --rows rows.csv", writes: &[] },
];

/// Kills each verb at so many moments of its life. Then every file is the old one or a whole new one, and the next run
/// succeeds and leaves nothing but its files.
fn kill_each(moments: u64) {
    let folder = Folder::new();
    let rows: String = (0..20_000_u32).map(|i| format!("{},{}\n", i % 31, i % 11)).collect();
    folder.write("in.csv", format!("name,x\n{rows}last,\nlast,7\n"));
    folder.run(&["fit", "in.csv", "-o", "model.m3", "--method", "median"]).done();
    std::fs::create_dir_all(folder.path("data/datasets")).unwrap();
    let rows: String = (0..60).map(|i| format!("{}.5,{},{}\n", i, 2 * i, 3 * i)).collect();
    folder.write("data/datasets/yacht.csv", format!("a,b,label\n{rows}"));
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for victim in VICTIMS {
        let arguments: Vec<&str> = victim.line.split(' ').collect();
        // Old files to replace, every other time.
        let prepare = |old: bool| {
            folder.write("copy.csv", folder.read("in.csv"));
            for (name, _) in victim.writes.iter().filter(|(name, _)| *name != "copy.csv") {
                let _ = std::fs::remove_file(folder.path(name));
                if old {
                    folder.write(name, "old");
                }
            }
        };
        prepare(false);
        let started = Instant::now();
        folder.run(&arguments).done();
        let (life, expected) = (started.elapsed(), folder.names());
        for moment in 0..moments {
            prepare(moment % 2 == 0);
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let share = (state >> 40) as f64 / (1_u64 << 24) as f64;
            let mut child = folder.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(life.mul_f64(1.05 * share));
            child.kill().unwrap();
            child.wait().unwrap();
            for (name, end) in victim.writes.iter().filter(|(name, _)| folder.path(name).exists()) {
                let bytes = folder.read(name);
                let is_old = bytes == b"old" || (*name == "copy.csv" && bytes == folder.read("in.csv"));
                assert!(is_old || (bytes.len() > 100 && bytes.ends_with(end)), "{}: `{name}` is half", victim.line);
            }
        }
        folder.run(&arguments).done();
        assert_eq!(folder.names(), expected, "{} left something", victim.line);
        for (name, _) in victim.writes.iter().filter(|(name, _)| name.ends_with(".m3")) {
            folder.run(&["info", name]).done();
        }
    }
}

#[test]
fn a_kill_at_any_of_ten_moments_leaves_whole_files() {
    kill_each(10);
}

#[test]
#[ignore = "takes minutes: run it on demand"]
fn a_kill_at_any_of_a_hundred_moments_leaves_whole_files() {
    kill_each(100);
}

/// A small disk of its own, taken away when dropped. Only root can make one.
struct SmallDisk<'a>(&'a Folder);

impl SmallDisk<'_> {
    fn new(folder: &Folder) -> Option<SmallDisk<'_>> {
        std::fs::create_dir(folder.path("disk")).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=128k", "tmpfs"]).arg(folder.path("disk")).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then_some(SmallDisk(folder))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path("disk")).status();
    }
}

#[test]
#[cfg_attr(not(as_root), ignore = "only root can mount a small disk")]
fn a_full_disk_leaves_the_old_files_and_says_so() {
    let folder = folder();
    let disk = SmallDisk::new(&folder).expect("root mounts a small disk");
    let lines = [
        ("impute long.csv -o disk/out --method mean --output-format csv", "disk/out"),
        ("impute long.csv -o disk/out --method mean --output-format arrow", "disk/out"),
        ("impute long.csv -o disk/out --method mean --output-format parquet", "disk/out"),
        ("impute long.csv -o disk/new --method mean --output-format csv --report disk/out", "disk/new"),
        ("fit long.csv -o disk/out --method knn", "disk/out"),
        ("transform long.csv --model model.m3 -o disk/out --output-format csv", "disk/out"),
        ("ampute long.csv -o disk/out --output-format csv", "disk/out"),
    ];
    for (line, file) in lines {
        folder.write("disk/out", "old");
        let ran = folder.run(&line.split(' ').collect::<Vec<_>>());
        let message = format!("cannot write `{file}`: the disk is full; nothing was changed");
        ran.fails(5, &[&message, "free some space"]);
        assert_eq!(folder.text("disk/out"), "old", "{line}");
        assert_eq!(std::fs::read_dir(folder.path("disk")).unwrap().count(), 1, "{line}");
    }
    let out = std::fs::File::create(folder.path("disk/shell")).unwrap();
    let child = folder.command(&["impute", "long.csv", "--method", "mean"]).stdout(out).stderr(Stdio::piped()).spawn();
    let ran = Ran::of(child.unwrap().wait_with_output().unwrap());
    ran.fails(5, &["cannot write `stdout`: the disk is full; ", "bytes were written before"]);
    drop(disk);
}
