//! Batches with further columns after their own.

use super::change::strings;
use crate::datetime::Zone;
use crate::document::{Document, Source};
use crate::error::{Error, Result};
use crate::extra::{ExtraColumn, ValueFormat};
use arrow_array::{ArrayRef, Date32Array, Float64Array, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Schema};
use m3impute_core::Kind;
use std::sync::Arc;

/// The batches of a document with these columns after the others.
pub(crate) fn with_extras(
    document: &Document,
    batches: Vec<RecordBatch>,
    extras: &[ExtraColumn],
) -> Result<Vec<RecordBatch>> {
    let values = document.values_in_holes(extras);
    let arrays: Vec<ArrayRef> = extras.iter().zip(&values).map(|(extra, v)| array_of(document, extra, v)).collect();
    let mut first = 0;
    batches
        .into_iter()
        .map(|batch| {
            let rows = batch.num_rows();
            let own = batch.schema();
            let more =
                extras.iter().zip(&arrays).map(|(e, a)| Arc::new(Field::new(&e.name, a.data_type().clone(), true)));
            let fields: Vec<Arc<Field>> = own.fields().iter().cloned().chain(more).collect();
            let schema = Schema::new_with_metadata(fields, own.metadata().clone());
            let more = arrays.iter().map(|a| a.slice(first, rows));
            let columns = batch.columns().iter().cloned().chain(more).collect();
            first += rows;
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)
                .map_err(|e| Error::Bug(e.to_string()))
        })
        .collect()
}

/// Timestamps keep to the type of their column, levels are text, all else is a number that need not be whole: chunks of
/// one file have the same types whatever they hold.
fn array_of(document: &Document, extra: &ExtraColumn, values: &[Option<f64>]) -> ArrayRef {
    let spec = &document.table.schema().columns()[extra.of];
    match (extra.format, spec.kind) {
        (ValueFormat::AsColumn, kind) if kind.has_levels() => {
            let texts: Vec<Option<String>> =
                values.iter().map(|v| v.and_then(|v| spec.levels.get(v as usize).cloned())).collect();
            strings(texts.iter().map(Option::as_deref), &DataType::Utf8)
        }
        (ValueFormat::AsColumn, Kind::Datetime) if spec.step >= 86_400.0 => {
            Arc::new(values.iter().map(|v| v.map(|v| (v / 86_400.0).round() as i32)).collect::<Date32Array>())
        }
        (ValueFormat::AsColumn, Kind::Datetime) => {
            let array: TimestampMicrosecondArray = values.iter().map(|v| v.map(|v| (v * 1e6).round() as i64)).collect();
            Arc::new(array.with_timezone_opt(zone_of(document, extra.of)))
        }
        _ => Arc::new(values.iter().copied().collect::<Float64Array>()),
    }
}

/// The zone in which a column shows its timestamps.
fn zone_of(document: &Document, col: usize) -> Option<Arc<str>> {
    match &document.source {
        Source::Text(_) => {
            let time = document.reading.columns[col].timestamp.and_then(|m| m.time);
            time.filter(|t| t.zone != Zone::None).map(|_| Arc::from("UTC"))
        }
        Source::Arrow(source) => match source.schema.field(source.fields[col]?).data_type() {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => None,
        },
    }
}
