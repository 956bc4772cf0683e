//! M3-Impute as published: `--method m3 --preset paper`.
//!
//! Where the paper's text and its published code differ, the code is followed:
//!
//! | what | paper | here, as in the code |
//! | --- | --- | --- |
//! | edges | cells that are not zero | observed cells |
//! | vectors of features | random | random in [0, 1), fixed; the first states are a linear map of them |
//! | first states of samples | an MLP | one linear map and a sigmoid; shown cells are not rescaled for the dropped ones |
//! | encoder | GraphSAGE | with edge states, states of length one, and two linear maps behind the layers |
//! | mask of the FCU | `sigma_1(m_s)` | of the softmax of the mask without the target feature |
//! | last map of the units | | with dropout 0.1 |
//! | similarity | dot product, the same FCU | cosine, two FCUs of their own; its absolute value enters the gate |
//! | gate | `1 - 1 / exp(abs x)` | `1 - 1 / (exp(abs x) + 1e-4)` |
//! | output | ReLU, softmax for levels | a sigmoid (`discrete=softmax` gives the paper's softmax and cross-entropy) |
//! | loss | | over all observed cells, shown or not |
//! | peers | similar samples | by the cosine of `A H` with the random `H`: nearly alike for all |
//!
//! The variant `init`, which the published code cannot run, predicts from the two embeddings as GRAPE does. Each cell is
//! predicted once, and not twice as in the published code; no test set is looked at while training.

use crate::fitted::{FittedGnn, fit, levels_of};
use crate::head::Variant;
use crate::layers::Gnn;
use crate::model::{Architecture, Start};
use crate::peers::Sampling;
use crate::train::Training;
use m3impute_core::encode::{Constants, Layout, Scale};
use m3impute_core::{
    Encoded, Encoding, Expect, Finish, Learnt, MatrixImputer, MatrixMethod, MethodSpec, ParamSpec, Result, Run,
    load_matrix_model,
};
use serde::{Deserialize, Serialize};

/// Above so many rows `sampling=auto` takes the published large-table mode.
const LARGE: usize = 5000;

/// How columns with levels are predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Discrete {
    /// By squared error, a 0/1 feature a level.
    Mse,
    /// By softmax and cross-entropy, one feature a column.
    Softmax,
}

/// The parameters of `m3`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct M3Params {
    /// Which units stand on top of the encoder.
    pub variant: Variant,
    /// The layers of the encoder.
    pub gnn: Gnn,
    /// How many of them.
    pub layers: usize,
    /// The width of states.
    pub width: usize,
    /// How many peers a cell has.
    pub peers: usize,
    /// How they are drawn; by the number of rows where nothing is said.
    pub sampling: Option<Sampling>,
    /// What stands for a value that is not shown.
    pub epsilon: f64,
    /// The share of observed cells that an epoch shows.
    pub keep: f64,
    /// How many epochs, each of one step.
    pub epochs: u64,
    /// The step of Adam.
    pub learning_rate: f64,
    /// The rate of dropout.
    pub dropout: f64,
    /// How columns with levels are predicted.
    pub discrete: Discrete,
}

impl M3Params {
    /// The parameters of a preset.
    pub fn of_preset(_: &str) -> M3Params {
        M3Params::default()
    }
}

impl Default for M3Params {
    /// As published.
    fn default() -> M3Params {
        M3Params {
            variant: Variant::Full,
            gnn: Gnn::EgSage,
            layers: 3,
            width: 128,
            peers: 5,
            sampling: None,
            epsilon: 1e-4,
            keep: 0.5,
            epochs: 40_000,
            learning_rate: 1e-3,
            dropout: 0.1,
            discrete: Discrete::Mse,
        }
    }
}

/// M3-Impute.
#[derive(Clone, Debug, Default)]
pub struct M3 {
    params: M3Params,
}

impl M3 {
    /// With these parameters.
    pub fn new(params: M3Params) -> M3 {
        M3 { params }
    }
}

pub(crate) const GNN: ParamSpec = ParamSpec {
    name: "gnn",
    doc: "the layers of the encoder; all but egsage ignore the values of the cells",
    expects: Expect::Choice(&["egsage", "sage", "gcn", "gat"]),
};
pub(crate) const LAYERS: ParamSpec =
    ParamSpec { name: "layers", doc: "how many layers the encoder has", expects: Expect::Whole(1, 32) };
pub(crate) const WIDTH: ParamSpec =
    ParamSpec { name: "width", doc: "the width of the states of nodes and edges", expects: Expect::Whole(1, 2048) };
