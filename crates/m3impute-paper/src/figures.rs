//! Rows as figures: curves over missing ratios, mean ranks, errors against time, correlations. All are SVG.

use crate::overview::Correlations;
use crate::studies::Study;
use crate::view::{Cell, View};
use m3impute_report::svg::{Anchor, Paint, Svg};

/// Colours for people with colour blindness (Okabe and Ito), on light and on dark.
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f"];
/// Grey on light and on dark.
const GREY: &str = "#8b949e";
const AXIS: Paint<'_> = Paint::Stroke(GREY, 1.0);

/// Nemenyi's critical values at 5 % for 2, 3, ... methods.
const CRITICAL: [f64; 19] = [
    1.960, 2.344, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164, 3.219, 3.268, 3.313, 3.354, 3.391, 3.426, 3.458,
    3.489, 3.517, 3.544,
];

/// The errors of each line over the missing ratios, a panel for each table. At most so many lines as there are colours:
/// those with the best mean ranks.
pub fn curves(study: &Study, view: &View) -> String {
    let ratios = study.masks.len();
    let tables = view.columns.len() / ratios.max(1);
    let lines = leading(view, COLOURS.len());
    let (panel, across) = ((230.0, 190.0), 4.min(tables.max(1)));
    let rows = tables.div_ceil(across);
    let legend = 22.0 * lines.len().div_ceil(across) as f64;
    let mut svg = Svg::new();
    for table in 0..tables {
        let corner = (panel.0 * (table % across) as f64, panel.1 * (table / across) as f64);
        let name = view.columns[table * ratios].split(' ').next().unwrap_or_default();
        svg.text((corner.0 + 20.0 + (panel.0 - 30.0) / 2.0, corner.1 + 16.0), Anchor::Middle, Some(12.0), name);
        let of = |line: usize| (0..ratios).map(move |r| view.lines[line].1[table * ratios + r].mean);
        let top = lines.iter().flat_map(|&l| of(l)).flatten().fold(0.0, f64::max);
        let (low, high) = (corner.1 + panel.1 - 28.0, corner.1 + 26.0);
        let x = |r: usize| corner.0 + 36.0 + (panel.0 - 56.0) * r as f64 / (ratios.max(2) - 1) as f64;
        let y = |v: f64| low - (low - high) * v / top.max(1e-12);
        svg.line(AXIS, &[(corner.0 + 30.0, high), (corner.0 + 30.0, low), (corner.0 + panel.0 - 12.0, low)]);
        for (r, mask) in study.masks.iter().enumerate() {
            let percent = mask.trim_start_matches(|c: char| !c.is_ascii_digit());
            svg.text((x(r), low + 14.0), Anchor::Middle, Some(9.0), &format!("{percent} %"));
        }
        for value in [top / 2.0, top] {
            svg.text((corner.0 + 27.0, y(value) + 3.0), Anchor::End, Some(9.0), &format!("{value:.2}"));
        }
        for (at, &line) in lines.iter().enumerate() {
            let points: Vec<(usize, f64)> = of(line).enumerate().filter_map(|(r, v)| Some((r, v?))).collect();
            let places: Vec<(f64, f64)> = points.iter().map(|&(r, v)| (x(r), y(v))).collect();
            svg.line(Paint::Stroke(COLOURS[at], if at == 0 { 2.5 } else { 1.5 }), &places);
            for (&place, (r, v)) in places.iter().zip(&points) {
                let title = format!("{} on {name}, {}: {v:.3}", view.lines[line].0, study.masks[*r]);
                svg.dot(Paint::Fill(COLOURS[at]), place, 2.5, &title);
            }
        }
    }
    for (at, &line) in lines.iter().enumerate() {
        let (x, y) =
            (panel.0 * (at % across) as f64 + 20.0, panel.1 * rows as f64 + 16.0 + 22.0 * (at / across) as f64);
        svg.line(Paint::Stroke(COLOURS[at], 2.5), &[(x, y - 4.0), (x + 22.0, y - 4.0)]);
        svg.text((x + 28.0, y), Anchor::Start, Some(11.0), &view.lines[line].0);
    }
    svg.into_file((panel.0 * across as f64, panel.1 * rows as f64 + legend + 12.0), &view.title)
}

