//! The published GRAPE, whose layers are those of the published M3, rebuilt from operations: its states,
//! predictions, gradients and first ten losses against those that PyTorch wrote to `data/grape.safetensors`.

use std::collections::HashMap;
use std::sync::Arc;

use m3impute_nn::{Activation, Adam, AdamParams, Index, Matrix, Params, Tape, Term, Var};
use safetensors::SafeTensors;

const GOLDEN: &[u8] = include_bytes!("data/grape.safetensors");
const WIDTH: usize = 16;
const LAYERS: usize = 3;

struct Golden<'a>(SafeTensors<'a>);

impl Golden<'_> {
    fn matrix(&self, name: &str) -> Matrix {
        let tensor = self.0.tensor(name).unwrap();
        let numbers = tensor.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        match *tensor.shape() {
            [rows, cols] => Matrix::from_vec(rows, cols, numbers).unwrap(),
            [_] => Matrix::row_vector(numbers),
            ref shape => panic!("`{name}` has shape {shape:?}"),
        }
    }

    fn flags(&self, name: &str) -> Vec<bool> {
        self.0.tensor(name).unwrap().data().iter().map(|b| *b != 0).collect()
    }

    fn losses(&self) -> Vec<f64> {
        let tensor = self.0.tensor("losses").unwrap();
        tensor.data().chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
    }

    /// All parameters under `init.`, in the order of their names.
    fn params(&self) -> Params {
        let mut names: Vec<_> = self.0.names().into_iter().filter_map(|n| n.strip_prefix("init.")).collect();
        names.sort_unstable();
        let mut params = Params::new();
        for name in names {
            let tensor = self.0.tensor(&format!("init.{name}")).unwrap();
            let value = self.matrix(&format!("init.{name}"));
            params.add_shaped(name, tensor.shape(), Matrix::zeros(value.rows(), value.cols()));
        }
        params.load_prefixed(GOLDEN, "init.").unwrap();
        params
    }
}

struct Cells {
    rows: usize,
    cols: usize,
    /// Row, column and value of each observed cell, row by row.
    observed: Vec<(u32, u32, f32)>,
}

impl Cells {
    fn read(golden: &Golden) -> Self {
        let x = golden.matrix("X");
        let flags = golden.flags("observed");
        let (rows, cols) = x.shape();
        let cells = (0..rows * cols).filter(|i| flags[*i]);
        let observed = cells.map(|i| ((i / cols) as u32, (i % cols) as u32, x.as_slice()[i])).collect();
        Self { rows, cols, observed }
    }
}

/// Parameters on a tape, by name.
struct Weights(HashMap<String, Var>);

impl Weights {
    fn enter(tape: &mut Tape, params: &Params) -> Self {
        Self(params.ids().map(|id| (params.name(id).to_owned(), tape.param(params, id))).collect())
    }

    fn of(&self, layer: &str) -> (Var, Var) {
        (self.0[&format!("{layer}.weight")], self.0[&format!("{layer}.bias")])
    }

    /// Parts of a weight that act on parts of a concatenated input.
    fn cut(&self, tape: &mut Tape, layer: &str, widths: &[usize]) -> Vec<Var> {
        let weight = self.of(layer).0;
        let mut from = 0;
        let cut = |width: &usize| {
            from += width;
            tape.slice_cols(weight, from - width, from)
        };
        widths.iter().map(cut).collect()
    }
}

