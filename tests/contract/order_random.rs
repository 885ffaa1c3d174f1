//! Random operations on an ordered topic: whatever happens to its jobs, a key has one job at a time, in its order, and
//! none is left behind. A failure prints its seed, which `RINGBACK_TEST_SEED` repeats.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, IteratorRandom};
use rand::{RngExt, SeedableRng};
use ringback_core::clock::Timestamp;
use ringback_core::job::{JobKey, NewJob, OrderKey};
use ringback_core::store_types::{Lease, MoveResult};
use ringback_core::topic_policy::OrderOnDead;
use ringback_testkit::seed;

use super::job_builders::{TOPIC, With, bury, ms, release, retry, topic};
use super::workbench::{Workbench, now};
use crate::prelude::*;

const STEPS: usize = 600;
const KEYS: usize = 5;
const ORIGINS: [&str; 2] = ["http://one.example", "http://two.example"];

/// What a job that has not ended does.
#[derive(Debug)]
enum Stage {
    /// It was not attempted since it was submitted or revived.
    Waits,
    InFlight(Box<Lease>),
    /// It was attempted, and keeps its key until it has ended.
    Attempted,
    Dead,
}

#[derive(Debug)]
struct Known {
    due: Timestamp,
    /// Its place among jobs of the same due time; `None` of one that was moved, which has any.
    number: Option<usize>,
    stage: Stage,
}

struct Run<'a> {
    bench: &'a Workbench,
    rng: StdRng,
    on_dead: OrderOnDead,
    keys: Vec<OrderKey>,
    jobs: BTreeMap<(usize, usize), Known>,
    /// By key, the dead job that holds it.
    held: BTreeMap<usize, usize>,
    submitted: usize,
    at: String,
}

pub(crate) async fn a_key_has_one_job_at_a_time_in_its_order_whatever_happens(bench: &Workbench) {
    for on_dead in [OrderOnDead::Next, OrderOnDead::Hold] {
        let seed = seed("RINGBACK_TEST_SEED");
        let own = bench.with(|options| options.prefix = format!("order-{seed}-{on_dead:?}")).await;
        own.store().order_topic(&topic(TOPIC), Some(on_dead)).await.expect("order");
        let keys = (0..KEYS).map(|n| own.key(TOPIC, &format!("key-{n}")).id.as_str().parse().expect("a key"));
        let mut run = Run {
            bench: &own,
            rng: StdRng::seed_from_u64(seed),
            on_dead,
            keys: keys.collect(),
            jobs: BTreeMap::new(),
            held: BTreeMap::new(),
            submitted: 0,
            at: String::new(),
        };
        for step in 0..STEPS {
            run.at = format!("seed {seed}, step {step}, {on_dead:?}");
            run.step().await;
        }
        run.drain().await;
        own.check().await;
    }
}

