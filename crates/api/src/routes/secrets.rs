//! The secrets that sign the callbacks of a topic: adds, lists and deletes them. A secret is shown once, when it is
//! added; the store has it sealed. Also checks the sealed secrets that a restored policy brings.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use ringback_admission::invalid_field;
use ringback_core::clock::Timestamp;
use ringback_core::job::Topic;
use ringback_core::store_types::is_notice_topic;
use ringback_core::topic_policy::{MAX_SECRETS, Policy, SecretId, StoredSecret};
use ringback_secrets::SigningSecret;
use ringback_wire::{
    AuditLogTarget, CreatedSecret, FieldError, NewSecretRequest, Problem, SecretsResponse, with_secrets,
};

use super::policy_change::{applied, check_share_of_policies};
use crate::access::Authenticated;
use crate::audit_log::{Audited, Change};
use crate::error::{ApiError, JsonResult};
use crate::extract::{MaybeJson, SecretPath, TopicPath, unknown_secret};
use crate::limits::Deadline;
use crate::schema::{CreateProblems, IdProblems, QueryProblems, SecretIdText, TopicParams};
use crate::state::{Api, ApiState};

/// Add a secret
///
/// Signs the callbacks of the topic with a new secret, by the Standard Webhooks specification, within a second. The
/// answer is the only one that shows the secret. The former secrets of the topic go on signing beside it for as long as
/// `keep` says, so that receivers can change over. A secret that the topic has as its newest one is not added again.
#[utoipa::path(
    post, path = "/v1/topics/{topic}/secrets", tag = "topics", operation_id = "add_secret",
    params(TopicParams),
    request_body(content = NewSecretRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses(
        (status = 200, description = "The topic has this secret as its newest one already", body = CreatedSecret),
        (status = 201, description = "Added", body = CreatedSecret),
        CreateProblems,
    ),
)]
pub(crate) async fn add_secret(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    TopicPath(topic): TopicPath,
    MaybeJson(json): MaybeJson,
) -> Result<Response, ApiError> {
    let asked = NewSecretRequest::parse(&json)?;
    check_share_of_policies(&api, &caller, &topic)?;
    let secret = match asked.secret {
        Some(text) => SigningSecret::parse(&text).ok_or_else(|| {
            // The text is not shown.
            invalid_field("secret", "it is not a signing secret", SigningSecret::ALLOWED)
        })?,
        None => api.make_secret(),
    };
    if is_notice_topic(&topic) {
        return Err(of_notices(&topic));
    }
    let (text, now) = (secret.text(), api.now());
    let id = api.make_secret_id(now);
    let sealed = api.seal(&StoredSecret::name(&topic, &id), text.as_bytes()).ok_or_else(no_master_key)?;
    let new = StoredSecret { id, sealed: sealed.into(), created: now, until: None };
    let add = |stored: Option<&Policy>| {
        let stored = stored.cloned().unwrap_or_default();
        if let Some(newest) = stored.secrets.first().filter(|newest| newest.until.is_none())
            && opens_as(&api, &topic, newest, &secret)
        {
            return Err(Refused::Known(newest.id.clone()));
        }
        let secrets = added(&stored.secrets, &new, now, asked.keep).ok_or(Refused::TooMany)?;
        Ok(with_secrets(&stored, &secrets))
    };
    let created = |id: &SecretId| Json(CreatedSecret { id: id.to_string(), secret: text.to_string() });
    match Deadline::from_now().bound(api.store.change_policy(&topic, add)).await?? {
        Ok((_, put)) => {
            applied(&api, put).await?;
            Ok((StatusCode::CREATED, change_of(&new.id), created(&new.id)).into_response())
        }
        Err(Refused::Known(id)) => Ok((StatusCode::OK, change_of(&id), created(&id)).into_response()),
        Err(Refused::TooMany) => {
            let detail = format!(
                "{MAX_SECRETS} secrets sign the callbacks of topic {topic}, which is the limit; delete one, or give a shorter keep"
            );
            Err(ApiError::new(StatusCode::CONFLICT, detail))
        }
    }
}

