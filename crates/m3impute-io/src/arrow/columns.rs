//! What the arrays of a column hold.

use crate::cells::{Cell, Cells, Quoting};
use crate::column::iso;
use crate::number::LARGEST_EXACT;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_schema::{DataType, TimeUnit};
use std::borrow::Cow;

/// What the values of an Arrow type mean to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Whole numbers.
    Whole,
    /// Numbers with a fraction.
    Fraction,
    /// True or false.
    Flag,
    /// Text.
    Text,
    /// Text, or whole numbers, by way of a dictionary.
    Category,
    /// Days or timestamps.
    Timestamp,
    /// Durations, counted in the units of their type.
    Span,
    /// Anything else: left as it is.
    Other,
}

pub(crate) fn sort_of(data_type: &DataType) -> Sort {
    match data_type {
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64 => Sort::Whole,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => Sort::Fraction,
        DataType::Boolean => Sort::Flag,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Sort::Text,
        // Decimals are the numbers that they are; a filled one is rounded to the places of its type.
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => {
            if *scale > 0 {
                Sort::Fraction
            } else {
                Sort::Whole
            }
        }
        DataType::Dictionary(_, values) if sort_of(values) == Sort::Text || values.is_integer() => Sort::Category,
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _) => Sort::Timestamp,
        DataType::Duration(_) => Sort::Span,
        _ => Sort::Other,
    }
}

/// How many of a timestamp's units are in a second.
pub(crate) fn per_second(unit: TimeUnit) -> f64 {
    match unit {
        TimeUnit::Second => 1.0,
        TimeUnit::Millisecond => 1e3,
        TimeUnit::Microsecond => 1e6,
        TimeUnit::Nanosecond => 1e9,
    }
}

/// What the stored number of a decimal has to be divided by.
pub(crate) fn ten_to(scale: i8) -> f64 {
    10f64.powi(i32::from(scale))
}

/// Shows each value as a number: whole numbers and fractions as they are, flags as 0 and 1, timestamps in seconds since
/// 1970, durations in their units; `None` where there is none.
pub(crate) fn each_number(array: &dyn Array, mut see: impl FnMut(Option<f64>)) {
    fn run<T: ArrowPrimitiveType>(array: &dyn Array, to: impl Fn(T::Native) -> f64, see: &mut impl FnMut(Option<f64>)) {
        let array = array.as_primitive::<T>();
        if array.null_count() == 0 {
            array.values().iter().for_each(|&v| see(Some(to(v))));
        } else {
            array.iter().for_each(|v| see(v.map(&to)));
        }
    }
    let see = &mut see;
    match array.data_type() {
        DataType::Int8 => run::<Int8Type>(array, f64::from, see),
        DataType::Int16 => run::<Int16Type>(array, f64::from, see),
        DataType::Int32 => run::<Int32Type>(array, f64::from, see),
        DataType::Int64 => run::<Int64Type>(array, |v| v as f64, see),
        DataType::UInt8 => run::<UInt8Type>(array, f64::from, see),
        DataType::UInt16 => run::<UInt16Type>(array, f64::from, see),
        DataType::UInt32 => run::<UInt32Type>(array, f64::from, see),
        DataType::UInt64 => run::<UInt64Type>(array, |v| v as f64, see),
        DataType::Float16 => run::<Float16Type>(array, f64::from, see),
        DataType::Float32 => run::<Float32Type>(array, f64::from, see),
        DataType::Float64 => run::<Float64Type>(array, |v| v, see),
        DataType::Decimal32(_, scale) => run::<Decimal32Type>(array, |v| f64::from(v) / ten_to(*scale), see),
        DataType::Decimal64(_, scale) => run::<Decimal64Type>(array, |v| v as f64 / ten_to(*scale), see),
        DataType::Decimal128(_, scale) => run::<Decimal128Type>(array, |v| v as f64 / ten_to(*scale), see),
        DataType::Decimal256(_, scale) => {
            run::<Decimal256Type>(array, |v| v.to_string().parse().unwrap_or(f64::NAN) / ten_to(*scale), see);
        }
        DataType::Date32 => run::<Date32Type>(array, |v| f64::from(v) * 86_400.0, see),
        DataType::Date64 => run::<Date64Type>(array, |v| v as f64 / 1e3, see),
        DataType::Timestamp(unit, _) => {
            let scale = per_second(*unit);
            let to = move |v: i64| v as f64 / scale;
            match unit {
                TimeUnit::Second => run::<TimestampSecondType>(array, to, see),
                TimeUnit::Millisecond => run::<TimestampMillisecondType>(array, to, see),
                TimeUnit::Microsecond => run::<TimestampMicrosecondType>(array, to, see),
                TimeUnit::Nanosecond => run::<TimestampNanosecondType>(array, to, see),
            }
        }
        DataType::Duration(unit) => match unit {
            TimeUnit::Second => run::<DurationSecondType>(array, |v| v as f64, see),
            TimeUnit::Millisecond => run::<DurationMillisecondType>(array, |v| v as f64, see),
            TimeUnit::Microsecond => run::<DurationMicrosecondType>(array, |v| v as f64, see),
            TimeUnit::Nanosecond => run::<DurationNanosecondType>(array, |v| v as f64, see),
        },
        DataType::Boolean => array.as_boolean().iter().for_each(|v| see(v.map(f64::from))),
        _ => (0..array.len()).for_each(|_| see(None)),
    }
}

