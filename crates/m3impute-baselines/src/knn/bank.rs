//! The rows that donate, and the search for the nearest of them.
//!
//! Every pair is looked at: with missing cells there is no metric that a tree could use. The bank lies in chunks of [`LANES`]
//! rows, feature by feature, so that one query meets a chunk with vector instructions; a tile of queries shares the
//! chunk while it is in the cache. Differences are squared one by one, so near duplicates lose no digits.
//!
//! Notation: `n` rows of the bank, `w` features, `q` queries.

use m3impute_learners::linalg::GoOn;
use rayon::prelude::*;

/// The rows of a chunk.
const LANES: usize = 32;
/// The queries that share a chunk.
const TILE: usize = 16;
/// A smaller distance counts as this much: equal rows must not drown the others.
const SMALLEST_DISTANCE: f64 = 1e-6;
/// Distances that differ by less, relatively, are equal: in single precision while searching, then in double.
const ROUNDING_F32: f32 = 1e-5;
const ROUNDING: f64 = 1e-9;

/// A row of the bank and its distance from a query: the mean squared difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Donor {
    pub distance: f64,
    pub row: usize,
}

/// The rows that donate.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bank {
    pub x: Vec<f64>,       // [n, w], NaN where missing
    pub weights: Vec<f64>, // [w], what each difference is multiplied by
    /// As if each pair had this many more features in common, with a difference as between any two rows.
    pub shrink: f64,
    prior: f64,
    chunks: Vec<f32>, // [n / LANES, w, LANES], weighted
}

/// A row that looks for donors.
struct Query {
    features: Vec<(usize, f32)>,
    searches: Vec<Search>,
}

/// The nearest rows so far that have one certain feature.
struct Search {
    feature: usize,
    nearest: Vec<(f32, u32)>,
    /// What a distance must be below to get in.
    limit: f32,
}

impl Bank {
    pub fn new(x: Vec<f64>, weights: Vec<f64>, shrink: f64) -> Bank {
        let w = weights.len();
        let n = x.len() / w;
        let mut chunks = vec![f32::NAN; n.div_ceil(LANES) * w * LANES];
        for (i, row) in x.chunks_exact(w).enumerate() {
            let chunk = &mut chunks[i / LANES * w * LANES..];
            for (f, (v, weight)) in row.iter().zip(&weights).enumerate() {
                chunk[f * LANES + i % LANES] = (v * weight) as f32;
            }
        }
        let prior = expected_difference(&x, &weights);
        Bank { x, weights, shrink, prior, chunks }
    }

    /// For each query row and each of its wanted features: the `k` nearest donors that have the feature, nearest first,
    /// and all others that are as near as the last of them. Rows without a feature in common are no donors. `rows` is
    /// `[q, w]`, NaN where missing. None where it was told to stop.
    pub fn nearest(
        &self,
        rows: &[f64],
        wanted: &[Vec<usize>],
        k: usize,
        go_on: GoOn<'_>,
    ) -> Option<Vec<Vec<Vec<Donor>>>> {
        let w = self.weights.len();
        let tiles = rows.par_chunks(TILE * w).zip(wanted.par_chunks(TILE));
        let found: Option<Vec<Vec<Vec<Vec<Donor>>>>> =
            tiles.map(|(rows, wanted)| go_on().then(|| self.nearest_of_tile(rows, wanted, k))).collect();
        Some(found?.into_iter().flatten().collect())
    }

    fn nearest_of_tile(&self, rows: &[f64], wanted: &[Vec<usize>], k: usize) -> Vec<Vec<Vec<Donor>>> {
        let w = self.weights.len();
        let mut queries: Vec<Query> =
            rows.chunks_exact(w).zip(wanted).map(|(row, wanted)| self.query(row, wanted, k)).collect();
        self.scan(&mut queries, k);
        let exact = |row: &[f64], search: Search| -> Vec<Donor> {
            let donor = |&(_, i): &(f32, u32)| Donor { distance: self.distance(row, i as usize), row: i as usize };
            let mut donors: Vec<Donor> = search.nearest.iter().map(donor).collect();
            donors.sort_by(|a, b| a.distance.total_cmp(&b.distance).then(a.row.cmp(&b.row)));
            donors
        };
        let predictions = queries.into_iter().zip(rows.chunks_exact(w));
        predictions.map(|(query, row)| query.searches.into_iter().map(|s| exact(row, s)).collect()).collect()
    }

