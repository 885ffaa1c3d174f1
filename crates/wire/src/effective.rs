//! The settings that apply to a job and where each comes from: the job itself, its topic's policy, the
//! installation, or a built-in default. They are looked up when they are used, so they hold until a
//! policy changes.

use std::time::Duration;

use ringback_core::duration::format_duration;
use ringback_core::flow::Limits;
use ringback_core::job::{Callback, DEFAULT_TIMEOUT, DEFAULT_TTR, Delivery, Headers, Topic};
use ringback_core::retry::{InstallationRetry, Max};
use ringback_core::store_types::is_notice_topic;
use ringback_core::topic_policy::Policy;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::field_parsers::entries::Entries;

/// Where a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum SetBy {
    /// The job itself.
    Job,
    /// The policy of its topic.
    Topic,
    /// The setting `RINGBACK_RETRY`.
    Installation,
    /// A built-in default.
    Default,
}

/// The settings of a job's next attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EffectiveSettings {
    /// The URL that an attempt is sent to. It was fixed at the submit: if it came from the topic's policy, it
    /// is that of the policy at that time. Absent for a pull job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The retry policy.
    pub retry: EffectiveRetry,
    /// The deadline of an attempt; absent for a pull job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<EffectiveValue>,
    /// The lease if the consumer asks for no other; only for a pull job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttr: Option<EffectiveValue>,
    /// The headers of the callback that the job and its topic's policy set. The value of a secret header is
    /// `[masked by ringback]`. Absent without any, and for a pull job.
    #[serde(default, skip_serializing_if = "Entries::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    pub headers: Entries,
    /// The name of the credential that the callback carries if that is for the origin of the URL, by the topic's policy;
    /// absent without one, and for a pull job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
    /// The body that the receiver has to respond with, by the topic's policy; absent for a pull job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_body: Option<String>,
    /// The statuses after which the job is dead at once, by the topic's policy; absent without any, and for a pull job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bury_on: Option<Vec<u16>>,
    /// The limits of the topic's callbacks, by its policy; absent without any, and for a pull job. Limits of the
    /// destination hold too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<EffectiveLimits>,
    /// The URL for the dead-letter notice, if the job's death would cause one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_dead: Option<EffectiveValue>,
    /// The URL for the notice of its success, if that would cause one; absent for a pull job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_done: Option<EffectiveValue>,
}

/// A retry policy with all its fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EffectiveRetry {
    /// Where it comes from.
    pub from: SetBy,
    /// The delays, as friendly durations; none without retries. None is shorter than the installation allows.
    pub delays: Vec<String>,
    /// After how many failures the job is dead; -1 for never. Beyond the list its last delay repeats. It is no more
    /// than the installation allows.
    pub max: i64,
    /// How long after the job was first due it is still retried, as the installation allows; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age: Option<String>,
    /// Which share of a delay may be added at random.
    pub jitter: f32,
}

/// Limits of callbacks, over all notifiers together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EffectiveLimits {
    /// How many may begin in a second, minute, hour or day, such as `10/s`; null for any number.
    pub rate: Option<String>,
    /// How many may begin at once after a pause; null if it was not set, which means 1.
    pub burst: Option<u32>,
    /// How many may be in flight; null for any number.
    pub in_flight: Option<u32>,
}

/// A setting and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EffectiveValue {
    /// Where it comes from.
    pub from: SetBy,
    /// A friendly duration, or a URL.
    pub value: String,
}

