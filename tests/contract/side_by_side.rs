//! Random operations on Redis and on the embedded store in memory, side by side: every response is compared, and at
//! the end every job, count, check and event.
//!
//! Calls are repeated as by a caller that lost the response. A failure shrinks to the fewest operations that show it.
//! The two stores have clocks of their own, so times are compared with tolerance. Delays are none, short or very long;
//! passes run after the short ones have passed.

mod attempts;
mod calls;
mod events;
mod leases;
mod operations;
mod outbox;
mod pull_jobs;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use ringback_core::clock::{SystemClock, Timestamp};
use ringback_core::job::{History, ImportJob, Job, JobKey, NewJob, TenantScope};
use ringback_core::lane::NO_TENANT;
use ringback_core::outcome::LastAttempt;
use ringback_core::store_types::{
    DeadFilter, Epoch, Filter, Lease, Options, Pass, SettleResult, Shard, Stats, SubmitResult, TopicCounts,
};
use ringback_store::{Memory, Store, settings};
use ringback_testkit::figures::{Figure, Reached};
use ringback_testkit::{RedisServer, seed, variable};
use strum::VariantArray as _;

use self::events::WatchedEvents;
use self::operations::{Op, Past, RandomOutcome, Times, Wait, op};
use self::pull_jobs::{ReservedPair, is_pull, push_or_pull};
use super::audit;
use super::job_builders::{LONG, With, ms, new_job, topic as topic_of};
use super::workbench::{at_most, now, until};
use crate::prelude::*;
use crate::redis_layout;

/// The operations of all runs together, unless `RINGBACK_TEST_OPERATIONS` is set.
const OPERATIONS: u32 = 10_000;
/// The operations of one run, which begins with an empty store.
const RUN: u32 = 500;
/// Names in play at a time.
const WINDOW: usize = 24;
/// How far apart the two clocks may be read.
const APART: Duration = Duration::from_secs(30);
/// When jobs are rescheduled to, in steps of [`LONG`] from about the start on.
const TIMES: [u32; 3] = [0, 12, 24];
const TOPICS: [&str; 2] = ["a", "~t/b"];
/// The tenants of the topics, by the names under which they have limits.
const TENANTS: [&str; 2] = [NO_TENANT, "~t"];
const ORIGINS: [&str; 2] = ["http://one.example", "http://two.example"];

/// The destinations of these origins, with a port and without.
const DESTINATIONS: [&str; 3] = ["one.example", "one.example:80", "two.example:80"];

