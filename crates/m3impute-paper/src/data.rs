//! The tables and their masks, from a folder.

use crate::error::{Error, Result};
use m3impute::missing::{Mechanism, hide};
use m3impute::{Observed, Role, Run, Table};
use m3impute_io::{Input, ReadOptions};
use std::path::{Path, PathBuf};

/// Where the mask of a table comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskSource {
    /// From a file.
    Given,
    /// Made by our generator with seed 0, because there is no such file.
    Made,
}

/// A table, its missing cells, and the labels that no method sees.
#[derive(Clone, Debug)]
pub struct Case {
    /// The complete table; its last column, the label, is set aside.
    pub truth: Table,
    /// The cells that methods see.
    pub shown: Observed,
    /// Where the mask comes from.
    pub source: MaskSource,
}

/// Which of these tables the folder has.
pub fn tables_in<'a>(data: &Path, tables: &[&'a str]) -> (Vec<&'a str>, Vec<&'a str>) {
    tables.iter().copied().partition(|table| file_of(data, table).is_file())
}

fn file_of(data: &Path, table: &str) -> PathBuf {
    data.join("datasets").join(format!("{table}.csv"))
}

/// A complete table of numbers, its label last.
///
/// # Errors
/// When it cannot be read, is incomplete, or has other columns than numbers.
pub(crate) fn complete(data: &Path, table: &str) -> Result<Table> {
    let file = file_of(data, table);
    let document = m3impute_io::read(&Input::parse(&file.display().to_string()), &ReadOptions::default())?;
    let read = document.table().clone();
    let wrong = |reason: String| Err(Error::Data { file: file.clone(), reason });
    for (j, spec) in read.schema().columns().iter().enumerate() {
        if !spec.kind.is_number() {
            return wrong(format!("column `{}` is not of numbers", spec.name));
        }
        if read.missing_in(j) > 0 {
            return wrong(format!("column `{}` is not complete", spec.name));
        }
    }
    if read.cols() < 2 || read.rows() < 2 {
        return wrong("expected two rows and two columns at least".to_owned());
    }
    Ok(read)
}

/// A table with the missing cells of a mask such as `mcar30`.
///
/// # Errors
/// When the table or the mask cannot be read or made.
pub(crate) fn case(data: &Path, table: &str, mask: &str) -> Result<Case> {
    let read = complete(data, table)?;
    let mut schema = read.schema().clone();
    schema.column_mut(read.cols() - 1).role = Role::Ignore;
    let truth = read.with_schema(schema)?;
    let given = data.join("masks").join(format!("{table}.{mask}.txt"));
    if given.is_file() {
        let (truth, shown) = m3impute_eval::given::align(truth, &m3impute_io::read_observed(&given)?)?;
        return Ok(Case { truth, shown, source: MaskSource::Given });
    }
    let (mechanism, rate) = parse(mask)?;
    let hidden = hide(&truth, mechanism, rate, &Run::new(0, 1)?)?;
    Ok(Case { shown: hidden.shown, truth, source: MaskSource::Made })
}

/// `mar30` is a mechanism and 0.3.
pub(crate) fn parse(mask: &str) -> Result<(Mechanism, f64)> {
    let digits = mask.trim_start_matches(|c: char| !c.is_ascii_digit());
    let unknown = || Error::Unknown {
        what: "mask",
        got: mask.to_owned(),
        valid: "a mechanism and per cent, such as mcar30 or mar10".to_owned(),
    };
    let percent: f64 = digits.parse().map_err(|_| unknown())?;
    if !(percent > 0.0 && percent < 100.0) {
        return Err(unknown());
    }
    Ok((Mechanism::parse(&mask[..mask.len() - digits.len()])?, percent / 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_named_by_mechanism_and_per_cent() {
        assert_eq!(parse("mar30").unwrap(), (Mechanism::Mar, 0.3));
        assert!(parse("mar").is_err() && parse("moon30").is_err() && parse("mcar0").is_err());
    }

    #[test]
    fn a_mask_file_comes_before_the_generator_and_the_label_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("datasets")).unwrap();
        std::fs::create_dir_all(folder.path().join("masks")).unwrap();
        let rows: String = (0..40).map(|i| format!("{}.5,{},{}\n", i, 2 * i, i % 7)).collect();
        std::fs::write(folder.path().join("datasets/toy.csv"), format!("a,b,label\n{rows}")).unwrap();
        std::fs::write(folder.path().join("masks/toy.mcar30.txt"), "01\n".repeat(40)).unwrap();
        let given = case(folder.path(), "toy", "mcar30").unwrap();
        assert_eq!((given.source, given.shown.count()), (MaskSource::Given, 80));
        assert!(!given.truth.schema().columns()[2].is_used());
        let made = case(folder.path(), "toy", "mcar50").unwrap();
        assert_eq!(made.source, MaskSource::Made);
        assert!(made.shown.count() < 110 && made.shown.column(2).iter().all(|shown| *shown));
        assert!(case(folder.path(), "moon", "mcar50").is_err());
    }
}
