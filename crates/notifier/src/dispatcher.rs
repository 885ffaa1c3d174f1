//! The main loop of the notifier: takes permits, reserves jobs, delivers each in a task of its own, and
//! settles the outcomes.
//!
//! A job is reserved only if it can start at once, or soon because its receiver is quick. One task owns all
//! bookkeeping. Several shards are called at the same time, each with at most one reserve and one
//! settle; a settle shares the call of a reserve where possible.

mod admissions;
mod deliveries;
mod finish;
mod replies;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_core::backoff::Backoff;
use ringback_core::crash_point;
use ringback_core::store_types::{Shard, Waiting};
use ringback_service::outage::PartialOutage;
use ringback_service::{Shutdown, random};
use ringback_store::Store;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use self::admissions::AdmissionReply;
use self::deliveries::Delivery;
use crate::deliverer::{Delivered, Deliverer};
use crate::due_waits::DueWaits;
use crate::flow::Flow;
use crate::lanes::{FullLanes, Lanes, Refill, ReserveLimits};
use crate::metrics::Metrics;
use crate::pending_leases::PendingLeases;
use crate::repeated_reserves::AskAgain;
use crate::resource_backoff::{ResourceBackoff, Shortage};
use crate::settle_queue::{RESERVE_WAIT, SettleQueue};
use crate::shard_signals::{Cause, ShardSignals};
use crate::slow_calls::SlowCalls;
use crate::store_call::{ReserveCall, StoreCall, StoreReply};
use crate::tenants::TenantWatch;

/// The pause between two reserves while permits are scarce.
const SCARCE_PAUSE: Duration = Duration::from_millis(5);

/// After this time without a reserve, one free slot of a lane justifies one: its callbacks take long,
/// so waiting for half of the lane would take too long.
const REFILL_PAUSE: Duration = Duration::from_millis(20);

/// The shortest time from a reserve's answer to the next reserve for due jobs: that one gets all that became due meanwhile.
const BREATH: Duration = Duration::from_millis(1);

/// Reserves jobs and starts their deliveries.
pub(crate) struct Dispatcher {
    store: Store,
    signals: Arc<ShardSignals>,
    lanes: Lanes,
    tenants: TenantWatch,
    deliverer: Arc<Deliverer>,
    metrics: Metrics,
    shutdown: Shutdown,
    /// The name of this notifier in its reserves.
    caller: Arc<str>,
    rng: StdRng,
    /// The sequence number of the next reserve, per shard. A retry repeats the number.
    sequences: HashMap<Shard, u64>,
    /// Store calls in flight: per shard at most one with a reserve and one without.
    calls: JoinSet<StoreReply>,
    last_reserve: Instant,
    /// Shards with a reserve in flight.
    reserving: BTreeSet<Shard>,
    /// Shards that were marked while their reserve was in flight.
    marked_meanwhile: BTreeMap<Shard, Cause>,
    full: FullLanes,
    /// Shards in which other lanes may lie behind those that the last reserve has seen.
    ask_again: AskAgain,
    due_waits: DueWaits,
    /// The limited lanes, and the call for admission in flight.
    flow: Flow,
    admissions: JoinSet<AdmissionReply>,
    /// Deliveries in flight.
    deliveries: JoinSet<Delivery>,
    /// The leased jobs whose deliveries have not begun.
    pending: PendingLeases,
    settle_queue: SettleQueue,
    /// Set after a reserve that failed: no reserve before this time.
    paused_until: Option<Instant>,
    backoff: Backoff,
    /// The shards whose last reserve failed.
    outage: PartialOutage<Shard>,
    resources: ResourceBackoff,
    slow_calls: SlowCalls,
    /// No reserve before this time while permits are scarce.
    scarce_until: Option<Instant>,
}

impl Dispatcher {
    pub(crate) fn new(
        signals: Arc<ShardSignals>,
        lanes: Lanes,
        deliverer: Deliverer,
        slow_calls: SlowCalls,
        metrics: Metrics,
        shutdown: Shutdown,
    ) -> Self {
        let mut rng = random::generator();
        let settle_queue = SettleQueue::new(metrics.clone());
        let margin = deliverer.margin;
        Self {
            store: deliverer.store.clone(),
            signals,
            lanes,
            tenants: TenantWatch::new(deliverer.retries.policies.clone()),
            deliverer: Arc::new(deliverer),
            metrics,
            shutdown,
            caller: format!("{:016x}", rng.random::<u64>()).into(),
            rng,
            sequences: HashMap::new(),
            calls: JoinSet::new(),
            last_reserve: Instant::now(),
            reserving: BTreeSet::new(),
            marked_meanwhile: BTreeMap::new(),
            full: FullLanes::default(),
            ask_again: AskAgain::default(),
            due_waits: DueWaits::default(),
            flow: Flow::new(margin),
            admissions: JoinSet::new(),
            deliveries: JoinSet::new(),
            pending: PendingLeases::new(margin),
            settle_queue,
            paused_until: None,
            backoff: Backoff::new(random::generator()),
            outage: PartialOutage::default(),
            resources: ResourceBackoff::new(random::generator()),
            slow_calls,
            scarce_until: None,
        }
    }

