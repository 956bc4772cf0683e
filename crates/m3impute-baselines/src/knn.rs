//! Fills a missing cell from the nearest rows that have the value.
//!
//! The distance of two rows is the mean squared difference over the features that both have. The preset `paper` takes
//! 20 neighbours, weighted by the inverse distance, on columns scaled to the unit interval. The default trusts
//! distances over few common features less, and chooses how columns are weighted, how many neighbours count and how
//! fast their weight falls on held-out observed cells.
//!
//! Notation: `n` rows of the bank, `w` features, `k` neighbours.

mod bank;

use bank::{Bank, Donor, places, variance};
use m3impute_core::distributions::Distributions;
use m3impute_core::encode::{Constants, Layout, Scale};
use m3impute_core::explain::KeptNumbers;
use m3impute_core::heldout::{HeldOut, hold_out};
use m3impute_core::{
    Encoded, Encoding, Error, Expect, Finish, Learnt, MatrixImputer, MatrixModel, MethodSpec, ModelFile, ParamSpec,
    Result, Run, Tensor, Transductive, TransductiveMethod, Want, load_matrix_model, sample_rows,
};
use m3impute_learners::linalg::GoOn;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;

/// The cells on which the settings are chosen, at most.
const HELD_OUT: usize = 2000;
/// The share of a limited time that choosing the neighbours may take.
const CHOOSING_SHARE: f64 = 0.3;
/// What is tried where nothing is said.
const NEIGHBOURS: [usize; 7] = [1, 3, 5, 10, 15, 25, 40];
const POWERS: [f64; 4] = [0.0, 0.5, 1.0, 2.0];
const METRICS: [Metric; 2] = [Metric::Range, Metric::Deviation];

/// Nearest neighbours.
#[derive(Clone, Debug)]
pub struct Knn {
    params: KnnParams,
}

/// By what a column's differences are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// The range of the column.
    Range,
    /// The standard deviation of the column.
    Deviation,
}

/// What a missing cell gets for which there is no neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoNeighbour {
    /// The low end of the column's range.
    Zero,
    /// The column's median or most frequent level; the cells are listed.
    Median,
}

/// The parameters of `knn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnnParams {
    /// How many neighbours count; chosen on held-out observed cells where nothing is said.
    pub neighbours: Option<usize>,
    /// A neighbour's weight is the inverse squared distance to this power; chosen where nothing is said.
    pub power: Option<f64>,
    /// By what a column's differences are measured; chosen where nothing is said.
    pub metric: Option<Metric>,
    /// As if each pair had this many more features in common, with a difference as between any two rows.
    pub shrink: f64,
    /// How many training rows are kept as donors at most; 0 keeps all.
    pub bank_rows: usize,
    /// What a missing cell gets for which there is no neighbour.
    pub no_neighbour: NoNeighbour,
    /// Whether columns with a single observed value count as features in common.
    pub constants: Constants,
}

impl Default for KnnParams {
    fn default() -> KnnParams {
        KnnParams {
            neighbours: None,
            power: None,
            metric: None,
            shrink: 1.0,
            bank_rows: 50_000,
            no_neighbour: NoNeighbour::Median,
            constants: Constants::Leave,
        }
    }
}

impl KnnParams {
    /// The parameters of a preset.
    fn of_preset(name: &str) -> KnnParams {
        match name {
            "paper" => KnnParams {
                neighbours: Some(20),
                power: Some(1.0),
                metric: Some(Metric::Range),
                shrink: 0.0,
                bank_rows: 0,
                no_neighbour: NoNeighbour::Zero,
                constants: Constants::Keep,
            },
            _ => KnnParams::default(),
        }
    }
}

