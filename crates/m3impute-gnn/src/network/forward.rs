//! The network: from shown cells to a point and probabilities for each target.
//!
//! Notation: `b` rows, `m` columns, `d` the width, `e` shown cells, `t` targets, `k` partners of a column.
//!
//! ```text
//! cell       e  = gelu(V_c code + v_c)                                        [e, d]   a map for each column c
//! row        s  = B gelu(A [mean of the row's e; shown] + a) + b              [b, d]
//! layer      e += gelu(U s + f_c + W norm(e))                                 [e, d]   f_c learnt for each column
//!            s += D gelu(C [norm(s); mean of the row's e] + c) + d            [b, d]
//! soft mask  r  = F gelu(E [shown; one-hot f])                                [t, d]
//! cell       h  = gelu(H gelu(G [norm(s) * r; norm(s) * g_f] + g) + h)        [t, d]
//! base       sum over shown partners of softmax(l_f + L_f h) (slope x + shift) [t, 1]
//! point      base + P_f h                                                     [t, 1]
//! logits     Q_f h + q_f                                                      [t, classes]
//! ```

use super::batch::{Batch, Grid};
use super::inputs::ColumnInput;
use super::pairwise::Pairwise;
use crate::pass::{Linear, Pass};
use m3impute_nn::{Activation, Epilogue, Factor, Matrix, ParamId, Params, Term, Var};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

/// The shape of a network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// The width of states.
    pub width: usize,
    /// How many layers.
    pub layers: usize,
    /// Whether the point starts from pairwise linear predictors.
    pub pairwise: bool,
}

impl Shape {
    /// Whether what came from a file is valid.
    pub fn is_sound(&self) -> bool {
        (1..=1 << 14).contains(&self.width) && (1..=64).contains(&self.layers)
    }
}

/// A network.
#[derive(Clone, Debug)]
pub struct GraphNetwork {
    value: [ParamId; 2],
    start: [Linear; 2],
    layers: Vec<Layer>,
    out_norm: Norm,
    feature: ParamId,
    soft: [Linear; 2],
    mix: [Linear; 2],
    pairwise: Option<[ParamId; 5]>,
    point: [ParamId; 2],
    classes: [ParamId; 2],
}

#[derive(Clone, Debug)]
struct Layer {
    edge: [Linear; 2],
    column: ParamId,
    norms: [Norm; 2],
    row: [Linear; 2],
}

#[derive(Clone, Copy, Debug)]
struct Norm([ParamId; 2]);

/// The predictions of the targets.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// The points, `[t, 1]`.
    pub point: Var,
    /// The logits of the classes, `[t, most classes of a column]`.
    pub logits: Var,
}

impl Norm {
    fn new(params: &mut Params, name: &str, d: usize) -> Norm {
        Norm([
            params.add_shaped(&format!("{name}.weight"), &[d], Matrix::full(1, d, 1.0)),
            params.add_shaped(&format!("{name}.bias"), &[d], Matrix::zeros(1, d)),
        ])
    }

    fn apply(self, pass: &mut Pass<'_>, x: Var) -> Var {
        let [weight, bias] = self.0.map(|id| pass.param(id));
        pass.tape.layer_norm(x, weight, bias)
    }
}