    fn query(&self, row: &[f64], wanted: &[usize], k: usize) -> Query {
        let weighted = row.iter().zip(&self.weights).enumerate().filter(|(_, (v, _))| !v.is_nan());
        let search = |&feature: &usize| Search { feature, nearest: Vec::with_capacity(k + 1), limit: f32::INFINITY };
        Query {
            features: weighted.map(|(f, (v, weight))| (f, (v * weight) as f32)).collect(),
            searches: wanted.iter().map(search).collect(),
        }
    }

    /// Meets every query with every chunk.
    fn scan(&self, queries: &mut [Query], k: usize) {
        let w = self.weights.len();
        let (shrink, prior) = (self.shrink as f32, self.prior as f32);
        for (c, chunk) in self.chunks.chunks_exact(w * LANES).enumerate() {
            for query in queries.iter_mut() {
                let distances = distances(chunk, &query.features, shrink, prior);
                let limit = query.searches.iter().fold(f32::NEG_INFINITY, |a, s| a.max(s.limit));
                if distances.iter().fold(false, |any, &d| any | (d < limit)) {
                    query.take_in(chunk, &distances, limit, c * LANES, k);
                }
            }
        }
    }

    /// The distance of a query from row `i`, exactly.
    fn distance(&self, row: &[f64], i: usize) -> f64 {
        let w = self.weights.len();
        let (mut sum, mut count) = (self.shrink * self.prior, self.shrink);
        for ((a, b), weight) in row.iter().zip(&self.x[i * w..(i + 1) * w]).zip(&self.weights) {
            let difference = (a - b) * weight;
            if !difference.is_nan() {
                sum += difference * difference;
                count += 1.0;
            }
        }
        (sum / count).max(SMALLEST_DISTANCE)
    }
}

/// The first `k` donors, and the part of a place that each has: those as near as the last share the places that are
/// left. So the order of the rows does not matter.
pub(super) fn places(donors: &[Donor], k: usize) -> impl Iterator<Item = (&Donor, f64)> {
    let last = donors[..k.min(donors.len())].last().map_or(0.0, |d| d.distance);
    let nearer = donors.partition_point(|d| d.distance < last * (1.0 - ROUNDING));
    let reached = donors.partition_point(|d| d.distance <= last * (1.0 + ROUNDING));
    let share = (k.min(donors.len()) - nearer) as f64 / (reached - nearer).max(1) as f64;
    donors[..reached].iter().enumerate().map(move |(i, donor)| (donor, if i < nearer { 1.0 } else { share }))
}

/// The distances of a query from the rows of a chunk; infinite without a feature in common.
#[inline]
fn distances(chunk: &[f32], features: &[(usize, f32)], shrink: f32, prior: f32) -> [f32; LANES] {
    let mut sum = [0.0_f32; LANES];
    let mut count = [0.0_f32; LANES];
    for &(f, a) in features {
        let column: &[f32; LANES] = chunk[f * LANES..(f + 1) * LANES].try_into().expect("a chunk has LANES rows");
        for l in 0..LANES {
            let difference = column[l] - a;
            // Bits, not branches: a condition here would be compiled to masked stores, which are several times as slow.
            let there = if difference.is_nan() { 0 } else { u32::MAX };
            sum[l] += f32::from_bits((difference * difference).to_bits() & there);
            count[l] += f32::from_bits(1.0_f32.to_bits() & there);
        }
    }
    for l in 0..LANES {
        let mean = (sum[l] + shrink * prior) / (count[l] + shrink);
        let mean = if mean > SMALLEST_DISTANCE as f32 { mean } else { SMALLEST_DISTANCE as f32 };
        sum[l] = if count[l] > 0.0 { mean } else { f32::INFINITY };
    }
    sum
}

impl Query {
    /// Lets the rows of a chunk that are nearer than the limit into the searches.
    fn take_in(&mut self, chunk: &[f32], distances: &[f32; LANES], limit: f32, first: usize, k: usize) {
        let near = distances.iter().enumerate().fold(0_u32, |near, (l, &d)| near | (u32::from(d < limit) << l));
        for search in &mut self.searches {
            let column = &chunk[search.feature * LANES..(search.feature + 1) * LANES];
            let mut left = near;
            while left != 0 {
                let l = left.trailing_zeros() as usize;
                left &= left - 1;
                let distance = distances[l];
                if distance < search.limit && !column[l].is_nan() {
                    search.insert(distance, (first + l) as u32, k);
                }
            }
        }
    }
}

