//! A table with holes: typed columns, and which cells are observed.

use crate::error::{Error, Result};
use crate::schema::{ColumnSpec, Schema};
use std::collections::BTreeMap;

/// The code that stands where a cell with levels is missing.
pub const MISSING_CODE: u32 = u32::MAX;

/// Which cells of an `n x m` table are observed (`true`) and which are missing (`false`); a column is contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    rows: usize,
    cols: usize,
    cells: Vec<bool>, // [m, n]
}

impl Observed {
    /// Every cell observed.
    ///
    /// ```
    /// let mut observed = m3impute_core::Observed::all(3, 2);
    /// observed.set(0, 1, false);
    /// assert_eq!(observed.count(), 5);
    /// assert_eq!(observed.column(1), [false, true, true]);
    /// ```
    pub fn all(rows: usize, cols: usize) -> Observed {
        Observed { rows, cols, cells: vec![true; rows * cols] }
    }

    /// From one vector a column, all of the same length.
    pub(crate) fn from_columns(rows: usize, columns: impl Iterator<Item = Vec<bool>>) -> Observed {
        let mut cells = Vec::new();
        let mut cols = 0;
        for column in columns {
            cells.extend_from_slice(&column);
            cols += 1;
        }
        Observed { rows, cols, cells }
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Whether the cell is observed.
    pub fn get(&self, row: usize, col: usize) -> bool {
        self.cells[col * self.rows + row]
    }

    /// Says whether the cell is observed.
    pub fn set(&mut self, row: usize, col: usize, observed: bool) {
        self.cells[col * self.rows + row] = observed;
    }

    /// A whole column.
    pub fn column(&self, col: usize) -> &[bool] {
        &self.cells[col * self.rows..(col + 1) * self.rows]
    }

    /// How many cells are observed.
    pub fn count(&self) -> usize {
        self.cells.iter().filter(|&&o| o).count()
    }
}

/// The values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers and moments; `NaN` where missing.
    Numbers(Vec<f64>),
    /// Indices into the column's levels; [`MISSING_CODE`] where missing.
    Codes(Vec<u32>),
    /// Values that no method reads: they stay where they came from.
    Opaque,
}

/// A column on its way into a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The values.
    pub values: Values,
    /// Which of them are observed.
    pub observed: Vec<bool>,
}

impl Column {
    /// Numbers, `None` where missing.
    pub fn numbers(cells: impl IntoIterator<Item = Option<f64>>) -> Column {
        let values: Vec<f64> = cells.into_iter().map(|c| c.unwrap_or(f64::NAN)).collect();
        Column::from_numbers(values)
    }

    /// Numbers, `NaN` where missing.
    pub fn from_numbers(values: Vec<f64>) -> Column {
        let observed = values.iter().map(|v| !v.is_nan()).collect();
        Column { values: Values::Numbers(values), observed }
    }

    /// Indices into the levels, [`MISSING_CODE`] where missing.
    pub fn from_codes(codes: Vec<u32>) -> Column {
        let observed = codes.iter().map(|&c| c != MISSING_CODE).collect();
        Column { values: Values::Codes(codes), observed }
    }

    /// Indices into the levels, `None` where missing.
    pub fn codes(cells: impl IntoIterator<Item = Option<u32>>) -> Column {
        Column::from_codes(cells.into_iter().map(|c| c.unwrap_or(MISSING_CODE)).collect())
    }

    /// Values that no method reads.
    pub fn opaque(observed: Vec<bool>) -> Column {
        Column { values: Values::Opaque, observed }
    }
}

/// A table with holes. Its columns agree with its schema; a missing number is `NaN`, a missing level [`MISSING_CODE`].
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    schema: Schema,
    values: Vec<Values>,
    observed: Observed,
}

impl Table {
    /// A table of these columns.
    ///
    /// ```
    /// use m3impute_core::{Column, ColumnSpec, Kind, Schema, Table};
    /// let schema = Schema::new(vec![ColumnSpec::new("age", Kind::Integer)])?;
    /// let table = Table::new(schema, vec![Column::numbers([Some(31.0), None])])?;
    /// assert_eq!((table.rows(), table.observed().count()), (2, 1));
    /// # Ok::<(), m3impute_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When columns differ in length or from the schema, a number is infinite, or a code is no level.
    pub fn new(schema: Schema, columns: Vec<Column>) -> Result<Table> {
        if columns.len() != schema.len() {
            return Err(Error::Bug(format!("{} columns for a schema of {}", columns.len(), schema.len())));
        }
        let rows = columns.first().map_or(0, |c| c.observed.len());
        for (spec, column) in schema.columns().iter().zip(&columns) {
            check_column(spec, column, rows)?;
        }
        let (values, observed): (Vec<_>, Vec<_>) = columns.into_iter().map(|c| (c.values, c.observed)).unzip();
        Ok(Table { schema, values, observed: Observed::from_columns(rows, observed.into_iter()) })
    }