impl GraphNetwork {
    /// A network with random weights for these columns; points start at the `baselines`, probabilities at the frequencies
    /// in `grid`.
    pub fn new(
        params: &mut Params,
        shape: Shape,
        columns: &[ColumnInput],
        pairwise: &Pairwise,
        (baselines, grid): (&[f32], &Grid),
        rng: &mut ChaCha8Rng,
    ) -> GraphNetwork {
        let (d, m) = (shape.width, columns.len());
        let codes = columns.iter().map(ColumnInput::code_width).max().unwrap_or(1);
        let classes = columns.iter().map(ColumnInput::classes).max().unwrap_or(1);
        let bound = 1.0 / (codes as f32).sqrt();
        let value = [
            params.add("value.weight", Matrix::uniform(m * d, codes, -bound, bound, rng)),
            params.add("value.bias", Matrix::uniform(m, d, -bound, bound, rng)),
        ];
        let start = [Linear::new(params, "start.0", &[d, m], d, rng), Linear::new(params, "start.1", &[d], d, rng)];
        let layers = (0..shape.layers)
            .map(|l| Layer {
                edge: [
                    Linear::new(params, &format!("layer.{l}.edge.row"), &[d], d, rng),
                    Linear::new(params, &format!("layer.{l}.edge.cell"), &[d], d, rng),
                ],
                column: params.add(&format!("layer.{l}.edge.column"), Matrix::normal(m, d, 0.3, rng)),
                norms: [
                    Norm::new(params, &format!("layer.{l}.norm.cell"), d),
                    Norm::new(params, &format!("layer.{l}.norm.row"), d),
                ],
                row: [
                    Linear::new(params, &format!("layer.{l}.row.0"), &[d, d], d, rng),
                    Linear::new(params, &format!("layer.{l}.row.1"), &[d], d, rng),
                ],
            })
            .collect();
        let frequencies =
            Matrix::from_vec(m, classes, log_frequencies(columns, grid, classes)).expect("a row a column");
        GraphNetwork {
            value,
            start,
            layers,
            out_norm: Norm::new(params, "out.norm", d),
            feature: params.add("feature", Matrix::normal(m, d, 0.5, rng)),
            soft: [Linear::new(params, "soft.0", &[m, m], d, rng), Linear::new(params, "soft.1", &[d], d, rng)],
            mix: [Linear::new(params, "mix.0", &[d, d], d, rng), Linear::new(params, "mix.1", &[d], d, rng)],
            pairwise: (shape.pairwise && pairwise.k > 0).then(|| {
                [
                    params.add("pairwise.slope", pairwise.slope.clone()),
                    params.add("pairwise.shift", pairwise.shift.clone()),
                    params.add("pairwise.logit", pairwise.logit.clone()),
                    params.add("pairwise.weight", Matrix::normal(m * pairwise.k, d, 0.02, rng)),
                    params.add("pairwise.bias", Matrix::zeros(m, pairwise.k)),
                ]
            }),
            point: [
                params.add("point.weight", Matrix::normal(m, d, 0.02, rng)),
                params.add("point.bias", Matrix::column(baselines.to_vec())),
            ],
            classes: [
                params.add("classes.weight", Matrix::normal(m * classes, d, 0.02, rng)),
                params.add("classes.bias", frequencies),
            ],
        }
    }

    /// A network whose weights are still to come, from a file.
    pub fn blank(params: &mut Params, shape: Shape, columns: &[ColumnInput], pairwise: &Pairwise) -> GraphNetwork {
        let nothing = Grid { n: 0, m: columns.len(), x: Vec::new(), observed: Vec::new() };
        let baselines = vec![0.0; columns.len()];
        GraphNetwork::new(params, shape, columns, pairwise, (&baselines, &nothing), &mut ChaCha8Rng::seed_from_u64(0))
    }

    /// The states of rows, `[b, d]`.
    fn rows(&self, pass: &mut Pass<'_>, batch: &Batch) -> Var {
        let codes = pass.tape.constant(batch.codes.clone());
        let shown = pass.tape.constant(batch.shown.clone());
        let [weight, bias] = self.value.map(|id| pass.param(id));
        let mut e = pass.tape.grouped_linear(codes, weight, Some(bias), &batch.edge_column, Activation::Gelu); // [e, d]
        let mean = pass.tape.segment_mean(e, &batch.edge_row); // [b, d]
        let mut s = two_inputs(pass, &self.start, mean, shown, Activation::Gelu.into());
        for layer in &self.layers {
            let of_row = layer.edge[0].apply(pass, s, Activation::None); // [b, d]
            let normed = layer.norms[0].apply(pass, e);
            let terms = [
                Term::Linear(normed, layer.edge[1].weight(pass, 0)),
                Term::Gathered(of_row, &batch.edge_row),
                Term::Gathered(pass.param(layer.column), &batch.edge_column),
            ];
            let change = pass.tape.affine(&terms, Activation::Gelu);
            e = pass.tape.add(e, change);
            let mean = pass.tape.segment_mean(e, &batch.edge_row);
            let normed = layer.norms[1].apply(pass, s);
            let change = two_inputs(pass, &layer.row, normed, mean, Activation::Gelu.into());
            s = pass.tape.add(s, change);
        }
        self.out_norm.apply(pass, s)
    }

