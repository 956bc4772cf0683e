//! Bad input: an error that names file, line, column and the offending text.

use m3impute_core::{Category, Hint};
use m3impute_io::{Error, Input, ReadOptions, open_chunks, read};

fn error(bytes: &[u8]) -> Error {
    read(&Input::Bytes { name: "a.csv".to_owned(), bytes: bytes.to_vec() }, &ReadOptions::default()).unwrap_err()
}

fn text(bytes: &[u8]) -> String {
    error(bytes).to_string()
}

#[test]
fn every_error_names_its_place() {
    assert_eq!(text(b""), "`a.csv` is empty");
    assert_eq!(text(b"\n\r\n"), "`a.csv` is empty");
    assert_eq!(text(b"a,b\n"), "`a.csv` has a header but no rows");
    assert_eq!(text(b"a,b\n1,2\n3\n"), "`a.csv`, line 3: expected 2 fields, got 1");
    assert_eq!(text(b"a,b\n\"x\ny\",2\n3,4,5\n"), "`a.csv`, line 4: expected 2 fields, got 3");
    assert_eq!(text(b"a,b,a\n1,2,3\n"), "`a.csv`: column name `a` occurs twice: columns 1 and 3");
    assert_eq!(text(b"a,b\n1,2\n3,\"x\n4,5\n"), "`a.csv`, line 3: a quoted field begins here and never ends");
    assert_eq!(text(b"a,b\n1,2\n3,\0\n"), "`a.csv`, line 3: expected text, got a NUL byte");
    assert_eq!(error(b"a,b\n1,2\n3\n").category(), Category::Data);
}

#[test]
fn hints_say_what_to_do() {
    let hint = |bytes: &[u8]| error(bytes).hint().unwrap();
    assert_eq!(hint(b"a,b\n\"x\n1,2\n3\",4,5\n"), Hint::CloseQuote);
    assert!(matches!(hint(b"PK\x03\x04\0\0"), Hint::Convert { what, .. } if what.contains("Excel")));
    assert_eq!(hint(b"PAR1\0\0\0"), Hint::ReadAs { what: "parquet", format: "parquet" });
    assert_eq!(hint(b"a,a\n1,2\n"), Hint::RenameColumn);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = read(&Input::parse("/no/such/file.csv"), &ReadOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "cannot read `/no/such/file.csv`: no such file or folder");
    let error = read(&Input::parse("/"), &ReadOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "cannot read `/`: it is a folder");
}

#[test]
fn new_rows_that_do_not_fit_are_refused_with_their_place() {
    let input = |bytes: &[u8]| Input::Bytes { name: "new.csv".to_owned(), bytes: bytes.to_vec() };
    let options = ReadOptions::default();
    let training = read(&input(b"age,c\n31,u\n32,u\n"), &options).unwrap();
    let (reading, schema) = (training.reading(), training.table().schema());
    let open = |bytes: &[u8], rows| open_chunks(&input(bytes), &options, reading, schema, rows);
    let error = open(b"agee,c\n1,u\n", 10).unwrap_err();
    assert_eq!(error.to_string(), "`new.csv` has no column `age` (integer), which the model needs");
    assert_eq!(error.hint(), Some(Hint::DidYouMean { name: "agee".to_owned() }));
    let error = open(b"x,y\n1,u\n", 10).unwrap_err();
    let both = "`new.csv` has no columns `age` (integer), `c` (categorical), which the model needs";
    assert_eq!(error.to_string(), both);
    let mut chunks = open(b"c,age\nu,1\nu,2\nu,old\n", 2).unwrap();
    assert_eq!(chunks.next().unwrap().unwrap().table().rows(), 2);
    let error = chunks.next().unwrap_err();
    assert_eq!(error.to_string(), "`new.csv`, line 4, column `age`: expected a number, got `old`");
    assert_eq!(open(b"c,age\n", 2).unwrap().next().unwrap_err().to_string(), "`new.csv` has a header but no rows");
    let mut late = b"c,age\n".to_vec();
    late.extend(b"u,1\n".repeat(100_000));
    late.extend(b"\xe9,1\n");
    let mut chunks = open(&late, 60_000).unwrap();
    assert!(chunks.next().unwrap().is_some());
    let error = chunks.next().unwrap_err();
    assert_eq!(error.to_string(), "`new.csv`, line 100002: expected utf-8 text, got the byte 0xe9");
    assert_eq!(error.hint(), Some(Hint::Encoding { name: "latin1" }));
}
