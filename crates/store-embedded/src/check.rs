//! Check and repair: checks that every job is in the indexes that lead to it or waits behind another of its key, and that
//! all counts are right. `walk` reads a snapshot, which does not change, so its findings are exact. The writer applies
//! the repairs. It checks missing entries of indexes again, and corrects counts by differences, which stay right
//! meanwhile.

mod counts;
mod order;
mod repair;
mod walk;

use std::sync::Arc;

use ringback_core::store_types::{Check, Repair, RunningCheck, StoreError};

use self::repair::{Findings, Fix};
use self::walk::walk;
use super::error::Result;
use super::txn::Txn;
use super::{EmbeddedStore, TRANSITION_BYTES};

/// A repair ends after this many walks in a row that repair nothing: their findings cannot be repaired.
const TRIES: usize = 2;
/// The most repairs in one call of the writer.
const BATCH: usize = 100;

impl EmbeddedStore {
    /// See `ringback_store::Store::check`.
    pub async fn check(&self, repair: Repair) -> Result<Check, StoreError> {
        let (mut repaired, mut tries) = (RunningCheck::of(self.options.shards), TRIES);
        loop {
            let Findings { mut check, fixes, .. } = self.walk(repair).await?;
            let before = repaired.0.repaired;
            for of_shard in fixes.chunk_by(|one, other| one.finding.shard == other.finding.shard) {
                for batch in of_shard.chunks(BATCH) {
                    self.fix(batch, &mut repaired.0).await?;
                }
            }
            // A finding that other calls have resolved meanwhile is not found again.
            tries = if repaired.0.repaired == before { tries - 1 } else { TRIES };
            if fixes.is_empty() || tries == 0 {
                fixes.into_iter().for_each(|fix| check.find(fix.finding));
                return Ok(check.after(repaired.end()));
            }
        }
    }

    async fn walk(&self, repair: Repair) -> Result<Findings, StoreError> {
        let snapshot = self.writer()?.snapshot().await?;
        // The walk stops when its caller is gone.
        let (caller, shards) = (Arc::new(()), self.options.shards);
        let waits = Arc::downgrade(&caller);
        self.read(snapshot, move |tables| walk(tables, shards, repair, &waits)).await
    }

    /// Applies repairs, all of one shard, and adds those that changed something to `check`, as repaired findings.
    async fn fix(&self, fixes: &[Fix], check: &mut Check) -> Result<(), StoreError> {
        let Some(shard) = fixes.first().map(|fix| fix.finding.shard) else { return Ok(()) };
        let actions: Vec<_> = fixes.iter().map(|fix| fix.action.clone()).collect();
        let apply = move |txn: &mut Txn<'_>| actions.iter().map(|action| action.apply(txn)).collect();
        let done: Vec<bool> = self.call(shard, fixes.len() * TRANSITION_BYTES, apply).await?;
        for (fix, is_done) in fixes.iter().zip(done) {
            if is_done {
                check.find(fix.finding.clone().repaired(true));
            }
        }
        Ok(())
    }
}
