//! Tells the program which commit it is built from, so that its benchmarks can say so, and the tests what this machine
//! has, so that those which cannot run show as ignored.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=QEMU");
    println!("cargo::rustc-check-cfg=cfg(as_root, with_qemu)");
    let user = Command::new("id").arg("-u").output();
    if user.is_ok_and(|user| user.stdout.trim_ascii() == b"0") {
        println!("cargo::rustc-cfg=as_root");
    }
    let named = std::env::var("QEMU").ok();
    let mut emulators = named.into_iter().chain(["qemu-x86_64", "qemu-x86_64-static"].map(str::to_owned));
    if emulators.any(|emulator| Command::new(emulator).arg("--version").output().is_ok()) {
        println!("cargo::rustc-cfg=with_qemu");
    }
    // Only what is measured and shipped: other builds need not be linked again after every commit.
    if std::env::var("PROFILE").as_deref() != Ok("release") {
        return;
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
    };
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    // In another project's repository, such as that of a package, the commit would be theirs.
    if git(&["ls-files", "build.rs"]).is_some()
        && let Some(commit) = git(&["rev-parse", "--short", "HEAD"])
    {
        println!("cargo::rustc-env=M3IMPUTE_COMMIT={commit}");
    }
}
