//! The method `m3`: a stacked ensemble by default, M3-Impute as published with `--preset paper`.

use crate::budget::Budget;
use crate::calibrate::Calibration;
use crate::columns::Columns;
use crate::donors::Donors;
use crate::fit::fit;
use crate::members::{MEMBERS, Members, names};
use crate::model::{Purpose, StackModel};
use crate::scores::scores;
use m3impute_core::distributions::Distributions;
use m3impute_core::encode::{Constants, Layout, Scale};
use m3impute_core::explain::{KeptNumbers, Reasons};
use m3impute_core::{
    Encoded, Encoding, Expect, Finish, Imputer, Learnt, MatrixImputer, MatrixMethod, MatrixModel, MethodSpec,
    ModelFile, ParamSpec, Result, Run, Settings, Tensor, Transductive, ValidationScore, Want, load_matrix_model,
};
use m3impute_gnn::params::{DISCRETE, EPOCHS, GNN, KEEP, LAYERS, LEARNING_RATE, WIDTH};
use m3impute_gnn::{PublishedM3, PublishedParams};
use m3impute_learners::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The parameters of `m3`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct M3Params {
    /// The names of the members of the stack, beside the baseline.
    pub members: Vec<String>,
    /// The width of the networks' states, at most.
    pub width: usize,
    /// How many layers a network has.
    pub layers: usize,
    /// The step size of AdamW.
    pub learning_rate: f64,
    /// The weight decay of AdamW.
    pub weight_decay: f64,
    /// The rate of dropout in the networks.
    pub dropout: f64,
    /// Whether the networks start from pairwise linear predictors.
    pub pairwise: bool,
    /// Whether each row shows another share of its cells in training.
    pub random_keep: bool,
    /// How many folds, and so networks: more for small tables.
    pub folds: usize,
    /// How many steps a network is trained at most; fewer for small tables, and where a step is expensive.
    pub steps: usize,
    /// How many rows a step uses, at most.
    pub batch: usize,
    /// How many layers of column members there are above the base models.
    pub stack_layers: usize,
    /// How many chained sweeps over the columns follow them.
    pub sweeps: usize,
    /// How many trees a forest has.
    pub trees: usize,
    /// Whether some rows of the table stay in the model, for explanations to name the nearest of them.
    pub keep_donors: bool,
}

impl Default for M3Params {
    /// The preset `balanced`.
    fn default() -> M3Params {
        M3Params {
            members: names().iter().map(|&name| name.to_owned()).collect(),
            width: 64,
            layers: 2,
            learning_rate: 4e-3,
            weight_decay: 1e-2,
            dropout: 0.1,
            pairwise: true,
            random_keep: true,
            folds: 4,
            steps: 800,
            batch: 512,
            stack_layers: 2,
            sweeps: 2,
            trees: 50,
            keep_donors: false,
        }
    }
}

impl M3Params {
    /// The parameters of a preset.
    pub fn of_preset(name: &str) -> M3Params {
        let balanced = M3Params::default();
        match name {
            "fast" => M3Params { width: 48, folds: 2, steps: 250, stack_layers: 1, sweeps: 1, trees: 12, ..balanced },
            "best" => M3Params {
                width: 128,
                layers: 3,
                learning_rate: 3e-3,
                folds: 8,
                steps: 2000,
                stack_layers: 3,
                sweeps: 3,
                trees: 100,
                ..balanced
            },
            _ => balanced,
        }
    }
}

/// The row of the registry.
pub static SPEC: MethodSpec = MethodSpec {
    name: "m3",
    summary: "stacks graph networks, a Gaussian mixture, forests and median regressions; weights are chosen per column on \
              held-out cells",
    avoid: "a result within a second on a large table: `missforest` and `mice` are faster, `--preset fast` is between",
    inductive: true,
    distributions: true,
    randomised: true,
    slow: false,
    presets: &[
        ("balanced", "about a minute for a table of 2,000 x 15"),
        ("fast", "a few seconds"),
        ("best", "wider networks and more of them: minutes"),
        ("paper", "as in the published code: 40,000 epochs, hours"),
    ],
    params: PARAMS,
    preset_values: |name| match name {
        PAPER => Some(serde_json::json!(PublishedParams::default())),
        _ => SPEC.presets.iter().any(|p| p.0 == name).then(|| serde_json::json!(M3Params::of_preset(name))),
    },
    build: |settings: &Settings| -> Result<Box<dyn Imputer>> {
        // Predictions lie within the observed range by themselves; the clip gives a constant column its value.
        let finish = settings.finish.over(Finish::default());
        if SPEC.preset(settings)? == PAPER {
            let params = SPEC.params(settings, |_| PublishedParams::default())?;
            return Ok(Box::new(MatrixImputer::new(&SPEC, Transductive(PublishedM3::new(params)), finish)));
        }
        let params = SPEC.params(settings, M3Params::of_preset)?;
        Ok(Box::new(MatrixImputer::new(&SPEC, M3 { params }, finish)))
    },
    load: |file| {
        // Of the two only the published one has epochs.
        if file.header.params.get(EPOCHS.name).is_some() {
            load_matrix_model::<Transductive<PublishedM3>>(&SPEC, file)
        } else {
            load_matrix_model::<M3>(&SPEC, file)
        }
    },
};

