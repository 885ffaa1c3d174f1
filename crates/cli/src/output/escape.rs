//! Makes text from elsewhere safe to print: control characters are escaped, so that on a terminal it cannot move the
//! cursor, change colours or pretend to be output of this program.

use std::fmt::Write as _;

/// A text with its control characters escaped, such as `\u{1b}`; tabs and line breaks too.
pub(crate) fn escape_text(text: &str) -> String {
    escape(text, is_unsafe)
}

/// A text with control characters escaped, and all others that are invisible or look like a space.
pub(crate) fn escape_invisible(text: &str) -> String {
    escape(text, |c| is_unsafe(c) || is_invisible(c))
}

/// A text of several lines with its control characters escaped, except tabs and line feeds.
pub(crate) fn escape_lines(text: &str) -> String {
    escape(text, |c| is_unsafe(c) && !is_layout(c))
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c) {
            let _ = write!(escaped, "{}", c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// A JSON document on one line with the unsafe characters of its strings escaped. JSON itself demands that only below
/// U+0020.
pub(crate) fn escape_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unsafe(c) {
            // All of them are below U+10000.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Whether a terminal may act on a character: C0 and C1 control characters, and those that break lines or reverse the
/// direction of the text around them.
pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character has no width, or looks like a space and is another one.
fn is_invisible(c: char) -> bool {
    (c.is_whitespace() && c != ' ')
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        )
}

/// Whether a character only lays out a text: a tab or a line feed.
pub(super) fn is_layout(c: char) -> bool {
    matches!(c, '\n' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_is_left() {
        let hostile = "a\u{1b}[31m\r\n\t\0\u{7f}\u{9b}2J\u{202e}ä→";
        let text = escape_text(hostile);
        assert_eq!(text, r"a\u{1b}[31m\r\n\t\u{0}\u{7f}\u{9b}2J\u{202e}ä→");
        let lines = escape_lines(hostile);
        assert_eq!(lines, "a\\u{1b}[31m\\r\n\t\\u{0}\\u{7f}\\u{9b}2J\\u{202e}ä→");
        let json = escape_json(&serde_json::to_string(hostile).unwrap());
        assert!(!json.chars().any(is_unsafe), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    }
}
