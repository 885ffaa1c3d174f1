//! Destinations: how many jobs each origin has in which state, pages of origins and of pauses, and the limits of
//! pauses.

use std::collections::BTreeMap;

use super::Failures;
use crate::destination::{DestinationPause, Origin};
use crate::job::{TenantScope, Topic};

/// The most paused destinations of an installation. Each shard counts for itself, and all have the same.
pub const MAX_PAUSED_DESTINATIONS: u64 = 1000;
/// The most of them that a tenant may have, and never more than half of what the others leave.
pub const MAX_PAUSED_DESTINATIONS_OF_TENANT: u32 = 100;
pub const MAX_DESTINATION_PAGE: usize = 1000;
/// How many lanes of a shard one step reads.
pub const DESTINATION_STEP: usize = 1000;

/// Which limit one more paused destination would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseLimit {
    /// [`MAX_PAUSED_DESTINATIONS`].
    Installation,
    /// What the tenant may have; see [`MAX_PAUSED_DESTINATIONS_OF_TENANT`].
    Tenant,
}

/// How many jobs of an origin are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DestinationCounts {
    /// Jobs that wait for their due time.
    pub delayed: u64,
    /// Jobs that are due and wait for a reserve.
    pub ready: u64,
    /// Jobs under a lease.
    pub reserved: u64,
    /// Jobs that failed for good and are kept.
    pub dead: u64,
}

impl DestinationCounts {
    /// Adds the counts of another lane.
    pub const fn add(&mut self, other: Self) {
        self.delayed += other.delayed;
        self.ready += other.ready;
        self.reserved += other.reserved;
        self.dead += other.dead;
    }
}

/// Whose lanes to read.
#[derive(Clone, Debug)]
pub enum LaneSpan {
    Of(TenantScope),
    Topic(Topic),
}

/// Origins of some lanes of a shard with their counts, and where the next step begins; `None` after the last one. An
/// origin can be there more than once.
pub type DestinationPart = (Vec<(String, DestinationCounts)>, Option<Box<[u8]>>);

/// Where a page of destinations begins: after an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DestinationPlace {
    pub host: Box<str>,
    /// The port, or 0 for a pause of all ports.
    pub port: u16,
    /// The scheme, or nothing for a pause.
    pub scheme: Box<str>,
}

impl From<&Origin> for DestinationPlace {
    fn from(origin: &Origin) -> Self {
        Self { host: origin.host.clone(), port: origin.port, scheme: origin.scheme.clone() }
    }
}

impl From<&DestinationPause> for DestinationPlace {
    fn from(pause: &DestinationPause) -> Self {
        let (host, port) = (pause.destination.host().into(), pause.destination.port().unwrap_or(0));
        Self { host, port, scheme: Box::default() }
    }
}

/// Which page of destinations is asked for.
#[derive(Clone, Debug)]
pub struct DestinationQuery {
    /// It begins after this place; `None` for the first page.
    pub after: Option<DestinationPlace>,
    /// How many destinations it has at most.
    pub limit: usize,
    /// Only those that fail.
    pub failing: bool,
}

/// Origins, and paused destinations without jobs, sorted by host, port and scheme.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DestinationPage {
    /// Their counts. A place without a scheme is a paused destination without jobs.
    pub items: BTreeMap<DestinationPlace, DestinationCounts>,
    /// The place after which the next page begins; `None` on the last page.
    pub next: Option<DestinationPlace>,
    /// The pauses that are for jobs of the caller's scope.
    pub pauses: Vec<DestinationPause>,
    /// The failures of those of these origins that fail, of all tenants of the caller's scope together.
    pub failing: BTreeMap<DestinationPlace, Failures>,
}
