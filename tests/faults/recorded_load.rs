//! Submits jobs until each is accepted, and records each call in a history.

use std::sync::atomic::{AtomicBool, Ordering};

use ringback_testkit::recorded::{Recorded, RecordedJob};
use tokio::time::sleep;

use super::accepted_count::AcceptedCount;
use crate::prelude::*;

pub(super) const TOPIC: &str = "push";
/// The pause of a caller between two calls.
const PAUSE: Duration = Duration::from_millis(10);

/// Submits jobs, due at once or soon, and each again until it is accepted.
pub(super) struct RecordedLoad<'a> {
    pub(super) recorded: &'a Recorded,
    pub(super) api: String,
    pub(super) url: String,
    pub(super) is_over: AtomicBool,
    pub(super) accepted: AcceptedCount,
}

impl<'a> RecordedLoad<'a> {
    pub(super) fn new(recorded: &'a Recorded, stack: &Stack, url: String) -> Self {
        let api = stack.api_urls().remove(0);
        Self { recorded, api, url, is_over: AtomicBool::new(false), accepted: AcceptedCount::default() }
    }

    /// Submits one job after the other until the load is over.
    pub(super) async fn run(&self, caller: &str) {
        for n in 0_u64.. {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            self.submit(&format!("{caller}-{n}"), n * 37 % 400).await;
            sleep(PAUSE).await;
        }
    }

    /// Submits a job again and again until it is accepted, and counts it.
    pub(super) async fn submit(&self, id: &str, delay: u64) {
        let mut job = RecordedJob::new(TOPIC, id, Some(self.url.clone()));
        (job.delay, job.timeout) = (Some(delay), Some(500));
        while !matches!(self.recorded.submit(&self.api, &job).await, Some((200 | 201, _))) {
            sleep(PAUSE).await;
        }
        self.accepted.add();
    }

    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
