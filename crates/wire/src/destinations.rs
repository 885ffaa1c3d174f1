//! Answers of the calls about destinations, with counts, pauses, limits and failures, and the line of a pause in an
//! export.

use ringback_core::destination::{Destination, DestinationPause, Origin};
use ringback_core::job::TenantScope;
use ringback_core::store_types::{
    DestinationCounts, DestinationPage, DestinationPlace, Failures, LimitState,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::breakers::{BreakerDetails, BreakerSetting};
use super::limits::{LimitDetails, LimitsResponse};

/// An origin of callback URLs with its jobs, or a paused or limited destination without jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DestinationDetails {
    /// The host, in lower case and ASCII; an IPv6 address is in brackets.
    pub host: String,
    /// The port, also where it is the scheme's own; null for a destination without jobs that is paused or limited with
    /// all of its ports.
    pub port: Option<u16>,
    /// `http` or `https`; null for a paused or limited destination without jobs.
    pub scheme: Option<String>,
    /// Jobs that are ready: they are due, and wait to be delivered.
    pub waiting: u64,
    /// Jobs that wait for their due time.
    pub delayed: u64,
    /// Jobs that are being delivered.
    pub reserved: u64,
    /// Jobs that failed for good and are kept.
    pub dead: u64,
    /// Whether it is paused: no job is delivered there.
    pub paused: bool,
    /// The pauses that the caller can end, as `host` or `host:port`. Empty if it is not paused, or paused by the
    /// operator for all tenants.
    pub pauses: Vec<String>,
    /// The limits of its host and of its port that the caller has set. All of them hold. Those of the operator are not
    /// shown to a tenant.
    pub limited_by: Vec<LimitDetails>,
    /// Whether its breakers are forced, by the caller or the operator.
    pub breaker: BreakerSetting,
    /// How it fails; null if it does not, as far as is known. Notifiers report it every second.
    pub failing: Option<FailureDetails>,
}

/// How callbacks to an origin fail: from the first failed attempt on, until one succeeds and none has failed for ten
/// seconds, or until a week after the last attempt. An answer of 410 is not a failure of the destination. With the key
/// of a tenant, these are the attempts for its jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailureDetails {
    /// When the first of these attempts failed.
    #[schema(format = DateTime)]
    pub since: String,
    /// When the last attempt failed.
    #[schema(format = DateTime)]
    pub last_at: String,
    /// The status of the last failed attempt; null if there was no answer.
    pub last_status: Option<u16>,
    /// Why the last failed attempt got no answer that counts, as in the attempts of a job; null if it got one.
    pub last_error: Option<String>,
    /// How many attempts have failed since.
    pub attempts: u64,
    /// The breaker, unless it is closed: then callbacks go as ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerDetails>,
}

/// A page of destinations, sorted by host, port and scheme.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DestinationsResponse {
    /// The destinations.
    pub items: Vec<DestinationDetails>,
    /// The cursor of the next page; null on the last page. Opaque.
    pub next: Option<String>,
}

/// A destination that was paused or resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DestinationPauseResponse {
    /// The host, in lower case and ASCII; an IPv6 address is in brackets.
    pub host: String,
    /// The port; null for all ports.
    pub port: Option<u16>,
    /// Whether it is paused: no job is delivered there. After a resume of one port it is still true if all ports are
    /// paused.
    pub paused: bool,
    /// The pauses that the caller can end, as `host` or `host:port`. Empty if it is not paused, or paused by the
    /// operator for all tenants.
    pub pauses: Vec<String>,
}

/// A destination with its pauses and its limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DestinationResponse {
    /// The host, in lower case and ASCII; an IPv6 address is in brackets.
    pub host: String,
    /// The port; null for all ports.
    pub port: Option<u16>,
    /// Whether it is paused: no job is delivered there.
    pub paused: bool,
    /// The pauses that the caller can end, as `host` or `host:port`. Empty if it is not paused, or paused by the
    /// operator for all tenants.
    pub pauses: Vec<String>,
    /// Whether its breakers are forced, by the caller or the operator.
    pub breaker: BreakerSetting,
    /// The limits that the caller has set for exactly this destination; null if there are none. A limit of its host,
    /// and one of the operator for all tenants, holds too but is not shown.
    pub limits: Option<LimitsResponse>,
}

/// A paused destination, on its way to another installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DestinationLine {
    /// The tenant whose jobs the pause is for; absent if it is for all, or for those that belong to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// `host` or `host:port`.
    pub destination: String,
    /// Whether it is for the jobs of all.
    pub for_all: bool,
}

impl DestinationLine {
    /// The line of a pause.
    pub fn new(pause: &DestinationPause) -> Self {
        let (tenant, destination) = (pause.tenant().map(str::to_owned), pause.destination.to_string());
        Self { tenant, destination, for_all: pause.is_of_all() }
    }
}

