//! Uncertainty of filled cells: intervals and probabilities as further columns, draws as further tables.

use crate::args::{OutputArgs, PointChoice, UncertaintyArgs};
use crate::failure::{Failure, Outcome};
use crate::table_io::Target;
use crate::terminal::Verbosity;
use m3impute::{
    ColumnScore, Error, FittedImputer, METHODS, Point, PredictiveDistributions, RowSeeds, Run, Shifted, Shifts, Table,
};
use m3impute_io::{Change, Document, DocumentWriter, ExtraColumn, Format, ValueFormat};
use std::path::{Path, PathBuf};

/// Probabilities are written with so many decimals.
const DECIMALS: i32 = 6;

impl UncertaintyArgs {
    /// Whether anything is asked that needs distributions.
    pub fn is_asked(&self) -> bool {
        self.interval.is_some() || self.probabilities || self.draws.is_some() || self.point.is_some()
    }

    /// What is asked, where the answer is no.
    pub fn refused(&self, whose: &str, hint: &str) -> Failure {
        let asked = match self {
            UncertaintyArgs { draws: Some(_), .. } => "--draws",
            UncertaintyArgs { interval: Some(_), .. } => "--interval",
            UncertaintyArgs { probabilities: true, .. } => "--probabilities",
            _ => "--point",
        };
        let able: Vec<String> = METHODS.iter().filter(|m| m.distributions).map(|m| format!("`{}`", m.name)).collect();
        Failure::usage(
            format!("`{asked}` needs a predictive distribution for every missing cell, which {whose} does not know"),
            format!("methods that do: {}; {hint}", able.join(", ")),
        )
    }

    fn point(&self) -> Point {
        match self.point {
            None | Some(PointChoice::Median) => Point::Median,
            Some(PointChoice::Mean) => Point::Mean,
            Some(PointChoice::Mode) => Point::Mode,
        }
    }

    /// The table filled with the point that is asked for.
    pub fn filled(&self, filled: Table, distributions: &PredictiveDistributions) -> Table {
        match self.point() {
            // What the method filled is the median already.
            Point::Median => filled,
            point => distributions.fill(&filled, point),
        }
    }

    /// The columns to add: of those with a hole, or of all that may have one where chunks of a file must agree.
    pub fn columns(
        &self,
        table: &Table,
        filled: &Table,
        distributions: &PredictiveDistributions,
        all: bool,
    ) -> Vec<ExtraColumn> {
        let named = |of: usize| &table.schema().columns()[of].name;
        let rows = table.rows();
        let mut extras = Vec::new();
        let intervals = self.interval.map_or_else(Vec::new, |level| distributions.intervals(level));
        let mut intervals = intervals.into_iter().map(|i| i.around(filled)).peekable();
        for column in &distributions.columns {
            let of = column.column;
            let interval = intervals.next_if(|i| i.column == of);
            if column.rows.is_empty() && !all {
                continue;
            }
            if let Some(interval) = interval {
                for (end, values) in [("lower", &interval.lower), ("upper", &interval.upper)] {
                    let values = spread(rows, interval.rows.iter().zip(values.iter().copied()));
                    extras.push(ExtraColumn {
                        name: format!("{}_{end}", named(of)),
                        of,
                        format: ValueFormat::AsColumn,
                        values,
                    });
                }
            }
            if self.probabilities {
                for (level, shares) in column.levels_with_probabilities() {
                    let values = spread(rows, column.rows.iter().zip(shares.into_iter().map(rounded)));
                    extras.push(ExtraColumn {
                        name: format!("{}_p_{level}", named(of)),
                        of,
                        format: ValueFormat::Plain,
                        values,
                    });
                }
            }
        }
        extras
    }
}

fn rounded(share: f32) -> f64 {
    let unit = 10_f64.powi(DECIMALS);
    (f64::from(share) * unit).round() / unit
}

/// A value for some rows, none for the others.
fn spread<'a>(rows: usize, of: impl Iterator<Item = (&'a usize, f64)>) -> Vec<Option<f64>> {
    let mut values = vec![None; rows];
    of.for_each(|(&row, value)| values[row] = Some(value));
    values
}

/// Gives the columns names that are free, and says which are not those that one would expect.
pub fn name(document: &Document, extras: &mut [ExtraColumn], verbosity: &Verbosity) {
    for (wanted, given) in document.name_extras(extras) {
        verbosity.note(format!("there is a column `{wanted}` already: the added one is called `{given}`"));
    }
}

/// Where filled rows go: into one table, or into several that were drawn.
pub enum Output {
    Table(Target),
    Draws(Draws),
}

