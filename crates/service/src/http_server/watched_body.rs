//! A body of a response without an end of its own, such as a stream of events, that ends when its client is gone.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Response;
use axum::http::header::CONTENT_TYPE;
use hyper::body::{Frame, SizeHint};

use super::client::{Client, Gone};

/// What may be sent between two server-sent events to see whether somebody is there: a comment, which clients ignore.
const COMMENT: &[u8] = b":\n\n";

/// A body, and the watch over its client.
struct WatchedBody {
    body: Body,
    client: Arc<Client>,
    watch: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Whether the client has closed its sending half already.
    is_half_closed: bool,
    is_of_events: bool,
}

/// A response whose body ends when the client is gone. One of known length stays as it is, because it ends soon.
pub(super) fn watched(response: Response<Body>, client: Arc<Client>) -> Response<Body> {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let is_of_events = response.headers().get(CONTENT_TYPE).is_some_and(|value| value == "text/event-stream");
    response.map(|body| {
        let closing = Arc::clone(&client);
        let watch = Box::pin(async move { closing.closed().await });
        Body::new(WatchedBody { body, client, watch, is_half_closed: false, is_of_events })
    })
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        ready!(self.watch.as_mut().poll(cx));
        if self.is_half_closed || !self.client.may_read_on() {
            return Poll::Ready(Some(Err(axum::Error::new(Gone))));
        }
        self.is_half_closed = true;
        let client = Arc::clone(&self.client);
        self.watch = Box::pin(async move { client.reset().await });
        if self.is_of_events {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(COMMENT)))));
        }
        self.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
