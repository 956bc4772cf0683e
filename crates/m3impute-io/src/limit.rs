//! How much memory reading a file may take. Lengths that a file declares are held against it before anything is
//! allocated by them.

use crate::error::{Error, Result};
use std::sync::LazyLock;

/// What a cell of a table takes beside the bytes it was read from: a number, and whether it is observed.
const CELL: u64 = 9;

/// The memory that reading one file may take.
#[derive(Clone, Debug)]
pub(crate) struct MemoryLimit {
    file: String,
    pub(crate) bytes: u64,
}

impl MemoryLimit {
    /// The limit that was asked for, or the usual one for a file of this length.
    pub(crate) fn new(file: String, asked: Option<u64>, length: u64) -> MemoryLimit {
        MemoryLimit { file, bytes: asked.unwrap_or_else(|| usual_limit(length)) }
    }

    /// Whether so many bytes may be taken.
    pub(crate) fn check(&self, needed: u64) -> Result<()> {
        if needed <= self.bytes {
            return Ok(());
        }
        Err(Error::TooLarge { file: self.file.clone(), needed, limit: self.bytes })
    }

    /// Whether a table of this size may be made beside `taken` bytes.
    pub(crate) fn check_table(&self, rows: u64, columns: usize, taken: u64) -> Result<()> {
        self.check(rows.saturating_mul(columns as u64).saturating_mul(CELL).saturating_add(taken))
    }
}

/// The memory that reading a file of this length may take where nothing else is asked for: the larger of 2 GB and 50
/// times its length, and at most four fifths of the machine's.
///
/// ```
/// assert!(m3impute_io::usual_limit(1000) <= 2_000_000_000);
/// ```
pub fn usual_limit(length: u64) -> u64 {
    length.saturating_mul(50).max(2_000_000_000).min(most_of_machine())
}

/// Four fifths of the memory of the machine, where the system says how much that is.
pub fn most_of_machine() -> u64 {
    static MOST: LazyLock<u64> = LazyLock::new(|| {
        let total = || {
            let text = std::fs::read_to_string("/proc/meminfo").ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        };
        total().map_or(u64::MAX, |kilobytes| kilobytes.saturating_mul(1024) / 5 * 4)
    });
    *MOST
}

/// A number of bytes as a person reads it.
pub(crate) fn in_units(bytes: u64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB")];
    let bytes = bytes as f64;
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_kept_and_named() {
        let limit = MemoryLimit::new("a.parquet".to_owned(), Some(1_000_000), 10);
        assert!(limit.check(1_000_000).is_ok());
        let error = limit.check_table(1 << 60, 1 << 20, u64::MAX).unwrap_err();
        assert_eq!(error.category(), m3impute_core::Category::Resource);
        assert!(error.to_string().contains("`a.parquet`") && error.to_string().contains("1.0 MB"), "{error}");
    }

    #[test]
    fn the_usual_limit_grows_with_the_file_up_to_the_machine() {
        assert_eq!(usual_limit(0), 2_000_000_000.min(most_of_machine()));
        assert_eq!(usual_limit(u64::MAX), most_of_machine());
    }
}
