//! The method `m3`: refined by default, as published with `--preset paper`.

use crate::published::{PublishedM3, PublishedParams};
use crate::refined::{M3, M3Params};
use m3impute_core::{
    Expect, Finish, Imputer, MatrixImputer, MethodSpec, ParamSpec, Result, Settings, load_matrix_model,
};

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
    summary: "M3-Impute, refined: graph networks, forests, lines and curves that learn from each other, mixed on held-out cells",
    avoid: "hurry on large tables: `missforest` or `mice` answer sooner; `--preset fast` is between",
    inductive: true,
    distributions: true,
    randomised: true,
    slow: false,
    presets: &[
        ("balanced", "a minute for a table of 2,000 x 15"),
        ("fast", "a few seconds"),
        ("best", "wider networks and more of them, for minutes"),
        ("paper", "as in the published code: 40,000 epochs, hours"),
    ],
    params: PARAMS,
    preset_values: |name| match name {
        PAPER => Some(serde_json::json!(PublishedParams::default())),
        _ => SPEC.presets.iter().any(|p| p.0 == name).then(|| serde_json::json!(M3Params::of_preset(name))),
    },
    build: |settings: &Settings| -> Result<Box<dyn Imputer>> {
        // Answers lie within the observed range by themselves; the clip gives a constant column its value.
        let finish = settings.finish.over(Finish::default());
        if SPEC.preset(settings)? == PAPER {
            let params = SPEC.params(settings, |_| PublishedParams::default())?;
            return Ok(Box::new(MatrixImputer::new(&SPEC, PublishedM3::new(params), finish)));
        }
        let params = SPEC.params(settings, M3Params::of_preset)?;
        Ok(Box::new(MatrixImputer::new(&SPEC, M3 { params }, finish)))
    },
    load: |file| {
        // Of the two only the published one has epochs.
        if file.header.params.get(EPOCHS.name).is_some() {
            load_matrix_model::<PublishedM3>(&SPEC, file)
        } else {
            load_matrix_model::<M3>(&SPEC, file)
        }
    },
};

/// The preset that is the published system.
const PAPER: &str = "paper";

const PARAMS: &[ParamSpec] = &[
    WIDTH,
    LAYERS,
    LEARNING_RATE,
    ParamSpec { name: "dropout", doc: "the rate of dropout", expects: Expect::Number(0.0, 0.95) },
    ParamSpec {
        name: "nets",
        doc: "how many networks; each does not see some of the observed cells, on which it is judged",
        expects: Expect::Whole(1, 64),
    },
    ParamSpec {
        name: "steps",
        doc: "how many steps a network is trained at most; fewer for small tables, and where a step is dear",
        expects: Expect::Whole(1, 1_000_000),
    },
    ParamSpec { name: "batch", doc: "how many rows a step looks at, at most", expects: Expect::Whole(1, 65_536) },
    ParamSpec { name: "decay", doc: "the decay of weights", expects: Expect::Number(0.0, 10.0) },
    ParamSpec {
        name: "stages",
        doc: "how often forests, lines and curves learn from the completed table",
        expects: Expect::Whole(0, 8),
    },
    ParamSpec {
        name: "turns",
        doc: "how often, after that, the columns take turns in learning from each other's answers",
        expects: Expect::Whole(0, 8),
    },
    ParamSpec { name: "trees", doc: "how many trees a forest has", expects: Expect::Whole(1, 10_000) },
    ParamSpec {
        name: "variant",
        doc: "which units stand on top of the encoder",
        expects: Expect::Choice(&["full", "init", "init-fcu", "init-scu"]),
    },
    GNN,
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
    DISCRETE,
];
