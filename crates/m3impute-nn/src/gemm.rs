//! Matrix products on one thread: the block that everything else is cut into.
//!
//! Rows are cut into fixed blocks whose operands stay in the second-level cache, and the work that follows a product is
//! done while its block is still there. On x86-64 products go to [`tiles`], which copies little; elsewhere to the crate
//! `matrixmultiply`, which brings two small crates and builds in seconds. One thread, GFLOPS: with 512-bit instructions
//! the best of half a second, with 256-bit ones (another machine) the best of six times 80 ms in turns (`gemm` 0.19 with
//! its feature `x86-v4`, which brings some forty crates, was measured another day):
//!
//! | product | 512 bits: `matrixmultiply` 0.3.11 | `gemm` | `tiles` | 256 bits: `matrixmultiply` | `tiles` |
//! | --- | --- | --- | --- | --- | --- |
//! | `x w^T`, [256, 128] x [128, 128] | 143 | 159 | 154 | 71 | 81 |
//! | `x w`, [256, 128] x [128, 128] | 143 | | 168 | 76 | 90 |
//! | `dy^T x`, [128, 256] x [256, 128] | 145 | 163 | 150 | 78 | 77 |
//! | `x w`, [512, 64] x [64, 64] | 124 | 145 | 170 | 69 | 84 |
//! | `dy^T x`, [64, 512] x [512, 64] | 126 | | 162 | 72 | 68 |
//! | `x w`, [512, 48] x [48, 48] | | | | 61 | 83 |
//! | `dy^T x`, [48, 512] x [512, 48] | | | | 74 | 79 |
//! | `x w`, [1024, 32] x [32, 32] | 101 | | 160 | 48 | 81 |
//! | `dy^T x`, [32, 1024] x [1024, 32] | 105 | | 165 | 60 | 52 |

#[cfg(target_arch = "x86_64")]
mod tiles;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use matrixmultiply::sgemm;

use crate::lanes;
use crate::simd::{fma, kernel};

/// Whether a product replaces its target or is added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Set,
    Add,
}

impl Write {
    fn beta(self) -> f32 {
        match self {
            Write::Set => 0.0,
            Write::Add => 1.0,
        }
    }
}

/// A matrix, and how far it is to its next row and its next column.
type Strided<'a> = (&'a [f32], [usize; 2]);

/// `out (+)= a b^T` with `a` [m, k], `b` [n, k], `out` [m, n].
pub(crate) fn nt(write: Write, (m, k, n): (usize, usize, usize), a: &[f32], b: &[f32], out: &mut [f32]) {
    check(m * k, n * k, m * n, a, b, out);
    if n == 1 {
        row_dots(write, k, a, b, out);
    } else if k == 1 {
        outer(write, n, a, b, out);
    } else {
        multiply(write, (m, k, n), (a, [k, 1]), (b, [1, k]), out);
    }
}

/// `out (+)= a b` with `a` [m, k], `b` [k, n], `out` [m, n].
pub(crate) fn nn(write: Write, (m, k, n): (usize, usize, usize), a: &[f32], b: &[f32], out: &mut [f32]) {
    check(m * k, k * n, m * n, a, b, out);
    if n == 1 {
        row_dots(write, k, a, b, out);
    } else if k == 1 {
        outer(write, n, a, b, out);
    } else if is_narrow(k, n) {
        narrow_rows(write, (k, n), a, b, out);
    } else {
        multiply(write, (m, k, n), (a, [k, 1]), (b, [n, 1]), out);
    }
}

/// `out (+)= a^T b` with `a` [k, m], `b` [k, n], `out` [m, n].
pub(crate) fn tn(write: Write, (m, k, n): (usize, usize, usize), a: &[f32], b: &[f32], out: &mut [f32]) {
    check(k * m, k * n, m * n, a, b, out);
    if m == 1 {
        weighted_rows(write, a, b, out);
    } else if n == 1 {
        weighted_rows(write, b, a, out);
    } else if is_narrow(m, n) {
        narrow_sums(write, (m, n), a, b, out);
    } else {
        multiply(write, (m, k, n), (a, [1, m]), (b, [n, 1]), out);
    }
}

/// `out (+)= a b` with `a` [m, k] and `b` [k, n], whose next row and next column are so far away, and row-major `out`.
fn multiply(write: Write, (m, k, n): (usize, usize, usize), a: Strided<'_>, b: Strided<'_>, out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    if m * k * n > 0 {
        if crate::simd::has_avx512() {
            // SAFETY: the instructions were detected on this processor.
            return unsafe { tiles::multiply::<std::arch::x86_64::__m512>(write, (m, k, n), a, b, out) };
        }
        if crate::simd::has_avx2() {
            // SAFETY: the instructions were detected on this processor.
            return unsafe { tiles::multiply::<std::arch::x86_64::__m256>(write, (m, k, n), a, b, out) };
        }
    }
    by_crate(write, (m, k, n), a, b, out);
}

