//! Models that are saved and read back, whole and damaged. A method that is not inductive passes.

use crate::subject::{SEED, check_same, ensure, fit, run, saved, transform};
use crate::tables::{self, ROWS};
use m3impute_core::{Error, FittedImputer, MethodSpec, ModelFile, Result, Table};
use rand::RngExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many damages of each sort are tried.
const DAMAGES: usize = 150;

/// Saved, read and saved again: the same bytes, and the same predictions.
pub fn a_model_survives_its_file(spec: &'static MethodSpec) {
    for table in [tables::mixed(ROWS, 60), tables::with_identifier(ROWS, 61), tables::complete(1, 62)] {
        let Some(fitted) = fit(spec, &table) else { return };
        let bytes = saved(spec, fitted.as_ref());
        let read =
            load(spec, &bytes).unwrap_or_else(|e| panic!("method `{}`: its file cannot be read: {e}", spec.name));
        ensure!(saved(spec, read.as_ref()) == bytes, spec, "a model that was read is saved as other bytes");
        ensure!(read.notes() == fitted.notes(), spec, "a model that was read has other notes");
        let mut rows = table.select_rows(&(0..table.rows().min(20)).collect::<Vec<_>>());
        (0..rows.cols()).for_each(|j| rows.hide(0, j));
        let [one, two] = [fitted, read].map(|f| transform(spec, f.as_ref(), &rows).table);
        check_same(spec, &one, &two, "by a model that was saved and read");
    }
}

/// A file that ends too early is an error, wherever it ends.
pub fn a_cut_file_is_an_error(spec: &'static MethodSpec) {
    let Some((bytes, rows)) = model(spec) else { return };
    let step = (bytes.len() / DAMAGES).max(1);
    for end in (0..bytes.len()).step_by(step).chain([1, 7, 8, 9, bytes.len() - 1]) {
        let fits = survive(spec, &bytes[..end], &rows, &format!("a file cut after {end} of {} bytes", bytes.len()));
        ensure!(!fits, spec, "a file cut after {end} of {} bytes is taken for whole", bytes.len());
    }
}

/// Flipped bits, other digits, lost and doubled bytes: an error or a result, never a panic.
pub fn a_damaged_file_never_panics(spec: &'static MethodSpec) {
    let Some((bytes, rows)) = model(spec) else { return };
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let run = run(SEED, 1);
    let mut rng = run.rng("testkit damage", 0);
    let digits: Vec<usize> = (8..header).filter(|&at| bytes[at].is_ascii_digit()).collect();
    for _ in 0..DAMAGES {
        let mut in_header = bytes.clone();
        let at = rng.random_range(0..header);
        in_header[at] ^= 1 << rng.random_range(0..8);
        survive(spec, &in_header, &rows, &format!("a bit flipped in byte {at}, in the header"));

        // JSON survives another digit where it would not survive a flipped bit.
        let mut digit = bytes.clone();
        let at = digits[rng.random_range(0..digits.len())];
        digit[at] = b'0' + rng.random_range(0..10_u8);
        survive(spec, &digit, &rows, &format!("digit {} in byte {at}, in the header", char::from(digit[at])));

        let mut anywhere = bytes.clone();
        let at = rng.random_range(0..bytes.len());
        anywhere[at] = rng.random();
        survive(spec, &anywhere, &rows, &format!("byte {at} replaced by {}", anywhere[at]));

        if header < bytes.len() {
            let mut in_tensors = bytes.clone();
            let at = rng.random_range(header..bytes.len());
            in_tensors[at] ^= 1 << rng.random_range(0..8);
            survive(spec, &in_tensors, &rows, &format!("a bit flipped in byte {at}, in the tensors"));
        }
    }
    let mut longer = bytes.clone();
    longer.extend_from_slice(&[0; 16]);
    survive(spec, &longer, &rows, "sixteen bytes too many");
    survive(spec, &bytes[1..], &rows, "the first byte lost");
}

/// A model file of the usual table, and rows to fill with it.
fn model(spec: &'static MethodSpec) -> Option<(Vec<u8>, Table)> {
    let fitted = fit(spec, &tables::mixed(ROWS, 63))?;
    let mut rows = tables::mixed(4, 64);
    (0..rows.cols()).for_each(|j| rows.hide(3, j));
    Some((saved(spec, fitted.as_ref()), rows))
}

fn load(spec: &'static MethodSpec, bytes: &[u8]) -> Result<Box<dyn FittedImputer>> {
    let file = ModelFile::read(bytes)?;
    if file.header.method != spec.name {
        return Err(Error::UnknownMethod { method: file.header.method, nearest: None });
    }
    (spec.load)(&file)
}

/// Whether the file is taken for a model. Reading it and filling rows with it may fail, but not panic.
fn survive(spec: &'static MethodSpec, bytes: &[u8], rows: &Table, damage: &str) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(|| match load(spec, bytes) {
        Ok(fitted) => {
            let _ = fitted.transform(rows, &mut run(SEED, 1));
            let _ = fitted.predict_distributions(rows, &mut run(SEED, 1));
            let cells: Vec<(usize, usize)> = (0..rows.cols()).map(|j| (3, j)).collect();
            let _ = (fitted.explain(rows, &cells, &run(SEED, 1)), fitted.kept_rows());
            let _ = fitted.to_file();
            true
        }
        Err(_) => false,
    }));
    outcome.unwrap_or_else(|_| panic!("method `{}`: panics over {damage}", spec.name))
}
