//! GRAPE as published: message passing, and a prediction from the embeddings of row and column.

use crate::fitted::{FittedGnn, learn, levels_of};
use crate::head::Variant;
use crate::layers::Gnn;
use crate::model::{Architecture, Start};
use crate::params::{DISCRETE, EPOCHS, GNN, KEEP, LAYERS, LEARNING_RATE, WIDTH};
use crate::peers::Sampling;
use crate::published::{Discrete, encoding};
use crate::train::Training;
use m3impute_core::{
    Encoded, Encoding, Finish, Learnt, MatrixImputer, MethodSpec, Result, Run, Transductive, TransductiveMethod,
    load_matrix_model,
};
use serde::{Deserialize, Serialize};

/// The parameters of `grape`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrapeParams {
    /// The layers of the encoder.
    pub gnn: Gnn,
    /// How many of them.
    pub layers: usize,
    /// The width of states.
    pub width: usize,
    /// The share of observed cells that an epoch shows.
    pub keep: f64,
    /// How many epochs, each of one step.
    pub epochs: u64,
    /// The step of Adam.
    pub learning_rate: f64,
    /// How columns with levels are predicted.
    pub discrete: Discrete,
}

impl GrapeParams {
    /// The parameters of a preset.
    pub fn of_preset(_: &str) -> GrapeParams {
        GrapeParams::default()
    }
}

impl Default for GrapeParams {
    /// As published.
    fn default() -> GrapeParams {
        GrapeParams {
            gnn: Gnn::EgSage,
            layers: 3,
            width: 64,
            keep: 0.7,
            epochs: 20_000,
            learning_rate: 1e-3,
            discrete: Discrete::Mse,
        }
    }
}

/// GRAPE.
#[derive(Clone, Debug, Default)]
pub struct Grape {
    params: GrapeParams,
}

impl Grape {
    /// With these parameters.
    pub fn new(params: GrapeParams) -> Grape {
        Grape { params }
    }
}

/// The row of the registry.
pub static SPEC: MethodSpec = MethodSpec {
    name: "grape",
    summary: "GRAPE: a graph network of rows and columns",
    avoid: "hurry: 20,000 epochs as published take minutes for a small table and hours for a large one",
    inductive: true,
    distributions: false,
    randomised: true,
    slow: true,
    presets: &[
        ("default", "as in the published code, kept within the observed range"),
        ("paper", "as in the published code"),
    ],
    params: &[GNN, LAYERS, WIDTH, KEEP, EPOCHS, LEARNING_RATE, DISCRETE],
    preset_values: |name| {
        SPEC.presets.iter().any(|p| p.0 == name).then(|| serde_json::json!(GrapeParams::of_preset(name)))
    },
    build: |settings| {
        let params = SPEC.params(settings, GrapeParams::of_preset)?;
        let clip = SPEC.preset(settings)? != "paper";
        let finish = settings.finish.over(Finish { clip, ..Finish::default() });
        Ok(Box::new(MatrixImputer::new(&SPEC, Transductive(Grape { params }), finish)))
    },
    load: |file| load_matrix_model::<Transductive<Grape>>(&SPEC, file),
};

/// The shape of the model, with the number of levels of each feature as in [`Architecture::levels`].
pub fn architecture(p: &GrapeParams, levels: Vec<u32>) -> Architecture {
    Architecture {
        start: Start::Ones,
        gnn: p.gnn,
        layers: p.layers,
        width: p.width,
        variant: Variant::Init,
        peers: 1,
        levels,
    }
}

/// How the model is trained.
pub fn training(p: &GrapeParams) -> Training {
    Training {
        epochs: p.epochs,
        learning_rate: p.learning_rate as f32,
        keep: p.keep as f32,
        dropout: 0.0,
        epsilon: 0.0,
        sampling: Sampling::Uniform,
    }
}

impl TransductiveMethod for Grape {
    type Model = FittedGnn;
    type Params = GrapeParams;

    fn params(&self) -> &GrapeParams {
        &self.params
    }

    fn encoding(&self) -> Encoding {
        encoding(self.params.discrete)
    }

    fn learn(&self, data: &mut Encoded, run: &mut Run) -> Result<Learnt<FittedGnn>> {
        let p = &self.params;
        learn(SPEC.name, architecture(p, levels_of(data)), training(p), data, run)
    }
}
