//! Many trees of one feature given the others, and how their predictions become one.
//!
//! Notation: `n` rows, `w` features, one of which is learnt from the rest.

mod file;
mod frame;
mod learner;
mod leaves;
mod level_order;

use super::binning::Bins;
use super::blocks::in_blocks;
use super::tree::{Candidate, Growth, LEAF, Node, Scratch, Target, Tree, grow};
pub use frame::Frame;
use frame::binned_values;
pub use learner::{ForestLearner, ForestModel, Mtry};
use leaves::Pool;
pub(crate) use level_order::level_order;
use m3impute_core::{RandomStream, Result, Run};
use rand::Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;

/// Rows that are predicted together, so that a tree is walked while it is near.
const BLOCK: usize = 128;
/// Of them, rows that go down a tree together.
const ABREAST: usize = 8;

/// A leaf with more values keeps this many quantiles of them: an odd number, so that their median is among them.
const LEAF_VALUES: usize = 31;

/// How the trees' predictions become one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aggregate {
    /// The mean: smallest squared error.
    Mean,
    /// The median of the values in all leaves that the row falls into: smallest absolute error.
    Median,
}

/// What a forest is made of.
#[derive(Clone, Copy, Debug)]
pub struct ForestParams {
    /// How many trees.
    pub trees: usize,
    /// What each may do.
    pub growth: Growth,
    /// Whether each tree sees as many rows drawn with replacement, rather than all.
    pub bootstrap: bool,
    /// How their predictions become one.
    pub aggregate: Aggregate,
}

/// The trees of one feature. A leaf holds the distinct values that fell into it, each with its share.
#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    /// The number of levels of what is learnt; 0 for numbers.
    pub(crate) levels: usize,
    pub(crate) aggregate: Aggregate,
    /// Where in an order the levels of a feature stand; empty for numbers, `[w]`.
    pub(crate) orders: Vec<Vec<f32>>,
    /// Where each tree's nodes start.
    pub(crate) roots: Vec<u32>,
    /// The nodes of all trees; children and leaves are counted over all trees.
    pub(crate) nodes: Vec<Node>,
    /// Where each leaf's values start, and the end of the last.
    pub(crate) starts: Vec<u32>,
    pub(crate) values: Vec<f32>,
    pub(crate) shares: Vec<f32>,
}

/// One tree with what its leaves hold.
struct Part {
    tree: Tree,
    starts: Vec<u32>,
    values: Vec<f32>,
    shares: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Forest {
    /// Learns feature `f` of a frame from the other features, over some rows. `purpose` and `index` name the stream of
    /// random numbers; each tree has its own. Nothing is returned when the budget is spent before all trees stand.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn fit(
        frame: &Frame,
        f: usize,
        rows: &[u32],
        params: &ForestParams,
        run: &Run,
        purpose: &str,
        index: u64,
    ) -> Result<Option<Forest>> {
        let levels = frame.columns[f].levels;
        let y: Vec<f32> = frame.column(f).collect(); // [n]
        let classes: Vec<u32> = if levels > 2 { y.iter().map(|&y| y as u32).collect() } else { Vec::new() };
        // Two classes are the numbers 0 and 1: the impurity is the variance.
        let target = if levels > 2 { Target::Classes(&classes, levels) } else { Target::Numbers(&y) };
        let orders: Vec<Vec<f32>> = (0..frame.width)
            .map(|g| match frame.columns[g].levels {
                0 => Vec::new(),
                levels if g == f => vec![0.0; levels],
                levels => level_order(&frame.column(g).map(|v| v as usize).collect::<Vec<_>>(), levels, rows, target),
            })
            .collect();
        let ordered: Vec<(Bins, Vec<u16>)> = (0..frame.width)
            .map(|g| match orders[g].as_slice() {
                [] => (Bins::default(), Vec::new()),
                order => binned_values(&frame.column(g).map(|v| order[v as usize]).collect::<Vec<_>>()),
            })
            .collect();
        let candidates: Vec<Candidate<'_>> = (0..frame.width)
            .filter(|&g| g != f)
            .map(|g| {
                let (bins, codes) = match frame.columns[g].levels {
                    0 => (&frame.columns[g].bins, &frame.columns[g].codes),
                    _ => (&ordered[g].0, &ordered[g].1),
                };
                Candidate { feature: g as u32, codes, bins }
            })
            .collect();

        // Cancelling is looked at between batches: a batch takes some ten milliseconds.
        let work = rows.len() * (candidates.len() + 1);
        let batch = (400_000 / work.max(1)).clamp(1, 32) * run.threads();
        let mut parts: Vec<Part> = Vec::with_capacity(params.trees);
        while parts.len() < params.trees {
            run.check()?;
            if run.is_spent() {
                return Ok(None);
            }
            let seeds: Vec<u64> = (parts.len()..params.trees.min(parts.len() + batch))
                .map(|tree| run.rng(purpose, index * params.trees as u64 + tree as u64).next_u64())
                .collect();
            run.install(|| {
                let grown = seeds.par_iter().map(|&seed| {
                    SCRATCH.with_borrow_mut(|scratch| one_tree(&candidates, target, &y, rows, params, seed, scratch))
                });
                parts.par_extend(grown);
            });
        }
        Ok(Some(Forest::assembled(levels, params.aggregate, orders, parts)))
    }

