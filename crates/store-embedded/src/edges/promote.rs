//! promote: delayed and due → ready. Topics take turns, and none takes more than its share.

use std::time::Duration;

use ringback_core::contract::{Epoch, EventKind, Pass, Shard, StoreError};
use ringback_core::state::State;

use super::pass::PassLimits;
use crate::EmbeddedStore;
use crate::error::Result;
use crate::tables::{DueJobs, QueueEnd};
use crate::txn::Txn;
use crate::txn::transitions::To;

/// The most topics of a pass.
const TOPICS: usize = 64;

impl EmbeddedStore {
    pub async fn promote(
        &self,
        shard: Shard,
        epoch: &Epoch,
        limit: u32,
        floor: Duration,
    ) -> Result<Pass, StoreError> {
        let (limits, bytes) = PassLimits::new(self, epoch, limit, floor);
        self.call(shard, bytes, move |txn| promote(txn, &limits)).await
    }
}

fn promote(txn: &mut Txn<'_>, limits: &PassLimits) -> Result<Pass> {
    if limits.is_fenced(txn) {
        return Ok(Pass::Fenced);
    }
    let (shard, now) = (txn.shard(), txn.now());
    let topics = txn.tables.due.scheduled(shard, now, TOPICS)?;
    let share = limits.jobs.div_ceil(topics.len().max(1));
    let (mut left, mut moved, mut stale) = (limits.jobs, 0, 0);
    for topic in topics {
        let take = share.min(left);
        if take == 0 {
            break;
        }
        let DueJobs { found, following } = txn.tables.due.of_topic(shard, &topic, now, take)?;
        left -= found.len();
        for (due, number) in found {
            match txn.tables.records.get(number)? {
                Some(mut job) if job.state() == State::Delayed && job.due == due => {
                    txn.publish(&job, || EventKind::Promoted)?;
                    txn.enter(&mut job, To::Ready(QueueEnd::Back))?;
                    moved += 1;
                }
                _ => {
                    txn.tables.due.remove(shard, &topic, due, number)?;
                    stale += 1;
                }
            }
        }
        // A topic that is still due goes behind the others that are.
        txn.tables.due.schedule(shard, &topic, following.map(|at| at.max(now)))?;
    }
    limits.report(txn, moved, stale)
}
