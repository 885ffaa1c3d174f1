//! Checks the media type of a request body: its `Content-Type` and `Content-Encoding` (RFC 9110, section 8).

use http::{HeaderMap, StatusCode, header};

use crate::error::ApiError;

/// Returns which of the `allowed` media types a body has. 415 for any other or none, for a charset other than UTF-8 or
/// ASCII, and for a content coding.
pub(super) fn check(headers: &HeaderMap, allowed: &[&'static str]) -> Result<&'static str, ApiError> {
    let unsupported = |detail: String| ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail);
    let codings = headers.get_all(header::CONTENT_ENCODING).iter();
    let is_coded = |value: &&http::HeaderValue| {
        let is_none = |coding: &[u8]| coding.is_empty() || coding.eq_ignore_ascii_case(b"identity");
        !value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii).all(is_none)
    };
    if let Some(coding) = codings.into_iter().find(is_coded) {
        return Err(unsupported(format!("the content-encoding {coding:?} is not supported; send none")));
    }
    let given = headers.get(header::CONTENT_TYPE);
    let (essence, parameters) = given.and_then(|value| value.to_str().ok()).map(split).unwrap_or_default();
    let Some(found) = allowed.iter().find(|name| name.eq_ignore_ascii_case(essence)) else {
        let shown = given.map_or_else(|| "missing".to_owned(), |value| format!("{value:?}"));
        return Err(unsupported(format!(
            "the content-type is {shown}; send {} in UTF-8",
            allowed.join(" or ")
        )));
    };
    match parameters.into_iter().filter_map(charset).find(|charset| !is_utf8(charset)) {
        Some(charset) => {
            Err(unsupported(format!("the charset {charset:?} is not supported; send {found} in UTF-8")))
        }
        None => Ok(found),
    }
}

/// Splits a media type into the type and its parameters. A semicolon in a quoted value does not separate.
fn split(text: &str) -> (&str, Vec<&str>) {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let mut parts = text.split(|character: char| {
        let ends = character == ';' && !is_quoted;
        match character {
            '"' if !is_escaped => is_quoted = !is_quoted,
            _ => {}
        }
        is_escaped = is_quoted && character == '\\' && !is_escaped;
        ends
    });
    let essence = parts.next().unwrap_or_default().trim();
    (essence, parts.map(str::trim).collect())
}

/// The value of a parameter `charset`. All other parameters have no meaning for JSON (RFC 8259, section 11).
fn charset(parameter: &str) -> Option<&str> {
    let (name, value) = parameter.split_once('=')?;
    name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
}

/// Whether a text in this charset is one in UTF-8.
fn is_utf8(charset: &str) -> bool {
    ["utf-8", "utf8", "us-ascii", "ascii"].iter().any(|name| name.eq_ignore_ascii_case(charset))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &[&str] = &["application/json", "application/x-ndjson"];

    fn checked(name: &'static str, values: &[&'static str]) -> Result<&'static str, String> {
        let mut headers = HeaderMap::new();
        if name != "content-type" {
            headers.insert("content-type", http::HeaderValue::from_static("application/json"));
        }
        for value in values {
            headers.append(name, http::HeaderValue::from_static(value));
        }
        check(&headers, ALLOWED).map_err(|error| {
            assert_eq!(error.0.status, 415);
            error.0.detail
        })
    }

    #[test]
    fn parameters_are_ignored_and_utf_8_has_many_spellings() {
        for (text, found) in [
            ("application/json", "application/json"),
            ("Application/JSON", "application/json"),
            ("application/json;", "application/json"),
            ("application/json ; charset=UTF-8", "application/json"),
            ("application/json;charset=utf8", "application/json"),
            ("application/json; Charset=\"Utf-8\"", "application/json"),
            ("application/json; charset=us-ascii", "application/json"),
            ("application/json; v=1; charset=utf-8", "application/json"),
            ("application/json; foo=bar; v=\"x;charset=latin1\"", "application/json"),
            ("application/json; v=\"a\\\";charset=latin1\"; w", "application/json"),
            ("application/x-ndjson; header=present", "application/x-ndjson"),
        ] {
            assert_eq!(checked("content-type", &[text]), Ok(found), "{text}");
        }
    }

    #[test]
    fn another_type_or_charset_is_named() {
        for (values, words) in [
            (&[][..], "the content-type is missing; send application/json or application/x-ndjson"),
            (&["text/plain; charset=utf-8"], "text/plain"),
            (&["application/jsonp"], "application/jsonp"),
            (&["application/json; charset=ISO-8859-1"], "the charset \"ISO-8859-1\""),
            (&["application/json; charset=\"utf-16\"; v=1"], "the charset \"utf-16\""),
            (&["application/json; charset=utf-8; charset=latin1"], "the charset \"latin1\""),
        ] {
            let detail = checked("content-type", values).unwrap_err();
            assert!(detail.contains(words) && detail.contains("UTF-8"), "{detail}");
        }
    }

    #[test]
    fn only_a_coding_that_changes_nothing_is_taken() {
        for values in [&["identity"][..], &["Identity"], &["IDENTITY, identity"], &[""], &["identity", ""]] {
            assert!(checked("content-encoding", values).is_ok(), "{values:?}");
        }
        for values in [&["gzip"][..], &["identity, gzip"], &["identity", "GZIP"], &["br"]] {
            assert!(
                checked("content-encoding", values).unwrap_err().contains("content-encoding"),
                "{values:?}"
            );
        }
    }
}
