//! `cargo +nightly fuzz run model --features libfuzzer fuzz/seeds/model`
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| _ = m3impute_fuzz::model(bytes));
