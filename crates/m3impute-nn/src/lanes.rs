//! Sums over a slice in a fixed number of lanes.
//!
//! The compiler may not reorder a floating-point sum, so a plain loop stays scalar. Here the order is part of
//! the definition: 32 running sums, then a tree. It is the same on every instruction set.

use crate::simd::fma;

const LANES: usize = 32;

#[inline(always)]
fn tree(mut acc: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            acc[i] += acc[i + width];
        }
        width /= 2;
    }
    acc[0]
}

/// Sum of `x`.
#[inline(always)]
pub(crate) fn sum(x: &[f32]) -> f32 {
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut acc = [0.0; LANES];
    for chunk in chunks {
        for i in 0..LANES {
            acc[i] += chunk[i];
        }
    }
    for (a, v) in acc.iter_mut().zip(rest) {
        *a += v;
    }
    tree(acc)
}

/// Sum of `x * y`.
#[inline(always)]
pub(crate) fn dot<const FMA: bool>(x: &[f32], y: &[f32]) -> f32 {
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let (ys, y_rest) = y.as_chunks::<LANES>();
    let mut acc = [0.0; LANES];
    for (a, b) in xs.iter().zip(ys) {
        for i in 0..LANES {
            acc[i] = fma::<FMA>(a[i], b[i], acc[i]);
        }
    }
    for (i, (a, b)) in x_rest.iter().zip(y_rest).enumerate() {
        acc[i] = fma::<FMA>(*a, *b, acc[i]);
    }
    tree(acc)
}

/// Sum of `(x - centre)^2`.
#[inline(always)]
pub(crate) fn squares<const FMA: bool>(x: &[f32], centre: f32) -> f32 {
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut acc = [0.0; LANES];
    for chunk in chunks {
        for i in 0..LANES {
            let v = chunk[i] - centre;
            acc[i] = fma::<FMA>(v, v, acc[i]);
        }
    }
    for (a, x) in acc.iter_mut().zip(rest) {
        let v = x - centre;
        *a = fma::<FMA>(v, v, *a);
    }
    tree(acc)
}

/// Sum of `f(x, y)`.
#[inline(always)]
pub(crate) fn sum_by(x: &[f32], y: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let (ys, y_rest) = y.as_chunks::<LANES>();
    let mut acc = [0.0; LANES];
    for (a, b) in xs.iter().zip(ys) {
        for i in 0..LANES {
            acc[i] += f(a[i], b[i]);
        }
    }
    for (i, (a, b)) in x_rest.iter().zip(y_rest).enumerate() {
        acc[i] += f(*a, *b);
    }
    tree(acc)
}

/// Sum of `x * y * (z - centre)`.
#[inline(always)]
pub(crate) fn dot_centred<const FMA: bool>(x: &[f32], y: &[f32], z: &[f32], centre: f32) -> f32 {
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let (ys, y_rest) = y.as_chunks::<LANES>();
    let (zs, z_rest) = z.as_chunks::<LANES>();
    let mut acc = [0.0; LANES];
    for ((a, b), c) in xs.iter().zip(ys).zip(zs) {
        for i in 0..LANES {
            acc[i] = fma::<FMA>(a[i] * b[i], c[i] - centre, acc[i]);
        }
    }
    for (i, ((a, b), c)) in x_rest.iter().zip(y_rest).zip(z_rest).enumerate() {
        acc[i] = fma::<FMA>(a * b, c - centre, acc[i]);
    }
    tree(acc)
}

/// Largest of `x`, or minus infinity. A NaN is passed over; the exponentials that follow bring it back.
#[inline(always)]
pub(crate) fn max(x: &[f32]) -> f32 {
    let larger = |m: f32, v: f32| if v > m { v } else { m };
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut acc = [f32::NEG_INFINITY; LANES];
    for chunk in chunks {
        for i in 0..LANES {
            acc[i] = larger(acc[i], chunk[i]);
        }
    }
    acc.into_iter().chain(rest.iter().copied()).fold(f32::NEG_INFINITY, larger)
}

/// `y += a * x`.
#[inline(always)]
pub(crate) fn axpy<const FMA: bool>(a: f32, x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = fma::<FMA>(a, *x, *y);
    }
}

/// Adds the sum of each column of `rows` to `out`.
#[inline(always)]
pub(crate) fn add_column_sums(rows: &[f32], out: &mut [f32]) {
    for row in rows.chunks_exact(out.len().max(1)) {
        for (y, x) in out.iter_mut().zip(row) {
            *y += x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_any_length_take_in_every_element() {
        for n in [0, 1, 31, 32, 33, 100] {
            let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let ones = vec![1.0; n];
            let expected = (0..n).sum::<usize>() as f32;
            assert_eq!(sum(&x), expected);
            assert_eq!(max(&x), x.last().copied().unwrap_or(f32::NEG_INFINITY));
            assert_eq!(dot::<false>(&x, &ones), expected);
            assert_eq!(sum_by(&x, &ones, |a, b| a * b), expected);
            assert_eq!(squares::<false>(&ones, 3.0), 4.0 * n as f32);
            assert_eq!(dot_centred::<false>(&x, &ones, &ones, 3.0), -2.0 * expected);
        }
    }
}