/// The same on any processor.
fn by_crate(write: Write, (m, k, n): (usize, usize, usize), a: Strided<'_>, b: Strided<'_>, out: &mut [f32]) {
    let ((a, [a_row, a_col]), (b, [b_row, b_col])) = (a, b);
    let of = |stride: usize| stride as isize;
    #[allow(unsafe_code)]
    // SAFETY: the callers hold each operand to its dimensions, and the strides describe just those. `out` is borrowed
    // mutably, so it overlaps neither.
    unsafe {
        let (a, b, out) = (a.as_ptr(), b.as_ptr(), out.as_mut_ptr());
        sgemm(m, k, n, 1.0, a, of(a_row), of(a_col), b, of(b_row), of(b_col), write.beta(), out, of(n), 1);
    }
}

fn check(len_a: usize, len_b: usize, len_out: usize, a: &[f32], b: &[f32], out: &[f32]) {
    assert_eq!((a.len(), b.len(), out.len()), (len_a, len_b, len_out), "operands of a product do not fit");
}

// Products of matrices so narrow that a row is half a vector or one: most of the tile of a GEMM would be empty.

fn is_narrow(rows: usize, cols: usize) -> bool {
    rows <= 16 && matches!(cols, 8 | 16)
}

kernel! {
    fn narrow_rows<const FMA: bool>(write: Write, size: (usize, usize), a: &[f32], b: &[f32], out: &mut [f32]) {
        let (k, n) = size;
        match n {
            8 => narrow_rows_of::<FMA, 8>(write, k, a, b, out),
            _ => narrow_rows_of::<FMA, 16>(write, k, a, b, out),
        }
    }
}

