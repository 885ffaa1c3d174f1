//! A TCP proxy on 127.0.0.1 that can swallow, delay or hold bytes, or cut the connection: in one direction or both,
//! for all clients or for those of some addresses. New connections can be led to another port, as when a host name
//! gets another address.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::network::free_port;

/// What a client of Redis sends to subscribe to a channel.
const SUBSCRIBE: &[u8] = b"SUBSCRIBE";

/// A running proxy. Dropping it closes all connections.
///
/// It has a thread of its own, so that it also passes on what processes send while a test's thread is blocked.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    target: AtomicU16,
    accepted: AtomicUsize,
    /// What happens to new connections.
    fault: Mutex<Fault>,
    connections: Mutex<Vec<Arc<Connection>>>,
}

/// A mode, and the addresses of clients whose new connections get it; `None` for all.
#[derive(Default)]
struct Fault {
    mode: ProxyMode,
    from: Option<Vec<IpAddr>>,
}

/// A connection that was accepted.
struct Connection {
    from: IpAddr,
    mode: watch::Sender<ProxyMode>,
    is_subscription: AtomicBool,
}

/// What happens to the bytes of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyMode {
    #[default]
    Pass,
    /// They are read and not passed on, in both directions.
    Swallow,
    /// Bytes from the client are read and not passed on.
    SwallowRequests,
    /// Bytes for the client are read and not passed on.
    SwallowReplies,
    /// Nothing is passed on before this ends, and then all of it, as after a break of the network.
    Hold,
    /// They are passed on after this time.
    Delay(Duration),
    /// The client sees the end of the connection; what it sends is still passed on.
    HalfClose,
    /// The next reply is dropped, and the connection closed: the request has had its effect.
    CutReplies,
    /// The connection is closed.
    Cut,
}

impl ProxyMode {
    /// Whether bytes are lost while the connection stays open.
    fn loses_bytes(self) -> bool {
        matches!(self, Self::Swallow | Self::SwallowRequests | Self::SwallowReplies | Self::HalfClose)
    }
}

impl Proxy {
    /// Starts a proxy to a port of 127.0.0.1.
    pub fn start(target: u16) -> Self {
        let (port, shared) = (free_port(), Arc::new(Shared { target: target.into(), ..Shared::default() }));
        let listener = std::net::TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
        listener.set_nonblocking(true).expect("a listener can be non-blocking");
        let (stop, stopped) = oneshot::channel();
        let accepting = accept(listener, Arc::clone(&shared));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be built").block_on(async {
                tokio::select! {
                    () = accepting => {}
                    _ = stopped => {}
                }
            });
        });
        Self { port, shared, stop: Some(stop), thread: Some(thread) }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Leads new connections to another port of 127.0.0.1. Existing connections stay where they are.
    pub fn lead_to(&self, target: u16) {
        self.shared.target.store(target, Ordering::SeqCst);
    }

    /// Makes the existing connections read everything and pass on nothing, in both directions. Returns how many these
    /// are.
    pub fn swallow(&self) -> usize {
        self.change(None, ProxyMode::Swallow)
    }

    /// Does the same as [`Proxy::swallow`] to connections on which a client has sent Redis' SUBSCRIBE.
    pub fn swallow_subscriptions(&self) -> usize {
        self.set(ProxyMode::Swallow, |connection| connection.is_subscription.load(Ordering::SeqCst))
    }

    /// Closes the existing connections.
    pub fn cut(&self) {
        self.change(None, ProxyMode::Cut);
    }

    /// Sets the mode of existing connections: of those from some addresses, or of all. Returns how many changed.
    /// Connections that have lost bytes can only be cut or swallowed: otherwise a reply could be taken for that of
    /// another request.
    pub fn change(&self, from: Option<&[IpAddr]>, mode: ProxyMode) -> usize {
        self.set(mode, |connection| from.is_none_or(|from| from.contains(&connection.from)))
    }

    /// Sets the mode of existing and new connections, until [`Proxy::heal`].
    pub fn fail(&self, mode: ProxyMode) {
        self.fail_from(None, mode);
    }

    /// Does the same as [`Proxy::fail`] to connections from some addresses, or to all.
    pub fn fail_from(&self, from: Option<&[IpAddr]>, mode: ProxyMode) {
        *self.fault() = Fault { mode, from: from.map(<[IpAddr]>::to_vec) };
        self.change(from, mode);
    }

    /// Passes everything on again on new connections, and on those that were delayed or held, or whose next reply was
    /// to be cut. Connections that have lost bytes stay as they are.
    pub fn heal(&self) {
        *self.fault() = Fault::default();
        self.set(ProxyMode::Pass, |connection| {
            matches!(*connection.mode.borrow(), ProxyMode::Delay(_) | ProxyMode::CutReplies | ProxyMode::Hold)
        });
    }

    fn fault(&self) -> MutexGuard<'_, Fault> {
        self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of connections accepted since the start.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    fn set(&self, mode: ProxyMode, which: impl Fn(&Connection) -> bool) -> usize {
        let mut connections = self.shared.connections.lock().unwrap_or_else(PoisonError::into_inner);
        // Connections that have ended have no receiver.
        connections.retain(|connection| !connection.mode.is_closed());
        let mut changed = 0;
        for connection in connections.iter().filter(|connection| which(connection)) {
            changed += usize::from(connection.mode.send_if_modified(|now| {
                let is_allowed = !now.loses_bytes() || matches!(mode, ProxyMode::Cut | ProxyMode::Swallow);
                if is_allowed {
                    *now = mode;
                }
                is_allowed
            }));
        }
        changed
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The join fails only if the thread panicked, which printed a message.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Adds a new connection, with the mode of the current fault if that hits its address. Returns it and its changes
    /// of mode.
    fn connection(&self, from: IpAddr) -> (Arc<Connection>, watch::Receiver<ProxyMode>) {
        // Held until the connection is among the others, so that no fault misses it.
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let is_hit = fault.from.as_ref().is_none_or(|all| all.contains(&from));
        let (mode, changes) = watch::channel(if is_hit { fault.mode } else { ProxyMode::Pass });
        let connection = Arc::new(Connection { from, mode, is_subscription: AtomicBool::new(false) });
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&connection));
        (connection, changes)
    }
}

