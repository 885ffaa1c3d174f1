//! Errors as RFC 9457 problem details, with the fields that were wrong.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// One field that was wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FieldError {
    /// Its name, as a path: `retry.delays`.
    pub field: String,
    /// What was wrong.
    pub detail: String,
    /// What is allowed.
    pub allowed: String,
}

/// A problem (RFC 9457, application/problem+json). `type` is `about:blank`: the status
/// says which kind it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Problem {
    /// The kind's URI.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The HTTP status.
    pub status: u16,
    /// The status in words.
    pub title: Cow<'static, str>,
    /// What was wrong here, and what to do next.
    pub detail: String,
    /// The fields that were wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

impl Problem {
    /// A problem with a status, its reason phrase and what was wrong.
    pub fn new(status: http::StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank".into(),
            status: status.as_u16(),
            title: status.canonical_reason().unwrap_or("Error").into(),
            detail: detail.into(),
            errors: Vec::new(),
        }
    }

    /// 400: the bytes are no readable JSON.
    pub fn unreadable(detail: impl Into<String>) -> Self {
        Self::new(http::StatusCode::BAD_REQUEST, detail)
    }

    /// 422: readable, but some fields are wrong.
    pub fn fields(errors: Vec<FieldError>) -> Self {
        let names: Vec<_> = errors.iter().map(|e| e.field.as_str()).collect();
        let detail = format!("wrong: {}; see errors", names.join(", "));
        Self { errors, ..Self::new(http::StatusCode::UNPROCESSABLE_ENTITY, detail) }
    }
}
