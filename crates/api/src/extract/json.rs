//! Bodies of the calls about one job, one topic or some receipts: JSON, optional JSON, or none.

use std::sync::Arc;

use axum::body::HttpBody as _;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::header::EXPECT;
use ringback_wire::parse_nothing;

use super::body::{self, Upload};
use super::media_type;
use crate::error::ApiError;
use crate::limits::{Deadline, Turn};
use crate::state::Api;

/// The largest request with a single job. A body of 256 KiB fits in base64, or with every byte
/// escaped once.
const MAX_JOB_BYTES: usize = ringback_core::job::MAX_JOB;
/// The largest body of a call that takes none.
const MAX_EMPTY_BYTES: usize = 4096;

/// An optional body of application/json.
pub(crate) struct MaybeJson(pub(crate) Bytes);

impl FromRequest<Arc<Api>> for MaybeJson {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, ApiError> {
        let is_json = media_type::check(request.headers(), &["application/json"]);
        // A client that waits for 100 Continue has a body, and is refused before it sends it.
        let is_awaited = request.headers().contains_key(EXPECT) && !request.body().is_end_stream();
        match is_json {
            Err(error) if is_awaited => Err(error),
            is_json => {
                let (_, Upload { bytes, .. }) = body::of_request(request, MAX_JOB_BYTES, api).await?;
                if bytes.is_empty() { Ok(Self(bytes)) } else { is_json.map(|_| Self(bytes)) }
            }
        }
    }
}

/// A body of application/json, and the turn to parse it, if it needs one. The handler parses it and then ends the turn.
pub(crate) struct JsonBody(pub(crate) Upload, pub(crate) Option<Turn>);

impl FromRequest<Arc<Api>> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, ApiError> {
        Self::of_types(request, api, &["application/json"]).await
    }
}

impl JsonBody {
    async fn of_types(request: Request, api: &Api, types: &[&'static str]) -> Result<Self, ApiError> {
        media_type::check(request.headers(), types)?;
        let (parts, upload) = body::of_request(request, MAX_JOB_BYTES, api).await?;
        let turn = upload.turn(api, &parts).await?;
        Ok(Self(upload, turn))
    }
}

/// A patch of JSON (RFC 7396), also sent as plain JSON. The handler parses it.
pub(crate) struct PatchBody(pub(crate) Upload);

impl FromRequest<Arc<Api>> for PatchBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, ApiError> {
        let JsonBody(upload, _turn) =
            JsonBody::of_types(request, api, &["application/json", "application/merge-patch+json"]).await?;
        Ok(Self(upload))
    }
}

/// The body of a call that takes none: empty, or an empty JSON object. Holds the request's deadline.
pub(crate) struct NoBody(pub(crate) Deadline);

impl FromRequest<Arc<Api>> for NoBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, ApiError> {
        let (_, Upload { bytes, deadline, .. }) = body::of_request(request, MAX_EMPTY_BYTES, api).await?;
        parse_nothing(&bytes)?;
        Ok(Self(deadline))
    }
}
