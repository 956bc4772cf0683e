//! The report of an imputation; one file a section.

mod accuracy;
mod cells;
mod certainty;
mod missing;
mod missingness;
mod values;

use crate::facts::{ImputeFacts, Missing};
use crate::gather::LEVEL;
use crate::html::{Html, html};
use crate::page::{Section, events, page, settings, tiles};
use crate::words::{count, named, percent, thousands};

/// Characters of a column's name, and of a level's.
const NAME: usize = 60;
const LEVEL_NAME: usize = 28;
/// Columns that are named in a sentence.
const NAMED: usize = 8;

impl ImputeFacts {
    /// The report as one HTML file that loads nothing.
    pub fn page(&self) -> String {
        let sections = vec![
            Section::new(
                "missing",
                "What was missing",
                missing::section(&self.missing, &self.together, &self.work.suspects),
            ),
            Section::new("why", "What goes together with missing cells", missingness::section(&self.not_at_random)),
            Section::new("filled", "Imputed values", values::section(self)),
            Section::new("trust", "Accuracy", accuracy::section(self)),
            Section::new("rows", "Least certain rows", certainty::section(self)),
            Section::new("cells", "Filled cells", cells::section(self)),
            settings(&self.work),
            events(&self.work),
        ];
        page("Imputation report", &self.work, self.lead(), sections)
    }

    fn lead(&self) -> Html {
        let Missing { rows, columns, cells, incomplete_rows, .. } = self.missing;
        let left = cells - self.filled;
        let mut figures = vec![
            ("Rows", thousands(rows), String::new()),
            ("Columns", thousands(columns), String::new()),
            ("Cells missing", thousands(cells), percent(cells, rows * columns)),
            ("Incomplete rows", thousands(incomplete_rows), percent(incomplete_rows, rows)),
            ("Cells filled", thousands(self.filled), String::new()),
        ];
        if left > 0 {
            figures.push(("Left missing", thousands(left), String::new()));
        }
        html!("{}<p class=\"lead\">{}</p>\n", tiles(&figures), self.verdict())
    }

    /// The report in a few sentences: what is not known comes before anything good.
    fn verdict(&self) -> String {
        if self.missing.cells == 0 {
            return "Nothing was missing: the table is unchanged.".to_owned();
        }
        let of = &self.accuracy;
        let mut sentences = Vec::new();
        if of.columns == 0 && self.filled > 0 {
            sentences
                .push("How accurate the filled values are is not known: this method holds no cells out.".to_owned());
        } else if of.unknown_cells > 0 {
            sentences.push(format!(
                "How accurate {} of the {} filled cells ({}) are is not known: {} had too few observed values to hold any \
                 out.",
                thousands(of.unknown_cells),
                thousands(self.filled),
                percent(of.unknown_cells, self.filled),
                named(of.unknown.iter().map(|(name, _)| name.as_str()), of.unknown_columns, NAMED)
            ));
        }
        sentences.push(match self.missing.cells - self.filled {
            0 => "Every missing cell was filled, and every other cell is unchanged.".to_owned(),
            1 => "1 cell was left missing, for a reason that is listed below.".to_owned(),
            left => format!("{} were left missing, for reasons that are listed below.", count(left, "cell")),
        });
        sentences.extend(of.ratio.map(|ratio| {
            let which = if of.unknown_cells > 0 { "the other filled columns" } else { "the filled columns" };
            let error = match 100.0 * (1.0 - ratio) {
                less if less >= 1.0 => format!("{less:.0} % smaller than"),
                _ => "no smaller than".to_owned(),
            };
            let poor = match of.poor_columns {
                0 => String::new(),
                1 => format!("; in 1 of {} no model beats it", count(of.known_columns, "column")),
                n => format!("; in {} of {} no model beats it", thousands(n), count(of.known_columns, "column")),
            };
            format!(
                "On held-out cells of {which}, the validation error is {error} that of the baseline (median or mode), each \
                 column weighted by its filled cells{poor}."
            )
        }));
        sentences.join(" ")
    }
}

/// The probability of the intervals, in percent.
fn interval_percent() -> String {
    format!("{:.0}", 100.0 * LEVEL)
}

#[cfg(test)]
mod tests {
    use crate::facts::{ImputeFacts, Work};
    use crate::gather::Imputed;
    use m3impute_core::{Column, ColumnScore, ColumnSpec, Imputation, Kind, Measure, Schema, Table, ValidationScore};

    /// Three columns of numbers: `few` has ten missing cells, `half` has thirty, `whole` none.
    fn facts(scores: Vec<ColumnScore>) -> ImputeFacts {
        let schema = Schema::new(["few", "half", "whole"].map(|n| ColumnSpec::new(n, Kind::Continuous)).to_vec());
        let column = |missing: u32| Column::numbers((0..60).map(move |i| (i >= missing).then_some(f64::from(i))));
        let table = Table::new(schema.unwrap(), vec![column(10), column(30), column(0)]).unwrap();
        let mut filled = table.clone();
        (0..10).for_each(|i| filled.fill(i, 0, 1.0));
        (0..30).for_each(|i| filled.fill(i, 1, 1.0));
        let imputation = Imputation { table: filled, fallbacks: Vec::new(), notes: Vec::new(), scores };
        let work = Work::default();
        let explanations = &[];
        ImputeFacts::gather(Imputed { table: &table, imputation: &imputation, distributions: None, explanations, work })
    }

    fn score(column: &str, error: Option<f64>) -> ColumnScore {
        let validation = ValidationScore { cells: 40, error, baseline: Some(1.0), ..ValidationScore::default() };
        let (kind, measure) = (Kind::Continuous, Measure::AbsoluteError);
        ColumnScore { column: column.to_owned(), kind, measure, validation }
    }

    #[test]
    fn a_headline_counts_filled_cells_and_no_complete_column() {
        let facts = facts(vec![score("few", Some(1.0)), score("half", Some(0.6)), score("whole", Some(0.01))]);
        // (10 * 1.0 + 30 * 0.6) / 40 = 0.7.
        assert_eq!(
            facts.verdict(),
            "Every missing cell was filled, and every other cell is unchanged. On held-out cells of the filled columns, the \
             validation error is 30 % smaller than that of the baseline (median or mode), each column weighted by its \
             filled cells; in 1 of 2 columns no model beats it."
        );
        let page = facts.page();
        let place = |text: &str| page.find(text).unwrap();
        assert!(
            place("Columns without missing cells; for new rows (1)") > place("Validation errors of filled columns")
        );
    }

    #[test]
    fn what_is_not_known_is_said_before_anything_good() {
        let facts = |scores| facts(scores).verdict();
        let text = facts(vec![score("few", Some(0.5)), score("half", None), score("whole", Some(0.01))]);
        assert!(
            text.starts_with(
                "How accurate 30 of the 40 filled cells (75.0 %) are is not known: “half” had too few observed values to \
                 hold any out. Every missing cell was filled"
            ) && text.contains("of the other filled columns, the validation error is 50 % smaller"),
            "{text}"
        );
        assert!(facts(Vec::new()).starts_with("How accurate the filled values are is not known"));
        assert!(!facts(vec![score("whole", Some(0.01))]).contains("smaller"), "nothing is known of filled columns");
    }
}
