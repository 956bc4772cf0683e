//! Tables become numbers, and filled numbers become cells again.
//!
//! Notation: `n` rows, `w` features. A feature is what a method sees: a number, a flag that says whether the cell has a
//! certain level, or the code of a level.

use crate::distributions::{ColumnDistributions, Distributions, PredictiveDistributions};
use crate::error::{Error, Result};
use crate::imputer::Fallback;
use crate::model_file::{ModelFile, Tensor};
use crate::schema::{ColumnSpec, Kind, Schema};
use crate::table::{Table, Values};
use crate::validation::{ColumnScore, Measure, ValidationScore};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A category with more levels than this gets flags for its most frequent ones only.
pub const MAX_FLAGS: usize = 64;

/// Scaled numbers beyond this are no use to a method: their squares are not finite in 32-bit floats.
const FARTHEST: f64 = 1e18;

/// How a column with levels is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// One feature a column: the code of the level.
    Codes,
    /// One feature a level: 0 or 1. Ordered levels and booleans stay one feature.
    Flags,
}

/// How numbers are scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// As they are.
    Raw,
    /// To [0, 1] by the smallest and the largest observed value, or those that the column is said to have.
    MinMax,
    /// To [0, 1] by the smallest and the largest observed value, for methods that work on 32-bit floats: a prediction that
    /// is an observed value in them comes back as that value, bit for bit.
    Unit,
    /// To mean 0 and deviation 1 over the observed values.
    Standard,
}

/// What becomes of columns with a single observed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Constants {
    /// They are features like others.
    Keep,
    /// They are no features; their holes get that value.
    Leave,
}

/// What a method wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encoding {
    /// How a column with levels is written down.
    pub layout: Layout,
    /// How numbers are scaled.
    pub scale: Scale,
    /// What becomes of columns with a single observed value.
    pub constants: Constants,
}

/// How filled numbers are finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    /// Whether integers are filled whole.
    pub round: bool,
    /// Whether filled numbers are kept within the observed range. Bounds that the user gives always hold.
    pub clip: bool,
    /// Whether a column without a single observed value is filled with zeros, rather than left as it is.
    pub zero_empty: bool,
}

impl Default for Finish {
    fn default() -> Finish {
        Finish { round: true, clip: true, zero_empty: false }
    }
}

/// What a feature's number means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Meaning {
    /// A number (the position, for ordered levels; 0 or 1, for two levels).
    Number,
    /// Whether the cell has this level.
    Flag(u32),
    /// The code of a level, out of this many.
    Category(u32),
}

/// One column of the encoded matrix: `x = (value - centre) / scale`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feature {
    /// The table's column it comes from.
    pub column: usize,
    /// What its number means.
    pub meaning: Meaning,
    /// What is subtracted.
    pub centre: f64,
    /// What is divided by; never 0.
    pub scale: f64,
}

/// A table as numbers: `x` is `[n, w]`, row by row, `NaN` where missing.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// How many rows.
    pub rows: usize,
    /// What the columns of `x` are.
    pub features: Arc<[Feature]>,
    /// The numbers, `[n, w]`.
    pub x: Vec<f64>,
    /// Which of them are observed, `[n, w]`.
    pub observed: Vec<bool>,
}

impl Encoded {
    /// How many features.
    pub fn width(&self) -> usize {
        self.features.len()
    }

    /// A row.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.x[i * self.width()..(i + 1) * self.width()]
    }

    /// Which features of a row are observed.
    pub fn observed_row(&self, i: usize) -> &[bool] {
        &self.observed[i * self.width()..(i + 1) * self.width()]
    }

    /// The observed values of a feature.
    pub fn observed_values(&self, f: usize) -> Vec<f64> {
        let w = self.width();
        (0..self.rows).filter(|i| self.observed[i * w + f]).map(|i| self.x[i * w + f]).collect()
    }

    /// How many values of a feature are missing.
    pub fn missing_in(&self, f: usize) -> usize {
        let w = self.width();
        (0..self.rows).filter(|i| !self.observed[i * w + f]).count()
    }
}

/// What is known of one column: enough to fill it when everything else fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Known {
    /// The median of numbers, the most frequent level; none without an observed cell.
    typical: Option<f64>,
    low: f64,
    high: f64,
}

