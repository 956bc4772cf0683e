//! Single cells: the value that a row of numbers encodes in a column, finished as [`Encoder::decode`] does.

use super::{Encoder, Finish};
use crate::error::Result;
use crate::explain::CellValue;
use crate::table::Table;
use std::ops::Range;

impl Encoder {
    /// Where each column of the encoder stands in a table.
    ///
    /// # Errors
    /// When one is not there, or is of another type.
    pub(crate) fn places(&self, table: &Table) -> Result<Vec<usize>> {
        Ok(self.matching(table)?.into_iter().map(|(place, _)| place).collect())
    }

    /// The features of a column; empty where it has none.
    pub(crate) fn features_of(&self, column: usize) -> Range<usize> {
        let is_own = |features: &Range<usize>| self.features[features.start].column == column;
        self.columns().into_iter().rev().find(is_own).unwrap_or(0..0)
    }

    /// Whether missing cells of a column get a value.
    pub(crate) fn has_value(&self, column: usize) -> bool {
        self.baselines[column].value.is_some()
    }

    /// The number that fills a cell of a column, given its row of filled numbers, and whether it is a prediction: without one
    /// it is the baseline, `NaN` where there is none. Of levels it is the code that was learnt.
    pub(crate) fn finished(&self, column: usize, features: Range<usize>, row: &[f64], finish: Finish) -> (f64, bool) {
        let (spec, baseline) = (&self.schema.columns()[column], &self.baselines[column]);
        let predicted = self.value_of(features.clone(), row);
        // A constant column has no feature: its baseline is its value.
        let is_predicted = predicted.is_some() || features.is_empty();
        let value = predicted.or(baseline.value);
        (value.map_or(f64::NAN, |value| baseline.finish(spec, value, finish)), is_predicted)
    }

    /// The number that fills a cell, given that of a feature.
    pub(crate) fn finished_number(&self, feature: usize, x: f64, finish: Finish) -> f64 {
        let column = self.features[feature].column;
        self.baselines[column].finish(&self.schema.columns()[column], self.raw(feature, x), finish)
    }

    /// A number of a column, or the code of a level, as a value.
    pub(crate) fn value(&self, column: usize, number: f64) -> CellValue {
        let spec = &self.schema.columns()[column];
        if !spec.kind.has_levels() {
            return CellValue::Number(number);
        }
        CellValue::Level(spec.levels.get(number as usize).cloned().unwrap_or_default())
    }

    /// The value that an observed row encodes in a column, as it is; none where it is missing.
    pub(crate) fn observed_value(&self, column: usize, row: &[f64]) -> Option<CellValue> {
        let number = self.value_of(self.features_of(column), row)?;
        let has_levels = self.schema.columns()[column].kind.has_levels();
        Some(self.value(column, if has_levels { number.round() } else { number }))
    }
}
