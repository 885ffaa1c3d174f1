//! The body of a request that waits for `100 Continue`. The server sends that when the body is read for the first time.
//! A request that is refused by its head alone gets its status at once; nobody can say then whether the client sends
//! the body after all, so the connection ends with the answer (RFC 9110, section 10.1.1).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONNECTION, EXPECT};
use axum::http::{HeaderValue, Request, Response};
use hyper::body::{Frame, Incoming, SizeHint};

/// Whether the body of a request was read; `None` inside if the client does not wait for `100 Continue`.
pub(super) struct Expected(Option<Arc<AtomicBool>>);

struct ExpectedBody {
    body: Incoming,
    is_asked_for: Arc<AtomicBool>,
}

impl Expected {
    /// Wraps the body if the client waits for `100 Continue`, so that [`Self::finish`] knows whether it was read.
    pub(super) fn of(request: Request<Incoming>) -> (Self, Request<Body>) {
        if !request.headers().contains_key(EXPECT) || request.body().is_end_stream() {
            return (Self(None), request.map(Body::new));
        }
        let is_asked_for = Arc::new(AtomicBool::new(false));
        let noted = Arc::clone(&is_asked_for);
        let request = request.map(|body| Body::new(ExpectedBody { body, is_asked_for }));
        (Self(Some(noted)), request)
    }

    /// Adds `Connection: close` to the answer if the client waits for `100 Continue` and the body was never read.
    pub(super) fn finish(self, mut answer: Response<Body>) -> Response<Body> {
        if self.0.is_some_and(|is_asked_for| !is_asked_for.load(Ordering::Relaxed)) {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

impl HttpBody for ExpectedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.is_asked_for.store(true, Ordering::Relaxed);
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