/// How the tables of one schema become numbers and back; learnt from observed cells only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encoder {
    schema: Schema,
    encoding: Encoding,
    features: Vec<Feature>,
    known: Vec<Known>,
    /// The distinct observed values of each feature, rising, where numbers are scaled for 32-bit floats. In a model file
    /// they are tensors, `[w]`.
    #[serde(skip)]
    values: Vec<Vec<f64>>,
}

impl Encoder {
    /// Learns ranges, means and levels from the observed cells.
    ///
    /// # Errors
    /// When the table has no row or no column, or numbers too large to scale.
    pub fn fit(table: &Table, encoding: Encoding) -> Result<Encoder> {
        if table.rows() == 0 {
            return Err(Error::EmptyTable { what: "rows" });
        }
        if table.cols() == 0 {
            return Err(Error::EmptyTable { what: "columns" });
        }
        let mut features = Vec::new();
        let mut known = Vec::new();
        let mut distinct = Vec::new();
        for (j, spec) in table.schema().columns().iter().enumerate() {
            let values: Vec<f64> = if spec.is_used() {
                (0..table.rows()).map(|i| table.number(i, j)).filter(|v| !v.is_nan()).collect()
            } else {
                Vec::new()
            };
            known.push(Known::of(spec, &values));
            if !values.is_empty() {
                features_of(j, spec, &values, encoding, &mut features);
            }
            if encoding.scale == Scale::Unit {
                distinct.resize_with(features.len(), || distinct_values(spec, &values));
            }
            if features.last().is_some_and(|f| !f.centre.is_finite() || !f.scale.is_finite()) {
                return Err(Error::Extreme { column: spec.name.clone() });
            }
        }
        Ok(Encoder { schema: table.schema().clone(), encoding, features, known, values: distinct })
    }

    /// The columns that were learnt.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// What the method sees.
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// The cells of a table as numbers. The table's columns are matched by name, its levels by their text.
    ///
    /// # Errors
    /// When a column that the encoder knows is not there, or is of another type.
    pub fn encode(&self, table: &Table) -> Result<Encoded> {
        let (n, w) = (table.rows(), self.features.len());
        let mut x = vec![f64::NAN; n * w]; // [n, w]
        let mut observed = vec![false; n * w]; // [n, w]
        let map = self.matching(table)?;
        let farthest = if self.encoding.scale == Scale::Raw { f64::MAX } else { FARTHEST };
        for (f, feature) in self.features.iter().enumerate() {
            let (j, codes) = &map[feature.column];
            for (i, cell) in x.iter_mut().skip(f).step_by(w).enumerate().take(n) {
                let value = match table.values(*j) {
                    Values::Numbers(v) => v[i],
                    Values::Codes(c) => codes.get(c[i] as usize).copied().unwrap_or(f64::NAN),
                    Values::Opaque => f64::NAN,
                };
                if value.is_nan() {
                    continue;
                }
                let value = match feature.meaning {
                    Meaning::Flag(level) => f64::from(u8::from(value == f64::from(level))),
                    Meaning::Number | Meaning::Category(_) => value,
                };
                let value = (value - feature.centre) / feature.scale;
                // A number that far from all that was learnt would only overflow: a method takes it as unknown.
                if value.abs() <= farthest {
                    *cell = value;
                    observed[i * w + f] = true;
                }
            }
        }
        Ok(Encoded { rows: n, features: self.features.clone().into(), x, observed })
    }

