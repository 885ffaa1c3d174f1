//! Who waits for which topic, first come, first served. A wake-up wakes one waiter, who asks
//! the store; whoever leaves passes on what it was woken for and has not seen through.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringback_core::contract::Shard;
use ringback_core::lane::PullLane;
use tokio::sync::{Notify, oneshot};

/// All waiters of a process.
#[derive(Default)]
pub(super) struct Waiters {
    lanes: Mutex<HashMap<PullLane, Lane>>,
    /// Told when there is one where there was none.
    came: Notify,
}

/// The waiters of one lane.
#[derive(Default)]
struct Lane {
    /// Those who wait and those who ask the store.
    present: usize,
    /// Those who wait.
    idle: VecDeque<(u64, oneshot::Sender<Shard>)>,
    /// Shards that something came to while all were asking.
    pending: BTreeSet<Shard>,
    /// The last number given.
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
    /// One more, who will look for itself first.
    pub(super) fn register(self: &Arc<Self>, lane: PullLane) -> Waiter {
        let mut lanes = self.lock();
        if lanes.is_empty() {
            self.came.notify_one();
        }
        lanes.entry(lane).or_default().present += 1;
        drop(lanes);
        Waiter { all: Arc::clone(self), lane, waiting: None, asking: BTreeSet::new(), has_waited: Turn::Last }
    }

    /// Something came to a lane; wakes one of those who wait there.
    pub(super) fn wake(&self, lane: PullLane, shard: Shard) {
        if let Some(lane) = self.lock().get_mut(&lane) {
            lane.wake(shard);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Waits until there is somebody.
    pub(super) async fn some(&self) {
        while self.is_empty() {
            self.came.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PullLane, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a waiter stands when it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Behind those who came before.
    Last,
    /// Before all: it had its turn, and found nothing.
    First,
}

/// One who waits; gone when dropped.
pub(super) struct Waiter {
    all: Arc<Waiters>,
    lane: PullLane,
    waiting: Option<(u64, oneshot::Receiver<Shard>)>,
    /// The shards it asks, or is to ask.
    asking: BTreeSet<Shard>,
    has_waited: Turn,
}

impl Waiter {
    /// The shard that something came to. Safe to drop and call again.
    pub(super) async fn woken(&mut self) -> Shard {
        loop {
            if let Some((_, woken)) = &mut self.waiting {
                let shard = woken.await;
                self.waiting = None;
                self.has_waited = Turn::First;
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
            match self.has_waited {
                Turn::Last => lane.idle.push_back((lane.last, wake)),
                Turn::First => lane.idle.push_front((lane.last, wake)),
            }
            self.waiting = Some((lane.last, woken));
        }
    }

    /// It asks a shard.
    pub(super) fn asks(&mut self, shard: Shard) {
        self.asking.insert(shard);
    }

    /// Nothing is left in a shard that it has asked.
    pub(super) fn found_all(&mut self, shard: Shard) {
        self.asking.remove(&shard);
    }

    /// It waits for no shard any more, and sends nobody else there.
    pub(super) fn gives_up(&mut self) {
        self.asking.clear();
    }

    /// It leaves something in a shard to others.
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

    fn lane() -> PullLane {
        PullLane::of(&"t".parse().unwrap())
    }

    #[tokio::test]
    async fn a_wake_up_wakes_the_first_who_came_and_nobody_else() {
        let (all, shards) = (Arc::new(Waiters::default()), shards());
        let (mut one, mut two) = (all.register(lane()), all.register(lane()));
        assert!(one.woken().now_or_never().is_none() && two.woken().now_or_never().is_none());
        all.wake(lane(), shards[1]);
        assert!(two.woken().now_or_never().is_none());
        assert_eq!(one.woken().now_or_never(), Some(shards[1]));
        all.wake(PullLane::of(&"other".parse().unwrap()), shards[2]);
        assert!(two.woken().now_or_never().is_none());
    }

    #[tokio::test]
    async fn whoever_leaves_passes_its_wake_up_on() {
        let (all, shards) = (Arc::new(Waiters::default()), shards());
        let mut three = [all.register(lane()), all.register(lane()), all.register(lane())];
        for waiter in &mut three {
            assert!(waiter.woken().now_or_never().is_none());
        }
        let [one, mut two, mut last] = three;
        // Woken and gone before it knew.
        all.wake(lane(), shards[0]);
        drop(one);
        assert_eq!(two.woken().now_or_never(), Some(shards[0]));
        // Gone while it asked.
        drop(two);
        assert_eq!(last.woken().now_or_never(), Some(shards[0]));
        last.found_all(shards[0]);
        assert!(last.woken().now_or_never().is_none());
        drop(last);
        assert!(all.is_empty());
    }

    #[tokio::test]
    async fn whoever_asks_many_shards_passes_on_each_that_it_has_not_seen_through() {
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
    async fn what_comes_while_all_ask_is_not_forgotten() {
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
    async fn one_who_found_nothing_keeps_its_place() {
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
        // It leaves something to the next.
        one.found_more(shards[1]);
        assert_eq!(two.woken().now_or_never(), Some(shards[1]));
    }
}
