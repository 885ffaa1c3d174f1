//! The fixture of a case: a prepared store of its own, one of its shards, and a carrier's epoch for it. Its methods
//! are calls of the store with the defaults that most cases need.

mod pull_jobs;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ringback_core::clock::{Clock, SystemClock, Timestamp};
use ringback_core::job::{IfExists, Job, JobKey, NewJob};
use ringback_core::store_types::StoreTls;
use ringback_core::store_types::{
    Cancelled, Epoch, Lease, Options, Pass, PassLimits, Reserve, Reserved, SettleResult, Shard, Stats,
    SubmitResult, Submitted, Token, Waiting, Wake,
};
use ringback_core::topic_policy::Logging;
use ringback_store::{Memory, Store, Wakes};
use ringback_testkit::{RedisCluster, RedisSentinel, RedisServer};
use tempfile::TempDir;
use tokio::time::{sleep, sleep_until};

use super::audit;
use super::job_builders::{BRIEF, LONG, TOPIC, With, new_job};
use crate::prelude::*;
use crate::redis_layout;

/// The limit for what happens at once; generous, for a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);
/// How long the carrier of a bench will sleep at most.
pub(crate) const FLOOR: Duration = Duration::from_secs(3600);
/// The caller's name in reserves.
const CALLER: &str = "notifier";
/// Few, so that names of a shard are found quickly; one for each master of a cluster.
const SHARDS: u16 = 3;

/// What the store under test runs on.
pub(crate) enum Server {
    Redis(RedisServer),
    Cluster(RedisCluster),
    Sentinel(RedisSentinel),
    /// Embedded stores in files of a directory.
    Disk(TempDir),
    /// Embedded stores in memory, by prefix.
    Memory(Mutex<HashMap<String, Memory>>),
}

/// A prepared store, and one of its shards.
pub(crate) struct Workbench {
    server: Arc<Server>,
    options: Options,
    store: Store,
    shard: Shard,
    epoch: Epoch,
    sequence: AtomicU64,
}

/// A pass that was not fenced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) moved: u32,
    pub(crate) other: u32,
    pub(crate) next_due: Option<Duration>,
    pub(crate) next_lease: Option<Duration>,
    pub(crate) next_dead: Option<Duration>,
    pub(crate) next_notice: Option<Duration>,
    pub(crate) next_firing: Option<Duration>,
}

impl Workbench {
    /// A bench in an installation of its own, whose prefix and shard follow from the case's name.
    pub(crate) async fn new(server: Arc<Server>, name: &str) -> Self {
        let sum = name.bytes().fold(0_u32, |sum, b| sum.wrapping_mul(31).wrapping_add(u32::from(b)));
        let options = Options {
            url: server.url(),
            tls: StoreTls::default(),
            prefix: format!("{:.20}-{sum:08x}", name.replace('_', "-")),
            shards: SHARDS,
            keep_done: Duration::from_secs(3600),
            keep_done_mib: 16,
            keep_dead: Duration::from_secs(3600),
            attempts: Logging::Failed,
            keep_attempts: Duration::from_secs(3600),
            keep_attempts_mib: 64,
            keep_free_mib: 0,
            durability: None,
            call_timeout: Duration::from_secs(10),
        };
        Self::open(server, options, sum as usize % usize::from(SHARDS)).await
    }

    async fn open(server: Arc<Server>, options: Options, shard: usize) -> Self {
        let store = server.open(options.clone());
        store.prepare().await.expect("the store is fit");
        let shard = store.shards().nth(shard).expect("the shard is one of them");
        let epoch = store.take_shard(shard, "carrier").await.expect("claim");
        Self { server, options, store, shard, epoch, sequence: AtomicU64::new(1) }
    }

    /// A bench in another installation on the same server, with changed options. Only the case itself can audit it.
    pub(crate) async fn with(&self, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = self.options.clone();
        options.prefix.push_str("-2");
        change(&mut options);
        Self::open(Arc::clone(&self.server), options, usize::from(self.shard.number())).await
    }

    /// Another store on the same server, which is not prepared yet.
    pub(crate) fn another(&self, options: Options) -> Store {
        self.server.open(options)
    }

