//! What handlers take out of a request: the caller's place in a trace, a job's name from the
//! path, what its query asks for, and bodies of the right type and size.

mod batch;
mod body;
mod idempotency;
mod query;

use std::sync::Arc;

use axum::RequestPartsExt as _;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use ringback_core::contract::{PullReceipt, RedriveId};
use ringback_core::job::{JobId, JobKey, Topic, Trace};
use ringback_core::wire::{FieldError, Problem, parse_nothing};
use ringback_service::TraceParent;

pub(crate) use self::batch::{BatchBody, ImportBody, Pieces};
pub(crate) use self::body::Upload;
pub(crate) use self::idempotency::{IdempotencyKey, NoIdempotencyKey, beside_an_id};
pub(crate) use self::query::{
    DeadQuery, EventsQuery, FilterQuery, ForceQuery, PageQuery, PurgeQuery, TopicsQuery, outdated_cursor,
};
use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::routes::{receipts, revivals};
use crate::state::Api;

/// The largest request for one job: a body of 256 KiB fits in base64, or with every byte of it
/// escaped once.
pub(crate) const MAX_JOB_BYTES: usize = ringback_core::job::MAX_JOB;

/// The largest body of a call that takes none.
const MAX_NOTHING_BYTES: usize = 4096;

/// The trace that a request belongs to: our own span where traces are exported, else the caller's.
pub(crate) struct Caller(pub(crate) Option<Trace>);

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let parent = TraceParent::current().or_else(|| trace_parent(&parts.headers));
        Ok(Self(parent.map(|parent| Trace {
            trace_id: parent.trace_id,
            parent_id: parent.span_id,
            flags: parent.sampled.into(),
        })))
    }
}

/// A traceparent that is wrong counts as none, as its specification asks.
pub(crate) fn trace_parent(headers: &HeaderMap) -> Option<TraceParent> {
    headers.get("traceparent")?.to_str().ok()?.parse().ok()
}

/// The job that the path names.
pub(crate) struct JobPath(pub(crate) JobKey);

impl<S: Send + Sync> FromRequestParts<S> for JobPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let Path((topic, id)) = parts
            .extract::<Path<(String, String)>>()
            .await
            .map_err(|rejection| Problem::unreadable(rejection.body_text()))?;
        let wrong = |field: &str, text: &str, allowed: &str| FieldError {
            field: field.to_owned(),
            detail: format!("{text:?} is no {field}"),
            allowed: allowed.to_owned(),
        };
        match (topic.parse::<Topic>(), id.parse::<JobId>()) {
            (Ok(topic), Ok(id)) => Ok(Self(JobKey { topic, id })),
            (no_topic, no_id) => {
                let no_topic = no_topic.err().map(|e| wrong("topic", &topic, e.0));
                let no_id = no_id.err().map(|e| wrong("id", &id, e.0));
                Err(Problem::fields(no_topic.into_iter().chain(no_id).collect()).into())
            }
        }
    }
}

/// The topic that the path names.
pub(crate) struct TopicPath(pub(crate) Topic);

impl<S: Send + Sync> FromRequestParts<S> for TopicPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let Path(topic) = parts
            .extract::<Path<String>>()
            .await
            .map_err(|rejection| Problem::unreadable(rejection.body_text()))?;
        let wrong = |allowed: &str| FieldError {
            field: "topic".to_owned(),
            detail: format!("{topic:?} is no topic"),
            allowed: allowed.to_owned(),
        };
        topic.parse::<Topic>().map(Self).map_err(|e| Problem::fields(vec![wrong(e.0)]).into())
    }
}

/// The revival that the path names, and its topic.
pub(crate) struct RevivalPath(pub(crate) Topic, pub(crate) RedriveId);

impl<S: Send + Sync> FromRequestParts<S> for RevivalPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let path = parts.extract::<Path<(String, String)>>().await;
        let known = path.ok().and_then(|Path((topic, id))| Some((topic.parse().ok()?, id.parse().ok()?)));
        known.map(|(topic, id)| Self(topic, id)).ok_or_else(revivals::unknown)
    }
}

/// The receipt that the path names.
pub(crate) struct ReceiptPath(pub(crate) PullReceipt);

impl FromRequestParts<Arc<Api>> for ReceiptPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, ApiError> {
        let path = parts.extract::<Path<String>>().await;
        let known = path.ok().and_then(|Path(text)| receipts::known(api, &text));
        known.map(Self).ok_or_else(|| receipts::unknown().into())
    }
}

/// A body of application/json, or none at all.
pub(crate) struct MaybeJson(pub(crate) Bytes);

impl FromRequest<Arc<Api>> for MaybeJson {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, ApiError> {
        let is_json = media_type(request.headers(), &["application/json"]);
        let Upload { bytes, .. } = body::read(request.into_body(), MAX_JOB_BYTES, &api.room).await?;
        match is_json {
            Err(error) if !bytes.is_empty() => Err(error),
            _ => Ok(Self(bytes)),
        }
    }
}

/// A body of application/json that is not too large. Whether it is JSON is judged later.
pub(crate) struct JsonBody(pub(crate) Upload);

impl FromRequest<Arc<Api>> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, ApiError> {
        media_type(request.headers(), &["application/json"])?;
        body::read(request.into_body(), MAX_JOB_BYTES, &api.room).await.map(Self)
    }
}

/// The body of a call that takes none: it is empty, or says nothing.
pub(crate) struct NoBody(pub(crate) Deadline);

impl FromRequest<Arc<Api>> for NoBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, ApiError> {
        let Upload { bytes, deadline, .. } =
            body::read(request.into_body(), MAX_NOTHING_BYTES, &api.room).await?;
        parse_nothing(&bytes)?;
        Ok(Self(deadline))
    }
}

/// Which of the `allowed` media types a request has.
fn media_type(headers: &HeaderMap, allowed: &[&'static str]) -> Result<&'static str, ApiError> {
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

#[cfg(test)]
mod tests;
