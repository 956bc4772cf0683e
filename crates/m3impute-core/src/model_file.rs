//! The model file: safetensors, with everything that is not a tensor as JSON in its header.

use crate::encode::{Encoder, Finish};
use crate::error::{Error, Result};
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;

/// The version of the file that this software writes, and the oldest it reads.
const FORMAT: u32 = 2;
const OLDEST_FORMAT: u32 = 2;
/// The key of the header's metadata under which the JSON stands.
const KEY: &str = "m3impute";

/// What a model file says about itself beside the tensors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub format: u32,
    /// The version of the software that wrote it.
    pub version: String,
    /// The key of the method.
    pub method: String,
    /// How tables become numbers and back; holds the schema.
    pub encoder: Encoder,
    /// How filled numbers are finished.
    pub finish: Finish,
    /// The method's parameters.
    pub params: Value,
    /// The method's state, as far as it is not tensors.
    pub state: Value,
    /// The rows of the table that was learnt from, and its fingerprint in hexadecimal.
    pub rows: usize,
    /// See [`crate::Table::fingerprint`].
    pub fingerprint: String,
    /// What was worth saying while fitting.
    #[serde(default)]
    pub notes: Vec<String>,
    /// How the table was read from its file: kept for whoever reads the new rows.
    #[serde(default)]
    pub reading: Value,
    /// What was asked of the interface that fitted the model: kept for whoever fits such a model again.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub asked: Value,
}

/// A matrix or vector of a model, row by row.
#[derive(Clone, Debug, PartialEq)]
pub enum Tensor {
    /// 64-bit floats.
    F64(Vec<usize>, Vec<f64>),
    /// 32-bit floats.
    F32(Vec<usize>, Vec<f32>),
    /// 32-bit whole numbers.
    U32(Vec<usize>, Vec<u32>),
    /// Bytes.
    U8(Vec<usize>, Vec<u8>),
}

/// A model file in memory.
#[derive(Clone, Debug)]
pub struct ModelFile {
    /// What it says about itself.
    pub header: Header,
    /// Its tensors, by name.
    pub tensors: BTreeMap<String, Tensor>,
}

impl Header {
    /// The versions to put into a new header.
    pub(crate) fn versions() -> (u32, String) {
        (FORMAT, env!("CARGO_PKG_VERSION").to_owned())
    }
}

macro_rules! tensor_getters {
    ($($name:ident, $variant:ident, $type:ty);*) => {$(
        /// The tensor of that name and type, with its shape.
        ///
        /// # Errors
        /// When there is none, or it is of another type.
        pub fn $name(&self, name: &str) -> Result<(&[usize], &[$type])> {
            match self.tensors.get(name) {
                Some(Tensor::$variant(shape, data)) => Ok((shape, data)),
                Some(_) => Err(Error::damaged(format!("tensor `{name}` is of another type"))),
                None => Err(Error::damaged(format!("tensor `{name}` is not there"))),
            }
        }
    )*};
}

impl ModelFile {
    tensor_getters!(f64s, F64, f64; f32s, F32, f32; u32s, U32, u32; u8s, U8, u8);

    /// The numbers of a matrix of that name and shape, all of them finite.
    ///
    /// # Errors
    /// When there is none, or it is another.
    pub fn matrix(&self, name: &str, (rows, cols): (usize, usize)) -> Result<&[f32]> {
        let (shape, data) = self.f32s(name)?;
        if shape != [rows, cols] || data.iter().any(|v| !v.is_finite()) {
            let expected = format!("`{name}`: expected finite numbers of shape [{rows}, {cols}], got {shape:?}");
            return Err(Error::damaged(expected));
        }
        Ok(data)
    }

