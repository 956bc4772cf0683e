//! Complete tables of numbers with cells hidden from the methods, to measure accuracy: two small ones are part of the
//! repository (`tests/tables`), the others lie beside it, in `../shared`.

use libtest_mimic::Trial;
use m3impute_core::{Bounds, Column, ColumnSpec, Kind, Observed, Schema, Table, score};
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// The folder of tables that is part of the repository.
pub fn in_repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tables")
}

/// The folder of all benchmark tables, beside the repository. It need not be there.
pub fn in_shared() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared")
}

/// A complete table, and which of its cells methods see.
#[derive(Clone, Debug)]
pub struct Benchmark {
    /// The complete table, all of its columns continuous.
    pub complete: Table,
    /// The cells that methods see.
    pub shown: Observed,
}

impl Benchmark {
    /// Reads `datasets/NAME.csv` without its last column, the target of another task, and `masks/NAME.PATTERN.txt`.
    ///
    /// # Panics
    /// When the files are not there or do not fit together.
    pub fn read(folder: &Path, name: &str, pattern: &str) -> Benchmark {
        let text = |path: PathBuf| read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let csv = text(folder.join(format!("datasets/{name}.csv")));
        let mut lines = csv.lines();
        let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
        let m = header.len() - 1;
        let number = |cell: &str| cell.trim().parse::<f64>().unwrap_or_else(|e| panic!("{name}: `{cell}`: {e}"));
        let rows: Vec<Vec<f64>> = lines.map(|line| line.split(',').map(number).collect()).collect();
        let specs = header[..m].iter().map(|column| ColumnSpec::new(*column, Kind::Continuous)).collect();
        let columns = (0..m).map(|j| Column::from_numbers(rows.iter().map(|row| row[j]).collect())).collect();
        let schema = Schema::new(specs).expect("column names are unique");
        let complete = Table::new(schema, columns).expect("columns are of one length");

        let pattern = text(folder.join(format!("masks/{name}.{pattern}.txt")));
        let mut shown = Observed::all(rows.len(), m);
        assert_eq!(pattern.lines().count(), rows.len(), "{name}: a line for each row");
        for (i, line) in pattern.lines().enumerate() {
            assert_eq!(line.len(), m, "{name}: a character for each cell of row {i}");
            line.bytes().enumerate().for_each(|(j, c)| shown.set(i, j, c == b'1'));
        }
        Benchmark { complete, shown }
    }

    /// The table without its hidden cells.
    pub fn table(&self) -> Table {
        let mut table = self.complete.clone();
        for i in 0..table.rows() {
            for j in (0..table.cols()).filter(|&j| !self.shown.get(i, j)) {
                table.hide(i, j);
            }
        }
        table
    }

    /// The table without its hidden cells, whose columns are to be scaled by the range of the complete column, as in the
    /// published experiments.
    pub fn table_with_ranges(&self) -> Table {
        let table = self.table();
        let mut schema = table.schema().clone();
        for j in 0..table.cols() {
            let values = (0..table.rows()).map(|i| self.complete.number(i, j));
            let (low, high) =
                values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (v.min(low), v.max(high)));
            schema.column_mut(j).range = Some(Bounds { low, high });
        }
        table.with_schema(schema).expect("only ranges are other ones")
    }

    /// Ten times the mean absolute error over the hidden cells, columns scaled by the range of the complete column.
    pub fn error(&self, filled: &Table) -> f64 {
        10.0 * score(&self.complete, filled, &self.shown).0.mae.expect("cells are hidden")
    }
}

/// A test that needs the tables in [`in_shared`]. Where they are not there it shows as ignored, never as passed; one that
/// is slow is always ignored unless it is requested (`--include-ignored`).
pub fn trial(name: impl Into<String>, slow: bool, run: impl FnOnce() + Send + 'static) -> Trial {
    let here = in_shared().join("datasets").is_dir();
    let kind = match (here, slow) {
        (false, _) => "needs the benchmark tables in ../shared",
        (true, true) => "slow",
        (true, false) => "",
    };
    let run = move || {
        run();
        Ok(())
    };
    Trial::test(name, run).with_kind(kind).with_ignored_flag(!here || slow)
}
