//! The report of an imputation.

use crate::charts;
use crate::facts::{Filled, Histogram, ImputeFacts, LevelShare, Missing, Shape, UncertainRow};
use crate::gather::LEVEL;
use crate::html::{Html, html, prose};
use crate::page::{Section, events, not_available, page, scroll, settings, tiles};
use crate::words::{count, difference, error, named, percent, short, thousands, value};
use m3impute_core::{ColumnScore, Kind, Measure};

/// Characters of a column's name, and of a level's.
const NAME: usize = 60;
const LEVEL_NAME: usize = 28;

impl ImputeFacts {
    /// The report as one HTML file that loads nothing.
    pub fn page(&self) -> String {
        let sections = vec![
            Section::new("missing", "What was missing", missing(&self.missing)),
            Section::new("filled", "Imputed values", self.imputed()),
            Section::new("trust", "Accuracy", self.trust()),
            Section::new("rows", "Least certain rows", self.least_certain()),
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

    /// The report in two sentences.
    fn verdict(&self) -> String {
        if self.missing.cells == 0 {
            return "Nothing was missing: the table is unchanged.".to_owned();
        }
        let mut text = match self.missing.cells - self.filled {
            0 => "Every missing cell was filled, and every other cell is unchanged.".to_owned(),
            left => format!("{} left missing, for reasons that are listed below.", sentence_count(left)),
        };
        let mut ratios: Vec<f64> = self.scores.iter().filter_map(ColumnScore::ratio).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        if let Some(middle) = ratios.get(ratios.len() / 2) {
            let poor = ratios.iter().filter(|r| **r >= 1.0).count();
            text += " On held-out cells, ";
            text += &match 100.0 * (1.0 - middle) {
                less if less >= 1.0 => format!("the validation error is {less:.0} % smaller than that of the baseline"),
                _ => "the validation error is no smaller than that of the baseline".to_owned(),
            };
            text += " (median or mode) in the median column";
            text += &match poor {
                0 => ".".to_owned(),
                _ => format!(
                    "; in {} of {} no model beats the baseline.",
                    thousands(poor),
                    count(ratios.len(), "column")
                ),
            };
        }
        text
    }

    fn imputed(&self) -> Html {
        if self.columns.is_empty() {
            return not_available("No cell was filled.");
        }
        let predicted = self.uncertain.is_some();
        let line = predicted.then(|| {
            html!(
                "<li>{}predictive distribution</li><li>{}a filled cell and its {} % interval</li>",
                charts::key_lines(&[("predicted", "M1 9L8 3L14 5L21 10")]),
                charts::key_lines(&[("whisker", "M1 6H21"), ("point", "M12 6h0")]),
                interval_percent()
            )
        });
        let key = html!(
            "<ul class=\"key\" aria-label=\"Key\"><li>{}observed</li><li>{}filled</li>{}</ul>\n",
            charts::key_area("observed"),
            charts::key_area("filled"),
            line
        );
        let about = if predicted {
            "Shares of the observed values beside shares of the filled ones. Filled values crowd in the middle: point \
             estimates are less spread than the truth. The line shows the predictive distributions, and should look \
             like the observed values where cells are missing completely at random."
        } else {
            "Shares of the observed values beside shares of the filled ones. Filled values crowd in the middle: point \
             estimates are less spread than the truth. This method gives no intervals; with `--method m3` each filled \
             cell has one."
        };
        let cards: Html = self.columns.iter().map(card).collect();
        let cut = self.filled_columns - self.columns.len();
        let cut = (cut > 0).then(|| {
            html!(
                "<p>Shown are the {} columns with the most filled cells; {} more were filled.</p>\n",
                self.columns.len(),
                thousands(cut)
            )
        });
        html!("<p>{}</p>\n{}{}<div class=\"cards\">\n{}</div>\n", prose(about), key, cut, cards)
    }

    fn trust(&self) -> Html {
        if self.scores.is_empty() {
            return not_available(
                "This method holds out no cells, so its error is not known. Run `m3impute evaluate` on the same file to \
                 compare it with others, or fill with `--method m3`, which validates itself.",
            );
        }
        let rows: Html = self.scores.iter().map(score_row).collect();
        let table = html!(
            "<table class=\"sortable\"><caption>Validation errors on held-out cells, in the units of each column or, \
             for levels, as log loss; worst column first. The line in the bars is the baseline (median, or the frequencies of the levels).</caption>\
             <thead><tr><th scope=\"col\" data-text>Column</th><th scope=\"col\" class=\"n\">Held out</th>\
             <th scope=\"col\" class=\"n\">Error</th><th scope=\"col\" class=\"n\">Baseline</th>\
             <th scope=\"col\" class=\"n\">Share of it</th><td></td><th scope=\"col\" class=\"n\">Best single model</th>\
             <th scope=\"col\" data-text>Ensemble</th></tr></thead>\n<tbody>\n{}</tbody></table>",
            rows
        );
        let baseline: Vec<&str> =
            self.scores.iter().filter(|s| s.is_no_better_than_baseline()).map(|s| s.column.as_str()).collect();
        let unknown: Vec<&str> =
            self.scores.iter().filter(|s| s.validation.error.is_none()).map(|s| s.column.as_str()).collect();
        let mut remarks = Html::default();
        if !baseline.is_empty() {
            remarks += html!(
                "<p>In {} no model beats the baseline: these cells got little more than the median or mode.</p>\n",
                named(baseline.into_iter(), 8)
            );
        }
        if !unknown.is_empty() {
            remarks +=
                html!("<p>{}: too few observed values to estimate the error.</p>\n", named(unknown.into_iter(), 8));
        }
        html!(
            "<p>While fitting, the method held out some observed cells and predicted them; below are its errors. Cells \
             that are not missing at random may be harder than these.</p>\n{}{}",
            scroll("Validation errors on held-out cells", table),
            remarks
        )
    }

    fn least_certain(&self) -> Html {
        let Some(rows) = &self.uncertain else {
            return not_available(
                "This method gives point estimates without their uncertainty. Fill with `--method m3` to see the least \
                 certain rows, and with `--interval 0.9` to have intervals in the table too.",
            );
        };
        if rows.is_empty() {
            return not_available("No filled cell has a distribution.");
        }
        let body: Html = rows.iter().map(uncertain_row).collect();
        let table = html!(
            "<table class=\"sortable\"><caption>Row 1 is the first below the names of the columns. A cell counts as fully \
             unknown where its {} % interval is as wide as that of its whole column, or its levels are as open.</caption>\
             <thead><tr><th scope=\"col\" class=\"n\">Row</th>\
             <th scope=\"col\" class=\"n\">As good as unknown</th><th scope=\"col\" data-fixed>Least certain cells</th></tr>\
             </thead>\n<tbody>\n{}</tbody></table>",
            interval_percent(),
            body
        );
        html!(
            "<p>Rows in which the most is still open after filling. They are worth checking, or a second source.</p>\n{}",
            scroll("Least certain rows", table)
        )
    }
}

/// The probability of the intervals, in percent.
fn interval_percent() -> String {
    format!("{:.0}", 100.0 * LEVEL)
}

fn sentence_count(cells: usize) -> String {
    format!("{} {}", count(cells, "cell"), if cells == 1 { "was" } else { "were" })
}

fn missing(of: &Missing) -> Html {
    if of.cells == 0 {
        return not_available("Nothing was missing.");
    }
    let picture = html!(
        "<figure><figcaption>{}{}</figcaption>{}</figure>\n",
        charts::matrix_note(&of.matrix, of.rows, of.columns),
        charts::matrix_key(&of.matrix),
        scroll("Picture of missing cells", charts::matrix(&of.matrix, of.rows, of.columns))
    );
    let rows: Html = of
        .by_column
        .iter()
        .map(|c| {
            let left = c.missing - c.filled;
            html!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"n\">{}</td><td class=\"n\" data-by=\"{}\">{}</td>\
                 <td>{}</td><td class=\"n{}\">{}</td></tr>\n",
                short(&c.name, NAME),
                c.kind.name(),
                thousands(c.missing),
                c.missing,
                percent(c.missing, of.rows),
                charts::bar(c.missing as f64 / of.rows.max(1) as f64, "filled"),
                if left > 0 { " poor-text" } else { "" },
                thousands(left)
            )
        })
        .collect();
    let hidden = of.incomplete_columns - of.by_column.len();
    let complete = of.columns - of.incomplete_columns;
    let cut = if hidden > 0 {
        format!("The {} columns with the most; {} more are incomplete, ", of.by_column.len(), thousands(hidden))
    } else {
        format!("{}, ", count(of.incomplete_columns, "incomplete column"))
    };
    let table = html!(
        "<table class=\"sortable\"><caption>{}{} complete.</caption><thead><tr><th scope=\"col\" data-text>Column</th>\
         <th scope=\"col\" data-text>Kind</th><th scope=\"col\" class=\"n\">Missing</th>\
         <th scope=\"col\" class=\"n\">Share</th><td></td><th scope=\"col\" class=\"n\">Left missing</th></tr></thead>\n\
         <tbody>\n{}</tbody></table>",
        cut,
        thousands(complete),
        rows
    );
    html!(
        "{}<h3>By column</h3>\n{}<h3>Missing together</h3>\n{}",
        picture,
        scroll("Missing cells by column", table),
        patterns(of)
    )
}

fn patterns(of: &Missing) -> Html {
    let most = of.patterns.first().map_or(0, |p| p.rows);
    if most == 0 {
        return html!("<p>Columns are complete or have no value at all.</p>\n");
    }
    if most == 1 && of.all_patterns > 1 {
        return html!("<p>No two rows miss the same columns.</p>\n");
    }
    let empty = match of.empty_columns {
        0 => String::new(),
        1 => " The one column without a single value is left out.".to_owned(),
        n => format!(" The {} columns without a single value are left out.", thousands(n)),
    };
    let rows: Html = of
        .patterns
        .iter()
        .map(|p| {
            let chips: Html = p.names.iter().map(|n| html!("<span class=\"chip\">{}</span>", short(n, NAME))).collect();
            let more = p.columns - p.names.len();
            let more = (more > 0).then(|| html!("and {} more", thousands(more)));
            html!(
                "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td><td class=\"chips\">{}{}</td></tr>\n",
                thousands(p.rows),
                percent(p.rows, of.rows),
                charts::bar(p.rows as f64 / most as f64, "filled"),
                chips,
                more
            )
        })
        .collect();
    let more = of.all_patterns - of.patterns.len();
    let cut = if more > 0 {
        format!(
            "The {} most frequent of {} sets of columns that are missing in the same rows.",
            of.patterns.len(),
            thousands(of.all_patterns)
        )
    } else {
        "Sets of columns that are missing in the same rows.".to_owned()
    };
    let table = html!(
        "<table><caption>{}{}</caption><thead><tr><th scope=\"col\" class=\"n\">Rows</th>\
         <th scope=\"col\" class=\"n\">Share</th><td></td><th scope=\"col\">Missing columns</th></tr></thead>\n<tbody>\n{}</tbody></table>",
        cut,
        empty,
        rows
    );
    scroll("Columns that are missing together", table)
}

fn card(of: &Filled) -> Html {
    let about = format!("{}, {} filled, {} observed", of.kind.name(), thousands(of.filled), thousands(of.observed));
    let (drawing, words) = match &of.shape {
        Shape::Numbers(histogram) => numbers(of, histogram),
        Shape::Levels(levels) => (level_table(of, levels), String::new()),
    };
    html!(
        "<article class=\"card\"><h3>{}</h3><p>{}</p>{}<p>{}</p></article>\n",
        short(&of.name, NAME),
        about,
        drawing,
        words
    )
}

fn numbers(of: &Filled, histogram: &Histogram) -> (Html, String) {
    let shown = |v: f64| if v.is_nan() { "none".to_owned() } else { value(of.kind, v) };
    let middles =
        format!("Median {} observed, {} filled.", shown(histogram.observed_median), shown(histogram.filled_median));
    let width = histogram.width.map_or_else(String::new, |width| {
        let unit = if of.kind == Kind::Datetime { " long" } else { " wide" };
        format!(" The {} % interval is typically {}{unit}.", interval_percent(), difference(of.kind, width))
    });
    let outside = match histogram.outside {
        0 => String::new(),
        n => format!(" {} beyond the ends of the axis.", count(n, "value")),
    };
    let cut = if charts::is_cut(histogram) { " The tallest bar is cut at the top." } else { "" };
    let words = format!("{middles}{width}{outside}{cut}").replace(" %", "\u{a0}%");
    let label = format!("Distribution of {}. {words}", short(&of.name, NAME));
    (charts::histogram(histogram, of.kind, &label), words)
}

fn level_table(of: &Filled, levels: &[LevelShare]) -> Html {
    let most = levels.iter().map(|l| l.observed.max(l.filled)).fold(0.0, f64::max);
    let row = |share: &LevelShare| {
        let name = share.level.as_ref().map_or_else(|| "all others".to_owned(), |l| short(l, LEVEL_NAME));
        html!(
            "<tr><th scope=\"row\">{}</th><td class=\"draw\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
            name,
            charts::level(share, most),
            charts::share(share.observed),
            charts::share(share.filled)
        )
    };
    let label = format!("Shares of the levels of {}", short(&of.name, NAME));
    html!(
        "<table aria-label=\"{}\"><thead><tr><th scope=\"col\">Level</th><td></td><th scope=\"col\" class=\"n\">observed</th>\
         <th scope=\"col\" class=\"n\">filled</th></tr></thead>\n<tbody>\n{}</tbody></table>",
        label,
        levels.iter().map(row).collect::<Html>()
    )
}

fn score_row(score: &ColumnScore) -> Html {
    let held = &score.validation;
    let is_loss = score.measure == Measure::LogLoss;
    let figure = |e: f64| if is_loss { format!("{e:.3}") } else { error(score, e) };
    let text = |e: Option<f64>| e.map_or_else(|| "not known".to_owned(), figure);
    let unit = is_loss.then(|| html!(" <span class=\"soft\">log loss</span>"));
    let by = |e: Option<f64>| e.map_or_else(String::new, |e| format!("{e:e}"));
    let ratio = score.ratio();
    let best = held.best.as_ref();
    html!(
        "<tr><th scope=\"row\">{}{}</th><td class=\"n\">{}</td><td class=\"n\" data-by=\"{}\">{}</td>\
         <td class=\"n\" data-by=\"{}\">{}</td><td class=\"n{}\">{}</td><td>{}</td><td class=\"n\" data-by=\"{}\">{}</td>\
         <td class=\"mixed\">{}</td></tr>\n",
        short(&score.column, NAME),
        unit,
        thousands(held.cells),
        by(held.error),
        text(held.error),
        by(held.baseline),
        text(held.baseline),
        if score.is_no_better_than_baseline() { " poor-text" } else { "" },
        ratio.map_or_else(String::new, |r| format!("{:.0} %", 100.0 * r)),
        ratio.map(charts::ratio),
        by(best.map(|b| b.error)),
        best.map_or_else(String::new, |b| format!("{} ({})", figure(b.error), b.name)),
        short(&held.ensemble, 120).replace(" %", "\u{a0}%")
    )
}

fn uncertain_row(row: &UncertainRow) -> Html {
    let cells: Html = row
        .cells
        .iter()
        .map(|c| {
            let certainty = (!c.certainty.is_empty()).then(|| html!(" <span class=\"soft\">({})</span>", c.certainty));
            html!(
                "<span class=\"chip\"><span class=\"soft\">{}</span> {}{}</span>",
                short(&c.column, NAME),
                short(&c.value, LEVEL_NAME),
                certainty
            )
        })
        .collect();
    let more = row.filled - row.cells.len();
    let more = (more > 0).then(|| html!("and {} more", thousands(more)));
    html!(
        "<tr><td class=\"n\">{}</td><td class=\"n\">{} of {}</td><td class=\"chips\">{}{}</td></tr>\n",
        thousands(row.row),
        format!("{:.1}", row.uncertainty),
        count(row.filled, "cell"),
        cells,
        more
    )
}
