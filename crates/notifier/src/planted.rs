//! Bugs that tests plant in the notifier. Only in builds with debug assertions.

mod extra_bytes;

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode};
use ringback_core::contract::Lease;
use ringback_core::is_planted;
use ringback_core::outcome::{Outcome, Reason};

use crate::client::{Client, PostError, PostRequest, PostResponse};
use crate::verdict::Verdict;

/// A client in place of the right one.
pub(crate) fn client() -> Option<Client> {
    is_planted!("connection-kept-after-extra-bytes")
        .then(|| Client::Local(Arc::new(extra_bytes::KeepingClient::default())))
}

/// Changes a request.
pub(crate) fn change(request: &mut PostRequest, lease: &Lease) {
    let mut put = |name: &'static str, value: String| {
        request.headers.insert(name, HeaderValue::try_from(value).expect("digits and ASCII"));
    };
    if is_planted!("webhook-id-per-attempt") {
        put("webhook-id", format!("msg_{}", lease.attempt));
    }
    if is_planted!("webhook-timestamp-in-milliseconds") {
        put("webhook-timestamp", lease.due.as_millis().to_string());
    }
    if is_planted!("attempt-not-raised") {
        put("ringback-attempt", "1".to_owned());
    }
    if is_planted!("due-time-missing") {
        request.headers.remove("ringback-due-at");
    }
    if is_planted!("body-serialised-again") {
        request.body = request.body.iter().copied().filter(|byte| *byte != b' ').collect();
    }
    if is_planted!("query-cut-off") {
        request.url.truncate(request.url.find('?').unwrap_or(request.url.len()));
    }
}

/// The answer to a request that is not sent.
pub(crate) fn unsent() -> Option<PostResponse> {
    let status = StatusCode::OK;
    is_planted!("acknowledged-before-post").then(|| PostResponse {
        status,
        headers: HeaderMap::new(),
        body: Default::default(),
        is_expected: true,
    })
}

/// A wrong meaning of a response.
pub(crate) fn verdict(answer: &Result<PostResponse, PostError>) -> Option<Verdict> {
    match answer {
        Ok(answer) if answer.status.is_redirection() && is_planted!("redirect-is-success") => {
            Some(Verdict::Complete)
        }
        Ok(answer) if answer.status.is_client_error() && is_planted!("client-error-is-gone") => {
            Some(Verdict::Bury(Reason::Gone))
        }
        Ok(answer) if answer.status.is_server_error() && is_planted!("retry-after-ignored") => {
            Some(Verdict::Failed { retry_after: None })
        }
        Err(PostError::Timeout) if is_planted!("timeout-is-success") => Some(Verdict::Complete),
        Err(PostError::Broken) if is_planted!("broken-is-success") => Some(Verdict::Complete),
        Err(PostError::Broken) if is_planted!("panic-at-a-broken-answer") => panic!("planted"),
        Ok(_) | Err(_) => None,
    }
}

/// A wrong outcome.
pub(crate) fn outcome(outcome: Outcome, lease: &Lease) -> Outcome {
    if outcome == Outcome::Complete && lease.attempt == 1 && is_planted!("success-is-released") {
        return Outcome::Release { after: std::time::Duration::ZERO };
    }
    outcome
}

/// Turns outcomes that the store did not take into dead letters.
pub(crate) fn unsettled(items: &mut [(Lease, Outcome)]) {
    if is_planted!("dead-letter-on-a-store-error") {
        let reason = || Outcome::Bury { reason: Reason::Gone, last: Default::default() };
        items.iter_mut().for_each(|(_, outcome)| *outcome = reason());
    }
}
