//! `MeteredStream`: a TCP connection that limits how many bytes it receives per attempt, whatever they are: interim
//! heads, padding of chunks, frames of HTTP/2, or a TLS handshake. It also goes on reading when nothing more can be
//! written, since a receiver may have answered before it read the whole request.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// How many bytes an attempt may receive: a head of 32 KiB, 20 interim ones, and 64 KiB of a body in small chunks.
const PER_ATTEMPT: u64 = 1024 * 1024;

/// How many bytes are read at once. Others have a turn before more is read: what comes is parsed as long as there is
/// some.
const MAX_READ: usize = 4 * 1024;

/// More was received than the attempts on this connection may receive.
#[derive(Debug, thiserror::Error)]
#[error("the receiver sends more than {PER_ATTEMPT} bytes per attempt")]
pub(super) struct TooMuch;

/// What a connection has received and may receive.
pub(super) struct Meter {
    count: Mutex<Count>,
    since: Instant,
    /// Whether the receiver has yet to take some of what was written.
    is_blocked: AtomicBool,
}

struct Count {
    received: u64,
    allowed: u64,
    /// Attempts under way: over HTTP/2 several share a connection.
    attempts: u64,
}

impl Meter {
    pub(super) fn new() -> Arc<Self> {
        // For the handshake, and for the first attempt until it begins.
        let count = Count { received: 0, allowed: PER_ATTEMPT, attempts: 0 };
        Arc::new(Self { count: Mutex::new(count), since: Instant::now(), is_blocked: AtomicBool::new(false) })
    }

    /// Begins an attempt on this connection, which may receive [`PER_ATTEMPT`] more bytes. It ends when the result is
    /// dropped. What earlier attempts did not use is lost.
    pub(super) fn begin(self: &Arc<Self>) -> Metered {
        let mut count = self.count();
        count.attempts += 1;
        let allowed = count.received + count.attempts * PER_ATTEMPT;
        // Some of it was sent to the attempts that are under way.
        count.allowed = if count.attempts == 1 { allowed } else { allowed.max(count.allowed) };
        Metered(Arc::clone(self))
    }

    /// Whether part of a request waits until the receiver takes more.
    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked.load(Ordering::Relaxed)
    }

    /// How old the connection is.
    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    fn receive(&self, bytes: usize) -> io::Result<()> {
        let mut count = self.count();
        count.received += bytes as u64;
        if count.received <= count.allowed { Ok(()) } else { Err(io::Error::other(TooMuch)) }
    }

    fn count(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt on a connection.
pub(super) struct Metered(Arc<Meter>);

impl Metered {
    /// Whether the connection has received more than its attempts may. HTTP/2 does not say so in its errors.
    pub(super) fn is_exceeded(&self) -> bool {
        let count = self.0.count();
        count.received > count.allowed
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        self.0.count().attempts -= 1;
    }
}

/// A TCP connection that counts.
pub(super) struct MeteredStream {
    stream: TcpStream,
    peer: SocketAddr,
    meter: Arc<Meter>,
    /// Whether there is probably more to receive than was read at once.
    has_more: bool,
    /// Whether the receiver takes nothing more.
    is_cut_off: bool,
}

impl MeteredStream {
    pub(super) fn new(stream: TcpStream, peer: SocketAddr) -> Self {
        Self { stream, peer, meter: Meter::new(), has_more: false, is_cut_off: false }
    }

    /// The address that it is connected to.
    pub(super) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(super) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// The result of a write of `length` bytes. If the receiver has closed its side, they count as written: at an
    /// error, the library would end without reading an answer that may have arrived. Records whether a write is
    /// blocked.
    fn read_on(&mut self, length: usize, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.meter.is_blocked.store(written.is_pending(), Ordering::Relaxed);
        match written {
            Poll::Ready(Err(error)) if is_cut_off(&error) => {
                self.is_cut_off = true;
                Poll::Ready(Ok(length))
            }
            written => written,
        }
    }
}

impl AsyncRead for MeteredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if std::mem::take(&mut self.has_more) {
            // An attempt sees only now what was received, such as too many interim heads.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let most = buf.remaining().min(MAX_READ);
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(most));
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
        let received = part.filled().len();
        buf.advance(received);
        self.has_more = received == MAX_READ;
        Poll::Ready(self.meter.receive(received))
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_cut_off {
            return Poll::Ready(Ok(buf.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.read_on(buf.len(), written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = bufs.iter().map(|buf| buf.len()).sum();
        if self.is_cut_off {
            return Poll::Ready(Ok(length));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.read_on(length, written)
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

fn is_cut_off(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted
    )
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
        assert!(!attempt.is_exceeded() && meter.receive(1).is_err() && attempt.is_exceeded());
        drop(attempt);
        assert!(meter.receive(1).is_err());
    }

    #[tokio::test]
    async fn others_have_a_turn_while_much_is_received() {
        use futures_util::FutureExt as _;
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        use tokio::net::TcpListener;

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = listener.local_addr().unwrap();
        let (stream, accepted) = tokio::join!(TcpStream::connect(peer), listener.accept());
        let (mut stream, mut sender) = (MeteredStream::new(stream.unwrap(), peer), accepted.unwrap().0);
        sender.write_all(&[1; MAX_READ + 100]).await.unwrap();
        stream.stream.readable().await.unwrap();
        let mut buffer = [0; 4 * MAX_READ];
        assert_eq!(stream.read(&mut buffer).await.unwrap(), MAX_READ);
        assert!(stream.read(&mut buffer).now_or_never().is_none(), "others first");
        assert_eq!(stream.read(&mut buffer).await.unwrap(), 100);
    }
}
