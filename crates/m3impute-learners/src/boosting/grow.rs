//! One regression tree of a boosted model, grown on histograms of slopes.
//!
//! The leaf that gains most is cut first. The histogram of the larger child is the parent's less that of the smaller one,
//! so that each row is counted about once for every two levels it goes down.
//!
//! Notation: `n` rows of the table, `p` features that may be used.

use super::inputs::Prepared;
use m3impute_core::{Cancel, Result};
use rayon::prelude::*;

/// Below this much work (rows times features) a node is summed up by one thread.
const SHARED_WORK: usize = 1 << 17;

/// What a tree may do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub max_leaves: usize,
    pub max_depth: usize,
    pub min_leaf: f64,
    pub l2: f64,
}

/// A sum of slopes, and one of curvatures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub slope: f64,
    pub curve: f64,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.slope += other.slope;
        self.curve += other.curve;
    }

    fn less(self, other: Sums) -> Sums {
        Sums { slope: self.slope - other.slope, curve: self.curve - other.curve }
    }

    fn score(self, l2: f64) -> f64 {
        self.slope * self.slope / (self.curve + l2).max(1e-12)
    }
}

/// Where a node is cut: rows whose bin is at most `bin` go left, those without a value as it says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    gain: f64,
    /// Among the features that may be used.
    pub feature: usize,
    pub bin: u8,
    pub missing_left: bool,
    left: Sums,
}

/// A node while the tree grows: a leaf until it is cut.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    /// Its rows: `rows[from..to]`.
    pub from: usize,
    pub to: usize,
    depth: usize,
    pub sums: Sums,
    best: Option<Cut>,
    histogram: Vec<Sums>,
    /// The cut and both children, once it is cut.
    pub fork: Option<(Cut, usize, usize)>,
}

/// A grown tree: the rows of leaf `b` are `rows[branches[b].from..branches[b].to]`.
#[derive(Debug)]
pub(super) struct Grown {
    pub branches: Vec<Branch>,
    pub rows: Vec<u32>,
}

impl Grown {
    /// The leaf of a row, found by its bins.
    pub fn leaf(&self, prepared: &Prepared<'_>, row: usize) -> usize {
        let mut at = 0;
        while let Some((cut, left, right)) = self.branches[at].fork {
            at = if goes_left(prepared, &cut, row) { left } else { right };
        }
        at
    }
}

fn goes_left(prepared: &Prepared<'_>, cut: &Cut, row: usize) -> bool {
    let code = prepared.codes[cut.feature][row];
    if usize::from(code) == prepared.missing(cut.feature) { cut.missing_left } else { code <= cut.bin }
}

/// Grows a tree over `rows`; `pulls` holds slope and curvature of every row of the table, `used` the features to use.
pub(super) fn grow(
    prepared: &Prepared<'_>,
    pulls: &[[f32; 2]],
    rows: Vec<u32>,
    used: &[usize],
    limits: &Limits,
    cancel: &Cancel,
) -> Result<Grown> {
    let mut growing = Growing { prepared, pulls, used, limits, near: Vec::new(), spare: Vec::new(), right: Vec::new() };
    let mut grown = Grown { branches: Vec::with_capacity(2 * limits.max_leaves.min(1024)), rows };
    let mut all = Sums::default();
    grown.rows.iter().for_each(|&i| all.add(pull(pulls[i as usize])));
    let root =
        Branch { from: 0, to: grown.rows.len(), depth: 0, sums: all, best: None, histogram: Vec::new(), fork: None };
    grown.branches.push(root);
    if limits.max_leaves > 1 && limits.max_depth > 0 {
        let histogram = growing.histogram(&grown.rows);
        growing.look(&mut grown.branches[0], histogram);
    }
    let mut leaves = 1;
    while leaves < limits.max_leaves {
        cancel.check()?;
        let gain = |b: usize| grown.branches[b].best.map(|cut| cut.gain);
        let open = (0..grown.branches.len()).filter(|&b| gain(b).is_some());
        let Some(at) = open.reduce(|a, b| if gain(b) > gain(a) { b } else { a }) else { break };
        leaves += 1;
        growing.cut(&mut grown, at, leaves < limits.max_leaves);
    }
    Ok(grown)
}

struct Growing<'a> {
    prepared: &'a Prepared<'a>,
    pulls: &'a [[f32; 2]],
    used: &'a [usize],
    limits: &'a Limits,
    /// Slopes and curvatures of the rows of a node, next to each other.
    near: Vec<[f32; 2]>,
    spare: Vec<Vec<Sums>>,
    right: Vec<u32>,
}

