//! The annotations after a time (RFC 9557, section 4.1): a time zone, then pairs of a key and a value. No
//! pair is known here, so one that is critical is refused, and any other is ignored (section 3.3).

use super::TimeError;
use crate::limits::name_start;

/// The time zone of the annotations: its name or its offset.
///
/// # Errors
/// The text is not a list of annotations, or one of its pairs is critical.
pub(super) fn zone(text: &str) -> Result<Option<&str>, TimeError> {
    let (mut zone, mut rest) = (None, text);
    while !rest.is_empty() {
        let (annotation, after) =
            rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).ok_or(TimeError::Annotation)?;
        let (is_critical, content) = match annotation.strip_prefix('!') {
            Some(content) => (true, content),
            None => (false, annotation),
        };
        match content.split_once('=') {
            Some((key, values)) if is_key(key) && values.split('-').all(is_value) => {
                if is_critical {
                    return Err(TimeError::Critical(name_start(key)));
                }
            }
            // A zone comes first, and once.
            None if rest.len() == text.len() && is_zone(content) => zone = Some(content),
            _ => return Err(TimeError::Annotation),
        }
        rest = after;
    }
    Ok(zone)
}

fn is_key(text: &str) -> bool {
    let initial = |b: u8| b.is_ascii_lowercase() || b == b'_';
    let rest = |b: u8| initial(b) || b.is_ascii_digit() || b == b'-';
    text.bytes().next().is_some_and(initial) && text.bytes().all(rest)
}

fn is_value(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn is_zone(text: &str) -> bool {
    let initial = |b: u8| b.is_ascii_alphabetic() || matches!(b, b'.' | b'_');
    let rest = |b: u8| initial(b) || b.is_ascii_digit() || matches!(b, b'-' | b'+');
    let is_part = |part: &str| {
        part.bytes().next().is_some_and(initial) && part.bytes().all(rest) && !matches!(part, "." | "..")
    };
    text.starts_with(['+', '-']) || text.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_zone_comes_first_and_pairs_follow() {
        for (text, expected) in [
            ("", None),
            ("[Europe/Berlin]", Some("Europe/Berlin")),
            ("[!Europe/Berlin]", Some("Europe/Berlin")),
            ("[+01:00]", Some("+01:00")),
            ("[Etc/GMT+5][u-ca=hebrew]", Some("Etc/GMT+5")),
            ("[u-ca=hebrew]", None),
            ("[_x=1][u-ca=islamic-civil][u-ca=hebrew]", None),
        ] {
            assert_eq!(zone(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_critical_pair_is_refused_by_its_key() {
        for text in ["[!u-ca=hebrew]", "[Europe/Berlin][!u-ca=hebrew]", "[u-ca=x][!u-ca=hebrew]"] {
            assert_eq!(zone(text), Err(TimeError::Critical("u-ca".to_owned())), "{text}");
        }
    }

    #[test]
    fn other_texts_are_not_annotations() {
        for text in [
            "[",
            "[]",
            "[!]",
            "[Europe/Berlin",
            "Europe/Berlin]",
            "[Europe/Berlin] ",
            "[Europe/Berlin]Z",
            "[Europe/Berlin][Europe/Berlin]",
            "[u-ca=hebrew][Europe/Berlin]",
            "[!!Europe/Berlin]",
            "[Europe//Berlin]",
            "[../Berlin]",
            "[Europe/Berlin/]",
            "[1/2]",
            "[U-CA=hebrew]",
            "[=hebrew]",
            "[u-ca=]",
            "[u-ca=a--b]",
            "[u-ca=a b]",
            "[日本]",
        ] {
            assert_eq!(zone(text), Err(TimeError::Annotation), "{text}");
        }
    }
}
