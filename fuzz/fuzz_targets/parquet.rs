//! `cargo +nightly fuzz run parquet --features libfuzzer fuzz/seeds/parquet`
#![no_main]
libfuzzer_sys::fuzz_target!(init: m3impute_fuzz::let_panics_be_caught(), |bytes: &[u8]| {
    m3impute_fuzz::parquet(bytes);
});
