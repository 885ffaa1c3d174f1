//! `Stream`: a connection to a receiver, with or without TLS, as the HTTP library reads and writes it. Counts the bytes
//! of HTTP, repairs heads of HTTP/1 by `status_line` and `head_end`, and accepts the end of a TLS connection without a
//! `close_notify`: HTTP decides whether a response is whole.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::error::PostError;
use super::head_end::HeadEnd;
use super::metered::{Meter, MeteredStream};
use super::status_line::{self, Start};
use super::tls;

/// What is known of a connection.
#[derive(Clone)]
pub(super) struct ConnectionInfo {
    pub(super) meter: Arc<Meter>,
    pub(super) peer: SocketAddr,
    received: Arc<AtomicU64>,
    head: Arc<Head>,
    /// Why TLS failed after the handshake, which ends all that the connection carries.
    refused: Arc<OnceLock<PostError>>,
}

/// What is known of the head of a response of HTTP/1.
#[derive(Default)]
struct Head {
    /// Whether a response begins with what comes next.
    begins: AtomicBool,
    /// Whether the connection ends with the response.
    is_last: AtomicBool,
}

impl Head {
    fn found(&self, start: &[u8]) {
        self.begins.store(false, Ordering::Release);
        self.is_last.store(status_line::is_last(start), Ordering::Release);
    }
}

impl ConnectionInfo {
    fn of(stream: &MeteredStream) -> Self {
        Self {
            meter: Arc::clone(stream.meter()),
            peer: stream.peer(),
            received: Arc::default(),
            head: Arc::default(),
            refused: Arc::default(),
        }
    }

    /// Why TLS failed after the handshake; `None` if it did not. The library does not pass that on for HTTP/2.
    pub(super) fn refused(&self) -> Option<PostError> {
        self.refused.get().copied()
    }

    /// How many bytes were received, without the overhead of TLS.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }

    /// Says that a request of HTTP/1 is sent, so that a response begins with the next bytes.
    pub(super) fn expect_head(&self) {
        self.head.begins.store(true, Ordering::Release);
    }

    /// Whether the connection ends with its response of HTTP/1, so that no further request may be sent.
    pub(super) fn is_last(&self) -> bool {
        self.head.is_last.load(Ordering::Acquire)
    }
}

/// A connection to a receiver.
pub(super) struct Stream {
    kind: Kind,
    known: ConnectionInfo,
    is_http2: bool,
    /// The start of a response, of which more must come first; afterwards what stands in its place.
    start: Vec<u8>,
    head_end: HeadEnd,
}

enum Kind {
    Plain(MeteredStream),
    Tls(Box<TlsStream<MeteredStream>>),
}

/// The stream in a `Stream`, pinned: both kinds can be moved.
macro_rules! inner {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut $self.get_mut().kind {
            Kind::Plain($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
            Kind::Tls($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
        }
    };
}

impl Stream {
    pub(super) fn plain(stream: MeteredStream) -> Self {
        let known = ConnectionInfo::of(&stream);
        Self {
            kind: Kind::Plain(stream),
            known,
            is_http2: false,
            start: Vec::new(),
            head_end: HeadEnd::Behind,
        }
    }

    pub(super) fn tls(stream: TlsStream<MeteredStream>, is_http2: bool) -> Self {
        let known = ConnectionInfo::of(stream.get_ref().0);
        let kind = Kind::Tls(Box::new(stream));
        Self { kind, known, is_http2, start: Vec::new(), head_end: HeadEnd::Behind }
    }

    pub(super) const fn known(&self) -> &ConnectionInfo {
        &self.known
    }

    /// Whether both sides agreed on HTTP/2.
    pub(super) const fn is_http2(&self) -> bool {
        self.is_http2
    }
}

impl Stream {
    /// Reads and counts bytes, and records an error of TLS. The end of TLS without a `close_notify`, as many servers
    /// send it, is a normal end.
    fn receive(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = match &mut self.kind {
            Kind::Plain(stream) => ready!(Pin::new(stream).poll_read(cx, buf)),
            Kind::Tls(stream) => match ready!(Pin::new(stream).poll_read(cx, buf)) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
                Err(error) => {
                    if let Some(refused) = tls::refused(&error) {
                        self.known.refused.get_or_init(|| refused);
                    }
                    Err(error)
                }
                Ok(()) => Ok(()),
            },
        };
        self.known.received.fetch_add((buf.filled().len() - before) as u64, Ordering::Release);
        Poll::Ready(read)
    }

    /// Records that a response begins with these bytes.
    fn found(&mut self, start: &[u8]) {
        self.known.head.found(start);
        self.head_end = HeadEnd::InStatus;
        self.head_end.see(start);
    }

    /// Moves bytes from `start`, as many as there is room for, to `buf`.
    fn give(&mut self, buf: &mut ReadBuf<'_>) {
        let most = self.start.len().min(buf.remaining());
        buf.put_slice(&self.start[..most]);
        self.start.drain(..most);
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        while this.known.head.begins.load(Ordering::Acquire) {
            ready!(this.receive(cx, buf))?;
            let read = &buf.filled()[before..];
            let is_end = read.is_empty();
            if this.start.is_empty() && status_line::look(read) == Start::Usual {
                this.found(read);
                return Poll::Ready(Ok(()));
            }
            this.start.extend_from_slice(&buf.filled()[before..]);
            let start = status_line::look(&this.start);
            if start == Start::Short && !is_end {
                buf.set_filled(before);
                continue;
            }
            let first = std::mem::take(&mut this.start);
            this.found(&first);
            buf.set_filled(before);
            this.start = if let Start::Other(other) = start { other } else { first };
            this.give(buf);
            return Poll::Ready(Ok(()));
        }
        if this.start.is_empty() {
            ready!(this.receive(cx, buf))?;
            let read = &buf.filled()[before..];
            if !read.is_empty() {
                this.head_end.see(read);
                return Poll::Ready(Ok(()));
            }
            this.start.extend_from_slice(this.head_end.missing());
        }
        this.give(buf);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        inner!(self, stream => stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        inner!(self, stream => stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.kind {
            Kind::Plain(stream) => stream.is_write_vectored(),
            Kind::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, stream => stream.poll_shutdown(cx))
    }
}
