//! The store in one directory, in one process: redb and a log before it, with one writer that
//! makes groups safe. This file turns an edge's arguments into a call of the writer and its answer into values.
//! `edges` has what each edge does, `tables` where everything lies.

#![expect(missing_docs, reason = "`ringback_store::Store` documents the calls that it passes on")]

mod attempts;
mod audit;
mod base;
mod dead;
mod edges;
mod events;
mod log;
mod outbox;
mod page;
mod place;
mod policies;
mod pull;
mod revivals;
mod tables;
#[cfg(test)]
mod tests;
mod time;
mod topics;
mod txn;
mod wake;
mod writer;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{
    Cancelled, Epoch, Lateness, Lease, LeaseGrant, LiveCarriers, Move, MoveResult, Options, Pass, Profile,
    Receipt, Recovered, Renewed, Reserve, Reserved, Settled, Shard, Stats, StoreClock, StoreError, Submitted,
    Wake, payload,
};
use ringback_core::job::{Job, JobKey, Locator, NewJob};
use ringback_core::lane::SettleHint;
use ringback_core::outcome::{LastAttempt, Outcome};
use ringback_core::state::State;
use tokio::time::{Instant, timeout};

use self::edges::{Order, Passed, Round, Taken, Wanted, Word};
pub use self::events::Events;
pub use self::place::Memory;
use self::place::{Place, lock};
pub use self::policies::PolicyChanges;
use self::tables::{Body, Last, Record, Stage};
use self::txn::{Keep, Txn};
pub use self::wake::Wakes;
use self::writer::Handle;

/// What a store's URL begins with; the directory follows.
pub const SCHEME: &str = "embedded:";
/// About what a tombstone takes, with its entries and the room that pages leave.
const TOMBSTONE_BYTES: u64 = 256;

pub struct EmbeddedStore {
    place: Arc<Place>,
    options: Options,
    /// Known once the file was found fit.
    writer: OnceLock<Arc<Handle>>,
}

impl EmbeddedStore {
    /// The store in a directory; its file is named after the prefix.
    pub fn open(directory: &str, options: Options) -> Self {
        let file = Path::new(directory).join(format!("{}.redb", options.prefix));
        Self::on(Place::of(&file), options)
    }

    pub fn in_memory(memory: &Memory, options: Options) -> Self {
        Self::on(Arc::clone(&memory.0), options)
    }

    fn on(place: Arc<Place>, options: Options) -> Self {
        Self { place, options, writer: OnceLock::new() }
    }

    pub fn profile(&self) -> Profile {
        self.place.profile()
    }

    /// Opens the file, unless this process has it open.
    pub async fn prepare(&self) -> Result<(), StoreError> {
        if let Some(writer) = self.writer.get() {
            return if writer.has_ended() { Err(StoreError::Closed) } else { Ok(()) };
        }
        let (place, shards) = (Arc::clone(&self.place), self.options.shards);
        let opened = tokio::task::spawn_blocking(move || place.writer(shards)).await;
        let writer = opened.map_err(|_| StoreError::Closed)??;
        if writer.shards != shards {
            return Err(self.options.shard_mismatch(writer.shards));
        }
        // Whoever was faster has put the same one there.
        let _ = self.writer.set(writer);
        Ok(())
    }

