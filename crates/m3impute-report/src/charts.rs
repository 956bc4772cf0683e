//! Drawings, as SVG inside the page. Colours come from the style sheet by class.

use crate::facts::{Axis, Compared, Heat, Histogram, LevelShare, Matrix, Scatter, Whisker};
use crate::html::{Html, html};
use crate::svg::{Anchor, Fit, Paint, Svg};
use crate::words::{Numerals, count, percent, short, thousands};
use m3impute_core::missingness::Auc;
use std::fmt::Write;

/// Bars of filled values may be so many times as tall as those of the observed ones; what is above is cut.
const TALLEST: f64 = 2.5;
/// Bars of a few bins do not fill the drawing.
const THICKEST: f64 = 44.0;
/// Filled cells that are drawn in bins have bars of this share of a bin.
const NARROW: f64 = 0.5;
/// Classes of the shades of missing cells, from few to all.
const SHADES: [&str; 4] = ["m1", "m2", "m3", "m4"];
/// Classes of correlations: four positive ones from weak to strong, and four negative ones.
const HEAT: [&str; 8] = ["m1", "m2", "m3", "m4", "d1", "d2", "d3", "d4"];
/// Width and height of a bar.
const BAR: (f64, f64) = (100.0, 8.0);
/// Width and height of an entry of a key.
const KEY: (f64, f64) = (22.0, 12.0);

/// A share as a bar; the number stands beside it, so readers of screens are spared it.
pub(crate) fn bar(share: f64, class: &'static str) -> Html {
    let width = 100.0 * share.clamp(0.0, 1.0);
    // The smallest share is seen too.
    let width = if width > 0.0 { width.max(1.0) } else { 0.0 };
    part_of_a_bar(width, class).in_page("bar", BAR, Fit::Stretched, None)
}

/// An error as a share of the baseline's: left of the line it is smaller.
pub(crate) fn ratio(share: f64) -> Html {
    let width = (100.0 / 1.5 * share).clamp(1.0, 100.0);
    let mut svg = part_of_a_bar(width, if share >= 1.0 { "poor" } else { "filled" });
    svg.rect(Paint::Class("mark"), (66.0, 0.0), (1.4, BAR.1));
    svg.in_page("bar", BAR, Fit::Stretched, None)
}

fn part_of_a_bar(width: f64, class: &str) -> Svg {
    let mut svg = Svg::new();
    svg.rect(Paint::Class("track"), (0.0, 0.0), BAR);
    svg.rect(Paint::Class(class), (0.0, 0.0), (width, BAR.1));
    svg
}

/// Repeats of one method on a scale that all methods share.
pub(crate) fn repeats(each: &[f64], mean: f64, ends: [f64; 2]) -> Html {
    let place = |v: f64| 6.0 + 98.0 * if ends[1] > ends[0] { (v - ends[0]) / (ends[1] - ends[0]) } else { 0.5 };
    let mut dots = String::new();
    for &v in each.iter().take(60) {
        let _ = write!(dots, "M{:.1} 9h0", place(v));
    }
    let mut svg = Svg::new();
    svg.path(Paint::Class("axis"), "M4 9H106");
    svg.path(Paint::Class("mean"), &format!("M{:.1} 2v14", place(mean)));
    svg.path(Paint::Class("each"), &dots);
    svg.in_page("dots", (110.0, 18.0), Fit::Natural, None)
}

/// The ends of a scale for a figure of all methods.
pub(crate) fn ends(methods: &[Compared], of: impl Fn(&Compared) -> Vec<f64>) -> [f64; 2] {
    let all = methods.iter().flat_map(of);
    let [low, high] = all.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], v| [low.min(v), high.max(v)]);
    if low <= high { [low, high] } else { [0.0, 1.0] }
}

