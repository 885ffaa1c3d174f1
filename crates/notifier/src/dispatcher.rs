//! Permit, reserve, spawn: a job is reserved only when it can start at once, so nothing
//! that is leased waits in memory. One task owns all the counts; several shards are asked
//! at the same time, one call each.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_core::store::{Reserve, Reserved, Shard, Store, StoreError};
use ringback_service::backoff::Backoff;
use ringback_service::{Shutdown, random};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use crate::delivery::{Courier, Delivered, Machine};
use crate::lack::{Lack, Shown};
use crate::lanes::{Ask, Lanes, Refill, lane_of};
use crate::metrics::Metrics;
use crate::wanted::{Cause, Wanted};

/// While few permits are left they are not asked for more often than this.
const SCARCE_PAUSE: Duration = Duration::from_millis(5);

/// After so long without a reserve any room of a lane is worth one: its calls take long, and
/// who waits for a batch to come together waits in vain.
const BATCH_PAUSE: Duration = Duration::from_millis(20);

/// The answer to one reserve.
struct Answered {
    shard: Shard,
    cause: Cause,
    ask: Ask,
    reserved: Result<Reserved, StoreError>,
}

/// Hands jobs to couriers.
pub(crate) struct Dispatcher {
    store: Store,
    wanted: Arc<Wanted>,
    lanes: Lanes,
    courier: Arc<Courier>,
    margin: Duration,
    metrics: Metrics,
    shutdown: Shutdown,
    caller: Arc<str>,
    rng: StdRng,
    /// Sequences per shard: the same again until its answer has come.
    sequences: HashMap<Shard, u64>,
    /// Reserves under way, at most one per shard.
    asks: JoinSet<Answered>,
    last_ask: Instant,
    asking: BTreeSet<Shard>,
    /// Shards that were marked while they were being asked.
    again: BTreeMap<Shard, Cause>,
    /// Lanes that were passed for lack of room here, and the shards where they wait, in turn.
    blocked: HashMap<String, VecDeque<Shard>>,
    deliveries: JoinSet<()>,
    /// Lanes of calls that have ended. At most one message per permit waits in it.
    ended: (UnboundedSender<Ended>, UnboundedReceiver<Ended>),
    /// No reserve before this, after one failed.
    pause: Option<Instant>,
    backoff: Backoff,
    lack: Lack,
    /// No reserve before this while few permits are left.
    scarce: Option<Instant>,
}

/// A call of this lane has ended.
struct Ended {
    lane: String,
    machine: Machine,
}

impl Dispatcher {
    pub(crate) fn new(
        store: Store,
        wanted: Arc<Wanted>,
        lanes: Lanes,
        courier: Courier,
        margin: Duration,
        metrics: Metrics,
        shutdown: Shutdown,
    ) -> Self {
        let mut rng = random::generator();
        Self {
            store,
            wanted,
            lanes,
            courier: Arc::new(courier),
            margin,
            metrics,
            shutdown,
            caller: format!("{:016x}", rng.random::<u64>()).into(),
            rng,
            sequences: HashMap::new(),
            asks: JoinSet::new(),
            last_ask: Instant::now(),
            asking: BTreeSet::new(),
            again: BTreeMap::new(),
            blocked: HashMap::new(),
            deliveries: JoinSet::new(),
            ended: unbounded_channel(),
            pause: None,
            backoff: Backoff::new(random::generator()),
            lack: Lack::new(random::generator()),
            scarce: None,
        }
    }

