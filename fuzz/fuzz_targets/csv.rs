//! `cargo +nightly fuzz run csv --features libfuzzer fuzz/seeds/csv`
#![no_main]
libfuzzer_sys::fuzz_target!(init: m3impute_fuzz::let_panics_be_caught(), |bytes: &[u8]| {
    m3impute_fuzz::csv(bytes);
});
