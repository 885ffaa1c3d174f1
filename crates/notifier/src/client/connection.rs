//! One connection to a receiver: HTTP/1.1, which serves one attempt at a time, or HTTP/2, which serves as many as the
//! receiver allows. Which connection serves which attempt is up to `connections`.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::Uri;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper::rt::Executor;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, timeout};
use tower::Service as _;

use super::causes;
use super::connector::Connector;
use super::error::PostError;
use super::stream::{ConnectionInfo, Stream};

/// A connection that is older is not used for further requests, so that a change of a receiver's addresses is followed.
const OLDEST: Duration = Duration::from_secs(60);
/// How long a connection may go on after its last owner has dropped it: a receiver may never read what is left.
pub(super) const SETTLES: Duration = Duration::from_secs(1);
/// How often a connection of HTTP/2 with requests sends a PING, and how long the answer may take.
const ASKED: Duration = Duration::from_secs(15);
/// The largest head of a response.
pub(super) const MAX_HEAD: u32 = 32 * 1024;
/// How many headers a response may have.
pub(super) const MAX_HEADERS: usize = 100;
/// How much of bodies a receiver may send over HTTP/2 before it is read: of one, and of all on a connection.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 512 * 1024;

/// A connection that was just made.
pub(super) enum NewConnection {
    Http1(Http1),
    Http2(Http2),
}

/// A connection of HTTP/1.1, or 1.0.
pub(super) struct Http1 {
    pub(super) sender: http1::SendRequest<Full<Bytes>>,
    /// The origin that it leads to.
    pub(super) name: Arc<str>,
    pub(super) known: ConnectionInfo,
    /// Whether it was kept for this attempt, so that the receiver may have closed it meanwhile.
    pub(super) was_kept: bool,
    _held: oneshot::Sender<Infallible>,
}

/// A connection of HTTP/2.
pub(super) struct Http2 {
    pub(super) sender: http2::SendRequest<Full<Bytes>>,
    /// The origin that it leads to.
    pub(super) name: Arc<str>,
    pub(super) known: ConnectionInfo,
    has_answered: AtomicBool,
    /// Whether it was made for an attempt that has found another one.
    pub(super) was_kept: bool,
    /// Whether attempts may not begin on it any more.
    is_left: AtomicBool,
    load: Mutex<Load>,
    streams: Arc<Streams>,
    _held: watch::Sender<()>,
}

struct Load {
    streams: usize,
    /// When the last stream ended.
    since: Instant,
}

/// Makes a connection to the origin `name` of a URL, with a task that runs it. `changed` is notified when a connection
/// of HTTP/2 may serve more attempts than before.
pub(super) async fn open(
    mut connector: Connector,
    uri: Uri,
    name: Arc<str>,
    changed: Arc<Notify>,
) -> Result<NewConnection, PostError> {
    let io = connector.call(uri).await.map_err(|error| error.kind)?;
    if io.inner().is_http2() {
        let known = io.inner().known().clone();
        let (polled, (held, left)) = (Arc::<Notify>::default(), watch::channel(()));
        let spawner = Spawner { polled: Arc::clone(&polled), left: left.clone() };
        let (sender, connection) = http2(spawner, io).await?;
        let streams = Arc::new(Streams { limit: AtomicUsize::new(1), changed });
        let serving = serve(connection, polled, Arc::clone(&streams));
        TokioExecutor::new().execute(while_held(dropped(left), serving));
        let load = Mutex::new(Load { streams: 0, since: Instant::now() });
        return Ok(NewConnection::Http2(Http2 {
            sender,
            name,
            known,
            has_answered: AtomicBool::new(false),
            was_kept: false,
            is_left: AtomicBool::new(false),
            load,
            streams,
            _held: held,
        }));
    }
    Ok(NewConnection::Http1(http1(io, name).await?))
}