impl Growing<'_> {
    /// Cuts a leaf in two; `go_on` says whether its children may be cut too.
    fn cut(&mut self, grown: &mut Grown, at: usize, go_on: bool) {
        let next = grown.branches.len();
        let parent = &mut grown.branches[at];
        let Some(cut) = parent.best.take() else { return };
        let (from, to, depth) = (parent.from, parent.to, parent.depth + 1);
        let sums = [cut.left, parent.sums.less(cut.left)];
        let histogram = std::mem::take(&mut parent.histogram);
        parent.fork = Some((cut, next, next + 1));
        let middle = self.part(&mut grown.rows[from..to], &cut) + from;
        let mut children = [(from, middle), (middle, to)].map(|(from, to)| Branch {
            from,
            to,
            depth,
            sums: Sums::default(),
            best: None,
            histogram: Vec::new(),
            fork: None,
        });
        children.iter_mut().zip(sums).for_each(|(child, sums)| child.sums = sums);
        if go_on && depth < self.limits.max_depth {
            let smaller = usize::from(children[1].to - children[1].from < children[0].to - children[0].from);
            let rows = &grown.rows[children[smaller].from..children[smaller].to];
            let of_smaller = self.histogram(rows);
            let mut of_larger = histogram;
            of_larger.iter_mut().zip(&of_smaller).for_each(|(l, &s)| *l = l.less(s));
            self.look(&mut children[smaller], of_smaller);
            self.look(&mut children[1 - smaller], of_larger);
        } else {
            self.spare.push(histogram);
        }
        grown.branches.extend(children);
    }

    /// Brings the rows that go left to the front, each side in its old order; returns how many they are.
    fn part(&mut self, rows: &mut [u32], cut: &Cut) -> usize {
        self.right.clear();
        let mut middle = 0;
        for at in 0..rows.len() {
            let row = rows[at];
            if goes_left(self.prepared, cut, row as usize) {
                rows[middle] = row;
                middle += 1;
            } else {
                self.right.push(row);
            }
        }
        rows[middle..].copy_from_slice(&self.right);
        middle
    }

    fn histogram(&mut self, rows: &[u32]) -> Vec<Sums> {
        let mut histogram = self.spare.pop().unwrap_or_default();
        histogram.clear();
        histogram.resize(self.prepared.offsets[self.prepared.codes.len()], Sums::default());
        self.near.clear();
        self.near.extend(rows.iter().map(|&i| self.pulls[i as usize]));
        let near = &self.near;
        let sum_up = |feature: usize, bins: &mut [Sums]| {
            let codes = &self.prepared.codes[feature];
            for (&i, &[slope, curve]) in rows.iter().zip(near) {
                let bin = &mut bins[usize::from(codes[i as usize])];
                bin.slope += f64::from(slope);
                bin.curve += f64::from(curve);
            }
        };
        if rows.len() * self.used.len() < SHARED_WORK {
            for &feature in self.used {
                sum_up(feature, &mut histogram[self.prepared.range(feature)]);
            }
        } else {
            let mut parts = Vec::with_capacity(self.prepared.codes.len());
            let mut rest = histogram.as_mut_slice();
            for feature in 0..self.prepared.codes.len() {
                let (part, after) = rest.split_at_mut(self.prepared.range(feature).len());
                parts.push((feature, part));
                rest = after;
            }
            parts.retain(|(feature, _)| self.used.contains(feature));
            parts.into_par_iter().for_each(|(feature, part)| sum_up(feature, part));
        }
        histogram
    }

    /// Finds the best cut of a branch and keeps its histogram, where there is one.
    fn look(&mut self, branch: &mut Branch, histogram: Vec<Sums>) {
        if branch.sums.curve >= 2.0 * self.limits.min_leaf {
            for &feature in self.used {
                let bins = &histogram[self.prepared.range(feature)];
                best_cut(bins, feature, branch.sums, self.limits, &mut branch.best);
            }
        }
        if branch.best.is_some() {
            branch.histogram = histogram;
        } else {
            self.spare.push(histogram);
        }
    }
}

fn pull([slope, curve]: [f32; 2]) -> Sums {
    Sums { slope: f64::from(slope), curve: f64::from(curve) }
}

/// Tries every cut of a feature, with the rows without a value on either side.
fn best_cut(bins: &[Sums], feature: usize, all: Sums, limits: &Limits, best: &mut Option<Cut>) {
    let Some((&missing, bins)) = bins.split_last() else { return };
    let before = all.score(limits.l2);
    // What comes from rounding alone is no gain.
    let least = 1e-9 * (before.abs() + 1e-9);
    let none_missing = missing.curve.abs() < 1e-9;
    let mut left = Sums::default();
    for (bin, &sums) in bins.iter().enumerate() {
        left.add(sums);
        let last = bin + 1 == bins.len();
        if (sums.curve == 0.0 && !last) || (last && none_missing) {
            continue;
        }
        for missing_left in [false, true] {
            if missing_left && (none_missing || last) {
                continue;
            }
            let mut side = left;
            if missing_left {
                side.add(missing);
            }
            let other = all.less(side);
            if side.curve < limits.min_leaf || other.curve < limits.min_leaf {
                continue;
            }
            let gain = side.score(limits.l2) + other.score(limits.l2) - before;
            if gain > best.map_or(least, |b| b.gain) {
                // Where all have a value, one without goes with the larger part.
                let missing_left = if none_missing { side.curve > other.curve } else { missing_left };
                *best = Some(Cut { gain, feature, bin: bin as u8, missing_left, left: side });
            }
        }
    }
}
