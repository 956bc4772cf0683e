//! Values in the leaves that a row falls into, and what is taken from them.

/// Values with their shares, from which one is chosen.
#[derive(Default)]
pub(super) struct Pool {
    /// Value and share, packed so that they are sorted by value.
    keys: Vec<u64>,
    levels: Vec<f64>,
}

impl Pool {
    /// The values below which these shares of the whole lie, in rising order of shares; between two values where the
    /// share is reached exactly.
    pub fn quantiles<const N: usize>(
        &mut self,
        held: &mut dyn Iterator<Item = (f32, f32)>,
        shares: [f64; N],
    ) -> [f32; N] {
        self.keys.clear();
        self.keys.extend(held.map(|(v, s)| (u64::from(sortable(v)) << 32) | u64::from(s.to_bits())));
        self.keys.sort_unstable();
        let share = |key: u64| f64::from(f32::from_bits(key as u32));
        let value = |at: usize| unsortable((self.keys[at] >> 32) as u32);
        let whole = self.keys.iter().map(|&k| share(k)).sum::<f64>();
        let (mut at, mut below) = (0, self.keys.first().map_or(0.0, |&k| share(k)));
        shares.map(|wanted| {
            let wanted = wanted * whole;
            // Shares such as a third do not add up exactly.
            while below < wanted - 1e-4 && at + 1 < self.keys.len() {
                at += 1;
                below += share(self.keys[at]);
            }
            if self.keys.is_empty() {
                0.0
            } else if (below - wanted).abs() < 1e-4 && at + 1 < self.keys.len() {
                let (a, b) = (value(at), value(at + 1));
                a + (b - a) / 2.0
            } else {
                value(at)
            }
        })
    }

    pub fn most_likely(&mut self, held: &mut dyn Iterator<Item = (f32, f32)>, levels: usize) -> f32 {
        self.levels.clear();
        self.levels.resize(levels, 0.0);
        held.for_each(|(v, s)| self.levels[v as usize] += f64::from(s));
        let best = (0..levels).reduce(|a, b| if self.levels[b] > self.levels[a] { b } else { a });
        best.unwrap_or(0) as f32
    }
}

/// Bits that are ordered as the numbers are.
fn sortable(v: f32) -> u32 {
    let bits = v.to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}

fn unsortable(bits: u32) -> f32 {
    f32::from_bits(if bits >> 31 == 1 { bits & !(1 << 31) } else { !bits })
}
