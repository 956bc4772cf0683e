//! Gradient boosting: small trees, each of which learns what those before it have left.
//!
//! Features are binned once (at most 255 bins, and one for what is missing), so a tree is grown on histograms. A row
//! without a value goes, at every cut, to the side that learnt best from such rows.
//!
//! Notation: `n` rows of the table, `w` features.

mod file;
mod grow;
mod inputs;
mod learn;
mod learner;

use super::blocks::in_blocks;
use super::softmax::softmax;
use super::tree::LEAF;
use grow::Grown;
pub use inputs::{BoostingTask, Inputs};
use inputs::{Prepared, place};
use learn::{Learning, parted, sigmoid};
pub use learner::{BoostedModel, BoostingLearner};
use m3impute_core::{RandomStream, Result, Run};
use rand::Rng;

/// Rows that are predicted together.
const BLOCK: usize = 256;

/// What is made small, where numbers are learnt. Classes are always learnt by their likelihood (softmax).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The squared error: predictions are means.
    Squared,
    /// The absolute error: predictions are medians.
    Absolute,
}

/// How a model is boosted.
#[derive(Clone, Copy, Debug)]
pub struct BoostingParams {
    /// What is made small.
    pub loss: Loss,
    /// How many rounds of trees, at most.
    pub rounds: usize,
    /// The part of a tree's prediction that is taken.
    pub rate: f32,
    /// How many leaves a tree has, at most.
    pub max_leaves: usize,
    /// How deep a tree may grow.
    pub max_depth: usize,
    /// The least sum of curvatures in a leaf: for numbers, the weight of its rows.
    pub min_leaf: f64,
    /// How much leaves are drawn to zero: as if that weight of rows had nothing left to learn.
    pub l2: f64,
    /// The share of rows that a tree sees.
    pub rows: f32,
    /// The share of features that a tree may use.
    pub features: f32,
    /// Stop after so many rounds without improvement on watched rows, and keep the best round.
    pub patience: Option<usize>,
    /// The share of rows that are watched instead of learnt from, where the task names none.
    pub watched: f32,
}

impl Default for BoostingParams {
    fn default() -> BoostingParams {
        BoostingParams {
            loss: Loss::Absolute,
            rounds: 300,
            rate: 0.08,
            max_leaves: 31,
            max_depth: 12,
            min_leaf: 4.0,
            l2: 1.0,
            rows: 0.8,
            features: 0.8,
            patience: Some(25),
            watched: 0.15,
        }
    }
}

/// A fork or a leaf. Nodes stand in depth-first order: the left child follows its parent.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Node {
    /// The feature that is asked for, or [`LEAF`].
    feature: u32,
    /// Up to here to the left; for a leaf, its prediction.
    threshold: f32,
    /// Where the right child stands.
    right: u32,
    missing_left: bool,
}

/// A boosted model.
///
/// ```
/// use m3impute_learners::boosting::{Boosting, Inputs, BoostingTask, BoostingParams};
/// use m3impute_learners::tree::Target;
/// use m3impute_core::Run;
///
/// // A step at 100, known for every second row; where the feature is missing, the prediction is 7.
/// let x: Vec<f32> = (0..200).map(|i| if i % 10 == 0 { f32::NAN } else { i as f32 }).collect();
/// let y: Vec<f32> = (0..200).map(|i| if i % 10 == 0 { 7.0 } else if i < 100 { 1.0 } else { 3.0 }).collect();
/// let inputs = Inputs::of_rows(&x, &[0]);
/// let rows: Vec<u32> = (0..200).collect();
/// let task = BoostingTask { inputs: &inputs, leave_out: None, target: Target::Numbers(&y), rows: &rows, weights: None, watch: &[] };
/// let run = Run::new(0, 1)?;
/// let model = Boosting::fit(&task, &BoostingParams::default(), &run, "example", 0)?;
/// let predictions = model.predict(&[20.5, 150.0, f32::NAN], &[0, 1, 2], &run)?;
/// assert!((predictions[0] - 1.0).abs() < 0.1 && (predictions[1] - 3.0).abs() < 0.1 && (predictions[2] - 7.0).abs() < 0.2);
/// # Ok::<(), m3impute_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Boosting {
    /// How many classes are learnt; 0 for numbers.
    classes: usize,
    /// The prediction of each output before the first round. Two classes have one output, more have one each.
    base: Vec<f32>,
    /// Where in an order the levels of a feature stand; empty for numbers, `[w]`.
    orders: Vec<Vec<f32>>,
    /// Where each tree's nodes start: round by round, output by output.
    roots: Vec<u32>,
    nodes: Vec<Node>,
    /// The mean loss on the watched rows, after no round, after one, and so on; empty where none were watched.
    curve: Vec<f64>,
    /// The mean loss on the watched rows at the round that was kept; 0 where none were watched.
    watched_loss: f32,
}

