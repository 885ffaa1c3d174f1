//! The log of transitions: at level debug, one line for each transition of a job's life, written by the process that
//! took it. The backends collect transitions only while [`is_on`], so the log costs nothing while it is off.

use serde::{Deserialize, Serialize};
use tracing::Level;

use crate::job::JobKey;
use crate::state::State;

/// The target of the lines, for log filters. It is that of the store's calls, which take the transitions.
const TARGET: &str = "ringback_store::transitions";

/// A transition that a call has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedTransition {
    pub key: JobKey,
    pub name: TransitionName,
    /// The state before; `None` for a job that is new.
    pub from: Option<State>,
    /// The state after; `None` for a job that is gone.
    pub to: Option<State>,
    /// Why, if the name alone does not say it.
    pub reason: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum TransitionName {
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
    /// A dead job is removed on request.
    Purge,
    /// A dead job is removed after its retention.
    Evict,
}

/// Whether transitions are logged: the level of the log is debug, or lower, for them.
pub fn is_on() -> bool {
    tracing::enabled!(target: TARGET, Level::DEBUG)
}

/// Logs transitions, one line each.
pub fn write(transitions: &[LoggedTransition]) {
    for LoggedTransition { key, name, from, to, reason } in transitions {
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
