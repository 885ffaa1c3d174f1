//! What every request shares: the store, the clock, the source of ids, the lines of submits and
//! imports, the room for bodies, the turns at what is large, and what is counted.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::metrics::Meter;
use rand::Rng as _;
use rand::rngs::StdRng;
use ringback_core::clock::{Clock, Timestamp};
use ringback_core::contract::{PullOutcome, RetryContext, Token};
use ringback_core::job::{Due, ImportJob, JobId, NewJob, Trace};
use ringback_core::wire::{Defaults, Problem, parse_import, parse_job_by, parse_reschedule};
use ringback_service::{Shutdown, Tasks};
use ringback_store::{PoliciesUnknown, PolicyBook, Retries, Store};
use tokio::sync::Semaphore;
use ulid::Ulid;

use crate::events::Events;
use crate::extract::beside_an_id;
use crate::metrics::Metrics;
use crate::pulls::Pulls;
use crate::room::Room;
use crate::routes::stats::Cache;
use crate::submit::Lines;

/// So many batches and imports are worked on at once; others wait for their turn.
const BATCHES: usize = 16;
/// So many exports go on at once; others are refused.
pub(crate) const EXPORTS: usize = 4;
/// So many audits.
const AUDITS: usize = 1;

/// The state of the API.
pub struct Api {
    pub(crate) store: Store,
    pub(crate) submits: Lines<NewJob>,
    pub(crate) imports: Lines<ImportJob>,
    pub(crate) pulls: Pulls,
    pub(crate) events: Events,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) stats: Cache,
    pub(crate) room: Room,
    pub(crate) batches: Arc<Semaphore>,
    pub(crate) exports: Arc<Semaphore>,
    /// Those of the topics.
    pub(crate) policies: PolicyBook,
    pub(crate) audits: Semaphore,
    retries: Retries,
    clock: Arc<dyn Clock>,
    rng: Mutex<StdRng>,
}

impl Api {
    /// A state over an open store. The lines are among `tasks` and end when it is dropped,
    /// after what they have taken in; `rng` makes the ids of jobs that come without one.
    pub fn new(
        store: Store,
        retries: Retries,
        clock: Arc<dyn Clock>,
        rng: StdRng,
        meter: &Meter,
        tasks: &mut Tasks,
        shutdown: &Shutdown,
    ) -> Self {
        let metrics = Arc::new(Metrics::new(meter));
        let policies = retries.policies.clone();
        Self {
            submits: Lines::start(&store, &metrics, tasks, shutdown),
            imports: Lines::start(&store, &metrics, tasks, shutdown),
            pulls: Pulls::start(&store, policies.clone(), tasks, shutdown),
            events: Events::start(&store, &metrics, tasks, shutdown),
            room: Room::default(),
            store,
            metrics,
            stats: Cache::default(),
            batches: Arc::new(Semaphore::new(BATCHES)),
            exports: Arc::new(Semaphore::new(EXPORTS)),
            policies,
            audits: Semaphore::new(AUDITS),
            retries,
            clock,
            rng: Mutex::new(rng),
        }
    }

    /// At most so many callers listen to events at once, in place of 100.
    #[must_use]
    pub fn with_event_listeners(mut self, most: usize) -> Self {
        self.events.bound(most);
        self
    }

    /// Parses one job of a request. `id` is for a job that brings none, and for no other.
    pub(crate) fn parse(
        &self,
        json: &[u8],
        trace: Option<Trace>,
        mut id: Option<JobId>,
    ) -> Result<NewJob, Problem> {
        let now = self.clock.now();
        let policies = self.policies.all().ok();
        let make_id = &mut || id.take().unwrap_or_else(|| self.make_id(now));
        let job = parse_job_by(json, Defaults { now, make_id, trace }, policies.as_deref())?;
        if id.is_some() { Err(beside_an_id()) } else { Ok(job) }
    }

    /// Parses one line of an import.
    pub(crate) fn parse_import(&self, line: &[u8]) -> Result<ImportJob, Problem> {
        let now = self.clock.now();
        parse_import(line, Defaults { now, make_id: &mut || self.make_id(now), trace: None })
    }

    /// Parses what a reschedule says.
    pub(crate) fn parse_reschedule(&self, json: &[u8]) -> Result<Due, Problem> {
        parse_reschedule(json, self.clock.now())
    }

    /// Names one request to the store.
    pub(crate) fn token(&self) -> Token {
        let mut random = [0; 8];
        self.fill(&mut random);
        Token(random)
    }

    fn fill(&self, random: &mut [u8]) {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).fill_bytes(random);
    }

    /// What becomes of a job whose consumer has failed.
    ///
    /// # Errors
    /// While nobody can say what its topic's policy is.
    pub(crate) fn failed(
        &self,
        tries: &RetryContext,
        error: Option<String>,
    ) -> Result<PullOutcome, PoliciesUnknown> {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        self.retries.failed(tries, error, &mut *rng)
    }

    fn make_id(&self, now: Timestamp) -> JobId {
        let mut random = [0; 16];
        self.fill(&mut random);
        let id = Ulid::from_parts(now.as_millis(), u128::from_be_bytes(random));
        id.to_string().parse().expect("a ULID lies within the alphabet of ids")
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("store", &self.store.kind()).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use opentelemetry::metrics::MeterProvider as _;
    use opentelemetry::metrics::noop::NoopMeterProvider;
    use rand::SeedableRng as _;
    use ringback_core::clock::ManualClock;
    use ringback_core::retry::RetryPolicy;
    use ringback_store::settings;

    use super::*;

    /// A state whose store was never reached, so that every call of it is refused at once.
    pub(crate) fn unprepared() -> Arc<Api> {
        let options = settings::defaults(Duration::from_millis(100));
        let clock = ManualClock::at(Timestamp::from_millis(1_763_600_000_000));
        let meter = NoopMeterProvider::new().meter("test");
        let store = Store::open(options).unwrap();
        let rng = StdRng::seed_from_u64(1);
        let (mut tasks, shutdown) = (Tasks::new(), Shutdown::new(Duration::from_secs(30)));
        let retries = Retries { policies: PolicyBook::default(), default: RetryPolicy::none() };
        let api = Api::new(store, retries, Arc::new(clock), rng, &meter, &mut tasks, &shutdown);
        // Dropped they would end at once; so they end with the test.
        std::mem::forget(tasks);
        Arc::new(api)
    }

    #[tokio::test]
    async fn ids_that_are_made_differ_and_sort_by_time() {
        let api = unprepared();
        let (early, late) = (Timestamp::from_millis(1_000), Timestamp::from_millis(2_000));
        let (a, b, c) = (api.make_id(early), api.make_id(early), api.make_id(late));
        assert_ne!(a, b);
        assert!(a < c && b < c);
        assert_eq!(a.as_str().len(), 26);
    }
}
