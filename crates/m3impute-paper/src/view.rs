//! Rows as the paper's tables, the published figures beside ours.

use crate::published::published;
use crate::rows::{Row, Scale, Way};
use crate::studies::{Question, Setting, Study, epochs_apart};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A table of results.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Its title.
    pub title: String,
    /// The unit of its figures.
    pub unit: String,
    /// The names of its columns: tables, with their masks where a study has several.
    pub columns: Vec<String>,
    /// Its lines.
    pub lines: Vec<(String, Vec<Cell>)>,
    /// Remarks on the figures.
    pub notes: Vec<String>,
}

/// One figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The mean over seeds.
    pub mean: Option<f64>,
    /// The standard deviation over seeds, where there are several.
    pub deviation: Option<f64>,
    /// The published figure.
    pub published: Option<f64>,
    /// Whether a method failed here.
    pub failed: bool,
    /// The seconds of filling, with learning where that is apart; the geometric mean over seeds.
    pub seconds: Option<f64>,
}

/// The rows of a study as a table. Rows of another scaling or another time limit are left out.
pub fn view(
    study: &Study,
    rows: &[Row],
    tables: &[String],
    settings: &[Setting],
    scale: Scale,
    limit: Option<f64>,
) -> View {
    let of = |setting: &Setting, table: &str, mask: &str| -> Vec<&Row> {
        let here = |row: &&Row| (row.table.as_str(), row.mask.as_str()) == (table, mask);
        setting.made(rows.iter().filter(|row| (row.scale, row.max_seconds) == (scale, limit)).filter(here))
    };
    let has_rows = |s: &Setting, table: &str| study.masks.iter().any(|mask| !of(s, table, mask).is_empty());
    // Tables and settings without rows are left out.
    let tables = measured(tables, |t| settings.iter().any(|s| has_rows(s, t)));
    let settings = measured(settings, |s| tables.iter().any(|t| has_rows(s, t)));
    let places: Vec<(&String, &str)> =
        tables.iter().flat_map(|&table| study.masks.iter().map(move |mask| (table, *mask))).collect();
    let several = study.masks.len() > 1;
    let columns: Vec<String> =
        places.iter().map(|(t, m)| if several { format!("{t} {m}") } else { (*t).clone() }).collect();
    let mut made = Vec::new();
    let mut trained = Vec::new();
    let lines: Vec<(String, Vec<Cell>)> = settings
        .iter()
        .map(|setting| {
            let cells = places.iter().zip(&columns).map(|(&(table, mask), column)| {
                let here = of(setting, table, mask);
                if here.iter().any(|row| row.mask_source == "made") && !made.contains(&mask) {
                    made.push(mask);
                }
                if let Some(epochs) = here.first().and_then(|row| epochs_apart(&row.settings).1) {
                    trained.push((epochs, setting.name.as_str(), column.as_str()));
                }
                let figures: Vec<f64> = here.iter().filter_map(|row| figure(study.question, row)).collect();
                let whole = here.iter().filter(|row| row.mae10.is_some());
                let logs: Vec<f64> =
                    whole.map(|row| (row.seconds + row.fill_seconds.unwrap_or(0.0)).max(1e-4).ln()).collect();
                Cell {
                    failed: figures.is_empty() && here.iter().any(|row| !row.error.is_empty()),
                    published: published(study, setting.published_as(), table),
                    seconds: (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp()),
                    ..Cell::of(&figures)
                }
            });
            (setting.name.clone(), cells.collect())
        })
        .collect();
    let mut notes: Vec<String> = shortened(&trained).into_iter().collect();
    if !made.is_empty() {
        notes.push(format!(
            "There is no published mask for {}: its missing cells are made by `m3impute ampute`, seed 0.",
            made.join(", ")
        ));
    }
    if scale == Scale::Observed {
        notes.push("Methods scale columns by their observed cells; the published figures are of columns scaled by the complete ones.".to_owned());
    }
    if let Some(limit) = limit {
        notes.push(format!("Every method had at most {limit} s on each table."));
    }
    let unit = match study.question {
        Question::Labels => "mean absolute error of the label, in its own units",
        Question::Seconds => "seconds of imputation; for methods that fit first, without the fit",
        _ => "mean absolute error times 10, columns scaled to 0..1",
    };
    View { title: study.title.to_owned(), unit: unit.to_owned(), columns, lines, notes }
}

