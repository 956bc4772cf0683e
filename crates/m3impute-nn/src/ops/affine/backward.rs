//! The gradient of a sum of terms: one pass over blocks of rows for each product.

use super::{Affine, Input, Layout, Saved};
use crate::blocks;
use crate::gemm::{self, Write};
use crate::lanes;
use crate::matrix::Matrix;
use crate::ops::activation::Slope;
use crate::ops::factor::{self, multiply_rows};
use crate::ops::segment;
use crate::pool::Pool;
use crate::simd::kernel;
use crate::tape::{Backward, Var};

impl Affine {
    pub(crate) fn recycle(self, pool: &mut Pool) {
        self.slope.recycle(pool);
    }

    pub(crate) fn backward(&self, back: &mut Backward<'_>, output: &Matrix, mut dz: Vec<f32>) {
        let (rows, cols) = output.shape();
        let sums = self.terms.iter().any(|t| matches!(t, Saved::Row(b) if back.needs_grad(*b)));
        let mut pass = Pass { slope: Some((&self.slope, output.as_slice())), sums, rows, cols };
        let mut products = self.terms.iter().filter_map(|t| match t {
            Saved::Multiplied(input, w, layout) => Some((input, *w, *layout)),
            _ => None,
        });
        let mut column_sums = pass.run(back, &mut dz, products.next());
        // The slope is applied and the sums are taken: what is left of the products needs `dz` only.
        pass.slope = None;
        pass.sums = false;
        for product in products {
            pass.run(back, &mut dz, Some(product));
        }
        let mut whole = None;
        for term in &self.terms {
            match term {
                Saved::Multiplied(..) => {}
                Saved::Row(b) => {
                    if back.needs_grad(*b) {
                        back.add(*b, &column_sums);
                    }
                }
                Saved::Gathered(x, index) => {
                    if back.needs_grad(*x) {
                        let (mut dx, write) = back.take(*x);
                        segment::sum_into(back.pool, write, index.inverse(), &dz, cols, &mut dx);
                        back.put(*x, dx);
                    }
                }
                Saved::Rows(x) => {
                    if let Some(before) = whole.replace(*x) {
                        back.add(before, &dz);
                    }
                }
            }
        }
        back.pool.give(std::mem::take(&mut column_sums));
        // The last matrix takes over the buffer instead of a copy.
        match whole {
            Some(x) => back.give(x, dz),
            None => back.pool.give(dz),
        }
    }
}

/// One pass over the rows of `dz`.
struct Pass<'a> {
    /// The slope to multiply into `dz`, and the output it may be computed from.
    slope: Option<(&'a Slope, &'a [f32])>,
    /// Whether to sum the columns.
    sums: bool,
    rows: usize,
    cols: usize,
}

/// The part of a pass that one thread does at a time. What is not wanted is empty.
struct Chunk<'a> {
    from: usize,
    dz: &'a mut [f32],
    dx: &'a mut [f32],
    dw: &'a mut [f32],
    db: &'a mut [f32],
}