/// Which cells are missing: darker where more of a group is.
pub(crate) fn matrix(matrix: &Matrix, all_rows: usize, all_columns: usize) -> Html {
    const LEFT: f64 = 58.0;
    let (high, wide) = (matrix.rows.len() - 1, matrix.columns.len() - 1);
    let top = if matrix.names.is_empty() { 22.0 } else { 96.0 };
    let cell = ((860.0 / wide as f64).clamp(12.0, 64.0).floor(), (300.0 / high as f64).clamp(4.0, 16.0).floor());
    let (width, height) = (cell.0 * wide as f64, cell.1 * high as f64);
    let mut labels = Svg::new();
    for (c, name) in matrix.names.iter().enumerate() {
        labels.rising_text((LEFT + (c as f64 + 0.5) * cell.0, top - 6.0), 48, &short(name, 16));
    }
    if matrix.names.is_empty() {
        labels.text((LEFT, 14.0), Anchor::Start, None, "column 1");
        labels.text((LEFT + width, 14.0), Anchor::End, None, &format!("column {}", thousands(all_columns)));
    }
    if high > 0 {
        labels.text((LEFT - 8.0, top + 9.0), Anchor::End, None, &thousands(1));
        labels.text((LEFT - 8.0, top + height), Anchor::End, None, &thousands(all_rows));
    }
    let mut svg = Svg::new();
    svg.group("label", labels);
    svg.rect(Paint::Class("ground"), (LEFT, top), (width - 1.0, height));
    for (class, path) in SHADES.iter().zip(shaded(matrix, (LEFT, top), cell)) {
        svg.path(Paint::Class(class), &path);
    }
    let label = format!(
        "Where cells are missing, over {} and {}. The table below has the counts by column.",
        count(all_rows, "row"),
        count(all_columns, "column")
    );
    // Slanted names of the last columns need room at the right.
    let room = if matrix.names.is_empty() { 4.0 } else { 76.0 };
    svg.in_page("matrix", (LEFT + width + room, top + height + 4.0), Fit::Natural, Some(&label))
}

/// The cells of each shade as one path; those that touch in a column are one shape.
fn shaded(matrix: &Matrix, (left, top): (f64, f64), cell: (f64, f64)) -> [String; 4] {
    let (high, wide) = (matrix.rows.len() - 1, matrix.columns.len() - 1);
    let mut paths: [String; 4] = Default::default();
    for c in 0..wide {
        let shade = |r: usize| shade(matrix.shares[r * wide + c]);
        let mut r = 0;
        while r < high {
            let run = (r..high).take_while(|&k| shade(k) == shade(r)).count();
            if let Some(level) = shade(r) {
                let (x, y) = (left + c as f64 * cell.0, top + r as f64 * cell.1);
                let (w, h) = (cell.0 - 1.0, run as f64 * cell.1);
                let _ = write!(paths[level], "M{x} {y}h{w}v{h}h-{w}z");
            }
            r += run;
        }
    }
    paths
}

/// Which of four shades a share of missing cells has; none where nothing is missing.
fn shade(share: f32) -> Option<usize> {
    match share {
        s if s <= 0.0 => None,
        s if s <= 0.25 => Some(0),
        s if s <= 0.5 => Some(1),
        s if s < 1.0 => Some(2),
        _ => Some(3),
    }
}

