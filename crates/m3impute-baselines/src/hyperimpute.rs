//! HyperImpute: columns are filled in turn, each by the learner that suits it best.
//!
//! Notation: `n` rows, `w` features.

mod candidates;
mod column;
mod model;
mod published;
mod search;
mod state;

use crate::in_turn::{KEPT_NODES, levels_of};
use candidates::{Candidate, Effort};
use column::Column;
use m3impute_core::encode::{Constants, Layout, Scale};
use m3impute_core::{
    Completed, Encoded, Encoding, Expect, Finish, Imputer, Learnt, MatrixImputer, MatrixMethod, MethodSpec, ParamSpec,
    Result, Run, Settings, load_matrix_model,
};
use m3impute_learners::{FittedLearner, Response, Stream};
pub use model::Learners;
use search::Found;
use serde::{Deserialize, Serialize};
use state::State;

/// How the learner of a column is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Search {
    /// On observed cells that whole chains do not see.
    Hidden,
    /// As published: two-fold cross-validation within each iteration, among its own settings of the learners.
    Published,
}

/// The parameters of [`HyperImpute`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HyperImputeParams {
    /// How the learner of a column is found.
    pub search: Search,
    /// How often every column is gone through, at most.
    pub sweeps: usize,
    /// How many chains search, each without some observed cells; none: by the number of rows.
    pub folds: Option<usize>,
    /// How many trees a forest has.
    pub trees: usize,
    /// How many steps a network is trained.
    pub steps: usize,
    /// Whether ridge regression, or softmax regression for levels, is a candidate.
    pub linear: bool,
    /// Whether a random forest is.
    pub forest: bool,
    /// Whether extremely random trees are.
    pub extra: bool,
    /// Whether boosted trees are.
    pub boosting: bool,
    /// Whether the nearest rows are.
    pub neighbours: bool,
    /// Whether a small network is.
    pub network: bool,
    /// How often the columns of new rows are gone through.
    pub new_row_sweeps: usize,
}

impl Default for HyperImputeParams {
    fn default() -> HyperImputeParams {
        HyperImputeParams {
            search: Search::Hidden,
            sweeps: 4,
            folds: None,
            trees: 100,
            steps: 600,
            linear: true,
            forest: true,
            extra: true,
            boosting: true,
            neighbours: true,
            network: true,
            new_row_sweeps: 3,
        }
    }
}

impl HyperImputeParams {
    /// HyperImpute as its package runs it where there is no graphics card: without a network.
    pub fn paper() -> HyperImputeParams {
        HyperImputeParams { search: Search::Published, sweeps: 40, network: false, ..HyperImputeParams::default() }
    }

    fn of_preset(name: &str) -> HyperImputeParams {
        if name == "paper" { HyperImputeParams::paper() } else { HyperImputeParams::default() }
    }

    /// The learners among which one is searched.
    fn candidates(&self) -> Vec<&'static Candidate> {
        let mut all = Vec::new();
        let mut add =
            |wanted: bool, these: &[&'static Candidate]| all.extend_from_slice(if wanted { these } else { &[] });
        add(self.linear, &[&candidates::LINEAR]);
        add(self.forest, &[&candidates::FOREST]);
        add(self.extra, &[&candidates::EXTRA, &candidates::EXTRA_LARGE]);
        add(self.boosting, &[&candidates::BOOSTING, &candidates::BOOSTING_SMALL]);
        add(self.neighbours, &[&candidates::NEIGHBOURS]);
        add(self.network, &[&candidates::NETWORK]);
        all
    }

    /// How many chains search: with few rows one chain alone hides too few cells.
    fn folds_for(&self, rows: usize) -> usize {
        self.folds.unwrap_or(match rows {
            0..600 => 4,
            600..2000 => 3,
            _ => 2,
        })
    }
}

const PRESETS: &[(&str, &str)] = &[
    ("default", "eight learners a column, compared on observed cells that the chains do not see"),
    ("paper", "as its package runs it: forests of depth 3, ridge, boosting of depth 3, up to 40 iterations"),
];