    /// Whether the writer answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.call(Shard(0), 0, |_| Ok(())).await
    }

    async fn call<T: Send + 'static>(
        &self,
        shard: Shard,
        bytes: usize,
        work: impl FnMut(&mut Txn<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let writer = self.writer.get().ok_or(StoreError::Unprepared)?;
        let patience = self.options.call_timeout;
        let answer = timeout(patience, writer.call(shard, bytes, work)).await;
        answer.map_err(|_elapsed| StoreError::Slow(patience))?
    }

    fn keep(&self) -> Keep {
        Keep { time: millis_up(self.options.keep_done), count: self.options.tombstones(TOMBSTONE_BYTES) }
    }

    fn round(&self, epoch: &Epoch, limit: u32, floor: Duration) -> Round {
        Round {
            epoch: epoch.clone(),
            limit: limit as usize,
            floor: millis_up(floor),
            retention: millis_up(self.options.keep_dead),
        }
    }

    pub async fn submit(&self, shard: Shard, jobs: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
        let wanted = jobs.iter().map(|job| Wanted::pack(shard.0, job)).collect();
        self.take(shard, wanted, jobs.iter().map(|job| &job.key)).await
    }

    pub async fn get(&self, shard: Shard, key: &JobKey) -> Result<Option<Job>, StoreError> {
        let (locator, keep) = (key.locator().0, self.keep());
        let found = self.call(shard, 0, move |txn| txn.known(locator, keep)).await?;
        Ok(found.map(|record| known(record, key.clone())))
    }

    pub async fn cancel(&self, shard: Shard, key: &JobKey) -> Result<Cancelled, StoreError> {
        let (locator, keep) = (key.locator().0, self.keep());
        self.call(shard, 256, move |txn| edges::cancel(txn, locator, keep)).await
    }

    pub async fn move_job(&self, shard: Shard, key: &JobKey, what: Move) -> Result<MoveResult, StoreError> {
        let (locator, keep) = (key.locator().0, self.keep());
        let moved = self.call(shard, 256, move |txn| edges::move_job(txn, locator, what, keep)).await?;
        Ok(match moved {
            None => MoveResult::Unknown,
            Some((true, record)) => MoveResult::Applied(known(record, key.clone())),
            Some((false, record)) => MoveResult::Refused(known(record, key.clone())),
        })
    }

    pub async fn stats(&self, shard: Shard) -> Result<Stats, StoreError> {
        self.call(shard, 0, |txn| stats(txn)).await
    }

    /// Carriers are of this process, so they are not written down.
    pub fn heartbeat(&self, carrier: &str, ttl: Duration) -> Result<LiveCarriers, StoreError> {
        self.writer.get().ok_or(StoreError::Unprepared)?;
        let now = self.place.clock.micros();
        let mut members = lock(&self.place.members);
        members.retain(|_, until| *until > now);
        let changed = if ttl.is_zero() {
            members.remove(carrier).is_some()
        } else {
            members.insert(carrier.to_owned(), now + millis_up(ttl).saturating_mul(1000)).is_none()
        };
        let others = members.iter().filter(|(name, _)| *name != carrier);
        let next_change = others.map(|(_, until)| Duration::from_micros(until - now)).min();
        let carriers = members.keys().cloned().collect();
        drop(members);
        if changed {
            self.place.hub.tell(Wake::Carriers);
        }
        // Who waits for a revival here is told of it, or knows when it is free.
        Ok(LiveCarriers { carriers, next_change, next_redrive: None })
    }

    pub async fn claim(&self, shard: Shard) -> Result<Epoch, StoreError> {
        self.call(shard, 256, |txn| Ok(edges::claim(txn))).await
    }

    /// The epoch stays, so that the next claim has a later one; nothing else is to be done.
    pub fn release_shard(&self) -> Result<(), StoreError> {
        self.writer.get().map(drop).ok_or(StoreError::Unprepared)
    }

    pub async fn promote(
        &self,
        shard: Shard,
        epoch: &Epoch,
        limit: u32,
        floor: Duration,
    ) -> Result<Pass, StoreError> {
        let round = self.round(epoch, limit, floor);
        let bytes = limit as usize * 256;
        self.call(shard, bytes, move |txn| edges::promote(txn, &round)).await.map(pass)
    }

    pub async fn recover(
        &self,
        shard: Shard,
        epoch: &Epoch,
        limit: u32,
        floor: Duration,
    ) -> Result<Recovered, StoreError> {
        let (round, keep) = (self.round(epoch, limit, floor), self.keep());
        let bytes = limit as usize * 256;
        let recovered = self.call(shard, bytes, move |txn| edges::recover(txn, &round, keep)).await?;
        let (passed, lapsed) = recovered.unzip();
        let lapsed = lapsed.iter().flatten().filter_map(|(job, body)| pull::lapsed(shard, job, body));
        Ok(Recovered { pass: pass(passed), expired: lapsed.collect() })
    }

    pub async fn evict(
        &self,
        shard: Shard,
        epoch: &Epoch,
        limit: u32,
        floor: Duration,
    ) -> Result<Pass, StoreError> {
        let round = self.round(epoch, limit, floor);
        let bytes = limit as usize * 256;
        self.call(shard, bytes, move |txn| edges::expire(txn, &round)).await.map(pass)
    }

    pub async fn reserve(&self, shard: Shard, ask: &Reserve<'_>) -> Result<Reserved, StoreError> {
        let asked = Instant::now();
        let order = Order::from(ask);
        let taken = self.call(shard, ask.limit * 256, move |txn| edges::reserve(txn, &order)).await?;
        Ok(reserved(shard, taken, asked))
    }

    pub async fn renew(&self, lease: &mut Lease, by: Duration) -> Result<Renewed, StoreError> {
        let asked = Instant::now();
        let (locator, receipt, ms) = (lease.grant().locator.0, lease.grant().receipt, millis_up(by));
        let renewed = self.call(lease.grant().shard, 256, move |txn| edges::renew(txn, locator, receipt, ms));
        if !renewed.await? {
            return Ok(Renewed::Stale);
        }
        lease.renewed(asked, by);
        Ok(Renewed::Extended)
    }

    pub async fn settle(
        &self,
        shard: Shard,
        items: &[(Lease, Outcome)],
        lateness: &Lateness,
    ) -> Result<Vec<Settled>, StoreError> {
        let words: Vec<_> = items.iter().map(Word::new).collect();
        let (lateness, keep) = (lateness.clone(), self.keep());
        let bytes = words.len() * 256;
        self.call(shard, bytes, move |txn| edges::settle(txn, &words, &lateness, keep)).await
    }

    pub async fn exchange(
        &self,
        shard: Shard,
        items: &[(Lease, Outcome)],
        lateness: &Lateness,
        ask: &Reserve<'_>,
    ) -> Result<(Vec<Settled>, Reserved), StoreError> {
        let asked = Instant::now();
        let words: Vec<_> = items.iter().map(Word::new).collect();
        let (lateness, keep, order) = (lateness.clone(), self.keep(), Order::from(ask));
        let bytes = (words.len() + ask.limit) * 256;
        let exchange = move |txn: &mut Txn<'_>| {
            Ok((edges::settle(txn, &words, &lateness, keep)?, edges::reserve(txn, &order)?))
        };
        let (settled, taken) = self.call(shard, bytes, exchange).await?;
        Ok((settled, reserved(shard, taken, asked)))
    }

    pub fn wakes(&self) -> Wakes {
        self.place.hub.listen()
    }
}

