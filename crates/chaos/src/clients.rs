//! The clients of a run: they submit, cancel, move and reserve jobs until the load ends, and record calls and answers.

mod api;
mod cancel;
mod pull;
mod submit;

use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use ringback_testkit::history::History;
use tokio::task::JoinSet;
use tokio::time::Instant;

pub(crate) use self::api::{Api, CallOutcome};

/// How many clients of each kind there are.
const SUBMITTERS: u64 = 6;
const CANCELLERS: u64 = 3;
const CONSUMERS: u64 = 4;

/// The numbers of retry policies: that of the installation, and those that jobs bring.
pub(crate) const DEFAULT_POLICY: u32 = 1;
pub(crate) const SHORT_POLICY: u32 = 2;
/// The deadline of an attempt, in ms; each job with a URL brings it.
pub(crate) const TIMEOUT: u32 = 1_000;

/// The state that all clients share.
pub(crate) struct Clients {
    pub(crate) api: Api,
    pub(crate) history: History,
    pub(crate) receiver: String,
    pub(crate) until: Instant,
    pub(crate) rate: u64,
    known: Mutex<Vec<SubmittedJob>>,
}

/// A submitted job that exists or may exist.
#[derive(Clone, Debug)]
pub(crate) struct SubmittedJob {
    pub(crate) topic: &'static str,
    pub(crate) id: String,
    /// When it is due, in ms since 1970, if that was answered.
    pub(crate) due: Option<u64>,
}

impl SubmittedJob {
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.topic, self.id)
    }
}

impl Clients {
    pub(crate) fn new(api: Api, history: History, receiver: String, until: Instant, rate: u64) -> Arc<Self> {
        Arc::new(Self { api, history, receiver, until, rate, known: Mutex::default() })
    }

    /// Starts the clients that submit, cancel and move. They end when the load does.
    pub(crate) fn start(self: &Arc<Self>, seed: u64) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        for number in 0..SUBMITTERS {
            tasks.spawn(submit::run(Arc::clone(self), number, rng(seed, 1, number)));
        }
        for number in 0..CANCELLERS {
            tasks.spawn(cancel::run(Arc::clone(self), rng(seed, 2, number)));
        }
        tasks
    }

    /// Starts the consumers, which go on until the returned set is dropped.
    pub(crate) fn start_consumers(self: &Arc<Self>, seed: u64) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        for number in 0..CONSUMERS {
            tasks.spawn(pull::run(Arc::clone(self), rng(seed, 3, number)));
        }
        tasks
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// All jobs whose id is known, because the client chose it or the API answered it.
    pub(crate) fn known(&self) -> Vec<SubmittedJob> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, known: SubmittedJob) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).push(known);
    }

    /// One of the 60 latest known jobs, at random; `None` if there are fewer than the draw needs.
    fn recent(&self, rng: &mut StdRng) -> Option<SubmittedJob> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let back = rng.random_range(0..60_usize);
        known.len().checked_sub(back + 1).map(|place| known[place].clone())
    }
}

/// A random generator for one client: different for each kind and number.
fn rng(seed: u64, kind: u64, number: u64) -> StdRng {
    StdRng::seed_from_u64(seed ^ (kind << 48 | number << 40))
}
