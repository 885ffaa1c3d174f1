//! Calls the store so that every transition is made, and records where in the append-only file each submit ends.

use std::collections::HashSet;

use ringback_core::job::{Due, History, IfExists, ImportJob, JobKey, NewJob};
use ringback_core::store_types::{
    Attempt, AttemptLogEntry, BulkStart, BulkTarget, DeadFilter, Lease, Options, SettleResult, TakenBulk,
    WorkerId,
};

use super::cuts::Files;
use crate::contract::job_builders::{BRIEF, LONG, TOPIC, With, bury, ms, release, retry};
use crate::contract::workbench::{Server, Workbench};
use crate::prelude::*;

/// A delay so long that the job is in a slot.
const HOURS: Duration = Duration::from_secs(2 * 3600);
/// A topic whose only lane comes and goes.
const OTHER: &str = "other";
pub(super) const TOPICS: [&str; 2] = [TOPIC, OTHER];

/// The jobs of the calls.
pub(super) struct Recorded {
    /// Each job, and where in the file its submit ends.
    submits: Vec<(JobKey, u64)>,
    /// Jobs that a purge or an eviction has removed.
    pub(super) purged: HashSet<JobKey>,
}

impl Recorded {
    /// The jobs whose submit ends at or before a place of the file.
    pub(super) fn before(&self, at: u64) -> impl Iterator<Item = &JobKey> {
        self.submits.iter().filter(move |(_, end)| *end <= at).map(|(key, _)| key)
    }
}

struct Workload<'a> {
    server: &'a Server,
    bench: &'a Workbench,
    recorded: Recorded,
}

pub(super) async fn run(server: &Server, bench: &Workbench) -> Recorded {
    let recorded = Recorded { submits: Vec::new(), purged: HashSet::new() };
    let mut workload = Workload { server, bench, recorded };
    workload.submits().await;
    workload.outcomes().await;
    workload.pull_jobs().await;
    workload.cancels().await;
    workload.moves().await;
    workload.replacements().await;
    workload.imports_and_pauses().await;
    workload.removals().await;
    workload.submits_in(OTHER).await;
    workload.recorded
}

