//! The program on a processor without wide vectors, which `qemu-user` of Debian emulates.

use crate::program::{Folder, Ran, penguins};
use std::path::PathBuf;
use std::process::Command;

/// A processor of 2008: vectors of 128 bits, no AVX.
const OLD: &str = "Nehalem";

/// The emulator, as Debian's packages `qemu-user` and `qemu-user-static` call it, or as `QEMU` names it.
fn emulator() -> PathBuf {
    let named = std::env::var_os("QEMU").map(PathBuf::from);
    let all = named.into_iter().chain(["qemu-x86_64", "qemu-x86_64-static"].map(PathBuf::from));
    let mut all = all.filter(|program| Command::new(program).arg("--version").output().is_ok());
    all.next().expect("qemu-user (Debian: package qemu-user-static)")
}

/// Numbers of two processors are the same but for their last digits.
fn is_close(one: &str, other: &str) -> bool {
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => (one - other).abs() <= 1e-3 * one.abs().max(other.abs()).max(1.0),
        _ => one == other,
    }
}

fn fills_alike(arguments: &[&str]) {
    let emulator = emulator();
    let folder = Folder::with("in.csv", penguins());
    let impute = [&["impute", "in.csv"], arguments].concat();
    folder.run(&[&impute[..], &["-o", "here.csv"]].concat()).done();
    for threads in ["1", "2"] {
        let mut command = Command::new(&emulator);
        command.args(["-cpu", OLD, env!("CARGO_BIN_EXE_m3impute")]).current_dir(folder.path("."));
        command.args(&impute).args(["-o", &format!("old{threads}.csv"), "--threads", threads]);
        Ran::of(command.output().unwrap()).done();
    }
    assert_eq!(folder.read("old1.csv"), folder.read("old2.csv"), "the same bytes on any number of threads");
    let (here, old) = (folder.text("here.csv"), folder.text("old1.csv"));
    let cells = |text: &str| text.split([',', '\n']).map(str::to_owned).collect::<Vec<_>>();
    let (here, old) = (cells(&here), cells(&old));
    assert_eq!(here.len(), old.len());
    let far: Vec<_> = here.iter().zip(&old).filter(|(here, old)| !is_close(here, old)).collect();
    assert!(far.is_empty(), "{arguments:?}: {far:?}");
}

#[test]
#[cfg_attr(not(with_qemu), ignore = "needs qemu-user (Debian: package qemu-user-static)")]
fn classic_methods_fill_alike_without_wide_vectors() {
    for method in ["median", "knn", "mice", "svd"] {
        fills_alike(&["--method", method]);
    }
}

#[test]
#[ignore = "takes minutes: run it on demand"]
fn networks_and_forests_fill_alike_without_wide_vectors() {
    fills_alike(&["--method", "m3", "--preset", "fast", "--param", "steps=20", "--param", "trees=5"]);
    fills_alike(&["--method", "missforest", "--param", "trees=5"]);
}