/// Numbers: observed ones as wide bars, filled ones as narrow bars in front, the predictive distribution as a line;
/// below, some filled cells with their intervals.
pub(crate) fn histogram(of: &Histogram, numerals: Numerals, label: &str) -> Html {
    const WIDTH: f64 = 320.0;
    const HEIGHT: f64 = 104.0;
    const STEP: f64 = 6.0;
    let bins = of.observed.len().max(1) as f64;
    let bin = WIDTH / bins;
    let thick = bin.min(THICKEST);
    // Values that are all the same make a bar that would press all others to the ground.
    let most = usual(of);
    let most = if of.binned { most.max(largest(&of.filled).min(TALLEST * most)) } else { most };
    let y = |share: f64| HEIGHT - (HEIGHT - 4.0) * (share / most).min(1.0);
    let bars = |shares: &[f64], width: f64| {
        let mut path = String::new();
        for (at, &share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            let x = (at as f64 + 0.5) * bin - thick * width / 2.0;
            let top = y(share).min(HEIGHT - 1.0);
            let _ = write!(path, "M{x:.1} {HEIGHT}V{top:.1}h{:.1}V{HEIGHT}z", (thick * width - 0.8).max(0.6));
        }
        path
    };
    let mut svg = Svg::new();
    svg.path(Paint::Class("observed"), &bars(&of.observed, 1.0));
    if of.binned {
        svg.path(Paint::Class("filled"), &bars(&of.filled, NARROW));
    }
    if let Some(shares) = &of.predicted {
        let mut path = String::new();
        for (at, &share) in shares.iter().enumerate() {
            let _ = write!(path, "{}{:.1} {:.1}", if at == 0 { 'M' } else { 'L' }, (at as f64 + 0.5) * bin, y(share));
        }
        svg.path(Paint::Class("predicted"), &path);
    }
    svg.path(Paint::Class("axis"), &format!("M0 {HEIGHT}H{WIDTH}"));
    let place = |v: f64| of.axis.place(v) * (WIDTH - 4.0) + 2.0;
    let band = if of.whiskers.is_empty() { 0.0 } else { of.whiskers.len() as f64 * STEP + 6.0 };
    let (mut lines, mut points) = (String::new(), String::new());
    for (at, Whisker { low, point, high }) in of.whiskers.iter().enumerate() {
        let y = HEIGHT + 8.0 + at as f64 * STEP;
        if high > low {
            let _ = write!(lines, "M{:.1} {y}H{:.1}", place(*low), place(*high));
        }
        let _ = write!(points, "M{:.1} {y}h0", place(*point));
    }
    svg.path(Paint::Class("whisker"), &lines);
    svg.path(Paint::Class("point"), &points);
    let bottom = HEIGHT + band;
    let mut labels = Svg::new();
    labels.text((0.0, bottom + 14.0), Anchor::Start, None, &numerals.end(of.axis.low, true));
    labels.text((WIDTH, bottom + 14.0), Anchor::End, None, &numerals.end(of.axis.high, false));
    let mut strokes = String::new();
    for (at, text) in decades(&of.axis, numerals) {
        let _ = write!(strokes, "M{:.1} {HEIGHT}v4", at * WIDTH);
        labels.text((at * WIDTH, bottom + 14.0), Anchor::Middle, None, &text);
    }
    if !strokes.is_empty() {
        svg.path(Paint::Class("axis"), &strokes);
    }
    svg.group("label", labels);
    svg.in_page("chart", (WIDTH, bottom + 18.0), Fit::Scaled, Some(label))
}

/// Powers of ten on a logarithmic axis, as far as there is room between its ends: where they are, and their names.
fn decades(axis: &Axis, numerals: Numerals) -> Vec<(f64, String)> {
    if !axis.log {
        return Vec::new();
    }
    let all = (axis.low.log10().ceil() as i32..=axis.high.log10().floor() as i32).map(|power| 10_f64.powi(power));
    let mut ticks: Vec<(f64, String)> = Vec::new();
    for value in all {
        let at = axis.place(value);
        let room = ticks.last().is_none_or(|(before, _)| at - before > 0.2);
        if (0.22..=0.78).contains(&at) && room {
            ticks.push((at, numerals.value(value)));
        }
    }
    ticks
}

/// Predicted against true values; on the line they are the same.
pub(crate) fn scatter(of: &Scatter, label: &str) -> Html {
    const LEFT: f64 = 6.0;
    const SIDE: f64 = 240.0;
    const TOP: f64 = 18.0;
    const WIDTH: f64 = 320.0;
    let wide = WIDTH - LEFT - 4.0;
    let x = |v: f64| LEFT + 4.0 + of.axis.place(v) * (wide - 8.0);
    let y = |v: f64| TOP + SIDE - 4.0 - of.axis.place(v) * (SIDE - 8.0);
    let mut dots = String::new();
    for [truth, predicted] in &of.points {
        let _ = write!(dots, "M{:.0} {:.0}h0", x(*truth), y(*predicted));
    }
    let mut svg = Svg::new();
    svg.path(Paint::Class("axis"), &format!("M{LEFT} {TOP}V{}H{}", TOP + SIDE, LEFT + wide));
    let (low, high) = (of.axis.low, of.axis.high);
    svg.path(Paint::Class("same"), &format!("M{:.1} {:.1}L{:.1} {:.1}", x(low), y(low), x(high), y(high)));
    svg.path(Paint::Class("held"), &dots);
    let mut labels = Svg::new();
    labels.text((LEFT, TOP - 6.0), Anchor::Start, None, "predicted ↑");
    labels.text((LEFT, TOP + SIDE + 14.0), Anchor::Start, None, &of.numerals.value(low));
    labels.text((LEFT + wide, TOP + SIDE + 14.0), Anchor::End, None, &of.numerals.value(high));
    labels.text((LEFT + wide / 2.0, TOP + SIDE + 14.0), Anchor::Middle, None, "true →");
    svg.group("label", labels);
    svg.in_page("chart", (WIDTH, TOP + SIDE + 18.0), Fit::Scaled, Some(label))
}

