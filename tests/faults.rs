//! What goes wrong around Ringback: processes die, stores fail, nodes change, callers race, load is high.

mod accepted_count;
mod chaos;
mod cluster;
mod cluster_nodes;
mod connections;
mod crash;
mod credentials;
mod destroyed_replies;
mod durability;
mod failovers;
mod hostile_tenant;
mod installations;
mod load;
mod logs;
mod lost_data;
mod misconf;
mod outage;
mod paused_carriers;
mod promoted;
mod race;
mod recorded_load;
mod recovery;
mod redis_kills;
mod replicated;
mod rolling;
mod sentinel;
mod shutdown;
mod slot_moves;
mod steady_load;

/// Whether tests of replaced and missing servers run that `make test` leaves out: `RINGBACK_TEST_TOPOLOGIES=all`.
pub(crate) fn runs_all_topologies() -> bool {
    std::env::var_os("RINGBACK_TEST_TOPOLOGIES").is_some_and(|value| value == "all")
}
