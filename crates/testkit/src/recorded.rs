//! Clients that write a [`History`]: their calls with the answers, the faults of the run, and what is left at the end.
//! [`Sink::recorded`](crate::Sink::recorded) is a receiver that writes into the same history.

mod calls;
mod ending;
mod epochs;

use std::borrow::Cow;
use std::fs::File;
use std::io::BufReader;
use std::time::Duration;

use reqwest::Client;
use serde_json::Value;
use tempfile::TempDir;

pub use self::epochs::write_epoch;
use crate::attempts;
use crate::history::{
    ClockReading, Digest, Entry, Fault, FaultClass, Healed, History, Policy, Report, Start, check,
};
use crate::network::http_client;
use crate::redis::RedisServer;

/// A run whose clients write a history.
pub struct Recorded {
    name: String,
    history: History,
    http: Client,
    dir: TempDir,
}

/// The bounds of a run, as its history begins with them.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// How long after its due time, or the end of a fault, a job is delivered at the latest; not checked without.
    pub live: Option<Duration>,
    /// The retry policies. That of number 0 counts for jobs that bring none.
    pub policies: Vec<Policy>,
}

/// A job to submit.
#[derive(Clone, Debug, Default)]
pub struct RecordedJob {
    pub topic: String,
    /// Its id; with an empty one the server chooses it.
    pub id: String,
    /// Where it is delivered; `None` for a pull job.
    pub url: Option<String>,
    /// Its body as JSON text, which has to arrive as it is.
    pub body: String,
    /// Its delay in milliseconds.
    pub delay: Option<u64>,
    /// The number of its retry policy, and the policy as the API takes it.
    pub policy: Option<(u32, Value)>,
    /// The deadline of an attempt in milliseconds.
    pub timeout: Option<u32>,
    pub key: Option<String>,
}

impl Default for Bounds {
    /// No bound for deliveries, and the retry policy of a stack that sets no other.
    fn default() -> Self {
        let policy = Policy { p: 0, delays: vec![100, 200, 400], max: 4, jitter: 0.1 };
        Self { live: None, policies: vec![policy] }
    }
}

impl RecordedJob {
    pub fn new(topic: &str, id: &str, url: Option<String>) -> Self {
        let body = format!("{{ \"id\" : \"{id}\",\"n\":1.50 }}");
        Self { topic: topic.to_owned(), id: id.to_owned(), url, body, ..Self::default() }
    }

    /// The job as `topic/id`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.topic, self.id)
    }

    /// The JSON text of the submit. The body goes in unchanged.
    fn text(&self) -> String {
        let mut fields = serde_json::Map::new();
        fields.insert("topic".to_owned(), self.topic.clone().into());
        let optional = [
            ("id", Some(self.id.clone()).filter(|id| !id.is_empty()).map(Value::from)),
            ("url", self.url.clone().map(Value::from)),
            ("delay", self.delay.map(|delay| format!("{delay}ms").into())),
            ("retry", self.policy.clone().map(|(_, policy)| policy)),
            ("timeout", self.timeout.map(|timeout| format!("{timeout}ms").into())),
        ];
        for (name, value) in optional {
            fields.extend(value.map(|value| (name.to_owned(), value)));
        }
        let rest = Value::Object(fields).to_string();
        format!("{},\"body\":{}}}", rest.trim_end_matches('}'), self.body)
    }
}

impl Recorded {
    /// Begins a history with the bounds of the run. Panics if [`Self::assert_clean`] failed in an earlier attempt of
    /// the test.
    pub fn start(name: &str, bounds: &Bounds) -> Self {
        attempts::fail_if_found(name);
        let dir = tempfile::Builder::new().prefix("ringback-history-").tempdir().expect("a temp directory");
        let history = History::create(&dir.path().join("history.jsonl")).expect("a new file");
        history.write(&Entry::Start(Start {
            t: 0,
            wall: history.wall(),
            name: Cow::Borrowed(name),
            epsilon: 2_000,
            live: bounds.live.map(|live| u64::try_from(live.as_micros()).expect("it is short")),
            timeout: 10_000,
            policy: 0,
            loss: 0,
        }));
        for policy in &bounds.policies {
            history.write(&Entry::Policy(policy.clone()));
        }
        Self { name: name.to_owned(), history, http: http_client(), dir }
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// Reads how far the clock of a server is ahead, and writes the reading.
    pub async fn read_clock(&self, server: &RedisServer) {
        let mut client = server.client().await;
        let asked = self.history.t();
        let time: (u64, u64) = redis::cmd("TIME").query_async(&mut client).await.expect("TIME");
        let (seconds, micros) = time;
        let t = self.history.t();
        let (middle, error) = (asked.midpoint(t), (t - asked) / 2 + 1);
        let ahead =
            (seconds * 1_000_000 + micros).cast_signed() - (self.history.wall() + middle).cast_signed();
        self.history.write(&Entry::Clock(ClockReading { t, store: 0, ahead, error }));
    }

    /// Writes that a fault begins. Returns the number of the fault.
    pub fn fault(&self, kind: &str, class: FaultClass) -> u64 {
        self.begin(kind, class, None)
    }

    /// Writes that a fault of one process begins. Returns the number of the fault.
    pub fn fault_of(&self, kind: &str, class: FaultClass, pid: u32) -> u64 {
        self.begin(kind, class, Some(pid))
    }

    fn begin(&self, kind: &str, class: FaultClass, pid: Option<u32>) -> u64 {
        let (t, f) = (self.history.t(), self.history.next());
        self.history.write(&Entry::Fault(Fault { t, f, kind, class, pid }));
        f
    }

    /// Writes that the fault `f` has ended.
    pub fn healed(&self, f: u64) {
        self.history.write(&Entry::Healed(Healed { t: self.history.t(), f }));
    }

    /// Checks the history as written so far. Panics if it cannot be read.
    pub fn check(&self) -> Report {
        self.history.flush();
        let file = File::open(self.dir.path().join("history.jsonl")).expect("it was created");
        check(BufReader::new(file)).unwrap_or_else(|error| panic!("the history cannot be read: {error}"))
    }

    /// Panics with `at` and the report if it has violations. Later attempts of the test then fail at [`Self::start`].
    pub fn assert_clean(&self, report: &Report, at: &str) {
        if !report.clean {
            let found: Vec<_> = report.violations.iter().map(ToString::to_string).collect();
            attempts::remember(&self.name, &found.join("\n"));
            panic!("{at}: {report}");
        }
    }

    /// Keeps the file of the history, and returns its path.
    pub fn keep(self) -> std::path::PathBuf {
        self.history.flush();
        self.dir.keep().join("history.jsonl")
    }
}

/// The digest of a job without headers.
pub(crate) fn no_headers() -> Digest {
    Digest::of_headers([])
}
