//! One decision tree, grown on bins, walked on numbers.
//!
//! Notation: `n` rows of the table, `p` candidate features.

use super::binning::Bins;
use super::split::{NodeRows, Search};
use m3impute_core::RandomStream;

/// What marks a leaf among the nodes.
pub const LEAF: u32 = u32::MAX;

/// A fork or a leaf. Nodes stand in depth-first order: the left child follows its parent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// The feature that is asked for, or [`LEAF`].
    pub feature: u32,
    /// Up to here to the left.
    pub threshold: f32,
    /// Where the right child stands; for a leaf, its number.
    pub right: u32,
}

/// A tree: from a row to the number of a leaf.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// The nodes; the first is the root.
    pub nodes: Vec<Node>,
}

impl Tree {
    /// The leaf of a row, which holds a number for every feature.
    pub fn leaf(&self, row: &[f32]) -> u32 {
        let mut at = 0;
        loop {
            let node = self.nodes[at];
            if node.feature == LEAF {
                return node.right;
            }
            at = if row[node.feature as usize] <= node.threshold { at + 1 } else { node.right as usize };
        }
    }
}

/// What a tree may do.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// How many features, of those that are not constant in a node, are tried for its cut.
    pub mtry: usize,
    /// Each child keeps at least this weight.
    pub min_leaf: f64,
    /// How deep a tree may grow.
    pub max_depth: usize,
    /// Whether the threshold is drawn at random, one a feature, instead of searched.
    pub random_cuts: bool,
}

/// What is learnt, a value a row of the table.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// Numbers: a cut lowers the variance.
    Numbers(&'a [f32]),
    /// Classes, and how many there are: a cut lowers the Gini impurity.
    Classes(&'a [u32], usize),
}

/// One candidate feature, binned.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its place in a row.
    pub feature: u32,
    /// The bin of every row.
    pub codes: &'a [u16],
    /// What the bins are.
    pub bins: &'a Bins,
}

/// The best cut so far: how good, and where.
#[derive(Clone, Copy, Debug)]
struct Cut {
    score: f64,
    candidate: usize,
    bin: u16,
}

/// The memory that growing needs; one a thread, used for many trees.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The weight of each row of the table in this tree.
    weights: Vec<f32>,
    /// The rows of the tree, each node's together.
    rows: Vec<u32>,
    right_rows: Vec<u32>,
    /// Candidates in the order in which they are drawn.
    drawn: Vec<usize>,
    node: NodeRows,
    search: Search,
    stack: Vec<Pending>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    from: usize,
    to: usize,
    depth: usize,
    /// The parent whose right child this is.
    right_of: Option<usize>,
}

/// A tree and the rows that fell into its leaves: leaf `l` holds `rows[starts[l]..starts[l + 1]]`.
#[derive(Debug)]
pub struct Grown<'s> {
    /// The tree.
    pub tree: Tree,
    /// Where each leaf's rows start, and the end of the last.
    pub starts: Vec<u32>,
    /// The rows, leaf by leaf.
    pub rows: &'s [u32],
    /// The weight of each row of the table; 0 for rows that the tree has not seen.
    pub weights: &'s [f32],
}

