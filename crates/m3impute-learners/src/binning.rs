//! Features as small whole numbers: the bins over which trees are grown.
//!
//! A cut between two bins is a real number, so that `bin(x) <= b` and `x <= edge(b)` say the same: a tree that was grown
//! on bins predictions for numbers.

/// The most bins of a feature.
pub const MAX_BINS: usize = 255;

/// The bins of one feature, in rising order. Every distinct value has its own bin where there are few; else the bins
/// hold about equally many values.
///
/// ```
/// use m3impute_learners::binning::Bins;
/// let bins = Bins::of(&[1.0, 1.0, 2.0, 4.0], 255);
/// assert_eq!((bins.len(), bins.bin(1.0), bins.bin(2.9), bins.bin(9.0)), (3, 0, 1, 2));
/// assert_eq!(bins.edge(1), 3.0);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bins {
    /// The smallest value of each bin.
    lows: Vec<f32>,
    /// Between bin `b` and the next: halfway between the values beside it.
    edges: Vec<f32>,
}

impl Bins {
    /// The bins of these values, at most `most` (which is at least 1).
    pub fn of(values: &[f32], most: usize) -> Bins {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f32::total_cmp);
        let distinct = 1 + sorted.windows(2).filter(|w| w[0] < w[1]).count();
        let mut bins = Bins::default();
        let (n, most) = (sorted.len(), if distinct <= most { usize::MAX } else { most });
        let (mut at, mut made) = (0, 0_usize);
        while at < n {
            // What is left is shared evenly among the bins that are left, so that a frequent value does not starve others.
            let want = if most == usize::MAX { 1 } else { (n - at).div_ceil(most - made) };
            let mut end = (at + want).min(n);
            while end < n && sorted[end] <= sorted[end - 1] {
                end += 1;
            }
            if at > 0 {
                bins.edges.push(between(sorted[at - 1], sorted[at]));
            }
            bins.lows.push(sorted[at]);
            (at, made) = (end, made + 1);
        }
        bins
    }

    /// How many bins there are.
    pub fn len(&self) -> usize {
        self.lows.len()
    }

    /// Whether there is no bin.
    pub fn is_empty(&self) -> bool {
        self.lows.is_empty()
    }

    /// The bin of a value.
    pub fn bin(&self, value: f32) -> u16 {
        self.edges.partition_point(|&edge| edge < value) as u16
    }

    /// The real number that cuts bin `b` from the next one.
    pub fn edge(&self, b: u16) -> f32 {
        self.edges[b as usize]
    }

    /// The cut, from bin `first` to the one before `last`, that lies where `share` of the way between their values is.
    pub fn cut_at(&self, first: u16, last: u16, share: f32) -> u16 {
        let (low, high) = (self.lows[first as usize], self.lows[last as usize]);
        let value = low + share * (high - low);
        let inside = &self.lows[first as usize + 1..=last as usize];
        first + (inside.partition_point(|&l| l <= value) as u16).min(last - first - 1)
    }
}

/// A number `e` with `a <= e < b`, halfway where floats allow.
fn between(a: f32, b: f32) -> f32 {
    let half = a + (b - a) / 2.0;
    if half < b { half } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_and_edges_say_the_same() {
        let values: Vec<f32> = (0..1000).map(|i| ((i * 7919) % 1000) as f32 / 10.0).collect();
        let bins = Bins::of(&values, 16);
        assert_eq!(bins.len(), 16);
        for &v in &values {
            for b in 0..15 {
                assert_eq!(bins.bin(v) <= b, v <= bins.edge(b));
            }
        }
    }

    #[test]
    fn a_frequent_value_leaves_bins_for_the_others() {
        let values: Vec<f32> = (0..100).map(|i| if i < 90 { 0.0 } else { i as f32 }).collect();
        let bins = Bins::of(&values, 6);
        assert_eq!((bins.len(), bins.bin(0.0)), (6, 0));
    }

    #[test]
    fn neighbouring_floats_are_told_apart() {
        let (a, b) = (1.0_f32, 1.0 + f32::EPSILON);
        let bins = Bins::of(&[a, b], 255);
        assert_eq!((bins.bin(a), bins.bin(b)), (0, 1));
    }

    #[test]
    fn a_cut_by_share_follows_the_values() {
        let bins = Bins::of(&[0.0, 1.0, 10.0], 255);
        assert_eq!((bins.cut_at(0, 2, 0.05), bins.cut_at(0, 2, 0.5), bins.cut_at(0, 2, 0.999)), (0, 1, 1));
        assert_eq!(bins.cut_at(1, 2, 0.99), 1);
    }
}
