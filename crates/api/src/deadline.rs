//! How long a request may wait for the store. The two seconds that callers are promised
//! begin when a request is there as a whole: with its head, or with the last byte of its body.

use std::future::Future;
use std::time::Duration;

use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

/// So long a request waits for a word of the store; what is left of the two seconds is for
/// the answer.
const ANSWER_WITHIN: Duration = Duration::from_millis(1800);

/// When to stop waiting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// Of a request that is there as of now, or that has just had a word of the store and
    /// waits for another.
    pub(crate) fn from_now() -> Self {
        Self(Instant::now() + ANSWER_WITHIN)
    }

    /// Whether it has passed.
    pub(crate) fn has_passed(self) -> bool {
        Instant::now() >= self.0
    }

    /// When to stop waiting for one of `parts` that are waited for in turn: each has the same share
    /// of what is left.
    pub(crate) fn share(self, parts: usize) -> Self {
        let (now, parts) = (Instant::now(), u32::try_from(parts).unwrap_or(u32::MAX));
        Self(now + self.0.saturating_duration_since(now) / parts.max(1))
    }

    /// The earlier of this one and so long from now.
    pub(crate) fn within(self, most: Duration) -> Self {
        Self(self.0.min(Instant::now() + most))
    }

    /// Waits for something, but not beyond it.
    pub(crate) async fn bound<F: Future>(self, wait: F) -> Result<F::Output, Elapsed> {
        timeout_at(self.0, wait).await
    }
}
