//! Batches with missing cells filled or cells hidden: the same types, untouched cells bit for bit.

use super::columns::{Sort, dictionary, levels_of, per_second, sort_of, ten_to, text_at};
use super::read::ArrowSource;
use crate::column::filled_text;
use crate::document::{Change, Document, Source};
use crate::error::{Error, Result};
use crate::extra::ExtraColumn;
use crate::number::{self, Number};
use arrow_array::builder::{LargeStringBuilder, StringBuilder, StringViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, PrimitiveArray, RecordBatch};
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, NullBuffer, i256};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use m3impute_core::{Kind, Values};
use std::collections::HashMap;
use std::sync::Arc;

/// The batches of a document with its changes, without the columns in `drop` and with `extras` after the others.
pub(crate) fn changed_batches(
    document: &Document,
    change: Change<'_>,
    drop: &[String],
    extras: &[ExtraColumn],
) -> Result<Vec<RecordBatch>> {
    let batches = match &document.source {
        Source::Text(source) => vec![super::text::batch_of_text(document, source, change, drop)?],
        Source::Arrow(source) => source.changed(document, change, drop)?,
    };
    if extras.is_empty() { Ok(batches) } else { super::extras::with_extras(document, batches, extras) }
}

impl ArrowSource {
    fn changed(&self, document: &Document, change: Change<'_>, drop: &[String]) -> Result<Vec<RecordBatch>> {
        let mut column_of = vec![None; self.schema.fields().len()];
        for (col, field) in self.fields.iter().enumerate() {
            if let Some(field) = field {
                column_of[*field] = Some(col);
            }
        }
        let kept: Vec<usize> =
            (0..column_of.len()).filter(|&f| !drop.iter().any(|d| d == self.schema.field(f).name())).collect();
        let mut batches = Vec::with_capacity(self.batches.len());
        let mut first = 0;
        // A hidden cell needs a column that may have none.
        let fields: Vec<Arc<Field>> = kept
            .iter()
            .map(|&f| {
                let field = self.schema.fields()[f].clone();
                if matches!(change, Change::Hide(_)) && !field.is_nullable() {
                    Arc::new(field.as_ref().clone().with_nullable(true))
                } else {
                    field
                }
            })
            .collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, self.schema.metadata().clone()));
        for batch in &self.batches {
            let rows = batch.num_rows();
            let mut arrays = Vec::with_capacity(kept.len());
            for &field in &kept {
                let array = batch.column(field);
                arrays.push(match column_of[field] {
                    Some(col) => changed_array(document, &self.holes[col], change, col, first, array)?,
                    None => array.clone(),
                });
            }
            let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
            let changed = RecordBatch::try_new_with_options(schema.clone(), arrays, &options);
            batches.push(changed.map_err(|e| Error::Bug(e.to_string()))?);
            first += rows;
        }
        Ok(batches)
    }
}

/// One array with its changes. Its first row is row `first` of the table.
fn changed_array(
    document: &Document,
    holes: &[u32],
    change: Change<'_>,
    col: usize,
    first: usize,
    array: &ArrayRef,
) -> Result<ArrayRef> {
    match change {
        Change::Hide(observed) => {
            let hidden: Vec<usize> = (0..array.len()).filter(|&i| !observed.get(first + i, col)).collect();
            if hidden.is_empty() { Ok(array.clone()) } else { hide(array, &hidden) }
        }
        Change::Fill(filled) => {
            let begin = holes.partition_point(|&row| (row as usize) < first);
            let end = holes.partition_point(|&row| (row as usize) < first + array.len());
            let rows: Vec<usize> = holes[begin..end]
                .iter()
                .map(|&row| row as usize)
                .filter(|&row| filled.observed().get(row, col))
                .collect();
            if rows.is_empty() || matches!(filled.values(col), Values::Opaque) {
                return Ok(array.clone());
            }
            let fills = Fills { document, filled, col, first, rows };
            fills.into_array(array)
        }
    }
}

