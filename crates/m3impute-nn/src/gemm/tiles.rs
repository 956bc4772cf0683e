//! Matrix products with wide vectors: no copy of the left side, and a cheap one of the right.
//!
//! A tile of some rows and two vectors of columns of the result stays in registers while it goes through the inner
//! dimension. The numbers of the left side are broadcast from where they lie; the right side lies in panels of two vectors,
//! row after row, so that a panel fills the first-level cache evenly. A narrow right side is such a panel already, or
//! nearly. Operands come from far away more often than not, in steps that the processor does not foresee: what is next is
//! asked for in time, which makes products of long matrices a fifth faster.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch, _mm256_add_ps, _mm256_cmpgt_epi32, _mm256_fmadd_ps,
    _mm256_loadu_ps, _mm256_maskload_ps, _mm256_maskstore_ps, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setr_epi32,
    _mm256_setzero_ps, _mm256_storeu_ps,
};
use std::arch::x86_64::{
    __m512, _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps,
    _mm512_set1_ps, _mm512_setzero_ps,
};

use super::{Strided, Write, with_scratch};

/// Vectors of a panel.
const VECTORS: usize = 2;
/// Rows of a panel: at most 16 KB, which stay in the first-level cache.
const DEPTH: usize = 128;
/// Columns up to which the right side is used where it lies, as it is for a single tile of rows.
const NARROW: usize = 64;

