//! One value a column: the mean, the median, or the most frequent value.
//!
//! A column with levels gets its most frequent level from all three.

use m3impute_core::distributions::Distributions;
use m3impute_core::encode::{Constants, Feature, Layout, Meaning, Scale, median};
use m3impute_core::{
    Encoded, Encoding, Error, Finish, Imputer, Learnt, MatrixImputer, MatrixMethod, MatrixModel, MethodSpec, ModelFile,
    Result, Run, Settings, Tensor, Want, load_matrix_model,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The parameters of `mean`, `median` and `mode`: there are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimpleParams {}

const PRESETS: &[(&str, &str)] =
    &[("default", "from the observed values"), ("paper", "the same: there is nothing to set")];

/// Which value of a column stands for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statistic {
    Mean,
    Median,
    Mode,
}

impl Statistic {
    /// The statistic of a feature's observed values, of which there is at least one.
    fn of(self, feature: &Feature, values: &mut [f64]) -> f64 {
        match (self, feature.meaning) {
            (Statistic::Mode, _) | (_, Meaning::Category(_) | Meaning::Flag(_)) => most_frequent(values),
            (Statistic::Mean, Meaning::Number) => values.iter().sum::<f64>() / values.len() as f64,
            (Statistic::Median, Meaning::Number) => median(values),
        }
    }
}

/// The most frequent value; the smallest of several.
fn most_frequent(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let runs = values.chunk_by(|a, b| a == b);
    runs.reduce(|best, run| if run.len() > best.len() { run } else { best }).map_or(f64::NAN, |run| run[0])
}

macro_rules! simple_methods {
    ($($(#[$doc:meta])* $Method:ident, $SPEC:ident, $statistic:expr, $name:literal, $summary:literal, $avoid:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $Method {
            params: SimpleParams,
        }

        /// The row of the registry.
        pub static $SPEC: MethodSpec = MethodSpec {
            name: $name,
            summary: $summary,
            avoid: $avoid,
            inductive: true,
            distributions: false,
            randomised: false,
            slow: false,
            presets: PRESETS,
            params: &[],
            preset_values: |name| PRESETS.iter().any(|p| p.0 == name).then(|| Value::Object(Default::default())),
            build: |settings: &Settings| -> Result<Box<dyn Imputer>> {
                let params = $SPEC.params(settings, |_| SimpleParams::default())?;
                Ok(Box::new(MatrixImputer::new(&$SPEC, $Method { params }, settings.finish.over(Finish::default()))))
            },
            load: |file| load_matrix_model::<$Method>(&$SPEC, file),
        };

        impl MatrixMethod for $Method {
            type Model = Constant;
            type Params = SimpleParams;

            fn params(&self) -> &SimpleParams {
                &self.params
            }

            fn encoding(&self) -> Encoding {
                Encoding { layout: Layout::Codes, scale: Scale::Raw, constants: Constants::Leave }
            }

            fn fit(&self, data: &Encoded, run: &mut Run) -> Result<Learnt<Constant>> {
                let mut values = Vec::with_capacity(data.width());
                for (f, feature) in data.features.iter().enumerate() {
                    run.check()?;
                    values.push($statistic.of(feature, &mut data.observed_values(f)));
                }
                Ok(Learnt::quietly(Constant { values }))
            }
        }
    )*};
}

simple_methods! {
    /// The mean of numbers, the most frequent level of levels.
    Mean, MEAN, Statistic::Mean, "mean",
    "the mean of each column (the most frequent level, for levels)",
    "anything but a yardstick: relations between columns are lost and variances shrink";
    /// The median of numbers, the most frequent level of levels.
    Median, MEDIAN, Statistic::Median, "median",
    "the median of each column (the most frequent level, for levels)",
    "anything but a yardstick: relations between columns are lost and variances shrink";
    /// The most frequent value of each column.
    Mode, MODE, Statistic::Mode, "mode",
    "the most frequent value of each column, the smallest of several",
    "continuous numbers: hardly any of them occurs twice";
}

/// One value a feature.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    values: Vec<f64>, // [w]
}

impl MatrixModel for Constant {
    fn predict(&self, rows: &mut Encoded, _: Want, run: &Run) -> Result<Option<Vec<Distributions>>> {
        run.check()?;
        let w = self.values.len();
        for (cells, observed) in rows.x.chunks_exact_mut(w).zip(rows.observed.chunks_exact(w)) {
            for ((cell, &seen), &value) in cells.iter_mut().zip(observed).zip(&self.values) {
                *cell = if seen { *cell } else { value };
            }
        }
        Ok(None)
    }

    fn store(&self, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        tensors.insert("values".to_owned(), Tensor::F64(vec![self.values.len()], self.values.clone()));
        Value::Null
    }

    fn restore(file: &ModelFile, width: usize) -> Result<Constant> {
        let (shape, values) = file.f64s("values")?;
        if shape != [width] {
            return Err(Error::damaged(format!("`values`: expected shape [{width}], got {shape:?}")));
        }
        Ok(Constant { values: values.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::{Column, ColumnSpec, Kind, Schema, Table};

    fn table() -> Table {
        let schema = Schema::new(vec![
            ColumnSpec::new("size", Kind::Continuous),
            ColumnSpec::with_levels("colour", Kind::Categorical, ["blue", "red"]),
        ])
        .unwrap();
        let columns = vec![
            Column::numbers([Some(1.0), Some(1.0), Some(4.0), Some(6.0), None]),
            Column::codes([Some(1), Some(1), None, Some(0), Some(0)]),
        ];
        Table::new(schema, columns).unwrap()
    }

    fn filled(spec: &'static MethodSpec) -> (f64, f64) {
        let imputer = (spec.build)(&Settings::default()).unwrap();
        let out = imputer.impute(&table(), &mut Run::new(0, 1).unwrap()).unwrap();
        assert!(out.fallbacks.is_empty());
        (out.table.number(4, 0), out.table.number(2, 1))
    }

    #[test]
    fn each_statistic_fills_numbers_its_way_and_levels_with_the_most_frequent() {
        assert_eq!(filled(&MEAN), (3.0, 0.0)); // blue and red stand twice each: the first wins
        assert_eq!(filled(&MEDIAN), (2.5, 0.0));
        assert_eq!(filled(&MODE), (1.0, 0.0));
    }

    #[test]
    fn a_saved_model_fills_the_same() {
        let imputer = (MEAN.build)(&Settings::default()).unwrap();
        let mut run = Run::new(0, 1).unwrap();
        let fitted = imputer.as_inductive().unwrap().fit(&table(), &mut run).unwrap();
        let mut bytes = Vec::new();
        fitted.save(&mut bytes).unwrap();
        let loaded = (MEAN.load)(&ModelFile::read(&bytes).unwrap()).unwrap();
        assert_eq!(
            loaded.transform(&table(), &mut run).unwrap().table,
            fitted.transform(&table(), &mut run).unwrap().table
        );
    }

    #[test]
    fn a_model_of_another_width_is_refused() {
        let imputer = (MEAN.build)(&Settings::default()).unwrap();
        let fitted = imputer.as_inductive().unwrap().fit(&table(), &mut Run::new(0, 1).unwrap()).unwrap();
        let mut file = fitted.to_file().unwrap();
        file.tensors.insert("values".to_owned(), Tensor::F64(vec![1], vec![0.0]));
        assert!((MEAN.load)(&file).is_err());
    }
}
