//! Parameters: names, values, gradients; saved and loaded as safetensors.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

use safetensors::tensor::{Dtype, SafeTensors, View, serialize};

use crate::error::{Error, Result};
use crate::matrix::Matrix;

/// A parameter of a [`Params`] store and its clones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParamId {
    store: u32,
    index: u32,
}

/// Named parameters with their gradients.
///
/// ```
/// use m3impute_nn::{Matrix, Params};
///
/// let mut params = Params::new();
/// let bias = params.add_shaped("bias", &[3], Matrix::zeros(1, 3));
/// let mut file = Vec::new();
/// params.save(&mut file, None).unwrap();
/// params.value_mut(bias).as_mut_slice().fill(7.0);
/// params.load(&file).unwrap();
/// assert_eq!(params.value(bias).row(0), [0.0, 0.0, 0.0]);
/// ```
#[derive(Clone, Debug)]
pub struct Params {
    store: u32,
    entries: Vec<Param>,
    by_name: HashMap<String, u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct Param {
    name: String,
    /// The shape in a file, whose product is the size of the matrix: a bias is `[d]` there and `[1, d]` here.
    shape: Vec<usize>,
    pub(crate) value: Matrix,
    pub(crate) grad: Matrix,
}

impl Default for Params {
    fn default() -> Self {
        Self::new()
    }
}

impl Params {
    /// No parameters.
    pub fn new() -> Self {
        // The number tells stores apart that share a tape; it reaches no result.
        static STORES: AtomicU32 = AtomicU32::new(0);
        Self { store: STORES.fetch_add(1, Ordering::Relaxed), entries: Vec::new(), by_name: HashMap::new() }
    }

    /// Adds a parameter whose shape in a file is that of the matrix.
    ///
    /// # Panics
    /// If the name is taken.
    pub fn add(&mut self, name: &str, value: Matrix) -> ParamId {
        let (rows, cols) = value.shape();
        self.add_shaped(name, &[rows, cols], value)
    }

    /// Adds a parameter that has another shape in a file: `[d]` for a bias held as `[1, d]`, `[groups, out, in]`
    /// for grouped weights held as `[groups * out, in]`.
    ///
    /// # Panics
    /// If the name is taken, or the shape does not have the size of the matrix.
    pub fn add_shaped(&mut self, name: &str, shape: &[usize], value: Matrix) -> ParamId {
        let (rows, cols) = value.shape();
        let size: usize = shape.iter().product();
        assert_eq!(size, rows * cols, "shape `{shape:?}` of parameter `{name}` does not hold [{rows}, {cols}]");
        let index = u32::try_from(self.entries.len()).expect("fewer than `u32::MAX` parameters");
        let taken = self.by_name.insert(name.to_owned(), index);
        assert!(taken.is_none(), "parameter `{name}` is already there");
        let grad = Matrix::zeros(rows, cols);
        self.entries.push(Param { name: name.to_owned(), shape: shape.to_vec(), value, grad });
        ParamId { store: self.store, index }
    }

    /// Number of parameters.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of trained numbers in all parameters.
    pub fn size(&self) -> usize {
        self.entries.iter().map(|p| p.value.as_slice().len()).sum()
    }

    /// The parameters in the order they were added.
    pub fn ids(&self) -> impl Iterator<Item = ParamId> + use<> {
        let store = self.store;
        (0..self.entries.len() as u32).map(move |index| ParamId { store, index })
    }

    /// The parameter of a name.
    pub fn id(&self, name: &str) -> Option<ParamId> {
        self.by_name.get(name).map(|&index| ParamId { store: self.store, index })
    }

    /// The name of a parameter.
    pub fn name(&self, id: ParamId) -> &str {
        &self.entry(id).name
    }

    /// The shape of a parameter in a file.
    pub fn file_shape(&self, id: ParamId) -> &[usize] {
        &self.entry(id).shape
    }

    /// The value of a parameter.
    pub fn value(&self, id: ParamId) -> &Matrix {
        &self.entry(id).value
    }

    /// The value of a parameter.
    pub fn value_mut(&mut self, id: ParamId) -> &mut Matrix {
        &mut self.entry_mut(id).value
    }

    /// The gradient of a parameter.
    pub fn grad(&self, id: ParamId) -> &Matrix {
        &self.entry(id).grad
    }

    /// The gradient of a parameter.
    pub fn grad_mut(&mut self, id: ParamId) -> &mut Matrix {
        &mut self.entry_mut(id).grad
    }

