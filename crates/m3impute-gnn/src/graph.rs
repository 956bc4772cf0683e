//! The bipartite graph: a node a row (sample), a node a column (feature), an edge an observed cell.
//!
//! Notation: `n` samples, `m` features, `e` edges. An edge carries the cell's value. Each edge is walked both ways:
//! up, from the sample to the feature, and down, from the feature to the sample.

use crate::layers::Way;
use m3impute_nn::{Index, Matrix};
use std::collections::HashMap;
use std::sync::Arc;

/// The observed cells of a matrix, row by row.
#[derive(Clone, Debug)]
pub struct Cells {
    samples: usize,
    features: usize,
    /// Row of each cell, `[e]`.
    pub rows: Vec<u32>,
    /// Column of each cell, `[e]`.
    pub columns: Vec<u32>,
    /// Value of each cell, `[e]`.
    pub values: Vec<f32>,
}

impl Cells {
    /// The cells of an `[n, m]` matrix for which `observed` holds.
    pub fn observed(features: usize, x: &[f64], observed: &[bool]) -> Cells {
        Cells::chosen(features, x, |i| observed[i])
    }

    /// The missing cells; their values mean nothing.
    pub fn missing(features: usize, x: &[f64], observed: &[bool]) -> Cells {
        Cells::chosen(features, x, |i| !observed[i])
    }

    fn chosen(features: usize, x: &[f64], chosen: impl Fn(usize) -> bool) -> Cells {
        let mut cells =
            Cells { samples: x.len() / features, features, rows: Vec::new(), columns: Vec::new(), values: Vec::new() };
        for (i, &value) in x.iter().enumerate().filter(|(i, _)| chosen(*i)) {
            cells.rows.push((i / features) as u32);
            cells.columns.push((i % features) as u32);
            cells.values.push(value as f32);
        }
        cells
    }

    /// Those cells for which `kept` holds, in the same order.
    pub fn subset(&self, mut kept: impl FnMut(usize) -> bool) -> Cells {
        let mut cells = Cells { rows: Vec::new(), columns: Vec::new(), values: Vec::new(), ..*self };
        for i in (0..self.len()).filter(|&i| kept(i)) {
            cells.rows.push(self.rows[i]);
            cells.columns.push(self.columns[i]);
            cells.values.push(self.values[i]);
        }
        cells
    }

    /// How many rows the matrix has.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// How many columns the matrix has.
    pub fn features(&self) -> usize {
        self.features
    }

    /// How many cells there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// The cells of a table that a pass of the model sees, as a graph.
#[derive(Clone, Debug)]
pub struct Shown {
    samples: usize,
    features: usize,
    /// The value of each edge, `[e, 1]`.
    pub values: Arc<Matrix>,
    /// The sample of each edge.
    pub to_sample: Arc<Index>,
    /// The feature of each edge.
    pub to_feature: Arc<Index>,
    /// The values as a table, `epsilon` where nothing is shown, `[n, m]`.
    pub table: Arc<Matrix>,
    /// Which features of each sample are shown.
    pub patterns: Arc<Patterns>,
    /// How many edges each sample has, `[n]`.
    pub sample_degrees: Arc<[u32]>,
    /// How many edges each feature has; for new rows, how many it had in training, `[m]`.
    pub feature_degrees: Arc<[u32]>,
}

impl Shown {
    /// The graph of these cells.
    pub fn new(cells: &Cells, epsilon: f32) -> Shown {
        let (n, m) = (cells.samples, cells.features);
        let mut table = Matrix::full(n, m, epsilon); // [n, m]
        for ((&s, &f), &value) in cells.rows.iter().zip(&cells.columns).zip(&cells.values) {
            table.row_mut(s as usize)[f as usize] = value;
        }
        Shown {
            samples: n,
            features: m,
            values: Arc::new(Matrix::column(cells.values.clone())),
            to_sample: Index::new(cells.rows.clone(), n),
            to_feature: Index::new(cells.columns.clone(), m),
            table: Arc::new(table),
            patterns: Arc::new(Patterns::of(cells)),
            sample_degrees: counts(&cells.rows, n),
            feature_degrees: counts(&cells.columns, m),
        }
    }

    /// The same in parts of that many samples, each with the degrees that the features have in the whole, and without
    /// patterns, which the encoder does not use.
    pub(crate) fn parts(&self, samples: usize) -> Vec<Shown> {
        let (rows, columns) = (self.to_sample.targets(), self.to_feature.targets());
        let part = |first: usize| {
            let last = (first + samples).min(self.samples);
            let edges = rows.partition_point(|&r| (r as usize) < first)..rows.partition_point(|&r| (r as usize) < last);
            let own: Vec<u32> = rows[edges.clone()].iter().map(|r| r - first as u32).collect();
            let features = self.features;
            let table = self.table.as_slice()[first * features..last * features].to_vec();
            Shown {
                samples: last - first,
                features,
                values: Arc::new(Matrix::column(self.values.as_slice()[edges.clone()].to_vec())),
                to_feature: Index::new(columns[edges].to_vec(), features),
                to_sample: Index::new(own, last - first),
                table: Arc::new(Matrix::from_vec(last - first, features, table).expect("whole rows")),
                patterns: Arc::new(Patterns { of_sample: Vec::new(), shown: Matrix::default(), counts: Vec::new() }),
                sample_degrees: self.sample_degrees[first..last].into(),
                feature_degrees: self.feature_degrees.clone(),
            }
        };
        (0..self.samples).step_by(samples).map(part).collect()
    }

    /// From samples to features.
    pub fn up(&self) -> Way {
        Way {
            source: self.to_sample.clone(),
            target: self.to_feature.clone(),
            source_degrees: self.sample_degrees.clone(),
            target_degrees: self.feature_degrees.clone(),
        }
    }

