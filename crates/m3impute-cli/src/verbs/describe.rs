//! `describe`: what is missing, and what the columns are.

use crate::args::DescribeArgs;
use crate::failure::Outcome;
use crate::grid::{Cell, Grid, Look};
use crate::table_io;
use crate::terminal::{Verbosity, count, percent, plain, print, thousands};
use m3impute::{Cancel, Kind, Table};
use m3impute_io::Finding;
use serde_json::json;
use std::fmt::Write;

/// Patterns of missing columns that are listed; tables have thousands.
const PATTERNS: usize = 10;

/// Rows that miss the same columns.
struct Pattern {
    columns: Vec<String>,
    rows: usize,
}

pub fn describe(args: &DescribeArgs, verbosity: &Verbosity, cancel: &Cancel) -> Outcome {
    let input = table_io::input(args.input.as_ref())?;
    let document = table_io::read(&input, &args.read, None)?;
    let (table, findings) = (document.table(), document.findings());
    cancel.check()?;
    let patterns = patterns(table);
    cancel.check()?;
    let cells = table.rows() * table.cols();
    let missing = cells - table.observed().count();
    if args.json {
        let columns: Vec<_> = findings
            .iter()
            .enumerate()
            .map(|(j, finding)| {
                let missing = table.missing_in(j);
                json!({
                    "name": table.schema().columns()[j].name, "kind": table.schema().columns()[j].kind,
                    "role": table.schema().columns()[j].role, "missing": missing,
                    "missing_share": missing as f64 / table.rows().max(1) as f64, "finding": finding,
                })
            })
            .collect();
        let patterns: Vec<_> = patterns.iter().map(|p| json!({"missing": p.columns, "rows": p.rows})).collect();
        let all = json!({
            "input": input.name(), "rows": table.rows(), "columns": columns, "cells": cells, "missing": missing,
            "patterns": patterns,
        });
        return print(format!("{all:#}\n"));
    }
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}: {}, {}, {} missing ({})\n",
        verbosity.style(1, &plain(&input.name())),
        count(table.rows(), "row"),
        count(table.cols(), "column"),
        count(missing, "cell"),
        percent(missing, cells)
    );
    out.push_str(&columns_table(table, findings, verbosity));
    let incomplete: usize = patterns.iter().filter(|p| !p.columns.is_empty()).map(|p| p.rows).sum();
    if incomplete > 0 {
        let _ = writeln!(
            out,
            "\n{} of {} incomplete. Missing together:",
            thousands(incomplete),
            count(table.rows(), "row")
        );
        for pattern in patterns.iter().filter(|p| !p.columns.is_empty()).take(PATTERNS) {
            let _ = writeln!(out, "  {:>9}  {}", thousands(pattern.rows), shortened(&pattern.columns));
        }
        let more = patterns.iter().filter(|p| !p.columns.is_empty()).count().saturating_sub(PATTERNS);
        if more > 0 {
            let _ = writeln!(out, "  and {}", count(more, "other pattern"));
        }
    }
    let notes = table_io::notes(findings);
    if !notes.is_empty() {
        out.push('\n');
        notes.iter().for_each(|note| {
            let _ = writeln!(out, "{}: {note}", verbosity.style(33, "note"));
        });
    }
    print(out)
}

fn columns_table(table: &Table, findings: &[Finding], verbosity: &Verbosity) -> String {
    let mut grid = Grid::new(["column", "kind", "missing", "", "", "values"]).right([2, 3]);
    for (j, finding) in findings.iter().enumerate() {
        let spec = &table.schema().columns()[j];
        let missing = table.missing_in(j);
        let look = look(missing, table.rows());
        grid.row([
            spec.name.clone().into(),
            Cell::new(spec.kind.to_string(), Look::Dim),
            Cell::new(thousands(missing), look),
            Cell::new(if missing == 0 { String::new() } else { percent(missing, table.rows()) }, look),
            Cell::new(bar(missing, table.rows()), look),
            values(finding).into(),
        ]);
    }
    grid.text(verbosity)
}

/// A complete column fades; one that is missing for the most part stands out.
fn look(missing: usize, rows: usize) -> Look {
    match missing {
        0 => Look::Dim,
        _ if 2 * missing > rows => Look::Bad,
        _ if 20 * missing > rows => Look::Warn,
        _ => Look::Good,
    }
}

/// A column's values in a few words.
fn values(finding: &Finding) -> String {
    if finding.kind == Kind::Datetime {
        return finding.distinct.map_or_else(String::new, |d| count(d, "timestamp"));
    }
    if let (Some(min), Some(max)) = (finding.min, finding.max) {
        return format!("{min} to {max}");
    }
    let named: Vec<String> =
        finding.top.iter().take(4).map(|(level, n)| format!("{level} {}", thousands(*n))).collect();
    match finding.distinct {
        Some(distinct) if distinct > named.len() && named.is_empty() => format!("{} different", thousands(distinct)),
        Some(distinct) if distinct > named.len() => {
            format!("{}, ... ({} different)", named.join(", "), thousands(distinct))
        }
        _ => named.join(", "),
    }
}

/// A bar of ten places.
fn bar(part: usize, whole: usize) -> String {
    let eighths = if whole == 0 { 0 } else { (part * 80).div_ceil(whole) };
    let partial = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{partial}", "█".repeat(eighths / 8))
}

/// The patterns of missing columns by name, most frequent first.
fn patterns(table: &Table) -> Vec<Pattern> {
    let name = |j: usize| table.schema().columns()[j].name.clone();
    let named =
        |(columns, rows): (Vec<usize>, usize)| Pattern { columns: columns.into_iter().map(name).collect(), rows };
    table.patterns().into_iter().map(named).collect()
}

fn shortened(columns: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = columns.iter().take(SHOWN).map(|name| plain(name)).collect::<Vec<_>>().join(", ");
    if columns.len() > SHOWN {
        let _ = write!(text, " and {} more", columns.len() - SHOWN);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_ten_places_and_show_the_smallest_share() {
        assert_eq!((bar(0, 100).as_str(), bar(1, 1000).as_str(), bar(50, 100).as_str()), ("", "▏", "█████"));
        assert_eq!(bar(1, 1).chars().count(), 10);
    }
}
