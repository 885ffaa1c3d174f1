//! The counts of a shard.

use crate::state::State;
use crate::store::embedded::EmbeddedStore;
use crate::store::embedded::error::Result;
use crate::store::embedded::txn::Txn;
use crate::store::{Shard, Stats, StoreError};

impl EmbeddedStore {
    pub(crate) async fn stats(&self, shard: Shard) -> Result<Stats, StoreError> {
        self.call(shard, 0, |txn| stats(txn)).await
    }
}

fn stats(txn: &Txn<'_>) -> Result<Stats> {
    let (shard, ledger) = (txn.shard(), &txn.row.ledger);
    let mut stats = Stats {
        accepted: ledger.accepted,
        topics: txn.tables.due.topics(shard, "", usize::MAX)?.into_iter().collect(),
        lateness: txn.tables.minutes.recent(shard, txn.now())?,
        forgotten_early: ledger.evicted_early,
        // The first shard reports the notices of all shards.
        untold: if shard == 0 { txn.tables.outbox.len()? } else { 0 },
        ..Stats::default()
    };
    stats.states.purged = ledger.purged;
    for state in State::ALL {
        *stats.states.of(state) = ledger.of(state);
    }
    Ok(stats)
}
