//! Imputed values beside observed ones.

use super::{LEVEL_NAME, NAME, interval_percent};
use crate::charts;
use crate::facts::{Filled, Histogram, ImputeFacts, LevelShare, Shape};
use crate::html::{Html, html, prose};
use crate::page::not_available;
use crate::words::{breakable, count, difference, short, thousands};
use m3impute_core::Kind;

pub(super) fn section(of: &ImputeFacts) -> Html {
    if of.columns.is_empty() {
        return not_available("No cell was filled.");
    }
    let predicted = of.uncertain.is_some();
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
    let cards: Html = of.columns.iter().map(card).collect();
    let cut = of.filled_columns - of.columns.len();
    let cut = (cut > 0).then(|| {
        html!(
            "<p>Shown are the {} columns with the most filled cells; {} more were filled.</p>\n",
            of.columns.len(),
            thousands(cut)
        )
    });
    html!("<p>{}</p>\n{}{}<div class=\"cards\">\n{}</div>\n", prose(about), key, cut, cards)
}

fn card(of: &Filled) -> Html {
    let about = format!("{}, {} filled, {} observed", of.kind.name(), thousands(of.filled), thousands(of.observed));
    let (drawing, words) = match &of.shape {
        Shape::Numbers(histogram) => numbers(of, histogram),
        Shape::Levels(levels) => (level_table(of, levels), String::new()),
    };
    html!(
        "<article class=\"card\"><h3>{}</h3><p>{}</p>{}<p>{}</p></article>\n",
        breakable(&short(&of.name, NAME)),
        about,
        drawing,
        words
    )
}

fn numbers(of: &Filled, histogram: &Histogram) -> (Html, String) {
    let shown = |v: f64| if v.is_nan() { "none".to_owned() } else { of.numerals.value(v) };
    let middles =
        format!("Median {} observed, {} filled.", shown(histogram.observed_median), shown(histogram.filled_median));
    let width = histogram.width.map_or_else(String::new, |width| {
        let unit = if of.kind == Kind::Datetime { " long" } else { " wide" };
        format!(" The {} % interval is typically {}{unit}.", interval_percent(), difference(of.kind, width))
    });
    let log = if histogram.axis.log { " The axis is logarithmic." } else { "" };
    let outside = match histogram.outside {
        0 => String::new(),
        n => format!(" {} beyond the ends of the axis.", count(n, "value")),
    };
    let cut = if charts::is_cut(histogram) { " The tallest bar is cut at the top." } else { "" };
    let words = format!("{middles}{width}{log}{outside}{cut}").replace(" %", "\u{a0}%");
    let label = format!("Distribution of {}. {words}", short(&of.name, NAME));
    (charts::histogram(histogram, of.numerals, &label), words)
}

fn level_table(of: &Filled, levels: &[LevelShare]) -> Html {
    let most = levels.iter().map(|l| l.observed.max(l.filled)).fold(0.0, f64::max);
    let row = |share: &LevelShare| {
        let name = share.level.as_ref().map_or_else(|| "all others".to_owned(), |l| short(l, LEVEL_NAME));
        html!(
            "<tr><th scope=\"row\">{}</th><td class=\"draw\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
            breakable(&name),
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
