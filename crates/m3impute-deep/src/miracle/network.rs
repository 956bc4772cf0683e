//! The networks of all columns, side by side in a few matrices.

use crate::files::matrix;
use crate::inputs::Inputs;
use m3impute_core::{ModelFile, Result};
use m3impute_nn::{Activation, Index, Matrix, ParamId, Params, Tape, Term, Var, alone};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::sync::Arc;

/// Rows of a step.
pub(super) struct Batch {
    /// Completed values. // [b, w]
    pub(super) x: Matrix,
    /// Which of them are to be predicted. // [b, w]
    pub(super) observed: Matrix,
    /// Which of them were observed. // [b, w]
    pub(super) present: Matrix,
}

/// The weights of the terms of the loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct Penalties {
    /// Of the sum of squared errors.
    pub(super) lambda: f32,
    /// Of the norms of the first layers.
    pub(super) beta: f32,
    /// Of the difference of means.
    pub(super) moments: f32,
    /// Whether the observed mean is divided by the weights of all rows, as it was run, and not of the observed ones.
    pub(super) all_rows: bool,
}

/// The networks.
#[derive(Debug)]
pub(super) struct Network {
    /// The inputs that had missing values. // [q]
    pub(super) holed: Vec<usize>,
    /// Hidden units, `h`.
    pub(super) width: usize,
    inputs: usize,
    /// One where a network may use an input: not its own column. // [d h, w]
    may: Arc<Matrix>,
    /// Picks the inputs with missing values. // [w, q]
    picks: Arc<Matrix>,
    /// The network that each row of the first weight belongs to.
    of_network: Arc<Index>,
    weights: Layers<ParamId>,
}

/// The weights of all layers.
#[derive(Clone, Copy, Debug)]
struct Layers<T> {
    first: T,       // [d h, w]
    first_bias: T,  // [1, d h]
    shared: T,      // [h, h]
    shared_bias: T, // [1, h]
    last: T,        // [1, d h]
    last_bias: T,   // [1, d]
}

impl<T> Layers<T> {
    fn map<U>(self, mut f: impl FnMut(T) -> U) -> Layers<U> {
        let Layers { first, first_bias, shared, shared_bias, last, last_bias } = self;
        Layers {
            first: f(first),
            first_bias: f(first_bias),
            shared: f(shared),
            shared_bias: f(shared_bias),
            last: f(last),
            last_bias: f(last_bias),
        }
    }

    fn each_ref(&self) -> Layers<&T> {
        let Layers { first, first_bias, shared, shared_bias, last, last_bias } = self;
        Layers { first, first_bias, shared, shared_bias, last, last_bias }
    }
}

/// Rows that a thread predicts at a time.
const ROWS: usize = 256;

const NAMES: [&str; 6] = ["first.weight", "first.bias", "shared.weight", "shared.bias", "last.weight", "last.bias"];

impl Network {
    /// Networks with random weights; those of all columns start alike.
    pub(super) fn new(
        params: &mut Params,
        inputs: &Inputs,
        holed: Vec<usize>,
        h: usize,
        rng: &mut ChaCha8Rng,
    ) -> Network {
        let (w, d) = (inputs.width(), inputs.width() + holed.len());
        let normal = |rows, cols, deviation, rng: &mut ChaCha8Rng| Matrix::normal(rows, cols, deviation, rng);
        let first = normal(h, w, 0.01, rng);
        let first_bias = normal(1, h, 0.01, rng);
        let (shared, shared_bias) = (normal(h, h, 1.0, rng), normal(1, h, 1.0, rng));
        let (last, last_bias) = (normal(1, h, 1.0, rng), normal(1, 1, 1.0, rng));
        let values = [
            Matrix::from_fn(d * h, w, |i, j| first.get(i % h, j)),
            Matrix::from_fn(1, d * h, |_, j| first_bias.get(0, j % h)),
            shared,
            shared_bias,
            Matrix::from_fn(1, d * h, |_, j| last.get(0, j % h)),
            Matrix::full(1, d, last_bias.get(0, 0)),
        ];
        Network::of(params, inputs, holed, h, values)
    }

    /// Networks from a file.
    pub(super) fn restore(
        file: &ModelFile,
        params: &mut Params,
        inputs: &Inputs,
        holed: Vec<usize>,
        h: usize,
    ) -> Result<Network> {
        let (w, d) = (inputs.width(), inputs.width() + holed.len());
        let shapes = [(d * h, w), (1, d * h), (h, h), (1, h), (1, d * h), (1, d)];
        let mut values = Vec::with_capacity(NAMES.len());
        for (name, shape) in NAMES.iter().zip(shapes) {
            values.push(matrix(file, name, shape)?);
        }
        let values = values.try_into().expect("a matrix for each name");
        Ok(Network::of(params, inputs, holed, h, values))
    }

