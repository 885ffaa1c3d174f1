//! All jobs as a stream of lines: a page of the store at a time, read when the reader has taken
//! the one before. A stream that cannot be brought to its end breaks off, so that it is never
//! taken for a whole one.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header;
use ringback_core::contract::{Cursor, Filter, Page, StoreError, StoredJob};
use ringback_core::wire::ExportLine;
use ringback_store::Store;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};

use crate::deadline::Deadline;
use crate::error::{self, ApiError};
use crate::extract::FilterQuery;
use crate::openapi::{ExportProblems, Listed};
use crate::state::{Api, EXPORTS};

/// How many jobs one call of the store looks at; fewer where they are large.
const LOOK: usize = 500;
/// About how many bytes are handed to the connection at a time.
const CHUNK: usize = 64 * 1024;
/// How long the store is asked again for a page in the middle.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(250);

/// Export jobs
///
/// All pending and dead jobs, a line of JSON each, which an import takes. A stream that breaks off
/// is not complete. A job that is there from the beginning to the end is in it at least once.
#[utoipa::path(
    get, path = "/v1/export", tag = "jobs", operation_id = "export",
    params(
        ("topic" = Option<String>, Query, description = "Of this topic only", pattern = "^[A-Za-z0-9._-]{1,64}$"),
        ("state" = Option<Listed>, Query, description = "In this state only"),
    ),
    responses(
        (status = 200, description = "A line per job", body = ExportLine, content_type = "application/x-ndjson"),
        ExportProblems,
    ),
)]
pub(crate) async fn export(
    State(api): State<Arc<Api>>,
    FilterQuery(filter): FilterQuery,
) -> Result<Response, ApiError> {
    let Ok(turn) = Arc::clone(&api.exports).try_acquire_owned() else {
        return Err(ApiError::too_many(format_args!("{EXPORTS} exports are under way")));
    };
    let page = api.store.page_stored(&filter, None, LOOK);
    let page = Deadline::from_now().bound(page).await.map_err(ApiError::too_late)??;
    let reading = Reading::new(api.store.clone(), filter, page, turn);
    let body = Body::from_stream(stream::try_unfold(reading, Reading::chunk));
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

/// Why a stream breaks off.
#[derive(Debug, thiserror::Error)]
#[error("the export cannot be completed")]
struct Incomplete(#[source] StoreError);

/// An export on its way.
struct Reading {
    store: Store,
    filter: Filter,
    page: std::vec::IntoIter<StoredJob>,
    next: Option<Cursor>,
    lines: u64,
    _turn: OwnedSemaphorePermit,
}

impl Reading {
    fn new(store: Store, filter: Filter, page: Page<StoredJob>, turn: OwnedSemaphorePermit) -> Self {
        let Page { items, next } = page;
        Self { store, filter, page: items.into_iter(), next, lines: 0, _turn: turn }
    }

    /// The next lines; none after the last.
    async fn chunk(mut self) -> Result<Option<(Bytes, Self)>, Incomplete> {
        let mut chunk = Vec::new();
        loop {
            while chunk.len() < CHUNK
                && let Some(StoredJob { job, delivery, content }) = self.page.next()
            {
                let line = ExportLine::new(job, delivery, content);
                chunk.extend_from_slice(line.to_string().as_bytes());
                chunk.push(b'\n');
                self.lines += 1;
            }
            if !chunk.is_empty() {
                return Ok(Some((chunk.into(), self)));
            }
            let Some(from) = self.next else { return Ok(None) };
            let page = self.read_on(from).await?;
            (self.page, self.next) = (page.items.into_iter(), page.next);
        }
    }

    /// The page behind a place, for which the store is asked more than once.
    async fn read_on(&self, from: Cursor) -> Result<Page<StoredJob>, Incomplete> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.store.page_stored(&self.filter, Some(from), LOOK).await {
                Ok(page) => return Ok(page),
                Err(error) if error.is_transient() && Instant::now() < until => {
                    error::log(&error);
                    sleep(PAUSE).await;
                }
                Err(error) => {
                    tracing::warn!(%error, lines = self.lines, "an export breaks off");
                    return Err(Incomplete(error));
                }
            }
        }
    }
}
