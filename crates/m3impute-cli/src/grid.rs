//! Tables on a terminal: aligned columns, coloured cells.

use crate::terminal::{Verbosity, plain};
use unicode_width::UnicodeWidthStr;

/// How a cell looks, where colour is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    #[default]
    Plain,
    Dim,
    Good,
    Warn,
    Bad,
}

impl Look {
    /// The style of the terminal.
    fn code(self) -> Option<u8> {
        match self {
            Look::Plain => None,
            Look::Dim => Some(2),
            Look::Good => Some(32),
            Look::Warn => Some(33),
            Look::Bad => Some(31),
        }
    }
}

/// A cell: its text and its look.
#[derive(Clone, Debug, Default)]
pub struct Cell(String, Look);

impl Cell {
    pub fn new(text: impl Into<String>, look: Look) -> Cell {
        Cell(plain(&text.into()), look)
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::new(text, Look::Plain)
    }
}

/// Rows of cells under a heading.
pub struct Grid {
    rows: Vec<Vec<Cell>>,
    right: Vec<usize>,
}

impl Grid {
    /// A table with this heading.
    pub fn new<'a>(heading: impl IntoIterator<Item = &'a str>) -> Grid {
        let heading = heading.into_iter().map(|text| Cell::new(text, Look::Dim)).collect();
        Grid { rows: vec![heading], right: Vec::new() }
    }

    /// The same with the numbers of these columns under each other.
    pub fn right(mut self, columns: impl IntoIterator<Item = usize>) -> Grid {
        self.right.extend(columns);
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        self.rows.push(cells.into());
    }

    /// The table, a line a row. Colour changes nothing but colour.
    pub fn text(&self, verbosity: &Verbosity) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |j: usize| self.rows.iter().filter_map(|row| row.get(j)).map(|c| c.0.width()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let last = row.iter().rposition(|cell| !cell.0.trim_end().is_empty());
            for (j, Cell(text, look)) in row.iter().enumerate().take(last.map_or(0, |l| l + 1)) {
                let gap = " ".repeat(widths[j] - text.width());
                let shown = look.code().filter(|_| !text.is_empty());
                let shown = shown.map_or_else(|| text.clone(), |code| verbosity.style(code, text));
                let (before, after) = if self.right.contains(&j) { (gap, String::new()) } else { (String::new(), gap) };
                out.push(' ');
                out += &before;
                out += &shown;
                if Some(j) != last {
                    out += &after;
                    out.push(' ');
                }
            }
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(verbosity: &Verbosity) -> String {
        let mut grid = Grid::new(["name", "n", ""]).right([1]);
        grid.row(["ä".into(), Cell::new("12", Look::Warn), "▍".into()]);
        grid.row(["long\x1b[31m".into(), "3".into(), "".into()]);
        grid.text(verbosity)
    }

    #[test]
    fn columns_are_aligned_and_control_characters_stay_out() {
        assert_eq!(table(&Verbosity::quiet()), " name             n\n ä               12  ▍\n long\\u{1b}[31m   3\n");
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let plain = table(&Verbosity::quiet());
        let mut verbosity = Verbosity::quiet();
        verbosity.color = true;
        let coloured = table(&verbosity);
        assert!(coloured.contains("\x1b[33m12\x1b[0m"), "{coloured:?}");
        let mut stripped = coloured;
        for code in ["\x1b[2m", "\x1b[33m", "\x1b[0m"] {
            stripped = stripped.replace(code, "");
        }
        assert_eq!(stripped, plain);
    }
}
