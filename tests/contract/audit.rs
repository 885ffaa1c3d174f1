//! Audits of a store at the end of a case: the ledger adds up, and the store's own consistency check finds nothing.
//! `redis_layout::check` reads the keys in Redis without that check.

use ringback_core::store_types::{Repair, Stats};
use ringback_store::Store;

/// Asserts that accepted = done + cancelled + purged + delayed + ready + reserved + dead + missing.
pub(crate) fn ledger(stats: &Stats) {
    let s = &stats.states;
    let sum = s.done + s.cancelled + s.purged + s.delayed + s.ready + s.reserved + s.dead + s.missing;
    assert_eq!(stats.accepted, sum, "the ledger does not add up: {stats:?}");
}

/// Asserts that the embedded store's own check has no finding and no stale entry.
pub(crate) async fn tables(store: &Store) {
    let check = store.check(Repair::No).await.expect("check");
    assert!(check.findings.is_empty() && check.stale == 0, "{check:#?}");
}

/// Asserts that the store's own check has checked each job, finds nothing, and counts missing jobs as statistics do.
pub(crate) async fn own(store: &Store) {
    let check = store.check(Repair::No).await.expect("check");
    assert!(check.is_clean() && check.findings.is_empty(), "{check:#?}");
    let states = store.stats().await.expect("stats").states;
    assert_eq!(check.missing, states.missing);
    assert_eq!(check.checked, states.delayed + states.ready + states.reserved + states.dead);
    assert_eq!((check.shards, check.compared), (check.shards, check.shards), "nothing moves here");
}
