//! Dead letters: how they are listed, and what a purge of many came to.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::JobAnswer;
use super::import::{MAX_REASON, is_word};
use super::submit::millis_up;
use crate::clock::Timestamp;
use crate::store::DeadJob;

/// A dead job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadJobAnswer {
    /// The job.
    #[serde(flatten)]
    pub job: JobAnswer,
    /// When it died.
    pub died_at: String,
}

impl From<DeadJob> for DeadJobAnswer {
    fn from(dead: DeadJob) -> Self {
        Self { job: dead.job.into(), died_at: dead.died.to_string() }
    }
}

/// A page of dead jobs, in order of death. It may be empty and still have a next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadPageAnswer {
    /// The jobs.
    pub items: Vec<DeadJobAnswer>,
    /// Where the next page begins; null after the last one. Opaque.
    pub next: Option<String>,
}

/// What a purge of many came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PurgeAnswer {
    /// How many this call has removed.
    pub purged: u64,
    /// Where to go on, as the cursor of another call; null when all are gone. Opaque.
    pub next: Option<String>,
}

/// Whether a job can be dead for this reason.
pub fn is_reason(text: &str) -> bool {
    is_word(text, MAX_REASON)
}

/// A time by RFC 3339, in ms rounded up.
pub fn parse_time(text: &str) -> Option<Timestamp> {
    text.parse().ok().map(|time| Timestamp::from_millis(millis_up(time)))
}