/// The array without the values of these rows.
fn hide(array: &ArrayRef, hidden: &[usize]) -> Result<ArrayRef> {
    let mut valid = BooleanBufferBuilder::new(array.len());
    match array.nulls() {
        Some(nulls) => valid.append_buffer(nulls.inner()),
        None => valid.append_n(array.len(), true),
    }
    for &row in hidden {
        valid.set_bit(row, false);
    }
    let nulls = NullBuffer::new(valid.finish());
    let data = array.to_data().into_builder().nulls(Some(nulls)).build();
    match data {
        Ok(data) => Ok(arrow_array::make_array(data)),
        Err(e) => Err(Error::Bug(e.to_string())),
    }
}

/// The cells of one array that are filled.
struct Fills<'a> {
    document: &'a Document,
    filled: &'a m3impute_core::Table,
    col: usize,
    first: usize,
    /// Rows of the table.
    rows: Vec<usize>,
}

impl Fills<'_> {
    fn text(&self, row: usize) -> Option<String> {
        filled_text(self.filled, row, self.col, &self.document.reading.columns[self.col])
    }

    /// The number of a filled cell; of a level, the number that its text is.
    fn number(&self, row: usize) -> f64 {
        let spec = &self.filled.schema().columns()[self.col];
        let value = self.filled.number(row, self.col);
        if !spec.kind.has_levels() {
            return value;
        }
        match spec.levels.get(value as usize).map(|l| number::parse(l.as_bytes(), b'.')) {
            Some(Number::Finite(v)) => v,
            _ => f64::NAN,
        }
    }

    /// The stored number of a filled decimal, within what its digits can hold.
    fn decimal(&self, row: usize, digits: u8, scale: i8) -> f64 {
        let largest = 10f64.powi(i32::from(digits)) - 1.0;
        (self.number(row) * ten_to(scale)).round().clamp(-largest, largest)
    }

    fn flag(&self, row: usize) -> bool {
        let spec = &self.filled.schema().columns()[self.col];
        let value = self.filled.number(row, self.col);
        if spec.kind == Kind::Boolean || !spec.kind.has_levels() {
            return value >= 0.5;
        }
        spec.levels.get(value as usize).is_some_and(|l| l == "true")
    }

    /// The seconds of a filled timestamp; of a level, those of its text.
    fn seconds(&self, row: usize) -> f64 {
        let spec = &self.filled.schema().columns()[self.col];
        let value = self.filled.number(row, self.col);
        if !spec.kind.has_levels() {
            return value;
        }
        spec.levels.get(value as usize).and_then(|l| crate::datetime::parse_iso(l)).unwrap_or(f64::NAN)
    }

    fn into_array(self, array: &ArrayRef) -> Result<ArrayRef> {
        let whole = |row| self.number(row).round();
        let date = |row: usize, scale: f64| (self.seconds(row) * scale).round();
        Ok(match array.data_type() {
            DataType::Int8 => self.primitive::<Int8Type>(array, |row| whole(row) as i8),
            DataType::Int16 => self.primitive::<Int16Type>(array, |row| whole(row) as i16),
            DataType::Int32 => self.primitive::<Int32Type>(array, |row| whole(row) as i32),
            DataType::Int64 => self.primitive::<Int64Type>(array, |row| whole(row) as i64),
            DataType::UInt8 => self.primitive::<UInt8Type>(array, |row| whole(row) as u8),
            DataType::UInt16 => self.primitive::<UInt16Type>(array, |row| whole(row) as u16),
            DataType::UInt32 => self.primitive::<UInt32Type>(array, |row| whole(row) as u32),
            DataType::UInt64 => self.primitive::<UInt64Type>(array, |row| whole(row) as u64),
            DataType::Float16 => self.primitive::<Float16Type>(array, |row| {
                <Float16Type as ArrowPrimitiveType>::Native::from_f64(self.number(row))
            }),
            DataType::Float32 => self.primitive::<Float32Type>(array, |row| self.number(row) as f32),
            DataType::Float64 => self.primitive::<Float64Type>(array, |row| self.number(row)),
            DataType::Decimal32(digits, scale) => {
                self.primitive::<Decimal32Type>(array, |row| self.decimal(row, *digits, *scale) as i32)
            }
            DataType::Decimal64(digits, scale) => {
                self.primitive::<Decimal64Type>(array, |row| self.decimal(row, *digits, *scale) as i64)
            }
            DataType::Decimal128(digits, scale) => {
                self.primitive::<Decimal128Type>(array, |row| self.decimal(row, *digits, *scale) as i128)
            }
            DataType::Decimal256(digits, scale) => self.primitive::<Decimal256Type>(array, |row| {
                i256::from_f64(self.decimal(row, *digits, *scale)).unwrap_or_default()
            }),
            DataType::Date32 => self.primitive::<Date32Type>(array, |row| date(row, 1.0 / 86_400.0) as i32),
            DataType::Date64 => self.primitive::<Date64Type>(array, |row| date(row, 1e3) as i64),
            DataType::Timestamp(unit, _) => {
                let native = |row| date(row, per_second(*unit)) as i64;
                match unit {
                    TimeUnit::Second => self.primitive::<TimestampSecondType>(array, native),
                    TimeUnit::Millisecond => self.primitive::<TimestampMillisecondType>(array, native),
                    TimeUnit::Microsecond => self.primitive::<TimestampMicrosecondType>(array, native),
                    TimeUnit::Nanosecond => self.primitive::<TimestampNanosecondType>(array, native),
                }
            }
            DataType::Duration(unit) => {
                let native = |row| whole(row) as i64;
                match unit {
                    TimeUnit::Second => self.primitive::<DurationSecondType>(array, native),
                    TimeUnit::Millisecond => self.primitive::<DurationMillisecondType>(array, native),
                    TimeUnit::Microsecond => self.primitive::<DurationMicrosecondType>(array, native),
                    TimeUnit::Nanosecond => self.primitive::<DurationNanosecondType>(array, native),
                }
            }
            DataType::Boolean => {
                let mut values: Vec<Option<bool>> = array.as_boolean().iter().collect();
                for &row in &self.rows {
                    values[row - self.first] = Some(self.flag(row));
                }
                Arc::new(BooleanArray::from(values))
            }
            DataType::Dictionary(key, _) => self.dictionary(array, key)?,
            data_type if sort_of(data_type) == Sort::Text => {
                let texts: HashMap<usize, Option<String>> =
                    self.rows.iter().map(|&row| (row - self.first, self.text(row))).collect();
                let text = |i: usize| match texts.get(&i) {
                    Some(text) => text.as_deref(),
                    None => text_at(array, i),
                };
                strings((0..array.len()).map(text), data_type)
            }
            other => return Err(Error::Bug(format!("a filled column of type {other}"))),
        })
    }

    fn primitive<T: ArrowPrimitiveType>(&self, array: &ArrayRef, native: impl Fn(usize) -> T::Native) -> ArrayRef {
        let array = array.as_primitive::<T>();
        let mut values: Vec<T::Native> = array.values().to_vec();
        let mut valid = BooleanBufferBuilder::new(array.len());
        match array.nulls() {
            Some(nulls) => valid.append_buffer(nulls.inner()),
            None => valid.append_n(array.len(), true),
        }
        for &row in &self.rows {
            values[row - self.first] = native(row);
            valid.set_bit(row - self.first, true);
        }
        let nulls = NullBuffer::new(valid.finish());
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        Arc::new(PrimitiveArray::<T>::new(values.into(), nulls).with_data_type(array.data_type().clone()))
    }

    /// A dictionary learns the levels it does not have; the others keep their keys.
    fn dictionary(&self, array: &ArrayRef, key: &DataType) -> Result<ArrayRef> {
        let (mut keys, values) = dictionary(array);
        let mut known: HashMap<String, usize> = HashMap::new();
        for (at, level) in levels_of(values).into_iter().enumerate() {
            if let Some(level) = level {
                known.entry(level.into_owned()).or_insert(at);
            }
        }
        let mut learnt: Vec<String> = Vec::new();
        for &row in &self.rows {
            let Some(text) = self.text(row) else { continue };
            let next = values.len() + learnt.len();
            let at = *known.entry(text).or_insert_with_key(|text| {
                learnt.push(text.clone());
                next
            });
            keys[row - self.first] = Some(at);
        }
        let mut values = array.as_any_dictionary().values().clone();
        if !learnt.is_empty() {
            let learnt = of_levels(&learnt, values.data_type());
            values = arrow_select::concat::concat(&[&values, &learnt]).map_err(|e| Error::Bug(e.to_string()))?;
        }
        with_keys(&keys, values, key).ok_or_else(|| Error::Unwritable {
            column: self.filled.schema().columns()[self.col].name.clone(),
            got: format!("{} with another level", array.data_type()),
            format: "its own type",
        })
    }
}