impl Search {
    fn insert(&mut self, distance: f32, row: u32, k: usize) {
        let at = self.nearest.partition_point(|&(d, _)| d <= distance);
        self.nearest.insert(at, (distance, row));
        if self.nearest.len() >= k {
            self.limit = self.nearest[k - 1].0 * (1.0 + ROUNDING_F32);
            while self.nearest.last().is_some_and(|&(d, _)| d >= self.limit) {
                self.nearest.pop();
            }
        }
    }
}

/// The squared difference to expect in a feature of two rows: twice the variance, on average over features.
fn expected_difference(x: &[f64], weights: &[f64]) -> f64 {
    let w = weights.len();
    let variances = (0..w).map(|f| variance(x.iter().skip(f).step_by(w).copied()) * weights[f] * weights[f]);
    2.0 * variances.sum::<f64>() / w as f64
}

/// The variance of the values that are there.
pub(super) fn variance(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let there = || values.clone().filter(|v| !v.is_nan());
    let count = there().count().max(1) as f64;
    let mean = there().sum::<f64>() / count;
    there().map(|v| (v - mean).powi(2)).sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_learners::linalg::ALWAYS;

    const NAN: f64 = f64::NAN;

    fn rows_of(found: &[Donor]) -> Vec<usize> {
        found.iter().map(|d| d.row).collect()
    }

    #[test]
    fn the_nearest_rows_that_have_the_feature_are_found_in_order() {
        let x = vec![0.0, 1.0, 3.0, 2.0, 1.0, NAN, 9.0, 4.0]; // [4, 2]
        let bank = Bank::new(x, vec![1.0; 2], 0.0);
        let found = bank.nearest(&[1.0, NAN], &[vec![1]], 2, ALWAYS).unwrap();
        assert_eq!(found[0][0], [Donor { distance: 1.0, row: 0 }, Donor { distance: 4.0, row: 1 }]);
    }

    #[test]
    fn rows_without_a_common_feature_are_no_donors() {
        let bank = Bank::new(vec![NAN, 1.0, 2.0, 5.0], vec![1.0; 2], 0.0);
        assert_eq!(rows_of(&bank.nearest(&[0.0, NAN], &[vec![1]], 5, ALWAYS).unwrap()[0][0]), [1]);
    }

    #[test]
    fn few_common_features_are_trusted_less_with_shrinkage() {
        // Row 0 agrees in the one feature it shares; row 1 differs a little in two.
        let x = vec![0.0, NAN, 5.0, 0.1, 0.1, 5.0];
        let query = [0.0, 0.0, NAN];
        let nearest = |shrink| {
            rows_of(
                &Bank::new(x.clone(), vec![1.0, 1.0, 0.0], shrink).nearest(&query, &[vec![2]], 1, ALWAYS).unwrap()[0]
                    [0],
            )
        };
        assert_eq!(nearest(0.0), [0]);
        let mut far = x.clone();
        far.extend([9.0, 9.0, 5.0, -9.0, -9.0, 5.0]); // rows that differ much, so that agreement means something
        assert_eq!(
            rows_of(&Bank::new(far, vec![1.0, 1.0, 0.0], 1.0).nearest(&query, &[vec![2]], 1, ALWAYS).unwrap()[0][0]),
            [1]
        );
    }

    #[test]
    fn many_rows_in_many_chunks_agree_with_the_plain_search() {
        let (n, w) = (131, 3);
        let x: Vec<f64> = (0..n * w).map(|c| if c % 7 == 3 { NAN } else { (c * 37 % 101) as f64 / 100.0 }).collect();
        let bank = Bank::new(x.clone(), vec![1.0; w], 0.5);
        let query = [0.3, NAN, 0.8];
        let mut plain: Vec<Donor> = (0..n)
            .filter(|i| !x[i * w + 1].is_nan() && (!x[i * w].is_nan() || !x[i * w + 2].is_nan()))
            .map(|row| Donor { distance: bank.distance(&query, row), row })
            .collect();
        plain.sort_by(|a, b| a.distance.total_cmp(&b.distance).then(a.row.cmp(&b.row)));
        assert_eq!(bank.nearest(&query, &[vec![1]], 9, ALWAYS).unwrap()[0][0], plain[..9]);
    }
}
