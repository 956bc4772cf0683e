//! Matrix products with the 512-bit instructions: no copy of the left side, and a cheap one of the right.
//!
//! A tile of 8 rows and 32 columns of the result stays in registers while it goes through the inner dimension. The numbers
//! of the left side are broadcast from where they lie; the right side lies in panels of 32 columns, row after row, so that
//! a panel fills the first-level cache evenly. A narrow right side is such a panel already, or nearly. Operands come from
//! far away more often than not, in steps that the processor does not foresee: what is next is asked for in time, which
//! makes products of long matrices a fifth faster.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch, _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps,
    _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_set1_ps, _mm512_setzero_ps,
};

use super::{Strided, Write, with_scratch};

/// Numbers of a vector.
const LANES: usize = 16;
/// Vectors of a panel.
const VECTORS: usize = 2;
/// Rows of a tile.
const ROWS: usize = 8;
/// Rows of a panel: 16 KB, which stay in the first-level cache.
const DEPTH: usize = 128;
/// Columns up to which the right side is used where it lies, as it is for a single tile of rows.
const NARROW: usize = 64;

/// `out (+)= a b` with `a` [m, k], `b` [k, n] and row-major `out` [m, n], none of them empty.
///
/// # Safety
/// The processor has the instructions of [`crate::simd::has_avx512`].
///
/// # Panics
/// If an operand is shorter than its dimensions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
pub(super) fn multiply(
    write: Write,
    (m, k, n): (usize, usize, usize),
    a: Strided<'_>,
    b: Strided<'_>,
    out: &mut [f32],
) {
    let holds = |(values, [row, col]): Strided<'_>, rows: usize, cols: usize| {
        (rows - 1) * row + (cols - 1) * col < values.len()
    };
    assert!(holds(a, m, k) && holds(b, k, n) && m * n == out.len(), "operands of a product do not fit");
    let ((a, [row, col]), (values, [_, b_col])) = (a, b);
    let in_place = b_col == 1 && n.is_multiple_of(LANES) && (n <= NARROW || m <= ROWS);
    let room = if in_place { 0 } else { VECTORS * LANES * DEPTH };
    with_scratch(room, |packed| {
        for from in (0..k).step_by(DEPTH) {
            let depth = DEPTH.min(k - from);
            let write = if from == 0 { write } else { Write::Add };
            for first in (0..n).step_by(VECTORS * LANES) {
                let cols = (n - first).min(VECTORS * LANES);
                let (panel, step) = if in_place {
                    (&values[from * n + first..], n)
                } else {
                    let step = cols.next_multiple_of(LANES);
                    let panel = &mut packed[..depth * step];
                    pack(b, from, first..first + cols, panel);
                    (&*panel, step)
                };
                let ahead = first == 0;
                let tile = Tile { a: &a[from * col..], row, col, ahead, depth, panel, step, cols, width: n };
                let mut i = 0;
                while i < m {
                    // SAFETY: the instructions are those of this function. Rows `i..i + rows` of `a` end within it,
                    // checked above; a panel holds `depth` rows of `cols`, rounded up to vectors; columns
                    // `first..first + cols` of these rows lie within `out`.
                    i += unsafe { tile.some_rows(write, m - i, i, out.as_mut_ptr().add(i * n + first)) };
                }
            }
        }
    });
}

/// Rows from `from` on of some columns of `b`, one after the other, the last vector filled up with zeros.
fn pack((b, [row, col]): Strided<'_>, from: usize, cols: std::ops::Range<usize>, panel: &mut [f32]) {
    let width = cols.len().next_multiple_of(LANES);
    if col == 1 && cols.len() == VECTORS * LANES {
        // A constant length, so that no call is made for it.
        for (k, to) in panel.as_chunks_mut::<{ VECTORS * LANES }>().0.iter_mut().enumerate() {
            let at = (from + k) * row + cols.start;
            to.copy_from_slice(&b[at..][..VECTORS * LANES]);
            // The next panel of these columns.
            for v in 0..VECTORS {
                let next = b.as_ptr().wrapping_add(at + DEPTH * row + v * LANES);
                // SAFETY: every processor of this kind has the instruction, and asking does no harm anywhere.
                unsafe { _mm_prefetch::<_MM_HINT_T1>(next.cast()) };
            }
        }
    } else if col == 1 {
        for (k, to) in panel.chunks_exact_mut(width).enumerate() {
            to[..cols.len()].copy_from_slice(&b[(from + k) * row + cols.start..][..cols.len()]);
            to[cols.len()..].fill(0.0);
        }
    } else {
        panel.fill(0.0);
        for (at, j) in cols.enumerate() {
            let column = b[from * row + j * col..].iter().step_by(row);
            panel.iter_mut().skip(at).step_by(width).zip(column).for_each(|(to, x)| *to = *x);
        }
    }
}

