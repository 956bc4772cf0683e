//! Cells become the values of a column whose kind is known.

use crate::cells::{Cell, Cells, Trouble};
use crate::datetime::{DateOrder, TimeFormat, TimestampFormat, Zone};
use crate::findings::Finding;
use crate::na::{Missing, shown};
use crate::number::{self, Number};
use crate::options::{ColumnReading, Infinities};
use m3impute_core::{Column, ColumnSpec, Kind, MISSING_CODE, Table};
use std::collections::HashMap;

/// A column that was read.
#[derive(Debug)]
pub(crate) struct ReadColumn {
    pub(crate) column: Column,
    /// The rows where the file has no value: these may be filled.
    pub(crate) holes: Vec<u32>,
    pub(crate) finding: Finding,
}

impl ReadColumn {
    /// A column that the file does not have.
    pub(crate) fn absent(spec: &ColumnSpec, rows: usize) -> ReadColumn {
        let column = match spec.kind {
            k if k.is_number() => Column::from_numbers(vec![f64::NAN; rows]),
            k if k.has_levels() => Column::from_codes(vec![MISSING_CODE; rows]),
            _ => Column::opaque(vec![false; rows]),
        };
        let mut finding = Finding::new(&spec.name, spec.kind, "not in these rows, and not needed");
        (finding.rows, finding.missing) = (rows, rows);
        ReadColumn { column, holes: Vec::new(), finding }
    }
}

/// Reads the cells of a column as its spec and its reading say.
pub(crate) fn read_column(
    cells: &impl Cells,
    rows: usize,
    spec: &ColumnSpec,
    reading: &ColumnReading,
    general_na: Option<&[String]>,
    infinities: Infinities,
) -> Result<ReadColumn, Trouble> {
    let missing = Missing::new(general_na, &reading.na, spec.kind.is_number());
    let mut holes = Holes { rows: Vec::new(), finding: Finding::new(&spec.name, spec.kind, "as in training") };
    let column = match spec.kind {
        Kind::Continuous | Kind::Integer => {
            let point = if reading.decimal_comma { b',' } else { b'.' };
            Column::from_numbers(read_numbers(cells, rows, &missing, point, infinities, &mut holes)?)
        }
        Kind::Datetime => Column::from_numbers(read_timestamps(cells, rows, &missing, reading.timestamp, &mut holes)?),
        Kind::Boolean | Kind::Categorical | Kind::Ordered => {
            Column::from_codes(read_codes(cells, rows, &missing, &spec.levels, &mut holes)?)
        }
        Kind::Identifier | Kind::Text => {
            let mut observed = vec![true; rows];
            cells.each(|row, cell| {
                if holes.is_hole(row, cell.as_ref(), &missing) {
                    observed[row] = false;
                }
                Ok(())
            })?;
            Column::opaque(observed)
        }
    };
    let Holes { rows: holes, mut finding } = holes;
    finding.rows = rows;
    finding.missing = holes.len();
    Ok(ReadColumn { column, holes, finding })
}

struct Holes {
    rows: Vec<u32>,
    finding: Finding,
}

impl Holes {
    fn add(&mut self, row: usize, token: &str) {
        self.rows.push(row as u32);
        self.finding.count_token(token, row, false);
    }

    /// Whether the cell is missing; if so it is counted.
    fn is_hole(&mut self, row: usize, cell: Option<&Cell<'_>>, missing: &Missing<'_>) -> bool {
        match cell {
            None => self.add(row, "(null)"),
            Some(cell) if missing.is_word(cell) => {
                // Most missing cells are empty: these need no text of their own.
                if cell.text.is_empty() { self.add(row, "(empty)") } else { self.add(row, &shown(cell.text)) }
            }
            Some(_) => return false,
        }
        true
    }
}

