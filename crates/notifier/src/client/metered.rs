//! A connection that counts what it receives, so that no response costs more than a bounded number of bytes, whatever
//! they are: interim heads, padding of chunks, frames of HTTP/2, or a TLS handshake.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// How many bytes an attempt may receive: a head of 32 KiB, 20 interim ones, and 64 KiB of a body in small chunks.
const PER_ATTEMPT: u64 = 1024 * 1024;

/// More was received than the attempts on this connection may receive.
#[derive(Debug, thiserror::Error)]
#[error("the receiver sends more than {PER_ATTEMPT} bytes per attempt")]
pub(super) struct TooMuch;

/// What a connection has received and may receive.
pub(super) struct Meter {
    received: AtomicU64,
    allowed: AtomicU64,
    /// Attempts under way: over HTTP/2 several share a connection.
    attempts: AtomicU64,
    since: Instant,
}

impl Meter {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            received: AtomicU64::new(0),
            // For the handshake, and for the first attempt until it begins.
            allowed: AtomicU64::new(PER_ATTEMPT),
            attempts: AtomicU64::new(0),
            since: Instant::now(),
        })
    }

    /// An attempt begins on this connection. It ends when the result is dropped.
    ///
    /// What attempts before did not use is lost: a connection that has served many gives no larger share.
    pub(super) fn begin(self: &Arc<Self>) -> Metered {
        let attempts = self.attempts.fetch_add(1, Ordering::Relaxed) + 1;
        let allowed = self.received.load(Ordering::Relaxed) + attempts * PER_ATTEMPT;
        // Some of it was sent to the attempts that are under way.
        self.allowed.fetch_max(allowed, Ordering::Relaxed);
        if attempts == 1 {
            self.allowed.store(allowed, Ordering::Relaxed);
        }
        Metered(Arc::clone(self))
    }

    /// When the connection was made.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    fn receive(&self, bytes: usize) -> io::Result<()> {
        let received = self.received.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        if received <= self.allowed.load(Ordering::Relaxed) { Ok(()) } else { Err(io::Error::other(TooMuch)) }
    }
}

/// An attempt on a connection.
pub(super) struct Metered(Arc<Meter>);

impl Drop for Metered {
    fn drop(&mut self) {
        self.0.attempts.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A TCP connection that counts.
pub(super) struct MeteredStream {
    stream: TcpStream,
    meter: Arc<Meter>,
}

impl MeteredStream {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, meter: Meter::new() }
    }

    pub(super) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }
}

impl AsyncRead for MeteredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        Poll::Ready(self.meter.receive(buf.filled().len() - before))
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
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
    use super::*;

    #[tokio::test]
    async fn each_attempt_may_receive_its_share_and_no_more_however_many_were_before() {
        let (meter, half) = (Meter::new(), usize::try_from(PER_ATTEMPT / 2).unwrap());
        for _ in 0..10 {
            let _attempt = meter.begin();
            assert!(meter.receive(half).is_ok() && meter.receive(half).is_ok());
        }
        let attempt = meter.begin();
        assert!(meter.receive(half).is_ok());
        // A second one beside it.
        let _other = meter.begin();
        assert!((0..4).all(|_| meter.receive(half).is_ok()));
        assert!(meter.receive(1).is_err());
        drop(attempt);
        assert!(meter.receive(1).is_err());
    }
}
