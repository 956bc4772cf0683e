//! Products, Gram matrices, eigenvectors and linear systems, in `f64`, row by row.
//!
//! Large inputs are cut into blocks of rows of a fixed size: the blocks run in parallel and are added up in order, so
//! that the bytes do not depend on the number of threads. What may take long asks between its blocks whether it should
//! go on, and has no prediction where it was told to stop.

use rayon::prelude::*;

pub use crate::eigen::{Eigen, eigen};

/// Asked between pieces of work: whether to go on.
pub type GoOn<'a> = &'a (dyn Fn() -> bool + Sync);
/// Work that is never told to stop.
pub const ALWAYS: GoOn<'static> = &|| true;

/// The rows of a block: large enough to run at full speed, small enough to stay in the cache.
const BLOCK: usize = 1024;
/// Blocks that are held in memory before they are added up.
const AT_ONCE: usize = 16;

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
pub fn product(a: &[f64], b: &[f64], k: usize, m: usize, go_on: GoOn<'_>) -> Option<Vec<f64>> {
    let n = a.len() / k.max(1);
    let mut out = vec![0.0; n * m]; // [n, m]
    if n * k * m > 0 {
        let blocks = out.par_chunks_mut(BLOCK * m).zip(a.par_chunks(BLOCK * k));
        blocks.filter(|_| go_on()).for_each(|(out, a)| {
            gemm(a, Shape::plain(a.len() / k, k), b, Shape::plain(k, m), out);
        });
    }
    go_on().then_some(out)
}

/// `x' x` of `x: [n, w]`.
pub fn gram(x: &[f64], w: usize, go_on: GoOn<'_>) -> Option<Vec<f64>> {
    cross(x, w, x, w, go_on)
}

/// `x' y` of `x: [n, w]` and `y: [n, v]`.
pub fn cross(x: &[f64], w: usize, y: &[f64], v: usize, go_on: GoOn<'_>) -> Option<Vec<f64>> {
    let mut sum = vec![0.0; w * v]; // [w, v]
    let several = AT_ONCE * BLOCK;
    for (x, y) in x.chunks(several * w.max(1)).zip(y.chunks(several * v.max(1))) {
        let blocks = x.par_chunks(BLOCK * w.max(1)).zip(y.par_chunks(BLOCK * v.max(1)));
        let product = |(x, y): (&[f64], &[f64])| {
            let mut part = vec![0.0; w * v]; // [w, v]
            let rows = x.len() / w;
            gemm(x, Shape::plain(rows, w).transposed(), y, Shape::plain(rows, v), &mut part);
            part
        };
        let parts: Vec<Option<Vec<f64>>> = blocks.map(|block| go_on().then(|| product(block))).collect();
        for part in parts {
            add(&mut sum, &part?);
        }
    }
    Some(sum)
}

/// `x x'` of `x: [n, w]`.
pub fn outer_gram(x: &[f64], w: usize, go_on: GoOn<'_>) -> Option<Vec<f64>> {
    let n = x.len() / w.max(1);
    let mut out = vec![0.0; n * n]; // [n, n]
    out.par_chunks_mut(BLOCK.min(64) * n.max(1)).enumerate().filter(|_| go_on()).for_each(|(block, out)| {
        let first = block * BLOCK.min(64);
        let rows = out.len() / n;
        let part = &x[first * w..(first + rows) * w];
        gemm(part, Shape::plain(rows, w), x, Shape::plain(n, w).transposed(), out);
    });
    go_on().then_some(out)
}

