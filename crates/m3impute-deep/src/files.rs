//! Networks in model files.

use m3impute_core::{Error, ModelFile, Result, Tensor};
use m3impute_nn::{Matrix, Params};
use std::collections::BTreeMap;

/// Puts parameters among the tensors of a file.
pub(crate) fn store(params: &Params, tensors: &mut BTreeMap<String, Tensor>) {
    for id in params.ids() {
        let value = params.value(id);
        let tensor = Tensor::F32(vec![value.rows(), value.cols()], value.as_slice().to_vec());
        tensors.insert(params.name(id).to_owned(), tensor);
    }
}

/// A matrix of finite numbers and this shape.
pub(crate) fn matrix(file: &ModelFile, name: &str, (rows, cols): (usize, usize)) -> Result<Matrix> {
    let (shape, data) = file.f32s(name)?;
    if shape != [rows, cols] || data.iter().any(|v| !v.is_finite()) {
        return Err(damaged(&format!("`{name}`: expected finite numbers of shape [{rows}, {cols}], got {shape:?}")));
    }
    Matrix::from_vec(rows, cols, data.to_vec()).map_err(|e| damaged(&e.to_string()))
}

pub(crate) fn damaged(what: &str) -> Error {
    Error::ModelFile { reason: what.to_owned() }
}
