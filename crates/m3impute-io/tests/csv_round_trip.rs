//! Every cell that was not missing comes back byte for byte.

use m3impute_core::{Kind, Observed, Table};
use m3impute_io::{
    Change, Document, DocumentWriter, Encoding, Format, Infinities, Input, ReadOptions, open_chunks, read,
};
use proptest::prelude::*;

fn input(bytes: impl Into<Vec<u8>>) -> Input {
    Input::Bytes { name: "a.csv".to_owned(), bytes: bytes.into() }
}

fn document(bytes: impl Into<Vec<u8>>) -> Document {
    read(&input(bytes), &ReadOptions::default()).unwrap()
}

fn written(document: &Document, change: Change<'_>) -> Vec<u8> {
    written_as(document, change, Format::Csv, &[])
}

fn written_as(document: &Document, change: Change<'_>, format: Format, drop: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    let drop = drop.iter().map(|&d| d.to_owned()).collect();
    let mut writer = DocumentWriter::new(Box::new(&mut out), format, drop);
    writer.write(document, change).unwrap();
    writer.finish().unwrap();
    out
}

/// Fills each missing cell that may be filled: numbers with 7, levels with the first.
fn filled(table: &Table) -> Table {
    let mut filled = table.clone();
    for col in 0..table.cols() {
        let spec = &table.schema().columns()[col];
        if !spec.is_filled() || (spec.kind.has_levels() && spec.levels.is_empty()) {
            continue;
        }
        for row in 0..table.rows() {
            if !table.observed().get(row, col) {
                filled.fill(row, col, if spec.kind.is_number() { 7.0 } else { 0.0 });
            }
        }
    }
    filled
}

fn unchanged(bytes: impl Into<Vec<u8>>) {
    let bytes = bytes.into();
    let document = document(bytes.clone());
    assert_eq!(written(&document, Change::Fill(document.table())), bytes);
}

#[test]
fn bytes_come_back_as_they_stood() {
    unchanged("a,b\n1,x\n,y\n");
    unchanged("a,b\r\n1,x\r\n,y\r\n\r\n\n");
    unchanged("a,b\n1,x\r\n2,y\r3,z");
    unchanged("\u{feff}a;b\n1,5;x\n;\n");
    unchanged("\n\na,b\n\n1,x\n\n2,\n");
    unchanged("a,b\n\"1\", \"x\"\n\"\",\"u\nv\"\"w\"\n");
    unchanged(&b"n\xe9\xe9,b\n1,\x80\n,\x81\n"[..]);
    unchanged("a\n1\n\n2\n");
    let mut utf16 = vec![0xff, 0xfe];
    utf16.extend("a\tb\n1\t🐧\n\té\n".encode_utf16().flat_map(u16::to_le_bytes));
    unchanged(utf16);
}

#[test]
fn only_holes_are_filled_in_the_files_own_style() {
    let bytes = "id;h;\"n\";c;when\r\nk1; 1,50 ;\"3\";red;01.02.2024\r\nk2;NA;\"\";;NA\r\n;2,5;\"4\";\"a;b\";13.02.2024\r\nk1;2;\"5\";red;13.02.2024\r\n";
    let document = document(bytes);
    let kinds: Vec<Kind> = document.table().schema().columns().iter().map(|c| c.kind).collect();
    assert_eq!(kinds, [Kind::Categorical, Kind::Continuous, Kind::Integer, Kind::Categorical, Kind::Datetime]);
    let mut table = document.table().clone();
    table.fill(1, 1, 1.75);
    table.fill(1, 2, 4.0);
    table.fill(1, 3, 0.0);
    table.fill(1, 4, 86_400.0);
    table.fill(2, 0, 1.0);
    let expected = "id;h;\"n\";c;when\r\nk1; 1,50 ;\"3\";red;01.02.2024\r\nk2;1,75;\"4\";\"a;b\";02.01.1970\r\nk2;2,5;\"4\";\"a;b\";13.02.2024\r\nk1;2;\"5\";red;13.02.2024\r\n";
    assert_eq!(String::from_utf8(written(&document, Change::Fill(&table))).unwrap(), expected);
}

#[test]
fn cells_are_hidden_and_columns_left_out() {
    let document = document("a,b,c\n1,x,NA\n2,y,3\n");
    let mut observed = Observed::all(2, 3);
    observed.set(1, 0, false);
    observed.set(0, 2, false);
    assert_eq!(written(&document, Change::Hide(&observed)), b"a,b,c\n1,x,NA\n,y,3\n");
    assert_eq!(written_as(&document, Change::Fill(&filled(document.table())), Format::Csv, &["b"]), b"a,c\n1,7\n2,3\n");
}