    /// Puts filled numbers into the holes of a table, and lists what was filled in another way or left.
    ///
    /// A hole for which `filled` holds `NaN` gets the column's median or most frequent level, and is listed.
    ///
    /// # Errors
    /// When a filled number is infinite.
    pub fn decode(
        &self,
        table: &Table,
        filled: &Encoded,
        finish: Finish,
        method: &'static str,
    ) -> Result<(Table, Vec<Fallback>)> {
        let mut out = table.clone();
        let mut fallbacks = Vec::new();
        let map = self.matching(table)?;
        let mut of_column = vec![Vec::new(); self.schema.len()];
        self.features.iter().enumerate().for_each(|(f, feature)| of_column[feature.column].push(f));
        for (column, (spec, known)) in self.schema.columns().iter().zip(&self.known).enumerate() {
            let (j, ref codes) = map[column];
            let holes: Vec<usize> = (0..table.rows()).filter(|&i| !table.observed().get(i, j)).collect();
            if holes.is_empty() || !spec.is_used() {
                if !holes.is_empty() {
                    fallbacks.push(left(spec, holes.len(), "the column is passed through"));
                }
                continue;
            }
            if !spec.is_filled() {
                fallbacks.push(left(spec, holes.len(), "the column is not among those to fill"));
                continue;
            }
            let Some(typical) = known.typical else {
                let mut listed = left(spec, holes.len(), "the column has no observed value");
                if finish.zero_empty && spec.kind.is_number() {
                    listed.done = "zeros".to_owned();
                    holes.iter().for_each(|&i| out.fill(i, j, 0.0));
                }
                fallbacks.push(listed);
                continue;
            };
            let features = &of_column[column];
            // Levels of the table may stand in another order than those that were learnt, or not be there.
            let mut code_of = vec![None; spec.levels.len()];
            for (at, code) in codes.iter().enumerate().filter(|(_, code)| !code.is_nan()) {
                code_of[*code as usize].get_or_insert(at);
            }
            let mut unanswered = 0;
            for i in holes {
                let value = if features.is_empty() {
                    typical // a constant column
                } else {
                    self.value_of(features, filled.row(i)).unwrap_or_else(|| {
                        unanswered += 1;
                        typical
                    })
                };
                if !value.is_finite() {
                    return Err(Error::NotFinite { method, place: format!("column `{}`, row {}", spec.name, i + 1) });
                }
                let value = known.finish(spec, value, finish);
                match code_of.get(value as usize).copied().flatten() {
                    _ if !spec.kind.has_levels() => out.fill(i, j, value),
                    Some(code) => out.fill(i, j, code as f64),
                    None => out.fill_with_level(i, j, &spec.levels[value as usize]),
                }
            }
            if unanswered > 0 {
                fallbacks.push(Fallback {
                    column: spec.name.clone(),
                    cells: unanswered,
                    reason: format!("`{method}` has no answer for these cells"),
                    done: if spec.kind.has_levels() { "the most frequent level" } else { "the median" }.to_owned(),
                });
            }
        }
        Ok((out, fallbacks))
    }

    /// The distributions of what features lack as those of the holes of a table, of which `data` is the encoding.
    ///
    /// # Errors
    /// When a column that the encoder knows is not there, or is of another type.
    pub(crate) fn distributions(
        &self,
        table: &Table,
        data: &Encoded,
        of: Vec<Distributions>,
        finish: Finish,
    ) -> Result<PredictiveDistributions> {
        let map = self.matching(table)?;
        let (mut columns, w) = (Vec::new(), data.width());
        for (f, (feature, of)) in self.features.iter().zip(of).enumerate() {
            let (spec, known) = (&self.schema.columns()[feature.column], &self.known[feature.column]);
            let column = map[feature.column].0;
            if !spec.is_filled() {
                continue;
            }
            // A level that was never seen is no number, but it is no hole either.
            let lacking = (0..table.rows()).filter(|i| !data.observed[i * w + f]);
            let (rows, holes): (Vec<usize>, Vec<usize>) = lacking
                .enumerate()
                .filter(|(_, i)| !table.observed().get(*i, column))
                .map(|(place, i)| (i, place))
                .unzip();
            let value = |x: f64| known.finish(spec, self.raw(f, x), finish);
            let of = match of {
                Distributions::Quantiles(of) => {
                    Distributions::Quantiles(holes.iter().map(|&h| of[h].map(value)).collect())
                }
                Distributions::Shares { values, shares } => {
                    let width = values.len();
                    let shares = holes.iter().flat_map(|h| &shares[h * width..(h + 1) * width]).copied().collect();
                    Distributions::Shares { values: values.into_iter().map(value).collect(), shares }
                }
            };
            let has_levels = spec.kind.has_levels();
            columns.push(ColumnDistributions {
                column,
                levels: spec.levels.clone(),
                unordered: has_levels && spec.kind != Kind::Ordered,
                step: match finish.round {
                    _ if has_levels => 1.0,
                    true => spec.step,
                    false => 0.0,
                },
                rows,
                of,
            });
        }
        Ok(PredictiveDistributions { columns })
    }

