//! The refined model in a model file.

use super::blend::Manner;
use super::calibrate::Calibration;
use super::columns::Column;
use super::design::Design;
use super::ensemble::Net;
use super::kinds::{Bend, Kinds, WAYS};
use super::lines::Lines;
use super::method::FittedM3;
use super::model::{ANSWERS, DESIGN, KINDS, Model, Opinions, POINT, STAGES};
use super::network::{Network, Shape};
use super::stage::{CURVE, LEARNERS, Learners, Order, Stage};
use crate::fitted::matrix;
use m3impute_core::beliefs::Distributions;
use m3impute_core::{Encoded, Error, HeldOut, MatrixModel, ModelFile, Result, Run, Tensor, Want};
use m3impute_learners::forest::Forest;
use m3impute_learners::kernel::KernelRegression;
use m3impute_learners::lad::Linear as Line;
use m3impute_learners::scaler::Ruler;
use m3impute_nn::{Matrix, Params};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What is small enough for the header.
#[derive(Serialize, Deserialize)]
struct State {
    shape: Shape,
    nets: usize,
    partners: usize,
    columns: Vec<Column>,
    starts: Vec<f32>,
    levels: Vec<usize>,
    /// Instead of `first`, in older files: whether it is the networks' point, not their answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    by_point: Vec<bool>,
    #[serde(default)]
    first: Vec<usize>,
    typical: Vec<Vec<f32>>,
    weights: Vec<Vec<f32>>,
    /// In older files all are means.
    #[serde(default)]
    manners: Vec<Manner>,
    opinions: Vec<Opinions>,
    calibration: Vec<Calibration>,
    /// How columns are bent for kinds of rows, taken in each way. Older files have none.
    #[serde(default)]
    kinds: Vec<Option<Vec<Bend>>>,
    /// Whether the rows are kept as a design. Older files know of none.
    #[serde(default)]
    design: Option<bool>,
    stages: Vec<StageState>,
}

#[derive(Serialize, Deserialize)]
struct StageState {
    /// All stages of older files are of the first kind.
    #[serde(default)]
    order: Order,
    sources: Vec<Option<usize>>,
    forests: Vec<[bool; 2]>,
    lines: Vec<Option<Line>>,
    /// Older files have none.
    #[serde(default)]
    curves: Vec<bool>,
}

impl MatrixModel for FittedM3 {
    const DISTRIBUTIONS: bool = true;

    fn predict(&self, rows: &mut Encoded, want: Want, run: &Run) -> Result<Option<Vec<Distributions>>> {
        if want == Want::Point {
            self.put(rows, run, |_, _| {})?;
            return Ok(None);
        }
        let mut of = self.no_distributions();
        self.put(rows, run, |f, opinion| self.distribution(f, opinion, &mut of[f]))?;
        Ok(Some(of))
    }

    fn scores(&self) -> Vec<HeldOut> {
        super::scores::scores(self)
    }

    fn store(&self, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        let model = &self.model;
        for (f, ruler) in self.rulers.iter().enumerate() {
            tensors.insert(format!("{f}.known"), Tensor::F64(vec![ruler.known.len()], ruler.known.clone()));
        }
        for (k, net) in model.nets.iter().enumerate() {
            for id in net.params.ids() {
                let x = net.params.value(id);
                let tensor = Tensor::F32(vec![x.rows(), x.cols()], x.as_slice().to_vec());
                tensors.insert(format!("net.{k}.{}", net.params.name(id)), tensor);
            }
            let partners = net.lines.partners.clone();
            tensors.insert(format!("net.{k}.partners"), Tensor::U32(vec![partners.len()], partners));
        }
        for (way, kinds) in model.kinds.iter().enumerate() {
            for (k, density) in kinds.iter().flat_map(|kinds| &kinds.densities).enumerate() {
                density.store(&format!("kinds.{way}.{k}."), tensors);
            }
        }
        if let Some(design) = &model.design {
            design.store(tensors);
        }
        let mut stages = Vec::new();
        for (s, stage) in model.stages.iter().enumerate() {
            for (f, learners) in stage.learners.iter().enumerate() {
                for (which, forest) in learners.forests.iter().enumerate() {
                    if let Some(forest) = forest {
                        forest.store(&format!("stage.{s}.{f}.{which}."), tensors);
                    }
                }
                if let Some(curve) = &learners.curve {
                    curve.store(&format!("stage.{s}.{f}.curve."), tensors);
                }
            }
            stages.push(StageState {
                order: stage.order,
                sources: stage.sources.clone(),
                forests: stage.learners.iter().map(|l| l.forests.each_ref().map(Option::is_some)).collect(),
                lines: stage.learners.iter().map(|l| l.line.clone()).collect(),
                curves: stage.learners.iter().map(|l| l.curve.is_some()).collect(),
            });
        }
        let state = State {
            shape: model.shape,
            nets: model.nets.len(),
            partners: model.nets.first().map_or(0, |net| net.lines.k),
            columns: model.columns.clone(),
            starts: self.rulers.iter().map(|r| r.start).collect(),
            levels: self.rulers.iter().map(|r| r.levels).collect(),
            by_point: Vec::new(),
            first: model.first.clone(),
            typical: model.typical.clone(),
            weights: model.weights.clone(),
            manners: model.manners.clone(),
            opinions: model.opinions.clone(),
            calibration: model.calibration.clone(),
            kinds: model.kinds.iter().map(|kinds| kinds.as_ref().map(|k| k.bends.clone())).collect(),
            design: Some(model.design.is_some()),
            stages,
        };
        serde_json::to_value(state).unwrap_or(Value::Null)
    }