/// Grows a tree on some rows of a table of `n` rows: with `bootstrap` on as many draws from them, else on each once.
pub fn grow<'s>(
    candidates: &[Candidate<'_>],
    target: Target<'_>,
    among: &[u32],
    growth: &Growth,
    bootstrap: bool,
    rng: &mut RandomStream,
    scratch: &'s mut Scratch,
) -> Grown<'s> {
    let n = match target {
        Target::Numbers(y) => y.len(),
        Target::Classes(y, _) => y.len(),
    };
    scratch.draw(n, among, bootstrap, rng);
    scratch.drawn.clear();
    scratch.drawn.extend(0..candidates.len());
    let mut tree = Tree::default();
    let mut starts = Vec::new();
    scratch.stack.clear();
    scratch.stack.push(Pending { from: 0, to: scratch.rows.len(), depth: 0, right_of: None });
    while let Some(pending) = scratch.stack.pop() {
        let at = tree.nodes.len();
        if let Some(parent) = pending.right_of {
            tree.nodes[parent].right = at as u32;
        }
        match scratch.best_cut(candidates, target, pending, growth, rng) {
            None => {
                tree.nodes.push(Node { feature: LEAF, threshold: 0.0, right: starts.len() as u32 });
                starts.push(pending.from as u32);
            }
            Some(cut) => {
                let candidate = &candidates[cut.candidate];
                let middle = scratch.part(candidate.codes, cut.bin, pending);
                tree.nodes.push(Node { feature: candidate.feature, threshold: candidate.bins.edge(cut.bin), right: 0 });
                let depth = pending.depth + 1;
                scratch.stack.push(Pending { from: middle, to: pending.to, depth, right_of: Some(at) });
                scratch.stack.push(Pending { from: pending.from, to: middle, depth, right_of: None });
            }
        }
    }
    starts.push(scratch.rows.len() as u32);
    Grown { tree, starts, rows: &scratch.rows, weights: &scratch.weights }
}

impl Scratch {
    fn draw(&mut self, n: usize, among: &[u32], bootstrap: bool, rng: &mut RandomStream) {
        self.weights.clear();
        self.weights.resize(n, 0.0);
        self.rows.clear();
        if bootstrap {
            for _ in 0..among.len() {
                self.weights[among[rng.below(among.len())] as usize] += 1.0;
            }
            self.rows.extend(among.iter().filter(|&&i| self.weights[i as usize] > 0.0));
        } else {
            among.iter().for_each(|&i| self.weights[i as usize] = 1.0);
            self.rows.extend_from_slice(among);
        }
    }

