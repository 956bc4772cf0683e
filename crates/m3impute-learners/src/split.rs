//! Where a node of a tree is best cut.
//!
//! Cuts are compared by `sum over children of (sum of targets)^2 / weight`, which is largest where the variance within
//! the children is smallest; for classes the same with one indicator a class, which is the Gini impurity.

/// Nodes below this many rows find their cut by sorting; above it, by a histogram.
const SORT_BELOW: usize = 40;

/// A weight and a weighted sum.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub weight: f64,
    pub sum: f64,
}

/// The rows of a node: where they stand, their weights and targets in the same order, and the totals.
#[derive(Debug, Default)]
pub(super) struct NodeRows {
    pub rows: Vec<Sums>,
    pub all: Sums,
    /// Empty for numbers.
    pub classes: Vec<u32>,
    /// The weight of each class.
    pub class_weights: Vec<f64>,
}

/// Memory for the search.
#[derive(Debug, Default)]
pub(super) struct Search {
    histogram: Vec<Sums>,
    /// Bin and place in the node, packed, to be sorted.
    keys: Vec<u64>,
    left_classes: Vec<f64>,
}

impl NodeRows {
    /// Collects the numbers of some rows; says whether there is anything to tell apart.
    pub fn of_numbers(&mut self, rows: &[u32], weights: &[f32], y: &[f32]) -> bool {
        self.rows.clear();
        self.classes.clear();
        self.all = Sums::default();
        let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
        for &i in rows {
            let (weight, y) = (f64::from(weights[i as usize]), y[i as usize]);
            (low, high) = (low.min(y), high.max(y));
            let sums = Sums { weight, sum: weight * f64::from(y) };
            self.all.weight += sums.weight;
            self.all.sum += sums.sum;
            self.rows.push(sums);
        }
        low < high
    }

    /// Collects the classes of some rows; says whether there is anything to tell apart.
    pub fn of_classes(&mut self, rows: &[u32], weights: &[f32], y: &[u32], classes: usize) -> bool {
        self.rows.clear();
        self.classes.clear();
        self.class_weights.clear();
        self.class_weights.resize(classes, 0.0);
        self.all = Sums::default();
        for &i in rows {
            let (weight, class) = (f64::from(weights[i as usize]), y[i as usize]);
            self.all.weight += weight;
            self.class_weights[class as usize] += weight;
            self.classes.push(class);
            self.rows.push(Sums { weight, sum: 0.0 });
        }
        self.classes.iter().any(|&c| c != self.classes[0])
    }
}

impl Search {
    /// The best cut by a feature, whose bins in this node go from `first` to `last`: its score, and the last bin that
    /// goes left.
    pub fn best(
        &mut self,
        rows: &[u32],
        codes: &[u16],
        (first, last): (u16, u16),
        node: &NodeRows,
        min_leaf: f64,
    ) -> Option<(f64, u16)> {
        if !node.classes.is_empty() {
            self.sort(rows, codes);
            return self.best_of_classes(node, min_leaf);
        }
        if rows.len() < SORT_BELOW {
            self.sort(rows, codes);
            return self.best_of_sorted(node, min_leaf);
        }
        self.histogram.clear();
        self.histogram.resize(usize::from(last - first) + 1, Sums::default());
        for (sums, &i) in node.rows.iter().zip(rows) {
            let bin = &mut self.histogram[usize::from(codes[i as usize] - first)];
            bin.weight += sums.weight;
            bin.sum += sums.sum;
        }
        let mut left = Sums::default();
        let mut best = None;
        for (b, bin) in self.histogram[..usize::from(last - first)].iter().enumerate() {
            if bin.weight > 0.0 {
                left.weight += bin.weight;
                left.sum += bin.sum;
                keep_better(&mut best, left, node.all, min_leaf, first + b as u16);
            }
        }
        best
    }