/// List secrets
///
/// Lists the secrets that sign the callbacks of the topic, the newest one first, without the secrets themselves.
#[utoipa::path(
    get, path = "/v1/topics/{topic}/secrets", tag = "topics", operation_id = "list_secrets",
    params(TopicParams),
    responses((status = 200, description = "The secrets", body = SecretsResponse), QueryProblems),
)]
pub(crate) async fn list_secrets(
    State(api): ApiState,
    TopicPath(topic): TopicPath,
) -> JsonResult<SecretsResponse> {
    let policy = Deadline::from_now().bound(api.store.policy(&topic)).await??;
    Ok(Json(SecretsResponse::new(&topic, policy.as_ref(), api.now())))
}

/// Delete a secret
///
/// Stops signing with a secret, within a second. If it is the newest one, the one before it takes its place for good.
/// Callbacks of a topic without secrets are signed by those of the installation, if it has some, or not at all.
#[utoipa::path(
    delete, path = "/v1/topics/{topic}/secrets/{secret}", tag = "topics", operation_id = "delete_secret",
    params(TopicParams, ("secret" = SecretIdText, Path, description = "The secret's id")),
    responses((status = 200, description = "The secrets that are left", body = SecretsResponse), IdProblems),
)]
pub(crate) async fn delete_secret(
    State(api): ApiState,
    SecretPath(topic, id): SecretPath,
) -> Audited<SecretsResponse> {
    let now = api.now();
    let delete = |stored: Option<&Policy>| {
        let stored = stored.ok_or(())?;
        Ok::<_, ()>(with_secrets(stored, &without(&stored.secrets, &id, now).ok_or(())?))
    };
    let changed = Deadline::from_now().bound(api.store.change_policy(&topic, delete)).await??;
    let (policy, put) = changed.map_err(|()| unknown_secret())?;
    applied(&api, put).await?;
    Ok((Change::default(), Json(SecretsResponse::new(&topic, Some(&policy), now))))
}

/// A change for the audit log that names a secret by its id.
fn change_of(id: &SecretId) -> Change {
    Change::of(AuditLogTarget { secret: Some(id.to_string()), ..AuditLogTarget::default() })
}

enum Refused {
    /// It is the newest one already.
    Known(SecretId),
    TooMany,
}

/// The secrets of a topic with a new one as the newest; the others sign for at most `keep` more. `None` if more than
/// [`MAX_SECRETS`] would sign.
fn added(
    stored: &[StoredSecret],
    new: &StoredSecret,
    now: Timestamp,
    keep: Duration,
) -> Option<Vec<StoredSecret>> {
    let until = now.plus(keep);
    let former = |secret: &StoredSecret| StoredSecret {
        until: Some(secret.until.map_or(until, |earlier| earlier.min(until))),
        ..secret.clone()
    };
    let former = stored.iter().map(former).filter(|secret| secret.signs_at(now));
    let secrets: Vec<_> = std::iter::once(new.clone()).chain(former).collect();
    (secrets.len() <= MAX_SECRETS).then_some(secrets)
}

/// The secrets of a topic that still sign, without one of them; `None` if that one is not among them. If it was the
/// newest, the next one signs without an end.
fn without(stored: &[StoredSecret], id: &SecretId, now: Timestamp) -> Option<Vec<StoredSecret>> {
    let signing: Vec<_> = stored.iter().filter(|secret| secret.signs_at(now)).cloned().collect();
    let is_newest = signing.iter().position(|secret| secret.id == *id)? == 0;
    let mut left: Vec<_> = signing.into_iter().filter(|secret| secret.id != *id).collect();
    if let (true, Some(newest)) = (is_newest, left.first_mut()) {
        newest.until = None;
    }
    Some(left)
}

fn opens_as(api: &Api, topic: &Topic, stored: &StoredSecret, secret: &SigningSecret) -> bool {
    let opened = api.master_keys.open(&StoredSecret::name(topic, &stored.id), &stored.sealed);
    opened.is_ok_and(|text| text.as_slice() == secret.text().as_bytes())
}