    /// The name of the backend under test.
    pub(crate) fn server_name(&self) -> &'static str {
        match *self.server {
            Server::Redis(_) => "redis",
            Server::Cluster(_) => "a cluster",
            Server::Sentinel(_) => "sentinels",
            Server::Disk(_) => "disk",
            Server::Memory(_) => "memory",
        }
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(*self.server, Server::Memory(_))
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn options(&self) -> Options {
        self.options.clone()
    }

    pub(crate) fn shard(&self) -> Shard {
        self.shard
    }

    pub(crate) fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// A key in the bench's shard: the id is `name`, if need be with a number after it.
    pub(crate) fn key(&self, topic: &str, name: &str) -> JobKey {
        let names = (0..).map(|n| if n == 0 { name.to_owned() } else { format!("{name}.{n}") });
        let mut keys = names
            .map(|id| JobKey { topic: super::job_builders::topic(topic), id: id.parse().expect("an id") });
        keys.find(|key| self.store.shard_of(key) == self.shard).expect("every shard has names")
    }

    /// A job of the usual topic that is due now.
    pub(crate) fn job(&self, name: &str) -> NewJob {
        self.job_of(TOPIC, name)
    }

    /// A job of a topic that is due now.
    pub(crate) fn job_of(&self, topic: &str, name: &str) -> NewJob {
        new_job(self.key(topic, name))
    }

    /// The job as a submit that replaces the job with its key.
    pub(crate) fn replacing(&self, job: NewJob) -> NewJob {
        NewJob { if_exists: IfExists::Replace { token: self.token() }, ..job }
    }

    /// The job as a submit that postpones the job with its key.
    pub(crate) fn postponing(&self, job: NewJob) -> NewJob {
        NewJob { if_exists: IfExists::Postpone { token: self.token(), max_delay: None }, ..job }
    }

    pub(crate) async fn submit(&self, jobs: &[NewJob]) -> Vec<Submitted> {
        let answers = self.store.submit(self.shard, jobs).await.expect("submit");
        assert_eq!(answers.len(), jobs.len());
        answers
    }

    pub(crate) async fn accept(&self, job: NewJob) -> Job {
        let answer = self.submit(&[job]).await.remove(0);
        assert_eq!(answer.answer, SubmitResult::Created, "{}", answer.job.key);
        answer.job
    }

    pub(crate) async fn get(&self, key: &JobKey) -> Job {
        let job = self.store.get(key).await.expect("get");
        job.unwrap_or_else(|| panic!("{key} is not known"))
    }

    pub(crate) async fn state(&self, key: &JobKey) -> Option<State> {
        self.store.get(key).await.expect("get").map(|job| job.state)
    }

    pub(crate) async fn cancel(&self, key: &JobKey) -> Cancelled {
        self.store.cancel(key).await.expect("cancel")
    }

    pub(crate) async fn promote(&self, limit: u32) -> Held {
        held(self.store.promote(self.shard, &self.epoch, at_most(limit)).await.expect("promote"))
    }

    /// Promotes until `count` jobs have moved, and asserts that no more did.
    pub(crate) async fn promote_until(&self, count: u32) {
        let mut moved = 0;
        let what = format!("{count} jobs are promoted");
        eventually(SOON, &what, async || {
            moved += self.promote(500).await.moved;
            if moved < count { Err(moved) } else { Ok(()) }
        })
        .await;
        assert_eq!(moved, count, "more were promoted than are due");
    }

    pub(crate) async fn recover(&self, limit: u32) -> Held {
        held(self.store.recover(self.shard, &self.epoch, at_most(limit)).await.expect("recover").pass)
    }

    pub(crate) async fn recover_until(&self, key: &JobKey, state: State) {
        eventually(SOON, &format!("{key} is recovered and {state}"), async || {
            self.recover(500).await;
            self.state(key).await.filter(|s| *s == state).ok_or("not yet")
        })
        .await;
    }

    pub(crate) async fn evict(&self, limit: u32) -> Held {
        held(self.store.evict(self.shard, &self.epoch, at_most(limit)).await.expect("evict"))
    }

    /// A new token for a request.
    pub(crate) fn token(&self) -> Token {
        Token(self.sequence.fetch_add(1, Ordering::Relaxed).to_le_bytes())
    }

