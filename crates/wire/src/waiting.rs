//! What a job waits for: a pause, its key, a breaker, a limit, a free place or its retry. A job that waits only for its time has
//! none of these.

use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::job::{Job, JobId};
use ringback_core::state::State;
use ringback_core::store_types::{JobPauses, JobWait, LimitState, LimitTarget, MAX_BEFORE, OrderWait};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a job waits for, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitDetails {
    /// What it waits for.
    #[serde(rename = "for")]
    pub cause: WaitCause,
    /// With `pause` and `limit`, whose pauses or limits they are. Else absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<HeldBy>,
    /// With `order`, the key of the job. Else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// With `order`, the id of the job that goes first of those of its key. Else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
    /// True if that job is dead and holds the key: nothing goes until it is revived or purged, or the key is unblocked.
    /// Else absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// Since when: since it was due, or with `retry` since the last attempt failed.
    #[schema(format = DateTime)]
    pub since: String,
    /// How many ready jobs of its topic for the same destination come before it; of a pull job, how many of its topic.
    /// With `order`, how many jobs of its key go before it, that of `behind` included. Absent if it is not known, and with
    /// `retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 1000)]
    pub before: Option<u32>,
    /// True if `before` is 1000, which means that many or more; else absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// With `retry`, when it is due. With `limit` and `breaker`, when it can go at the earliest by the rate, with the
    /// jobs before it; absent if none of the limits has a rate. Else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub until: Option<String>,
}

/// What a job waits for: that a pause ends; that the jobs of its key before it end, where its topic is ordered; that the breaker of its receiver lets it go, as a probe or once it closes;
/// that limits allow its callback; that a notifier has a free place or a consumer asks for it; or the time of its retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WaitCause {
    Pause,
    Order,
    Breaker,
    Limit,
    #[serde(rename = "places")]
    FreePlace,
    Retry,
}

/// What has a pause or a limit that holds a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum HeldBy {
    /// The topic of the job.
    Topic,
    /// The host or port that it is for.
    Destination,
}

impl HeldBy {
    /// The given ones, the topic first.
    pub(super) fn of(topic: bool, destination: bool) -> Vec<Self> {
        let all = [(topic, Self::Topic), (destination, Self::Destination)];
        all.into_iter().filter_map(|(is_held, by)| is_held.then_some(by)).collect()
    }
}

impl WaitDetails {
    /// What a job waits for; `None` if it does not wait, or only for its time. `limits` are the states of those of
    /// `wait` at the time `now`.
    pub fn new(job: &Job, wait: &JobWait, limits: &[LimitState], now: Timestamp) -> Option<Self> {
        let before = wait.before;
        let details = |cause, by, since: Timestamp, until: Option<Timestamp>| Self {
            cause,
            by,
            key: None,
            behind: None,
            held: false,
            since: since.to_string(),
            before,
            more: before.is_some_and(|before| before >= MAX_BEFORE),
            until: until.map(|at| at.to_string()),
        };
        let JobPauses { topic, destination } = wait.pauses;
        match (job.state, &wait.order) {
            (State::Delayed, _) => {
                let last = job.last.as_ref().filter(|_| job.failures > 0)?;
                let since = last.at.plus(last.duration);
                let retry = details(WaitCause::Retry, Vec::new(), since, Some(job.due));
                Some(Self { before: None, more: false, ..retry })
            }
            (State::Ready, _) if topic || destination => {
                Some(details(WaitCause::Pause, HeldBy::of(topic, destination), job.due, None))
            }
            (State::Ready, Some(order)) => {
                let details = details(WaitCause::Order, Vec::new(), job.due, None);
                Some(details.behind(order, &job.key.id))
            }
            (State::Ready, None) if !limits.is_empty() => {
                let has = |is_it: fn(&LimitTarget) -> bool| limits.iter().any(|limit| is_it(&limit.of));
                let by = HeldBy::of(
                    has(|of| matches!(of, LimitTarget::Topic(_))),
                    has(|of| matches!(of, LimitTarget::Destination(_))),
                );
                let at_least =
                    limits.iter().filter_map(|limit| wait_of(limit, before.unwrap_or_default())).max();
                let until = at_least.map(|wait| now.plus(wait));
                let is_breaker = has(|of| matches!(of, LimitTarget::Breaker(_)));
                let (cause, by) =
                    if is_breaker { (WaitCause::Breaker, Vec::new()) } else { (WaitCause::Limit, by) };
                Some(details(cause, by, job.due, until))
            }
            (State::Ready, None) => Some(details(WaitCause::FreePlace, Vec::new(), job.due, None)),
            (State::Reserved | State::Done | State::Dead | State::Cancelled, _) => None,
        }
    }

