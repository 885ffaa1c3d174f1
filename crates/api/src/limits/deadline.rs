//! `Deadline`: when a request must be answered, two seconds after its last byte. Bounds waits and store calls by it,
//! and makes a store call that carries a token once more if its answer was lost.

use std::future::Future;
use std::time::Duration;

use ringback_core::store_types::StoreError;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use crate::error::Unavailable;

/// How long a request waits for the store. The rest of the two seconds is for writing the answer.
const ANSWER_WITHIN: Duration = Duration::from_millis(1800);

/// When a request stops waiting for the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// The deadline of a request that has just arrived, or of the next store call of a batch after
    /// the store has answered another.
    pub(crate) fn from_now() -> Self {
        Self(Instant::now() + ANSWER_WITHIN)
    }

    pub(crate) fn has_passed(self) -> bool {
        Instant::now() >= self.0
    }

    /// Whether so little time is left that one more store call could be late.
    pub(crate) fn is_near(self) -> bool {
        Instant::now() + ANSWER_WITHIN / 4 >= self.0
    }

    /// An earlier deadline for the first of `parts` sequential waits, each with the same part of
    /// the time that is left.
    pub(crate) fn share(self, parts: usize) -> Self {
        let (now, parts) = (Instant::now(), u32::try_from(parts).unwrap_or(u32::MAX));
        Self(now + self.0.saturating_duration_since(now) / parts.max(1))
    }

    /// The earlier of this deadline and `max` from now.
    pub(crate) fn within(self, max: Duration) -> Self {
        Self(self.0.min(Instant::now() + max))
    }

    /// The later of this deadline and `min` from now.
    pub(crate) fn later(self, min: Duration) -> Self {
        Self(self.0.max(Instant::now() + min))
    }

    /// Awaits `wait` until the deadline.
    pub(crate) async fn bound<F: Future>(self, wait: F) -> Result<F::Output, Elapsed> {
        timeout_at(self.0, wait).await
    }

    /// Makes a store call; [`Unavailable::TooLate`] at the deadline. An error of the store is logged.
    pub(crate) async fn call<T>(
        self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, Unavailable> {
        Ok(self.bound(call).await.map_err(|_elapsed| Unavailable::TooLate)??)
    }

    /// Makes a store call that carries a token, and once more if the connection broke before the
    /// answer. With the same token the store returns the result of the first call, as long as nothing
    /// else has happened since. A repetition that is not applied says nothing about the first call,
    /// whose outcome stays unknown.
    pub(crate) async fn idempotent<T: Send, F: Future<Output = Result<T, StoreError>> + Send>(
        self,
        is_applied: impl Fn(&T) -> bool + Send,
        call: impl Fn() -> F + Send,
    ) -> Result<T, Unavailable> {
        let result = self.bound(async {
            match call().await {
                Err(StoreError::Away(why)) => match call().await {
                    Ok(result) if !is_applied(&result) => Err(StoreError::Away(why)),
                    result => result,
                },
                result => result,
            }
        });
        Ok(result.await.map_err(|_elapsed| Unavailable::TooLate)??)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Makes a call whose first answer is lost, and whose repetition is answered `again`. 200 counts as applied.
    async fn repeated(again: u16) -> Result<u16, Unavailable> {
        let calls = AtomicU32::new(0);
        let call = || {
            let is_first = calls.fetch_add(1, Ordering::Relaxed) == 0;
            async move {
                if is_first { Err(StoreError::Away(Arc::new(io::Error::other("broken")))) } else { Ok(again) }
            }
        };
        Deadline::from_now().idempotent(|status| *status == 200, call).await
    }

    #[tokio::test]
    async fn a_repetition_that_is_not_applied_leaves_the_outcome_unknown() {
        assert_eq!(repeated(200).await.ok(), Some(200));
        // The first call may have taken effect, and something else has changed the job since.
        assert!(repeated(409).await.is_err());
    }
}
