//! Chained regressions: each column is predicted from all others, in turn, iteration after iteration.
//!
//! The preset `paper` is Bayesian ridge regression on columns scaled to the unit interval, at most 50 iterations,
//! deterministic. The default standardises, predicts levels by softmax regression, and keeps predictions within the
//! observed range.
//!
//! A new row starts from the means and goes through the regressions of the last iteration until it settles. (Replaying every
//! iteration of the training would need all their regressions; the last ones lead to the same place where the chain has
//! converged.)
//!
//! Notation: `n` rows, `w` features.

mod chain;

use chain::Chain;
use m3impute_core::distributions::Distributions;
use m3impute_core::encode::{Constants, Layout, Scale};
use m3impute_core::{
    Encoded, Encoding, Error, Expect, Finish, Learnt, MatrixImputer, MatrixModel, MethodSpec, ModelFile, ParamSpec,
    Result, Run, Tensor, Transductive, TransductiveMethod, Want, load_matrix_model,
};
use m3impute_learners::linalg::dot;
use m3impute_learners::softmax::softmax;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;

/// Chained regressions.
#[derive(Clone, Debug)]
pub struct Mice {
    params: MiceParams,
}

/// How columns with levels, and numbers of two values, are predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Levels {
    /// By softmax regression.
    Logistic,
    /// Each level by a linear regression of its own.
    Ridge,
}

/// The parameters of `mice`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MiceParams {
    /// How many iterations at most.
    pub iterations: usize,
    /// The largest change of a row, relative to the largest observed value, at which the iterations stop.
    pub tolerance: f64,
    /// How columns with levels, and numbers of two values, are predicted.
    pub levels: Levels,
    /// Whether predictions are kept within the observed range between the iterations too.
    pub bounded: bool,
    /// How numbers are scaled.
    pub scale: Scale,
}

impl Default for MiceParams {
    fn default() -> MiceParams {
        MiceParams { iterations: 30, tolerance: 1e-3, levels: Levels::Logistic, bounded: true, scale: Scale::Standard }
    }
}

impl MiceParams {
    /// The parameters of a preset.
    fn of_preset(name: &str) -> MiceParams {
        match name {
            "paper" => MiceParams {
                iterations: 50,
                tolerance: 1e-3,
                levels: Levels::Ridge,
                bounded: false,
                scale: Scale::MinMax,
            },
            _ => MiceParams::default(),
        }
    }
}

/// The row of the registry.
pub static SPEC: MethodSpec = MethodSpec {
    name: "mice",
    summary: "chained regressions: each column from all others, iteration after iteration, until they settle",
    avoid: "relations that are not linear; and where several imputations are wanted, since this gives the expected one",
    inductive: true,
    distributions: false,
    randomised: false,
    slow: false,
    presets: &[
        ("default", "standardised, levels by softmax regression, within the observed range"),
        ("paper", "Bayesian ridge regression on the unit interval, at most 50 iterations"),
    ],
    params: &[
        ParamSpec { name: "iterations", doc: "how many iterations at most", expects: Expect::Whole(1, 100_000) },
        ParamSpec {
            name: "tolerance",
            doc: "the largest change of a row, relative to the largest observed value, at which the iterations stop",
            expects: Expect::Number(0.0, 1.0),
        },
        ParamSpec {
            name: "levels",
            doc: "how columns with levels, and numbers of two values, are predicted",
            expects: Expect::Choice(&["logistic", "ridge"]),
        },
        ParamSpec {
            name: "bounded",
            doc: "whether predictions are kept within the observed range between the iterations too",
            expects: Expect::Flag,
        },
        ParamSpec { name: "scale", doc: "how numbers are scaled", expects: Expect::Choice(&["minmax", "standard"]) },
    ],
    preset_values: |name| {
        SPEC.presets.iter().any(|p| p.0 == name).then(|| serde_json::json!(MiceParams::of_preset(name)))
    },
    build: |settings| {
        let params = SPEC.params(settings, MiceParams::of_preset)?;
        let clip = SPEC.preset(settings)? != "paper";
        let finish = settings.finish.over(Finish { clip, ..Finish::default() });
        Ok(Box::new(MatrixImputer::new(&SPEC, Transductive(Mice { params }), finish)))
    },
    load: |file| load_matrix_model::<Transductive<Mice>>(&SPEC, file),
};

