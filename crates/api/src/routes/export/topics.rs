//! `GET /v1/export/topics`: streams the policies and pauses of topics as NDJSON.

use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use ringback_admission::Principal;
use ringback_core::job::Topic;
use ringback_core::store_types::TopicPage;
use ringback_core::topic_policy::Policy;
use ringback_service::http_server::{Peer, Permit};
use ringback_wire::TopicLine;

use super::{CHUNK, Incomplete, read_page, streamed, turn};
use crate::access::Authenticated;
use crate::error::ApiError;
use crate::limits::Deadline;
use crate::schema::StoreProblems;
use crate::state::{Api, ApiState};

/// How many topics one store call reads.
const PAGE: usize = 500;

/// Export topics
///
/// Streams the topics that have a policy or are paused, one line of JSON each, sorted by name. If the
/// connection is aborted the export is incomplete. The values of secret headers are not masked, so that the
/// policies can be set elsewhere; signing secrets are sealed.
#[utoipa::path(
    get, path = "/v1/export/topics", tag = "topics", operation_id = "export_topics",
    responses(
        (status = 200, description = "A line per topic", body = TopicLine, content_type = "application/x-ndjson"),
        StoreProblems,
    ),
)]
pub(crate) async fn export_topics(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
) -> Result<Response, ApiError> {
    let (turn, deadline) = (turn(&api, caller.holder(peer))?, Deadline::from_now());
    // Not those that this process knows, which may be some seconds old.
    let policies = deadline.bound(api.store.all_policies(caller.reach())).await??.into_iter();
    let policies = policies.filter(|(topic, _)| caller.reaches(topic)).collect();
    let page = deadline.bound(api.store.topics(caller.reach(), None, PAGE)).await??;
    let standing = api.standing(&caller);
    let mut export = TopicExport {
        api,
        caller,
        policies,
        next: None,
        page: BTreeMap::new().into_iter(),
        lines: 0,
        _turn: turn,
    };
    export.turn_to(page);
    Ok(streamed(standing, stream::try_unfold(export, TopicExport::chunk)))
}

#[derive(Default)]
struct Exported {
    paused: bool,
    policy: Option<Arc<Policy>>,
}

struct TopicExport {
    api: Arc<Api>,
    caller: Arc<Principal>,
    /// The policies that are not written yet.
    policies: BTreeMap<Topic, Arc<Policy>>,
    /// The topic after which the next page begins; `None` after the last page.
    next: Option<Topic>,
    /// What is left of the last page.
    page: btree_map::IntoIter<Topic, Exported>,
    lines: u64,
    _turn: Permit,
}

impl TopicExport {
    /// Makes this the current page: its paused topics, and all topics with a policy up to the end of it.
    fn turn_to(&mut self, page: TopicPage) {
        let paused =
            page.items.into_iter().filter(|(topic, counts)| counts.paused && self.caller.reaches(topic));
        let paused = paused.map(|(topic, _)| (topic, Exported { paused: true, policy: None }));
        let mut topics: BTreeMap<_, _> = paused.collect();
        while let Some(entry) = self.policies.first_entry()
            && page.next.as_ref().is_none_or(|next| entry.key() <= next)
        {
            let (topic, policy) = entry.remove_entry();
            topics.entry(topic).or_default().policy = Some(policy);
        }
        (self.page, self.next) = (topics.into_iter(), page.next);
    }

    /// The next lines, about 64 KiB; `None` after the last. Fails if the next page cannot be read.
    async fn chunk(mut self) -> Result<Option<(Bytes, Self)>, Incomplete> {
        let mut chunk = Vec::new();
        loop {
            while chunk.len() < CHUNK
                && let Some((topic, Exported { paused, policy })) = self.page.next()
            {
                let line = TopicLine::new(&topic, paused, policy.as_deref());
                chunk.extend_from_slice(line.to_string().as_bytes());
                chunk.push(b'\n');
                self.lines += 1;
            }
            if !chunk.is_empty() {
                return Ok(Some((chunk.into(), self)));
            }
            let Some(after) = &self.next else { return Ok(None) };
            let reach = self.caller.reach();
            let page = read_page(|| self.api.store.topics(reach, Some(after), PAGE), self.lines).await?;
            self.turn_to(page);
        }
    }
}
