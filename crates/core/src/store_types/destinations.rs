//! What calls about destinations return: how many jobs each origin has in which state, and pages of origins and of
//! pauses. Also the limits of pauses.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::{Failures, tenant_limit};
use crate::destination::{Destination, DestinationPause, Origin};
use crate::job::{TenantScope, Topic};

/// The most paused destinations of an installation. Each shard counts for itself, and all have the same.
pub const MAX_PAUSED_DESTINATIONS: u64 = 1000;
/// The most of them that a tenant may have, and never more than half of what the others leave.
pub const MAX_PAUSED_DESTINATIONS_OF_TENANT: u32 = 100;
pub const MAX_DESTINATION_PAGE: usize = 1000;
/// How many lanes of a shard one step reads.
pub const DESTINATION_STEP: usize = 1000;

/// The limit that one more paused destination would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseLimit {
    /// [`MAX_PAUSED_DESTINATIONS`].
    Installation,
    /// What the tenant may have; see [`MAX_PAUSED_DESTINATIONS_OF_TENANT`].
    Tenant,
}

impl PauseLimit {
    /// Which bound one more pause or limit beside those with these names would exceed: how many there may be in all, or
    /// of the tenant whose names begin with `prefix`; `None` if the one more belongs to no tenant.
    pub fn exceeded<'n>(
        names: impl Iterator<Item = &'n str>,
        prefix: Option<&str>,
        most: u64,
        most_of_tenant: u32,
    ) -> Option<Self> {
        let (mut used, mut own) = (0, 0);
        for name in names {
            used += 1;
            own += u64::from(prefix.is_some_and(|prefix| name.starts_with(prefix)));
        }
        if used >= most {
            return Some(Self::Installation);
        }
        let is_beyond = prefix.is_some() && own >= tenant_limit(most_of_tenant, most, used, own);
        is_beyond.then_some(Self::Tenant)
    }
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

/// The lanes to read.
#[derive(Clone, Debug)]
pub enum LaneSpan {
    Of(TenantScope),
    Topic(Topic),
}

/// Origins of some lanes of a shard with their counts, and where the next step begins; `None` after the last one. An
/// origin can be there more than once.
pub type DestinationPart = (Vec<(String, DestinationCounts)>, Option<Box<[u8]>>);

/// The place of an item in the order of destinations; a page begins after one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DestinationPlace {
    pub host: Box<str>,
    /// The port, or 0 for a pause or limit of all ports.
    pub port: u16,
    /// The scheme, or nothing for a pause or limit.
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

/// The text of a cursor: scheme, port and host, with `~` between them.
impl fmt::Display for DestinationPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}~{}", self.scheme, self.port, self.host)
    }
}

/// A text that is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no cursor of destinations")]
pub struct NoDestinationCursor;

impl FromStr for DestinationPlace {
    type Err = NoDestinationCursor;

    fn from_str(text: &str) -> Result<Self, NoDestinationCursor> {
        let mut parts = text.splitn(3, '~');
        let mut part = || parts.next().ok_or(NoDestinationCursor);
        let (scheme, port, host) = (part()?, part()?, part()?);
        let destination = Destination::parse(host).map_err(|_| NoDestinationCursor)?;
        let port = port.parse().map_err(|_| NoDestinationCursor)?;
        if !["", "http", "https"].contains(&scheme) || destination.to_string() != host {
            return Err(NoDestinationCursor);
        }
        Ok(Self { host: host.into(), port, scheme: scheme.into() })
    }
}

/// The page of destinations to read.
#[derive(Clone, Debug)]
pub struct DestinationQuery {
    /// It begins after this place; `None` for the first page.
    pub after: Option<DestinationPlace>,
    /// How many destinations it has at most.
    pub limit: usize,
    /// Only those that fail.
    pub failing: bool,
}

/// Origins, and paused or limited destinations without jobs, sorted by host, port and scheme.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DestinationPage {
    /// Their counts. A place without a scheme is a paused or limited destination without jobs.
    pub items: BTreeMap<DestinationPlace, DestinationCounts>,
    /// The place after which the next page begins; `None` on the last page.
    pub next: Option<DestinationPlace>,
    /// The pauses that are for jobs of the caller's scope.
    pub pauses: Vec<DestinationPause>,
    /// The destinations whose breakers are forced closed, for jobs of the caller's scope.
    pub forced_closed: Vec<DestinationPause>,
    /// The failures of those of these origins that fail, of all tenants of the caller's scope together.
    pub failing: BTreeMap<DestinationPlace, Failures>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_were_written() {
        for text in ["https~443~a.example", "http~8080~[::1]", "~0~a.example", "~81~a~b"] {
            assert_eq!(text.parse::<DestinationPlace>().unwrap().to_string(), text);
        }
        for text in
            ["", "https~443", "ftp~1~a", "http~x~a", "http~1~a/b", "http~1~A", "http~70000~a", "http~1~"]
        {
            assert_eq!(text.parse::<DestinationPlace>(), Err(NoDestinationCursor), "{text}");
        }
    }
}
