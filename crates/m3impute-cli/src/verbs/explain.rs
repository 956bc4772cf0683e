//! `explain`: why missing cells are filled with their values.

use super::transform::{read_model, reading_of};
use crate::args::ExplainArgs;
use crate::failure::{Failure, Outcome};
use crate::table_io;
use crate::terminal::{Verbosity, count, plain, print, thousands};
use m3impute::{Cancel, Explanation, FittedImputer, Kind, Run};
use m3impute_io::{ChunkReader, Document, Input, Reading};
use serde_json::{Value, json};

/// How rows are counted, for who counts otherwise.
const COUNTED: &str = "rows are counted from 1, below the names of the columns";
/// Rows that are read at a time.
const CHUNK: usize = 16_384;

pub fn explain(args: &ExplainArgs, verbosity: &Verbosity, cancel: &Cancel) -> Outcome {
    let input = table_io::input(args.input.as_ref())?;
    let file = read_model(&args.model)?;
    let fitted = m3impute::load_file(&file).map_err(|e| Failure::from(e).at(&args.model))?;
    let reading = reading_of(&file, &args.model)?;
    table_io::say_fewer_threads(args.threads, verbosity);
    let bar = verbosity.bar();
    let shown = bar.clone();
    let run = Run::new(0, args.threads)?
        .cancelled_by(cancel.clone())
        .observed_by(move |progress: &m3impute::Progress| shown.show(progress));
    let mut wanted = args.row.clone();
    wanted.sort_unstable();
    wanted.dedup();
    let explained = explained(args, fitted.as_ref(), &wanted, &input, &reading, &run)?;
    bar.clear();
    if args.json {
        return print(format!("{:#}\n", Value::from(explained.into_iter().map(|e| e.json).collect::<Vec<_>>())));
    }
    let blocks: Vec<String> = explained.iter().map(|e| e.lines.join("\n") + "\n").collect();
    print(blocks.join("\n"))
}

/// An explanation as it is printed.
struct Explained {
    lines: Vec<String>,
    json: Value,
}

/// Explains the cells that are asked for, in the order of rows; the file is read up to the last of them.
fn explained(
    args: &ExplainArgs,
    fitted: &dyn FittedImputer,
    wanted: &[usize],
    input: &Input,
    reading: &Reading,
    run: &Run,
) -> Result<Vec<Explained>, Failure> {
    let options = table_io::new_rows(&args.read);
    let mut chunks: ChunkReader = m3impute_io::open_chunks(input, &options, reading, fitted.schema(), CHUNK)?;
    let (mut all, mut before, mut wanted) = (Vec::new(), 0, wanted.iter().copied().peekable());
    while let Some(row) = wanted.peek().copied() {
        run.check()?;
        let Some(document) = run.install(|| chunks.next())? else { return Err(no_such_row(row, before)) };
        let rows = document.table().rows();
        let mut cells = Vec::new();
        while let Some(row) = wanted.next_if(|row| *row <= before + rows) {
            cells.extend(cells_of(args, &document, row - before - 1, row, fitted)?);
        }
        for explanation in fitted.explain(document.table(), &cells, run)? {
            all.push(shown(&document, &explanation, before + explanation.row + 1));
        }
        before += rows;
    }
    Ok(all)
}

fn no_such_row(row: usize, rows: usize) -> Failure {
    let table = count(rows, "row");
    Failure::usage(format!("there is no row {}: the table has {table}", thousands(row)), COUNTED)
}

/// The cells of a row that are asked for; `number` is how the row is counted in the file.
fn cells_of(
    args: &ExplainArgs,
    document: &Document,
    row: usize,
    number: usize,
    fitted: &dyn FittedImputer,
) -> Result<Vec<(usize, usize)>, Failure> {
    if args.column.is_empty() {
        let cells = document.missing_cells(row, fitted);
        if cells.is_empty() {
            let message = format!("row {number} has no missing cell that the model fills");
            return Err(Failure::usage(message, COUNTED));
        }
        return Ok(cells);
    }
    let mut cells = Vec::with_capacity(args.column.len());
    for column in &args.column {
        let cell = document.missing_cell(row, &format!("row {number}"), column, fitted)?;
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    Ok(cells)
}

fn shown(document: &Document, explanation: &Explanation, row: usize) -> Explained {
    let lines = explanation.lines(&format!("row {row}"), 1, |column, x| document.value_text(column, x));
    let number = |column: usize, x: f64| match document.table().schema().columns()[column].kind {
        Kind::Datetime => Value::from(document.value_text(column, x)),
        Kind::Integer if x.fract() == 0.0 && x.abs() < 9e15 => Value::from(x as i64),
        _ => json!(x),
    };
    Explained { lines: lines.iter().map(|line| plain(line)).collect(), json: explanation.json(row, 1, number) }
}
