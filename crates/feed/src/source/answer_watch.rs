//! `Asked`: records since when a feed waits for an answer of its database, so that a database that hangs is reported
//! long before the feed gives up waiting for it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

tokio::task_local! {
    static CURRENT: Asked;
}

/// Since when the task of a feed waits for its database.
#[derive(Clone, Default)]
pub(crate) struct Asked(Arc<Mutex<Option<Instant>>>);

impl Asked {
    /// Runs the work of a feed, and records in `self` when that waits for the database.
    pub(crate) async fn note<T>(&self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(self.clone(), work).await
    }

    /// Since when the work waits for an answer of its database; `None` if it does not wait.
    pub(crate) fn since(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
}

/// Awaits an answer of a database, and records the wait in the [`Asked`] of the running task, if it has one.
pub(super) async fn answered<T>(answer: impl Future<Output = T>) -> T {
    // A check of the feeds is not noted.
    let _ends = CURRENT.try_with(Asked::clone).ok().map(|asked| {
        asked.set(Some(Instant::now()));
        Ends(asked)
    });
    answer.await
}

/// Ends a wait, given up or not.
struct Ends(Asked);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.set(None);
    }
}
