//! Columns across the border: Arrow from and to Python, or plain buffers where there is no Arrow.

use crate::errors::bug;
use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Int32Array, StringArray, UInt64Array, make_array,
};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use pyo3_arrow::ffi::{ArrayIterator, to_stream_pycapsule};
use pyo3_arrow::input::AnyArray;
use std::sync::Arc;

/// One column: an Arrow array with its field.
#[pyclass(frozen, module = "m3impute._native")]
pub(crate) struct Column {
    pub(crate) field: FieldRef,
    pub(crate) array: ArrayRef,
}

impl Column {
    pub(crate) fn new(field: FieldRef, array: ArrayRef) -> Column {
        Column { field, array }
    }

    fn of_array(array: ArrayRef) -> Column {
        Column { field: Arc::new(Field::new("", array.data_type().clone(), true)), array }
    }

    /// The cells of these rows.
    pub(crate) fn take(&self, rows: &[usize]) -> PyResult<Column> {
        let rows: UInt64Array = rows.iter().map(|&row| row as u64).collect::<Vec<u64>>().into();
        let array = arrow_select::take::take(&self.array, &rows, None).map_err(bug)?;
        Ok(Column { field: self.field.clone(), array })
    }
}

#[pymethods]
impl Column {
    /// A column of anything that speaks the Arrow C interface for arrays or streams of arrays.
    #[staticmethod]
    fn arrow(column: AnyArray) -> PyResult<Column> {
        let (chunks, field) = column.into_chunked_array()?.into_inner();
        let array = match chunks.as_slice() {
            [one] => one.clone(),
            [] => arrow_array::new_empty_array(field.data_type()),
            many => arrow_select::concat::concat(&many.iter().map(AsRef::as_ref).collect::<Vec<_>>()).map_err(bug)?,
        };
        Ok(Column { field, array })
    }

    /// A column of numbers, flags (a byte each), moments or lengths of time, as they lie in memory.
    ///
    /// `valid` has a byte a row, 0 where there is no value.
    #[staticmethod]
    #[pyo3(signature = (kind, data, valid=None, zone=None))]
    fn buffer(
        py: Python<'_>,
        kind: &str,
        data: PyBuffer<u8>,
        valid: Option<PyBuffer<u8>>,
        zone: Option<&str>,
    ) -> PyResult<Column> {
        let data_type = data_type_of(kind, zone)
            .ok_or_else(|| PyTypeError::new_err(format!("no column of type `{kind}` can be made of a buffer")))?;
        let bytes = data.to_vec(py)?;
        let nulls = valid.map(|valid| Ok::<_, PyErr>(nulls_of(&valid.to_vec(py)?))).transpose()?;
        if data_type == DataType::Boolean {
            let array = BooleanArray::new(bytes.iter().map(|&b| b != 0).collect(), nulls);
            return Ok(Column::of_array(Arc::new(array)));
        }
        let width = data_type.primitive_width().unwrap_or(1);
        let data = ArrayData::builder(data_type)
            .len(bytes.len() / width)
            .add_buffer(Buffer::from(bytes.as_slice()))
            .nulls(nulls)
            .align_buffers(true)
            .build()
            .map_err(bug)?;
        Ok(Column::of_array(make_array(data)))
    }

    /// A column of texts, `None` where there is none.
    #[staticmethod]
    fn texts(cells: Vec<Option<String>>) -> Column {
        Column::of_array(Arc::new(StringArray::from(cells)))
    }

