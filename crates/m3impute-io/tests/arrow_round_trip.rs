//! Parquet and Arrow: types, metadata and untouched cells are kept; missing cells are filled in the column's own type.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use m3impute_core::{Hint, Kind, Observed, Table};
use m3impute_io::arrow::{document_as_in, document_of_batches};
use m3impute_io::{Change, Document, DocumentWriter, Format, Infinities, Input, ReadOptions, open_chunks, read};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

fn sample() -> RecordBatch {
    let days = vec![Some(0), None, Some(3), Some(1)];
    let stamps = vec![Some(1_500), None, Some(-2), Some(7)];
    let strings = vec![Some("u"), None, Some("v"), Some("u")];
    let small: DictionaryArray<Int8Type> = strings.iter().copied().collect();
    let wide: DictionaryArray<UInt32Type> = strings.iter().copied().collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i8", Arc::new(Int8Array::from(vec![Some(1), None, Some(-3), Some(1)]))),
        ("i16", Arc::new(Int16Array::from(vec![Some(1), None, Some(-3), Some(1)]))),
        ("i32", Arc::new(Int32Array::from(vec![Some(1), None, Some(-3), Some(1)]))),
        ("i64", Arc::new(Int64Array::from(vec![Some(1), None, Some(-3), Some(1)]))),
        ("u8", Arc::new(UInt8Array::from(vec![Some(1), None, Some(3), Some(1)]))),
        ("u16", Arc::new(UInt16Array::from(vec![Some(1), None, Some(3), Some(1)]))),
        ("u32", Arc::new(UInt32Array::from(vec![Some(1), None, Some(3), Some(1)]))),
        ("u64", Arc::new(UInt64Array::from(vec![Some(1), None, Some(3), Some(1)]))),
        ("f32", Arc::new(Float32Array::from(vec![Some(0.1), None, Some(f32::NAN), Some(1.0)]))),
        ("f64", Arc::new(Float64Array::from(vec![Some(0.1), None, Some(f64::NAN), Some(1.0)]))),
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)]))),
        ("utf8", Arc::new(StringArray::from(strings.clone()))),
        ("large", Arc::new(LargeStringArray::from(strings.clone()))),
        ("view", Arc::new(StringViewArray::from(strings.clone()))),
        ("dict8", Arc::new(small)),
        ("dict32", Arc::new(wide)),
        ("date32", Arc::new(Date32Array::from(days.clone()))),
        (
            "date64",
            Arc::new(Date64Array::from(days.iter().map(|d| d.map(|d| i64::from(d) * 86_400_000)).collect::<Vec<_>>())),
        ),
        ("s", Arc::new(TimestampSecondArray::from(stamps.clone()))),
        ("ms", Arc::new(TimestampMillisecondArray::from(stamps.clone()).with_timezone("UTC"))),
        ("us", Arc::new(TimestampMicrosecondArray::from(stamps.clone()).with_timezone("Europe/Berlin"))),
        ("ns", Arc::new(TimestampNanosecondArray::from(stamps.clone()))),
        ("huge", Arc::new(Int64Array::from(vec![Some(i64::MAX), None, Some(1), Some(2)]))),
        ("bytes", Arc::new(BinaryArray::from_opt_vec(vec![Some(b"x"), None, Some(b"yy"), Some(b"")]))),
        ("span", Arc::new(Time64MicrosecondArray::from(stamps))),
        (
            "list",
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
                Some(vec![Some(1), None]),
                None,
                Some(vec![]),
                Some(vec![Some(2)]),
            ])),
        ),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| {
            let about = HashMap::from([("about".to_owned(), (*name).to_owned())]);
            Field::new(*name, array.data_type().clone(), true).with_metadata(about)
        })
        .collect();
    let schema = Schema::new_with_metadata(fields, HashMap::from([("made".to_owned(), "by hand".to_owned())]));
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, array)| array).collect()).unwrap()
}

/// Fills each missing cell that may be filled: numbers with 5, levels with the last.
fn filled(table: &Table) -> Table {
    let mut filled = table.clone();
    for (col, spec) in table.schema().columns().iter().enumerate().filter(|(_, spec)| spec.is_filled()) {
        for row in 0..table.rows() {
            if !table.observed().get(row, col) {
                filled.fill(row, col, if spec.kind.is_number() { 5.0 } else { spec.levels.len() as f64 - 1.0 });
            }
        }
    }
    filled
}