impl Boosting {
    /// Learns a task. `purpose` and `index` name the stream of random numbers. When the budget is spent, the rounds so
    /// far are the model.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn fit(
        task: &BoostingTask<'_>,
        params: &BoostingParams,
        run: &Run,
        purpose: &str,
        index: u64,
    ) -> Result<Boosting> {
        let mut rng = RandomStream::new(run.rng(purpose, index).next_u64());
        let (rows, watch) = parted(task, params, &mut rng);
        let prepared = Prepared::of(task);
        let mut learning = Learning::start(task, params, &prepared, rows, watch);
        run.install(|| learning.go(run, &mut rng))?;
        let mut model = learning.model;
        model.watched_loss = model.curve.get(model.rounds()).map_or(0.0, |&loss| loss as f32);
        Ok(model)
    }

    /// How many rounds there are.
    pub fn rounds(&self) -> usize {
        self.roots.len() / self.base.len()
    }

    /// The mean loss on the watched rows after no round, after one, and so on, also of rounds that were not kept; empty
    /// where none were watched.
    pub fn curve(&self) -> &[f64] {
        &self.curve
    }

    /// The mean loss on the watched rows at the round that was kept; 0 where none were watched.
    pub fn watched_loss(&self) -> f32 {
        self.watched_loss
    }

    /// Only the first rounds stay.
    pub fn truncate(&mut self, rounds: usize) {
        let trees = rounds * self.base.len();
        if let Some(&nodes) = self.roots.get(trees) {
            self.roots.truncate(trees);
            self.nodes.truncate(nodes as usize);
        }
    }

    /// The predictions for some rows of a table (`x` row by row, `NaN` where missing): numbers, or the most likely class.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn predict(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        self.each_row(x, rows, run, 1, |scores, prediction| {
            prediction[0] = match self.classes {
                0 => scores[0] as f32,
                2 => f32::from(u8::from(scores[0] > 0.0)),
                _ => (0..scores.len()).reduce(|a, b| if scores[b] > scores[a] { b } else { a }).unwrap_or(0) as f32,
            };
        })
    }

    /// The chance of each class for some rows: as many numbers a row. Numbers have no chances: then there is one number
    /// a row, the prediction.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn chances(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        self.each_row(x, rows, run, self.classes.max(1), |scores, prediction| match self.classes {
            0 => prediction[0] = scores[0] as f32,
            2 => {
                let second = sigmoid(scores[0]) as f32;
                prediction.copy_from_slice(&[1.0 - second, second]);
            }
            _ => {
                softmax(scores);
                prediction.iter_mut().zip(scores).for_each(|(a, s)| *a = *s as f32);
            }
        })
    }

    fn each_row(
        &self,
        x: &[f32],
        rows: &[u32],
        run: &Run,
        width: usize,
        say: impl Fn(&mut [f64], &mut [f32]) + Sync,
    ) -> Result<Vec<f32>> {
        in_blocks(rows, BLOCK, width, run, |rows, predictions| self.each_row_of_block(x, rows, predictions, &say))
    }

    fn each_row_of_block<'a>(
        &self,
        x: &[f32],
        rows: &[u32],
        predictions: impl Iterator<Item = &'a mut [f32]>,
        say: impl Fn(&mut [f64], &mut [f32]),
    ) {
        let (w, outputs) = (self.orders.len(), self.base.len());
        let mut block = Vec::with_capacity(rows.len() * w); // [rows, w]
        for &i in rows {
            let row = &x[i as usize * w..(i as usize + 1) * w];
            block.extend(row.iter().zip(&self.orders).map(|(&v, order)| place(v, order)));
        }
        let mut scores = Vec::with_capacity(rows.len() * outputs); // [rows, outputs]
        rows.iter().for_each(|_| scores.extend(self.base.iter().map(|&b| f64::from(b))));
        for (tree, &root) in self.roots.iter().enumerate() {
            for (i, row) in block.chunks_exact(w.max(1)).enumerate() {
                scores[i * outputs + tree % outputs] += f64::from(self.prediction(root, row));
            }
        }
        scores.chunks_exact_mut(outputs).zip(predictions).for_each(|(scores, prediction)| say(scores, prediction));
    }

    fn prediction(&self, root: u32, row: &[f32]) -> f32 {
        let mut at = root as usize;
        loop {
            let node = self.nodes[at];
            if node.feature == LEAF {
                return node.threshold;
            }
            let v = row[node.feature as usize];
            let left = if v.is_nan() { node.missing_left } else { v <= node.threshold };
            at = if left { at + 1 } else { node.right as usize };
        }
    }

    fn plant(&mut self, grown: &Grown, values: &[f32], prepared: &Prepared<'_>) {
        self.roots.push(self.nodes.len() as u32);
        // A branch, and the node whose right child it is.
        let mut stack: Vec<(usize, Option<usize>)> = vec![(0, None)];
        while let Some((branch, right_of)) = stack.pop() {
            let at = self.nodes.len();
            if let Some(parent) = right_of {
                self.nodes[parent].right = at as u32;
            }
            let Some((cut, left, right)) = grown.branches[branch].fork else {
                self.nodes.push(Node { feature: LEAF, threshold: values[branch], right: 0, missing_left: false });
                continue;
            };
            let bins = &prepared.bins[cut.feature];
            // Behind the last bin there are only rows without a value.
            let threshold = if usize::from(cut.bin) + 1 < bins.len() { bins.edge(cut.bin.into()) } else { f32::MAX };
            let feature = prepared.features[cut.feature];
            self.nodes.push(Node { feature, threshold, right: 0, missing_left: cut.missing_left });
            stack.push((right, Some(at)));
            stack.push((left, None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Target;
    use m3impute_core::Cancel;

    const EXACT: BoostingParams = BoostingParams {
        loss: Loss::Squared,
        rounds: 1,
        rate: 1.0,
        max_leaves: 2,
        max_depth: 9,
        min_leaf: 1.0,
        l2: 0.0,
        rows: 1.0,
        features: 1.0,
        patience: None,
        watched: 0.0,
    };

    fn task<'a>(inputs: &'a Inputs, target: Target<'a>, rows: &'a [u32]) -> BoostingTask<'a> {
        BoostingTask { inputs, leave_out: None, target, rows, weights: None, watch: &[] }
    }

    fn run(threads: usize) -> Run {
        Run::new(3, threads).unwrap()
    }

    fn all(n: u32) -> Vec<u32> {
        (0..n).collect()
    }

    #[test]
    fn one_tree_of_two_leaves_learns_a_step_by_means_and_by_medians() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let y = [0.0, 0.0, 3.0, 8.0, 8.0, 11.0];
        let (inputs, rows) = (Inputs::of_rows(&x, &[0]), all(6));
        let task = task(&inputs, Target::Numbers(&y), &rows);
        let means = Boosting::fit(&task, &EXACT, &run(1), "test", 0).unwrap();
        assert_eq!(means.predict(&x, &rows, &run(1)).unwrap(), [1.0, 1.0, 1.0, 9.0, 9.0, 9.0]);
        let params = BoostingParams { loss: Loss::Absolute, ..EXACT };
        let medians = Boosting::fit(&task, &params, &run(1), "test", 0).unwrap();
        assert_eq!(medians.predict(&x, &rows, &run(1)).unwrap(), [0.0, 0.0, 0.0, 8.0, 8.0, 8.0]);
    }

    #[test]
    fn l2_draws_leaves_towards_what_was_there() {
        let (inputs, rows) = (Inputs::of_rows(&[1.0, 1.0, 2.0, 2.0], &[0]), all(4));
        let task = task(&inputs, Target::Numbers(&[0.0, 0.0, 8.0, 8.0]), &rows);
        let model = Boosting::fit(&task, &BoostingParams { l2: 2.0, ..EXACT }, &run(1), "test", 0).unwrap();
        // The mean is 4; each leaf of two rows has 4 left and takes half of it.
        assert_eq!(model.predict(&[1.0, 2.0], &[0, 1], &run(1)).unwrap(), [2.0, 6.0]);
    }

    #[test]
    fn missing_values_go_where_they_learn_best() {
        let nan = f32::NAN;
        let x = [1.0, 2.0, nan, nan, 5.0, 6.0];
        let (inputs, rows) = (Inputs::of_rows(&x, &[0]), all(6));
        for (missing, params) in [(0.0, EXACT), (9.0, EXACT), (50.0, BoostingParams { max_leaves: 3, ..EXACT })] {
            let y = [0.0, 0.0, missing, missing, 9.0, 9.0];
            let model = Boosting::fit(&task(&inputs, Target::Numbers(&y), &rows), &params, &run(1), "t", 0).unwrap();
            assert_eq!(model.predict(&x, &rows, &run(1)).unwrap(), y);
        }
    }

    #[test]
    fn classes_are_told_apart_and_their_chances_add_up() {
        let x: Vec<f32> = (0..90).map(|i| i as f32).collect();
        let params = BoostingParams { rounds: 20, rate: 0.3, max_leaves: 4, min_leaf: 0.1, ..EXACT };
        for classes in [2, 3] {
            let y: Vec<u32> = (0..90).map(|i| i * classes / 90).collect();
            let (inputs, rows) = (Inputs::of_rows(&x, &[0]), all(90));
            let task = task(&inputs, Target::Classes(&y, classes as usize), &rows);
            let model = Boosting::fit(&task, &params, &run(1), "test", 0).unwrap();
            let said: Vec<u32> = model.predict(&x, &rows, &run(1)).unwrap().iter().map(|&v| v as u32).collect();
            assert_eq!(said, y);
            let chances = model.chances(&x, &rows, &run(1)).unwrap();
            for row in chances.chunks_exact(classes as usize) {
                assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5 && row.iter().any(|&c| c > 0.9), "{row:?}");
            }
        }
    }

    #[test]
    fn levels_are_put_in_order_and_the_learnt_feature_is_left_out() {
        // Levels 0 and 2 stand against 1; the target itself is the second feature.
        let levels: Vec<f32> = (0..30).map(|i| (i % 3) as f32).collect();
        let y: Vec<f32> = levels.iter().map(|&l| if l == 1.0 { 10.0 } else { 0.0 }).collect();
        let (inputs, rows) = (Inputs::of_columns(&[levels, y.clone()], &[3, 0]), all(30));
        let task = BoostingTask { leave_out: Some(1), ..task(&inputs, Target::Numbers(&y), &rows) };
        let model = Boosting::fit(&task, &EXACT, &run(1), "test", 0).unwrap();
        let x = [0.0, f32::NAN, 1.0, f32::NAN, 2.0, f32::NAN];
        assert_eq!(model.predict(&x, &[0, 1, 2], &run(1)).unwrap(), [0.0, 10.0, 0.0]);
    }

    #[test]
    fn weights_count_rows_as_often() {
        let (inputs, rows) = (Inputs::of_rows(&[1.0, 1.0, 2.0], &[0]), all(3));
        let y = [0.0, 4.0, 9.0];
        let task = BoostingTask { weights: Some(&[1.0, 3.0, 1.0]), ..task(&inputs, Target::Numbers(&y), &rows) };
        let model = Boosting::fit(&task, &EXACT, &run(1), "test", 0).unwrap();
        assert_eq!(model.predict(&[1.0, 2.0], &[0, 1], &run(1)).unwrap(), [3.0, 9.0]);
    }

    /// A curved surface with noise that depends on nothing.
    fn surface(n: u32) -> (Vec<f32>, Vec<f32>) {
        let mut rng = RandomStream::new(1);
        let x: Vec<f32> = (0..3 * n).map(|_| rng.unit()).collect();
        let y = x.chunks_exact(3).map(|r| (r[0] * 6.0).sin() + r[1] * r[1] + 0.3 * (rng.unit() - 0.5)).collect();
        (x, y)
    }

    #[test]
    fn a_curved_surface_is_learnt_and_watching_stops_in_time() {
        let (x, y) = surface(2000);
        let (inputs, rows) = (Inputs::of_rows(&x, &[0; 3]), all(1500));
        let task = task(&inputs, Target::Numbers(&y), &rows);
        let model = Boosting::fit(&task, &BoostingParams::default(), &run(1), "test", 0).unwrap();
        let new: Vec<u32> = (1500..2000).collect();
        let said = model.predict(&x, &new, &run(1)).unwrap();
        let error = new.iter().zip(&said).map(|(&i, s)| (y[i as usize] - s).abs()).sum::<f32>() / 500.0;
        // The noise alone is 0.075.
        assert!(error < 0.11, "{error}");
        assert!(model.rounds() < model.curve().len() && model.curve().len() <= 301);
        let kept = model.curve()[model.rounds()];
        assert!(model.curve().iter().all(|&loss| loss > kept * (1.0 - 1e-4)));
    }

    #[test]
    fn threads_do_not_change_a_byte() {
        // Large enough for a node to be summed up by several threads.
        let (x, y) = surface(50_000);
        let (inputs, rows) = (Inputs::of_rows(&x, &[0; 3]), all(50_000));
        let params = BoostingParams { rounds: 3, ..BoostingParams::default() };
        let classes: Vec<u32> = y.iter().map(|&v| (v > 0.0) as u32 + (v > 1.0) as u32).collect();
        for target in [Target::Numbers(&y), Target::Classes(&classes, 3)] {
            let fit = |threads| Boosting::fit(&task(&inputs, target, &rows), &params, &run(threads), "t", 0).unwrap();
            assert_eq!(fit(1), fit(2));
        }
    }

    #[test]
    fn a_cancelled_run_ends_and_a_spent_one_keeps_what_it_has() {
        let (x, y) = surface(100);
        let (inputs, rows) = (Inputs::of_rows(&x, &[0; 3]), all(100));
        let task = task(&inputs, Target::Numbers(&y), &rows);
        let cancel = Cancel::default();
        cancel.cancel();
        assert!(Boosting::fit(&task, &EXACT, &run(1).cancelled_by(cancel), "test", 0).is_err());
        let spent = run(1).within(std::time::Duration::ZERO);
        assert_eq!(Boosting::fit(&task, &EXACT, &spent, "test", 0).unwrap().rounds(), 0);
    }

    #[test]
    fn constant_features_and_targets_give_the_typical_value() {
        let (inputs, rows) = (Inputs::of_rows(&[1.0; 5], &[0]), all(5));
        let y = [1.0, 2.0, 3.0, 4.0, 90.0];
        let model =
            Boosting::fit(&task(&inputs, Target::Numbers(&y), &rows), &BoostingParams::default(), &run(1), "t", 0)
                .unwrap();
        assert_eq!(model.predict(&[5.0], &[0], &run(1)).unwrap(), [3.0]);
    }
}
