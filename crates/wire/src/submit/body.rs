//! The body of a submitted job: JSON byte for byte, or any bytes in base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ringback_core::job::{Body, MAX_BODY, MAX_DEPTH};
use serde_json::value::RawValue;

use crate::field_parsers::object::{Fields, Mistakes, depth, read, shown};
use crate::field_parsers::values::field;
use crate::problem::Problem;

/// The content type of a body in base64 if the job does not say.
pub(crate) const DEFAULT_CONTENT_TYPE: &str = "application/octet-stream";

/// The content type of a JSON body.
pub(crate) const JSON: &str = "application/json";

/// Reads the fields `body`, `body_base64` and `content_type`. Wrong ones add mistakes; a body too large fails with 413.
pub(super) fn body(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Result<Body, Problem> {
    let content_type = fields.get("content_type");
    let bytes = match (fields.raw("body"), fields.get("body_base64")) {
        (Some(_), Some(raw)) => {
            mistakes.add("body_base64", "given together with body", "one of body and body_base64");
            return Ok(Body { bytes: Bytes::new(), content_type: Some(shown(raw)) });
        }
        (Some(raw), None) => {
            if depth(raw.get()) > MAX_DEPTH {
                mistakes.add("body", "nested too deeply", format!("at most {MAX_DEPTH} levels"));
            }
            if content_type.is_some() {
                mistakes.add("content_type", "given for a JSON body", "only together with body_base64");
            }
            let bytes = Bytes::copy_from_slice(raw.get().as_bytes());
            return sized(bytes).map(|bytes| Body { bytes, content_type: None });
        }
        (None, Some(raw)) => match read::<String>(raw).map(|text| STANDARD.decode(text)) {
            Some(Ok(bytes)) => sized(bytes.into())?,
            _ => {
                mistakes.add("body_base64", "not base64", "base64 by RFC 4648, section 4, with padding");
                Bytes::new()
            }
        },
        (None, None) => Bytes::new(),
    };
    let allowed = "a media type such as text/plain, at most 255 bytes";
    let content_type = field(fields, "content_type", "is not a content type", allowed, mistakes, |raw| {
        read::<String>(raw).filter(|name| is_content_type(name))
    });
    let content_type = content_type.unwrap_or_else(|| DEFAULT_CONTENT_TYPE.to_owned());
    // The default need not be stored: it is delivered the same.
    Ok(Body { bytes, content_type: Some(content_type).filter(|name| name != JSON) })
}

/// The body as a JSON value that can be written into an answer unchanged. `None` if it is not JSON, or has white space
/// at its ends, which would be lost.
pub(crate) fn as_json(body: &Body) -> Option<&RawValue> {
    if body.content_type() != JSON {
        return None;
    }
    let json: &RawValue = serde_json::from_slice(&body.bytes).ok()?;
    (json.get().len() == body.bytes.len()).then_some(json)
}

fn sized(bytes: Bytes) -> Result<Bytes, Problem> {
    if bytes.len() > MAX_BODY {
        let detail = format!("the body has {} bytes; at most {MAX_BODY} are allowed", bytes.len());
        return Err(Problem::new(http::StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    Ok(bytes)
}

fn is_content_type(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default().trim();
    let token = |t: &str| !t.is_empty() && http::HeaderName::from_bytes(t.as_bytes()).is_ok();
    let named = essence.split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype));
    named && text.len() <= 255 && text.trim() == text && http::HeaderValue::from_str(text).is_ok()
}
