//! The socket of a connection, and whether its client is still there. A client may close its sending half after a
//! request and wait for the answer (RFC 9112, section 9.6), as `nc -N` does. TCP shows the same of a client that is
//! gone, until something is sent: then the system at the other end resets the connection. So the first byte of the
//! answer is sent ahead, which is an `H` whatever the answer is.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::poll;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

/// How long a reset may take to arrive once a byte was sent to a client that had closed its sending half before its
/// request was read. A request is carried out then.
const RESET_WITHIN: Duration = Duration::from_millis(50);
/// How each answer of HTTP/1 begins.
const FIRST_BYTE: &[u8] = b"H";
/// The client closes its sending half, or resets the connection.
#[cfg(target_os = "linux")]
const CLOSED: Interest = Interest::PRIORITY.add(Interest::ERROR);
#[cfg(not(target_os = "linux"))]
const CLOSED: Interest = Interest::ERROR;

/// The stream of a connection: reads from its client, and writes through [`Client`].
pub(super) struct Socket {
    reader: OwnedReadHalf,
    client: Arc<Client>,
}

/// The client of a connection.
pub(super) struct Client {
    /// It closes the connection when it is dropped.
    writer: OwnedWriteHalf,
    protection: Protection,
    /// Whether what was sent last ended with a message.
    is_between_messages: AtomicBool,
    /// Whether the first byte of the next message was sent already.
    is_ahead: AtomicBool,
}

/// How the bytes of a connection travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    Plain,
    /// A client ends what it sends by an alert, inside TLS (RFC 8446, section 6.1). One that closes its half of the TCP
    /// connection beneath is gone.
    Tls,
}

/// The client is gone.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the client is gone")]
pub(super) struct Gone;

impl Socket {
    pub(super) fn new(stream: TcpStream, protection: Protection) -> (Self, Arc<Client>) {
        let (reader, writer) = stream.into_split();
        let (is_between_messages, is_ahead) = (AtomicBool::new(true), AtomicBool::new(false));
        let client = Arc::new(Client { writer, protection, is_between_messages, is_ahead });
        (Self { reader, client: Arc::clone(&client) }, client)
    }
}

impl Client {
    /// Does the work for a request; fails, and drops the work, if the client is gone first. To find out about a client
    /// that has closed its sending half, sends the first byte of the answer ahead, so the answer must not have begun.
    pub(super) async fn unless_gone<T>(&self, work: impl Future<Output = T>) -> Result<T, Gone> {
        let (mut work, mut closed) = (pin!(work), pin!(self.closed()));
        let reset_within = if poll!(closed.as_mut()).is_ready() {
            RESET_WITHIN
        } else {
            tokio::select! {
                biased;
                () = closed => Duration::ZERO,
                done = work.as_mut() => return Ok(done),
            }
        };
        if self.protection == Protection::Tls {
            return Err(Gone);
        }
        self.send_ahead();
        let mut reset = pin!(self.reset());
        if timeout(reset_within, reset.as_mut()).await.is_ok() {
            return Err(Gone);
        }
        tokio::select! {
            biased;
            () = reset => Err(Gone),
            done = work => Ok(done),
        }
    }

    /// Whether the connection speaks plain HTTP, so that a client that has closed its sending half may still read.
    pub(super) fn may_read_on(&self) -> bool {
        self.protection == Protection::Plain
    }

    /// Waits until the client has closed its sending half, or is gone.
    pub(super) async fn closed(&self) {
        self.writer.ready(CLOSED).await.ok();
    }

    /// Waits until the client has reset the connection.
    pub(super) async fn reset(&self) {
        self.writer.ready(Interest::ERROR).await.ok();
    }

    fn send_ahead(&self) {
        if self.is_between_messages.load(Ordering::Relaxed) && !self.is_ahead.load(Ordering::Relaxed) {
            let is_sent = self.writer.try_write(FIRST_BYTE).is_ok();
            self.is_ahead.store(is_sent, Ordering::Relaxed);
        }
    }

