//! Permit, reserve, spawn: a job is reserved only when it can start at once, so nothing
//! that is leased waits in memory. One task owns all the counts; several shards are asked
//! at the same time, one call each.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_core::store::{Reserve, Reserved, Shard, Store, StoreError};
use ringback_service::backoff::Backoff;
use ringback_service::{Shutdown, random};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use crate::delivery::Courier;
use crate::lanes::{Ask, Lanes, lane_of};
use crate::metrics::Metrics;
use crate::wanted::Wanted;

/// The answer to one reserve.
struct Answered {
    shard: Shard,
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
    asking: BTreeSet<Shard>,
    /// Shards that were marked while they were being asked.
    again: BTreeSet<Shard>,
    /// Lanes that were passed for lack of room here, and the shards where they wait.
    blocked: HashMap<String, BTreeSet<Shard>>,
    deliveries: JoinSet<()>,
    /// Lanes of calls that have ended. At most one message per permit waits in it.
    ended: (UnboundedSender<String>, UnboundedReceiver<String>),
    /// No reserve before this, after one failed.
    pause: Option<Instant>,
    backoff: Backoff,
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
            asking: BTreeSet::new(),
            again: BTreeSet::new(),
            blocked: HashMap::new(),
            deliveries: JoinSet::new(),
            ended: unbounded_channel(),
            pause: None,
            backoff: Backoff::new(random::generator()),
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
        if self.pause.is_some_and(|until| until > Instant::now()) {
            return;
        }
        while let Some(ask) = self.lanes.ask() {
            let Some(shard) = self.next_wanted() else {
                self.lanes.answered(&ask);
                return;
            };
            self.reserve(shard, ask);
        }
    }

    /// A marked shard that is not being asked already.
    fn next_wanted(&mut self) -> Option<Shard> {
        loop {
            let shard = self.wanted.take()?;
            if !self.asking.contains(&shard) {
                return Some(shard);
            }
            self.again.insert(shard);
        }
    }

    fn reserve(&mut self, shard: Shard, ask: Ask) {
        let sequence = *self.sequences.entry(shard).or_insert_with(|| self.rng.random::<u32>().into());
        let (store, caller, margin, bits) =
            (self.store.clone(), Arc::clone(&self.caller), self.margin, self.rng.random());
        self.asking.insert(shard);
        self.asks.spawn(async move {
            let Ask { limit, lane_room, ref rooms } = ask;
            let reserve =
                Reserve { caller: &caller, sequence, limit, lane_room, rooms: rooms.clone(), bits, margin };
            let reserved = store.reserve(shard, &reserve).await;
            Answered { shard, ask, reserved }
        });
    }

    /// Waits for a reason to go on, and takes in all that has happened.
    async fn rest(&mut self) -> anyhow::Result<()> {
        let pause = self.pause.filter(|until| *until > Instant::now());
        let shutdown = self.shutdown.clone();
        let until = pause.unwrap_or_else(Instant::now);
        tokio::select! {
            Some(answered) = self.asks.join_next() => self.answered(answered)?,
            Some(lane) = self.ended.1.recv() => self.lanes.leave(&lane),
            Some(settled) = self.deliveries.join_next() => self.settled(settled)?,
            () = self.wanted.marked(), if pause.is_none() => {}
            () = sleep_until(until), if pause.is_some() => {}
            () = shutdown.stopping() => {}
        }
        while let Some(answered) = self.asks.try_join_next() {
            self.answered(answered)?;
        }
        while let Ok(lane) = self.ended.1.try_recv() {
            self.lanes.leave(&lane);
        }
        while let Some(settled) = self.deliveries.try_join_next() {
            self.settled(settled)?;
        }
        self.unblock();
        self.metrics.in_flight.record(self.lanes.permits() as u64, &[]);
        Ok(())
    }

    /// Wants the shards again whose passed lanes have room by now.
    fn unblock(&mut self) {
        let (lanes, wanted) = (&self.lanes, &self.wanted);
        self.blocked.retain(|lane, shards| {
            let open = lanes.is_open(lane);
            if open {
                shards.iter().for_each(|shard| wanted.mark(*shard));
            }
            !open
        });
    }

    fn settled(&mut self, settled: Result<(), JoinError>) -> anyhow::Result<()> {
        settled.map_err(|e| anyhow::Error::new(e).context("a delivery died"))?;
        self.lanes.settled();
        Ok(())
    }

    fn answered(&mut self, answered: Result<Answered, JoinError>) -> anyhow::Result<()> {
        let Answered { shard, ask, reserved } =
            answered.map_err(|e| anyhow::Error::new(e).context("a reserve died"))?;
        self.lanes.answered(&ask);
        self.asking.remove(&shard);
        if self.again.remove(&shard) {
            self.wanted.mark(shard);
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
                self.start(shard, reserved);
            }
            Err(error) => self.failed(shard, &error),
        }
        Ok(())
    }

    fn start(&mut self, shard: Shard, reserved: Reserved) {
        if reserved.more {
            self.wanted.mark(shard);
        }
        for lane in reserved.passed {
            self.blocked.entry(lane).or_default().insert(shard);
        }
        self.metrics.reserved.record(reserved.leases.len() as u64, &[]);
        for lease in reserved.leases {
            let lane = lane_of(&lease);
            self.lanes.enter(&lane);
            let (courier, ended) = (Arc::clone(&self.courier), self.ended.0.clone());
            self.deliveries.spawn(async move {
                let word = courier.deliver(lease).await;
                // The lane is free while the outcome is still on its way to the store.
                let _ = ended.send(lane);
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
        self.wanted.mark(shard);
    }
}
