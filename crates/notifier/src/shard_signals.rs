//! `ShardSignals`: marks the shards that are worth a reserve: by a wake-up, by a reserve that left jobs
//! behind, and every 5 s, in case a wake-up was lost.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ringback_core::job::Locator;
use ringback_core::store_types::{Reserved, Shard, Wake};
use ringback_service::{Shutdown, random};
use ringback_store::{Store, Wakes};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::wake_backoff::{Turn, WakeBackoff};

/// Every shard that may give jobs is marked at least this often.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Why a shard is marked. Of two causes the greater one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// A wake-up, which every other notifier has received as well.
    WakeUp,
    /// Something that only this notifier knows: jobs were left behind, a lane is open again, or
    /// the polling interval is over.
    Local,
}

/// How many requested cancels are remembered until the next look. They are hints.
const MAX_CANCELS: usize = 1_000;

pub(crate) struct ShardSignals {
    signals: Vec<Signal>,
    /// The reserved jobs whose cancel was requested since the last look.
    cancels: Mutex<Vec<Locator>>,
    cursor: AtomicUsize,
    marked: Notify,
}

struct Signal {
    shard: Shard,
    woken: AtomicBool,
    local: AtomicBool,
    /// Reserves in a row, caused by wake-ups, that found no job.
    empty_reserves: AtomicU32,
    /// When a job is due that was announced since the last look.
    due: Mutex<Option<Instant>>,
}

impl Signal {
    fn set(&self, cause: Cause) {
        let flag = match cause {
            Cause::WakeUp => &self.woken,
            Cause::Local => &self.local,
        };
        flag.store(true, Ordering::SeqCst);
    }

    fn take(&self) -> Option<Cause> {
        let (woken, local) =
            (self.woken.swap(false, Ordering::SeqCst), self.local.swap(false, Ordering::SeqCst));
        if local { Some(Cause::Local) } else { woken.then_some(Cause::WakeUp) }
    }
}

impl ShardSignals {
    pub(crate) fn new(shards: impl Iterator<Item = Shard>) -> Self {
        let signal = |shard| Signal {
            shard,
            woken: AtomicBool::new(false),
            local: AtomicBool::new(true),
            empty_reserves: AtomicU32::new(0),
            due: Mutex::default(),
        };
        Self {
            signals: shards.map(signal).collect(),
            cancels: Mutex::default(),
            cursor: AtomicUsize::new(0),
            marked: Notify::new(),
        }
    }

    pub(crate) fn mark(&self, shard: Shard, cause: Cause) {
        if let Some(signal) = self.of(shard) {
            signal.set(cause);
            self.marked.notify_one();
        }
    }

    pub(crate) fn mark_all(&self) {
        self.signals.iter().for_each(|signal| signal.set(Cause::Local));
        self.marked.notify_one();
    }

    /// Returns true if a shard is marked.
    pub(crate) fn is_any_marked(&self) -> bool {
        let set = |flag: &AtomicBool| flag.load(Ordering::SeqCst);
        self.signals.iter().any(|signal| set(&signal.woken) || set(&signal.local))
    }

    /// Removes and returns the mark of the next marked shard, in turn; `None` if none is marked. Call it before
    /// the reserve, so that a mark set meanwhile is not lost.
    pub(crate) fn take(&self) -> Option<(Shard, Cause)> {
        let n = self.signals.len();
        (0..n).find_map(|_| {
            let signal = &self.signals[self.cursor.fetch_add(1, Ordering::Relaxed) % n];
            Some((signal.shard, signal.take()?))
        })
    }

    /// Waits until a shard is marked. Returns at once if one was marked since the last wait.
    pub(crate) async fn marked(&self) {
        self.marked.notified().await;
    }

