//! Shifts of imputed values, to see how far unobserved values must differ before a conclusion changes (sensitivity to
//! values that are missing not at random, also called delta adjustment).
//!
//! A [`Shift`] is what is asked of a column; [`Shifts`] are shifts that were checked against the columns of a table or of
//! a model. They are applied once, after imputation: observed values stay, and other columns are not filled again.

use crate::distributions::{Distributions, PredictiveDistributions};
use crate::encode::{Encoder, Finish, deviation, within};
use crate::error::{Error, Result};
use crate::hint::Hint;
use crate::schema::{ColumnSpec, Kind, Schema};
use crate::table::Table;

/// By how much imputed values are shifted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// By a number in the column's own units.
    Plain(f64),
    /// By a percentage of the imputed value.
    Percent(f64),
    /// By a multiple of the standard deviation of the column's observed values.
    Deviations(f64),
    /// By a duration, for timestamps.
    Duration {
        /// How many.
        count: f64,
        /// Of this unit: one of [`Amount::UNITS`].
        unit: &'static str,
    },
}

impl Amount {
    /// The units of durations, and how many seconds each has.
    pub const UNITS: [(&'static str, f64); 5] =
        [("min", 60.0), ("s", 1.0), ("h", 3_600.0), ("d", 86_400.0), ("w", 604_800.0)];

    /// The amount that a text stands for.
    ///
    /// ```
    /// use m3impute_core::Amount;
    /// assert_eq!(Amount::parse("+10%"), Some(Amount::Percent(10.0)));
    /// assert_eq!(Amount::parse("-0.5sd"), Some(Amount::Deviations(-0.5)));
    /// assert_eq!(Amount::parse("+5"), Some(Amount::Plain(5.0)));
    /// assert_eq!(Amount::parse("3d"), Some(Amount::Duration { count: 3.0, unit: "d" }));
    /// assert_eq!(Amount::parse("a lot"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Amount> {
        let text = text.trim();
        let number = |unit: &str| {
            let digits = text.strip_suffix(unit)?.trim_end();
            digits.parse::<f64>().ok().filter(|number| number.is_finite())
        };
        // `sd` ends like a number of days, and like none of seconds.
        let duration =
            || Amount::UNITS.iter().find_map(|&(unit, _)| number(unit).map(|count| Amount::Duration { count, unit }));
        number("%")
            .map(Amount::Percent)
            .or_else(|| number("sd").map(Amount::Deviations))
            .or_else(|| number("").map(Amount::Plain))
            .or_else(duration)
    }
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Amount::Plain(number) => write!(f, "{number:+}"),
            Amount::Percent(number) => write!(f, "{number:+}%"),
            Amount::Deviations(number) => write!(f, "{number:+}sd"),
            Amount::Duration { count, unit } => write!(f, "{count:+}{unit}"),
        }
    }
}

/// A shift of the imputed values of one column.
#[derive(Clone, Debug, PartialEq)]
pub struct Shift {
    /// The column.
    pub column: String,
    /// By how much.
    pub amount: Amount,
}

impl Shift {
    /// The shift of a column by what a text stands for.
    ///
    /// ```
    /// use m3impute_core::{Amount, Shift};
    /// assert_eq!(Shift::parse("income", "+10%")?.amount, Amount::Percent(10.0));
    /// assert!(Shift::parse("income", "10 euros").unwrap_err().to_string().ends_with("got `10 euros`"));
    /// # Ok::<(), m3impute_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the text is no amount, or makes values change their sign.
    pub fn parse(column: &str, text: &str) -> Result<Shift> {
        let amount = Amount::parse(text).ok_or_else(|| {
            refused(column, "an amount such as `+10%`, `-0.5sd`, `+5` or, for timestamps, `+3d`", text, None)
        })?;
        match amount {
            Amount::Percent(percent) if percent < -100.0 => {
                Err(refused(column, "at least `-100%`, which makes every imputed value 0", text, None))
            }
            _ => Ok(Shift { column: column.to_owned(), amount }),
        }
    }
}

fn refused(column: &str, expected: impl Into<String>, got: impl Into<String>, hint: Option<Hint>) -> Error {
    let (expected, got, hint) = (expected.into(), got.into(), hint.map(Box::new));
    Error::Shift { column: column.to_owned(), expected, got, hint }
}

/// A shift as a function of values, with what it must keep to.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    shift: Shift,
    factor: f64,
    offset: f64,
    low: f64,
    high: f64,
    /// Shifted values are multiples of this; 0 where they are not rounded.
    step: f64,
}

