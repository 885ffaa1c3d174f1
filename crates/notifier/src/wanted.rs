//! Which shards are worth a reserve. Marks come from wake-ups, from answers that said
//! there is more, and all at once from a floor timer, in case a wake-up was lost.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use ringback_core::contract::{Reserved, Shard, Wake};
use ringback_service::{Shutdown, random};
use ringback_store::Wakes;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::standback::{StandBack, Turn};

/// Every shard is looked at this often at least.
const FLOOR: Duration = Duration::from_secs(5);

/// Why a shard is worth asking; of two reasons the greater one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// A wake-up, which every other notifier has heard as well.
    WakeUp,
    /// Something that is known here alone: there is more, a lane has room again, or it is
    /// time to look.
    Own,
}

/// The marks.
pub(crate) struct Wanted {
    marks: Vec<Mark>,
    cursor: AtomicUsize,
    marked: Notify,
}

struct Mark {
    shard: Shard,
    woken: AtomicBool,
    own: AtomicBool,
    /// So many reserves in a row that a wake-up caused found nothing.
    in_vain: AtomicU32,
}

impl Mark {
    fn set(&self, cause: Cause) {
        let flag = match cause {
            Cause::WakeUp => &self.woken,
            Cause::Own => &self.own,
        };
        flag.store(true, Ordering::SeqCst);
    }

    fn take(&self) -> Option<Cause> {
        let (woken, own) = (self.woken.swap(false, Ordering::SeqCst), self.own.swap(false, Ordering::SeqCst));
        if own { Some(Cause::Own) } else { woken.then_some(Cause::WakeUp) }
    }
}

impl Wanted {
    /// All shards are marked.
    pub(crate) fn new(shards: impl Iterator<Item = Shard>) -> Self {
        let mark = |shard| Mark {
            shard,
            woken: AtomicBool::new(false),
            own: AtomicBool::new(true),
            in_vain: AtomicU32::new(0),
        };
        Self { marks: shards.map(mark).collect(), cursor: AtomicUsize::new(0), marked: Notify::new() }
    }

    pub(crate) fn mark(&self, shard: Shard, cause: Cause) {
        if let Some(mark) = self.of(shard) {
            mark.set(cause);
            self.marked.notify_one();
        }
    }

    pub(crate) fn mark_all(&self) {
        self.marks.iter().for_each(|mark| mark.set(Cause::Own));
        self.marked.notify_one();
    }

    /// Whether there is a mark to take.
    pub(crate) fn is_any_marked(&self) -> bool {
        let set = |flag: &AtomicBool| flag.load(Ordering::SeqCst);
        self.marks.iter().any(|mark| set(&mark.woken) || set(&mark.own))
    }

    /// Takes a mark away, the shards in turn. Take it before looking, so that a mark made
    /// meanwhile is not lost.
    pub(crate) fn take(&self) -> Option<(Shard, Cause)> {
        let n = self.marks.len();
        (0..n).find_map(|_| {
            let mark = &self.marks[self.cursor.fetch_add(1, Ordering::Relaxed) % n];
            Some((mark.shard, mark.take()?))
        })
    }

    /// Waits for a mark; one made since the last wait counts.
    pub(crate) async fn marked(&self) {
        self.marked.notified().await;
    }

    /// Learns from what a reserve found whether others are faster at wake-ups.
    pub(crate) fn heed(&self, shard: Shard, cause: Cause, found: &Reserved) {
        let Some(mark) = self.of(shard) else { return };
        if !found.leases.is_empty() {
            mark.in_vain.store(0, Ordering::Relaxed);
        } else if cause == Cause::WakeUp && !found.more && found.skipped.is_empty() {
            mark.in_vain.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Turns wake-ups into marks until the shutdown.
    pub(crate) async fn listen(self: Arc<Self>, wakes: Wakes, shutdown: Shutdown) {
        let mut floor = interval(FLOOR);
        floor.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ticks = async {
            loop {
                floor.tick().await;
                self.mark_all();
            }
        };
        tokio::select! {
            () = ticks => {}
            () = self.heed_wakes(wakes) => {}
            () = shutdown.stopping() => {}
        }
    }

    /// Never ends.
    async fn heed_wakes(&self, mut wakes: Wakes) {
        let mut back = StandBack::new(random::generator());
        loop {
            // Kept over the turns of the inner loop: dropped half-way, a slow subscription
            // would never be made.
            let mut next = pin!(wakes.next());
            let wake = loop {
                let first = back.first();
                tokio::select! {
                    wake = &mut next => break wake,
                    () = sleep_until(first.unwrap_or_else(Instant::now)), if first.is_some() => {
                        back.due(Instant::now()).into_iter().for_each(|shard| self.mark(shard, Cause::WakeUp));
                    }
                }
            };
            match wake {
                Wake::Ready(shard) => {
                    let in_vain = self.of(shard).map_or(0, |mark| mark.in_vain.load(Ordering::Relaxed));
                    match back.wake(shard, in_vain, Instant::now()) {
                        Turn::Now => self.mark(shard, Cause::WakeUp),
                        Turn::Later => {}
                    }
                }
                Wake::Subscribed => self.mark_all(),
                Wake::Due(..) | Wake::Pull(..) | Wake::Carriers | Wake::Redrive => {}
            }
        }
    }

    fn of(&self, shard: Shard) -> Option<&Mark> {
        self.marks.get(usize::from(shard.number()))
    }
}

#[cfg(test)]
mod tests {
    use ringback_store::{Store, settings};

    use super::*;

    async fn wanted() -> (Wanted, Shard) {
        let store = Store::open(settings::defaults(Duration::from_secs(1))).unwrap();
        let wanted = Wanted::new(store.shards());
        while wanted.take().is_some() {}
        (wanted, store.shards().next().unwrap())
    }

    fn found(more: bool, passed: &[&str]) -> Reserved {
        Reserved { leases: Vec::new(), more, skipped: passed.iter().map(|p| (*p).to_owned()).collect() }
    }

    #[tokio::test]
    async fn of_two_reasons_the_one_known_here_alone_counts() {
        let (wanted, shard) = wanted().await;
        wanted.mark(shard, Cause::WakeUp);
        wanted.mark(shard, Cause::Own);
        assert_eq!(wanted.take(), Some((shard, Cause::Own)));
        assert_eq!(wanted.take(), None);
        wanted.mark(shard, Cause::WakeUp);
        assert_eq!(wanted.take(), Some((shard, Cause::WakeUp)));
    }

    #[tokio::test]
    async fn only_wake_ups_that_led_to_nothing_at_all_were_in_vain() {
        let (wanted, shard) = wanted().await;
        let in_vain = || wanted.marks[0].in_vain.load(Ordering::Relaxed);
        wanted.heed(shard, Cause::Own, &found(false, &[]));
        wanted.heed(shard, Cause::WakeUp, &found(true, &[]));
        wanted.heed(shard, Cause::WakeUp, &found(false, &["a full lane"]));
        assert_eq!(in_vain(), 0, "the floor timer and full lanes say nothing about others");
        wanted.heed(shard, Cause::WakeUp, &found(false, &[]));
        assert_eq!(in_vain(), 1);
    }
}