/// A note about networks that were trained for fewer epochs than published: epochs, setting, column.
fn shortened(trained: &[(u64, &str, &str)]) -> Option<String> {
    const PUBLISHED: &str = "the published figures are of 20,000 (GRAPE) and 40,000 (M3-Impute)";
    let mut by_epochs: BTreeMap<u64, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for &(epochs, who, column) in trained {
        by_epochs.entry(epochs).or_default().entry(who).or_default().push(column);
    }
    let words = match by_epochs.len() {
        0 => return None,
        1 => format!("for {} epochs", trained[0].0),
        _ => {
            let on = |(who, columns): (&&str, &Vec<&str>)| format!("{who} on {}", columns.join(", "));
            let of = |(epochs, all): (&u64, &BTreeMap<_, _>)| {
                format!("for {epochs} epochs {}", all.iter().map(on).collect::<Vec<_>>().join(", "))
            };
            by_epochs.iter().map(of).collect::<Vec<_>>().join("; ")
        }
    };
    Some(format!("The graph networks as published were trained {words}; {PUBLISHED}."))
}

/// Those that are there; all where none is.
fn measured<T>(all: &[T], there: impl Fn(&T) -> bool) -> Vec<&T> {
    let some: Vec<&T> = all.iter().filter(|t| there(t)).collect();
    if some.is_empty() { all.iter().collect() } else { some }
}

fn figure(question: Question, row: &Row) -> Option<f64> {
    match question {
        Question::Labels => row.label_mae,
        Question::Seconds => match row.way {
            Way::Transform => row.fill_seconds,
            Way::Impute => row.mae10.map(|_| row.seconds),
        },
        _ => row.mae10,
    }
}

