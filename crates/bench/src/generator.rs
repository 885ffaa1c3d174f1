//! Generates load with a thin HTTP client on a thread of its own, because it shares the cores with what it measures.
//!
//! Each connection has one request in flight. With [`Pace::Even`] a latency is counted from the time at which the
//! request was to be sent, so that a stalled server is seen; otherwise from the time at which it was sent.

mod connection;
mod pace;
mod request;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use self::connection::Connection;
pub(crate) use self::pace::Pace;
use self::pace::Ticker;
pub(crate) use self::request::Request;
use crate::latencies::Latencies;
use crate::usage::Thread;

/// The usual number of connections.
pub(crate) const CONNECTIONS: usize = 64;
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// The requests to send, and where to.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) address: SocketAddr,
    pub(crate) request: Request,
    pub(crate) connections: usize,
    pub(crate) pace: Pace,
    /// The number of the first job; the others have the next ones.
    pub(crate) first: usize,
}

pub(crate) struct LoadResult {
    /// The number of accepted jobs.
    pub(crate) jobs: usize,
    /// The time from the first request to the last response.
    pub(crate) seconds: f64,
    pub(crate) latencies: Latencies,
    /// The CPU time of the generator itself.
    pub(crate) cpu_seconds: f64,
}

impl LoadResult {
    /// Accepted jobs per second.
    pub(crate) fn rate(&self) -> f64 {
        self.jobs as f64 / self.seconds
    }
}

/// Sends a load and waits for all responses. Panics when a request is refused or not answered within a minute.
pub(crate) async fn generate(load: Load) -> LoadResult {
    let (sender, result) = oneshot::channel();
    let thread = thread::Builder::new().name("bench-load".to_owned()).spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let thread = Thread::this();
        let mut sent = runtime.expect("a runtime can be built").block_on(drive(load));
        sent.cpu_seconds = thread.cpu_seconds();
        // The send fails if the run was given up.
        let _ = sender.send(sent);
    });
    thread.expect("a thread can be started");
    result.await.expect("the generator ended well")
}

/// The state that all connections share.
struct Shared {
    load: Load,
    next: AtomicUsize,
    started: Instant,
    ticker: Ticker,
}

async fn drive(load: Load) -> LoadResult {
    let mut connections = Vec::new();
    for _ in 0..load.connections {
        connections.push(Connection::open(load.address).await.expect("the server takes connections"));
    }
    let started = Instant::now();
    let ticker = Ticker::start(load.pace, started, load.connections);
    let shared = Arc::new(Shared { load, next: AtomicUsize::new(0), started, ticker });
    let mut running = JoinSet::new();
    for connection in connections {
        running.spawn(Arc::clone(&shared).converse(connection));
    }
    let mut sent = LoadResult { jobs: 0, seconds: 0.0, latencies: Latencies::new(), cpu_seconds: 0.0 };
    while let Some(ended) = running.join_next().await {
        let (jobs, latencies) = ended.unwrap_or_else(|error| panic!("a connection failed: {error}"));
        sent.jobs += jobs;
        sent.latencies.add(&latencies);
    }
    sent.seconds = shared.started.elapsed().as_secs_f64();
    sent
}

impl Shared {
    /// Sends requests on a connection one after the other until the load ends. Returns the number of jobs and latencies.
    async fn converse(self: Arc<Self>, mut connection: Connection) -> (usize, Latencies) {
        let mut request = self.load.request.clone();
        let (mut jobs, mut latencies) = (0, Latencies::new());
        loop {
            self.ticker.next().await;
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(since) = self.load.pace.send_at(number, self.started, Instant::now()) else {
                return (jobs, latencies);
            };
            request.number(self.load.first + number * request.jobs());
            let answer = timeout(RESPONSE_TIMEOUT, connection.exchange(request.bytes())).await;
            let answer = answer.expect("an answer within a minute").expect("the connection holds");
            assert!(request.accepted_by(answer), "refused: {}", answer.text());
            latencies.record(since.elapsed());
            jobs += request.jobs();
        }
    }
}
