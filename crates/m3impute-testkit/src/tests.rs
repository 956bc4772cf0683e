//! The checks pass a method that keeps the contract, and catch ones that do not.

use crate::CHECKS;
use m3impute_core::distributions::{Distributions, QUANTILE_LEVELS};
use m3impute_core::encode::{Constants, Feature, Layout, Meaning, Scale};
use m3impute_core::{
    Encoded, Encoding, Expect, Finish, Imputation, Imputer, Learnt, MatrixImputer, MatrixMethod, MatrixModel,
    MethodSpec, ModelFile, ParamSpec, Result, Run, Settings, Table, Tensor, Want, load_matrix_model,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::panic::catch_unwind;

/// Fills with a share of the feature's mean: the smallest method that learns.
#[derive(Debug)]
struct Toy {
    params: Value,
}

#[derive(Debug)]
struct ToyModel(Vec<f64>);

static TOY: MethodSpec = MethodSpec {
    name: "toy",
    summary: "a share of the mean",
    avoid: "outside of tests",
    inductive: true,
    distributions: true,
    randomised: false,
    slow: false,
    presets: &[("default", "the mean"), ("paper", "the mean, as it is")],
    params: &[ParamSpec { name: "share", doc: "what of the mean is taken", expects: Expect::Number(0.0, 1.0) }],
    preset_values: |preset| TOY.presets.iter().any(|p| p.0 == preset).then(|| json!({"share": 1.0})),
    build: |settings| {
        let params: Value = TOY.params(settings, |_| json!({"share": 1.0}))?;
        let finish = match TOY.preset(settings)? {
            "paper" => Finish { round: false, clip: false, zero_empty: false },
            _ => Finish::default(),
        };
        Ok(Box::new(MatrixImputer::new(&TOY, Toy { params }, settings.finish.over(finish))))
    },
    load: |file| load_matrix_model::<Toy>(&TOY, file),
};

impl MatrixMethod for Toy {
    type Model = ToyModel;
    type Params = Value;

    fn params(&self) -> &Value {
        &self.params
    }

    fn encoding(&self) -> Encoding {
        Encoding { layout: Layout::Codes, scale: Scale::Raw, constants: Constants::Leave }
    }

    fn fit(&self, data: &Encoded, _: &mut Run) -> Result<Learnt<ToyModel>> {
        let share = self.params["share"].as_f64().unwrap_or(1.0);
        let mean = |v: Vec<f64>| share * v.iter().sum::<f64>() / v.len() as f64;
        Ok(Learnt::quietly(ToyModel((0..data.width()).map(|f| mean(data.observed_values(f))).collect())))
    }
}

impl MatrixModel for ToyModel {
    const DISTRIBUTIONS: bool = true;

    /// Numbers are evenly spread by one around the mean, levels all alike.
    fn predict(&self, rows: &mut Encoded, _: Want, run: &Run) -> Result<Option<Vec<Distributions>>> {
        run.check()?;
        let w = rows.width();
        for (at, x) in rows.x.iter_mut().enumerate().filter(|(at, _)| !rows.observed[*at]) {
            *x = self.0[at % w];
        }
        let of = |(f, feature): (usize, &Feature)| {
            let missing = rows.missing_in(f);
            match feature.meaning {
                Meaning::Category(levels) => Distributions::Shares {
                    values: (0..levels).map(f64::from).collect(),
                    shares: vec![1.0 / levels as f32; missing * levels as usize],
                },
                _ => Distributions::Quantiles(vec![QUANTILE_LEVELS.map(|l| self.0[f] + 2.0 * l - 1.0); missing]),
            }
        };
        Ok(Some(rows.features.iter().enumerate().map(of).collect()))
    }

    fn store(&self, tensors: &mut BTreeMap<String, Tensor>) -> Value {
        tensors.insert("mean".to_owned(), Tensor::F64(vec![self.0.len()], self.0.clone()));
        Value::Null
    }

    fn restore(file: &ModelFile, width: usize) -> Result<ToyModel> {
        let (_, mean) = file.f64s("mean")?;
        if mean.len() != width {
            return Err(m3impute_core::Error::ModelFile {
                reason: format!("{} means for {width} features", mean.len()),
            });
        }
        Ok(ToyModel(mean.to_vec()))
    }
}

/// A fault of a method.
#[derive(Clone, Copy, Debug)]
enum Fault {
    TouchesACell,
    LeavesACellMissing,
    DependsOnTheSeed,
    DependsOnThreads,
    IgnoresCancel,
    FillsHalfIntegers,
    FillsIgnoredColumns,
    GivesUpWithoutTime,
    IgnoresParameters,
    PromisesDistributions,
}

#[derive(Debug)]
struct Faulty {
    fault: Fault,
    spec: &'static MethodSpec,
    toy: Box<dyn Imputer>,
}

impl Imputer for Faulty {
    fn spec(&self) -> &'static MethodSpec {
        self.spec
    }

    fn impute(&self, table: &Table, run: &mut Run) -> Result<Imputation> {
        let mut calm = Run::new(run.seed(), 1)?;
        let mut out =
            self.toy.impute(table, if matches!(self.fault, Fault::IgnoresCancel) { &mut calm } else { run })?;
        let missing = (0..table.rows()).find(|&i| !table.observed().get(i, 0));
        match (self.fault, missing) {
            (Fault::TouchesACell, _) => out.table.fill(0, 0, 0.125),
            (Fault::LeavesACellMissing, Some(i)) => out.table.hide(i, 0),
            (Fault::DependsOnTheSeed, Some(i)) => out.table.fill(i, 0, 1.0 / (2.0 + run.seed() as f64)),
            (Fault::DependsOnThreads, Some(i)) => out.table.fill(i, 0, 1.0 / (2.0 + run.threads() as f64)),
            (Fault::FillsHalfIntegers, _) => {
                let whole = (0..table.rows()).filter(|&i| table.cols() > 2 && !table.observed().get(i, 2));
                whole.for_each(|i| out.table.fill(i, 2, 20.5));
            }
            (Fault::FillsIgnoredColumns, _) => {
                let numbers = (0..table.cols()).filter(|&j| table.schema().columns()[j].kind.is_number());
                for j in numbers {
                    (0..table.rows())
                        .filter(|&i| !out.table.observed().get(i, j))
                        .collect::<Vec<_>>()
                        .into_iter()
                        .for_each(|i| out.table.fill(i, j, 0.0));
                }
            }
            (Fault::GivesUpWithoutTime, _) if run.is_spent() => out.table = table.clone(),
            _ => {}
        }
        Ok(out)
    }
}