    /// The best cut of a node; none where it is to be a leaf.
    fn best_cut(
        &mut self,
        candidates: &[Candidate<'_>],
        target: Target<'_>,
        pending: Pending,
        growth: &Growth,
        rng: &mut RandomStream,
    ) -> Option<Cut> {
        let rows = &self.rows[pending.from..pending.to];
        if rows.len() < 2 || pending.depth >= growth.max_depth {
            return None;
        }
        let differ = match target {
            Target::Numbers(y) => self.node.of_numbers(rows, &self.weights, y),
            Target::Classes(y, classes) => self.node.of_classes(rows, &self.weights, y, classes),
        };
        if !differ || self.node.all.weight < 2.0 * growth.min_leaf {
            return None;
        }
        let mut best: Option<Cut> = None;
        let mut tried = 0;
        for k in 0..candidates.len() {
            if tried == growth.mtry {
                break;
            }
            self.drawn.swap(k, k + rng.below(candidates.len() - k));
            let candidate = self.drawn[k];
            let Candidate { codes, bins, .. } = candidates[candidate];
            let (first, last) = rows.iter().fold((u16::MAX, 0), |(first, last), &i| {
                let code = codes[i as usize];
                (first.min(code), last.max(code))
            });
            if first == last {
                continue;
            }
            tried += 1;
            let found = if growth.random_cuts {
                let bin = bins.cut_at(first, last, rng.unit());
                self.search.score(rows, codes, bin, &self.node, growth.min_leaf).map(|score| (score, bin))
            } else {
                self.search.best(rows, codes, (first, last), &self.node, growth.min_leaf)
            };
            if let Some((score, bin)) = found
                && best.is_none_or(|b| score > b.score)
            {
                best = Some(Cut { score, candidate, bin });
            }
        }
        best
    }

    /// Brings the rows of the left child before those of the right one, each in their old order.
    fn part(&mut self, codes: &[u16], bin: u16, pending: Pending) -> usize {
        self.right_rows.clear();
        let mut middle = pending.from;
        for at in pending.from..pending.to {
            let row = self.rows[at];
            if codes[row as usize] <= bin {
                self.rows[middle] = row;
                middle += 1;
            } else {
                self.right_rows.push(row);
            }
        }
        self.rows[middle..pending.to].copy_from_slice(&self.right_rows);
        middle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEARCHED: Growth = Growth { mtry: 9, min_leaf: 1.0, max_depth: usize::MAX, random_cuts: false };

    fn grown(x: &[f32], target: Target<'_>, growth: &Growth) -> (Tree, usize) {
        let bins = Bins::of(x, 255);
        let codes: Vec<u16> = x.iter().map(|&v| bins.bin(v)).collect();
        let rows: Vec<u32> = (0..x.len() as u32).collect();
        let candidates = [Candidate { feature: 0, codes: &codes, bins: &bins }];
        let mut scratch = Scratch::default();
        let grown = grow(&candidates, target, &rows, growth, false, &mut RandomStream::new(1), &mut scratch);
        (grown.tree, grown.starts.len() - 1)
    }

    #[test]
    fn a_step_is_learnt_exactly() {
        for n in [10, 1000] {
            let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let y: Vec<f32> = x.iter().map(|&v| if v < 4.0 { 0.0 } else { 1.0 }).collect();
            let (tree, leaves) = grown(&x, Target::Numbers(&y), &SEARCHED);
            // With a thousand values a bin holds four of them, and the step lies between two bins.
            assert_eq!((leaves, tree.nodes[0].threshold), (2, 3.5));
            assert_eq!((tree.leaf(&[3.0]), tree.leaf(&[4.0])), (0, 1));
        }
    }

    #[test]
    fn three_classes_in_a_row_take_two_cuts() {
        let x: Vec<f32> = (0..9).map(|i| i as f32).collect();
        let y: Vec<u32> = (0..9).map(|i| i / 3).collect();
        let (tree, leaves) = grown(&x, Target::Classes(&y, 3), &SEARCHED);
        assert_eq!(leaves, 3);
        let found: Vec<u32> = x.iter().map(|&v| tree.leaf(&[v])).collect();
        assert_eq!(found, y);
    }

    #[test]
    fn random_cuts_tell_apart_what_differs() {
        let growth = Growth { random_cuts: true, ..SEARCHED };
        let x: Vec<f32> = (0..50).map(|i| i as f32).collect();
        assert_eq!(grown(&x, Target::Numbers(&x), &growth).1, 50);
        let y: Vec<u32> = (0..50).collect();
        assert_eq!(grown(&x, Target::Classes(&y, 50), &growth).1, 50);
    }

    #[test]
    fn a_constant_target_duplicates_and_a_single_row_are_one_leaf() {
        assert_eq!(grown(&[1.0, 2.0, 3.0], Target::Numbers(&[5.0; 3]), &SEARCHED).1, 1);
        assert_eq!(grown(&[1.0; 4], Target::Numbers(&[1.0, 2.0, 3.0, 4.0]), &SEARCHED).1, 1);
        assert_eq!(grown(&[1.0], Target::Numbers(&[1.0]), &SEARCHED).1, 1);
    }

    #[test]
    fn leaves_and_depth_are_kept_within_bounds() {
        let x: Vec<f32> = (0..100).map(|i| i as f32).collect();
        assert!(grown(&x, Target::Numbers(&x), &Growth { min_leaf: 10.0, ..SEARCHED }).1 <= 10);
        assert_eq!(grown(&x, Target::Numbers(&x), &Growth { max_depth: 2, ..SEARCHED }).1, 4);
    }

    #[test]
    fn histogram_and_sorting_find_the_same_cut() {
        // Each row twenty times: the small node is sorted, the large one summed into a histogram.
        let (x, y) = ([1.0_f32, 2.0, 3.0, 4.0], [1.0_f32, 3.0, 8.0, 9.0]);
        let repeat = |v: &[f32]| v.iter().copied().cycle().take(v.len() * 20).collect::<Vec<_>>();
        let growth = Growth { max_depth: 1, ..SEARCHED };
        let (small, _) = grown(&x, Target::Numbers(&y), &growth);
        let (large, _) = grown(&repeat(&x), Target::Numbers(&repeat(&y)), &growth);
        assert_eq!((small.nodes[0].threshold, large.nodes[0].threshold), (2.5, 2.5));
    }
}
