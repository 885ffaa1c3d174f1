//! Tests of faults around Ringback: processes die, stores fail, nodes change, callers race, load is high.

mod accepted_count;
mod address_guard;
mod backlogs;
mod calls_at_due_time;
mod chaos;
mod clocks;
mod cluster;
mod cluster_nodes;
mod connections;
mod credentials;
mod destroyed_replies;
mod early_answers;
mod failovers;
mod hanging_receiver;
mod hanging_tenant;
mod hostile_tenant;
mod http2;
mod installations;
mod kept_connections;
mod killed_processes;
mod lagging_replica;
mod leased_ahead;
mod logs;
mod lost_data;
mod malformed_answers;
mod nginx;
mod paused_carriers;
mod planted_secrets;
mod raw_receiver;
mod receiver_names;
mod recorded_load;
mod recovery;
mod redis_kills;
mod redis_outage;
mod refusals;
mod refused_writes;
mod replicated;
mod rolling;
mod schedules;
mod sentinel;
mod slot_moves;
mod start_and_end;
mod steady_load;
mod store_rejections;
mod store_urls;
mod tls;
mod weaker_store;

use ringback_testkit::variable;

/// Whether `RINGBACK_TEST_TOPOLOGIES=all` is set, which adds tests of replaced and missing servers that `make test`
/// leaves out. If not, prints that the calling test leaves something out.
pub(crate) fn runs_all_topologies() -> bool {
    let runs = variable::<String>("RINGBACK_TEST_TOPOLOGIES").is_some_and(|value| value == "all");
    if !runs {
        show_left_out("all of it runs with RINGBACK_TEST_TOPOLOGIES=all");
    }
    runs
}

/// Prints that the calling test leaves something out. The test still counts as passed.
#[expect(clippy::print_stdout, reason = "what did not run is shown")]
fn show_left_out(why: &str) {
    println!("left out: {}: {why}", std::thread::current().name().unwrap_or_default());
}
