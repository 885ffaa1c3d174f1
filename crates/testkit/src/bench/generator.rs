//! The load: a thin HTTP client on a thread of its own, because it shares the cores with what it measures.
//!
//! Each connection has one request under way. With a pace of its own ([`Pace::Even`]) a latency is counted from
//! the moment the request was meant to be sent, so that a server that stalls is seen; otherwise from when it was
//! sent. Connections are in `connection`, requests in `request`.

mod connection;
mod request;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use self::connection::Connection;
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

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pace {
    /// As soon as the one before it is answered, for so long.
    For(Duration),
    /// As soon as the one before it is answered, so many of them.
    Count(usize),
    /// So many a second, whatever the answers do, and so many of them.
    Even { rate: f64, requests: usize },
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

impl Pace {
    /// When the request of this number is meant to be sent; none when there is none of it.
    fn turn(self, number: usize, started: Instant, now: Instant) -> Option<Instant> {
        match self {
            Self::For(time) => (now < started + time).then_some(now),
            Self::Count(requests) => (number < requests).then_some(now),
            Self::Even { rate, requests } => {
                (number < requests).then(|| started + Duration::from_secs_f64(number as f64 / rate))
            }
        }
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
}

async fn drive(load: Load) -> Sent {
    let mut lines = Vec::new();
    for _ in 0..load.connections {
        lines.push(Connection::open(load.address).await.expect("the server takes connections"));
    }
    let shared = Arc::new(Shared { load, next: AtomicUsize::new(0), started: Instant::now() });
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
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let now = Instant::now();
            let Some(turn) = self.load.pace.turn(number, self.started, now) else {
                return (jobs, latencies);
            };
            if turn > now {
                sleep_until(turn).await;
            }
            request.number(self.load.first + number * request.jobs());
            let answer = tokio::time::timeout(PATIENCE, line.exchange(request.bytes())).await;
            let answer = answer.expect("an answer within a minute").expect("the connection holds");
            assert!(request.accepted_by(answer), "refused: {}", answer.text());
            latencies.record(turn.elapsed());
            jobs += request.jobs();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_pace_names_the_moments_whatever_the_time_is() {
        let started = Instant::now();
        let pace = Pace::Even { rate: 1000.0, requests: 5 };
        for late in [0, 700] {
            let now = started + Duration::from_millis(late);
            let turns: Vec<_> = (0..6).map(|n| pace.turn(n, started, now)).collect();
            let wanted: Vec<_> =
                (0..5).map(|ms| Some(started + Duration::from_millis(ms))).chain([None]).collect();
            assert_eq!(turns, wanted);
        }
    }

    #[test]
    fn without_a_pace_it_is_sent_at_once_until_the_end() {
        let started = Instant::now();
        let later = started + Duration::from_secs(2);
        assert_eq!(Pace::Count(3).turn(2, started, later), Some(later));
        assert_eq!(Pace::Count(3).turn(3, started, later), None);
        assert_eq!(Pace::For(Duration::from_secs(3)).turn(99, started, later), Some(later));
        assert_eq!(Pace::For(Duration::from_secs(2)).turn(99, started, later), None);
    }
}
