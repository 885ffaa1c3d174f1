//! Results of submit and import, and the limits that can refuse a new job.

use crate::clock::Timestamp;
use crate::job::{Job, JobKey};
use crate::state::State;

/// The result of one submitted or imported job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// New, repeated or refused.
    pub answer: SubmitResult,
    /// The job that has this key now. For [`SubmitResult::Full`] only the key is meaningful.
    pub job: Job,
}

impl Submitted {
    /// The result of a job that did not fit.
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
        };
        Self { answer: SubmitResult::Full(limit), job }
    }
}

/// What a submit did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitResult {
    /// It created a job.
    Created,
    /// A job with the same key and content exists. Nothing changed.
    Repeated,
    /// A job with the same key but different content exists. Nothing changed.
    Conflict,
    /// The job's shard has reached a limit. Nothing changed.
    Full(Limit),
}

/// A limit of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`MAX_TOPICS`](super::MAX_TOPICS) topics have jobs or are paused.
    Topics,
    /// [`MAX_LANES`](super::MAX_LANES) lanes have jobs.
    Lanes,
}
