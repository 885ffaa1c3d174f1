//! Limits of destinations and topics: the requests that set them, and the answers that show them. `ringback_core` has
//! the stored form.

use ringback_core::clock::millis_up;
use ringback_core::flow::{Limits, MAX_FLOW, Rate};
use ringback_core::store_types::LimitState;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::declare::{Kind, Schemas, request};
use super::field_parsers::object::{Fields, Mistakes};
use super::kinds::{Part, Text, Whole};
use super::schema::CallbackRate;

const LIMITS: &str = "an object with rate, in_flight or both, such as {\"rate\":\"10/s\",\"burst\":20,\"in_flight\":5}; to remove a limit, use DELETE";
const COUNT: &str = "a whole number from 1 to 1000000";
const BURST: &str = "a burst together with a rate; set rate, or omit burst";

request! {
    /// What limits the callbacks to a destination, in place of its former limits.
    #[example {"limits": {"rate": "10/s", "burst": 20, "in_flight": 5}}]
    pub struct DestinationRequest(open) {
        /// The limits of callbacks to it.
        limits: FlowLimits [LIMITS], required Limits::default();
    }
}

request! {
    /// Limits of callbacks: `rate`, `in_flight` or both. What is left out is not limited.
    pub struct LimitsRequest {
        /// How many callbacks may begin in a second, minute, hour or day, over all notifiers together.
        rate: Text<CallbackRate, Rate> [Rate::ALLOWED];
        /// How many may begin at once after a pause; 1 by default. In any time t at most rate × t + burst begin. It
        /// needs a rate.
        burst: Count [COUNT];
        /// How many callbacks may be in flight, over all notifiers together.
        in_flight: Count [COUNT];
    }
}

/// A number of callbacks.
type Count = Whole<u32, 1, { MAX_FLOW as u64 }>;

/// Limits, of which there is at least one.
pub struct FlowLimits;

impl Kind for FlowLimits {
    type Value = Limits;

    fn read(fields: &Fields<'_>, name: &str, allowed: &str, mistakes: &mut Mistakes) -> Option<Limits> {
        let LimitsRequest { rate, burst, in_flight } =
            Part::<LimitsRequest>::read(fields, name, allowed, mistakes)?;
        let limits = Limits { rate, burst, in_flight };
        if rate.is_none() && burst.is_some() {
            mistakes.add(format!("{name}.burst"), "there is no rate", BURST);
        } else if limits.is_empty() {
            mistakes.add(name, "it limits nothing", allowed);
        }
        Some(limits)
    }

    fn schema() -> RefOr<Schema> {
        Part::<LimitsRequest>::schema()
    }

    fn collect(schemas: &mut Schemas) {
        Part::<LimitsRequest>::collect(schemas);
    }
}

/// Limits of the callbacks to a destination or of a topic, which hold for all notifiers together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitsResponse {
    /// How many callbacks may begin in a second, minute, hour or day, such as `10/s`; null for any number.
    pub rate: Option<String>,
    /// How many may begin at once after a pause; null if it was not set, which means 1.
    pub burst: Option<u32>,
    /// How many callbacks may be in flight; null for any number.
    pub in_flight: Option<u32>,
    /// How much of the limits is used.
    pub used: LimitsUsed,
}

/// How much of the limits is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitsUsed {
    /// How many callbacks are in flight or about to begin; null if their number is not limited, and so not counted.
    pub in_flight: Option<u32>,
    /// In how many milliseconds the next callback may begin by the rate; 0 if at once.
    pub next_in_ms: u64,
}

/// A limit that holds a destination in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitDetails {
    /// What is limited, as `host` or `host:port`.
    pub destination: String,
    /// Its limits.
    pub limits: LimitsResponse,
}

impl From<&LimitState> for LimitsResponse {
    fn from(LimitState { of: _, limits, in_flight, next_in }: &LimitState) -> Self {
        let used =
            LimitsUsed { in_flight: limits.in_flight.map(|_| *in_flight), next_in_ms: millis_up(*next_in) };
        let Limits { rate, burst, in_flight } = *limits;
        Self { rate: rate.map(|rate| rate.to_string()), burst, in_flight, used }
    }
}

