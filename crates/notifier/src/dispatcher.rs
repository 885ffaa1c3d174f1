//! Permit, reserve, spawn, settle: a job is reserved only when it can start at once, so nothing
//! that is leased waits in memory. One task owns all the counts; several shards are asked
//! at the same time, one call each. Outcomes that wait for a shard go along when it is asked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_core::contract::{Reserved, Shard, StoreError};
use ringback_service::backoff::Backoff;
use ringback_service::{Shutdown, random};
use ringback_store::Store;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{info, warn};

use crate::blocked::Blocked;
use crate::call::{Answered, Asking, Call};
use crate::delivery::{Courier, Delivered, Machine};
use crate::lack::{Lack, Shown};
use crate::lanes::{Ask, Lanes, Refill, lane_of};
use crate::metrics::Metrics;
use crate::settler::Settler;
use crate::wanted::{Cause, Wanted};

/// While few permits are left they are not asked for more often than this.
const SCARCE_PAUSE: Duration = Duration::from_millis(5);

/// After so long without a reserve any room of a lane is worth one: its calls take long, and
/// who waits for a batch to come together waits in vain.
const BATCH_PAUSE: Duration = Duration::from_millis(20);

/// At the end of the grace calls under way are given so long to be answered.
const LAST_CALLS: Duration = Duration::from_millis(500);