/// Whether a whole number of a column is too large to be held by a double.
pub(crate) fn is_beyond(arrays: &[ArrayRef]) -> bool {
    let mut beyond = false;
    for array in arrays {
        each_number(array, |v| beyond |= v.is_some_and(|v| v.abs() >= LARGEST_EXACT));
    }
    beyond
}

/// Shows each text, `None` where there is none.
pub(crate) fn each_text<E>(array: &dyn Array, mut see: impl FnMut(Option<&str>) -> Result<(), E>) -> Result<(), E> {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().try_for_each(see),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().try_for_each(see),
        DataType::Utf8View => array.as_string_view().iter().try_for_each(see),
        DataType::Dictionary(_, _) => {
            let (keys, values) = dictionary(array);
            let levels = levels_of(values);
            keys.into_iter().try_for_each(|key| see(key.and_then(|k| levels.get(k)?.as_deref())))
        }
        _ => (0..array.len()).try_for_each(|_| see(None)),
    }
}

/// A text of a string array.
pub(crate) fn text_at(array: &dyn Array, at: usize) -> Option<&str> {
    if array.is_null(at) {
        return None;
    }
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().value(at)),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().value(at)),
        DataType::Utf8View => Some(array.as_string_view().value(at)),
        _ => None,
    }
}

/// The values of a dictionary, which are texts or whole numbers, as texts.
pub(crate) fn levels_of(values: &dyn Array) -> Vec<Option<Cow<'_, str>>> {
    if sort_of(values.data_type()) == Sort::Text {
        return (0..values.len()).map(|at| text_at(values, at).map(Cow::Borrowed)).collect();
    }
    written(values, 0.0).into_iter().map(|level| level.map(Cow::Owned)).collect()
}

/// The keys and the values of a dictionary array.
pub(crate) fn dictionary(array: &dyn Array) -> (Vec<Option<usize>>, &dyn Array) {
    let dictionary = array.as_any_dictionary();
    let mut keys = Vec::with_capacity(array.len());
    each_number(dictionary.keys(), |key| keys.push(key.map(|k| k as usize)));
    (keys, dictionary.values().as_ref())
}

/// The texts of a column that holds texts.
pub(crate) struct Texts<'a>(pub(crate) &'a [ArrayRef]);

impl Cells for Texts<'_> {
    fn each<E>(&self, mut see: impl FnMut(usize, Option<Cell<'_>>) -> Result<(), E>) -> Result<(), E> {
        let mut row = 0;
        for array in self.0 {
            each_text(array, |text| {
                row += 1;
                see(row - 1, text.map(|t| Cell { text: t.as_bytes(), quoting: Quoting::Typed }))
            })?;
        }
        Ok(())
    }
}

/// The values of a column as texts, where it holds something else.
pub(crate) struct Written(pub(crate) Vec<Option<String>>);

impl Written {
    pub(crate) fn of(arrays: &[ArrayRef], step: f64) -> Written {
        Written(arrays.iter().flat_map(|a| written(a, step)).collect())
    }
}