    /// Runs until the shutdown, then finishes the deliveries in flight. Fails if a delivery or a store call panics.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let (shutdown, deliverer) = (self.shutdown.clone(), Arc::clone(&self.deliverer));
        tokio::select! {
            biased;
            // A delivery depends on the policy of its topic.
            () = deliverer.retries.policies.known() => {}
            () = shutdown.stopping() => {}
        }
        while !self.shutdown.is_stopping() {
            self.call_store();
            self.wait().await?;
        }
        info!(in_flight = self.lanes.permits(), "draining; no more jobs are reserved");
        self.finish().await
    }

    /// Makes the calls that are due: reserves from every marked shard as long as permits are free, unless the shutdown
    /// has begun, and settles the batches that do not wait for a reserve.
    fn call_store(&mut self) {
        let refill = self.refill();
        self.lanes.look_at(&self.slow_calls);
        if self.tenants.found() {
            self.lanes.expect_tenants();
        }
        self.ask_for_places();
        let may_reserve = !self.shutdown.is_stopping();
        while may_reserve && self.held_back_until().is_none() && self.signals.is_any_marked() {
            let is_scarce = self.lanes.is_scarce();
            let Some(limits) = self.lanes.request(refill) else { break };
            let Some((shard, cause)) = self.next_shard() else {
                self.lanes.answered(&limits);
                break;
            };
            let batch = self.settle_queue.take_with_reserve(shard);
            let reserve = self.reserve_call(shard, cause, limits);
            let call = StoreCall { shard, reserve: Some(reserve), batch };
            self.calls.spawn(call.make(self.store.clone()));
            self.scarce_until = is_scarce.then(|| Instant::now() + SCARCE_PAUSE);
        }
        let now = Instant::now();
        while let Some((shard, _)) = self.next_settle().filter(|(_, at)| *at <= now) {
            let batch = self.settle_queue.take(shard);
            self.calls.spawn(StoreCall { shard, reserve: None, batch }.make(self.store.clone()));
        }
    }

    /// Returns the shard to settle next, and when; `None` if no outcome waits. A batch waits a little longer if it can
    /// share the call of an expected reserve.
    fn next_settle(&self) -> Option<(Shard, Instant)> {
        let may_wait = !self.shutdown.is_stopping() && self.lanes.is_plenty();
        let soon = Instant::now() + RESERVE_WAIT;
        let is_expected = |shard| {
            self.reserving.contains(&shard)
                || self.full.is_in(shard)
                || self.due_waits.is_planned_by(shard, soon)
        };
        self.settle_queue.next(|shard| may_wait && is_expected(shard))
    }

    /// Returns until when nothing is reserved; `None` if a reserve may go now.
    fn held_back_until(&self) -> Option<Instant> {
        let scarce = self.scarce_until.filter(|_| self.lanes.is_scarce());
        let until = self.paused_until.max(self.resources.until()).max(scarce)?;
        (until > Instant::now()).then_some(until)
    }

    fn refill(&self) -> Refill {
        if self.last_reserve.elapsed() < REFILL_PAUSE { Refill::Batch } else { Refill::Any }
    }

    /// Returns when a full lane with few free slots justifies a reserve; `None` if there is none.
    fn refill_at(&self) -> Option<Instant> {
        let waits = self.full.is_any(|lane| self.lanes.is_open(lane, Refill::Any));
        waits.then(|| self.last_reserve + REFILL_PAUSE)
    }

    /// Takes the mark of the next marked shard that has no reserve in flight; `None` if there is none. Others are
    /// marked again when their reserve is answered.
    fn next_shard(&mut self) -> Option<(Shard, Cause)> {
        loop {
            let (shard, cause) = self.signals.take()?;
            if !self.reserving.contains(&shard) {
                return Some((shard, cause));
            }
            let known = self.marked_meanwhile.entry(shard).or_insert(cause);
            *known = cause.max(*known);
        }
    }

    fn reserve_call(&mut self, shard: Shard, cause: Cause, limits: ReserveLimits) -> ReserveCall {
        let sequence = *self.sequences.entry(shard).or_insert_with(|| self.rng.random::<u32>().into());
        self.reserving.insert(shard);
        self.last_reserve = Instant::now();
        let (caller, margin) = (Arc::clone(&self.caller), self.deliverer.margin);
        // What was announced before, the answer includes.
        self.signals.take_due(shard);
        let waiting = match (self.lanes.may_wait(), self.due_waits.has(shard)) {
            (true, _) => Waiting::Yes,
            (false, true) => Waiting::NoLonger,
            (false, false) => Waiting::No,
        };
        let admitted = self.flow.reserving(shard);
        ReserveCall { cause, limits, admitted, caller, sequence, bits: self.rng.random(), waiting, margin }
    }

    /// Waits until there is something to do, processes all store calls and deliveries that have ended, and marks shards
    /// to reserve from. Fails if one of them panicked.
    async fn wait(&mut self) -> anyhow::Result<()> {
        let held_back = self.held_back_until();
        let shutdown = self.shutdown.clone();
        let settle_at = self.next_settle().map(|(_, at)| at);
        let reserve_at = held_back.or_else(|| {
            let opens = self.lanes.opens().filter(|_| !self.full.is_empty());
            let due = self.due_waits.next(|shard| self.reserving.contains(&shard));
            self.refill_at().into_iter().chain(self.ask_again.next()).chain(opens).chain(due).min()
        });
        let at =
            [reserve_at, settle_at, self.pending.late_at(), self.flow.next()].into_iter().flatten().min();
        let until = at.unwrap_or_else(Instant::now);
        tokio::select! {
            biased;
            Some(reply) = self.calls.join_next() => self.replied(reply)?,
            Some(delivered) = self.deliveries.join_next() => self.delivered(delivered)?,
            Some(reply) = self.admissions.join_next() => self.admitted(reply)?,
            () = self.signals.marked(), if held_back.is_none() => {}
            () = sleep_until(until), if at.is_some() => {}
            () = shutdown.stopping() => {}
        }
        while let Some(reply) = self.calls.try_join_next() {
            self.replied(reply)?;
        }
        while let Some(delivered) = self.deliveries.try_join_next() {
            self.delivered(delivered)?;
        }
        self.give_back_what_waits();
        self.mark_open_lanes();
        self.metrics.in_flight.record(self.lanes.permits() as u64, &[]);
        Ok(())
    }

    /// Refills the failure budgets, sets the batch size of settles, and marks one shard of each full lane, origin or
    /// tenant that is open again, and the shards whose reserve is to be repeated now.
    fn mark_open_lanes(&mut self) {
        let (refill, now) = (self.refill(), Instant::now());
        self.lanes.reopen(now);
        self.settle_queue.limit(self.lanes.max_batch());
        let open = self.full.take(|lane| self.lanes.is_open(lane, refill));
        self.due_waits.announced(|shard| self.signals.take_due(shard));
        let due = self.due_waits.take_due(now, |shard| self.reserving.contains(&shard));
        for shard in open.into_iter().chain(self.ask_again.take_due(now)).chain(due) {
            self.signals.mark(shard, Cause::Local);
        }
    }

    /// Handles the end of a delivery: frees its slot in the lane, and queues its outcome. Its permit stays in use until
    /// the outcome is settled.
    fn delivered(&mut self, delivered: Result<Delivery, JoinError>) -> anyhow::Result<()> {
        let Delivery { lane, place, delivered } = delivered.context("a delivery panicked")?;
        let Delivered { settlement, has_failed, took, is_out_of_resources } = delivered;
        self.lanes.ended(&lane, has_failed, took, Instant::now());
        self.lanes.leave(&lane);
        if let Some(place) = place {
            if let Some(shard) = self.flow.ended(lane, place, Instant::now()) {
                self.signals.mark(shard, Cause::Local);
            }
        } else if let Some(lease) = self.pending.next(&lane) {
            self.begin(lane, lease, None);
        }
        if is_out_of_resources && self.resources.record(Instant::now()) == Shortage::Begins {
            warn!("out of file descriptors or memory; releasing jobs and reserving fewer");
        }
        crash_point!("notifier.before_settle_queue");
        match settlement {
            Some(settlement) => self.settle_queue.add(settlement, Instant::now()),
            None => self.lanes.settled(1),
        }
        Ok(())
    }
}