    /// The same for a job that waits behind others of its key.
    fn behind(self, OrderWait { before, head, is_held }: &OrderWait, id: &JobId) -> Self {
        Self {
            key: Some(id.order_key().to_owned()),
            behind: Some(head.to_string()),
            held: *is_held,
            before: Some(*before),
            more: *before >= MAX_BEFORE,
            ..self
        }
    }
}

/// How long a callback waits at least for the rate of a limit with `before` others before it; `None` without a rate.
fn wait_of(LimitState { limits, next_in, .. }: &LimitState, before: u32) -> Option<Duration> {
    let interval = Duration::from_secs_f64(limits.rate?.interval_us() / 1e6);
    Some(*next_in + interval.saturating_mul(before))
}

#[cfg(test)]
mod tests {
    use ringback_core::destination::{Destination, DestinationPause, Origin};
    use ringback_core::flow::Limits;
    use ringback_core::job::{JobKey, Tags, TenantScope};
    use ringback_core::outcome::LastAttempt;
    use serde_json::{Value, json};

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_763_600_100_000);

    fn job(state: State, failures: u32) -> Job {
        let last = LastAttempt {
            at: Timestamp::from_millis(1_763_600_000_000),
            status: Some(503),
            error: None,
            duration: Duration::from_millis(250),
        };
        Job {
            key: JobKey { topic: "t".parse().unwrap(), id: "i".parse().unwrap() },
            state,
            due: Timestamp::from_millis(1_763_600_060_000),
            created: Timestamp::default(),
            attempts: failures,
            failures,
            last: (failures > 0).then_some(last),
            reason: None,
            tags: Tags::default(),
        }
    }

    fn wait(pauses: JobPauses, before: u32) -> JobWait {
        JobWait { pauses, before: Some(before), ..JobWait::default() }
    }

    fn limit(of: LimitTarget, limits: Limits) -> LimitState {
        let next_in = limits.rate.map_or(Duration::ZERO, |_| Duration::from_millis(500));
        LimitState { of, limits, in_flight: 1, next_in }
    }

    fn of_destination() -> LimitTarget {
        let destination = Destination::parse("a.example").unwrap();
        LimitTarget::Destination(DestinationPause::new(&TenantScope::All, destination))
    }

    fn of_topic() -> LimitTarget {
        LimitTarget::Topic("t".parse().unwrap())
    }

    fn shown(job: &Job, wait: &JobWait, limits: &[LimitState]) -> Value {
        let details = WaitDetails::new(job, wait, limits, NOW);
        let json = serde_json::to_value(&details).unwrap();
        assert_eq!(serde_json::from_value::<Option<WaitDetails>>(json.clone()).unwrap(), details);
        json
    }

    const NOT_PAUSED: JobPauses = JobPauses { topic: false, destination: false };

    #[test]
    fn a_job_that_failed_waits_for_its_retry_even_if_it_is_paused() {
        let paused = JobWait { before: None, ..wait(JobPauses { topic: true, destination: false }, 0) };
        let expected =
            json!({"for": "retry", "since": "2025-11-20T00:53:20.250Z", "until": "2025-11-20T00:54:20.000Z"});
        assert_eq!(shown(&job(State::Delayed, 1), &paused, &[]), expected);
    }

    #[test]
    fn a_job_that_is_not_due_and_one_that_does_not_wait_have_nothing_to_show() {
        let is_paused = wait(JobPauses { topic: true, destination: true }, 0);
        for state in [State::Delayed, State::Reserved, State::Done, State::Dead, State::Cancelled] {
            assert_eq!(shown(&job(state, 0), &is_paused, &[]), Value::Null, "{state}");
        }
    }

    #[test]
    fn a_due_job_waits_for_the_end_of_its_pauses_before_its_limits() {
        let limits = [limit(of_topic(), Limits { in_flight: Some(1), ..Limits::default() })];
        let paused = wait(JobPauses { topic: true, destination: true }, 12);
        let expected = json!({
            "for": "pause", "by": ["topic", "destination"], "since": "2025-11-20T00:54:20.000Z", "before": 12,
        });
        assert_eq!(shown(&job(State::Ready, 0), &paused, &limits), expected);
    }

    #[test]
    fn a_due_job_waits_for_those_of_its_key_after_its_pauses_and_before_its_limits() {
        let limits = [limit(of_topic(), Limits { in_flight: Some(1), ..Limits::default() })];
        let order = OrderWait { before: 2, head: "order-7~paid".parse().unwrap(), is_held: false };
        let of_key = |state| {
            let job = job(state, 0);
            Job { key: JobKey { id: "order-7~shipped".parse().unwrap(), ..job.key }, ..job }
        };
        let waits = JobWait { order: Some(order.clone()), ..wait(NOT_PAUSED, 5) };
        let expected = json!({
            "for": "order", "key": "order-7", "behind": "order-7~paid", "since": "2025-11-20T00:54:20.000Z", "before": 2,
        });
        assert_eq!(shown(&of_key(State::Ready), &waits, &limits), expected);
        let held = OrderWait { before: MAX_BEFORE, is_held: true, ..order };
        let waits = JobWait { order: Some(held), ..waits };
        let expected = json!({
            "for": "order", "key": "order-7", "behind": "order-7~paid", "held": true,
            "since": "2025-11-20T00:54:20.000Z", "before": 1000, "more": true,
        });
        assert_eq!(shown(&of_key(State::Ready), &waits, &[]), expected);
        let paused = JobWait { pauses: JobPauses { topic: true, destination: false }, ..waits };
        assert_eq!(shown(&of_key(State::Ready), &paused, &[])["for"], "pause");
    }

    #[test]
    fn a_due_job_waits_for_its_limits_at_least_as_long_as_their_rates_take_for_the_jobs_before_it() {
        let rate = |text: &str| Limits { rate: Some(text.parse().unwrap()), ..Limits::default() };
        let in_flight = Limits { in_flight: Some(5), ..Limits::default() };
        // The slowest rate counts, and its interval is a fortieth longer than the rate says.
        let limits = [
            limit(of_destination(), rate("1/s")),
            limit(of_destination(), in_flight),
            limit(of_topic(), rate("6/m")),
        ];
        let expected = json!({
            "for": "limit", "by": ["topic", "destination"], "since": "2025-11-20T00:54:20.000Z", "before": 4,
            "until": "2025-11-20T00:55:41.500Z",
        });
        assert_eq!(shown(&job(State::Ready, 0), &wait(NOT_PAUSED, 4), &limits), expected);
        let expected =
            json!({"for": "limit", "by": ["destination"], "since": "2025-11-20T00:54:20.000Z", "before": 4});
        assert_eq!(shown(&job(State::Ready, 0), &wait(NOT_PAUSED, 4), &limits[1..2]), expected);
    }

    #[test]
    fn a_due_job_waits_for_a_probe_while_the_breaker_of_its_receiver_is_open() {
        let of_breaker = LimitTarget::breaker(None, &Origin::parse("http://a.example").unwrap());
        let probes = Limits { rate: Some("60/m".parse().unwrap()), burst: None, in_flight: Some(1) };
        let limits = [limit(of_topic(), Limits::default()), limit(of_breaker, probes)];
        let expected = json!({
            "for": "breaker", "since": "2025-11-20T00:54:20.000Z", "before": 0, "until": "2025-11-20T00:55:00.500Z",
        });
        assert_eq!(shown(&job(State::Ready, 0), &wait(NOT_PAUSED, 0), &limits), expected);
    }

    #[test]
    fn a_due_job_without_pauses_and_limits_waits_for_a_place() {
        // Its limit was removed meanwhile.
        let many = JobWait { limits: vec![of_topic()], ..wait(NOT_PAUSED, MAX_BEFORE) };
        let expected =
            json!({"for": "places", "since": "2025-11-20T00:54:20.000Z", "before": 1000, "more": true});
        assert_eq!(shown(&job(State::Ready, 0), &many, &[]), expected);
        let unknown = JobWait { before: None, ..many };
        let expected = json!({"for": "places", "since": "2025-11-20T00:54:20.000Z"});
        assert_eq!(shown(&job(State::Ready, 0), &unknown, &[]), expected);
    }
}