/// The row of the registry.
pub static SPEC: MethodSpec = MethodSpec {
    name: "knn",
    summary: "the weighted mean (or vote) of the nearest rows that have the value",
    avoid: "many columns of which few matter, and very long tables: every row is compared with every other",
    inductive: true,
    distributions: false,
    randomised: true,
    slow: false,
    presets: &[
        ("default", "neighbours, weights and metric chosen on held-out observed cells"),
        ("paper", "20 neighbours, inverse squared distances, columns scaled to the unit interval"),
    ],
    params: &[
        ParamSpec {
            name: "neighbours",
            doc: "how many neighbours count; `auto` chooses on held-out observed cells",
            expects: Expect::Auto(&Expect::Whole(1, 10_000)),
        },
        ParamSpec {
            name: "power",
            doc: "weights are the inverse squared distance to this power; `auto` chooses on held-out observed cells",
            expects: Expect::Auto(&Expect::Number(0.0, 10.0)),
        },
        ParamSpec {
            name: "metric",
            doc: "by what a column's differences are measured; `auto` chooses on held-out observed cells",
            expects: Expect::Auto(&Expect::Choice(&["range", "deviation"])),
        },
        ParamSpec {
            name: "shrink",
            doc: "as if each pair had this many more features in common, with an average difference",
            expects: Expect::Number(0.0, 1e6),
        },
        ParamSpec {
            name: "bank_rows",
            doc: "how many training rows are kept as donors at most; 0 keeps all",
            expects: Expect::Whole(0, u32::MAX as u64),
        },
        ParamSpec {
            name: "no_neighbour",
            doc: "what a hole without a neighbour gets: the low end of the range, or the median",
            expects: Expect::Choice(&["zero", "median"]),
        },
        ParamSpec {
            name: "constants",
            doc: "whether columns with a single observed value count as features in common",
            expects: Expect::Choice(&["keep", "leave"]),
        },
    ],
    preset_values: |name| {
        SPEC.presets.iter().any(|p| p.0 == name).then(|| serde_json::json!(KnnParams::of_preset(name)))
    },
    build: |settings| {
        let params = SPEC.params(settings, KnnParams::of_preset)?;
        let clip = SPEC.preset(settings)? != "paper";
        let finish = settings.finish.over(Finish { clip, ..Finish::default() });
        Ok(Box::new(MatrixImputer::new(&SPEC, Transductive(Knn { params }), finish)))
    },
    load: |file| load_matrix_model::<Transductive<Knn>>(&SPEC, file),
};

impl TransductiveMethod for Knn {
    type Model = Neighbours;
    type Params = KnnParams;

    fn params(&self) -> &KnnParams {
        &self.params
    }

    fn encoding(&self) -> Encoding {
        Encoding { layout: Layout::Flags, scale: Scale::MinMax, constants: self.params.constants }
    }

    fn learn(&self, data: &mut Encoded, run: &mut Run) -> Result<Learnt<Neighbours>> {
        let mut notes = Vec::new();
        let kept = self.sample(data, run, &mut notes);
        let chosen = self.choose(&kept, run, &mut notes)?;
        let weights = weights(&kept, chosen.metric);
        let bank = Bank::new(kept.x, weights, self.params.shrink);
        let model = Neighbours { bank, rule: chosen.rule, no_neighbour: self.params.no_neighbour };
        if model.fill_within(data, run, true)? {
            notes.push("time limit reached before every row had its neighbours".to_owned());
        }
        Ok(Learnt { model, notes })
    }
}

/// How donors become a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Rule {
    neighbours: usize,
    power: f64,
}

#[derive(Clone, Copy, Debug)]
struct Chosen {
    metric: Metric,
    rule: Rule,
}

impl Knn {
    /// The rows that are kept: all, or a sample in their order.
    fn sample(&self, data: &Encoded, run: &Run, notes: &mut Vec<String>) -> Encoded {
        let most = self.params.bank_rows;
        if most == 0 || data.rows <= most {
            return data.clone();
        }
        let rows = sample_rows(data.rows, most, &mut run.rng("donors", 0));
        notes.push(format!("{most} of {} rows are kept as donors (`bank_rows`)", data.rows));
        Encoded {
            rows: most,
            features: data.features.clone(),
            x: rows.iter().flat_map(|&i| data.row(i as usize)).copied().collect(),
            observed: rows.iter().flat_map(|&i| data.observed_row(i as usize)).copied().collect(),
        }
    }

