//! The frame of a page, and the sections that every report has.

use crate::facts::Work;
use crate::html::{Html, html, prose};
use crate::words::{duration, short, thousands, timestamp};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The one script that may run: `openssl dgst -sha256 -binary page.js | base64`. Even if text of a table became markup,
/// no browser would run it.
const SCRIPT_HASH: &str = "lS2HKlPU4ErGXs8tmxW2r7fmV/HFuCQ1t3n01xdDtQ4=";

/// Events that are listed.
const EVENTS: usize = 60;
/// Characters of a setting, and of an event.
const LONG: usize = 400;
const EVENT: usize = 240;

/// A part of a page: its anchor, its heading, and what stands under it.
pub(crate) struct Section {
    pub anchor: &'static str,
    pub heading: &'static str,
    pub body: Html,
}

impl Section {
    pub fn new(anchor: &'static str, heading: &'static str, body: Html) -> Section {
        Section { anchor, heading, body }
    }
}

/// A whole page.
pub(crate) fn page(kind: &'static str, work: &Work, lead: Html, sections: Vec<Section>) -> String {
    let source = short(&work.source, 120);
    let links: Html = sections.iter().map(|s| html!("<li><a href=\"#{}\">{}</a></li>", s.anchor, s.heading)).collect();
    let body: Html = sections
        .into_iter()
        .map(|s| {
            html!(
                "<section aria-labelledby=\"{}\">\n<h2 id=\"{}\">{}</h2>\n{}</section>\n",
                s.anchor,
                s.anchor,
                s.heading,
                s.body
            )
        })
        .collect();
    html!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"generator\" content=\"m3impute {}\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{} – {}</title>\n<style>\n{}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header>\n<div>\n<p class=\"kicker\">{}</p>\n<h1>{}</h1>\n\
         <p class=\"soft\">{}</p>\n</div>\n<button id=\"theme\" type=\"button\" hidden>Dark theme</button>\n</header>\n\
         <nav aria-label=\"Sections\"><ul>{}</ul></nav>\n<main id=\"main\" tabindex=\"-1\">\n{}{}</main>\n\
         <footer><p>Made by m3impute {} on {} UTC. This page is one file: it loads nothing and sends nothing.</p></footer>\n\
         <script>{}</script>\n</body>\n</html>\n",
        SCRIPT_HASH,
        work.version,
        source,
        kind,
        Html::from_own_file(STYLE),
        kind,
        source,
        work.how,
        links,
        lead,
        body,
        work.version,
        timestamp(work.when),
        Html::from_own_file(SCRIPT)
    )
    .into_string()
}

/// The key figures at the top.
pub(crate) fn tiles(tiles: &[(&str, String, String)]) -> Html {
    let tile = |(name, figure, aside): &(&str, String, String)| {
        let aside = (!aside.is_empty()).then(|| html!(" <small>{}</small>", aside.replace(' ', "\u{a0}")));
        html!("<div><dt>{}</dt><dd>{}{}</dd></div>\n", name, figure, aside)
    };
    html!("<dl class=\"tiles\">\n{}</dl>\n", tiles.iter().map(tile).collect::<Html>())
}

/// A wide thing in a box of its own that scrolls, by keyboard too.
pub(crate) fn scroll(label: &str, inside: Html) -> Html {
    html!("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">{}</div>\n", label, inside)
}

/// Something that this report does not have, and what to do about it.
pub(crate) fn not_available(text: &str) -> Html {
    html!("<p class=\"none\">{}</p>\n", prose(text))
}

/// The settings of the run.
pub(crate) fn settings(work: &Work) -> Section {
    let line = |(name, value): &(String, String)| {
        html!("<dt>{}</dt><dd>{}</dd>\n", short(name, LONG), prose(&short(value, LONG)))
    };
    let mut lines: Html = work.settings.iter().map(line).collect();
    lines += html!("<dt>Time taken</dt><dd>{}</dd>\n", duration(work.seconds));
    lines += html!("<dt>Date</dt><dd>{} UTC</dd>\n", timestamp(work.when));
    lines += html!("<dt>Program</dt><dd>m3impute {}</dd>\n", work.version);
    let again = (!work.command.is_empty())
        .then(|| html!("<h3>Command to reproduce</h3>\n<pre><code>{}</code></pre>\n", short(&work.command, 2000)));
    Section::new("done", "What was done", html!("<dl class=\"settings\">\n{}</dl>\n{}", lines, again))
}

/// All warnings.
pub(crate) fn events(work: &Work) -> Section {
    let body = if work.events.is_empty() {
        html!("<p>There were no warnings.</p>\n")
    } else {
        let listed: Html = work
            .events
            .iter()
            .take(EVENTS)
            .map(|e| html!("<li><b>{}</b>{}</li>\n", short(&e.place, 80), prose(&short(&e.what, EVENT))))
            .collect();
        let more = work.events.len().saturating_sub(EVENTS);
        let more = (more > 0)
            .then(|| html!("<p>{} more are not shown here; the program printed all of them.</p>\n", thousands(more)));
        html!("<ul class=\"events\">\n{}</ul>\n{}", listed, more)
    };
    Section::new("events", "Warnings", body)
}