    /// The scores of features as those of the columns that are to be filled.
    pub(crate) fn scores(&self, of: Vec<ValidationScore>) -> Vec<ColumnScore> {
        let score = |(feature, validation): (&Feature, ValidationScore)| {
            let spec = &self.schema.columns()[feature.column];
            let (measure, unit) = match feature.meaning {
                Meaning::Number => (Measure::AbsoluteError, feature.scale),
                Meaning::Category(_) => (Measure::LogLoss, 1.0),
                Meaning::Flag(_) => return None,
            };
            let (column, kind) = (spec.name.clone(), spec.kind);
            spec.is_filled().then(|| ColumnScore { column, kind, measure, validation: validation.times(unit) })
        };
        self.features.iter().zip(of).filter_map(score).collect()
    }

    /// The number of a feature as one of the table.
    fn raw(&self, f: usize, x: f64) -> f64 {
        let feature = &self.features[f];
        let single = |value: f64| ((value - feature.centre) / feature.scale) as f32;
        let values = self.values.get(f).map_or(&[][..], Vec::as_slice);
        let at = values.partition_point(|&v| single(v) < x as f32);
        match values.get(at) {
            Some(&value) if single(value) == x as f32 => value,
            _ => x * feature.scale + feature.centre,
        }
    }

    /// Puts what is not in the header of a model file into its tensors.
    pub(crate) fn store(&self, tensors: &mut BTreeMap<String, Tensor>) {
        for (f, values) in self.values.iter().enumerate() {
            tensors.insert(values_name(f), Tensor::F64(vec![values.len()], values.clone()));
        }
    }

    /// The encoder of a model file, with what is not in its header.
    ///
    /// # Errors
    /// When something is not there or does not fit.
    pub(crate) fn restore(file: &ModelFile) -> Result<Encoder> {
        let mut encoder = file.header.encoder.clone();
        if encoder.encoding.scale == Scale::Unit {
            for (f, feature) in encoder.features.iter().enumerate() {
                let values = file.f64s(&values_name(f))?.1;
                let rising = values.iter().all(|v| v.is_finite()) && values.windows(2).all(|w| w[0] < w[1]);
                if !rising || (values.is_empty() && feature.meaning == Meaning::Number) {
                    return Err(Error::damaged(format!("the values of feature {f}")));
                }
                encoder.values.push(values.to_vec());
            }
        }
        Ok(encoder)
    }

    /// The value that a row's features stand for; none where the method left them `NaN`.
    fn value_of(&self, features: &[usize], row: &[f64]) -> Option<f64> {
        let raw = |f: usize| self.raw(f, row[f]);
        if let Meaning::Flag(_) = self.features[features[0]].meaning {
            let best = features
                .iter()
                .copied()
                .filter(|&f| !row[f].is_nan())
                .reduce(|a, b| if raw(b) > raw(a) { b } else { a })?;
            let Meaning::Flag(level) = self.features[best].meaning else {
                unreachable!("all features of a column agree")
            };
            return Some(f64::from(level));
        }
        let value = raw(features[0]);
        (!value.is_nan()).then_some(value)
    }

    /// For each column of the schema: where it stands in the table, and the learnt code of each of the table's levels
    /// (`NaN` for a level that was never seen).
    fn matching(&self, table: &Table) -> Result<Vec<(usize, Vec<f64>)>> {
        let same = table.schema() == &self.schema;
        let names = table.schema().columns().iter().map(|c| c.name.as_str());
        let places: HashMap<&str, usize> = if same { HashMap::new() } else { names.zip(0..).collect() };
        self.schema
            .columns()
            .iter()
            .enumerate()
            .map(|(column, spec)| {
                if same {
                    return Ok((column, (0..spec.levels.len()).map(|c| c as f64).collect()));
                }
                let place = places.get(spec.name.as_str()).copied();
                let j = place.ok_or_else(|| Error::ColumnNotThere { column: spec.name.clone(), kind: spec.kind })?;
                let other = &table.schema().columns()[j];
                let agrees = other.kind.is_number() == spec.kind.is_number()
                    && other.kind.has_levels() == spec.kind.has_levels();
                if !agrees && spec.is_used() {
                    return Err(Error::Kind {
                        column: spec.name.clone(),
                        expected: spec.kind.to_string(),
                        got: other.kind.to_string(),
                    });
                }
                let known: HashMap<&str, usize> = spec.levels.iter().map(String::as_str).zip(0..).collect();
                let code = |level: &String| known.get(level.as_str()).map_or(f64::NAN, |&c| c as f64);
                Ok((j, other.levels.iter().map(code).collect()))
            })
            .collect()
    }

