//! The waiters of each topic, first come, first served. A wake-up wakes one waiter, which asks the
//! shard. A waiter that leaves before its shard is empty wakes the next one.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringback_core::contract::Shard;
use ringback_core::lane::LaneId;
use tokio::sync::{Notify, oneshot};

/// All waiters of a process.
#[derive(Default)]
pub(super) struct Waiters {
    lanes: Mutex<HashMap<LaneId, Lane>>,
    /// Notified when the first waiter comes.
    came: Notify,
}

/// The waiters of one lane.
#[derive(Default)]
struct Lane {
    /// The number of waiters, idle or asking a shard.
    present: usize,
    /// Those that wait for a wake-up.
    idle: VecDeque<(u64, oneshot::Sender<Shard>)>,
    /// Shards that got jobs while no waiter was idle.
    pending: BTreeSet<Shard>,
    /// The number of the last waiter that became idle.
    last: u64,
}

impl Lane {
    fn wake(&mut self, shard: Shard) {
        while let Some((_, waiter)) = self.idle.pop_front() {
            if waiter.send(shard).is_ok() {
                return;
            }
        }
        self.pending.insert(shard);
    }
}

impl Waiters {
    /// Adds a waiter. It first asks all shards by itself.
    pub(super) fn register(self: &Arc<Self>, lane: LaneId) -> Waiter {
        let mut lanes = self.lock();
        if lanes.is_empty() {
            self.came.notify_one();
        }
        lanes.entry(lane).or_default().present += 1;
        drop(lanes);
        Waiter { all: Arc::clone(self), lane, waiting: None, asking: BTreeSet::new(), turn: Turn::Last }
    }