async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let listener = TcpListener::from_std(listener).expect("a runtime with I/O");
    let mut running = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = running.join_next() => continue,
        };
        let Ok((client, from)) = accepted else { continue };
        shared.accepted.fetch_add(1, Ordering::SeqCst);
        let (connection, changes) = shared.connection(from.ip());
        let target = shared.target.load(Ordering::SeqCst);
        running.spawn(pass(client, target, connection, changes));
    }
}

/// Connects to `target`, once nothing is held, and passes bytes on by the mode until a side closes or the mode cuts.
async fn pass(
    client: TcpStream,
    target: u16,
    connection: Arc<Connection>,
    mut changes: watch::Receiver<ProxyMode>,
) {
    held(&mut changes).await;
    // If there is no server, the client's connection is closed.
    let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { return };
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let look = |bytes: &[u8]| {
        if bytes.windows(SUBSCRIBE.len()).any(|word| word == SUBSCRIBE) {
            connection.is_subscription.store(true, Ordering::SeqCst);
        }
    };
    let mut cut = changes.clone();
    tokio::select! {
        () = copy(from_client, to_server, changes.clone(), look) => {}
        () = copy_replies(from_server, to_client, changes.clone()) => {}
        _ = cut.wait_for(|mode| *mode == ProxyMode::Cut) => {}
    }
}

async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut mode: watch::Receiver<ProxyMode>,
    look: impl Fn(&[u8]),
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        look(&buffer[..read]);
        let now = held(&mut mode).await;
        if now != ProxyMode::SwallowRequests && !write(&mut to, &buffer[..read], now).await {
            return;
        }
    }
}

async fn copy_replies(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut mode: watch::Receiver<ProxyMode>) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let now = *mode.borrow_and_update();
        if now == ProxyMode::HalfClose {
            // The shutdown fails only if the client has gone, which ends the other direction too.
            let _ = to.shutdown().await;
        }
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            _ = mode.changed() => continue,
        };
        let now = held(&mut mode).await;
        let Ok(read @ 1..) = read else { return };
        // Replies after the end of their direction are dropped.
        let is_ended = matches!(now, ProxyMode::HalfClose | ProxyMode::SwallowReplies);
        if now == ProxyMode::CutReplies || (!is_ended && !write(&mut to, &buffer[..read], now).await) {
            return;
        }
    }
}

/// Waits while the mode is [`ProxyMode::Hold`], and returns the mode after that.
async fn held(mode: &mut watch::Receiver<ProxyMode>) -> ProxyMode {
    // The sender goes last.
    mode.wait_for(|mode| *mode != ProxyMode::Hold).await.map_or(ProxyMode::Cut, |mode| *mode)
}

/// Writes, delays or drops bytes as the mode says. Returns whether the connection goes on.
async fn write(to: &mut OwnedWriteHalf, bytes: &[u8], mode: ProxyMode) -> bool {
    match mode {
        ProxyMode::Swallow => return true,
        ProxyMode::Delay(time) => sleep(time).await,
        ProxyMode::Pass
        | ProxyMode::SwallowRequests
        | ProxyMode::SwallowReplies
        | ProxyMode::Hold
        | ProxyMode::HalfClose
        | ProxyMode::CutReplies
        | ProxyMode::Cut => {}
    }
    to.write_all(bytes).await.is_ok()
}