pub(crate) const KEEP: ParamSpec = ParamSpec {
    name: "keep",
    doc: "the share of observed cells that an epoch shows",
    expects: Expect::Number(0.01, 1.0),
};
pub(crate) const EPOCHS: ParamSpec =
    ParamSpec { name: "epochs", doc: "how many epochs, each of one step", expects: Expect::Whole(1, 10_000_000) };
pub(crate) const LEARNING_RATE: ParamSpec =
    ParamSpec { name: "learning_rate", doc: "the step of Adam", expects: Expect::Number(1e-8, 1.0) };
pub(crate) const DISCRETE: ParamSpec = ParamSpec {
    name: "discrete",
    doc: "columns with levels: squared error on a 0/1 feature a level, or softmax and cross-entropy",
    expects: Expect::Choice(&["mse", "softmax"]),
};

/// The row of the registry.
pub static SPEC: MethodSpec = MethodSpec {
    name: "m3",
    summary: "M3-Impute: a graph network of rows and columns with units for related features and similar rows",
    avoid: "hurry: 40,000 epochs as published take half an hour for a small table and days for a large one",
    inductive: true,
    randomised: true,
    slow: true,
    presets: &[("paper", "as in the published code")],
    params: PARAMS,
    preset_values: |name| {
        SPEC.presets.iter().any(|p| p.0 == name).then(|| serde_json::json!(M3Params::of_preset(name)))
    },
    build: |settings| {
        let params = SPEC.params(settings, M3Params::of_preset)?;
        // Answers lie within the observed range by themselves; the clip gives a constant column its value.
        let finish = settings.finish.over(Finish::default());
        Ok(Box::new(MatrixImputer::new(M3 { params }, finish)))
    },
    load: load_matrix_model::<M3>,
};

const PARAMS: &[ParamSpec] = &[
    ParamSpec {
        name: "variant",
        doc: "which units stand on top of the encoder",
        expects: Expect::Choice(&["full", "init", "init-fcu", "init-scu"]),
    },
    GNN,
    LAYERS,
    WIDTH,
    ParamSpec { name: "peers", doc: "how many peers a cell has", expects: Expect::Whole(1, 1000) },
    ParamSpec {
        name: "sampling",
        doc: "how peers are drawn: by cosine similarity, uniformly, or among 20 records that all rows share (auto: \
              those above 5,000 rows, cosine below)",
        expects: Expect::Auto(&Expect::Choice(&["cosine", "uniform", "shared"])),
    },
    ParamSpec { name: "epsilon", doc: "what stands for a value that is not shown", expects: Expect::Number(0.0, 1.0) },
    KEEP,
    EPOCHS,
    LEARNING_RATE,
    ParamSpec { name: "dropout", doc: "the rate of dropout in the units", expects: Expect::Number(0.0, 0.95) },
    DISCRETE,
];

/// What the graph methods see of a table.
pub(crate) fn encoding(discrete: Discrete) -> Encoding {
    let layout = match discrete {
        Discrete::Mse => Layout::Flags,
        Discrete::Softmax => Layout::Codes,
    };
    Encoding { layout, scale: Scale::MinMax, constants: Constants::Keep }
}

/// The shape of the model, with the number of levels of each feature as in [`Architecture::levels`].
pub fn architecture(p: &M3Params, levels: Vec<u32>) -> Architecture {
    Architecture {
        start: Start::Values,
        gnn: p.gnn,
        layers: p.layers,
        width: p.width,
        variant: p.variant,
        peers: p.peers,
        levels,
    }
}

/// How the model is trained on a table of so many rows.
pub fn training(p: &M3Params, rows: usize) -> Training {
    Training {
        epochs: p.epochs,
        learning_rate: p.learning_rate as f32,
        keep: p.keep as f32,
        dropout: p.dropout as f32,
        epsilon: p.epsilon as f32,
        sampling: p.sampling.unwrap_or(if rows > LARGE { Sampling::Shared } else { Sampling::Cosine }),
    }
}

impl MatrixMethod for M3 {
    type Model = FittedGnn;
    type Params = M3Params;
    const SPEC: &'static MethodSpec = &SPEC;

    fn params(&self) -> &M3Params {
        &self.params
    }

    fn encoding(&self) -> Encoding {
        encoding(self.params.discrete)
    }

    fn fit(&self, data: &mut Encoded, run: &mut Run) -> Result<Learnt<FittedGnn>> {
        let p = &self.params;
        let large = data.rows > LARGE && p.sampling.is_none() && p.variant.has_peers();
        let mut learnt = fit(SPEC.name, architecture(p, levels_of(data)), training(p, data.rows), data, run)?;
        if large {
            learnt.notes.push(format!(
                "{} rows are more than {LARGE}: peers were drawn among 20 records that all rows share, as published for \
                 large tables; `sampling=cosine` draws them among all rows",
                data.rows
            ));
        }
        Ok(learnt)
    }
}
