//! Builds the HTTP request of an attempt: method, URL, body and all headers, with `webhook-id`, signature, credential
//! and trace.

use std::borrow::Cow;
use std::sync::Arc;

use http::header;
use http::{HeaderMap, HeaderName, HeaderValue};
use ringback_core::clock::Timestamp;
use ringback_core::job::{CallbackMethod, Context, Trace, USER_AGENT};
use ringback_core::store_types::Lease;
use ringback_core::topic_policy::Policy;

use crate::client::{ConnectionChoice, PostRequest};
use crate::credentials::Credentials;
use crate::signer::{CannotOpen, Signer};

/// Builds the request for a lease under the policy of its topic. `now` is the time of the store. Headers of the job
/// replace those of the policy, and those replace the defaults; nothing replaces the webhook headers.
///
/// # Errors
/// If secrets, secret headers or the credential cannot be opened.
pub(crate) fn build(
    lease: &Lease,
    policy: Option<Arc<Policy>>,
    now: Timestamp,
    trace: Trace,
    signer: &Signer,
    credentials: &Credentials,
) -> Result<PostRequest, CannotOpen> {
    let delivery = &lease.delivery;
    let own = delivery.headers.entries();
    let added = match &policy {
        Some(policy) => signer.headers(&lease.key.topic, policy, delivery.callback.origin())?,
        None => Cow::default(),
    };
    let carried = match &policy {
        Some(policy) => credentials.carried(lease, policy)?,
        None => None,
    };
    let context = delivery.context.entries();
    let id = lease.locator().webhook_id(lease.created);
    let mut headers = HeaderMap::with_capacity(12 + added.len() + own.len() + context.len());
    let mut put =
        |name: &'static str, value: &str| insert(&mut headers, HeaderName::from_static(name), value);
    let has_body = delivery.method.has_body();
    if has_body {
        put(header::CONTENT_TYPE.as_str(), delivery.body.content_type());
    }
    put(header::USER_AGENT.as_str(), USER_AGENT);
    if has_body && delivery.body.bytes.is_empty() {
        // The HTTP library omits it, and some servers then answer 411 (RFC 9110, 8.6).
        put(header::CONTENT_LENGTH.as_str(), "0");
    }
    insert(&mut headers, signer.id.clone(), &id);
    insert(&mut headers, signer.timestamp.clone(), &(now.as_millis() / 1000).to_string());
    let mut put =
        |name: &'static str, value: &str| insert(&mut headers, HeaderName::from_static(name), value);
    put("ringback-topic", lease.key.topic.name());
    put("ringback-job-id", lease.key.id.as_str());
    put("ringback-attempt", &lease.attempt.to_string());
    put("ringback-due-at", &lease.due.to_string());
    put("traceparent", &trace.to_string());
    // A job can have its own.
    put(header::ACCEPT.as_str(), "*/*");
    // The policy and the job can have their own.
    let authorization = carried.as_ref().and_then(|carried| carried.authorization.clone());
    headers.extend(authorization.map(|value| (header::AUTHORIZATION, value)));
    for (key, value) in context {
        insert_named(&mut headers, &Context::header(key), value);
    }
    // Headers of the job replace those that its topic adds.
    for (name, value) in added.iter().chain(own).filter(|(name, _)| !signer.owns(name)) {
        insert_named(&mut headers, name, value);
    }
    if let Some(signature) = signer.sign(lease, policy.as_deref(), &id, now)? {
        headers.insert(signer.signature.clone(), signature);
    }
    let (url, body) = (delivery.callback.to_string(), delivery.body.bytes.clone());
    let (tenant, identity) = (lease.key.topic.tenant(), carried.and_then(|carried| carried.identity.clone()));
    let method = match delivery.method {
        CallbackMethod::Post => http::Method::POST,
        CallbackMethod::Get => http::Method::GET,
        CallbackMethod::Put => http::Method::PUT,
        CallbackMethod::Patch => http::Method::PATCH,
        CallbackMethod::Delete => http::Method::DELETE,
    };
    Ok(PostRequest { policy, method, url, headers, body, tenant, identity, wanted: ConnectionChoice::Any })
}

fn insert_named(headers: &mut HeaderMap, name: &str, value: &str) {
    if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
        insert(headers, name, value);
    }
}

/// Inserts a header, unless its value is not valid. Headers of accepted jobs are valid.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Returns the trace id of a job that was submitted without a trace. It is the same for all attempts.
pub(crate) fn trace_id(lease: &Lease) -> [u8; 16] {
    let mut id = [0; 16];
    id[..12].copy_from_slice(&lease.locator().0);
    id[12..].copy_from_slice(&lease.created.as_millis().to_be_bytes()[4..]);
    id
}
