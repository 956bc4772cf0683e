//! The choice of peers for a sample.
//!
//! The published code draws the peers of each cell without replacement, with probabilities in proportion to the
//! cosine similarity of the samples, from an `n x n` matrix. The same draws come without that matrix: a sample is
//! proposed uniformly and accepted with a probability equal to its similarity, and one that was drawn before is
//! refused. Each accepted sample then has the distribution of a draw among those that are left, exactly; the
//! similarities of proposed pairs alone are computed. They lie near one (all vectors are non-negative), so hardly any
//! proposal is refused.

use m3impute_nn::Matrix;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use serde::{Deserialize, Serialize};

/// How many proposals are made for one draw before the similarities to all samples are computed instead.
const PATIENCE: usize = 64;
/// How many records the large-table mode shares among all samples.
const SHARED: usize = 20;

/// How peers are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampling {
    /// By cosine similarity, without replacement, never the sample itself.
    Cosine,
    /// All samples alike, with replacement, perhaps the sample itself.
    Uniform,
    /// By cosine similarity among a few random records that all samples share.
    Shared,
}

/// The samples from which peers are drawn.
#[derive(Clone, Debug)]
pub struct PeerSource {
    sampling: Sampling,
    /// A vector of length one a sample, `[n, d]`.
    directions: Matrix,
    /// The records of the large-table mode.
    shared: Vec<u32>,
}

impl PeerSource {
    /// Peers among the samples with these vectors, `[n, d]`.
    pub fn new(sampling: Sampling, vectors: Matrix, peers: usize, rng: &mut ChaCha8Rng) -> PeerSource {
        let n = vectors.rows();
        let shared = match sampling {
            Sampling::Shared => (0..SHARED.max(peers)).map(|_| below(rng, n)).collect(),
            Sampling::Cosine | Sampling::Uniform => Vec::new(),
        };
        PeerSource { sampling, directions: directions(vectors), shared }
    }

    /// How many samples there are to draw from.
    pub fn samples(&self) -> usize {
        self.directions.rows()
    }

    /// Draws `count` peers of a sample that is one of these.
    pub fn draw(&self, sample: u32, count: usize, rng: &mut ChaCha8Rng, peers: &mut Vec<u32>) {
        self.draw_for(self.directions.row(sample as usize), Some(sample), count, rng, peers);
    }

    /// Draws `count` peers of a sample in this direction, which is one of these samples or none of them.
    pub fn draw_for(
        &self,
        direction: &[f32],
        own: Option<u32>,
        count: usize,
        rng: &mut ChaCha8Rng,
        peers: &mut Vec<u32>,
    ) {
        let n = self.samples();
        match self.sampling {
            Sampling::Uniform => peers.extend((0..count).map(|_| below(rng, n))),
            Sampling::Shared => {
                let mut weights: Vec<f32> = self.shared.iter().map(|&p| self.similarity(direction, p)).collect();
                for _ in 0..count {
                    let place = weighted(&weights, rng);
                    peers.push(self.shared[place]);
                    weights[place] = 0.0;
                }
            }
            Sampling::Cosine => {
                let first = peers.len();
                let others = n - usize::from(own.is_some());
                for _ in 0..count {
                    // With fewer samples than peers a sample is drawn twice; alone, it is its own peer.
                    let distinct = peers.len() - first < others;
                    let refused = |p: u32, peers: &[u32]| {
                        (others > 0 && Some(p) == own) || (distinct && peers[first..].contains(&p))
                    };
                    let proposal = (0..PATIENCE).find_map(|_| {
                        let p = below(rng, n);
                        (!refused(p, peers) && unit(rng) < self.similarity(direction, p)).then_some(p)
                    });
                    peers.push(proposal.unwrap_or_else(|| {
                        let weigh = |p: u32| if refused(p, peers) { 0.0 } else { self.similarity(direction, p) };
                        let weights: Vec<f32> = (0..n as u32).map(weigh).collect();
                        if weights.iter().any(|&w| w > 0.0) {
                            return weighted(&weights, rng) as u32;
                        }
                        // Similar to no sample (every value is 0): all are equally likely.
                        let allowed: Vec<u32> = (0..n as u32).filter(|&p| !refused(p, peers)).collect();
                        allowed[below(rng, allowed.len()) as usize]
                    }));
                }
            }
        }
    }

    fn similarity(&self, direction: &[f32], peer: u32) -> f32 {
        dot(direction, self.directions.row(peer as usize)).max(0.0)
    }
}

