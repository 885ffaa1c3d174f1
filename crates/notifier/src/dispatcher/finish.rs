//! The end of the main loop: what is in flight is finished and settled, within the grace period.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep_until, timeout};

use super::Dispatcher;
use crate::store_call::stop_waiting;

/// How long store calls in flight may take after the grace period.
const LAST_CALLS: Duration = Duration::from_millis(500);

impl Dispatcher {
    /// Gives back the jobs whose callbacks have not begun. Finishes the deliveries in flight, and those of reserves in
    /// flight, and settles their outcomes, until the grace period ends; store calls have [`LAST_CALLS`] more. Then counts and logs the jobs that are not settled.
    pub(super) async fn finish(mut self) -> anyhow::Result<()> {
        let shutdown = self.shutdown.clone();
        let mut expired = pin!(shutdown.expired());
        let waiting = self.pending.take_all();
        self.give_back(waiting);
        self.flow.stop();
        let stops = self.due_waits.shards().map(|shard| stop_waiting(&self.store, shard, &self.caller));
        // Without an answer the carriers find out by themselves.
        timeout(LAST_CALLS, join_all(stops)).await.ok();
        loop {
            self.call_store();
            let is_settled = self.settle_queue.is_empty() && self.flow.is_settled();
            if self.calls.is_empty() && self.deliveries.is_empty() && is_settled {
                return Ok(());
            }
            let at = self.next_settle().map(|(_, at)| at).into_iter().chain(self.flow.next()).min();
            tokio::select! {
                biased;
                Some(reply) = self.calls.join_next() => self.replied(reply)?,
                Some(delivered) = self.deliveries.join_next() => self.delivered(delivered)?,
                Some(reply) = self.admissions.join_next() => self.admitted(reply)?,
                () = sleep_until(at.unwrap_or_else(Instant::now)), if at.is_some() => {}
                () = &mut expired => break,
            }
        }
        let last_calls = async {
            while let Some(reply) = self.calls.join_next().await {
                self.replied(reply)?;
            }
            Ok(())
        };
        let result = timeout(LAST_CALLS, last_calls).await;
        // Aborted tasks hold the store until they are dropped.
        self.calls.shutdown().await;
        self.deliveries.shutdown().await;
        self.settle_queue.close(self.lanes.permits());
        result.unwrap_or(Ok(()))
    }
}
