//! Admission: which limited callbacks may begin. A notifier asks for places for the jobs of lanes whose destinations have
//! limits, and gives them back. Also what a store keeps of a limit.

use std::time::Duration;

use crate::destination::DestinationPause;
use crate::flow::Limits;

/// The most limits of an installation.
pub const MAX_LIMITS: u64 = 10_000;
/// The most of them that a tenant may have, and never more than half of what the others leave.
pub const MAX_LIMITS_OF_TENANT: u32 = 1000;
/// The most places that a call may ask for one lane.
pub const MAX_PLACES: u32 = 64;

/// A place for one callback: it counts in each limit of the lane until it is given back, or until it lapses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlaceId(pub u64);

/// A notifier's call for admission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// How many jobs of which lanes may wait, by the lanes' [names](crate::lane::Lane::name).
    pub wanted: Vec<(String, u32)>,
    /// Places of callbacks that have ended.
    pub ended: Vec<(String, PlaceId)>,
    /// Places that were not used: the last ones of an answer, by the first of them and their number. Their tokens are put
    /// back if nobody got any since.
    pub unused: Vec<(String, PlaceId, u32)>,
    /// Places of callbacks that may take longer than `lasts`, and how long from now.
    pub held: Vec<(String, PlaceId, Duration)>,
    /// How long a place lasts that is not given back.
    pub lasts: Duration,
    /// How much later than now a callback may begin.
    pub ahead: Duration,
    /// How much later it begins at the earliest if it needs a token of a rate.
    pub lead: Duration,
}

/// The answer for a lane that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// Nothing limits the lane.
    Unlimited,
    /// Places with ascending ids from `first` on: how long after the call the callback of each may begin.
    Granted { first: PlaceId, begin_in: Vec<Duration> },
    /// None: when to ask again at the earliest. `None` if all places are taken, so that nobody knows.
    Wait(Option<Duration>),
}

/// A limit of a destination, and how much of it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitState {
    /// Which callbacks it limits.
    pub of: DestinationPause,
    pub limits: Limits,
    /// How many callbacks are in flight under it, if it limits them.
    pub in_flight: u32,
    /// How long after the call the next callback may begin by the rate.
    pub next_in: Duration,
}