/// What the tiles of one panel share.
#[derive(Clone, Copy)]
struct Tile<'a> {
    a: &'a [f32],
    row: usize,
    col: usize,
    /// Whether the numbers of `a` are met for the first time, so that the next ones should be asked for.
    ahead: bool,
    depth: usize,
    panel: &'a [f32],
    /// From one row of the panel to the next.
    step: usize,
    /// Columns of the panel, and of the result.
    cols: usize,
    width: usize,
}

impl Tile<'_> {
    /// As many of the `left` rows from row `first` on as a tile takes; returns how many.
    ///
    /// # Safety
    /// As of [`Tile::run`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    unsafe fn some_rows(&self, write: Write, left: usize, first: usize, out: *mut f32) -> usize {
        // SAFETY: the caller's.
        unsafe {
            match (left, self.cols > LANES) {
                (ROWS.., true) => self.run::<ROWS, 2>(write, first, out),
                (ROWS.., false) => self.run::<ROWS, 1>(write, first, out),
                (4.., true) => self.run::<4, 2>(write, first, out),
                (4.., false) => self.run::<4, 1>(write, first, out),
                (2.., true) => self.run::<2, 2>(write, first, out),
                (2.., false) => self.run::<2, 1>(write, first, out),
                (_, true) => self.run::<1, 2>(write, first, out),
                (_, false) => self.run::<1, 1>(write, first, out),
            }
        }
    }

    /// # Safety
    /// `R` rows of `a` from `first` on, `depth` deep, lie within it; the panel has `depth` rows of `V` vectors that
    /// are `step` apart; `out` may be written for `R` rows of `cols` numbers that are `width` apart.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    unsafe fn run<const R: usize, const V: usize>(&self, write: Write, first: usize, out: *mut f32) -> usize {
        debug_assert!(self.panel.len() >= (self.depth - 1) * self.step + V * LANES);
        let mut sums = [[_mm512_setzero_ps(); V]; R];
        // SAFETY: the caller's.
        unsafe {
            let mut a = self.a.as_ptr().add(first * self.row);
            let mut panel = self.panel.as_ptr();
            // The rows that follow, or else what follows in depth. It may lie outside, where asking does no harm.
            let (mut next, step) = match self.col {
                1 => (a.wrapping_add(R * self.row), R),
                col => (a.wrapping_add(self.depth * col), col),
            };
            for _ in 0..self.depth {
                if self.ahead {
                    _mm_prefetch::<_MM_HINT_T0>(next.cast());
                    next = next.wrapping_add(step);
                }
                let mut b = [_mm512_setzero_ps(); V];
                for (v, b) in b.iter_mut().enumerate() {
                    *b = _mm512_loadu_ps(panel.add(v * LANES));
                }
                for (i, sums) in sums.iter_mut().enumerate() {
                    let x = _mm512_set1_ps(*a.add(i * self.row));
                    for (sum, b) in sums.iter_mut().zip(b) {
                        *sum = _mm512_fmadd_ps(x, b, *sum);
                    }
                }
                a = a.wrapping_add(self.col);
                panel = panel.wrapping_add(self.step);
            }
            for (i, sums) in sums.iter().enumerate() {
                for (v, &sum) in sums.iter().enumerate() {
                    let to = out.add(i * self.width + v * LANES);
                    let mask = (1u32 << (self.cols - v * LANES).min(LANES)).wrapping_sub(1) as u16;
                    let before: __m512 = match write {
                        Write::Set => _mm512_setzero_ps(),
                        Write::Add => _mm512_maskz_loadu_ps(mask, to),
                    };
                    _mm512_mask_storeu_ps(to, mask, _mm512_add_ps(before, sum));
                }
            }
        }
        R
    }
}
