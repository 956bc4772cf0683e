//! The gradient of a sum of terms: one pass over blocks of rows for each product.

use super::{Affine, Input, Layout, Saved};
use crate::blocks;
use crate::gemm::{self, Write};
use crate::lanes;
use crate::matrix::Matrix;
use crate::ops::activation::Slope;
use crate::ops::factor::{self, Side, multiply_rows};
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

/// What a pass needs of the product it goes through. Without a product all of it is empty.
struct Product<'a> {
    /// The input, where it is a matrix. // [rows, k]
    x: &'a [f32],
    /// The sides of the input, where it is a product of rows.
    sides: Option<[Side<'a>; 2]>,
    w: &'a [f32],
    layout: Layout,
    k: usize,
    wants_dx: bool,
    wants_dw: bool,
}

impl<'a> Product<'a> {
    fn new(back: &Backward<'a>, of: Option<(&'a Input, Var, Layout)>) -> Product<'a> {
        let Some((input, weight, layout)) = of else {
            let (x, w) = (&[][..], &[][..]);
            return Product { x, sides: None, w, layout: Layout::OutIn, k: 0, wants_dx: false, wants_dw: false };
        };
        let (w, wants_dw) = (back.value(weight), back.needs_grad(weight));
        let (x, sides, k, wants_dx) = match input {
            Input::Plain(x) => (back.value(*x).as_slice(), None, back.value(*x).cols(), back.needs_grad(*x)),
            Input::Mul(factors) => {
                let sides = factors.each_ref().map(|f| f.side(back.value(f.var()).as_slice()));
                (&[][..], Some(sides), w.cols(), factors.iter().any(|f| back.needs_grad(f.var())))
            }
        };
        Product { x, sides, w: w.as_slice(), layout, k, wants_dx, wants_dw }
    }

    /// The gradient of the weight from some rows of `dz`.
    fn weight_grad(&self, write: Write, from: usize, (count, cols): (usize, usize), dz: &[f32], dw: &mut [f32]) {
        let size = (count, self.k, cols);
        match self.sides {
            Some([a, b]) => gemm::with_scratch(count * self.k, |x| {
                multiply_rows(Write::Set, from, self.k, a, b, x);
                self.layout.weight_grad(write, size, dz, x, dw);
            }),
            None => {
                let x = blocks::part(self.x, from, from + count, self.k);
                self.layout.weight_grad(write, size, dz, x, dw);
            }
        }
    }
}

/// The part of a pass that one thread does at a time. What is not wanted is empty.
struct Chunk<'a> {
    from: usize,
    dz: &'a mut [f32],
    dx: &'a mut [f32],
    dw: &'a mut [f32],
    db: &'a mut [f32],
}

impl<'a> Chunk<'a> {
    /// Chunks of `rows` rows: `[dz, dx, dw, db]`, each with the length of what a chunk has of it.
    fn cut(chunks: usize, rows: usize, of: [(&'a mut [f32], usize); 4]) -> Vec<Chunk<'a>> {
        let mut parts = of.map(|(values, len)| values.chunks_mut(len.max(1)));
        let cut = |i: usize| {
            let [dz, dx, dw, db] = parts.each_mut().map(|parts| parts.next().unwrap_or_default());
            Chunk { from: i * rows, dz, dx, dw, db }
        };
        (0..chunks).map(cut).collect()
    }
}

impl Pass<'_> {
    /// Returns the sums of the columns, or nothing.
    fn run(&self, back: &mut Backward<'_>, dz: &mut [f32], term: Option<(&Input, Var, Layout)>) -> Vec<f32> {
        let (rows, cols) = (self.rows, self.cols);
        let product = Product::new(back, term);
        let (k, wants_dx) = (product.k, product.wants_dx);
        if self.slope().is_none() && !self.sums && !wants_dx && !product.wants_dw {
            return Vec::new();
        }
        let (mut dx, dx_write) = match term {
            Some((Input::Plain(x), ..)) if wants_dx => back.take(*x),
            Some((Input::Mul(_), ..)) if wants_dx => (back.pool.take(rows * k), Write::Set),
            _ => (Vec::new(), Write::Set),
        };
        let block = blocks::product_rows(rows, cols.max(k));
        let chunk = blocks::chunk_rows(rows, block);
        let chunks = rows.div_ceil(chunk);
        let dw_len = if product.wants_dw { product.w.len() } else { 0 };
        let db_len = if self.sums { cols } else { 0 };
        let mut dws = back.pool.take(chunks * dw_len); // [chunks, dw_len]
        let mut dbs = back.pool.take_zeros(chunks * db_len); // [chunks, db_len]
        let of = [(dz, chunk * cols), (&mut dx[..], chunk * k), (&mut dws[..], dw_len), (&mut dbs[..], db_len)];
        let tasks = Chunk::cut(chunks, chunk, of);
        blocks::run(rows * cols.max(k), tasks, |task| self.chunk(&product, dx_write, block, task));

        match term {
            Some((Input::Plain(x), ..)) if wants_dx => back.put(*x, dx),
            Some((Input::Mul(factors), ..)) if wants_dx => {
                factor::backward(back, factors, k, &dx);
                back.pool.give(dx);
            }
            _ => back.pool.give(dx),
        }
        if let Some((_, w, _)) = term.filter(|_| product.wants_dw) {
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

    /// The slope, where it changes anything.
    fn slope(&self) -> Option<(&Slope, &[f32])> {
        self.slope.filter(|(slope, _)| !matches!(slope, Slope::One))
    }

    /// Goes through a chunk by blocks that stay in the cache.
    fn chunk(&self, product: &Product<'_>, dx_write: Write, block: usize, task: Chunk<'_>) {
        let (cols, k) = (self.cols, product.k);
        for (i, dz) in task.dz.chunks_mut(block * cols.max(1)).enumerate() {
            let (from, count) = (task.from + i * block, dz.len() / cols);
            if let Some((slope, output)) = self.slope() {
                slope.apply(from * cols, output, dz);
            }
            if !task.db.is_empty() {
                column_sums(dz, task.db);
            }
            if product.wants_dx && k > 0 {
                let dx = &mut task.dx[i * block * k..][..count * k];
                product.layout.input_grad(dx_write, (count, k, cols), dz, product.w, dx);
            }
            if !task.dw.is_empty() {
                let write = if i == 0 { Write::Set } else { Write::Add };
                product.weight_grad(write, from, (count, cols), dz, task.dw);
            }
        }
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
