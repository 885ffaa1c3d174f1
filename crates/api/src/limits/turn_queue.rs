//! A fair queue for expensive calls: a fixed number run at a time in all, and one or a few per caller, so that the many
//! calls of one caller queue behind each other and not in front of other callers. While other callers are active, a
//! caller pauses after each turn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringback_service::http_server::Holder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

use super::Activity;

/// How long a caller rests, in multiples of its turn. So its turns take at most a quarter of the time.
const REST: u32 = 3;
const MAX_REST: Duration = Duration::from_secs(1);

/// The turns. Clones share them.
#[derive(Clone)]
pub(crate) struct TurnQueue(Arc<Shared>);

struct Shared {
    rest: u32,
    /// How many turns a caller has at a time.
    each: usize,
    all: Arc<Semaphore>,
    by_holder: Mutex<HashMap<Holder, Own>>,
    activity: Arc<Activity>,
}

/// The turns of one caller.
struct Own {
    turn: Arc<Semaphore>,
    rests_until: Instant,
}

/// A turn, which ends when it is dropped.
pub(crate) struct Turn {
    turns: TurnQueue,
    holder: Holder,
    began: Instant,
    _of_all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl TurnQueue {
    pub(crate) fn new(at_a_time: usize, activity: Arc<Activity>) -> Self {
        Self::with(REST, 1, at_a_time, activity)
    }

    /// Turns of calls that take little work: a caller has up to `each` at a time, and does not rest.
    pub(crate) fn of_small_work(each: usize, at_a_time: usize, activity: Arc<Activity>) -> Self {
        Self::with(0, each, at_a_time, activity)
    }

    fn with(rest: u32, each: usize, at_a_time: usize, activity: Arc<Activity>) -> Self {
        let all = Arc::new(Semaphore::new(at_a_time));
        Self(Arc::new(Shared { rest, each, all, by_holder: Mutex::default(), activity }))
    }

    /// Waits for a turn if other callers are active; otherwise returns `None` at once.
    pub(crate) async fn wait_for_others(&self, holder: Holder) -> Option<Turn> {
        if self.0.activity.has_others(&holder) { Some(self.wait(holder).await) } else { None }
    }

    /// Waits for a turn: until the caller has one of its own, then until it has rested, then for one of those of all.
    pub(crate) async fn wait(&self, holder: Holder) -> Turn {
        let own = {
            let (mut known, now) = (self.lock(), Instant::now());
            // Nobody else waits for those that only the map has.
            known.retain(|_, own| Arc::strong_count(&own.turn) > 1 || own.rests_until > now);
            let own = known.entry(holder.clone());
            Arc::clone(
                &own.or_insert_with(|| Own { turn: Arc::new(Semaphore::new(self.0.each)), rests_until: now })
                    .turn,
            )
        };
        let own = own.acquire_owned().await.expect("it is never closed");
        let rests_until = self.lock().get(&holder).map(|own| own.rests_until);
        if let Some(until) = rests_until.filter(|until| *until > Instant::now()) {
            sleep_until(until).await;
        }
        let of_all = Arc::clone(&self.0.all).acquire_owned().await.expect("it is never closed");
        Turn { turns: self.clone(), holder, began: Instant::now(), _of_all: of_all, _own: own }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Holder, Own>> {
        self.0.by_holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.turns.0.rest > 0
            && self.turns.0.activity.has_others(&self.holder)
            && let Some(own) = self.turns.lock().get_mut(&self.holder)
        {
            own.rests_until = Instant::now() + (self.began.elapsed() * self.turns.0.rest).min(MAX_REST);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use ringback_service::http_server::Peer;
    use tokio::time::advance;

    use super::*;
    use crate::limits::of_tenant;

    fn named(name: &str) -> Holder {
        Holder::Name(name.into())
    }

    #[tokio::test]
    async fn a_caller_with_many_calls_has_one_turn_and_leaves_the_others_theirs() {
        let turns = TurnQueue::new(2, Arc::default());
        let first = turns.wait(named("a")).await;
        let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(turns.wait(named("a")))).collect();
        assert!(waiting.iter_mut().all(|turn| turn.now_or_never().is_none()));
        let other = turns.wait(named("b")).await;
        assert!(turns.wait(named("c")).now_or_never().is_none(), "two at a time");
        drop(other);
        let third = turns.wait(named("c")).await;
        drop(first);
        assert!(waiting.remove(0).now_or_never().is_some());
        drop((third, waiting));
        drop(turns.wait(named("d")).await);
        assert_eq!(turns.lock().len(), 1);
    }

    #[tokio::test]
    async fn small_work_is_done_some_at_a_time_and_in_turns_only_beside_others() {
        let (activity, peer) = (Arc::<Activity>::default(), Peer::of([127, 0, 0, 1].into()));
        let turns = TurnQueue::of_small_work(2, 3, Arc::clone(&activity));
        activity.note(&of_tenant("a"), peer);
        assert!(turns.wait_for_others(named("a")).await.is_none(), "it is alone");
        activity.note(&of_tenant("b"), peer);
        let taken = [turns.wait_for_others(named("a")).await, turns.wait_for_others(named("a")).await];
        assert!(taken.iter().all(Option::is_some));
        assert!(turns.wait_for_others(named("a")).now_or_never().is_none());
        assert!(turns.wait_for_others(named("b")).now_or_never().is_some(), "another has its own");
        drop(taken);
        assert!(turns.wait_for_others(named("a")).now_or_never().is_some(), "it does not rest");
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_rests_after_its_turn_if_others_are_active() {
        let (activity, peer) = (Arc::<Activity>::default(), Peer::of([127, 0, 0, 1].into()));
        let turns = TurnQueue::new(2, Arc::clone(&activity));
        let take = async |name: &str| {
            let turn = turns.wait(named(name)).await;
            advance(Duration::from_millis(10)).await;
            drop(turn);
        };
        activity.note(&of_tenant("a"), peer);
        let began = Instant::now();
        take("a").await;
        take("a").await;
        assert_eq!(began.elapsed().as_millis(), 20, "it is alone");
        activity.note(&of_tenant("b"), peer);
        take("a").await;
        take("a").await;
        assert_eq!(began.elapsed().as_millis(), 20 + 10 + 30 + 10);
        assert!(turns.wait(named("a")).now_or_never().is_none(), "it rests");
        assert!(turns.wait(named("b")).now_or_never().is_some(), "another does not");
        advance(MAX_REST).await;
        assert!(turns.wait(named("a")).now_or_never().is_some());
    }
}
