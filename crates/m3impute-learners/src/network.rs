//! A small network: layers of hidden units between a point and its prediction.
//!
//! Notation: `n` points, `p` coordinates, `h` hidden units, `c` outputs.

mod learner;

pub use learner::{Centre, NetworkLearner, NetworkModel};
use m3impute_core::{Error, ModelFile, RandomStream, Result, Run, Tensor};
use m3impute_nn::{Activation, Adam, AdamParams, Decay, Matrix, ParamId, Params, Tape, alone};
use rand::Rng;
use std::collections::BTreeMap;

/// What is learnt, a value a point.
#[derive(Clone, Copy, Debug)]
pub enum Aim<'a> {
    /// Numbers, with the least absolute error.
    Medians(&'a [f32]),
    /// Numbers, with the least squared error.
    Means(&'a [f32]),
    /// Classes, and how many there are.
    Classes(&'a [u32], usize),
}

/// How a network is trained.
#[derive(Clone, Debug)]
pub struct NetworkParams {
    /// The hidden units of each layer.
    pub hidden: Vec<usize>,
    /// How many steps of AdamW, over which the rate falls to zero along a cosine.
    pub steps: usize,
    /// The largest rate.
    pub rate: f32,
    /// The decay of weights.
    pub decay: f32,
    /// How many points a step looks at.
    pub batch: usize,
}

impl Default for NetworkParams {
    fn default() -> NetworkParams {
        NetworkParams { hidden: vec![64, 32], steps: 600, rate: 5e-3, decay: 1e-2, batch: 128 }
    }
}

/// A trained network.
///
/// ```
/// use m3impute_learners::network::{Aim, Network, NetworkParams};
/// use m3impute_core::Run;
/// let run = Run::new(0, 1)?;
/// let x: Vec<f32> = (0..200).map(|i| i as f32 / 100.0 - 1.0).collect();
/// let y: Vec<f32> = x.iter().map(|x| x.abs()).collect();
/// let network = Network::fit(&x, 1, Aim::Medians(&y), &NetworkParams::default(), &run, "example", 0)?;
/// let said = network.predict(&[-0.5, 0.5], &run)?;
/// assert!(said.iter().all(|s| (s - 0.5).abs() < 0.1));
/// # Ok::<(), m3impute_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    layers: Vec<Layer>,
    /// What the outputs are multiplied by and what is added: numbers are learnt standardised.
    scale: f32,
    shift: f32,
}

#[derive(Clone, Debug, PartialEq)]
struct Layer {
    weights: Matrix, // [outputs, inputs]
    bias: Vec<f32>,
}

impl Network {
    /// Learns from points `x`, `[n, p]`. `purpose` and `index` name the stream of random numbers. When the budget is
    /// spent, the steps so far are the network.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn fit(
        x: &[f32],
        p: usize,
        aim: Aim<'_>,
        settings: &NetworkParams,
        run: &Run,
        purpose: &str,
        index: u64,
    ) -> Result<Network> {
        let mut rng = run.rng(purpose, index);
        let (n, outputs, shift, scale) = match aim {
            Aim::Classes(y, classes) => (y.len(), classes, 0.0, 1.0),
            Aim::Medians(y) | Aim::Means(y) => {
                let mean = y.iter().sum::<f32>() / y.len().max(1) as f32;
                let spread = (y.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / y.len().max(1) as f32).sqrt();
                (y.len(), 1, mean, spread.max(1e-6))
            }
        };
        let mut params = Params::new();
        let mut layers: Vec<(ParamId, ParamId)> = Vec::new();
        let mut inputs = p;
        for (at, &units) in settings.hidden.iter().chain([&outputs]).enumerate() {
            let (weight, bias) = Matrix::linear_init(units, inputs, &mut rng);
            layers.push((params.add(&format!("w{at}"), weight), params.add(&format!("b{at}"), bias)));
            inputs = units;
        }
        let mut rng = RandomStream::new(rng.next_u64());
        let decay = Decay::Decoupled(settings.decay);
        let mut adam = Adam::new(&params, AdamParams { decay, ..AdamParams::default() });
        let mut tape = Tape::new();
        let mut order: Vec<u32> = (0..n as u32).collect();
        let batch = settings.batch.min(n);
        let mut from = n;
        for step in 0..settings.steps {
            run.check()?;
            if run.is_spent() || n == 0 || p == 0 {
                break;
            }
            if from + batch > n {
                rng.shuffle_front(&mut order, n);
                from = 0;
            }
            let rows = &order[from..from + batch];
            from += batch;
            let progress = step as f32 / settings.steps as f32;
            let rate = settings.rate * 0.5 * (1.0 + (std::f32::consts::PI * progress).cos());
            // Alone: several networks are trained side by side.
            alone(|| {
                let points = rows.iter().flat_map(|&i| &x[i as usize * p..(i as usize + 1) * p]).copied();
                let mut at = tape.constant_with(batch, p, |to| to.iter_mut().zip(points).for_each(|(t, v)| *t = v));
                for (l, &(weight, bias)) in layers.iter().enumerate() {
                    let (weight, bias) = (tape.param(&params, weight), tape.param(&params, bias));
                    let activation = if l + 1 < layers.len() { Activation::Relu } else { Activation::None };
                    at = tape.linear(at, weight, Some(bias), activation);
                }
                let loss = match aim {
                    Aim::Classes(y, _) => {
                        let classes: Vec<u32> = rows.iter().map(|&i| y[i as usize]).collect();
                        tape.cross_entropy(at, classes.as_slice())
                    }
                    Aim::Medians(y) | Aim::Means(y) => {
                        let target = Matrix::column(rows.iter().map(|&i| (y[i as usize] - shift) / scale).collect());
                        let target = tape.constant(target);
                        if matches!(aim, Aim::Means(_)) { tape.mse(at, target) } else { tape.l1(at, target) }
                    }
                };
                params.zero_grads();
                tape.backward(loss, &mut params);
                params.clip_grad_norm(1.0);
                adam.step(&mut params, rate);
                tape.reset();
            });
        }
        let layer = |&(weight, bias): &(ParamId, ParamId)| Layer {
            weights: params.value(weight).clone(),
            bias: params.value(bias).as_slice().to_vec(),
        };
        Ok(Network { layers: layers.iter().map(layer).collect(), scale, shift })
    }

    /// How many coordinates a point has.
    pub fn width(&self) -> usize {
        self.layers[0].weights.cols()
    }

    /// How many numbers it says of a point: one, or a score for each class.
    pub fn outputs(&self) -> usize {
        self.layers[self.layers.len() - 1].bias.len()
    }

    /// What it says of some points, each by itself: a number, or the scores of the classes.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn predict(&self, points: &[f32], run: &Run) -> Result<Vec<f32>> {
        let p = self.width().max(1);
        let mut said = Vec::with_capacity(points.len() / p * self.outputs());
        for points in points.chunks(p * 1024) {
            run.check()?;
            for point in points.chunks_exact(p) {
                let mut at = point.to_vec();
                for (l, layer) in self.layers.iter().enumerate() {
                    let hidden = l + 1 < self.layers.len();
                    let unit = |(row, &bias): (usize, &f32)| {
                        let weights = layer.weights.row(row);
                        let z = bias + weights.iter().zip(&at).map(|(w, v)| w * v).sum::<f32>();
                        if hidden { z.max(0.0) } else { z }
                    };
                    at = layer.bias.iter().enumerate().map(unit).collect();
                }
                said.extend(at.iter().map(|z| self.shift + self.scale * z));
            }
        }
        Ok(said)
    }

    /// Writes the network into tensors whose names start with `prefix`.
    pub fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) {
        for (l, Layer { weights, bias }) in self.layers.iter().enumerate() {
            let (rows, cols) = weights.shape();
            let flat = weights.as_slice().to_vec();
            tensors.insert(format!("{prefix}weights{l}"), Tensor::F32(vec![rows, cols], flat));
            tensors.insert(format!("{prefix}bias{l}"), Tensor::F32(vec![bias.len()], bias.clone()));
        }
        tensors.insert(format!("{prefix}scale"), Tensor::F32(vec![2], vec![self.scale, self.shift]));
    }

    /// The network back, from points of `p` coordinates to that many outputs.
    ///
    /// # Errors
    /// When something is not there or does not fit.
    pub fn restore(file: &ModelFile, prefix: &str, p: usize, outputs: usize) -> Result<Network> {
        let damaged = |what: &str| Error::damaged(format!("the network `{prefix}`: {what}"));
        let [scale, shift] = file.f32s(&format!("{prefix}scale"))?.1 else { return Err(damaged("its scale")) };
        let mut layers: Vec<Layer> = Vec::new();
        let mut inputs = p;
        while file.tensors.contains_key(&format!("{prefix}weights{}", layers.len())) {
            let (shape, weights) = file.f32s(&format!("{prefix}weights{}", layers.len()))?;
            let bias = file.f32s(&format!("{prefix}bias{}", layers.len()))?.1;
            if shape != [bias.len(), inputs] || bias.is_empty() || weights.iter().any(|w| !w.is_finite()) {
                return Err(damaged("layers that do not fit each other"));
            }
            let weights =
                Matrix::from_vec(bias.len(), inputs, weights.to_vec()).map_err(|e| damaged(&e.to_string()))?;
            inputs = bias.len();
            layers.push(Layer { weights, bias: bias.to_vec() });
        }
        if layers.is_empty() || inputs != outputs || !scale.is_finite() || !shift.is_finite() {
            return Err(damaged("another number of outputs"));
        }
        Ok(Network { layers, scale: *scale, shift: *shift })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_apart_are_told_apart() {
        let run = Run::new(0, 1).unwrap();
        let x: Vec<f32> = (0..60).map(|i| (i % 3) as f32 - 1.0).collect();
        let y: Vec<u32> = (0..60).map(|i| i % 3).collect();
        let network = Network::fit(&x, 1, Aim::Classes(&y, 3), &NetworkParams::default(), &run, "test", 0).unwrap();
        for (class, scores) in network.predict(&[-1.0, 0.0, 1.0], &run).unwrap().chunks_exact(3).enumerate() {
            assert!((0..3).all(|other| scores[other] <= scores[class]), "{scores:?}");
        }
    }
}
