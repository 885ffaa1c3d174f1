//! Room for the bodies of requests: so many bytes in all, from the moment a body begins to
//! fill memory until its jobs have been carried to the store, or never will be.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::deadline::Deadline;

/// The bytes of all bodies together: four batches of the largest kind. What is made of them
/// on their way takes about as much again.
const BYTES: usize = 64 * 1024 * 1024;

/// The room of a process.
pub(crate) struct Room(Arc<Semaphore>);

/// What one request has of it, given back with the last clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share {
    _bytes: Option<Arc<OwnedSemaphorePermit>>,
}

impl Room {
    /// Takes so many bytes, first come, first served; none when there is no room in time.
    pub(crate) async fn take(&self, bytes: usize) -> Option<Share> {
        let bytes = u32::try_from(bytes).ok()?;
        let taken = Deadline::from_now().bound(Arc::clone(&self.0).acquire_many_owned(bytes)).await;
        Some(Share { _bytes: Some(Arc::new(taken.ok()?.ok()?)) })
    }

    /// How many bytes are free.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.0.available_permits()
    }
}

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(BYTES)))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Duration, Instant};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_finds_no_room_is_told_so_within_two_seconds() {
        let room = Room::default();
        let all = room.take(BYTES).await;
        let start = Instant::now();
        assert!(room.take(1).await.is_none());
        assert!(start.elapsed() < Duration::from_secs(2));
        drop(all);
        assert!(room.take(1).await.is_some());
    }

    #[tokio::test]
    async fn a_share_is_given_back_with_its_last_clone() {
        let room = Room::default();
        let share = room.take(1_000).await.unwrap();
        let clone = share.clone();
        drop(share);
        assert_eq!(room.free(), BYTES - 1_000);
        drop(clone);
        assert_eq!(room.free(), BYTES);
    }
}
