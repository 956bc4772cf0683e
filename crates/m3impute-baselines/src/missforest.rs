//! missForest: every column is learnt from the others by a forest, again and again, until the predictions settle.
//!
//! Notation: `n` rows, `w` features.

mod model;

use crate::in_turn::{KEPT_NODES, UnitFeature, levels_of};
use m3impute_core::encode::{Constants, Layout, Scale};
use m3impute_core::{
    Completed, Encoded, Encoding, Expect, Finish, Imputer, Learnt, MatrixImputer, MatrixMethod, MethodSpec, ParamSpec,
    RandomStream, Result, Run, Settings, load_matrix_model,
};
use m3impute_learners::forest::{Aggregate, Forest, ForestParams, Frame};
use m3impute_learners::tree::Growth;
pub use model::Forests;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// When the sweeps end before their number is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// When the change from sweep to sweep grows, for numbers and for levels; the sweep before is returned.
    Growing,
    /// Never.
    Never,
}

/// The parameters of [`MissForest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissForestParams {
    /// How many trees a column has.
    pub trees: usize,
    /// How many features are tried for a cut.
    pub mtry: Option<usize>,
    /// How many rows a leaf has at least.
    pub min_leaf: Option<usize>,
    /// Whether what is `auto` among `mtry` and `min_leaf` is chosen for each column on held-out observed cells.
    pub tune: bool,
    /// How deep a tree may grow.
    pub max_depth: Option<usize>,
    /// Whether thresholds are drawn at random instead of searched.
    pub extra: bool,
    /// Whether each tree sees rows drawn with replacement, rather than all.
    pub bootstrap: bool,
    /// How the trees' predictions become one number.
    pub aggregate: Aggregate,
    /// How often every column is learnt anew, at most.
    pub sweeps: usize,
    /// When to stop before.
    pub stop: Stop,
    /// How often the columns of new rows are gone through.
    pub new_row_sweeps: usize,
}

impl Default for MissForestParams {
    fn default() -> MissForestParams {
        MissForestParams {
            trees: 100,
            mtry: None,
            min_leaf: None,
            tune: true,
            max_depth: None,
            extra: true,
            bootstrap: false,
            aggregate: Aggregate::Median,
            sweeps: 4,
            stop: Stop::Never,
            new_row_sweeps: 3,
        }
    }
}

impl MissForestParams {
    /// missForest as it was published.
    pub fn paper() -> MissForestParams {
        MissForestParams {
            tune: false,
            extra: false,
            bootstrap: true,
            aggregate: Aggregate::Mean,
            sweeps: 10,
            stop: Stop::Growing,
            ..MissForestParams::default()
        }
    }

    fn of_preset(name: &str) -> MissForestParams {
        if name == "paper" { MissForestParams::paper() } else { MissForestParams::default() }
    }
}

const PRESETS: &[(&str, &str)] = &[
    ("default", "extremely random trees, the median of their leaves, leaf and feature counts chosen for each column"),
    ("paper", "as published: 100 trees, the root of the number of features a cut, up to 10 sweeps"),
];

