//! What can go wrong outside of a programmer's mistake: parameter files and given data.

/// The error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The length of the data is not the product of the shape.
    #[error("expected `{rows}` x `{cols}` = `{}` values, got `{got}`", rows * cols)]
    Length {
        /// Rows asked for.
        rows: usize,
        /// Columns asked for.
        cols: usize,
        /// Values given.
        got: usize,
    },
    /// The bytes are not a parameter file.
    #[error("not a readable parameter file: {0}")]
    Format(#[from] safetensors::SafeTensorError),
    /// The header of a parameter file holds a number that no file can reach.
    #[error("parameter file names a size of `{digits}` digits, expected at most `{most}`")]
    Oversized {
        /// Digits of the number found.
        digits: usize,
        /// Digits allowed.
        most: usize,
    },
    /// A parameter has no tensor in the file.
    #[error("parameter `{name}` is missing from the file")]
    Missing {
        /// The name looked for.
        name: String,
    },
    /// A tensor in the file belongs to no parameter.
    #[error("tensor `{name}` in the file belongs to no parameter")]
    Unexpected {
        /// The name found.
        name: String,
    },
    /// A tensor has another shape than its parameter.
    #[error("shape of parameter `{name}`: expected `{expected:?}`, got `{got:?}`")]
    Shape {
        /// The parameter.
        name: String,
        /// Shape of the parameter.
        expected: Vec<usize>,
        /// Shape in the file.
        got: Vec<usize>,
    },
    /// A tensor holds another type of number.
    #[error("type of parameter `{name}`: expected `F32`, got `{got}`")]
    Type {
        /// The parameter.
        name: String,
        /// Type in the file.
        got: String,
    },
    /// Writing failed.
    #[error("could not write the parameters: {0}")]
    Write(#[from] std::io::Error),
}

/// The result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