/// The preset that is the published system.
const PAPER: &str = "paper";

const PARAMS: &[ParamSpec] = &[
    ParamSpec {
        name: "members",
        doc: "the models that are stacked, beside the baseline",
        expects: Expect::Some(names),
    },
    WIDTH,
    LAYERS,
    LEARNING_RATE,
    ParamSpec {
        name: "pairwise",
        doc: "linear predictors of pairs of columns inside the networks",
        expects: Expect::Flag,
    },
    ParamSpec {
        name: "random_keep",
        doc: "show 30 to 90 % of the cells of a row in training, instead of 60 %",
        expects: Expect::Flag,
    },
    ParamSpec { name: "dropout", doc: "the rate of dropout", expects: Expect::Number(0.0, 0.95) },
    ParamSpec {
        name: "folds",
        doc: "folds of held-out cells; one network is trained on each, and small tables get more of them",
        expects: Expect::Whole(1, 64),
    },
    ParamSpec {
        name: "steps",
        doc: "training steps of a network at most; fewer for small tables, and where a step is expensive",
        expects: Expect::Whole(1, 1_000_000),
    },
    ParamSpec { name: "batch", doc: "rows of a training step, at most", expects: Expect::Whole(1, 65_536) },
    ParamSpec { name: "weight_decay", doc: "weight decay of AdamW", expects: Expect::Number(0.0, 10.0) },
    ParamSpec {
        name: "stack_layers",
        doc: "stacking layers of forests and regressions above the base models",
        expects: Expect::Whole(0, 8),
    },
    ParamSpec {
        name: "sweeps",
        doc: "chained sweeps after them, in which each column learns from what the others predict",
        expects: Expect::Whole(0, 8),
    },
    ParamSpec { name: "trees", doc: "trees of a forest", expects: Expect::Whole(1, 10_000) },
    ParamSpec {
        name: "keep_donors",
        doc: "keep at most 1,000 rows of the table in the model, so that `explain` can name the nearest ones; anyone who \
              has the file can read them",
        expects: Expect::Flag,
    },
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

/// The stacked ensemble with its parameters.
#[derive(Clone, Debug, Default)]
pub struct M3 {
    /// The parameters.
    pub params: M3Params,
}

/// Rows that are filled at a time.
const ROWS: usize = 8192;

impl MatrixMethod for M3 {
    type Model = StackModel;
    type Params = M3Params;

    fn params(&self) -> &M3Params {
        &self.params
    }

    fn encoding(&self) -> Encoding {
        Encoding { layout: Layout::Codes, scale: Scale::Unit, constants: Constants::Leave }
    }

    fn fit(&self, data: &Encoded, run: &mut Run) -> Result<Learnt<StackModel>> {
        let columns = Columns::of(data);
        run.check()?;
        let grid = columns.grid(data, 0..data.rows);
        run.check()?;
        let cells = data.observed.iter().filter(|o| **o).count();
        let members = Members::named(MEMBERS, &self.params.members);
        let budget = Budget::of(&self.params, data.width(), cells);
        let (mut model, mut notes) = fit(&grid, columns, members, budget, run)?;
        if budget.keep_donors {
            model.donors = Donors::of(data, &model, budget.final_rows, run);
            if model.donors.is_none() {
                notes.push("no rows are kept as donors: no forest was fitted, by which one could be near".to_owned());
            }
        }
        Ok(Learnt { model, notes })
    }
}

impl MatrixModel for StackModel {
    const DISTRIBUTIONS: bool = true;

    fn predict(&self, rows: &mut Encoded, want: Want, run: &Run) -> Result<Option<Vec<Distributions>>> {
        let (m, n) = (rows.width(), rows.rows);
        let (purpose, draw) = match want {
            Want::Point | Want::Distribution => (Purpose::Fill, None),
            Want::FirstDraw(number) => (Purpose::DrawFirst, Some(number)),
            Want::NextDraw(number) => (Purpose::DrawNext, Some(number)),
        };
        let coefficients = self.drawn_from.as_ref().zip(draw).map(|(of, number)| (of, of.coefficients(number, run)));
        let mut distributions = (want != Want::Point).then(|| self.no_distributions());
        for from in (0..n).step_by(ROWS) {
            run.check()?;
            let grid = self.columns.grid(rows, from..(from + ROWS).min(n));
            let missing: Vec<Vec<u32>> = (0..m).map(|f| grid.rows_where(f, |at| !grid.observed[at])).collect();
            let is_drawn = |f: usize, i: &u32| coefficients.is_some() && self.is_drawn_from_regressions(&grid, f, *i);
            // Where regressions draw every cell, the ensembles need not predict.
            let of_columns = if (0..m).all(|f| missing[f].iter().all(|i| is_drawn(f, i))) {
                (0..m).map(|f| vec![0.0; missing[f].len() * self.columns.responses[f].width()]).collect()
            } else {
                self.predict(&grid, purpose, run)?
            };
            for (f, (predicted, missing)) in of_columns.iter().zip(&missing).enumerate() {
                let response = &self.columns.responses[f];
                for (&i, prediction) in missing.iter().zip(predicted.chunks_exact(response.width())) {
                    let drawn = coefficients.as_ref().filter(|_| is_drawn(f, &i));
                    if let Some((regressions, coefficients)) = drawn {
                        let row = &grid.x[i as usize * m..(i as usize + 1) * m];
                        let density = regressions.density_of(coefficients, row, f);
                        if let (Some(density), Some(Distributions::Quantiles(to))) =
                            (density, distributions.as_mut().map(|to| &mut to[f]))
                        {
                            rows.x[(from + i as usize) * m + f] = density.quantile(0.5);
                            to.push(density.quantiles());
                            continue;
                        }
                    }
                    let point = response.point(prediction);
                    rows.x[(from + i as usize) * m + f] = match response {
                        Response::Levels(_) => self.columns.code(f, point as usize),
                        _ => f64::from(point),
                    };
                    if let Some(to) = &mut distributions {
                        let factor = self.scale.of(purpose).at(grid.shown(i as usize));
                        add_distribution(&self.ensemble(f, purpose).calibration, prediction, factor, &mut to[f]);
                    }
                }
            }
        }
        Ok(distributions)
    }

    fn reasons(&self, rows: &Encoded, cells: &[(usize, usize)], run: &Run) -> Result<Vec<Reasons>> {
        StackModel::reasons(self, rows, cells, run)
    }

    fn gibbs_sweeps(&self) -> usize {
        self.sweeps()
    }

    fn kept_rows(&self) -> Vec<KeptNumbers> {
        StackModel::kept_rows(self)
    }

    fn scores(&self) -> Vec<ValidationScore> {
        scores(self)
    }

    fn store(&self, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        StackModel::store(self, tensors)
    }

    fn restore(file: &ModelFile, _: usize) -> Result<StackModel> {
        StackModel::restore(file)
    }
}

impl StackModel {
    /// Room for the distributions of every feature.
    fn no_distributions(&self) -> Vec<Distributions> {
        let of = |(f, response): (usize, &Response)| {
            let values = match response {
                Response::Number => return Distributions::Quantiles(Vec::new()),
                Response::Values(values) => values.iter().map(|&v| f64::from(v)).collect(),
                Response::Levels(_) => self.columns.codes(f).collect(),
            };
            Distributions::Shares { values, shares: Vec::new() }
        };
        self.columns.responses.iter().enumerate().map(of).collect()
    }
}

/// Adds the calibrated distribution of a prediction, given the factor for what its row shows.
fn add_distribution(calibration: &Calibration, prediction: &[f32], factor: f32, to: &mut Distributions) {
    match (calibration, to) {
        (Calibration::Conformal { .. }, Distributions::Quantiles(to)) => {
            to.push(calibration.quantiles(prediction, factor).map(f64::from));
        }
        (Calibration::Shrinkage { .. }, Distributions::Shares { shares, .. }) => {
            shares.extend(calibration.shares(prediction));
        }
        _ => unreachable!("a column's calibration is of its kind"),
    }
}
