//! Sums of matrix products, gathered rows and biases, with the activation fused.
//!
//! `y = act(x_1 w_1^T + x_2 w_2^T + .. + u[index] + .. + b)`. A linear map of concatenated inputs,
//! `W [x_j; e]`, is written as `U x_j + V e` with `U x_j` computed once a node and gathered. The input of a linear
//! map may itself be a product of gathered rows, which is then never written to memory as a whole.
//!
//! Rows are cut into fixed blocks. Forward, a block is finished (bias, gathered rows, activation) right after
//! its product. Backward, one pass over the blocks turns `dy` into `dz = dy * slope` and uses it for `dx`, `dw`
//! and `db` while it is in cache; `dw` and `db` are summed within a chunk of blocks and then over chunks in order.
//!
//! Six linear maps with GELU on [30000, 128], forward and backward, run at 157 GFLOPS of products on two cores that
//! do 275 on products in cache, and at 80 on one that does 139; `examples/gemm_bench.rs` measures it.

mod backward;

pub(crate) use backward::{column_sums, sum_chunks};

use std::sync::Arc;

use crate::blocks;
use crate::gemm::{self, Write};
use crate::index::Index;
use crate::matrix::Matrix;
use crate::ops::Op;
use crate::ops::activation::{Epilogue, Slope};
use crate::ops::factor::{Factor, SavedFactor, multiply_rows};
use crate::simd::kernel;
use crate::tape::{Tape, Var};

/// One summand of [`Tape::affine`].
#[derive(Clone, Copy, Debug)]
pub enum Term<'a> {
    /// `x w^T` of `x` `[n, in]` and `w` `[out, in]`, as PyTorch stores a weight.
    Linear(Var, Var),
    /// `(a * b) w^T` of rows `a` and `b` `[n, in]`, multiplied value by value, and `w` `[out, in]`.
    LinearMul(Factor<'a>, Factor<'a>, Var),
    /// `a b` of `a` `[n, in]` and `b` `[in, out]`.
    Product(Var, Var),
    /// A matrix `[n, out]`.
    Rows(Var),
    /// Row `index[i]` of a matrix `[targets, out]` for row `i`.
    Gathered(Var, &'a Arc<Index>),
    /// A row vector `[1, out]` for every row.
    Row(Var),
}

#[derive(Debug)]
enum Saved {
    Multiplied(Input, Var, Layout),
    Rows(Var),
    Gathered(Var, Arc<Index>),
    Row(Var),
}

/// What a weight is multiplied with.
#[derive(Debug)]
enum Input {
    Plain(Var),
    Mul([SavedFactor; 2]),
}

/// How the weight of a product lies in memory.
#[derive(Clone, Copy, Debug)]
enum Layout {
    OutIn,
    InOut,
}

#[derive(Debug)]
pub(crate) struct Affine {
    terms: Vec<Saved>,
    slope: Slope,
}

impl Layout {
    fn forward(self, write: Write, (rows, k, out): (usize, usize, usize), x: &[f32], w: &[f32], y: &mut [f32]) {
        match self {
            Layout::OutIn => gemm::nt(write, (rows, k, out), x, w, y),
            Layout::InOut => gemm::nn(write, (rows, k, out), x, w, y),
        }
    }

    fn input_grad(self, write: Write, (rows, k, out): (usize, usize, usize), dz: &[f32], w: &[f32], dx: &mut [f32]) {
        match self {
            Layout::OutIn => gemm::nn(write, (rows, out, k), dz, w, dx),
            Layout::InOut => gemm::nt(write, (rows, out, k), dz, w, dx),
        }
    }

    fn weight_grad(self, write: Write, (rows, k, out): (usize, usize, usize), dz: &[f32], x: &[f32], dw: &mut [f32]) {
        match self {
            Layout::OutIn => gemm::tn(write, (out, rows, k), dz, x, dw),
            Layout::InOut => gemm::tn(write, (k, rows, out), x, dz, dw),
        }
    }
}

