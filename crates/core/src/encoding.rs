//! The encoding of requests, imports and files, which is UTF-8: removes a byte order mark at the start, as RFC 8259,
//! section 8.1 allows, refuses UTF-16 and UTF-32 by name, and makes a byte order mark visible in messages.

/// The byte order mark in UTF-8, which some editors write at the start of a file.
pub const BYTE_ORDER_MARK: &[u8] = MARK.as_bytes();
const MARK: &str = "\u{feff}";

/// The text is in another encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the text is in {0}; save or send it in UTF-8")]
pub struct OtherEncoding(&'static str);

/// The text without a byte order mark at its start.
///
/// # Errors
/// If the text begins with a byte order mark of UTF-16 or UTF-32, or has a zero byte in its first two bytes.
pub fn without_mark(text: &[u8]) -> Result<&[u8], OtherEncoding> {
    match text {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] | [0, 0, 0, _, ..] | [_, 0, 0, 0, ..] => {
            Err(OtherEncoding("UTF-32"))
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] => Err(OtherEncoding("UTF-16")),
        text => Ok(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)),
    }
}

/// The parser's message why a text is not JSON, in which a byte order mark at the error is named, and `ident` is
/// replaced by what it means: `true`, `false` or `null`.
#[must_use]
pub fn json_error(text: &str, error: &serde_json::Error) -> String {
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default().as_bytes();
    let column = error.column().saturating_sub(2);
    let is_mark = |at: usize| line.get(at..).is_some_and(|rest| rest.starts_with(BYTE_ORDER_MARK));
    if (column..column + 3).any(is_mark) {
        return format!("{error}: there is a byte order mark (U+FEFF), which may only be at the very start");
    }
    // The parser's word for true, false and null.
    error.to_string().replace("expected ident", "expected true, false or null (a string needs quotes)")
}

/// A message with `\ufeff` in place of each byte order mark, and an explanation at its end; unchanged if it has none.
#[must_use]
pub fn visible(message: String) -> String {
    if !message.contains(MARK) {
        return message;
    }
    format!("{}; \\ufeff is a byte order mark, which editors do not show", message.replace(MARK, "\\ufeff"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_at_the_start_is_ignored_and_other_encodings_are_named() {
        let utf16 = |text: &str, mark: &[u16]| {
            let units: Vec<u16> = mark.iter().copied().chain(text.encode_utf16()).collect();
            [u16::to_le_bytes, u16::to_be_bytes].map(|bytes| units.iter().copied().flat_map(bytes).collect())
        };
        let utf32 = |text: &str| -> [Vec<u8>; 2] {
            [u32::to_le_bytes, u32::to_be_bytes]
                .map(|bytes| text.chars().map(u32::from).flat_map(bytes).collect())
        };
        for text in ["", "{}", " [1]", "\"é\"", "[[feed]]", "0"] {
            assert_eq!(without_mark(text.as_bytes()), Ok(text.as_bytes()));
            assert_eq!(without_mark(format!("{MARK}{text}").as_bytes()), Ok(text.as_bytes()));
        }
        for text in ["{}", "[1]", "\n{\"topic\":\"é\"}", "7"] {
            let marked: [Vec<u8>; 2] = utf16(text, &[0xfeff]);
            let bare: [Vec<u8>; 2] = utf16(text, &[]);
            for bytes in marked.iter().chain(&bare) {
                assert_eq!(without_mark(bytes), Err(OtherEncoding("UTF-16")), "{bytes:?}");
            }
            for bytes in utf32(text).iter().chain(&utf32(&format!("{MARK}{text}"))) {
                assert_eq!(without_mark(bytes), Err(OtherEncoding("UTF-32")), "{bytes:?}");
            }
        }
    }

    #[test]
    fn a_mark_where_none_may_be_has_a_name() {
        let error =
            |text: &str| json_error(text, &serde_json::from_str::<serde_json::Value>(text).unwrap_err());
        for text in [
            "\u{feff}{}",
            "{\u{feff}}",
            "{}\u{feff}",
            "[1,\u{feff}2]",
            "[1,\n  \u{feff}2]",
            "{\"a\":\u{feff}1}",
        ] {
            assert!(error(text).contains("byte order mark"), "{text:?}: {}", error(text));
        }
        assert!(!error("{\"\u{feff}\":}").contains("byte order mark"), "it is elsewhere");
    }

    #[test]
    fn a_mark_in_a_message_can_be_seen() {
        assert_eq!(visible("plain".to_owned()), "plain");
        let shown = visible("\"\u{feff}t\" is not a topic".to_owned());
        assert!(shown.starts_with("\"\\ufefft\" is not a topic; \\ufeff is a byte order mark"), "{shown}");
    }
}
