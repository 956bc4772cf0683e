//! Tells the program which commit it is built from, so that its benchmarks can say so.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
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
