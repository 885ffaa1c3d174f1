//! An HTTP receiver of deliveries that answers by script and records what arrives.
//!
//! It implements HTTP/1.1 itself, so that it can record the time at which a head is complete, and misbehave: hang,
//! close the connection without a response, send garbage. Scripts are in `answer`, connections in `serve`.

mod answer;
mod recorder;
mod serve;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use self::answer::{Answer, Script};
use self::recorder::Recorder;
use crate::history::History;
use crate::time::eventually;

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The time at which its head was complete, before its body was read.
    pub at: Timestamp,
    pub method: String,
    /// The request target: path and query.
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Arrival {
    /// The value of a header; `None` when it is absent or not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The header `ringback-job-id`; empty when absent.
    pub fn job_id(&self) -> &str {
        self.header("ringback-job-id").unwrap_or_default()
    }

    pub fn attempt(&self) -> Option<u64> {
        self.header("ringback-attempt")?.parse().ok()
    }

    /// The time in `ringback-due-at`, at which this attempt was due; `None` when absent or not a time.
    pub fn due_at(&self) -> Option<Timestamp> {
        self.header("ringback-due-at")?.parse().ok()
    }
}

/// A running receiver. Dropping it closes its connections.
pub struct Sink {
    address: SocketAddr,
    shared: Arc<Shared>,
    // Ends the listener and with it every connection.
    _listener: JoinSet<()>,
}

/// Chooses an answer by the path of a request.
type Choose = Box<dyn Fn(&str) -> Answer + Send + Sync>;

/// The state shared by the connections and the test.
struct Shared {
    detail: Detail,
    choose: Option<Choose>,
    recorder: Option<Recorder>,
    seen: AtomicUsize,
    hung_up: AtomicUsize,
    arrivals: Mutex<Vec<Arrival>>,
    counts: Mutex<HashMap<String, u32>>,
    scripts: Mutex<Scripts>,
    // Counts releases; held requests wait until it changes.
    releases: watch::Sender<u64>,
}

/// How much is recorded of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    Everything,
    CountById,
    /// Only what a history has of it.
    History,
}

/// The scripts: that of the job counts, else that of the path, else the default.
struct Scripts {
    by_job: HashMap<String, Script>,
    by_path: HashMap<String, Script>,
    default: Script,
}

impl Sink {
    /// Starts a receiver that records every arrival and answers 200 unless a script says otherwise.
    pub async fn start() -> Self {
        Self::listen(Detail::Everything, None, None).await
    }

    /// Starts a receiver that also writes what arrives, and what it answers, into a history.
    pub async fn recorded(history: &History) -> Self {
        Self::listen(Detail::Everything, Some(history.clone()), None).await
    }

    /// Starts a receiver that writes into a history, keeps no arrivals or counts itself, and answers each request with
    /// what `choose` returns for its path.
    pub async fn recorded_only(
        history: &History,
        choose: impl Fn(&str) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::listen(Detail::History, Some(history.clone()), Some(Box::new(choose))).await
    }

    /// Starts a receiver for high load, which keeps no arrivals but counts them by `ringback-job-id`.
    pub async fn counting() -> Self {
        Self::listen(Detail::CountById, None, None).await
    }

