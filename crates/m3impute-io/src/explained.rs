//! What an explanation needs of a document: which cells are missing in it, and how its values are written.

use crate::column::value_text;
use crate::document::{Document, Source};
use m3impute_core::{Error, FittedImputer, Result, nearest};

impl Document {
    /// A number of a column, or the code of a level, as filled cells of that column are written.
    ///
    /// ```
    /// use m3impute_io::{Input, ReadOptions, read};
    /// let bytes = b"price,when\n1.50,01.02.2024\n,02.02.2024\n".to_vec();
    /// let document = read(&Input::Bytes { name: "a.csv".to_owned(), bytes }, &ReadOptions::default())?;
    /// assert_eq!(document.value_text(0, 2.5), "2.5");
    /// # Ok::<(), m3impute_io::Error>(())
    /// ```
    pub fn value_text(&self, column: usize, value: f64) -> String {
        let (spec, reading) = (&self.table.schema().columns()[column], &self.reading.columns[column]);
        value_text(spec, value, reading).unwrap_or_else(|| value.to_string())
    }

    /// The missing cell of a row and a named column that a model fills; `name` is what the row is called in an error.
    ///
    /// # Errors
    /// When there is no such column, the model does not fill it, or the cell has a value.
    pub fn missing_cell(
        &self,
        row: usize,
        name: &str,
        column: &str,
        model: &dyn FittedImputer,
    ) -> Result<(usize, usize)> {
        let specs = self.table.schema().columns();
        let Some(at) = specs.iter().position(|spec| spec.name == column) else {
            if self.has_column(column) {
                return Err(Error::NotFilled { column: column.to_owned(), reason: "the model was fitted without it" });
            }
            let nearest = nearest(column, specs.iter().map(|spec| spec.name.as_str()));
            return Err(Error::UnknownColumn { column: column.to_owned(), nearest });
        };
        let is_missing = self.holes(at).binary_search(&row).is_ok();
        if model.fills(column) && !is_missing {
            let value = match self.table.number(row, at) {
                number if number.is_nan() => "a level that the model does not know".to_owned(),
                number => self.value_text(at, number),
            };
            return Err(Error::NotMissing { row: name.to_owned(), column: column.to_owned(), value });
        }
        Ok((row, at))
    }

    /// All missing cells of a row that a model fills.
    pub fn missing_cells(&self, row: usize, model: &dyn FittedImputer) -> Vec<(usize, usize)> {
        let specs = self.table.schema().columns().iter().enumerate();
        let is_one = |at: usize, name: &str| model.fills(name) && self.holes(at).binary_search(&row).is_ok();
        specs.filter(|(at, spec)| is_one(*at, &spec.name)).map(|(at, _)| (row, at)).collect()
    }

    fn has_column(&self, name: &str) -> bool {
        match &self.source {
            Source::Text(source) => source.names.iter().any(|other| other == name),
            Source::Arrow(source) => source.schema.fields().iter().any(|field| field.name() == name),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Input, ReadOptions, read};

    #[test]
    fn values_are_written_as_the_cells_of_their_column() {
        let bytes = b"n;when;city\n1,25;2024-01-31;Rome\n2,5;2024-02-01;Oslo\n;;Rome\n".to_vec();
        let document = read(&Input::Bytes { name: "a.csv".to_owned(), bytes }, &ReadOptions::default()).unwrap();
        assert_eq!(document.value_text(0, 2.75), "2,75");
        assert_eq!(document.value_text(1, 1_706_659_200.0), "2024-01-31");
        assert_eq!(document.value_text(2, 0.0), "Oslo");
    }
}
