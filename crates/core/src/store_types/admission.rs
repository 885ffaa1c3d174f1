//! Admission: which limited callbacks may begin. A notifier asks for places for the jobs of lanes whose destinations or
//! topics have limits, and gives them back. Also what a store keeps of a limit.

use std::time::Duration;

use crate::destination::{Destination, DestinationPause, Origin};
use crate::flow::Limits;
use crate::job::{Tenant, TenantScope, Topic};
use crate::lane::Lane;

/// The most limits of an installation.
pub const MAX_LIMITS: u64 = 10_000;
/// The most of them that a tenant may have, and never more than half of what the others leave.
pub const MAX_LIMITS_OF_TENANT: u32 = 1000;
/// The most places that a call may ask for one lane.
pub const MAX_PLACES: u32 = 64;

/// Which callbacks a limit holds for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitTarget {
    /// The callbacks to a destination, for all jobs or for the jobs of one tenant.
    Destination(DestinationPause),
    /// The callbacks of a topic.
    Topic(Topic),
    /// The callbacks of a tenant, or of jobs without a tenant, to one port of a host whose breaker is not closed.
    Breaker(DestinationPause),
}

impl LimitTarget {
    /// What the names of topics and of breakers begin with. No host has these.
    const TOPIC: char = '#';
    const BREAKER: char = '^';

    /// The target of the breaker for the jobs of a tenant, or of none, to an origin.
    pub fn breaker(tenant: Option<Tenant>, origin: &Origin) -> Self {
        let scope = TenantScope::One(tenant);
        Self::Breaker(DestinationPause::new(&scope, Destination::of_origin(origin)))
    }

    /// The name under which stores keep the limit: that of a pause of the destination, with `^` before it if it is of a
    /// breaker, or `#` and the topic.
    pub fn name(&self) -> String {
        match self {
            Self::Destination(of) => of.name(),
            Self::Breaker(of) => format!("{}{}", Self::BREAKER, of.name()),
            Self::Topic(topic) => format!("{}{}", Self::TOPIC, topic.as_str()),
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        if let Some(topic) = name.strip_prefix(Self::TOPIC) {
            return Topic::from_stored(topic).map(Self::Topic);
        }
        match name.strip_prefix(Self::BREAKER) {
            Some(of) => DestinationPause::from_name(of).map(Self::Breaker),
            None => DestinationPause::from_name(name).map(Self::Destination),
        }
    }

    /// The names of the limits that would hold a lane: those of its destination, that of its topic, and that of the
    /// breaker. `None` for a pull lane.
    pub fn names_of(lane: Lane<'_>) -> Option<[String; 6]> {
        let [host, port, host_of_tenant, port_of_tenant] = DestinationPause::names_of(lane)?;
        let breaker = format!("{}{port_of_tenant}", Self::BREAKER);
        Some([host, port, host_of_tenant, port_of_tenant, format!("{}{}", Self::TOPIC, lane.topic), breaker])
    }

    /// The prefix of the names of all limits of the same kind that belong to the same tenant; `None` if this one belongs
    /// to none.
    pub fn tenant_prefix(&self) -> Option<String> {
        match self {
            Self::Destination(of) => of.tenant_prefix(),
            Self::Breaker(of) => of.tenant_prefix().map(|prefix| format!("{}{prefix}", Self::BREAKER)),
            Self::Topic(topic) => topic.tenant().map(|tenant| format!("{}{}", Self::TOPIC, tenant.prefix())),
        }
    }

    /// The destination that somebody has limited; `None` for a topic or a breaker.
    pub const fn destination(&self) -> Option<&DestinationPause> {
        match self {
            Self::Destination(of) => Some(of),
            Self::Topic(_) | Self::Breaker(_) => None,
        }
    }
}

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

/// A limit, and how much of it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitState {
    pub of: LimitTarget,
    pub limits: Limits,
    /// How many callbacks are in flight under it, if it limits them.
    pub in_flight: u32,
    /// How long after the call the next callback may begin by the rate.
    pub next_in: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_has_the_name_under_which_its_lanes_look_for_it() {
        let tenant: Tenant = "acme".parse().unwrap();
        let topic = "pay".parse::<Topic>().unwrap().of_tenant(Some(&tenant));
        let lane = Lane::new(&topic, "https://a.example");
        let names = LimitTarget::names_of(lane).unwrap();
        let of = |scope| {
            LimitTarget::Destination(DestinationPause::new(&scope, Destination::parse("a.example").unwrap()))
        };
        let origin = Origin::parse("https://a.example").unwrap();
        let targets = [
            of(TenantScope::All),
            of(TenantScope::One(Some(tenant.clone()))),
            LimitTarget::Topic(topic.clone()),
            LimitTarget::breaker(Some(tenant), &origin),
        ];
        let prefixes = [None, Some("~acme/"), Some("#~acme/"), Some("^~acme/")];
        for (target, prefix) in targets.into_iter().zip(prefixes) {
            assert!(names.contains(&target.name()), "{target:?}");
            assert_eq!(target.tenant_prefix().as_deref(), prefix);
            assert_eq!(LimitTarget::from_name(&target.name()), Some(target));
        }
        assert_eq!(LimitTarget::names_of(Lane::new(&topic, "")), None);
        assert_eq!(LimitTarget::from_name("#a/b"), None);
    }
}
