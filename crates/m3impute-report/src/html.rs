//! A piece of HTML into which text gets in escaped: nothing that a table holds can become markup.

use std::fmt::{Display, Formatter, Result, Write};

/// Markup. It is made by [`html!`] from a literal of this program, with values put in as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Html(String);

impl Html {
    /// For [`html!`] alone: what is given is taken as markup.
    pub fn from_markup(markup: String) -> Html {
        Html(markup)
    }

    /// A file of this program: a style sheet, a script.
    pub fn from_own_file(content: &'static str) -> Html {
        Html(content.to_owned())
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

impl std::ops::AddAssign for Html {
    fn add_assign(&mut self, more: Html) {
        self.0.push_str(&more.0);
    }
}

impl FromIterator<Html> for Html {
    fn from_iter<I: IntoIterator<Item = Html>>(pieces: I) -> Html {
        let mut all = Html::default();
        pieces.into_iter().for_each(|piece| all += piece);
        all
    }
}

/// What can be put into markup.
pub(crate) trait Put {
    fn put(&self, to: &mut Formatter<'_>) -> Result;
}

impl Put for Html {
    fn put(&self, to: &mut Formatter<'_>) -> Result {
        to.write_str(&self.0)
    }
}

impl Put for Option<Html> {
    fn put(&self, to: &mut Formatter<'_>) -> Result {
        self.as_ref().map_or(Ok(()), |html| html.put(to))
    }
}

impl Put for str {
    fn put(&self, to: &mut Formatter<'_>) -> Result {
        escape(self, to)
    }
}

impl Put for String {
    fn put(&self, to: &mut Formatter<'_>) -> Result {
        escape(self, to)
    }
}

impl<T: Put + ?Sized> Put for &T {
    fn put(&self, to: &mut Formatter<'_>) -> Result {
        (**self).put(to)
    }
}

macro_rules! put_numbers {
    ($($kind:ty)*) => {$(
        impl Put for $kind {
            fn put(&self, to: &mut Formatter<'_>) -> Result {
                Display::fmt(self, to)
            }
        }
    )*};
}
put_numbers!(usize u64 i64 u8);

impl Put for f64 {
    /// A place in a drawing: a tenth of a pixel is enough.
    fn put(&self, to: &mut Formatter<'_>) -> Result {
        let tenths = (self * 10.0).round() as i64;
        match (tenths / 10, tenths % 10) {
            (whole, 0) => write!(to, "{whole}"),
            _ => write!(to, "{:.1}", tenths as f64 / 10.0),
        }
    }
}

/// Text as HTML, in elements and in quoted attributes.
fn escape(text: &str, to: &mut Formatter<'_>) -> Result {
    for c in text.chars() {
        match c {
            '&' => to.write_str("&amp;")?,
            '<' => to.write_str("&lt;")?,
            '>' => to.write_str("&gt;")?,
            '"' => to.write_str("&quot;")?,
            '\'' => to.write_str("&#39;")?,
            // Not allowed in HTML, and nothing one could see.
            c if c.is_control() && !matches!(c, '\n' | '\t') => to.write_char('\u{fffd}')?,
            c => to.write_char(c)?,
        }
    }
    Ok(())
}

/// A value on its way into markup.
pub(crate) struct Shown<'a, T: Put + ?Sized>(pub &'a T);

impl<T: Put + ?Sized> Display for Shown<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0.put(f)
    }
}

/// Markup from a literal, with values for its `{}`: text is escaped, [`Html`] is put in as it is.
macro_rules! html {
    ($markup:literal $(, $value:expr)* $(,)?) => {
        $crate::html::Html::from_markup(format!($markup $(, $crate::html::Shown(&$value))*))
    };
}
pub(crate) use html;

/// A sentence in which names and commands are in backticks, as on the terminal.
pub(crate) fn prose(text: &str) -> Html {
    let pieces: Vec<&str> = text.split('`').collect();
    let last = pieces.len() - 1;
    let piece = |(at, piece): (usize, &&str)| match at % 2 {
        0 => html!("{}", piece),
        _ if at == last => html!("`{}", piece), // opened, and never closed
        _ => html!("<code>{}</code>", piece),
    };
    pieces.iter().enumerate().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_never_becomes_markup() {
        let hostile = "<script>alert('1')</script>\" onload=\"x & \u{0}\u{1b}[31m";
        let piece = html!("<td title=\"{}\">{}</td>", hostile, hostile.to_owned());
        let escaped = "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot; onload=&quot;x &amp; \u{fffd}\u{fffd}[31m";
        assert_eq!(piece, Html(format!("<td title=\"{escaped}\">{escaped}</td>")));
    }

    #[test]
    fn names_in_sentences_are_set_apart() {
        let markup = |text| prose(text).into_string();
        assert_eq!(markup("column `<a>`: ok"), "column <code>&lt;a&gt;</code>: ok");
        assert_eq!([markup("one ` alone"), markup("")], ["one ` alone", ""]);
    }

    #[test]
    fn markup_is_put_in_as_it_is() {
        let inner: Html = ["a", "<"].iter().map(|text| html!("<b>{}</b>", text)).collect();
        assert_eq!(html!("<p>{}{}</p>", inner, 3_usize).into_string(), "<p><b>a</b><b>&lt;</b>3</p>");
        assert_eq!(html!("{} {} {}", 1.04, -0.25, 7.0).into_string(), "1 -0.3 7");
    }
}