    /// Checks an encoder that came from a file.
    pub(crate) fn validate(&self) -> Result<()> {
        let damaged = |what: String| Err(Error::damaged(what));
        if self.known.len() != self.schema.len() {
            return damaged(format!("{} columns described, {} in the schema", self.known.len(), self.schema.len()));
        }
        for (spec, known) in self.schema.columns().iter().zip(&self.known) {
            if !known.fits(spec) {
                return damaged(format!("what is known of column `{}`", spec.name));
            }
        }
        let mut flags_of_column = vec![None; self.schema.len()];
        for feature in &self.features {
            let Some(spec) = self.schema.columns().get(feature.column) else {
                return damaged(format!("a feature of column {}, of {}", feature.column + 1, self.schema.len()));
            };
            let level_fits = match feature.meaning {
                Meaning::Number => true,
                Meaning::Flag(level) => spec.kind.has_levels() && (level as usize) < spec.levels.len(),
                // A code is an index as it is.
                Meaning::Category(levels) => {
                    let as_it_is = feature.centre == 0.0 && feature.scale == 1.0;
                    spec.kind.has_levels() && levels as usize == spec.levels.len() && as_it_is
                }
            };
            // A scale that is not a normal number makes infinities of all that it divides.
            let scales = feature.centre.is_finite() && feature.scale.is_normal();
            let known = self.known[feature.column].typical.is_some() && spec.is_used();
            let has_a_level = !spec.kind.has_levels() || !spec.levels.is_empty();
            if !level_fits || !scales || !known || !has_a_level {
                return damaged(format!("the feature of column `{}`", spec.name));
            }
            // Either one feature, or flags.
            let is_flag = matches!(feature.meaning, Meaning::Flag(_));
            if flags_of_column[feature.column].replace(is_flag).is_some_and(|other| !(other && is_flag)) {
                return damaged(format!("the features of column `{}`", spec.name));
            }
        }
        Ok(())
    }
}

impl Known {
    fn of(spec: &ColumnSpec, values: &[f64]) -> Known {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if values.is_empty() {
            return Known { typical: None, low: 0.0, high: 0.0 };
        }
        let typical = if spec.kind.has_levels() { most_frequent(values, spec.levels.len()) } else { median(values) };
        Known { typical: Some(typical), low, high }
    }

    /// Whether this can be known of such a column: what comes from a file may be anything.
    fn fits(&self, spec: &ColumnSpec) -> bool {
        let ordered = |low: f64, high: f64| low <= high && low.is_finite() && high.is_finite();
        let is_level = |code: f64| code.fract() == 0.0 && (0.0..spec.levels.len() as f64).contains(&code);
        let typical_fits =
            self.typical.is_none_or(|t| if spec.kind.has_levels() { is_level(t) } else { t.is_finite() });
        typical_fits
            && ordered(self.low, self.high)
            && spec.bounds.is_none_or(|b| b.low <= b.high)
            && spec.step.is_finite()
            && spec.step >= 0.0
    }

    /// Rounds and bounds a filled number.
    fn finish(&self, spec: &ColumnSpec, value: f64, finish: Finish) -> f64 {
        if spec.kind.has_levels() {
            return value.round().clamp(0.0, spec.levels.len() as f64 - 1.0);
        }
        let (mut low, mut high) = if finish.clip { (self.low, self.high) } else { (f64::NEG_INFINITY, f64::INFINITY) };
        if let Some(bounds) = spec.bounds {
            (low, high) = (low.max(bounds.low), high.min(bounds.high));
            if low > high {
                (low, high) = (bounds.low, bounds.high); // every observed value is out of bounds
            }
        }
        let value = value.clamp(low, high);
        if !finish.round || spec.step == 0.0 {
            return value;
        }
        // Dividing by the inverse of a step such as 0.001 would not give back the nearest float.
        let rounded = (value / spec.step).round() * spec.step;
        if rounded > high {
            (high / spec.step).floor() * spec.step
        } else if rounded < low {
            (low / spec.step).ceil() * spec.step
        } else {
            rounded
        }
    }
}

