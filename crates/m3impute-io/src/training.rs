//! New rows, read as the rows of training were.

use crate::error::{Error, Result};
use crate::options::{ColumnReading, Infinities, ReadOptions, Reading};
use m3impute_core::{ColumnSpec, Schema, nearest};
use std::collections::HashMap;

/// An error where two columns of a file have one name.
pub(crate) fn check_names(file: &str, names: &[String]) -> Result<()> {
    let mut seen = HashMap::with_capacity(names.len());
    for (second, name) in names.iter().enumerate() {
        if let Some(first) = seen.insert(name.as_str(), second) {
            let (file, column) = (file.to_owned(), name.clone());
            return Err(Error::DuplicateColumn { file, column, first: first + 1, second: second + 1 });
        }
    }
    Ok(())
}

/// How new rows are read: as those of training, with what is asked for now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsInTraining<'a> {
    pub(crate) options: &'a ReadOptions,
    pub(crate) training: &'a Reading,
    pub(crate) schema: &'a Schema,
}

impl AsInTraining<'_> {
    /// Which field of a file each column of the model is, by name. Columns that no method reads may be absent.
    pub(crate) fn fields(&self, file: &str, names: &[String]) -> Result<Vec<Option<usize>>> {
        self.options.check_names(file, names)?;
        let places: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
        let specs = self.schema.columns();
        let fields: Vec<Option<usize>> = specs.iter().map(|spec| places.get(spec.name.as_str()).copied()).collect();
        let is_lacking = |(spec, field): &(&ColumnSpec, &Option<usize>)| spec.is_used() && field.is_none();
        let lacking = specs.iter().zip(&fields).filter(is_lacking);
        let columns: Vec<_> = lacking.map(|(spec, _)| (spec.name.clone(), spec.kind)).collect();
        match columns.first() {
            None => Ok(fields),
            Some((first, _)) => {
                let nearest = nearest(first, names.iter().map(String::as_str));
                Err(Error::ColumnsNotThere { file: file.to_owned(), columns, nearest })
            }
        }
    }

    /// The words that mean missing in all columns, where they are not the usual ones.
    pub(crate) fn na(&self) -> Option<Vec<String>> {
        self.options.na.clone().or_else(|| self.training.na.clone())
    }

    /// What becomes of infinite numbers: they are taken as missing where either asks for it.
    pub(crate) fn infinities(&self) -> Infinities {
        let asked = [self.training.infinities, self.options.infinities].contains(&Infinities::Missing);
        if asked { Infinities::Missing } else { Infinities::Refuse }
    }

    /// How each column is read.
    pub(crate) fn columns(&self) -> Vec<ColumnReading> {
        let readings: HashMap<&str, &ColumnReading> =
            self.training.columns.iter().rev().map(|column| (column.name.as_str(), column)).collect();
        let read = |spec: &ColumnSpec| {
            let mut column = readings.get(spec.name.as_str()).map_or_else(ColumnReading::default, |c| (*c).clone());
            column.name.clone_from(&spec.name);
            column.na.extend_from_slice(self.options.na_of(&spec.name));
            column
        };
        self.schema.columns().iter().map(read).collect()
    }
}