/// Whether a bar of filled values is cut.
pub(crate) fn is_cut(of: &Histogram) -> bool {
    of.binned && largest(&of.filled) > TALLEST * usual(of)
}

fn largest(shares: &[f64]) -> f64 {
    shares.iter().copied().fold(0.0, f64::max)
}

/// The tallest of what the filled values should look like.
fn usual(of: &Histogram) -> f64 {
    largest(&of.observed).max(of.predicted.as_deref().map_or(0.0, largest)).max(1e-9)
}

/// A level: its share of the observed values above that of the filled ones, and a tick at its mean probability.
/// A bar of full length is the share `most`.
pub(crate) fn level(share: &LevelShare, most: f64) -> Html {
    let place = |p: f64| 100.0 * (p / most.max(1e-9)).clamp(0.0, 1.0);
    let mut svg = Svg::new();
    svg.rect(Paint::Class("observed"), (0.0, 0.0), (place(share.observed), 6.0));
    svg.rect(Paint::Class("filled"), (0.0, 7.0), (place(share.filled), 6.0));
    if let Some(p) = share.predicted {
        svg.rect(Paint::Class("tick"), ((place(p) - 0.8).clamp(0.0, 98.4), 5.0), (1.6, 9.0));
    }
    svg.in_page("level", (100.0, 14.0), Fit::Stretched, None)
}

/// An AUC with its interval, from 0.3 to 1; the line is chance.
pub(crate) fn auc(of: &Auc) -> Html {
    let place = |auc: f64| 100.0 * ((auc - 0.3) / 0.7).clamp(0.0, 1.0);
    let (low, high) = (place(of.low), place(of.high));
    let mut svg = Svg::new();
    svg.rect(Paint::Class("track"), (0.0, 0.0), BAR);
    svg.rect(
        Paint::Class(if of.is_evidence() { "filled" } else { "observed" }),
        (low, 2.0),
        ((high - low).max(1.0), 4.0),
    );
    svg.rect(Paint::Class("tick"), ((place(of.value) - 1.0).max(0.0), 0.0), (2.0, BAR.1));
    svg.rect(Paint::Class("mark"), (place(0.5) - 0.5, 0.0), (1.0, BAR.1));
    svg.in_page("bar", BAR, Fit::Stretched, None)
}

/// The correlation of each two columns, below the diagonal; the names of rows stand on the left, those of columns on
/// the diagonal above them.
pub(crate) fn heat(heat: &Heat) -> Html {
    const CELL: f64 = 16.0;
    const LEFT: f64 = 150.0;
    const TOP: f64 = 8.0;
    let names = heat.names.len();
    let mut labels = Svg::new();
    let mut paths: [String; 8] = Default::default();
    let mut ground = String::new();
    for (b, name) in heat.names.iter().enumerate() {
        let y = TOP + b as f64 * CELL;
        if b > 0 {
            labels.text((LEFT - 8.0, y + 12.0), Anchor::End, None, &short(name, 20));
        }
        if b + 1 < names {
            labels.text((LEFT + b as f64 * CELL + 6.0, y + 12.0), Anchor::Start, None, &short(name, 20));
        }
        for a in 0..b {
            let x = LEFT + a as f64 * CELL;
            let w = CELL - 1.0;
            let square = format!("M{x} {y}h{w}v{w}h-{w}z");
            match heat_class(heat.phi[b * names + a]) {
                Some(class) => paths[class] += &square,
                None => ground += &square,
            }
        }
    }
    let mut svg = Svg::new();
    svg.path(Paint::Class("ground"), &ground);
    for (class, path) in HEAT.iter().zip(&paths).filter(|(_, path)| !path.is_empty()) {
        svg.path(Paint::Class(class), path);
    }
    svg.group("label", labels);
    let size = names as f64 * CELL;
    let label =
        format!("Correlation of missing cells of {}. The strongest pairs are in the table.", count(names, "column"));
    svg.in_page("matrix", (LEFT + size + 130.0, TOP + size + 4.0), Fit::Natural, Some(&label))
}

/// Which of the classes of [`HEAT`] a correlation has; none where there is none.
fn heat_class(phi: f32) -> Option<usize> {
    let strength = match phi.abs() {
        0.0 => return None,
        p if p < 0.25 => 0,
        p if p < 0.5 => 1,
        p if p < 0.75 => 2,
        _ => 3,
    };
    Some(if phi > 0.0 { strength } else { 4 + strength })
}

