//! Answers of the calls about topics, and the lines of an export of topics.

use std::fmt;

use ringback_core::clock::millis;
use ringback_core::job::Topic;
use ringback_core::store_types::TopicCounts;
use ringback_core::topic_policy::Policy;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::limits::LimitsResponse;
use super::order::OrderResponse;
use super::policy::masked_policy;

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopicResponse {
    /// Whose it is, in a list of all tenants; absent if it belongs to none, and in other answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Its name.
    pub topic: String,
    /// Whether it is paused: none of its jobs is delivered.
    pub paused: bool,
    /// Its jobs.
    pub states: TopicStates,
    /// The earliest due time of the delayed and ready jobs; absent if none is ready or due within ten
    /// minutes. The first eight ready jobs of each origin are searched, and in each shard the first 4,096
    /// pairs of topic and origin of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub oldest_due_at: Option<String>,
    /// How long the oldest of these ready jobs has been due, in milliseconds; 0 if none is ready.
    pub late_ms: u64,
    /// Its policy, each field as it was written, with secret header values masked; null if it has none.
    #[schema(value_type = Option<crate::PolicyRequest>)]
    pub policy: Option<Value>,
    /// The limits of its callbacks, by its policy, and how much of them is used; absent without limits, and in a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitsResponse>,
    /// How its jobs are ordered; absent without an order, and in a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderResponse>,
    /// What a pause may not have meant: the topic has no jobs and no policy, so that its name may be a mistake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A topic's jobs per state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopicStates {
    /// Waiting for their due time.
    pub delayed: u64,
    /// Due, waiting to be reserved.
    pub ready: u64,
    /// Being delivered.
    pub reserved: u64,
    /// Done since the topic became known. On Redis, a topic that has no jobs and is not paused is removed after
    /// about 10,000 others of its shard were used; the embedded store keeps all topics.
    pub done: u64,
    /// Failed for good and kept.
    pub dead: u64,
    /// Cancelled since the topic became known.
    pub cancelled: u64,
}

/// A page of topics, sorted by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopicsResponse {
    /// The topics.
    pub items: Vec<TopicResponse>,
    /// The cursor of the next page; null on the last page. Opaque.
    pub next: Option<String>,
}

/// A topic that has a policy or is paused, on its way to another installation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TopicLine {
    /// The tenant whose topic it is; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Its name.
    pub topic: String,
    /// Whether it is paused.
    pub paused: bool,
    /// Its policy, each field as it was written, with the values of secret headers; null if it has none.
    #[schema(value_type = Option<crate::PolicyRequest>)]
    pub policy: Option<Box<RawValue>>,
}

impl TopicLine {
    /// The line of a topic.
    pub fn new(topic: &Topic, paused: bool, policy: Option<&Policy>) -> Self {
        let json = |policy: &Policy| RawValue::from_string(policy.written().to_owned());
        let policy = policy.map(json).transpose().expect("a policy keeps the JSON that it was parsed from");
        let tenant = topic.tenant().map(|tenant| tenant.to_string());
        Self { tenant, topic: topic.to_string(), paused, policy }
    }
}

impl fmt::Display for TopicLine {
    /// The JSON, which never contains a line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl TopicResponse {
    /// The answer for a topic.
    pub fn new(topic: &Topic, counts: &TopicCounts, policy: Option<&Policy>) -> Self {
        let &TopicCounts { paused, delayed, ready, reserved, dead, done, cancelled, oldest_due, late } =
            counts;
        Self {
            tenant: None,
            topic: topic.to_string(),
            paused,
            states: TopicStates { delayed, ready, reserved, done, dead, cancelled },
            oldest_due_at: oldest_due.map(|at| at.to_string()),
            late_ms: millis(late),
            policy: policy.and_then(|policy| serde_json::from_str(&masked_policy(policy)).ok()),
            limits: None,
            order: None,
            note: None,
        }
    }

    /// Whether the topic has no jobs and no policy, and no job of it was done or cancelled since it became known.
    pub fn is_unused(&self) -> bool {
        self.states == TopicStates::default() && self.policy.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_policy;

    #[test]
    fn a_line_has_the_policy_as_it_was_written_and_with_its_secrets() {
        let written =
            "{\"headers\":\r\n{\"Authorization\":\"Bearer ab\"},\n\"retry\": {\n\"preset\":\n\"none\" }}";
        let policy = parse_policy(written.as_bytes()).unwrap();
        let line = TopicLine::new(&"t".parse().unwrap(), true, Some(&policy)).to_string();
        let expected = r#"{"topic":"t","paused":true,"policy":{"retry":{"preset":"none"},"headers":{"Authorization":"Bearer ab"}}}"#;
        assert_eq!(line, expected);
        let line = TopicLine::new(&"t".parse().unwrap(), true, None).to_string();
        assert_eq!(line, r#"{"topic":"t","paused":true,"policy":null}"#);
    }
}
