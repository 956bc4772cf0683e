//! The contract that every method keeps, and the row of the registry that describes it.

use crate::distributions::PredictiveDistributions;
use crate::encode::Finish;
use crate::error::{Error, Result, nearest};
use crate::explain::{Explanation, KeptRows};
use crate::model_file::ModelFile;
use crate::run::Run;
use crate::schema::Schema;
use crate::table::Table;
use crate::validation::ColumnScore;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use std::io::Write;

/// A configured method: its parameters are valid.
pub trait Imputer: Debug + Send + Sync {
    /// The registry's description of the method.
    fn spec(&self) -> &'static MethodSpec;

    /// Imputes the missing cells of a table.
    ///
    /// The output has the shape of the input; observed cells come back bit for bit; cells filled in another way than
    /// requested are listed in [`Imputation::fallbacks`].
    ///
    /// # Errors
    /// When the table cannot be filled, or the run is cancelled.
    fn impute(&self, table: &Table, run: &mut Run) -> Result<Imputation>;

    /// Whether it has predictive distributions once it is fitted: see [`FittedImputer::predict_distributions`].
    fn has_distributions(&self) -> bool {
        false
    }

    /// A model of the table that has predictive distributions of its missing cells, and draws; none where the method has
    /// none.
    ///
    /// # Errors
    /// As [`Imputer::impute`].
    fn fit_distributions(&self, _table: &Table, _run: &mut Run) -> Result<Option<Box<dyn FittedImputer>>> {
        Ok(None)
    }

    /// The same method as one that can be fitted once and used on new rows, where it is inductive.
    fn as_inductive(&self) -> Option<&dyn InductiveImputer> {
        None
    }
}

/// A method that learns from one table and fills others.
pub trait InductiveImputer: Imputer {
    /// Learns from a table.
    ///
    /// # Errors
    /// When the table cannot be learnt from, or the run is cancelled.
    fn fit(&self, table: &Table, run: &mut Run) -> Result<Box<dyn FittedImputer>>;
}

/// A fitted model. It cannot exist unfitted.
pub trait FittedImputer: Debug + Send + Sync {
    /// The columns it was fitted to.
    fn schema(&self) -> &Schema;

    /// Fills new rows, each independently: batch size, order and threads do not change a byte.
    ///
    /// # Errors
    /// When the rows lack a column of the model, or the run is cancelled.
    fn transform(&self, rows: &Table, run: &mut Run) -> Result<Imputation>;

    /// Whether [`FittedImputer::predict_distributions`] returns distributions.
    fn has_distributions(&self) -> bool {
        false
    }

    /// [`FittedImputer::transform`] with a predictive distribution for every missing cell, where the method has them.
    ///
    /// # Errors
    /// As [`FittedImputer::transform`].
    fn predict_distributions(
        &self,
        _rows: &Table,
        _run: &mut Run,
    ) -> Result<Option<(Imputation, PredictiveDistributions)>> {
        Ok(None)
    }

    /// New rows completed by a joint draw, one of several: the missing cells of a row are drawn one after the other, each
    /// given those before. Draws of other numbers are others; `seeds` has one for each row, of
    /// [`RowSeeds`](crate::RowSeeds). None where the method has no distributions.
    ///
    /// # Errors
    /// As [`FittedImputer::transform`].
    fn draw(&self, _rows: &Table, _seeds: &[u64], _number: u64, _run: &Run) -> Result<Option<Imputation>> {
        Ok(None)
    }

    /// Why missing cells of a table, each a row and a column, are filled with what [`FittedImputer::transform`] fills them
    /// with: in their order. It costs a prediction of each of their rows, and one more for each observed cell of it.
    ///
    /// # Errors
    /// When a cell is not missing or not one that is filled, and as [`FittedImputer::transform`].
    fn explain(&self, rows: &Table, cells: &[(usize, usize)], run: &Run) -> Result<Vec<Explanation>>;

    /// Whether missing cells of a column get a value: it is one to fill, and had a value when the model was fitted.
    fn fills(&self, column: &str) -> bool {
        self.schema().columns().iter().any(|spec| spec.name == column && spec.is_filled())
    }