impl Output {
    pub fn open(asked: &UncertaintyArgs, path: Option<&Path>) -> Result<Output, Failure> {
        Ok(match asked.draws {
            Some(count) => Output::Draws(Draws::open(count, path)?),
            None => Output::Table(Target::open(path)?),
        })
    }
}

/// Several tables that appear together: `filled.csv` becomes `filled.1.csv`, `filled.2.csv`, ...
pub struct Draws {
    targets: Vec<Target>,
}

impl Draws {
    fn open(count: u32, path: Option<&Path>) -> Result<Draws, Failure> {
        let path = path.filter(|p| *p != Path::new("-")).ok_or_else(|| {
            Failure::usage(
                "`--draws` writes several tables, which standard output cannot hold",
                "name a file: `-o filled.csv` gives filled.1.csv, filled.2.csv, ...",
            )
        })?;
        let open = |number| Target::open(Some(&numbered(path, number)));
        Ok(Draws { targets: (1..=count).map(open).collect::<Result<_, _>>()? })
    }

    /// Writes through `work`, which gets a writer for each table.
    pub fn fill(
        mut self,
        told: &OutputArgs,
        input: Format,
        drop: &[String],
        work: impl FnOnce(&mut [DocumentWriter<'_>]) -> Outcome,
    ) -> Result<Vec<Target>, Failure> {
        let mut writers = Vec::with_capacity(self.targets.len());
        for target in &mut self.targets {
            let format = target.format(told, input);
            writers.push(DocumentWriter::new(Box::new(target.file()), format, drop.to_vec()));
        }
        let finish = |writers: Vec<DocumentWriter<'_>>| writers.into_iter().try_for_each(DocumentWriter::finish);
        let outcome = work(&mut writers).and_then(|()| Ok(finish(writers)?));
        self.targets.iter_mut().find_map(Target::failure).map_or(outcome, Err)?;
        Ok(self.targets)
    }
}

/// Shifts, and what they did so far.
#[derive(Default)]
pub struct Shifting {
    pub shifts: Shifts,
    done: Vec<Shifted>,
}

impl Shifting {
    pub fn by(shifts: Shifts) -> Shifting {
        Shifting { shifts, done: Vec::new() }
    }

    /// Shifts the filled cells of a table, and their distributions.
    pub fn apply(&mut self, before: &Table, filled: &mut Table, distributions: &mut PredictiveDistributions) {
        Shifted::add(&mut self.done, self.shifts.apply(before, filled));
        self.shifts.apply_to_distributions(before, distributions);
    }

    /// What was done to so many completed tables, a sentence each; `scores` are those that are printed with it.
    pub fn notes(&self, tables: usize, scores: &[ColumnScore]) -> Vec<String> {
        let warnings = self.done.iter().filter_map(|s| Some(format!("column `{}`: {}", s.column, s.warning()?)));
        let mut notes: Vec<String> = self.done.iter().filter(|s| s.cells > 0).map(|s| s.note(tables)).collect();
        if !notes.is_empty() && !scores.is_empty() {
            notes.push("validation errors are those of the predictions before the shift".to_owned());
        }
        notes.extend(warnings);
        notes
    }
}

/// Writes one drawn table after the other, counted from 1. `seeds` follows on from chunk to chunk.
pub fn write_draws(
    writers: &mut [DocumentWriter<'_>],
    document: &Document,
    fitted: &dyn FittedImputer,
    seeds: &mut RowSeeds,
    shifting: &mut Shifting,
    run: &Run,
) -> Result<(), Failure> {
    let (table, total) = (document.table(), writers.len() as u64);
    let seeds = seeds.of(table);
    for (writer, number) in writers.iter_mut().zip(1..) {
        let drawn = fitted.draw(table, &seeds, number, run)?;
        let mut drawn = drawn.ok_or_else(|| Error::Bug("no draws".to_owned()))?;
        shifting.apply(table, &mut drawn.table, &mut PredictiveDistributions::default());
        run.report("drawing", number, total, "");
        writer.write(document, Change::Fill(&drawn.table))?;
    }
    Ok(())
}

/// `filled.csv` and 3 make `filled.3.csv`.
pub fn numbered(path: &Path, number: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = match path.extension() {
        Some(extension) => format!("{stem}.{number}.{}", extension.to_string_lossy()),
        None => format!("{stem}.{number}"),
    };
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_draw_stands_before_the_extension() {
        let of = |path: &str| numbered(Path::new(path), 3).display().to_string();
        assert_eq!((of("out/filled.csv"), of("filled"), of("a.b.parquet")), {
            ("out/filled.3.csv".into(), "filled.3".into(), "a.b.3.parquet".into())
        });
    }
}
