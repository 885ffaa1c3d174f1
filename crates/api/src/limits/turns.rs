//! Turns of calls that read much: few at a time in all, and one at a time for each caller, so that the others of a caller
//! wait behind it and not before other callers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringback_service::http_server::Claimant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The turns.
pub(crate) struct Turns {
    all: Arc<Semaphore>,
    by_claimant: Mutex<HashMap<Claimant, Arc<Semaphore>>>,
}

/// A turn, which ends when it is dropped.
pub(crate) struct Turn {
    _of_all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl Turns {
    pub(crate) fn new(at_a_time: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(at_a_time)), by_claimant: Mutex::default() }
    }

    /// Waits for a turn. Callers are served in the order in which they have one of their own.
    pub(crate) async fn wait(&self, claimant: Claimant) -> Turn {
        let own = {
            let mut known = self.lock();
            // Nobody else waits for those that only the map has.
            known.retain(|_, own| Arc::strong_count(own) > 1);
            Arc::clone(known.entry(claimant).or_insert_with(|| Arc::new(Semaphore::new(1))))
        };
        let own = own.acquire_owned().await.expect("it is never closed");
        let of_all = Arc::clone(&self.all).acquire_owned().await.expect("it is never closed");
        Turn { _of_all: of_all, _own: own }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Claimant, Arc<Semaphore>>> {
        self.by_claimant.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn named(name: &str) -> Claimant {
        Claimant::Name(name.into())
    }

    #[tokio::test]
    async fn a_caller_with_many_calls_has_one_turn_and_leaves_the_others_theirs() {
        let turns = Turns::new(2);
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
}
