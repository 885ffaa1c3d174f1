//! `GET /v1/export/schedules`: streams the schedules as NDJSON.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use ringback_admission::Principal;
use ringback_core::job::Topic;
use ringback_core::schedule::{ScheduleKey, ScheduleState};
use ringback_core::store_types::ScheduleRow;
use ringback_service::http_server::{Peer, Permit};
use ringback_wire::ScheduleLine;

use super::readable;
use crate::access::Authenticated;
use crate::error::ApiError;
use crate::limits::Deadline;
use crate::routes::export::{CHUNK, Incomplete, read_page, streamed, turn};
use crate::schema::StoreProblems;
use crate::state::{Api, ApiState};

/// How many schedules one store call reads.
const PAGE: usize = 100;

/// Export schedules
///
/// Streams the schedules that fire again, one line of JSON each, sorted by tenant and id. `schedule` is what a request
/// puts elsewhere. If the connection is aborted the export is incomplete. The values of secret headers are not masked.
#[utoipa::path(
    get, path = "/v1/export/schedules", tag = "schedules", operation_id = "export_schedules",
    responses(
        (status = 200, description = "A line per schedule", body = ScheduleLine, content_type = "application/x-ndjson"),
        StoreProblems,
    ),
)]
pub(crate) async fn export_schedules(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
) -> Result<Response, ApiError> {
    let turn = turn(&api, caller.holder(peer))?;
    let (page, next) = Deadline::from_now().bound(api.store.schedules(caller.reach(), None, PAGE)).await??;
    let standing = api.standing(&caller);
    let export = ScheduleExport { api, caller, page: page.into_iter(), next, lines: 0, _turn: turn };
    Ok(streamed(standing, stream::try_unfold(export, ScheduleExport::chunk)))
}

struct ScheduleExport {
    api: Arc<Api>,
    caller: Arc<Principal>,
    page: std::vec::IntoIter<ScheduleRow>,
    /// Where the next page begins; `None` after the last.
    next: Option<(ScheduleKey, Topic)>,
    lines: u64,
    _turn: Permit,
}

impl ScheduleExport {
    /// The next lines; `None` after the last.
    async fn chunk(mut self) -> Result<Option<(Bytes, Self)>, Incomplete> {
        let mut chunk = Vec::new();
        loop {
            while chunk.len() < CHUNK
                && let Some(row) = self.page.next()
            {
                // One that has fired for the last time cannot be put elsewhere.
                let fires_again = |state: &ScheduleState| state.schedule.next_after(self.api.now()).is_some();
                let state = readable(&row).filter(|_| self.caller.reaches(&row.topic)).filter(fires_again);
                let Some(state) = state else { continue };
                serde_json::to_writer(&mut chunk, &ScheduleLine::new(&row.key, state))
                    .expect("plain data always serialises");
                chunk.push(b'\n');
                self.lines += 1;
            }
            if !chunk.is_empty() {
                return Ok(Some((chunk.into(), self)));
            }
            let Some(after) = self.next.take() else { return Ok(None) };
            let reach = self.caller.reach();
            let page = || self.api.store.schedules(reach, Some(after.clone()), PAGE);
            let (page, next) = read_page(page, self.lines).await?;
            (self.page, self.next) = (page.into_iter(), next);
        }
    }
}