    /// How good a given cut is.
    pub fn score(&mut self, rows: &[u32], codes: &[u16], bin: u16, node: &NodeRows, min_leaf: f64) -> Option<f64> {
        let goes_left = |i: &u32| codes[*i as usize] <= bin;
        if node.classes.is_empty() {
            let mut left = Sums::default();
            for (sums, i) in node.rows.iter().zip(rows) {
                // A product instead of a branch: which side a row falls is a coin toss.
                let side = f64::from(u8::from(goes_left(i)));
                left.weight += side * sums.weight;
                left.sum += side * sums.sum;
            }
            let mut best = None;
            keep_better(&mut best, left, node.all, min_leaf, bin);
            return best.map(|b| b.0);
        }
        self.left_classes.clear();
        self.left_classes.resize(node.class_weights.len(), 0.0);
        let mut weight = 0.0;
        for ((sums, &class), i) in node.rows.iter().zip(&node.classes).zip(rows) {
            if goes_left(i) {
                weight += sums.weight;
                self.left_classes[class as usize] += sums.weight;
            }
        }
        let right = node.all.weight - weight;
        if weight < min_leaf || right < min_leaf {
            return None;
        }
        let squares = self.left_classes.iter().zip(&node.class_weights).map(|(l, a)| (l * l, (a - l) * (a - l)));
        let (l, r) = squares.fold((0.0, 0.0), |(l, r), (x, y)| (l + x, r + y));
        Some(l / weight + r / right)
    }

    fn sort(&mut self, rows: &[u32], codes: &[u16]) {
        self.keys.clear();
        self.keys.extend(rows.iter().enumerate().map(|(at, &i)| (u64::from(codes[i as usize]) << 32) | at as u64));
        self.keys.sort_unstable();
    }

    fn best_of_sorted(&self, node: &NodeRows, min_leaf: f64) -> Option<(f64, u16)> {
        let mut left = Sums::default();
        let mut best = None;
        for pair in self.keys.windows(2) {
            let (bin, at) = unpacked(pair[0]);
            left.weight += node.rows[at].weight;
            left.sum += node.rows[at].sum;
            if unpacked(pair[1]).0 != bin {
                keep_better(&mut best, left, node.all, min_leaf, bin);
            }
        }
        best
    }

    fn best_of_classes(&mut self, node: &NodeRows, min_leaf: f64) -> Option<(f64, u16)> {
        self.left_classes.clear();
        self.left_classes.resize(node.class_weights.len(), 0.0);
        let mut squares_left = 0.0;
        let mut squares_right: f64 = node.class_weights.iter().map(|w| w * w).sum();
        let mut weight = 0.0;
        let mut best: Option<(f64, u16)> = None;
        for pair in self.keys.windows(2) {
            let (bin, at) = unpacked(pair[0]);
            let (w, class) = (node.rows[at].weight, node.classes[at] as usize);
            let l = self.left_classes[class];
            let r = node.class_weights[class] - l;
            squares_left += w * (2.0 * l + w);
            squares_right -= w * (2.0 * r - w);
            self.left_classes[class] = l + w;
            weight += w;
            let right = node.all.weight - weight;
            if unpacked(pair[1]).0 != bin && weight >= min_leaf && right >= min_leaf {
                let score = squares_left / weight + squares_right / right;
                if best.is_none_or(|b| score > b.0) {
                    best = Some((score, bin));
                }
            }
        }
        best
    }
}

fn unpacked(key: u64) -> (u16, usize) {
    ((key >> 32) as u16, key as u32 as usize)
}

#[inline]
fn keep_better(best: &mut Option<(f64, u16)>, left: Sums, all: Sums, min_leaf: f64, bin: u16) {
    let right = Sums { weight: all.weight - left.weight, sum: all.sum - left.sum };
    if left.weight < min_leaf || right.weight < min_leaf {
        return;
    }
    let score = left.sum * left.sum / left.weight + right.sum * right.sum / right.weight;
    if best.is_none_or(|b| score > b.0) {
        *best = Some((score, bin));
    }
}
