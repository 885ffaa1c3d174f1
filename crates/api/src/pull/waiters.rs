//! The waiters of each topic, first come, first served. A wake-up wakes one waiter, which asks the
//! shard. A waiter that leaves before its shard is empty wakes the next one.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringback_core::contract::Shard;
use ringback_core::job::Topic;
use tokio::sync::{Notify, oneshot};

/// All waiters of a process.
#[derive(Default)]
pub(super) struct Waiters {
    topics: Mutex<HashMap<Topic, Queue>>,
    /// Notified when the first waiter comes.
    came: Notify,
}

/// The waiters of one topic.
#[derive(Default)]
struct Queue {
    /// The number of waiters, idle or asking a shard.
    present: usize,
    /// Those that wait for a wake-up.
    idle: VecDeque<(u64, oneshot::Sender<Shard>)>,
    /// Shards that got jobs while no waiter was idle.
    pending: BTreeSet<Shard>,
    /// The number of the last waiter that became idle.
    last: u64,
}

impl Queue {
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
    pub(super) fn register(self: &Arc<Self>, topic: Topic) -> Waiter {
        let mut topics = self.lock();
        if topics.is_empty() {
            self.came.notify_one();
        }
        topics.entry(topic.clone()).or_default().present += 1;
        drop(topics);
        Waiter { all: Arc::clone(self), topic, waiting: None, asking: BTreeSet::new(), turn: Turn::Last }
    }

    /// A shard has jobs of a topic. Wakes one waiter of the topic.
    pub(super) fn wake(&self, topic: &Topic, shard: Shard) {
        if let Some(queue) = self.lock().get_mut(topic) {
            queue.wake(shard);
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

    fn lock(&self) -> MutexGuard<'_, HashMap<Topic, Queue>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
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

/// A consumer that waits for jobs of a topic. Dropping it removes it.
pub(super) struct Waiter {
    all: Arc<Waiters>,
    topic: Topic,
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
            let mut topics = self.all.lock();
            let queue = topics.entry(self.topic.clone()).or_default();
            if let Some(shard) = queue.pending.pop_first() {
                self.asking.insert(shard);
                return shard;
            }
            queue.last += 1;
            let (wake, woken) = oneshot::channel();
            match self.turn {
                Turn::Last => queue.idle.push_back((queue.last, wake)),
                Turn::First => queue.idle.push_front((queue.last, wake)),
            }
            self.waiting = Some((queue.last, woken));
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
        self.all.wake(&self.topic, shard);
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut topics = self.all.lock();
        let Some(queue) = topics.get_mut(&self.topic) else { return };
        queue.present = queue.present.saturating_sub(1);
        if queue.present == 0 {
            topics.remove(&self.topic);
            return;
        }
        let woken = self.waiting.take().and_then(|(number, mut woken)| {
            queue.idle.retain(|(other, _)| *other != number);
            woken.try_recv().ok()
        });
        for shard in woken.into_iter().chain(std::mem::take(&mut self.asking)) {
            queue.wake(shard);
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

    fn topic() -> Topic {
        "t".parse().unwrap()
    }

    #[tokio::test]
    async fn a_wake_up_wakes_only_the_first_waiter() {
        let (all, shards) = (Arc::new(Waiters::default()), shards());
        let (mut one, mut two) = (all.register(topic()), all.register(topic()));
        assert!(one.woken().now_or_never().is_none() && two.woken().now_or_never().is_none());
        all.wake(&topic(), shards[1]);
        assert!(two.woken().now_or_never().is_none());
        assert_eq!(one.woken().now_or_never(), Some(shards[1]));
        all.wake(&"u".parse().unwrap(), shards[2]);
        assert!(two.woken().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_waiter_that_leaves_passes_its_wake_up_on() {
        let (all, shards) = (Arc::new(Waiters::default()), shards());
        let mut three = [all.register(topic()), all.register(topic()), all.register(topic())];
        for waiter in &mut three {
            assert!(waiter.woken().now_or_never().is_none());
        }
        let [one, mut two, mut last] = three;
        // Dropped after it was woken, before it noticed.
        all.wake(&topic(), shards[0]);
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
        let (mut one, mut two) = (all.register(topic()), all.register(topic()));
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
        let mut one = all.register(topic());
        one.asks(shards[0]);
        all.wake(&topic(), shards[1]);
        one.found_all(shards[0]);
        assert_eq!(one.woken().now_or_never(), Some(shards[1]));
        one.found_all(shards[1]);
        assert!(one.woken().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_waiter_that_found_nothing_keeps_its_place() {
        let (all, shards) = (Arc::new(Waiters::default()), shards());
        let (mut one, mut two) = (all.register(topic()), all.register(topic()));
        assert!(one.woken().now_or_never().is_none() && two.woken().now_or_never().is_none());
        all.wake(&topic(), shards[0]);
        assert_eq!(one.woken().now_or_never(), Some(shards[0]));
        one.found_all(shards[0]);
        assert!(one.woken().now_or_never().is_none());
        all.wake(&topic(), shards[1]);
        assert_eq!(one.woken().now_or_never(), Some(shards[1]));
        assert!(two.woken().now_or_never().is_none());
        // It leaves jobs to the next.
        one.found_more(shards[1]);
        assert_eq!(two.woken().now_or_never(), Some(shards[1]));
    }
}