    /// Predicts the targets of a batch.
    pub fn forward(&self, pass: &mut Pass<'_>, batch: &Batch) -> Output {
        let s = self.rows(pass, batch); // [b, d]
        let shown = pass.tape.constant(batch.shown.clone());
        let of_row = self.soft[0].part(pass, 0, shown); // [b, d]
        let of_column = self.soft[0].weight(pass, 1); // [d, m]
        let of_column = pass.tape.transpose(of_column); // [m, d]
        let terms = [
            Term::Gathered(of_row, &batch.target_row),
            Term::Gathered(of_column, &batch.target_column),
            self.soft[0].bias(pass),
        ];
        let hidden = pass.tape.affine(&terms, Activation::Gelu); // [t, d]
        let soft = self.soft[1].apply(pass, hidden, Activation::None); // [t, d]
        let feature = pass.param(self.feature);
        let row = Factor::Gathered(s, &batch.target_row);
        let terms = [
            Term::LinearMul(row, Factor::Rows(soft), self.mix[0].weight(pass, 0)),
            Term::LinearMul(row, Factor::Gathered(feature, &batch.target_column), self.mix[0].weight(pass, 1)),
            self.mix[0].bias(pass),
        ];
        let epilogue = pass.gelu_dropped();
        let hidden = pass.tape.affine(&terms, epilogue); // [t, d]
        let h = self.mix[1].apply(pass, hidden, Activation::Gelu); // [t, d]

        let [weight, bias] = self.point.map(|id| pass.param(id));
        let mut point = pass.tape.grouped_linear(h, weight, None, &batch.target_column, Activation::None); // [t, 1]
        let baseline = pass.tape.gather(bias, &batch.target_column);
        point = match self.pairwise {
            None => pass.tape.add(point, baseline),
            Some(pairwise) => {
                let [slope, shift, logit, weight, bias] = pairwise.map(|id| pass.param(id));
                let relevance = pass.tape.grouped_linear(h, weight, Some(bias), &batch.target_column, Activation::None); // [t, k]
                let logits = pass.tape.add_gathered(relevance, logit, &batch.target_column, Activation::None);
                let allowed = pass.tape.constant(batch.partner_shown.clone());
                let shares = pass.tape.softmax_where(logits, allowed); // [t, k]
                let values = pass.tape.constant(batch.partner_values.clone());
                let slope = pass.tape.gather(slope, &batch.target_column);
                let scaled = pass.tape.mul(slope, values);
                let ends = pass.tape.add_gathered(scaled, shift, &batch.target_column, Activation::None); // [t, k]
                let base = pass.tape.row_dot(shares, ends); // [t, 1]
                // A row that shows no partner starts at the column's baseline.
                let none = Matrix::from_fn(batch.targets(), 1, |i, _| {
                    f32::from(u8::from(batch.partner_shown.row(i).iter().all(|&s| s == 0.0)))
                });
                let none = pass.tape.constant(none);
                let baseline = pass.tape.mul(baseline, none);
                let sum = pass.tape.add(base, baseline);
                pass.tape.add(point, sum)
            }
        };
        let [weight, bias] = self.classes.map(|id| pass.param(id));
        let logits = pass.tape.grouped_linear(h, weight, Some(bias), &batch.target_column, Activation::None);
        Output { point, logits }
    }
}

/// `B act(A [x; y] + a) + b`.
fn two_inputs(pass: &mut Pass<'_>, [first, second]: &[Linear; 2], x: Var, y: Var, act: Epilogue) -> Var {
    let terms = [Term::Linear(x, first.weight(pass, 0)), Term::Linear(y, first.weight(pass, 1)), first.bias(pass)];
    let hidden = pass.tape.affine(&terms, act);
    second.apply(pass, hidden, Activation::None)
}

/// The logarithms of the frequencies of each column's classes, each counted once more, `[m, classes]`.
fn log_frequencies(columns: &[ColumnInput], grid: &Grid, classes: usize) -> Vec<f32> {
    let mut counts = vec![1.0_f32; columns.len() * classes];
    for (at, &x) in grid.x.iter().enumerate().filter(|(at, _)| grid.observed[*at]) {
        let f = at % grid.m;
        if let Some(class) = columns[f].class_of(x) {
            counts[f * classes + class] += 1.0;
        }
    }
    for counts in counts.chunks_exact_mut(classes) {
        let total: f32 = counts.iter().sum();
        counts.iter_mut().for_each(|c| *c = (*c / total).ln());
    }
    counts
}
