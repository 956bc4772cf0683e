//! The encoder in a model file: its tensors, and the checks of what is read.

use super::{Encoder, Meaning, Scale};
use crate::error::{Error, Result};
use crate::model_file::{ModelFile, Tensor};
use std::collections::BTreeMap;

impl Encoder {
    /// Writes what is not in the header of a model file into its tensors.
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
                let increasing = values.iter().all(|v| v.is_finite()) && values.windows(2).all(|w| w[0] < w[1]);
                if !increasing || (values.is_empty() && feature.meaning == Meaning::Number) {
                    return Err(Error::damaged(format!("the values of feature {f}")));
                }
                encoder.values.push(values.to_vec());
            }
        }
        Ok(encoder)
    }

    /// Checks an encoder that came from a file.
    pub(crate) fn validate(&self) -> Result<()> {
        let damaged = |what: String| Err(Error::damaged(what));
        if self.baselines.len() != self.schema.len() {
            return damaged(format!("{} columns described, {} in the schema", self.baselines.len(), self.schema.len()));
        }
        for (spec, baseline) in self.schema.columns().iter().zip(&self.baselines) {
            if !baseline.fits(spec) {
                return damaged(format!("the baseline of column `{}`", spec.name));
            }
        }
        let mut flags_of_column = vec![None; self.schema.len()];
        for feature in &self.features {
            let Some(spec) = self.schema.columns().get(feature.column) else {
                return damaged(format!(
                    "a feature of column {}, of {}",
                    feature.column.saturating_add(1),
                    self.schema.len()
                ));
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
            let has_baseline = self.baselines[feature.column].value.is_some() && spec.is_used();
            let has_a_level = !spec.kind.has_levels() || !spec.levels.is_empty();
            if !level_fits || !scales || !has_baseline || !has_a_level {
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

fn values_name(feature: usize) -> String {
    format!("encoder.{feature}.values")
}
