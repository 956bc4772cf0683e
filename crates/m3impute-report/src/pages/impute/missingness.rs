//! What goes together with missing cells: evidence against missing completely at random, and columns that are missing
//! together.

use super::NAME;
use crate::charts;
use crate::facts::{MissingTogether, MissingnessOf, NotAtRandom};
use crate::html::{Html, html};
use crate::page::scroll;
use crate::words::{breakable, count, short, thousands};
use m3impute_core::missingness::Auc;

/// With fewer pairs a picture of them shows little more than the list.
const HEAT_PAIRS: usize = 4;

/// How well other columns tell where a column is missing.
pub(super) fn section(of: &NotAtRandom) -> Html {
    let few = match of.too_few {
        0 => None,
        n => Some(html!(
            "<p>{} {} fewer than ten missing or ten observed cells: too few to say anything.</p>\n",
            count(n, "column"),
            if n == 1 { "has" } else { "have" }
        )),
    };
    if of.columns.is_empty() {
        let none = html!("<p>No column has enough missing and observed cells for this.</p>\n");
        return html!("{}{}", none, few);
    }
    let found = of.columns.iter().filter(|c| c.values.is_evidence() || c.values_and_missingness.is_evidence()).count();
    let all = of.columns.len();
    let verdict = match (found, all) {
        (0, 1) => "The other columns do not tell where this column is missing: there is no evidence against missing \
                   completely at random (MCAR). That is no proof of it."
            .to_owned(),
        (0, _) => format!(
            "In none of {} do the other columns tell where cells are missing: there is no evidence against missing \
             completely at random (MCAR). That is no proof of it.",
            count(all, "column")
        ),
        _ => format!(
            "In {} of {} other columns tell where cells are missing. That is evidence against missing completely at \
             random (MCAR), where dropping incomplete rows would do no harm. It fits missing at random given the other \
             columns (MAR), which imputation relies on, but does not prove it: whether cells are missing because of \
             their own values (MNAR), no table can tell.",
            thousands(found),
            count(all, "column")
        ),
    };
    let rows: Html = of.columns.iter().map(row).collect();
    let mut notes = Vec::new();
    if of.further > 0 {
        notes.push(format!(" {} with fewer missing cells were not looked at.", count(of.further, "more column")));
    }
    let (looked_at, others) = of.others;
    if looked_at < others.saturating_sub(1) {
        notes.push(format!(" {} of {} other columns were looked at.", thousands(looked_at), thousands(others)));
    }
    if of.sampled {
        notes.push(
            " At most 1,000 rows with the cell missing and 1,000 others were looked at, drawn at random.".to_owned(),
        );
    }
    let table = html!(
        "<table class=\"sortable\"><caption>AUC: the probability that a row where the column is missing is ranked above \
         one where it is not, by a ridge logistic regression on the other columns, cross-validated; 0.5 is chance. \
         Intervals hold for all columns together with 95 % confidence; where one includes 0.5, there is no evidence.{}\
         </caption><thead><tr><th scope=\"col\" data-text>Column</th><th scope=\"col\" class=\"n\">Missing</th>\
         <th scope=\"col\">AUC by values</th><th scope=\"col\">AUC by values and missingness</th><th scope=\"col\" data-fixed>What differs most</th></tr></thead>\n<tbody>\n{}</tbody></table>",
        notes.concat(),
        rows
    );
    html!("<p>{}</p>\n{}{}", verdict, scroll("What goes together with missing cells", table), few)
}

fn row(of: &MissingnessOf) -> Html {
    let chips: Html = of
        .tells
        .iter()
        .map(|t| {
            html!(
                "<span class=\"chip\"><span class=\"name\">{}</span> {}</span>",
                breakable(&short(&t.column, NAME)),
                short(&t.effect, 90)
            )
        })
        .collect();
    let evidence = of.values.is_evidence() || of.values_and_missingness.is_evidence();
    let words = match (evidence, of.tells.is_empty()) {
        (false, _) => Some("no evidence"),
        (true, true) => Some("no column by itself"),
        (true, false) => None,
    };
    let words = words.map(|words| html!("<span class=\"soft\">{}</span>", words));
    html!(
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td>{}{}<td class=\"chips\">{}{}</td></tr>\n",
        breakable(&short(&of.name, NAME)),
        thousands(of.missing),
        auc(&of.values),
        auc(&of.values_and_missingness),
        chips,
        words
    )
}

fn auc(of: &Auc) -> Html {
    html!(
        "<td class=\"word{}\" data-by=\"{}\">{} <span class=\"soft\">({} to {})</span><br>{}</td>",
        if of.is_evidence() { "" } else { " soft" },
        format!("{:.4}", of.value),
        format!("{:.2}", of.value),
        format!("{:.2}", of.low),
        format!("{:.2}", of.high),
        charts::auc(of)
    )
}

/// The correlation of where columns are missing.
pub(super) fn together(of: &MissingTogether) -> Html {
    if of.columns < 2 {
        return html!("<p>This takes two columns with missing cells.</p>\n");
    }
    let further = (of.further > 0)
        .then(|| html!(" {} with fewer missing cells were not compared.", count(of.further, "more column")));
    if of.pairs.is_empty() {
        return html!(
            "<p>No two of {} are missing together more often, or less often, than by chance.{}</p>\n",
            count(of.columns, "column"),
            further
        );
    }
    let rows: Html = of
        .pairs
        .iter()
        .map(|p| {
            let [a, b] = p.names.each_ref().map(|name| breakable(&short(name, NAME)));
            html!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"n\">{}</td><td>{}</td><td class=\"n\">{}</td></tr>\n",
                a,
                b,
                format!("{:.2}", p.phi).replace('-', "\u{2212}"),
                charts::bar(p.phi.abs(), if p.phi > 0.0 { "filled" } else { "tick" }),
                thousands(p.rows)
            )
        })
        .collect();
    let cut = if of.all_pairs > of.pairs.len() {
        format!("The {} strongest of {} pairs", of.pairs.len(), thousands(of.all_pairs))
    } else {
        "All pairs".to_owned()
    };
    let table = html!(
        "<table><caption>{} of columns that are missing together more often, or less often, than by chance. The \
         correlation phi is 1 where both are missing in the same rows, and negative where they avoid each other.{}</caption>\
         <thead><tr><th scope=\"col\">Column</th><th scope=\"col\">and</th><th scope=\"col\" class=\"n\">Phi</th><td></td>\
         <th scope=\"col\" class=\"n\">Rows missing both</th></tr></thead>\n<tbody>\n{}</tbody></table>",
        cut,
        further,
        rows
    );
    let heat = (of.heat.phi.iter().filter(|phi| **phi != 0.0).count() >= HEAT_PAIRS).then(|| {
        let cut = of.columns + of.further - of.heat.names.len();
        let cut = (cut > 0).then(|| html!(" The {} columns with the most missing cells.", of.heat.names.len()));
        html!(
            "<figure><figcaption>Phi of each two columns; empty where it may be chance.{}{}</figcaption>{}</figure>\n",
            cut,
            charts::heat_key(),
            scroll("Phi of each two columns", charts::heat(&of.heat))
        )
    });
    html!("{}{}", scroll("Columns whose missing cells are correlated", table), heat)
}
