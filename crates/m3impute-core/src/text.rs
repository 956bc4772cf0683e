//! Texts of strangers in messages.

use std::borrow::Cow;

/// A text in which control characters, and those that change the direction of what follows, are written as escapes: a
/// name or a cell of a file cannot move the cursor, colour the screen or forge a line.
///
/// ```
/// assert_eq!(m3impute_core::escaped("a\x1b[2J\nb"), "a\\u{1b}[2J\\nb");
/// assert_eq!(m3impute_core::escaped("straße"), "straße");
/// ```
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unseen) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_unseen(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

fn is_unseen(c: char) -> bool {
    let directs = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}');
    c.is_control() || directs || c == '\u{feff}'
}