    fn assembled(levels: usize, aggregate: Aggregate, orders: Vec<Vec<f32>>, parts: Vec<Part>) -> Forest {
        let mut forest = Forest {
            levels,
            aggregate,
            orders,
            roots: Vec::with_capacity(parts.len()),
            nodes: Vec::with_capacity(parts.iter().map(|p| p.tree.nodes.len()).sum()),
            starts: Vec::with_capacity(parts.iter().map(|p| p.starts.len()).sum::<usize>() + 1),
            values: Vec::with_capacity(parts.iter().map(|p| p.values.len()).sum()),
            shares: Vec::with_capacity(parts.iter().map(|p| p.shares.len()).sum()),
        };
        for part in parts {
            let (nodes, leaves) = (forest.nodes.len() as u32, forest.starts.len() as u32);
            let values = forest.values.len() as u32;
            forest.roots.push(nodes);
            forest.nodes.extend(
                part.tree.nodes.iter().map(|node| Node {
                    right: node.right + if node.feature == LEAF { leaves } else { nodes },
                    ..*node
                }),
            );
            forest.starts.extend(part.starts.iter().map(|s| s + values));
            forest.values.extend(part.values);
            forest.shares.extend(part.shares);
        }
        forest.starts.push(forest.values.len() as u32);
        forest
    }

    /// Only the first trees stay.
    pub fn truncate(&mut self, trees: usize) {
        if trees >= self.roots.len() {
            return;
        }
        let nodes = self.roots[trees] as usize;
        let leaves = self.nodes[..nodes].iter().filter(|n| n.feature == LEAF).count();
        let values = self.starts[leaves] as usize;
        self.roots.truncate(trees);
        self.nodes.truncate(nodes);
        self.starts.truncate(leaves + 1);
        self.values.truncate(values);
        self.shares.truncate(values);
        self.nodes.shrink_to_fit();
        self.starts.shrink_to_fit();
        self.values.shrink_to_fit();
        self.shares.shrink_to_fit();
    }

    /// Fewer trees, at least ten, where all of them would have more nodes than this.
    pub fn keep_nodes(&mut self, nodes: usize) {
        let per_tree = self.nodes() / self.trees() + 1;
        self.truncate((nodes / per_tree).max(10));
    }

    /// How many trees there are.
    pub fn trees(&self) -> usize {
        self.roots.len()
    }

    /// How many nodes all trees have together.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The predictions for some rows of a table without missing cells (`x` row by row).
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn predict(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        let trees = self.roots.len() as f64;
        self.each_row(x, rows, run, 1, |pool, held, prediction| {
            prediction[0] = match (self.levels, self.aggregate) {
                (0, Aggregate::Mean) => (held.map(|(v, s)| f64::from(v) * f64::from(s)).sum::<f64>() / trees) as f32,
                (0, Aggregate::Median) => pool.quantiles(held, [0.5])[0],
                (levels, _) => pool.most_likely(held, levels),
            };
        })
    }