impl Cells for Written {
    fn each<E>(&self, mut see: impl FnMut(usize, Option<Cell<'_>>) -> Result<(), E>) -> Result<(), E> {
        for (row, text) in self.0.iter().enumerate() {
            see(row, text.as_ref().map(|t| Cell { text: t.as_bytes(), quoting: Quoting::Typed }))?;
        }
        Ok(())
    }
}

/// The values of an array as texts that name them exactly. Timestamps show as much time as `step` needs.
pub(crate) fn written(array: &dyn Array, step: f64) -> Vec<Option<String>> {
    macro_rules! exactly {
        ($type:ty) => {
            array.as_primitive::<$type>().iter().map(|v| v.map(|v| v.to_string())).collect()
        };
    }
    macro_rules! decimals {
        ($type:ty) => {{
            let array = array.as_primitive::<$type>();
            (0..array.len()).map(|i| (!array.is_null(i)).then(|| array.value_as_string(i))).collect()
        }};
    }
    // `NaN` is no value.
    macro_rules! numbers {
        ($type:ty) => {
            array.as_primitive::<$type>().iter().map(|v| v.filter(|v| !v.is_nan()).map(|v| v.to_string())).collect()
        };
    }
    match array.data_type() {
        DataType::Int8 => exactly!(Int8Type),
        DataType::Int16 => exactly!(Int16Type),
        DataType::Int32 => exactly!(Int32Type),
        DataType::Int64 => exactly!(Int64Type),
        DataType::UInt8 => exactly!(UInt8Type),
        DataType::UInt16 => exactly!(UInt16Type),
        DataType::UInt32 => exactly!(UInt32Type),
        DataType::UInt64 => exactly!(UInt64Type),
        DataType::Float16 => numbers!(Float16Type),
        DataType::Float32 => numbers!(Float32Type),
        DataType::Float64 => numbers!(Float64Type),
        DataType::Boolean => array.as_boolean().iter().map(|v| v.map(|v| v.to_string())).collect(),
        DataType::Duration(_) => {
            let mut texts = Vec::with_capacity(array.len());
            each_number(array, |v| texts.push(v.map(|v| v.to_string())));
            texts
        }
        DataType::Decimal32(_, _) => decimals!(Decimal32Type),
        DataType::Decimal64(_, _) => decimals!(Decimal64Type),
        DataType::Decimal128(_, _) => decimals!(Decimal128Type),
        DataType::Decimal256(_, _) => decimals!(Decimal256Type),
        data_type if sort_of(data_type) == Sort::Timestamp => {
            let zoned = matches!(data_type, DataType::Timestamp(_, Some(_)));
            let mut format = iso(step);
            if let (true, Some(time)) = (zoned, &mut format.time) {
                time.zone = crate::datetime::Zone::Utc;
            }
            let mut texts = Vec::with_capacity(array.len());
            each_number(array, |v| texts.push(v.and_then(|v| format.write(v))));
            texts
        }
        data_type if matches!(sort_of(data_type), Sort::Text | Sort::Category) => {
            let mut texts = Vec::with_capacity(array.len());
            let seen: Result<(), std::convert::Infallible> = each_text(array, |t| {
                texts.push(t.map(str::to_owned));
                Ok(())
            });
            let Ok(()) = seen;
            texts
        }
        _ => vec![None; array.len()],
    }
}

/// The longest of some usual steps of which all timestamps of a column are multiples.
pub(crate) fn step_of(arrays: &[ArrayRef]) -> f64 {
    const STEPS: [f64; 5] = [86_400.0, 60.0, 1.0, 1e-3, 1e-6];
    let (mut at, mut any) = (0, false);
    for array in arrays {
        each_number(array, |v| {
            let Some(v) = v else { return };
            any = true;
            while at + 1 < STEPS.len() && ((v / STEPS[at]).round() * STEPS[at] - v).abs() > 2e-7 {
                at += 1;
            }
        });
    }
    let coarse = arrays.first().is_some_and(|a| matches!(a.data_type(), DataType::Date32));
    if any || coarse { STEPS[at] } else { 1.0 }
}