impl EffectiveSettings {
    /// The settings of the next attempt of a job under its topic's policy. `retry` are the retries of the installation.
    pub fn new(
        topic: &Topic,
        delivery: &Delivery,
        policy: Option<&Policy>,
        retry: &InstallationRetry,
    ) -> Self {
        let is_push = !delivery.callback.is_pull();
        let timeout = duration(delivery.timeout, policy.and_then(|policy| policy.timeout), DEFAULT_TIMEOUT);
        let ttr = duration(delivery.timeout, policy.and_then(|policy| policy.ttr), DEFAULT_TTR);
        let of_callback = policy.filter(|_| is_push);
        let is_notice = is_notice_topic(topic);
        let on_dead = policy.and_then(|policy| policy.on_dead.as_ref());
        let on_done = policy.and_then(|policy| policy.on_done.as_ref());
        Self {
            url: is_push.then(|| delivery.callback.to_string()),
            retry: EffectiveRetry::new(delivery, policy, retry),
            timeout: is_push.then_some(timeout),
            ttr: (!is_push).then_some(ttr),
            headers: if is_push { headers(delivery, policy) } else { Entries::default() },
            credentials: of_callback.and_then(|policy| Some(policy.credentials.as_ref()?.to_string())),
            expect_body: of_callback.and_then(|policy| policy.expect_body.clone()),
            bury_on: of_callback.and_then(|policy| policy.bury_on.clone()),
            limits: of_callback.and_then(|policy| EffectiveLimits::new(policy.limits)),
            on_dead: (!is_notice).then(|| notice(delivery.on_dead.as_deref(), on_dead)).flatten(),
            on_done: (is_push && !is_notice).then(|| notice(delivery.on_done.as_deref(), on_done)).flatten(),
        }
    }
}

impl EffectiveLimits {
    /// `None` if nothing is limited.
    fn new(limits: Limits) -> Option<Self> {
        let Limits { rate, burst, in_flight } = limits;
        (!limits.is_empty()).then(|| Self { rate: rate.map(|rate| rate.to_string()), burst, in_flight })
    }
}

impl EffectiveRetry {
    fn new(delivery: &Delivery, policy: Option<&Policy>, installation: &InstallationRetry) -> Self {
        let of_topic = policy.and_then(|policy| policy.retry.as_ref());
        let own = delivery.retry.as_ref();
        let from = set(own, of_topic).map_or(SetBy::Installation, |(_, from)| from);
        let retry = installation.policy(own, of_topic);
        let delays: Vec<_> = retry.delays().iter().copied().map(format_duration).collect();
        let max = match retry.max() {
            Max::Tiers => i64::try_from(delays.len()).unwrap_or(i64::MAX).saturating_add(1),
            Max::Failures(max) => max.into(),
            Max::Unlimited => -1,
        };
        let max_age = installation.max_age.map(format_duration);
        Self { from, delays, max, max_age, jitter: retry.jitter() }
    }
}

/// The setting of the job, or else that of its topic, and which of them it is; `None` if neither is set.
fn set<T>(own: Option<T>, of_topic: Option<T>) -> Option<(T, SetBy)> {
    own.map(|own| (own, SetBy::Job)).or_else(|| Some((of_topic?, SetBy::Topic)))
}

fn duration(own: Option<Duration>, of_topic: Option<Duration>, default: Duration) -> EffectiveValue {
    let (value, from) = set(own, of_topic).unwrap_or((default, SetBy::Default));
    EffectiveValue { from, value: format_duration(value) }
}

/// The policy's headers that go to the job's URL, and the job's own, which replace those, with secret values masked.
fn headers(delivery: &Delivery, policy: Option<&Policy>) -> Entries {
    let own = &delivery.headers;
    let of_topic = policy.map_or(&[][..], |policy| policy.headers_for(delivery.callback.origin()));
    let is_own = |name: &str| own.entries().iter().any(|(known, _)| known == name);
    let added = of_topic.iter().filter(|(name, _)| !is_own(name));
    let all: Vec<_> = added.chain(own.entries()).cloned().collect();
    Headers::from_entries(all).masked().entries().into()
}