    /// Works until the shutdown, then lets what is in flight end.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        while !self.shutdown.is_stopping() {
            self.ask_all();
            self.rest().await?;
        }
        info!(in_flight = self.lanes.permits(), "no more jobs are taken; waiting for those in flight");
        // What was asked for before is reserved: it is delivered like the rest.
        while let Some(answered) = self.asks.join_next().await {
            self.answered(answered)?;
        }
        while let Some(settled) = self.deliveries.join_next().await {
            self.settled(settled)?;
        }
        Ok(())
    }

    /// Asks every wanted shard for as much as may start.
    fn ask_all(&mut self) {
        let refill = self.refill();
        while self.held_back().is_none() && self.wanted.is_any_marked() {
            let scarce = self.lanes.is_scarce();
            let Some(ask) = self.lanes.ask(refill) else { return };
            let Some((shard, cause)) = self.next_wanted() else {
                self.lanes.answered(&ask);
                return;
            };
            self.reserve(shard, cause, ask);
            self.scarce = scarce.then(|| Instant::now() + SCARCE_PAUSE);
        }
    }

    /// Until when nothing is to be asked for, if it is not now.
    fn held_back(&self) -> Option<Instant> {
        let scarce = self.scarce.filter(|_| self.lanes.is_scarce());
        let until = self.pause.max(self.lack.until()).max(scarce)?;
        (until > Instant::now()).then_some(until)
    }

    fn refill(&self) -> Refill {
        if self.last_ask.elapsed() < BATCH_PAUSE { Refill::Batch } else { Refill::Any }
    }

    /// When a passed lane with a little room is worth a reserve, if there is one.
    fn refill_at(&self) -> Option<Instant> {
        let waits = self.blocked.keys().any(|lane| self.lanes.is_open(lane, Refill::Any));
        waits.then(|| self.last_ask + BATCH_PAUSE)
    }

    /// A marked shard that is not being asked already.
    fn next_wanted(&mut self) -> Option<(Shard, Cause)> {
        loop {
            let (shard, cause) = self.wanted.take()?;
            if !self.asking.contains(&shard) {
                return Some((shard, cause));
            }
            let known = self.again.entry(shard).or_insert(cause);
            *known = cause.max(*known);
        }
    }

    fn reserve(&mut self, shard: Shard, cause: Cause, mut ask: Ask) {
        let sequence = *self.sequences.entry(shard).or_insert_with(|| self.rng.random::<u32>().into());
        let (store, caller, margin, bits) =
            (self.store.clone(), Arc::clone(&self.caller), self.margin, self.rng.random());
        self.asking.insert(shard);
        self.last_ask = Instant::now();
        self.asks.spawn(async move {
            // Nobody needs them after the call.
            let rooms = std::mem::take(&mut ask.rooms);
            let Ask { limit, lane_room, .. } = ask;
            let reserve = Reserve { caller: &caller, sequence, limit, lane_room, rooms, bits, margin };
            let reserved = store.reserve(shard, &reserve).await;
            Answered { shard, cause, ask, reserved }
        });
    }

    /// Waits for a reason to go on, and takes in all that has happened.
    async fn rest(&mut self) -> anyhow::Result<()> {
        let held_back = self.held_back();
        let shutdown = self.shutdown.clone();
        let at = held_back.or_else(|| self.refill_at());
        let until = at.unwrap_or_else(Instant::now);
        tokio::select! {
            Some(answered) = self.asks.join_next() => self.answered(answered)?,
            Some(ended) = self.ended.1.recv() => self.ended(&ended),
            Some(settled) = self.deliveries.join_next() => self.settled(settled)?,
            () = self.wanted.marked(), if held_back.is_none() => {}
            () = sleep_until(until), if at.is_some() => {}
            () = shutdown.stopping() => {}
        }
        while let Some(answered) = self.asks.try_join_next() {
            self.answered(answered)?;
        }
        while let Ok(ended) = self.ended.1.try_recv() {
            self.ended(&ended);
        }
        while let Some(settled) = self.deliveries.try_join_next() {
            self.settled(settled)?;
        }
        self.unblock();
        self.metrics.in_flight.record(self.lanes.permits() as u64, &[]);
        Ok(())
    }

    /// Wants a shard again for each passed lane that has room by now. One at a time: it may
    /// take all the room, and the others would be asked in vain.
    fn unblock(&mut self) {
        let (lanes, wanted, refill) = (&self.lanes, &self.wanted, self.refill());
        self.blocked.retain(|lane, shards| {
            if lanes.is_open(lane, refill)
                && let Some(shard) = shards.pop_front()
            {
                wanted.mark(shard, Cause::Own);
            }
            !shards.is_empty()
        });
    }

    fn ended(&mut self, ended: &Ended) {
        self.lanes.leave(&ended.lane);
        if ended.machine == Machine::Lacking && self.lack.show(Instant::now()) == Shown::First {
            warn!("this machine lacks file descriptors or memory; jobs are given back, and fewer are taken");
        }
    }

    fn settled(&mut self, settled: Result<(), JoinError>) -> anyhow::Result<()> {
        settled.context("a delivery died")?;
        self.lanes.settled();
        Ok(())
    }

    fn answered(&mut self, answered: Result<Answered, JoinError>) -> anyhow::Result<()> {
        let Answered { shard, cause, ask, reserved } = answered.context("a reserve died")?;
        self.lanes.answered(&ask);
        self.asking.remove(&shard);
        if let Some(cause) = self.again.remove(&shard) {
            self.wanted.mark(shard, cause);
        }
        match reserved {
            Ok(reserved) => {
                if let Some(sequence) = self.sequences.get_mut(&shard) {
                    *sequence += 1;
                }
                self.backoff.reset();
                if self.pause.take().is_some() {
                    info!("jobs can be reserved again");
                }
                self.wanted.heed(shard, cause, &reserved);
                self.start(shard, reserved);
            }
            Err(error) => self.failed(shard, &error),
        }
        Ok(())
    }

    fn start(&mut self, shard: Shard, reserved: Reserved) {
        if reserved.more {
            self.wanted.mark(shard, Cause::Own);
        }
        for lane in reserved.passed {
            let shards = self.blocked.entry(lane).or_default();
            if !shards.contains(&shard) {
                shards.push_back(shard);
            }
        }
        self.metrics.reserved.record(reserved.leases.len() as u64, &[]);
        for lease in reserved.leases {
            let lane = lane_of(&lease);
            self.lanes.enter(&lane);
            let (courier, ended) = (Arc::clone(&self.courier), self.ended.0.clone());
            self.deliveries.spawn(async move {
                let Delivered { word, machine } = courier.deliver(lease).await;
                // The lane is free while the outcome is still on its way to the store. When
                // nobody listens the dispatcher has ended, and with it this delivery.
                ended.send(Ended { lane, machine }).ok();
                courier.settle(word).await;
            });
        }
    }

    fn failed(&mut self, shard: Shard, error: &StoreError) {
        let unprepared = matches!(error, StoreError::Unprepared);
        if self.pause.is_none() && !unprepared {
            warn!(
                shard = shard.number(),
                error = crate::cause(error),
                "no job can be reserved; trying again"
            );
        }
        self.pause = Some(Instant::now() + self.backoff.next());
        self.wanted.mark(shard, Cause::Own);
    }
}
