//! A count of the jobs that a load has seen accepted, and a wait for more of them.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::prelude::*;

/// Counts accepted jobs.
#[derive(Default)]
pub(super) struct AcceptedCount(AtomicUsize);

impl AcceptedCount {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until `jobs` more jobs are accepted.
    pub(super) async fn more(&self, jobs: usize) {
        let goal = self.0.load(Ordering::Relaxed) + jobs;
        eventually(SOON, "jobs are accepted", async || match self.0.load(Ordering::Relaxed) {
            now if now >= goal => Ok(()),
            now => Err(format!("{now} of {goal}")),
        })
        .await;
    }
}