/// The singular values of `x: [n, w]`, the largest first, and the right singular vectors, one a row, from the smaller of
/// the two Gram matrices.
pub fn singular(x: &[f64], w: usize, go_on: GoOn<'_>) -> Option<(Vec<f64>, Vec<f64>)> {
    let n = x.len() / w.max(1);
    let roots = |values: &[f64]| values.iter().map(|v| v.max(0.0).sqrt()).collect();
    if w <= n {
        let found = eigen(&gram(x, w, go_on)?, w, go_on)?;
        return Some((roots(&found.values), found.vectors));
    }
    let found = eigen(&outer_gram(x, w, go_on)?, n, go_on)?;
    let values: Vec<f64> = roots(&found.values);
    let mut vectors = product(&found.vectors, x, n, w, go_on)?; // [n, w]
    for (vector, &s) in vectors.chunks_exact_mut(w).zip(&values) {
        let length = dot(vector, vector).sqrt();
        // A direction that is only rounding must not be blown up to length one.
        let factor = if s > 1e-7 * values[0] && length > 0.0 { 1.0 / length } else { 0.0 };
        vector.iter_mut().for_each(|v| *v *= factor);
    }
    Some((values, vectors))
}

/// `sum += part`.
pub fn add(sum: &mut [f64], part: &[f64]) {
    sum.iter_mut().zip(part).for_each(|(s, p)| *s += p);
}

/// The sum of products.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The lower triangle `L` of `a = L L'`, in place of `a: [w, w]`. False where `a` is not positive definite, or it was told
/// to stop.
#[must_use]
pub fn cholesky(a: &mut [f64], w: usize, go_on: GoOn<'_>) -> bool {
    for j in 0..w {
        if !go_on() {
            return false;
        }
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
        assert_eq!(gram(&x, 2, ALWAYS).unwrap(), [35.0, 44.0, 44.0, 56.0]);
        assert_eq!(outer_gram(&x, 2, ALWAYS).unwrap(), [5.0, 11.0, 17.0, 11.0, 25.0, 39.0, 17.0, 39.0, 61.0]);
        assert_eq!(product(&x, &[1.0, 0.0, 1.0, 1.0], 2, 2, ALWAYS).unwrap(), [3.0, 2.0, 7.0, 4.0, 11.0, 6.0]);
        assert_eq!(cross(&x, 2, &[1.0, 1.0, 1.0], 1, ALWAYS).unwrap(), [9.0, 12.0]);
    }

    #[test]
    fn a_wide_matrix_has_the_singular_values_of_its_transpose() {
        let wide = [1.0, 2.0, 0.0, 0.0, 0.0, 3.0]; // [2, 3]
        let (values, vectors) = singular(&wide, 3, ALWAYS).unwrap();
        assert!((values[0] - 3.0).abs() < 1e-12 && (values[1] - 5.0_f64.sqrt()).abs() < 1e-12);
        assert!((vectors[2].abs() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn blocks_add_up_to_the_whole() {
        let n = (AT_ONCE + 3) * BLOCK + 7;
        let x: Vec<f64> = (0..n).map(|i| (i % 5) as f64).collect();
        let sum: f64 = x.iter().map(|v| v * v).sum();
        assert_eq!(gram(&x, 1, ALWAYS).unwrap(), [sum]);
        assert_eq!(product(&x, &[2.0], 1, 1, ALWAYS).unwrap()[n - 1], 2.0 * x[n - 1]);
    }

    #[test]
    fn work_that_is_told_to_stop_has_no_answer() {
        let (x, stop): (_, GoOn<'_>) = ([1.0, 2.0], &|| false);
        assert!(gram(&x, 1, stop).is_none() && outer_gram(&x, 1, stop).is_none());
        assert!(product(&x, &x, 1, 2, stop).is_none() && !cholesky(&mut [1.0], 1, stop));
    }

    #[test]
    fn a_positive_definite_system_is_solved_and_another_refused() {
        let mut a = [4.0, 2.0, 2.0, 5.0];
        let mut b = [8.0, 12.0];
        assert!(cholesky(&mut a, 2, ALWAYS));
        solve_cholesky(&a, &mut b);
        assert_eq!(b, [1.0, 2.0]);
        assert!(!cholesky(&mut [1.0, 2.0, 2.0, 1.0], 2, ALWAYS));
    }
}
