//! The order of a topic: the fields of a policy that set it, how answers show it, and the answer to an unblocked key.

use ringback_core::job::{OrderKey, Topic};
use ringback_core::store_types::TopicOrder;
use ringback_core::topic_policy::OrderOnDead;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::field_parsers::object::{parse_text, read};
use super::kinds::{kinds, valid};

/// What the jobs have in common that are delivered in order, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OrderedBy {
    Key,
}

/// What the death of a job means to those of its key that wait behind it: the next one is delivered, or the dead job
/// holds the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OrderOnDeath {
    Next,
    Hold,
}

kinds! {
    OrderedBy: Self = valid(read);
    OrderOnDeath: OrderOnDead = valid(parse_text);
}

/// How the jobs of a topic are ordered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderResponse {
    /// What the jobs have in common that are delivered one at a time.
    pub by: OrderedBy,
    /// What the death of a job means to the others of its key.
    pub on_dead: OrderOnDeath,
    /// Since when the order holds for all jobs. Absent while those that were attempted before it are looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub since: Option<String>,
}

impl From<TopicOrder> for OrderResponse {
    fn from(TopicOrder { on_dead, since }: TopicOrder) -> Self {
        let on_dead = match on_dead {
            OrderOnDead::Next => OrderOnDeath::Next,
            OrderOnDead::Hold => OrderOnDeath::Hold,
        };
        Self { by: OrderedBy::Key, on_dead, since: since.map(|at| at.to_string()) }
    }
}

/// Whether a dead job held a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnblockResponse {
    /// The topic.
    pub topic: String,
    /// The key.
    pub key: String,
    /// A dead job held the key, and the next one goes. False if none did: then nothing has changed.
    pub unblocked: bool,
}

impl UnblockResponse {
    pub fn new(topic: &Topic, key: &OrderKey, unblocked: bool) -> Self {
        Self { topic: topic.to_string(), key: key.to_string(), unblocked }
    }
}

#[cfg(test)]
mod tests {
    use ringback_core::clock::Timestamp;

    use super::*;
    use crate::parse_policy;

    #[test]
    fn a_policy_orders_by_key_and_says_what_a_death_means() {
        let order = |json: &str| parse_policy(json.as_bytes()).unwrap().order;
        assert_eq!(order("{}"), None);
        assert_eq!(order(r#"{"order":null,"order_on_dead":null}"#), None);
        assert_eq!(order(r#"{"order":"key"}"#), Some(OrderOnDead::Next));
        let hold = r#"{"order":"key","order_on_dead":"hold"}"#;
        assert_eq!(order(hold), Some(OrderOnDead::Hold));
        assert_eq!(parse_policy(hold.as_bytes()).unwrap().written(), hold);
    }

    #[test]
    fn a_wrong_order_is_refused_with_what_is_allowed() {
        for (json, field, allowed) in [
            (r#"{"order":"id"}"#, "order", "\"key\"; for no order, leave it out or set it to null"),
            (r#"{"order":true}"#, "order", "\"key\"; for no order, leave it out or set it to null"),
            (r#"{"order":"key","order_on_dead":"stop"}"#, "order_on_dead", "\"next\" or \"hold\""),
            (r#"{"order_on_dead":"next"}"#, "order_on_dead", "only together with \"order\":\"key\""),
        ] {
            let problem = parse_policy(json.as_bytes()).unwrap_err();
            let [error] = &problem.errors[..] else { panic!("{json}: {problem:?}") };
            assert_eq!((problem.status, &*error.field, &*error.allowed), (422, field, allowed), "{json}");
        }
    }

    #[test]
    fn an_order_is_shown_with_the_time_since_which_it_holds() {
        let shown = |order: TopicOrder| serde_json::to_string(&OrderResponse::from(order)).unwrap();
        let since = Some(Timestamp::from_millis(1_763_600_000_000));
        assert_eq!(
            shown(TopicOrder { on_dead: OrderOnDead::Hold, since }),
            r#"{"by":"key","on_dead":"hold","since":"2025-11-20T00:53:20.000Z"}"#
        );
        let beginning = TopicOrder { on_dead: OrderOnDead::Next, since: None };
        assert_eq!(shown(beginning), r#"{"by":"key","on_dead":"next"}"#);
    }
}