    /// Sets all gradients to zero.
    pub fn zero_grads(&mut self) {
        for param in &mut self.entries {
            param.grad.as_mut_slice().fill(0.0);
        }
    }

    /// Takes over the values of `other`, a clone of this store or built by the same calls.
    ///
    /// # Panics
    /// If the two do not hold the same shapes.
    pub fn copy_values_from(&mut self, other: &Params) {
        assert_eq!(self.len(), other.len(), "both stores hold the same parameters");
        for (to, from) in self.entries.iter_mut().zip(&other.entries) {
            assert_eq!(to.value.shape(), from.value.shape(), "shape of parameter `{}`", to.name);
            to.value.as_mut_slice().copy_from_slice(from.value.as_slice());
        }
    }

    /// Writes all parameters as safetensors. Two equal stores give equal bytes.
    ///
    /// `note` is one entry of metadata. There is one because the format keeps them in a hash map, whose order
    /// changes from run to run.
    ///
    /// # Errors
    /// [`Error::Write`] if the writer fails.
    pub fn save(&self, to: &mut dyn Write, note: Option<(&str, &str)>) -> Result<()> {
        let note = note.map(|(key, value)| HashMap::from([(key.to_owned(), value.to_owned())]));
        let bytes = serialize(self.entries.iter().map(|p| (p.name.as_str(), p)), note)?;
        Ok(to.write_all(&bytes)?)
    }

    /// Takes over the values in a file, which must hold just these parameters. Fails without changing anything.
    ///
    /// # Errors
    /// Names the first parameter that is missing, unknown, or of another shape or type.
    pub fn load(&mut self, file: &[u8]) -> Result<()> {
        let tensors = read(file)?;
        let mut names = tensors.names();
        names.sort_unstable();
        if let Some(name) = names.into_iter().find(|name| !self.by_name.contains_key(*name)) {
            return Err(Error::Unexpected { name: name.to_owned() });
        }
        self.load_tensors(&tensors, "")
    }

    /// Takes over the values of the tensors whose names are `prefix` and the name of a parameter; other tensors
    /// are passed over. Fails without changing anything.
    ///
    /// # Errors
    /// Names the first parameter that is missing, or of another shape or type.
    pub fn load_prefixed(&mut self, file: &[u8], prefix: &str) -> Result<()> {
        self.load_tensors(&read(file)?, prefix)
    }

    fn load_tensors(&mut self, tensors: &SafeTensors<'_>, prefix: &str) -> Result<()> {
        let mut loaded = Vec::with_capacity(self.entries.len());
        for param in &self.entries {
            let name = format!("{prefix}{}", param.name);
            let Ok(tensor) = tensors.tensor(&name) else { return Err(Error::Missing { name }) };
            if tensor.dtype() != Dtype::F32 {
                return Err(Error::Type { name, got: tensor.dtype().to_string() });
            }
            if tensor.shape() != param.shape {
                return Err(Error::Shape { name, expected: param.shape.clone(), got: tensor.shape().to_vec() });
            }
            loaded.push(tensor.data());
        }
        for (param, data) in self.entries.iter_mut().zip(loaded) {
            let (numbers, _) = data.as_chunks::<4>();
            for (to, from) in param.value.as_mut_slice().iter_mut().zip(numbers) {
                *to = f32::from_le_bytes(*from);
            }
        }
        Ok(())
    }

    pub(crate) fn owns(&self, id: ParamId) -> bool {
        id.store == self.store
    }

    pub(crate) fn entries(&self) -> &[Param] {
        &self.entries
    }

    pub(crate) fn entries_mut(&mut self) -> &mut [Param] {
        &mut self.entries
    }

    fn entry(&self, id: ParamId) -> &Param {
        assert!(self.owns(id), "a parameter belongs to the store it was added to");
        &self.entries[id.index as usize]
    }

    fn entry_mut(&mut self, id: ParamId) -> &mut Param {
        assert!(self.owns(id), "a parameter belongs to the store it was added to");
        &mut self.entries[id.index as usize]
    }
}

/// The metadata of a parameter file.
///
/// # Errors
/// If the bytes are not a parameter file.
pub fn read_notes(file: &[u8]) -> Result<Vec<(String, String)>> {
    refuse_oversized(file)?;
    let (_, header) = SafeTensors::read_metadata(file)?;
    let mut notes: Vec<_> = header.metadata().iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
    notes.sort_unstable();
    Ok(notes)
}

fn read(file: &[u8]) -> Result<SafeTensors<'_>> {
    refuse_oversized(file)?;
    Ok(SafeTensors::deserialize(file)?)
}

