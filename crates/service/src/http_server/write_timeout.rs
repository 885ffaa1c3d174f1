//! `WriteTimeout`: a stream whose writes fail if the peer reads nothing for a long time. A slow
//! reader is fine.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream whose writes time out when they make no progress. Part of the kernel's buffer must drain before more can
/// be written.
pub(super) struct WriteTimeout<S> {
    stream: S,
    stalled_for: Duration,
    /// The timer of a write that waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> WriteTimeout<S> {
    /// A write may make no progress for `stalled_for`.
    pub(super) fn new(stream: S, stalled_for: Duration) -> Self {
        Self { stream, stalled_for, stalled: None }
    }

    /// Turns a write that has waited too long into an error.
    fn check<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled_for = self.stalled_for;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(stalled_for)));
        stalled.as_mut().poll(cx).map(|()| Err(ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.check(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.check(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What was written may wait in the buffers of TLS.
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.check(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.check(cx, closed)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufWriter, duplex};
    use tokio::time::{Instant, interval, timeout};

    use super::*;

    const STALLED_FOR: Duration = Duration::from_secs(300);

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_hangs_times_out() {
        let (ours, _theirs) = duplex(8);
        let (mut ours, start) = (WriteTimeout::new(ours, STALLED_FOR), Instant::now());
        let error = ours.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!((error.kind(), start.elapsed()), (ErrorKind::TimedOut, STALLED_FOR));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_hangs_times_out_also_where_writes_are_buffered() {
        let (ours, _theirs) = duplex(8);
        let mut ours = WriteTimeout::new(BufWriter::new(ours), STALLED_FOR);
        ours.write_all(&[0; 100]).await.unwrap();
        let ended = timeout(STALLED_FOR * 2, ours.flush()).await;
        assert_eq!(ended.unwrap().unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_gets_everything() {
        let (ours, mut theirs) = duplex(8);
        let write = async move { WriteTimeout::new(ours, STALLED_FOR).write_all(&[7; 100]).await };
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