    /// What was asked for, and where nothing was said, what fills held-out observed cells best.
    fn choose(&self, data: &Encoded, run: &mut Run, notes: &mut Vec<String>) -> Result<Chosen> {
        let KnnParams { neighbours, power, metric, .. } = self.params;
        if let (Some(neighbours), Some(power), Some(metric)) = (neighbours, power, metric) {
            return Ok(Chosen { metric, rule: Rule { neighbours, power } });
        }
        let only_or = |asked: Option<usize>| asked.map_or(NEIGHBOURS.to_vec(), |k| vec![k]);
        let mut rules = Vec::new();
        for neighbours in only_or(neighbours) {
            let powers = power.map_or(POWERS.to_vec(), |p| vec![p]);
            rules.extend(powers.into_iter().map(|power| Rule { neighbours, power }));
        }
        let mut shown = data.clone();
        let held = hold_out(&mut shown, 0.2, HELD_OUT, "knn held out", run);
        let fallback = Rule { neighbours: neighbours.unwrap_or(10), power: power.unwrap_or(1.0) };
        let mut best = (f64::INFINITY, Chosen { metric: metric.unwrap_or(Metric::Range), rule: fallback });
        let kept = run.time_left().map(|left| left.mul_f64(1.0 - CHOOSING_SHARE));
        let go_on = || !run.cancel().is_cancelled() && !run.is_down_to(kept);
        for metric in metric.map_or(METRICS.to_vec(), |m| vec![m]) {
            let errors = self.errors(&shown, &held, metric, &rules, &go_on, run);
            run.check()?;
            let Some(errors) = errors else { break };
            for (&rule, error) in rules.iter().zip(errors) {
                if error < best.0 {
                    best = (error, Chosen { metric, rule });
                }
            }
        }
        let Chosen { metric, rule } = best.1;
        let word = match metric {
            Metric::Range => "range",
            Metric::Deviation => "deviation",
        };
        notes.push(format!(
            "neighbours {}, power {}, metric {word}, chosen on held-out observed cells",
            rule.neighbours, rule.power
        ));
        Ok(best.1)
    }

    /// The mean absolute error of each rule on the held-out cells; none where it was told to stop.
    fn errors(
        &self,
        shown: &Encoded,
        held: &HeldOut,
        metric: Metric,
        rules: &[Rule],
        go_on: GoOn<'_>,
        run: &Run,
    ) -> Option<Vec<f64>> {
        let w = shown.width();
        let bank = Bank::new(shown.x.clone(), weights(shown, metric), self.params.shrink);
        let mut rows: Vec<f64> = Vec::new(); // [q, w]
        let mut wanted: Vec<Vec<usize>> = Vec::new();
        for group in held.cells.chunk_by(|a, b| a / w == b / w) {
            rows.extend(shown.row(group[0] / w));
            wanted.push(group.iter().map(|c| c % w).collect());
        }
        let most = rules.iter().map(|r| r.neighbours).max().unwrap_or(1);
        let found = run.install(|| bank.nearest(&rows, &wanted, most, go_on))?;
        let mut errors = vec![0.0; rules.len()];
        let donors = found.iter().flatten().zip(wanted.iter().flatten()).zip(&held.truth);
        for ((donors, &f), truth) in donors.filter(|((donors, _), _)| !donors.is_empty()) {
            for (error, rule) in errors.iter_mut().zip(rules) {
                *error += (rule.prediction(&bank, donors, f) - truth).abs();
            }
        }
        Some(errors)
    }
}

impl Rule {
    /// The weighted mean of feature `f` over the nearest donors, of which there is at least one.
    fn prediction(self, bank: &Bank, donors: &[Donor], f: usize) -> f64 {
        let w = bank.weights.len();
        let (mut sum, mut total) = (0.0, 0.0);
        for (donor, place) in places(donors, self.neighbours) {
            let weight = place * donor.distance.powf(-self.power);
            sum += weight * bank.x[donor.row * w + f];
            total += weight;
        }
        sum / total
    }
}