fn values_name(feature: usize) -> String {
    format!("encoder.{feature}.values")
}

/// The distinct values of a number, rising; none of levels, which are codes.
fn distinct_values(spec: &ColumnSpec, values: &[f64]) -> Vec<f64> {
    if matches!(spec.kind, Kind::Categorical | Kind::Boolean) {
        return Vec::new();
    }
    let mut distinct = values.to_vec();
    distinct.sort_unstable_by(f64::total_cmp);
    distinct.dedup();
    distinct
}

fn left(spec: &ColumnSpec, cells: usize, reason: &str) -> Fallback {
    Fallback { column: spec.name.clone(), cells, reason: reason.to_owned(), done: Fallback::LEFT.to_owned() }
}

/// The features of one column with observed values.
fn features_of(column: usize, spec: &ColumnSpec, values: &[f64], encoding: Encoding, features: &mut Vec<Feature>) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if low == high && spec.range.is_none() && encoding.constants == Constants::Leave {
        return;
    }
    let number = |values: &[f64], low: f64, high: f64| {
        let (centre, scale) = match encoding.scale {
            Scale::Raw => (0.0, 1.0),
            Scale::MinMax | Scale::Unit => (low, high - low),
            Scale::Standard => mean_and_deviation(values),
        };
        // A single value becomes 0, and so do values that differ by less than can be divided by.
        let scale = if scale > 0.0 && !scale.is_subnormal() { scale } else { 1.0 };
        Feature { column, meaning: Meaning::Number, centre, scale }
    };
    match (spec.kind, encoding.layout) {
        (Kind::Categorical | Kind::Boolean, Layout::Codes) => {
            let meaning = Meaning::Category(spec.levels.len() as u32);
            features.push(Feature { column, meaning, centre: 0.0, scale: 1.0 });
        }
        (Kind::Categorical, Layout::Flags) => {
            let mut counts = vec![0_usize; spec.levels.len()];
            values.iter().for_each(|&v| counts[v as usize] += 1);
            let mut seen: Vec<u32> = (0..counts.len() as u32).filter(|&c| counts[c as usize] > 0).collect();
            if seen.len() > MAX_FLAGS {
                seen.sort_by_key(|&c| (usize::MAX - counts[c as usize], c));
                seen.truncate(MAX_FLAGS);
                seen.sort_unstable();
            }
            for level in seen {
                let flags: Vec<f64> = values.iter().map(|&v| f64::from(u8::from(v == f64::from(level)))).collect();
                let mut feature = number(&flags, 0.0, 1.0);
                feature.meaning = Meaning::Flag(level);
                if encoding.scale == Scale::MinMax {
                    // Two rows of different levels differ in two flags: together they count like the range of a number.
                    feature.scale = std::f64::consts::SQRT_2;
                }
                features.push(feature);
            }
        }
        _ => {
            let range = spec.range.filter(|_| encoding.scale != Scale::Unit);
            let (low, high) = range.map_or((low, high), |r| (r.low, r.high));
            features.push(number(values, low, high));
        }
    }
}

/// The mean and the population deviation.
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

/// The median; the mean of the two middle values of an even number.
///
/// # Panics
/// Without a value.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        return sorted[half];
    }
    let (low, high) = (sorted[half - 1], sorted[half]);
    let mean = (low + high) / 2.0;
    if mean.is_finite() { mean } else { low / 2.0 + high / 2.0 }
}

