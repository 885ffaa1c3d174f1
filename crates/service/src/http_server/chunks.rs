//! The chunks of a body, given in pieces.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody as _};
use hyper::body::{Frame, SizeHint};

/// A body, and what is left of its present chunk.
pub(super) struct Chunks {
    body: Body,
    chunk: Bytes,
}

impl Chunks {
    pub(super) fn new(body: Body) -> Self {
        Self { body, chunk: Bytes::new() }
    }

    /// The next piece. `piece` says how long it is if so many bytes of the chunk are left.
    pub(super) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        piece: impl FnOnce(usize) -> usize,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.chunk.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(chunk) if !chunk.is_empty() => self.chunk = chunk,
                    Ok(empty) => return Poll::Ready(Some(Ok(Frame::data(empty)))),
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = piece(self.chunk.len());
        Poll::Ready(Some(Ok(Frame::data(self.chunk.split_to(length)))))
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.chunk.is_empty() && self.body.is_end_stream()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        let (mut hint, chunk) = (self.body.size_hint(), self.chunk.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + chunk);
        }
        hint.set_lower(hint.lower() + chunk);
        hint
    }
}