impl Line {
    /// `spread` is the standard deviation of the observed values, where it is known.
    fn of(shift: &Shift, spec: &ColumnSpec, spread: impl FnOnce() -> Result<f64>, round: bool) -> Result<Line> {
        let (column, is_timestamp) = (&shift.column, spec.kind == Kind::Datetime);
        if !spec.kind.is_number() {
            let expected = match spec.kind.has_levels() {
                true => "a column of numbers or timestamps (levels have no distance)",
                false => "a column of numbers or timestamps (others are never filled)",
            };
            let are_numbers = !spec.levels.is_empty() && spec.levels.iter().all(|level| level.parse::<f64>().is_ok());
            let kind = match spec.kind {
                Kind::Identifier => Some(Kind::Integer),
                Kind::Categorical | Kind::Ordered if are_numbers => Some(Kind::Continuous),
                _ => None,
            };
            let hint = kind.map(|kind| Hint::OverrideKind { column: column.clone(), kind });
            return Err(refused(column, expected, spec.kind.name(), hint));
        }
        if !spec.is_filled() {
            return Err(refused(column, "a column that is filled", "one that is left as it is", None));
        }
        let (factor, offset) = match shift.amount {
            Amount::Deviations(count) => (1.0, count * spread()?),
            Amount::Duration { count, unit } if is_timestamp => {
                let seconds = Amount::UNITS.iter().find(|(name, _)| *name == unit).map_or(1.0, |(_, seconds)| *seconds);
                (1.0, count * seconds)
            }
            amount if is_timestamp => {
                return Err(refused(
                    column,
                    "a duration such as `+3d`, or `+0.5sd`, for timestamps",
                    amount.to_string(),
                    None,
                ));
            }
            amount @ Amount::Duration { .. } => {
                return Err(refused(column, "`+10%`, `-0.5sd` or `+5`, for numbers", amount.to_string(), None));
            }
            Amount::Percent(percent) => (1.0 + percent / 100.0, 0.0),
            Amount::Plain(number) => (1.0, number),
        };
        let (low, high) = spec.bounds.map_or((f64::NEG_INFINITY, f64::INFINITY), |b| (b.low, b.high));
        let step = if round { spec.step } else { 0.0 };
        Ok(Line { shift: shift.clone(), factor, offset, low, high, step })
    }

    /// The shifted value, and whether it stopped at a bound. Larger values stay larger, or become equal.
    fn shifted(&self, value: f64) -> (f64, bool) {
        let moved = self.factor * value + self.offset;
        // What no float can hold stops at the largest: a filled cell is finite.
        let (low, high) = (self.low.max(f64::MIN), self.high.min(f64::MAX));
        (within(moved, low, high, self.step), moved < low || moved > high)
    }
}

/// What a shift did to a column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shifted {
    /// The column.
    pub column: String,
    /// By how much it was shifted.
    pub by: String,
    /// How many imputed values were shifted.
    pub cells: usize,
    /// How many of them stopped at the bounds of the column.
    pub stopped: usize,
}

impl Shifted {
    /// Adds what the same shifts did to other rows or draws.
    ///
    /// ```
    /// use m3impute_core::Shifted;
    /// let one = Shifted { column: "age".to_owned(), by: "+5".to_owned(), cells: 3, stopped: 1 };
    /// let mut all = Vec::new();
    /// Shifted::add(&mut all, vec![one.clone()]);
    /// Shifted::add(&mut all, vec![one]);
    /// assert_eq!((all.len(), all[0].cells, all[0].stopped), (1, 6, 2));
    /// ```
    pub fn add(all: &mut Vec<Shifted>, more: Vec<Shifted>) {
        for one in more {
            match all.iter_mut().find(|same| same.column == one.column) {
                Some(same) => (same.cells, same.stopped) = (same.cells + one.cells, same.stopped + one.stopped),
                None => all.push(one),
            }
        }
    }

    /// What was done, as a sentence; `tables` is the number of completed tables in which it was done.
    ///
    /// ```
    /// let age = m3impute_core::Shifted { column: "age".to_owned(), by: "+10%".to_owned(), cells: 177, stopped: 0 };
    /// assert_eq!(age.note(1), "shifted 177 imputed values of `age` by +10%");
    /// ```
    pub fn note(&self, tables: usize) -> String {
        let tables = tables.max(1);
        let cells = self.cells / tables;
        let values = if cells == 1 { "value" } else { "values" };
        let each = if tables == 1 { String::new() } else { format!(" in each of {tables} tables") };
        format!("shifted {cells} imputed {values} of `{}` by {}{each}", self.column, self.by)
    }

