//! Validation errors, by how many cells were filled with them.

use super::axis::axis_of;
use super::evenly;
use crate::facts::Accuracy;
use crate::facts::Scatter;
use crate::words::Numerals;
use m3impute_core::{ColumnScore, FilledScores, Kind, Table};

/// Filled columns whose errors are listed; columns without filled cells; columns that are named.
const KNOWN: usize = 60;
const UNFILLED: usize = 30;
const UNKNOWN: usize = 20;
/// Columns whose held-out cells are drawn, and how many cells of each.
const SCATTERS: usize = 12;
const POINTS: usize = 300;

/// `filled` has the filled rows of each column.
pub(super) fn gather(table: &Table, scores: &[ColumnScore], filled: &[Vec<usize>]) -> Accuracy {
    if scores.is_empty() {
        return Accuracy::default();
    }
    let names = table.schema().columns().iter().map(|spec| spec.name.as_str());
    let of = FilledScores::of(scores, names.zip(filled).map(|(name, rows)| (name, rows.len())));
    let poor = || of.known.iter().filter(|(score, _)| score.is_no_better_than_baseline());
    let is_number = |kind| matches!(kind, Kind::Continuous | Kind::Integer | Kind::Datetime);
    let mut scatters = of.known.clone();
    scatters.retain(|(score, _)| is_number(score.kind) && !score.validation.held_out.is_empty());
    scatters.sort_by_key(|(_, cells)| std::cmp::Reverse(*cells));
    Accuracy {
        columns: scores.len(),
        ratio: of.ratio(),
        known_columns: of.known.len(),
        known_cells: of.known_cells(),
        poor_columns: poor().count(),
        poor_cells: poor().map(|(_, cells)| cells).sum(),
        unknown_columns: of.unknown.len(),
        unknown_cells: of.unknown_cells(),
        unfilled_columns: of.unfilled.len(),
        scatters: scatters.iter().take(SCATTERS).map(|(score, _)| scatter(table, score)).collect(),
        all_scatters: scatters.len(),
        known: of.known.iter().take(KNOWN).map(|(score, cells)| ((*score).clone(), *cells)).collect(),
        unknown: of.unknown.iter().take(UNKNOWN).map(|(name, cells)| ((*name).to_owned(), *cells)).collect(),
        unfilled: of.unfilled.iter().take(UNFILLED).map(|score| (*score).clone()).collect(),
    }
}

fn scatter(table: &Table, score: &ColumnScore) -> Scatter {
    let held = &score.validation.held_out;
    let points: Vec<[f64; 2]> = evenly(held.len(), POINTS).map(|i| [held[i].truth, held[i].predicted]).collect();
    let mut values: Vec<f64> = points.iter().flatten().copied().collect();
    values.sort_unstable_by(f64::total_cmp);
    let axis = axis_of(&values, score.kind);
    let numerals =
        table.schema().position(&score.column).map_or(Numerals::of_kind(score.kind), |j| Numerals::of(table, j));
    let is_outside = |p: &&[f64; 2]| p.iter().any(|v| !(axis.low..=axis.high).contains(v));
    Scatter {
        name: score.column.clone(),
        numerals,
        cells: score.validation.cells,
        coverage: score.validation.coverage,
        outside: points.iter().filter(is_outside).count(),
        axis,
        points,
    }
}
