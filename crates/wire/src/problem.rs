//! Problem details of RFC 9457, with the fields that are wrong.

use std::borrow::Cow;

use ringback_core::job::JobKey;
use serde::{Deserialize, Serialize};

/// A field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FieldError {
    /// Its name, as a path: `retry.delays`.
    pub field: String,
    /// What is wrong.
    pub detail: String,
    /// What is allowed.
    pub allowed: String,
}

/// A job that a call may have changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JobReference {
    /// Its topic.
    pub topic: String,
    /// Its id, also if the API made it.
    pub id: String,
}

impl From<&JobKey> for JobReference {
    fn from(key: &JobKey) -> Self {
        Self { topic: key.topic.to_string(), id: key.id.to_string() }
    }
}

/// A problem (RFC 9457, application/problem+json). `type` is `about:blank`: the status says which kind of
/// problem it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(example = json!({
    "type": "about:blank", "status": 422, "title": "Unprocessable Entity", "detail": "wrong: topic; see errors",
    "errors": [{"field": "topic", "detail": "missing", "allowed": "1 to 64 of A-Z a-z 0-9 . _ -, and neither . nor .."}],
}))]
pub struct Problem {
    /// The kind's URI.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// The status in words.
    pub title: Cow<'static, str>,
    /// What is wrong in this request, and what to do next.
    pub detail: String,
    /// The fields that are wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// The topic of a job whose outcome is unknown: it may have been accepted or changed. Only with 503.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The id of that job. A submit with this id and the same content can be repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The jobs of a batch or an import whose outcome is unknown: they may have been accepted. Only with 503.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobReference>,
}

impl Problem {
    /// A problem with a status, its reason phrase and a detail.
    pub fn new(status: http::StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank".into(),
            status: status.as_u16(),
            title: status.canonical_reason().unwrap_or("Error").into(),
            detail: detail.into(),
            errors: Vec::new(),
            topic: None,
            id: None,
            jobs: Vec::new(),
        }
    }

    /// The problem of a call whose effect on a job is not known, with the topic and the id of the job.
    #[must_use]
    pub fn about(self, key: &JobKey) -> Self {
        Self { topic: Some(key.topic.to_string()), id: Some(key.id.to_string()), ..self }
    }

    /// 400: the body is not readable JSON.
    pub fn unreadable(detail: impl Into<String>) -> Self {
        Self::new(http::StatusCode::BAD_REQUEST, detail)
    }

    /// 422: some fields are wrong.
    pub fn fields(errors: Vec<FieldError>) -> Self {
        let names: Vec<_> = errors.iter().map(|e| e.field.as_str()).collect();
        let detail = format!("wrong: {}; see errors", names.join(", "));
        Self { errors, ..Self::new(http::StatusCode::UNPROCESSABLE_ENTITY, detail) }
    }
}