/// The row of the registry.
pub static SPEC: MethodSpec = MethodSpec {
    name: "missforest",
    summary: "every column is learnt from the others by a forest, again and again",
    avoid: "a few rows with linear relations (`mice`), or draws that keep the spread: it gives one likely value",
    inductive: true,
    distributions: false,
    randomised: true,
    slow: false,
    presets: PRESETS,
    params: &[
        ParamSpec { name: "trees", doc: "trees a column", expects: Expect::Whole(1, 10_000) },
        ParamSpec {
            name: "mtry",
            doc: "features tried for a cut; `auto`: tuned, or the root of their number",
            expects: Expect::Auto(&Expect::Whole(1, 1_000_000)),
        },
        ParamSpec {
            name: "min_leaf",
            doc: "rows a leaf has at least; `auto`: tuned, or 5 for numbers and 1 for levels",
            expects: Expect::Auto(&Expect::Whole(1, 1_000_000)),
        },
        ParamSpec {
            name: "tune",
            doc: "choose what is `auto` for each column on held-out observed cells",
            expects: Expect::Flag,
        },
        ParamSpec {
            name: "max_depth",
            doc: "how deep a tree may grow; `auto`: as deep as it likes",
            expects: Expect::Auto(&Expect::Whole(1, 1_000_000)),
        },
        ParamSpec { name: "extra", doc: "draw thresholds at random instead of searching them", expects: Expect::Flag },
        ParamSpec { name: "bootstrap", doc: "each tree sees rows drawn with replacement", expects: Expect::Flag },
        ParamSpec {
            name: "aggregate",
            doc: "how the trees' predictions become one number",
            expects: Expect::Choice(&["mean", "median"]),
        },
        ParamSpec { name: "sweeps", doc: "how often every column is learnt, at most", expects: Expect::Whole(1, 1000) },
        ParamSpec {
            name: "stop",
            doc: "stop when the change between sweeps grows, returning the one before",
            expects: Expect::Choice(&["growing", "never"]),
        },
        ParamSpec {
            name: "new_row_sweeps",
            doc: "how often the columns of new rows are gone through",
            expects: Expect::Whole(1, 100),
        },
    ],
    preset_values: |name| {
        let known = PRESETS.iter().any(|p| p.0 == name);
        known.then(|| serde_json::to_value(MissForestParams::of_preset(name)).unwrap_or_default())
    },
    build: |settings: &Settings| -> Result<Box<dyn Imputer>> {
        let params = SPEC.params(settings, MissForestParams::of_preset)?;
        Ok(Box::new(MatrixImputer::new(&SPEC, MissForest { params }, settings.finish.over(Finish::default()))))
    },
    load: |file| load_matrix_model::<MissForest>(&SPEC, file),
};

/// Every column is learnt from the others by a forest, again and again.
///
/// ```
/// use m3impute_core::{Column, ColumnSpec, Kind, Run, Schema, Settings, Table};
///
/// let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous), ColumnSpec::new("y", Kind::Continuous)])?;
/// let x = Column::numbers((0..20).map(|i| Some(f64::from(i % 2))));
/// let y = Column::numbers((0..20).map(|i| (i != 7).then_some(f64::from(i % 2) * 10.0)));
/// let table = Table::new(schema, vec![x, y])?;
/// let missforest = m3impute_baselines::METHODS.iter().find(|m| m.name == "missforest").unwrap();
/// let filled = (missforest.build)(&Settings::default())?.impute(&table, &mut Run::new(0, 1)?)?;
/// assert_eq!(filled.table.number(7, 1), 10.0);
/// # Ok::<(), m3impute_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MissForest {
    /// The parameters.
    pub params: MissForestParams,
}

impl MatrixMethod for MissForest {
    type Model = Forests;
    type Params = MissForestParams;

    fn params(&self) -> &MissForestParams {
        &self.params
    }

    fn encoding(&self) -> Encoding {
        Encoding { layout: Layout::Codes, scale: Scale::Unit, constants: Constants::Leave }
    }

    fn fit(&self, data: &Encoded, run: &mut Run) -> Result<Learnt<Forests>> {
        let mut sweeps = Sweeps::start(&self.params, data);
        sweeps.go(run, true)?;
        sweeps.learn_complete_columns(run)?;
        sweeps.say_what_is_kept();
        let notes = std::mem::take(&mut sweeps.notes);
        Ok(Learnt {
            model: Forests::new(self.params.new_row_sweeps, sweeps.features, sweeps.order, sweeps.forests),
            notes,
        })
    }

    fn complete(&self, data: &mut Encoded, run: &mut Run) -> Result<Option<Completed>> {
        let mut sweeps = Sweeps::start(&self.params, data);
        sweeps.go(run, false)?;
        sweeps.prediction(data);
        Ok(Some(Completed::with_notes(sweeps.notes)))
    }
}

/// Columns with fewer observed cells are not tuned: there is nothing to tell good from bad.
const TUNE_FROM: usize = 30;
/// The share of the time that tuning may take, where the time is limited.
const TUNE_SHARE: f64 = 0.3;
/// More rows than this are not looked at to tune a column.
const TUNE_ROWS: usize = 3000;
/// A column with more levels is not predicted: every cut would count each of them.
const MOST_LEVELS: usize = 4096;
const TUNE_FOLDS: usize = 3;
const TUNE_TREES: usize = 30;