impl TransductiveMethod for Mice {
    type Model = Regressions;
    type Params = MiceParams;

    fn params(&self) -> &MiceParams {
        &self.params
    }

    fn encoding(&self) -> Encoding {
        let constants = if self.params.scale == Scale::Standard { Constants::Leave } else { Constants::Keep };
        Encoding { layout: Layout::Flags, scale: self.params.scale, constants }
    }

    fn learn(&self, data: &mut Encoded, run: &mut Run) -> Result<Learnt<Regressions>> {
        let MiceParams { iterations, tolerance, .. } = self.params;
        let mut chain = Chain::new(data, &self.params);
        let largest =
            data.x.iter().zip(&data.observed).filter(|(_, seen)| **seen).fold(0.0_f64, |a, (x, _)| a.max(x.abs()));
        let enough = tolerance * largest;
        let mut notes = Vec::new();
        let mut open = chain.has_holes();
        for iteration in 1..=iterations {
            if !chain.has_holes() {
                break;
            }
            let Some(change) = chain.iterate(run)? else {
                notes.push(match chain.unfitted() {
                    0 => format!("time limit reached in iteration {iteration}; the last complete one is kept"),
                    columns => {
                        format!("time limit reached in iteration {iteration}; means are kept in {columns} columns")
                    }
                });
                break;
            };
            run.report("iterations", iteration as u64, iterations as u64, format!("change {change:.2e}"));
            if change < enough {
                notes.push(format!("converged after {iteration} iterations"));
                open = false;
                break;
            }
            if run.is_spent() && iteration < iterations {
                notes.push(format!("time limit reached after iteration {iteration} of {iterations}"));
                break;
            }
        }
        if open && notes.is_empty() {
            notes.push(format!("did not converge in {iterations} iterations"));
        }
        let model = chain.finish(data, iterations, enough, run)?;
        Ok(Learnt { model, notes })
    }
}

/// How the scores of a column's features become its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Link {
    /// They are the values.
    Linear = 0,
    /// The chance of the larger of two values.
    Two = 1,
    /// The chances of the levels.
    Softmax = 2,
    /// There are none: no regression of the column was finite.
    NoAnswer = 3,
}

/// One regression a feature, and the order in which they are used. Values are centred.
#[derive(Clone, Debug, PartialEq)]
pub struct Regressions {
    columns: Vec<Range<usize>>, // in the order in which they are predicted
    links: Vec<Link>,           // [w]
    weights: Vec<f64>,          // [w, w], one regression a row, 0 for the column's own features
    intercepts: Vec<f64>,       // [w]
    centre: Vec<f64>,           // [w]
    low: Vec<f64>,              // [w], centred
    high: Vec<f64>,             // [w]
    bounded: bool,
    iterations: usize,
    enough: f64,
}

impl Regressions {
    /// Predicts a column's features for one centred row.
    fn predict(&self, column: Range<usize>, row: &[f64], into: &mut [f64]) {
        let w = self.links.len();
        for (f, into) in column.clone().zip(into.iter_mut()) {
            *into = self.intercepts[f] + dot(row, &self.weights[f * w..(f + 1) * w]);
        }
        let first = column.start;
        match self.links[first] {
            Link::Linear => {}
            Link::NoAnswer => into.fill(0.0), // the mean, for the other columns to see
            Link::Two => into[0] = self.low[first] + (self.high[first] - self.low[first]) / (1.0 + (-into[0]).exp()),
            Link::Softmax => {
                softmax(into);
                for (f, into) in column.clone().zip(into.iter_mut()) {
                    *into = self.low[f] + (self.high[f] - self.low[f]) * *into;
                }
            }
        }
        if self.bounded {
            for (f, into) in column.zip(into.iter_mut()) {
                *into = into.clamp(self.low[f], self.high[f]);
            }
        }
    }