    async fn listen(detail: Detail, history: Option<History>, choose: Option<Choose>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let scripts = Scripts {
            by_job: HashMap::new(),
            by_path: HashMap::new(),
            default: Script::always(Answer::status(200)),
        };
        let shared = Arc::new(Shared {
            detail,
            choose,
            recorder: history.map(|history| Recorder { history }),
            seen: AtomicUsize::new(0),
            hung_up: AtomicUsize::new(0),
            arrivals: Mutex::default(),
            counts: Mutex::default(),
            scripts: Mutex::new(scripts),
            releases: watch::Sender::new(0),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(serve::accept(listener, Arc::clone(&shared)));
        Self { address, shared, _listener: tasks }
    }

    /// `http://127.0.0.1:<port><path>`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sets the script for requests whose job and path have no script.
    pub fn answer(&self, script: impl Into<Script>) {
        lock(&self.shared.scripts).default = script.into();
    }

    /// Sets the script of requests to a path.
    pub fn answer_path(&self, path: &str, script: impl Into<Script>) {
        lock(&self.shared.scripts).by_path.insert(path.to_owned(), script.into());
    }

    /// Sets the script of a job's attempts, by its `ringback-job-id`.
    pub fn answer_job(&self, id: &str, script: impl Into<Script>) {
        lock(&self.shared.scripts).by_job.insert(id.to_owned(), script.into());
    }

    /// Answers all requests that are held now. Later ones are held again.
    pub fn release(&self) {
        self.shared.releases.send_modify(|count| *count += 1);
    }

    /// The number of requests that have arrived.
    pub fn seen(&self) -> usize {
        self.shared.seen.load(Ordering::Acquire)
    }

    /// The number of callers that went away while their request was held or delayed.
    pub fn hung_up(&self) -> usize {
        self.shared.hung_up.load(Ordering::Acquire)
    }

    /// All arrivals, in order of completion; empty on a receiver that only counts or writes a history.
    pub fn arrivals(&self) -> Vec<Arrival> {
        lock(&self.shared.arrivals).clone()
    }

    pub fn arrivals_of(&self, id: &str) -> Vec<Arrival> {
        lock(&self.shared.arrivals).iter().filter(|arrival| arrival.job_id() == id).cloned().collect()
    }

    /// The number of arrivals of each job, by id; empty on a receiver that only writes a history.
    pub fn counts(&self) -> HashMap<String, u32> {
        lock(&self.shared.counts).clone()
    }

    /// Waits for at least `wanted` requests and returns all arrivals. Panics after `within`.
    pub async fn wait_for(&self, wanted: usize, within: Duration) -> Vec<Arrival> {
        eventually(within, &format!("{wanted} requests arrive"), async || {
            let seen = self.seen();
            if seen >= wanted { Ok(()) } else { Err(format!("{seen} have arrived")) }
        })
        .await;
        self.arrivals()
    }

    /// Waits for at least `wanted` requests of one job and returns them. Panics after `within`.
    pub async fn wait_for_job(&self, id: &str, wanted: usize, within: Duration) -> Vec<Arrival> {
        self.wait_for_jobs(&[id], wanted, within).await;
        self.arrivals_of(id)
    }

    /// Waits until each of these jobs has arrived at least `wanted` times. Panics after `within`.
    pub async fn wait_for_jobs<S: AsRef<str>>(&self, ids: &[S], wanted: usize, within: Duration) {
        eventually(within, &format!("{wanted} arrivals of each of {} jobs", ids.len()), async || {
            let counts = lock(&self.shared.counts);
            let count = |id: &str| counts.get(id).map_or(0, |&count| count as usize);
            let missing: Vec<&str> = ids.iter().map(S::as_ref).filter(|id| count(id) < wanted).collect();
            match missing.first() {
                None => Ok(()),
                Some(first) => Err(format!("{} are missing, such as {first}", missing.len())),
            }
        })
        .await;
    }
}

impl Shared {
    /// Counts and records a request, as far as the detail of the receiver says, and returns the answer for it.
    fn arrived(&self, arrival: Arrival) -> Answer {
        let answer = match &self.choose {
            Some(choose) => choose(&arrival.path),
            None => lock(&self.scripts).next(arrival.job_id(), &arrival.path),
        };
        if self.detail != Detail::History {
            *lock(&self.counts).entry(arrival.job_id().to_owned()).or_insert(0) += 1;
        }
        if self.detail == Detail::Everything {
            lock(&self.arrivals).push(arrival);
        }
        self.seen.fetch_add(1, Ordering::AcqRel);
        answer
    }
}

impl Scripts {
    fn next(&mut self, id: &str, path: &str) -> Answer {
        let script = match self.by_job.get_mut(id) {
            Some(script) => script,
            None => self.by_path.get_mut(path).unwrap_or(&mut self.default),
        };
        script.next()
    }
}

/// Locks the state, also after a panic with the lock held, because nothing is left half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