/// Each row divided by its length.
pub fn directions(mut vectors: Matrix) -> Matrix {
    for i in 0..vectors.rows() {
        let row = vectors.row_mut(i);
        let length = dot(row, row).sqrt().max(1e-12);
        row.iter_mut().for_each(|v| *v /= length);
    }
    vectors
}

/// In eight running sums, which the compiler keeps in one register.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (x, y) in a.iter().zip(b) {
        for i in 0..8 {
            sums[i] += x[i] * y[i];
        }
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum::<f32>()
}

/// Uniform in `[0, 1)`.
pub(crate) fn unit(rng: &mut ChaCha8Rng) -> f32 {
    (rng.next_u32() >> 8) as f32 / (1u32 << 24) as f32
}

/// Uniform below `n`.
fn below(rng: &mut ChaCha8Rng, n: usize) -> u32 {
    ((u64::from(rng.next_u32()) * n as u64) >> 32) as u32
}

/// A place drawn in proportion to the weights; where all are 0, any.
fn weighted(weights: &[f32], rng: &mut ChaCha8Rng) -> usize {
    let total: f32 = weights.iter().sum();
    if total <= 0.0 {
        return below(rng, weights.len()) as usize;
    }
    let mut left = unit(rng) * total;
    let mut last = 0;
    for (i, &w) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
        last = i;
        if left < w {
            break;
        }
        left -= w;
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    fn rng() -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(1)
    }

    /// Seen from row 0 the others are at cosine 1, 0.6 and 0.
    fn source(sampling: Sampling) -> PeerSource {
        let vectors = Matrix::from_rows(&[[1.0, 0.0], [2.0, 0.0], [0.6, 0.8], [0.0, 3.0]]);
        PeerSource::new(sampling, vectors, 2, &mut rng())
    }

    #[test]
    fn cosine_draws_are_in_proportion_to_the_similarity() {
        let (source, mut rng, mut peers) = (source(Sampling::Cosine), rng(), Vec::new());
        for _ in 0..8000 {
            source.draw(0, 1, &mut rng, &mut peers);
        }
        let share = |p| peers.iter().filter(|&&q| q == p).count() as f32 / 8000.0;
        assert_eq!((share(0), share(3)), (0.0, 0.0));
        assert!((share(1) - 0.625).abs() < 0.02, "{}", share(1));
    }

    #[test]
    fn cosine_draws_do_not_repeat_while_there_are_others() {
        let (source, mut rng) = (source(Sampling::Cosine), rng());
        for _ in 0..50 {
            let mut peers = Vec::new();
            source.draw(0, 3, &mut rng, &mut peers);
            peers.sort_unstable();
            assert_eq!(peers, [1, 2, 3]);
        }
        let mut peers = Vec::new();
        source.draw(2, 7, &mut rng, &mut peers);
        assert_eq!(peers.len(), 7);
        assert!(!peers.contains(&2));
    }

    #[test]
    fn a_lone_sample_is_its_own_peer() {
        for sampling in [Sampling::Cosine, Sampling::Uniform, Sampling::Shared] {
            let source = PeerSource::new(sampling, Matrix::zeros(1, 2), 3, &mut rng());
            let mut peers = Vec::new();
            source.draw(0, 3, &mut rng(), &mut peers);
            assert_eq!(peers, [0, 0, 0]);
        }
    }

    #[test]
    fn the_large_table_mode_draws_from_a_few_records() {
        let vectors = Matrix::from_fn(1000, 2, |i, j| if j == 0 { 1.0 } else { i as f32 / 1000.0 });
        let source = PeerSource::new(Sampling::Shared, vectors, 5, &mut rng());
        let (mut rng, mut peers) = (rng(), Vec::new());
        for sample in 0..1000 {
            source.draw(sample, 5, &mut rng, &mut peers);
        }
        peers.sort_unstable();
        peers.dedup();
        assert!(peers.len() <= SHARED && peers.len() > 10, "{}", peers.len());
    }

    #[test]
    fn samples_without_any_similarity_are_all_alike() {
        let source = PeerSource::new(Sampling::Cosine, Matrix::zeros(3, 2), 2, &mut rng());
        let mut peers = Vec::new();
        source.draw(1, 2, &mut rng(), &mut peers);
        peers.sort_unstable();
        assert_eq!(peers, [0, 2]);
    }
}
