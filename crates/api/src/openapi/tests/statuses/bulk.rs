//! Requests that get each status of the bulk operations, for the test of the statuses of all operations.

use axum::Router;
use axum::body::Body;
use http::Request;
use ringback_core::store_types::MAX_BULKS;
use serde_json::Value;

use super::{Operation, post};

impl Operation {
    /// Whether it starts, shows or stops a bulk operation.
    pub(super) fn is_bulk(&self) -> bool {
        self.id.ends_with("_jobs") && self.id != "list_jobs" || self.path.starts_with("/v1/bulk/")
    }
}

async fn begin(app: &Router) -> Value {
    post(app, "/v1/jobs/cancel", r#"{"all":true}"#).await
}

/// Brings a store into the state in which the request that it returns is answered with the status.
pub(super) async fn arranged(app: &Router, operation: &Operation, status: u16) -> Request<Body> {
    let target = operation.target("t");
    match (operation.id.as_str(), status) {
        ("get_bulk_operation" | "stop_bulk_operation", 200) => {
            let begun = begin(app).await;
            operation.with(&target.replace("0000000000000000", begun["id"].as_str().unwrap()), "")
        }
        ("reschedule_jobs", 200) => {
            operation.with(&target, r#"{"filter":{"tag":"a"},"delay":"1h","dry_run":true}"#)
        }
        (_, 200) => operation.with(&target, r#"{"filter":{"tag":"a"},"dry_run":true}"#),
        (_, 409) => {
            for _ in 0..MAX_BULKS {
                begin(app).await;
            }
            operation.good()
        }
        _ => operation.good(),
    }
}