/// The most frequent code; the smallest of several.
fn most_frequent(codes: &[f64], levels: usize) -> f64 {
    let mut counts = vec![0_usize; levels];
    codes.iter().for_each(|&c| counts[c as usize] += 1);
    (0..levels).max_by_key(|&c| (counts[c], levels - c)).unwrap_or(0) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Bounds;
    use crate::table::Column;

    const FLAGS: Encoding = Encoding { layout: Layout::Flags, scale: Scale::MinMax, constants: Constants::Leave };

    fn mixed() -> Table {
        let schema = Schema::new(vec![
            ColumnSpec::new("age", Kind::Integer),
            ColumnSpec::with_levels("colour", Kind::Categorical, ["blue", "red", "green"]),
            ColumnSpec::new("one", Kind::Continuous),
            ColumnSpec::new("id", Kind::Identifier),
            ColumnSpec::new("empty", Kind::Continuous),
        ])
        .unwrap();
        let columns = vec![
            Column::numbers([Some(10.0), Some(30.0), None]),
            Column::codes([Some(0), None, Some(2)]),
            Column::numbers([Some(5.0), None, Some(5.0)]),
            Column::opaque(vec![true, true, false]),
            Column::numbers([None, None, None]),
        ];
        Table::new(schema, columns).unwrap()
    }

    #[test]
    fn numbers_go_to_the_unit_interval_and_levels_to_flags() {
        let encoder = Encoder::fit(&mixed(), FLAGS).unwrap();
        let encoded = encoder.encode(&mixed()).unwrap();
        // age, blue, green; red was never observed, `one` is constant, `id` opaque, `empty` empty
        assert_eq!(encoded.width(), 3);
        assert_eq!(encoded.row(0)[0], 0.0);
        assert_eq!(encoded.row(1)[0], 1.0);
        assert!(encoded.row(2)[0].is_nan());
        assert!(encoded.row(0)[1] > 0.7 && encoded.row(0)[2] == 0.0);
        assert_eq!(encoded.observed_row(1), [true, false, false]);
    }

    #[test]
    fn filled_numbers_are_rounded_levels_chosen_and_the_rest_listed() {
        let table = mixed();
        let encoder = Encoder::fit(&table, FLAGS).unwrap();
        let mut filled = encoder.encode(&table).unwrap();
        filled.x[2 * 3] = 0.52; // age of row 3: 20.4
        (filled.x[3 + 1], filled.x[3 + 2]) = (0.2, 0.4); // colour of row 2: green
        let (out, fallbacks) = encoder.decode(&table, &filled, Finish::default(), "test").unwrap();
        assert_eq!(out.number(2, 0), 20.0);
        assert_eq!(out.number(1, 1), 2.0);
        assert_eq!(out.number(1, 2), 5.0);
        let listed: Vec<&str> = fallbacks.iter().map(|f| f.column.as_str()).collect();
        assert_eq!(listed, ["id", "empty"]);
    }

    #[test]
    fn a_hole_without_an_answer_gets_the_median_and_is_listed() {
        let table = mixed();
        let encoder = Encoder::fit(&table, FLAGS).unwrap();
        let (out, fallbacks) =
            encoder.decode(&table, &encoder.encode(&table).unwrap(), Finish::default(), "test").unwrap();
        assert_eq!(out.number(2, 0), 20.0);
        assert!(fallbacks.iter().any(|f| f.column == "age" && f.cells == 1 && f.done == "the median"));
    }

    #[test]
    fn bounds_and_the_observed_range_hold() {
        let mut spec = ColumnSpec::new("age", Kind::Integer);
        let known = Known::of(&spec, &[3.0, 90.0]);
        let clip = Finish { round: true, clip: true, zero_empty: false };
        let open = Finish { round: false, clip: false, zero_empty: false };
        assert_eq!(known.finish(&spec, 200.4, clip), 90.0);
        assert_eq!(known.finish(&spec, 200.4, open), 200.4);
        spec.bounds = Some(Bounds { low: 0.5, high: 120.5 });
        assert_eq!(known.finish(&spec, 200.4, open), 120.5);
        assert_eq!(known.finish(&spec, 200.4, Finish { clip: false, ..clip }), 120.0);
    }

    #[test]
    fn levels_are_matched_by_their_text() {
        let encoder = Encoder::fit(&mixed(), FLAGS).unwrap();
        let mut specs = Vec::from(mixed().schema().clone());
        specs[1].levels = vec!["green".into(), "purple".into(), "blue".into()];
        let columns = vec![
            Column::numbers([Some(10.0)]),
            Column::codes([Some(1)]),
            Column::numbers([None]),
            Column::opaque(vec![true]),
            Column::numbers([None]),
        ];
        let rows = Table::new(Schema::new(specs).unwrap(), columns).unwrap();
        let encoded = encoder.encode(&rows).unwrap();
        assert!(!encoded.observed_row(0)[1], "a level that was never seen is not observed");
        assert_eq!(encoder.decode(&rows, &encoded, Finish::default(), "test").unwrap().0.number(0, 1), 1.0);
    }

    #[test]
    fn a_code_that_a_file_scales_is_refused() {
        let codes = Encoding { layout: Layout::Codes, ..FLAGS };
        let mut encoder = Encoder::fit(&mixed(), codes).unwrap();
        assert!(encoder.validate().is_ok());
        encoder.features[1].scale = 0.5;
        assert!(matches!(encoder.validate(), Err(Error::ModelFile { .. })));
    }

    #[test]
    fn what_a_file_cannot_know_of_a_column_is_refused() {
        let encoder = Encoder::fit(&mixed(), FLAGS).unwrap();
        assert!(encoder.validate().is_ok());
        let damages: [fn(&mut Encoder); 9] = [
            |e| e.features[0].scale = 1e-320,
            |e| e.features[0].scale = 0.0,
            |e| e.known[0].typical = None,
            |e| e.schema.column_mut(0).role = crate::schema::Role::Ignore,
            |e| (e.known[0].low, e.known[0].high) = (2.0, 1.0),
            |e| e.known[1].typical = Some(3.0),
            |e| e.schema.column_mut(0).bounds = Some(Bounds { low: 2.0, high: 1.0 }),
            |e| e.schema.column_mut(0).step = -1.0,
            |e| e.features[1].column = 0,
        ];
        for damage in damages {
            let mut damaged = encoder.clone();
            damage(&mut damaged);
            assert!(matches!(damaged.validate(), Err(Error::ModelFile { .. })), "{damaged:?}");
        }
    }

    #[test]
    fn numbers_too_large_to_scale_are_refused_by_name() {
        let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous)]).unwrap();
        let table = Table::new(schema, vec![Column::numbers([Some(1e300), Some(-1e300), None])]).unwrap();
        let standard = Encoding { scale: Scale::Standard, ..FLAGS };
        assert!(matches!(Encoder::fit(&table, standard), Err(Error::Extreme { column }) if column == "x"));
        assert!(Encoder::fit(&table, FLAGS).is_ok());
    }

    #[test]
    fn a_number_too_far_from_what_was_learnt_is_unknown_to_a_method() {
        let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous)]).unwrap();
        let of = |values: Vec<Option<f64>>| Table::new(schema.clone(), vec![Column::numbers(values)]).unwrap();
        let encoder = Encoder::fit(&of(vec![Some(1.0), Some(3.0), None]), FLAGS).unwrap();
        let encoded = encoder.encode(&of(vec![Some(1e308), Some(2.0)])).unwrap();
        assert_eq!(encoded.observed, [false, true]);
        assert!(encoded.x[0].is_nan() && encoded.x[1] == 0.5);
    }

    #[test]
    fn the_smallest_and_the_largest_numbers_have_a_median_and_a_scale() {
        assert_eq!(median(&[1e308, 1.5e308]), 1.25e308);
        let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous)]).unwrap();
        let table = Table::new(schema, vec![Column::numbers([Some(5e-324), Some(1e-320), None])]).unwrap();
        let encoder = Encoder::fit(&table, FLAGS).unwrap();
        assert!(encoder.validate().is_ok() && encoder.features()[0].scale == 1.0);
    }

    #[test]
    fn a_column_that_is_not_there_is_named() {
        let encoder = Encoder::fit(&mixed(), FLAGS).unwrap();
        let rows =
            Table::new(Schema::new(vec![ColumnSpec::new("x", Kind::Integer)]).unwrap(), vec![Column::numbers([None])])
                .unwrap();
        assert_eq!(
            encoder.encode(&rows).unwrap_err().to_string(),
            "the model needs column `age` (integer), which the rows do not have"
        );
    }
}
