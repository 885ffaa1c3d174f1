//! Answers of the pull calls.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringback_core::store_types::PulledJob;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::problem::Problem;
use crate::submit::body::as_json;

/// The answer to a reserve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReserveResponse {
    /// The jobs; none if nothing was ready in time.
    pub jobs: Vec<ReservedJob>,
}

/// A job that the consumer has reserved.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReservedJob {
    /// Settles the job. Opaque.
    pub receipt: String,
    /// Its topic.
    pub topic: String,
    /// Its id.
    pub id: String,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// The time by which it has to be settled or renewed.
    #[schema(format = DateTime)]
    pub deadline: String,
    /// A JSON body, as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub body: Option<Box<RawValue>>,
    /// Any other body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
    /// The body's content type.
    pub content_type: String,
    /// Its context.
    pub context: std::collections::BTreeMap<String, String>,
    /// Its own headers.
    pub headers: std::collections::BTreeMap<String, String>,
    /// Its tags; absent if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl PartialEq for ReservedJob {
    fn eq(&self, other: &Self) -> bool {
        // A receipt belongs to one job.
        self.receipt == other.receipt
    }
}

impl Eq for ReservedJob {}

impl From<PulledJob> for ReservedJob {
    fn from(job: PulledJob) -> Self {
        let delivery = job.delivery;
        let content_type = delivery.body.content_type().to_owned();
        let json = as_json(&delivery.body).map(ToOwned::to_owned);
        let base64 = if json.is_some() { None } else { Some(STANDARD.encode(&delivery.body.bytes)) };
        let map = |entries: &[(String, String)]| entries.iter().cloned().collect();
        Self {
            receipt: job.receipt.to_string(),
            topic: job.key.topic.to_string(),
            id: job.key.id.to_string(),
            attempt: job.attempt,
            deadline: job.deadline.to_string(),
            body: json,
            body_base64: base64,
            content_type,
            context: map(delivery.context.entries()),
            headers: map(delivery.headers.entries()),
            tags: delivery.tags.to_vec(),
        }
    }
}

/// The answer to settling a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceiptResponse {
    /// The receipt.
    pub receipt: String,
}

/// The answer to a renewal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RenewResponse {
    /// The receipt.
    pub receipt: String,
    /// The time by which the job has to be settled or renewed.
    #[schema(format = DateTime)]
    pub deadline: String,
}

/// The answer to settling many jobs: one result per receipt, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceiptsResponse {
    /// The results.
    pub results: Vec<ReceiptResult>,
}

/// The result of one receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceiptResult {
    /// The status as if it had been settled alone: 200, 404, 409 or 503.
    pub status: u16,
    /// What was wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

impl ReceiptResult {
    /// It took effect, by this call or an earlier one.
    pub const DONE: Self = Self { status: 200, problem: None };
}

impl From<Problem> for ReceiptResult {
    fn from(problem: Problem) -> Self {
        Self { status: problem.status, problem: Some(problem) }
    }
}
