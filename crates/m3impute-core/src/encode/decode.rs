//! Decoding: filled numbers become cells; distributions and validation errors of features become those of columns.

use super::{Encoded, Encoder, Feature, Finish, Meaning};
use crate::distributions::{ColumnDistributions, Distributions, PredictiveDistributions};
use crate::error::Result;
use crate::imputer::Fallback;
use crate::schema::{ColumnSpec, Kind};
use crate::table::Table;
use crate::validation::{ColumnScore, Measure, ValidationScore};
use std::ops::Range;

impl Encoder {
    /// Writes filled numbers into the missing cells of a table, and lists cells filled in another way or left missing.
    ///
    /// A missing cell for which `filled` holds no finite number gets the column's median or most frequent level, and is
    /// listed.
    ///
    /// # Errors
    /// When a column that the encoder knows is not there, or is of another type.
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
        let mut features: Vec<Range<usize>> = vec![0..0; self.schema.len()];
        for of_column in self.columns() {
            features[self.features[of_column.start].column] = of_column.clone();
        }
        for (column, spec) in self.schema.columns().iter().enumerate() {
            let (j, codes) = &map[column];
            let missing: Vec<usize> = (0..table.rows()).filter(|&i| !table.observed().get(i, *j)).collect();
            if missing.is_empty() {
                continue;
            }
            let left = if !spec.is_used() {
                Some("the column is neither filled nor used")
            } else if !spec.is_filled() {
                Some("the column is not among those to fill")
            } else {
                None
            };
            if let Some(reason) = left {
                fallbacks.push(left_missing(spec, missing.len(), reason));
                continue;
            }
            if !self.has_value(column) {
                let mut listed = left_missing(spec, missing.len(), "the column has no observed value");
                if finish.zero_empty && spec.kind.is_number() {
                    listed.done = "zeros".to_owned();
                    missing.iter().for_each(|&i| out.fill(i, *j, 0.0));
                }
                fallbacks.push(listed);
                continue;
            }
            // Levels of the table may have another order than those that were learnt, or be absent.
            let mut places = vec![None; spec.levels.len()];
            for (place, &code) in codes.iter().enumerate().filter(|(_, code)| !code.is_nan()) {
                places[code as usize] = Some(place as f64);
            }
            let features = features[column].clone();
            let mut without_prediction = 0;
            for i in missing {
                let (value, is_predicted) = self.finished(column, features.clone(), filled.row(i), finish);
                without_prediction += usize::from(!is_predicted);
                match places.get(value as usize) {
                    _ if !spec.kind.has_levels() => out.fill(i, *j, value),
                    Some(&Some(place)) => out.fill(i, *j, place),
                    _ => out.fill_with_level(i, *j, &spec.levels[value as usize]),
                }
            }
            if without_prediction > 0 {
                fallbacks.push(Fallback {
                    column: spec.name.clone(),
                    cells: without_prediction,
                    reason: format!("`{method}` has no prediction for these cells"),
                    done: if spec.kind.has_levels() { "the most frequent level" } else { "the median" }.to_owned(),
                });
            }
        }
        Ok((out, fallbacks))
    }

    /// The distributions of missing numbers of features as those of the missing cells of a table, of which `data` is the
    /// encoding.
    ///
    /// # Errors
    /// When a column of the encoder is not there, or is of another type.
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
            let (spec, baseline) = (&self.schema.columns()[feature.column], &self.baselines[feature.column]);
            let column = map[feature.column].0;
            if !spec.is_filled() {
                continue;
            }
            // A cell with an unknown level has no number, but is not missing either.
            let lacking = (0..table.rows()).filter(|i| !data.observed[i * w + f]);
            let (rows, missing): (Vec<usize>, Vec<usize>) = lacking
                .enumerate()
                .filter(|(_, i)| !table.observed().get(*i, column))
                .map(|(place, i)| (i, place))
                .unzip();
            let value = |x: f64| baseline.finish(spec, self.raw(f, x), finish);
            let of = match of {
                Distributions::Quantiles(of) => {
                    Distributions::Quantiles(missing.iter().map(|&k| of[k].map(value)).collect())
                }
                Distributions::Shares { values, shares } => {
                    let width = values.len();
                    let shares = missing.iter().flat_map(|k| &shares[k * width..(k + 1) * width]).copied().collect();
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
        for c in self.constants() {
            let (spec, column) = (&self.schema.columns()[c], map[c].0);
            let Some(value) = self.baselines[c].value else { continue };
            let rows: Vec<usize> = (0..table.rows()).filter(|&i| !table.observed().get(i, column)).collect();
            let values = vec![self.baselines[c].finish(spec, value, finish)];
            let of = Distributions::Shares { values, shares: vec![1.0; rows.len()] };
            columns.push(ColumnDistributions {
                column,
                levels: spec.levels.clone(),
                unordered: false,
                step: 0.0,
                rows,
                of,
            });
        }
        Ok(PredictiveDistributions { columns })
    }

    /// The columns to be filled that have one value: they have no feature, and their value is known.
    fn constants(&self) -> impl Iterator<Item = usize> {
        let is_constant = |&c: &usize| {
            let has_value = self.schema.columns()[c].is_filled() && self.baselines[c].value.is_some();
            has_value && self.features.iter().all(|feature| feature.column != c)
        };
        (0..self.baselines.len()).filter(is_constant)
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
            spec.is_filled().then(|| ColumnScore {
                column,
                kind,
                measure,
                validation: validation.in_units(unit, feature.centre),
            })
        };
        let constant = |c: usize| {
            let spec = &self.schema.columns()[c];
            let measure = if spec.kind.has_levels() { Measure::LogLoss } else { Measure::AbsoluteError };
            let validation = ValidationScore {
                error: Some(0.0),
                ensemble: "the only value".to_owned(),
                ..ValidationScore::default()
            };
            ColumnScore { column: spec.name.clone(), kind: spec.kind, measure, validation }
        };
        let constants = if of.is_empty() { Vec::new() } else { self.constants().map(constant).collect() };
        self.features.iter().zip(of).filter_map(score).chain(constants).collect()
    }

    /// The number of a feature as one of the table.
    pub(super) fn raw(&self, f: usize, x: f64) -> f64 {
        let feature = &self.features[f];
        let single = |value: f64| ((value - feature.centre) / feature.scale) as f32;
        let values = self.values.get(f).map_or(&[][..], Vec::as_slice);
        let at = values.partition_point(|&v| single(v) < x as f32);
        match values.get(at) {
            Some(&value) if single(value) == x as f32 => value,
            _ => x * feature.scale + feature.centre,
        }
    }

    /// The value that a row's features encode; none without a feature, or where the method left them `NaN` or, for a row of
    /// extreme numbers, infinite: one such row must not fail a whole file.
    pub(super) fn value_of(&self, features: Range<usize>, row: &[f64]) -> Option<f64> {
        let value = |f: usize| (f, self.raw(f, row[f]));
        let predicted = features.map(value).filter(|(_, value)| value.is_finite());
        // The first of the largest: a number has one feature, of flags the most probable level is taken.
        let (f, value) = predicted.reduce(|a, b| if b.1 > a.1 { b } else { a })?;
        Some(match self.features[f].meaning {
            Meaning::Flag(level) => f64::from(level),
            Meaning::Number | Meaning::Category(_) => value,
        })
    }
}

fn left_missing(spec: &ColumnSpec, cells: usize, reason: &str) -> Fallback {
    Fallback { column: spec.name.clone(), cells, reason: reason.to_owned(), done: Fallback::LEFT.to_owned() }
}