    /// The columns' names, kinds and levels.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.observed.rows
    }

    /// How many columns.
    pub fn cols(&self) -> usize {
        self.observed.cols
    }

    /// Which cells are observed.
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// The values of a column.
    pub fn values(&self, col: usize) -> &Values {
        &self.values[col]
    }

    /// How many cells of a column are missing.
    pub fn missing_in(&self, col: usize) -> usize {
        self.observed.column(col).iter().filter(|&&o| !o).count()
    }

    /// A cell as a number: the value, the code of the level, or `NaN` where missing or opaque.
    pub fn number(&self, row: usize, col: usize) -> f64 {
        match &self.values[col] {
            Values::Numbers(v) => v[row],
            Values::Codes(c) if c[row] != MISSING_CODE => f64::from(c[row]),
            Values::Codes(_) | Values::Opaque => f64::NAN,
        }
    }

    /// Fills a hole with a number or, in a column with levels, the code of one.
    ///
    /// # Panics
    /// When the cell is opaque: no method fills those.
    pub fn fill(&mut self, row: usize, col: usize, value: f64) {
        match &mut self.values[col] {
            Values::Numbers(v) => v[row] = value,
            Values::Codes(c) => c[row] = value as u32,
            Values::Opaque => panic!("an opaque column is never filled"),
        }
        self.observed.set(row, col, true);
    }

    /// Fills a hole with a level, which the column learns where it does not have it yet.
    ///
    /// # Panics
    /// When the column has no levels.
    pub fn fill_with_level(&mut self, row: usize, col: usize, level: &str) {
        let levels = &mut self.schema.column_mut(col).levels;
        let code = levels.iter().position(|l| l == level).unwrap_or_else(|| {
            levels.push(level.to_owned());
            levels.len() - 1
        });
        assert!(matches!(self.values[col], Values::Codes(_)), "a column without levels");
        self.fill(row, col, code as f64);
    }

    /// Takes a cell away.
    pub fn hide(&mut self, row: usize, col: usize) {
        match &mut self.values[col] {
            Values::Numbers(v) => v[row] = f64::NAN,
            Values::Codes(c) => c[row] = MISSING_CODE,
            Values::Opaque => {}
        }
        self.observed.set(row, col, false);
    }

    /// The same cells under another schema, whose columns have the same names and kinds: other roles, bounds or ranges.
    ///
    /// # Errors
    /// When a kind with values of another type is asked for.
    pub fn with_schema(mut self, schema: Schema) -> Result<Table> {
        if schema.len() != self.schema.len() {
            return Err(Error::Bug("a schema of another width".to_owned()));
        }
        for (spec, values) in schema.columns().iter().zip(&self.values) {
            check_type(spec, values)?;
        }
        self.schema = schema;
        Ok(self)
    }

    /// These rows, in this order.
    pub fn select_rows(&self, rows: &[usize]) -> Table {
        let values = self
            .values
            .iter()
            .map(|v| match v {
                Values::Numbers(v) => Values::Numbers(rows.iter().map(|&i| v[i]).collect()),
                Values::Codes(c) => Values::Codes(rows.iter().map(|&i| c[i]).collect()),
                Values::Opaque => Values::Opaque,
            })
            .collect();
        let columns = (0..self.cols()).map(|j| rows.iter().map(|&i| self.observed.get(i, j)).collect());
        let observed = Observed::from_columns(rows.len(), columns);
        Table { schema: self.schema.clone(), values, observed }
    }

    /// The columns that are missing together, by their places, and in how many rows; most frequent first.
    pub fn patterns(&self) -> Vec<(Vec<usize>, usize)> {
        let mut counts: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        for i in 0..self.rows() {
            *counts.entry((0..self.cols()).filter(|&j| !self.observed.get(i, j)).collect()).or_default() += 1;
        }
        let mut patterns: Vec<(Vec<usize>, usize)> = counts.into_iter().collect();
        patterns.sort_by_key(|&(_, rows)| std::cmp::Reverse(rows));
        patterns
    }

    /// A number that tells this table from others: of its names, its holes and its values.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = crate::hash::Fnv::default();
        for (j, spec) in self.schema.columns().iter().enumerate() {
            hash.bytes(spec.name.as_bytes());
            for i in 0..self.rows() {
                hash.bytes(&self.number(i, j).to_bits().to_le_bytes());
            }
        }
        hash.0
    }
}