/// The row of the registry.
pub static SPEC: MethodSpec = MethodSpec {
    name: "hyperimpute",
    summary: "columns are filled in turn, each by the learner that is best on its hidden cells",
    avoid: "very large tables in a hurry (`missforest`), or draws that keep the spread: it gives one likely value",
    inductive: true,
    distributions: false,
    randomised: true,
    slow: true,
    presets: PRESETS,
    params: &[
        ParamSpec {
            name: "search",
            doc: "how learners are compared: on hidden cells, or as published",
            expects: Expect::Choice(&["hidden", "published"]),
        },
        ParamSpec { name: "sweeps", doc: "how often every column is learnt, at most", expects: Expect::Whole(1, 1000) },
        ParamSpec {
            name: "folds",
            doc: "chains that search, each without some cells; `auto`: 2 to 4, by the rows",
            expects: Expect::Auto(&Expect::Whole(1, 20)),
        },
        ParamSpec { name: "trees", doc: "trees of a forest", expects: Expect::Whole(1, 10_000) },
        ParamSpec { name: "steps", doc: "steps of training a network", expects: Expect::Whole(1, 1_000_000) },
        ParamSpec {
            name: "linear",
            doc: "try linear regression, or softmax regression for levels",
            expects: Expect::Flag,
        },
        ParamSpec { name: "forest", doc: "try a random forest", expects: Expect::Flag },
        ParamSpec { name: "extra", doc: "try extremely random trees", expects: Expect::Flag },
        ParamSpec { name: "boosting", doc: "try boosted trees", expects: Expect::Flag },
        ParamSpec { name: "neighbours", doc: "try the nearest rows", expects: Expect::Flag },
        ParamSpec { name: "network", doc: "try a small network", expects: Expect::Flag },
        ParamSpec {
            name: "new_row_sweeps",
            doc: "how often the columns of new rows are gone through",
            expects: Expect::Whole(1, 100),
        },
    ],
    preset_values: |name| {
        let known = PRESETS.iter().any(|p| p.0 == name);
        known.then(|| serde_json::to_value(HyperImputeParams::of_preset(name)).unwrap_or_default())
    },
    build: |settings: &Settings| -> Result<Box<dyn Imputer>> {
        let params = SPEC.params(settings, HyperImputeParams::of_preset)?;
        Ok(Box::new(MatrixImputer::new(&SPEC, HyperImpute { params }, settings.finish.over(Finish::default()))))
    },
    load: |file| load_matrix_model::<HyperImpute>(&SPEC, file),
};

/// Columns are filled in turn, each by the learner that suits it best.
///
/// ```
/// use m3impute_core::{Column, ColumnSpec, Kind, Run, Schema, Settings, Table};
///
/// let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous), ColumnSpec::new("y", Kind::Continuous)])?;
/// let x = Column::numbers((0..40).map(|i| Some(f64::from(i))));
/// let y = Column::numbers((0..40).map(|i| (i % 10 != 7).then_some(3.0 * f64::from(i) + 2.0)));
/// let table = Table::new(schema, vec![x, y])?;
/// let hyperimpute = m3impute_baselines::METHODS.iter().find(|m| m.name == "hyperimpute").unwrap();
/// let filled = (hyperimpute.build)(&Settings::default())?.impute(&table, &mut Run::new(0, 1)?)?;
/// assert!((filled.table.number(17, 1) - 53.0).abs() < 0.1);
/// assert!(filled.notes[0].contains("linear"));
/// # Ok::<(), m3impute_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct HyperImpute {
    /// The parameters.
    pub params: HyperImputeParams,
}

/// The learner of each feature; none where nothing was learnt, `[w]`.
type OfFeatures = Vec<Option<Box<dyn FittedLearner>>>;

/// What is kept of learning: the completed table alone, or a model for new rows, which costs more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Completed,
    Model,
}

/// A table whose columns are to be filled.
#[derive(Clone, Copy, Debug)]
struct Problem<'a> {
    params: &'a HyperImputeParams,
    data: &'a Encoded,
    columns: &'a [Column],
    /// What is predicted of each feature, `[w]`.
    responses: &'a [Response],
    /// The features with missing cells, in the order in which they are filled.
    open: &'a [usize],
}

/// As published, numbers with fewer values are classes; a missing cell counts as a value.
const CLASSES_BELOW: usize = 5;

impl MatrixMethod for HyperImpute {
    type Model = Learners;
    type Params = HyperImputeParams;

    fn params(&self) -> &HyperImputeParams {
        &self.params
    }

    fn encoding(&self) -> Encoding {
        Encoding { layout: Layout::Codes, scale: Scale::Unit, constants: Constants::Leave }
    }

    fn fit(&self, data: &Encoded, run: &mut Run) -> Result<Learnt<Learners>> {
        self.learn(&mut data.clone(), run, Keep::Model)
    }

    fn complete(&self, data: &mut Encoded, run: &mut Run) -> Result<Option<Completed>> {
        Ok(Some(Completed::with_notes(self.learn(data, run, Keep::Completed)?.notes)))
    }
}