    fn restore(file: &ModelFile, m: usize) -> Result<FittedM3> {
        let mut state: State = file.state()?;
        state.add_what_is_new(m);
        state.check(m)?;
        let mut rulers = Vec::with_capacity(m);
        for f in 0..m {
            let (_, known) = file.f64s(&format!("{f}.known"))?;
            if known.iter().any(|v| !v.is_finite()) || known.windows(2).any(|k| k[0] >= k[1]) {
                return Err(Error::damaged(format!("the values of feature {f}")));
            }
            let ruler = Ruler { levels: state.levels[f], start: state.starts[f], known: known.to_vec() };
            if ruler.known.is_empty() && state.columns[f].is_number() {
                return Err(Error::damaged(format!("feature {f} has no values")));
            }
            rulers.push(ruler);
        }
        let nets = (0..state.nets).map(|k| restore_net(file, k, &state)).collect::<Result<_>>()?;
        let levels: Vec<usize> = state.columns.iter().map(Column::tree_levels).collect();
        let mut kinds = Vec::with_capacity(WAYS.len());
        for (way, bends) in state.kinds.iter_mut().enumerate() {
            let restore = |bends| Kinds::restore(file, &format!("kinds.{way}."), bends, &levels);
            kinds.push(bends.take().map(restore).transpose()?);
        }
        let design = (state.design == Some(true)).then(|| Design::restore(file, &state.columns)).transpose()?;
        let mut stages = Vec::with_capacity(state.stages.len());
        for (s, stage) in state.stages.iter().enumerate() {
            let mut learners = Vec::with_capacity(m);
            for f in 0..m {
                let mut forests = [None, None];
                for (which, forest) in forests.iter_mut().enumerate().filter(|(which, _)| stage.forests[f][*which]) {
                    *forest = Some(Forest::restore(file, &format!("stage.{s}.{f}.{which}."), f, &levels)?);
                }
                let curve = stage.curves[f].then(|| {
                    let predictors = super::stage::predictors(&state.columns, f);
                    KernelRegression::restore(file, &format!("stage.{s}.{f}.curve."), predictors)
                });
                learners.push(Learners { forests, line: stage.lines[f].clone(), curve: curve.transpose()? });
            }
            stages.push(Stage { order: stage.order, learners, sources: stage.sources.clone() });
        }
        let State { shape, columns, first, typical, weights, manners, opinions, calibration, .. } = state;
        Ok(FittedM3 {
            rulers,
            model: Model {
                shape,
                columns,
                nets,
                first,
                kinds,
                design,
                stages,
                typical,
                weights,
                manners,
                opinions,
                calibration,
            },
        })
    }
}

impl State {
    /// Older files have no curves and know no kinds of rows: nobody believes them.
    fn add_what_is_new(&mut self, m: usize) {
        if self.first.is_empty() {
            self.first = self.by_point.iter().map(|&point| if point { POINT } else { ANSWERS }).collect();
        }
        if self.manners.is_empty() {
            self.manners = vec![Manner::Mean; m];
        }
        if self.kinds.is_empty() {
            self.kinds = vec![None; WAYS.len()];
            (0..WAYS.len()).for_each(|_| self.add_opinion(KINDS));
        }
        if self.design.is_none() {
            (DESIGN..STAGES).for_each(|place| self.add_opinion(place));
        }
        let mut new = Vec::new();
        for (s, stage) in self.stages.iter_mut().enumerate().filter(|(_, stage)| stage.curves.is_empty()) {
            stage.curves = vec![false; m];
            new.push(STAGES + LEARNERS * s + CURVE);
        }
        new.into_iter().for_each(|place| self.add_opinion(place));
    }

