//! A simulation: the store in memory, the roles on it, the receiver, and time, which leaps while all jobs wait.

mod client;
mod role;

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use ringback_core::clock::{Clock as _, Timestamp};
use ringback_core::job::{Job, JobKey, TenantScope};
use ringback_core::state::State;
use ringback_core::store_types::{Filter, Options};
use ringback_store::{Memory, Store, settings};
use tokio::time::{advance, sleep};

pub(crate) use self::role::Kind;
use self::role::Role;
use crate::calls::{Line, RoleCalls};
use crate::clock::VirtualClock;
use crate::history::History;
use crate::receiver::ScriptedReceiver;

/// How long the store keeps ended jobs: longer than any simulation.
const KEEP: Duration = Duration::from_secs(100 * 365 * 86_400);
/// How long before a job is due a leap of time ends, so that the timers of all roles have run.
const LEAD: Duration = Duration::from_millis(100);
/// The lock of a carrier, which is also how long a bulk operation is claimed.
const LOCK_TTL: Duration = Duration::from_secs(5);
/// How much longer a lease is than its attempt.
const LEASE_MARGIN: Duration = Duration::from_secs(10);
/// How long a simulation waits for ready and reserved jobs before it reads them again, at first and at most.
const BUSY: Duration = Duration::from_millis(10);
const LONGEST_BUSY: Duration = Duration::from_secs(2);
/// How many jobs one call reads.
const PAGE: usize = 100;
/// After this time, a job that has not ended counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(5_000 * 86_400);

pub(crate) struct Simulation {
    pub(crate) rng: StdRng,
    pub(crate) clock: VirtualClock,
    pub(crate) history: History,
    pub(crate) receiver: Arc<ScriptedReceiver>,
    /// Reads jobs for the checks; its calls have no faults.
    pub(crate) store: Store,
    /// Every job that a client has submitted.
    pub(crate) submitted: Vec<JobKey>,
    memory: Memory,
    options: Options,
    roles: Vec<Role>,
}

impl Simulation {
    pub(crate) fn new(seed: u64) -> Self {
        let clock = VirtualClock::start();
        let history = History::new(clock);
        let options = Options {
            shards: 2,
            keep_done: KEEP,
            keep_dead: KEEP,
            keep_free_mib: 0,
            ..settings::defaults(Duration::from_millis(1500))
        };
        let memory = Memory::inline(clock);
        Self {
            rng: StdRng::seed_from_u64(seed),
            clock,
            receiver: Arc::new(ScriptedReceiver::new(history.clone(), clock)),
            history,
            store: Store::in_memory(&memory, options.clone()),
            submitted: Vec::new(),
            memory,
            options,
            roles: Vec::new(),
        }
    }

    /// Prepares the store, then starts an API and this many carriers and notifiers.
    pub(crate) async fn start(&mut self, carriers: usize, notifiers: usize) {
        self.store.prepare().await.expect("the store is fit");
        let workers = [(Kind::Carrier, carriers), (Kind::Notifier, notifiers)];
        let workers = workers.into_iter().flat_map(|(kind, count)| vec![kind; count]);
        for kind in [Kind::Api].into_iter().chain(workers) {
            let calls = Arc::new(RoleCalls::new(self.rng.random()));
            let mut role = Role::new(kind, calls);
            role.start(self.parts()).await;
            self.roles.push(role);
        }
        // The roles read the policies before they work.
        sleep(Duration::from_millis(50)).await;
    }

    /// How many roles there are. The first one is the API.
    pub(crate) fn roles(&self) -> usize {
        self.roles.len()
    }

    pub(crate) fn kind(&self, role: usize) -> Kind {
        self.roles[role].kind
    }

    /// Ends a role in the middle of what it does, as `kill -9` would.
    pub(crate) fn crash(&mut self, role: usize) {
        self.roles[role].crash();
    }

    /// Ends a role in an orderly way, as a SIGTERM would.
    pub(crate) async fn shut_down(&mut self, role: usize) {
        self.roles[role].shut_down().await;
    }

