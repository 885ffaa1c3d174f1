//! Credentials, which prove to receivers who calls: list, put, export and delete them. The store has them sealed, and no
//! answer shows their secrets.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use ringback_admission::{Principal, invalid_field};
use ringback_core::credential::{Contents, Credential, CredentialKey, MAX_CREDENTIALS};
use ringback_core::job::Topic;
use ringback_core::topic_policy::Policies;
use ringback_secrets::{Authorities, TlsIdentity, TlsIdentityError};
use ringback_service::http_server::Peer;
use ringback_wire::{
    CredentialLine, CredentialResponse, CredentialsResponse, NewContents, NewCredential, parse_credential,
};

use super::export::{turn, whole};
use super::policy_change::{entry_applied, wait_until_applied};
use crate::access::Authenticated;
use crate::audit_log::{Audited, Change};
use crate::error::{ApiError, JsonResult};
use crate::extract::{CredentialPath, JsonBody, Upload};
use crate::limits::{Deadline, check_share};
use crate::schema::{
    CreateProblems, CredentialParams, CredentialRequest, DeleteCredentialProblems, StoreProblems,
};
use crate::state::{Api, ApiState};

/// List credentials
///
/// Lists the credentials of the caller's tenant by name, without their secrets, as this process knows them: changes by
/// others within a second.
#[utoipa::path(
    get, path = "/v1/credentials", tag = "topics", operation_id = "list_credentials",
    responses((status = 200, description = "The credentials", body = CredentialsResponse), StoreProblems),
)]
pub(crate) async fn list_credentials(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
) -> JsonResult<CredentialsResponse> {
    let all = api.policies.credentials()?;
    let own = all.iter().filter(|(key, _)| caller.own().has_tenant(key.tenant.as_ref()));
    let policies = api.policies.all()?;
    let own = own.filter(|(key, _)| is_seen_by(&caller, key, &policies));
    let listed = |(key, credential): (&CredentialKey, &Arc<Credential>)| CredentialResponse {
        tenant: caller.shown_tenant(key.tenant.as_ref()),
        ..CredentialResponse::new(key, credential)
    };
    Ok(Json(CredentialsResponse { items: own.map(listed).collect() }))
}

/// Put a credential
///
/// Puts a credential in place of any other of this name. Callbacks of topics whose policy has `"credentials"` with its
/// name carry it to the origins in `to`, within a second: `bearer` and `basic` as the header `Authorization`, unless the
/// job or its policy has one; `certificate` in the TLS handshake; and a receiver's certificate is checked against `ca`
/// instead of the authorities of the notifier. It is stored sealed, for which the installation needs a master key.
#[utoipa::path(
    put, path = "/v1/credentials/{credential}", tag = "topics", operation_id = "put_credential",
    params(CredentialParams), request_body = CredentialRequest,
    responses(
        (status = 200, description = "Put in place of another", body = CredentialResponse),
        (status = 201, description = "Put", body = CredentialResponse),
        CreateProblems,
    ),
)]
pub(crate) async fn put_credential(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    CredentialPath(key): CredentialPath,
    JsonBody(Upload { bytes, deadline, .. }, _): JsonBody,
) -> Result<(StatusCode, Json<CredentialResponse>), ApiError> {
    check_whole_tenant(&caller)?;
    let NewCredential { to, contents } = parse_credential(&bytes, check_tls)?;
    check_share_of_credentials(&api, &caller, &key)?;
    let name = Credential::sealed_name(&key, &to);
    let (sealed, kinds) = match contents {
        NewContents::Plain(contents) => {
            let sealed = api.seal(&name, contents.json().as_bytes()).ok_or_else(no_master_key)?;
            (sealed.into(), contents.kinds())
        }
        NewContents::Sealed(sealed) => {
            let opened = api.master_keys.open(&name, &sealed).map_err(|why| not_opened(&why.to_string()))?;
            let contents = Contents::parse(&opened).ok_or_else(|| not_opened("it is not a credential"))?;
            (sealed, contents.kinds())
        }
    };
    let credential = Credential { to, kinds, sealed, created: api.now() };
    let make = |_: Option<Credential>| Ok::<_, Infallible>(credential.clone());
    let Ok((credential, put)) = deadline.bound(api.store.change_credential(&key, make)).await??;
    let outdated = || ApiError::retry_later("others keep changing this credential");
    let status = entry_applied(&api, put, outdated).await?;
    Ok((status, Json(CredentialResponse::new(&key, &credential))))
}

