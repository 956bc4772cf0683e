//! Columns after a document's own: everything else comes back byte for byte.

use m3impute_core::{Kind, Schema, Table};
use m3impute_io::{
    Change, Document, DocumentWriter, ExtraColumn, Format, Input, ReadOptions, ValueFormat, open_chunks, read,
};

fn input(name: &str, bytes: impl Into<Vec<u8>>) -> Input {
    Input::Bytes { name: name.to_owned(), bytes: bytes.into() }
}

fn document(bytes: &str) -> Document {
    read(&input("a.csv", bytes), &ReadOptions::default()).unwrap()
}

/// `<column>_lower` of a column: a half less than what is filled, in every row.
fn lower(document: &Document, of: usize, filled: &Table) -> ExtraColumn {
    let name = format!("{}_lower", document.table().schema().columns()[of].name);
    let values = (0..filled.rows()).map(|i| Some(filled.number(i, of) - 0.5)).collect();
    ExtraColumn { name, of, format: ValueFormat::AsColumn, values }
}

/// Fills the missing cells of a column with a value.
fn filled(table: &Table, col: usize, value: f64) -> Table {
    let mut filled = table.clone();
    (0..table.rows()).filter(|&i| !table.observed().get(i, col)).for_each(|i| filled.fill(i, col, value));
    filled
}

fn written(document: &Document, table: &Table, format: Format, extras: &[ExtraColumn]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = DocumentWriter::new(Box::new(&mut out), format, Vec::new());
    writer.write_with(document, Change::Fill(table), extras).unwrap();
    writer.finish().unwrap();
    out
}

/// The text with `a`, its first column, filled with 7 and followed by its lower ends.
fn extended(text: &str) -> String {
    let document = document(text);
    let table = filled(document.table(), 0, 7.0);
    String::from_utf8(written(&document, &table, Format::Csv, &[lower(&document, 0, &table)])).unwrap()
}

#[test]
fn every_record_is_extended_and_nothing_else_changes() {
    assert_eq!(extended("a,b\n1.5,x\n,y\n"), "a,b,a_lower\n1.5,x,\n7,y,6.5\n");
    assert_eq!(extended("a,b\r\n1.5,x\r\n,y\r\n\r\n"), "a,b,a_lower\r\n1.5,x,\r\n7,y,6.5\r\n\r\n");
    assert_eq!(extended("a,b\n1.5,x\n,y"), "a,b,a_lower\n1.5,x,\n7,y,6.5");
    assert_eq!(extended("\n\"a\", b\n\n1.5,\"u\nv\"\"w\"\n\n,\"y,\"\n"), {
        "\n\"a\", b,a_lower\n\n1.5,\"u\nv\"\"w\",\n\n7,\"y,\",6.5\n"
    });
    assert_eq!(extended("\u{feff}a;b\n1,5;x\n;y\n"), "\u{feff}a;b;a_lower\n1,5;x;\n7;y;6,5\n");
    assert_eq!(extended("a\n1.5\n\n2\n"), "a,a_lower\n1.5,\n7,6.5\n2,\n");
}

#[test]
fn a_file_without_a_header_stays_without() {
    let options = ReadOptions { header: false, ..ReadOptions::default() };
    let document = read(&input("a.csv", "1.5,x\n,y\n"), &options).unwrap();
    let table = filled(document.table(), 0, 7.0);
    let out = written(&document, &table, Format::Csv, &[lower(&document, 0, &table)]);
    assert_eq!(String::from_utf8(out).unwrap(), "1.5,x,\n7,y,6.5\n");
}

#[test]
fn other_delimiters_and_names_with_them_are_quoted() {
    let document = document("\"a,1\",b\n1.5,x\n,y\n");
    let table = filled(document.table(), 0, 7.0);
    let extras = [lower(&document, 0, &table)];
    assert_eq!(written(&document, &table, Format::Csv, &extras), b"\"a,1\",b,\"a,1_lower\"\n1.5,x,\n7,y,6.5\n");
    assert_eq!(written(&document, &table, Format::Tsv, &extras), b"\"a,1\"\tb\ta,1_lower\n1.5\tx\t\n7\ty\t6.5\n");
}

