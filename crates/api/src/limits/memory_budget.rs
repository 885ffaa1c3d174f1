//! Budgets for memory: of request bodies, which count from their first bytes until their jobs are in
//! the store or refused, and of answers with whole jobs.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::deadline::Deadline;

/// The bytes of a budget: four batches of the largest size. Parsing them takes about as much memory
/// again.
const BYTES: usize = 64 * 1024 * 1024;

/// A memory budget of the process.
pub(crate) struct MemoryBudget(Arc<Semaphore>);

/// One request's part of the budget, returned when its last clone is dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryPermit {
    bytes: Option<Arc<OwnedSemaphorePermit>>,
}

impl MemoryPermit {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.as_ref().map_or(0, |permit| permit.num_permits())
    }
}

impl MemoryBudget {
    /// Acquires `bytes`, first come, first served. Returns `None` if they are not free before the deadline
    /// of a request that arrives now.
    pub(crate) async fn acquire(&self, bytes: usize) -> Option<MemoryPermit> {
        self.extend(MemoryPermit::default(), bytes).await
    }

    /// Extends a permit that has no clones to `bytes`. Waits and fails as [`MemoryBudget::acquire`] does; a failure
    /// also returns what the permit had.
    pub(crate) async fn extend(&self, permit: MemoryPermit, bytes: usize) -> Option<MemoryPermit> {
        let more = u32::try_from(bytes.saturating_sub(permit.bytes())).ok()?;
        let acquired = Deadline::from_now().bound(Arc::clone(&self.0).acquire_many_owned(more)).await;
        let mut all = acquired.ok()?.ok()?;
        if let Some(held) = permit.bytes.and_then(Arc::into_inner) {
            all.merge(held);
        }
        Some(MemoryPermit { bytes: Some(Arc::new(all)) })
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.0.available_permits()
    }
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(BYTES)))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Duration, Instant};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_without_memory_is_refused_within_two_seconds() {
        let budget = MemoryBudget::default();
        let all = budget.acquire(BYTES).await;
        let start = Instant::now();
        assert!(budget.acquire(1).await.is_none());
        assert!(start.elapsed() < Duration::from_secs(2));
        drop(all);
        assert!(budget.acquire(1).await.is_some());
    }

    #[tokio::test]
    async fn a_permit_is_returned_with_its_last_clone() {
        let budget = MemoryBudget::default();
        let permit = budget.acquire(1_000).await.unwrap();
        let clone = permit.clone();
        drop(permit);
        assert_eq!(budget.free(), BYTES - 1_000);
        drop(clone);
        assert_eq!(budget.free(), BYTES);
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_is_extended_or_returned() {
        let budget = MemoryBudget::default();
        let permit = budget.acquire(1_000).await.unwrap();
        let permit = budget.extend(permit, 3_000).await.unwrap();
        assert_eq!((permit.bytes(), budget.free()), (3_000, BYTES - 3_000));
        assert!(budget.extend(permit, BYTES + 1).await.is_none());
        assert_eq!(budget.free(), BYTES);
    }
}
