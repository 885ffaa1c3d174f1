//! Shared by the calls that change a policy or another entry of the shared configuration (a key, quota or credential):
//! the check of the tenant's share before, and after it the status and the wait until this process applies the change.

use std::time::Duration;

use http::StatusCode;
use ringback_admission::Principal;
use ringback_core::job::Topic;
use ringback_core::store_types::{PolicyPut, PolicyVersion};
use ringback_core::topic_policy::{MAX_POLICIES, MAX_TOPICS_WITH_METRICS, Policy};
use ringback_wire::PolicyResponse;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::destination_limits::too_many_limits;
use crate::error::ApiError;
use crate::limits::check_share;
use crate::state::Api;

/// How long a call waits until this process applies its change.
const APPLIED_WITHIN: Duration = Duration::from_secs(1);

/// Checks that the tenant of a caller may have one more policy, unless the topic has one.
///
/// # Errors
/// 409 if the tenant has its share of policies, 503 until this process has read the policies.
pub(super) fn check_share_of_policies(api: &Api, caller: &Principal, topic: &Topic) -> Result<(), ApiError> {
    if caller.limited_tenant().is_none() {
        return Ok(());
    }
    let policies = api.policies.all()?;
    if policies.contains_key(topic) {
        return Ok(());
    }
    check_share(caller, "policies", MAX_POLICIES, policies.keys().map(Topic::tenant))
}

/// A policy as the audit log shows it, with secrets masked; `None` without a policy.
pub(super) fn shown_policy(topic: &Topic, policy: Option<&Policy>) -> Option<Box<RawValue>> {
    PolicyResponse::new(topic, policy).policy
}

/// Waits, for up to a second, until this process applies a policy that was put. Returns 201 or 200.
///
/// # Errors
/// If it was not put: 409 at a limit, 503 if others keep changing it.
pub(super) async fn applied(api: &Api, put: PolicyPut) -> Result<StatusCode, ApiError> {
    let (status, version) = match put {
        PolicyPut::Created(version) => (StatusCode::CREATED, version),
        PolicyPut::Replaced(version) => (StatusCode::OK, version),
        PolicyPut::TooMany => {
            let detail = format!("{MAX_POLICIES} topics have a policy, which is the limit; delete one");
            return Err(ApiError::new(StatusCode::CONFLICT, detail));
        }
        PolicyPut::TooManyWithMetrics => {
            let detail = format!(
                "{MAX_TOPICS_WITH_METRICS} topics have \"metrics\":true in their policy, which is the limit; set it to false for one of them"
            );
            return Err(ApiError::new(StatusCode::CONFLICT, detail));
        }
        PolicyPut::TooManyLimits(limit) => return Err(too_many_limits(limit, "topics")),
        PolicyPut::Outdated => {
            return Err(ApiError::retry_later("others keep changing the policy of this topic"));
        }
    };
    wait_until_applied(api, version).await;
    Ok(status)
}

/// Waits, for up to a second, until this process applies a quota or a credential that was put. Returns 201 or 200.
///
/// # Errors
/// If it was not put: 409 at the limit, `outdated` if others were changing it.
pub(super) async fn entry_applied(
    api: &Api,
    put: PolicyPut,
    outdated: impl FnOnce() -> ApiError,
) -> Result<StatusCode, ApiError> {
    let (status, version) = match put {
        PolicyPut::Created(version) => (StatusCode::CREATED, version),
        PolicyPut::Replaced(version) => (StatusCode::OK, version),
        PolicyPut::TooMany | PolicyPut::TooManyWithMetrics | PolicyPut::TooManyLimits(_) => {
            let detail =
                "there are as many policies, keys, quotas and credentials as there may be; delete some";
            return Err(ApiError::new(StatusCode::CONFLICT, detail));
        }
        PolicyPut::Outdated => return Err(outdated()),
    };
    wait_until_applied(api, version).await;
    Ok(status)
}

/// Waits, for up to a second, until this process applies a change, so that the caller's next request here nearly always
/// finds it.
pub(super) async fn wait_until_applied(api: &Api, version: PolicyVersion) {
    if timeout(APPLIED_WITHIN, api.policies.reached(version)).await.is_err() {
        tracing::debug!("this process does not apply a changed policy yet");
    }
}