#[test]
fn another_delimiter_brings_its_quotes() {
    let document = document("a,\"b\tc\",d\n1,x\ty,\"p,q\"\n,u,v\n");
    let change = filled(document.table());
    let tsv = written_as(&document, Change::Fill(&change), Format::Tsv, &[]);
    assert_eq!(String::from_utf8(tsv.clone()).unwrap(), "a\t\"b\tc\"\td\n1\t\"x\ty\"\t\"p,q\"\n7\tu\tv\n");
    let again = read(&Input::Bytes { name: "a.tsv".to_owned(), bytes: tsv }, &ReadOptions::default()).unwrap();
    assert_eq!(again.format(), Format::Tsv);
    let csv = written_as(&again, Change::Fill(again.table()), Format::Csv, &[]);
    assert_eq!(String::from_utf8(csv).unwrap(), "a,\"b\tc\",d\n1,\"x\ty\",\"p,q\"\n7,u,v\n");
}

#[test]
fn without_a_header_columns_are_numbered() {
    let options = ReadOptions { header: false, ..ReadOptions::default() };
    let document = read(&input("1,x\n,y\n"), &options).unwrap();
    assert_eq!(document.table().schema().columns()[1].name, "column_2");
    assert_eq!(written(&document, Change::Fill(&filled(document.table()))), b"1,x\n7,y\n");
}

fn streamed(bytes: &[u8], training: &Document, rows: usize) -> Vec<u8> {
    let mut chunks =
        open_chunks(&input(bytes), &ReadOptions::default(), training.reading(), training.table().schema(), rows)
            .unwrap();
    let mut out = Vec::new();
    let mut writer = DocumentWriter::new(Box::new(&mut out), Format::Csv, Vec::new());
    while let Some(chunk) = chunks.next().unwrap() {
        assert!(chunk.table().rows() <= rows);
        writer.write(&chunk, Change::Fill(&filled(chunk.table()))).unwrap();
    }
    writer.finish().unwrap();
    out
}

#[test]
fn chunks_of_any_size_write_the_same_bytes() {
    let mut text = "\u{feff}n,c,when,t\r\n".to_owned();
    for i in 0..50 {
        let n = if i % 3 == 0 { "NA".to_owned() } else { i.to_string() };
        let c = ["red", "", "\"b\r\nlue\""][i % 3];
        text += &format!("{n},{c},2024-01-{:02},word {i} of it\r\n", i % 28 + 1);
        if i % 10 == 0 {
            text += "\r\n";
        }
    }
    text += "\n\n";
    let training = document(text.as_bytes());
    let whole = written(&training, Change::Fill(&filled(training.table())));
    for rows in [1, 7, 1000] {
        assert_eq!(streamed(text.as_bytes(), &training, rows), whole, "{rows} rows at a time");
    }
}

#[test]
fn new_rows_are_matched_by_name_and_unseen_levels_come_back() {
    let training = document("n,c,id\n1,red,a1\n2,red,a2\n3,blue,a3\n4,blue,a4\n");
    let rows = b"extra\tc\tn\nu\tgreen\t\nv\t\t5\n\tred\tNA\n";
    let reading = training.reading().clone();
    let json = serde_json::to_string(&reading).unwrap();
    assert_eq!(serde_json::from_str::<m3impute_io::Reading>(&json).unwrap(), reading);
    let mut chunks =
        open_chunks(&input(&rows[..]), &ReadOptions::default(), &reading, training.table().schema(), 10).unwrap();
    let chunk = chunks.next().unwrap().unwrap();
    let names: Vec<&str> = chunk.table().schema().columns().iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["n", "c", "id"]);
    assert!(!chunk.table().observed().get(0, 1));
    let out = written(&chunk, Change::Fill(&filled(chunk.table())));
    assert_eq!(String::from_utf8(out).unwrap(), "extra\tc\tn\nu\tgreen\t7\nv\tblue\t5\n\tred\t7\n");
    assert!(chunks.next().unwrap().is_none());
    assert_eq!(chunks.findings()[1].unseen, 1);
    let note = &chunks.findings()[1].notes[0].text;
    assert_eq!(note, "1 cell has a level never seen in training (`green`): taken as unknown");
}

fn field() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => "[0-9]{1,3}",
        1 => "-?[0-9]{1,3}\\.[0-9]{1,3}",
        3 => "[a-c]{1,2}",
        1 => "\"([a-z,;\t\n\r]|\"\"){0,5}\"",
        1 => Just(String::new()),
        1 => Just("NA".to_owned()),
        1 => Just(" ".to_owned()),
        1 => "[a-zé\"]{2,5}".prop_filter("a quote at the front opens a field", |t| !t.starts_with('"')),
    ]
}