impl LimitDetails {
    /// The limits of a destination; `None` for those of a topic.
    pub fn of_destination(state: &LimitState) -> Option<Self> {
        let destination = state.of.destination()?.destination.to_string();
        Some(Self { destination, limits: state.into() })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringback_core::destination::{Destination, DestinationPause};
    use ringback_core::job::TenantScope;
    use ringback_core::store_types::LimitTarget;

    use super::*;

    fn parse(json: &str) -> Result<Limits, crate::Problem> {
        DestinationRequest::parse(json.as_bytes()).map(|request| request.limits)
    }

    #[test]
    fn limits_are_read_as_they_are_written() {
        let rate = Some("10/s".parse().unwrap());
        for (json, limits) in [
            (
                r#"{"rate":"10/s","burst":20,"in_flight":5}"#,
                Limits { rate, burst: Some(20), in_flight: Some(5) },
            ),
            (r#"{"rate":"10/s"}"#, Limits { rate, ..Limits::default() }),
            (
                r#"{"rate":null,"burst":null,"in_flight":1000000}"#,
                Limits { in_flight: Some(1_000_000), ..Limits::default() },
            ),
        ] {
            assert_eq!(parse(&format!(r#"{{"limits":{json}}}"#)), Ok(limits), "{json}");
        }
    }

    #[test]
    fn what_is_wrong_with_limits_is_named_with_what_to_do() {
        for (json, field, advice) in [
            ("{}", "limits", "use DELETE"),
            (r#"{"limits":null}"#, "limits", "use DELETE"),
            (r#"{"limits":{}}"#, "limits", "use DELETE"),
            (r#"{"limits":{"rate":null}}"#, "limits", "use DELETE"),
            (r#"{"limits":5}"#, "limits", "an object"),
            (r#"{"limits":{"burst":5}}"#, "limits.burst", "set rate"),
            (r#"{"limits":{"burst":5,"in_flight":5}}"#, "limits.burst", "set rate"),
            (r#"{"limits":{"rate":10}}"#, "limits.rate", "10/s, 6/m"),
            (r#"{"limits":{"rate":"10/x"}}"#, "limits.rate", "10/s, 6/m"),
            (r#"{"limits":{"rate":"1000001/s"}}"#, "limits.rate", "at most 1000000/s"),
            (r#"{"limits":{"rate":"1/s","burst":0}}"#, "limits.burst", "1 to 1000000"),
            (r#"{"limits":{"in_flight":1000001}}"#, "limits.in_flight", "1 to 1000000"),
            (r#"{"limits":{"in_flight":1.5}}"#, "limits.in_flight", "1 to 1000000"),
            (r#"{"limits":{"in_flight":5,"per":"s"}}"#, "limits.per", "rate, burst, in_flight"),
            (r#"{"limits":{"in_flight":5},"paused":true}"#, "paused", "limits"),
        ] {
            let problem = parse(json).unwrap_err();
            assert_eq!((problem.status, problem.errors.len()), (422, 1), "{json}: {problem:?}");
            assert_eq!(problem.errors[0].field, field, "{json}");
            assert!(problem.errors[0].allowed.contains(advice), "{json}: {problem:?}");
        }
        assert_eq!(parse("[]").unwrap_err().status, 400);
    }

    #[test]
    fn an_answer_counts_callbacks_in_flight_only_where_they_are_limited() {
        let destination = Destination::parse("a.example").unwrap();
        let mut state = LimitState {
            of: LimitTarget::Destination(DestinationPause::new(&TenantScope::All, destination)),
            limits: Limits { rate: Some("6/m".parse().unwrap()), ..Limits::default() },
            in_flight: 0,
            next_in: Duration::from_micros(1),
        };
        let json = |state: &LimitState| serde_json::to_string(&LimitsResponse::from(state)).unwrap();
        let without =
            r#"{"rate":"6/m","burst":null,"in_flight":null,"used":{"in_flight":null,"next_in_ms":1}}"#;
        assert_eq!(json(&state), without);
        state.limits = Limits { in_flight: Some(5), ..Limits::default() };
        (state.in_flight, state.next_in) = (3, Duration::ZERO);
        let with = r#"{"rate":null,"burst":null,"in_flight":5,"used":{"in_flight":3,"next_in_ms":0}}"#;
        assert_eq!(json(&state), with);
    }
}