#[test]
fn redis_and_the_store_in_memory_give_the_same_answers_to_random_operations() {
    let wanted = variable("RINGBACK_TEST_OPERATIONS");
    let cases = wanted.unwrap_or(OPERATIONS).div_ceil(RUN);
    let config = Config { cases, failure_persistence: None, max_shrink_time: 60_000, ..Config::default() };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = runtime.block_on(RedisServer::start());
    let number = std::cell::Cell::new(0);
    let strategy = prop::collection::vec(op(), RUN as usize);
    let seed = seed("RINGBACK_TEST_SEED");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let result = TestRunner::new_with_rng(config, rng).run(&strategy, |ops| {
        number.set(number.get() + 1);
        runtime.block_on(async {
            let mut pair = Pair::new(&server, number.get()).await;
            for (step, op) in ops.iter().enumerate() {
                pair.at = format!("step {step}: {op:?}");
                pair.step(step, op).await;
                pair.events.drain().await;
            }
            pair.close(&server, ops.len()).await;
        });
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    Reached::new(Figure::RandomOperations, "side by side", u64::from(cases * RUN)).write();
}

/// A lease of each store for the same job.
type Hand = [Lease; 2];

struct Pair {
    /// The store on Redis, and the one in memory.
    stores: [Store; 2],
    epochs: BTreeMap<Shard, [Epoch; 2]>,
    options: Options,
    hands: Vec<Hand>,
    /// The leases that consumers have or had.
    held: Vec<ReservedPair>,
    sequence: u64,
    began: Timestamp,
    /// By when all that is due in a moment is due, and all brief leases have run out.
    soon: Timestamp,
    expired_by: Timestamp,
    events: WatchedEvents,
    at: String,
}

impl Pair {
    async fn new(server: &RedisServer, number: u32) -> Self {
        let options = Options {
            url: server.url(),
            prefix: format!("pair-{number}"),
            shards: 2,
            keep_done: Duration::from_secs(3600),
            keep_done_mib: 16,
            keep_dead: Duration::ZERO,
            ..settings::defaults(Duration::from_secs(10))
        };
        let redis = Store::open(options.clone()).expect("the options are right");
        let stores = [redis, Store::in_memory(&Memory::new(SystemClock), options.clone())];
        let mut epochs = BTreeMap::new();
        for store in &stores {
            store.prepare().await.expect("the store is fit");
        }
        for shard in stores[0].shards() {
            let claim = async |store: &Store| store.take_shard(shard, "carrier").await.expect("claim");
            epochs.insert(shard, [claim(&stores[0]).await, claim(&stores[1]).await]);
        }
        let (soon, expired_by) = (now(), now());
        let events = WatchedEvents::watch(&stores).await;
        Self {
            events,
            stores,
            epochs,
            options,
            hands: Vec::new(),
            held: Vec::new(),
            sequence: 0,
            began: now(),
            soon,
            expired_by,
            at: String::new(),
        }
    }

    async fn step(&mut self, step: usize, op: &Op) {
        match op {
            Op::Submit { names, content, wait, brief, past, change, times } => {
                let jobs: Vec<_> = names
                    .iter()
                    .map(|name| new_job(key(step, *name)).content(*content).after(self.delay(*wait)))
                    .map(|job| {
                        let origin = ORIGINS[(job.key.id.as_str().len() + usize::from(*content)) % 2];
                        let mut job = outbox::with_on_dead(push_or_pull(job.to(origin), *brief));
                        let history = history(*past);
                        if history.is_none() {
                            job.if_exists = change.if_exists();
                        }
                        ImportJob { job, history }
                    })
                    .collect();
                self.repeat(*times, async |pair: &mut Self| pair.submit(&jobs).await).await;
            }
            Op::Reserve { shard, lanes, brief, times } => self.reserve(*shard, *lanes, *brief, *times).await,
            Op::ReserveInParts { shard, lanes, brief, limit, lane_limit } => {
                self.reserve_in_parts(*shard, *lanes, *brief, *limit, *lane_limit).await;
            }
            Op::Settle { hands } => self.settle(hands).await,
            Op::AddLateness { shard, late } => self.add_lateness(*shard, *late).await,
            Op::Exchange { hands, shard, lanes, brief, times } => {
                self.exchange(hands, *shard, *lanes, *brief, *times).await;
            }
            Op::Renew { hand } => self.renew(*hand).await,
            Op::Topic { topic, what, times } => {
                let topic = topic_of(TOPICS[*topic]);
                self.repeat(*times, async |pair: &mut Self| pair.on_topic(&topic, *what).await).await;
            }
            Op::Pull { shard, topic, ttr, times } => {
                let times = if matches!(times, Times::Twice) { 2 } else { 1 };
                self.pull(*shard, *topic, *ttr, times).await;
            }
            Op::SettleReceipts { hands } => self.settle_receipts(hands).await,
            Op::RenewReceipt { hand } => self.renew_receipt(*hand).await,
            Op::Call { name, call, times } => {
                let key = key(step, *name);
                self.sequence += 1;
                self.repeat(*times, async |pair: &mut Self| pair.call(&key, *call).await).await;
            }
            Op::LogAttempts { hands, times } => self.note(hands, *times).await,
            Op::Get { name } => self.get(&key(step, *name)).await,
            Op::Promote { limit } => {
                until(self.soon).await;
                let next = |pass: Pass| matches!(pass, Pass::Held { next_due: Some(d), .. } if d.is_zero());
                let call = async |store: &Store, shard, epoch: &Epoch| {
                    store.promote(shard, epoch, at_most(*limit)).await.expect("promote")
                };
                self.passes(call, next).await;
            }
            Op::Recover { limit } => self.recover(*limit).await,
            Op::Evict => {
                let next = |pass: Pass| matches!(pass, Pass::Held { next_dead: Some(d), .. } if d.is_zero());
                let call = async |store: &Store, shard, epoch: &Epoch| {
                    store.evict(shard, epoch, at_most(3)).await.expect("evict")
                };
                self.passes(call, next).await;
            }
            Op::Acknowledge => self.acknowledge().await,
            Op::Dead { topic, exhausted, purge } => {
                let reason = Some(if *exhausted { "exhausted" } else { "lost" }.to_owned());
                let topic = topic_of(TOPICS[*topic]);
                self.dead(&DeadFilter { topic, reason, after: None, before: None }, *purge).await;
            }
        }
    }

    async fn repeat(&mut self, times: Times, mut call: impl AsyncFnMut(&mut Self)) {
        call(self).await;
        if matches!(times, Times::Twice) {
            call(self).await;
        }
    }

    fn delay(&mut self, wait: Wait) -> Duration {
        match wait {
            Wait::None => ms(0),
            Wait::Moment => ms(2),
            Wait::Long => LONG,
            Wait::Far => 12 * LONG,
        }
    }

    /// Sets the time by which all short delays have passed. Both stores must have answered before.
    fn moment(&mut self) {
        self.soon = now().plus(ms(4));
    }

    async fn submit(&mut self, jobs: &[ImportJob]) {
        let mut answers = Vec::new();
        for store in &self.stores {
            let mut of_store = Vec::new();
            for shard in store.shards() {
                let mine: Vec<_> =
                    jobs.iter().filter(|job| store.shard_of(&job.job.key) == shard).cloned().collect();
                of_store.extend(if mine.iter().all(|job| job.history.is_none()) {
                    let mine: Vec<_> = mine.into_iter().map(|job| job.job).collect();
                    store.submit(shard, &mine).await.expect("submit")
                } else {
                    store.import(shard, &mine).await.expect("import")
                });
            }
            answers.push(of_store);
        }
        self.moment();
        assert_eq!(answers[0].len(), answers[1].len(), "{}", self.at);
        for (redis, memory) in answers[0].iter().zip(&answers[1]) {
            let [one, other] = [redis, memory].map(|submitted| match submitted.answer {
                // The rest of a lease depends on the moment.
                SubmitResult::Reserved { .. } => SubmitResult::Reserved { retry_after: ms(0) },
                answer => answer,
            });
            assert_eq!(one, other, "{}: {}", self.at, redis.job.key);
            self.same(&redis.job, &memory.job);
        }
    }

    /// Asserts that both stores have the same job, except for its times, which may differ by [`APART`].
    fn same(&self, redis: &Job, memory: &Job) {
        for (one, other) in [(redis.due, memory.due), (redis.created, memory.created)] {
            assert!(one.plus(APART) >= other && other.plus(APART) >= one, "{}: {one}, {other}", self.at);
        }
        let mut aligned = Job { due: redis.due, created: redis.created, ..memory.clone() };
        if let (Some(one), Some(other)) = (&redis.last, &mut aligned.last) {
            pull_jobs::align(one, other, APART);
        }
        assert_eq!(*redis, aligned, "{}", self.at);
    }

    /// Repeats a pass over each shard of both stores while `is_more` is true. Asserts that as many jobs moved in both.
    async fn passes(
        &mut self,
        call: impl AsyncFn(&Store, Shard, &Epoch) -> Pass,
        is_more: impl Fn(Pass) -> bool,
    ) {
        for (shard, epochs) in &self.epochs {
            let mut moved = [(0, 0); 2];
            for ((store, epoch), moved) in self.stores.iter().zip(epochs).zip(&mut moved) {
                loop {
                    let pass = call(store, *shard, epoch).await;
                    let Pass::Held { moved: n, other, .. } = pass else { panic!("{}: fenced", self.at) };
                    (moved.0, moved.1) = (moved.0 + n, moved.1 + other);
                    if !is_more(pass) {
                        break;
                    }
                }
            }
            let lost = self.at.contains("Recover");
            let [redis, memory] = moved.map(|(n, other)| (n, if lost { other } else { 0 }));
            assert_eq!(redis, memory, "{}", self.at);
        }
    }

    async fn close(mut self, server: &RedisServer, steps: usize) {
        self.at = "at the end".to_owned();
        for name in 0..steps / 10 + WINDOW {
            self.get(&key(0, name)).await;
        }
        assert_eq!(listed(&self.stores[0]).await, listed(&self.stores[1]).await);
        let redis = self.stores[0].stats().await.expect("stats");
        let memory = self.stores[1].stats().await.expect("stats");
        let counts = |s: &Stats| {
            (s.accepted, format!("{:?}", s.states), s.topics.clone(), s.lateness.clone(), s.pending_notices)
        };
        assert_eq!(counts(&redis), counts(&memory));
        let pages = [
            self.stores[0].topics(&TenantScope::All, None, 10).await,
            self.stores[1].topics(&TenantScope::All, None, 10).await,
        ];
        let pages = pages.map(|page| page.expect("topics").items);
        let [redis_topics, memory_topics] = pages.map(|items| {
            items.into_iter().map(|(topic, counts)| (topic, counted(&counts))).collect::<Vec<_>>()
        });
        assert_eq!(redis_topics, memory_topics);
        audit::ledger(&memory);
        redis_layout::audit::keys(&mut server.client().await, &self.options.prefix).await;
        audit::tables(&self.stores[1]).await;
        assert!(State::VARIANTS.len() == 6 && redis.accepted > 0 || steps < 50);
        self.events.compare(&self.stores).await;
    }
}

fn history(past: Past) -> Option<History> {
    let last = || LastAttempt { at: now(), status: Some(503), error: None, duration: ms(7) };
    let tried = || History { attempts: 3, failures: 2, last: Some(last()), ..History::default() };
    match past {
        Past::None => None,
        Past::Tried => Some(History { created: Some(Timestamp::from_millis(1_700_000_000_000)), ..tried() }),
        Past::Dead => Some(History { dead: Some("exhausted".to_owned()), ..tried() }),
    }
}

/// The counts without times, which depend on the stores' clocks and on entries that no longer count in one's queues.
fn counted(counts: &TopicCounts) -> TopicCounts {
    TopicCounts { oldest_due: None, late: Duration::ZERO, ..counts.clone() }
}

/// The name and state of every job that has not ended, from all pages.
async fn listed(store: &Store) -> BTreeSet<(String, String)> {
    let (mut all, mut from) = (BTreeSet::new(), None);
    loop {
        let page = store.page(&Filter::default(), from, 50).await.expect("a page");
        all.extend(page.items.into_iter().map(|job| (job.key.to_string(), job.state.to_string())));
        match page.next {
            None => return all,
            next => from = next,
        }
    }
}

/// The key of a name in play. Names move on with the steps, so that ended jobs do not use them up.
fn key(step: usize, name: usize) -> JobKey {
    let number = step / 10 + name;
    let suffix = if is_pull(number) { "p" } else { "" };
    let id = format!("job-{number}{}{suffix}", "x".repeat(number / 2 % 2));
    JobKey { topic: topic_of(TOPICS[number % 2]), id: id.parse().expect("an id") }
}
