//! `cargo +nightly fuzz run parquet --features libfuzzer fuzz/seeds/parquet`
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| _ = m3impute_fuzz::parquet(bytes));