impl HyperImpute {
    fn learn(&self, data: &mut Encoded, run: &mut Run, keep: Keep) -> Result<Learnt<Learners>> {
        let (w, published) = (data.width(), self.params.search == Search::Published);
        let columns: Vec<Column> = (0..w)
            .map(|f| {
                let holes = usize::from(data.missing_in(f) > 0);
                let coded_below = if published { CLASSES_BELOW - holes } else { 0 };
                Column::of(&data.observed_values(f), levels_of(data.features[f].meaning), coded_below)
            })
            .collect();
        let responses: Vec<Response> =
            (0..w).map(|f| columns[f].response(&data.observed_values(f), !published)).collect();
        let mut order: Vec<usize> = (0..w).collect();
        order.sort_by_key(|&f| if data.missing_in(f) == 0 { usize::MAX } else { data.missing_in(f) });
        let open: Vec<usize> = order.iter().copied().filter(|&f| data.missing_in(f) > 0).collect();

        let mut notes = Vec::new();
        let problem = Problem { params: &self.params, data, columns: &columns, responses: &responses, open: &open };
        let (state, mut learners) = if published {
            let done = published::iterate(problem, run)?;
            order.splice(..open.len(), done.order);
            notes.extend(done.notes);
            notes.extend(chosen(data, &open, |f| done.chosen[f]));
            (done.state, done.learners)
        } else {
            let found = search::search(problem, run)?;
            let done = self.sweep(data, &columns, &responses, &open, &found, run)?;
            notes.extend(found.notes);
            notes.extend(done.2);
            let predicted = |f: usize| done.1[f].as_ref().map(|_| found.chosen[f].0);
            notes.extend(chosen(data, &open, predicted));
            (done.0, done.1)
        };
        for &f in open.iter().filter(|&&f| learners[f].is_some()) {
            for &i in &state.holes[f] {
                let at = i as usize * w + f;
                data.x[at] = columns[f].write(state.x()[at]);
            }
        }
        if keep == Keep::Model {
            self.learn_complete_columns(&state, &responses, &order[open.len()..], &mut learners, &mut notes, run)?;
            for learner in learners.iter_mut().flatten() {
                learner.truncate(KEPT_NODES / w);
            }
        }
        Ok(Learnt {
            model: Learners { new_row_sweeps: self.params.new_row_sweeps, columns, order, responses, learners },
            notes,
        })
    }

    /// The table again from the start, now with every observed cell, by the learners that were found.
    fn sweep(
        &self,
        data: &Encoded,
        columns: &[Column],
        responses: &[Response],
        open: &[usize],
        found: &Found,
        run: &mut Run,
    ) -> Result<(State, OfFeatures, Vec<String>)> {
        let mut state = State::start(data, columns);
        let mut learners: OfFeatures = columns.iter().map(|_| None).collect();
        let mut notes = Vec::new();
        'sweeps: for sweep in 0..found.sweeps {
            for (at, &f) in open.iter().enumerate() {
                run.report("sweeps", (sweep * open.len() + at) as u64, (found.sweeps * open.len()) as u64, "");
                let (candidate, rounds) = found.chosen[f];
                // What the next sweep fills anew needs fewer trees.
                let last = sweep + 1 == found.sweeps;
                let trees = if last { self.params.trees } else { self.params.trees.div_ceil(3) };
                let effort = Effort { trees, steps: self.params.steps, rounds };
                let task = state.task(f, &responses[f], &state.shown[f]);
                let index = (sweep * columns.len() + f) as u64;
                let Some(learner) = candidate.fit(&task, &effort, run, Stream { purpose: "hyperimpute fit", index })?
                else {
                    notes.push(format!(
                        "time limit reached in sweep {} of {}: its last {} columns keep earlier predictions",
                        sweep + 1,
                        found.sweeps,
                        open.len() - at
                    ));
                    break 'sweeps;
                };
                state.fill(f, learner.as_ref(), run)?;
                learners[f] = Some(learner);
            }
        }
        Ok((state, learners, notes))
    }

    /// Columns without a missing cell may have some in new rows: they get a small forest.
    #[allow(clippy::too_many_arguments)]
    fn learn_complete_columns(
        &self,
        state: &State,
        responses: &[Response],
        complete: &[usize],
        learners: &mut [Option<Box<dyn FittedLearner>>],
        notes: &mut Vec<String>,
        run: &mut Run,
    ) -> Result<()> {
        let published = self.params.search == Search::Published;
        let candidate = if published { &candidates::PUBLISHED_FOREST } else { &candidates::EXTRA };
        let effort = Effort { trees: self.params.trees.div_ceil(4), steps: self.params.steps, rounds: None };
        for (at, &f) in complete.iter().enumerate() {
            run.report("complete columns", at as u64, complete.len() as u64, "");
            let task = state.task(f, &responses[f], &state.shown[f]);
            learners[f] =
                candidate.fit(&task, &effort, run, Stream { purpose: "hyperimpute complete", index: f as u64 })?;
            if learners[f].is_none() {
                notes.push(format!(
                    "time limit reached: missing cells of new rows in {} columns that are complete here get the baseline",
                    complete.len() - at
                ));
                break;
            }
        }
        Ok(())
    }
}