    /// From features to samples.
    pub fn down(&self) -> Way {
        Way {
            source: self.to_feature.clone(),
            target: self.to_sample.clone(),
            source_degrees: self.feature_degrees.clone(),
            target_degrees: self.sample_degrees.clone(),
        }
    }

    /// How many samples there are.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// How many features there are.
    pub fn features(&self) -> usize {
        self.features
    }

    /// How many edges there are, each counted once.
    pub fn edges(&self) -> usize {
        self.to_sample.len()
    }
}

/// How often each number below `n` occurs.
fn counts(numbers: &[u32], n: usize) -> Arc<[u32]> {
    let mut counts = vec![0; n];
    numbers.iter().for_each(|&i| counts[i as usize] += 1);
    counts.into()
}

/// The distinct sets of shown features, and which of them each sample has.
///
/// What depends on the set only is computed once per pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Patterns {
    /// The pattern of each sample, `[n]`.
    pub of_sample: Vec<u32>,
    /// 1 where the feature is shown, `[patterns, m]`.
    pub shown: Matrix,
    /// How many features each pattern shows, `[patterns]`.
    pub counts: Vec<u32>,
}

impl Patterns {
    /// The patterns of these cells.
    pub fn of(cells: &Cells) -> Patterns {
        let (n, m) = (cells.samples, cells.features);
        let words = m.div_ceil(64);
        let mut bits = vec![0u64; n * words]; // [n, words]
        for (&s, &f) in cells.rows.iter().zip(&cells.columns) {
            bits[s as usize * words + f as usize / 64] |= 1 << (f % 64);
        }
        let mut numbers: HashMap<&[u64], u32> = HashMap::new();
        let mut distinct = Vec::new();
        let of_sample = bits
            .chunks_exact(words)
            .map(|row| {
                *numbers.entry(row).or_insert_with(|| {
                    distinct.push(row);
                    (distinct.len() - 1) as u32
                })
            })
            .collect();
        let bit = |q: usize, f: usize| distinct[q][f / 64] >> (f % 64) & 1;
        Patterns {
            of_sample,
            shown: Matrix::from_fn(distinct.len(), m, |q, f| bit(q, f) as f32),
            counts: distinct.iter().map(|row| row.iter().map(|w| w.count_ones()).sum()).collect(),
        }
    }

    /// The patterns of these samples and, behind them, of those.
    pub fn followed_by(&self, other: &Patterns) -> Patterns {
        // Equal patterns of the two sides stay apart: that costs a little work and does not change the result.
        let first = self.counts.len() as u32;
        let of_sample = self.of_sample.iter().copied().chain(other.of_sample.iter().map(|q| q + first)).collect();
        let shown = [self.shown.as_slice(), other.shown.as_slice()].concat();
        let rows = self.shown.rows() + other.shown.rows();
        Patterns {
            of_sample,
            shown: Matrix::from_vec(rows, self.shown.cols(), shown).expect("both sides have the same features"),
            counts: [&self.counts[..], &other.counts].concat(),
        }
    }

    /// How many patterns there are.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there is no pattern, and no sample.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// The distinct ones among some pairs, in the order in which they first occur.
///
/// The pairs are numbers below `first` and below `second`.
#[derive(Debug)]
pub struct Distinct {
    /// The distinct pairs.
    pub pairs: Vec<(u32, u32)>,
    /// Which of them each pair is.
    pub which: Vec<u32>,
}

impl Distinct {
    /// Of these pairs.
    pub fn of(pairs: impl Iterator<Item = (u32, u32)>, first: usize, second: usize) -> Distinct {
        let mut place = vec![u32::MAX; first * second];
        let mut distinct = Vec::new();
        let mut number = |(a, b): (u32, u32)| {
            let slot = &mut place[a as usize * second + b as usize];
            if *slot == u32::MAX {
                *slot = distinct.len() as u32;
                distinct.push((a, b));
            }
            *slot
        };
        let which = pairs.map(&mut number).collect();
        Distinct { pairs: distinct, which }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells() -> Cells {
        let (o, h) = (true, false);
        Cells::observed(3, &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], &[o, h, o, o, h, o, h, h, h])
    }

    #[test]
    fn an_observed_cell_is_an_edge() {
        let shown = Shown::new(&cells(), 0.01);
        assert_eq!(shown.to_sample.targets(), [0, 0, 1, 1]);
        assert_eq!(shown.to_feature.targets(), [0, 2, 0, 2]);
        assert_eq!(shown.values.as_slice(), [0.1, 0.3, 0.4, 0.6]);
        assert_eq!(shown.table.row(0), [0.1, 0.01, 0.3]);
        assert_eq!(shown.table.row(2), [0.01; 3]);
    }

    #[test]
    fn rows_that_show_the_same_features_share_a_pattern() {
        let patterns = Patterns::of(&cells());
        assert_eq!(patterns.of_sample, [0, 0, 1]);
        assert_eq!(patterns.counts, [2, 0]);
        assert_eq!(patterns.shown, Matrix::from_rows(&[[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]));
        let both = patterns.followed_by(&patterns);
        assert_eq!(both.of_sample, [0, 0, 1, 2, 2, 3]);
    }

    #[test]
    fn a_subset_keeps_the_order() {
        let kept = cells().subset(|i| i != 1);
        assert_eq!((kept.rows, kept.columns), (vec![0, 1, 1], vec![0, 0, 2]));
    }

    #[test]
    fn distinct_pairs_are_numbered_as_they_come() {
        let distinct = Distinct::of([(1, 0), (0, 1), (1, 0)].into_iter(), 2, 2);
        assert_eq!(distinct.pairs, [(1, 0), (0, 1)]);
        assert_eq!(distinct.which, [0, 1, 0]);
    }
}
