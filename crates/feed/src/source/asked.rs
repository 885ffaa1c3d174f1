//! `Asked`: since when a feed waits for an answer of its database. So a database that hangs is seen long before the feed
//! gives up waiting for it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

tokio::task_local! {
    static CURRENT: Asked;
}

/// Since when the task of a feed waits for its database.
#[derive(Clone, Default)]
pub(crate) struct Asked(Arc<Mutex<Option<Instant>>>);

impl Asked {
    /// Does the work of a feed. What it asks its database meanwhile is noted here.
    pub(crate) async fn note<T>(&self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(self.clone(), work).await
    }

    /// When the database was asked what it has not answered; `None` if it has answered all.
    pub(crate) fn since(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
}

/// Waits for an answer of a database.
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
