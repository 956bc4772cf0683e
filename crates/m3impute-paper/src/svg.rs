//! A little SVG: what the figures need.

use std::fmt::Write;

/// Colours that people with colour blindness can tell apart (Okabe and Ito), and that stand on light and on dark.
pub const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f"];

/// A drawing.
#[derive(Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    title: String,
    body: String,
}

/// Where a text stands beside its point.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

impl Svg {
    /// An empty drawing; the title is for those who cannot see it.
    pub fn new(width: f64, height: f64, title: &str) -> Svg {
        Svg { width, height, title: title.to_owned(), body: String::new() }
    }

    /// A line through points.
    pub fn line(&mut self, points: &[(f64, f64)], colour: &str, width: f64) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            self.body,
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="{width}"/>"#,
            points.join(" ")
        );
    }

    /// A dot; its title is read out, and shown under the pointer.
    pub fn dot(&mut self, (x, y): (f64, f64), radius: f64, colour: &str, title: &str) {
        let title = escaped(title);
        let _ = writeln!(
            self.body,
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{colour}"><title>{title}</title></circle>"#
        );
    }

    /// A rectangle.
    pub fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), colour: &str, title: &str) {
        let title = escaped(title);
        let _ = writeln!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{colour}"><title>{title}</title></rect>"#
        );
    }

    /// A text.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, size: f64, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        let _ = writeln!(
            self.body,
            r#"<text class="ink" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{size}">{text}</text>"#
        );
    }

    /// The file.
    pub fn finish(self) -> String {
        let Svg { width, height, title, body } = self;
        let title = escaped(&title);
        // The page behind may be light or dark: ink follows it, and axes are grey on both.
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" font-family="system-ui, sans-serif">
<title>{title}</title>
<style>.ink {{ fill: #24292f }} @media (prefers-color-scheme: dark) {{ .ink {{ fill: #d0d7de }} }}</style>
{body}</svg>
"#
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_and_never_markup() {
        let mut svg = Svg::new(10.0, 10.0, "<b>");
        svg.text((1.0, 2.0), Anchor::Middle, 9.0, "<script>");
        let drawn = svg.finish();
        assert!(
            drawn.contains("&lt;script&gt;")
                && drawn.contains("<title>&lt;b&gt;</title>")
                && !drawn.contains("<script")
        );
    }
}