/// What the colours of correlations mean.
pub(crate) fn heat_key() -> Html {
    let of = |class: &str, words: &str| html!("<li>{}{}</li>", key_area(class), words);
    let key = [("m1", "up to 0.25"), ("m2", "up to 0.5"), ("m3", "up to 0.75"), ("m4", "more"), ("d3", "negative")];
    let entries: Html = key.into_iter().map(|(class, words)| of(class, words)).collect();
    html!("<ul class=\"key\" aria-label=\"Key\">{}</ul>", entries)
}

/// What the shades mean, where there are any.
pub(crate) fn matrix_key(matrix: &Matrix) -> Option<Html> {
    let shaded = matrix.shares.iter().any(|s| *s > 0.0 && *s < 1.0);
    let of = |class: &str, words: &str| html!("<li>{}{}</li>", key_area(class), words);
    let [one, two, three, four] = SHADES;
    let key = [("ground", "none"), (one, "up to 25 %"), (two, "up to 50 %"), (three, "more"), (four, "all")];
    shaded.then(|| {
        let entries: Html = key.into_iter().map(|(class, words)| of(class, words)).collect();
        html!("<ul class=\"key\" aria-label=\"Key\">{}</ul>", entries)
    })
}

/// Of a key: a patch of what is drawn as an area.
pub(crate) fn key_area(class: &str) -> Html {
    let mut svg = Svg::new();
    svg.rect(Paint::Class(class), (0.0, 0.0), KEY);
    svg.in_page("", KEY, Fit::Scaled, None)
}

/// Of a key: what is drawn as a line, each with its class.
pub(crate) fn key_lines(lines: &[(&str, &str)]) -> Html {
    let mut svg = Svg::new();
    lines.iter().for_each(|(class, path)| svg.path(Paint::Class(class), path));
    svg.in_page("", KEY, Fit::Scaled, None)
}

/// What the picture of missing cells does not show.
pub(crate) fn matrix_note(matrix: &Matrix, all_rows: usize, all_columns: usize) -> String {
    let (high, wide) = (matrix.rows.len() - 1, matrix.columns.len() - 1);
    let mut notes = Vec::new();
    if high < all_rows {
        notes.push(format!("{} as {high} bands of neighbours", count(all_rows, "row")));
    }
    if wide < all_columns {
        notes.push(format!("{} as {wide} groups of neighbours", count(all_columns, "column")));
    }
    match notes.as_slice() {
        [] => "Each mark is a missing cell.".to_owned(),
        _ => format!("{}; the stronger the colour, the more of it is missing.", notes.join(", ")),
    }
}

/// `12.3 %` of a share.
pub(crate) fn share(share: f64) -> String {
    percent((share * 1e6).round() as usize, 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::Kind;

    #[test]
    fn missing_cells_that_touch_are_one_shape() {
        let of =
            Matrix { rows: vec![0, 1, 2], columns: vec![0, 1], names: vec!["<b>".to_owned()], shares: vec![1.0, 1.0] };
        let svg = matrix(&of, 2, 1).into_string();
        assert!(svg.contains("<path class=\"m4\" d=\"M58 96h63v32h-63z\"/>"), "{svg}");
        assert!(svg.contains("&lt;b&gt;") && !svg.contains("<b>"), "{svg}");
        assert_eq!((shade(0.0), shade(0.01), shade(0.99), shade(1.0)), (None, Some(0), Some(2), Some(3)));
    }

    #[test]
    fn a_histogram_has_a_bar_for_every_bin_with_values() {
        let of = Histogram {
            axis: Axis { low: 0.0, high: 4.0, log: false },
            observed: vec![0.5, 0.0, 0.25, 0.25],
            filled: vec![0.0, 1.0, 0.0, 0.0],
            binned: true,
            predicted: Some(vec![0.25; 4]),
            whiskers: vec![Whisker { low: 1.0, point: 2.0, high: 3.0 }],
            ..Histogram::default()
        };
        let svg = histogram(&of, Numerals::of_kind(Kind::Continuous), "x").into_string();
        let shapes = |class: &str| {
            let from = svg.find(&format!("class=\"{class}\" d=\"")).unwrap();
            svg[from..].split('"').nth(3).unwrap().matches('M').count()
        };
        assert_eq!([shapes("observed"), shapes("filled"), shapes("predicted"), shapes("whisker")], [3, 1, 1, 1]);
    }
}