    /// Starts a role that has ended.
    pub(crate) async fn restart(&mut self, role: usize) {
        let parts = self.parts();
        self.roles[role].start(parts).await;
    }

    /// Sets the quality of a role's connection to the store.
    pub(crate) fn line(&self, role: usize, line: Line) {
        self.roles[role].calls.set(line);
    }

    fn parts(&self) -> role::Parts {
        role::Parts {
            memory: self.memory.clone(),
            options: self.options.clone(),
            clock: self.clock,
            receiver: Arc::clone(&self.receiver),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Reads every job that a client submitted. Leaves out those that the store does not know.
    pub(crate) async fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for key in &self.submitted {
            jobs.extend(self.store.get(key).await.expect("a look at a job"));
        }
        jobs
    }

    /// Runs for this time. While all jobs wait, time leaps to shortly before the next due time, as after a suspension.
    pub(crate) async fn run_for(&self, time: Duration) {
        self.run_until(self.now().plus(time)).await;
    }

    pub(crate) async fn run_until(&self, end: Timestamp) {
        let mut busy = BUSY;
        while self.now() < end {
            let next = self.next().await;
            self.pass(&mut busy, next.unwrap_or(end).min(end), end).await;
        }
    }

    /// Runs until every job has ended and no schedule has a next time. Panics after [`STUCK_AFTER`].
    pub(crate) async fn run_to_the_end(&self) {
        let (latest, mut busy) = (self.now().plus(STUCK_AFTER), BUSY);
        loop {
            let Some(next) = self.next().await else { return };
            assert!(self.now() < latest, "stuck: {:?}\n{}", self.jobs().await, self.history.log());
            self.pass(&mut busy, next, latest).await;
        }
    }

    /// Runs until a job or schedule is due, or all jobs have ended.
    pub(crate) async fn run_to_the_next(&self) {
        while let Some(next) = self.next().await
            && next > self.now()
        {
            self.pass(&mut BUSY.clone(), next, next).await;
        }
    }

    /// Returns when the next job or schedule needs the roles; `None` if all jobs have ended and no schedule has a time.
    async fn next(&self) -> Option<Timestamp> {
        let (schedules, _) = self.store.schedules(&TenantScope::All, None, PAGE).await.expect("schedules");
        let (mut next, mut from) = (schedules.iter().filter_map(|schedule| schedule.next).min(), None);
        loop {
            let page = self.store.page(&Filter::default(), from, PAGE).await.expect("a page");
            let due = page.items.iter().filter_map(|job| self.next_due(job));
            next = due.chain(next).min();
            from = page.next;
            if from.is_none() {
                return next;
            }
        }
    }

    /// Returns when a job needs the roles: now if it is ready or reserved, `None` if it has ended.
    fn next_due(&self, job: &Job) -> Option<Timestamp> {
        match job.state {
            State::Delayed => Some(job.due),
            State::Ready | State::Reserved => Some(self.now()),
            State::Done | State::Dead | State::Cancelled => None,
        }
    }

    /// Lets time leap to [`LEAD`] before `next`. If `next` is nearer than twice that, sleeps until after it, at most
    /// until `end`: 10 ms longer, or, if `next` is now, for twice as long as in the last call.
    async fn pass(&self, busy: &mut Duration, next: Timestamp, end: Timestamp) {
        let (wait, now) = (next.since(self.now()), self.now());
        if wait > 2 * LEAD {
            advance(wait - LEAD).await;
        } else {
            *busy = if wait.is_zero() { (2 * *busy).min(LONGEST_BUSY) } else { BUSY };
            sleep((wait + *busy).min(end.since(now))).await;
        }
    }

    /// Shuts all roles down.
    pub(crate) async fn end(&mut self) {
        for role in &mut self.roles {
            role.shut_down().await;
        }
    }
}

/// Whether nothing will happen to a job any more.
pub(crate) fn has_ended(job: &Job) -> bool {
    matches!(job.state, State::Done | State::Dead | State::Cancelled)
}
