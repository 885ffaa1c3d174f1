//! Random calls for a few keys of an ordered topic. No key may ever have two jobs that are delivered, a job that is
//! attempted first must be the earliest ready one of its key, and in the end every job goes.

use std::collections::HashMap;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::*;

const KEYS: [&str; 3] = ["a", "b", "c"];
const STEPS: usize = 1500;

struct Run {
    store: EmbeddedStore,
    clock: ManualClock,
    rng: StdRng,
    epoch: ringback_core::store_types::Epoch,
    /// The leases of each key.
    leases: HashMap<String, Lease>,
    /// Leases that have expired.
    lost: Vec<Lease>,
    sequence: u64,
    made: usize,
}

impl Run {
    async fn new(seed: u64, on_dead: OrderOnDead) -> Self {
        let clock = ManualClock::at(BEGIN);
        let store = at(&clock).await;
        store.order_topic(SHARD, &topic(), Some(on_dead)).await.unwrap();
        let epoch = store.take_shard(SHARD, "carrier").await.unwrap();
        let (rng, leases) = (StdRng::seed_from_u64(seed), HashMap::new());
        Self { store, clock, rng, epoch, leases, lost: Vec::new(), sequence: 0, made: 0 }
    }

    fn token(&mut self) -> Token {
        Token(self.rng.random())
    }

    /// A random id, of a job that may exist.
    fn id(&mut self) -> String {
        let n = self.rng.random_range(self.made.saturating_sub(12)..=self.made);
        format!("{}~{n}", KEYS[n % KEYS.len()])
    }

    async fn step(&mut self) {
        let id = self.id();
        match self.rng.random_range(0..100) {
            0..30 => self.submit(&id).await,
            30..50 => self.reserve().await,
            50..75 => self.settle().await,
            75..80 => drop(self.store.cancel(SHARD, &key_of(&id)).await.unwrap()),
            80..90 => {
                let (token, after) = (self.token(), self.delay());
                let what = *[
                    Move::Run(token),
                    Move::Revive(token),
                    Move::Purge,
                    Move::Reschedule(Due::In(after), token),
                ]
                .choose(&mut self.rng)
                .unwrap();
                self.store.move_job(SHARD, &key_of(&id), what).await.unwrap();
            }
            90..93 => drop(unblock(&self.store, KEYS.choose(&mut self.rng).unwrap()).await),
            93..97 => drop(self.store.promote(SHARD, &self.epoch, pass(10)).await.unwrap()),
            97 => self.lose().await,
            98 => {
                let on_dead = *[OrderOnDead::Next, OrderOnDead::Hold].choose(&mut self.rng).unwrap();
                self.store.order_topic(SHARD, &topic(), Some(on_dead)).await.unwrap();
            }
            _ => self.clock.advance(Duration::from_millis(self.rng.random_range(0..50))),
        }
    }

    fn delay(&mut self) -> Duration {
        Duration::from_millis(*[0, 0, 1, 20, 60_000].choose(&mut self.rng).unwrap())
    }

    async fn submit(&mut self, id: &str) {
        self.made += 1;
        let token = self.token();
        let if_exists = match self.rng.random_range(0..3) {
            0 => IfExists::Refuse,
            1 => IfExists::Replace { token },
            _ => IfExists::Postpone { token, max_delay: None },
        };
        let content = ContentHash([self.rng.random_range(0..3); 8]);
        let mut job = NewJob { due: Due::In(self.delay()), if_exists, content, ..due_now(id) };
        if self.rng.random() {
            job.delivery.callback = Callback::parse("http://other.example/hook").unwrap();
        }
        self.store.submit(SHARD, &[job]).await.unwrap();
    }

    async fn reserve(&mut self) {
        self.sequence += 1;
        let found = reserve(&self.store, self.sequence).await;
        let ready = self.ready().await;
        for (id, lease) in found {
            let key = id.split('~').next().unwrap();
            let earlier = ready.iter().find(|(of, due)| of == key && *due < lease.due.as_millis());
            assert!(lease.attempt > 1 || earlier.is_none(), "{earlier:?} is due before {id}");
            let beside = self.leases.insert(key.to_owned(), lease);
            assert!(beside.is_none(), "{id} goes beside {beside:?}");
        }
    }

    /// The keys and the due times of the jobs that are ready.
    async fn ready(&self) -> Vec<(String, u64)> {
        let ready = |txn: &mut Txn<'_>| {
            let mut jobs = Vec::new();
            txn.tables.records.each(|number, job| {
                let id = txn.tables.records.id(number)?.unwrap_or_default();
                let job = job.filter(|job| job.state() == State::Ready);
                jobs.extend(job.map(|job| (id.split('~').next().unwrap().to_owned(), job.due)));
                Ok(())
            })?;
            Ok(jobs)
        };
        self.store.call(SHARD, 0, ready).await.unwrap()
    }

    /// Lets all leases expire, and recovers their jobs.
    async fn lose(&mut self) {
        self.clock.advance(3 * HOUR);
        self.store.recover(SHARD, &self.epoch, pass(100)).await.unwrap();
        self.lost.extend(self.leases.drain().map(|(_, lease)| lease));
    }

    async fn settle(&mut self) {
        if let Some(late) = self.lost.pop() {
            settle(&self.store, late, Outcome::Complete).await;
        }
        for (_, lease) in std::mem::take(&mut self.leases) {
            let last = LastAttempt::default();
            let outcome = match self.rng.random_range(0..6) {
                0 => Outcome::Retry { after: self.delay(), last },
                1 => Outcome::Release { after: self.delay() },
                2 => Outcome::Return,
                3 => bury(),
                _ => Outcome::Complete,
            };
            settle(&self.store, lease, outcome).await;
        }
    }

    /// Lets every job end, and asserts that none is left.
    async fn drain(mut self) {
        for _ in 0..400 {
            self.clock.advance(Duration::from_secs(30));
            for key in KEYS {
                unblock(&self.store, key).await;
            }
            self.store.promote(SHARD, &self.epoch, pass(100)).await.unwrap();
            self.reserve().await;
            for (_, lease) in std::mem::take(&mut self.leases) {
                settle(&self.store, lease, Outcome::Complete).await;
            }
        }
        let states = self.store.stats(SHARD).await.unwrap().states;
        assert_eq!((states.delayed, states.ready, states.reserved), (0, 0, 0));
        let row = self.store.call(SHARD, 0, |txn| Ok(txn.row.clone())).await.unwrap();
        assert_eq!(row.waiting_keys, 0);
        no_findings(&self.store).await;
    }
}

#[tokio::test]
async fn random_calls_never_let_two_jobs_of_a_key_go_at_a_time_and_leave_none_behind() {
    for (seed, on_dead) in (0..8).zip([OrderOnDead::Next, OrderOnDead::Hold].into_iter().cycle()) {
        let mut run = Run::new(seed, on_dead).await;
        for step in 0..STEPS {
            run.step().await;
            if step % 50 == 0 {
                let check = run.store.check(Repair::No).await.unwrap();
                assert_eq!((check.findings, check.stale), (Vec::new(), 0), "seed {seed}, step {step}");
            }
        }
        run.drain().await;
    }
}