    /// Makes room for an opinion that nobody believes.
    fn add_opinion(&mut self, place: usize) {
        for weights in self.weights.iter_mut().filter(|w| w.len() >= place) {
            weights.insert(place, 0.0);
        }
        for opinions in self.opinions.iter_mut().filter(|o| o.alone.len() >= place) {
            opinions.alone.insert(place, None);
        }
    }

    /// Whether everything has the size that the others say.
    fn check(&self, m: usize) -> Result<()> {
        let d = self.shape.width;
        let opinions = STAGES + LEARNERS * self.stages.len();
        let of_columns = [
            self.columns.len(),
            self.starts.len(),
            self.levels.len(),
            self.first.len(),
            self.typical.len(),
            self.weights.len(),
            self.manners.len(),
            self.opinions.len(),
            self.calibration.len(),
        ];
        let sizes = of_columns.iter().all(|&len| len == m)
            && (1..=1 << 14).contains(&d)
            && (1..=64).contains(&self.shape.layers)
            && (1..=1024).contains(&self.nets)
            && self.partners == (m - 1).min(Lines::MOST)
            && self.weights.iter().all(|w| w.len() == opinions)
            && self.first.iter().all(|first| (ANSWERS..DESIGN).contains(first));
        if !sizes {
            return Err(Error::damaged("the shape of the model"));
        }
        for (f, column) in self.columns.iter().enumerate() {
            let sound = column.is_sound(self.levels[f]) && self.calibration[f].is_sound(column);
            if !sound || self.typical[f].len() != column.opinion_width() {
                return Err(Error::damaged(format!("what is known of feature {f}")));
            }
        }
        let bends = |bends: &Vec<Bend>| {
            bends.len() == m && bends.iter().zip(&self.columns).all(|(bend, column)| bend.is_sound(column))
        };
        let there = |&first: &usize| first < KINDS || self.kinds[first - KINDS].is_some();
        if self.kinds.len() != WAYS.len() || !self.kinds.iter().flatten().all(bends) || !self.first.iter().all(there) {
            return Err(Error::damaged("the kinds of rows"));
        }
        for stage in &self.stages {
            let lines = stage.lines.iter().enumerate();
            let fits = |(f, line): (usize, &Option<Line>)| {
                line.as_ref().is_none_or(|l| {
                    self.columns[f].is_number() && l.weights.len() == super::stage::predictors(&self.columns, f)
                })
            };
            let curves = stage.curves.len() == m
                && stage.curves.iter().zip(&self.columns).all(|(c, column)| !c || column.is_number());
            let sources = stage.sources.len() == m && stage.sources.iter().flatten().all(|&which| which < LEARNERS);
            if !sources || !curves || stage.forests.len() != m || stage.lines.len() != m || !lines.clone().all(fits) {
                return Err(Error::damaged("a stage of the model"));
            }
        }
        Ok(())
    }
}

fn restore_net(file: &ModelFile, k: usize, state: &State) -> Result<Net> {
    let (m, partners) = (state.columns.len(), state.partners);
    // The file must hold the larger matrices before any of that size is made.
    let answers = state.columns.iter().map(Column::answers).max().unwrap_or(1);
    matrix(file, &format!("net.{k}.answers.weight"), (m * answers, state.shape.width))?;
    let (shape, who) = file.u32s(&format!("net.{k}.partners"))?;
    if shape != [m * partners] || who.iter().any(|&j| j as usize >= m) {
        return Err(Error::damaged(format!("`net.{k}.partners`")));
    }
    let zeros = Matrix::zeros(m, partners);
    let lines = Lines { partners: who.to_vec(), k: partners, slope: zeros.clone(), shift: zeros.clone(), logit: zeros };
    let mut params = Params::new();
    let network = Network::blank(&mut params, state.shape, &state.columns, &lines);
    for id in params.ids().collect::<Vec<_>>() {
        let shape = params.value(id).shape();
        *params.value_mut(id) = matrix(file, &format!("net.{k}.{}", params.name(id)), shape)?;
    }
    Ok(Net { network, params, lines })
}