/// A policy without those of its secrets that no longer sign.
///
/// # Errors
/// 422 if this process cannot open one of the others.
pub(super) fn with_sealed(api: &Api, topic: &Topic, policy: Policy) -> Result<Policy, Problem> {
    let mistake = |StoredSecret { id, sealed, .. }: &StoredSecret| {
        let why = api.master_keys.open(&StoredSecret::name(topic, id), sealed).err()?;
        Some(FieldError {
            field: "secrets".to_owned(),
            detail: format!("{id} cannot be opened: {why}"),
            allowed: "secrets of this topic that a master key of this installation has sealed".to_owned(),
        })
    };
    let signing: Vec<_> = policy.signing_secrets(api.now()).cloned().collect();
    let errors: Vec<_> = signing.iter().filter_map(mistake).collect();
    if !errors.is_empty() {
        return Err(Problem::fields(errors));
    }
    // What was opened is short, so it stays within the limit of a policy.
    Ok(if signing == policy.secrets { policy } else { with_secrets(&policy, &signing) })
}

fn no_master_key() -> ApiError {
    let detail = "secrets of topics are stored sealed, and this installation has no key for that: set RINGBACK_MASTER_KEYS for all APIs and notifiers (ringback secret master-key makes a key), or sign all topics with RINGBACK_SIGNING_SECRET";
    ApiError::new(StatusCode::CONFLICT, detail)
}

fn of_notices(topic: &Topic) -> ApiError {
    let detail =
        format!("{topic} has no secrets: a notice is signed with those of the topic whose job has ended");
    ApiError::new(StatusCode::CONFLICT, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(hour: u64) -> Timestamp {
        Timestamp::from_millis(hour * 3_600_000)
    }

    fn secret(id: &str, until: Option<u64>) -> StoredSecret {
        StoredSecret { id: SecretId::of(id), sealed: "k.AA".into(), created: at(0), until: until.map(at) }
    }

    fn ids(secrets: &[StoredSecret]) -> Vec<(&str, Option<Timestamp>)> {
        secrets.iter().map(|secret| (secret.id.as_str(), secret.until)).collect()
    }

    #[test]
    fn a_new_secret_comes_first_and_the_former_ones_stay_for_a_while() {
        let stored = [secret("c", None), secret("b", Some(12)), secret("a", Some(5)), secret("z", Some(30))];
        let secrets = added(&stored, &secret("d", None), at(10), HOUR * 6).unwrap();
        assert_eq!(
            ids(&secrets),
            [("sec_d", None), ("sec_c", Some(at(16))), ("sec_b", Some(at(12))), ("sec_z", Some(at(16)))]
        );
        let secrets = added(&stored, &secret("d", None), at(10), Duration::ZERO).unwrap();
        assert_eq!(ids(&secrets), [("sec_d", None)]);
    }

    #[test]
    fn at_most_eight_sign() {
        let mut secrets = vec![];
        for n in 0..8 {
            secrets = added(&secrets, &secret(&n.to_string(), None), at(10), HOUR).unwrap();
        }
        assert_eq!(added(&secrets, &secret("8", None), at(10), HOUR), None);
        assert!(added(&secrets, &secret("8", None), at(11), HOUR).is_some(), "all but one are over");
        assert!(added(&secrets, &secret("8", None), at(10), Duration::ZERO).is_some());
    }

    #[test]
    fn without_the_newest_secret_the_one_before_it_signs_for_good() {
        let stored = [secret("c", None), secret("b", Some(12)), secret("a", Some(5))];
        let left = |id, now| without(&stored, &SecretId::of(id), at(now));
        assert_eq!(ids(&left("c", 10).unwrap()), [("sec_b", None)]);
        assert_eq!(ids(&left("b", 10).unwrap()), [("sec_c", None)]);
        assert_eq!(left("a", 10), None, "it signs no more");
        assert_eq!(left("x", 10), None);
        assert_eq!(ids(&left("c", 13).unwrap()), []);
    }
}