    /// The median of what the leaves of each row hold, and half the distance between the quantiles at 16 and 84 %: two
    /// numbers a row.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn medians_and_spreads(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        self.each_row(x, rows, run, 2, |pool, held, prediction| {
            let [low, median, high] = pool.quantiles(held, [0.16, 0.5, 0.84]);
            prediction.copy_from_slice(&[median, (high - low) / 2.0]);
        })
    }

    /// How much of what the leaves of each row hold falls into each of `places`: as many numbers a row, which add up
    /// to one.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn shares(
        &self,
        x: &[f32],
        rows: &[u32],
        run: &Run,
        places: usize,
        place: impl Fn(f32) -> Option<usize> + Sync,
    ) -> Result<Vec<f32>> {
        self.each_row(x, rows, run, places, |_, held, prediction| {
            for (value, share) in held {
                if let Some(place) = place(value) {
                    prediction[place] += share;
                }
            }
            let total: f32 = prediction.iter().sum();
            prediction.iter_mut().for_each(|a| *a = if total > 0.0 { *a / total } else { 1.0 / places as f32 });
        })
    }

    /// The leaf of each tree into which some rows of a table without missing cells fall (`x` row by row), `[rows, trees]`.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn leaves(&self, x: &[f32], rows: &[u32], run: &Run) -> Result<Vec<u32>> {
        let mut all = Vec::with_capacity(rows.len() * self.trees());
        for rows in rows.chunks(BLOCK) {
            run.check()?;
            all.extend(self.leaves_of_block(x, rows));
        }
        Ok(all)
    }

    /// `width` numbers for each row, from the values in its leaves and their shares.
    fn each_row(
        &self,
        x: &[f32],
        rows: &[u32],
        run: &Run,
        width: usize,
        say: impl Fn(&mut Pool, &mut dyn Iterator<Item = (f32, f32)>, &mut [f32]) + Sync,
    ) -> Result<Vec<f32>> {
        in_blocks(rows, BLOCK, width, run, |rows, predictions| {
            self.each_row_of_block(x, rows, &mut Pool::default(), predictions, &say);
        })
    }

    fn each_row_of_block<'a>(
        &self,
        x: &[f32],
        rows: &[u32],
        pool: &mut Pool,
        predictions: impl Iterator<Item = &'a mut [f32]>,
        say: impl Fn(&mut Pool, &mut dyn Iterator<Item = (f32, f32)>, &mut [f32]),
    ) {
        let leaves = self.leaves_of_block(x, rows); // [rows, trees]
        for (prediction, leaves) in predictions.zip(leaves.chunks_exact(self.trees())) {
            let mut held = leaves.iter().flat_map(|&l| {
                let range = self.starts[l as usize] as usize..self.starts[l as usize + 1] as usize;
                self.values[range.clone()].iter().copied().zip(self.shares[range].iter().copied())
            });
            say(pool, &mut held, prediction);
        }
    }

    /// The leaves of a block of rows, `[rows, trees]`: a tree is walked by all of them while it is near.
    fn leaves_of_block(&self, x: &[f32], rows: &[u32]) -> Vec<u32> {
        let w = self.orders.len();
        let mut block = Vec::with_capacity(rows.len() * w); // [rows, w]
        for &i in rows {
            let row = &x[i as usize * w..(i as usize + 1) * w];
            block.extend(
                row.iter().zip(&self.orders).map(|(&v, order)| if order.is_empty() { v } else { order[v as usize] }),
            );
        }
        let trees = self.roots.len();
        let mut leaves = vec![0; rows.len() * trees]; // [rows, trees]
        for (t, &root) in self.roots.iter().enumerate() {
            let mut rows = block.chunks_exact(ABREAST * w);
            let mut to = leaves.iter_mut().skip(t).step_by(trees);
            for rows in &mut rows {
                self.walk::<ABREAST>(root, rows, w).into_iter().zip(&mut to).for_each(|(leaf, to)| *to = leaf);
            }
            for (row, to) in rows.remainder().chunks_exact(w).zip(to) {
                [*to] = self.walk(root, row, w);
            }
        }
        leaves
    }

    /// The leaves of some rows, which go down a tree abreast: the next node of one is fetched while the others are looked
    /// at, and nothing is guessed.
    fn walk<const N: usize>(&self, root: u32, rows: &[f32], w: usize) -> [u32; N] {
        let mut at = [root; N];
        loop {
            let mut open = false;
            for (k, at) in at.iter_mut().enumerate() {
                let node = self.nodes[*at as usize];
                let is_leaf = node.feature == LEAF;
                let value = rows[k * w + if is_leaf { 0 } else { node.feature as usize }];
                let next = std::hint::select_unpredictable(value <= node.threshold, *at + 1, node.right);
                *at = std::hint::select_unpredictable(is_leaf, *at, next);
                open |= !is_leaf;
            }
            if !open {
                return at.map(|at| self.nodes[at as usize].right);
            }
        }
    }
}

