//! Streams of HTTP/2: a stream whose client takes nothing of the response for a long time is reset, which frees what
//! the response holds. The write time-out of the connection does not see such a stream: the client reads the
//! connection, answers pings, and only gives the stream no window (RFC 9113, section 5.2).

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use hyper::rt::Executor;
use hyper_util::rt::TokioExecutor;
use tokio::time::{Instant, sleep};

use super::chunks::Chunks;
use super::fair_limiter::Permit;

/// The most bytes that the connection is given at a time; also the size of its frames.
const PIECE: usize = 16 * 1024;

/// How far the response of a stream has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    /// How many pieces the connection has been given.
    pieces: u64,
    /// Whether the last of them waits for window, or did so when the stream was last polled.
    waits_for_client: bool,
}

tokio::task_local! {
    /// That of the stream which is polled.
    static PROGRESS: Cell<Progress>;
}

/// Runs the streams of connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    /// How long a client may take nothing of a response.
    pub(super) stalled_for: Duration,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        // A stream is a task of its own, which h2 ends when its connection is dropped.
        TokioExecutor::new().execute(until_stalled(stream, self.stalled_for));
    }
}

/// Runs a stream to its end, or until its client has taken nothing for `stalled_for`. Dropping a stream resets it.
async fn until_stalled(stream: impl Future<Output = ()>, stalled_for: Duration) {
    let (mut stream, mut stalled) = (pin!(stream), pin!(sleep(stalled_for)));
    let mut before = Progress::default();
    poll_fn(|cx| {
        let poll = || (stream.as_mut().poll(cx), PROGRESS.with(Cell::get));
        let (polled, now) = PROGRESS.sync_scope(Cell::new(before), poll);
        if polled.is_ready() || !now.waits_for_client {
            before = now;
            return polled;
        }
        if now != before {
            before = now;
            stalled.as_mut().reset(Instant::now() + stalled_for);
        }
        ready!(stalled.as_mut().poll(cx));
        tracing::debug!("a stream is reset: its client reads nothing of the response");
        Poll::Ready(())
    })
    .await;
}

/// The body of a response, in pieces of which the last one of each chunk is a single byte.
///
/// The connection takes a piece as soon as there is window for what it took before and for one byte more, and keeps
/// the rest. So it takes the single byte only when the client has given window for the whole chunk: a stream does not
/// end, and so is not out of sight, while the connection keeps data of it that the client has not asked for.
pub(super) struct Pieces {
    chunks: Chunks,
    _permit: Option<Permit>,
}

impl Pieces {
    /// The permit is free when the body is dropped.
    pub(super) fn new(body: Body, permit: Option<Permit>) -> Self {
        Self { chunks: Chunks::new(body), _permit: permit }
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = self.chunks.poll_piece(cx, |left| (left - 1).clamp(1, PIECE));
        let waits_for_client = polled.is_ready();
        PROGRESS.with(|progress| {
            let pieces = progress.get().pieces + u64::from(waits_for_client);
            progress.set(Progress { pieces, waits_for_client });
        });
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.chunks.size_hint()
    }
}

#[cfg(test)]
mod tests;