fn read_numbers(
    cells: &impl Cells,
    rows: usize,
    missing: &Missing<'_>,
    point: u8,
    infinities: Infinities,
    holes: &mut Holes,
) -> Result<Vec<f64>, Trouble> {
    let mut values = vec![f64::NAN; rows];
    cells.each(|row, cell| {
        let parsed = cell.as_ref().map_or(Number::No, |c| number::parse(c.text, point));
        match parsed {
            Number::Finite(value) if !missing.is_number(value) => values[row] = value,
            Number::Finite(_) => holes.add(row, &cell.map_or_else(String::new, |c| c.string())),
            _ if holes.is_hole(row, cell.as_ref(), missing) => {}
            Number::Infinite if infinities == Infinities::Missing => {
                holes.add(row, &cell.map_or_else(String::new, |c| c.string()));
            }
            Number::Infinite => {
                return Err(Trouble::Infinite { row, got: cell.map_or_else(String::new, |c| c.string()) });
            }
            Number::No => {
                let got = cell.map_or_else(String::new, |c| c.string());
                return Err(Trouble::Cell { row, expected: "a number".to_owned(), got });
            }
        }
        Ok(())
    })?;
    Ok(values)
}

fn read_timestamps(
    cells: &impl Cells,
    rows: usize,
    missing: &Missing<'_>,
    format: Option<TimestampFormat>,
    holes: &mut Holes,
) -> Result<Vec<f64>, Trouble> {
    let mut values = vec![f64::NAN; rows];
    cells.each(|row, cell| {
        if holes.is_hole(row, cell.as_ref(), missing) {
            return Ok(());
        }
        let text = cell.map_or_else(String::new, |c| c.string());
        let seconds = match format {
            Some(format) => format.parse(&text),
            None => crate::datetime::parse_iso(&text),
        };
        match seconds {
            Some(seconds) if missing.is_number(seconds) => holes.add(row, &text),
            Some(seconds) => values[row] = seconds,
            None => {
                let example = format.and_then(|f| f.write(1_706_659_200.0)).unwrap_or_else(|| "2024-01-31".to_owned());
                let expected = format!("a timestamp like `{example}`");
                return Err(Trouble::Cell { row, expected, got: text });
            }
        }
        Ok(())
    })?;
    Ok(values)
}

fn read_codes(
    cells: &impl Cells,
    rows: usize,
    missing: &Missing<'_>,
    levels: &[String],
    holes: &mut Holes,
) -> Result<Vec<u32>, Trouble> {
    let codes: HashMap<&[u8], u32> = levels.iter().zip(0..).map(|(level, code)| (level.as_bytes(), code)).collect();
    let mut values = vec![MISSING_CODE; rows];
    cells.each(|row, cell| {
        if holes.is_hole(row, cell.as_ref(), missing) {
            return Ok(());
        }
        match cell.and_then(|c| codes.get(c.text).copied()) {
            Some(code) => values[row] = code,
            None => {
                holes.finding.unseen += 1;
                if holes.finding.unseen_level.is_none() {
                    holes.finding.unseen_level = cell.map(|c| shown(c.text));
                }
            }
        }
        Ok(())
    })?;
    Ok(values)
}

/// The text of a filled cell, where the table has one.
pub(crate) fn filled_text(filled: &Table, row: usize, col: usize, reading: &ColumnReading) -> Option<String> {
    if !filled.observed().get(row, col) {
        return None;
    }
    value_text(&filled.schema().columns()[col], filled.number(row, col), reading)
}

/// The text of a value of a column: a number, a timestamp, or the code of a level.
pub(crate) fn value_text(spec: &ColumnSpec, value: f64, reading: &ColumnReading) -> Option<String> {
    match spec.kind {
        Kind::Identifier | Kind::Text => None,
        kind if kind.has_levels() => spec.levels.get(value as usize).cloned(),
        Kind::Datetime => reading.timestamp.unwrap_or_else(|| iso(spec.step)).write(value),
        kind => {
            let point = if reading.decimal_comma { b',' } else { b'.' };
            Some(number::write(value, kind == Kind::Integer, reading.decimals, point))
        }
    }
}

/// How timestamps are written that have had no text: with as much of the time as their step needs.
pub(crate) fn iso(step: f64) -> TimestampFormat {
    let digits = if step >= 1.0 || step <= 0.0 { 0 } else { (-step.log10()).ceil().clamp(1.0, 9.0) as u32 };
    let time = TimeFormat { before: 'T', seconds: true, digits, zone: Zone::None };
    let time = (step < 86_400.0).then_some(time);
    TimestampFormat { order: DateOrder::Ymd, separator: '-', padded: true, time }
}
