//! Checks of a store at the end of a case: the ledger adds up, and the store's own audit finds nothing.
//!
//! `redis_layout::audit` checks the keys in Redis without the audit of the product.

use ringback_core::contract::{Repair, Stats};
use ringback_store::Store;

/// accepted = done + cancelled + purged + delayed + ready + reserved + dead + missing.
pub(crate) fn ledger(stats: &Stats) {
    let s = &stats.states;
    let sum = s.done + s.cancelled + s.purged + s.delayed + s.ready + s.reserved + s.dead + s.missing;
    assert_eq!(stats.accepted, sum, "the ledger does not add up: {stats:?}");
}

/// What the embedded store's own audit finds.
pub(crate) async fn tables(store: &Store) {
    let audit = store.audit(Repair::No).await.expect("audit");
    assert!(audit.findings.is_empty() && audit.stale == 0, "{audit:#?}");
}

/// Checks that the store's own audit finds nothing and has looked at every job.
pub(crate) async fn own(store: &Store) {
    let audit = store.audit(Repair::No).await.expect("audit");
    assert!(audit.is_clean() && audit.findings.is_empty(), "{audit:#?}");
    let states = store.stats().await.expect("stats").states;
    assert_eq!(audit.missing, states.missing);
    assert_eq!(audit.checked, states.delayed + states.ready + states.reserved + states.dead);
    assert_eq!((audit.shards, audit.compared), (audit.shards, audit.shards), "nothing moves here");
}
