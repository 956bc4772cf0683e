//! Eigenvectors of a symmetric matrix: Householder reflections make it tridiagonal, and the implicit QL algorithm makes
//! that diagonal (Golub and Van Loan, Matrix Computations, chapter 8).
//!
//! Each row of the reflections and each lane of the rotations is computed by itself, so that the bytes do not depend on
//! the number of threads; and both ask every few milliseconds whether they should go on.
//!
//! Notation: `w` rows and columns.

use crate::linalg::GoOn;
use rayon::prelude::*;

/// Entries of eigenvectors that are rotated side by side.
const LANES: usize = 16;
/// Rows that are reflected together.
const ROWS: usize = 32;
/// Numbers that one thread takes at least: for fewer it is not worth waking.
const WORK: usize = 1 << 16;
/// Rotations that are collected before the eigenvectors follow, for each row.
const COLLECTED: usize = 4;
/// Rounds of QL for one eigenvalue, at most: two are usual.
const MOST_ROUNDS: usize = 100;

/// Eigenvalues, the largest first, and their eigenvectors: vector `i` is row `i`.
#[derive(Clone, Debug)]
pub struct Eigen {
    /// The values, falling, `[w]`.
    pub values: Vec<f64>,
    /// A vector a row, `[w, w]`.
    pub vectors: Vec<f64>,
}

/// The eigenvectors of a symmetric matrix `[w, w]` of finite numbers. Each is turned so that its largest entry is
/// positive. None where it was told to stop.
pub fn eigen(symmetric: &[f64], w: usize, go_on: GoOn<'_>) -> Option<Eigen> {
    let largest = symmetric.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
    if largest == 0.0 {
        let vectors = (0..w * w).map(|at| f64::from(u8::from(at / w == at % w))).collect();
        return Some(Eigen { values: vec![0.0; w], vectors });
    }
    // Squares of the largest and the smallest numbers would not be finite, or nothing.
    let scaled = symmetric.iter().map(|v| v / largest).collect();
    let mut tridiagonal = Tridiagonal::of(scaled, w, go_on)?;
    let mut panels = tridiagonal.panels(go_on)?;
    tridiagonal.diagonalise(&mut panels, go_on)?;
    let values = tridiagonal.diagonal;
    let mut order: Vec<usize> = (0..w).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    let mut vectors = Vec::with_capacity(w * w);
    for &i in &order {
        let entry = |r: usize| panels[(r / LANES * w + i) * LANES + r % LANES];
        let largest = (0..w).map(entry).fold(0.0_f64, |a, b| if b.abs() > a.abs() { b } else { a });
        vectors.extend((0..w).map(|r| if largest < 0.0 { -entry(r) } else { entry(r) }));
    }
    Some(Eigen { values: order.iter().map(|&i| values[i] * largest).collect(), vectors })
}

/// A tridiagonal matrix, and the reflections that led to it.
struct Tridiagonal {
    w: usize,
    diagonal: Vec<f64>,   // [w]
    beside: Vec<f64>,     // [w]: entry `i` stands between `i` and `i + 1`; the last is 0
    reflectors: Vec<f64>, // [w, w]: row `k` from `k + 1` on
    factors: Vec<f64>,    // [w]: reflection `k` is `1 - factor v v'`
}

impl Tridiagonal {
    fn of(mut a: Vec<f64>, w: usize, go_on: GoOn<'_>) -> Option<Tridiagonal> {
        let (mut beside, mut factors) = (vec![0.0; w], vec![0.0; w]);
        let mut reflectors = vec![0.0; w * w];
        for k in 0..w.saturating_sub(1) {
            if !go_on() {
                return None;
            }
            let v = &mut reflectors[k * w + k + 1..(k + 1) * w];
            v.copy_from_slice(&a[k * w + k + 1..(k + 1) * w]);
            let rest: f64 = v[1..].iter().map(|x| x * x).sum();
            // What is left of a matrix of low rank shrinks to where squares have no digits.
            if rest < f64::MIN_POSITIVE / f64::EPSILON {
                beside[k] = v[0];
                continue;
            }
            let length = (v[0] * v[0] + rest).sqrt();
            beside[k] = if v[0] > 0.0 { -length } else { length };
            v[0] -= beside[k];
            factors[k] = 2.0 / (v[0] * v[0] + rest);
            let (v, factor) = (&reflectors[k * w + k + 1..(k + 1) * w], factors[k]);
            let below = &mut a[(k + 1) * w..];
            // `A - v q' - q v'` with `q = p - (factor p'v / 2) v` and `p = factor A v`.
            let times = |row: &[f64]| factor * lanes_dot(&row[k + 1..], v);
            let mut q: Vec<f64> = below.par_chunks(w).with_min_len(WORK.div_ceil(w)).map(times).collect();
            let half = factor / 2.0 * lanes_dot(&q, v);
            q.iter_mut().zip(v).for_each(|(q, v)| *q -= half * v);
            below.par_chunks_mut(w).with_min_len(WORK.div_ceil(w)).enumerate().for_each(|(i, row)| {
                let (vi, qi) = (v[i], q[i]);
                row[k + 1..].iter_mut().zip(v).zip(&q).for_each(|((a, v), q)| *a -= vi * q + qi * v);
            });
        }
        let diagonal = (0..w).map(|i| a[i * w + i]).collect();
        Some(Tridiagonal { w, diagonal, beside, reflectors, factors })
    }

