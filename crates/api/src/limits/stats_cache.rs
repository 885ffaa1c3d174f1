//! Caches the answer of `/v1/stats` for a second, and lets one request at a time ask the store, so
//! that dashboards put no load on it.

use std::sync::Arc;
use std::time::Duration;

use ringback_core::store_types::{StateCounts, Stats, StoreError};
use ringback_store::Store;
use ringback_wire::{
    ArchiveResponse, LatenessSummary, OutboxCounts, StatsResponse, StoreDetails, TombstoneCounts,
};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::error;

/// How long an answer is reused.
const FRESH: Duration = Duration::from_secs(1);

type Cached = Result<StatsResponse, Arc<StoreError>>;

/// The last answer, an error included, and when the store was asked for it.
#[derive(Default)]
pub(crate) struct StatsCache(Mutex<Option<(Instant, Cached)>>);

impl StatsCache {
    /// The counts of the store, or the error of reading them, up to a second old.
    pub(crate) async fn get(&self, store: &Store) -> Cached {
        let mut last = self.0.lock().await;
        if let Some((asked, cached)) = &*last
            && asked.elapsed() < FRESH
        {
            return cached.clone();
        }
        let asked = Instant::now();
        let result = store.stats().await.map(|stats| answer(&stats, store)).map_err(|error| {
            error::log(&error);
            Arc::new(error)
        });
        *last = Some((asked, result.clone()));
        result
    }
}

fn answer(stats: &Stats, store: &Store) -> StatsResponse {
    StatsResponse {
        states: stats.states.clone(),
        topics: stats.topics.len() as u64,
        lateness_ms: LatenessSummary {
            p50: stats.lateness.quantile_ms(0.5),
            p99: stats.lateness.quantile_ms(0.99),
            max: stats.lateness.max_ms(),
        },
        tombstones: TombstoneCounts { tombstones_evicted_early: stats.evicted_early },
        outbox: OutboxCounts { deaths: stats.pending_notices },
        archive: ArchiveResponse::of(&stats.archive),
        store: of_store(store),
    }
}

/// The answer for a tenant: its counts, and 0 for what is not counted by tenant, such as lateness.
pub(crate) fn of_tenant(states: StateCounts, topics: u64, store: &Store) -> StatsResponse {
    StatsResponse {
        states,
        topics,
        lateness_ms: LatenessSummary::default(),
        tombstones: TombstoneCounts::default(),
        outbox: OutboxCounts::default(),
        archive: None,
        store: of_store(store),
    }
}

fn of_store(store: &Store) -> StoreDetails {
    StoreDetails {
        kind: store.kind().to_owned(),
        profile: store.profile().to_string(),
        layout: store.layout(),
        clock_ahead_ms: store.clock_gap().map(|gap| gap.ahead_ms),
    }
}
