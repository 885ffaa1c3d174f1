//! Checks the media type of a request body: its `Content-Type` and `Content-Encoding`.

use http::{HeaderMap, StatusCode, header};

use crate::error::ApiError;

/// Returns the one of the `allowed` media types that a request has, or a 415 problem.
pub(super) fn check(headers: &HeaderMap, allowed: &[&'static str]) -> Result<&'static str, ApiError> {
    let unsupported = |detail: String| ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail);
    let coded = headers.get(header::CONTENT_ENCODING).filter(|coding| *coding != "identity");
    if let Some(coding) = coded {
        return Err(unsupported(format!("the content-encoding {coding:?} is not supported; send none")));
    }
    let given = headers.get(header::CONTENT_TYPE);
    let found = given.and_then(|value| value.to_str().ok()).and_then(|text| {
        let mut parts = text.split(';').map(str::trim);
        let essence = parts.next()?;
        let plain = parts.filter(|part| !part.is_empty()).all(is_utf8);
        allowed.iter().find(|name| plain && name.eq_ignore_ascii_case(essence))
    });
    found.copied().ok_or_else(|| {
        let shown = given.map_or_else(|| "missing".to_owned(), |value| format!("{value:?}"));
        unsupported(format!("the content-type is {shown}; send {} in UTF-8", allowed.join(" or ")))
    })
}

fn is_utf8(parameter: &str) -> bool {
    parameter.split_once('=').is_some_and(|(name, value)| {
        name.eq_ignore_ascii_case("charset") && value.trim_matches('"').eq_ignore_ascii_case("utf-8")
    })
}