/// A table as text, and its delimiter.
fn table() -> impl Strategy<Value = (String, u8)> {
    let fields =
        (2usize..5, 1usize..8).prop_flat_map(|(cols, rows)| (Just(cols), prop::collection::vec(field(), cols * rows)));
    let delimiter = prop::sample::select(&b",;\t|"[..]);
    let end = prop::sample::select(&["\n", "\r\n"][..]);
    (fields, delimiter, end, any::<[bool; 3]>()).prop_map(|((cols, fields), delimiter, end, [bom, last, blank])| {
        let d = char::from(delimiter).to_string();
        let mut text = if bom { "\u{feff}".to_owned() } else { String::new() };
        text += &(0..cols).map(|j| format!("c{j}")).collect::<Vec<_>>().join(&d);
        for record in fields.chunks(cols) {
            text += end;
            text += &record.join(&d);
        }
        if last {
            text += end;
            if blank {
                text += end;
            }
        }
        (text, delimiter)
    })
}

proptest! {
    #[test]
    fn nothing_filled_is_the_same_bytes((text, delimiter) in table()) {
        let options = ReadOptions { delimiter: Some(delimiter), infinities: Infinities::Missing, ..ReadOptions::default() };
        let Ok(document) = read(&input(text.as_bytes()), &options) else { return Err(TestCaseError::fail(text)) };
        prop_assert_eq!(written(&document, Change::Fill(document.table())), text.as_bytes());
        let observed = Observed::all(document.table().rows(), document.table().cols());
        prop_assert_eq!(written(&document, Change::Hide(&observed)), text.as_bytes());
    }

    #[test]
    fn only_holes_differ_once_filled((text, delimiter) in table()) {
        let options = ReadOptions { delimiter: Some(delimiter), infinities: Infinities::Missing, ..ReadOptions::default() };
        let before = read(&input(text.as_bytes()), &options).unwrap();
        let bytes = written(&before, Change::Fill(&filled(before.table())));
        // Read again as before, the observed cells are the same and no missing cell that could be filled is left.
        let mut again = open_chunks(&input(bytes), &options, before.reading(), before.table().schema(), 100).unwrap();
        let after = again.next().unwrap().unwrap();
        let (old, new) = (before.table(), after.table());
        prop_assert_eq!(old.rows(), new.rows());
        for col in 0..old.cols() {
            let spec = &old.schema().columns()[col];
            for row in 0..old.rows() {
                if old.observed().get(row, col) {
                    prop_assert!(new.observed().get(row, col));
                    prop_assert_eq!(old.number(row, col).to_bits(), new.number(row, col).to_bits());
                } else if spec.is_filled() && (spec.kind.is_number() || !spec.levels.is_empty()) {
                    prop_assert!(new.observed().get(row, col), "{} {}", row, col);
                }
            }
        }
    }

    #[test]
    fn chunks_write_what_the_whole_writes((text, delimiter) in table(), rows in 1usize..5) {
        let options = ReadOptions { delimiter: Some(delimiter), infinities: Infinities::Missing, ..ReadOptions::default() };
        let whole = read(&input(text.as_bytes()), &options).unwrap();
        let expected = written(&whole, Change::Fill(&filled(whole.table())));
        let schema = whole.table().schema();
        let mut chunks = open_chunks(&input(text.as_bytes()), &options, whole.reading(), schema, rows).unwrap();
        let mut out = Vec::new();
        let mut writer = DocumentWriter::new(Box::new(&mut out), Format::Csv, Vec::new());
        while let Some(chunk) = chunks.next().unwrap() {
            writer.write(&chunk, Change::Fill(&filled(chunk.table()))).unwrap();
        }
        writer.finish().unwrap();
        prop_assert_eq!(out, expected);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), header: bool) {
        let options = ReadOptions { header, ..ReadOptions::default() };
        if let Ok(document) = read(&input(bytes.clone()), &options) {
            prop_assert_eq!(written(&document, Change::Fill(document.table())), bytes);
        }
    }

    #[test]
    fn no_table_like_bytes_make_the_reader_panic(text in "[ab1,;\"\n\r\t.\u{e9}-]{0,80}", latin: bool) {
        let encoding = latin.then_some(Encoding::Latin1);
        let options = ReadOptions { encoding, ..ReadOptions::default() };
        if let Ok(document) = read(&input(text.as_bytes()), &options) {
            prop_assert_eq!(written(&document, Change::Fill(document.table())), text.as_bytes());
        }
    }
}
