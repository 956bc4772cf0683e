//! Random numbers for inner loops, and rows drawn without replacement: the one shuffle of the project.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// A fast stream of random numbers for inner loops (splitmix64). Its seed comes from [`Run::rng`](crate::Run::rng).
///
/// ```
/// use m3impute_core::RandomStream;
/// let (mut a, mut b) = (RandomStream::new(7), RandomStream::new(7));
/// assert_eq!(a.next_u32(), b.next_u32());
/// assert!(a.below(10) < 10 && (0.0..1.0).contains(&a.unit()));
/// ```
#[derive(Clone, Debug)]
pub struct RandomStream(u64);

impl RandomStream {
    /// The stream of that seed.
    pub fn new(seed: u64) -> RandomStream {
        RandomStream(seed)
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 32) as u32
    }

    /// A whole number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        below(self.next_u32(), n)
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f32 {
        (self.next_u32() >> 8) as f32 / (1 << 24) as f32
    }

    /// Moves `count` items, drawn without replacement, to the front (Fisher-Yates).
    pub fn shuffle_front<T>(&mut self, items: &mut [T], count: usize) {
        shuffle_front(items, count, || self.next_u32());
    }
}

/// Moves `count` items, drawn without replacement, to the front (Fisher-Yates). `next_u32` gives random bits.
///
/// ```
/// use m3impute_core::shuffle_front;
/// let mut items = [1, 2, 3];
/// shuffle_front(&mut items, 2, || u32::MAX); // always the last one
/// assert_eq!(items, [3, 1, 2]);
/// ```
pub fn shuffle_front<T>(items: &mut [T], count: usize, mut next_u32: impl FnMut() -> u32) {
    let n = items.len();
    for i in 0..count.min(n) {
        items.swap(i, i + below(next_u32(), n - i));
    }
}

/// At most `most` of the numbers below `n`, drawn without replacement, in increasing order.
///
/// ```
/// use m3impute_core::{Run, sample_rows};
/// let rows = sample_rows(100, 10, &mut Run::new(0, 1)?.rng("rows", 0));
/// assert!(rows.len() == 10 && rows.windows(2).all(|w| w[0] < w[1]));
/// # Ok::<(), m3impute_core::Error>(())
/// ```
pub fn sample_rows(n: usize, most: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..n as u32).collect();
    shuffle_front(&mut rows, most, || rng.next_u32());
    rows.truncate(most);
    rows.sort_unstable();
    rows
}

/// A number below `n` from 32 random bits.
pub(crate) fn below(bits: u32, n: usize) -> usize {
    ((u64::from(bits) * n as u64) >> 32) as usize
}

/// A number in [0, 1).
pub fn unit(rng: &mut ChaCha8Rng) -> f32 {
    (rng.next_u32() >> 8) as f32 / (1 << 24) as f32
}

/// A number from the standard normal distribution, by Box and Muller.
pub fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}
