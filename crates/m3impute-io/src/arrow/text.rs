//! From text to Arrow and from Arrow to text.

use super::change::{changed_batches, strings, with_keys};
use super::columns::{Sort, sort_of, step_of, written};
use crate::cells::Cells;
use crate::csv::{Fields, TextSource, put_field};
use crate::datetime::Zone;
use crate::document::{Change, Document};
use crate::error::{Error, Result};
use crate::extra::ExtraColumn;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch, RecordBatchOptions,
    TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema};
use m3impute_core::{Kind, Table, Values};
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;

/// A text document as one batch: numbers as such, categories as dictionaries, all else as text.
pub(crate) fn batch_of_text(
    document: &Document,
    source: &TextSource,
    change: Change<'_>,
    drop: &[String],
) -> Result<RecordBatch> {
    let hidden;
    let table: &Table = match change {
        Change::Fill(filled) => filled,
        Change::Hide(observed) => {
            let mut table = document.table.clone();
            for col in 0..table.cols() {
                for row in 0..table.rows() {
                    if !observed.get(row, col) {
                        table.hide(row, col);
                    }
                }
            }
            hidden = table;
            &hidden
        }
    };
    let tokens = source.tokens();
    let columns: HashMap<usize, usize> =
        source.fields.iter().enumerate().filter_map(|(col, field)| Some(((*field)?, col))).collect();
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for (field, name) in source.names.iter().enumerate() {
        if drop.contains(name) {
            continue;
        }
        let col = columns.get(&field).copied();
        let cells = Fields { text: &source.text, tokens: &tokens, field };
        let array = match col {
            Some(col) => array_of(document, source, table, change, col, &cells),
            None => strings(texts(&cells).iter().map(|t| Some(t.as_str()).filter(|t| !t.is_empty())), &DataType::Utf8),
        };
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(table.rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .map_err(|e| Error::Bug(e.to_string()))
}

fn texts(cells: &Fields<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    let seen: std::result::Result<(), Infallible> = cells.each(|_, cell| {
        texts.push(cell.map_or_else(String::new, |c| c.string()));
        Ok(())
    });
    let Ok(()) = seen;
    texts
}

fn array_of(
    document: &Document,
    source: &TextSource,
    table: &Table,
    change: Change<'_>,
    col: usize,
    cells: &Fields<'_>,
) -> ArrayRef {
    let spec = &document.table.schema().columns()[col];
    match table.values(col) {
        Values::Numbers(values) => {
            let some = values.iter().map(|&v| (!v.is_nan()).then_some(v));
            match spec.kind {
                Kind::Datetime if spec.step >= 86_400.0 => {
                    Arc::new(some.map(|v| v.map(|v| (v / 86_400.0).round() as i32)).collect::<Date32Array>())
                }
                Kind::Datetime => {
                    let zoned = document.reading.columns[col]
                        .timestamp
                        .and_then(|m| m.time)
                        .is_some_and(|t| t.zone != Zone::None);
                    let array: TimestampMicrosecondArray = some.map(|v| v.map(|v| (v * 1e6).round() as i64)).collect();
                    Arc::new(array.with_timezone_opt(zoned.then_some("UTC")))
                }
                Kind::Integer if values.iter().all(|v| v.is_nan() || *v == v.trunc()) => {
                    Arc::new(some.map(|v| v.map(|v| v as i64)).collect::<Int64Array>())
                }
                _ => Arc::new(some.collect::<Float64Array>()),
            }
        }
        Values::Codes(codes) => {
            let observed = table.observed().column(col);
            if spec.kind == Kind::Boolean && spec.levels.len() == 2 {
                let flags = codes.iter().zip(observed).map(|(&c, &o)| o.then_some(c == 1));
                return Arc::new(flags.collect::<BooleanArray>());
            }
            // A level that training never saw is in the text, but not in the table.
            let own: Vec<String> = texts(cells);
            let holes = holes_of(source, col);
            let mut levels = table.schema().columns()[col].levels.clone();
            let mut at: HashMap<String, usize> = levels.iter().cloned().zip(0..).collect();
            let mut key = |row: usize| {
                if observed[row] {
                    return Some(codes[row] as usize);
                }
                let was_hidden = matches!(change, Change::Hide(o) if !o.get(row, col));
                if was_hidden || holes.contains(&(row as u32)) {
                    return None;
                }
                let next = levels.len();
                Some(*at.entry(own[row].clone()).or_insert_with_key(|level| {
                    levels.push(level.clone());
                    next
                }))
            };
            let keys: Vec<Option<usize>> = (0..codes.len()).map(&mut key).collect();
            let values = strings(levels.iter().map(|l| Some(l.as_str())), &DataType::Utf8);
            // More levels than a signed key counts would be more rows than memory holds.
            with_keys(&keys, values.clone(), &DataType::Int32).unwrap_or(values)
        }
        Values::Opaque => {
            let observed = table.observed().column(col);
            let own = texts(cells);
            strings(own.iter().zip(observed).map(|(t, &o)| o.then_some(t.as_str())), &DataType::Utf8)
        }
    }
}

fn holes_of(source: &TextSource, col: usize) -> HashSet<u32> {
    source.holes.iter().filter(|h| h.col as usize == col).map(|h| h.row).collect()
}

/// The rows of an Arrow document as delimited text, after a header where it is the first chunk.
pub(crate) fn write_as_text(
    document: &Document,
    change: Change<'_>,
    delimiter: u8,
    (drop, extras): (&[String], &[ExtraColumn]),
    first: bool,
) -> Result<Vec<u8>> {
    let batches = changed_batches(document, change, drop, extras)?;
    let mut out = Vec::new();
    let Some(schema) = batches.first().map(RecordBatch::schema) else { return Ok(out) };
    if first {
        for (at, field) in schema.fields().iter().enumerate() {
            if at > 0 {
                out.push(delimiter);
            }
            put_field(field.name(), delimiter, false, &mut out);
        }
        out.push(b'\n');
    }
    for field in schema.fields() {
        let is_null = matches!(field.data_type(), DataType::Null);
        if matches!(sort_of(field.data_type()), Sort::Other | Sort::Span) && !is_null {
            let format = if delimiter == b'\t' { "tsv" } else { "csv" };
            return Err(Error::Unwritable { column: field.name().clone(), got: field.data_type().to_string(), format });
        }
    }
    for batch in &batches {
        let columns: Vec<Column> = batch.columns().iter().map(Column::of).collect();
        for row in 0..batch.num_rows() {
            for (at, column) in columns.iter().enumerate() {
                if at > 0 {
                    out.push(delimiter);
                }
                match &column.texts[row] {
                    Some(text) if column.bare => out.extend_from_slice(text.as_bytes()),
                    Some(text) => put_field(text, delimiter, false, &mut out),
                    None => {}
                }
            }
            out.push(b'\n');
        }
    }
    Ok(out)
}

struct Column {
    texts: Vec<Option<String>>,
    /// Whether the texts are numbers, which never need quotes.
    bare: bool,
}

impl Column {
    fn of(array: &ArrayRef) -> Column {
        let sort = sort_of(array.data_type());
        let fine = match array.data_type() {
            DataType::Timestamp(_, _) | DataType::Date64 => step_of(std::slice::from_ref(array)).min(1.0),
            _ => 86_400.0,
        };
        let texts = written(array, fine);
        Column { texts, bare: !matches!(sort, Sort::Text | Sort::Category) }
    }
}
