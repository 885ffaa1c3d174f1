//! Random operations against the model. A failure prints its seed; put it first in `SEEDS` to repeat it.

use std::collections::HashMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use ringback_core::clock::Timestamp;
use ringback_core::contract::{Lease, Reserve, Settled, Stats, SubmitResult, Token};
use ringback_core::job::{IfExists, JobKey, NewJob};
use ringback_core::outcome::Outcome;
use ringback_core::state::State;
use tokio::time::{Instant, sleep_until};

use super::jobs::{BRIEFEST, LONG, With, bury, ms, release, retry};
use super::model::{LeaseNumber, Model, Offered};
use super::workbench::{Workbench, now, until};

/// One that never changes, beside one that always does.
const SEEDS: [u64; 1] = [20_261_120];
const STEPS: usize = 2500;
/// Names in play at a time.
const WINDOW: usize = 40;

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
    /// For messages.
    at: String,
}

pub(crate) async fn thousands_of_random_operations_agree_with_a_simple_model(bench: &Workbench) {
    for seed in SEEDS.into_iter().chain([now().as_millis()]) {
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
        own.audit().await;
    }
}

impl Run<'_> {
    async fn step(&mut self, step: usize) {
        let name = step / 20 + self.rng.random_range(0..WINDOW);
        let key = self.bench.key(["a", "b", "c"][name % 3], &format!("job-{name}"));
        match self.rng.random_range(0..1000) {
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
        let origin = *["http://one.example", "http://two.example"].choose(&mut self.rng).expect("some");
        let if_exists = self.if_exists();
        let is_ready = delay.is_zero() || if_exists.latest(Timestamp::default()).is_some();
        let state = if is_ready { State::Ready } else { State::Delayed };
        let offered = Offered { content, state, soon: delay < LONG, if_exists };
        let wanted = self.model.submit(&key, offered, self.leases);
        let job = super::jobs::new_job(key.clone()).content(content).after(delay).to(origin);
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

    /// What the next submit does to a job with its key. There are few tokens, so that some submits are repetitions.
    fn if_exists(&mut self) -> IfExists {
        let token = Token([self.rng.random_range(1..4); 8]);
        let max_delay = self.rng.random_bool(0.2).then_some(Duration::ZERO);
        match self.rng.random_range(0..10) {
            0..6 => IfExists::Refuse,
            6..8 => IfExists::Replace { token },
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
        let ask = Reserve { margin, ..self.bench.ask(self.rng.random_range(1..8)) };
        let reserved = self.bench.reserve(&ask).await;
        if reserved.leases.is_empty() && !reserved.more {
            let ready = self.model.jobs.iter().find(|(_, job)| job.state == State::Ready);
            assert!(ready.is_none(), "{}: nothing is given, but {ready:?}", self.at);
        }
        let again =
            if self.rng.random_bool(0.4) { self.bench.reserve(&ask).await.leases } else { Vec::new() };
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
        let settled: Settled = self.bench.settle(lease, outcome.clone()).await;
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
        assert_eq!(per_state(&stats), self.model.per_state(), "{}: {:?}", self.at, State::ALL);
    }

    async fn all_agree(&mut self) {
        self.ledger_agrees().await;
        for name in 0..STEPS / 20 + WINDOW {
            let key = self.bench.key(["a", "b", "c"][name % 3], &format!("job-{name}"));
            self.get(&key).await;
        }
    }
}

fn per_state(stats: &Stats) -> [u64; 6] {
    let s = &stats.states;
    [s.delayed, s.ready, s.reserved, s.done, s.dead, s.cancelled]
}
