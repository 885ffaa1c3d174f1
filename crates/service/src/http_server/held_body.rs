//! A body of a response that holds a value, such as a permit, until its client has taken the body.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

/// The most bytes that the connection is given at a time. It asks for more once it has written nearly all of these.
const PIECE: usize = 64 * 1024;

/// Cuts a body into pieces, so that `held` is dropped only when the client has taken all but the last of them. Its
/// length stays known.
pub fn hold_until_taken(body: Body, held: impl Send + Unpin + 'static) -> Body {
    Body::new(HeldBody { body, chunk: Bytes::new(), _held: held })
}

struct HeldBody<T> {
    body: Body,
    /// What is left of the chunk that the body gave last.
    chunk: Bytes,
    _held: T,
}

impl<T: Unpin> HttpBody for HeldBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.chunk.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(chunk) => self.chunk = chunk,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = self.chunk.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.chunk.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.chunk.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, chunk) = (self.body.size_hint(), self.chunk.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + chunk);
        }
        hint.set_lower(hint.lower() + chunk);
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::StreamExt as _;

    use super::*;

    #[tokio::test]
    async fn it_holds_until_the_last_piece_and_keeps_its_length() {
        let held = Arc::new(());
        let body = hold_until_taken(Body::from(vec![b'x'; 150_000]), Arc::clone(&held));
        assert_eq!(body.size_hint().exact(), Some(150_000));
        let mut pieces = body.into_data_stream();
        let mut lengths = Vec::new();
        while let Some(piece) = pieces.next().await {
            lengths.push(piece.unwrap().len());
            assert_eq!(Arc::strong_count(&held), 2);
        }
        assert_eq!(lengths, [65_536, 65_536, 18_928]);
        drop(pieces);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
