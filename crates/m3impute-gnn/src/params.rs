//! Parameters that the published graph methods share.

use m3impute_core::{Expect, ParamSpec};

/// See its own `doc`.
pub const GNN: ParamSpec = ParamSpec {
    name: "gnn",
    doc: "the layers of the encoder; all but egsage ignore the values of the cells",
    expects: Expect::Choice(&["egsage", "sage", "gcn", "gat"]),
};
/// See its own `doc`.
pub const LAYERS: ParamSpec =
    ParamSpec { name: "layers", doc: "how many layers the encoder has", expects: Expect::Whole(1, 32) };
/// See its own `doc`.
pub const WIDTH: ParamSpec =
    ParamSpec { name: "width", doc: "the width of the states of nodes and edges", expects: Expect::Whole(1, 2048) };
/// See its own `doc`.
pub const KEEP: ParamSpec = ParamSpec {
    name: "keep",
    doc: "the share of observed cells that an epoch shows",
    expects: Expect::Number(0.01, 1.0),
};
/// See its own `doc`.
pub const EPOCHS: ParamSpec =
    ParamSpec { name: "epochs", doc: "how many epochs, each of one step", expects: Expect::Whole(1, 10_000_000) };
/// See its own `doc`.
pub const LEARNING_RATE: ParamSpec =
    ParamSpec { name: "learning_rate", doc: "the step of Adam", expects: Expect::Number(1e-8, 1.0) };
/// See its own `doc`.
pub const DISCRETE: ParamSpec = ParamSpec {
    name: "discrete",
    doc: "columns with levels: squared error on a 0/1 feature a level, or softmax and cross-entropy",
    expects: Expect::Choice(&["mse", "softmax"]),
};