    /// The next reserve. It adds no margin to leases, so that a lease of [`BRIEF`] expires soon.
    pub(crate) fn ask(&self, limit: usize) -> Reserve<'static> {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        Reserve {
            caller: CALLER,
            sequence,
            limit,
            lane_limit: 500,
            lane_limits: Vec::new(),
            admitted: Vec::new(),
            origin_limit: usize::MAX,
            tenant_limit: usize::MAX,
            group_limits: Vec::new(),
            bits: sequence.to_be_bytes(),
            waiting: Waiting::No,
            margin: Duration::ZERO,
        }
    }

    pub(crate) async fn reserve(&self, ask: &Reserve<'_>) -> Reserved {
        self.store.reserve(self.shard, ask).await.expect("reserve")
    }

    /// Reserves at most `limit` jobs. Repeats the call while it meets only stale entries.
    pub(crate) async fn take(&self, limit: usize) -> Vec<Lease> {
        loop {
            let reserved = self.reserve(&self.ask(limit)).await;
            if !reserved.leases.is_empty() || !reserved.more {
                return reserved.leases;
            }
        }
    }

    /// Reserves the next job, which must be this one.
    pub(crate) async fn take_one(&self, key: &JobKey) -> Lease {
        let lease = self.take(1).await.pop().unwrap_or_else(|| panic!("nothing is ready; {key} should be"));
        assert_eq!(lease.key, *key);
        lease
    }

    /// Reserves the next job, which must be this one, and repeats the call: two copies of the same lease.
    pub(crate) async fn take_twice(&self, key: &JobKey) -> [Lease; 2] {
        let mut ask = self.ask(1);
        let mut one = self.reserve(&ask).await;
        while one.leases.is_empty() && one.more {
            ask = self.ask(1);
            one = self.reserve(&ask).await;
        }
        let again = self.reserve(&ask).await.leases;
        let leases: Vec<Lease> = one.leases.into_iter().chain(again).collect();
        assert!(leases.iter().all(|lease| lease.key == *key), "{leases:?}");
        leases.try_into().expect("the same job twice")
    }

    pub(crate) async fn reserved(&self, job: NewJob) -> Lease {
        let key = self.accept(job).await.key;
        self.take_one(&key).await
    }

    /// Submits a job, reserves it, lets the lease expire and recovers the job. Returns the stale lease.
    pub(crate) async fn stale_lease(&self, job: NewJob) -> Lease {
        let lease = self.reserved(job.timeout(BRIEF)).await;
        self.recover_until(&lease.key, State::Ready).await;
        lease
    }

    pub(crate) async fn settle(&self, lease: Lease, outcome: Outcome) -> SettleResult {
        self.settle_all(vec![(lease, outcome)]).await.remove(0)
    }

    pub(crate) async fn settle_all(&self, items: Vec<(Lease, Outcome)>) -> Vec<SettleResult> {
        let settled = self.store.settle(self.shard, items).await;
        settled.unwrap_or_else(|unsettled| panic!("settle: {:?}", unsettled.error))
    }

    pub(crate) async fn exchange(
        &self,
        items: Vec<(Lease, Outcome)>,
        ask: &Reserve<'_>,
    ) -> (Vec<SettleResult>, Reserved) {
        let answer = self.store.exchange(self.shard, items, ask).await;
        answer.unwrap_or_else(|unsettled| panic!("exchange: {:?}", unsettled.error))
    }

    /// Submits a job and brings it into a state.
    pub(crate) async fn job_in(&self, state: State, job: NewJob) -> Job {
        let key = job.key.clone();
        match state {
            State::Delayed => drop(self.accept(job.after(LONG)).await),
            State::Ready => drop(self.accept(job).await),
            State::Reserved => drop(self.reserved(job).await),
            State::Done => {
                let lease = self.reserved(job).await;
                assert_eq!(self.settle(lease, Outcome::Complete).await, SettleResult::Applied);
            }
            State::Dead => {
                let lease = self.reserved(job).await;
                assert_eq!(self.settle(lease, super::job_builders::bury()).await, SettleResult::Applied);
            }
            State::Cancelled => {
                self.accept(job.after(LONG)).await;
                assert_eq!(self.cancel(&key).await, Cancelled::Cancelled { in_flight_unknown: false });
            }
        }
        let job = self.get(&key).await;
        assert_eq!(job.state, state);
        job
    }

    pub(crate) async fn stats(&self) -> Stats {
        self.store.stats().await.expect("stats")
    }

    /// A subscription to the wake-ups that are sent after this call.
    pub(crate) async fn wakes(&self) -> Wakes {
        let mut wakes = self.store.wakes(ringback_service::random::generator());
        assert_eq!(next(&mut wakes).await, Wake::Subscribed);
        wakes
    }

    /// Whether the store's own check waits until all cases have ended: on a cluster or sentinels it would disturb some.
    pub(crate) fn is_checked_last(&self) -> bool {
        matches!(&*self.server, Server::Cluster(_) | Server::Sentinel(_))
    }

    /// Audits the store: its ledger, its keys or tables, and by its own check, unless that waits until all cases have
    /// ended.
    pub(crate) async fn check(&self) {
        audit::ledger(&self.stats().await);
        if !self.is_checked_last() {
            audit::own(&self.store).await;
        }
        match &*self.server {
            Server::Redis(server) => {
                redis_layout::audit::keys(&mut server.client().await, &self.options.prefix).await;
            }
            Server::Cluster(cluster) => {
                for node in cluster.nodes() {
                    redis_layout::audit::keys(&mut node.client().await, &self.options.prefix).await;
                }
            }
            Server::Sentinel(set) => {
                redis_layout::audit::keys(&mut set.servers()[0].client().await, &self.options.prefix).await;
            }
            Server::Disk(_) | Server::Memory(_) => audit::tables(&self.store).await,
        }
    }
}

