//! From the rows of a comparison to facts.

use crate::advice::advice;
use crate::facts::{ColumnCompared, Compared, EvaluateFacts, Event, Repeats, Work};
use m3impute_core::Table;
use m3impute_eval::{Row, Spread, Summary, recommend};
use std::collections::HashMap;

/// Columns that are listed.
const COLUMNS: usize = 60;

/// A comparison of methods and its results.
#[derive(Debug)]
pub struct Evaluated<'a> {
    /// The complete table.
    pub truth: &'a Table,
    /// A row a method and repeat.
    pub rows: &'a [Row],
    /// Their summary, best method first.
    pub summary: &'a [Summary],
    /// The run; the notes of the methods are added to its events.
    pub work: Work,
}

impl EvaluateFacts {
    /// Counts what a report shows.
    pub fn gather(evaluated: Evaluated<'_>) -> EvaluateFacts {
        let Evaluated { truth, rows, summary, mut work } = evaluated;
        let methods: Vec<Compared> = summary.iter().map(|s| compared(s, rows)).collect();
        let (by_column, scored_columns) = columns(truth, rows, summary);
        work.events.extend(events(rows));
        let recommended = recommend(rows, summary);
        let rate = rows.iter().map(|r| r.rate).sum::<f64>() / rows.len().max(1) as f64;
        EvaluateFacts {
            work,
            rows: truth.rows(),
            columns: truth.cols(),
            cells: rows.first().map_or(0, |r| r.cells),
            rate,
            advice: advice(&recommended, summary, rows),
            recommended: recommended.method,
            mechanism: rows.first().map(|r| hidden_by(&r.mechanism)).unwrap_or_default(),
            repeats: rows.iter().map(|r| r.repeat).max().unwrap_or_default(),
            methods,
            by_column,
            scored_columns,
        }
    }
}

/// How cells were hidden, in words.
fn hidden_by(mechanism: &str) -> String {
    match mechanism {
        "own" => "in the table’s own patterns".to_owned(),
        "given" => "given cells".to_owned(),
        other => other.to_owned(),
    }
}

fn compared(summary: &Summary, rows: &[Row]) -> Compared {
    let own = || rows.iter().filter(|r| r.label == summary.label && r.error.is_none());
    let with = |spread: Option<Spread>, each: fn(&Row) -> Option<f64>| {
        spread.map(|spread| Repeats { spread, each: own().filter_map(each).collect() })
    };
    Compared {
        label: summary.label.clone(),
        preset: summary.preset.clone(),
        mae: with(summary.mae, |r| r.mae),
        accuracy: with(summary.accuracy, |r| r.accuracy),
        seconds: with(summary.seconds, |r| Some(r.seconds)),
        peak_bytes: summary.peak_bytes,
        error: summary.error.clone(),
    }
}

/// Errors by column, those with the most hidden cells, in the order of the table; and how many columns were scored.
fn columns(truth: &Table, rows: &[Row], summary: &[Summary]) -> (Vec<ColumnCompared>, usize) {
    let places: HashMap<&str, usize> = summary.iter().map(|s| s.label.as_str()).zip(0..).collect();
    let specs = truth.schema().columns();
    let at: HashMap<&str, usize> = specs.iter().map(|c| c.name.as_str()).zip(0..).collect();
    // Sum of errors and repeats for each method, and hidden cells, by column.
    let mut sums: HashMap<usize, (Vec<(f64, usize)>, usize)> = HashMap::new();
    for row in rows {
        let Some(&place) = places.get(row.label.as_str()) else { continue };
        for column in &row.columns {
            let Some(&j) = at.get(column.column.as_str()) else { continue };
            let (errors, cells) = sums.entry(j).or_insert_with(|| (vec![(0.0, 0); summary.len()], 0));
            let error = match (column.score.mae, column.score.accuracy) {
                (Some(mae), _) => mae * range(truth, j),
                (None, Some(accuracy)) => 1.0 - accuracy,
                (None, None) => continue,
            };
            errors[place].0 += error;
            errors[place].1 += 1;
            *cells += (column.score.numbers + column.score.levels) * usize::from(place == 0);
        }
    }
    let scored = sums.len();
    let mut order: Vec<usize> = sums.keys().copied().collect();
    order.sort_by_key(|j| (std::cmp::Reverse(sums[j].1), *j));
    order.truncate(COLUMNS);
    order.sort_unstable();
    let of = |j: usize| ColumnCompared {
        name: specs[j].name.clone(),
        kind: specs[j].kind,
        cells: sums[&j].1,
        errors: sums[&j].0.iter().map(|&(sum, n)| (n > 0).then(|| sum / n as f64)).collect(),
    };
    (order.into_iter().map(of).collect(), scored)
}