/// What each feature's differences are multiplied by. The flags of one column count together like one number.
fn weights(data: &Encoded, metric: Metric) -> Vec<f64> {
    if metric == Metric::Range {
        return vec![1.0; data.width()];
    }
    let mut weights = vec![0.0; data.width()];
    for group in data.columns() {
        let spread: f64 = group.clone().map(|f| variance(data.x.iter().skip(f).step_by(data.width()).copied())).sum();
        weights[group].fill(if spread > 0.0 { 1.0 / spread.sqrt() } else { 0.0 });
    }
    weights
}

/// The rows that donate, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    bank: Bank,
    rule: Rule,
    no_neighbour: NoNeighbour,
}

impl Neighbours {
    /// Fills the rows; true where the time ran out, where that counts.
    fn fill_within(&self, rows: &mut Encoded, run: &Run, timed: bool) -> Result<bool> {
        let w = rows.width();
        let columns = rows.columns();
        let holes: Vec<usize> = (0..rows.rows).filter(|&i| rows.observed_row(i).contains(&false)).collect();
        let pairs_at_once = 1 << 29;
        let at_once = (pairs_at_once / (self.bank.x.len() + 1)).clamp(64, 1 << 16);
        let go_on = || if timed { run.goes_on() } else { !run.cancel().is_cancelled() };
        for (batch, indices) in holes.chunks(at_once).enumerate() {
            run.report("rows", (batch * at_once) as u64, holes.len() as u64, "");
            let mut queries = Vec::with_capacity(indices.len() * w); // [q, w]
            let mut missing: Vec<Vec<&Range<usize>>> = Vec::with_capacity(indices.len());
            for &i in indices {
                let seen = rows.observed_row(i);
                queries.extend(rows.row(i).iter().zip(seen).map(|(&v, &seen)| if seen { v } else { f64::NAN }));
                missing.push(columns.iter().filter(|c| !seen[c.start]).collect());
            }
            let wanted: Vec<Vec<usize>> = missing.iter().map(|m| m.iter().map(|c| c.start).collect()).collect();
            let found = run.install(|| self.bank.nearest(&queries, &wanted, self.rule.neighbours, &go_on));
            run.check()?;
            let Some(found) = found else { return Ok(true) };
            for ((&i, missing), found) in indices.iter().zip(&missing).zip(&found) {
                for (column, donors) in missing.iter().zip(found) {
                    for f in column.start..column.end {
                        rows.x[i * w + f] = match (donors.is_empty(), self.no_neighbour) {
                            (false, _) => self.rule.prediction(&self.bank, donors, f),
                            (true, NoNeighbour::Zero) => 0.0,
                            (true, NoNeighbour::Median) => f64::NAN,
                        };
                    }
                }
            }
        }
        Ok(false)
    }
}

/// What of [`Neighbours`] is not a tensor.
#[derive(Serialize, Deserialize)]
struct State {
    rule: Rule,
    no_neighbour: NoNeighbour,
    shrink: f64,
}

impl MatrixModel for Neighbours {
    fn predict(&self, rows: &mut Encoded, _: Want, run: &Run) -> Result<Option<Vec<Distributions>>> {
        self.fill_within(rows, run, false).map(|_| None)
    }

    fn kept_rows(&self) -> Vec<KeptNumbers> {
        let rows = self.bank.x.len() / self.bank.weights.len().max(1);
        vec![KeptNumbers { what: "the neighbours of new rows", rows, features: None }]
    }

    fn store(&self, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        let w = self.bank.weights.len();
        tensors.insert("bank".to_owned(), Tensor::F64(vec![self.bank.x.len() / w, w], self.bank.x.clone()));
        tensors.insert("weights".to_owned(), Tensor::F64(vec![w], self.bank.weights.clone()));
        serde_json::json!(State { rule: self.rule, no_neighbour: self.no_neighbour, shrink: self.bank.shrink })
    }

