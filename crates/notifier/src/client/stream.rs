//! A connection to a receiver, with or without TLS.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::metered::{Meter, MeteredStream};

/// What the pool knows of a connection.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) meter: Arc<Meter>,
    pub(super) peer: SocketAddr,
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
        let known = Known { meter: Arc::clone(stream.meter()), peer: stream.peer() };
        Self { kind: Kind::Plain(stream), known, is_http2: false }
    }

    pub(super) fn tls(stream: TlsStream<MeteredStream>, is_http2: bool) -> Self {
        let inner = stream.get_ref().0;
        let known = Known { meter: Arc::clone(inner.meter()), peer: inner.peer() };
        Self { kind: Kind::Tls(Box::new(stream)), known, is_http2 }
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        let connected = Connected::new().extra(self.known.clone());
        if self.is_http2 { connected.negotiated_h2() } else { connected }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        inner!(self, stream => stream.poll_read(cx, buf))
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
