//! Records a failed attempt of a consumer in the attempt log, before the job is settled.

use std::time::Duration;

use ringback_core::contract::{Note, Receipt};
use ringback_core::job::Topic;
use ringback_core::outcome::Outcome;
use tokio::time::timeout;

use crate::state::Api;

/// How long settling waits for the attempt log.
const RECORD_WITHIN: Duration = Duration::from_millis(400);

/// Records the attempt if the outcome is a failure and the topic logs failures. If that fails, the
/// attempt is only counted in a metric. `topic` is that of the job, if it is already known.
pub(super) async fn record_failure(api: &Api, receipt: &Receipt, outcome: &Outcome, topic: Option<Topic>) {
    let error = match outcome {
        Outcome::Retry { last, .. } | Outcome::Bury { last, .. } => last.error.clone(),
        Outcome::Complete | Outcome::Release { .. } => return,
    };
    // The store is only asked for the topic if topics differ in what they log.
    let topic = if topic.is_none() && api.policies.is_any_logging() {
        let held = timeout(RECORD_WITHIN, api.store.lease_info(receipt)).await;
        held.ok().and_then(Result::ok).flatten().and_then(|tries| tries.topic)
    } else {
        topic
    };
    let policy = topic.and_then(|topic| api.policies.get(&topic).ok()?);
    if api.store.logging(policy.as_deref()).notes_failure() {
        let notes = [Note::failed(receipt, error)];
        api.metrics.unrecorded(api.store.note_within(receipt.shard, &notes, RECORD_WITHIN).await);
    }
}