fn written(document: &Document, change: Change<'_>, format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = DocumentWriter::new(Box::new(&mut out), format, Vec::new());
    writer.write(document, change).unwrap();
    writer.finish().unwrap();
    out
}

fn input(bytes: Vec<u8>, format: Format) -> Input {
    Input::Bytes { name: format!("t.{}", format.name()), bytes }
}

fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(&mut out, &batches[0].schema()).unwrap();
    batches.iter().for_each(|b| writer.write(b).unwrap());
    writer.finish().unwrap();
    out
}

#[test]
fn every_type_has_its_kind() {
    let document = document_of_batches(vec![sample()], &ReadOptions::default()).unwrap();
    for spec in document.table().schema().columns() {
        let expected = match spec.name.as_str() {
            "f32" | "f64" => Kind::Continuous,
            "flag" => Kind::Boolean,
            "utf8" | "large" | "view" | "dict8" | "dict32" => Kind::Categorical,
            "date32" | "date64" | "s" | "ms" | "us" | "ns" => Kind::Datetime,
            "huge" => Kind::Identifier,
            "bytes" | "span" | "list" => Kind::Text,
            _ => Kind::Integer,
        };
        assert_eq!(spec.kind, expected, "{}", spec.name);
    }
    assert_eq!(document.table().missing_in(9), 2);
    assert_eq!(document.table().schema().columns()[16].step, 86_400.0);
}

#[test]
fn holes_are_filled_in_their_own_type_and_the_rest_is_untouched() {
    let batch = sample();
    let document = document_of_batches(vec![batch.clone()], &ReadOptions::default()).unwrap();
    let same = document.filled_batches(Change::Fill(document.table())).unwrap();
    // NaN is never equal to itself, so these are compared as text.
    assert_eq!(format!("{:?}", same[0]), format!("{batch:?}"));
    let out = document.filled_batches(Change::Fill(&filled(document.table()))).unwrap().remove(0);
    assert_eq!(out.schema(), batch.schema());
    for (name, array) in batch.schema().fields().iter().map(|f| f.name()).zip(out.columns()) {
        let kept = ["huge", "bytes", "span", "list"].contains(&name.as_str());
        assert_eq!(array.null_count(), usize::from(kept), "{name}");
    }
    assert_eq!(out["i8"].as_primitive::<Int8Type>().values(), &[1, 5, -3, 1]);
    assert_eq!(out["u64"].as_primitive::<UInt64Type>().values(), &[1, 5, 3, 1]);
    assert_eq!(out["f32"].as_primitive::<Float32Type>().values(), &[0.1, 5.0, 5.0, 1.0]);
    assert_eq!(out["huge"].as_primitive::<Int64Type>().value(0), i64::MAX);
    assert!(out["flag"].as_boolean().value(1));
    assert_eq!(out["view"].as_string_view().value(1), "v");
    let dict = out["dict8"].as_dictionary::<Int8Type>();
    assert_eq!(dict.values().as_string::<i32>().value(dict.keys().value(1) as usize), "v");
    assert_eq!(out["date32"].as_primitive::<Date32Type>().values(), &[0, 0, 3, 1]);
    assert_eq!(out["ms"].as_primitive::<TimestampMillisecondType>().values(), &[1_500, 5_000, -2, 7]);
    assert_eq!(out["ns"].as_primitive::<TimestampNanosecondType>().value(1), 5_000_000_000);
}

#[test]
fn files_of_both_formats_come_back() {
    let batch = sample();
    let document = document_of_batches(vec![batch.clone(), batch.slice(1, 2)], &ReadOptions::default()).unwrap();
    for format in [Format::Parquet, Format::Arrow] {
        let bytes = written(&document, Change::Fill(document.table()), format);
        let again = read(&input(bytes, format), &ReadOptions::default()).unwrap();
        assert_eq!(again.format(), format);
        let batches = again.filled_batches(Change::Fill(again.table())).unwrap();
        assert_eq!(batches[0].schema(), batch.schema());
        assert_eq!(format!("{:?}", batches[0].slice(0, 4)["ns"]), format!("{:?}", batch["ns"]));
        assert_eq!(again.table().observed(), document.table().observed());
        assert_eq!(again.table().fingerprint(), document.table().fingerprint());
    }
}

#[test]
fn a_stream_stays_a_stream() {
    let bytes = stream(&[sample()]);
    let document = read(&input(bytes.clone(), Format::Arrow), &ReadOptions::default()).unwrap();
    let out = written(&document, Change::Fill(document.table()), Format::Arrow);
    assert_eq!(out[..4], bytes[..4]);
    let again = read(&input(out, Format::Arrow), &ReadOptions::default()).unwrap();
    assert_eq!(again.table().fingerprint(), document.table().fingerprint());
}

