//! A connection to a receiver, with or without TLS. Counts what comes of HTTP, and takes the end of a TLS connection that
//! is not announced as the end: whether a response is whole is up to HTTP.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::metered::{Meter, MeteredStream};

/// What is known of a connection.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) meter: Arc<Meter>,
    pub(super) peer: SocketAddr,
    received: Arc<AtomicU64>,
}

impl Known {
    fn of(stream: &MeteredStream) -> Self {
        Self { meter: Arc::clone(stream.meter()), peer: stream.peer(), received: Arc::default() }
    }

    /// How many bytes have come, those of TLS not counted.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }
}

/// A connection to a receiver.
pub(super) struct Stream {
    kind: Kind,
    known: Known,
    is_http2: bool,
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
        let known = Known::of(&stream);
        Self { kind: Kind::Plain(stream), known, is_http2: false }
    }

    pub(super) fn tls(stream: TlsStream<MeteredStream>, is_http2: bool) -> Self {
        let known = Known::of(stream.get_ref().0);
        Self { kind: Kind::Tls(Box::new(stream)), known, is_http2 }
    }

    pub(super) const fn known(&self) -> &Known {
        &self.known
    }

    /// Whether both sides agreed on HTTP/2.
    pub(super) const fn is_http2(&self) -> bool {
        self.is_http2
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = match &mut self.kind {
            Kind::Plain(stream) => ready!(Pin::new(stream).poll_read(cx, buf)),
            // Many servers end a connection without a close_notify.
            Kind::Tls(stream) => match ready!(Pin::new(stream).poll_read(cx, buf)) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
                read => read,
            },
        };
        self.known.received.fetch_add((buf.filled().len() - before) as u64, Ordering::Release);
        Poll::Ready(read)
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
