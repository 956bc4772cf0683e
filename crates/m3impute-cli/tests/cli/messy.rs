//! Files as people have them: what is read from them, and what is said about what looks wrong.

use crate::program::Folder;

/// A folder with one of the files in `tests/messy`.
fn folder(name: &str) -> Folder {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messy").join(name);
    Folder::with(name, std::fs::read(path).expect("the file is there"))
}

#[test]
fn decimal_commas_are_read_as_numbers_and_written_with_commas() {
    let folder = folder("deccomma.csv");
    folder.run(&["impute", "deccomma.csv", "-o", "filled.csv", "--method", "mean"]).done();
    let (before, after) = (folder.text("deccomma.csv"), folder.text("filled.csv"));
    let mut filled = 0;
    for (old, new) in before.lines().zip(after.lines()).skip(1) {
        for (old, new) in old.split(';').zip(new.split(';')) {
            if old.is_empty() {
                filled += 1;
                let number = new.replace(',', ".").parse::<f64>();
                assert!(!new.contains('.') && number.is_ok(), "a missing cell was filled with `{new}`");
            } else {
                assert_eq!(old, new, "an observed cell is untouched");
            }
        }
    }
    assert_eq!((filled, before.lines().count()), (60, after.lines().count()));
}

#[test]
fn a_number_that_may_stand_for_missing_is_pointed_out() {
    let ran = folder("sentinel.csv").run(&["describe", "sentinel.csv"]).done();
    for column in ["`visits`", "`temp`"] {
        let said = ran.err.lines().chain(ran.out.lines()).any(|line| line.contains(column) && line.contains("`-999`"));
        assert!(said, "nothing is said about -999 in {column}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn a_typo_among_numbers_is_named_with_its_line() {
    let ran = folder("typo.csv").run(&["describe", "typo.csv"]).done();
    let said = ran.err.lines().chain(ran.out.lines()).any(|line| line.contains("`12O.5`") && line.contains("152"));
    assert!(said, "nothing is said about `12O.5`: {}{}", ran.out, ran.err);
}