    /// A column of levels: 32-bit codes into `levels`, below 0 where there is none.
    #[staticmethod]
    fn levels(py: Python<'_>, codes: PyBuffer<u8>, levels: Vec<String>, ordered: bool) -> PyResult<Column> {
        let codes = codes.to_vec(py)?;
        let codes = codes.chunks_exact(4).map(|c| i32::from_ne_bytes([c[0], c[1], c[2], c[3]]));
        let keys: Int32Array = codes.map(|code| (code >= 0).then_some(code)).collect();
        let array = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(StringArray::from(levels))).map_err(bug)?;
        let field = Field::new("", array.data_type().clone(), true).with_dict_is_ordered(ordered);
        Ok(Column { field: Arc::new(field), array: Arc::new(array) })
    }

    /// A column that only passes through: all that is known is its type, and which cells have a value, a byte each.
    #[staticmethod]
    fn opaque(py: Python<'_>, r#type: &str, valid: PyBuffer<u8>) -> PyResult<Column> {
        let array: BinaryArray = valid.to_vec(py)?.iter().map(|&v| (v != 0).then_some(b"")).collect();
        let name = [(EXTENSION_TYPE_NAME_KEY.to_owned(), r#type.to_owned())];
        let field = Field::new("", array.data_type().clone(), true).with_metadata(name.into());
        Ok(Column { field: Arc::new(field), array: Arc::new(array) })
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }

    /// The Arrow type, in words.
    #[getter]
    fn r#type(&self) -> String {
        self.array.data_type().to_string()
    }

    /// The values as they lie in memory; flags a byte each, levels as 64-bit codes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let array = &self.array;
        match array.data_type() {
            DataType::Boolean => {
                let flags: Vec<u8> = array.as_boolean().values().iter().map(u8::from).collect();
                Ok(PyBytes::new(py, &flags))
            }
            DataType::Dictionary(_, _) => {
                let keys = array.as_any_dictionary().normalized_keys();
                let codes: Vec<u8> = keys.iter().flat_map(|&k| (k as i64).to_ne_bytes()).collect();
                Ok(PyBytes::new(py, &codes))
            }
            data_type => {
                let width = data_type
                    .primitive_width()
                    .ok_or_else(|| PyTypeError::new_err(format!("values of type {data_type} are no plain bytes")))?;
                let data = array.to_data();
                let from = data.offset() * width;
                Ok(PyBytes::new(py, &data.buffers()[0].as_slice()[from..from + data.len() * width]))
            }
        }
    }

    /// The texts of a column of texts.
    fn to_texts(&self) -> PyResult<Vec<Option<String>>> {
        macro_rules! texts {
            ($array:expr) => {
                Ok($array.iter().map(|t| t.map(str::to_owned)).collect())
            };
        }
        match self.array.data_type() {
            DataType::Utf8 => texts!(self.array.as_string::<i32>()),
            DataType::LargeUtf8 => texts!(self.array.as_string::<i64>()),
            DataType::Utf8View => texts!(self.array.as_string_view()),
            other => Err(PyTypeError::new_err(format!("values of type {other} are no texts"))),
        }
    }

    /// The names of the levels, in the order of their codes.
    fn level_names(&self) -> PyResult<Vec<Option<String>>> {
        match self.array.data_type() {
            DataType::Dictionary(_, _) => Column::of_array(self.array.as_any_dictionary().values().clone()).to_texts(),
            other => Err(PyTypeError::new_err(format!("values of type {other} are no levels"))),
        }
    }

    /// The column for anybody who speaks the Arrow C stream interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let reader = ArrayIterator::new(vec![Ok(self.array.clone())], self.field.clone());
        Ok(to_stream_pycapsule(py, Box::new(reader), requested_schema)?)
    }
}

fn nulls_of(valid: &[u8]) -> NullBuffer {
    let mut bits = BooleanBufferBuilder::new(valid.len());
    valid.iter().for_each(|&v| bits.append(v != 0));
    NullBuffer::new(bits.finish())
}

/// The type of that name: `int8`, `float64`, `bool`, `date32`, `timestamp[us]`, `duration[ns]`, ...
fn data_type_of(kind: &str, zone: Option<&str>) -> Option<DataType> {
    let unit = |text: &str| match text {
        "s]" => Some(TimeUnit::Second),
        "ms]" => Some(TimeUnit::Millisecond),
        "us]" => Some(TimeUnit::Microsecond),
        "ns]" => Some(TimeUnit::Nanosecond),
        _ => None,
    };
    Some(match kind {
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "int64" => DataType::Int64,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        "float16" => DataType::Float16,
        "float32" => DataType::Float32,
        "float64" => DataType::Float64,
        "bool" => DataType::Boolean,
        "date32" => DataType::Date32,
        _ => match kind.split_once('[') {
            Some(("timestamp", rest)) => DataType::Timestamp(unit(rest)?, zone.map(Into::into)),
            Some(("duration", rest)) => DataType::Duration(unit(rest)?),
            _ => return None,
        },
    })
}