    fn restore(file: &ModelFile, width: usize) -> Result<Neighbours> {
        let State { rule, no_neighbour, shrink } = file.state()?;
        let (bank_shape, bank) = file.f64s("bank")?;
        let (weights_shape, weights) = file.f64s("weights")?;
        let rows_fit = bank_shape.len() == 2 && bank_shape[0] <= u32::MAX as usize && bank_shape[1] == width;
        if !rows_fit || weights_shape != [width] || bank.len() != bank_shape[0] * width {
            return Err(Error::damaged(format!("a bank of {bank_shape:?}: expected rows of {width} features")));
        }
        let numbers = weights.iter().chain([&rule.power, &shrink]);
        if !numbers.clone().all(|v| v.is_finite() && *v >= 0.0) || bank.iter().any(|v| v.is_infinite()) {
            return Err(Error::damaged("a weight or a donor is not a finite number"));
        }
        // The searches reserve room for so many.
        if !(1..=10_000).contains(&rule.neighbours) {
            return Err(Error::damaged(format!("expected 1 to 10000 neighbours, got {}", rule.neighbours)));
        }
        // The features of a column are missing together, or one of them would donate a missing cell.
        for row in bank.chunks_exact(width) {
            if file
                .header
                .encoder
                .columns()
                .into_iter()
                .any(|c| row[c.clone()].iter().any(|v| v.is_nan() != row[c.start].is_nan()))
            {
                return Err(Error::damaged("a donor has some flags of a column, but not all"));
            }
        }
        Ok(Neighbours { bank: Bank::new(bank.to_vec(), weights.to_vec(), shrink), rule, no_neighbour })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::{Column, Settings, Table};

    fn table() -> Table {
        let schema = crate::fixture::schema(&["x", "y"], "colour", ["blue", "red"]);
        let columns = vec![
            Column::numbers([Some(0.0), Some(1.0), Some(9.0), Some(10.0), Some(0.0), Some(10.0)]),
            Column::numbers([Some(2.0), Some(4.0), Some(20.0), Some(24.0), None, Some(22.0)]),
            Column::codes([Some(0), Some(0), Some(1), Some(1), Some(0), None]),
        ];
        Table::new(schema, columns).unwrap()
    }

    fn settings(preset: &str, params: &[(&str, &str)]) -> Settings {
        let params = params.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Settings { preset: Some(preset.to_owned()), params, ..Settings::default() }
    }

    #[test]
    fn numbers_are_averaged_and_levels_voted_on() {
        let settings = settings("paper", &[("neighbours", "2"), ("power", "0")]);
        let out = (SPEC.build)(&settings).unwrap().impute(&table(), &mut Run::new(0, 1).unwrap()).unwrap();
        assert!((out.table.number(4, 1) - 3.0).abs() < 1e-12); // of 2 and 4
        assert_eq!(out.table.number(5, 2), 1.0);
    }

    #[test]
    fn the_default_says_what_it_chose() {
        let out =
            (SPEC.build)(&settings("default", &[])).unwrap().impute(&table(), &mut Run::new(0, 1).unwrap()).unwrap();
        assert!(out.notes.iter().any(|n| n.starts_with("neighbours ")), "{:?}", out.notes);
        assert_eq!(out.table.number(5, 2), 1.0);
    }

    #[test]
    fn a_sampled_bank_is_said() {
        let settings = settings("paper", &[("bank_rows", "3")]);
        let out = (SPEC.build)(&settings).unwrap().impute(&table(), &mut Run::new(0, 1).unwrap()).unwrap();
        assert_eq!(out.notes, ["3 of 6 rows are kept as donors (`bank_rows`)"]);
    }

    #[test]
    fn a_row_with_nothing_observed_gets_the_median_and_is_listed() {
        let mut run = Run::new(0, 1).unwrap();
        let imputer = (SPEC.build)(&settings("default", &[])).unwrap();
        let fitted = imputer.as_inductive().unwrap().fit(&table(), &mut run).unwrap();
        let mut empty = table().select_rows(&[0]);
        (0..3).for_each(|j| empty.hide(0, j));
        let out = fitted.transform(&empty, &mut run).unwrap();
        assert_eq!(out.table.number(0, 0), 5.0);
        assert_eq!(out.fallbacks.len(), 3);
    }
}