#[test]
fn the_first_bytes_tell_the_format_of_a_nameless_input() {
    let bytes = stream(&[sample()]);
    let document = read(&Input::Bytes { name: "stdin".to_owned(), bytes }, &ReadOptions::default()).unwrap();
    assert_eq!(document.format(), Format::Arrow);
}

#[test]
fn chunks_of_any_size_give_the_same_table() {
    let batch = sample();
    let training = document_of_batches(vec![batch.clone(), batch.clone()], &ReadOptions::default()).unwrap();
    for format in [Format::Parquet, Format::Arrow] {
        let bytes = written(&training, Change::Fill(training.table()), format);
        let mut outs = Vec::new();
        for rows in [1, 3, 100] {
            let (reading, schema) = (training.reading(), training.table().schema());
            let mut chunks =
                open_chunks(&input(bytes.clone(), format), &ReadOptions::default(), reading, schema, rows).unwrap();
            let mut out = Vec::new();
            let mut writer = DocumentWriter::new(Box::new(&mut out), format, Vec::new());
            while let Some(chunk) = chunks.next().unwrap() {
                assert!(chunk.table().rows() <= rows);
                writer.write(&chunk, Change::Fill(&filled(chunk.table()))).unwrap();
            }
            writer.finish().unwrap();
            let again = read(&input(out, format), &ReadOptions::default()).unwrap();
            outs.push(again.table().clone());
            assert_eq!(chunks.findings()[0].rows, 8);
        }
        assert!(outs.iter().all(|t| *t == outs[0]), "{format:?}");
    }
}

#[test]
fn compression_is_kept() {
    use parquet::basic::{Compression, ZstdLevel};
    for compression in [Compression::UNCOMPRESSED, Compression::ZSTD(ZstdLevel::default())] {
        let mut bytes = Vec::new();
        let properties = parquet::file::properties::WriterProperties::builder().set_compression(compression).build();
        let mut writer = parquet::arrow::ArrowWriter::try_new(&mut bytes, sample().schema(), Some(properties)).unwrap();
        writer.write(&sample()).unwrap();
        writer.close().unwrap();
        let document = read(&input(bytes, Format::Parquet), &ReadOptions::default()).unwrap();
        let out = written(&document, Change::Fill(document.table()), Format::Parquet);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), out).unwrap();
        let file = file.reopen().unwrap();
        let builder = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let found = builder.metadata().row_group(0).column(0).compression();
        assert_eq!(std::mem::discriminant(&found), std::mem::discriminant(&compression));
    }
}

#[test]
fn hidden_cells_are_null() {
    let document = document_of_batches(vec![sample()], &ReadOptions::default()).unwrap();
    let mut observed = Observed::all(4, document.table().cols());
    (0..document.table().cols()).for_each(|col| observed.set(0, col, false));
    let out = document.filled_batches(Change::Hide(&observed)).unwrap().remove(0);
    assert!(out.columns().iter().all(|a| a.is_null(0) && a.null_count() == 2));
    assert_eq!(out["i64"].as_primitive::<Int64Type>().value(2), -3);
}

#[test]
fn a_number_that_is_none_is_missing_among_levels_too() {
    let codes = Float64Array::from(vec![Some(1.0), Some(f64::NAN), None, Some(2.0)]);
    let batch = RecordBatch::try_from_iter(vec![("code", Arc::new(codes) as ArrayRef)]).unwrap();
    let kinds = vec![("code".to_owned(), Kind::Categorical)];
    let document = document_of_batches(vec![batch], &ReadOptions { kinds, ..ReadOptions::default() }).unwrap();
    assert_eq!(document.table().schema().columns()[0].levels, ["1", "2"]);
    assert_eq!(document.holes(0), [1, 2]);
}

#[test]
fn lengths_of_time_are_filled_in_their_unit() {
    let spans = DurationMillisecondArray::from(vec![Some(90), None, Some(30)]);
    let batch = RecordBatch::try_from_iter(vec![("took", Arc::new(spans) as ArrayRef)]).unwrap();
    let document = document_of_batches(vec![batch], &ReadOptions::default()).unwrap();
    let mut table = document.table().clone();
    table.fill(1, 0, 60.0);
    assert_eq!((document.holes(0), document.filled_rows(0, &table)), (vec![1], vec![1]));
    let out = document.filled_batches(Change::Fill(&table)).unwrap().remove(0);
    assert_eq!(out["took"].as_primitive::<DurationMillisecondType>().values(), &[90, 60, 30]);
}