/// Refuses a header with a number so long that sums of offsets could overflow while it is checked.
fn refuse_oversized(file: &[u8]) -> Result<()> {
    const MOST: usize = 15;
    let (mut digits, mut in_string, mut escaped) = (0, false, false);
    // The header ends before the data does; to scan on into the data would refuse sound files.
    let length = file.first_chunk::<8>().map_or(0, |n| u64::from_le_bytes(*n));
    let end = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(8).min(file.len());
    for &byte in file.get(8..end).unwrap_or_default() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ => {}
        }
        digits = if !in_string && byte.is_ascii_digit() { digits + 1 } else { 0 };
        if digits > MOST {
            return Err(Error::Oversized { digits, most: MOST });
        }
    }
    Ok(())
}

impl View for &Param {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(self.value.as_slice().iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    fn data_len(&self) -> usize {
        self.value.as_slice().len() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Params {
        let mut params = Params::new();
        params.add("layer.weight", Matrix::from_fn(3, 4, |i, j| (i * 4 + j) as f32));
        params.add_shaped("layer.bias", &[3], Matrix::row_vector(vec![0.1, 0.2, 0.3]));
        params
    }

    fn bytes(params: &Params) -> Vec<u8> {
        let mut file = Vec::new();
        params.save(&mut file, Some(("kind", "test"))).unwrap();
        file
    }

    #[test]
    fn parameters_come_back_from_a_file() {
        let file = bytes(&store());
        let mut other = store();
        assert_eq!(other.ids().map(|id| other.file_shape(id).len()).collect::<Vec<_>>(), [2, 1]);
        for param in other.entries_mut() {
            param.value.as_mut_slice().fill(-1.0);
        }
        other.load(&file).unwrap();
        for (a, b) in store().entries().iter().zip(other.entries()) {
            assert_eq!(a.value, b.value);
        }
        assert_eq!(read_notes(&file).unwrap(), [("kind".to_owned(), "test".to_owned())]);
        assert_eq!(bytes(&other), file);
    }

    #[test]
    fn a_prefix_selects_tensors_of_a_larger_file() {
        let mut large = Params::new();
        large.add("init.layer.weight", Matrix::full(3, 4, 5.0));
        large.add_shaped("init.layer.bias", &[3], Matrix::full(1, 3, 6.0));
        large.add("other", Matrix::zeros(1, 1));
        let mut params = store();
        params.load_prefixed(&bytes(&large), "init.").unwrap();
        assert_eq!(params.value(params.id("layer.bias").unwrap()).row(0), [6.0; 3]);
    }

    #[test]
    fn what_does_not_fit_is_named_and_changes_nothing() {
        let mut small = Params::new();
        small.add("layer.weight", Matrix::full(3, 4, 9.0));
        let mut params = store();
        let error = params.load(&bytes(&small)).unwrap_err();
        assert_eq!(error.to_string(), "parameter `layer.bias` is missing from the file");
        assert_eq!(params.entries()[0].value.get(0, 1), 1.0);

        let mut more = store();
        more.add("extra", Matrix::zeros(1, 1));
        let error = params.load(&bytes(&more)).unwrap_err();
        assert_eq!(error.to_string(), "tensor `extra` in the file belongs to no parameter");

        let mut flat = Params::new();
        flat.add("layer.weight", Matrix::zeros(4, 3));
        flat.add_shaped("layer.bias", &[3], Matrix::zeros(1, 3));
        let error = params.load(&bytes(&flat)).unwrap_err();
        assert_eq!(error.to_string(), "shape of parameter `layer.weight`: expected `[3, 4]`, got `[4, 3]`");
    }

    #[test]
    fn damaged_files_are_refused_without_a_panic() {
        let file = bytes(&store());
        let mut params = store();
        for end in 0..file.len() {
            assert!(params.load(&file[..end]).is_err(), "cut at {end}");
        }
        for i in 0..file.len().min(300) {
            for bit in 0..8 {
                let mut damaged = file.clone();
                damaged[i] ^= 1 << bit;
                let _ = params.load(&damaged);
            }
        }
        let header = br#"{"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]}}"#;
        let mut huge = (header.len() as u64).to_le_bytes().to_vec();
        huge.extend_from_slice(header);
        assert!(matches!(params.load(&huge), Err(Error::Oversized { .. })));
        assert!(params.load(&u64::MAX.to_le_bytes()).is_err());
    }
}
