//! Extractors of what a path names (a job, topic, destination, bulk operation, secret, receipt, key, quota, credential
//! or schedule), with the problems of unknown names, and the checks whether the caller may use a receipt.

use std::iter;
use std::sync::Arc;

use axum::RequestPartsExt as _;
use axum::extract::{FromRequestParts, Path};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::StatusCode;
use http::request::Parts;
use ringback_admission::{Principal, invalid_field};
use ringback_core::access::{KeyId, QuotaOf};
use ringback_core::credential::{CredentialKey, CredentialName};
use ringback_core::destination::Destination;
use ringback_core::job::{JobId, JobKey, OrderKey, TenantScope, Topic};
use ringback_core::schedule::{ScheduleId, ScheduleKey};
use ringback_core::store_types::{BulkId, Receipt};
use ringback_core::topic_policy::SecretId;
use ringback_wire::{FieldError, Problem};
use serde::de::DeserializeOwned;

use crate::access::Authenticated;
use crate::error::ApiError;
use crate::limits::Deadline;
use crate::pull::ReceiptBits;
use crate::state::Api;

/// How many receipts are looked up at a time.
const AT_A_TIME: usize = 16;

/// The job that the path names.
pub(crate) struct JobPath(pub(crate) JobKey);

impl<S: Send + Sync> FromRequestParts<S> for JobPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let (topic, id): (String, String) = segments(parts).await?;
        match (topic.parse::<Topic>(), id.parse::<JobId>()) {
            (Ok(topic), Ok(id)) => Ok(Self(JobKey { topic: Authenticated::of(parts).topic(&topic)?, id })),
            (no_topic, no_id) => {
                let no_topic = no_topic.err().map(|e| invalid("topic", &topic, e.0));
                let no_id = no_id.err().map(|e| invalid("id", &id, e.0));
                Err(Problem::fields(no_topic.into_iter().chain(no_id).collect()).into())
            }
        }
    }
}

/// The topic that the path names.
pub(crate) struct TopicPath(pub(crate) Topic);

impl<S: Send + Sync> FromRequestParts<S> for TopicPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let topic: String = segments(parts).await?;
        let parsed = topic.parse::<Topic>();
        let topic = parsed.map_err(|error| Problem::fields(vec![invalid("topic", &topic, error.0)]))?;
        Ok(Self(Authenticated::of(parts).topic(&topic)?))
    }
}

/// The key of jobs that the path names, and its topic.
pub(crate) struct OrderKeyPath(pub(crate) Topic, pub(crate) OrderKey);

impl<S: Send + Sync> FromRequestParts<S> for OrderKeyPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let (topic, key): (String, String) = segments(parts).await?;
        match (topic.parse::<Topic>(), key.parse::<OrderKey>()) {
            (Ok(topic), Ok(key)) => Ok(Self(Authenticated::of(parts).topic(&topic)?, key)),
            (no_topic, no_key) => {
                let no_topic = no_topic.err().map(|e| invalid("topic", &topic, e.0));
                let no_key = no_key.err().map(|e| invalid("key", &key, e.0));
                Err(Problem::fields(no_topic.into_iter().chain(no_key).collect()).into())
            }
        }
    }
}

/// The destination that the path names.
pub(crate) struct DestinationPath(pub(crate) Destination);

impl<S: Send + Sync> FromRequestParts<S> for DestinationPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let host: String = segments(parts).await?;
        let parsed = Destination::parse(&host);
        Ok(Self(parsed.map_err(|refused| invalid_field("host", refused.detail, refused.allowed))?))
    }
}

/// The bulk operation that the path names.
pub(crate) struct BulkPath(pub(crate) BulkId);

impl<S: Send + Sync> FromRequestParts<S> for BulkPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let text = segments::<String>(parts).await.ok();
        text.and_then(|text| text.parse().ok()).map(Self).ok_or_else(unknown_bulk)
    }
}

/// The secret that the path names, and its topic.
pub(crate) struct SecretPath(pub(crate) Topic, pub(crate) SecretId);

impl<S: Send + Sync> FromRequestParts<S> for SecretPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let path = segments::<(String, String)>(parts).await.ok();
        let parsed = path.and_then(|(topic, id)| Some((topic.parse().ok()?, id.parse().ok()?)));
        let (topic, id): (Topic, _) = parsed.ok_or_else(unknown_secret)?;
        Ok(Self(Authenticated::of(parts).topic(&topic)?, id))
    }
}

/// The pull receipt that the path names.
pub(crate) struct ReceiptPath(pub(crate) Receipt);

impl FromRequestParts<Arc<Api>> for ReceiptPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, ApiError> {
        let text = segments::<String>(parts).await.ok();
        let caller = Authenticated::of(parts);
        let receipt = text.and_then(|text| parse_receipt(api, &text, &caller)).ok_or_else(unknown_receipt)?;
        check_topics_of(api, iter::once(receipt), &caller).await?;
        Ok(Self(receipt))
    }
}