fn one_tree(
    candidates: &[Candidate<'_>],
    target: Target<'_>,
    y: &[f32],
    rows: &[u32],
    params: &ForestParams,
    seed: u64,
    scratch: &mut Scratch,
) -> Part {
    let grown = grow(candidates, target, rows, &params.growth, params.bootstrap, &mut RandomStream::new(seed), scratch);
    let leaves = grown.starts.len() - 1;
    let mut part =
        Part { tree: grown.tree, starts: Vec::with_capacity(leaves), values: Vec::new(), shares: Vec::new() };
    let mean = matches!(target, Target::Numbers(_)) && params.aggregate == Aggregate::Mean;
    let mut members: Vec<(f32, f32)> = Vec::new();
    for range in grown.starts.windows(2) {
        part.starts.push(part.values.len() as u32);
        let rows = &grown.rows[range[0] as usize..range[1] as usize];
        members.clear();
        members.extend(rows.iter().map(|&i| (y[i as usize], grown.weights[i as usize])));
        let total: f32 = members.iter().map(|m| m.1).sum();
        if mean {
            let sum: f64 = members.iter().map(|&(v, w)| f64::from(v) * f64::from(w)).sum();
            part.values.push((sum / f64::from(total)) as f32);
            part.shares.push(1.0);
            continue;
        }
        members.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        if members.len() > LEAF_VALUES && matches!(target, Target::Numbers(_)) {
            let mut reached = 0.0;
            let mut member = members.iter();
            let mut value = members[0].0;
            for quantile in 0..LEAF_VALUES {
                while reached <= total * (quantile as f32 + 0.5) / LEAF_VALUES as f32 {
                    let Some(&(v, w)) = member.next() else { break };
                    (value, reached) = (v, reached + w);
                }
                part.values.push(value);
                part.shares.push(1.0 / LEAF_VALUES as f32);
            }
            continue;
        }
        for same in members.chunk_by(|a, b| a.0 == b.0) {
            part.values.push(same[0].0);
            part.shares.push(same.iter().map(|m| m.1).sum::<f32>() / total);
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(aggregate: Aggregate) -> ForestParams {
        let growth = Growth { mtry: 9, min_leaf: 1.0, max_depth: usize::MAX, random_cuts: false };
        ForestParams { trees: 20, growth, bootstrap: true, aggregate }
    }

    fn fitted(frame: &Frame, f: usize, params: &ForestParams, threads: usize) -> (Forest, Run) {
        let run = Run::new(3, threads).unwrap();
        let rows: Vec<u32> = (0..frame.rows() as u32).collect();
        (Forest::fit(frame, f, &rows, params, &run, "test", 0).unwrap().unwrap(), run)
    }

    #[test]
    fn levels_without_order_are_told_apart() {
        // Levels 0 and 2 mean 10, level 1 means 0: no cut of the codes alone does that in one step.
        let x: Vec<f32> = (0..60).flat_map(|i| [(i % 3) as f32, if i % 3 == 1 { 0.0 } else { 10.0 }]).collect();
        let mut params = params(Aggregate::Mean);
        params.growth.max_depth = 1;
        let (forest, run) = fitted(&Frame::new(x.clone(), &[3, 0]), 1, &params, 1);
        assert_eq!(forest.predict(&x, &[0, 1, 2], &run).unwrap(), [10.0, 0.0, 10.0]);
    }

    #[test]
    fn classes_are_answered_by_their_share() {
        let x: Vec<f32> = (0..60).flat_map(|i| [(i % 3) as f32 * 5.0, (i % 3) as f32]).collect();
        let (forest, run) = fitted(&Frame::new(x.clone(), &[0, 3]), 1, &params(Aggregate::Median), 1);
        assert_eq!(forest.predict(&x, &[0, 1, 2], &run).unwrap(), [0.0, 1.0, 2.0]);
    }

    #[test]
    fn levels_of_classes_are_ordered_by_their_shares() {
        // Levels 0 and 3 are of class 0, levels 1 and 2 of class 2: they stand side by side.
        let codes: Vec<usize> = (0..40).map(|i| i % 4).collect();
        let y: Vec<u32> = codes.iter().map(|c| if [0, 3].contains(c) { 0 } else { 2 }).collect();
        let rows: Vec<u32> = (0..40).collect();
        let order = level_order(&codes, 4, &rows, Target::Classes(&y, 3));
        assert_eq!(((order[0] - order[3]).abs(), (order[1] - order[2]).abs()), (1.0, 1.0));
    }

    #[test]
    fn the_median_of_a_leaf_withstands_an_outlier() {
        let x: Vec<f32> = [1.0, 1.0, 1.0, 1.0, 100.0].iter().flat_map(|&y| [0.0, y]).collect();
        let prediction = |aggregate| {
            let (forest, run) =
                fitted(&Frame::new(x.clone(), &[0, 0]), 1, &ForestParams { bootstrap: false, ..params(aggregate) }, 1);
            forest.predict(&x, &[0], &run).unwrap()[0]
        };
        assert_eq!((prediction(Aggregate::Median), prediction(Aggregate::Mean)), (1.0, 20.8));
    }

    #[test]
    fn rows_that_a_tree_cannot_tell_apart_share_its_leaf() {
        // One cut, between 1 and 9, in whatever tree.
        let x: Vec<f32> = [1.0, 1.0, 9.0, 9.0].iter().flat_map(|&v| [v, v]).collect();
        let params = ForestParams { bootstrap: false, ..params(Aggregate::Median) };
        let (forest, run) = fitted(&Frame::new(x.clone(), &[0, 0]), 1, &params, 1);
        let leaves = forest.leaves(&x, &[0, 1, 2, 3], &run).unwrap();
        let of: Vec<&[u32]> = leaves.chunks_exact(forest.trees()).collect();
        assert!(of[0] == of[1] && of[2] == of[3] && of[0].iter().zip(of[2]).all(|(a, b)| a != b));
    }

    #[test]
    fn a_large_leaf_keeps_its_median() {
        let x: Vec<f32> = (0..101).flat_map(|i| [0.0, i as f32]).collect();
        let params = ForestParams { bootstrap: false, ..params(Aggregate::Median) };
        let (forest, run) = fitted(&Frame::new(x.clone(), &[0, 0]), 1, &params, 1);
        assert_eq!((forest.predict(&x, &[0], &run).unwrap()[0], forest.values.len()), (50.0, 20 * LEAF_VALUES));
    }

    #[test]
    fn halfway_between_two_values_is_their_middle() {
        let mut pool = Pool::default();
        assert_eq!(pool.quantiles(&mut [(3.0, 1.0), (1.0, 1.0)].into_iter(), [0.5])[0], 2.0);
        assert_eq!(pool.quantiles(&mut [(-1.0, 1.0), (-3.0, 1.0), (2.0, 1.0)].into_iter(), [0.5])[0], -1.0);
    }

    #[test]
    fn threads_do_not_change_a_forest_and_fewer_trees_are_the_first_ones() {
        let x: Vec<f32> = (0..200).flat_map(|i| [((i * 37) % 101) as f32, ((i * 53) % 97) as f32]).collect();
        let frame = Frame::new(x, &[0, 0]);
        let whole = params(Aggregate::Median);
        let (one, _) = fitted(&frame, 1, &whole, 1);
        assert_eq!(one, fitted(&frame, 1, &whole, 2).0);
        let mut cut = one.clone();
        cut.truncate(5);
        assert_eq!(cut.trees(), 5);
        assert_eq!(cut, fitted(&frame, 1, &ForestParams { trees: 5, ..whole }, 1).0);
    }
}