/// Levels as an array of the values of a dictionary: texts or whole numbers.
fn of_levels(levels: &[String], data_type: &DataType) -> ArrayRef {
    macro_rules! whole {
        ($type:ty) => {
            Arc::new(levels.iter().map(|level| level.parse().ok()).collect::<PrimitiveArray<$type>>())
        };
    }
    match data_type {
        DataType::Int8 => whole!(Int8Type),
        DataType::Int16 => whole!(Int16Type),
        DataType::Int32 => whole!(Int32Type),
        DataType::Int64 => whole!(Int64Type),
        DataType::UInt8 => whole!(UInt8Type),
        DataType::UInt16 => whole!(UInt16Type),
        DataType::UInt32 => whole!(UInt32Type),
        DataType::UInt64 => whole!(UInt64Type),
        text => strings(levels.iter().map(|level| Some(level.as_str())), text),
    }
}

/// A string array of that type.
pub(crate) fn strings<'s>(texts: impl Iterator<Item = Option<&'s str>>, data_type: &DataType) -> ArrayRef {
    macro_rules! build {
        ($builder:expr) => {{
            let mut builder = $builder;
            texts.for_each(|t| builder.append_option(t));
            Arc::new(builder.finish())
        }};
    }
    match data_type {
        DataType::LargeUtf8 => build!(LargeStringBuilder::new()),
        DataType::Utf8View => build!(StringViewBuilder::new()),
        _ => build!(StringBuilder::new()),
    }
}

