//! What columns are found to be, and what is said of it.

use m3impute_core::{Bounds, Hint, Kind, Role};
use m3impute_io::{Document, Error, Finding, Infinities, Input, ReadOptions, Result, read};

fn column_with(cells: &[&str], options: &ReadOptions) -> Result<Document> {
    let bytes = format!("x,y\n{}\n", cells.iter().map(|c| format!("{c},0")).collect::<Vec<_>>().join("\n"));
    read(&Input::Bytes { name: "a.csv".to_owned(), bytes: bytes.into_bytes() }, options)
}

fn column(cells: &[&str]) -> Document {
    column_with(cells, &ReadOptions::default()).unwrap()
}

fn kind(cells: &[&str]) -> Kind {
    column(cells).table().schema().columns()[0].kind
}

fn finding(cells: &[&str]) -> Finding {
    column(cells).findings()[0].clone()
}

fn texts(finding: &Finding) -> Vec<&str> {
    finding.notes.iter().map(|note| note.text.as_str()).collect()
}

fn kind_instead(column: &str, kind: Kind) -> Option<Hint> {
    Some(Hint::OverrideKind { column: column.to_owned(), kind })
}

fn asked(kind: Kind) -> ReadOptions {
    ReadOptions { kinds: vec![("x".to_owned(), kind)], ..ReadOptions::default() }
}

#[test]
fn numbers_are_whole_or_not_as_written() {
    assert_eq!(kind(&["1", "-2", "+3"]), Kind::Integer);
    assert_eq!(kind(&["1", "3.0"]), Kind::Continuous);
    assert_eq!(kind(&["1", "1e3"]), Kind::Continuous);
    assert_eq!(kind(&["1", "", "NA", "None"]), Kind::Integer);
    assert_eq!(kind(&["\"1\"", "\"2\""]), Kind::Integer);
    assert_eq!(kind(&[" 1", "2 "]), Kind::Integer);
    assert_eq!(kind(&["9007199254740993", "1"]), Kind::Identifier);
    assert!(finding(&["9007199254740993", "1"]).reason.contains("2^53"));
}

#[test]
fn a_column_without_a_value_is_kept_and_said() {
    let document = column(&["", "NA"]);
    let spec = &document.table().schema().columns()[0];
    assert_eq!((spec.kind, spec.role), (Kind::Continuous, Role::Fill));
    assert!(texts(&document.findings()[0]).contains(&"no observed value"));
}

#[test]
fn one_mark_among_numbers_is_missing() {
    for mark in ["?", "-", ".", "--"] {
        let cells = ["1", mark, "3", mark];
        let found = finding(&cells);
        assert_eq!((found.kind, found.missing), (Kind::Integer, 2), "{mark}");
        assert_eq!(texts(&found), [format!("`{mark}` taken as missing 2 times, as the rest are numbers")]);
        assert_eq!(found.tokens[0].first, 3);
    }
    assert_eq!(kind(&["1", "?", "3", "-"]), Kind::Identifier);
    assert_eq!(kind(&["1", "1", "high", "high"]), Kind::Categorical);
}

#[test]
fn tokens_are_counted_with_their_first_line() {
    let found = finding(&["a", "", "NA", "a", "NA", "\"NA\"", "None"]);
    assert_eq!(found.kind, Kind::Categorical);
    let tokens: Vec<(&str, usize, usize)> = found.tokens.iter().map(|t| (t.token.as_str(), t.count, t.first)).collect();
    assert_eq!(tokens, [("NA", 2, 4), ("(empty)", 1, 3)]);
    assert_eq!(column(&["a", "a", "\"NA\"", "None"]).table().schema().columns()[0].levels, ["NA", "None", "a"]);
}

#[test]
fn text_is_categories_unless_it_names_rows() {
    assert_eq!(kind(&["a", "b", "a"]), Kind::Categorical);
    assert_eq!(kind(&["a1", "b2", "c3"]), Kind::Identifier);
    assert_eq!(kind(&["a long one", "another one", "and a third"]), Kind::Text);
    assert_eq!(kind(&["a"]), Kind::Categorical);
    let many: Vec<String> = (0..40).map(|i| format!("k{}", i % 25)).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(kind(&many), Kind::Identifier);
    let found = finding(&["b", "a", "b"]);
    assert_eq!((found.distinct, found.top), (Some(2), vec![("b".to_owned(), 2), ("a".to_owned(), 1)]));
}

