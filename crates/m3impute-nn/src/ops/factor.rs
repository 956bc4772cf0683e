//! Rows that are products of rows, computed a block at a time where they are needed.
//!
//! `a[i] * b[j]` for many pairs of rows of two small tables would fill memory with numbers that are cheap to have
//! again. A [`Factor`] names one side of such a product.

use std::sync::Arc;

use crate::blocks;
use crate::gemm::Write;
use crate::index::Index;
use crate::ops::segment::{self, Contribution};
use crate::simd::{fma, kernel};
use crate::tape::{Backward, Tape, Var};

/// One side of a product of rows: a matrix with a row for each, or rows gathered from a smaller one.
#[derive(Clone, Copy, Debug)]
pub enum Factor<'a> {
    /// Row `i` of a matrix `[n, d]`.
    Rows(Var),
    /// Row `index[i]` of a matrix `[targets, d]`.
    Gathered(Var, &'a Arc<Index>),
}

#[derive(Debug)]
pub(crate) struct SavedFactor {
    var: Var,
    index: Option<Arc<Index>>,
}

/// Where the rows of a factor lie.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    values: &'a [f32],
    targets: Option<&'a [u32]>,
}

impl Factor<'_> {
    pub(crate) fn var(self) -> Var {
        match self {
            Factor::Rows(var) | Factor::Gathered(var, _) => var,
        }
    }

    /// Number of rows of the product.
    pub(crate) fn rows(self, tape: &Tape) -> usize {
        match self {
            Factor::Rows(var) => tape.shape(var).0,
            Factor::Gathered(_, index) => index.len(),
        }
    }

    pub(crate) fn check(self, tape: &Tape, rows: usize, cols: usize) {
        match self {
            Factor::Rows(var) => tape.expect(var, (rows, cols), "factor of rows"),
            Factor::Gathered(var, index) => {
                assert_eq!(index.len(), rows, "gathered factor: expected `{rows}` rows, got `{}`", index.len());
                tape.expect(var, (index.target_rows(), cols), "factor to gather from");
            }
        }
    }

    pub(crate) fn save(self) -> SavedFactor {
        match self {
            Factor::Rows(var) => SavedFactor { var, index: None },
            Factor::Gathered(var, index) => SavedFactor { var, index: Some(Arc::clone(index)) },
        }
    }
}

impl SavedFactor {
    pub(crate) fn var(&self) -> Var {
        self.var
    }

    pub(crate) fn side<'a>(&'a self, values: &'a [f32]) -> Side<'a> {
        Side::new(values, self.index.as_ref().map(|index| index.targets()))
    }
}

impl<'a> Side<'a> {
    pub(crate) fn new(values: &'a [f32], targets: Option<&'a [u32]>) -> Self {
        Self { values, targets }
    }

    #[inline(always)]
    pub(crate) fn row(self, i: usize, cols: usize) -> &'a [f32] {
        let i = self.targets.map_or(i, |targets| targets[i] as usize);
        &self.values[i * cols..][..cols]
    }
}

/// Passes the gradient of the product of two factors on to both.
pub(crate) fn backward(back: &mut Backward<'_>, factors: &[SavedFactor; 2], cols: usize, dy: &[f32]) {
    for (own, other) in [(&factors[0], &factors[1]), (&factors[1], &factors[0])] {
        if !back.needs_grad(own.var) {
            continue;
        }
        let other = other.side(back.value(other.var).as_slice());
        let (mut grad, write) = back.take(own.var);
        match &own.index {
            Some(index) => {
                let rows = Contribution::Product { x: dy, other };
                segment::sum_rows_into(back.pool, write, index.inverse(), rows, cols, &mut grad);
            }
            None => {
                let rows = blocks::rows(cols);
                let dy = Side::new(dy, None);
                blocks::each(&mut grad, rows * cols, |i, grad| multiply_rows(write, i * rows, cols, dy, other, grad));
            }
        }
        back.put(own.var, grad);
    }
}

kernel! {
    /// Row `r` of `out` takes the product of the rows number `from + r` of both sides.
    pub(crate) fn multiply_rows<const FMA: bool>(
        write: Write,
        from: usize,
        cols: usize,
        a: Side<'_>,
        b: Side<'_>,
        out: &mut [f32],
    ) {
        for (r, out) in out.chunks_exact_mut(cols).enumerate() {
            let rows = a.row(from + r, cols).iter().zip(b.row(from + r, cols));
            match write {
                Write::Set => out.iter_mut().zip(rows).for_each(|(o, (a, b))| *o = a * b),
                Write::Add => out.iter_mut().zip(rows).for_each(|(o, (a, b))| *o = fma::<FMA>(*a, *b, *o)),
            }
        }
    }
}