impl Tape {
    /// The sum of the terms, then the activation.
    ///
    /// ```
    /// use m3impute_nn::{Activation, Index, Matrix, Tape, Term};
    ///
    /// let mut tape = Tape::new();
    /// let edges = tape.constant(Matrix::from_rows(&[[1.0], [2.0], [3.0]])); // [3, 1]
    /// let v = tape.constant(Matrix::from_rows(&[[1.0], [-1.0]])); // [2, 1]
    /// let nodes = tape.constant(Matrix::from_rows(&[[10.0, 0.0], [20.0, 5.0]])); // [2, 2]
    /// let source = Index::new(vec![0, 1, 1], 2);
    /// let y = tape.affine(&[Term::Linear(edges, v), Term::Gathered(nodes, &source)], Activation::Relu);
    /// assert_eq!(*tape.value(y), Matrix::from_rows(&[[11.0, 0.0], [22.0, 3.0], [23.0, 2.0]]));
    /// ```
    ///
    /// # Panics
    /// If there are no terms but row vectors, or the shapes do not fit.
    pub fn affine(&mut self, terms: &[Term<'_>], epilogue: impl Into<Epilogue>) -> Var {
        let epilogue = epilogue.into().for_tape(self);
        let (rows, cols) = terms
            .iter()
            .find_map(|term| match *term {
                Term::Linear(x, w) => Some((self.shape(x).0, self.shape(w).0)),
                Term::LinearMul(a, _, w) => Some((a.rows(self), self.shape(w).0)),
                Term::Product(a, b) => Some((self.shape(a).0, self.shape(b).1)),
                Term::Rows(x) => Some(self.shape(x)),
                Term::Gathered(x, index) => Some((index.len(), self.shape(x).1)),
                Term::Row(_) => None,
            })
            .expect("an affine map has a term with rows");
        let mut widest = cols;
        let mut needs_grad = false;
        let mut saved = Vec::with_capacity(terms.len());
        for term in terms {
            let (var, shape, expected) = match *term {
                Term::Linear(x, w) => {
                    let k = self.shape(x).1;
                    self.expect(x, (rows, k), "input of a linear map");
                    widest = widest.max(k);
                    needs_grad |= self.needs_grad(x);
                    saved.push(Saved::Multiplied(Input::Plain(x), w, Layout::OutIn));
                    (w, (cols, k), "weight of a linear map")
                }
                Term::LinearMul(a, b, w) => {
                    let k = self.shape(a.var()).1;
                    a.check(self, rows, k);
                    b.check(self, rows, k);
                    widest = widest.max(k);
                    needs_grad |= self.needs_grad(a.var()) || self.needs_grad(b.var());
                    saved.push(Saved::Multiplied(Input::Mul([a.save(), b.save()]), w, Layout::OutIn));
                    (w, (cols, k), "weight of a linear map")
                }
                Term::Product(a, b) => {
                    let k = self.shape(a).1;
                    self.expect(a, (rows, k), "left side of a product");
                    widest = widest.max(k);
                    needs_grad |= self.needs_grad(a);
                    saved.push(Saved::Multiplied(Input::Plain(a), b, Layout::InOut));
                    (b, (k, cols), "right side of a product")
                }
                Term::Rows(x) => {
                    saved.push(Saved::Rows(x));
                    (x, (rows, cols), "rows of a sum")
                }
                Term::Gathered(x, index) => {
                    assert_eq!(index.len(), rows, "gathered rows: expected `{rows}`, got `{}`", index.len());
                    saved.push(Saved::Gathered(x, Arc::clone(index)));
                    (x, (index.target_rows(), cols), "matrix to gather from")
                }
                Term::Row(b) => {
                    saved.push(Saved::Row(b));
                    (b, (1, cols), "row of a sum")
                }
            };
            self.expect(var, shape, expected);
            needs_grad |= self.needs_grad(var);
        }

        let mut out = self.buffer(rows * cols);
        let mut slope = epilogue.slope_buffer(self, rows * cols, needs_grad);
        let block = blocks::product_rows(rows, widest);
        let turned = self.turned_weights(&saved, rows.div_ceil(block));
        let tape = &*self;
        blocks::each_pair(rows * widest, (&mut out, block * cols), (&mut slope, block * cols), |i, out, slope| {
            let from = i * block;
            tape.add_terms((&saved, &turned), from, cols, out);
            epilogue.finish(i, out, slope);
        });
        turned.into_iter().for_each(|w| self.recycle(w));
        let op = Op::Affine(Affine { terms: saved, slope: epilogue.slope(slope) });
        self.push(Matrix::from_parts(rows, cols, out), needs_grad, op)
    }

    /// The weights of the products as `[in, out]`, in their order. A product packs its weight for each block of rows,
    /// which copies whole rows of this layout and single numbers of the other. Empty where the weight stays as it is.
    fn turned_weights(&mut self, terms: &[Saved], blocks: usize) -> Vec<Vec<f32>> {
        let turn = |term: &Saved| match term {
            Saved::Multiplied(_, w, Layout::OutIn) if blocks > 1 => {
                let (out, k) = self.shape(*w);
                if out == 1 || k == 1 {
                    return Some(Vec::new());
                }
                let mut turned = self.buffer(out * k);
                transpose(self.value(*w).as_slice(), k, &mut turned);
                Some(turned)
            }
            Saved::Multiplied(..) => Some(Vec::new()),
            _ => None,
        };
        terms.iter().filter_map(turn).collect()
    }

    /// Writes the sum of the terms for the rows from `from` into `out`.
    fn add_terms(&self, (terms, turned): (&[Saved], &[Vec<f32>]), from: usize, cols: usize, out: &mut [f32]) {
        let rows = out.len() / cols;
        let mut write = Write::Set;
        let mut turned = turned.iter();
        // Products first: a GEMM can start from nothing, the others only add.
        for term in terms {
            if let Saved::Multiplied(input, w, layout) = term {
                let w = self.value(*w);
                let (w, layout) = match turned.next() {
                    Some(turned) if !turned.is_empty() => (&turned[..], Layout::InOut),
                    _ => (w.as_slice(), *layout),
                };
                let size = |k: usize| (rows, k, cols);
                match input {
                    Input::Plain(x) => {
                        let (x, k) = (self.value(*x).as_slice(), self.value(*x).cols());
                        layout.forward(write, size(k), blocks::part(x, from, from + rows, k), w, out);
                    }
                    Input::Mul([a, b]) => {
                        let k = w.len() / cols;
                        let sides = [a, b].map(|f| f.side(self.value(f.var()).as_slice()));
                        gemm::with_scratch(rows * k, |x| {
                            multiply_rows(Write::Set, from, k, sides[0], sides[1], x);
                            layout.forward(write, size(k), x, w, out);
                        });
                    }
                }
                write = Write::Add;
            }
        }
        for term in terms {
            match term {
                Saved::Multiplied(..) => continue,
                Saved::Rows(x) => {
                    add_rows(write, blocks::part(self.value(*x).as_slice(), from, from + rows, cols), out)
                }
                Saved::Gathered(x, index) => {
                    add_gathered(write, self.value(*x).as_slice(), cols, &index.targets()[from..from + rows], out);
                }
                Saved::Row(b) => add_row(write, self.value(*b).as_slice(), out),
            }
            write = Write::Add;
        }
    }

    /// `act(x w^T + b)` of `x` `[n, in]`, `w` `[out, in]`, `b` `[1, out]`.
    ///
    /// ```
    /// use m3impute_nn::{Activation, Matrix, Tape};
    ///
    /// let mut tape = Tape::new();
    /// let x = tape.constant(Matrix::from_rows(&[[1.0, 2.0]]));
    /// let w = tape.constant(Matrix::from_rows(&[[3.0, 4.0], [-5.0, 1.0]]));
    /// let b = tape.constant(Matrix::from_rows(&[[0.5, 0.5]]));
    /// let y = tape.linear(x, w, Some(b), Activation::Relu);
    /// assert_eq!(tape.value(y).row(0), [11.5, 0.0]);
    /// ```
    pub fn linear(&mut self, x: Var, w: Var, b: Option<Var>, epilogue: impl Into<Epilogue>) -> Var {
        match b {
            Some(b) => self.affine(&[Term::Linear(x, w), Term::Row(b)], epilogue),
            None => self.affine(&[Term::Linear(x, w)], epilogue),
        }
    }

    /// `a b` of `a` `[n, k]` and `b` `[k, m]`.
    pub fn matmul(&mut self, a: Var, b: Var) -> Var {
        self.affine(&[Term::Product(a, b)], Epilogue::default())
    }

    /// `act(edges + nodes[index])`.
    pub fn add_gathered(&mut self, edges: Var, nodes: Var, index: &Arc<Index>, epilogue: impl Into<Epilogue>) -> Var {
        self.affine(&[Term::Rows(edges), Term::Gathered(nodes, index)], epilogue)
    }

    /// `x` with the row vector `b` added to every row.
    pub fn add_row(&mut self, x: Var, b: Var) -> Var {
        self.affine(&[Term::Rows(x), Term::Row(b)], Epilogue::default())
    }

    /// Panics with both shapes if `var` does not have the expected one.
    pub(crate) fn expect(&self, var: Var, expected: (usize, usize), what: &str) {
        let got = self.shape(var);
        assert!(got == expected, "{what}: expected [{}, {}], got [{}, {}]", expected.0, expected.1, got.0, got.1);
    }
}

/// `out[j][i] = w[i][j]` of rows of `k`.
fn transpose(w: &[f32], k: usize, out: &mut [f32]) {
    let rows = w.len() / k;
    for (i, row) in w.chunks_exact(k).enumerate() {
        for (j, &v) in row.iter().enumerate() {
            out[j * rows + i] = v;
        }
    }
}

kernel! {
    fn add_rows<const FMA: bool>(write: Write, x: &[f32], out: &mut [f32]) {
        if write == Write::Set {
            out.copy_from_slice(x);
        } else {
            for (y, x) in out.iter_mut().zip(x) {
                *y += x;
            }
        }
    }
}

kernel! {
    pub(crate) fn add_gathered<const FMA: bool>(write: Write, x: &[f32], cols: usize, targets: &[u32], out: &mut [f32]) {
        for (out, &target) in out.chunks_exact_mut(cols.max(1)).zip(targets) {
            let row = &x[target as usize * cols..][..cols];
            if write == Write::Set {
                out.copy_from_slice(row);
            } else {
                for (y, x) in out.iter_mut().zip(row) {
                    *y += x;
                }
            }
        }
    }
}

kernel! {
    fn add_row<const FMA: bool>(write: Write, row: &[f32], out: &mut [f32]) {
        for out in out.chunks_exact_mut(row.len().max(1)) {
            if write == Write::Set {
                out.copy_from_slice(row);
            } else {
                for (y, x) in out.iter_mut().zip(row) {
                    *y += x;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Activation;
    use crate::gradcheck::{assert_gradients, random};

    #[test]
    fn gradient_of_linear_matches_central_differences() {
        for activation in [Activation::None, Activation::Gelu, Activation::Sigmoid, Activation::Relu] {
            let inputs = [random(7, 5, 1), random(4, 5, 2), random(1, 4, 3)]; // [n, in], [out, in], [1, out]
            assert_gradients(&inputs, |tape, v| tape.linear(v[0], v[1], Some(v[2]), activation));
        }
    }

    #[test]
    fn gradient_of_linear_with_one_input_or_output_matches_central_differences() {
        for (inputs, outputs) in [(1, 6), (6, 1), (1, 1)] {
            let inputs = [random(7, inputs, 1), random(outputs, inputs, 2), random(1, outputs, 3)];
            assert_gradients(&inputs, |tape, v| tape.linear(v[0], v[1], Some(v[2]), Activation::Tanh));
        }
    }

    #[test]
    fn gradient_of_linear_over_many_blocks_matches_central_differences() {
        // 2,100 rows of width 3 are three blocks; the weights see all of them.
        let x = random(2100, 3, 1);
        let inputs = [random(2, 3, 2), random(1, 2, 3)];
        assert_gradients(&inputs, |tape, v| {
            let x = tape.constant(x.clone());
            let y = tape.linear(x, v[0], Some(v[1]), Activation::Gelu);
            let y = tape.mean(y);
            tape.scale(y, 50.0)
        });
    }

    #[test]
    fn gradient_of_a_sum_of_all_terms_matches_central_differences() {
        let (i, j) = (Index::new(vec![0, 2, 2, 1, 0, 2], 3), Index::new(vec![1, 1, 0, 0, 1, 0], 2));
        let inputs = [
            random(6, 4, 1), // x
            random(3, 4, 2), // w
            random(6, 2, 3), // a
            random(2, 3, 4), // b
            random(6, 3, 5), // rows
            random(6, 3, 6), // rows
            random(3, 3, 7), // gathered by i
            random(2, 3, 8), // gathered by j
            random(1, 3, 9), // bias
        ];
        assert_gradients(&inputs, |tape, v| {
            let terms = [
                Term::Row(v[8]),
                Term::Linear(v[0], v[1]),
                Term::Product(v[2], v[3]),
                Term::Rows(v[4]),
                Term::Rows(v[5]),
                Term::Gathered(v[6], &i),
                Term::Gathered(v[7], &j),
            ];
            tape.affine(&terms, Activation::Gelu)
        });
    }

    #[test]
    fn gradient_of_linear_mul_matches_central_differences() {
        let (i, j) = (Index::new(vec![0, 2, 2, 1, 0, 2], 3), Index::new(vec![1, 1, 0, 0, 1, 0], 2));
        let inputs = [random(3, 4, 1), random(2, 4, 2), random(6, 4, 3), random(5, 4, 4), random(5, 4, 5)];
        assert_gradients(&inputs, |tape, v| {
            let terms = [
                Term::LinearMul(Factor::Gathered(v[0], &i), Factor::Gathered(v[1], &j), v[3]),
                Term::LinearMul(Factor::Rows(v[2]), Factor::Gathered(v[0], &i), v[4]),
            ];
            tape.affine(&terms, Activation::Gelu)
        });
        assert_gradients(&inputs[2..4], |tape, v| {
            tape.affine(&[Term::LinearMul(Factor::Rows(v[0]), Factor::Rows(v[0]), v[1])], Activation::None)
        });
    }

    #[test]
    fn a_product_of_gathered_rows_is_the_same_as_its_parts() {
        // Several blocks, and a target with several pieces.
        let n = 3000;
        let i = Index::new((0..n).map(|r| (r * 7 % 100) as u32).collect(), 100);
        let j = Index::new((0..n).map(|r| (r % 3) as u32).collect(), 3);
        let run = |fused: bool| {
            let mut tape = Tape::new();
            let (a, b, w) =
                (tape.input(random(100, 20, 1)), tape.input(random(3, 20, 2)), tape.input(random(30, 20, 3)));
            let y = if fused {
                let terms = [Term::LinearMul(Factor::Gathered(a, &i), Factor::Gathered(b, &j), w)];
                tape.affine(&terms, Activation::Sigmoid)
            } else {
                let (a, b) = (tape.gather(a, &i), tape.gather(b, &j));
                let x = tape.mul(a, b);
                tape.linear(x, w, None, Activation::Sigmoid)
            };
            tape.backward_from(y, &random(n, 30, 4));
            [a, b, w]
                .map(|v| tape.grad(v).unwrap().clone())
                .into_iter()
                .chain([tape.value(y).clone()])
                .collect::<Vec<_>>()
        };
        for (fused, parts) in run(true).iter().zip(run(false)) {
            for (a, b) in fused.as_slice().iter().zip(parts.as_slice()) {
                assert!((a - b).abs() < 1e-4 * b.abs().max(1.0), "{a} {b}");
            }
        }
    }

    #[test]
    fn gradients_of_matmul_and_add_gathered_match_central_differences() {
        assert_gradients(&[random(3, 5, 1), random(5, 4, 2)], |tape, v| tape.matmul(v[0], v[1]));
        let index = Index::new(vec![1, 0, 1, 1], 2);
        assert_gradients(&[random(4, 3, 1), random(2, 3, 2)], |tape, v| {
            tape.add_gathered(v[0], v[1], &index, Activation::Sigmoid)
        });
    }

    #[test]
    fn gradient_of_a_matrix_times_its_own_transpose_matches_central_differences() {
        assert_gradients(&[random(4, 3, 1)], |tape, v| tape.linear(v[0], v[0], None, Activation::None));
    }

    #[test]
    fn no_rows_give_no_output_and_zero_gradients() {
        let mut tape = Tape::new();
        let x = tape.input(Matrix::zeros(0, 3));
        let w = tape.input(random(2, 3, 1));
        let b = tape.input(random(1, 2, 1));
        let y = tape.linear(x, w, Some(b), Activation::Gelu);
        assert_eq!(tape.shape(y), (0, 2));
        tape.backward_from(y, &Matrix::zeros(0, 2));
        assert_eq!(*tape.grad(w).unwrap(), Matrix::zeros(2, 3));
        assert_eq!(*tape.grad(b).unwrap(), Matrix::zeros(1, 2));
    }

    #[test]
    #[should_panic(expected = "weight of a linear map: expected [2, 4], got [2, 3]")]
    fn shapes_that_do_not_fit_are_named() {
        let mut tape = Tape::new();
        let x = tape.constant(Matrix::zeros(5, 4));
        let w = tape.constant(Matrix::zeros(2, 3));
        tape.linear(x, w, None, Activation::None);
    }
}
