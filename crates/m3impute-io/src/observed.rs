//! Files that say which cells are observed: a line a row, a character a cell, `1` observed and `0` hidden.

use crate::error::{Error, Result};
use m3impute_core::Observed;
use std::path::Path;

/// Reads which cells are observed from a file of 0 and 1.
///
/// # Errors
/// When the file cannot be read, is empty, has lines of different widths, or holds another character.
pub fn read_observed(path: &Path) -> Result<Observed> {
    let file = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|source| Error::Read { file: file.clone(), source })?;
    parse(&file, &bytes)
}

fn parse(file: &str, bytes: &[u8]) -> Result<Observed> {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let rows = lines.iter().rposition(|l| !l.is_empty()).map_or(0, |last| last + 1);
    if rows == 0 {
        return Err(Error::Empty { file: file.to_owned() });
    }
    let cols = lines[0].chars().count();
    let mut observed = Observed::all(rows, cols);
    for (i, line) in lines[..rows].iter().enumerate() {
        let got = line.chars().count();
        if got != cols {
            return Err(Error::ObservedWidth { file: file.to_owned(), line: i + 1, expected: cols, got });
        }
        for (j, c) in line.chars().enumerate() {
            match c {
                '1' => {}
                '0' => observed.set(i, j, false),
                got => return Err(Error::ObservedCell { file: file.to_owned(), line: i + 1, column: j + 1, got }),
            }
        }
    }
    Ok(observed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_row() {
        let observed = parse("m", b"10\r\n01\n11\n\n").unwrap();
        assert_eq!((observed.rows(), observed.cols(), observed.count()), (3, 2, 4));
        assert_eq!(observed.column(0), [true, false, true]);
    }

    #[test]
    fn errors_name_line_and_column() {
        let text = |bytes: &[u8]| parse("m", bytes).unwrap_err().to_string();
        assert_eq!(text(b"10\n1\n"), "`m`, line 2: expected 2 characters, got 1");
        assert_eq!(text(b"10\n1x\n"), "`m`, line 2, column 2: expected `0` or `1`, got `x`");
        assert_eq!(text(b"\n"), "`m` is empty");
    }
}