/// The vectors of an instruction set.
///
/// # Safety
/// Every function needs a processor with the instructions, and a pointer that is good for what is read or written there.
pub(super) trait Vector: Copy {
    /// Numbers of a vector.
    const LANES: usize;
    /// Rows of a tile: as many as there are registers for, beside the panel.
    const ROWS: usize;
    unsafe fn zero() -> Self;
    unsafe fn splat(x: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    /// `self * by + sum`.
    unsafe fn multiply_add(self, by: Self, sum: Self) -> Self;
    /// Writes the first `count` numbers.
    unsafe fn put(self, write: Write, count: usize, to: *mut f32);
    /// [`Tile::all_rows`], compiled for these instructions.
    unsafe fn all_rows(tile: &Tile<'_>, write: Write, m: usize, out: *mut f32);
}

impl Vector for __m256 {
    const LANES: usize = 8;
    const ROWS: usize = 6;

    #[inline(always)]
    unsafe fn zero() -> __m256 {
        unsafe { _mm256_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> __m256 {
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn multiply_add(self, by: __m256, sum: __m256) -> __m256 {
        unsafe { _mm256_fmadd_ps(self, by, sum) }
    }

    #[inline(always)]
    unsafe fn put(self, write: Write, count: usize, to: *mut f32) {
        unsafe {
            if count >= Self::LANES {
                let sum = if write == Write::Add { _mm256_add_ps(_mm256_loadu_ps(to), self) } else { self };
                _mm256_storeu_ps(to, sum);
            } else {
                let numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
                let mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), numbers);
                let sum = if write == Write::Add { _mm256_add_ps(_mm256_maskload_ps(to, mask), self) } else { self };
                _mm256_maskstore_ps(to, mask, sum);
            }
        }
    }

    unsafe fn all_rows(tile: &Tile<'_>, write: Write, m: usize, out: *mut f32) {
        #[target_feature(enable = "avx2,fma")]
        unsafe fn compiled(tile: &Tile<'_>, write: Write, m: usize, out: *mut f32) {
            unsafe { tile.all_rows::<__m256, { __m256::ROWS }>(write, m, out) }
        }
        unsafe { compiled(tile, write, m, out) }
    }
}

impl Vector for __m512 {
    const LANES: usize = 16;
    const ROWS: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> __m512 {
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> __m512 {
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn multiply_add(self, by: __m512, sum: __m512) -> __m512 {
        unsafe { _mm512_fmadd_ps(self, by, sum) }
    }

    #[inline(always)]
    unsafe fn put(self, write: Write, count: usize, to: *mut f32) {
        let mask = (1u32 << count.min(Self::LANES)).wrapping_sub(1) as u16;
        unsafe {
            let before = match write {
                Write::Set => _mm512_setzero_ps(),
                Write::Add => _mm512_maskz_loadu_ps(mask, to),
            };
            _mm512_mask_storeu_ps(to, mask, _mm512_add_ps(before, self));
        }
    }

    unsafe fn all_rows(tile: &Tile<'_>, write: Write, m: usize, out: *mut f32) {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        unsafe fn compiled(tile: &Tile<'_>, write: Write, m: usize, out: *mut f32) {
            unsafe { tile.all_rows::<__m512, { __m512::ROWS }>(write, m, out) }
        }
        unsafe { compiled(tile, write, m, out) }
    }
}

/// `out (+)= a b` with `a` [m, k], `b` [k, n] and row-major `out` [m, n], none of them empty.
///
/// # Safety
/// The processor has the instructions of `V`.
///
/// # Panics
/// If an operand is shorter than its dimensions.
pub(super) unsafe fn multiply<V: Vector>(
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
    let wide = VECTORS * V::LANES;
    let in_place = b_col == 1 && n.is_multiple_of(V::LANES) && (n <= NARROW || m <= V::ROWS);
    let room = if in_place { 0 } else { wide * DEPTH };
    with_scratch(room, |packed| {
        for from in (0..k).step_by(DEPTH) {
            let depth = DEPTH.min(k - from);
            let write = if from == 0 { write } else { Write::Add };
            for first in (0..n).step_by(wide) {
                let cols = (n - first).min(wide);
                let (panel, step) = if in_place {
                    (&values[from * n + first..], n)
                } else {
                    let step = cols.next_multiple_of(V::LANES);
                    let panel = &mut packed[..depth * step];
                    match V::LANES {
                        8 => pack::<16>(b, from, first..first + cols, step, panel),
                        _ => pack::<32>(b, from, first..first + cols, step, panel),
                    }
                    (&*panel, step)
                };
                let ahead = first == 0;
                let tile = Tile { a: &a[from * col..], row, col, ahead, depth, panel, step, cols, width: n };
                // SAFETY: the processor is the caller's word. The `m` rows of `a` end within it, checked above; a panel
                // holds `depth` rows of `cols`, rounded up to vectors; columns `first..first + cols` of all rows lie
                // within `out`.
                unsafe { V::all_rows(&tile, write, m, out.as_mut_ptr().add(first)) };
            }
        }
    });
}

/// Rows from `from` on of some columns of `b`, at most `W`, one after the other, filled up with zeros to `width`.
fn pack<const W: usize>(
    (b, [row, col]): Strided<'_>,
    from: usize,
    cols: std::ops::Range<usize>,
    width: usize,
    panel: &mut [f32],
) {
    if col == 1 && cols.len() == W {
        // A constant length, so that no call is made for it.
        for (k, to) in panel.as_chunks_mut::<W>().0.iter_mut().enumerate() {
            let at = (from + k) * row + cols.start;
            to.copy_from_slice(&b[at..][..W]);
            // The next panel of these columns, by lines of the cache.
            for line in (0..W).step_by(16) {
                let next = b.as_ptr().wrapping_add(at + DEPTH * row + line);
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
pub(super) struct Tile<'a> {
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
    /// All `m` rows of the result, a tile at a time. Part of a function that is compiled for the instructions of `V`.
    ///
    /// # Safety
    /// `m` rows of `a`, `depth` deep, lie within it; the panel has `depth` rows of `cols` numbers, rounded up to vectors,
    /// that are `step` apart; `out` may be written for `m` rows of `cols` numbers that are `width` apart.
    #[inline(always)]
    unsafe fn all_rows<V: Vector, const ROWS: usize>(&self, write: Write, m: usize, out: *mut f32) {
        let mut i = 0;
        while i < m {
            // SAFETY: the caller's, and a tile takes no more rows than are left.
            i += unsafe {
                let out = out.add(i * self.width);
                match (m - i, self.cols > V::LANES) {
                    (left, true) if left >= ROWS => self.run::<V, ROWS, 2>(write, i, out),
                    (left, false) if left >= ROWS => self.run::<V, ROWS, 1>(write, i, out),
                    (4.., true) => self.run::<V, 4, 2>(write, i, out),
                    (4.., false) => self.run::<V, 4, 1>(write, i, out),
                    (2.., true) => self.run::<V, 2, 2>(write, i, out),
                    (2.., false) => self.run::<V, 2, 1>(write, i, out),
                    (_, true) => self.run::<V, 1, 2>(write, i, out),
                    (_, false) => self.run::<V, 1, 1>(write, i, out),
                }
            };
        }
    }

    /// `R` rows from `first` on of `N` vectors each, written to `out`; returns how many.
    ///
    /// # Safety
    /// As of [`Tile::all_rows`].
    #[inline(always)]
    unsafe fn run<V: Vector, const R: usize, const N: usize>(
        &self,
        write: Write,
        first: usize,
        out: *mut f32,
    ) -> usize {
        debug_assert!(self.panel.len() >= (self.depth - 1) * self.step + N * V::LANES);
        // SAFETY: the caller's.
        unsafe {
            let mut sums = [[V::zero(); N]; R];
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
                let mut b = [V::zero(); N];
                for (v, b) in b.iter_mut().enumerate() {
                    *b = V::load(panel.add(v * V::LANES));
                }
                for (i, sums) in sums.iter_mut().enumerate() {
                    let x = V::splat(*a.add(i * self.row));
                    for v in 0..N {
                        sums[v] = x.multiply_add(b[v], sums[v]);
                    }
                }
                a = a.wrapping_add(self.col);
                panel = panel.wrapping_add(self.step);
            }
            for (i, sums) in sums.iter().enumerate() {
                for (v, sum) in sums.iter().enumerate() {
                    let at = v * V::LANES;
                    sum.put(write, self.cols - at, out.add(i * self.width + at));
                }
            }
        }
        R
    }
}