impl Workload<'_> {
    fn job(&self, name: &str) -> NewJob {
        self.bench.job(name).timeout(BRIEF)
    }

    fn record(&mut self, key: JobKey) {
        let Server::Redis(redis) = self.server else { panic!("a single server") };
        self.recorded.submits.push((key, Files::size(redis.directory())));
    }

    async fn accept(&mut self, job: NewJob) -> JobKey {
        let key = self.bench.accept(job).await.key;
        self.record(key.clone());
        key
    }

    /// Completes all ready jobs, so that the next job is the next to be reserved.
    async fn end_ready(&self) {
        loop {
            let leases = self.bench.take(50).await;
            if leases.is_empty() {
                return;
            }
            let done = leases.into_iter().map(|lease| (lease, Outcome::Complete)).collect();
            self.bench.settle_all(done).await;
        }
    }

    /// Completes all ready jobs, then submits a job and reserves it.
    async fn reserved(&mut self, name: &str) -> Lease {
        self.end_ready().await;
        let lease = self.bench.reserved(self.job(name)).await;
        self.record(lease.key.clone());
        lease
    }

    async fn job_in(&mut self, state: State, job: NewJob) -> JobKey {
        self.end_ready().await;
        let key = self.bench.job_in(state, job).await.key;
        self.record(key.clone());
        key
    }

    async fn submits_in(&mut self, topic: &str) {
        let of = |name: &str| self.bench.job_of(topic, name).timeout(BRIEF);
        let jobs = [
            of("s-near").after(LONG),
            of("s-far").after(HOURS),
            of("s-ready"),
            of("s-to").to("http://b.example"),
        ];
        for job in jobs {
            self.accept(job).await;
        }
    }

    async fn submits(&mut self) {
        self.submits_in(TOPIC).await;
        for job in [
            self.job("large").body(noise(b'x', 5000).into()),
            self.job("far-large").after(HOURS).body(noise(b'x', 5000).into()),
        ] {
            self.accept(job).await;
        }
        let jobs = [self.job("b-1"), self.job("b-2").after(LONG), self.job("b-3").to("http://c.example")];
        self.bench.submit(&jobs).await;
        jobs.into_iter().for_each(|job| self.record(job.key));
    }

    async fn outcomes(&mut self) {
        let bench = self.bench;
        self.end_ready().await;
        self.accept(self.job("due").after(ms(1))).await;
        bench.promote_until(1).await;
        for name in ["o-1", "o-2", "o-3", "o-4", "o-5", "o-6", "o-7", "o-8"] {
            self.accept(self.job(name)).await;
        }
        let mut leases = bench.take(20).await.into_iter();
        let outcomes = [
            Outcome::Complete,
            retry(ms(1)),
            retry(LONG),
            retry(HOURS),
            bury(),
            release(ms(0)),
            release(LONG),
            release(HOURS),
        ];
        for outcome in outcomes {
            bench.settle(leases.next().expect("a lease"), outcome).await;
        }
        bench.promote_until(1).await;
        let held: Vec<_> = leases.map(|lease| (lease, Outcome::Complete)).collect();
        bench.exchange(held, &bench.ask(1)).await;
        let mut renewed = self.reserved("renewed").await;
        bench.store().renew(&mut renewed, ms(200)).await.expect("renew");
        let note = AttemptLogEntry::of(
            &renewed,
            Attempt { status: Some(500), answer: "no".into(), ..Attempt::default() },
        );
        bench.store().log_attempts(bench.shard(), &[note]).await.expect("note");
        let lost = self.reserved("lost").await.key;
        bench.recover_until(&lost, State::Ready).await;
        self.end_ready().await;
        let late = bench.stale_lease(self.job("late")).await;
        self.record(late.key.clone());
        assert_eq!(bench.settle(late, Outcome::Complete).await, SettleResult::Late);
    }

    async fn pull_jobs(&mut self) {
        for (name, outcome) in
            [("p-1", Outcome::Complete), ("p-2", retry(LONG)), ("p-3", bury()), ("p-4", release(ms(0)))]
        {
            self.accept(self.bench.pull_job(name)).await;
            let job = self.bench.pull_from(TOPIC, BRIEF).await;
            self.bench.settle_receipt(job.receipt, outcome).await;
        }
        self.accept(self.bench.pull_job("p-5")).await;
        self.bench.pull_from(TOPIC, BRIEF).await;
        let expired = self.bench.expired_leases(1).await.remove(0);
        let retried = [(expired.receipt, retry(ms(0)))];
        self.bench.store().settle_expired(self.bench.shard(), &retried).await.expect("settle");
    }

    async fn cancels(&mut self) {
        for (name, delay) in [("c-near", LONG), ("c-far", HOURS), ("c-ready", ms(0))] {
            let key = self.accept(self.job(name).after(delay)).await;
            self.bench.cancel(&key).await;
        }
        let dead = self.job_in(State::Dead, self.job("c-dead")).await;
        self.bench.cancel(&dead).await;
        let lease = self.reserved("c-reserved").await;
        self.bench.cancel(&lease.key).await;
        self.bench.settle(lease, retry(ms(0))).await;
    }

    async fn moves(&mut self) {
        let (bench, store) = (self.bench, self.bench.store());
        let near = self.accept(self.job("m-near").after(LONG)).await;
        store.reschedule(&near, Due::In(HOURS), bench.token()).await.expect("reschedule");
        store.reschedule(&near, Due::In(LONG), bench.token()).await.expect("reschedule");
        store.run(&near, bench.token()).await.expect("run");
        let dead = self.job_in(State::Dead, self.job("m-dead")).await;
        store.revive(&dead, bench.token()).await.expect("revive");
        for name in ["r-1", "r-2"] {
            self.job_in(State::Dead, self.job(name)).await;
        }
        let filter =
            DeadFilter { topic: TOPIC.parse().expect("a topic"), reason: None, after: None, before: None };
        let begun =
            store.start_bulk(bench.token(), &BulkTarget::Dead(filter.clone()), 1).await.expect("begin");
        let BulkStart::Bulk(bulk) = begun else { panic!("{begun:?}") };
        let worker = WorkerId([1; 8]);
        let taken = store.take_bulk(worker, LONG).await.expect("take");
        assert!(matches!(taken, TakenBulk::Bulk(_)), "{taken:?}");
        let dead = store.dead_cursors(bench.shard(), &filter, None, 100).await.expect("dead").items;
        store.revive_many(bench.shard(), bulk.id, &dead).await.expect("revive");
        store.finish_bulk(bulk.id, worker).await.expect("finish");
    }

    async fn replacements(&mut self) {
        for (name, state) in [
            ("x-delayed", State::Delayed),
            ("x-ready", State::Ready),
            ("x-dead", State::Dead),
            ("x-done", State::Done),
        ] {
            let job = self.job(name);
            self.job_in(state, job.clone()).await;
            for (delay, origin) in
                [(HOURS, "http://receiver.example"), (ms(0), "http://b.example"), (LONG, "http://d.example")]
            {
                let if_exists = IfExists::Replace { token: self.bench.token() };
                self.bench.submit(&[NewJob { if_exists, ..job.clone().after(delay).to(origin) }]).await;
            }
        }
    }

    async fn imports_and_pauses(&mut self) {
        let history = History { attempts: 3, failures: 2, ..History::default() };
        let dead = History { dead: Some("gone".to_owned()), ..history.clone() };
        let jobs = [
            ImportJob { job: self.job("i-near").after(LONG), history: Some(history) },
            ImportJob { job: self.job("i-dead"), history: Some(dead) },
            ImportJob { job: self.job("i-new").to("http://e.example"), history: None },
        ];
        self.bench.store().import(self.bench.shard(), &jobs).await.expect("import");
        jobs.into_iter().for_each(|import| self.record(import.job.key));
        let topic = TOPIC.parse().expect("a topic");
        self.bench.store().pause(&topic, None).await.expect("pause").expect("there is room");
        self.bench.take(10).await;
        self.bench.store().resume(&topic).await.expect("resume");
        self.bench.store().heartbeat("carrier", LONG).await.expect("heartbeat");
    }

    async fn removals(&mut self) {
        let names = ["d-1", "d-2", "d-3", "d-4"];
        let mut keys = Vec::new();
        for name in names {
            keys.push(self.job_in(State::Dead, self.job(name)).await);
        }
        self.recorded.purged.extend(keys.clone());
        self.bench.store().purge(&keys[0]).await.expect("purge");
        let filter =
            DeadFilter { topic: TOPIC.parse().expect("a topic"), reason: None, after: None, before: None };
        let dead = self
            .bench
            .store()
            .dead_cursors(self.bench.shard(), &filter, None, 100)
            .await
            .expect("dead")
            .items;
        for job in self.bench.store().dead(&filter, None, 100).await.expect("dead").items {
            self.recorded.purged.insert(job.job.key);
        }
        self.bench.store().purge_many(self.bench.shard(), &dead[..1]).await.expect("purge");
        let prefix = self.bench.options().prefix;
        let brief = |options: &mut Options| {
            options.prefix = prefix;
            options.keep_dead = ms(1);
        };
        self.bench.with(brief).await.evict(1).await;
    }
}