fn check_column(spec: &ColumnSpec, column: &Column, rows: usize) -> Result<()> {
    let length = |got| Err(Error::Length { column: spec.name.clone(), expected: rows, got });
    if column.observed.len() != rows {
        return length(column.observed.len());
    }
    check_type(spec, &column.values)?;
    match &column.values {
        Values::Numbers(v) => {
            if v.len() != rows {
                return length(v.len());
            }
            if let Some(row) = v.iter().position(|v| v.is_infinite()) {
                return Err(Error::Infinite { column: spec.name.clone(), row: row + 1, value: v[row] });
            }
            if let Some(row) = (0..rows).find(|&i| column.observed[i] == v[i].is_nan()) {
                return Err(Error::Bug(format!(
                    "column `{}`, row {}: observed and value disagree",
                    spec.name,
                    row + 1
                )));
            }
        }
        Values::Codes(c) => {
            if c.len() != rows {
                return length(c.len());
            }
            let levels = spec.levels.len();
            if let Some(row) = (0..rows).find(|&i| column.observed[i] && c[i] as usize >= levels) {
                return Err(Error::Level { column: spec.name.clone(), row: row + 1, code: c[row], levels });
            }
        }
        Values::Opaque => {}
    }
    Ok(())
}

fn check_type(spec: &ColumnSpec, values: &Values) -> Result<()> {
    let fits = match values {
        Values::Numbers(_) => spec.kind.is_number(),
        Values::Codes(_) => spec.kind.has_levels(),
        Values::Opaque => spec.kind.is_opaque(),
    };
    if fits {
        return Ok(());
    }
    let got = match values {
        Values::Numbers(_) => "numbers",
        Values::Codes(_) => "codes of levels",
        Values::Opaque => "opaque values",
    };
    Err(Error::Kind {
        column: spec.name.clone(),
        expected: format!("values of kind {}", spec.kind),
        got: got.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Kind;

    fn sample() -> Table {
        let schema = Schema::new(vec![
            ColumnSpec::new("x", Kind::Continuous),
            ColumnSpec::with_levels("c", Kind::Categorical, ["u", "v"]),
        ])
        .unwrap();
        Table::new(schema, vec![Column::numbers([Some(1.5), None]), Column::codes([None, Some(1)])]).unwrap()
    }

    #[test]
    fn rows_that_miss_the_same_columns_are_counted() {
        let mut table = sample().select_rows(&[0, 0, 1]);
        assert_eq!(table.patterns(), [(vec![1], 2), (vec![0], 1)]);
        table.fill(0, 1, 0.0);
        table.fill(1, 1, 0.0);
        assert_eq!(table.patterns()[0], (vec![], 2));
    }

    #[test]
    fn a_cell_is_hidden_and_filled() {
        let mut table = sample();
        table.hide(0, 0);
        assert!(table.number(0, 0).is_nan() && !table.observed().get(0, 0));
        table.fill(0, 1, 0.0);
        assert_eq!(table.values(1), &Values::Codes(vec![0, 1]));
    }

    #[test]
    fn an_infinity_is_refused_with_its_place() {
        let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous)]).unwrap();
        let error = Table::new(schema, vec![Column::from_numbers(vec![0.0, f64::INFINITY])]).unwrap_err();
        assert_eq!(error.to_string(), "column `x`, row 2: expected a finite number, got `inf`");
    }

    #[test]
    fn a_code_without_a_level_is_refused() {
        let schema = Schema::new(vec![ColumnSpec::with_levels("c", Kind::Categorical, ["u"])]).unwrap();
        assert!(matches!(Table::new(schema, vec![Column::codes([Some(1)])]), Err(Error::Level { code: 1, .. })));
    }

    #[test]
    fn the_fingerprint_sees_values_and_holes() {
        let (one, mut two) = (sample(), sample());
        assert_eq!(one.fingerprint(), two.fingerprint());
        two.hide(0, 0);
        assert_ne!(one.fingerprint(), two.fingerprint());
    }
}
