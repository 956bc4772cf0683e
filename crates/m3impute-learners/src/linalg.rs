//! Products, Gram matrices, eigenvectors and linear systems, in `f64`, row by row.
//!
//! Large inputs are cut into blocks of rows of a fixed size: the blocks run in parallel and are added up in order, so
//! that the bytes do not depend on the number of threads.

use nalgebra::DMatrix;
use rayon::prelude::*;

/// The rows of a block: large enough to run at full speed, small enough to stay in the cache.
const BLOCK: usize = 1024;

/// How a matrix of `rows x cols` numbers lies in memory.
#[derive(Clone, Copy)]
struct Shape {
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl Shape {
    fn plain(rows: usize, cols: usize) -> Shape {
        Shape { rows, cols, row_stride: cols, col_stride: 1 }
    }

    fn transposed(self) -> Shape {
        Shape { rows: self.cols, cols: self.rows, row_stride: self.col_stride, col_stride: self.row_stride }
    }

    /// How many numbers there must be.
    fn reach(self) -> usize {
        if self.rows == 0 || self.cols == 0 {
            0
        } else {
            (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride + 1
        }
    }
}

/// `out = a b`.
fn gemm(a: &[f64], a_shape: Shape, b: &[f64], b_shape: Shape, out: &mut [f64]) {
    assert_eq!(a_shape.cols, b_shape.rows);
    let out_shape = Shape::plain(a_shape.rows, b_shape.cols);
    assert!(a.len() >= a_shape.reach() && b.len() >= b_shape.reach() && out.len() >= out_shape.reach());
    // SAFETY: every address that the strides can reach lies within its slice, as asserted above; `out` is borrowed
    // exclusively, so nothing aliases it. There is no safe dgemm that comes near this speed.
    #[allow(unsafe_code)]
    unsafe {
        matrixmultiply::dgemm(
            a_shape.rows,
            a_shape.cols,
            b_shape.cols,
            1.0,
            a.as_ptr(),
            a_shape.row_stride as isize,
            a_shape.col_stride as isize,
            b.as_ptr(),
            b_shape.row_stride as isize,
            b_shape.col_stride as isize,
            0.0,
            out.as_mut_ptr(),
            out_shape.row_stride as isize,
            1,
        );
    }
}

/// `a b`, where `a` is `[n, k]` and `b` is `[k, m]`; `a` may be long.
pub fn product(a: &[f64], b: &[f64], k: usize, m: usize) -> Vec<f64> {
    let n = a.len() / k.max(1);
    let mut out = vec![0.0; n * m]; // [n, m]
    if n * k * m > 0 {
        out.par_chunks_mut(BLOCK * m).zip(a.par_chunks(BLOCK * k)).for_each(|(out, a)| {
            gemm(a, Shape::plain(a.len() / k, k), b, Shape::plain(k, m), out);
        });
    }
    out
}

/// `x' x` of `x: [n, w]`.
pub fn gram(x: &[f64], w: usize) -> Vec<f64> {
    cross(x, w, x, w)
}

/// `x' y` of `x: [n, w]` and `y: [n, v]`.
pub fn cross(x: &[f64], w: usize, y: &[f64], v: usize) -> Vec<f64> {
    let parts: Vec<Vec<f64>> = x
        .par_chunks(BLOCK * w.max(1))
        .zip(y.par_chunks(BLOCK * v.max(1)))
        .map(|(x, y)| {
            let mut part = vec![0.0; w * v]; // [w, v]
            let rows = x.len() / w;
            gemm(x, Shape::plain(rows, w).transposed(), y, Shape::plain(rows, v), &mut part);
            part
        })
        .collect();
    let mut sum = vec![0.0; w * v]; // [w, v]
    for part in parts {
        add(&mut sum, &part);
    }
    sum
}

/// `x x'` of `x: [n, w]`.
pub fn outer_gram(x: &[f64], w: usize) -> Vec<f64> {
    let n = x.len() / w.max(1);
    let mut out = vec![0.0; n * n]; // [n, n]
    out.par_chunks_mut(BLOCK.min(64) * n.max(1)).enumerate().for_each(|(block, out)| {
        let first = block * BLOCK.min(64);
        let rows = out.len() / n;
        let part = &x[first * w..(first + rows) * w];
        gemm(part, Shape::plain(rows, w), x, Shape::plain(n, w).transposed(), out);
    });
    out
}

/// `sum += part`.
pub fn add(sum: &mut [f64], part: &[f64]) {
    sum.iter_mut().zip(part).for_each(|(s, p)| *s += p);
}

/// The sum of products.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Eigenvalues, the largest first, and their eigenvectors: vector `i` is row `i`.
#[derive(Clone, Debug)]
pub struct Eigen {
    /// The values, falling, `[w]`.
    pub values: Vec<f64>,
    /// A vector a row, `[w, w]`.
    pub vectors: Vec<f64>,
}

/// The eigenvectors of a symmetric matrix `[w, w]`. Each is turned so that its largest entry is positive.
pub fn eigen(symmetric: &[f64], w: usize) -> Eigen {
    if w == 0 {
        return Eigen { values: Vec::new(), vectors: Vec::new() };
    }
    let found = DMatrix::from_row_slice(w, w, symmetric).symmetric_eigen();
    let mut order: Vec<usize> = (0..w).collect();
    order.sort_by(|&a, &b| found.eigenvalues[b].total_cmp(&found.eigenvalues[a]));
    let mut vectors = Vec::with_capacity(w * w);
    for &i in &order {
        let vector = found.eigenvectors.column(i);
        let largest = vector.iter().copied().fold(0.0_f64, |a, b| if b.abs() > a.abs() { b } else { a });
        vectors.extend(vector.iter().map(|v| if largest < 0.0 { -v } else { *v }));
    }
    Eigen { values: order.iter().map(|&i| found.eigenvalues[i]).collect(), vectors }
}

/// The lower triangle `L` of `a = L L'`, in place of `a: [w, w]`. False where `a` is not positive definite.
#[must_use]
pub fn cholesky(a: &mut [f64], w: usize) -> bool {
    for j in 0..w {
        let (above, here) = a.split_at_mut(j * w);
        for k in 0..j {
            here[k] = (here[k] - dot(&here[..k], &above[k * w..k * w + k])) / above[k * w + k];
        }
        let rest = here[j] - dot(&here[..j], &here[..j]);
        if rest.is_nan() || rest <= 0.0 {
            return false;
        }
        here[j] = rest.sqrt();
    }
    true
}

/// Solves `L L' x = b` in place of `b`, for the triangle that [`cholesky`] leaves.
pub fn solve_cholesky(l: &[f64], b: &mut [f64]) {
    let w = b.len();
    for i in 0..w {
        b[i] = (b[i] - dot(&b[..i], &l[i * w..i * w + i])) / l[i * w + i];
    }
    for i in (0..w).rev() {
        b[i] /= l[i * w + i];
        let x = b[i];
        for (b, l) in b[..i].iter_mut().zip(&l[i * w..i * w + i]) {
            *b -= x * l;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_gram_matrices_agree_with_the_hand() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; // [3, 2]
        assert_eq!(gram(&x, 2), [35.0, 44.0, 44.0, 56.0]);
        assert_eq!(outer_gram(&x, 2), [5.0, 11.0, 17.0, 11.0, 25.0, 39.0, 17.0, 39.0, 61.0]);
        assert_eq!(product(&x, &[1.0, 0.0, 1.0, 1.0], 2, 2), [3.0, 2.0, 7.0, 4.0, 11.0, 6.0]);
        assert_eq!(cross(&x, 2, &[1.0, 1.0, 1.0], 1), [9.0, 12.0]);
    }

    #[test]
    fn blocks_add_up_to_the_whole() {
        let n = 3 * BLOCK + 7;
        let x: Vec<f64> = (0..n).map(|i| (i % 5) as f64).collect();
        let sum: f64 = x.iter().map(|v| v * v).sum();
        assert_eq!(gram(&x, 1), [sum]);
        assert_eq!(product(&x, &[2.0], 1, 1)[n - 1], 2.0 * x[n - 1]);
    }

    #[test]
    fn eigenvectors_come_with_the_largest_value_first() {
        let found = eigen(&[2.0, 1.0, 1.0, 2.0], 2);
        assert!((found.values[0] - 3.0).abs() < 1e-12 && (found.values[1] - 1.0).abs() < 1e-12);
        assert!((found.vectors[0] - 0.5_f64.sqrt()).abs() < 1e-12 && (found.vectors[1] - 0.5_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_positive_definite_system_is_solved_and_another_refused() {
        let mut a = [4.0, 2.0, 2.0, 5.0];
        let mut b = [8.0, 12.0];
        assert!(cholesky(&mut a, 2));
        solve_cholesky(&a, &mut b);
        assert_eq!(b, [1.0, 2.0]);
        assert!(!cholesky(&mut [1.0, 2.0, 2.0, 1.0], 2));
    }
}
