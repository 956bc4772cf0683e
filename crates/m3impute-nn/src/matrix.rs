//! A row-major matrix of `f32`.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use crate::error::{Error, Result};

/// A row-major matrix of `f32`.
///
/// ```
/// use m3impute_nn::Matrix;
///
/// let a = Matrix::from_rows(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]); // [2, 3]
/// assert_eq!(a.shape(), (2, 3));
/// assert_eq!(a.row(1), [4.0, 5.0, 6.0]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<f32>,
}

impl Matrix {
    /// All zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self::full(rows, cols, 0.0)
    }

    /// All the same value.
    pub fn full(rows: usize, cols: usize, value: f32) -> Self {
        Self { rows, cols, data: vec![value; rows * cols] }
    }

    /// Takes over `data`, row after row.
    ///
    /// # Errors
    /// [`Error::Length`] if `data` does not hold `rows * cols` values.
    pub fn from_vec(rows: usize, cols: usize, data: Vec<f32>) -> Result<Self> {
        if rows.checked_mul(cols) != Some(data.len()) {
            return Err(Error::Length { rows, cols, got: data.len() });
        }
        Ok(Self { rows, cols, data })
    }

    /// Copies rows of equal length.
    pub fn from_rows<const N: usize>(rows: &[[f32; N]]) -> Self {
        Self { rows: rows.len(), cols: N, data: rows.as_flattened().to_vec() }
    }

    /// One value for each (row, column).
    pub fn from_fn(rows: usize, cols: usize, mut value: impl FnMut(usize, usize) -> f32) -> Self {
        let mut data = Vec::with_capacity(rows * cols);
        for row in 0..rows {
            data.extend((0..cols).map(|col| value(row, col)));
        }
        Self { rows, cols, data }
    }

    /// A column vector `[n, 1]`.
    pub fn column(values: Vec<f32>) -> Self {
        Self { rows: values.len(), cols: 1, data: values }
    }

    /// A row vector `[1, n]`.
    pub fn row_vector(values: Vec<f32>) -> Self {
        Self { rows: 1, cols: values.len(), data: values }
    }

    /// Uniform in `[low, high)`.
    pub fn uniform(rows: usize, cols: usize, low: f32, high: f32, rng: &mut ChaCha8Rng) -> Self {
        Self::from_fn(rows, cols, |_, _| low + (high - low) * unit(rng))
    }

    /// Normal with mean zero and standard deviation `deviation`.
    pub fn normal(rows: usize, cols: usize, deviation: f32, rng: &mut ChaCha8Rng) -> Self {
        // Box and Muller: a pair of uniforms gives a pair of normals; the second waits for the next cell.
        let mut second = None;
        Self::from_fn(rows, cols, |_, _| {
            let z = second.take().unwrap_or_else(|| {
                let radius = (-2.0 * f64::from(1.0 - unit(rng)).ln()).sqrt();
                let angle = std::f64::consts::TAU * f64::from(unit(rng));
                second = Some(radius * angle.sin());
                radius * angle.cos()
            });
            deviation * z as f32
        })
    }

    /// Weight `[outputs, inputs]` and bias `[1, outputs]` of a linear layer as PyTorch starts them: both uniform
    /// within `1 / sqrt(inputs)` of zero.
    ///
    /// ```
    /// use m3impute_nn::Matrix;
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    ///
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let (weight, bias) = Matrix::linear_init(3, 4, &mut rng); // [3, 4], [1, 3]
    /// assert!(weight.as_slice().iter().chain(bias.as_slice()).all(|w| w.abs() <= 0.5));
    /// ```
    pub fn linear_init(outputs: usize, inputs: usize, rng: &mut ChaCha8Rng) -> (Self, Self) {
        let bound = 1.0 / (inputs.max(1) as f32).sqrt();
        (Self::uniform(outputs, inputs, -bound, bound, rng), Self::uniform(1, outputs, -bound, bound, rng))
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// `(rows, columns)`.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// The values, row after row.
    pub fn as_slice(&self) -> &[f32] {
        &self.data
    }

    /// The values, row after row.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// The values, row after row.
    pub fn into_vec(self) -> Vec<f32> {
        self.data
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.data[row * self.cols..(row + 1) * self.cols]
    }

    /// One row.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.data[row * self.cols..(row + 1) * self.cols]
    }

    /// One value.
    pub fn get(&self, row: usize, col: usize) -> f32 {
        self.row(row)[col]
    }

    /// A buffer whose length is known to fit.
    pub(crate) fn from_parts(rows: usize, cols: usize, data: Vec<f32>) -> Self {
        debug_assert_eq!(rows * cols, data.len());
        Self { rows, cols, data }
    }
}

/// Uniform in `[0, 1)` on the grid of 24 bits, so that each value is exact.
fn unit(rng: &mut ChaCha8Rng) -> f32 {
    (rng.next_u32() >> 8) as f32 / (1u32 << 24) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn a_length_that_does_not_fit_is_refused() {
        let error = Matrix::from_vec(2, 3, vec![0.0; 5]).unwrap_err();
        assert_eq!(error.to_string(), "expected `2` x `3` = `6` values, got `5`");
    }

    #[test]
    fn normal_draws_have_their_mean_and_deviation() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let x = Matrix::normal(100, 101, 2.0, &mut rng);
        let n = x.as_slice().len() as f64;
        let mean = x.as_slice().iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        let variance = x.as_slice().iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
        assert!(mean.abs() < 0.06, "mean {mean}");
        assert!((variance.sqrt() - 2.0).abs() < 0.05, "deviation {}", variance.sqrt());
    }

    #[test]
    fn the_same_seed_draws_the_same_matrix() {
        let draw = || Matrix::uniform(3, 5, -1.0, 1.0, &mut ChaCha8Rng::seed_from_u64(9));
        assert_eq!(draw(), draw());
    }
}