/// A dictionary array of these keys; `None` where they do not fit the type of the keys.
pub(crate) fn with_keys(keys: &[Option<usize>], values: ArrayRef, key: &DataType) -> Option<ArrayRef> {
    fn build<K: ArrowDictionaryKeyType>(keys: &[Option<usize>], values: ArrayRef) -> Option<ArrayRef> {
        let mut native = Vec::with_capacity(keys.len());
        for key in keys {
            native.push(match key {
                Some(key) => Some(K::Native::from_usize(*key).filter(|k| k.as_usize() == *key)?),
                None => None,
            });
        }
        let keys = PrimitiveArray::<K>::from_iter(native);
        Some(Arc::new(DictionaryArray::<K>::try_new(keys, values).ok()?))
    }
    match key {
        DataType::Int8 => build::<Int8Type>(keys, values),
        DataType::Int16 => build::<Int16Type>(keys, values),
        DataType::Int32 => build::<Int32Type>(keys, values),
        DataType::Int64 => build::<Int64Type>(keys, values),
        DataType::UInt8 => build::<UInt8Type>(keys, values),
        DataType::UInt16 => build::<UInt16Type>(keys, values),
        DataType::UInt32 => build::<UInt32Type>(keys, values),
        DataType::UInt64 => build::<UInt64Type>(keys, values),
        _ => None,
    }
}