/// The URL for a notice, of the job or else of its topic; `None` if neither has one.
fn notice(own: Option<&Callback>, of_topic: Option<&Callback>) -> Option<EffectiveValue> {
    let (url, from) = set(own, of_topic)?;
    Some(EffectiveValue { from, value: url.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Defaults, parse_job, parse_policy};
    use ringback_core::clock::Timestamp;

    fn effective(job: &str, policy: Option<&str>) -> String {
        effective_within(&InstallationRetry::unlimited("15s 3m".parse().unwrap()), job, policy)
    }

    fn effective_within(retry: &InstallationRetry, job: &str, policy: Option<&str>) -> String {
        let (make_id, make_token) = (&mut |_: &_| unreachable!(), &mut || unreachable!());
        let defaults = Defaults { now: Timestamp::default(), make_id, make_token, trace: None, tenant: None };
        let job = parse_job(format!(r#"{{"id":"i",{job}}}"#).as_bytes(), defaults).unwrap();
        let policy = policy.map(|json| parse_policy(json.as_bytes()).unwrap());
        let answer = EffectiveSettings::new(&job.key.topic, &job.delivery, policy.as_ref(), retry);
        let text = serde_json::to_string(&answer).unwrap();
        assert_eq!(serde_json::from_str::<EffectiveSettings>(&text).unwrap(), answer);
        text
    }

    #[test]
    fn without_a_policy_the_job_counts_then_the_installation_and_the_defaults() {
        let expected = r#"{"url":"http://h/","retry":{"from":"installation","delays":["15s","3m"],"max":3,"jitter":0.1},"timeout":{"from":"default","value":"10s"}}"#;
        assert_eq!(effective(r#""topic":"t","url":"http://h/""#, None), expected);
        let own = r#""topic":"t","url":"http://h/","timeout":2,"retry":{"preset":"none"},"on_dead":"http://h/d","headers":{"Cookie":"a"}"#;
        let expected = r#"{"url":"http://h/","retry":{"from":"job","delays":[],"max":1,"jitter":0.0},"timeout":{"from":"job","value":"2s"},"headers":{"cookie":"[masked by ringback]"},"on_dead":{"from":"job","value":"http://h/d"}}"#;
        assert_eq!(effective(own, None), expected);
    }

    const POLICY: &str = r#"{"retry":{"delays":["1s"],"max":-1,"jitter":0},"timeout":"5s","ttr":"1m",
        "headers":{"X-A":"topic","X-Token":"hunter2"},"expect_body":"success","on_dead":"http://h/topic"}"#;

    #[test]
    fn the_policy_of_the_topic_counts_for_what_the_job_leaves_out() {
        let expected = r#"{"url":"http://h/","retry":{"from":"topic","delays":["1s"],"max":-1,"jitter":0.0},"timeout":{"from":"topic","value":"5s"},"headers":{"x-token":"[masked by ringback]","x-a":"own"},"expect_body":"success","on_dead":{"from":"topic","value":"http://h/topic"}}"#;
        assert_eq!(
            effective(r#""topic":"t","url":"http://h/","headers":{"x-a":"own"}"#, Some(POLICY)),
            expected
        );
    }

    #[test]
    fn the_limits_of_the_installation_count_before_all_else() {
        let retry = InstallationRetry {
            min_delay: Duration::from_secs(30),
            max_failures: Some(5),
            max_age: Some(Duration::from_secs(86_400)),
            ..InstallationRetry::unlimited("15s 3m".parse().unwrap())
        };
        let default = effective_within(&retry, r#""topic":"t","url":"http://h/""#, None);
        assert!(default.contains(r#""delays":["30s","3m"],"max":3,"max_age":"1d","#), "{default}");
        let of_topic = effective_within(&retry, r#""topic":"t","url":"http://h/""#, Some(POLICY));
        assert!(
            of_topic.contains(r#"{"from":"topic","delays":["30s"],"max":5,"max_age":"1d","#),
            "{of_topic}"
        );
    }

    #[test]
    fn the_limits_of_its_topic_count_for_a_callback_alone() {
        let policy = Some(r#"{"limits":{"rate":"100/s","in_flight":5}}"#);
        let push = effective(r#""topic":"t","url":"http://h/""#, policy);
        assert!(push.contains(r#""limits":{"rate":"100/s","burst":null,"in_flight":5}"#), "{push}");
        let pull = effective(r#""topic":"t""#, policy);
        assert!(!pull.contains("limits"), "{pull}");
    }

    #[test]
    fn a_pull_job_has_a_time_to_run_and_nothing_of_a_callback() {
        let expected = r#"{"retry":{"from":"topic","delays":["1s"],"max":-1,"jitter":0.0},"ttr":{"from":"topic","value":"1m"},"on_dead":{"from":"topic","value":"http://h/topic"}}"#;
        assert_eq!(effective(r#""topic":"t","headers":{"x-a":"own"}"#, Some(POLICY)), expected);
        let own = effective(r#""topic":"t","ttr":"7s""#, Some(POLICY));
        assert!(own.contains(r#""ttr":{"from":"job","value":"7s"}"#), "{own}");
    }

    #[test]
    fn a_notice_has_no_notice_of_its_own() {
        let text = effective(r#""topic":"ringback.on-dead","url":"http://h/""#, Some(POLICY));
        assert!(!text.contains("on_dead"), "{text}");
    }
}
