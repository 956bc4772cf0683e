//! `cargo +nightly fuzz run arrow --features libfuzzer fuzz/seeds/arrow`
#![no_main]
libfuzzer_sys::fuzz_target!(init: m3impute_fuzz::let_panics_be_caught(), |bytes: &[u8]| {
    m3impute_fuzz::arrow(bytes);
});