async fn http1(io: TokioIo<Stream>, name: Arc<str>) -> Result<Http1, PostError> {
    let known = io.inner().known().clone();
    let handshake = http1::Builder::new()
        .max_buf_size(MAX_HEAD as usize)
        .max_headers(MAX_HEADERS)
        // What other clients take.
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        .handshake(io);
    let (sender, connection) = handshake.await.map_err(|error| causes::of_request(&error))?;
    let (held, left) = oneshot::channel();
    TokioExecutor::new().execute(while_held(left.map(drop), connection.map(drop)));
    Ok(Http1 { sender, name, known, was_kept: false, _held: held })
}

/// Runs a task of a connection, and ends it at the latest a second after `left`.
async fn while_held(left: impl Future<Output = ()>, task: impl Future<Output = ()>) {
    let mut task = pin!(task);
    tokio::select! {
        biased;
        () = &mut task => return,
        () = left => {}
    }
    let _ = timeout(SETTLES, task).await;
}

/// Waits until the sender of the channel is dropped.
async fn dropped(mut left: watch::Receiver<()>) {
    while left.changed().await.is_ok() {}
}

type Http2Connection = http2::Connection<TokioIo<Stream>, Full<Bytes>, Spawner>;

/// Runs a connection of HTTP/2 until it ends. Each time a task of it has run, reads how many streams the receiver
/// allows, since the library does not report a change, and notifies attempts that wait.
async fn serve(mut connection: Http2Connection, polled: Arc<Notify>, streams: Arc<Streams>) {
    loop {
        tokio::select! {
            biased;
            _ended = &mut connection => return streams.changed.notify_waiters(),
            () = polled.notified() => {}
        }
        let limit = connection.current_max_send_streams();
        if streams.limit.swap(limit, Ordering::Relaxed) != limit {
            streams.changed.notify_waiters();
        }
    }
}

async fn http2(
    spawner: Spawner,
    io: TokioIo<Stream>,
) -> Result<(http2::SendRequest<Full<Bytes>>, Http2Connection), PostError> {
    let handshake = http2::Builder::new(spawner)
        .max_header_list_size(MAX_HEAD)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        // Until the receiver has said how many it allows.
        .initial_max_send_streams(1)
        .timer(TokioTimer::new())
        .keep_alive_interval(ASKED)
        .keep_alive_timeout(ASKED)
        .handshake(io);
    handshake.await.map_err(|error| causes::of_request(&error))
}

impl Http1 {
    /// Whether a further attempt may begin on this connection: it is open and not too old.
    pub(super) fn is_usable(&self) -> bool {
        !self.sender.is_closed() && self.known.meter.age() < OLDEST
    }
}

impl Http2 {
    /// Whether further attempts may begin on this connection, as far as the receiver allows more: it is open, not left,
    /// and not too old.
    pub(super) fn is_usable(&self) -> bool {
        !self.sender.is_closed() && !self.is_left.load(Ordering::Relaxed) && self.known.meter.age() < OLDEST
    }

    /// How many attempts the receiver allows at a time; `None` until it has said so.
    pub(super) fn limit(&self) -> Option<usize> {
        let limit = self.streams.limit.load(Ordering::Relaxed);
        (limit > 1 || self.was_used()).then_some(limit)
    }

    /// Begins an attempt, and returns true, if the receiver allows one more at a time.
    pub(super) fn begin(&self) -> bool {
        let most = self.streams.limit.load(Ordering::Relaxed);
        let mut load = self.load();
        let is_allowed = load.streams < most;
        load.streams += usize::from(is_allowed);
        is_allowed
    }

    /// Begins the attempt for which the connection was made, whatever the receiver allows; its request waits if need
    /// be.
    pub(super) fn begin_first(&self) {
        self.load().streams += 1;
    }

    /// Ends an attempt, and notifies one that waits.
    pub(super) fn end(&self) {
        let mut load = self.load();
        load.streams -= 1;
        load.since = Instant::now();
        drop(load);
        self.streams.changed.notify_one();
    }

