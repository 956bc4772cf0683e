//! The plan of an evaluation.

use m3impute_core::missing::{HideIn, Mechanism};
use m3impute_core::{Error, MethodSpec, Observed, Result, Role, Settings, Table};

/// A method that takes part, with its settings.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The method.
    pub spec: &'static MethodSpec,
    /// Its settings.
    pub settings: Settings,
    /// Its name in the results; unique in a plan.
    pub label: String,
}

impl Candidate {
    /// The method with its default settings, under its own name.
    pub fn new(spec: &'static MethodSpec) -> Candidate {
        Candidate { spec, settings: Settings::default(), label: spec.name.to_owned() }
    }

    /// The preset that it runs with.
    pub(crate) fn preset(&self) -> &str {
        self.settings.preset.as_deref().or(self.spec.presets.first().map(|p| p.0)).unwrap_or_default()
    }
}

/// How cells are hidden.
#[derive(Clone, Debug)]
pub enum HideBy {
    /// Drawn anew in each repeat, the same for every method.
    Mechanism {
        /// The rule by which cells go missing.
        mechanism: Mechanism,
        /// In which of the columns to fill. None: in the incomplete ones by [`Mechanism::Own`]; in all by the other
        /// mechanisms, and where the table names the columns to fill, for one who names a column wants to know it.
        within: Option<HideIn>,
        /// The share of the observed cells that is hidden.
        rate: f64,
        /// How often cells are hidden.
        repeats: usize,
    },
    /// The cells that stay are given; one repeat.
    Given(Observed),
}

/// In which columns of a table a mechanism hides cells where nobody says.
pub(crate) fn usual_columns(mechanism: Mechanism, table: &Table) -> HideIn {
    let names_columns = table.schema().columns().iter().any(|c| c.is_used() && c.role == Role::Predict);
    if mechanism == Mechanism::Own && !names_columns { HideIn::Incomplete } else { HideIn::All }
}

/// The range by which methods scale numbers. Scores are always scaled by the range of the complete column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScaleBy {
    /// The observed cells: all that a user has.
    #[default]
    Observed,
    /// The complete column, as in the published experiments: methods see the range of the hidden cells.
    Paper,
}

/// The plan of an evaluation.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The methods.
    pub methods: Vec<Candidate>,
    /// How cells are hidden.
    pub hide: HideBy,
    /// The seed of the first repeat; each further repeat takes the next one.
    pub seed: u64,
    /// The threads of each method; 0 takes as many as the machine allows.
    pub threads: usize,
    /// The seconds that a method may take in each repeat; then it returns the best it has.
    pub max_seconds: Option<f64>,
    /// The range by which methods scale numbers.
    pub scale: ScaleBy,
}

impl Default for Plan {
    /// No method yet; up to 30 % of the incomplete columns in the table's own patterns, three times, on all threads,
    /// without a time limit.
    fn default() -> Plan {
        Plan {
            methods: Vec::new(),
            hide: HideBy::Mechanism { mechanism: Mechanism::Own, within: None, rate: 0.3, repeats: 3 },
            seed: 0,
            threads: 0,
            max_seconds: None,
            scale: ScaleBy::Observed,
        }
    }
}

impl Plan {
    /// How often cells are hidden.
    pub fn repeats(&self) -> usize {
        match self.hide {
            HideBy::Mechanism { repeats, .. } => repeats,
            HideBy::Given(_) => 1,
        }
    }

    /// Whether the plan can be carried out on this table.
    pub(crate) fn check(&self, truth: &Table) -> Result<()> {
        let request =
            |what: &str, expected: String, got: String| Err(Error::Request { what: what.to_owned(), expected, got });
        if self.methods.is_empty() {
            return request("methods", "at least one".to_owned(), "none".to_owned());
        }
        for (at, candidate) in self.methods.iter().enumerate() {
            if self.methods[..at].iter().any(|other| other.label == candidate.label) {
                return request("methods", "each of them once".to_owned(), candidate.label.clone());
            }
        }
        if self.repeats() == 0 {
            return request("repeats", "at least 1".to_owned(), "0".to_owned());
        }
        if let Some(seconds) = self.max_seconds.filter(|s| !(*s >= 0.0 && *s < 1e12)) {
            return request("seconds", "a number of at least 0".to_owned(), seconds.to_string());
        }
        if let HideBy::Given(shown) = &self.hide
            && (shown.rows(), shown.cols()) != (truth.rows(), truth.cols())
        {
            let shape = |rows, cols| format!("{rows} rows of {cols} cells");
            let (expected, got) = (shape(truth.rows(), truth.cols()), shape(shown.rows(), shown.cols()));
            return request("given hidden cells", expected, got);
        }
        Ok(())
    }
}
