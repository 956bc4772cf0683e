//! The report of a comparison.

use crate::charts::{self, ends};
use crate::facts::{ColumnCompared, EvaluateFacts, Repeats};
use crate::html::{Html, html, prose};
use crate::page::{Section, events, not_available, page, scroll, settings, tiles};
use crate::words::{bytes, count, difference, short, thousands};

/// Characters of a column's name.
const NAME: usize = 60;

impl EvaluateFacts {
    /// The report as one HTML file that loads nothing.
    pub fn page(&self) -> String {
        let sections = vec![
            Section::new("methods", "Methods on the same hidden cells", self.compared()),
            Section::new("columns", "Column by column", self.by_column()),
            settings(&self.work),
            events(&self.work),
        ];
        page("Comparison of methods", &self.work, self.lead(), sections)
    }

    fn lead(&self) -> Html {
        let figures = [
            ("Rows", thousands(self.rows), String::new()),
            ("Columns", thousands(self.columns), String::new()),
            ("Known cells hidden", thousands(self.cells), format!("{:.1} %", 100.0 * self.rate)),
            ("How", self.mechanism.clone(), String::new()),
            ("Repeats", thousands(self.repeats), String::new()),
            ("Methods", thousands(self.methods.len()), String::new()),
        ];
        let sentences: Html = self.advice.iter().map(|sentence| html!("<p>{}</p>\n", prose(sentence))).collect();
        html!(
            "{}<div class=\"advice\" role=\"note\" aria-label=\"Recommendation\">\n{}</div>\n",
            tiles(&figures),
            sentences
        )
    }

    fn compared(&self) -> Html {
        let numbers = self.methods.iter().any(|m| m.mae.is_some());
        let levels = self.methods.iter().any(|m| m.accuracy.is_some());
        let each = |of: &Option<Repeats>| of.as_ref().map_or_else(Vec::new, |of| of.each.clone());
        let mae_ends = ends(&self.methods, |m| each(&m.mae));
        let right_ends = ends(&self.methods, |m| each(&m.accuracy));
        let time = |s: f64| s.max(1e-3).ln();
        let time_ends = ends(&self.methods, |m| each(&m.seconds).into_iter().map(time).collect());
        let mut heads = html!("<th scope=\"col\" data-text>Method</th><th scope=\"col\" data-text>Preset</th>");
        if numbers {
            heads += html!("<th scope=\"col\" class=\"n\">MAE</th><td></td>");
        }
        if levels {
            heads += html!("<th scope=\"col\" class=\"n\">Accuracy</th><td></td>");
        }
        heads += html!("<th scope=\"col\" class=\"n\">Seconds</th><td></td><th scope=\"col\" class=\"n\">Memory</th>");
        let rows: Html = self
            .methods
            .iter()
            .map(|m| {
                let mut row = html!(
                    "<th scope=\"row\" class=\"word\">{}</th><td>{}</td>",
                    short(&m.label, NAME),
                    short(&m.preset, NAME)
                );
                if numbers {
                    row += figure(&m.mae, |v| format!("{v:.4}"), |v| v, mae_ends);
                }
                if levels {
                    row += figure(&m.accuracy, |v| format!("{:.1}", 100.0 * v), |v| v, right_ends);
                }
                row += figure(&m.seconds, |v| format!("{v:.2}"), time, time_ends);
                let memory = m.peak_bytes.map_or_else(|| "–".to_owned(), bytes);
                let by = m.peak_bytes.map_or_else(String::new, |b| b.to_string());
                row += html!("<td class=\"n\" data-by=\"{}\">{}</td>", by, memory);
                let class = if self.recommended.as_ref() == Some(&m.label) { "first" } else { "" };
                html!("<tr class=\"{}\">{}</tr>\n", class, row)
            })
            .collect();
        let table = html!(
            "<table class=\"sortable\"><caption>In the order of the mean of the ranks in both measures; the recommended method stands out.</caption>\
             <thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table>",
            heads,
            rows
        );
        let failed = self.methods.iter().filter(|m| m.error.is_some()).count();
        let failed = (failed > 0).then(|| {
            html!(
                "<p>{} failed in some repeat and stands last, without a rank: see the warnings.</p>\n",
                count(failed, "method")
            )
        });
        html!(
            "<p>A figure is the mean over repeats ± their deviation. In the drawings a dot is a repeat and the stroke their \
             mean, on a scale that all methods share. MAE is the mean absolute error of numbers, each column scaled to 0..1 \
             by its range; accuracy is the percentage of levels that are right; seconds are drawn on a logarithmic scale.</p>\n{}{}",
            scroll("Methods compared", table),
            failed
        )
    }

    fn by_column(&self) -> Html {
        if self.by_column.is_empty() {
            return not_available("No column was scored: see the warnings.");
        }
        let heads: Html =
            self.methods.iter().map(|m| html!("<th scope=\"col\" class=\"n\">{}</th>", short(&m.label, 24))).collect();
        let rows: Html = self.by_column.iter().map(column_row).collect();
        let hidden = self.scored_columns - self.by_column.len();
        let cut = (hidden > 0).then(|| {
            html!(
                " Shown are the {} columns with the most hidden cells; {} more were scored.",
                self.by_column.len(),
                thousands(hidden)
            )
        });
        let table = html!(
            "<table class=\"sortable\"><caption>The mean absolute error in the column’s own units; of levels, the share that \
             is wrong. The best method of a column stands out.{}</caption><thead><tr><th scope=\"col\" data-text>Column</th>\
             <th scope=\"col\" data-text>Kind</th><th scope=\"col\" class=\"n\">Cells</th>{}</tr></thead>\n<tbody>\n{}</tbody></table>",
            cut,
            heads,
            rows
        );
        scroll("Errors by column", table)
    }
}

/// A figure with its spread, and its repeats as dots.
fn figure(of: &Option<Repeats>, text: impl Fn(f64) -> String, place: impl Fn(f64) -> f64, ends: [f64; 2]) -> Html {
    let Some(Repeats { spread, each }) = of else { return html!("<td class=\"n\">–</td><td></td>") };
    let deviation = spread.deviation.map(|d| html!(" <span class=\"soft\">± {}</span>", text(d)));
    let places: Vec<f64> = each.iter().map(|&v| place(v)).collect();
    html!(
        "<td class=\"n\" data-by=\"{}\">{}{}</td><td>{}</td>",
        format!("{:e}", spread.mean),
        text(spread.mean),
        deviation,
        charts::repeats(&places, place(spread.mean), ends)
    )
}

fn column_row(column: &ColumnCompared) -> Html {
    let best = column.errors.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let text = |e: f64| {
        if column.kind.has_levels() { format!("{:.1} %", 100.0 * e) } else { difference(column.kind, e) }
    };
    let cells: Html = column
        .errors
        .iter()
        .map(|error| match error {
            Some(e) => {
                let class = if *e <= best { "n best" } else { "n" };
                html!("<td class=\"{}\" data-by=\"{}\">{}</td>", class, format!("{e:e}"), text(*e))
            }
            None => html!("<td class=\"n\">–</td>"),
        })
        .collect();
    html!(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"n\">{}</td>{}</tr>\n",
        short(&column.name, NAME),
        column.kind.name(),
        thousands(column.cells),
        cells
    )
}