#[test]
fn yes_and_no_are_booleans_in_one_style() {
    for (no, yes) in [("false", "true"), ("No", "Yes"), ("F", "T"), ("n", "y"), ("FALSE", "TRUE")] {
        let document = column(&[yes, no, yes]);
        let spec = &document.table().schema().columns()[0];
        assert_eq!((spec.kind, spec.levels.as_slice()), (Kind::Boolean, &[no.to_owned(), yes.to_owned()][..]));
    }
    assert_eq!(kind(&["True", "false", "True"]), Kind::Categorical);
    assert_eq!(kind(&["0", "1", "0"]), Kind::Integer);
}

#[test]
fn dates_are_timestamps_where_they_are_clear() {
    let document = column(&["2024-01-31", "", "2024-02-01"]);
    let spec = &document.table().schema().columns()[0];
    assert_eq!((spec.kind, spec.step), (Kind::Datetime, 86_400.0));
    assert_eq!(document.table().number(2, 0) - document.table().number(0, 0), 86_400.0);
    assert_eq!(kind(&["01/02/2024", "13/02/2024"]), Kind::Datetime);
    let unclear = ["01/02/2024", "03/02/2024", "01/02/2024"];
    assert_eq!(kind(&unclear), Kind::Categorical);
    assert_eq!(finding(&unclear).notes[0].hint, kind_instead("x", Kind::Datetime));
    let day_first = column_with(&unclear, &asked(Kind::Datetime)).unwrap();
    assert_eq!(texts(&day_first.findings()[0]), ["day and month are ambiguous: read as day first"]);
}

#[test]
fn row_numbers_and_keys_are_identifiers() {
    let count: Vec<String> = (1..=12).map(|i| i.to_string()).collect();
    let count: Vec<&str> = count.iter().map(String::as_str).collect();
    assert_eq!(finding(&count).reason, "it counts the rows");
    assert_eq!(kind(&count[..5]), Kind::Integer);
    let years: Vec<String> = (1990..2010).map(|i| i.to_string()).collect();
    assert_eq!(kind(&years.iter().map(String::as_str).collect::<Vec<_>>()), Kind::Integer);
    let bytes = b"user_id,y\n7,1\n9,2\n3,2\n".to_vec();
    let document = read(&Input::Bytes { name: "a.csv".to_owned(), bytes }, &ReadOptions::default()).unwrap();
    assert_eq!(document.findings()[0].reason, "named like a key, and every value differs");
    assert_eq!(texts(&document.findings()[0]), ["looks like an identifier: neither filled nor used"]);
    assert_eq!(document.findings()[0].notes[0].hint, kind_instead("user_id", Kind::Integer));
    assert_eq!(finding(&["a1", "b2", "c3"]).notes[0].hint, kind_instead("x", Kind::Categorical));
    let told = column_with(&["a1", "b2", "c3"], &asked(Kind::Identifier)).unwrap();
    assert_eq!(told.findings()[0].notes[0].hint, None);
}

#[test]
fn numbers_are_described_and_sentinels_suspected() {
    let found = finding(&["20", "-99", "40", "-99", "30"]);
    assert_eq!((found.min, found.max, found.mean), (Some(-99.0), Some(40.0), Some(-21.6)));
    assert_eq!((found.distinct, found.sentinels[0].value, found.sentinels[0].count), (Some(4), -99.0, 2));
    let codes = &finding(&["007", "012", "011"]).notes[0];
    assert_eq!(codes.text, "`007` begins with a zero: these may be codes");
    assert_eq!(codes.hint, kind_instead("x", Kind::Categorical));
}

