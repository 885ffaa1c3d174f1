//! `Begun`: a stream whose first bytes must arrive in time. The server of HTTP/2 waits for the preface of a client without
//! a limit of its own.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream whose reads fail if its first bytes do not arrive in time.
pub(super) struct Begun<S> {
    stream: S,
    /// How many bytes must arrive still.
    missing: usize,
    late: Pin<Box<Sleep>>,
}

impl<S> Begun<S> {
    /// The first `bytes` must arrive `within` this time from now.
    pub(super) fn new(stream: S, bytes: usize, within: Duration) -> Self {
        Self { stream, missing: bytes, late: Box::pin(sleep(within)) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Begun<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if self.missing > 0 {
            self.missing = self.missing.saturating_sub(buf.filled().len() - before);
            if read.is_pending() && self.late.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(ErrorKind::TimedOut.into()));
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Begun<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
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
    use tokio::time::{Instant, interval};

    use super::*;

    const WITHIN: Duration = Duration::from_secs(75);

    #[tokio::test(start_paused = true)]
    async fn a_beginning_that_drips_is_cut_off_in_time() {
        let (ours, mut theirs) = duplex(64);
        let drip = async move {
            let mut seconds = interval(Duration::from_secs(10));
            while theirs.write_all(b"P").await.is_ok() {
                seconds.tick().await;
            }
        };
        let (mut ours, start) = (Begun::new(ours, 24, WITHIN), Instant::now());
        let mut all = Vec::new();
        let read = async move { ours.read_to_end(&mut all).await };
        let (error, ()) = tokio::join!(read, drip);
        assert_eq!((error.unwrap_err().kind(), start.elapsed() >= WITHIN), (ErrorKind::TimedOut, true));
        assert!(start.elapsed() < 2 * WITHIN);
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_begun_may_be_silent() {
        let (ours, mut theirs) = duplex(64);
        theirs.write_all(&[b'x'; 24]).await.unwrap();
        let mut ours = Begun::new(ours, 24, WITHIN);
        ours.read_exact(&mut [0; 24]).await.unwrap();
        assert!(tokio::time::timeout(10 * WITHIN, ours.read_u8()).await.is_err(), "it waits");
    }
}
