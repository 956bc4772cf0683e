//! Encodes tables as numbers, and decodes filled numbers into cells.
//!
//! Notation: `n` rows, `w` features. A feature is a column of the encoded matrix: a number, a 0/1 flag of a level, or the
//! code of a level.

mod baseline;
mod cells;
mod decode;
mod features;
mod file;

use crate::error::{Error, Result};
use crate::schema::Schema;
use crate::table::{Table, Values};
use baseline::Baseline;
pub(crate) use baseline::within;
pub use features::{deviation, median};
use features::{distinct_values, features_of};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// A category with more levels than this gets flags for its most frequent ones only.
pub const MAX_FLAGS: usize = 64;

/// Scaled numbers beyond this are no use to a method: their squares are not finite in 32-bit floats.
const FARTHEST: f64 = 1e18;

/// How a column with levels is encoded.
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
    /// To [0, 1] by the smallest and the largest observed value, or by the range of the [`Schema`].
    MinMax,
    /// To [0, 1] by the smallest and the largest observed value, for methods that work on 32-bit floats: a prediction that
    /// is an observed value in them comes back as that value, bit for bit.
    Unit,
    /// To mean 0 and deviation 1 over the observed values.
    Standard,
}

/// How columns with a single observed value are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Constants {
    /// They are features like others.
    Keep,
    /// They are no features; their missing cells get that value.
    Leave,
}

/// The encoding that a method needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encoding {
    /// How a column with levels is encoded.
    pub layout: Layout,
    /// How numbers are scaled.
    pub scale: Scale,
    /// How columns with a single observed value are treated.
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

/// The meaning of a feature's number.
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
    /// The columns of `x`.
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

    /// Some of the rows.
    pub fn select(&self, rows: impl Iterator<Item = usize> + Clone) -> Encoded {
        let x: Vec<f64> = rows.clone().flat_map(|i| self.row(i)).copied().collect();
        let observed = rows.clone().flat_map(|i| self.observed_row(i)).copied().collect();
        Encoded { rows: rows.count(), features: self.features.clone(), x, observed }
    }

    /// The observed values of a feature.
    pub fn observed_values(&self, f: usize) -> Vec<f64> {
        let w = self.width();
        (0..self.rows).filter(|i| self.observed[i * w + f]).map(|i| self.x[i * w + f]).collect()
    }

    /// The features of each column that has some, in the order of columns.
    pub fn columns(&self) -> Vec<Range<usize>> {
        columns(&self.features)
    }

    /// How many values of a feature are missing.
    pub fn missing_in(&self, f: usize) -> usize {
        let w = self.width();
        (0..self.rows).filter(|i| !self.observed[i * w + f]).count()
    }
}

/// The features of each column that has some, which are adjacent.
fn columns(features: &[Feature]) -> Vec<Range<usize>> {
    let mut first = 0;
    let groups = features.chunk_by(|a, b| a.column == b.column);
    groups
        .map(|group| {
            first += group.len();
            first - group.len()..first
        })
        .collect()
}

/// Encodes and decodes the tables of one schema; fitted to observed cells only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encoder {
    schema: Schema,
    encoding: Encoding,
    features: Vec<Feature>,
    baselines: Vec<Baseline>,
    /// The distinct observed values of each feature, increasing, where numbers are scaled for 32-bit floats. In a model
    /// file they are tensors, `[w]`.
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
        let mut baselines = Vec::new();
        let mut distinct = Vec::new();
        for (j, spec) in table.schema().columns().iter().enumerate() {
            let values: Vec<f64> = if spec.is_used() {
                (0..table.rows()).map(|i| table.number(i, j)).filter(|v| !v.is_nan()).collect()
            } else {
                Vec::new()
            };
            baselines.push(Baseline::of(spec, &values));
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
        Ok(Encoder { schema: table.schema().clone(), encoding, features, baselines, values: distinct })
    }

    /// The columns that it was fitted to.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The standard deviation of the values of a column that were observed in fitting; none of levels, of fewer than two
    /// values, and in model files that were written before it was kept.
    pub fn deviation(&self, column: usize) -> Option<f64> {
        self.baselines[column].deviation
    }

    /// The features of the encoded matrix.
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// The features of each column that has some, in the order of columns.
    pub fn columns(&self) -> Vec<Range<usize>> {
        columns(&self.features)
    }

    /// The cells of a table as numbers. The table's columns are matched by name, its levels by their text.
    ///
    /// # Errors
    /// When a column of the encoder is not there, or is of another type.
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

    /// For each column of the schema: its index in the table, and the learnt code of each of the table's levels
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
                let codes: HashMap<&str, usize> = spec.levels.iter().map(String::as_str).zip(0..).collect();
                let code = |level: &String| codes.get(level.as_str()).map_or(f64::NAN, |&c| c as f64);
                Ok((j, other.levels.iter().map(code).collect()))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Bounds, ColumnSpec, Kind};
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
    fn a_missing_cell_without_a_prediction_gets_the_median_and_is_listed() {
        let table = mixed();
        let encoder = Encoder::fit(&table, FLAGS).unwrap();
        let (out, fallbacks) =
            encoder.decode(&table, &encoder.encode(&table).unwrap(), Finish::default(), "test").unwrap();
        assert_eq!(out.number(2, 0), 20.0);
        assert!(fallbacks.iter().any(|f| f.column == "age" && f.cells == 1 && f.done == "the median"));
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
    fn an_encoder_that_contradicts_its_schema_is_refused() {
        let encoder = Encoder::fit(&mixed(), FLAGS).unwrap();
        assert!(encoder.validate().is_ok());
        let damages: [fn(&mut Encoder); 9] = [
            |e| e.features[0].scale = 1e-320,
            |e| e.features[0].scale = 0.0,
            |e| e.baselines[0].value = None,
            |e| e.schema.column_mut(0).role = crate::schema::Role::Ignore,
            |e| (e.baselines[0].low, e.baselines[0].high) = (2.0, 1.0),
            |e| e.baselines[1].value = Some(3.0),
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

    #[test]
    fn a_code_that_a_file_scales_is_refused() {
        let codes = Encoding { layout: Layout::Codes, ..FLAGS };
        let mut encoder = Encoder::fit(&mixed(), codes).unwrap();
        assert!(encoder.validate().is_ok());
        encoder.features[1].scale = 0.5;
        assert!(matches!(encoder.validate(), Err(Error::ModelFile { .. })));
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
}
