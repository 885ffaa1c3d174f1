//! Gives an id to lines of an import that have none, so that importing the same file again makes the same jobs.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// The fields that matter here. The server checks all others.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    topic: Option<&'a RawValue>,
}

/// Reads a value that is present as `Some`, even if it is null.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The line with an id made from its content and number, if it has none or null. A line with an id, one that is not a
/// JSON object, and one without a topic stay unchanged.
pub(crate) fn with_id(line: &[u8], number: u64) -> Cow<'_, [u8]> {
    let Ok(Line { id, topic: Some(_) }) = serde_json::from_slice::<Line<'_>>(line) else {
        return line.into();
    };
    match id {
        None => match line.iter().position(|byte| *byte == b'{') {
            Some(brace) => {
                replaced(line, brace + 1..brace + 1, &format!("\"id\":\"{}\",", made_id(line, number)))
            }
            None => line.into(),
        },
        Some(id) if id.get() == "null" => {
            let start = id.get().as_ptr().addr() - line.as_ptr().addr();
            replaced(line, start..start + "null".len(), &format!("\"{}\"", made_id(line, number)))
        }
        Some(_) => line.into(),
    }
}

fn replaced<'a>(line: &[u8], range: std::ops::Range<usize>, with: &str) -> Cow<'a, [u8]> {
    [&line[..range.start], with.as_bytes(), &line[range.end..]].concat().into()
}

/// The id made for a line: its number, and 64 bits of the SHA-256 of its content.
fn made_id(line: &[u8], number: u64) -> String {
    let digest = Sha256::digest(line);
    let hex: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("line-{number}-{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &str, number: u64) -> String {
        String::from_utf8(with_id(line.as_bytes(), number).into_owned()).unwrap()
    }

    #[test]
    fn a_line_without_an_id_gets_one_of_its_content_and_number() {
        let line = r#" {"topic":"t","body":{"id":"inner"}}"#;
        let with = text(line, 7);
        assert_eq!(with, r#" {"id":"line-7-ffd2a202a05e05da","topic":"t","body":{"id":"inner"}}"#);
        assert_eq!(with, text(line, 7));
        assert_ne!(with, text(line, 8));
        assert_ne!(with, text(r#" {"topic":"u","body":{"id":"inner"}}"#, 7));
    }

    #[test]
    fn an_id_that_is_null_is_replaced_in_its_place() {
        let with = text(r#"{"topic":"t","id": null ,"url":"x"}"#, 1);
        assert!(
            with.starts_with(r#"{"topic":"t","id": "line-1-"#) && with.ends_with(r#"" ,"url":"x"}"#),
            "{with}"
        );
    }

    #[test]
    fn a_line_that_has_an_id_or_is_no_job_stays_unchanged() {
        for line in [
            r#"{"topic":"t","id":"i"}"#,
            r#"{"topic":"t","id":5}"#,
            r#"{"topic":"t","id":"a","id":"b"}"#,
            r#"{"topic":"t","id":null,"id":null}"#,
            "{}",
            "[1]",
            "5",
            "{\"topic\":",
            r#"{"topic":"t"} {}"#,
        ] {
            assert_eq!(text(line, 1), line);
        }
        assert_eq!(&*with_id(b"{\"topic\":\"\xff\"}", 1), b"{\"topic\":\"\xff\"}");
    }
}