#[inline(always)]
fn narrow_rows_of<const FMA: bool, const N: usize>(write: Write, k: usize, a: &[f32], b: &[f32], out: &mut [f32]) {
    let (b, out) = (b.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    for (a, out) in a.chunks_exact(k).zip(out) {
        let mut sum = if write == Write::Add { *out } else { [0.0; N] };
        for (&x, row) in a.iter().zip(b) {
            for j in 0..N {
                sum[j] = fma::<FMA>(x, row[j], sum[j]);
            }
        }
        *out = sum;
    }
}

kernel! {
    fn narrow_sums<const FMA: bool>(write: Write, size: (usize, usize), a: &[f32], b: &[f32], out: &mut [f32]) {
        let (m, n) = size;
        match n {
            8 => narrow_sums_of::<FMA, 8>(write, m, a, b, out),
            _ => narrow_sums_of::<FMA, 16>(write, m, a, b, out),
        }
    }
}

/// Four rows of the sum at a time, which stay in registers.
#[inline(always)]
fn narrow_sums_of<const FMA: bool, const N: usize>(write: Write, m: usize, a: &[f32], b: &[f32], out: &mut [f32]) {
    let (b, out) = (b.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    for (group, out) in out.chunks_mut(4).enumerate() {
        let first = 4 * group;
        let mut sums = [[0.0; N]; 4];
        if out.len() == 4 {
            for (a, b) in a.chunks_exact(m).zip(b) {
                let x: [f32; 4] = [a[first], a[first + 1], a[first + 2], a[first + 3]];
                for i in 0..4 {
                    for j in 0..N {
                        sums[i][j] = fma::<FMA>(x[i], b[j], sums[i][j]);
                    }
                }
            }
        } else {
            for (a, b) in a.chunks_exact(m).zip(b) {
                for (x, sum) in a[first..].iter().zip(&mut sums) {
                    for j in 0..N {
                        sum[j] = fma::<FMA>(*x, b[j], sum[j]);
                    }
                }
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            match write {
                Write::Set => *out = sum,
                Write::Add => out.iter_mut().zip(sum).for_each(|(y, s)| *y += s),
            }
        }
    }
}

// Products with a single column or a single inner dimension have nothing to reuse: the packing of a GEMM would
// cost more than the product.

kernel! {
    fn row_dots<const FMA: bool>(write: Write, k: usize, a: &[f32], b: &[f32], out: &mut [f32]) {
        for (i, y) in out.iter_mut().enumerate() {
            let v = lanes::dot::<FMA>(&a[i * k..(i + 1) * k], b);
            *y = if write == Write::Add { *y + v } else { v };
        }
    }
}

kernel! {
    fn outer<const FMA: bool>(write: Write, n: usize, a: &[f32], b: &[f32], out: &mut [f32]) {
        for (row, &scale) in out.chunks_exact_mut(n).zip(a) {
            if write == Write::Add {
                for (y, x) in row.iter_mut().zip(b) {
                    *y = fma::<FMA>(scale, *x, *y);
                }
            } else {
                for (y, x) in row.iter_mut().zip(b) {
                    *y = scale * x;
                }
            }
        }
    }
}

kernel! {
    fn weighted_rows<const FMA: bool>(write: Write, weights: &[f32], rows: &[f32], out: &mut [f32]) {
        if write == Write::Set {
            out.fill(0.0);
        }
        if !out.is_empty() {
            for (row, &weight) in rows.chunks_exact(out.len()).zip(weights) {
                lanes::axpy::<FMA>(weight, row, out);
            }
        }
    }
}

/// Lends a piece of memory that stays with the thread; a nested call gets another.
pub(crate) fn with_scratch<T>(len: usize, work: impl FnOnce(&mut [f32]) -> T) -> T {
    thread_local! {
        static SCRATCH: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
    }
    let mut buffer = SCRATCH.with_borrow_mut(Vec::pop).unwrap_or_default();
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    let result = work(&mut buffer[..len]);
    SCRATCH.with_borrow_mut(|buffers| buffers.push(buffer));
    result
}

/// Measures the speed of matrix products on this machine, in GFLOPS over all threads of the current `rayon`
/// pool: products of [512, 128] by [128, 128], whose operands stay in cache, for about `time` on each thread.
///
/// It is the yardstick for the speed of a training step, and therefore that of the crate `matrixmultiply` on every
/// processor, not of the products of this crate, which are faster on some.
///
/// ```
/// let gflops = m3impute_nn::machine_gflops(std::time::Duration::from_millis(20));
/// assert!(gflops > 0.0);
/// ```
pub fn machine_gflops(time: Duration) -> f64 {
    const SIZE: (usize, usize, usize) = (512, 128, 128);
    let (m, k, n) = SIZE;
    let rates = rayon::broadcast(|_| {
        let a = vec![0.5; m * k]; // [m, k]
        let b = vec![0.25; n * k]; // [n, k]
        let mut out = vec![0.0; m * n]; // [m, n]
        let (a, b) = ((&a[..], [k, 1]), (&b[..], [1, k]));
        by_crate(Write::Set, SIZE, a, b, &mut out);
        let start = Instant::now();
        let mut count = 0u32;
        while count == 0 || start.elapsed() < time {
            by_crate(Write::Set, SIZE, a, b, &mut out);
            count += 1;
        }
        std::hint::black_box(&out);
        2.0 * (m * k * n) as f64 * f64::from(count) / start.elapsed().as_secs_f64() / 1e9
    });
    rates.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 37 % 23) as f32 - 11.0) / 8.0).collect()
    }

    fn plain(
        m: usize,
        k: usize,
        n: usize,
        a: impl Fn(usize, usize) -> f32,
        b: impl Fn(usize, usize) -> f32,
    ) -> Vec<f32> {
        (0..m * n).map(|i| (0..k).map(|j| a(i / n, j) * b(j, i % n)).sum()).collect()
    }

    #[test]
    fn products_of_every_shape_match_the_plain_sum() {
        for (m, k, n) in [
            (5, 7, 3),
            (1, 4, 6),
            (6, 1, 5),
            (4, 9, 1),
            (33, 17, 20),
            (1, 1, 1),
            (3, 0, 2),
            (40, 16, 16),
            (300, 8, 8),
            (16, 50, 16),
            (9, 50, 8),
            (30, 3, 16),
            (9, 300, 39),
            (23, 130, 64),
            (21, 129, 128),
            (7, 140, 96),
        ] {
            let (a, b, at) = (numbers(m * k), numbers(k * n), numbers(k * m));
            for (write, start) in [(Write::Set, 0.0), (Write::Add, 2.0)] {
                let same = |out: &[f32], expected: Vec<f32>| {
                    for (got, want) in out.iter().zip(expected) {
                        assert!((got - (want + start)).abs() < 1e-3, "{m} {k} {n}: {got} {want}");
                    }
                };
                let before = vec![if write == Write::Add { start } else { f32::MAX }; m * n];
                let mut out = before.clone();
                nt(write, (m, k, n), &a, &b, &mut out);
                same(&out, plain(m, k, n, |i, j| a[i * k + j], |i, j| b[j * k + i]));
                let mut out = before.clone();
                nn(write, (m, k, n), &a, &b, &mut out);
                same(&out, plain(m, k, n, |i, j| a[i * k + j], |i, j| b[i * n + j]));
                let mut out = before.clone();
                tn(write, (m, k, n), &at, &b, &mut out);
                same(&out, plain(m, k, n, |i, j| at[j * m + i], |i, j| b[i * n + j]));
                let mut out = before.clone();
                by_crate(write, (m, k, n), (&at, [1, m]), (&b, [n, 1]), &mut out);
                same(&out, plain(m, k, n, |i, j| at[j * m + i], |i, j| b[i * n + j]));
            }
        }
    }

    #[test]
    fn nested_scratch_does_not_overlap() {
        with_scratch(8, |outer| {
            outer.fill(1.0);
            with_scratch(8, |inner| inner.fill(2.0));
            assert_eq!(outer, [1.0; 8]);
        });
    }
}