    fn fill_row(&self, row: &mut [f64], observed: &[bool]) {
        let missing: Vec<&Range<usize>> = self.columns.iter().filter(|c| !observed[c.start]).collect();
        if missing.is_empty() {
            return;
        }
        for (f, v) in row.iter_mut().enumerate() {
            *v = if observed[f] { *v - self.centre[f] } else { 0.0 };
        }
        let mut prediction = vec![0.0; missing.iter().map(|c| c.len()).max().unwrap_or(0)];
        for _ in 0..self.iterations {
            let mut change = 0.0;
            for column in &missing {
                let prediction = &mut prediction[..column.len()];
                self.predict((*column).clone(), row, prediction);
                for (v, new) in row[(*column).clone()].iter_mut().zip(prediction) {
                    change += (*v - *new).abs();
                    *v = *new;
                }
            }
            if change <= self.enough {
                break;
            }
        }
        row.iter_mut().zip(&self.centre).for_each(|(v, c)| *v += c);
        for column in missing.into_iter().filter(|c| self.links[c.start] == Link::NoAnswer) {
            row[column.clone()].fill(f64::NAN);
        }
    }
}

/// What of [`Regressions`] is not a tensor.
#[derive(Serialize, Deserialize)]
struct State {
    bounded: bool,
    iterations: usize,
    enough: f64,
}

impl MatrixModel for Regressions {
    fn predict(&self, rows: &mut Encoded, _: Want, run: &Run) -> Result<Option<Vec<Distributions>>> {
        let w = self.links.len();
        let observed = &rows.observed;
        // Observed cells are put back as they were: centring there and back may cost them their last bit.
        for (x, observed) in rows.x.chunks_mut(8192 * w).zip(observed.chunks(8192 * w)) {
            run.check()?;
            run.install(|| {
                x.par_chunks_mut(w).zip(observed.par_chunks(w)).with_min_len(64).for_each(|(row, observed)| {
                    let before = row.to_vec();
                    self.fill_row(row, observed);
                    for f in (0..w).filter(|&f| observed[f]) {
                        row[f] = before[f];
                    }
                });
            });
        }
        Ok(None)
    }

    fn unpredicted(&self) -> Vec<usize> {
        (0..self.links.len()).filter(|&f| self.links[f] == Link::NoAnswer).collect()
    }

    fn store(&self, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        let w = self.links.len();
        let order = self.columns.iter().map(|c| c.start as u32).collect();
        tensors.insert("order".to_owned(), Tensor::U32(vec![self.columns.len()], order));
        tensors.insert("links".to_owned(), Tensor::U8(vec![w], self.links.iter().map(|&l| l as u8).collect()));
        tensors.insert("weights".to_owned(), Tensor::F64(vec![w, w], self.weights.clone()));
        for (name, vector) in self.vectors() {
            tensors.insert(name.to_owned(), Tensor::F64(vec![w], vector.clone()));
        }
        serde_json::json!(State { bounded: self.bounded, iterations: self.iterations, enough: self.enough })
    }

    fn restore(file: &ModelFile, width: usize) -> Result<Regressions> {
        let State { bounded, iterations, enough } = file.state()?;
        let (_, order) = file.u32s("order")?;
        let known = file.header.encoder.columns();
        let mut seen: Vec<u32> = order.to_vec();
        seen.sort_unstable();
        if !seen.iter().map(|&f| f as usize).eq(known.iter().map(|c| c.start)) {
            return Err(Error::damaged("the order of the regressions does not fit the columns"));
        }
        let by_start = |&f: &u32| known[known.partition_point(|c| c.start < f as usize)].clone();
        let link = |&l: &u8| match l {
            0 => Ok(Link::Linear),
            1 => Ok(Link::Two),
            2 => Ok(Link::Softmax),
            3 => Ok(Link::NoAnswer),
            _ => Err(Error::damaged("a link that is not known")),
        };
        let sized = |name: &str, size: usize| -> Result<Vec<f64>> {
            let (_, data) = file.f64s(name)?;
            let fits = data.len() == size && data.iter().all(|v| v.is_finite());
            if fits {
                Ok(data.to_vec())
            } else {
                Err(Error::damaged(format!("`{name}`: expected {size} finite numbers")))
            }
        };
        let area = width.checked_mul(width).ok_or_else(|| Error::damaged("too many features"))?;
        let (low, high) = (sized("low", width)?, sized("high", width)?);
        let links: Vec<Link> = file.u8s("links")?.1.iter().map(link).collect::<Result<_>>()?;
        if links.len() != width || low.iter().zip(&high).any(|(l, h)| l > h) || iterations > 100_000 || enough.is_nan()
        {
            return Err(Error::damaged("the regressions do not fit the columns"));
        }
        Ok(Regressions {
            columns: order.iter().map(by_start).collect(),
            links,
            weights: sized("weights", area)?,
            intercepts: sized("intercepts", width)?,
            centre: sized("centre", width)?,
            low,
            high,
            bounded,
            iterations,
            enough,
        })
    }
}