    /// Whether the connection has had no attempt for so long.
    pub(super) fn is_idle_for(&self, length: Duration) -> bool {
        let load = self.load();
        load.streams == 0 && load.since.elapsed() >= length
    }

    /// Whether an attempt was answered on this connection.
    fn was_used(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// Whether the connection was kept or used before, so that the receiver may have closed it before this attempt.
    pub(super) fn was_kept(&self) -> bool {
        self.was_kept || self.was_used()
    }

    pub(super) fn answered(&self) {
        self.has_answered.store(true, Ordering::Relaxed);
    }

    /// Lets no other attempt begin on this connection.
    pub(super) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    fn load(&self) -> MutexGuard<'_, Load> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The streams that a receiver allows at a time.
struct Streams {
    limit: AtomicUsize,
    changed: Arc<Notify>,
}

/// Runs the tasks of a connection until it is left, and notifies `polled` each time one has run.
#[derive(Clone)]
struct Spawner {
    polled: Arc<Notify>,
    left: watch::Receiver<()>,
}

impl<F> Executor<F> for Spawner
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, future: F) {
        let polled = Arc::clone(&self.polled);
        let task = async move {
            let mut future = pin!(future);
            poll_fn(|context| {
                let result = future.as_mut().poll(context);
                polled.notify_one();
                result
            })
            .await;
        };
        TokioExecutor::new().execute(while_held(dropped(self.left.clone()), task));
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpSocket, TcpStream};
    use tokio::runtime::Handle;
    use tokio::time::sleep;

    use super::super::metered::MeteredStream;
    use super::*;

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

    /// A connection whose socket buffers are 4 KiB, and the receiver's side of it.
    async fn pair() -> (Http1, TcpStream) {
        let (socket, own) = (TcpSocket::new_v4().unwrap(), TcpSocket::new_v4().unwrap());
        socket.set_recv_buffer_size(4096).unwrap();
        own.set_send_buffer_size(4096).unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let (own, accepted) = tokio::join!(own.connect(address), listener.accept());
        let stream = Stream::plain(MeteredStream::new(own.unwrap(), address));
        (http1(TokioIo::new(stream), "http://a".into()).await.unwrap(), accepted.unwrap().0)
    }

    /// Sends a request larger than the buffers. Returns its status; `None` if none comes within half of [`SETTLES`].
    async fn sent(one: &mut Http1) -> Option<u16> {
        one.known.expect_head();
        let request = Request::post("/").body(Full::from(vec![b'x'; 250_000])).unwrap();
        let answered = timeout(SETTLES / 2, one.sender.send_request(request)).await;
        answered.ok().map(|answered| answered.unwrap().status().as_u16())
    }

    async fn no_task_is_left() {
        for _ in 0..50 {
            if Handle::current().metrics().num_alive_tasks() == 0 {
                return;
            }
            sleep(SETTLES / 10).await;
        }
        panic!("a task serves the connection for ever");
    }

    #[tokio::test]
    async fn a_connection_that_is_left_ends_though_the_receiver_reads_nothing() {
        for is_answered in [false, true] {
            let (mut one, mut receiver) = pair().await;
            if is_answered {
                receiver.write_all(ANSWER).await.unwrap();
            }
            one.known.meter.begin();
            assert_eq!(sent(&mut one).await, is_answered.then_some(200));
            assert!(one.known.meter.is_blocked(), "no other request may follow on it");
            drop(one);
            no_task_is_left().await;
        }
    }

    #[tokio::test]
    async fn a_connection_that_the_receiver_resets_after_its_answer_ends_by_itself() {
        let (mut one, mut receiver) = pair().await;
        let receiving = async move {
            receiver.read_exact(&mut [0; 100]).await.unwrap();
            receiver.write_all(ANSWER).await.unwrap();
        };
        let (status, ()) = tokio::join!(sent(&mut one), receiving);
        assert_eq!(status, Some(200));
        no_task_is_left().await;
        drop(one);
    }
}
