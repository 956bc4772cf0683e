//! A page stays under a megabyte, whatever the table: here everything is as long as it can be and must be escaped.

use m3impute_core::distributions::{ColumnDistributions, Distributions, QUANTILE_LEVELS};
use m3impute_core::explain::{Influence, MemberPrediction};
use m3impute_core::{
    CellValue, Column, ColumnScore, ColumnSpec, Explanation, Fallback, HeldOutCell, Imputation, Kind, Measure,
    PredictiveDistributions, Schema, SingleModel, Table, ValidationScore,
};
use m3impute_report::{Event, ImputeFacts, Imputed, Suspect, Work};

const ROWS: usize = 300;
const COLUMNS: usize = 400;

/// A text of which every letter becomes six.
fn long(number: usize) -> String {
    format!("{number}{}", "\"".repeat(2000))
}

/// Levels in every other column; every third cell is missing, in a pattern of its own for each row.
fn tables() -> (Table, Table) {
    let levels: Vec<String> = (0..20).map(long).collect();
    let spec = |j: usize| match j % 2 {
        0 => ColumnSpec::new(long(j), Kind::Continuous),
        _ => ColumnSpec::with_levels(long(j), Kind::Categorical, levels.clone()),
    };
    let is_hole = |i: usize, j: usize| (i * 7 + j * 13 + i * j).is_multiple_of(3);
    let column = |j: usize| match j % 2 {
        0 => Column::numbers((0..ROWS).map(|i| (!is_hole(i, j)).then_some((i * 37 % 101) as f64))),
        _ => Column::codes((0..ROWS).map(|i| (!is_hole(i, j)).then_some((i % 20) as u32))),
    };
    let schema = Schema::new((0..COLUMNS).map(spec).collect()).unwrap();
    let table = Table::new(schema, (0..COLUMNS).map(column).collect()).unwrap();
    let mut filled = table.clone();
    for j in 0..COLUMNS {
        (0..ROWS).filter(|&i| is_hole(i, j)).for_each(|i| filled.fill(i, j, (i % 20) as f64));
    }
    (table, filled)
}

fn distributions(table: &Table) -> PredictiveDistributions {
    let of = |j: usize| {
        let rows: Vec<usize> = (0..ROWS).filter(|&i| !table.observed().get(i, j)).collect();
        let levels = table.schema().columns()[j].levels.clone();
        let of = if levels.is_empty() {
            Distributions::Quantiles(rows.iter().map(|&i| QUANTILE_LEVELS.map(|l| i as f64 * l)).collect())
        } else {
            let values = (0..20).map(f64::from).collect();
            Distributions::Shares { values, shares: vec![0.05; 20 * rows.len()] }
        };
        ColumnDistributions { column: j, unordered: !levels.is_empty(), levels, step: 0.0, rows, of }
    };
    PredictiveDistributions { columns: (0..COLUMNS).map(of).collect() }
}

#[test]
fn a_page_is_under_a_megabyte_even_where_everything_is_long() {
    let (table, filled) = tables();
    let distributions = distributions(&table);
    let best = Some(SingleModel { name: "network".to_owned(), error: 0.123 });
    // Some scores are of columns without filled cells.
    let scores = (0..COLUMNS + 100).map(|j| ColumnScore {
        column: long(j),
        kind: Kind::Continuous,
        measure: Measure::AbsoluteError,
        validation: ValidationScore {
            cells: 9,
            error: Some(0.1),
            baseline: Some(0.2),
            accuracy: Some(0.5),
            baseline_accuracy: Some(0.4),
            coverage: Some(0.9),
            best: best.clone(),
            held_out: (0..500)
                .map(|i| HeldOutCell { truth: f64::from(i), predicted: f64::from(i * 7 % 500) })
                .collect(),
            ensemble: long(0),
            ..ValidationScore::default()
        },
    });
    let fallback = |j| Fallback { column: long(j), cells: 1, reason: long(j), done: long(j) };
    let imputation = Imputation {
        table: filled,
        fallbacks: (0..COLUMNS).map(fallback).collect(),
        notes: (0..COLUMNS).map(long).collect(),
        scores: scores.collect(),
    };
    let work = Work {
        source: long(0),
        how: "filled".to_owned(),
        settings: vec![(long(1), long(2)); 5],
        command: long(3),
        events: vec![Event { place: long(4), what: long(5) }; 400],
        suspects: vec![Suspect { column: long(1), values: vec![(long(2), 9, long(3)); 2], setting: long(4) }; 400],
        ..Work::default()
    };
    let level = || CellValue::Level(long(7));
    let influence = Influence {
        column: 0,
        name: long(8),
        kind: Kind::Categorical,
        value: level(),
        without: level(),
        change: None,
        probability_change: Some(0.5),
        is_other: true,
    };
    let member = MemberPrediction { name: long(9), weight: 0.1, predicted: level(), probability: Some(0.5) };
    let explanation = Explanation {
        row: 0,
        column: 0,
        name: long(8),
        kind: Kind::Categorical,
        filled: level(),
        fallback: None,
        interval: None,
        probabilities: vec![(long(7), 0.1); 9],
        members: vec![member; 9],
        influences: vec![influence; 99],
        donors: None,
    };
    let facts = ImputeFacts::gather(Imputed {
        table: &table,
        imputation: &imputation,
        distributions: Some(&distributions),
        explanations: &vec![explanation; 100],
        work,
    });
    let page = facts.page();
    assert!(page.len() < 1_000_000, "{}", page.len());
    assert!(page.len() > 200_000, "{}: is it as long as it can be?", page.len());
    assert!(page.contains("1,140 more are not shown here"), "the number of rows that are cut is shown");
    assert!(!page.contains("\"\"\"\"\""), "every one is escaped");
}