#[test]
fn decimals_are_filled_to_their_places_and_within_their_digits() {
    let cells = vec![Some(150), None, Some(325), Some(-1)];
    let whole = Decimal64Array::from(vec![Some(7), None, Some(9), Some(7)]).with_precision_and_scale(18, 0).unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("price", Arc::new(Decimal128Array::from(cells.clone()).with_precision_and_scale(10, 2).unwrap())),
        ("narrow", Arc::new(Decimal128Array::from(cells.clone()).with_precision_and_scale(3, 2).unwrap())),
        ("whole", Arc::new(whole)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let document = document_of_batches(vec![batch.clone()], &ReadOptions::default()).unwrap();
    let kinds: Vec<Kind> = document.table().schema().columns().iter().map(|c| c.kind).collect();
    assert_eq!(kinds, [Kind::Continuous, Kind::Continuous, Kind::Integer]);
    assert_eq!(document.table().number(2, 0), 3.25);
    let mut fills = filled(document.table());
    fills.fill(1, 0, 2.456);
    fills.fill(1, 1, 12.0);
    let out = document.filled_batches(Change::Fill(&fills)).unwrap().remove(0);
    assert_eq!(out.schema(), batch.schema());
    assert_eq!(out["price"].as_primitive::<Decimal128Type>().values(), &[150, 246, 325, -1]);
    assert_eq!(out["narrow"].as_primitive::<Decimal128Type>().value(1), 999); // `9.99` is the largest there is
    assert_eq!(out["whole"].as_primitive::<Decimal64Type>().value(1), 5);
    let text = String::from_utf8(written(&document, Change::Fill(&fills), Format::Csv)).unwrap();
    assert_eq!(text.lines().nth(2), Some("2.46,9.99,5"));
}

#[test]
fn a_dictionary_of_whole_numbers_is_filled_with_its_levels() {
    let batch_of = |keys: Vec<Option<i8>>, values: Vec<i64>| {
        let array = DictionaryArray::<Int8Type>::new(keys.into(), Arc::new(Int64Array::from(values)));
        RecordBatch::try_from_iter([("zip", Arc::new(array) as ArrayRef)]).unwrap()
    };
    let options = ReadOptions::default();
    let training = document_of_batches(vec![batch_of(vec![Some(0), None, Some(1)], vec![10, -20])], &options).unwrap();
    assert_eq!(training.table().schema().columns()[0].levels, ["-20", "10"]);
    let value = |batch: &RecordBatch, row: usize| {
        let array = batch["zip"].as_dictionary::<Int8Type>();
        array.values().as_primitive::<Int64Type>().value(array.keys().value(row) as usize)
    };
    let out = training.filled_batches(Change::Fill(&filled(training.table()))).unwrap().remove(0);
    assert_eq!([value(&out, 0), value(&out, 1), value(&out, 2)], [10, 10, -20]);
    // Rows whose dictionary lacks the level learn it.
    let rows = batch_of(vec![Some(0), None], vec![-20]);
    let rows = document_as_in(vec![rows], &options, training.reading(), training.table().schema()).unwrap();
    let out = rows.filled_batches(Change::Fill(&filled(rows.table()))).unwrap().remove(0);
    assert_eq!([value(&out, 0), value(&out, 1)], [-20, 10]);
}

#[test]
fn a_column_that_is_passed_through_because_of_its_type_says_so() {
    let mut columns = sample();
    let extension = HashMap::from([("ARROW:extension:name".to_owned(), "company.shape".to_owned())]);
    let fields: Vec<Field> = columns.schema().fields().iter().map(|f| f.as_ref().clone()).collect();
    let fields = fields.into_iter().map(|f| if f.name() == "list" { f.with_metadata(extension.clone()) } else { f });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    columns = RecordBatch::try_new(schema, columns.columns().to_vec()).unwrap();
    let document = document_of_batches(vec![columns], &ReadOptions::default()).unwrap();
    let notes = document.findings().iter().flat_map(|f| f.notes.iter().map(|n| (f.column.as_str(), n.text.as_str())));
    let passed: Vec<(&str, &str)> = notes.filter(|(_, text)| text.contains("neither")).collect();
    assert_eq!(
        passed,
        [
            ("huge", "of type Int64 beyond 2^53, which could not be filled exactly: neither filled nor used"),
            ("bytes", "of type Binary: neither filled nor used"),
            ("span", "of type Time64(µs): neither filled nor used"),
            ("list", "of type company.shape: neither filled nor used"),
        ]
    );
}

#[test]
fn an_ordered_dictionary_gives_ordered_levels() {
    let values = StringArray::from(vec!["low", "mid", "high"]);
    let keys = Int8Array::from(vec![Some(2), None, Some(0)]);
    let array = DictionaryArray::<Int8Type>::try_new(keys, Arc::new(values)).unwrap();
    let field = Field::new("c", array.data_type().clone(), true).with_dict_is_ordered(true);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(array)]).unwrap();
    let document = document_of_batches(vec![batch], &ReadOptions::default()).unwrap();
    let spec = &document.table().schema().columns()[0];
    assert_eq!((spec.kind, spec.levels.as_slice()), (Kind::Ordered, &["low", "mid", "high"].map(String::from)[..]));
}

