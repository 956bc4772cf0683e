//! The two units of M3-Impute: features of the same sample (FCU), and other samples (SCU).
//!
//! Both depend on which features a sample shows. What depends on the pattern of shown features and the target feature
//! only is computed once for each such pair ([`Contexts`]), however many cells share it.

mod fcu;
mod scu;

pub use fcu::Fcu;
pub use scu::{Pairings, PeerTables, Peers, Scu};

use crate::graph::{Distinct, Patterns};
use m3impute_nn::{Index, Matrix};
use std::sync::Arc;

/// The distinct pairs of a pattern and a target feature among some cells.
///
/// The units need the softmax over features of the pattern without the target feature, `w`, and its product `W w`
/// with a weight. A softmax of zeros and ones is `(1 + (e - 1) shown) / Z` with `Z = m + (e - 1) c` for `c` shown
/// features, and taking out the target feature changes one entry and `Z`. So
///
/// ```text
/// W w = W base + W taken
/// base  = (1 + (e - 1) shown) / Z      one row a pattern, and one for the pattern with one feature less
/// taken = -(e - 1) / Z at the target   one row a feature and count
/// ```
///
/// and a pair costs two gathered rows of width `d` instead of a product of `m d`.
#[derive(Debug)]
pub struct Contexts {
    /// 1 where the pattern shows the feature, `[patterns, m]`.
    pub(crate) shown: Arc<Matrix>,
    /// The pattern of each pair, as a row of `shown`.
    pub(crate) pattern: Arc<Index>,
    /// The target feature of each pair.
    pub(crate) feature: Arc<Index>,
    /// `[2 patterns, m]`.
    pub(crate) base: Arc<Matrix>,
    pub(crate) to_base: Arc<Index>,
    /// The first row is zeros: for targets that are not shown, `[1 + .., m]`.
    pub(crate) taken: Arc<Matrix>,
    pub(crate) to_taken: Arc<Index>,
}

impl Contexts {
    /// The contexts of cells, given as sample and target feature, and which of them each cell has.
    pub fn of(patterns: &Patterns, cells: impl Iterator<Item = (u32, u32)>) -> (Contexts, Vec<u32>) {
        let m = patterns.shown.cols();
        let pairs = cells.map(|(sample, feature)| (patterns.of_sample[sample as usize], feature));
        let Distinct { pairs, which } = Distinct::of(pairs, patterns.len(), m);
        // Patterns that no cell has are left out: with the records of the large-table mode, that is most of them.
        let used = Distinct::of(pairs.iter().map(|&(q, _)| (q, 0)), patterns.len(), 1);
        let shown_by = |q: u32, f: u32| patterns.shown.get(q as usize, f as usize) == 1.0;
        let z = |count: u32| m as f32 + (std::f32::consts::E - 1.0) * count as f32;

        let rows = used.pairs.iter().flat_map(|&(q, _)| patterns.shown.row(q as usize)).copied().collect();
        let shown = Matrix::from_vec(used.pairs.len(), m, rows).expect("a row a pattern");
        let base = Matrix::from_fn(2 * used.pairs.len(), m, |i, f| {
            let q = used.pairs[i / 2].0 as usize;
            let count = patterns.counts[q].saturating_sub(i as u32 % 2);
            (1.0 + (std::f32::consts::E - 1.0) * patterns.shown.get(q, f)) / z(count)
        });
        let to_base =
            pairs.iter().zip(&used.which).map(|(&(q, f), &row)| 2 * row + u32::from(shown_by(q, f))).collect();
        let takings = Distinct::of(
            pairs.iter().map(|&(q, f)| if shown_by(q, f) { (f + 1, patterns.counts[q as usize]) } else { (0, 0) }),
            m + 1,
            m + 1,
        );
        let taken = Matrix::from_fn(takings.pairs.len(), m, |i, f| match takings.pairs[i] {
            (feature, count) if feature as usize == f + 1 => -(std::f32::consts::E - 1.0) / z(count - 1),
            _ => 0.0,
        });
        let contexts = Contexts {
            pattern: Index::new(used.which, shown.rows()),
            feature: Index::new(pairs.iter().map(|p| p.1).collect(), m),
            to_base: Index::new(to_base, base.rows()),
            to_taken: Index::new(takings.which, taken.rows()),
            shown: Arc::new(shown),
            base: Arc::new(base),
            taken: Arc::new(taken),
        };
        (contexts, which)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.feature.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.feature.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Cells;

    #[test]
    fn base_and_taken_add_up_to_the_softmax_without_the_target() {
        let x = vec![0.0; 8];
        let seen = [true, false, true, true, false, false, false, false];
        let patterns = Patterns::of(&Cells::observed(4, &x, &seen));
        let cells: Vec<(u32, u32)> = (0..2).flat_map(|s| (0..4).map(move |f| (s, f))).collect();
        let (contexts, which) = Contexts::of(&patterns, cells.iter().copied());
        assert_eq!(contexts.len(), 8);
        for (&(s, f), &i) in cells.iter().zip(&which) {
            let kept = |g: u32| seen[(4 * s + g) as usize] && g != f;
            let z: f32 = (0..4).map(|g| if kept(g) { std::f32::consts::E } else { 1.0 }).sum();
            let base = contexts.base.row(contexts.to_base.targets()[i as usize] as usize);
            let taken = contexts.taken.row(contexts.to_taken.targets()[i as usize] as usize);
            for g in 0..4 {
                let softmax = if kept(g) { std::f32::consts::E } else { 1.0 } / z;
                assert!((base[g as usize] + taken[g as usize] - softmax).abs() < 1e-6, "{s} {f} {g}");
            }
        }
    }

    #[test]
    fn cells_of_one_pattern_and_feature_share_a_context() {
        let patterns = Patterns::of(&Cells::observed(2, &[0.0; 6], &[true, false, true, false, true, true]));
        let (contexts, which) = Contexts::of(&patterns, [(0, 1), (1, 1), (2, 1)].into_iter());
        assert_eq!((contexts.len(), which), (2, vec![0, 0, 1]));
    }
}
