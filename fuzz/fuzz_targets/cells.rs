//! `cargo +nightly fuzz run cells --features libfuzzer fuzz/seeds/cells`
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| _ = m3impute_fuzz::cells(bytes));