    /// A shard has jobs for a lane. Wakes one waiter of the lane.
    pub(super) fn wake(&self, lane: LaneId, shard: Shard) {
        if let Some(lane) = self.lock().get_mut(&lane) {
            lane.wake(shard);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Waits until there is a waiter.
    pub(super) async fn not_empty(&self) {
        while self.is_empty() {
            self.came.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LaneId, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a waiter queues among the idle ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Behind all others.
    Last,
    /// Before all others: it was woken and found nothing.
    First,
}

/// A consumer that waits for jobs of a lane. Dropping it removes it.
pub(super) struct Waiter {
    all: Arc<Waiters>,
    lane: LaneId,
    waiting: Option<(u64, oneshot::Receiver<Shard>)>,
    /// The shards that it asks, or is about to ask.
    asking: BTreeSet<Shard>,
    turn: Turn,
}

impl Waiter {
    /// Waits for a shard that has jobs. Safe to cancel.
    pub(super) async fn woken(&mut self) -> Shard {
        loop {
            if let Some((_, woken)) = &mut self.waiting {
                let shard = woken.await;
                self.waiting = None;
                self.turn = Turn::First;
                if let Ok(shard) = shard {
                    self.asking.insert(shard);
                    return shard;
                }
                continue;
            }
            let mut lanes = self.all.lock();
            let lane = lanes.entry(self.lane).or_default();
            if let Some(shard) = lane.pending.pop_first() {
                self.asking.insert(shard);
                return shard;
            }
            lane.last += 1;
            let (wake, woken) = oneshot::channel();
            match self.turn {
                Turn::Last => lane.idle.push_back((lane.last, wake)),
                Turn::First => lane.idle.push_front((lane.last, wake)),
            }
            self.waiting = Some((lane.last, woken));
        }
    }

    /// The waiter asks a shard.
    pub(super) fn asks(&mut self, shard: Shard) {
        self.asking.insert(shard);
    }

    /// The waiter has found a shard empty, or has emptied it.
    pub(super) fn found_all(&mut self, shard: Shard) {
        self.asking.remove(&shard);
    }

    /// The waiter leaves all shards that it asks, without waking others for them.
    pub(super) fn gives_up(&mut self) {
        self.asking.clear();
    }

    /// The waiter leaves jobs in a shard. Wakes the next waiter for them.
    pub(super) fn found_more(&mut self, shard: Shard) {
        self.asking.remove(&shard);
        self.all.wake(self.lane, shard);
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut lanes = self.all.lock();
        let Some(lane) = lanes.get_mut(&self.lane) else { return };
        lane.present = lane.present.saturating_sub(1);
        if lane.present == 0 {
            lanes.remove(&self.lane);
            return;
        }
        let woken = self.waiting.take().and_then(|(number, mut woken)| {
            lane.idle.retain(|(other, _)| *other != number);
            woken.try_recv().ok()
        });
        for shard in woken.into_iter().chain(std::mem::take(&mut self.asking)) {
            lane.wake(shard);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use ringback_store::{Store, settings};

    use super::*;

    fn shards() -> Vec<Shard> {
        Store::open(settings::defaults(Duration::from_secs(1))).unwrap().shards().collect()
    }

    fn lane() -> LaneId {
        ringback_core::lane::Lane::pull(&"t".parse().unwrap()).id()
    }

    #[tokio::test]
    async fn a_wake_up_wakes_only_the_first_waiter() {
        let (all, shards) = (Arc::new(Waiters::default()), shards());
        let (mut one, mut two) = (all.register(lane()), all.register(lane()));
        assert!(one.woken().now_or_never().is_none() && two.woken().now_or_never().is_none());
        all.wake(lane(), shards[1]);
        assert!(two.woken().now_or_never().is_none());
        assert_eq!(one.woken().now_or_never(), Some(shards[1]));
        all.wake(LaneId::default(), shards[2]);
        assert!(two.woken().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_waiter_that_leaves_passes_its_wake_up_on() {
        let (all, shards) = (Arc::new(Waiters::default()), shards());
        let mut three = [all.register(lane()), all.register(lane()), all.register(lane())];
        for waiter in &mut three {
            assert!(waiter.woken().now_or_never().is_none());
        }
        let [one, mut two, mut last] = three;
        // Dropped after it was woken, before it noticed.
        all.wake(lane(), shards[0]);
        drop(one);
        assert_eq!(two.woken().now_or_never(), Some(shards[0]));
        // Dropped while it asked the shard.
        drop(two);
        assert_eq!(last.woken().now_or_never(), Some(shards[0]));
        last.found_all(shards[0]);
        assert!(last.woken().now_or_never().is_none());
        drop(last);
        assert!(all.is_empty());
    }

    #[tokio::test]
    async fn a_waiter_that_leaves_passes_on_each_shard_that_it_has_not_finished() {
        let (all, shards) = (Arc::new(Waiters::default()), shards());
        let (mut one, mut two) = (all.register(lane()), all.register(lane()));
        shards[..3].iter().for_each(|shard| one.asks(*shard));
        one.found_all(shards[1]);
        drop(one);
        assert_eq!(two.woken().now_or_never(), Some(shards[0]));
        assert_eq!(two.woken().now_or_never(), Some(shards[2]));
        assert!(two.woken().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_wake_up_while_no_waiter_is_idle_is_kept() {
        let (all, shards) = (Arc::new(Waiters::default()), shards());
        let mut one = all.register(lane());
        one.asks(shards[0]);
        all.wake(lane(), shards[1]);
        one.found_all(shards[0]);
        assert_eq!(one.woken().now_or_never(), Some(shards[1]));
        one.found_all(shards[1]);
        assert!(one.woken().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_waiter_that_found_nothing_keeps_its_place() {
        let (all, shards) = (Arc::new(Waiters::default()), shards());
        let (mut one, mut two) = (all.register(lane()), all.register(lane()));
        assert!(one.woken().now_or_never().is_none() && two.woken().now_or_never().is_none());
        all.wake(lane(), shards[0]);
        assert_eq!(one.woken().now_or_never(), Some(shards[0]));
        one.found_all(shards[0]);
        assert!(one.woken().now_or_never().is_none());
        all.wake(lane(), shards[1]);
        assert_eq!(one.woken().now_or_never(), Some(shards[1]));
        assert!(two.woken().now_or_never().is_none());
        // It leaves jobs to the next.
        one.found_more(shards[1]);
        assert_eq!(two.woken().now_or_never(), Some(shards[1]));
    }
}
