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

use crate::fitted::{FittedGnn, learn, levels_of};
use crate::head::Variant;
use crate::layers::Gnn;
use crate::model::{Architecture, Start};
use crate::peers::Sampling;
use crate::train::Training;
use m3impute_core::encode::{Constants, Layout, Scale};
use m3impute_core::{Encoded, Encoding, Learnt, Result, Run, TransductiveMethod};
use serde::{Deserialize, Serialize};

/// With more rows, `sampling=auto` uses the published large-table mode.
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

/// The parameters of `m3 --preset paper`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedParams {
    /// The units on top of the encoder.
    pub variant: Variant,
    /// The layers of the encoder.
    pub gnn: Gnn,
    /// How many of them.
    pub layers: usize,
    /// The width of states.
    pub width: usize,
    /// How many peers a cell has.
    pub peers: usize,
    /// How they are drawn; by default depends on the number of rows.
    pub sampling: Option<Sampling>,
    /// The value of cells that are not shown.
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

impl Default for PublishedParams {
    /// As published.
    fn default() -> PublishedParams {
        PublishedParams {
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

/// M3-Impute as published.
#[derive(Clone, Debug, Default)]
pub struct PublishedM3 {
    params: PublishedParams,
}

impl PublishedM3 {
    /// With these parameters.
    pub fn new(params: PublishedParams) -> PublishedM3 {
        PublishedM3 { params }
    }
}

/// The encoding of tables for the graph methods.
pub(crate) fn encoding(discrete: Discrete) -> Encoding {
    let layout = match discrete {
        Discrete::Mse => Layout::Flags,
        Discrete::Softmax => Layout::Codes,
    };
    Encoding { layout, scale: Scale::MinMax, constants: Constants::Keep }
}

/// The shape of the model, with the number of levels of each feature as in [`Architecture::levels`].
pub fn architecture(p: &PublishedParams, levels: Vec<u32>) -> Architecture {
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

/// How the model is trained on a table with this number of rows.
pub fn training(p: &PublishedParams, rows: usize) -> Training {
    Training {
        epochs: p.epochs,
        learning_rate: p.learning_rate as f32,
        keep: p.keep as f32,
        dropout: p.dropout as f32,
        epsilon: p.epsilon as f32,
        sampling: p.sampling.unwrap_or(if rows > LARGE { Sampling::Shared } else { Sampling::Cosine }),
    }
}

impl TransductiveMethod for PublishedM3 {
    type Model = FittedGnn;
    type Params = PublishedParams;

    fn params(&self) -> &PublishedParams {
        &self.params
    }

    fn encoding(&self) -> Encoding {
        encoding(self.params.discrete)
    }

    fn learn(&self, data: &mut Encoded, run: &mut Run) -> Result<Learnt<FittedGnn>> {
        let p = &self.params;
        let large = data.rows > LARGE && p.sampling.is_none() && p.variant.has_peers();
        let mut learnt = learn("m3", architecture(p, levels_of(data)), training(p, data.rows), data, run)?;
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
