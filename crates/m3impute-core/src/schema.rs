//! The columns of a table: names, kinds, levels, roles and bounds.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// What the values of a column mean, and so how a missing cell in it is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Any number.
    Continuous,
    /// Whole numbers; filled whole.
    Integer,
    /// Two levels that mean no and yes.
    Boolean,
    /// Levels without an order.
    Categorical,
    /// Levels in the order of [`ColumnSpec::levels`].
    Ordered,
    /// A timestamp, as seconds since 1970-01-01 UTC.
    Datetime,
    /// A name of the row (a key, a code): left unchanged, never a predictor, never filled.
    Identifier,
    /// Free text: left unchanged, never a predictor, never filled.
    Text,
}

impl Kind {
    /// Every kind, in the order in which they are listed to users.
    pub const ALL: [Kind; 8] = [
        Kind::Continuous,
        Kind::Integer,
        Kind::Boolean,
        Kind::Categorical,
        Kind::Ordered,
        Kind::Datetime,
        Kind::Identifier,
        Kind::Text,
    ];

    /// The word users write and read.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Continuous => "continuous",
            Kind::Integer => "integer",
            Kind::Boolean => "boolean",
            Kind::Categorical => "categorical",
            Kind::Ordered => "ordered",
            Kind::Datetime => "datetime",
            Kind::Identifier => "identifier",
            Kind::Text => "text",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|k| k.name() == name)
    }

    /// Whether the values are numbers (a timestamp is one).
    pub fn is_number(self) -> bool {
        matches!(self, Kind::Continuous | Kind::Integer | Kind::Datetime)
    }

    /// Whether the values are one of a list of levels.
    pub fn has_levels(self) -> bool {
        matches!(self, Kind::Boolean | Kind::Categorical | Kind::Ordered)
    }

    /// Whether no method ever reads or fills such a column.
    pub fn is_opaque(self) -> bool {
        matches!(self, Kind::Identifier | Kind::Text)
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What a method may do with a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It predicts other columns, and its missing cells are filled.
    #[default]
    Fill,
    /// It predicts other columns, but its own missing cells stay.
    Predict,
    /// It is neither filled nor used.
    Ignore,
}

/// The smallest and the largest value a column may hold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// The smallest value.
    pub low: f64,
    /// The largest value.
    pub high: f64,
}

/// One column of a [`Schema`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnSpec {
    /// The column's name; unique in its table.
    pub name: String,
    /// What the values mean.
    pub kind: Kind,
    /// The levels, for kinds that have them; a value is an index into this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<String>,
    /// What a method may do with the column.
    #[serde(default)]
    pub role: Role,
    /// Filled values are kept within these bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// The range by which the column is scaled, where it is not that of the observed cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Bounds>,
    /// Filled values are multiples of this; 0 leaves them as they are. For timestamps: the resolution in seconds.
    #[serde(default)]
    pub step: f64,
}

impl ColumnSpec {
    /// A column of that name and kind, to be filled, without levels or bounds.
    ///
    /// ```
    /// use m3impute_core::{ColumnSpec, Kind};
    /// let age = ColumnSpec::new("age", Kind::Integer);
    /// assert!(age.is_used() && age.levels.is_empty());
    /// ```
    pub fn new(name: impl Into<String>, kind: Kind) -> ColumnSpec {
        let step = if kind == Kind::Integer { 1.0 } else { 0.0 };
        ColumnSpec { name: name.into(), kind, levels: Vec::new(), role: Role::Fill, bounds: None, range: None, step }
    }

    /// A column with levels.
    pub fn with_levels<S: Into<String>>(
        name: impl Into<String>,
        kind: Kind,
        levels: impl IntoIterator<Item = S>,
    ) -> ColumnSpec {
        ColumnSpec { levels: levels.into_iter().map(Into::into).collect(), ..ColumnSpec::new(name, kind) }
    }

    /// Whether a method may read the column.
    pub fn is_used(&self) -> bool {
        self.role != Role::Ignore && !self.kind.is_opaque()
    }