    fn of(params: &mut Params, inputs: &Inputs, holed: Vec<usize>, h: usize, values: [Matrix; 6]) -> Network {
        let (w, d) = (inputs.width(), inputs.width() + holed.len());
        let mut may = Matrix::full(d * h, w, 1.0);
        for cell in inputs.cells() {
            for i in cell.start * h..cell.end * h {
                may.row_mut(i)[cell.clone()].fill(0.0);
            }
        }
        let picks = Matrix::from_fn(w, holed.len(), |i, j| f32::from(u8::from(holed[j] == i)));
        let of_network = Index::new((0..d * h).map(|i| (i / h) as u32).collect(), d);
        let mut names = NAMES.iter();
        let [first, first_bias, shared, shared_bias, last, last_bias] =
            values.map(|value| params.add(names.next().expect("a name for each matrix"), value));
        let weights = Layers { first, first_bias, shared, shared_bias, last, last_bias };
        Network { holed, width: h, inputs: w, may: Arc::new(may), picks: Arc::new(picks), of_network, weights }
    }

    /// The outputs of the first `d` networks, whose weights are given, for `x` `[b, w]`: `[b, d]`.
    fn apply(&self, tape: &mut Tape, weights: Layers<Var>, x: Var, d: usize) -> Var {
        let (b, h) = (tape.shape(x).0, self.width);
        let hidden = tape.linear(x, weights.first, Some(weights.first_bias), Activation::Elu); // [b, d h]
        let hidden = tape.reshape(hidden, b * d, h);
        let hidden = tape.linear(hidden, weights.shared, Some(weights.shared_bias), Activation::Elu); // [b d, h]
        let hidden = tape.reshape(hidden, b, d * h);
        let last = tape.broadcast_row(weights.last, b); // [b, d h]
        let out = tape.mul(hidden, last);
        let out = tape.reshape(out, b * d, h);
        let out = tape.row_sum(out);
        let out = tape.reshape(out, b, d);
        tape.affine(&[Term::Rows(out), Term::Row(weights.last_bias)], Activation::None)
    }

    /// The predictions for completed rows `x` `[n, w]`: `[n, w]`.
    pub(super) fn predict(&self, params: &Params, x: &Matrix) -> Matrix {
        let (n, w, h) = (x.rows(), self.inputs, self.width);
        let ids = self.weights;
        let (first, may) = (params.value(ids.first), &self.may);
        // The networks of the inputs alone: they stand first.
        let start = |id: ParamId, len: usize| Matrix::row_vector(params.value(id).as_slice()[..len].to_vec());
        let weights = Layers {
            first: Matrix::from_fn(w * h, w, |i, j| first.get(i, j) * may.get(i, j)),
            first_bias: start(ids.first_bias, w * h),
            shared: params.value(ids.shared).clone(),
            shared_bias: params.value(ids.shared_bias).clone(),
            last: start(ids.last, w * h),
            last_bias: start(ids.last_bias, w),
        }
        .map(Arc::new);
        let one = |tape: &mut Tape, (out, x): (&mut [f32], &[f32])| {
            tape.reset();
            let weights = weights.each_ref().map(|w| tape.constant_shared(w));
            let x = tape.constant_with(x.len() / w, w, |to| to.copy_from_slice(x));
            let predicted = self.apply(tape, weights, x, w); // [rows, w]
            out.copy_from_slice(tape.value(predicted).as_slice());
        };
        let mut out = vec![0.0; n * w];
        // A thread a part: what a part needs stays in the cache of its processor.
        let parts = out.par_chunks_mut((ROWS * w).max(1)).zip(x.as_slice().par_chunks((ROWS * w).max(1)));
        parts.for_each_init(Tape::inference, |tape, part| alone(|| one(tape, part)));
        Matrix::from_vec(n, w, out).expect("a prediction for each cell")
    }

    /// The outputs of all networks for completed rows `x` `[b, w]`: `[b, d]`.
    pub(super) fn outputs(&self, tape: &mut Tape, params: &Params, x: Matrix) -> Var {
        let ids = self.weights;
        let weights = Layers {
            first: self.first(tape, params),
            first_bias: tape.param(params, ids.first_bias),
            shared: tape.param(params, ids.shared),
            shared_bias: tape.param(params, ids.shared_bias),
            last: tape.param(params, ids.last),
            last_bias: tape.param(params, ids.last_bias),
        };
        let x = tape.constant(x);
        self.apply(tape, weights, x, self.inputs + self.holed.len())
    }

    /// The first weights without those of a network's own column. // [d h, w]
    fn first(&self, tape: &mut Tape, params: &Params) -> Var {
        let first = tape.param(params, self.weights.first);
        let may = tape.constant_shared(&self.may);
        tape.mul(first, may)
    }