impl Pass<'_> {
    /// Returns the sums of the columns, or nothing.
    fn run(&self, back: &mut Backward<'_>, dz: &mut [f32], product: Option<(&Input, Var, Layout)>) -> Vec<f32> {
        let (rows, cols) = (self.rows, self.cols);
        let slope = self.slope.filter(|(slope, _)| !matches!(slope, Slope::One));
        // Without a product its parts are empty.
        let (mut x, mut sides, mut w, mut k, mut layout) = (&[][..], None, &[][..], 0, Layout::OutIn);
        let (mut wants_dx, mut dw_var) = (false, None);
        if let Some((input, weight, of_weight)) = product {
            (w, layout) = (back.value(weight).as_slice(), of_weight);
            dw_var = Some(weight).filter(|w| back.needs_grad(*w));
            match input {
                Input::Plain(var) => {
                    (x, k) = (back.value(*var).as_slice(), back.value(*var).cols());
                    wants_dx = back.needs_grad(*var);
                }
                Input::Mul(factors) => {
                    k = back.value(weight).cols();
                    sides = Some(factors.each_ref().map(|f| f.side(back.value(f.var()).as_slice())));
                    wants_dx = factors.iter().any(|f| back.needs_grad(f.var()));
                }
            }
        }
        if slope.is_none() && !self.sums && !wants_dx && dw_var.is_none() {
            return Vec::new();
        }
        let (mut dx, dx_write) = match product {
            Some((Input::Plain(x), ..)) if wants_dx => back.take(*x),
            Some((Input::Mul(_), ..)) if wants_dx => (back.pool.take(rows * k), Write::Set),
            _ => (Vec::new(), Write::Set),
        };
        let block = blocks::product_rows(rows, cols.max(k));
        let chunk = blocks::chunk_rows(rows, block);
        let chunks = rows.div_ceil(chunk);
        let dw_len = if dw_var.is_some() { w.len() } else { 0 };
        let db_len = if self.sums { cols } else { 0 };
        let mut dws = back.pool.take(chunks * dw_len); // [chunks, dw_len]
        let mut dbs = back.pool.take_zeros(chunks * db_len); // [chunks, db_len]

        let mut tasks = Vec::with_capacity(chunks);
        let mut dz_chunks = dz.chunks_mut(chunk * cols.max(1));
        let mut dx_chunks = dx.chunks_mut(chunk * k.max(1));
        let mut dw_chunks = dws.chunks_mut(dw_len.max(1));
        let mut db_chunks = dbs.chunks_mut(db_len.max(1));
        for i in 0..chunks {
            tasks.push(Chunk {
                from: i * chunk,
                dz: dz_chunks.next().unwrap_or_default(),
                dx: dx_chunks.next().unwrap_or_default(),
                dw: dw_chunks.next().unwrap_or_default(),
                db: db_chunks.next().unwrap_or_default(),
            });
        }
        blocks::run(rows * cols.max(k), tasks, |task| {
            for (i, dz) in task.dz.chunks_mut(block * cols.max(1)).enumerate() {
                let (from, count) = (task.from + i * block, dz.len() / cols);
                if let Some((slope, output)) = slope {
                    slope.apply(from * cols, output, dz);
                }
                if !task.db.is_empty() {
                    column_sums(dz, task.db);
                }
                if wants_dx && k > 0 {
                    let dx = &mut task.dx[i * block * k..][..count * k];
                    layout.input_grad(dx_write, (count, k, cols), dz, w, dx);
                }
                if !task.dw.is_empty() {
                    let write = if i == 0 { Write::Set } else { Write::Add };
                    match sides {
                        Some([a, b]) => gemm::with_scratch(count * k, |x| {
                            multiply_rows(Write::Set, from, k, a, b, x);
                            layout.weight_grad(write, (count, k, cols), dz, x, task.dw);
                        }),
                        None => {
                            let x = blocks::part(x, from, from + count, k);
                            layout.weight_grad(write, (count, k, cols), dz, x, task.dw);
                        }
                    }
                }
            }
        });

        match product {
            Some((Input::Plain(x), ..)) if wants_dx => back.put(*x, dx),
            Some((Input::Mul(factors), ..)) if wants_dx => {
                factor::backward(back, factors, k, &dx);
                back.pool.give(dx);
            }
            _ => back.pool.give(dx),
        }
        if let Some(w) = dw_var {
            let (mut dw, write) = back.take(w);
            sum_chunks(write, &dws, &mut dw);
            back.put(w, dw);
        }
        let mut sums = back.pool.take(db_len);
        sum_chunks(Write::Set, &dbs, &mut sums);
        back.pool.give(dws);
        back.pool.give(dbs);
        sums
    }
}

/// `out (+)=` the sum of the chunks, in their order.
pub(crate) fn sum_chunks(write: Write, chunks: &[f32], out: &mut [f32]) {
    kernel! {
        fn add<const FMA: bool>(x: &[f32], y: &mut [f32]) {
            for (y, x) in y.iter_mut().zip(x) {
                *y += x;
            }
        }
    }
    const PART: usize = 2048;
    let len = out.len();
    blocks::each_of(chunks.len(), out, PART, |i, out| {
        let range = i * PART..i * PART + out.len();
        let mut chunks = chunks.chunks_exact(len).map(|chunk| &chunk[range.clone()]);
        if write == Write::Set {
            match chunks.next() {
                Some(first) => out.copy_from_slice(first),
                None => out.fill(0.0),
            }
        }
        chunks.for_each(|chunk| add(chunk, out));
    });
}

kernel! {
    pub(crate) fn column_sums<const FMA: bool>(rows: &[f32], out: &mut [f32]) {
        lanes::add_column_sums(rows, out);
    }
}