    /// Whether missing cells in the column are to be filled.
    pub fn is_filled(&self) -> bool {
        self.role == Role::Fill && !self.kind.is_opaque()
    }
}

/// The columns of a table, in order. Names are unique.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<ColumnSpec>", into = "Vec<ColumnSpec>")]
pub struct Schema {
    columns: Vec<ColumnSpec>,
}

impl Schema {
    /// A schema of these columns.
    ///
    /// # Errors
    /// When two columns have the same name, or bounds are not finite or the wrong way round.
    pub fn new(columns: Vec<ColumnSpec>) -> Result<Schema> {
        let mut seen = std::collections::HashMap::with_capacity(columns.len());
        for (at, column) in columns.iter().enumerate() {
            if let Some(first) = seen.insert(column.name.as_str(), at) {
                return Err(Error::DuplicateColumn { column: column.name.clone(), first: first + 1, second: at + 1 });
            }
            for bounds in [column.bounds, column.range].into_iter().flatten() {
                if !bounds.low.is_finite() || !bounds.high.is_finite() || bounds.low > bounds.high {
                    return Err(Error::Request {
                        what: format!("bounds of column `{}`", column.name),
                        expected: "two finite numbers, the smaller one first".to_owned(),
                        got: format!("{}..{}", bounds.low, bounds.high),
                    });
                }
            }
        }
        Ok(Schema { columns })
    }

    /// The columns.
    pub fn columns(&self) -> &[ColumnSpec] {
        &self.columns
    }

    /// How many columns there are.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there is no column.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The index of the column of that name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// The index of the column of that name, or an error that suggests the nearest name.
    ///
    /// # Errors
    /// When there is no such column.
    pub fn find(&self, name: &str) -> Result<usize> {
        self.position(name).ok_or_else(|| Error::UnknownColumn {
            column: name.to_owned(),
            nearest: crate::error::nearest(name, self.columns.iter().map(|c| c.name.as_str())),
        })
    }

    /// The same schema with one column changed.
    pub fn column_mut(&mut self, at: usize) -> &mut ColumnSpec {
        &mut self.columns[at]
    }
}

impl TryFrom<Vec<ColumnSpec>> for Schema {
    type Error = Error;
    fn try_from(columns: Vec<ColumnSpec>) -> Result<Schema> {
        Schema::new(columns)
    }
}

impl From<Schema> for Vec<ColumnSpec> {
    fn from(schema: Schema) -> Vec<ColumnSpec> {
        schema.columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hint::Hint;

    #[test]
    fn names_are_unique() {
        let twice = vec![ColumnSpec::new("a", Kind::Integer), ColumnSpec::new("a", Kind::Text)];
        let error = Schema::new(twice).unwrap_err();
        assert_eq!(error.to_string(), "column name `a` stands twice: columns 1 and 2");
    }

    #[test]
    fn bounds_the_wrong_way_round_are_refused() {
        let mut age = ColumnSpec::new("age", Kind::Integer);
        age.bounds = Some(Bounds { low: 120.0, high: 0.0 });
        let error = Schema::new(vec![age]).unwrap_err();
        assert!(error.to_string().starts_with("bounds of column `age`: expected two finite numbers"), "{error}");
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest() {
        let schema = Schema::new(vec![ColumnSpec::new("weight", Kind::Continuous)]).unwrap();
        let hint = schema.find("wieght").unwrap_err().hint();
        assert_eq!(hint, Some(Hint::DidYouMean { name: "weight".to_owned() }));
    }

    #[test]
    fn a_schema_survives_json() {
        let mut schema = Schema::new(vec![
            ColumnSpec::new("age", Kind::Integer),
            ColumnSpec::with_levels("sex", Kind::Categorical, ["f", "m"]),
        ])
        .unwrap();
        schema.column_mut(0).bounds = Some(Bounds { low: 0.0, high: 120.0 });
        let json = serde_json::to_string(&schema).unwrap();
        assert_eq!(serde_json::from_str::<Schema>(&json).unwrap(), schema);
    }
}
