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
pub(crate) fn matrix(file: &ModelFile, name: &str, shape: (usize, usize)) -> Result<Matrix> {
    let numbers = file.matrix(name, shape)?.to_vec();
    Matrix::from_vec(shape.0, shape.1, numbers).map_err(|e| Error::damaged(e.to_string()))
}