impl Regressions {
    fn vectors(&self) -> [(&'static str, &Vec<f64>); 4] {
        [("intercepts", &self.intercepts), ("centre", &self.centre), ("low", &self.low), ("high", &self.high)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{impute, settings, table};
    use m3impute_core::{Column, ColumnSpec, Kind, Schema, Table};

    #[test]
    fn a_linear_relation_is_found_and_levels_are_told() {
        for preset in ["default", "paper"] {
            let filled = impute(&SPEC, &settings(preset, &[]));
            assert!((filled.number(9, 1) - 18.0).abs() < 0.2, "{preset}: {}", filled.number(9, 1));
            assert_eq!(filled.number(2, 2), 0.0, "{preset}");
        }
    }

    #[test]
    fn an_exact_relation_beside_the_flags_of_all_levels_has_an_answer() {
        // The minute is what the hour leaves of the time; the flags of all carriers add up to one.
        let rows = 4000;
        let draw = |i: u32, of: u32, k: u32| (i.wrapping_mul(2_654_435_761).rotate_left(k) >> 7) % of;
        let (hour, minute) = (|i| draw(i, 18, 3) + 5, |i| draw(i, 60, 11));
        let carrier = |i| if draw(i, 200, 17) == 0 { 7 } else { draw(i, 7, 23) };
        let seen = |i: u32, j: u32| !(i + j).is_multiple_of(5);
        let numbers = |j, f: &dyn Fn(u32) -> u32| {
            Column::numbers((0..rows).map(|i| seen(i, j).then(|| f64::from(f(i)))).collect::<Vec<_>>())
        };
        let columns = vec![
            numbers(0, &|i| 100 * hour(i) + minute(i)),
            numbers(1, &hour),
            numbers(2, &minute),
            Column::codes((0..rows).map(|i| seen(i, 3).then(|| carrier(i)))),
        ];
        let spec = |name| ColumnSpec::new(name, Kind::Integer);
        let carriers = ColumnSpec::with_levels("carrier", Kind::Categorical, ["a", "b", "c", "d", "e", "f", "g", "h"]);
        let schema = Schema::new(vec![spec("time"), spec("hour"), spec("minute"), carriers]).unwrap();
        let table = Table::new(schema, columns).unwrap();
        let imputer = (SPEC.build)(&settings("default", &[])).unwrap();
        let out = imputer.impute(&table, &mut Run::new(0, 1).unwrap()).unwrap();
        assert!(out.fallbacks.is_empty(), "{:?}", out.fallbacks);
        let off =
            (0..rows).filter(|&i| !seen(i, 2)).map(|i| (out.table.number(i as usize, 2) - f64::from(minute(i))).abs());
        let off: Vec<f64> = off.collect();
        assert!(off.iter().sum::<f64>() / (off.len() as f64) < 1.0, "{:?}", &off[..20]);
    }

    #[test]
    fn a_spent_run_keeps_what_it_has_and_says_so() {
        let imputer = (SPEC.build)(&settings("default", &[])).unwrap();
        let mut run = Run::new(0, 1).unwrap().within(std::time::Duration::ZERO);
        let out = imputer.impute(&table(), &mut run).unwrap();
        assert!(out.notes[0].starts_with("time limit reached"), "{:?}", out.notes);
        assert!(out.fallbacks.is_empty());
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let imputer = (SPEC.build)(&settings("default", &[])).unwrap();
        let on = |threads| imputer.impute(&table(), &mut Run::new(0, threads).unwrap()).unwrap().table;
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn a_model_whose_order_does_not_fit_is_refused() {
        let imputer = (SPEC.build)(&settings("default", &[])).unwrap();
        let fitted = imputer.as_inductive().unwrap().fit(&table(), &mut Run::new(0, 1).unwrap()).unwrap();
        let mut file = fitted.to_file().unwrap();
        file.tensors.insert("order".to_owned(), Tensor::U32(vec![3], vec![0, 1, 7]));
        assert!((SPEC.load)(&file).is_err());
    }
}
