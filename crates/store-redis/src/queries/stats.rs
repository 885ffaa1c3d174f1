//! The ledger of a shard, its topics, and the lateness of deliveries.

use ringback_core::contract::{Shard, Stats, StoreError};
use ringback_core::state::State;

use crate::redis_store::RedisStore;
use crate::script;

/// Names with numbers. A count below zero would be a bug of a script; it shows as zero.
type Counters = Vec<(String, i64)>;

impl RedisStore {
    pub async fn stats(&self, shard: Shard) -> Result<Stats, StoreError> {
        let (ledger, topics, minutes, pending_notices): (Counters, Vec<String>, Vec<Counters>, _) =
            self.run(&script::STATS, shard, |_| {}).await?;
        let mut stats = Stats { pending_notices, ..Stats::default() };
        for (name, n) in ledger {
            let n = u64::try_from(n).unwrap_or(0);
            match (name.as_str(), State::ALL.into_iter().find(|s| s.name() == name)) {
                (_, Some(state)) => *stats.states.of(state) += n,
                ("purged", None) => stats.states.purged += n,
                ("accepted", None) => stats.accepted += n,
                ("forgotten_early", None) => stats.evicted_early += n,
                _ => {}
            }
        }
        stats.topics.extend(topics);
        for (name, n) in minutes.into_iter().flatten() {
            stats.lateness.add_field(&name, u64::try_from(n).unwrap_or(0));
        }
        Ok(stats)
    }
}
