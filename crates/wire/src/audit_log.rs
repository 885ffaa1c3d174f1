//! The audit log in the API: its entries, with what each has changed, and pages of them. The same JSON is stored.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Whether a change was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuditLogOutcome {
    /// The call has succeeded.
    Done,
    /// The call may have taken effect: the store did not answer in time, or the caller did not wait for the answer.
    Unknown,
}

/// An entry of the audit log: a call that has changed something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "id": "01M8CQWWYGQ0M5W8C1T3N9X2YB", "at": "2026-11-26T20:14:07.312Z",
    "who": "key:key_01KAR8Z6V5Q0M5W8C1T3N9X2YB", "address": "10.0.4.17", "tenant": "acme",
    "operation": "pause", "target": {"topic": "pay.notify"},
    "before": {"paused": false}, "after": {"paused": true}, "count": null,
    "outcome": "done", "trace_id": "0af7651916cd43dd8448eb211c80319c",
}))]
pub struct AuditLogEntry {
    /// Its id. Ids are in the order of their times.
    pub id: String,
    /// When the call was answered, by the clock of the API.
    #[schema(format = DateTime)]
    pub at: String,
    /// Who has called: `key:` and the id of a key, `root` for the root key, or `open` where there is no root key.
    pub who: String,
    /// The address that the call came from; null if it is not known, or if it is that of the operator and a key asks.
    pub address: Option<String>,
    /// The tenant whose topics the call was about; null if there is none.
    pub tenant: Option<String>,
    /// The operation, by its `operationId` in this document.
    pub operation: String,
    /// What was changed.
    pub target: AuditLogTarget,
    /// What it was before, as far as the call knows it, without secrets, bodies of jobs and queries of URLs. If it is
    /// long it is `{"cut": "…", "bytes": …}`, with the beginning of its JSON and the length of that. Null if there is
    /// nothing to show.
    pub before: Option<Value>,
    /// What it is after, likewise.
    pub after: Option<Value>,
    /// How many jobs, ended ones included, the call has changed, if it may change many.
    pub count: Option<u64>,
    /// `done`, or `unknown` if the call may have taken effect.
    pub outcome: AuditLogOutcome,
    /// The trace that the call belongs to (W3C Trace Context); null if there is none.
    pub trace_id: Option<String>,
}

/// What a call has changed. Each part is absent if it does not apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditLogTarget {
    /// The topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The id of a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The key of jobs of an ordered topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_key: Option<String>,
    /// The id of a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The id of a signing secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The name of a credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// The id of a bulk operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<String>,
    /// A host of callbacks, or a host and a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The id of a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The tenant of a quota, or `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<String>,
    /// The tag of jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

impl AuditLogTarget {
    /// Replaces the own parts by those that `other` has.
    pub fn take(&mut self, other: Self) {
        let Self { topic, id, order_key, schedule, secret, credential, bulk, host, key, quota, tag } = other;
        for (own, new) in [
            (&mut self.topic, topic),
            (&mut self.id, id),
            (&mut self.order_key, order_key),
            (&mut self.schedule, schedule),
            (&mut self.secret, secret),
            (&mut self.credential, credential),
            (&mut self.bulk, bulk),
            (&mut self.host, host),
            (&mut self.key, key),
            (&mut self.quota, quota),
            (&mut self.tag, tag),
        ] {
            if new.is_some() {
                *own = new;
            }
        }
    }

    /// The parts that are set, each with its name.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let Self { topic, id, order_key, schedule, secret, credential, bulk, host, key, quota, tag } = self;
        let parts = [
            ("topic", topic),
            ("id", id),
            ("order_key", order_key),
            ("schedule", schedule),
            ("secret", secret),
            ("credential", credential),
            ("bulk", bulk),
            ("host", host),
            ("key", key),
            ("quota", quota),
            ("tag", tag),
        ];
        parts.into_iter().filter_map(|(name, part)| Some((name, part.as_deref()?)))
    }
}

/// A page of the audit log, the newest entries first. It may hold fewer than `limit` or none and still have a next page.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditLogResponse {
    /// The entries.
    pub items: Vec<AuditLogEntry>,
    /// Where the next page begins; null on the last page.
    pub next: Option<String>,
}
