//! `GET /v1/export`: streams all jobs as NDJSON, and what all exports share: turns, retries, and their answers. The
//! next page of the store is read when the client has received the last. If an export fails the connection is aborted,
//! so that the client can distinguish an incomplete export from a complete one.

pub(crate) mod topics;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _, stream};
use http::header;
use ringback_admission::Principal;
use ringback_core::store_types::{Cursor, Filter, StoreError, StoredJob};
use ringback_service::http_server::{Holder, NoPermit, Peer, Permit};
use ringback_wire::ExportLine;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::access::{Authenticated, Standing};
use crate::error::{self, ApiError};
use crate::extract::Query;
use crate::limits::Deadline;
use crate::schema::{FilterFields, QueryProblems};
use crate::state::{Api, ApiState, MAX_EXPORTS};

/// How many jobs one store call scans; fewer if they are large.
const SCAN: usize = 500;
/// About how many bytes are written to the connection at a time.
pub(super) const CHUNK: usize = 64 * 1024;
/// How long a page is retried while the store is unavailable.
const RETRY_FOR: Duration = Duration::from_secs(5);
const RETRY_PAUSE: Duration = Duration::from_millis(250);
const MEDIA_TYPE: &str = "application/x-ndjson";

/// Export jobs
///
/// Streams all pending and dead jobs, one line of JSON each, in the format that an import takes. If the
/// connection is aborted the export is incomplete. A job that exists from the beginning to the end is
/// in it at least once. The values of secret headers are not masked, since an import needs them.
#[utoipa::path(
    get, path = "/v1/export", tag = "jobs", operation_id = "export_jobs",
    params(FilterFields),
    responses(
        (status = 200, description = "A line per job", body = ExportLine, content_type = "application/x-ndjson"),
        QueryProblems,
    ),
)]
pub(crate) async fn export(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
    Query(filter): Query<Filter>,
) -> Result<Response, ApiError> {
    let turn = turn(&api, caller.holder(peer))?;
    let page = api.store.page_stored(&filter, None, SCAN);
    let page = Deadline::from_now().bound(page).await??;
    let next = page.next;
    let standing = api.standing(&caller);
    let export = Export { api, caller, filter, page: page.items.into_iter(), next, lines: 0, _turn: turn };
    Ok(streamed(standing, stream::try_unfold(export, Export::chunk)))
}

/// Takes one of the permits for exports; 503 if all are taken, or the caller has all that one may have.
pub(super) fn turn(api: &Api, holder: Holder) -> Result<Permit, ApiError> {
    api.exports.take(holder).map_err(|why| match why {
        NoPermit::AllTaken => ApiError::retry_later(format_args!("{MAX_EXPORTS} exports are under way")),
        NoPermit::HolderHas(held) => ApiError::retry_later(format_args!(
            "{held} exports of your tenant, or of your address, are under way, which is all that one may have"
        )),
    })
}

/// The answer with an export that is short enough to be written at once.
pub(super) fn whole(lines: impl Iterator<Item = impl Serialize>) -> Response {
    let mut bytes = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut bytes, &line).expect("plain data always serialises");
        bytes.push(b'\n');
    }
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], bytes).into_response()
}

/// Why an export fails.
#[derive(Debug, thiserror::Error)]
pub(super) enum Incomplete {
    #[error("the export cannot be completed")]
    Store(#[source] StoreError),
    #[error("the key of the export has expired or was deleted")]
    NoKey,
}

/// The answer with an export. Its connection is aborted if a chunk fails, or once the caller's key has ended.
pub(super) fn streamed<S>(standing: Standing, chunks: S) -> Response
where
    S: Stream<Item = Result<Bytes, Incomplete>> + Send + 'static,
{
    let bounded = async |(mut chunks, standing): (Pin<Box<S>>, Standing)| {
        let chunk = standing.bound(chunks.try_next()).await.map_err(|_ended| Incomplete::NoKey)??;
        Ok::<_, Incomplete>(chunk.map(|chunk| (chunk, (chunks, standing))))
    };
    let body = Body::from_stream(stream::try_unfold((Box::pin(chunks), standing), bounded));
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], body).into_response()
}

struct Export {
    api: Arc<Api>,
    caller: Arc<Principal>,
    filter: Filter,
    page: std::vec::IntoIter<StoredJob>,
    next: Option<Cursor>,
    lines: u64,
    _turn: Permit,
}

impl Export {
    /// The next lines, about 64 KiB; `None` after the last. Fails if the next page cannot be read.
    async fn chunk(mut self) -> Result<Option<(Bytes, Self)>, Incomplete> {
        let mut chunk = Vec::new();
        loop {
            while chunk.len() < CHUNK
                && let Some(StoredJob { job, delivery, content }) = self.page.next()
            {
                if !self.caller.reaches(&job.key.topic) {
                    continue;
                }
                let line = ExportLine::new(job, delivery, content);
                chunk.extend_from_slice(line.to_string().as_bytes());
                chunk.push(b'\n');
                self.lines += 1;
            }
            if !chunk.is_empty() {
                return Ok(Some((chunk.into(), self)));
            }
            let Some(from) = self.next else { return Ok(None) };
            let page = || self.api.store.page_stored(&self.filter, Some(from), SCAN);
            let page = read_page(page, self.lines).await?;
            (self.page, self.next) = (page.items.into_iter(), page.next);
        }
    }
}

/// Reads a page. Repeats a transient error for up to 5 s; then, or at any other error, logs that the export is aborted
/// after `lines` lines.
pub(super) async fn read_page<T, P>(page: impl Fn() -> P, lines: u64) -> Result<T, Incomplete>
where
    P: Future<Output = Result<T, StoreError>>,
{
    let until = Instant::now() + RETRY_FOR;
    loop {
        match page().await {
            Ok(page) => return Ok(page),
            Err(error) if error.is_transient() && Instant::now() < until => {
                error::log(&error);
                sleep(RETRY_PAUSE).await;
            }
            Err(error) => {
                tracing::warn!(%error, lines, "export aborted");
                return Err(Incomplete::Store(error));
            }
        }
    }
}