impl Run<'_> {
    async fn step(&mut self) {
        match self.rng.random_range(0..100) {
            0..30 => self.submit().await,
            30..55 => self.reserve().await,
            55..85 => self.settle().await,
            85..89 => self.cancel().await,
            89..93 => self.revive().await,
            93..96 => self.purge().await,
            96..98 => self.run_now().await,
            _ => self.unblock().await,
        }
    }

    fn job_key(&self, (key, n): (usize, usize)) -> JobKey {
        JobKey { topic: topic(TOPIC), id: self.keys[key].id(&n.to_string()).expect("an id") }
    }

    /// One of the jobs for which this holds.
    fn one(&mut self, is_it: impl Fn(&Known) -> bool) -> Option<(usize, usize)> {
        let all = self.jobs.iter().filter(|(_, job)| is_it(job)).map(|(name, _)| *name);
        all.choose(&mut self.rng)
    }

    async fn submit(&mut self) {
        let at = now().plus(ms(self.rng.random_range(0..4)));
        let names: Vec<_> = (0..self.rng.random_range(1..6))
            .map(|n| (self.rng.random_range(0..KEYS), self.submitted + n))
            .collect();
        let mut jobs = Vec::new();
        for name in &names {
            let origin = *ORIGINS.choose(&mut self.rng).expect("some");
            let job = NewJob { key: self.job_key(*name), ..self.bench.job("any") }.to(origin);
            jobs.push(if self.rng.random_bool(0.5) { job.at(at) } else { job });
        }
        for (name, new) in names.iter().zip(self.bench.submit(&jobs).await) {
            let known = Known { due: new.job.due, number: Some(name.1), stage: Stage::Waits };
            self.jobs.insert(*name, known);
        }
        self.submitted += names.len();
    }

    async fn reserve(&mut self) {
        let before = now();
        self.bench.promote(500).await;
        let limit = *[1, 3, 100].choose(&mut self.rng).expect("some");
        let leases = self.bench.take(limit).await;
        // A smaller limit is divided by lanes, so more may be ready.
        let is_all = limit == 100;
        for lease in leases {
            let name = self.name(&lease);
            self.may_go(name, before);
            self.jobs.get_mut(&name).expect("it is known").stage = Stage::InFlight(Box::new(lease));
        }
        if is_all {
            self.none_is_left_behind(before);
        }
    }

    fn name(&self, lease: &Lease) -> (usize, usize) {
        let (key, n) = lease.key.id.as_str().split_once('~').expect("a key");
        let key = self.keys.iter().position(|one| one.as_str() == key).expect("one of the keys");
        (key, n.parse().expect("a number"))
    }

    /// Asserts that a job may be delivered: its key is not held, no job of it was attempted and has not ended, and none
    /// that was due by `before` comes first.
    fn may_go(&self, name: (usize, usize), before: Timestamp) {
        let (at, job) = (&self.at, &self.jobs[&name]);
        assert!(!self.held.contains_key(&name.0), "{at}: {name:?} goes while {:?} holds its key", self.held);
        assert!(matches!(job.stage, Stage::Waits | Stage::Attempted), "{at}: {name:?} goes, but is {job:?}");
        for (other, known) in self.jobs.iter().filter(|(other, _)| other.0 == name.0 && **other != name) {
            let is_first = match known.stage {
                Stage::InFlight(_) | Stage::Attempted => true,
                Stage::Waits if matches!(job.stage, Stage::Waits) => {
                    let is_by_number = known.number.zip(job.number).is_some_and(|(one, own)| one < own);
                    known.due <= before && (known.due < job.due || known.due == job.due && is_by_number)
                }
                Stage::Waits | Stage::Dead => false,
            };
            assert!(!is_first, "{at}: {name:?} ({job:?}) goes before {other:?} ({known:?})");
        }
    }

    /// Asserts that each key with a job that was due by `before` has one in flight or attempted, or is held.
    fn none_is_left_behind(&self, before: Timestamp) {
        for ((key, n), job) in &self.jobs {
            let is_busy = |one: &Known| matches!(one.stage, Stage::InFlight(_) | Stage::Attempted);
            let mut others = self.jobs.iter().filter(|((other, _), _)| other == key);
            let may_wait = self.held.contains_key(key) || others.any(|(_, one)| is_busy(one));
            let waits = matches!(job.stage, Stage::Waits) && job.due <= before;
            assert!(!waits || may_wait, "{}: {n} of key {key} is left behind", self.at);
        }
    }

    async fn settle(&mut self) {
        let Some(name) = self.one(|job| matches!(job.stage, Stage::InFlight(_))) else { return };
        let mut known = self.jobs.remove(&name).expect("it is known");
        let Stage::InFlight(lease) = known.stage else { unreachable!("it is in flight") };
        let (outcome, stage) = match self.rng.random_range(0..10) {
            0..6 => (Outcome::Complete, None),
            6 => (retry(ms(self.rng.random_range(0..3))), Some(Stage::Attempted)),
            7 => (release(ms(self.rng.random_range(0..3))), Some(Stage::Attempted)),
            8 => (Outcome::Return, Some(Stage::Attempted)),
            _ => (bury(), Some(Stage::Dead)),
        };
        if matches!(outcome, Outcome::Return) && lease.attempt == 1 {
            // It counts as never attempted, so another one may go before it.
            known.stage = Stage::Waits;
            self.bench.settle(*lease, outcome).await;
            self.jobs.insert(name, known);
            return;
        }
        self.bench.settle(*lease, outcome).await;
        if let Some(stage) = stage {
            if matches!(stage, Stage::Dead) && self.on_dead == OrderOnDead::Hold {
                self.held.insert(name.0, name.1);
            }
            self.jobs.insert(name, Known { stage, ..known });
        }
    }

    async fn cancel(&mut self) {
        let Some(name) = self.one(|job| !matches!(job.stage, Stage::InFlight(_))) else { return };
        self.bench.cancel(&self.job_key(name)).await;
        self.end(name);
    }

    fn end(&mut self, name: (usize, usize)) {
        self.jobs.remove(&name);
        if self.held.get(&name.0) == Some(&name.1) {
            self.held.remove(&name.0);
        }
    }

    async fn revive(&mut self) {
        let Some(name) = self.one(|job| matches!(job.stage, Stage::Dead)) else { return };
        let key = self.job_key(name);
        let revived = self.bench.store().revive(&key, self.bench.token()).await.expect("revive");
        let MoveResult::Applied(job) = revived else {
            panic!("{}: {key} was not revived: {revived:?}", self.at)
        };
        let holds = self.held.get(&name.0) == Some(&name.1);
        if holds {
            self.held.remove(&name.0);
        }
        let stage = if holds { Stage::Attempted } else { Stage::Waits };
        self.jobs.insert(name, Known { due: job.due, number: None, stage });
    }

    async fn purge(&mut self) {
        let Some(name) = self.one(|job| matches!(job.stage, Stage::Dead)) else { return };
        self.bench.store().purge(&self.job_key(name)).await.expect("purge");
        self.end(name);
    }

    async fn run_now(&mut self) {
        let Some(name) = self.one(|job| matches!(job.stage, Stage::Waits)) else { return };
        let key = self.job_key(name);
        self.bench.store().run(&key, self.bench.token()).await.expect("run");
        let due = self.bench.get(&key).await.due;
        self.jobs.insert(name, Known { due, number: None, stage: Stage::Waits });
    }

    async fn unblock(&mut self) {
        let Some((key, n)) = self.held.pop_first() else { return };
        let held = self.bench.store().unblock(&topic(TOPIC), &self.keys[key]).await.expect("unblock");
        assert!(held, "{}: {n} holds key {key}", self.at);
    }

    /// Ends all jobs.
    async fn drain(&mut self) {
        while !self.held.is_empty() {
            self.unblock().await;
        }
        eventually(SOON, "all jobs end", async || {
            self.reserve().await;
            let is_in_flight = |(_, job): &(_, &Known)| matches!(job.stage, Stage::InFlight(_));
            let in_flight: Vec<_> = self.jobs.iter().filter(is_in_flight).map(|(name, _)| *name).collect();
            for name in in_flight {
                let Some(Known { stage: Stage::InFlight(lease), .. }) = self.jobs.remove(&name) else {
                    continue;
                };
                self.bench.settle(*lease, Outcome::Complete).await;
            }
            let left = self.jobs.values().filter(|job| !matches!(job.stage, Stage::Dead)).count();
            if left == 0 { Ok(()) } else { Err(left) }
        })
        .await;
    }
}
