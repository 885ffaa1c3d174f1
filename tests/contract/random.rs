//! Random operations on each backend against the model. A failure prints its seed; put it first in `SEEDS` to repeat
//! it. These runs and those of `side_by_side` make 100,000 operations together; `RINGBACK_TEST_OPERATIONS` sets
//! another number for each.

use std::collections::HashMap;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use ringback_core::clock::Timestamp;
use ringback_core::job::{IfExists, JobKey, NewJob, TenantScope};
use ringback_core::lane::{Lane, NO_TENANT};
use ringback_core::store_types::{Lease, PolicyPut, Reserve, SettleResult, Stats, SubmitResult, Token};
use ringback_testkit::figures::{Figure, Reached};
use ringback_testkit::{seed, variable};
use tokio::time::{Instant, sleep_until};

use super::destinations::pause_of;
use super::job_builders::{BRIEFEST, LONG, With, bury, ms, release, retry, topic};
use super::model::{LeaseNumber, Model, Offered, lane};
use super::policies::policy;
use super::workbench::{Workbench, now, until};
use crate::prelude::*;

/// The fixed seeds, which run beside a random one.
const SEEDS: [u64; 1] = [20_261_120];
const STEPS: usize = 2500;
/// How many operations each store runs. Memory is the fastest, so it runs most of them.
const OPERATIONS: usize = 10_000;
const OPERATIONS_IN_MEMORY: usize = 60_000;
/// Names in play at a time.
const WINDOW: usize = 40;
const TOPICS: [&str; 3] = ["a", "b", "~t/c"];
/// The tenants of the topics, by the names under which they have limits.
const TENANTS: [&str; 2] = [NO_TENANT, "~t"];
const ORIGINS: [&str; 2] = ["http://one.example", "http://two.example"];

struct Run<'a> {
    bench: &'a Workbench,
    rng: StdRng,
    model: Model,
    /// Every lease ever given that has not been settled, stale ones and second copies among them.
    hands: Vec<(Lease, LeaseNumber)>,
    leases: LeaseNumber,
    /// When the last of the jobs that are due within a moment is due.
    soon: Timestamp,
    /// When the last of the brief leases has run out.
    expired_by: Instant,
    at: String,
}

pub(crate) async fn thousands_of_random_operations_agree_with_a_simple_model(bench: &Workbench) {
    let wanted = variable("RINGBACK_TEST_OPERATIONS");
    let usual = if bench.is_in_memory() { OPERATIONS_IN_MEMORY } else { OPERATIONS };
    let runs = wanted.unwrap_or(usual).div_ceil(STEPS);
    for seed in SEEDS.into_iter().chain(seed("RINGBACK_TEST_SEED")..).take(runs) {
        let own = bench.with(|options| options.prefix = format!("random-{seed}")).await;
        let mut run = Run {
            bench: &own,
            rng: StdRng::seed_from_u64(seed),
            model: Model::default(),
            hands: Vec::new(),
            leases: 0,
            soon: now(),
            expired_by: Instant::now(),
            at: String::new(),
        };
        for step in 0..STEPS {
            run.at = format!("seed {seed}, step {step}");
            run.step(step).await;
        }
        run.all_agree().await;
        own.check().await;
    }
    let by = format!("random on {}", bench.server_name());
    Reached::new(Figure::RandomOperations, &by, (runs * STEPS) as u64).write();
}

