//! What handlers take out of a request: the caller's place in a trace, a job's name from the
//! path, and bodies of the right type and size.

mod batch;

use std::time::Duration;

use axum::RequestPartsExt as _;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use ringback_core::job::{JobId, JobKey, Topic, Trace};
use ringback_core::wire::{FieldError, Problem};
use ringback_service::TraceParent;
use tokio::time::timeout;

pub(crate) use self::batch::BatchBody;
use crate::error::ApiError;

/// The largest request for one job: a body of 256 KiB fits in base64, or with every byte of it
/// escaped once.
pub(crate) const MAX_JOB_BYTES: usize = ringback_core::job::MAX_JOB;
/// How long a request's body may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// A body that is too large is read on for so long, since a sender that is cut off in the
/// middle often never sees the answer.
const DRAIN_FOR: Duration = Duration::from_secs(2);

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

/// A body of application/json that is not too large. Whether it is JSON is judged later.
pub(crate) struct JsonBody(pub(crate) Bytes);

impl<S: Sync> FromRequest<S> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        media_type(request.headers(), &["application/json"])?;
        read(request.into_body(), MAX_JOB_BYTES).await.map(Self)
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

/// Reads a body to its end, in time and up to `limit` bytes.
async fn read(body: Body, limit: usize) -> Result<Bytes, ApiError> {
    let slow = |_| {
        ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("the body did not arrive within {} s", BODY_WITHIN.as_secs()),
        )
    };
    timeout(BODY_WITHIN, collect(body, limit)).await.map_err(slow)?
}

async fn collect(body: Body, limit: usize) -> Result<Bytes, ApiError> {
    let mut frames = body.into_data_stream();
    let mut whole = Collected::Nothing;
    let mut length = 0;
    while let Some(frame) = frames.next().await {
        let frame = frame.map_err(|_| Problem::unreadable("the body ended too early"))?;
        length += frame.len();
        if length > limit {
            drop(whole);
            // Whether all of it comes or not: the answer is the same.
            timeout(DRAIN_FOR, async { while let Some(Ok(_)) = frames.next().await {} }).await.ok();
            let detail = format!("the request is too large; at most {limit} bytes are allowed");
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
        }
        whole = whole.and(frame);
    }
    Ok(whole.freeze())
}

/// A body so far. One that comes in a single frame, as most do, is not copied.
enum Collected {
    Nothing,
    One(Bytes),
    Many(BytesMut),
}

impl Collected {
    fn and(self, frame: Bytes) -> Self {
        match self {
            Self::Nothing => Self::One(frame),
            Self::One(first) => {
                let mut all = BytesMut::with_capacity(2 * (first.len() + frame.len()));
                all.extend_from_slice(&first);
                Self::Many(all).and(frame)
            }
            Self::Many(mut all) => {
                all.extend_from_slice(&frame);
                Self::Many(all)
            }
        }
    }

    fn freeze(self) -> Bytes {
        match self {
            Self::Nothing => Bytes::new(),
            Self::One(bytes) => bytes,
            Self::Many(bytes) => bytes.freeze(),
        }
    }
}

#[cfg(test)]
mod tests;
