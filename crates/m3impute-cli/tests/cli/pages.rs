//! What help, errors and pages show is what the program prints. `TRYCMD=overwrite cargo test` writes it down anew.

#[test]
fn help_and_errors_read_as_written_down() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}