/// Delete a credential
///
/// The answer is 409 while the policy of a topic refers to it, as far as this process knows: its callbacks would have to
/// wait.
#[utoipa::path(
    delete, path = "/v1/credentials/{credential}", tag = "topics", operation_id = "delete_credential",
    params(CredentialParams),
    responses(
        (status = 200, description = "The credentials that are left", body = CredentialsResponse),
        DeleteCredentialProblems,
    ),
)]
pub(crate) async fn delete_credential(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    CredentialPath(key): CredentialPath,
) -> Audited<CredentialsResponse> {
    check_whole_tenant(&caller)?;
    let deadline = Deadline::from_now();
    let policies = api.policies.all()?;
    let refers = policies.iter().find(|(topic, policy)| policy.credential_of(topic).as_ref() == Some(&key));
    if let Some((topic, _)) = refers {
        let detail =
            format!("the policy of topic {topic} refers to credential {}: change that first", key.name);
        return Err(ApiError::new(StatusCode::CONFLICT, detail));
    }
    let deleted = deadline.bound(api.store.delete_credential(&key)).await??;
    let unknown = || ApiError::new(StatusCode::NOT_FOUND, "no credential with this name is known");
    wait_until_applied(&api, deleted.ok_or_else(unknown)?).await;
    Ok((Change::default(), list_credentials(State(api), Authenticated(caller)).await?))
}

/// Export credentials
///
/// Lists all credentials, a line of JSON each, sealed, so that they can be put where there are the same master keys.
/// With the root key, those of all tenants.
#[utoipa::path(
    get, path = "/v1/export/credentials", tag = "topics", operation_id = "export_credentials",
    responses(
        (status = 200, description = "A line per credential", body = CredentialLine, content_type = "application/x-ndjson"),
        StoreProblems,
    ),
)]
pub(crate) async fn export_credentials(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
) -> Result<Response, ApiError> {
    let _turn = turn(&api, caller.holder(peer))?;
    // Not those that this process knows, which may be some seconds old.
    let all = Deadline::from_now().bound(api.store.credentials()).await??;
    let policies = api.policies.all()?;
    let reached = all.iter().filter(|(key, _)| caller.reach().has_tenant(key.tenant.as_ref()));
    let reached = reached.filter(|(key, _)| is_seen_by(&caller, key, &policies));
    Ok(whole(reached.map(|(key, credential)| CredentialLine::new(key, credential))))
}

/// Checks that the caller's key is not limited to some topics, since a credential is for all topics of a tenant; 403
/// otherwise.
fn check_whole_tenant(caller: &Principal) -> Result<(), ApiError> {
    if caller.topics().is_empty() {
        return Ok(());
    }
    let detail = "the key is for some topics, and a credential is for all topics of a tenant";
    Err(ApiError::new(StatusCode::FORBIDDEN, detail))
}

/// Whether a caller may see a credential of its tenant. A key for some topics sees those to which the policies of these
/// topics refer.
fn is_seen_by(caller: &Principal, key: &CredentialKey, policies: &Policies) -> bool {
    let refers = |topic: &Topic| {
        policies.get(topic).and_then(|policy| policy.credential_of(topic)).as_ref() == Some(key)
    };
    caller.topics().is_empty() || caller.topics().iter().any(refers)
}

/// Checks that the caller may put a credential: it replaces one of this name, or one more is allowed; 409 otherwise,
/// and 503 while the credentials have not been read.
fn check_share_of_credentials(api: &Api, caller: &Principal, key: &CredentialKey) -> Result<(), ApiError> {
    let credentials = api.policies.credentials()?;
    if credentials.contains_key(key) {
        return Ok(());
    }
    if credentials.len() >= MAX_CREDENTIALS {
        let detail = format!("there are {MAX_CREDENTIALS} credentials, which is the limit; delete one");
        return Err(ApiError::new(StatusCode::CONFLICT, detail));
    }
    check_share(caller, "credentials", MAX_CREDENTIALS, credentials.keys().map(|key| key.tenant.clone()))
}

/// Checks that the certificates and the key of a credential can be used for TLS. Fails with the wrong field, and why.
fn check_tls(contents: &Contents) -> Result<(), (&'static str, String)> {
    let client = contents.client.as_ref().map(|client| (&*client.chain, &*client.key));
    let identity = TlsIdentity { client, ca: contents.ca.as_deref() };
    let made = identity.config(&Authorities::default());
    made.map(drop).map_err(|error| {
        let field = match error {
            TlsIdentityError::Certificate(_) => "certificate",
            TlsIdentityError::Key(_) => "key",
            TlsIdentityError::Ca(_) => "ca",
        };
        (field, error.to_string())
    })
}

fn no_master_key() -> ApiError {
    let detail = "credentials are stored sealed, and this installation has no key for that: set RINGBACK_MASTER_KEYS for all APIs and notifiers (ringback secret master-key makes a key)";
    ApiError::new(StatusCode::CONFLICT, detail)
}

fn not_opened(why: &str) -> ApiError {
    invalid_field(
        "sealed",
        format!("the credential cannot be opened: {why}"),
        "one that a master key of this installation has sealed for this tenant, name and to; or its contents themselves",
    )
    .into()
}
