//! Validation errors, by how many cells were filled with them.

use crate::facts::Accuracy;
use m3impute_core::{ColumnScore, FilledScores, Table};

/// Filled columns whose errors are listed; columns without filled cells; columns that are named.
const KNOWN: usize = 120;
const UNFILLED: usize = 40;
const UNKNOWN: usize = 20;

/// `filled` has the filled rows of each column.
pub(super) fn gather(table: &Table, scores: &[ColumnScore], filled: &[Vec<usize>]) -> Accuracy {
    if scores.is_empty() {
        return Accuracy::default();
    }
    let names = table.schema().columns().iter().map(|spec| spec.name.as_str());
    let of = FilledScores::of(scores, names.zip(filled).map(|(name, rows)| (name, rows.len())));
    let poor = || of.known.iter().filter(|(score, _)| score.is_no_better_than_baseline());
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
        known: of.known.iter().take(KNOWN).map(|(score, cells)| ((*score).clone(), *cells)).collect(),
        unknown: of.unknown.iter().take(UNKNOWN).map(|(name, cells)| ((*name).to_owned(), *cells)).collect(),
        unfilled: of.unfilled.iter().take(UNFILLED).map(|score| (*score).clone()).collect(),
    }
}
