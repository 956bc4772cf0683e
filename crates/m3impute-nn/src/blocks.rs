//! How work is cut into pieces for the threads.
//!
//! The cuts depend on the shape alone, never on the number of threads, and every sum over pieces runs in
//! their order. That is what makes the bytes the same on any number of threads.

use rayon::prelude::*;
use std::cell::Cell;

thread_local! {
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Does all work of `task` on this thread. For many small trainings side by side: each is done faster by one thread than
/// shared out in small pieces. Sums over many rows are then added up in other pieces, which may show in the last digit.
///
/// ```
/// use m3impute_nn::{Matrix, Tape, alone};
///
/// let sum = alone(|| {
///     let mut tape = Tape::new();
///     let x = tape.constant(Matrix::full(2, 2, 1.5));
///     let sum = tape.sum(x);
///     tape.scalar(sum)
/// });
/// assert_eq!(sum, 6.0);
/// ```
pub fn alone<R>(task: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _restore = Restore(ALONE.replace(true));
    task()
}

/// Whether so much work is better done in place: a little is done before another thread wakes up.
fn in_place(work: usize) -> bool {
    work <= ELEMENTS || ALONE.get()
}

/// Values of one piece of element-wise work: 128 KB, which stays in the second-level cache of one core next
/// to two others of its kind.
pub(crate) const ELEMENTS: usize = 32 * 1024;

/// Most partial sums of a gradient that is summed over all rows.
const MOST_PARTIALS: usize = 32;

/// Rows of one block of a matrix product of so many rows whose wider side is `width`. A few blocks are cut alike and into
/// a multiple of four, so that two or four threads have the same to do.
pub(crate) fn product_rows(rows: usize, width: usize) -> usize {
    let most = (ELEMENTS / width.max(1)).clamp(64, 1024).next_multiple_of(16);
    let count = rows.div_ceil(most);
    if count <= 1 || count > 6 || ALONE.get() {
        return most;
    }
    rows.div_ceil(count.next_multiple_of(4)).next_multiple_of(16).clamp(64, most)
}

/// Rows of one block of row-wise work on `cols` columns.
pub(crate) fn rows(cols: usize) -> usize {
    (ELEMENTS / cols.max(1)).clamp(1, ELEMENTS)
}

/// Rows of one chunk of a sum over all rows: a whole number of blocks, few enough chunks that summing them
/// costs little, enough of them to go round.
pub(crate) fn chunk_rows(rows: usize, block: usize) -> usize {
    if ALONE.get() {
        return rows.max(1);
    }
    block * rows.div_ceil(block).div_ceil(MOST_PARTIALS).max(1)
}

/// Runs the tasks on the pool of the caller. `work` is about how many values they touch in all.
pub(crate) fn run<T: Send>(work: usize, tasks: Vec<T>, task: impl Fn(T) + Sync + Send) {
    if tasks.len() <= 1 || in_place(work) {
        tasks.into_iter().for_each(task);
    } else {
        tasks.into_par_iter().with_max_len(1).for_each(task);
    }
}

/// Cuts `data` into blocks of `len` values and runs `task(block number, block)`.
pub(crate) fn each(data: &mut [f32], len: usize, task: impl Fn(usize, &mut [f32]) + Sync + Send) {
    each_of(data.len(), data, len, task);
}

/// [`each`] where the blocks touch about `work` values in all.
pub(crate) fn each_of(work: usize, data: &mut [f32], len: usize, task: impl Fn(usize, &mut [f32]) + Sync + Send) {
    let len = len.max(1);
    if data.len() <= len || in_place(work) {
        data.chunks_mut(len).enumerate().for_each(|(i, block)| task(i, block));
    } else {
        data.par_chunks_mut(len).enumerate().for_each(|(i, block)| task(i, block));
    }
}

/// [`each_of`] over two slices cut in step: `a` into blocks of `len_a` values, `b` of `len_b`. If `b` is empty,
/// each of its blocks is.
pub(crate) fn each_pair(
    work: usize,
    (a, len_a): (&mut [f32], usize),
    (b, len_b): (&mut [f32], usize),
    task: impl Fn(usize, &mut [f32], &mut [f32]) + Sync + Send,
) {
    let (len_a, len_b) = (len_a.max(1), len_b.max(1));
    if b.is_empty() {
        each_of(work, a, len_a, |i, block| task(i, block, &mut []));
    } else if a.len() <= len_a || in_place(work) {
        a.chunks_mut(len_a).zip(b.chunks_mut(len_b)).enumerate().for_each(|(i, (a, b))| task(i, a, b));
    } else {
        a.par_chunks_mut(len_a).zip(b.par_chunks_mut(len_b)).enumerate().for_each(|(i, (a, b))| task(i, a, b));
    }
}

/// `task(from, to)` for each block of `len` of `0..n`, which touch about `work` values in all; the results in order.
pub(crate) fn map<T: Send>(
    work: usize,
    n: usize,
    len: usize,
    task: impl Fn(usize, usize) -> T + Sync + Send,
) -> Vec<T> {
    let len = len.max(1);
    let count = n.div_ceil(len);
    let block = |i: usize| task(i * len, ((i + 1) * len).min(n));
    if count <= 1 || in_place(work) {
        (0..count).map(block).collect()
    } else {
        (0..count).into_par_iter().with_max_len(1).map(block).collect()
    }
}

/// The part of `data` that belongs to rows `from..to`, or nothing if there is none to give.
pub(crate) fn part(data: &[f32], from: usize, to: usize, cols: usize) -> &[f32] {
    if data.is_empty() { data } else { &data[from * cols..to * cols] }
}
