//! The load: a thin HTTP client on a thread of its own, because it shares the cores with what it measures.
//!
//! Each connection has one request under way. With a pace of its own ([`Pace::Even`]) a latency is counted from
//! the moment the request was meant to be sent, so that a server that stalls is seen; otherwise from when it was
//! sent. Connections are in `connection`, requests in `request`, moments in `pace`.

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
pub(super) use self::pace::Pace;
use self::pace::Turns;
pub(super) use self::request::Request;
use super::latencies::Latencies;
use super::usage::Thread;

/// How many connections there are unless something else is wanted.
pub(super) const CONNECTIONS: usize = 64;
/// No answer takes longer unless the server hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is to be sent, and where to.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) address: SocketAddr,
    pub(super) request: Request,
    pub(super) connections: usize,
    pub(super) pace: Pace,
    /// The number of the first job; each further one has the next.
    pub(super) first: usize,
}

/// What came of it.
pub(super) struct Sent {
    /// How many jobs were accepted.
    pub(super) jobs: usize,
    /// From the first request to the last answer.
    pub(super) seconds: f64,
    pub(super) latencies: Latencies,
    /// The CPU time of the generator itself.
    pub(super) cpu_seconds: f64,
}

impl Sent {
    /// Jobs per second.
    pub(super) fn rate(&self) -> f64 {
        self.jobs as f64 / self.seconds
    }
}

/// Sends a load and waits until all is answered.
///
/// # Panics
/// When a job is refused, or no answer comes.
pub(super) async fn generate(load: Load) -> Sent {
    let (tell, told) = oneshot::channel();
    let thread = thread::Builder::new().name("bench-load".to_owned()).spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let thread = Thread::this();
        let mut sent = runtime.expect("a runtime can be built").block_on(drive(load));
        sent.cpu_seconds = thread.cpu_seconds();
        // Nobody waits any more when the run was given up.
        let _ = tell.send(sent);
    });
    thread.expect("a thread can be started");
    told.await.expect("the generator ended well")
}

/// What all connections share.
struct Shared {
    load: Load,
    next: AtomicUsize,
    started: Instant,
    turns: Turns,
}

async fn drive(load: Load) -> Sent {
    let mut lines = Vec::new();
    for _ in 0..load.connections {
        lines.push(Connection::open(load.address).await.expect("the server takes connections"));
    }
    let started = Instant::now();
    let turns = Turns::start(load.pace, started, load.connections);
    let shared = Arc::new(Shared { load, next: AtomicUsize::new(0), started, turns });
    let mut running = JoinSet::new();
    for line in lines {
        running.spawn(Arc::clone(&shared).converse(line));
    }
    let mut sent = Sent { jobs: 0, seconds: 0.0, latencies: Latencies::new(), cpu_seconds: 0.0 };
    while let Some(ended) = running.join_next().await {
        let (jobs, latencies) = ended.unwrap_or_else(|error| panic!("a connection failed: {error}"));
        sent.jobs += jobs;
        sent.latencies.add(&latencies);
    }
    sent.seconds = shared.started.elapsed().as_secs_f64();
    sent
}

impl Shared {
    /// One request after the other, until none is left.
    async fn converse(self: Arc<Self>, mut line: Connection) -> (usize, Latencies) {
        let mut request = self.load.request.clone();
        let (mut jobs, mut latencies) = (0, Latencies::new());
        loop {
            self.turns.next().await;
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(turn) = self.load.pace.turn(number, self.started, Instant::now()) else {
                return (jobs, latencies);
            };
            request.number(self.load.first + number * request.jobs());
            let answer = timeout(PATIENCE, line.exchange(request.bytes())).await;
            let answer = answer.expect("an answer within a minute").expect("the connection holds");
            assert!(request.accepted_by(answer), "refused: {}", answer.text());
            latencies.record(turn.elapsed());
            jobs += request.jobs();
        }
    }
}