/// Parses a receipt. `None` if it is malformed or of a shard that the store does not have; and, with a root key, if it
/// was issued to another tenant than the caller's. An operator who has chosen no tenant may use every receipt.
pub(crate) fn parse_receipt(api: &Api, text: &str, caller: &Principal) -> Option<Receipt> {
    let receipt: Receipt = text.parse().ok().filter(|receipt| api.store.knows(receipt))?;
    let is_any = caller.is_operator() && *caller.reach() == TenantScope::All;
    let is_own = |root| is_any || ReceiptBits(receipt.lease.bits).are_of(root, caller.tenant());
    api.root.as_ref().is_none_or(is_own).then_some(receipt)
}

/// Checks that a key that is limited to some topics may use the topics of these receipts' jobs. Receipts that are no
/// longer current pass.
///
/// # Errors
/// 403 if it may not use one of them; 503 if the store fails or does not answer before the deadline.
pub(crate) async fn check_topics_of(
    api: &Api,
    receipts: impl Iterator<Item = Receipt>,
    caller: &Principal,
) -> Result<(), ApiError> {
    if caller.topics().is_empty() {
        return Ok(());
    }
    let checks: Vec<_> = receipts.map(|receipt| check_topic_of(api, receipt, caller)).collect();
    let checks = stream::iter(checks).buffer_unordered(AT_A_TIME).try_collect::<()>();
    Deadline::from_now().bound(checks).await?
}

async fn check_topic_of(api: &Api, receipt: Receipt, caller: &Principal) -> Result<(), ApiError> {
    let lease = api.store.lease_info(&receipt).await?;
    lease.and_then(|lease| lease.topic).map_or(Ok(()), |topic| Ok(caller.check_topic(&topic)?))
}

/// The key of a caller that the path names.
pub(crate) struct KeyPath(pub(crate) KeyId);

impl<S: Send + Sync> FromRequestParts<S> for KeyPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let text = segments::<String>(parts).await.ok();
        text.and_then(|text| text.parse().ok()).map(Self).ok_or_else(unknown_access_key)
    }
}

/// For whom the quota is that the path names.
pub(crate) struct QuotaPath(pub(crate) QuotaOf);

impl<S: Send + Sync> FromRequestParts<S> for QuotaPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let text = segments::<String>(parts).await.ok();
        let of = text.and_then(|text| text.parse().ok());
        of.map(Self).ok_or_else(|| invalid_field("tenant", "it names no tenant", QuotaOf::ALLOWED).into())
    }
}

/// The credential that the path names, of the caller's tenant.
pub(crate) struct CredentialPath(pub(crate) CredentialKey);

impl<S: Send + Sync> FromRequestParts<S> for CredentialPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let text = segments::<String>(parts).await.ok();
        let name = text.and_then(|text| text.parse().ok()).ok_or_else(|| {
            invalid_field("credential", "it is not a name of a credential", CredentialName::ALLOWED)
        })?;
        Ok(Self(CredentialKey { tenant: Authenticated::of(parts).tenant().cloned(), name }))
    }
}

/// The schedule that the path names, of the caller's tenant.
pub(crate) struct SchedulePath(pub(crate) ScheduleKey);

impl<S: Send + Sync> FromRequestParts<S> for SchedulePath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let text: String = segments(parts).await?;
        let parsed = text.parse::<ScheduleId>();
        let id = parsed.map_err(|error| Problem::fields(vec![invalid("id", &text, error.0)]))?;
        Ok(Self(ScheduleKey { tenant: Authenticated::of(parts).tenant().cloned(), id }))
    }
}

pub(crate) fn unknown_access_key() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "no key with this id is known")
}

pub(crate) fn unknown_receipt() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "no reserve has issued this receipt")
}

pub(crate) fn unknown_bulk() -> ApiError {
    let detail = "no such bulk operation is known, or it ended more than a day ago";
    ApiError::new(StatusCode::NOT_FOUND, detail)
}

pub(crate) fn unknown_secret() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "the topic has no such secret, or it signs no more")
}

async fn segments<T: DeserializeOwned + Send + 'static>(parts: &mut Parts) -> Result<T, ApiError> {
    let path = parts.extract::<Path<T>>().await;
    let Path(segments) = path.map_err(|rejection| Problem::unreadable(rejection.body_text()))?;
    Ok(segments)
}

fn invalid(field: &str, text: &str, allowed: &str) -> FieldError {
    let detail = format!("{text:?} is no {field}");
    FieldError { field: field.to_owned(), detail, allowed: allowed.to_owned() }
}
