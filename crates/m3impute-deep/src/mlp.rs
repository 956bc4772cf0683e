//! Layers of linear maps with an activation between.

use crate::files::matrix;
use m3impute_core::{ModelFile, Result};
use m3impute_nn::{Activation, Matrix, ParamId, Params, Tape, Var};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// How weights start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// As PyTorch starts them: uniform.
    Uniform,
    /// Normal with variance 2 / inputs; biases of zero.
    Xavier,
    /// Orthogonal rows or columns; biases uniform.
    Orthogonal,
}

/// Whether weights get gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weights {
    Trained,
    Frozen,
}

/// A network of linear maps.
#[derive(Clone, Debug)]
pub(crate) struct Mlp {
    layers: Vec<[ParamId; 2]>,
}

impl Mlp {
    /// A network whose layers have these sizes, the inputs first.
    pub(crate) fn new(params: &mut Params, name: &str, sizes: &[usize], start: Start, rng: &mut ChaCha8Rng) -> Mlp {
        let layer = |(l, pair): (usize, &[usize])| {
            let [weight, bias] = start.of(pair[1], pair[0], rng);
            add(params, name, l, weight, bias)
        };
        Mlp { layers: sizes.windows(2).enumerate().map(layer).collect() }
    }

    /// A network from a file, which must hold layers of these sizes.
    pub(crate) fn restore(file: &ModelFile, params: &mut Params, name: &str, sizes: &[usize]) -> Result<Mlp> {
        let layers = sizes.windows(2).enumerate().map(|(l, pair)| {
            let weight = matrix(file, &format!("{name}.{l}.weight"), (pair[1], pair[0]))?;
            let bias = matrix(file, &format!("{name}.{l}.bias"), (1, pair[1]))?;
            Ok(add(params, name, l, weight, bias))
        });
        Ok(Mlp { layers: layers.collect::<Result<_>>()? })
    }

    /// What it makes of `x` `[n, inputs]`, with ReLU between the layers.
    pub(crate) fn apply(&self, tape: &mut Tape, params: &Params, weights: Weights, x: Var, last: Activation) -> Var {
        let enter = |tape: &mut Tape, id| match weights {
            Weights::Trained => tape.param(params, id),
            Weights::Frozen => tape.frozen(params, id),
        };
        self.layers.iter().enumerate().fold(x, |x, (l, &[weight, bias])| {
            let (weight, bias) = (enter(tape, weight), enter(tape, bias));
            let activation = if l + 1 == self.layers.len() { last } else { Activation::Relu };
            tape.linear(x, weight, Some(bias), activation)
        })
    }
}

fn add(params: &mut Params, name: &str, layer: usize, weight: Matrix, bias: Matrix) -> [ParamId; 2] {
    [params.add(&format!("{name}.{layer}.weight"), weight), params.add(&format!("{name}.{layer}.bias"), bias)]
}

impl Start {
    /// A weight `[outputs, inputs]` and a bias `[1, outputs]`.
    fn of(self, outputs: usize, inputs: usize, rng: &mut ChaCha8Rng) -> [Matrix; 2] {
        match self {
            Start::Uniform => Matrix::linear_init(outputs, inputs, rng).into(),
            Start::Xavier => {
                let deviation = (2.0 / inputs as f32).sqrt();
                [Matrix::normal(outputs, inputs, deviation, rng), Matrix::zeros(1, outputs)]
            }
            Start::Orthogonal => {
                let (_, bias) = Matrix::linear_init(outputs, inputs, rng);
                [orthogonal(outputs, inputs, rng), bias]
            }
        }
    }
}

/// Rows, or columns where they are fewer, that are orthogonal and of length one.
fn orthogonal(rows: usize, cols: usize, rng: &mut ChaCha8Rng) -> Matrix {
    let (few, many) = (rows.min(cols), rows.max(cols));
    let mut q = Matrix::normal(few, many, 1.0, rng); // [few, many]
    for i in 0..few {
        for j in 0..i {
            let along: f32 = q.row(i).iter().zip(q.row(j)).map(|(a, b)| a * b).sum();
            let other = q.row(j).to_vec();
            q.row_mut(i).iter_mut().zip(&other).for_each(|(a, b)| *a -= along * b);
        }
        let length = q.row(i).iter().map(|a| a * a).sum::<f32>().sqrt().max(1e-12);
        q.row_mut(i).iter_mut().for_each(|a| *a /= length);
    }
    if rows <= cols { q } else { Matrix::from_fn(rows, cols, |i, j| q.get(j, i)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn orthogonal_weights_are_orthogonal() {
        for (rows, cols) in [(3, 5), (5, 3), (1, 4), (4, 1)] {
            let q = orthogonal(rows, cols, &mut ChaCha8Rng::seed_from_u64(1));
            let along = |a: usize, b: usize| -> f32 {
                (0..rows.max(cols))
                    .map(|k| if rows <= cols { q.get(a, k) * q.get(b, k) } else { q.get(k, a) * q.get(k, b) })
                    .sum()
            };
            for a in 0..rows.min(cols) {
                for b in 0..=a {
                    assert!((along(a, b) - f32::from(u8::from(a == b))).abs() < 1e-5);
                }
            }
        }
    }

    #[test]
    fn layers_are_applied_one_after_the_other() {
        let mut params = Params::new();
        let mlp = Mlp::new(&mut params, "net", &[1, 1, 1], Start::Xavier, &mut ChaCha8Rng::seed_from_u64(1));
        let ids: Vec<ParamId> = params.ids().collect();
        for (id, value) in ids.into_iter().zip([-2.0, 1.0, 3.0, 0.5]) {
            params.value_mut(id).as_mut_slice()[0] = value;
        }
        let mut tape = Tape::inference();
        let x = tape.constant(Matrix::column(vec![1.0, -1.0]));
        let y = mlp.apply(&mut tape, &params, Weights::Frozen, x, Activation::None);
        assert_eq!(tape.value(y).as_slice(), [0.5, 9.5]);
    }
}