/// A sentence about which learner fills which columns.
fn chosen(data: &Encoded, open: &[usize], candidate: impl Fn(usize) -> Option<&'static Candidate>) -> Option<String> {
    let mut by_name: Vec<(&str, Vec<usize>)> = Vec::new();
    let mut sorted = open.to_vec();
    sorted.sort_unstable();
    for f in sorted {
        let Some(candidate) = candidate(f) else { continue };
        let column = data.features[f].column + 1;
        match by_name.iter_mut().find(|(name, _)| *name == candidate.name) {
            Some((_, columns)) => columns.push(column),
            None => by_name.push((candidate.name, vec![column])),
        }
    }
    let said = |(name, columns): (&str, Vec<usize>)| {
        let columns: Vec<String> = columns.iter().map(usize::to_string).collect();
        format!("{name} in column {}", columns.join(", "))
    };
    let parts: Vec<String> = by_name.into_iter().map(said).collect();
    (!parts.is_empty()).then(|| format!("learners: {}", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{impute, schema, settings};
    use m3impute_core::{Column as TableColumn, Table};
    use std::time::Duration;

    /// `y` is twice `x`; `step` is 5 up to 30 and 9 above it; `side` says whether `x` is above 20.
    fn table() -> Table {
        let schema = schema(&["x", "y", "step"], "side", ["low", "high"]);
        let x = (0..60).map(f64::from);
        let columns = vec![
            TableColumn::numbers(x.clone().map(Some)),
            TableColumn::numbers(x.clone().map(|v| (v as u32 % 7 != 2).then_some(2.0 * v))),
            TableColumn::numbers(x.clone().map(|v| (v as u32 % 11 != 5).then_some(if v > 30.0 { 9.0 } else { 5.0 }))),
            TableColumn::codes(x.map(|v| (v as u32 % 13 != 6).then_some(u32::from(v > 20.0)))),
        ];
        Table::new(schema, columns).unwrap()
    }

    fn imputer(params: &[(&str, &str)]) -> Box<dyn Imputer> {
        (SPEC.build)(&settings("default", params)).unwrap()
    }

    #[test]
    fn each_column_gets_the_learner_that_suits_it() {
        let out = imputer(&[("steps", "50")]).impute(&table(), &mut Run::new(0, 1).unwrap()).unwrap();
        for i in 0..60 {
            let x = i as f64;
            assert!((out.table.number(i, 1) - 2.0 * x).abs() < 0.5, "row {i}: {}", out.table.number(i, 1));
            assert_eq!(out.table.number(i, 2), if x > 30.0 { 9.0 } else { 5.0 }, "row {i}");
            assert_eq!(out.table.number(i, 3), f64::from(u8::from(x > 20.0)), "row {i}");
        }
        assert!(out.notes[0].starts_with("learners: linear in column 2"), "{:?}", out.notes);
    }

    #[test]
    fn learners_that_are_not_wanted_are_not_chosen() {
        let params = [("linear", "false"), ("boosting", "false"), ("network", "false"), ("trees", "10")];
        let out = imputer(&params).impute(&table(), &mut Run::new(0, 1).unwrap()).unwrap();
        assert!(!out.notes[0].contains("linear") && !out.notes[0].contains("boosting"), "{:?}", out.notes);
        let none = ["linear", "forest", "extra", "boosting", "neighbours", "network"].map(|name| (name, "false"));
        assert!(imputer(&none).impute(&table(), &mut Run::new(0, 1).unwrap()).is_ok());
    }

    #[test]
    fn the_published_preset_is_the_published_method() {
        let params = HyperImputeParams::paper();
        assert_eq!((params.search, params.sweeps, params.trees), (Search::Published, 40, 100));
        let filled = impute(&SPEC, &settings("paper", &[]));
        assert!((filled.number(9, 1) - 18.0).abs() < 4.0, "{}", filled.number(9, 1));
    }

    #[test]
    fn without_time_the_notes_say_so() {
        let mut run = Run::new(0, 1).unwrap().within(Duration::ZERO);
        let out = imputer(&[]).impute(&table(), &mut run).unwrap();
        assert!(out.notes.iter().any(|note| note.contains("time")), "{:?}", out.notes);
        assert_eq!(out.fallbacks.len(), 3);
    }
}