/// The state of the sweeps over a table.
struct Sweeps<'a> {
    params: &'a MissForestParams,
    features: Vec<UnitFeature>, // [w]
    /// What numbers were divided by, and what was subtracted before, `[w]`.
    scales: Vec<(f64, f64)>,
    /// The rows in which a feature is observed, and in which it is not, `[w]`.
    shown: Vec<Vec<u32>>,
    holes: Vec<Vec<u32>>,
    /// Features with missing cells, those with the fewest first; after them the complete ones.
    order: Vec<usize>,
    frame: Frame,
    /// What is chosen for each feature: features a cut, and rows a leaf.
    chosen: Vec<Option<(usize, usize)>>, // [w]
    /// Whether a feature's missing cells hold a forest's predictions, `[w]`.
    predicted: Vec<bool>,
    forests: Vec<Option<Forest>>, // [w]
    notes: Vec<String>,
}

/// How far two sweeps are apart: for numbers, and for levels.
type Change = [Option<f64>; 2];

impl<'a> Sweeps<'a> {
    fn start(params: &'a MissForestParams, data: &Encoded) -> Sweeps<'a> {
        let w = data.width();
        let kinds: Vec<usize> = data.features.iter().map(|f| levels_of(f.meaning)).collect();
        let features: Vec<UnitFeature> = (0..w).map(|f| UnitFeature::of(&data.observed_values(f), kinds[f])).collect();
        let scales = data.features.iter().map(|f| (f.scale, f.centre)).collect();
        let (shown, holes): (Vec<Vec<u32>>, Vec<Vec<u32>>) =
            (0..w).map(|f| (0..data.rows as u32).partition(|&i| data.observed[i as usize * w + f])).unzip();
        let mut order: Vec<usize> = (0..w).collect();
        order.sort_by_key(|&f| if holes[f].is_empty() { usize::MAX } else { holes[f].len() });
        let x = data.x.chunks_exact(w).flat_map(|row| features.iter().zip(row).map(|(feature, &v)| feature.read(v)));
        let frame = Frame::new(x.collect(), &kinds);
        let (chosen, predicted, forests) = (vec![None; w], vec![false; w], (0..w).map(|_| None).collect());
        Sweeps { params, features, scales, shown, holes, order, frame, chosen, predicted, forests, notes: Vec::new() }
    }

    fn go(&mut self, run: &mut Run, keep: bool) -> Result<()> {
        let is_learnt = |f: &usize| self.features[*f].levels <= MOST_LEVELS;
        let with_holes = self.order.iter().copied().filter(|&f| !self.holes[f].is_empty());
        let (open, left): (Vec<usize>, Vec<usize>) = with_holes.partition(is_learnt);
        if !left.is_empty() {
            self.notes
                .push(format!("{} columns have more than {MOST_LEVELS} levels and are not predicted", left.len()));
        }
        if self.params.tune && !self.tune(&open, run)? {
            return Ok(());
        }
        // With missing cells in one column alone its predictors never change.
        let sweeps = if open.len() == 1 { 1 } else { self.params.sweeps };
        let mut before: Option<Change> = None;
        for sweep in 0..sweeps {
            let old_frame = self.frame.clone();
            let mut old_forests: Vec<Option<Forest>> = (0..self.forests.len()).map(|_| None).collect();
            for (at, &f) in open.iter().enumerate() {
                let index = (sweep * self.features.len() + f) as u64;
                let Some(mut forest) =
                    Forest::fit(&self.frame, f, &self.shown[f], &self.plan(f), run, "missforest tree", index)?
                else {
                    self.notes.push(format!(
                        "time limit reached in sweep {} of at most {sweeps}: its last {} columns keep earlier predictions",
                        sweep + 1,
                        open.len() - at
                    ));
                    return Ok(());
                };
                let predictions = forest.predict(self.frame.x(), &self.holes[f], run)?;
                self.frame.set(f, &self.holes[f], &predictions);
                self.predicted[f] = true;
                if keep {
                    forest.keep_nodes(KEPT_NODES / self.features.len());
                    old_forests[f] = self.forests[f].replace(forest);
                }
                run.report("sweeps", (sweep * open.len() + at + 1) as u64, (sweeps * open.len()) as u64, "");
            }
            if self.params.stop == Stop::Growing {
                let change = self.change_since(&old_frame);
                let grows = |before: Change| {
                    let shrinks = |k: usize| matches!((before[k], change[k]), (Some(old), Some(new)) if new < old);
                    !shrinks(0) && !shrinks(1)
                };
                if before.is_some_and(grows) {
                    self.frame = old_frame;
                    if keep {
                        self.forests = old_forests;
                    }
                    break;
                }
                before = Some(change);
            }
        }
        Ok(())
    }

    fn plan(&self, f: usize) -> ForestParams {
        let (mtry, min_leaf) = self.chosen[f].unwrap_or_else(|| self.classic(f));
        self.plan_with(mtry, min_leaf)
    }

    fn plan_with(&self, mtry: usize, min_leaf: usize) -> ForestParams {
        let params = self.params;
        ForestParams {
            trees: params.trees,
            growth: Growth {
                mtry: params.mtry.unwrap_or(mtry),
                min_leaf: params.min_leaf.unwrap_or(min_leaf) as f64,
                max_depth: params.max_depth.unwrap_or(usize::MAX),
                random_cuts: params.extra,
            },
            bootstrap: params.bootstrap,
            aggregate: params.aggregate,
        }
    }

    /// Features a cut and rows a leaf as they were published.
    fn classic(&self, f: usize) -> (usize, usize) {
        let root = (self.features.len() as f64).sqrt() as usize;
        (root.max(1), if self.features[f].levels > 0 { 1 } else { 5 })
    }

    /// Chooses features a cut and rows a leaf for these columns: those with the smallest absolute error, or the fewest
    /// wrong levels, on observed cells that were held out. Says whether there was time for all.
    ///
    /// Every other column is as at the start: predictions that have seen a cell would tell what it holds.
    fn tune(&mut self, columns: &[usize], run: &mut Run) -> Result<bool> {
        let w = self.features.len();
        let mut choices = Vec::new();
        for mtry in [(w as f64).sqrt() as usize, w.div_ceil(2)] {
            for min_leaf in [1, 3, 8] {
                let choice = (self.params.mtry.unwrap_or(mtry.max(1)), self.params.min_leaf.unwrap_or(min_leaf));
                if !choices.contains(&choice) {
                    choices.push(choice);
                }
            }
        }
        let part = run.part(TUNE_SHARE);
        for (at, &f) in columns.iter().enumerate() {
            run.report("tuning", at as u64, columns.len() as u64, "");
            let mut rows = self.shown[f].clone();
            if choices.len() < 2 || rows.len() < TUNE_FROM || w < 2 {
                continue;
            }
            let mut rng = RandomStream::new(run.rng("missforest folds", f as u64).next_u64());
            rng.shuffle_front(&mut rows, TUNE_ROWS);
            rows.truncate(TUNE_ROWS);
            let mut best: Option<(f64, (usize, usize))> = None;
            for &(mtry, min_leaf) in &choices {
                let plan = ForestParams { trees: self.params.trees.min(TUNE_TREES), ..self.plan_with(mtry, min_leaf) };
                let Some(error) = self.held_out_error(f, &rows, &plan, &part)? else {
                    // Without any time left, there is more to be told than this.
                    if run.is_spent() {
                        self.notes.push("time limit reached before the first sweep".to_owned());
                        return Ok(false);
                    }
                    let left = columns.len() - at;
                    self.notes.push(format!("the time for tuning was up: {left} columns are not tuned"));
                    return Ok(true);
                };
                if best.is_none_or(|b| error < b.0) {
                    best = Some((error, (mtry, min_leaf)));
                }
            }
            self.chosen[f] = best.map(|b| b.1);
        }
        Ok(true)
    }

    fn held_out_error(&self, f: usize, rows: &[u32], plan: &ForestParams, run: &Run) -> Result<Option<f64>> {
        let mut error = 0.0;
        for fold in 0..TUNE_FOLDS {
            let pick = |held: bool| -> Vec<u32> {
                (0..rows.len()).filter(|k| (k % TUNE_FOLDS == fold) == held).map(|k| rows[k]).collect()
            };
            let (learnt_from, held) = (pick(false), pick(true));
            let index = (f * TUNE_FOLDS + fold) as u64;
            let Some(forest) = Forest::fit(&self.frame, f, &learnt_from, plan, run, "missforest tuning", index)? else {
                return Ok(None);
            };
            let predictions = forest.predict(self.frame.x(), &held, run)?;
            for (&i, prediction) in held.iter().zip(predictions) {
                let truth = self.frame.x()[i as usize * self.features.len() + f];
                let wrong = f64::from((prediction - truth).abs());
                error += if self.features[f].levels > 0 { f64::from(u8::from(wrong > 0.0)) } else { wrong };
            }
        }
        Ok(Some(error))
    }

    /// Columns without a missing cell may have some in new rows: they get a forest too, a small one.
    fn learn_complete_columns(&mut self, run: &mut Run) -> Result<()> {
        let complete: Vec<usize> = self
            .order
            .iter()
            .copied()
            .filter(|&f| self.holes[f].is_empty() && self.features[f].levels <= MOST_LEVELS)
            .collect();
        for (at, &f) in complete.iter().enumerate() {
            run.report("complete columns", at as u64, complete.len() as u64, "");
            let plan = ForestParams { trees: self.params.trees.div_ceil(4), ..self.plan(f) };
            let fitted = Forest::fit(&self.frame, f, &self.shown[f], &plan, run, "missforest complete", f as u64)?;
            let Some(mut forest) = fitted else {
                self.notes.push(format!(
                    "time limit reached: missing cells of new rows in {} columns that are complete here get the baseline",
                    complete.len() - at
                ));
                break;
            };
            forest.keep_nodes(KEPT_NODES / self.features.len());
            self.forests[f] = Some(forest);
        }
        Ok(())
    }

    /// New rows are filled by fewer trees than were grown, where the model would be too large.
    fn say_what_is_kept(&mut self) {
        let with_holes = (0..self.features.len()).filter(|&f| !self.holes[f].is_empty());
        let kept = with_holes.filter_map(|f| self.forests[f].as_ref()).map(Forest::trees).min();
        if let Some(kept) = kept.filter(|&kept| kept < self.params.trees) {
            self.notes
                .push(format!("the model keeps {kept} or more of {} trees a column for new rows", self.params.trees));
        }
    }

    fn change_since(&self, old: &Frame) -> Change {
        let w = self.features.len();
        let (mut squares, mut size, mut numbers) = (0.0, 0.0, false);
        let (mut changed, mut cells) = (0_usize, 0_usize);
        for (f, feature) in self.features.iter().enumerate() {
            if feature.levels > 0 {
                cells += self.holes[f].len();
                changed += self.holes[f]
                    .iter()
                    .filter(|&&i| old.x()[i as usize * w + f] != self.frame.x()[i as usize * w + f])
                    .count();
                continue;
            }
            numbers = true;
            for (a, b) in old.column(f).zip(self.frame.column(f)) {
                let raw = |v: f32| f64::from(v) * self.scales[f].0 + self.scales[f].1;
                let (a, b) = (raw(a), raw(b));
                squares += (a - b) * (a - b);
                size += b * b;
            }
        }
        [numbers.then_some(squares / size), (cells > 0).then(|| changed as f64 / cells as f64)]
    }

    /// Writes the predictions down. Holes of columns that no forest has predicted stay empty.
    fn prediction(&self, data: &mut Encoded) {
        let w = self.features.len();
        for f in (0..w).filter(|&f| self.predicted[f]) {
            for &i in &self.holes[f] {
                let at = i as usize * w + f;
                data.x[at] = f64::from(self.frame.x()[at]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::{Cancel, Column, ColumnSpec, FittedImputer, Kind, ModelFile, Schema, Table, Tensor};
    use std::time::Duration;

    /// `x` is 0..10, `y` is ten times that, `c` says whether it is below 3, below 7 or more; `z` is complete.
    fn table() -> Table {
        let schema = Schema::new(vec![
            ColumnSpec::new("x", Kind::Continuous),
            ColumnSpec::new("y", Kind::Integer),
            ColumnSpec::with_levels("c", Kind::Categorical, ["low", "middle", "high"]),
            ColumnSpec::new("z", Kind::Continuous),
        ])
        .unwrap();
        let v = |i: u32| i % 10;
        let level = |v: u32| u32::from(v >= 3) + u32::from(v >= 7);
        let columns = vec![
            Column::numbers((0..80).map(|i| (i % 7 != 0).then_some(f64::from(v(i))))),
            Column::numbers((0..80).map(|i| (i % 11 != 1).then_some(f64::from(v(i)) * 10.0))),
            Column::codes((0..80).map(|i| (i % 13 != 2).then_some(level(v(i))))),
            Column::numbers((0..80).map(|i| Some(-f64::from(v(i)) / 10.0))),
        ];
        Table::new(schema, columns).unwrap()
    }

    fn imputer(preset: &str, params: &[(&str, &str)]) -> Box<dyn Imputer> {
        let params = params.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        (SPEC.build)(&Settings { preset: Some(preset.to_owned()), params, ..Settings::default() }).unwrap()
    }

    fn run(threads: usize) -> Run {
        Run::new(5, threads).unwrap()
    }

    fn fitted() -> Box<dyn FittedImputer> {
        imputer("default", &[("trees", "20")]).as_inductive().unwrap().fit(&table(), &mut run(1)).unwrap()
    }

    #[test]
    fn what_follows_from_other_columns_is_found() {
        let out = imputer("default", &[]).impute(&table(), &mut run(1)).unwrap();
        assert!(out.fallbacks.is_empty() && out.notes.is_empty());
        for i in 0..80 {
            let v = (i % 10) as f64;
            let want = [v, v * 10.0, f64::from(u8::from(v >= 3.0) + u8::from(v >= 7.0)), -v / 10.0];
            let got: Vec<f64> = (0..4).map(|j| out.table.number(i, j)).collect();
            assert_eq!(got, want, "row {i}");
        }
    }

    #[test]
    fn the_published_preset_is_the_published_method() {
        let params = MissForestParams::paper();
        assert_eq!((params.trees, params.sweeps, params.stop, params.tune), (100, 10, Stop::Growing, false));
        assert!(params.bootstrap && !params.extra && params.aggregate == Aggregate::Mean);
        let out = imputer("paper", &[]).impute(&table(), &mut run(1)).unwrap();
        assert!((out.table.number(7, 0) - 7.0).abs() < 1.0 && out.table.number(2, 2) == 0.0);
    }

    #[test]
    fn threads_do_not_change_a_byte() {
        for preset in ["default", "paper"] {
            let filled =
                |threads| imputer(preset, &[("trees", "20")]).impute(&table(), &mut run(threads)).unwrap().table;
            assert_eq!(filled(1), filled(2));
        }
    }

    #[test]
    fn a_fitted_model_fills_its_own_table_as_imputing_does_nearly() {
        let out = fitted().transform(&table(), &mut run(1)).unwrap().table;
        assert_eq!((out.number(7, 0), out.number(1, 1), out.number(2, 2)), (7.0, 10.0, 0.0));
    }

    #[test]
    fn a_saved_model_fills_the_same_bit_for_bit() {
        let (fitted, mut bytes) = (fitted(), Vec::new());
        fitted.save(&mut bytes).unwrap();
        let loaded = (SPEC.load)(&ModelFile::read(&bytes).unwrap()).unwrap();
        let filled = |f: &dyn FittedImputer| f.transform(&table(), &mut run(1)).unwrap().table;
        assert_eq!(filled(&*loaded), filled(&*fitted));
        let mut again = Vec::new();
        loaded.save(&mut again).unwrap();
        assert_eq!(bytes, again);
    }

    #[test]
    fn each_new_row_is_filled_by_itself() {
        let (fitted, table) = (fitted(), table());
        let together = fitted.transform(&table, &mut run(2)).unwrap().table;
        for i in [0, 1, 2, 7, 77] {
            let alone = fitted.transform(&table.select_rows(&[i]), &mut run(1)).unwrap().table;
            assert_eq!(alone, together.select_rows(&[i]));
        }
    }

    #[test]
    fn a_column_that_was_complete_is_filled_in_new_rows() {
        let mut rows = table().select_rows(&[4, 5]);
        rows.hide(0, 3);
        let out = fitted().transform(&rows, &mut run(1)).unwrap();
        assert!(out.fallbacks.is_empty());
        assert_eq!(out.table.number(0, 3), -0.4);
    }

    #[test]
    fn one_row_and_one_column_are_filled() {
        let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous)]).unwrap();
        let table = Table::new(schema, vec![Column::numbers([Some(1.0), None, Some(2.0), Some(9.0)])]).unwrap();
        assert_eq!(imputer("default", &[]).impute(&table, &mut run(1)).unwrap().table.number(1, 0), 2.0);
        let one = super::tests::table().select_rows(&[0]);
        let out = imputer("default", &[]).impute(&one, &mut run(1)).unwrap();
        assert!(out.table.number(0, 0).is_nan()); // never observed
        assert_eq!(out.table.number(0, 1), 0.0);
    }

    #[test]
    fn a_damaged_model_is_refused() {
        let file = fitted().to_file().unwrap();
        let refused = |change: &dyn Fn(&mut ModelFile)| {
            let mut file = file.clone();
            change(&mut file);
            (SPEC.load)(&file).is_err()
        };
        assert!(!refused(&|_| {}));
        let set = |file: &mut ModelFile, name: &str, at: usize, value: u32| {
            let Some(Tensor::U32(_, data)) = file.tensors.get_mut(name) else { panic!("`{name}` is not there") };
            data[at] = value;
        };
        assert!(refused(&|f| set(f, "0.rights", 0, 0))); // a child before its parent: the walk would not end
        assert!(refused(&|f| set(f, "0.rights", 0, u32::MAX)));
        assert!(refused(&|f| set(f, "0.features", 0, 4)));
        assert!(refused(&|f| set(f, "0.roots", 1, u32::MAX)));
        assert!(refused(&|f| set(f, "0.starts", 1, u32::MAX)));
        assert!(refused(&|f| f.header.state["order"] = serde_json::json!([0, 1, 2, 2])));
        assert!(refused(&|f| {
            f.tensors.remove("2.orders");
        }));
        assert!(refused(&|f| {
            let Some(Tensor::F32(_, values)) = f.tensors.get_mut("2.values") else { panic!("no values") };
            values[0] = 3.0; // of three levels
        }));
    }

    #[test]
    fn no_time_leaves_typical_values_and_says_so() {
        let mut run = run(1).within(Duration::ZERO);
        let out = imputer("default", &[]).impute(&table(), &mut run).unwrap();
        assert_eq!((out.notes.len(), out.fallbacks.len()), (1, 3));
        let fitted = imputer("default", &[]).as_inductive().unwrap().fit(&table(), &mut run).unwrap();
        assert!(!fitted.notes().is_empty());
        assert!(fitted.transform(&table(), &mut run).is_ok());
    }

    #[test]
    fn a_cancelled_run_stops() {
        let cancel = Cancel::default();
        cancel.cancel();
        let mut run = run(1).cancelled_by(cancel);
        assert!(imputer("default", &[]).impute(&table(), &mut run).is_err());
    }

    #[test]
    fn a_column_of_thousands_of_levels_gets_the_most_frequent_one_and_is_listed() {
        let rows = MOST_LEVELS as u32 + 10;
        let names: Vec<String> = (0..rows).map(|i| i.to_string()).collect();
        let levels = ColumnSpec::with_levels("level", Kind::Categorical, names);
        let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous), levels]).unwrap();
        let x = Column::numbers((0..rows).map(|i| (i != 3).then_some(f64::from(i % 5))));
        let level = Column::codes((0..rows).map(|i| (i != 7).then_some(i)));
        let table = Table::new(schema, vec![x, level]).unwrap();
        let settings = Settings { params: vec![("trees".to_owned(), "2".to_owned())], ..Settings::default() };
        let out = (SPEC.build)(&settings).unwrap().impute(&table, &mut run(1)).unwrap();
        let listed: Vec<&str> = out.fallbacks.iter().map(|f| f.column.as_str()).collect();
        assert_eq!(listed, ["level"], "{:?}", out.notes);
    }
}