/// The lines with the best mean ranks; those without a rank come last.
fn leading(view: &View, most: usize) -> Vec<usize> {
    let ranks = view.mean_ranks().0;
    let mut lines: Vec<usize> =
        (0..view.lines.len()).filter(|&l| view.lines[l].1.iter().any(|c| c.mean.is_some())).collect();
    lines.sort_by(|&a, &b| ranks[a].unwrap_or(f64::INFINITY).total_cmp(&ranks[b].unwrap_or(f64::INFINITY)));
    lines.truncate(most);
    lines
}

/// The mean ranks over tables, with the difference that would be more than chance (Nemenyi's test at 5 %). Lines that
/// are nearer to the best than that are joined by a bar.
pub fn ranks(view: &View) -> String {
    let (ranks, tables) = view.mean_ranks();
    let mut order: Vec<(usize, f64)> = ranks.iter().enumerate().filter_map(|(l, r)| Some((l, (*r)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let methods = order.len();
    let height = 90.0 + 20.0 * methods as f64;
    let title = format!("{}: mean ranks over {tables} columns", view.title);
    let mut svg = Svg::new();
    let (left, right) = (190.0, 610.0);
    let x = |rank: f64| left + (right - left) * (rank - 1.0) / (methods.max(2) - 1) as f64;
    svg.text((12.0, 18.0), Anchor::Start, Some(13.0), &title);
    svg.line(AXIS, &[(left, 42.0), (right, 42.0)]);
    for rank in 1..=methods {
        svg.line(AXIS, &[(x(rank as f64), 39.0), (x(rank as f64), 45.0)]);
        svg.text((x(rank as f64), 35.0), Anchor::Middle, Some(9.0), &rank.to_string());
    }
    let critical = critical_difference(methods, tables);
    if let (Some(critical), Some(&(_, best))) = (critical, order.first()) {
        let end = (best + critical).min(methods as f64);
        svg.line(Paint::Stroke(COLOURS[0], 5.0), &[(x(best), 52.0), (x(end), 52.0)]);
        let note = format!("not significantly different from the best (Nemenyi, 5 %): within {critical:.1} ranks");
        svg.text((right, height - 6.0), Anchor::End, Some(10.0), &note);
    }
    for (at, &(line, rank)) in order.iter().enumerate() {
        let y = 72.0 + 20.0 * at as f64;
        let name = &view.lines[line].0;
        svg.text((left - 12.0, y + 4.0), Anchor::End, Some(11.0), name);
        svg.line(Paint::Stroke(GREY, 0.5), &[(left, y), (x(rank), y)]);
        svg.dot(Paint::Fill(COLOURS[if at == 0 { 0 } else { 7 }]), (x(rank), y), 4.5, &format!("{name}: {rank:.2}"));
        svg.text((x(rank) + 9.0, y + 4.0), Anchor::Start, Some(10.0), &format!("{rank:.1}"));
    }
    svg.into_file((640.0, height), &title)
}

/// How far two mean ranks must be apart to be more than chance.
fn critical_difference(methods: usize, tables: usize) -> Option<f64> {
    let q = CRITICAL.get(methods.checked_sub(2)?)?;
    let k = methods as f64;
    (tables > 1).then(|| q * (k * (k + 1.0) / (6.0 * tables as f64)).sqrt())
}

/// Error against time: each line by its geometric means over the tables, errors as multiples of the best on each table.
pub fn errors_against_time(view: &View) -> String {
    let mut svg = Svg::new();
    let title = format!("{}: error against time", view.title);
    let points: Vec<(String, f64, f64)> = view.lines.iter().filter_map(|line| point(view, line)).collect();
    svg.text((12.0, 18.0), Anchor::Start, Some(13.0), &title);
    let (left, right, low, high) = (70.0, 520.0, 370.0, 40.0);
    let span = |values: Vec<f64>| {
        let (a, b) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
        if b - a < 1e-9 { (a - 0.5, b + 0.5) } else { (a - 0.06 * (b - a), b + 0.06 * (b - a)) }
    };
    let (x0, x1) = span(points.iter().map(|p| p.1.log10()).collect());
    let (y0, y1) = span(points.iter().map(|p| p.2.log10()).collect());
    svg.line(AXIS, &[(left, high), (left, low), (right + 90.0, low)]);
    let x = |seconds: f64| left + (right - left) * (seconds.log10() - x0) / (x1 - x0);
    let y = |error: f64| low - (low - high) * (error.log10() - y0) / (y1 - y0);
    for power in x0.ceil() as i32..=x1.floor() as i32 {
        let seconds = 10_f64.powi(power);
        svg.text((x(seconds), low + 16.0), Anchor::Middle, Some(10.0), &format!("{seconds} s"));
    }
    for error in [1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0].into_iter().filter(|e: &f64| (y0..=y1).contains(&e.log10())) {
        svg.text((left - 6.0, y(error) + 4.0), Anchor::End, Some(10.0), &format!("{error}"));
    }
    svg.text(
        (left, 405.0),
        Anchor::Start,
        Some(10.0),
        "seconds a table (geometric mean); error as a multiple of the best on each table",
    );
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| points[b].2.total_cmp(&points[a].2));
    let mut labels: Vec<(f64, f64)> = Vec::new();
    for at in order {
        let (name, seconds, error) = &points[at];
        let place = (x(*seconds), y(*error));
        let title = format!("{name}: {seconds:.3} s, {error:.2} times the best");
        svg.dot(Paint::Fill(COLOURS[at % COLOURS.len()]), place, 5.0, &title);
        // A name that would stand on another one goes below it.
        let mut label = (place.0 + 8.0, place.1 + 4.0);
        while let Some(taken) = labels.iter().find(|l| (l.0 - label.0).abs() < 90.0 && (l.1 - label.1).abs() < 11.0) {
            // A little more than needed: rounding must not leave it where it was.
            label.1 = taken.1 + 11.5;
        }
        labels.push(label);
        svg.text(label, Anchor::Start, Some(10.0), name);
    }
    svg.into_file((640.0, 420.0), &title)
}

/// The name of a line, its seconds and its errors.
fn point(view: &View, (name, cells): &(String, Vec<Cell>)) -> Option<(String, f64, f64)> {
    let best = |column: usize| view.lines.iter().filter_map(|l| l.1[column].mean).fold(f64::INFINITY, f64::min);
    let errors = cells.iter().enumerate().map(|(at, cell)| Some((cell.mean? / best(at).max(1e-12)).ln()));
    let errors: Vec<f64> = errors.collect::<Option<_>>()?;
    let seconds: Vec<f64> = cells.iter().filter_map(|cell| Some(cell.seconds?.ln())).collect();
    let mean = |logs: &[f64]| (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    (!seconds.is_empty()).then(|| (name.clone(), mean(&seconds), mean(&errors)))
}

/// Pearson's coefficients of the columns of several tables, a square for each.
pub fn correlations(tables: &[Correlations]) -> String {
    let (side, across) = (190.0, 4.min(tables.len().max(1)));
    let rows = tables.len().div_ceil(across);
    let mut svg = Svg::new();
    for (at, table) in tables.iter().enumerate() {
        let corner = (side * (at % across) as f64 + 10.0, side * (at / across) as f64);
        svg.text((corner.0 + side / 2.0 - 10.0, corner.1 + 16.0), Anchor::Middle, Some(12.0), &table.table);
        let m = table.columns.len();
        let cell = (side - 34.0) / m.max(1) as f64;
        for a in 0..m {
            for b in 0..m {
                let r = table.coefficients[a * m + b];
                let place = (corner.0 + cell * b as f64, corner.1 + 24.0 + cell * a as f64);
                let title = if m <= 40 {
                    format!("{} and {}: {r:.2}", table.columns[a], table.columns[b])
                } else {
                    String::new()
                };
                svg.titled_rect(Paint::Fill(&shade(r)), place, (cell + 0.2, cell + 0.2), &title);
            }
        }
    }
    let y = side * rows as f64 + 14.0;
    for step in 0..=20 {
        let colour = shade(f64::from(step) / 10.0 - 1.0);
        svg.rect(Paint::Fill(&colour), (30.0 + 8.0 * f64::from(step), y - 9.0), (8.2, 10.0));
    }
    svg.text((26.0, y), Anchor::End, Some(10.0), "-1");
    svg.text((204.0, y), Anchor::Start, Some(10.0), "1");
    svg.into_file((side * across as f64, side * rows as f64 + 34.0), "Pearson correlations of columns")
}

/// Blue for -1, white for 0, red for 1.
fn shade(r: f64) -> String {
    let mix = |from: f64, to: f64| (from + (to - from) * r.abs().min(1.0)).round() as u8;
    let [red, green, blue] = if r < 0.0 { [0x21, 0x66, 0xac] } else { [0xb2, 0x18, 0x2b] };
    format!(
        "#{:02x}{:02x}{:02x}",
        mix(255.0, f64::from(red)),
        mix(255.0, f64::from(green)),
        mix(255.0, f64::from(blue))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::tests::row;
    use crate::rows::{Row, Scale};
    use crate::studies::study;
    use crate::view::view;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|n| (*n).to_owned()).collect()
    }

    #[test]
    fn curves_have_a_panel_for_each_table_and_a_dot_for_each_figure() {
        let ratios = study("ratios").unwrap();
        let settings = ratios.settings(Some(&names(&["mean", "knn"])), None).unwrap();
        let mut rows = Vec::new();
        for mask in ratios.masks {
            rows.push(Row { mask: (*mask).to_owned(), ..row("yacht", "mean", 0, 2.0) });
            rows.push(Row { mask: (*mask).to_owned(), ..row("yacht", "knn", 0, 1.0) });
        }
        rows.push(Row { mask: "mcar50".to_owned(), ..row("wine", "knn", 0, 1.0) });
        let view = view(ratios, &rows, &names(&["yacht", "wine"]), &settings, Scale::Paper, None);
        let drawn = curves(ratios, &view);
        assert_eq!(drawn.matches("<circle").count(), 9);
        assert!(drawn.contains(">yacht<") && drawn.contains(">wine<") && drawn.contains(">70 %<"));
    }

    #[test]
    fn ranks_and_times_have_a_dot_for_each_method() {
        let main = study("main").unwrap();
        let settings = main.settings(Some(&names(&["mean", "knn", "mice"])), None).unwrap();
        let mut rows = Vec::new();
        for table in ["yacht", "wine"] {
            for (method, error) in [("mean", 2.0), ("knn", 1.0), ("mice", 1.5)] {
                rows.push(row(table, method, 0, error));
            }
        }
        // What a method took on other masks, or with columns scaled otherwise, is not its time here.
        rows.push(Row { mask: "mar30".to_owned(), seconds: 90.0, ..row("yacht", "mean", 0, 2.0) });
        rows.push(Row { scale: Scale::Observed, seconds: 90.0, ..row("yacht", "mean", 0, 2.0) });
        let view = view(main, &rows, &names(&["yacht", "wine"]), &settings, Scale::Paper, None);
        let drawn = ranks(&view);
        assert_eq!(drawn.matches("<circle").count(), 3);
        assert!(drawn.contains("knn: 1.00") && drawn.contains("mean: 3.00"));
        let timed = errors_against_time(&view);
        assert_eq!(timed.matches("<circle").count(), 3);
        assert!(timed.contains("mean: 0.500 s, 2.00 times the best"), "{timed}");
    }

    #[test]
    fn the_critical_difference_is_that_of_demsar() {
        // Demsar (2006): four classifiers on 14 data sets differ by 1.25 ranks.
        assert!((critical_difference(4, 14).unwrap() - 1.25).abs() < 0.01);
        assert_eq!(critical_difference(1, 14), None);
    }

    #[test]
    fn correlations_are_squares_of_colour() {
        let table = Correlations {
            table: "toy".to_owned(),
            columns: names(&["a", "b"]),
            coefficients: vec![1.0, -1.0, -1.0, 1.0],
        };
        let drawn = correlations(&[table]);
        assert_eq!(drawn.matches("<rect").count(), 4 + 21);
        assert!(drawn.contains("a and b: -1.00") && drawn.contains("#2166ac"));
    }
}