#[test]
fn asked_words_mean_missing() {
    let options = ReadOptions { na: Some(vec!["x".to_owned()]), ..ReadOptions::default() };
    let document = column_with(&["x", "a", "NA", "a", ""], &options).unwrap();
    assert_eq!(document.table().observed().column(0), [false, true, true, true, false]);
    let options = ReadOptions { na_columns: vec![("x".to_owned(), vec!["-99".to_owned()])], ..ReadOptions::default() };
    let document = column_with(&["1.5", "-99.0", "-99", "NA", "2.5"], &options).unwrap();
    assert_eq!(document.table().observed().column(0), [true, false, false, false, true]);
    assert_eq!(document.findings()[0].sentinels, []);
    let document = column_with(&["a", "\"-99\"", "a"], &options).unwrap();
    assert_eq!(document.table().missing_in(0), 1);
}

#[test]
fn kinds_are_as_asked() {
    let levels =
        |cells: &[&str], kind| column_with(cells, &asked(kind)).unwrap().table().schema().columns()[0].levels.clone();
    assert_eq!(levels(&["10", "9", "10"], Kind::Categorical), ["10", "9"]);
    assert_eq!(levels(&["10", "9", "10"], Kind::Ordered), ["9", "10"]);
    assert_eq!(levels(&["lo", "hi", "lo"], Kind::Ordered), ["hi", "lo"]);
    assert_eq!(levels(&["1", "0", "1"], Kind::Boolean), ["0", "1"]);
    let error = |cells: &[&str], kind| column_with(cells, &asked(kind)).unwrap_err().to_string();
    assert_eq!(
        error(&["1", "abc", "x"], Kind::Continuous),
        "`a.csv`, line 3, column `x`: expected a number, got `abc`"
    );
    assert_eq!(error(&["1", "2.5"], Kind::Integer), "`a.csv`, line 3, column `x`: expected a whole number, got `2.5`");
    assert_eq!(
        error(&["a", "b", "c"], Kind::Boolean),
        "`a.csv`: column `x` cannot be boolean: it has 3 different values"
    );
    assert_eq!(
        error(&["soon", "later"], Kind::Datetime),
        "`a.csv`: column `x` cannot be datetime: no date format fits all of its values, such as `later`"
    );
}

#[test]
fn roles_and_bounds_are_as_asked() {
    let bounds = Bounds { low: 0.0, high: 9.0 };
    let mut options = ReadOptions { bounds: vec![("x".to_owned(), bounds)], ..ReadOptions::default() };
    options.only = Some(vec!["x".to_owned()]);
    options.ignore = vec!["y".to_owned()];
    let document = column_with(&["1", "2"], &options).unwrap();
    let columns = document.table().schema().columns();
    assert_eq!((columns[0].role, columns[0].bounds), (Role::Fill, Some(bounds)));
    assert_eq!(columns[1].role, Role::Ignore);
    options.ignore = Vec::new();
    assert_eq!(column_with(&["1"], &options).unwrap().table().schema().columns()[1].role, Role::Predict);
    options.ignore = vec!["xy".to_owned()];
    let error = column_with(&["1"], &options).unwrap_err();
    assert_eq!(error.to_string(), "`a.csv` has no column `xy`");
    assert!(matches!(error, Error::UnknownColumn { nearest: Some(_), .. }));
}

#[test]
fn infinities_are_refused_or_missing() {
    for infinity in ["inf", "-Infinity", "1e999"] {
        let error = column_with(&["1", infinity, "2"], &ReadOptions::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("`a.csv`, line 3, column `x`: expected a finite number, got `{infinity}`")
        );
        assert_eq!(error.hint(), Some(Hint::InfinitiesAsMissing));
        let options = ReadOptions { infinities: Infinities::Missing, ..ReadOptions::default() };
        let document = column_with(&["1", infinity, "2"], &options).unwrap();
        assert_eq!(texts(&document.findings()[0]), [format!("`{infinity}` taken as missing once")]);
    }
}

#[test]
fn a_stray_text_among_numbers_is_said() {
    let mut cells = vec!["1.5"; 20];
    cells.push("oops");
    let found = finding(&cells);
    assert_eq!(found.kind, Kind::Categorical);
    assert_eq!(found.odd.map(|o| (o.at, o.value)), Some((22, "oops".to_owned())));
}
