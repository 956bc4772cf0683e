//! Columns that are missing together: the correlation (phi) of where they are missing.

use super::{CHANCE, normal_quantile};
use crate::table::Table;

/// Columns whose pairs are compared: those with the most missing cells.
const COLUMNS: usize = 100;
/// Rows in which both columns are missing, below which a pair may be chance.
const MIN_ROWS: usize = 5;

/// Which columns are missing together, or where the other is not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Together {
    /// The columns whose pairs were compared, the most missing cells first. Complete and empty columns are left out.
    pub columns: Vec<usize>,
    /// How many further columns there are, with fewer missing cells.
    pub further: usize,
    /// Pairs that are missing together more or less often than by chance, the strongest first.
    pub pairs: Vec<Pair>,
}

/// Two columns that are missing together more or less often than by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The indices of the columns in the table, the smaller one first.
    pub columns: [usize; 2],
    /// The correlation of where they are missing: 1 in the same rows, -1 where one is missing wherever the other is not.
    pub phi: f64,
    /// In how many rows both are missing.
    pub rows: usize,
}

/// The correlation of where columns are missing, of each two columns.
///
/// A pair counts if a test of independence (chi squared, with the correction for small numbers) finds it in less than
/// 5 % of tables without any such pair.
///
/// ```
/// use m3impute_core::missingness::missing_together;
/// use m3impute_core::{Column, ColumnSpec, Kind, Schema, Table};
/// let column = |name| ColumnSpec::new(name, Kind::Continuous);
/// let every = |n: usize| Column::numbers((0..60).map(move |i| (i % n > 0).then_some(1.0)));
/// let schema = Schema::new(vec![column("a"), column("b"), column("c")])?;
/// let of = missing_together(&Table::new(schema, vec![every(3), every(7), every(3)])?);
/// assert_eq!((of.pairs.len(), of.pairs[0].columns, of.pairs[0].rows), (1, [0, 2], 20));
/// assert!((of.pairs[0].phi - 1.0).abs() < 1e-12);
/// # Ok::<(), m3impute_core::Error>(())
/// ```
pub fn missing_together(table: &Table) -> Together {
    let n = table.rows();
    let counts: Vec<usize> = (0..table.cols()).map(|j| table.missing_in(j)).collect();
    let mut columns: Vec<usize> = (0..table.cols()).filter(|&j| counts[j] > 0 && counts[j] < n).collect();
    columns.sort_by_key(|&j| std::cmp::Reverse(counts[j]));
    let further = columns.len().saturating_sub(COLUMNS);
    columns.truncate(COLUMNS);
    let bits: Vec<Vec<u64>> = columns.iter().map(|&j| bits_of(table.observed().column(j))).collect();
    let tests = (columns.len() * columns.len().saturating_sub(1) / 2).max(1);
    let least = normal_quantile(CHANCE / (2 * tests) as f64).powi(2);
    let mut pairs = Vec::new();
    for (a, &j) in columns.iter().enumerate() {
        for (b, &k) in columns.iter().enumerate().skip(a + 1) {
            let rows = bits[a].iter().zip(&bits[b]).map(|(x, y)| (x & y).count_ones() as usize).sum::<usize>();
            let (phi, chi_squared) = correlation(n, counts[j], counts[k], rows);
            if chi_squared > least && (phi < 0.0 || rows >= MIN_ROWS) {
                pairs.push(Pair { columns: [j.min(k), j.max(k)], phi, rows });
            }
        }
    }
    pairs.sort_by(|a, b| b.phi.abs().total_cmp(&a.phi.abs()).then(b.rows.cmp(&a.rows)).then(a.columns.cmp(&b.columns)));
    Together { columns, further, pairs }
}

/// The missing cells of a column as bits.
fn bits_of(observed: &[bool]) -> Vec<u64> {
    observed.chunks(64).map(|cells| cells.iter().rev().fold(0, |bits, o| bits << 1 | u64::from(!o))).collect()
}

/// Phi of two columns with `a` and `b` missing cells, `both` of them in the same rows, and its chi squared with the
/// correction of Yates.
fn correlation(n: usize, a: usize, b: usize, both: usize) -> (f64, f64) {
    let [n, a, b, both] = [n, a, b, both].map(|count| count as f64);
    let (apart, scale) = (both * n - a * b, a * (n - a) * b * (n - b));
    let corrected = (apart.abs() - n / 2.0).max(0.0);
    (apart / scale.sqrt(), corrected * corrected * n / scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::missingness::tests::table;

    #[test]
    fn phi_is_the_correlation_of_missing_cells() {
        // 20 and 20 of 100 missing, 10 in the same rows: (10 * 100 - 400) / (20 * 80).
        let (phi, chi_squared) = correlation(100, 20, 20, 10);
        assert_eq!(phi, 0.375);
        assert!((chi_squared - 550.0 * 550.0 * 100.0 / (1600.0 * 1600.0)).abs() < 1e-9);
        assert_eq!(correlation(10, 5, 5, 0).0, -1.0);
    }

    #[test]
    fn every_row_has_its_bit() {
        let observed: Vec<bool> = (0..130).map(|i| i != 3 && i != 64 && i != 129).collect();
        assert_eq!(bits_of(&observed), [8, 1, 2]);
    }

    #[test]
    fn columns_that_are_missing_independently_are_rarely_a_pair() {
        let found = |seed| {
            let mut table = table(200, seed, |_, _, stream| stream.unit() < 0.2);
            let mut stream = crate::sampler::RandomStream::new(seed + 1000);
            (0..200).for_each(|i| {
                if stream.unit() < 0.2 {
                    table.hide(i, 0);
                }
            });
            !missing_together(&table).pairs.is_empty()
        };
        let wrong = (0..300).filter(|&seed| found(seed)).count();
        assert!(wrong <= 15, "{wrong} of 300, where 5 % are allowed");
    }
}