    /// Records whether a reserve has found jobs. Empty ones after a wake-up are counted, since they mean that
    /// other notifiers are faster.
    pub(crate) fn record(&self, shard: Shard, cause: Cause, found: &Reserved) {
        let Some(signal) = self.of(shard) else { return };
        if !found.leases.is_empty() {
            signal.empty_reserves.store(0, Ordering::Relaxed);
        } else if cause == Cause::WakeUp && !found.more && found.full.is_empty() && found.throttled.is_empty()
        {
            signal.empty_reserves.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Marks shards on wake-ups, and at the polling interval if they may give jobs, until the shutdown.
    pub(crate) async fn listen(self: Arc<Self>, store: Store, wakes: Wakes, shutdown: Shutdown) {
        let mut timer = interval(POLL_INTERVAL);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ticks = async {
            loop {
                timer.tick().await;
                for signal in &self.signals {
                    // A store that is away is asked by the reserve, which reports it.
                    if store.may_give(signal.shard).await.unwrap_or(true) {
                        self.mark(signal.shard, Cause::Local);
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = ticks => {}
            () = self.follow_wakes(wakes) => {}
            () = shutdown.stopping() => {}
        }
    }

    /// Marks shards on wake-ups, delayed by [`WakeBackoff`]. Never ends.
    async fn follow_wakes(&self, mut wakes: Wakes) {
        let mut backoff = WakeBackoff::new(random::generator());
        loop {
            let wake = loop {
                let due = backoff.next_due();
                tokio::select! {
                    biased;
                    () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                        backoff.due(Instant::now()).into_iter().for_each(|shard| self.mark(shard, Cause::WakeUp));
                    }
                    wake = wakes.next() => break wake,
                }
            };
            match wake {
                Wake::Ready(shard) => {
                    let empty =
                        self.of(shard).map_or(0, |signal| signal.empty_reserves.load(Ordering::Relaxed));
                    match backoff.wake(shard, empty, Instant::now()) {
                        Turn::Now => self.mark(shard, Cause::WakeUp),
                        Turn::Later => {}
                    }
                }
                Wake::Subscribed => self.mark_all(),
                Wake::Awaited { shard, after, .. } => self.announce(shard, Instant::now() + after),
                Wake::CancelRequested(job) => self.cancel_requested(job),
                Wake::Due(..) | Wake::Pull(..) | Wake::Carriers | Wake::Bulk => {}
            }
        }
    }

    fn announce(&self, shard: Shard, at: Instant) {
        if let Some(signal) = self.of(shard) {
            let mut due = signal.due.lock().unwrap_or_else(PoisonError::into_inner);
            *due = Some(due.map_or(at, |known| known.min(at)));
            self.marked.notify_one();
        }
    }

    fn cancel_requested(&self, job: Locator) {
        let mut cancels = self.cancels.lock().unwrap_or_else(PoisonError::into_inner);
        if cancels.len() < MAX_CANCELS {
            cancels.push(job);
        }
        self.marked.notify_one();
    }

    /// Returns the reserved jobs whose cancel was requested since the last call.
    pub(crate) fn take_cancels(&self) -> Vec<Locator> {
        std::mem::take(&mut self.cancels.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns when the first job is due of those that were announced since the last call, `None` if none was.
    pub(crate) fn take_due(&self, shard: Shard) -> Option<Instant> {
        self.of(shard)?.due.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn of(&self, shard: Shard) -> Option<&Signal> {
        self.signals.get(usize::from(shard.number()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signals() -> (ShardSignals, Shard) {
        let signals = ShardSignals::new((0..4).map(Shard));
        while signals.take().is_some() {}
        (signals, Shard(0))
    }

    fn found(more: bool, full: Option<&str>) -> Reserved {
        let full = full.map(str::to_owned).into_iter().collect();
        let (leases, throttled) = (Vec::new(), Vec::new());
        Reserved {
            leases,
            more,
            is_more_later: false,
            has_deferred: false,
            full,
            throttled,
            limited: Vec::new(),
            next_due: None,
        }
    }

    #[test]
    fn a_local_cause_takes_precedence_over_a_wake_up() {
        let (signals, shard) = signals();
        signals.mark(shard, Cause::WakeUp);
        signals.mark(shard, Cause::Local);
        assert_eq!(signals.take(), Some((shard, Cause::Local)));
        assert_eq!(signals.take(), None);
        signals.mark(shard, Cause::WakeUp);
        assert_eq!(signals.take(), Some((shard, Cause::WakeUp)));
    }

    #[test]
    fn only_reserves_after_a_wake_up_that_found_nothing_count_as_empty() {
        let (signals, shard) = signals();
        let empty = || signals.signals[0].empty_reserves.load(Ordering::Relaxed);
        signals.record(shard, Cause::Local, &found(false, None));
        signals.record(shard, Cause::WakeUp, &found(true, None));
        signals.record(shard, Cause::WakeUp, &found(false, Some("a full lane")));
        assert_eq!(empty(), 0, "polling and full lanes say nothing about other notifiers");
        signals.record(shard, Cause::WakeUp, &found(false, None));
        assert_eq!(empty(), 1);
    }
}