#[test]
fn values_are_written_as_those_of_their_column() {
    let text = "day,size,n\n2024-01-31,L,1\n2024-02-01,S,2\n,,\n";
    let kinds = [("day", Kind::Datetime), ("size", Kind::Ordered), ("n", Kind::Integer)];
    let kinds = kinds.map(|(name, kind)| (name.to_owned(), kind)).to_vec();
    let document = read(&input("a.csv", text), &ReadOptions { kinds, ..ReadOptions::default() }).unwrap();
    let levels = &document.table().schema().columns()[1].levels;
    let small = levels.iter().position(|l| l == "S").unwrap() as f64;
    let extra = |name: &str, of, format, value| ExtraColumn {
        name: name.to_owned(),
        of,
        format,
        values: vec![None, None, Some(value)],
    };
    let extras = [
        extra("day_lower", 0, ValueFormat::AsColumn, 1_706_745_600.0 + 86_400.0),
        extra("size_lower", 1, ValueFormat::AsColumn, small),
        extra("n_lower", 2, ValueFormat::AsColumn, 3.0),
        extra("size_p_S", 1, ValueFormat::Plain, 0.25),
    ];
    let out = String::from_utf8(written(&document, document.table(), Format::Csv, &extras)).unwrap();
    assert_eq!(
        out,
        "day,size,n,day_lower,size_lower,n_lower,size_p_S\n2024-01-31,L,1,,,,\n2024-02-01,S,2,,,,\n,,,2024-02-02,S,3,0.25\n"
    );
    // The same through a file of types: timestamps stay timestamps, levels text, the rest numbers.
    let out = written(&document, document.table(), Format::Parquet, &extras);
    let back = read(&input("a.parquet", out), &ReadOptions::default()).unwrap();
    let kinds: Vec<Kind> = back.table().schema().columns().iter().map(|c| c.kind).collect();
    assert_eq!(kinds[3], Kind::Datetime);
    assert_eq!((back.table().number(2, 3), back.table().number(2, 6)), (1_706_832_000.0, 0.25));
    assert!((0..2).all(|i| (3..7).all(|j| !back.table().observed().get(i, j))));
    let schema = back.table().schema();
    assert_eq!(schema.columns().iter().map(|c| c.name.as_str()).nth(6), Some("size_p_S"));
}

#[test]
fn only_holes_of_the_file_have_entries() {
    // Training knows `x` and `y`; `z` is unknown to the model, but not missing.
    let training = document("a,b\n1,x\n2,y\n3,x\n4,y\n,x\n");
    let rows = "a,b\n1,z\n2,\n,x\n";
    let schema: &Schema = training.table().schema();
    let mut chunks =
        open_chunks(&input("b.csv", rows), &ReadOptions::default(), training.reading(), schema, 10).unwrap();
    let chunk = chunks.next().unwrap().unwrap();
    let values = vec![Some(0.5); 3];
    let extra = ExtraColumn { name: "b_p_x".to_owned(), of: 1, format: ValueFormat::Plain, values };
    let table = filled(chunk.table(), 1, 0.0);
    let out = String::from_utf8(written(&chunk, &table, Format::Csv, std::slice::from_ref(&extra))).unwrap();
    assert_eq!(out, "a,b,b_p_x\n1,z,\n2,x,0.5\n,x,\n");
}

#[test]
fn chunks_give_the_bytes_of_the_whole() {
    let text = "a,b\r\n1.5,x\r\n,\"y\r\n\"\r\n2.5,z\r\n,w\r\n";
    let whole = document(text);
    for format in [Format::Csv, Format::Arrow] {
        let all = filled(whole.table(), 0, 7.0);
        let all = written(&whole, &all, format, &[lower(&whole, 0, &all)]);
        let schema = whole.table().schema();
        let mut out = Vec::new();
        let mut writer = DocumentWriter::new(Box::new(&mut out), format, Vec::new());
        let mut chunks =
            open_chunks(&input("a.csv", text), &ReadOptions::default(), whole.reading(), schema, 1).unwrap();
        while let Some(chunk) = chunks.next().unwrap() {
            let table = filled(chunk.table(), 0, 7.0);
            writer.write_with(&chunk, Change::Fill(&table), &[lower(&chunk, 0, &table)]).unwrap();
        }
        writer.finish().unwrap();
        if format == Format::Csv {
            assert_eq!(out, all);
        }
        let [whole, chunked] = [all, out].map(|bytes| {
            let name = if format == Format::Csv { "a.csv" } else { "a.arrow" };
            read(&input(name, bytes), &ReadOptions::default()).unwrap().table().clone()
        });
        assert_eq!(whole.schema().columns()[2].name, "a_lower");
        assert_eq!((chunked.number(1, 2), chunked.number(3, 2)), (6.5, 6.5));
        assert!(!chunked.observed().get(0, 2) && whole.observed() == chunked.observed());
    }
}

#[test]
fn batches_in_several_parts_are_extended_and_written_as_text() {
    let whole = document("a,b\n1.5,x\n,y\n2.5,z\n");
    let table = filled(whole.table(), 0, 7.0);
    let parquet = written(&whole, whole.table(), Format::Parquet, &[]);
    let again = read(&input("a.parquet", parquet), &ReadOptions::default()).unwrap();
    let extras = [lower(&again, 0, &table)];
    assert_eq!(written(&again, &table, Format::Csv, &extras), b"a,b,a_lower\n1.5,x,\n7,y,6.5\n2.5,z,\n");
    let parquet = written(&again, &table, Format::Parquet, &extras);
    let back = read(&input("a.parquet", parquet), &ReadOptions::default()).unwrap();
    assert_eq!((back.table().number(1, 2), back.table().missing_in(2)), (6.5, 2));
}
