//! Results of submit and import, and the limits that can refuse a new job.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::job::{Job, JobKey, Tags};
use crate::state::State;

/// The result of one submitted or imported job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// New, repeated, changed or refused.
    pub answer: SubmitResult,
    /// The job that has this key now. For [`SubmitResult::Full`] only the key is meaningful.
    pub job: Job,
}

impl Submitted {
    /// The result of a job that the limit refused. Of its job, only the key is meaningful.
    pub fn refused(limit: Limit, key: &JobKey) -> Self {
        let job = Job {
            key: key.clone(),
            state: State::Delayed,
            due: Timestamp::default(),
            created: Timestamp::default(),
            attempts: 0,
            failures: 0,
            last: None,
            reason: None,
            tags: Tags::default(),
        };
        Self { answer: SubmitResult::Full(limit), job }
    }
}

/// What a submit did. It depends on the job that has the key already, and on the
/// [`IfExists`](crate::job::IfExists) of the submit:
///
/// | job with this key | `Refuse`, same content | `Refuse`, other content | `Replace`, `Postpone` |
/// |---|---|---|---|
/// | none, or its tombstone was evicted | `Created` | `Created` | `Created` |
/// | delayed, ready | `Repeated` | `Conflict` | `Replaced`, `Postponed` |
/// | reserved | `Repeated` | `Conflict` | `Reserved` |
/// | dead | `Repeated` | `Conflict` | `Replaced`, `Postponed`: a new generation |
/// | done | `Repeated` | `Conflict` | `Created`: a new generation |
/// | cancelled | `Cancelled` | `Conflict` | `Created`: a new generation |
///
/// `Update` is like `Refuse` for the same content. For other content it is like `Replace` if the job is delayed, ready
/// or reserved, and a `Conflict` if the job has ended, dead jobs included.
///
/// A submit with the token of the last submit that created, replaced or postponed the job is a repetition of
/// that submit. It is answered `Repeated` in any state of the job, or `Conflict` if its content is different.
/// A store keeps only the last token of a job, and keeps it in the tombstone too.
///
/// A job that is replaced or postponed gets content, delivery, URL and due time of the submit. Its generation
/// continues if no attempt was made in it: then [`Job::created`] stays, and the limit of a postponement counts
/// from there. Otherwise a new generation begins: [`Job::created`] is now, but at least a millisecond after that of
/// the former generation, so that the two differ; failures, lost leases and the last failed attempt are cleared;
/// attempt numbers continue. A lease of a former generation settles nothing: it is
/// [`Stale`](super::SettleResult::Stale), also for a late success and for a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitResult {
    /// It created a job. The ledger counts one more accepted job.
    Created,
    /// A job with the same key and content exists. Nothing changed.
    Repeated,
    /// It took the place of the job. The ledger counts no further accepted job.
    Replaced,
    /// It took the place of the job, and was due no later than its limit allows. The ledger counts no
    /// further accepted job.
    Postponed,
    /// A job with the same key but different content exists. Nothing changed.
    Conflict,
    /// The job with the same key and content was cancelled. Nothing changed.
    Cancelled,
    /// The job is being delivered and cannot be changed. Nothing changed.
    Reserved {
        /// When its lease runs out, from now on; zero if it has run out. The job is usually settled
        /// before.
        retry_after: Duration,
    },
    /// The job's shard, or the tenant in it, has reached a limit. Nothing changed.
    Full(Limit),
}

/// A limit of a shard, or of a tenant in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`MAX_TOPICS`](super::MAX_TOPICS) topics have jobs or are paused.
    Topics,
    /// [`MAX_LANES`](super::MAX_LANES) lanes have jobs.
    Lanes,
    /// The tenant has as many topics with jobs as it [may have](super::tenant_limit).
    TenantTopics,
    /// The tenant has as many lanes with jobs as it may have.
    TenantLanes,
    /// Jobs of [`MAX_WAITING_KEYS`](super::MAX_WAITING_KEYS) keys wait behind another job.
    Keys,
}

impl Limit {
    /// Whether the limit is one of the tenant, not of the shard.
    pub const fn is_of_tenant(self) -> bool {
        matches!(self, Self::TenantTopics | Self::TenantLanes)
    }
}