/// States of all nodes, and the prediction of each observed cell.
fn forward(tape: &mut Tape, w: &Weights, cells: &Cells, kept: &[bool]) -> (Var, Var) {
    let nodes = cells.rows + cells.cols;
    let shown: Vec<_> = cells.observed.iter().zip(kept).filter(|(_, kept)| **kept).map(|(cell, _)| *cell).collect();
    let sample = |cell: &(u32, u32, f32)| cell.0;
    let feature = |cell: &(u32, u32, f32)| cells.rows as u32 + cell.1;
    let source = shown.iter().map(sample).chain(shown.iter().map(feature)).collect();
    let target = shown.iter().map(feature).chain(shown.iter().map(sample)).collect();
    let (source, target): (Arc<Index>, Arc<Index>) = (Index::new(source, nodes), Index::new(target, nodes));
    let values = shown.iter().chain(&shown).map(|cell| cell.2).collect();

    let mut x =
        tape.constant(Matrix::from_fn(nodes, cells.cols, |i, j| f32::from(i < cells.rows || i - cells.rows == j))); // [nodes, m]
    let mut e = tape.constant(Matrix::column(values)); // [edges, 1]
    for layer in 0..LAYERS {
        let (width, edge_width) = (tape.shape(x).1, tape.shape(e).1);
        let name = format!("gnn.convs.{layer}.message_lin");
        let parts = w.cut(tape, &name, &[width, edge_width]);
        let from_source = tape.linear(x, parts[0], Some(w.of(&name).1), Activation::None); // [nodes, d]
        let terms = [Term::Linear(e, parts[1]), Term::Gathered(from_source, &source)];
        let message = tape.affine(&terms, Activation::Relu); // [edges, d]
        let mean = tape.segment_mean(message, &target); // [nodes, d]

        let name = format!("gnn.convs.{layer}.agg_lin");
        let parts = w.cut(tape, &name, &[WIDTH, width]);
        let terms = [Term::Linear(mean, parts[0]), Term::Linear(x, parts[1]), Term::Row(w.of(&name).1)];
        let state = tape.affine(&terms, Activation::Relu);
        x = tape.l2_normalise(state);

        if layer + 1 < LAYERS {
            let name = format!("gnn.edge_update_mlps.{layer}.0");
            let parts = w.cut(tape, &name, &[WIDTH, WIDTH, edge_width]);
            let from_source = tape.linear(x, parts[0], Some(w.of(&name).1), Activation::None);
            let from_target = tape.linear(x, parts[1], None, Activation::None);
            let terms =
                [Term::Linear(e, parts[2]), Term::Gathered(from_source, &source), Term::Gathered(from_target, &target)];
            e = tape.affine(&terms, Activation::Relu);
        }
    }
    let (weight, bias) = w.of("gnn.node_post_mlp.0.0");
    let hidden = tape.linear(x, weight, Some(bias), Activation::Relu);
    let (weight, bias) = w.of("gnn.node_post_mlp.1");
    let states = tape.linear(hidden, weight, Some(bias), Activation::None);

    let parts = w.cut(tape, "head.layers.0.0", &[WIDTH, WIDTH]);
    let of_sample = tape.linear(states, parts[0], Some(w.of("head.layers.0.0").1), Activation::None);
    let of_feature = tape.linear(states, parts[1], None, Activation::None);
    let rows = Index::new(cells.observed.iter().map(sample).collect(), nodes);
    let cols = Index::new(cells.observed.iter().map(feature).collect(), nodes);
    let terms = [Term::Gathered(of_sample, &rows), Term::Gathered(of_feature, &cols)];
    let hidden = tape.affine(&terms, Activation::Relu); // [cells, d]
    let (weight, bias) = w.of("head.layers.1.0");
    (states, tape.linear(hidden, weight, Some(bias), Activation::None))
}

fn assert_close(what: &str, got: &[f32], want: &[f32], tolerance: f32) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() <= tolerance * want.abs().max(1.0), "{what}: {got} {want}");
    }
}

#[test]
fn states_predictions_gradients_and_losses_are_those_of_the_published_model() {
    let golden = Golden(SafeTensors::deserialize(GOLDEN).unwrap());
    let cells = Cells::read(&golden);
    let mut params = golden.params();
    let mut adam = Adam::new(&params, AdamParams::default());
    let mut tape = Tape::new();
    for (step, expected) in golden.losses().into_iter().enumerate() {
        let kept = golden.flags(&format!("step{step}.kept"));
        let weights = Weights::enter(&mut tape, &params);
        let (states, prediction) = forward(&mut tape, &weights, &cells, &kept);
        let target = tape.constant(Matrix::column(cells.observed.iter().map(|c| c.2).collect()));
        let loss = tape.mse(prediction, target);
        params.zero_grads();
        tape.backward(loss, &mut params);
        if step == 0 {
            assert_close("states", tape.value(states).as_slice(), golden.matrix("step0.embeddings").as_slice(), 2e-6);
            let expected = golden.matrix("step0.prediction");
            assert_close("prediction", tape.value(prediction).as_slice(), expected.as_slice(), 2e-6);
            for id in params.ids() {
                let name = format!("grad0.{}", params.name(id));
                // The edges of the last layer are updated and thrown away: their weights have no gradient.
                if golden.0.tensor(&name).is_ok() {
                    assert_close(&name, params.grad(id).as_slice(), golden.matrix(&name).as_slice(), 2e-6);
                } else {
                    assert!(params.grad(id).as_slice().iter().all(|g| *g == 0.0), "{name}");
                }
            }
        }
        let got = f64::from(tape.scalar(loss));
        assert!((got - expected).abs() < 2e-6 * expected.max(1.0), "loss of step {step}: {got} {expected}");
        adam.step(&mut params, 1e-3);
        tape.reset();
    }
    for id in params.ids() {
        let name = format!("final.{}", params.name(id));
        assert_close(&name, params.value(id).as_slice(), golden.matrix(&name).as_slice(), 1e-5);
    }
}
