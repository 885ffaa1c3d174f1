//! Permit, reserve, spawn: a job is reserved only when it can start at once, so nothing
//! that is leased waits in memory. One task owns all the counts.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_core::store::{Reserve, Reserved, Shard, Store, StoreError};
use ringback_service::backoff::Backoff;
use ringback_service::{Shutdown, random};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use crate::delivery::Courier;
use crate::lanes::{Lanes, lane_of};
use crate::metrics::Metrics;
use crate::wanted::Wanted;

/// At most so many jobs a reserve.
const LIMIT: usize = 128;

/// Hands jobs to couriers.
pub(crate) struct Dispatcher {
    store: Store,
    wanted: Arc<Wanted>,
    lanes: Lanes,
    courier: Arc<Courier>,
    margin: Duration,
    metrics: Metrics,
    shutdown: Shutdown,
    caller: String,
    rng: StdRng,
    /// Sequences per shard: the same again until its answer has come.
    sequences: HashMap<Shard, u64>,
    /// Shards where lanes were passed because they are full here.
    blocked: BTreeSet<Shard>,
    deliveries: JoinSet<String>,
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
            caller: format!("{:016x}", rng.random::<u64>()),
            rng,
            sequences: HashMap::new(),
            blocked: BTreeSet::new(),
            deliveries: JoinSet::new(),
            pause: None,
            backoff: Backoff::new(random::generator()),
        }
    }

    /// Works until the shutdown, then lets what is in flight end.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        while !self.shutdown.is_stopping() {
            while let Some(ended) = self.deliveries.try_join_next() {
                self.ended(ended)?;
            }
            let paused = self.pause.is_some_and(|until| until > Instant::now());
            let shard = if paused || self.lanes.free() == 0 { None } else { self.wanted.take() };
            match shard {
                Some(shard) => self.reserve(shard).await,
                None => self.rest().await?,
            }
        }
        info!(in_flight = self.lanes.in_flight(), "no more jobs are taken; waiting for those in flight");
        while let Some(ended) = self.deliveries.join_next().await {
            self.ended(ended)?;
        }
        Ok(())
    }

    /// Waits for a reason to go on.
    async fn rest(&mut self) -> anyhow::Result<()> {
        let pause = self.pause.filter(|until| *until > Instant::now());
        let may_reserve = self.lanes.free() > 0 && pause.is_none();
        let shutdown = self.shutdown.clone();
        let until = pause.unwrap_or_else(Instant::now);
        tokio::select! {
            Some(ended) = self.deliveries.join_next() => self.ended(ended),
            () = self.wanted.marked(), if may_reserve => Ok(()),
            () = sleep_until(until), if pause.is_some() => Ok(()),
            () = shutdown.stopping() => Ok(()),
        }
    }

    fn ended(&mut self, ended: Result<String, JoinError>) -> anyhow::Result<()> {
        let lane = ended.map_err(|e| anyhow::Error::new(e).context("a delivery died"))?;
        if self.lanes.leave(&lane) {
            std::mem::take(&mut self.blocked).into_iter().for_each(|shard| self.wanted.mark(shard));
        }
        self.metrics.in_flight.record(self.lanes.in_flight() as u64, &[]);
        Ok(())
    }

    async fn reserve(&mut self, shard: Shard) {
        let sequence = *self.sequences.entry(shard).or_insert_with(|| self.rng.random::<u32>().into());
        let ask = Reserve {
            caller: &self.caller,
            sequence,
            limit: self.lanes.free().min(LIMIT),
            lane_room: self.lanes.room_of_others(),
            rooms: self.lanes.rooms(),
            bits: self.rng.random(),
            margin: self.margin,
        };
        match self.store.reserve(shard, &ask).await {
            Ok(reserved) => {
                self.sequences.insert(shard, sequence + 1);
                self.backoff.reset();
                if self.pause.take().is_some() {
                    info!("jobs can be reserved again");
                }
                self.start(shard, reserved);
            }
            Err(error) => self.failed(shard, &error),
        }
    }

    fn start(&mut self, shard: Shard, reserved: Reserved) {
        if reserved.more {
            self.wanted.mark(shard);
        }
        if reserved.passed_full {
            self.blocked.insert(shard);
        }
        self.metrics.reserved.record(reserved.leases.len() as u64, &[]);
        for lease in reserved.leases {
            let lane = lane_of(&lease);
            self.lanes.enter(&lane);
            let courier = Arc::clone(&self.courier);
            self.deliveries.spawn(async move {
                courier.deliver(lease).await;
                lane
            });
        }
        self.metrics.in_flight.record(self.lanes.in_flight() as u64, &[]);
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
