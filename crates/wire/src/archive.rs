//! Answers about the archive outbox.

use ringback_core::store_types::{ArchiveStatus, EndedState};
use serde::{Deserialize, Serialize};
use strum::VariantArray as _;
use utoipa::ToSchema;

/// The ended jobs that wait for the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArchiveResponse {
    /// Whether ended jobs are put into the outbox. False once the archive was detached.
    pub attached: bool,
    /// Which ended jobs are; what the policy of a topic keeps out of the archive is dropped later.
    pub states: Vec<String>,
    /// Whether with the bodies of jobs.
    pub bodies: bool,
    /// How many ended jobs wait.
    pub pending: u64,
    /// How many bytes they take in the store.
    pub pending_bytes: u64,
    /// How many bytes they may take; each shard has its part of them.
    pub bound_bytes: u64,
    /// `stall` or `drop`: what happens beyond that.
    pub when_full: String,
    /// How many shards refuse submits because of it.
    pub full_shards: u16,
    /// When the job of the first of them ended; absent if none waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub oldest_at: Option<String>,
    /// How many ended jobs were dropped since the installation began, and are in no archive.
    pub dropped: u64,
}

impl ArchiveResponse {
    /// The answer; `None` if no archive is attached and no entry waits or was ever dropped.
    pub fn of(status: &ArchiveStatus) -> Option<Self> {
        let ArchiveStatus { settings, pending, bytes, bound, dropped, oldest, stalled } = *status;
        if settings.is_none() && pending == 0 && dropped == 0 {
            return None;
        }
        let ends =
            EndedState::VARIANTS.iter().filter(|kind| settings.is_some_and(|set| set.states.has(**kind)));
        Some(Self {
            attached: settings.is_some(),
            states: ends.map(ToString::to_string).collect(),
            bodies: settings.is_some_and(|settings| settings.with_bodies),
            pending,
            pending_bytes: bytes,
            bound_bytes: bound,
            when_full: settings.map_or_else(Default::default, |settings| settings.when_full).to_string(),
            full_shards: stalled,
            oldest_at: oldest.map(|at| at.to_string()),
            dropped,
        })
    }
}

/// The answer to DELETE /v1/archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArchiveDetachedResponse {
    /// How many ended jobs were dropped.
    pub dropped: u64,
}