    /// The loss of a batch for which the networks have these outputs, `[b, d]`.
    pub(super) fn loss(&self, tape: &mut Tape, params: &Params, output: Var, batch: Batch, weigh: Penalties) -> Var {
        let (b, w, q) = (batch.x.rows(), self.inputs, self.holed.len());
        let first = self.first(tape, params);
        let (x, observed) = (tape.constant(batch.x), tape.constant(batch.observed));
        let values = tape.slice_cols(output, 0, w); // [b, w]
        let error = tape.sub(x, values);
        let error = tape.mul(error, observed);
        let error = tape.square(error);
        let error = tape.sum(error);
        // The mean over rows, and the sum once more.
        let mut loss = tape.scale(error, weigh.lambda + 1.0 / b as f32);

        let squares = tape.square(first);
        let squares = tape.segment_sum(squares, &self.of_network); // [d, w]
        // The root, by way of its logarithm; none of it is exactly zero.
        let norms = tape.log(squares, 1e-12);
        let norms = tape.scale(norms, 0.5);
        let norms = tape.exp(norms);
        let norms = tape.sum(norms);
        let norms = tape.scale(norms, weigh.beta);
        loss = tape.add(loss, norms);
        let graph = tape.slice_rows(squares, 0, w); // [w, w]
        let cycles = tape.trace_exp(graph);
        loss = tape.add(loss, cycles);
        let cycles = tape.square(cycles);
        let cycles = tape.scale(cycles, 0.5);
        loss = tape.add(loss, cycles);
        if q == 0 {
            return loss;
        }

        let chances = tape.slice_cols(output, w, w + q); // [b, q]
        let present = Matrix::from_fn(b, q, |i, j| batch.present.get(i, self.holed[j]));
        let present = tape.constant(present);
        let surprise = tape.bce_with_logits(chances, present);
        let surprise = tape.scale(surprise, q as f32);
        loss = tape.add(loss, surprise);

        // Observed means, with inverse-probability weights, against predicted ones.
        let picks = tape.constant_shared(&self.picks);
        let [values, x, observed] =
            [values, x, observed].map(|v| tape.affine(&[Term::Product(v, picks)], Activation::None)); // [b, q]
        let chance = tape.sigmoid(chances);
        let chance = tape.add_scalar(chance, 1.01);
        let chance = tape.scale(chance, 1.0 / 1.02);
        let weights = tape.recip(chance);
        let counted = if weigh.all_rows { weights } else { tape.mul(weights, observed) };
        let seen = tape.mul(weights, observed);
        let seen = tape.mul(seen, x);
        let ones = tape.constant(Matrix::full(1, b, 1.0));
        let [predicted, seen, counted] =
            [values, seen, counted].map(|v| tape.affine(&[Term::Product(ones, v)], Activation::None)); // [1, q]
        let predicted = tape.scale(predicted, 1.0 / b as f32);
        let counted = tape.add_scalar(counted, 1e-6);
        let seen = tape.div(seen, counted);
        let apart = tape.sub(predicted, seen);
        let apart = tape.square(apart);
        let apart = tape.sum(apart);
        let apart = tape.scale(apart, weigh.moments);
        tape.add(loss, apart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn no_network_sees_its_own_column() {
        let (mut params, mut rng) = (Params::new(), ChaCha8Rng::seed_from_u64(1));
        let network = Network::new(&mut params, &Inputs::of_numbers(3), vec![0, 2], 4, &mut rng);
        let predict = |x: [f32; 3]| network.predict(&params, &Matrix::from_rows(&[x]));
        let (one, two) = (predict([1.0, 2.0, 3.0]), predict([9.0, 2.0, 3.0]));
        assert_eq!(one.get(0, 0), two.get(0, 0));
        assert_ne!(one.get(0, 1), two.get(0, 1));
    }

    #[test]
    fn the_loss_and_the_prediction_are_of_the_same_networks() {
        let (mut params, mut rng) = (Params::new(), ChaCha8Rng::seed_from_u64(1));
        let network = Network::new(&mut params, &Inputs::of_numbers(2), Vec::new(), 3, &mut rng);
        let x = Matrix::from_rows(&[[0.5, -1.0], [2.0, 0.25]]);
        let predicted = network.predict(&params, &x);
        let squares: f32 = predicted.as_slice().iter().zip(x.as_slice()).map(|(s, x)| (s - x) * (s - x)).sum();
        let seen = Matrix::full(2, 2, 1.0);
        let batch = Batch { x, observed: seen.clone(), present: seen };
        let weigh = Penalties { lambda: 10.0, beta: 0.0, moments: 0.0, all_rows: false };
        let mut tape = Tape::new();
        let output = network.outputs(&mut tape, &params, batch.x.clone());
        let loss = network.loss(&mut tape, &params, output, batch, weigh);
        // The weights are so small that cycles weigh nothing beside the error.
        assert!((tape.scalar(loss) / squares - 10.5).abs() < 0.05, "{} {squares}", tape.scalar(loss));
    }
}