    /// The method's state as its own type.
    ///
    /// # Errors
    /// When the JSON is of another shape.
    pub fn state<S: for<'de> Deserialize<'de>>(&self) -> Result<S> {
        S::deserialize(&self.header.state)
            .map_err(|e| Error::damaged(format!("state of `{}`: {e}", self.header.method)))
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When the bytes cannot be written.
    pub fn write(&self, to: &mut dyn Write) -> Result<()> {
        let json = serde_json::to_string(&self.header).map_err(|e| Error::Bug(e.to_string()))?;
        let bytes: Vec<(String, Dtype, &[usize], Vec<u8>)> =
            self.tensors.iter().map(|(name, tensor)| tensor.bytes(name)).collect();
        let views = bytes
            .iter()
            .map(|(name, dtype, shape, data)| {
                TensorView::new(*dtype, shape.to_vec(), data)
                    .map(|view| (name.clone(), view))
                    .map_err(|e| Error::Bug(format!("tensor `{name}`: {e}")))
            })
            .collect::<Result<Vec<_>>>()?;
        let metadata = HashMap::from([(KEY.to_owned(), json)]);
        let file = safetensors::serialize(views, Some(metadata)).map_err(|e| Error::Bug(e.to_string()))?;
        to.write_all(&file)?;
        Ok(())
    }

    /// Reads a file. Damaged and hostile files are errors: nothing is allocated by a length that was not checked.
    ///
    /// # Errors
    /// When the bytes are no model file, or one of a version that is not read.
    pub fn read(bytes: &[u8]) -> Result<ModelFile> {
        let (_, metadata) = safetensors::SafeTensors::read_metadata(bytes)
            .map_err(|e| Error::damaged(format!("no safetensors header: {e}")))?;
        let json = metadata
            .metadata()
            .as_ref()
            .and_then(|m| m.get(KEY))
            .ok_or_else(|| Error::damaged("a safetensors file, but not one of m3impute".to_owned()))?;
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let version: Version = serde_json::from_str(json).map_err(|e| Error::damaged(format!("header: {e}")))?;
        if !(OLDEST_FORMAT..=FORMAT).contains(&version.format) {
            return Err(Error::ModelVersion { got: version.format, oldest: OLDEST_FORMAT, newest: FORMAT });
        }
        let header: Header = serde_json::from_str(json).map_err(|e| Error::damaged(format!("header: {e}")))?;
        header.encoder.validate()?;
        let file = safetensors::SafeTensors::deserialize(bytes).map_err(|e| Error::damaged(e.to_string()))?;
        let tensors = file
            .iter()
            .map(|(name, view)| Ok((name.to_owned(), Tensor::of(name, &view)?)))
            .collect::<Result<BTreeMap<_, _>>>()?;
        Ok(ModelFile { header, tensors })
    }
}

impl Tensor {
    /// Its shape.
    pub fn shape(&self) -> &[usize] {
        match self {
            Tensor::F64(shape, _) | Tensor::F32(shape, _) | Tensor::U32(shape, _) | Tensor::U8(shape, _) => shape,
        }
    }

    /// How many numbers it holds.
    pub fn len(&self) -> usize {
        self.shape().iter().product()
    }

    /// Whether it holds no number.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn bytes(&self, name: &str) -> (String, Dtype, &[usize], Vec<u8>) {
        let (dtype, shape, data): (_, &Vec<usize>, _) = match self {
            Tensor::F64(s, d) => (Dtype::F64, s, d.iter().flat_map(|v| v.to_le_bytes()).collect()),
            Tensor::F32(s, d) => (Dtype::F32, s, d.iter().flat_map(|v| v.to_le_bytes()).collect()),
            Tensor::U32(s, d) => (Dtype::U32, s, d.iter().flat_map(|v| v.to_le_bytes()).collect()),
            Tensor::U8(s, d) => (Dtype::U8, s, d.clone()),
        };
        (name.to_owned(), dtype, shape, data)
    }

    fn of(name: &str, view: &TensorView<'_>) -> Result<Tensor> {
        fn chunks<const N: usize, T>(data: &[u8], make: fn([u8; N]) -> T) -> Vec<T> {
            data.chunks_exact(N).map(|c| make(c.try_into().expect("chunks are of that length"))).collect()
        }
        let (shape, data) = (view.shape().to_vec(), view.data());
        match view.dtype() {
            Dtype::F64 => Ok(Tensor::F64(shape, chunks(data, f64::from_le_bytes))),
            Dtype::F32 => Ok(Tensor::F32(shape, chunks(data, f32::from_le_bytes))),
            Dtype::U32 => Ok(Tensor::U32(shape, chunks(data, u32::from_le_bytes))),
            Dtype::U8 => Ok(Tensor::U8(shape, data.to_vec())),
            other => Err(Error::damaged(format!("tensor `{name}` is of type {other:?}"))),
        }
    }
}
