//! A body of a response that holds something until its client has taken it.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use super::chunks::Chunks;

/// The most bytes that the connection is given at a time. It asks for more once it has written nearly all of these.
const PIECE: usize = 64 * 1024;

/// The body in pieces, so that what it holds is free only when the client has taken all but the last of them. Its length
/// stays known.
pub fn hold_until_taken(body: Body, held: impl Send + Unpin + 'static) -> Body {
    Body::new(HeldBody { chunks: Chunks::new(body), _held: held })
}

struct HeldBody<T> {
    chunks: Chunks,
    _held: T,
}

impl<T: Unpin> HttpBody for HeldBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.chunks.poll_piece(cx, |left| left.min(PIECE))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.chunks.size_hint()
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
