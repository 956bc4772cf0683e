//! Numbers written by the published models: weights, every intermediate, gradients, the first ten losses.

use m3impute_gnn::graph::{Cells, Shown};
use m3impute_gnn::head::{Tables, TargetIndices, Targets, Variant};
use m3impute_gnn::layers::Gnn;
use m3impute_gnn::model::{Architecture, Model, Start};
use m3impute_gnn::pass::Pass;
use m3impute_nn::{Adam, AdamParams, Matrix, Tape};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use safetensors::SafeTensors;
use std::collections::HashMap;
use std::sync::Arc;

/// A file of the published model.
struct Golden {
    bytes: Vec<u8>,
    notes: HashMap<String, String>,
}

impl Golden {
    fn open(name: &str) -> Golden {
        let path = format!("{}/tests/golden/{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(path).unwrap();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let notes = header.metadata().clone().unwrap();
        Golden { bytes, notes }
    }

    fn raw(&self, name: &str) -> Option<(Vec<usize>, Vec<u8>)> {
        let file = SafeTensors::deserialize(&self.bytes).unwrap();
        let tensor = file.tensor(name).ok()?;
        Some((tensor.shape().to_vec(), tensor.data().to_vec()))
    }

    /// A tensor of 32-bit floats; a vector becomes a row.
    fn matrix(&self, name: &str) -> Option<Matrix> {
        let (shape, bytes) = self.raw(name)?;
        let data = bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        let cols = *shape.last().unwrap();
        Some(Matrix::from_vec(shape.iter().product::<usize>() / cols, cols, data).unwrap())
    }

    fn losses(&self) -> Vec<f64> {
        self.raw("losses").unwrap().1.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
    }

    /// The weight of that name, or the columns of it that belong to one input.
    fn weight(&self, prefix: &str, name: &str, model: &Model) -> Option<Matrix> {
        let Some((whole, part)) = name.rsplit_once('.').filter(|(_, part)| part.parse::<usize>().is_ok()) else {
            return self.matrix(&format!("{prefix}{name}"));
        };
        let width = |i: usize| {
            let id = model.params.id(&format!("{whole}.{i}")).unwrap();
            model.params.value(id).cols()
        };
        let part: usize = part.parse().unwrap();
        let from: usize = (0..part).map(width).sum();
        let matrix = self.matrix(&format!("{prefix}{whole}"))?;
        Some(Matrix::from_fn(matrix.rows(), width(part), |r, c| matrix.get(r, from + c)))
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.notes.get(key).and_then(|v| v.parse().ok())
    }

    fn cells(&self) -> Cells {
        let x = self.matrix("X").unwrap();
        let observed: Vec<bool> = self.raw("observed").unwrap().1.iter().map(|&b| b == 1).collect();
        let x: Vec<f64> = x.as_slice().iter().map(|&v| f64::from(v)).collect();
        Cells::observed(self.number("m").unwrap(), &x, &observed)
    }

    fn shown(&self, step: usize, cells: &Cells) -> Shown {
        let kept = self.raw(&format!("step{step}.kept")).unwrap().1;
        Shown::new(&cells.subset(|i| kept[i] == 1), self.number("epsilon").unwrap_or(0.0))
    }

    fn targets(&self, step: usize, cells: &Cells) -> Targets {
        let peers = self.raw(&format!("step{step}.peers")).map_or(Vec::new(), |(_, bytes)| {
            bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
        });
        let k = self.number("peers").unwrap_or(0);
        Targets { rows: cells.rows.clone(), columns: cells.columns.clone(), peers, k }
    }

    fn model(&self) -> Model {
        let is_m3 = self.notes.contains_key("epsilon");
        let unit = |key: &str| self.notes.get(key).is_some_and(|v| v == "True");
        let variant = match (unit("fcu"), unit("scu")) {
            (true, true) => Variant::Full,
            (true, false) => Variant::InitFcu,
            (false, true) => Variant::InitScu,
            (false, false) => Variant::Init,
        };
        let layers: Vec<&str> = self.notes["layers"].split('_').collect();
        let gnn = match layers[0] {
            "EGSAGE" => Gnn::EgSage,
            "GraphSage" => Gnn::Sage,
            "GCN" => Gnn::Gcn,
            "GAT" => Gnn::Gat,
            other => panic!("unknown layer `{other}`"),
        };
        let architecture = Architecture {
            start: if is_m3 { Start::Values } else { Start::Ones },
            gnn,
            layers: layers.len(),
            width: self.number("d").unwrap(),
            variant,
            peers: self.number("peers").unwrap_or(0),
            levels: vec![0; self.number("m").unwrap()],
        };
        let nodes = self.matrix("feature_nodes").unwrap_or_default();
        let mut model = Model::with_feature_nodes(architecture, Arc::new(nodes), &mut ChaCha8Rng::seed_from_u64(0));
        for id in model.params.ids().collect::<Vec<_>>() {
            let name = model.params.name(id).to_owned();
            let value = self.weight("init.", &name, &model).unwrap_or_else(|| panic!("no weight `{name}`"));
            assert_eq!(value.as_slice().len(), model.params.value(id).as_slice().len(), "{name}");
            model.params.value_mut(id).as_mut_slice().copy_from_slice(value.as_slice());
        }
        model
    }
}

/// Asserts that two matrices agree relative to the largest entry.
fn assert_near(what: &str, got: &[f32], want: &[f32], tolerance: f32) {
    assert_eq!(got.len(), want.len(), "{what}");
    let largest = want.iter().fold(0.0f32, |m, v| m.max(v.abs())).max(1e-6);
    for (i, (a, b)) in got.iter().zip(want).enumerate() {
        assert!((a - b).abs() <= tolerance * largest, "{what} at {i}: got {a}, expected {b} (largest {largest})");
    }
}

fn check_forward(golden: &Golden, model: &Model) {
    let cells = golden.cells();
    let (shown, targets) = (golden.shown(0, &cells), golden.targets(0, &cells));
    let mut tape = Tape::new();
    let mut pass = Pass::new(&mut tape, &model.params);
    let embeddings = model.encoder.forward(&mut pass, &shown);
    let peers = model.peers(&shown.patterns, &targets);
    let tables = Tables {
        samples: embeddings.samples,
        features: embeddings.features,
        peers: peers
            .as_ref()
            .and_then(|p| model.head.peer_tables(&mut pass, embeddings.samples, embeddings.features, p)),
    };
    let indices = TargetIndices::new(&shown.patterns, &targets, peers.as_ref(), 0..targets.len(), false);
    let output = model.head.predict(&mut pass, tables, &indices);
    let both = |a, b| [tape.value(a).as_slice(), tape.value(b).as_slice()].concat();
    let mut checked = 0;
    let mut check = |name: String, got: &[f32]| {
        if let Some(want) = golden.matrix(&format!("step0.{name}")) {
            assert_near(&name, got, want.as_slice(), 1e-4);
            checked += 1;
        }
    };
    for (l, states) in embeddings.states.iter().enumerate() {
        let name = if l == 0 { "node_init".to_owned() } else { format!("layer{}.nodes", l - 1) };
        check(name, &both(states.samples, states.features));
        if let (true, Some(up), Some(down)) = (l > 0, states.up, states.down) {
            check(format!("layer{}.edges", l - 1), &both(up, down));
        }
    }
    check("embeddings".to_owned(), &both(embeddings.samples, embeddings.features));
    for (name, var) in
        [("fcu", output.fcu), ("scu", output.scu), ("similarity", output.similarity), ("alpha", output.alpha)]
    {
        if let Some(var) = var {
            check(name.to_owned(), tape.value(var).as_slice());
        }
    }
    check("prediction".to_owned(), tape.value(output.value).as_slice());
    assert!(checked >= 2);
}

fn check_training(golden: &Golden, model: &mut Model) {
    let cells = golden.cells();
    let mut adam = Adam::new(&model.params, AdamParams::default());
    let mut tapes = [Tape::new(), Tape::new()];
    for (step, want) in golden.losses().into_iter().enumerate() {
        let (shown, targets) = (golden.shown(step, &cells), golden.targets(step, &cells));
        model.params.zero_grads();
        let loss = model.learn(&mut tapes, (&shown, &targets, &cells.values), (0.0, 0), &|| Ok(())).unwrap();
        assert!((f64::from(loss) / want - 1.0).abs() < 1e-4, "loss {step}: got {loss}, expected {want}");
        if step == 0 {
            for id in model.params.ids() {
                let name = model.params.name(id);
                let want = golden.weight("grad0.", name, model).unwrap_or_else(|| panic!("no gradient `{name}`"));
                assert_near(&format!("gradient of {name}"), model.params.grad(id).as_slice(), want.as_slice(), 1e-3);
            }
        }
        adam.step(&mut model.params, 1e-3);
    }
    for id in model.params.ids() {
        let name = model.params.name(id);
        let want = golden.weight("final.", name, model).unwrap();
        assert_near(&format!("final {name}"), model.params.value(id).as_slice(), want.as_slice(), 1e-3);
    }
}

macro_rules! golden {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            let golden = Golden::open(stringify!($name));
            let mut model = golden.model();
            check_forward(&golden, &model);
            check_training(&golden, &mut model);
        }
    )*};
}

golden! {
    grape grape_gat grape_gcn grape_graphsage
    m3_fcu_only m3_full m3_full_wide m3_gat m3_gcn m3_graphsage m3_scu_only m3_two_layers
}