impl Server {
    fn url(&self) -> String {
        match self {
            Self::Redis(server) => server.url(),
            Self::Cluster(cluster) => cluster.url(),
            Self::Sentinel(set) => set.url(),
            Self::Disk(directory) => format!("embedded:{}", directory.path().display()),
            Self::Memory(_) => "in memory".to_owned(),
        }
    }

    fn open(&self, options: Options) -> Store {
        let Self::Memory(memories) = self else {
            return Store::open(options).expect("the options are right");
        };
        let mut memories = memories.lock().expect("no case panics with it");
        let memory = memories.entry(options.prefix.clone()).or_insert_with(|| Memory::new(SystemClock));
        Store::in_memory(memory, options)
    }
}

fn held(pass: Pass) -> Held {
    match pass {
        Pass::Fenced | Pass::Left(_) => panic!("the bench's own carrier does each pass: {pass:?}"),
        Pass::Held { moved, other, next_due, next_lease, next_dead, next_notice, next_firing } => {
            Held { moved, other, next_due, next_lease, next_dead, next_notice, next_firing }
        }
    }
}

/// The limits of a pass over at most `jobs` jobs.
pub(crate) const fn at_most(jobs: u32) -> PassLimits {
    PassLimits { jobs, max_sleep: FLOOR, may_leave: false }
}

/// The next wake-up. Panics after [`SOON`].
pub(crate) async fn next(wakes: &mut Wakes) -> Wake {
    tokio::time::timeout(SOON, wakes.next()).await.expect("a wake-up within the time allowed")
}

/// The time now; the store under test runs on the same machine.
pub(crate) fn now() -> Timestamp {
    SystemClock.now()
}

/// The time `by` ago.
pub(crate) fn ago(by: Duration) -> Timestamp {
    Timestamp::from_millis(now().as_millis() - by.as_millis() as u64)
}

/// Whether a due time is no earlier than a delay after a moment, to the microsecond.
pub(crate) fn is_late_enough(due: Timestamp, since: jiff::Timestamp, delay: Duration) -> bool {
    let earliest = i128::from(since.as_microsecond()) + delay.as_micros() as i128;
    i128::from(due.as_millis()) * 1000 >= earliest
}

/// Waits until the clock shows a time.
pub(crate) async fn until(time: Timestamp) {
    while now() < time {
        sleep(time.since(now())).await;
    }
}

/// Waits until a lease has expired for the store too, which granted it later than the caller asked.
pub(crate) async fn run_out(lease: &Lease) {
    sleep_until(lease.deadline() + Duration::from_millis(200)).await;
}