    /// What the user may not expect, where there is something: values that stopped at bounds, or nothing to shift.
    pub fn warning(&self) -> Option<String> {
        match (self.cells, self.stopped) {
            (0, _) => Some("no missing cell was filled, so its shift changes nothing".to_owned()),
            (_, 0) => None,
            (1, _) => Some("the shifted value stopped at the bounds".to_owned()),
            (cells, stopped) => Some(format!("{stopped} of {cells} shifted values stopped at the bounds")),
        }
    }
}

/// Shifts that were checked against the columns they are for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shifts {
    lines: Vec<Line>,
}

impl Shifts {
    /// Shifts of a table that is to be filled; deviations are those of its observed values.
    ///
    /// ```
    /// use m3impute_core::{Column, ColumnSpec, Kind, Schema, Shift, Shifts, Table};
    /// let schema = Schema::new(vec![ColumnSpec::new("age", Kind::Integer)])?;
    /// let table = Table::new(schema, vec![Column::numbers([Some(31.0), None])])?;
    /// let shifts = Shifts::of_table(&[Shift::parse("age", "+10%")?], &table, true)?;
    /// let mut filled = table.clone();
    /// filled.fill(1, 0, 31.0);
    /// assert_eq!(shifts.apply(&table, &mut filled)[0].cells, 1);
    /// assert_eq!((filled.number(0, 0), filled.number(1, 0)), (31.0, 34.0));
    /// # Ok::<(), m3impute_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a column is not there, is shifted twice, or cannot be shifted so.
    pub fn of_table(asked: &[Shift], table: &Table, round: bool) -> Result<Shifts> {
        Shifts::of(asked, table.schema(), round, |at, shift| {
            let observed = (0..table.rows()).map(|i| table.number(i, at)).filter(|v| !v.is_nan());
            let hint = Some(Hint::ShiftByNumber);
            deviation(observed).filter(|d| *d > 0.0).ok_or_else(|| {
                refused(&shift.column, "two different observed values at least", "a column without a deviation", hint)
            })
        })
    }

    /// Shifts of rows that a model fills; deviations are those of the values that were observed when it was fitted, so
    /// that a row does not depend on the others.
    ///
    /// # Errors
    /// When a column is not there, is shifted twice, or cannot be shifted so.
    pub fn of_model(asked: &[Shift], encoder: &Encoder, finish: Finish) -> Result<Shifts> {
        Shifts::of(asked, encoder.schema(), finish.round, |at, shift| {
            encoder.deviation(at).filter(|d| *d > 0.0).ok_or_else(|| {
                let expected = "a standard deviation in the model file";
                refused(&shift.column, expected, "a model without one for this column", Some(Hint::ShiftByNumber))
            })
        })
    }

    fn of(
        asked: &[Shift],
        schema: &Schema,
        round: bool,
        spread: impl Fn(usize, &Shift) -> Result<f64>,
    ) -> Result<Shifts> {
        let mut lines: Vec<Line> = Vec::with_capacity(asked.len());
        for shift in asked {
            let at = schema.find(&shift.column)?;
            if let Some(other) = lines.iter().find(|line| line.shift.column == shift.column) {
                let got = format!("{} and {}", other.shift.amount, shift.amount);
                return Err(refused(&shift.column, "one amount", got, None));
            }
            lines.push(Line::of(shift, &schema.columns()[at], || spread(at, shift), round)?);
        }
        Ok(Shifts { lines })
    }

    /// Whether nothing is shifted.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Shifts the cells that are filled in `filled` and missing in `before`; columns are found by name. Returns what was
    /// done to each column.
    pub fn apply(&self, before: &Table, filled: &mut Table) -> Vec<Shifted> {
        self.lines.iter().map(|line| line.apply(before, filled)).collect()
    }

    /// Shifts the predictive distributions of missing cells of `table`, and with them intervals.
    pub fn apply_to_distributions(&self, table: &Table, distributions: &mut PredictiveDistributions) {
        for line in &self.lines {
            let Some(at) = table.schema().position(&line.shift.column) else { continue };
            let Some(of) = distributions.columns.iter_mut().find(|c| c.column == at) else { continue };
            let shift = |value: &mut f64| *value = line.shifted(*value).0;
            match &mut of.of {
                Distributions::Quantiles(cells) => cells.iter_mut().flatten().for_each(shift),
                Distributions::Shares { values, .. } => values.iter_mut().for_each(shift),
            }
        }
    }
}

