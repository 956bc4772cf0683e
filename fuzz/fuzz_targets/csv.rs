//! `cargo +nightly fuzz run csv --features libfuzzer fuzz/seeds/csv`
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| _ = m3impute_fuzz::csv(bytes));