#[test]
fn asked_kinds_hold_for_typed_columns_too() {
    let batch = RecordBatch::try_from_iter(vec![
        ("zip", Arc::new(Int32Array::from(vec![Some(10), None, Some(9)])) as ArrayRef),
        ("when", Arc::new(StringArray::from(vec![Some("2024-01-31"), None, Some("2024-02-01")]))),
        ("n", Arc::new(StringArray::from(vec![Some("1.5"), Some("?"), None]))),
    ])
    .unwrap();
    let kinds = [("zip", Kind::Ordered), ("when", Kind::Datetime), ("n", Kind::Continuous)];
    let options = ReadOptions { kinds: kinds.map(|(n, k)| (n.to_owned(), k)).to_vec(), ..ReadOptions::default() };
    let options = ReadOptions { na_columns: vec![("n".to_owned(), vec!["?".to_owned()])], ..options };
    let document = document_of_batches(vec![batch], &options).unwrap();
    assert_eq!(document.table().schema().columns()[0].levels, ["9", "10"]);
    let out = document.filled_batches(Change::Fill(&filled(document.table()))).unwrap().remove(0);
    assert_eq!(out["zip"].as_primitive::<Int32Type>().values(), &[10, 10, 9]);
    assert_eq!(out["when"].as_string::<i32>().value(1), "1970-01-01");
    assert_eq!(out["n"].as_string::<i32>().iter().collect::<Vec<_>>(), [Some("1.5"), Some("5"), Some("5")]);
}

#[test]
fn sentinels_and_infinities_are_missing_where_asked() {
    let batch = RecordBatch::try_from_iter(vec![
        ("a", Arc::new(Int32Array::from(vec![1, -99, 2])) as ArrayRef),
        ("b", Arc::new(Float64Array::from(vec![f64::INFINITY, 1.0, 2.0]))),
    ])
    .unwrap();
    let error = document_of_batches(vec![batch.clone()], &ReadOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "`table`, row 1, column `b`: expected a finite number, got `inf`");
    let na_columns = vec![("a".to_owned(), vec!["-99".to_owned()])];
    let options = ReadOptions { na_columns, infinities: Infinities::Missing, ..ReadOptions::default() };
    let document = document_of_batches(vec![batch], &options).unwrap();
    let out = document.filled_batches(Change::Fill(&filled(document.table()))).unwrap().remove(0);
    assert_eq!(out["a"].as_primitive::<Int32Type>().values(), &[1, 5, 2]);
    assert_eq!(out["b"].as_primitive::<Float64Type>().values(), &[5.0, 1.0, 2.0]);
}

#[test]
fn text_goes_to_arrow_and_back() {
    let csv = "n,x,c,f,when,id,t\n1,0.5,red,yes,2024-01-31,k1,2024-01-31T10:00:00Z\n,,,,,,\n3,1.5,red,no,2024-02-01,k2,2024-01-31T10:00:01Z\n";
    let document = read(&input(csv.into(), Format::Csv), &ReadOptions::default()).unwrap();
    for format in [Format::Parquet, Format::Arrow] {
        let bytes = written(&document, Change::Fill(document.table()), format);
        let typed = read(&input(bytes, format), &ReadOptions::default()).unwrap();
        let batch = typed.filled_batches(Change::Fill(typed.table())).unwrap().remove(0);
        let types: Vec<DataType> = batch.schema().fields().iter().map(|f| f.data_type().clone()).collect();
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let stamp = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let (int, float) = (DataType::Int64, DataType::Float64);
        assert_eq!(types, [int, float, dictionary, DataType::Boolean, DataType::Date32, DataType::Utf8, stamp]);
        assert!(batch.columns().iter().all(|a| a.null_count() == 1));
        let csv = String::from_utf8(written(&typed, Change::Fill(typed.table()), Format::Csv)).unwrap();
        let expected = "n,x,c,f,when,id,t\n1,0.5,red,true,2024-01-31,k1,2024-01-31T10:00:00Z\n,,,,,,\n3,1.5,red,false,2024-02-01,k2,2024-01-31T10:00:01Z\n";
        assert_eq!(csv, expected);
    }
}

