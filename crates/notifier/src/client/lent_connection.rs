//! `Lent`: a connection, or a stream of one, lent to one attempt: sends its request, and says why there is no response.
//! Afterwards the connection serves others, or is closed.

use std::sync::Arc;

use bytes::Bytes;
use http::header::HOST;
use http::uri::Scheme;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;

use super::causes;
use super::connection::{Http1, Http2};
use super::error::PostError;
use super::stream::ConnectionInfo;

/// A connection for one attempt. Unless that is answered, no other attempt uses it: over HTTP/2 it may be dead.
pub(super) struct Lent {
    used: Option<Used>,
    has_answered: bool,
}

pub(super) enum Used {
    Http1(Http1),
    Http2(Arc<Http2>),
}

impl Lent {
    pub(super) const fn new(used: Used) -> Self {
        Self { used: Some(used), has_answered: false }
    }

    pub(super) fn known(&self) -> Option<&ConnectionInfo> {
        Some(match self.used.as_ref()? {
            Used::Http1(one) => &one.known,
            Used::Http2(one) => &one.known,
        })
    }

    /// Sends the request, and waits for the head of the response. [`PostError::Ended`] if a connection that was kept
    /// broke before any byte of an answer.
    pub(super) async fn send(
        &mut self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, PostError> {
        let answered = match self.used.as_mut() {
            None => return Err(PostError::Broken),
            Some(Used::Http1(one)) => {
                to_origin_form(&mut request);
                one.known.expect_head();
                let received = one.known.received();
                let sent = one.sender.try_send_request(request).await;
                sent.map_err(|failed| {
                    // The request comes back if none of it was sent.
                    let is_unsent = failed.message().is_some();
                    let is_unanswered = is_unsent || one.known.received() == received;
                    match causes::of_request(&failed.into_error()) {
                        PostError::Broken if one.was_kept && is_unanswered => PostError::Ended,
                        error => error,
                    }
                })
            }
            Some(Used::Http2(one)) => {
                let (was_kept, mut sender) = (one.was_kept(), one.sender.clone());
                let sent = sender.try_send_request(request).await;
                let answered = sent.map_err(|failed| match causes::of_stream(failed) {
                    PostError::Broken => match one.known.refused() {
                        Some(refused) => refused,
                        None if was_kept => PostError::Ended,
                        None => PostError::Broken,
                    },
                    error => error,
                });
                if answered.is_ok() {
                    one.answered();
                }
                answered
            }
        };
        self.has_answered = answered.is_ok();
        answered
    }

    /// Ends an attempt whose response was read. Returns a connection of HTTP/1.1 if another request may be sent on it;
    /// `None` for HTTP/2, whose connection is shared.
    pub(super) fn finish(mut self) -> Option<Http1> {
        match self.used.take_if(|used| matches!(used, Used::Http1(_))) {
            // What is left of this request would stand before the next one.
            Some(Used::Http1(one)) if !one.known.is_last() && !one.known.meter.is_blocked() => Some(one),
            Some(Used::Http1(_) | Used::Http2(_)) | None => None,
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(Used::Http2(one)) = &self.used {
            if !self.has_answered {
                one.leave();
            }
            one.end();
        }
    }
}

/// Gives a request of HTTP/1.1 its path as target and a `Host` header (RFC 9112, section 3.2.1).
fn to_origin_form(request: &mut Request<Full<Bytes>>) {
    let uri = request.uri();
    let usual = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let host = uri.host().unwrap_or_default();
    let host = match uri.port_u16().filter(|port| *port != usual) {
        Some(port) => HeaderValue::try_from(format!("{host}:{port}")),
        None => HeaderValue::from_str(host),
    };
    let path = uri.path_and_query().cloned().map_or_else(Uri::default, Uri::from);
    if let Ok(host) = host {
        request.headers_mut().entry(HOST).or_insert(host);
    }
    *request.uri_mut() = path;
}
