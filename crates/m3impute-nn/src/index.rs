//! Which target row each row belongs to, and the way back.

use std::sync::{Arc, OnceLock};

/// A map from rows to target rows, with its inverse cached.
///
/// It gathers (`out[i] = x[index[i]]`), it cuts rows into segments (row `i` belongs to segment `index[i]`), and
/// it puts rows into groups. Its inverse, the rows of each target in increasing order, is built at the first
/// use, so that sums over a target run in a fixed order and in parallel over targets. Build an index once and
/// share it between the operations and steps that need it.
///
/// ```
/// use m3impute_nn::Index;
///
/// let index = Index::new(vec![2, 0, 2], 3);
/// assert_eq!(index.rows_of(2), [0, 2]);
/// assert!(index.rows_of(1).is_empty());
/// ```
#[derive(Debug)]
pub struct Index {
    targets: Vec<u32>,
    target_rows: usize,
    inverse: OnceLock<Inverse>,
}

/// The rows of each target.
#[derive(Debug)]
pub(crate) struct Inverse {
    /// Rows of target `t` are `order[offsets[t]..offsets[t + 1]]`.
    pub(crate) offsets: Vec<u32>,
    pub(crate) order: Vec<u32>,
    /// Where row `i` stands in `order`.
    pub(crate) rank: Vec<u32>,
    /// The rows were in the order of their targets already.
    pub(crate) sorted: bool,
    /// If a target has more than [`PIECE`] rows: all targets cut into pieces of at most that many, in order.
    pub(crate) pieces: Vec<Piece>,
    /// Pieces of target `t` are `pieces[piece_offsets[t]..piece_offsets[t + 1]]`.
    pub(crate) piece_offsets: Vec<u32>,
}

/// Rows of a target that are summed in one go. A target with many rows would otherwise keep one thread busy and
/// the others waiting.
const PIECE: usize = 256;

/// Some of the rows of a target: `order[from..to]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl Index {
    /// An index of row `i` to target row `targets[i]`, out of `target_rows`.
    ///
    /// # Panics
    /// If a target is out of range, or there are more than `u32::MAX` rows.
    pub fn new(targets: Vec<u32>, target_rows: usize) -> Arc<Self> {
        assert!(
            u32::try_from(targets.len()).is_ok(),
            "an index holds at most `{}` rows, got `{}`",
            u32::MAX,
            targets.len()
        );
        if let Some(i) = targets.iter().position(|&t| t as usize >= target_rows) {
            panic!("target of row `{i}`: expected less than `{target_rows}`, got `{}`", targets[i]);
        }
        Arc::new(Self { targets, target_rows, inverse: OnceLock::new() })
    }

    /// Number of rows that have a target.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Number of target rows.
    pub fn target_rows(&self) -> usize {
        self.target_rows
    }

    /// The target of each row.
    pub fn targets(&self) -> &[u32] {
        &self.targets
    }

    /// The rows of one target, in increasing order.
    pub fn rows_of(&self, target: usize) -> &[u32] {
        self.inverse().rows_of(target)
    }

    pub(crate) fn inverse(&self) -> &Inverse {
        self.inverse.get_or_init(|| Inverse::new(&self.targets, self.target_rows))
    }
}

impl Inverse {
    /// A counting sort, which keeps the rows of a target in order.
    fn new(targets: &[u32], target_rows: usize) -> Self {
        let mut offsets = vec![0u32; target_rows + 1];
        for &t in targets {
            offsets[t as usize + 1] += 1;
        }
        let longest = offsets.iter().max().map_or(0, |&n| n as usize);
        for t in 0..target_rows {
            offsets[t + 1] += offsets[t];
        }
        let mut next = offsets.clone();
        let mut order = vec![0; targets.len()];
        let mut rank = vec![0; targets.len()];
        for (row, &t) in targets.iter().enumerate() {
            let place = &mut next[t as usize];
            order[*place as usize] = row as u32;
            rank[row] = *place;
            *place += 1;
        }
        let (mut pieces, mut piece_offsets) = (Vec::new(), Vec::new());
        if longest > PIECE {
            piece_offsets.push(0);
            for bounds in offsets.windows(2) {
                let starts = (bounds[0]..bounds[1]).step_by(PIECE);
                pieces.extend(starts.map(|from| Piece { from, to: bounds[1].min(from + PIECE as u32) }));
                piece_offsets.push(pieces.len() as u32);
            }
        }
        Self { offsets, order, rank, sorted: targets.is_sorted(), pieces, piece_offsets }
    }

    /// Number of target rows.
    pub(crate) fn target_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(crate) fn rows_of(&self, target: usize) -> &[u32] {
        &self.order[self.range(target)]
    }

    /// Where the rows of a target stand in `order`.
    pub(crate) fn range(&self, target: usize) -> std::ops::Range<usize> {
        self.offsets[target] as usize..self.offsets[target + 1] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_lists_the_rows_of_each_target_in_order() {
        let index = Index::new(vec![1, 3, 1, 0, 3, 1], 5);
        let rows: Vec<&[u32]> = (0..5).map(|t| index.rows_of(t)).collect();
        assert_eq!(rows, [&[3u32][..], &[0, 2, 5], &[], &[1, 4], &[]]);
        assert!(index.inverse().pieces.is_empty());
        assert!(!index.inverse().sorted);
        for row in 0..6 {
            assert_eq!(index.inverse().order[index.inverse().rank[row] as usize], row as u32);
        }
    }

    #[test]
    fn a_long_target_is_cut_into_pieces() {
        let index = Index::new([vec![1; 600], vec![3; 2]].concat(), 4);
        let inverse = index.inverse();
        assert_eq!(inverse.piece_offsets, [0, 0, 3, 3, 4]);
        let bounds: Vec<_> = inverse.pieces.iter().map(|p| (p.from, p.to)).collect();
        assert_eq!(bounds, [(0, 256), (256, 512), (512, 600), (600, 602)]);
    }

    #[test]
    #[should_panic(expected = "target of row `1`: expected less than `2`, got `2`")]
    fn a_target_out_of_range_is_refused() {
        Index::new(vec![0, 2], 2);
    }
}
