//! The waiters of each topic, first come, first served. A wake-up wakes one waiter, which asks the
//! shard that has jobs. A waiter that leaves before its shard is empty wakes the next one.
//!
//! A new waiter asks all shards by itself, unless another has found them all empty and no jobs have been announced
//! since. So of thousands that come at once only a few ask the store.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringback_core::job::Topic;
use ringback_core::store_types::Shard;
use tokio::sync::{Notify, oneshot};

#[derive(Default)]
pub(super) struct Waiters {
    topics: Mutex<HashMap<Topic, Queue>>,
    /// Notified when the first waiter comes.
    came: Notify,
}

#[derive(Default)]
struct Queue {
    /// The number of waiters, idle or asking a shard.
    present: usize,
    /// Consumers that wait for a wake-up, by their place.
    idle: BTreeMap<i64, oneshot::Sender<Shard>>,
    /// Shards that got jobs while no waiter was idle.
    pending: BTreeSet<Shard>,
    /// How many have become idle so far.
    idled: i64,
    /// All shards were empty when somebody asked them, and each wake-up since has woken a waiter that found no more jobs
    /// than it took.
    was_empty: bool,
    /// How often that has ended.
    changes: u64,
}

impl Queue {
    fn wake(&mut self, shard: Shard) {
        while let Some((_, waiter)) = self.idle.pop_first() {
            if waiter.send(shard).is_ok() {
                return;
            }
        }
        self.pending.insert(shard);
        self.may_have_jobs();
    }

    /// Records that there may be jobs: the next waiters that come ask all shards.
    fn may_have_jobs(&mut self) {
        self.was_empty = false;
        self.changes += 1;
    }
}

impl Waiters {
    pub(super) fn register(self: &Arc<Self>, topic: Topic) -> Waiter {
        let mut topics = self.lock();
        if topics.is_empty() {
            self.came.notify_one();
        }
        let queue = topics.entry(topic.clone()).or_default();
        queue.present += 1;
        let changes = queue.changes;
        drop(topics);
        Waiter {
            all: Arc::clone(self),
            topic,
            changes,
            waiting: None,
            asking: BTreeSet::new(),
            turn: Turn::Last,
        }
    }

    /// Wakes one waiter of a topic, because a shard has jobs of it. If none is idle, the next that would wait gets the
    /// shard instead. Does nothing if the topic has no waiter.
    pub(super) fn wake(&self, topic: &Topic, shard: Shard) {
        if let Some(queue) = self.lock().get_mut(topic) {
            queue.wake(shard);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Records for all topics that wake-ups may have been lost: the next waiters that come ask all shards.
    pub(super) fn look_again(&self) {
        self.lock().values_mut().for_each(Queue::may_have_jobs);
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
    /// The `changes` of its topic when it came.
    changes: u64,
    /// Its place among the idle ones.
    waiting: Option<(i64, oneshot::Receiver<Shard>)>,
    /// The shards that it asks, or is about to ask.
    asking: BTreeSet<Shard>,
    turn: Turn,
}

impl Waiter {
    /// Whether the shards may have jobs that no wake-up announces.
    pub(super) fn must_look(&self) -> bool {
        self.all.lock().get(&self.topic).is_none_or(|queue| !queue.was_empty)
    }

    /// Records that this waiter has asked all shards and found them empty. Ignored if there may be jobs since it came.
    pub(super) fn found_nothing(&self) {
        if let Some(queue) = self.all.lock().get_mut(&self.topic) {
            queue.was_empty |= queue.changes == self.changes;
        }
    }

    fn may_have_jobs(&self) {
        if let Some(queue) = self.all.lock().get_mut(&self.topic) {
            queue.may_have_jobs();
        }
    }

    /// Waits for a shard that has jobs. Safe to cancel. A waiter that was woken before is served before all others.
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
            queue.idled += 1;
            let (wake, woken) = oneshot::channel();
            let place = match self.turn {
                Turn::Last => queue.idled,
                Turn::First => -queue.idled,
            };
            queue.idle.insert(place, wake);
            self.waiting = Some((place, woken));
        }
    }

    pub(super) fn asks(&mut self, shard: Shard) {
        self.asking.insert(shard);
    }

    /// Records that the waiter has found a shard empty, or has emptied it.
    pub(super) fn found_all(&mut self, shard: Shard) {
        self.asking.remove(&shard);
    }

    /// Records that a shard has failed. Others are not woken for it, but the next that come ask all shards.
    pub(super) fn failed(&mut self, shard: Shard) {
        self.asking.remove(&shard);
        self.may_have_jobs();
    }

    /// Makes the waiter leave all shards that it asks, without waking others for them.
    pub(super) fn gives_up(&mut self) {
        self.asking.clear();
    }

    /// Records that the waiter leaves jobs in a shard, and wakes the next waiter for them.
    pub(super) fn found_more(&mut self, shard: Shard) {
        self.asking.remove(&shard);
        self.may_have_jobs();
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
        let woken = self.waiting.take().and_then(|(place, mut woken)| {
            queue.idle.remove(&place);
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

    #[tokio::test]
    async fn who_comes_to_a_topic_that_was_found_empty_only_waits() {
        let (all, shards) = (Arc::new(Waiters::default()), shards());
        let first = all.register(topic());
        assert!(first.must_look() && all.register(topic()).must_look(), "nobody has looked");
        first.found_nothing();
        assert!(!all.register(topic()).must_look());
        assert!(all.register("u".parse().unwrap()).must_look(), "of another topic nothing is known");
        // One that is woken takes the jobs; if it leaves some, whoever comes looks.
        let mut second = all.register(topic());
        assert!(second.woken().now_or_never().is_none());
        all.wake(&topic(), shards[2]);
        assert_eq!((second.must_look(), second.woken().now_or_never()), (false, Some(shards[2])));
        second.found_more(shards[2]);
        assert!(all.register(topic()).must_look());
        second.found_nothing();
        assert!(all.register(topic()).must_look(), "it may have asked before they came");
        drop((first, second));
        assert!(all.register(topic()).must_look(), "nobody was there to be woken meanwhile");
    }

    #[tokio::test]
    async fn who_comes_after_a_failure_looks_again() {
        let (all, shards) = (Arc::new(Waiters::default()), shards());
        let mut first = all.register(topic());
        first.found_nothing();
        first.failed(shards[0]);
        let second = all.register(topic());
        assert!(second.must_look());
        first.found_nothing();
        assert!(second.must_look(), "it may have asked before the failure");
        second.found_nothing();
        assert!(!second.must_look());
        all.look_again();
        assert!(second.must_look());
    }
}