impl DestinationsResponse {
    /// The page for a caller of this scope, with the limits of this scope. Pauses of other scopes count as pauses, but
    /// are not listed.
    pub fn new(page: &DestinationPage, limits: &[LimitState], scope: &TenantScope) -> Self {
        let item = |(place, counts)| DestinationDetails::new(place, counts, page, limits, scope);
        let items = page.items.iter().map(item).collect();
        Self { items, next: page.next.as_ref().map(ToString::to_string) }
    }
}

impl DestinationDetails {
    fn new(
        place: &DestinationPlace,
        counts: &DestinationCounts,
        page: &DestinationPage,
        limits: &[LimitState],
        scope: &TenantScope,
    ) -> Self {
        let DestinationPlace { host, port, scheme } = place;
        let (port, is_pause) = (Some(*port).filter(|port| *port > 0), scheme.is_empty());
        let origin = port.map(|port| Origin { host: host.clone(), port, scheme: scheme.clone() });
        let holds = |destination: &Destination| match &origin {
            // A pause of all ports that has no jobs.
            None => destination.host() == &**host && destination.port().is_none(),
            Some(origin) => destination.has(origin),
        };
        let (paused, pauses) = held(page.pauses.iter().filter(|pause| holds(&pause.destination)), scope);
        let holds_too = |limit: &&LimitState| limit.of.destination().is_some_and(|of| holds(&of.destination));
        let limited_by = limits.iter().filter(holds_too).filter_map(LimitDetails::of_destination);
        Self {
            host: host.to_string(),
            port,
            scheme: (!is_pause).then(|| scheme.to_string()),
            waiting: counts.ready,
            delayed: counts.delayed,
            reserved: counts.reserved,
            dead: counts.dead,
            paused,
            pauses,
            breaker: BreakerSetting::of(paused, &page.forced_closed, holds),
            limited_by: limited_by.collect(),
            failing: page.failing.get(place).map(FailureDetails::from),
        }
    }
}

impl From<&Failures> for FailureDetails {
    fn from(failures: &Failures) -> Self {
        Self {
            since: failures.since().to_string(),
            last_at: failures.last_at().to_string(),
            last_status: failures.last_status(),
            last_error: failures.last_error().map(str::to_owned),
            attempts: failures.attempts(),
            breaker: BreakerDetails::new(failures.breaker()),
        }
    }
}

impl DestinationPauseResponse {
    /// A destination with the pauses that hold all of it, as a caller of this scope sees them.
    pub fn new<'a>(
        destination: &Destination,
        pauses: impl IntoIterator<Item = &'a DestinationPause>,
        scope: &TenantScope,
    ) -> Self {
        let visible = pauses.into_iter().filter(|pause| pause.is_of_all() || pause.is_of(scope));
        let (paused, pauses) = held(visible.filter(|pause| pause.destination.covers(destination)), scope);
        let (host, port) = (destination.host().to_owned(), destination.port());
        Self { host, port, paused, pauses }
    }
}

impl DestinationResponse {
    /// A destination with its limits, if it has some, and the pauses and forced breakers that hold all of it, as a caller of
    /// this scope sees them.
    pub fn new<'a>(
        destination: &Destination,
        pauses: impl IntoIterator<Item = &'a DestinationPause>,
        forced_closed: &[DestinationPause],
        limits: Option<&LimitState>,
        scope: &TenantScope,
    ) -> Self {
        let DestinationPauseResponse { host, port, paused, pauses } =
            DestinationPauseResponse::new(destination, pauses, scope);
        let breaker = BreakerSetting::of(paused, forced_closed, |of| of.covers(destination));
        Self { host, port, paused, pauses, breaker, limits: limits.map(LimitsResponse::from) }
    }
}

/// Whether there are pauses, and the destinations of those that are of exactly this scope.
fn held<'a>(pauses: impl Iterator<Item = &'a DestinationPause>, scope: &TenantScope) -> (bool, Vec<String>) {
    let (mut is_paused, mut own) = (false, Vec::new());
    for pause in pauses {
        is_paused = true;
        if pause.is_of(scope) {
            own.push(pause.destination.to_string());
        }
    }
    (is_paused, own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(scope: &TenantScope, text: &str) -> DestinationPause {
        DestinationPause::new(scope, Destination::parse(text).unwrap())
    }

    #[test]
    fn a_destination_says_which_pauses_hold_it_and_which_of_them_the_caller_can_end() {
        let (all, own) = (TenantScope::All, TenantScope::One(Some("t".parse().unwrap())));
        let pauses = [pause(&all, "a.example:443"), pause(&own, "a.example"), pause(&all, "b.example")];
        let found = |scope: &TenantScope, text: &str| {
            let answer = DestinationPauseResponse::new(&Destination::parse(text).unwrap(), &pauses, scope);
            (answer.paused, answer.pauses)
        };
        assert_eq!(found(&own, "a.example:443"), (true, vec!["a.example".to_owned()]));
        assert_eq!(found(&all, "a.example:443"), (true, vec!["a.example:443".to_owned()]));
        assert_eq!(found(&all, "a.example"), (false, vec![]));
        assert_eq!(found(&own, "b.example:81"), (true, vec![]));
        assert_eq!(found(&own, "c.example"), (false, vec![]));
    }
}
