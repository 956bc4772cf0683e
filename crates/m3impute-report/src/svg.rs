//! Drawings as SVG: shapes for charts inside a page and for figures in files of their own.
//!
//! Text gets in escaped, through `html!`; places are written to a tenth of a pixel.

use crate::html::{Html, html};

/// A drawing: shapes, each above those before it.
#[derive(Debug, Default)]
pub struct Svg {
    shapes: Html,
}

/// How a shape is painted.
#[derive(Clone, Copy, Debug)]
pub enum Paint<'a> {
    /// By a class of the page's style sheet.
    Class(&'a str),
    /// Filled with a colour.
    Fill(&'a str),
    /// Drawn in a colour, with a line of this width, and not filled.
    Stroke(&'a str, f64),
}

/// Where a text stands beside its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// How large a drawing is in a page.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fit {
    /// Sized by the style sheet, in its own proportions.
    Scaled,
    /// Sized by the style sheet, in any proportions.
    Stretched,
    /// A pixel for each unit.
    Natural,
}

impl Paint<'_> {
    fn attributes(self) -> Html {
        match self {
            Paint::Class(class) => html!("class=\"{}\"", class),
            Paint::Fill(colour) => html!("fill=\"{}\"", colour),
            Paint::Stroke(colour, width) => {
                html!("fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"", colour, width)
            }
        }
    }
}

impl Svg {
    /// An empty drawing.
    pub fn new() -> Svg {
        Svg::default()
    }

    /// A line through points.
    pub fn line(&mut self, paint: Paint<'_>, points: &[(f64, f64)]) {
        let points: Html = points.iter().map(|(x, y)| html!("{},{} ", x, y)).collect();
        self.shapes += html!("<polyline {} points=\"{}\"/>\n", paint.attributes(), points);
    }

    /// A path by its commands.
    pub fn path(&mut self, paint: Paint<'_>, commands: &str) {
        self.shapes += html!("<path {} d=\"{}\"/>", paint.attributes(), commands);
    }

    /// A dot; its title is read out, and shown under the pointer.
    pub fn dot(&mut self, paint: Paint<'_>, (x, y): (f64, f64), radius: f64, title: &str) {
        let (paint, title) = (paint.attributes(), titled(title));
        self.shapes += html!("<circle {} cx=\"{}\" cy=\"{}\" r=\"{}\">{}</circle>\n", paint, x, y, radius, title);
    }

    /// A rectangle from its upper left corner.
    pub fn rect(&mut self, paint: Paint<'_>, (x, y): (f64, f64), (width, height): (f64, f64)) {
        self.titled_rect(paint, (x, y), (width, height), "");
    }

    /// A rectangle with a title, which is read out, and shown under the pointer.
    pub fn titled_rect(&mut self, paint: Paint<'_>, (x, y): (f64, f64), (width, height): (f64, f64), title: &str) {
        // Zero is the default, and a page may have thousands of these.
        let (left, top) = ((x != 0.0).then(|| html!(" x=\"{}\"", x)), (y != 0.0).then(|| html!(" y=\"{}\"", y)));
        let paint = paint.attributes();
        self.shapes += html!("<rect {}{}{} width=\"{}\" height=\"{}\"", paint, left, top, width, height);
        self.shapes += match titled(title) {
            Some(title) => html!(">{}</rect>\n", title),
            None => html!("/>"),
        };
    }

    /// A text; its size is that of the style sheet where none is given.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, size: Option<f64>, text: &str) {
        let anchor = match anchor {
            Anchor::Start => None,
            Anchor::Middle => Some(html!(" text-anchor=\"middle\"")),
            Anchor::End => Some(html!(" text-anchor=\"end\"")),
        };
        let size = size.map(|size| html!(" font-size=\"{}\"", size));
        self.shapes += html!("<text x=\"{}\" y=\"{}\"{}{}>{}</text>", x, y, anchor, size, text);
    }

    /// A text that rises from its point by some degrees.
    pub fn rising_text(&mut self, (x, y): (f64, f64), degrees: u8, text: &str) {
        self.shapes += html!("<text transform=\"translate({} {}) rotate(-{})\">{}</text>", x, y, degrees, text);
    }

    /// Another drawing on this one, with a class for all of its shapes.
    pub fn group(&mut self, class: &str, inner: Svg) {
        self.shapes += html!("<g class=\"{}\">{}</g>", class, inner.shapes);
    }

    /// The drawing in a page. Without a label it only repeats what stands beside it, and screen readers skip it.
    pub(crate) fn in_page(self, class: &str, (width, height): (f64, f64), fit: Fit, label: Option<&str>) -> Html {
        let class = (!class.is_empty()).then(|| html!(" class=\"{}\"", class));
        let label = match label {
            Some(label) => html!(" role=\"img\" aria-label=\"{}\"", label),
            None => html!(" aria-hidden=\"true\""),
        };
        let fit = match fit {
            Fit::Scaled => None,
            Fit::Stretched => Some(html!(" preserveAspectRatio=\"none\"")),
            Fit::Natural => Some(html!(" width=\"{}\" height=\"{}\"", width, height)),
        };
        html!("<svg{}{} viewBox=\"0 0 {} {}\"{}>{}</svg>", class, label, width, height, fit, self.shapes)
    }

    /// The drawing as a file; the title is for those who cannot see it.
    pub fn into_file(self, (width, height): (f64, f64), title: &str) -> String {
        // The page behind may be light or dark: text follows it.
        let style = Html::from_own_file(
            "text { fill: #24292f } @media (prefers-color-scheme: dark) { text { fill: #d0d7de } }",
        );
        html!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" role=\"img\" \
             font-family=\"system-ui, sans-serif\">\n<title>{}</title>\n<style>{}</style>\n{}\n</svg>\n",
            width,
            height,
            width,
            height,
            title,
            style,
            self.shapes
        )
        .into_string()
    }
}

fn titled(title: &str) -> Option<Html> {
    (!title.is_empty()).then(|| html!("<title>{}</title>", title))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_and_never_markup() {
        let mut svg = Svg::new();
        svg.text((1.0, 2.0), Anchor::Middle, Some(9.0), "<script>");
        svg.dot(Paint::Fill("#123456"), (1.0, 2.0), 3.0, "\"&'");
        let drawn = svg.into_file((10.0, 10.0), "<b>");
        assert!(
            drawn.contains("&lt;script&gt;")
                && drawn.contains("<title>&lt;b&gt;</title>")
                && drawn.contains("<title>&quot;&amp;&#39;</title>")
                && !drawn.contains("<script"),
            "{drawn}"
        );
    }

    #[test]
    fn a_drawing_in_a_page_has_a_label_or_is_hidden_from_screen_readers() {
        let drawn = |label| {
            let mut svg = Svg::new();
            svg.rect(Paint::Class("track"), (0.0, 7.0), (100.0, 8.04));
            svg.in_page("bar", (100.0, 8.0), Fit::Stretched, label).into_string()
        };
        assert_eq!(
            drawn(None),
            "<svg class=\"bar\" aria-hidden=\"true\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\">\
             <rect class=\"track\" y=\"7\" width=\"100\" height=\"8\"/></svg>"
        );
        assert!(drawn(Some("a < b")).contains("role=\"img\" aria-label=\"a &lt; b\""));
    }
}
