//! `cargo +nightly fuzz run model --features libfuzzer fuzz/seeds/model`
#![no_main]
libfuzzer_sys::fuzz_target!(init: m3impute_fuzz::let_panics_be_caught(), |bytes: &[u8]| {
    m3impute_fuzz::model(bytes);
});