    /// The product of the reflections, in panels of columns: `[w / LANES, w, LANES]`.
    fn panels(&self, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        let w = self.w;
        let mut rows = vec![0.0; w * w]; // transposed: column `i` of the product is row `i`
        rows.par_chunks_mut(w * ROWS).with_min_len(WORK.div_ceil(w * w)).enumerate().for_each(|(block, rows)| {
            let first = block * ROWS;
            rows.chunks_exact_mut(w).enumerate().for_each(|(i, row)| row[first + i] = 1.0);
            for k in (0..w.saturating_sub(1).min(first + ROWS)).rev() {
                if k % ROWS == 0 && !go_on() {
                    return;
                }
                let v = &self.reflectors[k * w + k + 1..(k + 1) * w];
                for row in rows.chunks_exact_mut(w).filter(|_| self.factors[k] != 0.0) {
                    let row = &mut row[k + 1..];
                    let part = self.factors[k] * lanes_dot(row, v);
                    row.iter_mut().zip(v).for_each(|(x, v)| *x -= part * v);
                }
            }
        });
        let mut panels = vec![0.0; w.div_ceil(LANES) * w * LANES];
        for (i, row) in rows.chunks_exact(w).enumerate() {
            row.iter().enumerate().for_each(|(r, x)| panels[(r / LANES * w + i) * LANES + r % LANES] = *x);
        }
        go_on().then_some(panels)
    }

    /// Turns the matrix until nothing is left beside the diagonal, and the panels with it.
    fn diagonalise(&mut self, panels: &mut [f64], go_on: GoOn<'_>) -> Option<()> {
        let w = self.w;
        let mut rotations: Vec<(usize, f64, f64)> = Vec::new();
        for low in 0..w {
            for _ in 0..MOST_ROUNDS {
                let is_nothing = |i: usize| {
                    i + 1 == w
                        || self.beside[i].abs() <= f64::EPSILON * (self.diagonal[i].abs() + self.diagonal[i + 1].abs())
                };
                let high = (low..w).find(|&i| is_nothing(i)).unwrap_or(w - 1);
                if high == low {
                    break;
                }
                self.turn(low, high, &mut rotations);
                if rotations.len() >= COLLECTED * w {
                    follow(panels, w, &rotations);
                    rotations.clear();
                    if !go_on() {
                        return None;
                    }
                }
            }
        }
        follow(panels, w, &rotations);
        Some(())
    }

    /// One round of QL with Wilkinson's shift on the part from `low` to `high`.
    fn turn(&mut self, low: usize, high: usize, rotations: &mut Vec<(usize, f64, f64)>) {
        let (d, e) = (&mut self.diagonal, &mut self.beside);
        let ahead = (d[low + 1] - d[low]) / (2.0 * e[low]);
        let root = ahead.hypot(1.0);
        let mut g = d[high] - d[low] + e[low] / (ahead + root.copysign(ahead));
        let (mut sine, mut cosine, mut shift) = (1.0, 1.0, 0.0);
        for i in (low..high).rev() {
            let (f, b) = (sine * e[i], cosine * e[i]);
            let r = f.hypot(g);
            e[i + 1] = r;
            if r == 0.0 {
                // The matrix falls apart here: the next round goes on with the part above.
                d[i + 1] -= shift;
                e[high] = 0.0;
                return;
            }
            (sine, cosine) = (f / r, g / r);
            g = d[i + 1] - shift;
            let r = (d[i] - g) * sine + 2.0 * cosine * b;
            shift = sine * r;
            d[i + 1] = g + shift;
            g = cosine * r - b;
            rotations.push((i, cosine, sine));
        }
        d[low] -= shift;
        e[low] = g;
        e[high] = 0.0;
    }
}