    /// What the model holds of the rows that it was fitted to; empty where it holds no part of a row.
    fn kept_rows(&self) -> Vec<KeptRows> {
        Vec::new()
    }

    /// Validation errors by column, on cells that were held out in fitting; empty where none were.
    fn scores(&self) -> Vec<ColumnScore> {
        Vec::new()
    }

    /// Notes about the fit, a sentence each.
    fn notes(&self) -> &[String];

    /// The model as a file in memory: header and tensors.
    ///
    /// # Errors
    /// When the state cannot be serialised.
    fn to_file(&self) -> Result<ModelFile>;

    /// Writes the model.
    ///
    /// # Errors
    /// When the bytes cannot be written.
    fn save(&self, to: &mut dyn Write) -> Result<()> {
        self.to_file()?.write(to)
    }
}

/// A filled table, with fallbacks, notes and validation errors.
#[derive(Clone, Debug)]
pub struct Imputation {
    /// The filled table.
    pub table: Table,
    /// Cells that were filled in another way than requested, or left missing.
    pub fallbacks: Vec<Fallback>,
    /// Notes for the user, a sentence each.
    pub notes: Vec<String>,
    /// Validation errors by column, on cells that were held out in fitting; empty where none were.
    pub scores: Vec<ColumnScore>,
}

/// Cells of one column that were filled in another way than requested, or left missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fallback {
    /// The column.
    pub column: String,
    /// How many of its cells.
    pub cells: usize,
    /// Why.
    pub reason: String,
    /// What was done instead.
    pub done: String,
}

impl Fallback {
    /// [`Fallback::done`] of cells that were not filled.
    pub(crate) const LEFT: &str = "left missing";

    /// Whether the cells were left missing.
    pub fn is_left(&self) -> bool {
        self.done == Fallback::LEFT
    }
}

/// A row of the registry: the name of a method, its properties and parameters, and how to build it.
#[derive(Debug)]
pub struct MethodSpec {
    /// The key users write.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// When not to use it.
    pub avoid: &'static str,
    /// Whether it can be fitted once and used on new rows.
    pub inductive: bool,
    /// Whether it has predictive distributions, in one of its presets at least: intervals, probabilities, draws.
    pub distributions: bool,
    /// Whether the seed matters.
    pub randomised: bool,
    /// Whether the default preset trains for minutes even on a small table: a comparison of all methods leaves it out
    /// unless it is named.
    pub slow: bool,
    /// The presets: name and description. The first is the default.
    pub presets: &'static [(&'static str, &'static str)],
    /// The parameters.
    pub params: &'static [ParamSpec],
    /// The parameters of a preset as JSON, for listings.
    pub preset_values: fn(&str) -> Option<Value>,
    /// Makes a configured method.
    pub build: fn(&Settings) -> Result<Box<dyn Imputer>>,
    /// Reads a fitted one back.
    pub load: fn(&ModelFile) -> Result<Box<dyn FittedImputer>>,
}

/// One parameter of a method.
#[derive(Debug)]
pub struct ParamSpec {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
    /// Its valid values.
    pub expects: Expect,
}

/// The valid values of a parameter.
#[derive(Debug)]
pub enum Expect {
    /// A whole number in this range.
    Whole(u64, u64),
    /// A number in this range.
    Number(f64, f64),
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Some of these words, with commas between them.
    Some(fn() -> &'static [&'static str]),
    /// `auto`, or a value of the inner sort.
    Auto(&'static Expect),
}

impl std::fmt::Display for Expect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Expect::Whole(low, u64::MAX) => write!(f, "a whole number of at least {low}"),
            Expect::Whole(low, high) => write!(f, "a whole number from {low} to {high}"),
            Expect::Number(low, high) if high.is_infinite() => write!(f, "a number of at least {low}"),
            Expect::Number(low, high) => write!(f, "a number from {low} to {high}"),
            Expect::Flag => f.write_str("`true` or `false`"),
            Expect::Choice(words) => {
                let quoted: Vec<String> = words.iter().map(|w| format!("`{w}`")).collect();
                write!(f, "one of {}", quoted.join(", "))
            }
            Expect::Some(words) => write!(f, "some of `{}`", words().join(",")),
            Expect::Auto(inside) => write!(f, "`auto` or {inside}"),
        }
    }
}