impl Cell {
    fn of(figures: &[f64]) -> Cell {
        let n = figures.len() as f64;
        let mean = (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / n);
        let deviation = mean
            .filter(|_| figures.len() > 1)
            .map(|mean| (figures.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt());
        Cell { mean, deviation, ..Cell::default() }
    }

    fn text(&self, best: Option<&str>, between: &str) -> String {
        let mut text = match (self.mean, self.failed) {
            (Some(mean), _) => rounded(mean),
            (None, true) => "failed".to_owned(),
            (None, false) => "-".to_owned(),
        };
        if let Some(mark) = best {
            text = mark.replace("{}", &text);
        }
        if let Some(deviation) = self.deviation {
            let _ = write!(text, "{between}{}", rounded(deviation));
        }
        if let Some(published) = self.published {
            let _ = write!(text, " ({})", rounded(published));
        }
        text
    }
}

/// Two decimals, or more where the value is small.
fn rounded(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 0.1 => format!("{value:.2}"),
        v if v >= 0.01 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

impl View {
    /// The line that is best in a column.
    fn best(&self, column: usize) -> Option<usize> {
        let means = self.lines.iter().enumerate().filter_map(|(at, (_, cells))| Some((at, cells[column].mean?)));
        means.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
    }

    /// The mean rank of each line over the columns in which every ranked line has a figure, and how many those are. A
    /// line with a figure in fewer than half of the columns has no rank, and does not cost the others a column.
    ///
    /// ```
    /// use m3impute_paper::{Cell, View};
    /// let cell = |mean| Cell { mean: Some(mean), ..Cell::default() };
    /// let line = |name: &str, a, b| (name.to_owned(), vec![cell(a), cell(b)]);
    /// let view = View {
    ///     title: String::new(),
    ///     unit: String::new(),
    ///     columns: vec!["a".to_owned(), "b".to_owned()],
    ///     lines: vec![line("first", 1.0, 1.0), line("tied", 2.0, 1.0)],
    ///     notes: Vec::new(),
    /// };
    /// assert_eq!(view.mean_ranks(), (vec![Some(1.25), Some(1.75)], 2));
    /// ```
    pub fn mean_ranks(&self) -> (Vec<Option<f64>>, usize) {
        let figures = |l: usize| self.lines[l].1.iter().filter(|c| c.mean.is_some()).count();
        let ranked: Vec<usize> =
            (0..self.lines.len()).filter(|&l| 2 * figures(l) >= self.columns.len().max(1)).collect();
        let full: Vec<usize> = (0..self.columns.len())
            .filter(|&c| !ranked.is_empty() && ranked.iter().all(|&l| self.lines[l].1[c].mean.is_some()))
            .collect();
        let mut ranks = vec![None; self.lines.len()];
        for &line in ranked.iter().filter(|_| !full.is_empty()) {
            let rank = |&column: &usize| {
                let of = |l: usize| self.lines[l].1[column].mean.unwrap_or(f64::INFINITY);
                let below = ranked.iter().filter(|&&l| of(l) < of(line)).count();
                let same = ranked.iter().filter(|&&l| of(l) == of(line)).count();
                below as f64 + (same as f64 + 1.0) / 2.0
            };
            ranks[line] = Some(full.iter().map(rank).sum::<f64>() / full.len() as f64);
        }
        (ranks, full.len())
    }

    fn cells(&self, mark: &str, between: &str) -> Vec<Vec<String>> {
        let best: Vec<Option<usize>> = (0..self.columns.len()).map(|c| self.best(c)).collect();
        let ranks = self.mean_ranks().0;
        let line = |(at, (name, cells)): (usize, &(String, Vec<Cell>))| {
            let figures = cells.iter().zip(&best).map(|(c, best)| c.text((*best == Some(at)).then_some(mark), between));
            let rank = ranks[at].map_or_else(|| "-".to_owned(), |r| format!("{r:.1}"));
            [name.clone()].into_iter().chain(figures).chain([rank]).collect()
        };
        self.lines.iter().enumerate().map(line).collect()
    }

    fn header(&self) -> Vec<String> {
        [String::new()].into_iter().chain(self.columns.iter().cloned()).chain(["rank".to_owned()]).collect()
    }

    /// For the terminal.
    pub fn to_text(&self) -> String {
        let rows: Vec<Vec<String>> = [self.header()].into_iter().chain(self.cells("{}*", " ± ")).collect();
        let width = |c: usize| rows.iter().map(|row| row[c].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..=self.columns.len() + 1).map(width).collect();
        let mut out = format!("{}\n\n", self.title);
        for row in &rows {
            let mut line = String::new();
            for (cell, &width) in row.iter().zip(&widths) {
                let _ = write!(line, "{cell:<width$}  ");
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
        let _ = writeln!(out, "\n{} (published in brackets, * best; rank: mean over full columns)", self.unit);
        self.notes.iter().for_each(|note| out.push_str(&format!("{note}\n")));
        out
    }

    /// For a page.
    pub fn to_markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut out = format!("### {}\n\n", self.title) + &line(&self.header());
        out += &format!("| --- |{}\n", " ---: |".repeat(self.columns.len() + 1));
        self.cells("**{}**", " ± ").iter().for_each(|row| out.push_str(&line(row)));
        let _ = writeln!(
            out,
            "\n{}; published figures in brackets, the best of ours bold. Rank: the mean over columns in which every ranked line has a figure.",
            sentence(&self.unit)
        );
        self.notes.iter().for_each(|note| out.push_str(&format!("{note}\n")));
        out
    }

    /// For a paper.
    pub fn to_latex(&self) -> String {
        let line = |cells: &[String]| cells.iter().map(|c| escaped(c)).collect::<Vec<_>>().join(" & ") + " \\\\\n";
        let mut out = format!(
            "\\begin{{table}}\n\\caption{{{}: {}. Published figures in brackets.}}\n\\begin{{tabular}}{{l{}}}\n\\toprule\n",
            escaped(&self.title),
            escaped(&self.unit),
            "r".repeat(self.columns.len() + 1)
        );
        out += &line(&self.header());
        out += "\\midrule\n";
        self.cells("\u{1}{}\u{2}", " ± ").iter().for_each(|row| out.push_str(&line(row)));
        out + "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\u{1}' => out.push_str("\\textbf{"),
            '\u{2}' => out.push('}'),
            '±' => out.push_str("$\\pm$"),
            '%' | '_' | '&' | '#' | '$' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::tests::row;
    use crate::studies::study;

    fn main_view(scale: Scale) -> View {
        let main = study("main").unwrap();
        let settings = main.settings(Some(&["mean".to_owned(), "m3".to_owned()]), None).unwrap();
        let rows = [
            row("yacht", "mean", 0, 2.06),
            row("wine", "mean", 0, 0.98),
            row("yacht", "m3", 0, 1.0),
            row("yacht", "m3", 1, 1.2),
            Row { scale: Scale::Observed, ..row("wine", "m3", 0, 0.5) },
        ];
        view(main, &rows, &["yacht".to_owned(), "wine".to_owned()], &settings, scale, None)
    }

    #[test]
    fn a_table_has_means_over_seeds_with_the_published_figures_beside_them() {
        let text = main_view(Scale::Paper).to_text();
        assert!(text.contains("mean  2.06 (2.09)"), "{text}");
        assert!(text.contains("m3    1.10* ± 0.14 (1.33)  - (0.60)"), "{text}");
    }

    #[test]
    fn scalings_are_never_mixed() {
        let view = main_view(Scale::Observed);
        assert_eq!((view.columns.len(), view.lines.len()), (1, 1), "what was not measured is left out");
        assert_eq!((view.columns[0].as_str(), view.lines[0].0.as_str()), ("wine", "m3"));
        assert_eq!(view.lines[0].1[0].mean, Some(0.5));
        assert!(view.notes[0].contains("observed cells"));
    }

    #[test]
    fn markdown_and_latex_say_the_same() {
        let view = main_view(Scale::Paper);
        assert!(
            view.to_markdown().contains("| m3 | **1.10** ± 0.14 (1.33) | - (0.60) | 1.0 |"),
            "{}",
            view.to_markdown()
        );
        assert!(
            view.to_latex().contains("m3 & \\textbf{1.10} $\\pm$ 0.14 (1.33) & - (0.60) & 1.0 \\\\"),
            "{}",
            view.to_latex()
        );
        assert!(view.to_latex().contains("MCAR 30 \\%"));
    }

    #[test]
    fn epochs_that_are_not_the_published_ones_are_said_and_not_mixed() {
        let main = study("main").unwrap();
        let names = ["grape".to_owned()];
        let rows =
            [row("yacht", "grape", 0, 1.5), Row { settings: "epochs=9".to_owned(), ..row("yacht", "grape", 0, 2.5) }];
        let of = |epochs| {
            let settings = main.settings(Some(&names), epochs).unwrap();
            view(main, &rows, &["yacht".to_owned()], &settings, Scale::Paper, None)
        };
        assert_eq!((of(None).lines[0].1[0].mean, of(None).notes.len()), (Some(1.5), 0));
        assert_eq!(of(Some(9)).lines[0].1[0].mean, Some(2.5));
        assert!(of(Some(9)).notes[0].contains("for 9 epochs"));
    }

    #[test]
    fn the_longest_training_counts_on_each_table_and_is_said() {
        let main = study("main").unwrap();
        let trained =
            |table, epochs: &str, error| Row { settings: format!("epochs={epochs}"), ..row(table, "grape", 0, error) };
        let rows = [trained("yacht", "9", 2.5), trained("yacht", "90", 1.5), trained("wine", "7", 0.8)];
        let settings = main.drawn(Some(&["grape".to_owned()]), None).unwrap();
        let view = view(main, &rows, &["yacht".to_owned(), "wine".to_owned()], &settings, Scale::Paper, None);
        assert_eq!(view.lines[0].1.iter().map(|c| c.mean).collect::<Vec<_>>(), [Some(1.5), Some(0.8)]);
        assert!(
            view.notes[0].contains("for 7 epochs grape on wine; for 90 epochs grape on yacht;"),
            "{}",
            view.notes[0]
        );
    }

    #[test]
    fn a_line_with_few_figures_costs_the_others_no_column() {
        let main = study("main").unwrap();
        let settings = main.drawn(Some(&["mean".to_owned(), "knn".to_owned(), "grape".to_owned()]), None).unwrap();
        let tables = ["yacht", "wine", "energy"];
        let mut rows: Vec<Row> = tables.iter().flat_map(|t| [row(t, "mean", 0, 2.0), row(t, "knn", 0, 1.0)]).collect();
        rows.push(row("yacht", "grape", 0, 0.5));
        let view = view(main, &rows, &tables.map(str::to_owned), &settings, Scale::Paper, None);
        assert_eq!(view.mean_ranks(), (vec![Some(2.0), Some(1.0), None], 3));
    }

    #[test]
    fn a_method_that_failed_says_so() {
        let main = study("main").unwrap();
        let settings = main.settings(Some(&["mean".to_owned()]), None).unwrap();
        let failed = Row { mae10: None, error: "no".to_owned(), ..row("yacht", "mean", 0, 0.0) };
        let view = view(main, &[failed], &["yacht".to_owned()], &settings, Scale::Paper, None);
        assert!(view.to_text().contains("failed"));
    }
}
