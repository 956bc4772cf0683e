//! Hashes: of purposes, of tables, and of rows, so that what is random for a row depends on the row alone.

use crate::table::{Table, Values};

/// FNV-1a, 64 bits: small, without a seed, the same everywhere.
pub(crate) struct Fnv(pub(crate) u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// A hash of the observed values of a row and the seed of a model, so that a row is filled alike in any order and batch.
/// Each cell is a column and the bits of its value: the same values in other columns are another row.
///
/// ```
/// use m3impute_core::row_hash;
/// assert_eq!(row_hash(7, [(0, 1), (2, 5)]), row_hash(7, [(0, 1), (2, 5)]));
/// assert_ne!(row_hash(7, [(0, 1), (2, 5)]), row_hash(7, [(0, 1), (1, 5)]));
/// ```
pub fn row_hash(seed: u64, observed: impl IntoIterator<Item = (usize, u64)>) -> u64 {
    let mut hash = Fnv::default();
    hash.bytes(&seed.to_le_bytes());
    for (column, bits) in observed {
        hash.bytes(&(column as u64).to_le_bytes());
        hash.bytes(&bits.to_le_bytes());
    }
    hash.0
}

/// A number for each row that depends on its observed values and the names of their columns, not on the order of either.
pub(crate) fn hashes_of_rows(table: &Table) -> Vec<u64> {
    let mut sums = vec![0_u64; table.rows()];
    for (j, spec) in table.schema().columns().iter().enumerate() {
        let mut named = Fnv::default();
        named.bytes(spec.name.as_bytes());
        let hash = |bytes: &[u8]| {
            let mut hash = Fnv(named.0);
            hash.bytes(bytes);
            hash.0
        };
        let levels: Vec<u64> = spec.levels.iter().map(|level| hash(level.as_bytes())).collect();
        let observed = table.observed().column(j);
        for (i, sum) in sums.iter_mut().enumerate().filter(|(i, _)| observed[*i]) {
            let own = match table.values(j) {
                Values::Numbers(v) => hash(&v[i].to_bits().to_le_bytes()),
                Values::Codes(c) => levels.get(c[i] as usize).copied().unwrap_or_default(),
                Values::Opaque => 0,
            };
            *sum = sum.wrapping_add(own);
        }
    }
    sums
}
