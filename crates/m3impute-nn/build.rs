//! Says whether this compiler knows the 512-bit instructions: they are stable since Rust 1.89, one release
//! after the oldest that the crate supports.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(avx512)");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let minor = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .and_then(|version| version.split('.').nth(1)?.parse::<u32>().ok());
    if minor.is_some_and(|minor| minor >= 89) {
        println!("cargo::rustc-cfg=avx512");
    }
}