    fn poll_write(&self, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.is_between_messages.store(false, Ordering::Relaxed);
        if self.is_ahead.load(Ordering::Relaxed) && bufs.iter().any(|buf| !buf.is_empty()) {
            self.is_ahead.store(false, Ordering::Relaxed);
            return Poll::Ready(Ok(FIRST_BYTE.len()));
        }
        loop {
            ready!(self.writer.as_ref().poll_write_ready(cx))?;
            match self.writer.try_write_vectored(bufs) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reader).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.client.poll_write(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.client.poll_write(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.client.is_between_messages.store(true, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Its end follows at once, and closes both halves.
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Shutdown as Half, SocketAddr};
    use std::sync::atomic::AtomicUsize;

    use axum::Router;
    use axum::body::{Body, Bytes};
    use axum::http::header::CONTENT_TYPE;
    use axum::routing::post;
    use futures_util::stream;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;
    use tokio::time::sleep;

    use super::super::{Connections, serve};
    use super::*;
    use crate::shutdown::Shutdown;

    /// Says when it is dropped.
    struct Work(mpsc::UnboundedSender<()>);

    impl Drop for Work {
        fn drop(&mut self) {
            self.0.send(()).ok();
        }
    }

    struct Server {
        address: SocketAddr,
        /// How many requests were carried out.
        done: Arc<AtomicUsize>,
        ends: mpsc::UnboundedReceiver<()>,
        shutdown: Shutdown,
    }

    /// `/now` answers at once, `/later` when it has waited, `/never` does not, and `/events` streams nothing.
    async fn server() -> Server {
        let (done, (end, ends)) = (Arc::<AtomicUsize>::default(), mpsc::unbounded_channel());
        let (now, later, events) = (Arc::clone(&done), Arc::clone(&done), end.clone());
        let never = async move || {
            let _work = Work(end.clone());
            std::future::pending::<()>().await;
        };
        let events = async move || {
            let held = Work(events.clone());
            let silent = stream::once(async move {
                let _held = held;
                std::future::pending::<io::Result<Bytes>>().await
            });
            ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(silent))
        };
        let app = Router::new()
            .route("/now", post(async move |body: String| (now.fetch_add(1, Ordering::SeqCst), body).1))
            .route(
                "/later",
                post(async move |body: String| {
                    sleep(Duration::from_millis(30)).await;
                    (later.fetch_add(1, Ordering::SeqCst), body).1
                }),
            )
            .route("/never", post(never))
            .route("/events", post(events));
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let (address, shutdown) = (listener.local_addr().unwrap(), Shutdown::new(Duration::from_secs(30)));
        let serving = serve(listener, app, Connections::fair(64), None, shutdown.clone());
        tokio::runtime::Handle::current().spawn(serving);
        Server { address, done, ends, shutdown }
    }

    fn request(path: &str, headers: &str) -> Vec<u8> {
        format!("POST {path} HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n{headers}\r\nbody").into_bytes()
    }

    /// All that comes after the sending half was closed.
    async fn half_closed(address: SocketAddr, parts: &[&[u8]]) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        for part in parts {
            stream.write_all(part).await.unwrap();
            sleep(Duration::from_millis(5)).await;
        }
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        timeout(Duration::from_secs(5), stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        answer
    }

    #[tokio::test]
    async fn a_client_that_closes_its_sending_half_gets_every_answer_whole() {
        let server = server().await;
        let (now, later) = (request("/now", ""), request("/later", ""));
        let both = [now.clone(), later.clone()].concat();
        let expecting = request("/later", "expect: 100-continue\r\n");
        let (head, body) = later.split_at(later.len() - 2);
        for (parts, answers) in [
            (&[now.as_slice()][..], 1),
            (&[later.as_slice()], 1),
            (&[both.as_slice()], 2),
            (&[later.as_slice(), now.as_slice()], 2),
            (&[head, body], 1),
            (&[expecting.as_slice()], 1),
        ] {
            let text = half_closed(server.address, parts).await;
            assert!(text.starts_with("HTTP/1.1 ") && text.ends_with("\r\n\r\nbody"), "{text}");
            assert_eq!(text.matches("HTTP/1.1 200 OK\r\n").count(), answers, "{text}");
        }
        server.shutdown.begin();
    }

    /// Closes a connection at once: with a reset, or as a process that ends.
    fn leave(stream: std::net::TcpStream, how: &str) {
        match how {
            "reset" => TcpStream::from_std(stream).unwrap().set_zero_linger().unwrap(),
            "both halves" => stream.shutdown(Half::Both).unwrap(),
            _ => drop(stream),
        }
    }

    #[tokio::test]
    async fn nothing_is_carried_out_for_a_client_that_left_before_its_request_was_read() {
        let server = server().await;
        for how in ["reset", "both halves", "end"] {
            let mut stream = std::net::TcpStream::connect(server.address).unwrap();
            // This thread is the server's too, so that it reads nothing until the client has left.
            io::Write::write_all(&mut stream, &request("/now", "")).unwrap();
            stream.set_nonblocking(true).unwrap();
            leave(stream, how);
            assert!(half_closed(server.address, &[&request("/later", "")]).await.ends_with("body"), "{how}");
            sleep(2 * RESET_WITHIN).await;
            assert_eq!(
                server.done.swap(0, Ordering::SeqCst),
                1,
                "{how}: only that of the client that stayed"
            );
        }
        server.shutdown.begin();
    }

    #[tokio::test]
    async fn what_is_under_way_ends_when_its_client_leaves() {
        let mut server = server().await;
        for path in ["/never", "/events"] {
            for how in ["reset", "end"] {
                let mut stream = TcpStream::connect(server.address).await.unwrap();
                stream.write_all(&request(path, "")).await.unwrap();
                sleep(Duration::from_millis(20)).await;
                leave(stream.into_std().unwrap(), how);
                timeout(Duration::from_secs(2), server.ends.recv()).await.expect(path);
            }
        }
        server.shutdown.begin();
    }
}