impl Run<'_> {
    async fn step(&mut self, step: usize) {
        let name = step / 20 + self.rng.random_range(0..WINDOW);
        let key = self.bench.key(TOPICS[name % 3], &format!("job-{name}"));
        match self.rng.random_range(0..1040) {
            1000..1020 => self.pause_or_resume().await,
            1020..1040 => self.policy().await,
            0..350 => self.submit(key).await,
            350..550 => self.reserve().await,
            550..820 => self.settle().await,
            820..900 => self.cancel(key).await,
            900..960 => self.get(&key).await,
            960..992 => self.promote().await,
            _ => self.recover().await,
        }
    }

    async fn submit(&mut self, key: JobKey) {
        let content = if self.rng.random_bool(0.9) { 1 } else { 2 };
        let delay = *[ms(0), ms(0), ms(2), LONG].choose(&mut self.rng).expect("some");
        let origin = *ORIGINS.choose(&mut self.rng).expect("some");
        let if_exists = self.if_exists();
        if if_exists.latest(Timestamp::default()).is_some() {
            // A life that begins in the millisecond of the former one counts as created in the next, and then the latest
            // due time of a postponement is ahead of now.
            until(now().plus(ms(2))).await;
        }
        let is_ready = delay.is_zero() || if_exists.latest(Timestamp::default()).is_some();
        let state = if is_ready { State::Ready } else { State::Delayed };
        let offered = Offered { content, state, origin, soon: delay < LONG, if_exists };
        let wanted = self.model.submit(&key, offered, self.leases);
        let job = super::job_builders::new_job(key.clone()).content(content).after(delay).to(origin);
        let timeout = *BRIEFEST.choose(&mut self.rng).expect("some");
        let job = NewJob { if_exists, ..job.timeout(timeout) };
        let mut answer = self.bench.submit(&[job]).await.remove(0);
        if let SubmitResult::Reserved { retry_after } = &mut answer.answer {
            // How long its lease lasts is not the model's.
            *retry_after = Duration::ZERO;
        }
        assert_eq!(answer.answer, wanted, "{}: submit {key} {if_exists:?}", self.at);
        assert_eq!(Some(answer.job.state), self.model.get(&key).map(|job| job.state), "{}: {key}", self.at);
        self.soon_after(delay);
    }

    /// What the next submit does to a job with its key. There are only few tokens, so some submits are repetitions.
    fn if_exists(&mut self) -> IfExists {
        let token = Token([self.rng.random_range(1..4); 8]);
        let max_delay = self.rng.random_bool(0.2).then_some(Duration::ZERO);
        match self.rng.random_range(0..10) {
            0..6 => IfExists::Refuse,
            6..8 => IfExists::Replace { token },
            8 => IfExists::Update { token },
            _ => IfExists::Postpone { token, max_delay },
        }
    }

    fn soon_after(&mut self, delay: Duration) {
        if delay < LONG {
            self.soon = self.soon.max(now().plus(delay + ms(1)));
        }
    }

    async fn reserve(&mut self) {
        let brief = self.rng.random_bool(0.3);
        // Other leases outlast the run, however slow the machine is.
        let margin = if brief { Duration::ZERO } else { LONG };
        let (limit, lane_limits) = (self.rng.random_range(1..8), self.lane_limits());
        let (origin_limit, mut group_limits) = self.group_limits(&ORIGINS);
        let (tenant_limit, of_tenants) = self.group_limits(&TENANTS);
        group_limits.extend(of_tenants);
        let own = self.bench.ask(limit);
        let ask = Reserve { margin, lane_limits, origin_limit, tenant_limit, group_limits, ..own };
        let reserved = self.bench.reserve(&ask).await;
        self.is_within_limits(&ask, &reserved.leases);
        let is_limited = |lane: &String| ask.lane_limits.iter().any(|(name, _)| name == lane);
        assert!(reserved.full.iter().all(is_limited), "{}: {:?}", self.at, reserved.full);
        let is_used_up = |lane: &str| {
            let groups = Lane::parse(lane).map(|lane| [lane.origin, lane.tenant()]).expect("a lane");
            reserved.throttled.iter().any(|group| groups.contains(&&**group))
        };
        if reserved.leases.is_empty() && !reserved.more {
            // An entry of a job that has moved on uses up the limit of its lane, which is full then.
            let is_missed = |lane: &String| {
                self.model.is_open(lane) && !reserved.full.contains(lane) && !is_used_up(lane)
            };
            let mut ready = self.model.jobs.iter().filter(|(_, job)| job.state == State::Ready);
            let missed = ready.find(|(_, job)| is_missed(&job.lane));
            assert!(missed.is_none(), "{}: nothing is given, but {missed:?}", self.at);
        }
        // A reserve without jobs is not repeated.
        let is_repeated = self.rng.random_bool(0.4) && !reserved.leases.is_empty();
        let again = if is_repeated { self.bench.reserve(&ask).await.leases } else { Vec::new() };
        assert!(again.is_empty() || again.len() == reserved.leases.len(), "{}: {again:?}", self.at);
        let mut given = HashMap::new();
        for lease in reserved.leases {
            self.leases += 1;
            let before = self.model.reserve(&lease.key, self.leases, brief);
            assert_eq!(before.state, State::Ready, "{}: {} is given", self.at, lease.key);
            let wanted = (before.attempts + 1, before.failures);
            assert_eq!((lease.attempt, lease.failures), wanted, "{}: {}", self.at, lease.key);
            if brief {
                self.expired_by = self.expired_by.max(Instant::now() + BRIEFEST[1] + ms(5));
            }
            given.insert(lease.key.clone(), self.leases);
            self.hands.push((lease, self.leases));
        }
        for lease in again {
            let token = given.get(&lease.key).copied();
            self.hands.push((lease, token.expect("the same jobs are given again")));
        }
    }

    /// Limits for some random lanes: up to two jobs each.
    fn lane_limits(&mut self) -> Vec<(String, usize)> {
        let lanes = TOPICS.iter().flat_map(|topic| ORIGINS.map(|origin| lane(topic, origin)));
        let limits = lanes.map(|lane| (lane, self.rng.random_range(0..9)));
        limits.filter(|(_, limit)| *limit < 3).collect()
    }

    /// A limit for each origin or tenant in about half of the calls, and lower limits for some groups.
    fn group_limits(&mut self, groups: &[&str]) -> (usize, Vec<(String, usize)>) {
        let common = if self.rng.random() { usize::MAX } else { self.rng.random_range(1..6) };
        let own = groups.iter().map(|group| ((*group).to_owned(), self.rng.random_range(0..12)));
        (common, own.filter(|(_, limit)| *limit < 3).collect())
    }

    fn is_within_limits(&self, ask: &Reserve<'_>, leases: &[Lease]) {
        assert!(leases.len() <= ask.limit, "{}: {leases:?}", self.at);
        let lane_of = |lease: &Lease| self.model.get(&lease.key).map(|job| job.lane.clone());
        for (lane, limit) in &ask.lane_limits {
            let given = leases.iter().filter(|lease| lane_of(lease).as_ref() == Some(lane)).count();
            assert!(given <= *limit, "{}: {given} of {lane}, not {limit}", self.at);
        }
        let of_origins = ORIGINS.map(|origin| (origin, ask.origin_limit));
        let of_tenants = [(TENANTS[0], usize::MAX), (TENANTS[1], ask.tenant_limit)];
        for (group, common) in of_origins.into_iter().chain(of_tenants) {
            let own = ask.group_limits.iter().find(|(name, _)| name == group);
            let limit = own.map_or(common, |(_, limit)| *limit);
            let is_of = |lease: &&Lease| {
                let lane = Lane::new(&lease.key.topic, lease.delivery.callback.origin());
                [lane.origin, lane.tenant()].contains(&group)
            };
            let given = leases.iter().filter(is_of).count();
            assert!(given <= limit, "{}: {given} of {group}, not {limit}", self.at);
        }
        for lease in leases {
            let is_open = lane_of(lease).is_some_and(|lane| self.model.is_open(&lane));
            assert!(is_open, "{}: {} is given, but its topic or destination is paused", self.at, lease.key);
        }
    }

    async fn pause_or_resume(&mut self) {
        if self.rng.random_bool(0.5) {
            return self.pause_or_resume_destination().await;
        }
        let name = *TOPICS.choose(&mut self.rng).expect("some");
        let topic = topic(name);
        if self.rng.random_bool(0.4) {
            self.bench.store().pause(&topic, None).await.expect("pause").expect("there is room");
            self.model.paused.insert(name.to_owned());
        } else {
            let known = self.bench.store().resume(&topic).await.expect("resume");
            let was_paused = self.model.paused.remove(name);
            assert!(known || !was_paused, "{}: {name} was paused", self.at);
        }
    }

    async fn pause_or_resume_destination(&mut self) {
        let (of, scope) = match self.rng.random_range(0..4) {
            0..2 => ("", TenantScope::All),
            2 => (TENANTS[0], TenantScope::One(None)),
            _ => (TENANTS[1], TenantScope::One(Some("t".parse().expect("a tenant")))),
        };
        let (origin, is_port) = (*ORIGINS.choose(&mut self.rng).expect("some"), self.rng.random());
        let host = origin.trim_start_matches("http://");
        let pause = pause_of(&scope, &if is_port { format!("{host}:80") } else { host.to_owned() });
        let hold = (of.to_owned(), origin.to_owned(), is_port);
        if self.rng.random_bool(0.3) {
            let paused = self.bench.store().pause_destination(&pause).await.expect("pause");
            paused.expect("there is room");
            self.model.held.insert(hold);
        } else {
            let was_paused = self.bench.store().resume_destination(&pause).await.expect("resume");
            assert_eq!(was_paused, self.model.held.remove(&hold), "{}: {hold:?}", self.at);
        }
    }

    /// Puts, replaces, deletes or reads the policy of a random topic, and compares the answer with the model.
    async fn policy(&mut self) {
        let name = *TOPICS.choose(&mut self.rng).expect("some");
        let (topic, store) = (topic(name), self.bench.store());
        match self.rng.random_range(0..4) {
            0..2 => {
                let timeout = self.rng.random_range(100..10_000);
                let policy = policy(&format!(r#"{{"timeout":"{timeout}ms"}}"#));
                let is_new = match store.put_policy(&topic, &policy).await.expect("put") {
                    PolicyPut::Created(_) => true,
                    PolicyPut::Replaced(_) => false,
                    refused => panic!("{}: {refused:?}", self.at),
                };
                let before = self.model.policies.insert(name.to_owned(), policy);
                assert_eq!(is_new, before.is_none(), "{}: {name}", self.at);
            }
            2 => {
                let deleted = store.delete_policy(&topic).await.expect("delete").is_some();
                assert_eq!(deleted, self.model.policies.remove(name).is_some(), "{}: {name}", self.at);
            }
            _ => {
                let found = store.policy(&topic).await.expect("a policy");
                assert_eq!(found.as_ref(), self.model.policies.get(name), "{}: {name}", self.at);
            }
        }
    }

    async fn settle(&mut self) {
        if self.hands.is_empty() {
            return;
        }
        let n = self.rng.random_range(0..self.hands.len());
        let (lease, token) = self.hands.swap_remove(n);
        let outcome = match self.rng.random_range(0..10) {
            0..4 => Outcome::Complete,
            4 => retry(LONG),
            5..7 => retry(ms(0)),
            7 => bury(),
            8 => release(LONG),
            _ => release(ms(0)),
        };
        let key = lease.key.clone();
        let wanted = self.model.settle(&key, token, &outcome);
        let settled: SettleResult = self.bench.settle(lease, outcome.clone()).await;
        assert_eq!(settled, wanted, "{}: {outcome:?} of {key}, now {:?}", self.at, self.model.get(&key));
        self.soon_after(ms(0));
    }

    async fn cancel(&mut self, key: JobKey) {
        let wanted = self.model.cancel(&key);
        let answer = self.bench.cancel(&key).await;
        assert!(wanted.contains(&answer), "{}: {key} is {answer:?}, not {wanted:?}", self.at);
    }

    async fn get(&mut self, key: &JobKey) {
        let job = self.bench.store().get(key).await.expect("get");
        let kept = job.map(|job| (job.state, job.attempts, job.failures));
        let wanted = self.model.get(key).map(|job| (job.state, job.attempts, job.failures));
        assert_eq!(kept, wanted, "{}: {key}", self.at);
    }

    async fn promote(&mut self) {
        until(self.soon).await;
        let limit = self.rng.random_range(5..50);
        while self.bench.promote(limit).await.next_due.is_some_and(|next| next.is_zero()) {}
        self.model.promote();
        self.ledger_agrees().await;
    }

    async fn recover(&mut self) {
        sleep_until(self.expired_by).await;
        let limit = self.rng.random_range(2..20);
        while self.bench.recover(limit).await.next_lease.is_some_and(|next| next.is_zero()) {}
        self.model.recover();
        self.ledger_agrees().await;
    }

    async fn ledger_agrees(&self) {
        let stats = self.bench.stats().await;
        assert_eq!(stats.accepted, self.model.accepted(), "{}", self.at);
        assert_eq!(
            per_state(&stats),
            self.model.per_state(),
            "{}: {:?}",
            self.at,
            <State as strum::VariantArray>::VARIANTS
        );
    }

    async fn all_agree(&mut self) {
        self.ledger_agrees().await;
        for name in 0..STEPS / 20 + WINDOW {
            let key = self.bench.key(TOPICS[name % 3], &format!("job-{name}"));
            self.get(&key).await;
        }
    }
}

fn per_state(stats: &Stats) -> [u64; 6] {
    let s = &stats.states;
    [s.delayed, s.ready, s.reserved, s.done, s.dead, s.cancelled]
}