impl Expect {
    /// The parsed value, or nothing where the text is not valid.
    pub fn parse(&self, text: &str) -> Option<Value> {
        match self {
            Expect::Whole(low, high) => text.parse::<u64>().ok().filter(|v| (low..=high).contains(&v)).map(Value::from),
            Expect::Number(low, high) => text.parse::<f64>().ok().filter(|v| v >= low && v <= high).map(Value::from),
            Expect::Flag => text.parse::<bool>().ok().map(Value::from),
            Expect::Choice(words) => words.contains(&text).then(|| Value::from(text)),
            Expect::Some(words) => {
                let some: Vec<&str> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
                (!some.is_empty() && some.iter().all(|word| words().contains(word))).then(|| Value::from(some))
            }
            Expect::Auto(_) if text == "auto" => Some(Value::Null),
            Expect::Auto(inside) => inside.parse(text),
        }
    }
}

/// The settings of a method: a preset, parameters on top of it, and how filled numbers are finished.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The preset; the method's first one by default.
    pub preset: Option<String>,
    /// Parameters by name, as text.
    pub params: Vec<(String, String)>,
    /// How filled numbers are finished, where it differs from the preset.
    pub finish: FinishChoice,
}

/// How filled numbers are finished, where the user chooses.
#[derive(Clone, Copy, Debug, Default)]
pub struct FinishChoice {
    /// Whether integers are filled whole.
    pub round: Option<bool>,
    /// Whether filled numbers are kept within the observed range.
    pub clip: Option<bool>,
    /// Whether a column without a single observed value is filled with zeros.
    pub zero_empty: bool,
}

impl FinishChoice {
    /// The user's choices on top of those of the preset.
    pub fn over(self, preset: Finish) -> Finish {
        Finish {
            round: self.round.unwrap_or(preset.round),
            clip: self.clip.unwrap_or(preset.clip),
            zero_empty: self.zero_empty,
        }
    }
}

impl MethodSpec {
    /// The name of the requested preset.
    ///
    /// # Errors
    /// When the method has no such preset.
    pub fn preset(&'static self, settings: &Settings) -> Result<&'static str> {
        let Some(requested) = &settings.preset else { return Ok(self.presets[0].0) };
        self.presets.iter().map(|p| p.0).find(|p| p == requested).ok_or_else(|| Error::UnknownPreset {
            method: self.name,
            preset: requested.clone(),
            valid: self.presets.iter().map(|p| format!("`{}`", p.0)).collect::<Vec<_>>().join(", "),
        })
    }

    /// The parameters of the settings: those of the preset, with the named ones replaced.
    ///
    /// # Errors
    /// When a parameter is unknown, or its value is not valid.
    pub fn params<P: Serialize + DeserializeOwned>(
        &'static self,
        settings: &Settings,
        of_preset: impl Fn(&str) -> P,
    ) -> Result<P> {
        let preset = of_preset(self.preset(settings)?);
        let mut values = serde_json::to_value(&preset).map_err(|e| Error::Bug(e.to_string()))?;
        for (name, text) in &settings.params {
            // A preset may be a model of its own, with parameters of its own.
            let valid = || self.params.iter().filter(|p| values.get(p.name).is_some());
            let param = valid().find(|p| p.name == name).ok_or_else(|| Error::UnknownParameter {
                method: self.name,
                parameter: name.clone(),
                nearest: nearest(name, valid().map(|p| p.name)),
                valid: valid().map(|p| p.name).collect(),
            })?;
            values[name] = param.expects.parse(text).ok_or_else(|| Error::BadParameter {
                method: self.name,
                parameter: name.clone(),
                expected: param.expects.to_string(),
                got: text.clone(),
            })?;
        }
        serde_json::from_value(values).map_err(|e| Error::Bug(format!("parameters of `{}`: {e}", self.name)))
    }
}