fn reserved(shard: Shard, taken: Taken, asked: Instant) -> Reserved {
    let Taken { now_us, jobs, more, passed, is_watched } = taken;
    let clock = StoreClock { shown_us: now_us, asked };
    let leases = jobs.into_iter().filter_map(|(record, body)| {
        let number = record.number;
        // The rest is not lost with one: its lease runs out and it is recovered.
        let lease = lease(shard, record, &body, clock, is_watched);
        if lease.is_none() {
            tracing::error!(shard = shard.0, job.number = number, "a reserved job cannot be read");
        }
        lease
    });
    Reserved { leases: leases.collect(), more, skipped: passed }
}

fn stats(txn: &Txn<'_>) -> Result<Stats, StoreError> {
    let (shard, ledger) = (txn.shard(), &txn.row.ledger);
    let mut stats = Stats {
        accepted: ledger.accepted,
        topics: txn.tables.due.known(shard)?.into_iter().collect(),
        lateness: txn.tables.minutes.recent(shard, txn.now())?,
        evicted_early: ledger.forgotten_early,
        // Of all shards, told with the first.
        pending_notices: if shard == 0 { txn.tables.outbox.len()? } else { 0 },
        ..Stats::default()
    };
    stats.states.purged = ledger.purged;
    for state in State::ALL {
        *stats.states.of(state) = ledger.of(state);
    }
    Ok(stats)
}

fn pass(passed: Option<Passed>) -> Pass {
    let wait = |us: Option<u64>| us.map(Duration::from_micros);
    passed.map_or(Pass::Fenced, |Passed { moved, other, due, lease, dead, tell }| Pass::Held {
        moved,
        other,
        next_due: wait(due),
        next_lease: wait(lease),
        next_dead: wait(dead),
        next_notice: wait(tell),
    })
}

fn known(record: Record, key: JobKey) -> Job {
    let last = |last: Last| LastAttempt {
        at: Timestamp::from_millis(last.at),
        status: last.status,
        error: last.error.map(Into::into),
        duration: Duration::from_millis(last.ms),
    };
    Job {
        key,
        state: record.state(),
        due: Timestamp::from_millis(record.due),
        created: Timestamp::from_millis(record.created),
        attempts: record.attempts,
        failures: record.failures,
        last: record.last.map(last),
        reason: match record.stage {
            Stage::Dead { reason, .. } => Some(reason.into()),
            _ => None,
        },
    }
}

fn lease(shard: Shard, record: Record, body: &Body, clock: StoreClock, is_watched: bool) -> Option<Lease> {
    let Stage::Reserved { lease, bits, deadline, .. } = record.stage else { return None };
    let timeout = record.timeout();
    let delivery = payload::unpack(&body.payload, record.origin.into(), timeout)?;
    let left = deadline.saturating_mul(1000).saturating_sub(clock.shown_us);
    let grant = LeaseGrant {
        shard,
        locator: Locator(record.locator),
        receipt: Receipt { number: lease, bits },
        deadline: clock.asked + Duration::from_micros(left),
        clock,
        hint: SettleHint::default(),
        is_watched,
    };
    let key = JobKey { topic: record.topic.parse().ok()?, id: body.id.parse().ok()? };
    let (due, created) = (Timestamp::from_millis(record.due), Timestamp::from_millis(record.created));
    Some(Lease::new(grant, key, delivery, due, created, record.attempts, record.failures))
}