impl Line {
    fn apply(&self, before: &Table, filled: &mut Table) -> Shifted {
        let Shift { column, amount } = &self.shift;
        let mut done = Shifted { column: column.clone(), by: amount.to_string(), cells: 0, stopped: 0 };
        let Some(at) = before.schema().position(column) else { return done };
        for row in 0..before.rows() {
            if !before.observed().get(row, at) && filled.observed().get(row, at) {
                let (value, stopped) = self.shifted(filled.number(row, at));
                filled.fill(row, at, value);
                done.cells += 1;
                done.stopped += usize::from(stopped);
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::{ColumnDistributions, QUANTILE_LEVELS};
    use crate::encode::{Constants, Encoding, Layout, Scale};
    use crate::schema::{Bounds, Role};
    use crate::table::Column;

    /// An integer with the observed values 10 and 14, a number, a timestamp, a level, and a number that is left alone.
    fn table() -> Table {
        let mut left = ColumnSpec::new("left", Kind::Continuous);
        left.role = Role::Predict;
        let schema = Schema::new(vec![
            ColumnSpec::new("age", Kind::Integer),
            ColumnSpec::new("income", Kind::Continuous),
            ColumnSpec::new("when", Kind::Datetime),
            ColumnSpec::with_levels("sex", Kind::Categorical, ["f", "m"]),
            left,
        ])
        .unwrap();
        let numbers = |a, b| Column::numbers([Some(a), Some(b), None]);
        let columns = vec![
            numbers(10.0, 14.0),
            numbers(-2.0, 2.0),
            numbers(0.0, 86_400.0),
            Column::codes([Some(0), Some(1), None]),
            numbers(1.0, 2.0),
        ];
        Table::new(schema, columns).unwrap()
    }

    /// The table with `value` in the missing cell of a column, shifted.
    fn shifted(table: &Table, column: &str, amount: &str, value: f64) -> Result<(f64, Shifted)> {
        let shifts = Shifts::of_table(&[Shift::parse(column, amount)?], table, true)?;
        let (mut filled, at) = (table.clone(), table.schema().find(column)?);
        filled.fill(2, at, value);
        let done = shifts.apply(table, &mut filled).remove(0);
        assert_eq!((filled.number(0, at), filled.number(1, at)), (table.number(0, at), table.number(1, at)));
        Ok((filled.number(2, at), done))
    }

    #[test]
    fn only_imputed_values_are_shifted_by_each_sort_of_amount() {
        let of = |column, amount, value| shifted(&table(), column, amount, value).unwrap().0;
        assert_eq!(of("income", "+5", 1.5), 6.5);
        assert_eq!(of("income", "+10%", 1.5), 1.5 * 1.1);
        assert_eq!(of("income", "-100%", 1.5), 0.0);
        // The deviation of -2 and 2 is the square root of 8.
        assert_eq!(of("income", "-0.5sd", 1.5), 1.5 - 0.5 * 8.0_f64.sqrt());
        assert_eq!(of("when", "+3d", 10.0), 10.0 + 3.0 * 86_400.0);
        assert_eq!(of("when", "-90min", 0.0), -5_400.0);
        assert!(of("when", "+1sd", 0.0) > 60_000.0);
    }

    #[test]
    fn integers_stay_whole_and_the_observed_range_is_no_limit() {
        assert_eq!(shifted(&table(), "age", "+25%", 14.0).unwrap().0, 18.0);
        assert_eq!(shifted(&table(), "age", "+0.3", 14.0).unwrap().0, 14.0);
        let unrounded = Shifts::of_table(&[Shift::parse("age", "+0.3").unwrap()], &table(), false).unwrap();
        let mut filled = table();
        filled.fill(2, 0, 14.0);
        unrounded.apply(&table(), &mut filled);
        assert_eq!(filled.number(2, 0), 14.3);
    }

    #[test]
    fn bounds_hold_and_the_cells_that_stop_there_are_counted() {
        let table = table();
        let mut schema = table.schema().clone();
        schema.column_mut(0).bounds = Some(Bounds { low: 0.5, high: 15.5 });
        let bounded = table.with_schema(schema).unwrap();
        let (value, done) = shifted(&bounded, "age", "+5", 14.0).unwrap();
        assert_eq!((value, done.cells, done.stopped), (15.0, 1, 1));
        assert_eq!(done.warning().unwrap(), "the shifted value stopped at the bounds");
        let (value, done) = shifted(&bounded, "age", "+1", 14.0).unwrap();
        assert_eq!((value, done.stopped, done.warning()), (15.0, 0, None));
    }

    #[test]
    fn what_is_shifted_beyond_all_numbers_stops_at_the_largest() {
        let (value, done) = shifted(&table(), "income", "+1e308", 1.7e308).unwrap();
        assert_eq!((value, done.stopped), (f64::MAX, 1));
    }

    #[test]
    fn distributions_move_with_their_points() {
        let numbers = |column, of| ColumnDistributions {
            column,
            levels: Vec::new(),
            unordered: false,
            step: 0.0,
            rows: vec![2],
            of,
        };
        let quantiles = Distributions::Quantiles(vec![QUANTILE_LEVELS]);
        let shares = Distributions::Shares { values: vec![10.0, 14.0], shares: vec![0.5, 0.5] };
        let mut distributions = PredictiveDistributions { columns: vec![numbers(0, shares), numbers(1, quantiles)] };
        let asked = [Shift::parse("income", "+2").unwrap(), Shift::parse("age", "-50%").unwrap()];
        Shifts::of_table(&asked, &table(), true).unwrap().apply_to_distributions(&table(), &mut distributions);
        assert_eq!(distributions.columns[0].of.quantile(0, 0.9), 7.0);
        assert_eq!(distributions.columns[1].of, Distributions::Quantiles(vec![QUANTILE_LEVELS.map(|q| q + 2.0)]));
    }

    #[test]
    fn a_model_knows_the_deviation_of_what_it_was_fitted_to() {
        let encoding = Encoding { layout: Layout::Codes, scale: Scale::Unit, constants: Constants::Leave };
        let encoder = Encoder::fit(&table(), encoding).unwrap();
        let asked = [Shift::parse("income", "+1sd").unwrap()];
        let of_model = Shifts::of_model(&asked, &encoder, Finish::default()).unwrap();
        assert_eq!(of_model, Shifts::of_table(&asked, &table(), true).unwrap());
    }

    #[test]
    fn an_older_model_without_deviations_asks_for_the_number() {
        let encoding = Encoding { layout: Layout::Codes, scale: Scale::Unit, constants: Constants::Leave };
        let mut json = serde_json::to_value(Encoder::fit(&table(), encoding).unwrap()).unwrap();
        for baseline in json["baselines"].as_array_mut().unwrap() {
            baseline.as_object_mut().unwrap().remove("deviation");
        }
        let encoder: Encoder = serde_json::from_value(json).unwrap();
        let shift = |amount| Shifts::of_model(&[Shift::parse("income", amount).unwrap()], &encoder, Finish::default());
        let error = shift("+1sd").unwrap_err();
        assert_eq!(error.hint(), Some(Hint::ShiftByNumber));
        assert!(error.to_string().contains("expected a standard deviation in the model file"), "{error}");
        assert!(shift("+3").is_ok());
    }

    #[test]
    fn what_cannot_be_shifted_says_why() {
        let message = |column: &str, amount: &str| match shifted(&table(), column, amount, 1.0) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        let levels = "shift of column `sex`: expected a column of numbers or timestamps (levels have no distance), \
                      got `categorical`";
        assert_eq!(message("sex", "+1"), levels);
        assert_eq!(message("ages", "+1"), "unknown column `ages`");
        assert!(
            message("when", "+10%")
                .ends_with("expected a duration such as `+3d`, or `+0.5sd`, for timestamps, got `+10%`")
        );
        assert!(message("income", "+3d").ends_with("expected `+10%`, `-0.5sd` or `+5`, for numbers, got `+3d`"));
        assert!(message("left", "+1").ends_with("expected a column that is filled, got `one that is left as it is`"));
        assert!(message("income", "-150%").contains("at least `-100%`"));
        for wrong in ["", "%", "ten", "+10 percent", "inf", "nan%", "+-3", "3 dd"] {
            assert!(message("income", wrong).contains("expected an amount such as `+10%`"), "{wrong}");
        }
        let twice = ["+1", "+2"].map(|amount| Shift::parse("age", amount).unwrap());
        let error = Shifts::of_table(&twice, &table(), true).unwrap_err();
        assert!(error.to_string().ends_with("expected one amount, got `+1 and +2`"), "{error}");
    }

    #[test]
    fn an_amount_is_written_as_it_was_given() {
        for text in ["+10%", "-0.5sd", "+5", "+3d", "-90min", "+0"] {
            assert_eq!(Amount::parse(text).unwrap().to_string(), text);
        }
    }
}
