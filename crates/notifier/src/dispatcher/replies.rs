//! Replies of the store: what a settle and a reserve change in the bookkeeping of the main loop.

use anyhow::Context as _;
use ringback_core::crash_point;
use ringback_core::store_types::{Reserved, Shard, StoreError};
use ringback_service::telemetry::with_causes;
use tokio::task::JoinError;
use tokio::time::Instant;
use tracing::{info, warn};

use super::{BREATH, Dispatcher};
use crate::shard_signals::Cause;
use crate::store_call::{MadeReserve, StoreReply};

impl Dispatcher {
    /// Handles the end of a store call: records settled outcomes, starts the deliveries of reserved jobs, and plans
    /// retries after a failure.
    pub(super) fn replied(&mut self, reply: Result<StoreReply, JoinError>) -> anyhow::Result<()> {
        let StoreReply { shard, reserve, batch, result } = reply.context("a store call panicked")?;
        if let Some(made) = &reserve {
            self.lanes.answered(&made.limits);
            self.reserving.remove(&shard);
            if let Some(cause) = self.marked_meanwhile.remove(&shard) {
                self.signals.mark(shard, cause);
            }
        }
        match result {
            Ok((settled, reserved)) => {
                if let Some(batch) = batch {
                    crash_point!("notifier.after_settle");
                    // The outcomes are settled, so there is no retry that could log the rest.
                    self.count_unlogged(batch.unlogged + batch.notes.len());
                    self.settle_queue.succeeded(shard, &batch.jobs, &settled);
                    self.lanes.settled(batch.jobs.len());
                }
                if let (Some(made), Some(reserved)) = (reserve, reserved) {
                    self.reserved(shard, &made, reserved);
                }
            }
            Err(unsettled) => {
                if let Some(made) = reserve {
                    let shards = self.flow.reserve_failed(shard, made.admitted);
                    self.mark_for_places(shards);
                    self.reserve_failed(shard, &unsettled.error);
                }
                if let Some(batch) = batch {
                    self.count_unlogged(batch.unlogged);
                    let given_up = self.settle_queue.failed(shard, unsettled, batch, Instant::now());
                    self.lanes.settled(given_up);
                }
            }
        }
        Ok(())
    }

    fn count_unlogged(&self, attempts: usize) {
        if attempts > 0 {
            self.metrics.unlogged.add(attempts as u64, &[]);
        }
    }

    fn reserved(&mut self, shard: Shard, made: &MadeReserve, reserved: Reserved) {
        crash_point!("notifier.after_reserve");
        if let Some(sequence) = self.sequences.get_mut(&shard) {
            *sequence += 1;
        }
        self.backoff.reset();
        self.paused_until = None;
        if self.outage.succeeded(&shard) {
            info!("reserve succeeds again");
        }
        self.signals.record(shard, made.cause, &reserved);
        self.due_waits.set(shard, reserved.next_due.map(|at| at.max(Instant::now() + BREATH)));
        let found_others = !reserved.leases.is_empty() || reserved.has_deferred;
        let is_stuck = !found_others && !reserved.throttled.is_empty();
        if reserved.more && (is_stuck || reserved.is_more_later) {
            self.ask_again.later(shard, Instant::now());
        } else {
            self.ask_again.reset(shard);
            if reserved.more {
                self.signals.mark(shard, Cause::Local);
            }
        }
        for name in reserved.full.into_iter().chain(reserved.throttled) {
            self.full.add(name, shard);
        }
        self.metrics.reserve_batch.record(reserved.leases.len() as u64, &[]);
        let now = Instant::now();
        self.flow.found(shard, &made.admitted, reserved.limited, now);
        self.start(shard, reserved.leases, &made.admitted, now);
        let shards = self.flow.reserved(shard, &made.admitted);
        self.mark_for_places(shards);
    }

    fn reserve_failed(&mut self, shard: Shard, error: &StoreError) {
        // The store's own check logs why it is not prepared.
        if !matches!(error, StoreError::Unprepared) && self.outage.failed(shard) {
            warn!(shard = shard.number(), error = with_causes(error), "reserve failed; retrying");
        }
        self.paused_until = Some(Instant::now() + self.backoff.next());
        self.signals.mark(shard, Cause::Local);
    }
}