#[test]
fn a_nested_column_has_no_text() {
    let document = document_of_batches(vec![sample()], &ReadOptions::default()).unwrap();
    let mut writer = DocumentWriter::new(Box::new(std::io::sink()), Format::Csv, Vec::new());
    let error = writer.write(&document, Change::Fill(document.table())).unwrap_err();
    assert_eq!(error.to_string(), "column `bytes` of type Binary cannot be written as csv");
}

#[test]
fn rows_in_memory_are_read_as_in_training() {
    let training = read(&input(b"n,c\n1,red\n2,red\n,blue\n".to_vec(), Format::Csv), &ReadOptions::default()).unwrap();
    let batch = RecordBatch::try_from_iter(vec![
        ("c", Arc::new(StringArray::from(vec!["blue", "green"])) as ArrayRef),
        ("n", Arc::new(Int64Array::from(vec![None, Some(4)]))),
    ])
    .unwrap();
    let schema = training.table().schema();
    let rows = document_as_in(vec![batch], &ReadOptions::default(), training.reading(), schema).unwrap();
    assert_eq!(rows.table().schema(), schema);
    assert_eq!((rows.table().number(1, 0), rows.findings()[1].unseen), (4.0, 1));
    let out = rows.filled_batches(Change::Fill(&filled(rows.table()))).unwrap().remove(0);
    assert_eq!(out["n"].as_primitive::<Int64Type>().values(), &[5, 4]);
    assert_eq!(out["c"].as_string::<i32>().value(1), "green");
}

#[test]
fn a_cut_file_is_an_error_that_says_so() {
    let document = document_of_batches(vec![sample()], &ReadOptions::default()).unwrap();
    for format in [Format::Parquet, Format::Arrow] {
        let bytes = written(&document, Change::Fill(document.table()), format);
        let error = read(&input(bytes[..bytes.len() / 2].to_vec(), format), &ReadOptions::default()).unwrap_err();
        let name = format.name();
        let expected =
            format!("`t.{name}` is not a readable {name} file: it is cut off: the mark at its end is missing");
        assert_eq!(error.to_string(), expected);
        let error = read(&input(b"a,b\n1,2\n".to_vec(), format), &ReadOptions::default()).unwrap_err();
        assert_eq!(error.hint(), Some(Hint::ReadAs { what: "text", format: "csv" }));
    }
    let bytes = stream(&[sample()]);
    let error = read(&input(bytes[..bytes.len() / 2].to_vec(), Format::Arrow), &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("cut off inside a"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_readers_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), which in 0usize..3) {
        let start: &[u8] = [&b"PAR1"[..], b"ARROW1\0\0", &[0xff, 0xff, 0xff, 0xff, 16, 0, 0, 0]][which];
        let end: &[u8] = [&b"PAR1"[..], b"ARROW1", b""][which];
        let format = [Format::Parquet, Format::Arrow, Format::Arrow][which];
        let bytes = [start, &bytes, end].concat();
        let _ = read(&input(bytes, format), &ReadOptions::default());
    }

    #[test]
    fn no_changed_byte_makes_the_readers_panic(at in any::<prop::sample::Index>(), byte: u8, which in 0usize..3) {
        let plain = sample().project(&[0, 3, 9, 10, 11, 14, 16, 18]).unwrap();
        let document = document_of_batches(vec![plain.clone()], &ReadOptions::default()).unwrap();
        let format = [Format::Parquet, Format::Arrow, Format::Arrow][which];
        let mut bytes = match which {
            2 => stream(&[plain]),
            _ => written(&document, Change::Fill(document.table()), format),
        };
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(document) = read(&input(bytes, format), &ReadOptions::default()) {
            let _ = document.filled_batches(Change::Fill(&filled(document.table())));
        }
    }
}
