//! The log of edges: at level debug, one line for each edge of a job's life, written by the process that
//! took it. The backends collect edges only while [`is_on`], so the log costs nothing while it is off.

use serde::{Deserialize, Serialize};
use tracing::Level;

use crate::job::JobKey;
use crate::state::State;

/// The target of the lines, for log filters. It is that of the store's calls, which take the edges.
const TARGET: &str = "ringback_store::edges";

/// An edge that a call has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenEdge {
    /// The job.
    pub key: JobKey,
    /// The name of the edge.
    pub name: EdgeName,
    /// The state before; `None` for a job that is new.
    pub from: Option<State>,
    /// The state after; `None` for a job that is gone.
    pub to: Option<State>,
    /// Why, if the name alone does not say it.
    pub reason: Option<Box<str>>,
}

/// The name of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum EdgeName {
    /// A new job.
    Submit,
    /// A new job with a history.
    Import,
    /// A delayed job is due.
    Promote,
    /// A notifier or a consumer takes a job.
    Reserve,
    /// A lease gets a later deadline.
    Renew,
    /// A job was delivered.
    Complete,
    /// An attempt failed, and there will be another.
    Retry,
    /// An attempt failed for good.
    Bury,
    /// An attempt does not count.
    Release,
    /// A lease has expired.
    Recover,
    /// A job is cancelled, or its cancel is requested.
    Cancel,
    /// A job gets another due time.
    Reschedule,
    /// A delayed job is made due.
    Run,
    /// A dead job is made due.
    Revive,
    /// One of many dead jobs is made due.
    Redrive,
    /// A dead job is removed on request.
    Purge,
    /// A dead job is removed after its retention.
    Evict,
}

/// Whether edges are logged: the level of the log is debug, or lower, for them.
pub fn is_on() -> bool {
    tracing::enabled!(target: TARGET, Level::DEBUG)
}

/// Logs edges, one line each.
pub fn write(edges: &[TakenEdge]) {
    for TakenEdge { key, name, from, to, reason } in edges {
        tracing::debug!(
            target: TARGET,
            {
                job.topic = key.topic.as_str(),
                job.id = %key.id,
                from = from.map_or("nothing", Into::into),
                to = to.map_or("gone", Into::into),
                why = <&str>::from(name),
                reason = reason.as_deref()
            },
            "job changed"
        );
    }
}