/// Rotates the panels.
fn follow(panels: &mut [f64], w: usize, rotations: &[(usize, f64, f64)]) {
    let least = WORK.div_ceil((rotations.len() * LANES).max(1));
    panels.par_chunks_mut(w * LANES).with_min_len(least).for_each(|panel| {
        for &(i, cosine, sine) in rotations {
            let (here, next) = panel[i * LANES..(i + 2) * LANES].split_at_mut(LANES);
            for (a, b) in here.iter_mut().zip(next) {
                let (x, y) = (*a, *b);
                *b = sine * x + cosine * y;
                *a = cosine * x - sine * y;
            }
        }
    });
}

/// The sum of products, of which several run side by side.
fn lanes_dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (pieces, others) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = pieces.remainder().iter().zip(others.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in pieces.zip(others) {
        sums.iter_mut().zip(a).zip(b).for_each(|((s, a), b)| *s += a * b);
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{ALWAYS, dot, gram};

    #[test]
    fn eigenvectors_come_with_the_largest_value_first() {
        let found = eigen(&[2.0, 1.0, 1.0, 2.0], 2, ALWAYS).unwrap();
        assert!((found.values[0] - 3.0).abs() < 1e-12 && (found.values[1] - 1.0).abs() < 1e-12);
        assert!((found.vectors[0] - 0.5_f64.sqrt()).abs() < 1e-12 && (found.vectors[1] - 0.5_f64.sqrt()).abs() < 1e-12);
    }

    /// Sums of products of `n` rows of `w` numbers that look like chance.
    fn products(n: usize, w: usize, size: f64) -> Vec<f64> {
        let number = |i: usize| size * ((i * 7919 + 104_729) % 10_007) as f64 / 10_007.0 - size / 2.0;
        let x: Vec<f64> = (0..n * w).map(|i| number(i * i % 1_000_003)).collect();
        gram(&x, w, ALWAYS).unwrap()
    }

    #[test]
    fn a_matrix_is_what_its_eigenvectors_make_of_it() {
        // More columns than rows: many values are 0. And numbers whose squares are not finite, or nothing.
        for (n, w, size) in [(1, 1, 1.0), (9, 3, 1.0), (200, 70, 1.0), (20, 70, 1.0), (99, 33, 1e90), (99, 33, 1e-90)] {
            let a = products(n, w, size);
            let Eigen { values, vectors } = eigen(&a, w, ALWAYS).unwrap();
            assert!(values.windows(2).all(|v| v[0] >= v[1]));
            for (i, vector) in vectors.chunks_exact(w).enumerate() {
                for (row, v) in a.chunks_exact(w).zip(vector) {
                    assert!((dot(row, vector) - values[i] * v).abs() < 1e-11 * values[0], "{n} {w} {size} {i}");
                }
                let other = &vectors[(i + 1) % w * w..][..w];
                let expected = f64::from(u8::from(w == 1));
                assert!((dot(vector, vector) - 1.0).abs() < 1e-12 && (dot(vector, other) - expected).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn matrices_that_are_diagonal_of_rank_one_or_nothing_have_their_values() {
        assert_eq!(eigen(&[0.0; 4], 2, ALWAYS).unwrap().vectors, [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(eigen(&[1.0, 0.0, 0.0, 5.0], 2, ALWAYS).unwrap().values, [5.0, 1.0]);
        let ones = eigen(&[1.0; 60 * 60], 60, ALWAYS).unwrap();
        assert!((ones.values[0] - 60.0).abs() < 1e-12 && ones.values[1..].iter().all(|v| v.abs() < 1e-12));
        assert!(eigen(&[], 0, ALWAYS).unwrap().values.is_empty());
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let a = products(300, 150, 1.0);
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| eigen(&a, 150, ALWAYS).unwrap().vectors)
        };
        assert!(on(1) == on(3));
    }

    #[test]
    fn work_that_is_told_to_stop_has_no_answer() {
        assert!(eigen(&products(60, 20, 1.0), 20, &|| false).is_none());
    }
}