/// So much of a call's time a note may take before the settle that it goes ahead of: a lease leaves
/// time for a slow reserve and a slow settle, and not for a third slow call.
const NOTE_PART: u32 = 4;

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
    /// Calls under way: of each shard at most one that reserves and one that settles.
    calls: JoinSet<Answered>,
    last_ask: Instant,
    /// Shards with a call under way that reserves.
    asking: BTreeSet<Shard>,
    /// Shards that were marked while they were being asked.
    again: BTreeMap<Shard, Cause>,
    blocked: Blocked,
    /// Attempts, with their lanes.
    deliveries: JoinSet<(String, Delivered)>,
    settler: Settler,
    /// No reserve before this, after one failed.
    pause: Option<Instant>,
    backoff: Backoff,
    lack: Lack,
    /// No reserve before this while few permits are left.
    scarce: Option<Instant>,
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
        let settler = Settler::new(metrics.clone());
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
            calls: JoinSet::new(),
            last_ask: Instant::now(),
            asking: BTreeSet::new(),
            again: BTreeMap::new(),
            blocked: Blocked::default(),
            deliveries: JoinSet::new(),
            settler,
            pause: None,
            backoff: Backoff::new(random::generator()),
            lack: Lack::new(random::generator()),
            scarce: None,
        }
    }

    /// Works until the shutdown, then lets what is in flight end.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let (shutdown, courier) = (self.shutdown.clone(), Arc::clone(&self.courier));
        tokio::select! {
            // Before that nobody can say by which policy a job is handed over.
            () = courier.policies.known() => {}
            () = shutdown.stopping() => {}
        }
        while !self.shutdown.is_stopping() {
            self.ask_all();
            self.settle_all();
            self.rest().await?;
        }
        info!(in_flight = self.lanes.permits(), "no more jobs are taken; waiting for those in flight");
        self.finish().await
    }

    /// Delivers what was asked for before, like the rest, and settles all of it.
    async fn finish(mut self) -> anyhow::Result<()> {
        let shutdown = self.shutdown.clone();
        let mut expired = pin!(shutdown.expired());
        loop {
            self.settle_all();
            if self.calls.is_empty() && self.deliveries.is_empty() && self.settler.is_empty() {
                return Ok(());
            }
            let at = self.next_words().map(|(_, at)| at);
            tokio::select! {
                Some(answered) = self.calls.join_next() => self.answered(answered)?,
                Some(delivered) = self.deliveries.join_next() => self.delivered(delivered)?,
                () = sleep_until(at.unwrap_or_else(Instant::now)), if at.is_some() => {}
                () = &mut expired => break,
            }
        }
        let last_calls = async {
            while let Some(answered) = self.calls.join_next().await {
                self.answered(answered)?;
            }
            Ok(())
        };
        let answered = timeout(LAST_CALLS, last_calls).await;
        self.settler.close(self.lanes.permits());
        answered.unwrap_or(Ok(()))
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
            self.call(shard, Some((cause, ask)));
            self.scarce = scarce.then(|| Instant::now() + SCARCE_PAUSE);
        }
    }

    /// Settles what is to be settled by now without a reserve.
    fn settle_all(&mut self) {
        let now = Instant::now();
        while let Some((shard, _)) = self.next_words().filter(|(_, at)| *at <= now) {
            self.call(shard, None);
        }
    }

    /// The shard whose words go next, and when, unless they go along with a reserve before.
    fn next_words(&self) -> Option<(Shard, Instant)> {
        let may_wait = !self.shutdown.is_stopping() && self.lanes.is_plenty();
        self.settler.next(|shard| may_wait && (self.asking.contains(&shard) || self.blocked.is_in(shard)))
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
        let waits = self.blocked.is_any(|lane| self.lanes.is_open(lane, Refill::Any));
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

    /// Asks a shard, or none but settles what is to be settled of it.
    fn call(&mut self, shard: Shard, wanted: Option<(Cause, Ask)>) {
        let batch = match wanted {
            Some(_) => self.settler.ride(shard),
            None => self.settler.take(shard),
        };
        let asking = wanted.map(|(cause, ask)| self.asking(shard, cause, ask));
        let note_within = self.courier.patience / NOTE_PART;
        let call = Call { shard, asking, batch, note_within };
        self.calls.spawn(call.make(self.store.clone()));
    }

    fn asking(&mut self, shard: Shard, cause: Cause, ask: Ask) -> Asking {
        let sequence = *self.sequences.entry(shard).or_insert_with(|| self.rng.random::<u32>().into());
        self.asking.insert(shard);
        self.last_ask = Instant::now();
        let (caller, bits) = (Arc::clone(&self.caller), self.rng.random());
        Asking { cause, ask, caller, sequence, bits, margin: self.margin }
    }

    /// Waits for a reason to go on, and takes in all that has happened.
    async fn rest(&mut self) -> anyhow::Result<()> {
        let held_back = self.held_back();
        let shutdown = self.shutdown.clone();
        let words = self.next_words().map(|(_, at)| at);
        let at = [held_back.or_else(|| self.refill_at()), words].into_iter().flatten().min();
        let until = at.unwrap_or_else(Instant::now);
        tokio::select! {
            Some(answered) = self.calls.join_next() => self.answered(answered)?,
            Some(delivered) = self.deliveries.join_next() => self.delivered(delivered)?,
            () = self.wanted.marked(), if held_back.is_none() => {}
            () = sleep_until(until), if at.is_some() => {}
            () = shutdown.stopping() => {}
        }
        while let Some(answered) = self.calls.try_join_next() {
            self.answered(answered)?;
        }
        while let Some(delivered) = self.deliveries.try_join_next() {
            self.delivered(delivered)?;
        }
        self.unblock();
        self.metrics.in_flight.record(self.lanes.permits() as u64, &[]);
        Ok(())
    }

    /// Wants a shard again for each passed lane that has room by now.
    fn unblock(&mut self) {
        let refill = self.refill();
        for shard in self.blocked.take(|lane| self.lanes.is_open(lane, refill)) {
            self.wanted.mark(shard, Cause::Own);
        }
    }

    /// An attempt has ended. Its lane is free while the outcome is still on its way to the store.
    fn delivered(&mut self, delivered: Result<(String, Delivered), JoinError>) -> anyhow::Result<()> {
        let (lane, Delivered { word, machine }) = delivered.context("a delivery died")?;
        self.lanes.leave(&lane);
        if machine == Machine::Lacking && self.lack.show(Instant::now()) == Shown::First {
            warn!("this machine lacks file descriptors or memory; jobs are given back, and fewer are taken");
        }
        match word {
            Some(word) => self.settler.add(word, Instant::now()),
            None => self.lanes.settled(1),
        }
        Ok(())
    }

    fn answered(&mut self, answered: Result<Answered, JoinError>) -> anyhow::Result<()> {
        let Answered { shard, asked, told, answer } = answered.context("a call to the store died")?;
        if let Some((_, ask)) = &asked {
            self.lanes.answered(ask);
            self.asking.remove(&shard);
            if let Some(cause) = self.again.remove(&shard) {
                self.wanted.mark(shard, cause);
            }
        }
        match answer {
            Ok((settled, reserved)) => {
                if let Some(told) = told {
                    // The words are told, so nothing goes that the rest could go along with.
                    self.unnoted(told.unnoted + told.notes.len());
                    self.settler.answered(shard, &told.jobs, &settled);
                    self.lanes.settled(told.jobs.len());
                }
                if let (Some((cause, _)), Some(reserved)) = (asked, reserved) {
                    self.reserved(shard, cause, reserved);
                }
            }
            Err(unsettled) => {
                if asked.is_some() {
                    self.not_reserved(shard, &unsettled.error);
                }
                if let Some(told) = told {
                    self.unnoted(told.unnoted);
                    let given_up = self.settler.failed(shard, unsettled, told, Instant::now());
                    self.lanes.settled(given_up);
                }
            }
        }
        Ok(())
    }

    /// So many attempts are not in the log.
    fn unnoted(&self, attempts: usize) {
        if attempts > 0 {
            self.metrics.unnoted.add(attempts as u64, &[]);
        }
    }

    fn reserved(&mut self, shard: Shard, cause: Cause, reserved: Reserved) {
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

    fn start(&mut self, shard: Shard, reserved: Reserved) {
        if reserved.more {
            self.wanted.mark(shard, Cause::Own);
        }
        for lane in reserved.skipped {
            self.blocked.pass(lane, shard);
        }
        self.metrics.reserved.record(reserved.leases.len() as u64, &[]);
        for lease in reserved.leases {
            let lane = lane_of(&lease);
            self.lanes.enter(&lane);
            let courier = Arc::clone(&self.courier);
            self.deliveries.spawn(async move { (lane, courier.deliver(lease).await) });
        }
    }

    fn not_reserved(&mut self, shard: Shard, error: &StoreError) {
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
