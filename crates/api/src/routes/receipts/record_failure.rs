//! Records a failed attempt of a consumer in the attempt log, before the job is settled.

use ringback_core::contract::{Note, PullOutcome, PullReceipt};
use ringback_core::job::Topic;
use ringback_store::NOTE_TIMEOUT;
use tokio::time::timeout;

use crate::state::Api;

/// Records the attempt if the outcome is a failure and the topic logs failures. If that fails, the
/// attempt is only counted in a metric. `topic` is that of the job, if it is already known.
pub(super) async fn record_failure(
    api: &Api,
    receipt: &PullReceipt,
    outcome: &PullOutcome,
    topic: Option<Topic>,
) {
    let error = match outcome {
        PullOutcome::Retry { error, .. } | PullOutcome::Bury { error, .. } => error.clone(),
        PullOutcome::Finish | PullOutcome::Release { .. } => return,
    };
    // The store is only asked for the topic if topics differ in what they log.
    let topic = if topic.is_none() && api.policies.is_any_logging() {
        let held = timeout(NOTE_TIMEOUT, api.store.lease_info(receipt)).await;
        held.ok().and_then(Result::ok).flatten().and_then(|tries| tries.topic)
    } else {
        topic
    };
    let policy = topic.and_then(|topic| api.policies.get(&topic).ok()?);
    if api.store.logging(policy.as_deref()).notes_failure() {
        let notes = [Note::failed(receipt, error)];
        api.metrics.unrecorded(api.store.note_in_time(receipt.shard(), &notes).await);
    }
}
