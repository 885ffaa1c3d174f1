//! The counts of a shard.

use ringback_core::contract::{Shard, Stats, StoreError};
use ringback_core::state::State;

use crate::EmbeddedStore;
use crate::error::Result;
use crate::txn::Txn;

impl EmbeddedStore {
    pub async fn stats(&self, shard: Shard) -> Result<Stats, StoreError> {
        self.call(shard, 0, |txn| stats(txn)).await
    }
}

fn stats(txn: &Txn<'_>) -> Result<Stats> {
    let (shard, ledger) = (txn.shard(), &txn.row.ledger);
    let mut stats = Stats {
        accepted: ledger.accepted,
        topics: txn.tables.due.topics(shard, "", usize::MAX)?.into_iter().collect(),
        lateness: txn.tables.minutes.recent(shard, txn.now())?,
        evicted_early: ledger.evicted_early,
        // The first shard reports the notices of all shards.
        pending_notices: if shard == 0 { txn.tables.outbox.len()? } else { 0 },
        ..Stats::default()
    };
    stats.states.purged = ledger.purged;
    for state in State::ALL {
        *stats.states.of(state) = ledger.of(state);
    }
    Ok(stats)
}