macro_rules! faulty {
    ($fault:ident) => {{
        static SPEC: MethodSpec = MethodSpec {
            name: "faulty",
            inductive: false,
            distributions: matches!(Fault::$fault, Fault::PromisesDistributions),
            build: |settings| {
                let settings = match Fault::$fault {
                    Fault::IgnoresParameters => Settings::default(),
                    _ => settings.clone(),
                };
                Ok(Box::new(Faulty { fault: Fault::$fault, spec: &SPEC, toy: (TOY.build)(&settings)? }))
            },
            ..TOY_ROW
        };
        &SPEC
    }};
}

const TOY_ROW: MethodSpec = MethodSpec {
    name: "toy",
    summary: "a share of the mean",
    avoid: "outside of tests",
    inductive: true,
    distributions: false,
    randomised: false,
    slow: false,
    presets: &[("default", "the mean")],
    params: &[],
    preset_values: |_| Some(json!({})),
    build: |settings| (TOY.build)(settings),
    load: |file| load_matrix_model::<Toy>(&TOY, file),
};

#[test]
fn a_method_that_keeps_the_contract_passes() {
    crate::check_all(&TOY);
}

#[test]
fn faults_are_caught_by_the_check_that_is_about_them() {
    let cases = [
        (faulty!(TouchesACell), "observed_cells_are_untouched"),
        (faulty!(LeavesACellMissing), "nothing_is_left_missing"),
        (faulty!(DependsOnTheSeed), "a_seed_that_does_not_matter_does_not"),
        (faulty!(DependsOnThreads), "threads_do_not_change_bytes"),
        (faulty!(IgnoresCancel), "cancel_is_honoured"),
        (faulty!(FillsHalfIntegers), "integers_are_whole"),
        (faulty!(FillsIgnoredColumns), "columns_not_to_fill_stay_missing"),
        (faulty!(GivesUpWithoutTime), "a_budget_of_zero_still_fills"),
        (faulty!(IgnoresParameters), "an_unknown_parameter_is_named_with_the_nearest"),
        (faulty!(PromisesDistributions), "the_registry_knows_whether_there_are_distributions"),
    ];
    for (spec, name) in cases {
        let check = CHECKS.iter().find(|c| c.name == name).expect("a check of that name");
        let panic = catch_unwind(|| (check.run)(spec)).expect_err(name);
        let sentence = panic.downcast_ref::<String>().expect("a sentence");
        assert!(sentence.starts_with("method `faulty`: "), "{sentence}");
    }
}

#[test]
fn names_of_checks_are_unique() {
    for (at, check) in CHECKS.iter().enumerate() {
        assert!(CHECKS[at + 1..].iter().all(|other| other.name != check.name), "{}", check.name);
    }
}