/// The range by which scores of a column are scaled.
fn range(truth: &Table, col: usize) -> f64 {
    let values = (0..truth.rows()).map(|i| truth.number(i, col)).filter(|v| !v.is_nan());
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if high > low { high - low } else { 0.0 }
}

/// The notes of the methods: the same note in several repeats, or of several methods, is listed once.
fn events(rows: &[Row]) -> Vec<Event> {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    let hidden = rows.iter().flat_map(|r| r.hidden_notes.iter().map(|note| ("hidden cells", note)));
    let of_methods = rows.iter().flat_map(|r| r.notes.iter().map(|note| (r.label.as_str(), note)));
    for (place, note) in hidden.chain(of_methods) {
        match notes.iter_mut().find(|(same, _)| same == note) {
            Some((_, places)) if places.contains(&place) => {}
            Some((_, places)) => places.push(place),
            None => notes.push((note, vec![place])),
        }
    }
    let mut all: Vec<Event> =
        notes.into_iter().map(|(note, places)| Event { place: places.join(", "), what: note.to_owned() }).collect();
    for row in rows {
        if let Some(error) = &row.error {
            all.push(Event { place: row.label.clone(), what: format!("failed in repeat {}: {error}", row.repeat) });
        } else if row.fallbacks > 0 {
            let what = format!("repeat {}: {} cells filled in another way than requested", row.repeat, row.fallbacks);
            all.push(Event { place: row.label.clone(), what });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::{Column, ColumnSpec, Kind, Schema, Score};
    use m3impute_eval::{EvaluatedColumn, summarise};

    fn row(label: &str, repeat: usize, mae: f64) -> Row {
        let score = Score { numbers: 5, mae: Some(mae), ..Score::default() };
        Row {
            label: label.to_owned(),
            method: label.to_owned(),
            preset: "default".to_owned(),
            repeat,
            seed: 0,
            cells: 5,
            mechanism: "mcar".to_owned(),
            rate: 0.3,
            mae: Some(mae),
            rmse: Some(mae),
            accuracy: None,
            seconds: 1.0,
            peak_bytes: None,
            fallbacks: 0,
            columns: vec![EvaluatedColumn { column: "x".to_owned(), score }],
            hidden_notes: vec!["a hidden note".to_owned()],
            notes: vec!["a note".to_owned()],
            error: None,
        }
    }

    #[test]
    fn errors_of_columns_are_in_their_own_units() {
        let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous)]).unwrap();
        let truth = Table::new(schema, vec![Column::from_numbers(vec![0.0, 50.0, 200.0])]).unwrap();
        let rows = [row("good", 1, 0.1), row("bad", 1, 0.4), row("good", 2, 0.2), row("bad", 2, 0.4)];
        let summary = summarise(&rows);
        let facts =
            EvaluateFacts::gather(Evaluated { truth: &truth, rows: &rows, summary: &summary, work: Work::default() });
        let column = &facts.by_column[0];
        assert_eq!((column.cells, column.errors[1]), (10, Some(80.0)));
        assert!((column.errors[0].unwrap() - 30.0).abs() < 1e-9);
        assert_eq!(facts.methods[0].mae.as_ref().unwrap().each, [0.1, 0.2]);
        let event = &facts.work.events[..];
        let noted = |place: &str, what: &str| Event { place: place.to_owned(), what: what.to_owned() };
        assert_eq!(event, [noted("hidden cells", "a hidden note"), noted("good, bad", "a note")]);
    }
}
