//! A connection whose other end may read as slowly as it likes, as long as it does read: when
//! nothing could be written for a long time it counts as broken.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long nothing may go through. What the kernel buffers has to drain in part before more does,
/// so that this also bounds how slow a reader may be: to a few KB per second.
const STALLED_FOR: Duration = Duration::from_secs(300);

/// A stream with a bound on how long a write may make no progress.
pub(super) struct Patient<S> {
    stream: S,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> Patient<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, stalled: None }
    }

    /// What a write came to, unless it has waited for too long.
    fn judge<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(STALLED_FOR)));
        stalled.as_mut().poll(cx).map(|()| Err(ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.judge(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.judge(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::{Instant, interval, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_hangs_breaks_the_connection() {
        let (ours, _theirs) = duplex(8);
        let (mut ours, start) = (Patient::new(ours), Instant::now());
        let error = ours.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!((error.kind(), start.elapsed()), (ErrorKind::TimedOut, STALLED_FOR));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_is_slow_but_alive_gets_all() {
        let (ours, mut theirs) = duplex(8);
        let write = async move { Patient::new(ours).write_all(&[7; 100]).await };
        let read = async {
            let mut minutes = interval(STALLED_FOR / 2);
            for _ in 0..100 {
                minutes.tick().await;
                theirs.read_u8().await.unwrap();
            }
        };
        let both = timeout(STALLED_FOR * 100, async { tokio::join!(write, read) }).await;
        both.unwrap().0.unwrap();
    }
}
