//! `cargo +nightly fuzz run arrow --features libfuzzer fuzz/seeds/arrow`
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| _ = m3impute_fuzz::arrow(bytes));
